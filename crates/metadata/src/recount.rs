//! Every pointer of a store counted anew, from its last durable root: a slot must have the count that it notes.
//!
//! Takes two bytes a slot. A page that several share is looked at once.

use flashlore_content::VolumeKey;
use flashlore_medium::Medium;

use crate::address::{Node, Pointer, TableId};
use crate::area::Area;
use crate::error::MetadataError;
use crate::fetch::Fetch;
use crate::page::pointers;
use crate::root::RootTable;
use crate::store::Store;

/// Counts of pointers, by slot.
struct Counted<'a> {
    medium: &'a dyn Medium,
    area: Area,
    key: VolumeKey,
    counts: Vec<u16>,
}

impl Counted<'_> {
    fn visit(&mut self, node: Node, kind: u8, pointer: Pointer) -> Result<(), MetadataError> {
        let fetch = Fetch {
            node,
            kind,
            pointer,
        };
        if pointer.slot.0 < self.area.slots {
            let count = &mut self.counts[pointer.slot.index()];
            *count = count.saturating_add(1);
            if *count > 1 {
                return Ok(());
            }
        }
        let page = fetch.carry_out(self.medium, &self.area, &self.key)?;
        if node.level == 0 {
            return Ok(());
        }
        for (at, child) in pointers(&page.bytes) {
            let node = Node {
                level: node.level - 1,
                index: node.index * crate::page::FANOUT + at as u32,
                ..node
            };
            self.visit(node, kind, child)?;
        }
        Ok(())
    }
}

impl Store {
    /// Counts all pointers anew. Nothing may have changed since the last commit ended.
    ///
    /// # Errors
    /// A page that cannot be read, or a sentence that names a slot whose count is wrong.
    ///
    /// # Panics
    /// If something has changed.
    pub fn recount(&self) -> Result<(), MetadataError> {
        assert!(
            self.cache.dirty().is_empty() && !self.committing,
            "commit first"
        );
        let mut counted = Counted {
            medium: &self.medium,
            area: self.area,
            key: self.key,
            counts: vec![0; self.area.slots as usize],
        };
        for (table, &RootTable { kind, shape, top }) in (0..).map(TableId).zip(&self.tables) {
            if top.is_some() {
                let node = Node {
                    table,
                    level: shape.top(),
                    index: 0,
                };
                counted.visit(node, kind, top)?;
            }
        }
        for (slot, &found) in (0..).map(crate::Slot).zip(&counted.counts) {
            let noted = self.space.count(slot);
            if noted != found {
                return Err(MetadataError::Root(format!(
                    "slot {slot} of the tables notes {noted} pointers to it, counted are {found}"
                )));
            }
        }
        Ok(())
    }
}
