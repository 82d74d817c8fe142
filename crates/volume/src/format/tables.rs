//! Checkpoint tables: rows of fixed size, in a store of tables (`flashlore_metadata`) whose commits are the checkpoints.
//!
//! | kind | table | row |
//! |---:|---|---|
//! | 0 | map | plain: unit; otherwise object, both 4 bytes, all ones for none |
//! | 1 | objects | 32 bytes, 40 where digests are trusted: [`super::rows`]; a free one is zero but for its first four bytes, the link of [`flashlore_metadata::FreeByPage`] |
//! | 2 | packs | packed pages: unit, of a free number the next free one (4); which of those ever filled it is (4); bytes of all slots, and of those that name an object (2 each); slots with deltas that pages need (2); 1 if it stands in line to be merged (2). Up to version 7: unit (4), bytes of all slots (2), slots (2) |
//! | 3 | blocks | state (1: 0 free, 1 sealed, 2 open), stream (1), zero (2), erases (4), generation (8), pages taken (4), zero (4) |
//! | 4 | versions | entries of the history in its window, in a ring: stamp (8), LPN (4), object (4): until then the page referred to that, or to none (all ones); number of the entry of the page before it (4). Of a gap the LPN is all ones, too. Up to version 8: LPN, object, stamp |
//! | 5 | pins | instant (8), 1 if it is a snapshot + 2 if a schedule keeps it (4), zero (4); up to version 8 rows of it among those kept |
//! | 6 | kept | entries that pinned instants keep behind the window, as versions. Up to version 8: LPN (4), object (4): of each pinned instant in turn, in order of the pages |
//! | 7 | notes | as in [`super::notes`] |
//! | 8 | owners | of each unit that is needed whose it is ([`Owner`], 4); of any other nothing in particular |
//! | 9 | free handles | of each page of the objects the first that is free, counted in the page (1) |
//! | 10 | spilled | what has no room in the counts of objects: [`flashlore_ftl::mapping::objects::SpilledPart`], 12 bytes |
//! | 11 | valid units | a bit for each unit, the lowest first: a word of 8 bytes for 64 of them |
//! | 12 | heads | of each page the number of its newest entry among the versions, or that of anything else (4) |
//! | 13 | kept heads | the same among those kept |
//!
//! Up to version 8 there were no heads.
//!
//! Version 6 had neither spilled counts nor valid units. Version 5 had no owners and no free handles either, and objects
//! without counts.
//!
//! An object that was purged is all ones but for the last bit, in versions and kept.

use std::fmt;
use std::ops::Range;

use flashlore_content::history::{VersionEntry, most_places};
use flashlore_flash::{Owner, Row, TableName};
use flashlore_ftl::mapping::objects::most_spilled;
use flashlore_metadata::{Empty, Shape, TableId};

use super::address::{PageInTable, RowId};
use super::notes::{NOTE_BYTES, rows_beside_snapshots};
use super::superblock::{
    FIRST_WITH_LIVE_HISTORY, FIRST_WITH_LIVE_PACKS, FIRST_WITH_LIVE_ROWS, FIRST_WITH_TALLIES,
    Identity,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Logical page to unit or object.
    Map,
    Objects,
    /// Packed pages.
    Packs,
    Blocks,
    /// Entries of the history in its window.
    Versions,
    /// Pinned instants.
    Pins,
    /// What they keep behind the window.
    Kept,
    /// Names, marks, purges, clocks.
    Notes,
    /// Whose units are.
    Owners,
    /// Which rows of the objects nobody uses.
    FreeHandles,
    /// What has no room in the counts of objects.
    Spilled,
    /// Which units hold anything that is needed.
    Valid,
    /// By logical page the newest of its versions.
    Heads,
    /// The same of what is kept behind the window.
    KeptHeads,
}

/// Tables of version 5, of version 6, and of versions 7 and 8.
const TABLES_OF_5: usize = 8;
const TABLES_OF_6: usize = 10;
const TABLES_OF_7: usize = 12;
/// Units in a row of the table of valid ones.
pub const UNITS_PER_WORD: u32 = 64;
/// Rows of objects that nobody needs, one in so many: what is looked for near a page is found then.
const SPARE_ROWS: u64 = 16;

/// The most instants that can be pinned.
pub const MOST_PINS: u32 = 1016;

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Table::Map => "the map",
            Table::Objects => "the objects",
            Table::Packs => "the packed pages",
            Table::Blocks => "the blocks",
            Table::Versions => "the versions",
            Table::Pins => "the pins",
            Table::Kept => "the kept versions",
            Table::Notes => "the notes",
            Table::Owners => "the owners",
            Table::FreeHandles => "the free handles",
            Table::Spilled => "the spilled counts",
            Table::Valid => "the valid units",
            Table::Heads => "the heads",
            Table::KeptHeads => "the kept heads",
        })
    }
}

impl Table {
    /// All tables, in the order of their numbers.
    const ALL: [Table; 14] = [
        Table::Map,
        Table::Objects,
        Table::Packs,
        Table::Blocks,
        Table::Versions,
        Table::Pins,
        Table::Kept,
        Table::Notes,
        Table::Owners,
        Table::FreeHandles,
        Table::Spilled,
        Table::Valid,
        Table::Heads,
        Table::KeptHeads,
    ];

    /// Those of a volume, in the order of their numbers.
    pub fn all(id: &Identity) -> &'static [Table] {
        match id.version {
            FIRST_WITH_LIVE_HISTORY.. => &Table::ALL,
            FIRST_WITH_TALLIES.. => &Table::ALL[..TABLES_OF_7],
            FIRST_WITH_LIVE_ROWS => &Table::ALL[..TABLES_OF_6],
            _ => &Table::ALL[..TABLES_OF_5],
        }
    }

    /// The table that the translation layer calls so.
    pub fn named(name: TableName) -> Table {
        match name {
            TableName::Map => Table::Map,
            TableName::Objects => Table::Objects,
            TableName::FreeHandles => Table::FreeHandles,
            TableName::Owners => Table::Owners,
            TableName::Spilled => Table::Spilled,
            TableName::Packs => Table::Packs,
            TableName::Versions => Table::Versions,
            TableName::Heads => Table::Heads,
            TableName::Kept => Table::Kept,
            TableName::KeptHeads => Table::KeptHeads,
        }
    }

    /// Whether the translation layer reads and changes it a row at a time: a page of it that cannot be read concerns who
    /// needs its rows.
    pub fn is_live(self) -> bool {
        matches!(
            self,
            Table::Map
                | Table::Objects
                | Table::Packs
                | Table::Owners
                | Table::FreeHandles
                | Table::Versions
                | Table::Kept
                | Table::Heads
                | Table::KeptHeads
        )
    }

    /// Whether what it holds follows from the others.
    pub fn is_found_anew(self) -> bool {
        matches!(
            self,
            Table::Owners
                | Table::FreeHandles
                | Table::Spilled
                | Table::Valid
                | Table::Heads
                | Table::KeptHeads
        )
    }

    /// Whether it has a row for each logical page.
    pub fn is_by_page(self) -> bool {
        matches!(self, Table::Map | Table::Heads | Table::KeptHeads)
    }

    /// Its number in the store, and the kind of its pages.
    pub fn id(self) -> TableId {
        TableId(self as u32)
    }

    pub fn row_bytes(self, id: &Identity) -> u16 {
        match self {
            Table::Map | Table::Owners | Table::Heads | Table::KeptHeads => 4,
            Table::FreeHandles => 1,
            Table::Objects if id.trusts_digests() => 40,
            Table::Objects => 32,
            Table::Packs if id.version < FIRST_WITH_LIVE_PACKS => 8,
            Table::Packs => 16,
            Table::Valid => 8,
            Table::Spilled => 12,
            Table::Versions | Table::Kept if id.version >= FIRST_WITH_LIVE_HISTORY => {
                VersionEntry::BYTES as u16
            }
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
            Table::Objects => {
                let objects = Table::most_objects(id, units);
                let spare = match id.version < FIRST_WITH_LIVE_ROWS {
                    true => 0,
                    false => objects / SPARE_ROWS,
                };
                // The last one is nobody's.
                let nobodys = u64::from(id.version >= FIRST_WITH_LIVE_ROWS);
                (objects + spare + nobodys).min(u64::from(Owner::VALUES)) as u32
            }
            Table::Packs if id.encoding.is_on() => units as u32,
            Table::Packs => 0,
            Table::Blocks => id.blocks,
            Table::Owners => units as u32,
            Table::FreeHandles => Table::Objects.pages(id),
            Table::Spilled if !id.has_objects() => 0,
            Table::Spilled => {
                let entries = entries.unwrap_or(0);
                // Of the window, and of pinned instants.
                let kept = entries.saturating_mul(2);
                let pins = match id.encoding.is_on() {
                    true => kept.saturating_add(id.exported),
                    false => 0,
                };
                most_spilled([id.exported, kept, pins])
            }
            Table::Valid => units.div_ceil(UNITS_PER_WORD.into()) as u32,
            Table::Versions | Table::Kept if id.version >= FIRST_WITH_LIVE_HISTORY => {
                entries.map_or(0, most_places)
            }
            Table::Versions | Table::Kept => entries.unwrap_or(0),
            Table::Heads | Table::KeptHeads => entries.map_or(0, |_| id.exported),
            Table::Pins => entries.map_or(0, |_| MOST_PINS),
            Table::Notes => entries.map_or(0, |entries| MOST_PINS + rows_beside_snapshots(entries)),
        }
    }

    /// Handles of objects that can be given out.
    pub fn handles(id: &Identity) -> u32 {
        let nobodys = u32::from(id.version >= FIRST_WITH_LIVE_ROWS);
        Table::Objects.rows(id).saturating_sub(nobodys)
    }

    /// Objects there may be at a time, on a device of so many units.
    fn most_objects(id: &Identity, units: u64) -> u64 {
        if id.encoding.is_on() {
            // Whatever a page refers to, now or before, and the base of each.
            let entries = id.history.map_or(0, |history| history.entries);
            return 2 * (u64::from(id.exported) + u64::from(entries)) + 2;
        }
        match id.history.is_some() {
            true => units,
            false => units.min(u64::from(id.exported) + 1),
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
        let shapes = Table::all(id)
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
