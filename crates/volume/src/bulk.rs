//! Events of the history that may change many rows at once: a rewind, a purge, the end of a snapshot.
//!
//! Such an event is one entry of the journal, and a recovery that replays it has all that it changes in memory. So one
//! that changes many is not written there: the checkpoint that is taken with it holds it, and until the root of that is
//! durable it has not happened.
//!
//! Invariant: those that a recovery replays change no more rows in sum than [`RecoveryBounds`] says.

#[cfg(doc)]
use crate::bounds::RecoveryBounds;
use crate::error::VolumeError;
use crate::format::Change;
use crate::volume::Volume;

/// An event that has begun. What it does is done next, and then it is noted.
#[must_use = "nobody knows of the event before it is noted"]
pub(crate) struct BulkEvent {
    rows: u64,
    /// Whether a checkpoint is taken with it.
    is_large: bool,
}

impl Volume {
    /// Begins an event that changes so many rows at most.
    pub(crate) fn begin_bulk(&mut self, rows: u64) -> Result<BulkEvent, VolumeError> {
        let is_large = self.bulk_rows.saturating_add(rows) > self.bounds.rows;
        if is_large {
            // What the checkpoint would have to program, and what would fill the journal, is done before.
            self.settle()?;
        }
        // Any number of pages of the tables may change: what only the root before the open checkpoint reaches must be free
        // for them.
        self.layer.core_mut().flash_mut().finish_checkpoint()?;
        Ok(BulkEvent { rows, is_large })
    }

    /// Its rows have changed, and these snapshots have ended.
    pub(crate) fn note_bulk(
        &mut self,
        event: BulkEvent,
        change: Change,
        ended: &[u64],
    ) -> Result<(), VolumeError> {
        if !event.is_large {
            self.bulk_rows += event.rows;
            return self.take_noted(change, &[], ended);
        }
        self.take_event(None)?;
        self.notes.apply(self.stamp, change, &[], ended);
        self.checkpoint()
    }
}
