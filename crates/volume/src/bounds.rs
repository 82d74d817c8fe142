//! How much may happen between two checkpoints: a recovery reads that and has what it changes in memory.

/// What makes the next checkpoint due, counted since the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryBounds {
    /// Events that program a page.
    pub events: u64,
    /// Units that are programmed, copies of collection among them: those are read.
    pub units: u64,
    /// Rows that a rewind, a purge or the end of a snapshot may change, all of them together. One that comes to more is part
    /// of a checkpoint.
    pub rows: u64,
}

impl Default for RecoveryBounds {
    /// 1 GiB of writes, 2 GiB to read, and as many rows as writes may change.
    fn default() -> Self {
        RecoveryBounds {
            events: 1 << 18,
            units: 1 << 19,
            rows: 1 << 18,
        }
    }
}
