//! What is done in idle time. Out of line: a stored page is read, hashed and looked up, one at a time.
//! Pages that are not written often any more are materialized ([`super::encoding`]).
//!
//! Its read begins when its die and the hash unit have nothing to do, in a gap that has been reached;
//! from then on it stands in line like any other.

use std::ops::DerefMut;

use flashlore_content::PageTag;
use flashlore_flash::{Flash, Lpn, Tag, Time};

use super::changes::{Change, Hashing, What};
use super::encoding::Encoding;
use super::{Driver, FIRST_FETCH_TAG, Result, SCAN_FETCH};
use crate::engine::system::System;

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    /// Handles what happens before an arrival and uses the gaps between.
    #[cold]
    pub(super) fn scan_until(&mut self, until: Time) -> Result<()> {
        loop {
            let instant = self.next_instant().filter(|&instant| instant <= until);
            if self.scan_before(instant.unwrap_or(until))? {
                continue;
            }
            let Some(instant) = instant else {
                return Ok(());
            };
            self.handle(instant)?;
            self.pass_over_scans(Some(until));
        }
    }

    /// Whether gaps before an instant, or at it, are left alone.
    pub(super) fn leaves_gaps_until(&mut self, end: Time) -> bool {
        !self.host.out_of_line
            && self.system.cold_start().is_none()
            && self
                .system
                .core()
                .flash()
                .next_event()
                .is_none_or(|event| event > end)
    }

    /// Starts the read of a stored page that was not hashed if die and hash unit are idle before
    /// `bound`, when something else happens; whether time has passed for that.
    #[cold]
    pub(super) fn scan_before(&mut self, bound: Time) -> Result<bool> {
        if S::ENCODES && self.merge_cold_before(bound)? {
            return Ok(true);
        }
        let Some(idle) = self.system.scan_start() else {
            return Ok(false);
        };
        let start = idle.max(self.hash_free_at).max(self.now);
        if start >= bound {
            return Ok(false);
        }
        self.end_stretches(start)?;
        self.now = start;
        self.system.advance(start)?;
        self.collect_finished()?;
        let tag = Tag(FIRST_FETCH_TAG + SCAN_FETCH);
        if let Some(done) = self.system.scan(start, tag)? {
            self.await_read(SCAN_FETCH, done);
        }
        self.watch(start);
        Ok(true)
    }

    /// A stored page that was read lines up at the hash unit.
    #[cold]
    pub(super) fn hash_scanned(&mut self, at: Time) -> Result<()> {
        let end = at.max(self.hash_free_at) + self.host.hash;
        if end == at {
            return Ok(self.system.end_scan(at)?);
        }
        self.hash_free_at = end;
        let stored = Change {
            number: 0,
            lpn: Lpn(0),
            value: PageTag::FOREIGN,
            ratio: 0,
            slot: 0,
            what: What::Scan,
            hashing: Hashing::Alone,
            encoding: Encoding::No,
        };
        self.hash_queue.push_back((end, stored));
        Ok(())
    }
}
