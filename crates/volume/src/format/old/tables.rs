//! Checkpoint tables of versions 3 and 4: rows of fixed size in pages of 4096 bytes, which lie in slots anywhere in the
//! table area. A directory page lists the slots of 1016 table pages, the root those of the directories. Rows that are not
//! told here are those of [`crate::format::tables`], and version 3 has no notes.
//!
//! | table | row |
//! |---|---|
//! | objects | unit (4), digest tag (4), write sequence number (8); trusted digests: unit (4), zero (4), write sequence number (8), digest (16), zero if it cannot be read. Where values are encoded, behind that: base (4), length as the translation layer counts it (2), slot (2); with a length that is not 0 the object is packed, and the unit is its packed page |
//!
//! | offset | bytes | field of a page |
//! |---:|---:|---|
//! | 0 | 4 | magic `FLTP` |
//! | 4 | 4 | which page: table pages are numbered through, map first; directories follow |
//! | 8 | 8 | the checkpoint that wrote it |
//! | 16 | 8 | zero |
//! | 24 | 8 | keyed checksum of the slot's number and the page without these 8 bytes |
//! | 32 | 4064 | rows; in a directory slot numbers of 4 bytes, all ones for a page never written |

use std::collections::BTreeSet;

use flashlore_content::{Digest, VolumeKey};
use flashlore_flash::{ObjectId, PackId, Ppn, index};
use flashlore_ftl::mapping::objects::FoundPack;

use crate::format::address::{PageInTable, RowId};
use crate::format::cursor::Reader;
use crate::format::rows::{ObjectPlace, ObjectRow, PackedRow};
use crate::format::{HistoryRoot, Identity, PackSlot, Table};

index!(
    /// A table page or a directory, numbered through.
    TablePage
    /// A place of the table area, which takes one table page.
    TableSlot
);

impl TableSlot {
    /// That of a page that was never written: all its rows are empty.
    pub const NONE: TableSlot = TableSlot(u32::MAX);

    /// Whether this names a slot.
    pub fn is_some(self) -> bool {
        self != TableSlot::NONE
    }
}

pub const TABLE_PAGE_BYTES: usize = 4096;
/// Bytes of rows in it.
const PAYLOAD: usize = TABLE_PAGE_BYTES - HEADER;
/// Slots a directory page lists.
pub const SLOTS_PER_DIRECTORY: u32 = (PAYLOAD / 4) as u32;

/// The first format version with notes.
const FIRST_WITH_NOTES: u32 = 4;
const HEADER: usize = 32;
const MAGIC: [u8; 4] = *b"FLTP";

/// A table as these versions have it.
#[derive(Debug, Clone, Copy)]
pub struct OldTable(pub Table);

impl OldTable {
    pub fn row_bytes(self, id: &Identity) -> usize {
        match self.0 {
            Table::Objects => {
                let digest = if id.trusts_digests() { 32 } else { 16 };
                digest + if id.encoding.is_on() { 8 } else { 0 }
            }
            table => table.row_bytes(id).into(),
        }
    }

    /// Rows of the table.
    pub fn rows(self, id: &Identity) -> u32 {
        match self.0 {
            Table::Notes if id.version < FIRST_WITH_NOTES => 0,
            table => table.rows(id),
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
    fn first_page(self, id: &Identity) -> TablePage {
        let before = Table::all(id).iter().take_while(|&&table| table != self.0);
        TablePage(before.map(|&table| OldTable(table).pages(id)).sum())
    }

    /// A page of the table.
    pub fn page(self, id: &Identity, page: PageInTable) -> TablePage {
        TablePage(self.first_page(id).0 + page.0)
    }
}

/// Reads a row of the objects.
pub fn object_row(id: &Identity, row: &mut Reader<'_>) -> ObjectRow {
    let (location, tag, write_seq) = (row.u32(), row.u32(), row.u64());
    let digest = match id.trusts_digests() {
        true => Digest(row.u128()),
        false => Digest(u128::from(tag)),
    };
    let packed = id.encoding.is_on().then(|| PackedRow {
        pack: FoundPack::Numbered(PackId(location)),
        base: ObjectId(row.u32()),
        length: row.u16(),
        slot: PackSlot(row.u16()),
    });
    let packed = packed.filter(|packed| packed.length > 0);
    ObjectRow {
        place: packed.map_or(ObjectPlace::Unit(Ppn(location)), ObjectPlace::Packed),
        write_seq,
        digest,
        is_unreadable: false,
    }
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
    let always = OldTable(Table::Versions).first_page(id).index();
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
        let table = OldTable(table);
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
    let window = &history.window.queue;
    add(Table::Versions, RowId(window.row), window.len);
    add(Table::Pins, RowId(0), history.pins);
    add(Table::Kept, RowId(0), kept);
    add(Table::Notes, RowId(0), history.notes);
    pages
}
