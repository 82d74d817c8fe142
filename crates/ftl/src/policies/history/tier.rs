//! Entries of the history that lie on flash (BVSSD, SYSTOR 2012, section 3.2: a store of two tiers).
//!
//! RAM has room for so many entries of the window. When there are more, the oldest of them are written to
//! *tables*, units of flash that hold 170 entries each, and so on from there: `upto` is the stamp of the last
//! entry on flash. A table is given up when the window has passed its last entry. A rewind to an instant reads
//! the tables with entries after it.
//!
//! It is a model of cost: the history answers from memory, and this says what is read and programmed. Entries
//! name objects, so a table needs not be written anew when collection moves what it names. An entry that comes
//! later than its stamp, out of a queue, is counted with its neighbours. What pinned instants keep behind the
//! window stays in RAM.

use std::collections::VecDeque;

use flashlore_content::history::{History, PAPER_ENTRY_BYTES};
use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::{Owner, Ppn, TableId, Tables};

/// Entries of a table.
pub const TABLE_ENTRIES: u32 = UNIT_BYTES / PAPER_ENTRY_BYTES as u32;

/// Tables are numbered up to here, then from 0 again: there are never so many at a time.
const RING: u32 = Owner::TABLES;

/// A table on flash.
#[derive(Debug, Clone, Copy)]
struct Table {
    location: Ppn,
    /// The stamp of its last entry.
    latest: u64,
}

/// The tables.
#[derive(Debug, Clone)]
pub struct Tier {
    /// Entries that RAM has room for.
    in_ram: u32,
    upto: u64,
    tables: VecDeque<Table>,
    /// The number of the first table.
    first: u32,
    /// Tables programmed since the start or the end of warm-up.
    pub programs: u64,
}

impl Tier {
    /// No table, and room for so many entries in RAM.
    pub fn new(in_ram: u32) -> Self {
        Tier {
            in_ram,
            upto: 0,
            tables: VecDeque::new(),
            first: 0,
            programs: 0,
        }
    }

    /// Tables on flash.
    pub fn len(&self) -> u32 {
        self.tables.len() as u32
    }

    /// Whether all entries are in RAM.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The owners of the tables.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        let first = self.first;
        (0..self.len()).map(move |i| Owner::table(TableId((first + i) % RING)))
    }

    fn position(&self, table: TableId) -> usize {
        ((table.0 + RING - self.first) % RING) as usize
    }

    pub(crate) fn location(&self, table: TableId) -> Option<Ppn> {
        let table = self.tables.get(self.position(table));
        table.map(|table| table.location)
    }

    pub(crate) fn relocate(&mut self, table: TableId, to: Ppn) {
        let position = self.position(table);
        self.tables[position].location = to;
    }

    /// The stamp of the last entry of the next table, if RAM has no room for all entries.
    pub(crate) fn next<S: Tables>(&self, history: &mut History<S>) -> Option<u64> {
        let upto = self.upto(history);
        let beyond = history.entries_after(upto) > self.in_ram;
        beyond.then(|| history.stamp_after(upto, TABLE_ENTRIES))?
    }

    /// Entries after this stamp are in RAM alone.
    pub(crate) fn upto<S: Tables>(&self, history: &History<S>) -> u64 {
        self.upto.max(history.oldest())
    }

    /// Entries up to this stamp are on flash.
    pub(crate) fn reaches(&mut self, upto: u64) {
        self.upto = upto;
    }

    /// The owner of the next table.
    pub(crate) fn next_owner(&self) -> Owner {
        Owner::table(TableId((self.first + self.len()) % RING))
    }

    /// A table is programmed; its last entry has this stamp.
    pub(crate) fn push(&mut self, location: Ppn, latest: u64) {
        self.programs += 1;
        self.tables.push_back(Table { location, latest });
    }

    /// The first table, if the window has passed it.
    pub(crate) fn pass(&mut self, oldest: u64) -> Option<Ppn> {
        let table = self.tables.front().filter(|t| t.latest <= oldest)?;
        let location = table.location;
        self.tables.pop_front();
        self.first = (self.first + 1) % RING;
        Some(location)
    }

    /// Tables with entries after an instant.
    pub(crate) fn since(&self, instant: u64) -> impl Iterator<Item = Ppn> {
        let later = self.tables.iter().filter(move |t| t.latest > instant);
        later.map(|table| table.location)
    }
}
