//! Reads of the host: from the read cache, or else from flash.
//!
//! A read looks at the map, so it waits for changes before it that are not there yet, as far as
//! [`ReadOrder`] says. For those of its page it stands in their line ([`crate::engine::order`]); for all it
//! waits at a barrier ([`crate::engine::barrier`]). Where nothing delays a change, neither is asked.
//!
//! What a request reads enters the cache when the request is done, so that a read never finds what is still to come.

use std::ops::DerefMut;

use flashlore_flash::{Cause, Completion, Lpn, Tag, Time};

use super::changes::Next;
use super::{Driver, Result};
use crate::config::ReadOrder;
use crate::engine::requests::InFlight;
use crate::engine::system::System;
use crate::results::CacheTraffic;

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    #[inline(always)]
    pub(super) fn read(&mut self, mut flight: InFlight) -> Result<()> {
        let at = flight.arrival;
        let slot = self.requests.insert(flight);
        for unit in Lpn::each(flight.lpn..flight.lpn + flight.units) {
            self.read_in_turn(at, &mut flight, unit, slot)?;
        }
        self.settle(slot, flight);
        Ok(())
    }

    /// Reads a unit, at once or behind the changes that it waits for.
    #[inline(always)]
    pub(super) fn read_in_turn(
        &mut self,
        at: Time,
        flight: &mut InFlight,
        unit: Lpn,
        slot: u32,
    ) -> Result<()> {
        if S::HASHES && self.waits_for_changes(unit, slot) {
            return Ok(());
        }
        self.read_mapped(at, flight, unit, slot)
    }

    /// Whether a read waits for changes under way; it goes on by itself then.
    #[inline(always)]
    fn waits_for_changes(&mut self, unit: Lpn, slot: u32) -> bool {
        match self.host.read_order {
            ReadOrder::Bypass => false,
            ReadOrder::Fifo => self.barrier.wait((unit, slot)),
            ReadOrder::SamePage => {
                if !self.ordered {
                    if self.hash_queue.is_empty() {
                        return false;
                    }
                    self.keep_order();
                }
                self.order.wait(unit, Next::Read(slot))
            }
        }
    }

    /// The changes are through that a read has waited for.
    pub(super) fn resume_read(&mut self, at: Time, unit: Lpn, slot: u32) -> Result<()> {
        let mut flight = *self.requests.get_mut(slot);
        self.read_mapped(at, &mut flight, unit, slot)?;
        self.settle(slot, flight);
        self.collect_finished()
    }

    /// A change is through: reads that waited for it as the last one go on.
    #[inline(never)]
    pub(super) fn pass_barrier(&mut self, at: Time, number: u64) -> Result<()> {
        self.barrier.leave(number);
        while let Some((unit, slot)) = self.barrier.released() {
            self.resume_read(at, unit, slot)?;
        }
        Ok(())
    }

    /// Reads what the map has of a unit, if it is not in the read cache.
    #[inline(always)]
    fn read_mapped(&mut self, at: Time, flight: &mut InFlight, unit: Lpn, slot: u32) -> Result<()> {
        #[cfg(test)]
        self.seen.read(flight, unit);
        if self.cache.is_some() && self.is_cached(unit) {
            flight.served(at, at);
            return Ok(());
        }
        self.read_from_flash(at, flight, unit, slot)
    }

    /// Reads a unit for the host.
    #[inline(always)]
    fn read_from_flash(
        &mut self,
        at: Time,
        flight: &mut InFlight,
        unit: Lpn,
        slot: u32,
    ) -> Result<()> {
        if S::ENCODES {
            return self.read_unit(at, flight, unit, slot);
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
