//! Victims that cannot be read.
//!
//! A unit that cannot be read now may be readable later: its block is left alone, collection goes on with others and
//! comes back to it after a while. Only when a pool has nothing else to collect and the host no block to open is
//! such a block emptied all the same; what cannot be read then is given up.
//!
//! Invariant: a block that is aside is sealed and keeps everything valid in it.

use flashlore_flash::{BlockId, PoolId};

use crate::blocks::{BlockPhase, Blocks};

/// A block that was left alone is a candidate again after so many erases of the device.
const ERASES_BETWEEN_TRIES: u64 = 64;

/// The blocks that are left alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aside {
    /// Blocks, and how many erases the device must have counted before one is tried again.
    blocks: Vec<(BlockId, u64)>,
    /// The victim whose unreadable units are given up.
    given_up: Option<BlockId>,
}

impl Aside {
    /// Leaves a block alone for a while.
    pub fn put(&mut self, block: BlockId, erases: u64) {
        self.take(block);
        self.blocks.push((block, erases + ERASES_BETWEEN_TRIES));
    }

    /// A block is erased, or chosen once more.
    pub fn take(&mut self, block: BlockId) {
        self.blocks.retain(|&(aside, _)| aside != block);
        self.given_up = self.given_up.filter(|&b| b != block);
    }

    /// Those that have waited long enough are candidates again.
    pub fn bring_back(&mut self, erases: u64) {
        self.blocks.retain(|&(_, until)| erases < until);
    }

    /// Whether a block is left alone.
    pub fn holds(&self, block: BlockId) -> bool {
        self.blocks.iter().any(|&(aside, _)| aside == block)
    }

    /// Whether nothing is left alone.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether what cannot be read in this block is given up.
    pub fn gives_up(&self, block: BlockId) -> bool {
        self.given_up == Some(block)
    }

    /// Of the blocks of a pool that are left alone and whose collection gains a page the emptiest that is `allowed`:
    /// it is to be emptied all the same.
    pub fn last_resort(
        &mut self,
        blocks: &Blocks,
        pool: PoolId,
        allowed: impl Fn(BlockId) -> bool,
    ) -> Option<BlockId> {
        let gains = |&block: &BlockId| {
            let record = blocks.record(block);
            record.state == BlockPhase::Sealed
                && record.pool() == pool
                && blocks.weight(block) <= blocks.most_valid()
                && allowed(block)
        };
        let aside = self.blocks.iter().map(|&(block, _)| block);
        let block = aside.filter(gains).min_by_key(|&b| blocks.weight(b))?;
        self.take(block);
        self.given_up = Some(block);
        Some(block)
    }
}
