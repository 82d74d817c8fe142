//! Entries of the history that lie on flash (BVSSD, SYSTOR 2012, section 3.2: a store of two tiers).
//!
//! RAM has room for so many entries of the window. When there are more, the oldest of them are written to
//! *tables*, units of flash that hold 170 entries each, and so on from there: `upto` is the stamp of the last
//! entry on flash. A table is given up when the window has passed its last entry. A return to an instant reads
//! the tables with entries after it.
//!
//! It is a model of cost: the history answers from memory, and this says what is read and programmed. Entries
//! name objects, so a table needs not be written anew when collection moves what it names. An entry that comes
//! later than its stamp, out of a queue, is counted with its neighbours. What pinned instants keep behind the
//! window stays in RAM.

use flashlore_content::Encoder;
use std::collections::VecDeque;

use flashlore_content::history::{History, PAPER_ENTRY_BYTES};
use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::{Cause, Owner, Ppn, Ready, Stream, Tag, Time, Unit, When};

use super::parts::{CoreOf, Failure, Parts};
use super::store::Store;
use crate::error::FtlError;

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
    pub(super) fn owners(&self) -> impl Iterator<Item = Owner> {
        let first = self.first;
        (0..self.len()).map(move |i| Owner::table((first + i) % RING))
    }

    fn position(&self, table: u32) -> usize {
        ((table + RING - self.first) % RING) as usize
    }

    pub(super) fn location(&self, table: u32) -> Option<Ppn> {
        let table = self.tables.get(self.position(table));
        table.map(|table| table.location)
    }

    pub(super) fn relocate(&mut self, table: u32, to: Ppn) {
        let position = self.position(table);
        self.tables[position].location = to;
    }

    /// The stamp of the last entry of the next table, if RAM has no room for all entries.
    fn next(&self, history: &mut History) -> Option<u64> {
        let upto = self.upto.max(history.oldest());
        let beyond = history.entries_after(upto) > self.in_ram;
        beyond.then(|| history.stamp_after(upto, TABLE_ENTRIES))?
    }

    /// The first table, if the window has passed it.
    pub(super) fn pass(&mut self, oldest: u64) -> Option<Ppn> {
        let table = self.tables.front().filter(|t| t.latest <= oldest)?;
        let location = table.location;
        self.tables.pop_front();
        self.first = (self.first + 1) % RING;
        Some(location)
    }

    /// Tables with entries after an instant.
    pub(super) fn since(&self, instant: u64) -> impl Iterator<Item = Ppn> {
        let later = self.tables.iter().filter(move |t| t.latest > instant);
        later.map(|table| table.location)
    }
}

impl<T: Parts> Store<T> {
    /// Writes entries to flash until RAM has room for the others.
    pub fn limit_entries_in_ram(
        &mut self,
        core: &mut CoreOf<T>,
        at: Time,
        lpn: u32,
    ) -> Result<(), Failure<T>> {
        while let Some(versions) = &mut self.versions
            && let Some(tier) = &versions.tier
            && let Some(latest) = tier.next(&mut versions.history)
        {
            // Changes of one request have the same stamp and go together: they may be more than a table.
            let upto = tier.upto.max(versions.history.oldest());
            let left = versions.history.entries_after(latest);
            let entries = versions.history.entries_after(upto) - left;
            for _ in 0..entries.div_ceil(TABLE_ENTRIES) {
                self.program_table(core, at, lpn, latest)?;
            }
            if let Some(tier) = self.versions.as_mut().and_then(|v| v.tier.as_mut()) {
                tier.upto = latest;
            }
        }
        Ok(())
    }

    fn program_table(
        &mut self,
        core: &mut CoreOf<T>,
        at: Time,
        lpn: u32,
        latest: u64,
    ) -> Result<(), Failure<T>> {
        self.make_room(core, at)?;
        let when = When::now(at);
        let plane = loop {
            match core.next_frontier(self, Stream::Log, at, lpn) {
                Err(FtlError::Full { .. }) if self.give_way(core, at)? => {}
                other => break other?,
            }
        };
        let page = self.encoder.pack(&[]);
        let Some(tier) = self.versions.as_mut().and_then(|v| v.tier.as_mut()) else {
            return Ok(());
        };
        let owner = Owner::table((tier.first + tier.len()) % RING);
        let unit = Unit::New { owner, page };
        let (location, _) = core.append_to_frontier(plane, Stream::Log, when, unit, Tag::NONE)?;
        core.counters.programs_map += 1;
        tier.programs += 1;
        tier.tables.push_back(Table { location, latest });
        Ok(())
    }

    /// Reads the tables that a return to an instant needs; answers how many.
    pub fn read_tables(&mut self, core: &mut CoreOf<T>, instant: u64) -> Result<u64, Failure<T>> {
        let tier = self.versions.as_ref().and_then(|v| v.tier.as_ref());
        let tables: Vec<Ppn> = tier.into_iter().flat_map(|t| t.since(instant)).collect();
        for &table in &tables {
            if core.buffered(table).is_none() {
                core.read(Ready::At(core.present), table, Cause::Map, Tag::NONE)?;
            }
        }
        Ok(tables.len() as u64)
    }
}
