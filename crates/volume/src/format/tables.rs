//! Checkpoint tables: rows of fixed size in pages of 4096 bytes, which lie in slots anywhere in the
//! table area. A directory page lists the slots of 1016 table pages, the root those of the directories.
//!
//! | table | row |
//! |---|---|
//! | map | plain: unit; otherwise object, both 4 bytes, all ones for none |
//! | objects | unit (4), digest tag (4), write sequence number (8); trusted digests: unit (4), zero (4), write sequence number (8), digest (16), zero if it cannot be read. Where values are encoded, behind that: base (4), length as the translation layer counts it (2), slot (2); with a length that is not 0 the object is packed, and the unit is its packed page |
//! | packs | packed pages: unit (4), bytes of all slots (2), slots (2) |
//! | blocks | state (1: 0 free, 1 sealed, 2 open), stream (1), zero (2), erases (4), generation (8), pages taken (4), zero (4) |
//! | versions | LPN (4), object (4), stamp (8): until then the page referred to that, or to none (all ones) |
//! | pins | instant (8), whether it is a snapshot (4), rows of it among those kept (4) |
//! | kept | LPN (4), object (4): of each pinned instant in turn, in order of the pages |
//! | notes | as in [`super::notes`] |
//!
//! | offset | bytes | field of a page |
//! |---:|---:|---|
//! | 0 | 4 | magic `FLTP` |
//! | 4 | 4 | which page: table pages are numbered through, map first; directories follow |
//! | 8 | 8 | the checkpoint that wrote it |
//! | 16 | 8 | zero |
//! | 24 | 8 | keyed checksum of the slot's number and the page without these 8 bytes |
//! | 32 | 4064 | rows; in a directory slot numbers of 4 bytes, all ones for a page never written |
//!
//! An object that was purged is all ones but for the last bit, in versions and kept.

use std::collections::BTreeSet;
use std::ops::Range;

use flashlore_content::VolumeKey;
use flashlore_flash::Owner;

use super::address::{PageInTable, RowId, TablePage, TableSlot};
use super::cursor::{Reader, Writer};
use super::notes::{NOTE_BYTES, rows_beside_snapshots};
use super::root::HistoryRoot;
use super::superblock::Identity;

pub const TABLE_PAGE_BYTES: usize = 4096;
/// Bytes of rows in it.
pub const PAYLOAD: usize = TABLE_PAGE_BYTES - HEADER;
/// Slots a directory page lists.
pub const SLOTS_PER_DIRECTORY: u32 = (PAYLOAD / 4) as u32;

/// The first format version with notes.
const FIRST_WITH_NOTES: u32 = 4;
const HEADER: usize = 32;
const MAGIC: [u8; 4] = *b"FLTP";

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
    /// Names, marks, purges, clocks. From format version 4 on.
    Notes,
}

/// The most instants that can be pinned.
pub const MOST_PINS: u32 = 1016;

impl Table {
    /// All tables, in the order in which their pages are numbered.
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

    pub fn row_bytes(self, id: &Identity) -> usize {
        match self {
            Table::Map => 4,
            Table::Objects => {
                let digest = if id.trusts_digests() { 32 } else { 16 };
                digest + if id.encoding.is_on() { 8 } else { 0 }
            }
            Table::Packs => 8,
            Table::Versions | Table::Pins => 16,
            Table::Blocks => 24,
            Table::Kept => 8,
            Table::Notes => NOTE_BYTES,
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
            Table::Notes if id.version < FIRST_WITH_NOTES => 0,
            Table::Notes => entries.map_or(0, |entries| MOST_PINS + rows_beside_snapshots(entries)),
        }
    }

    pub fn rows_per_page(self, id: &Identity) -> u32 {
        (PAYLOAD / self.row_bytes(id)) as u32
    }

    /// Pages of the table.
    pub fn pages(self, id: &Identity) -> u32 {
        self.rows(id).div_ceil(self.rows_per_page(id))
    }

    /// The table's first page.
    pub fn first_page(self, id: &Identity) -> TablePage {
        let before = Table::ALL.iter().take_while(|&&t| t != self);
        TablePage(before.map(|t| t.pages(id)).sum())
    }

    /// A page of the table.
    pub fn page(self, id: &Identity, page: PageInTable) -> TablePage {
        TablePage(self.first_page(id).0 + page.0)
    }

    /// Its pages, in order.
    pub fn each_page(self, id: &Identity) -> impl Iterator<Item = PageInTable> + use<> {
        (0..self.pages(id)).map(PageInTable)
    }

    /// The rows of a page of it.
    pub fn rows_of(self, id: &Identity, page: PageInTable) -> Range<RowId> {
        let per_page = self.rows_per_page(id);
        let first = page.0 * per_page;
        RowId(first)..RowId((first + per_page).min(self.rows(id)))
    }
}

/// A page in its slot; `payload` fills the rows.
pub fn encode_page(
    key: &VolumeKey,
    slot: TableSlot,
    page: TablePage,
    checkpoint: u64,
    payload: impl FnOnce(&mut [u8]),
    out: &mut [u8],
) {
    out.fill(0);
    payload(&mut out[HEADER..]);
    Writer::new(out)
        .put(&MAGIC)
        .u32(page.0)
        .u64(checkpoint)
        .u64(0);
    let check = key.checksum(u64::from(slot), &[&out[..24], &out[HEADER..]]);
    out[24..HEADER].copy_from_slice(&check.to_le_bytes());
}

/// The rows of a page as it lies in `slot`; `None` if that does not hold.
pub fn decode_page<'a>(
    key: &VolumeKey,
    slot: TableSlot,
    page: TablePage,
    bytes: &'a [u8],
) -> Option<&'a [u8]> {
    let mut fields = Reader::new(bytes);
    let (magic, found) = (fields.take::<4>(), fields.u32());
    fields.take::<16>();
    let check = key.checksum(u64::from(slot), &[&bytes[..24], &bytes[HEADER..]]);
    let holds = magic == MAGIC && found == page.0 && fields.u64() == check;
    holds.then(|| &bytes[HEADER..])
}

/// The check of an encoded page: a part of its checksum.
pub fn check_of(page: &[u8]) -> u32 {
    Reader::new(&page[24..HEADER]).u32()
}

/// What the checks of the pages that a checkpoint uses come to: all pages of the map, of objects, packed pages and
/// blocks that were ever written, those of the history with rows in use, and the directories. A slot is written again,
/// so an earlier page under the same number may come to lie in it once more: the root tells by this. `slots` and
/// `checks` are by page, `directories` and their checks, at the end of `checks`, too. Never 0.
pub fn sum(
    id: &Identity,
    history: &HistoryRoot,
    kept: u32,
    slots: &[TableSlot],
    directories: &[TableSlot],
    checks: &[u32],
) -> u32 {
    let always = Table::Versions.first_page(id).index();
    let mut sum = 0u32;
    let mut add = |page: TablePage, slot: TableSlot| {
        if slot.is_some() {
            sum = sum.wrapping_add(checks[page.index()]);
        }
    };
    for (page, &slot) in (0..).map(TablePage).zip(slots).take(always) {
        add(page, slot);
    }
    for page in pages_in_use(id, history, kept) {
        add(page, slots[page.index()]);
    }
    for (directory, &slot) in (slots.len() as u32..).map(TablePage).zip(directories) {
        add(directory, slot);
    }
    sum.max(1)
}

/// The pages of the history's tables that have rows in use; `kept` rows of pinned instants.
fn pages_in_use(id: &Identity, history: &HistoryRoot, kept: u32) -> BTreeSet<TablePage> {
    let mut pages = BTreeSet::new();
    let mut add = |table: Table, RowId(first): RowId, count: u32| {
        let (rows, per_page) = (table.rows(id), table.rows_per_page(id));
        let behind = (u64::from(first) + u64::from(count)).saturating_sub(u64::from(rows));
        let end = first.saturating_add(count).min(rows);
        for (from, to) in [(first, end), (0, behind.min(u64::from(rows)) as u32)] {
            if from < to {
                let within = (from / per_page..to.div_ceil(per_page)).map(PageInTable);
                pages.extend(within.map(|page| table.page(id, page)));
            }
        }
    };
    add(Table::Versions, history.first, history.entries);
    add(Table::Pins, RowId(0), history.pins);
    add(Table::Kept, RowId(0), kept);
    add(Table::Notes, RowId(0), history.notes);
    pages
}
