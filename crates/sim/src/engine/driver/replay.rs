//! A trace as the sender of requests, in an open or a closed loop.
//!
//! Requests are looked ahead for prefetches, and an open loop says up to when no other request arrives: both
//! save time and change no result.

use std::ops::DerefMut;

use flashlore_content::PageTag;
use flashlore_flash::hints::prefetch;
use flashlore_flash::{Lpn, Time};
use flashlore_trace::{Op, RequestBlock};

use super::{Driver, Payload, Result};
use crate::engine::system::{Distance, System};

/// Requests looked ahead for the distances of a prefetch.
const AHEAD: [(usize, Distance); 4] = [
    (20, Distance::First),
    (15, Distance::Second),
    (10, Distance::Third),
    (5, Distance::Fourth),
];
/// Requests themselves are asked for so far ahead.
const REQUESTS_AHEAD: usize = 64;
/// Units of one request that are prefetched; later ones follow the first in memory anyway.
const PREFETCHED_UNITS: u32 = 4;

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    /// Replays the requests of a block from `first` on, before `end`.
    ///
    /// # Errors
    /// A device that cannot serve a request; [`Driver::number`] says which.
    pub fn replay(&mut self, block: &RequestBlock, first: usize, end: usize) -> Result<()> {
        for i in first..end {
            self.prefetch(block, i);
            let request = &block.requests[i];
            self.number += 1;
            let at = self.arrival(request.time_ns)?;
            let payload = Payload {
                values: block.content(request),
                ratios: block.delta_ratios(request),
            };
            let next = block.requests[i + 1..end].first();
            let horizon = next.map_or(0, |next| self.sender.horizon_before(next.time_ns));
            self.submit(at, self.number - 1, request, payload, horizon)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, block: &RequestBlock, i: usize) {
        prefetch(&block.requests, i + REQUESTS_AHEAD);
        for (ahead, distance) in AHEAD {
            let Some(request) = block.requests.get(i + ahead) else {
                continue;
            };
            match (request.op, block.content(request)) {
                (Op::Write, Some(values)) => {
                    let units = request.units.min(PREFETCHED_UNITS);
                    for (unit, &value) in (0..units).zip(values) {
                        let lpn = request.lpn + unit;
                        self.system
                            .prefetch_write(distance, Lpn(lpn), PageTag(value));
                    }
                }
                _ => {
                    for unit in 0..request.units.min(PREFETCHED_UNITS) {
                        self.system.prefetch_read(distance, Lpn(request.lpn + unit));
                    }
                }
            }
        }
    }

    /// When the next request arrives.
    #[inline(always)]
    fn arrival(&mut self, stamp: Time) -> Result<Time> {
        match self.sender.arrival(stamp) {
            Some(at) => Ok(at),
            None => self.next_turn(),
        }
    }

    /// Closed loop: waits until a request may arrive.
    fn next_turn(&mut self) -> Result<Time> {
        loop {
            let turn = self.sender.turn();
            let instant = self.next_instant();
            if self.host.uses_gaps()
                && let Some(bound) = turn.into_iter().chain(instant).min()
                && self.scan_before(bound)?
            {
                continue;
            }
            match (turn, instant) {
                (Some(at), None) => {
                    self.sender.take_turn();
                    return Ok(at.max(self.now));
                }
                // What happens before may end a request earlier.
                (Some(at), Some(instant)) if at <= instant => {
                    self.sender.take_turn();
                    return Ok(at.max(self.now));
                }
                (_, Some(instant)) => {
                    self.handle(instant)?;
                    self.pass_over_scans(turn);
                }
                (None, None) => {
                    // Everything in flight waits for its page to fill.
                    self.system.core_mut().flush(self.now)?;
                    self.flush_due = None;
                    self.collect_finished()?;
                }
            }
        }
    }
}
