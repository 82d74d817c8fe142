//! Journals of the tables (DeltaFTL, EuroSys 2012, section 3.3): what makes a map durable between its pages.
//!
//! Each table has one. Every change of an entry is a record of 8 bytes in RAM; when the records fill a page it
//! is *due*, and programmed before the next access to the map. A journal of so many pages is *folded*: the
//! pages of its table that are older than what is known are written, and then its pages are given up. What
//! changes meanwhile goes to new pages. Records in RAM are kept by a capacitor and cost nothing.
//!
//! It is a model of cost: nothing is ever read back. Journal pages are numbered in *slots*, by table.
//!
//! Invariants: a slot is free, in a journal, or in one being folded; a journal has no more pages than it may;
//! one that has as many is folded as soon as the fold before it is over.

use super::{ENTRIES_PER_PAGE, MapTable};

flashlore_flash::index!(
    /// A journal page among those that all journals may take on flash.
    JournalSlot
);

/// Records of a page: they are as long as entries.
const RECORDS_PER_PAGE: u32 = ENTRIES_PER_PAGE;

/// The journal of one table.
#[derive(Debug, Clone, Default)]
struct Log {
    /// Records in RAM that do not fill a page.
    records: u32,
    /// Pages that are full and not programmed.
    due: u32,
    /// Slots on flash since the last fold began.
    pages: Vec<JournalSlot>,
    /// Slots of the journal that is being folded.
    folding: Vec<JournalSlot>,
}

/// The journals.
#[derive(Debug, Clone)]
pub struct Journal {
    logs: [Log; MapTable::COUNT],
    /// Pages of a journal that are folded together.
    most: u32,
    free: Vec<JournalSlot>,
}

impl Journal {
    /// Empty journals of so many tables, folded at so many pages (at least one).
    pub fn new(tables: usize, most: u32) -> Self {
        let free = (0..Self::slots(tables, most)).map(JournalSlot);
        Journal {
            logs: Default::default(),
            most: most.max(1),
            free: free.rev().collect(),
        }
    }

    /// Pages that so many journals may take on flash: each may have as many again while it is folded.
    pub fn slots(tables: usize, most: u32) -> u32 {
        2 * tables as u32 * most.max(1)
    }

    /// An entry of a table has changed.
    pub fn record(&mut self, table: MapTable) {
        let log = &mut self.logs[table as usize];
        log.records += 1;
        if log.records == RECORDS_PER_PAGE {
            log.records = 0;
            log.due += 1;
        }
    }

    /// The first table whose journal is so.
    fn first_of(&self, is_so: impl Fn(&Log) -> bool) -> Option<MapTable> {
        let mut tables = MapTable::ALL.into_iter();
        tables.find(|&table| is_so(&self.logs[table as usize]))
    }

    /// The table, and the slot, of the page that is to be programmed next. A journal that is full waits for
    /// its fold.
    pub fn due(&self) -> Option<(MapTable, JournalSlot)> {
        let ready = |log: &Log| log.due > 0 && (log.pages.len() as u32) < self.most;
        let table = self.first_of(ready)?;
        Some((table, *self.free.last()?))
    }

    /// The page that was due next is programmed.
    pub fn programmed(&mut self) {
        if let Some((table, slot)) = self.due() {
            self.free.pop();
            self.logs[table as usize].due -= 1;
            self.logs[table as usize].pages.push(slot);
        }
    }

    /// The table whose journal is full and can be folded: that begins now.
    pub fn begin_fold(&mut self) -> Option<MapTable> {
        let full = |log: &Log| log.pages.len() as u32 == self.most && log.folding.is_empty();
        let table = self.first_of(full)?;
        let log = &mut self.logs[table as usize];
        std::mem::swap(&mut log.pages, &mut log.folding);
        Some(table)
    }

    /// No page of any table is older than what was known when the folds began: answers a slot that is not
    /// needed any more.
    pub fn take_folded(&mut self) -> Option<JournalSlot> {
        let slot = self.logs.iter_mut().find_map(|log| log.folding.pop())?;
        self.free.push(slot);
        Some(slot)
    }

    /// Recounts the slots.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self, slots: u32) -> Result<(), String> {
        let used = self
            .logs
            .iter()
            .flat_map(|log| log.pages.iter().chain(&log.folding));
        let mut all: Vec<u32> = used.chain(&self.free).map(|slot| slot.0).collect();
        all.sort_unstable();
        if !all.iter().copied().eq(0..slots) {
            return Err(format!(
                "journal slots are {all:?}, expected each of {slots} once"
            ));
        }
        match self
            .logs
            .iter()
            .find(|log| log.pages.len() as u32 > self.most)
        {
            Some(log) => Err(format!(
                "a journal has {} pages of {}",
                log.pages.len(),
                self.most
            )),
            None => Ok(()),
        }
    }
}
