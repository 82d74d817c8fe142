//! How time passes: from event to event, each instant handled in order, up to an arrival or to the end.
//!
//! Invariant: the device is never ahead of the host model. It is advanced to an instant, and its completions are taken,
//! before anything else happens then.

use std::cmp::Reverse;
use std::ops::DerefMut;

use flashlore_flash::{Flash, Time};

use super::changes::What;
use super::{Driver, FIRST_FETCH_TAG, Result};
use crate::engine::system::System;

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    /// The next instant at which something happens by itself.
    #[inline(always)]
    pub(super) fn next_instant(&self) -> Option<Time> {
        let hash = self.hash_queue.front().map(|&(at, _)| at);
        let fetched = self.fetched.peek().map(|&Reverse((at, _))| at);
        // Fetches and requests in flight may end at any event of the flash device.
        let waits = self.open_fetches > 0
            || self.host.uses_gaps()
            || (self.sender.waits_for_turns() && !self.requests.is_empty())
            || (self.buffering.is_some() && !self.requests.is_empty());
        let flash = if waits {
            self.system.core().flash().next_event()
        } else {
            None
        };
        let codec = if S::ENCODES {
            self.codec.next_instant()
        } else {
            None
        };
        let buffering = self
            .buffering
            .as_ref()
            .and_then(|buffering| buffering.next_instant());
        [hash, fetched, codec, buffering, self.flush_due, flash]
            .into_iter()
            .flatten()
            .min()
    }

    /// Lets time pass to an arrival.
    #[inline(always)]
    pub(super) fn pass(&mut self, until: Time) -> Result<()> {
        if !self.is_quiet_until(until) {
            if self.host.uses_gaps() {
                self.scan_until(until)?;
            }
            while let Some(instant) = self.next_instant()
                && instant <= until
            {
                self.handle(instant)?;
            }
        }
        self.end_stretches(until)?;
        self.now = until;
        self.system.advance(until)?;
        self.collect_finished()
    }

    /// Handles what happens at one instant.
    pub(super) fn handle(&mut self, at: Time) -> Result<()> {
        self.end_stretches(at)?;
        self.happen(at)?;
        self.watch(at);
        Ok(())
    }

    fn happen(&mut self, at: Time) -> Result<()> {
        self.now = at;
        self.system.advance(at)?;
        self.collect_finished()?;
        if let Some(&Reverse((end, fetch))) = self.fetched.peek()
            && end <= at
        {
            self.fetched.pop();
            return self.after_fetch(at, fetch);
        }
        if let Some(&(end, change)) = self.hash_queue.front()
            && end <= at
        {
            self.hash_queue.pop_front();
            return match change.what {
                What::Scan => Ok(self.system.end_scan(at)?),
                _ => self.after_hash(at, change),
            };
        }
        if S::ENCODES && self.codec_happens(at)? {
            return Ok(());
        }
        if self.buffering_happens(at)? {
            return Ok(());
        }
        if self.flush_due.is_some_and(|due| due <= at) {
            self.flush_due = None;
            self.system.core_mut().flush(at)?;
            self.collect_finished()?;
        }
        Ok(())
    }

    /// Takes the completions the device has decided.
    #[inline(always)]
    pub(super) fn collect_finished(&mut self) -> Result<()> {
        if self.system.core_mut().finished().is_empty() {
            return Ok(());
        }
        self.take_finished()
    }

    fn take_finished(&mut self) -> Result<()> {
        let mut finished = std::mem::take(self.system.core_mut().finished());
        for done in finished.drain(..) {
            if done.tag.0 < FIRST_FETCH_TAG {
                self.unit_done(done.tag.0, done.start, done.end);
            } else {
                let fetch = done.tag.0 - FIRST_FETCH_TAG;
                self.fetch_ends(fetch, done.start, done.end);
                self.open_fetches -= 1;
            }
        }
        *self.system.core_mut().finished() = finished;
        Ok(())
    }

    /// Whether the change under way may go on at `end` at once, because nothing else happens before that: time
    /// has passed then. Only where going on is the last thing to be done at the present instant.
    #[inline(always)]
    pub(super) fn goes_on_at(&mut self, end: Time) -> Result<bool> {
        if end > self.horizon || !self.is_quiet_until(end) {
            return Ok(false);
        }
        self.watch(self.now);
        self.end_stretches(end)?;
        self.now = end;
        self.system.advance(end)?;
        self.collect_finished()?;
        Ok(true)
    }

    /// Whether nothing happens by itself before an instant, or at it.
    #[inline(always)]
    pub(super) fn is_quiet_until(&mut self, end: Time) -> bool {
        self.hash_queue.is_empty()
            && self.fetched.is_empty()
            && self.open_fetches == 0
            && self.buffering.is_none()
            && self.flush_due.is_none_or(|due| due > end)
            && (!S::ENCODES || self.codec.is_quiet_until(end))
            && (!self.host.uses_gaps() || self.leaves_gaps_until(end))
    }

    /// Books what the device has done since the last call at this instant of the time line.
    #[inline(always)]
    pub(super) fn watch(&mut self, at: Time) {
        if self.measuring && self.measured.watches() {
            let core = self.system.core();
            self.measured.watch(at, core.counters(), core.free_blocks());
        }
    }

    /// No more requests come: everything in flight is brought to its end.
    ///
    /// # Errors
    /// A device that cannot serve what is left.
    pub fn drain(&mut self) -> Result<()> {
        while !self.requests.is_empty() || self.buffering.as_ref().is_some_and(|f| f.is_leaving()) {
            match self.next_event_of_anything() {
                Some(instant) => {
                    self.handle(instant.max(self.now))?;
                    self.pass_over_scans(None);
                }
                None => {
                    self.system.core_mut().flush(self.now)?;
                    self.flush_due = None;
                    self.collect_finished()?;
                }
            }
        }
        let end = self.now.max(self.last_end);
        self.end_stretches(end)?;
        self.now = end;
        self.system.advance(end)?;
        self.watch(end);
        self.look(end);
        Ok(())
    }

    pub(super) fn next_event_of_anything(&self) -> Option<Time> {
        let flash = self.system.core().flash().next_event();
        [self.next_instant(), flash].into_iter().flatten().min()
    }
}
