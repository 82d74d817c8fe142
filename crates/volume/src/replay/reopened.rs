//! Units where something else lies than a checkpoint says: those of blocks that were programmed since, behind what it knows
//! of them.

use std::collections::BTreeMap;

use flashlore_flash::{BlockId, Geometry, Ppn};

use crate::scan::ActiveBlock;

/// Those of the blocks that were programmed since a checkpoint.
pub(crate) struct Reopened<'a> {
    pub geometry: &'a Geometry,
    pub active: &'a BTreeMap<BlockId, ActiveBlock>,
}

impl Reopened<'_> {
    /// Whether a unit is one of them.
    pub fn has(&self, ppn: Ppn) -> bool {
        if ppn.0 >= self.geometry.units() {
            return false;
        }
        let page = self.geometry.page_in_block(self.geometry.page_of(ppn));
        let active = self.active.get(&self.geometry.block_of(ppn));
        active.is_some_and(|active| page.0 >= active.known)
    }

    /// All of them.
    pub fn units(&self) -> impl Iterator<Item = Ppn> + '_ {
        self.active.iter().flat_map(|(&block, active)| {
            let first = self.geometry.first_unit(block).0;
            let from = first + active.known * self.geometry.units_per_page();
            (from..first + self.geometry.units_per_block()).map(Ppn)
        })
    }
}
