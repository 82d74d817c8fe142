//! The work that follows requests, step by step: a scan if it is time, and what the next request may need.
//!
//! Whoever has the element calls for the steps, between requests or behind an answer. A step is bounded: some blocks of
//! a scan, a replacement with the batch that it takes, room for one group in the log.

use crate::error::ArrayError;
use crate::icash::parameters::{SPARE_SEGMENTS, SPARE_SLOTS, SPARE_VIRTUAL_BLOCKS};
use crate::icash::state::ICash;

impl ICash {
    /// What follows the answer to a request: it counts towards the next scan, unless it is a part of the one before.
    pub(super) fn end_of_request(&mut self, continues: bool) {
        self.media.begin_background();
        self.requests_since_scan += u64::from(!continues);
    }

    /// From now on somebody does the work that is due at any moment: a request leaves all of it that it can go on
    /// without.
    pub fn leave_work(&mut self) {
        self.leaves_work = true;
    }

    /// One step of the work that is due; false if none is. After a failure that leaves open what a medium holds there
    /// is none.
    pub(super) fn work_step(&mut self) -> Result<bool, ArrayError> {
        if self.is_stopped() {
            return Ok(false);
        }
        let done = self.due_step();
        self.counters.background_failures += u64::from(done.is_err());
        done
    }

    fn due_step(&mut self) -> Result<bool, ArrayError> {
        if self.is_scan_due() {
            self.scan_step()?;
            return Ok(true);
        }
        if self.room_step()? || self.ready_step(SPARE_SLOTS)? {
            return Ok(true);
        }
        if self.is_passed_batch_due() {
            self.send_passed_home()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether a step of work is due. No medium is asked.
    pub fn is_work_due(&self) -> bool {
        !self.is_stopped()
            && (self.is_scan_due()
                || self.is_flush_due()
                || self.is_room_due()
                || self.is_batch_due()
                || self.is_passed_batch_due()
                || self.blocks.left() < SPARE_VIRTUAL_BLOCKS
                || self.pool.free() < SPARE_SLOTS
                || self.segments.left() < SPARE_SEGMENTS
                || self.lacks_frozen_places())
    }

    fn is_scan_due(&self) -> bool {
        self.scanning.is_some() || self.requests_since_scan >= self.options.scan_every
    }
}
