//! The core as a recovery found it: block states and valid units instead of an empty device.

use flashlore_flash::{BlockId, Flash, Owner, Ppn, Stream, Table};

use crate::alloc::OpenBlock;
use crate::core::Core;
use crate::core::free_blocks::set_free;
use crate::error::OptionsError;
use crate::options::FtlOptions;

/// Where a restored block is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoredState {
    /// Nothing in it is needed.
    Free,
    /// It takes no more units.
    Sealed,
    /// It goes on taking units of a stream.
    Open {
        /// Whose.
        stream: Stream,
        /// Units that are programmed or given up, whole pages.
        taken: u32,
    },
}

/// One restored block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoredBlock {
    /// Times it was erased.
    pub erases: u32,
    /// Where it is in its life.
    pub state: RestoredState,
}

/// All blocks of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredBlocks {
    /// One entry a block.
    pub blocks: Vec<RestoredBlock>,
    /// Those not free, in the order in which they are to count as sealed.
    pub sealing: Vec<BlockId>,
}

/// The valid units of a device, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredUnits {
    /// A bit for each unit, the lowest first.
    pub valid: Vec<u64>,
    /// Owners of valid units: of all whose owner the table of owners may not know.
    pub owners: Vec<(Ppn, Owner)>,
}

impl RestoredUnits {
    /// Those with an owner, on a device of so many units.
    pub fn of(units: u32, owners: impl Iterator<Item = (Ppn, Owner)>) -> Self {
        let mut found = RestoredUnits {
            valid: vec![0; (units as usize).div_ceil(64)],
            owners: owners.collect(),
        };
        for (ppn, _) in &found.owners {
            found.valid[ppn.index() / 64] |= 1 << (ppn.0 % 64);
        }
        found
    }
}

impl<F: Flash> Core<F>
where
    F::Page: Clone,
{
    /// A device with content.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn restore(
        flash: F,
        options: FtlOptions,
        found: &RestoredBlocks,
        units: RestoredUnits,
    ) -> Result<Self, OptionsError> {
        let mut core = Core::new(flash, options)?;
        for pool in &mut core.pools {
            pool.free = 0;
        }
        let blocks = || (0..).map(BlockId).zip(&found.blocks);
        let free = blocks().filter(|(_, restored)| restored.state == RestoredState::Free);
        let free = free.map(|(block, restored)| (block, restored.erases));
        set_free(&mut core.planes, &core.geometry, free);
        for (block, restored) in blocks() {
            core.blocks.set_erases(block, restored.erases);
            let pool = &mut core.pools[core.blocks.record(block).pool().index()];
            pool.most_erases = pool.most_erases.max(restored.erases);
            if restored.state == RestoredState::Free {
                pool.free += 1;
            } else {
                core.blocks.open(block);
            }
        }
        for (ppn, owner) in units.owners {
            if core.owners.get(ppn.index()) != owner {
                core.owners.set(ppn.index(), owner);
            }
        }
        core.blocks.restore_valid(units.valid);
        for &block in &found.sealing {
            match found.blocks[block.index()].state {
                RestoredState::Open { stream, taken } => core.resume(block, stream, taken),
                _ => core.blocks.seal(block),
            }
        }
        for pool in core.layout.pool_ids() {
            core.note_watermark(pool);
        }
        Ok(core)
    }

    fn resume(&mut self, block: BlockId, stream: Stream, taken: u32) {
        let units = self.blocks.units_of(block);
        let plane = self.geometry.plane_of(block);
        self.planes[plane.index()].open[stream as usize] = OpenBlock {
            block,
            next: units.start + taken,
            end: units.end,
        };
    }
}
