//! Reads of the host: from the read cache, or else from flash.
//!
//! What a request reads enters the cache when the request is done, so that a read never finds what is still to come.

use std::ops::DerefMut;

use flashlore_flash::{Cause, Completion, Lpn, Tag, Time};

use super::{Driver, Result};
use crate::engine::requests::InFlight;
use crate::engine::system::System;
use crate::results::CacheTraffic;

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    #[inline(always)]
    pub(super) fn read(&mut self, mut flight: InFlight) -> Result<()> {
        let at = flight.arrival;
        let slot = self.requests.insert(flight);
        for unit in Lpn::each(flight.lpn..flight.lpn + flight.units) {
            if self.cache.is_some() && self.is_cached(unit) {
                flight.served(at, at);
            } else {
                self.read_from_flash(at, &mut flight, unit, slot)?;
            }
        }
        self.settle(slot, flight);
        Ok(())
    }

    /// Reads a unit for the host.
    #[inline(always)]
    pub(super) fn read_from_flash(
        &mut self,
        at: Time,
        flight: &mut InFlight,
        unit: Lpn,
        slot: u32,
    ) -> Result<()> {
        if S::ENCODES {
            return self.read_unit(flight, unit, slot);
        }
        let done = self.system.read(at, unit, Cause::Host, Tag(slot))?;
        match done.unwrap_or(Completion::instant(at)) {
            Completion::At { start, end } => flight.served(start, end),
            Completion::Later(_) => {}
        }
        Ok(())
    }

    /// Whether a unit that is read is in the read cache, if there is one.
    #[inline(never)]
    pub(super) fn is_cached(&mut self, unit: Lpn) -> bool {
        let Some(cache) = &mut self.cache else {
            return false;
        };
        let key = cache.key(unit, || self.system.content(unit));
        key.is_some_and(|key| cache.reads(key))
    }

    /// What a request has read is in the read cache, if there is one.
    #[inline(never)]
    pub(super) fn keep_in_cache(&mut self, flight: &InFlight) {
        let Some(cache) = &mut self.cache else {
            return;
        };
        for unit in Lpn::each(flight.lpn..flight.lpn + flight.units) {
            if let Some(key) = cache.key(unit, || self.system.content(unit)) {
                cache.has_read(key);
            }
        }
    }

    /// What the read cache has counted.
    pub fn cache_traffic(&self) -> CacheTraffic {
        let cache = self.cache.as_ref();
        cache.map_or(CacheTraffic::default(), |cache| cache.traffic())
    }
}
