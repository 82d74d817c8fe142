//! Checkpoint tables: rows of fixed size, in a store of tables (`flashlore_metadata`) whose commits are the checkpoints.
//!
//! | kind | table | row |
//! |---:|---|---|
//! | 0 | map | plain: unit; otherwise object, both 4 bytes, all ones for none |
//! | 1 | objects | 32 bytes, 40 where digests are trusted: [`super::rows`] |
//! | 2 | packs | packed pages: unit (4), bytes of all slots (2), slots (2) |
//! | 3 | blocks | state (1: 0 free, 1 sealed, 2 open), stream (1), zero (2), erases (4), generation (8), pages taken (4), zero (4) |
//! | 4 | versions | LPN (4), object (4), stamp (8): until then the page referred to that, or to none (all ones) |
//! | 5 | pins | instant (8), 1 if it is a snapshot + 2 if a schedule keeps it (4), rows of it among those kept (4) |
//! | 6 | kept | LPN (4), object (4): of each pinned instant in turn, in order of the pages |
//! | 7 | notes | as in [`super::notes`] |
//!
//! An object that was purged is all ones but for the last bit, in versions and kept.

use std::ops::Range;

use flashlore_flash::Owner;
use flashlore_metadata::{Empty, Shape, TableId};

use super::address::{PageInTable, RowId};
use super::notes::{NOTE_BYTES, rows_beside_snapshots};
use super::superblock::Identity;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Logical page to unit or object.
    Map,
    Objects,
    /// Packed pages.
    Packs,
    Blocks,
    /// Entries of the history, in a ring.
    Versions,
    /// Pinned instants.
    Pins,
    /// What they keep behind the window.
    Kept,
    /// Names, marks, purges, clocks.
    Notes,
}

/// The most instants that can be pinned.
pub const MOST_PINS: u32 = 1016;

impl Table {
    /// All tables, in the order of their numbers.
    pub const ALL: [Table; 8] = [
        Table::Map,
        Table::Objects,
        Table::Packs,
        Table::Blocks,
        Table::Versions,
        Table::Pins,
        Table::Kept,
        Table::Notes,
    ];

    /// Its number in the store, and the kind of its pages.
    pub fn id(self) -> TableId {
        TableId(self as u32)
    }

    pub fn row_bytes(self, id: &Identity) -> u16 {
        match self {
            Table::Map => 4,
            Table::Objects if id.trusts_digests() => 40,
            Table::Objects => 32,
            Table::Packs => 8,
            Table::Versions | Table::Pins => 16,
            Table::Blocks => 24,
            Table::Kept => 8,
            Table::Notes => NOTE_BYTES as u16,
        }
    }

    /// Rows of the table.
    pub fn rows(self, id: &Identity) -> u32 {
        let units =
            u64::from(id.blocks) * u64::from(id.pages_per_block) * u64::from(id.units_per_page);
        let entries = id.history.map(|history| history.entries);
        match self {
            Table::Map => id.exported,
            Table::Objects if !id.has_objects() => 0,
            Table::Objects if id.encoding.is_on() => {
                // Whatever a page refers to, now or before, and the base of each.
                let named = u64::from(id.exported) + u64::from(entries.unwrap_or(0));
                (2 * named + 2).min(u64::from(Owner::VALUES)) as u32
            }
            Table::Objects if id.history.is_some() => units as u32,
            Table::Objects => units.min(u64::from(id.exported) + 1) as u32,
            Table::Packs if id.encoding.is_on() => units as u32,
            Table::Packs => 0,
            Table::Blocks => id.blocks,
            Table::Versions | Table::Kept => entries.unwrap_or(0),
            Table::Pins => entries.map_or(0, |_| MOST_PINS),
            Table::Notes => entries.map_or(0, |entries| MOST_PINS + rows_beside_snapshots(entries)),
        }
    }

    /// What the store has to know of it.
    pub fn shape(self, id: &Identity) -> Shape {
        Shape {
            rows: self.rows(id),
            row_bytes: self.row_bytes(id),
            empty: match self {
                Table::Map => Empty::Ones,
                _ => Empty::Zeros,
            },
        }
    }

    /// All tables of a volume, as its store has them.
    pub fn shapes(id: &Identity) -> Vec<(u8, Shape)> {
        let shapes = Table::ALL
            .iter()
            .map(|table| (*table as u8, table.shape(id)));
        shapes.collect()
    }

    /// Pages of its rows.
    pub fn pages(self, id: &Identity) -> u32 {
        self.shape(id).leaves()
    }

    /// Those pages, in order.
    pub fn each_page(self, id: &Identity) -> impl Iterator<Item = PageInTable> + use<> {
        (0..self.pages(id)).map(PageInTable)
    }

    /// The rows of one of them.
    pub fn rows_of(self, id: &Identity, page: PageInTable) -> Range<RowId> {
        let per_page = self.shape(id).rows_per_page();
        let first = page.0 * per_page;
        RowId(first)..RowId((first + per_page).min(self.rows(id)))
    }
}
