//! Erases of blocks from an instant on: how many there were, and how unevenly they fell.
//!
//! Kept while somebody watches the wear, so that its spread is known at any time without a walk over all
//! blocks.
//!
//! Invariants: `total`, `squares` and `most` are sum, sum of squares and maximum over all blocks of their
//! erases since `before` was noted.

use flashlore_flash::BlockId;

/// Erases of all blocks since counting began.
#[derive(Debug, Clone)]
pub struct EraseTally {
    /// Erases of every block when counting began.
    before: Vec<u32>,
    total: u64,
    squares: u64,
    most: u32,
}

impl EraseTally {
    /// Counting begins with blocks that have been erased so often.
    pub(crate) fn new(before: impl Iterator<Item = u32>) -> Self {
        EraseTally {
            before: before.collect(),
            total: 0,
            squares: 0,
            most: 0,
        }
    }

    /// A block has been erased, for the so-manieth time in all.
    pub(crate) fn count(&mut self, block: BlockId, erases: u32) {
        let here = erases - self.before[block.index()];
        self.total += 1;
        // From the square of one less.
        self.squares += 2 * u64::from(here) - 1;
        self.most = self.most.max(here);
    }

    /// Blocks of the device.
    pub fn blocks(&self) -> u64 {
        self.before.len() as u64
    }

    /// Erases of all blocks.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Sum over the blocks of the squares of their erases.
    pub fn squares(&self) -> u64 {
        self.squares
    }

    /// Erases of the most erased block.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Recounts the figures from the erases that every block has in all.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub(crate) fn check(&self, erases: impl Iterator<Item = u32>) -> Result<(), String> {
        let since: Vec<u64> = erases
            .zip(&self.before)
            .map(|(now, &before)| u64::from(now) - u64::from(before))
            .collect();
        let recounted = (
            since.iter().sum::<u64>(),
            since.iter().map(|n| n * n).sum::<u64>(),
            since.iter().copied().max().unwrap_or(0),
        );
        let counted = (self.total, self.squares, u64::from(self.most));
        if counted == recounted {
            return Ok(());
        }
        Err(format!(
            "erases, their squares and the most are {counted:?}, recounted {recounted:?}"
        ))
    }
}
