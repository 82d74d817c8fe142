//! Sizes and options of a cache.

use crate::error::ArrayError;
use crate::icash::parameters::WRITE_BACK_BATCH;

/// How large a cache is and when its dirty blocks go home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheOptions {
    /// Slots on the fast medium, 4 KiB each: its budget.
    pub slots: u32,
    /// Dirty blocks that go home at once, about; see docs/array.md. 1 is each when its slot is needed.
    pub write_back_batch: usize,
    /// Whether the oldest slots are made clean in the background, after a request, so that no request waits for
    /// what goes home. Otherwise they are when a slot is needed.
    pub clean_ahead: bool,
}

impl CacheOptions {
    /// So many slots, and the batches and the background work of I-CASH.
    pub fn new(slots: u32) -> Self {
        CacheOptions {
            slots,
            write_back_batch: WRITE_BACK_BATCH,
            clean_ahead: true,
        }
    }

    pub(super) fn validate(&self) -> Result<(), ArrayError> {
        if self.slots == 0 || self.slots == u32::MAX {
            return Err(ArrayError::Shape(format!(
                "a cache cannot have {} slots, expected 1 to {}",
                self.slots,
                u32::MAX - 1
            )));
        }
        if self.write_back_batch == 0 {
            return Err(ArrayError::Shape(
                "0 blocks cannot be written home at once, expected 1 or more".into(),
            ));
        }
        Ok(())
    }
}
