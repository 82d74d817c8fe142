//! Free blocks, open blocks and page buffers of every plane.
//!
//! Each plane has at most one open block for each stream. A page that holds several mapping units is
//! gathered in a buffer and programmed when it is full or padded; until then its units are served
//! from the buffer.
//!
//! Invariants: a block on a free list is in state Free; `next` of an open block is the unit that
//! the next append takes; the buffer of an open block holds the units from the start of its page to
//! `next`.

use std::collections::BTreeSet;

use flashlore_flash::{BlockId, Ppn, Ready, Route, Stream, Tag, Unit};

/// The free blocks of a plane.
#[derive(Debug, Clone, Default)]
pub struct FreeList {
    /// (erases if these count, order of becoming free, block)
    blocks: BTreeSet<(u32, u32, BlockId)>,
    by_wear: bool,
    freed: u32,
}

impl FreeList {
    /// An empty list; `by_wear` takes the least worn block first, otherwise the one free for the
    /// longest.
    pub fn new(by_wear: bool) -> Self {
        FreeList {
            by_wear,
            ..FreeList::default()
        }
    }

    /// Adds an erased block.
    pub fn push(&mut self, block: BlockId, erases: u32) {
        self.blocks.insert((self.wear(erases), self.freed, block));
        self.freed = self.freed.wrapping_add(1);
    }

    /// Has these erased blocks instead, with the erases of each, in the order in which they became free. Of a large device
    /// there are hundreds of thousands.
    pub fn set(&mut self, blocks: Vec<(BlockId, u32)>) {
        self.freed = blocks.len() as u32;
        let entries = (0..).zip(blocks);
        let entries = entries.map(|(freed, (block, erases))| (self.wear(erases), freed, block));
        self.blocks = entries.collect();
    }

    /// What counts of its erases.
    fn wear(&self, erases: u32) -> u32 {
        if self.by_wear { erases } else { 0 }
    }

    /// Takes the next block.
    pub fn pop(&mut self) -> Option<BlockId> {
        self.blocks.pop_first().map(|(_, _, block)| block)
    }

    /// Takes the block that scores highest.
    pub fn pop_highest(&mut self, score: impl Fn(BlockId) -> u32) -> Option<BlockId> {
        let &key = self
            .blocks
            .iter()
            .max_by_key(|&&(_, _, block)| score(block))?;
        self.blocks.remove(&key);
        Some(key.2)
    }

    /// Free blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether none is free.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The blocks, in the order they will be taken.
    pub fn iter(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.blocks.iter().map(|&(_, _, block)| block)
    }
}

/// A block being filled.
#[derive(Debug, Clone, Copy)]
pub struct OpenBlock {
    /// The block, or [`BlockId::NONE`].
    pub block: BlockId,
    /// The unit the next append takes.
    pub next: Ppn,
    /// One past its last data unit.
    pub end: Ppn,
}

/// No block is open.
pub const CLOSED: OpenBlock = OpenBlock {
    block: BlockId::NONE,
    next: Ppn(0),
    end: Ppn(0),
};

impl OpenBlock {
    /// Whether there is one.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.block.is_some()
    }

    /// Units that it takes before it is full; none where no block is open.
    #[inline(always)]
    pub fn room(&self) -> u32 {
        self.end.0 - self.next.0
    }
}

/// The units of a page that is not programmed yet.
#[derive(Debug, Clone)]
pub struct PageBuffer<P> {
    /// Units so far, in slot order.
    pub units: Vec<Unit<P>>,
    /// Who waits for the program.
    pub tags: Vec<Tag>,
    /// When everything in it is at hand.
    pub ready: Ready,
    /// Over the channel unless every unit stays on the chip.
    pub route: Route,
}

impl<P> Default for PageBuffer<P> {
    fn default() -> Self {
        PageBuffer {
            units: Vec::new(),
            tags: Vec::new(),
            ready: Ready::At(0),
            route: Route::OnChip,
        }
    }
}

/// One plane.
#[derive(Debug, Clone)]
pub struct Plane<P> {
    /// Its erased blocks.
    pub free: FreeList,
    /// Its open blocks, by stream.
    pub open: [OpenBlock; Stream::COUNT],
    /// The buffers of the open blocks, used where a page holds several units.
    pub buffers: [PageBuffer<P>; Stream::COUNT],
}

impl<P> Plane<P> {
    /// A plane without blocks.
    pub fn new(by_wear: bool) -> Self {
        Plane {
            free: FreeList::new(by_wear),
            open: [CLOSED; Stream::COUNT],
            buffers: Default::default(),
        }
    }

    /// The unit that the buffer of an open block holds for `ppn`, if it does.
    pub fn buffered(&self, block: BlockId, ppn: Ppn, units_per_page: u32) -> Option<&Unit<P>> {
        let stream = self.open.iter().position(|o| o.block == block)?;
        let slot = ppn.0 % units_per_page;
        let page = ppn.0 - slot;
        let filling = self.open[stream].next.0 / units_per_page * units_per_page;
        let unit = self.buffers[stream].units.get(slot as usize);
        unit.filter(|_| page == filling)
    }
}
