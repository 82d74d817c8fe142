//! Barriers: what was written becomes durable, and blocks that were erased before go back to the medium.
//!
//! Invariants: nothing that a block held goes before the barrier after its erase; a few erased blocks keep their space.

use flashlore_flash::BlockId;

use super::Nand;
use crate::error::NandError;
use crate::format::mark::MARK_BYTES;
use crate::policies::watermarks;

/// Erased blocks whose space is kept for the blocks opened next, beyond those that collection keeps free: a write to
/// space that comes anew from the file system waits for its journal.
const KEPT_BLOCKS: usize = 8;
/// Of those beyond, as many are given back by one barrier.
const MOST_DISCARDS: usize = 8;

/// A barrier of which the first half is done.
#[derive(Debug)]
pub(crate) struct OpenBarrier {
    /// Whole barriers before it.
    barriers: u64,
    /// The last event it makes durable.
    sequence: u64,
    /// Blocks that may be erased after it.
    erased: usize,
}

impl Nand {
    /// The first half of a barrier: everything up to the last event leaves for the medium. Once the medium has
    /// been synced, [`Nand::end_barrier`] takes what this answers.
    pub(crate) fn begin_barrier(&mut self) -> Result<OpenBarrier, NandError> {
        // What its tables hold is not in the journal.
        self.finish_checkpoint()?;
        self.note_waiting();
        if !self.journal.is_empty() || self.window > self.window_noted {
            self.write_journal()?;
        }
        Ok(OpenBarrier {
            barriers: self.barriers,
            sequence: self.sequence,
            erased: self.pending.len(),
        })
    }

    /// Everything before the first half is durable.
    pub(crate) fn end_barrier(&mut self, open: OpenBarrier) -> Result<(), NandError> {
        let news = self.durable < open.sequence;
        self.durable = self.durable.max(open.sequence);
        if news {
            // Says so, in time for the next one: a hole before this point is damage, not a cut.
            self.write_mark()?;
        }
        // A whole barrier in between has erased what was pending then.
        if self.barriers == open.barriers {
            self.barriers += 1;
            self.erase_pending(open.erased)?;
        }
        Ok(())
    }

    /// What was erased before a barrier goes back to the medium, but for a few blocks.
    fn erase_pending(&mut self, count: usize) -> Result<(), NandError> {
        self.kept.extend(self.pending.drain(..count));
        self.discard_kept(MOST_DISCARDS)?;
        Ok(())
    }

    fn most_kept(&self) -> usize {
        watermarks(self.id.blocks).high as usize + KEPT_BLOCKS
    }

    /// Whether more blocks keep their space than should.
    pub(crate) fn keeps_too_many(&self) -> bool {
        self.kept.len() > self.most_kept()
    }

    /// Discards up to so many of the blocks that are kept beyond a few; whether there are more.
    pub(crate) fn discard_kept(&mut self, most: usize) -> Result<bool, NandError> {
        let beyond = self.kept.len().saturating_sub(self.most_kept());
        // The oldest ones are opened next.
        for _ in 0..most.min(beyond) {
            if let Some(&block) = self.kept.last() {
                self.discard(block)?;
            }
        }
        Ok(self.keeps_too_many())
    }

    /// What a free block held before goes back to the medium; after a barrier.
    pub(crate) fn discard(&mut self, block: BlockId) -> Result<(), NandError> {
        let bytes = self.areas.page_stride * u64::from(self.geometry.pages_per_block());
        let at = self.areas.page(self.geometry.first_page(block));
        self.kept.retain(|&b| b != block);
        self.discard_range(at, bytes)
    }

    /// The journal segment that is not in use goes back to the medium.
    pub(crate) fn discard_old_journal(&mut self) -> Result<(), NandError> {
        let at = self.areas.journal(self.journal.segment() + 1);
        self.discard_range(at, self.id.journal_bytes - MARK_BYTES)
    }

    fn discard_range(&mut self, at: u64, bytes: u64) -> Result<(), NandError> {
        self.writable()?;
        let discarded = self.medium.discard(at, bytes);
        discarded.map_err(|error| self.failed_with(error))
    }
}
