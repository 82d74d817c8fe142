//! Erasing at once what nobody refers to any more, instead of when its block is chosen: what was deleted is
//! to be gone.
//!
//! Every block that holds a unit or an encoded value without referrer is emptied and erased, an open one after
//! it is closed. Live units move as they are; a packed unit with dead values is packed anew, so that these do
//! not move along. Meanwhile nothing is merged, no wear is levelled and no background collection begins: that
//! would leave other units behind, or move what is stale.

use std::ops::Range;

use flashlore_flash::{BlockId, Flash, Ppn, Stream, Table, Time};

use crate::alloc::CLOSED;
use crate::blocks::BlockPhase;
use crate::core::Core;
use crate::core::collect::Victim;
use crate::core::relocate::Relocate;
use crate::error::FtlError;
use crate::map_cache::MapCache;

/// What it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Blocks that were erased.
    pub blocks: u64,
    /// Units that were programmed for that, packed ones included.
    pub copies: u64,
    /// Blocks that were left as they are, because something in them that is needed cannot be read.
    pub left: u64,
}

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// Erases every block that holds something to which nobody refers.
    ///
    /// # Errors
    /// No room for what must be copied, or a failure of the device: then some blocks are left as they are.
    pub(crate) fn erase_stale<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
    ) -> Result<Erased, FtlError<F::Error>> {
        self.settle(map, at)?;
        let before = (self.counters.erases, self.counters.programs());
        self.erasing_stale = true;
        let done = self.erase_stale_blocks(map, at);
        self.erasing_stale = false;
        Ok(Erased {
            left: done?,
            blocks: self.counters.erases - before.0,
            copies: self.counters.programs() - before.1,
        })
    }

    /// Answers how many blocks had to be left.
    fn erase_stale_blocks<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
    ) -> Result<u64, FtlError<F::Error>> {
        self.flush_all(at)?;
        self.close_stale_blocks(map);
        let mut stale: Vec<BlockId> = (0..self.geometry.blocks()).map(BlockId).collect();
        stale.retain(|&block| self.blocks.record(block).state == BlockPhase::Sealed);
        stale.retain(|&block| self.is_stale(map, self.blocks.units_of(block)));
        // Those that free most come first, so that there is room for the others.
        stale.sort_by_key(|&block| self.blocks.record(block).valid);
        let mut left = 0;
        for block in stale {
            left += u64::from(!self.collect(map, at, Victim::rewritable(block), Stream::Gc)?);
        }
        // A job that had no room has some now, or the device has none.
        self.settle(map, at)?;
        match self.jobs.is_empty() {
            true => Ok(left),
            false => Err(self.full()),
        }
    }

    /// Open blocks that hold something stale take no more units.
    fn close_stale_blocks<M: Relocate<F, K>>(&mut self, map: &M) {
        for plane in 0..self.planes.len() {
            for stream in Stream::ALL {
                let open = self.planes[plane].open[stream as usize];
                if !open.is_open() {
                    continue;
                }
                let first = self.geometry.first_unit(open.block);
                if self.is_stale(map, first..open.next) {
                    self.planes[plane].open[stream as usize] = CLOSED;
                    self.blocks.seal(open.block);
                }
            }
        }
    }

    /// Whether any of these units, which are taken, holds anything without referrer.
    fn is_stale<M: Relocate<F, K>>(&self, map: &M, taken: Range<Ppn>) -> bool {
        let holds_dead =
            |ppn: Ppn| !self.blocks.is_valid(ppn) || map.has_dead(self.owners.get(ppn.index()));
        Ppn::each(taken).any(holds_dead)
    }
}
