//! Blocks go home: present content is written to its native place on the slow medium, in batches, in the order of
//! addresses.
//!
//! A native place is overwritten only while the durable content of its block is elsewhere, and the block is said to
//! be at home only after what was written there is durable. Without ordered write-back a block that holds nothing
//! never goes home: as zeros there it would be no hole any more.

use std::collections::{BTreeMap, BTreeSet};

use flashlore_delta::Page;

use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::commit::Extra;
use crate::icash::content::crc_of;
use crate::icash::kept::Kept;
use crate::icash::parameters::{BLOCK_BYTES, LONGEST_RUN};
use crate::icash::place::BlockPlace;
use crate::icash::state::ICash;
use crate::index::ArrayBlock;

/// Contents of consecutive blocks.
#[derive(Default)]
struct BlockRun {
    first: ArrayBlock,
    bytes: Vec<u8>,
    crcs: Vec<u32>,
}

impl ICash {
    /// Writes blocks home and makes that durable: these, or with ordered write-back all that are not there. A block
    /// that cannot be read or written stays where it is and is marked as stuck.
    pub(super) fn write_back(&mut self, blocks: &BTreeSet<ArrayBlock>) -> Result<(), ArrayError> {
        match self.shape.journal_blocks {
            0 => self.write_back_some(blocks),
            _ => self.write_back_all(),
        }
    }

    fn write_back_some(&mut self, blocks: &BTreeSet<ArrayBlock>) -> Result<(), ArrayError> {
        let is_at_home = |block: &ArrayBlock| self.table.get(*block).place == BlockPlace::Home;
        if blocks
            .iter()
            .any(|b| self.unrecorded.contains(b) && is_at_home(b))
        {
            self.commit()?;
        }
        let mut homes = BTreeMap::new();
        let mut run = BlockRun::default();
        for &block in blocks {
            // What was given up is among these blocks as long as a delta of it is durable, which the group above
            // may have ended: `trimmed` alone does not tell.
            if self.table.get(block).place == BlockPlace::Home
                || self.kept_of(block) == Kept::Nothing
            {
                continue;
            }
            let Ok(page) = self.present(block) else {
                self.stick(block);
                continue;
            };
            self.add_to_run(&mut run, block, &page, &mut homes);
        }
        self.write_run(run, &mut homes);
        self.sync(Device::Slow)?;
        self.counters.written_home += homes.len() as u64;
        self.commit_with(Extra::homes(homes))
    }

    /// Gives blocks new content at home, at once. They hold nothing durable and have no virtual blocks.
    ///
    /// # Errors
    /// A medium failed: no block changed.
    pub(super) fn write_new_home(
        &mut self,
        pages: &BTreeMap<ArrayBlock, Page>,
    ) -> Result<(), ArrayError> {
        debug_assert!(
            pages
                .keys()
                .all(|&block| self.table.get(block).place == BlockPlace::Zero)
        );
        let mut homes = BTreeMap::new();
        let mut run = BlockRun::default();
        for (&block, page) in pages {
            self.add_to_run(&mut run, block, page, &mut homes);
        }
        self.write_run(run, &mut homes);
        self.sync(Device::Slow)?;
        if homes.len() < pages.len() {
            return Err(ArrayError::NoRoom(
                "native places of an image cannot be written",
            ));
        }
        self.counters.written_home += homes.len() as u64;
        self.commit_with(Extra::homes(homes))
    }

    /// Adds a block's content to a run, which is written before if it cannot be appended.
    fn add_to_run(
        &mut self,
        run: &mut BlockRun,
        block: ArrayBlock,
        page: &Page,
        homes: &mut BTreeMap<ArrayBlock, u32>,
    ) {
        let follows = block == run.first + run.crcs.len() as u32;
        if !follows || run.crcs.len() >= LONGEST_RUN {
            self.write_run(std::mem::take(run), homes);
            run.first = block;
        }
        run.bytes.extend_from_slice(page);
        run.crcs.push(crc_of(page));
    }

    /// Writes a run; if that fails, block by block.
    fn write_run(&mut self, run: BlockRun, homes: &mut BTreeMap<ArrayBlock, u32>) {
        let as_one = run.crcs.len() < 2 || self.write_home(run.first, &run.bytes);
        let pages = run.bytes.chunks(BLOCK_BYTES).zip(&run.crcs);
        for (position, (page, &crc)) in (0..).zip(pages) {
            let block = run.first + position;
            if as_one && run.crcs.len() > 1 || self.write_home(block, page) {
                homes.insert(block, crc);
            } else {
                self.stick(block);
            }
        }
    }

    pub(super) fn write_home(&mut self, block: ArrayBlock, bytes: &[u8]) -> bool {
        let offset = self.areas.home_of(block);
        self.media.write(Device::Slow, offset, bytes).is_ok()
    }

    /// Marks what cannot be replaced because a block cannot be read or written: its virtual block, or the reference
    /// that its durable delta needs.
    pub(super) fn stick(&mut self, block: ArrayBlock) {
        self.counters.background_failures += 1;
        if let Some(id) = self.blocks.find(block) {
            self.blocks.get_mut(id).is_stuck = true;
        }
        let base = self.table.get(block).place.data();
        if let Some(Some(holder)) = base.map(|base| self.pool.users(base).holder) {
            self.blocks.get_mut(holder).is_stuck = true;
        }
    }
}
