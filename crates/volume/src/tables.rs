//! Writing the checkpoint tables: dirty pages go to free slots, the root last.
//!
//! Most pages are written before the checkpoint begins, a few at a time ([`TableStore::clean`]): one that changes again
//! is written again. What is left when it begins is written at once, so that the tables hold the state after one event.
//!
//! Invariants: no slot that the last durable root reaches is written; `free` holds every other slot, but for those
//! the tables use now. A page has at most two slots: where the last root has it, and where it was written since.

use std::collections::HashMap;

use flashlore_content::history::{EntryNumber, PinnedInstant};
use flashlore_flash::{BlockId, Lpn, ObjectId, PackId, Stream};
use flashlore_ftl::blocks::BlockPhase;
use flashlore_medium::AlignedBuf;

use crate::dirty::{DirtyPages, WrittenPages};
use crate::error::NandError;
use crate::format::cursor::Writer;
use crate::format::tables::{
    PAYLOAD, SLOTS_PER_DIRECTORY, TABLE_PAGE_BYTES, check_of, encode_page, sum,
};
use crate::format::{
    BlockRow, BlockState, HistoryRoot, Identity, Note, PageInTable, Root, RowId, Table, TablePage,
    TableSlot,
};
use crate::layer::Layer;
use crate::nand::Nand;
use crate::notes::Notes;

/// Where the tables lie, and what of them has changed.
pub(crate) struct TableStore {
    /// Number of the checkpoint for which pages are being written.
    next: u64,
    /// Slot of every table page.
    slots: Vec<TableSlot>,
    directories: Vec<TableSlot>,
    /// By table page, then by directory: the check of what lies in its slot.
    checks: Vec<u32>,
    free: Vec<TableSlot>,
    /// Slots that the last root reaches and the next one does not.
    given_up: Vec<TableSlot>,
    /// What has been written for the next checkpoint.
    written_now: WrittenPages,
    /// At which of those that are cleaned, and at which page of it, cleaning goes on.
    cursor: (usize, PageInTable),
    /// Map rows that changed.
    pub mapped: DirtyPages<Lpn>,
    /// Where the history lies in its ring.
    ring: Ring,
    /// Checksums of the pages of pins, what they keep, and notes, as they were written last.
    written: HashMap<TablePage, u64>,
    buffer: AlignedBuf,
}

/// The tables of which pages are written before a checkpoint begins.
const CLEANED: [Table; 4] = [Table::Map, Table::Objects, Table::Packs, Table::Blocks];

/// The ring of history rows: the entry with this number has this row.
#[derive(Debug, Clone, Copy)]
struct Ring {
    number: EntryNumber,
    row: RowId,
    rows: u32,
}

impl Ring {
    fn row(&self, number: EntryNumber) -> RowId {
        let at = u64::from(self.row) + u64::from(number.since(self.number));
        RowId((at % u64::from(self.rows.max(1))) as u32)
    }
}

/// What a checkpoint writes of the history.
struct HistoryRows {
    root: HistoryRoot,
    /// Rows of entries that have changed, the first and how many.
    changed: (RowId, u32),
    pins: Vec<PinnedInstant>,
    kept: Vec<(Lpn, ObjectId)>,
    notes: Vec<Note>,
}

impl TableStore {
    /// The tables of a root.
    pub fn new(
        root: &Root,
        id: &Identity,
        (slots, checks): (Vec<TableSlot>, Vec<u32>),
        slot_count: u32,
        mapped: DirtyPages<Lpn>,
    ) -> Self {
        let mut used = vec![false; slot_count as usize];
        for &slot in slots.iter().chain(&root.directories) {
            if let Some(u) = used.get_mut(slot.index()) {
                *u = true;
            }
        }
        let free = (0..slot_count).rev().map(TableSlot);
        let free = free.filter(|slot| !used[slot.index()]);
        let pages = slots.len() + root.directories.len();
        TableStore {
            next: root.checkpoint + 1,
            directories: root.directories.clone(),
            free: free.collect(),
            given_up: Vec::new(),
            written_now: WrittenPages::new(pages),
            cursor: (0, PageInTable(0)),
            slots,
            checks,
            mapped,
            ring: Ring {
                number: EntryNumber::default(),
                row: root.history.first,
                rows: Table::Versions.rows(id),
            },
            written: HashMap::new(),
            buffer: AlignedBuf::zeroed(TABLE_PAGE_BYTES),
        }
    }

    /// What there is to write of the history.
    fn history(&self, layer: &mut dyn Layer, notes: &Notes) -> HistoryRows {
        if let Some(versioned) = layer.versioned() {
            versioned.tidy();
        }
        let Some(history) = layer.history() else {
            return HistoryRows {
                root: HistoryRoot::default(),
                changed: (RowId(0), 0),
                pins: Vec::new(),
                kept: Vec::new(),
                notes: Vec::new(),
            };
        };
        let (first, end, changed) = history.numbers();
        let pins: Vec<PinnedInstant> = history.stored_pins().collect();
        let notes = notes.rows();
        HistoryRows {
            root: HistoryRoot {
                oldest: history.oldest(),
                first: self.ring.row(first),
                entries: end.since(first),
                pins: pins.len() as u32,
                notes: notes.len() as u32,
            },
            changed: (self.ring.row(changed), end.since(changed)),
            kept: pins
                .iter()
                .flat_map(|pin| pin.kept.iter().copied())
                .collect(),
            pins,
            notes,
        }
    }

    /// Once the checkpoint before is durable, what only the root before that reached is free.
    fn settle(&mut self, nand: &mut Nand) -> Result<(), NandError> {
        nand.finish_checkpoint()?;
        if nand.checkpoint() == self.next {
            self.next += 1;
            self.free.append(&mut self.given_up);
            self.written_now.clear_all();
        }
        Ok(())
    }

    /// Writes up to so many pages that have changed; how many it wrote. Where there are fewer it has been once
    /// around.
    pub fn clean(&mut self, layer: &mut dyn Layer, most: u32) -> Result<u32, NandError> {
        if layer.core().flash().open_checkpoint().is_some() {
            return Ok(0);
        }
        self.settle(layer.core_mut().flash_mut())?;
        let id = layer.core().flash().id.clone();
        let mut wrote = 0;
        let mut turns = 0;
        while wrote < most && turns <= CLEANED.len() {
            let (table, from) = self.cursor;
            let Some(page) = self.next_dirty(layer, &id, CLEANED[table], from) else {
                self.cursor = ((table + 1) % CLEANED.len(), PageInTable(0));
                turns += 1;
                continue;
            };
            self.write_page(layer, &id, CLEANED[table], page)?;
            self.cursor = (table, page.following());
            wrote += 1;
        }
        Ok(wrote)
    }

    /// Pages that have changed, but for those of the history.
    pub fn dirty_pages(&self, layer: &dyn Layer) -> u32 {
        let nand = layer.core().flash();
        let (mapped, located) = (self.mapped.count(), nand.located.count());
        mapped + located + nand.packed.count() + nand.programmed.count()
    }

    /// Writes what has changed, and hands over a root that holds the state after the last event
    /// ([`Nand::begin_checkpoint`]). Answers the number of the checkpoint.
    pub fn begin(
        &mut self,
        layer: &mut dyn Layer,
        stamp: u64,
        notes: &Notes,
    ) -> Result<u64, NandError> {
        self.settle(layer.core_mut().flash_mut())?;
        let id = layer.core().flash().id.clone();
        let history = self.history(layer, notes);
        layer.core_mut().flash_mut().mark_touched();
        for table in CLEANED {
            let mut from = PageInTable(0);
            while let Some(page) = self.next_dirty(layer, &id, table, from) {
                self.write_page(layer, &id, table, page)?;
                from = page.following();
            }
        }
        for table in [Table::Versions, Table::Pins, Table::Kept, Table::Notes] {
            for page in table.each_page(&id) {
                if history.is_dirty(&id, table, page) {
                    let mut rows = [0; PAYLOAD];
                    history.fill(&self.ring, layer, &id, table, page, &mut rows);
                    let number = table.page(&id, page);
                    if !self.is_as_written(&id, table, number, &rows) {
                        self.put_page(layer, &id, number, &rows)?;
                    }
                }
            }
        }
        self.write_directories(layer, &id)?;
        let kept = history.kept.len() as u32;
        let (slots, directories) = (&self.slots, &self.directories);
        let sum = sum(&id, &history.root, kept, slots, directories, &self.checks);
        let nand = layer.core_mut().flash_mut();
        nand.begin_checkpoint(&Root {
            sum,
            checkpoint: self.next,
            epoch: nand.epoch,
            sequence: nand.sequence,
            stamp,
            history: history.root,
            directories: self.directories.clone(),
        });
        if let Some(versions) = layer.history() {
            let (first, ..) = versions.numbers();
            self.ring.row = history.root.first;
            self.ring.number = first;
        }
        if let Some(versioned) = layer.versioned() {
            versioned.note_stored();
        }
        Ok(self.next)
    }

    /// The first page of a table from one on that has changed.
    fn next_dirty(
        &self,
        layer: &dyn Layer,
        id: &Identity,
        table: Table,
        from: PageInTable,
    ) -> Option<PageInTable> {
        let nand = layer.core().flash();
        match table {
            Table::Map if id.has_objects() => self.mapped.next(from),
            Table::Map => {
                let (mapped, located) = (self.mapped.next(from), nand.located.next(from));
                mapped.into_iter().chain(located).min()
            }
            Table::Objects => nand.located.next(from).filter(|_| id.has_objects()),
            Table::Packs => nand.packed.next(from),
            _ => nand.programmed.next(from),
        }
    }

    /// Writes a page of a table as it is now.
    fn write_page(
        &mut self,
        layer: &mut dyn Layer,
        id: &Identity,
        table: Table,
        page: PageInTable,
    ) -> Result<(), NandError> {
        let mut rows = [0; PAYLOAD];
        fill(layer, id, table, page, &mut rows);
        let nand = layer.core_mut().flash_mut();
        match table {
            Table::Map => {
                self.mapped.clear(page);
                if !id.has_objects() {
                    nand.located.clear(page);
                }
            }
            Table::Objects => nand.located.clear(page),
            Table::Packs => nand.packed.clear(page),
            _ => nand.programmed.clear(page),
        }
        self.put_page(layer, id, table.page(id, page), &rows)
    }

    fn put_page(
        &mut self,
        layer: &mut dyn Layer,
        id: &Identity,
        number: TablePage,
        rows: &[u8],
    ) -> Result<(), NandError> {
        let slot = self.take_slot(number);
        let payload = |out: &mut [u8]| out.copy_from_slice(rows);
        encode_page(&id.key, slot, number, self.next, payload, &mut self.buffer);
        self.checks[number.index()] = check_of(&self.buffer);
        self.put(layer, slot)
    }

    /// Whether a page of pinned instants, of what they keep, or of notes lies there as it is. Most of them do not
    /// change for long.
    fn is_as_written(
        &mut self,
        id: &Identity,
        table: Table,
        number: TablePage,
        rows: &[u8],
    ) -> bool {
        if !matches!(table, Table::Pins | Table::Kept | Table::Notes) {
            return false;
        }
        let check = id.key.checksum(u64::from(number), &[rows]);
        self.written.insert(number, check) == Some(check)
    }

    /// The slot that a page, or behind those a directory, is written to: the one it was written to since the last root,
    /// or a free one; then the one it had is given up once the next root is durable.
    fn take_slot(&mut self, number: TablePage) -> TableSlot {
        let pages = self.slots.len();
        let place = match number.index().checked_sub(pages) {
            Some(directory) => &mut self.directories[directory],
            None => &mut self.slots[number.index()],
        };
        if self.written_now.has(number) {
            return *place;
        }
        let Some(slot) = self.free.pop() else {
            unreachable!("there are two slots for every page")
        };
        let before = std::mem::replace(place, slot);
        if before.is_some() {
            self.given_up.push(before);
        }
        self.written_now.mark(number);
        slot
    }

    /// Writes the directories of the pages that have been written.
    fn write_directories(&mut self, layer: &mut dyn Layer, id: &Identity) -> Result<(), NandError> {
        let pages = self.slots.len() as u32;
        let mut from = TablePage(0);
        while let Some(page) = self.written_now.next(from).filter(|page| page.0 < pages) {
            let directory = page.0 / SLOTS_PER_DIRECTORY;
            let first = directory * SLOTS_PER_DIRECTORY;
            let last = (first + SLOTS_PER_DIRECTORY).min(pages);
            let number = TablePage(pages + directory);
            let slot = self.take_slot(number);
            let listed = &self.slots[first as usize..last as usize];
            let rows = |rows: &mut [u8]| {
                let mut out = Writer::new(rows);
                for &slot in listed {
                    out.u32(slot.0);
                }
            };
            let buffer = &mut self.buffer;
            encode_page(&id.key, slot, number, self.next, rows, buffer);
            self.checks[number.index()] = check_of(&self.buffer);
            self.put(layer, slot)?;
            from = TablePage(last);
        }
        Ok(())
    }

    fn put(&self, layer: &mut dyn Layer, slot: TableSlot) -> Result<(), NandError> {
        let nand = layer.core_mut().flash_mut();
        let at = nand.areas.slot(slot);
        nand.put(at, &self.buffer)
    }
}

fn fill(layer: &dyn Layer, id: &Identity, table: Table, page: PageInTable, rows: &mut [u8]) {
    let mut out = Writer::new(rows);
    for RowId(row) in RowId::each(table.rows_of(id, page)) {
        match table {
            Table::Map => layer.map_row(Lpn(row)).encode(&mut out),
            Table::Objects => layer.object_row(ObjectId(row)).encode(id, &mut out),
            Table::Packs => layer.pack_row(PackId(row)).encode(&mut out),
            _ => block_row(layer, BlockId(row)).encode(&mut out),
        }
    }
}

impl HistoryRows {
    /// Whether a page of the history's tables may have changed.
    fn is_dirty(&self, id: &Identity, table: Table, page: PageInTable) -> bool {
        let per_page = table.rows_per_page(id);
        let at = page.0 * per_page;
        match table {
            Table::Pins => at < self.root.pins,
            Table::Notes => at < self.root.notes,
            Table::Kept => (at as usize) < self.kept.len(),
            _ => {
                let (RowId(first), count) = self.changed;
                let rows = table.rows(id);
                let before_it = u64::from(at) + u64::from(rows) - u64::from(first);
                // The first row of the page is among those changed, or the first changed is in the page.
                count > 0
                    && (before_it % u64::from(rows) < u64::from(count)
                        || (at..at + per_page).contains(&first))
            }
        }
    }

    /// The rows of a page of the history's tables.
    fn fill(
        &self,
        ring: &Ring,
        layer: &dyn Layer,
        id: &Identity,
        table: Table,
        page: PageInTable,
        rows: &mut [u8],
    ) {
        let (first, last) = {
            let rows = table.rows_of(id, page);
            (rows.start.0, rows.end.0)
        };
        let mut out = Writer::new(rows);
        match table {
            Table::Pins => {
                let pins = self.pins.iter().skip(first as usize);
                for pin in pins.take((last - first) as usize) {
                    let flags = u32::from(pin.snapshot) | u32::from(pin.scheduled) << 1;
                    out.u64(pin.instant).u32(flags).u32(pin.kept.len() as u32);
                }
            }
            Table::Notes => {
                let notes = self.notes.iter().skip(first as usize);
                for note in notes.take((last - first) as usize) {
                    note.encode(&mut out);
                }
            }
            Table::Kept => {
                let end = (last as usize).min(self.kept.len());
                for &(lpn, object) in &self.kept[first as usize..end] {
                    out.u32(lpn.0).u32(object.0);
                }
            }
            _ => {
                let Some(history) = layer.history() else {
                    return;
                };
                let (number, end, _) = history.numbers();
                for row in first..last {
                    let rows = u64::from(ring.rows);
                    let from_first = u64::from(row) + rows - u64::from(self.root.first);
                    let from_first = (from_first % rows) as u32;
                    if from_first < end.since(number) {
                        let (lpn, object, stamp) = history.entry(number.plus(from_first));
                        out.u32(lpn.0).u32(object.0).u64(stamp);
                    } else {
                        out.u32(0).u32(0).u64(0);
                    }
                }
            }
        }
    }
}

fn block_row(layer: &dyn Layer, block: BlockId) -> BlockRow {
    let core = layer.core();
    let life = core.flash().lives[block.index()];
    BlockRow {
        state: match core.blocks().record(block).state {
            BlockPhase::Free => BlockState::Free,
            BlockPhase::Open => BlockState::Open(core.stream_of(block).unwrap_or(Stream::Host)),
            BlockPhase::Sealed
            | BlockPhase::Collecting
            | BlockPhase::Erasing
            | BlockPhase::Retired => BlockState::Sealed,
        },
        erases: life.erases,
        generation: life.generation,
        taken: life.taken,
    }
}
