//! Where everything lies, in blocks of 4096 bytes from the begin of its medium.

use crate::icash::format::journal::heads_of;
use crate::icash::format::superblock::Shape;
use crate::icash::format::{root, table};
use crate::icash::parameters::BLOCK_BYTES;
use crate::index::{ArrayBlock, FrozenPlace, JournalPlace, LogBlock, Slot, TablePage};

/// Copies of the superblock at the begin of each medium.
pub const SUPERBLOCKS: u64 = 2;

/// The areas of the slow medium; on the fast one the data blocks follow the superblocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Areas {
    /// The two roots, each twice.
    pub roots: u64,
    /// Blocks of one copy of a root.
    pub root_blocks: u64,
    /// The table: two copies of each page, side by side. Those of frozen places follow those of blocks.
    pub table: u64,
    pub table_pages: u64,
    /// The journal of ordered write-back: heads, then images.
    pub journal: u64,
    /// Blocks of the journal's heads.
    pub journal_heads: u64,
    pub log: u64,
    /// The frozen places.
    pub frozen: u64,
    /// The blocks' native places.
    pub home: u64,
    /// Blocks the slow medium has at least.
    pub slow_blocks: u64,
    /// Blocks the fast medium has at least.
    pub fast_blocks: u64,
}

impl Areas {
    /// Those of an array of this shape.
    pub fn of(shape: &Shape) -> Self {
        let table_pages =
            table::pages_of(shape.blocks()) + table::pages_of(shape.frozen_blocks.into());
        let root_blocks = root::bytes_of(table_pages).div_ceil(BLOCK_BYTES as u64);
        let roots = SUPERBLOCKS;
        let table = roots + 4 * root_blocks;
        let journal_heads = heads_of(shape.journal_blocks);
        let journal = table + 2 * table_pages;
        let log = journal + journal_heads + u64::from(shape.journal_blocks);
        let frozen = log + u64::from(shape.log_segments) * u64::from(shape.segment_blocks);
        let home = frozen + u64::from(shape.frozen_blocks);
        Areas {
            roots,
            root_blocks,
            table,
            table_pages,
            journal,
            journal_heads,
            log,
            frozen,
            home,
            slow_blocks: home + shape.blocks(),
            fast_blocks: SUPERBLOCKS + u64::from(shape.slots),
        }
    }

    /// Byte at which a slot begins on the fast medium.
    pub fn slot(slot: Slot) -> u64 {
        (SUPERBLOCKS + u64::from(slot)) * BLOCK_BYTES as u64
    }

    /// Byte at which a frozen place begins on the slow medium.
    pub fn frozen_place(&self, place: FrozenPlace) -> u64 {
        (self.frozen + u64::from(place)) * BLOCK_BYTES as u64
    }

    /// Byte at which a block's native place begins on the slow medium.
    pub fn home_of(&self, block: ArrayBlock) -> u64 {
        (self.home + u64::from(block)) * BLOCK_BYTES as u64
    }

    /// Byte at which a block of the log begins.
    pub fn log_block(&self, block: LogBlock) -> u64 {
        (self.log + u64::from(block)) * BLOCK_BYTES as u64
    }

    /// Byte at which an image of the journal begins.
    pub fn image(&self, place: JournalPlace) -> u64 {
        (self.journal + self.journal_heads + u64::from(place)) * BLOCK_BYTES as u64
    }

    /// Byte at which a copy of a page of the table begins.
    pub fn table_page(&self, page: TablePage, copy: u8) -> u64 {
        (self.table + 2 * u64::from(page) + u64::from(copy)) * BLOCK_BYTES as u64
    }

    /// Byte at which a copy (0 or 1) of the root of a checkpoint begins. The copies follow each other.
    pub fn root(&self, checkpoint: u64, copy: u64) -> u64 {
        (self.roots + (checkpoint % 2 * 2 + copy) * self.root_blocks) * BLOCK_BYTES as u64
    }
}
