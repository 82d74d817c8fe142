//! The durations of a part, and how its buses are built. All times in nanoseconds.

use crate::address::Time;

/// What executes one array operation (read, program, erase) at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// A die: its planes take turns.
    Die,
    /// A plane: the planes of a die work independently.
    Plane,
}

/// Durations are unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("timing: the list of program times is empty, expected at least one duration")]
pub struct TimingError;

/// How long the operations of a part take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// Sensing one flash page.
    pub read: Time,
    /// Programming one flash page; page `i` of a block takes entry `i` modulo the length (the page
    /// types of multi-level cells).
    pub program: Vec<Time>,
    /// Erasing one block.
    pub erase: Time,
    /// Moving one 4 KiB unit over the channel.
    pub transfer: Time,
    /// Whether the dies of a channel share it; otherwise each has its own and never waits.
    pub shared_channel: bool,
    /// What works at the same time.
    pub concurrency: Concurrency,
    /// Whether a host operation may suspend a background erase.
    pub erase_suspend: bool,
}

impl Timing {
    /// Checks the durations.
    ///
    /// # Errors
    /// When there is no program time.
    pub fn validate(self) -> Result<Self, TimingError> {
        if self.program.is_empty() {
            return Err(TimingError);
        }
        Ok(self)
    }
}
