//! Writing the checkpoint tables: dirty pages go to free slots, the root last.
//!
//! Invariants: no slot that the last durable root reaches is written; `free` holds every other slot.

use std::collections::HashMap;

use flashlore_content::history::PinnedInstant;
use flashlore_ftl::blocks::State;
use flashlore_medium::{AlignedBuf, Medium};

use crate::dirty::DirtyPages;
use crate::format::cursor::Writer;
use crate::format::tables::{NO_SLOT, PAYLOAD, SLOTS_PER_DIRECTORY, TABLE_PAGE_BYTES, encode_page};
use crate::format::{HistoryRoot, Identity, Root, Table};
use crate::layer::Layer;
use crate::nand::NandError;

/// Where the tables lie, and what of them has changed.
pub(crate) struct TableStore {
    /// Number of the last checkpoint.
    pub checkpoint: u64,
    /// Slot of every table page.
    slots: Vec<u32>,
    directories: Vec<u32>,
    free: Vec<u32>,
    /// Map rows that changed.
    pub mapped: DirtyPages,
    /// Where the history lies in its ring.
    ring: Ring,
    /// Checksums of the pages of pins and what they keep, as they were written last.
    written: HashMap<u32, u64>,
    buffer: AlignedBuf,
}

/// The ring of history rows: the entry with this number has this row.
#[derive(Debug, Clone, Copy)]
struct Ring {
    number: u32,
    row: u32,
    rows: u32,
}

impl Ring {
    fn row(&self, number: u32) -> u32 {
        let at = u64::from(self.row) + u64::from(number.wrapping_sub(self.number));
        (at % u64::from(self.rows.max(1))) as u32
    }
}

/// What a checkpoint writes of the history.
struct HistoryRows {
    root: HistoryRoot,
    /// Rows of entries that have changed, the first and how many.
    changed: (u32, u32),
    pins: Vec<PinnedInstant>,
    kept: Vec<(u32, u32)>,
}

impl TableStore {
    /// The tables of a root.
    pub fn new(
        root: &Root,
        id: &Identity,
        slots: Vec<u32>,
        slot_count: u32,
        mapped: DirtyPages,
    ) -> Self {
        let mut used = vec![false; slot_count as usize];
        for &slot in slots.iter().chain(&root.directories) {
            if let Some(u) = used.get_mut(slot as usize) {
                *u = true;
            }
        }
        let free = (0..slot_count).rev().filter(|&s| !used[s as usize]);
        TableStore {
            checkpoint: root.checkpoint,
            directories: root.directories.clone(),
            free: free.collect(),
            slots,
            mapped,
            ring: Ring {
                number: 0,
                row: root.history.first,
                rows: Table::Versions.rows(id),
            },
            written: HashMap::new(),
            buffer: AlignedBuf::zeroed(TABLE_PAGE_BYTES),
        }
    }

    /// What there is to write of the history.
    fn history<M: Medium>(&self, layer: &mut dyn Layer<M>) -> HistoryRows {
        if let Some(versioned) = layer.versioned() {
            versioned.tidy();
        }
        let Some(history) = layer.history() else {
            return HistoryRows {
                root: HistoryRoot::default(),
                changed: (0, 0),
                pins: Vec::new(),
                kept: Vec::new(),
            };
        };
        let (first, end, changed) = history.numbers();
        let pins: Vec<PinnedInstant> = history.stored_pins().collect();
        HistoryRows {
            root: HistoryRoot {
                oldest: history.oldest(),
                first: self.ring.row(first),
                entries: end.wrapping_sub(first),
                pins: pins.len() as u32,
            },
            changed: (self.ring.row(changed), end.wrapping_sub(changed)),
            kept: pins
                .iter()
                .flat_map(|pin| pin.kept.iter().copied())
                .collect(),
            pins,
        }
    }

    /// Writes what has changed, then a root that holds the state after the last event. Everything is
    /// durable when it returns.
    pub fn write<M: Medium>(
        &mut self,
        layer: &mut dyn Layer<M>,
        stamp: u64,
    ) -> Result<(), NandError> {
        let id = layer.core().flash().id.clone();
        let checkpoint = self.checkpoint + 1;
        let history = self.history(layer);
        layer.core_mut().flash_mut().mark_touched();
        let mut given_up = Vec::new();
        let mut touched = vec![false; self.directories.len()];
        for table in Table::ALL {
            for page in 0..table.pages(&id) {
                if self.is_dirty(layer, &history, table, page) {
                    let number = table.first_page(&id) + page;
                    let mut rows = [0; PAYLOAD];
                    match table {
                        Table::Map | Table::Objects | Table::Packs | Table::Blocks => {
                            fill(layer, &id, table, page, &mut rows);
                        }
                        _ => history.fill(&self.ring, layer, &id, table, page, &mut rows),
                    }
                    if self.is_as_written(&id, table, number, &rows) {
                        continue;
                    }
                    let slot = self.take_slot(&mut given_up, number, false)?;
                    touched[(number / SLOTS_PER_DIRECTORY) as usize] = true;
                    let payload = |out: &mut [u8]| out.copy_from_slice(&rows);
                    encode_page(&id.key, slot, number, checkpoint, payload, &mut self.buffer);
                    self.put(layer, slot)?;
                }
            }
        }
        for directory in (0..self.directories.len()).filter(|&d| touched[d]) {
            self.write_directory(layer, &id, directory, checkpoint, &mut given_up)?;
        }
        let nand = layer.core_mut().flash_mut();
        nand.sync()?;
        let root = Root {
            checkpoint,
            epoch: nand.epoch,
            sequence: nand.sequence,
            stamp,
            history: history.root,
            directories: self.directories.clone(),
        };
        let at = nand.areas.root(checkpoint);
        let mut bytes = AlignedBuf::zeroed(nand.areas.root_bytes as usize);
        root.encode(&id.key, at, &mut bytes);
        nand.put(at, &bytes)?;
        nand.sync()?;
        self.checkpoint = checkpoint;
        self.free.append(&mut given_up);
        self.mapped.clear();
        nand.located.clear();
        nand.packed.clear();
        nand.programmed.clear();
        nand.after_checkpoint(checkpoint)?;
        if let Some(versions) = layer.history() {
            let (first, ..) = versions.numbers();
            self.ring.row = history.root.first;
            self.ring.number = first;
        }
        if let Some(versioned) = layer.versioned() {
            versioned.note_stored();
        }
        Ok(())
    }

    fn is_dirty<M: Medium>(
        &self,
        layer: &dyn Layer<M>,
        history: &HistoryRows,
        table: Table,
        page: u32,
    ) -> bool {
        let nand = layer.core().flash();
        let per_page = table.rows_per_page(&nand.id);
        match table {
            Table::Map if !nand.id.has_objects() => {
                nand.located.is_dirty(page) || self.mapped.is_dirty(page)
            }
            Table::Map => self.mapped.is_dirty(page),
            Table::Objects => nand.located.is_dirty(page),
            Table::Packs => nand.packed.is_dirty(page),
            Table::Blocks => nand.programmed.is_dirty(page),
            Table::Versions => {
                let (first, count) = history.changed;
                let rows = table.rows(&nand.id);
                let at = page * per_page;
                let before_it = u64::from(at) + u64::from(rows) - u64::from(first);
                // The first row of the page is among those changed, or the first changed is in the page.
                count > 0
                    && (before_it % u64::from(rows) < u64::from(count)
                        || (at..at + per_page).contains(&first))
            }
            Table::Pins => page * per_page < history.root.pins,
            Table::Kept => (page as usize * per_page as usize) < history.kept.len(),
        }
    }

    /// Whether a page of pinned instants, or of what they keep, lies there as it is. Most of them do not
    /// change for long.
    fn is_as_written(&mut self, id: &Identity, table: Table, number: u32, rows: &[u8]) -> bool {
        if !matches!(table, Table::Pins | Table::Kept) {
            return false;
        }
        let check = id.key.checksum(u64::from(number), &[rows]);
        self.written.insert(number, check) == Some(check)
    }

    /// A free slot for a page; the one it had is given up once the new root is durable.
    fn take_slot(
        &mut self,
        given_up: &mut Vec<u32>,
        number: u32,
        directory: bool,
    ) -> Result<u32, NandError> {
        let Some(slot) = self.free.pop() else {
            unreachable!("there are two slots for every page")
        };
        let place = if directory {
            &mut self.directories[number as usize]
        } else {
            &mut self.slots[number as usize]
        };
        let before = std::mem::replace(place, slot);
        if before != NO_SLOT {
            given_up.push(before);
        }
        Ok(slot)
    }

    fn write_directory<M: Medium>(
        &mut self,
        layer: &mut dyn Layer<M>,
        id: &Identity,
        directory: usize,
        checkpoint: u64,
        given_up: &mut Vec<u32>,
    ) -> Result<(), NandError> {
        let slot = self.take_slot(given_up, directory as u32, true)?;
        let first = directory * SLOTS_PER_DIRECTORY as usize;
        let last = (first + SLOTS_PER_DIRECTORY as usize).min(self.slots.len());
        let listed = &self.slots[first..last];
        encode_page(
            &id.key,
            slot,
            (self.slots.len() + directory) as u32,
            checkpoint,
            |rows| {
                let mut out = Writer::new(rows);
                for &slot in listed {
                    out.u32(slot);
                }
            },
            &mut self.buffer,
        );
        self.put(layer, slot)
    }

    fn put<M: Medium>(&self, layer: &mut dyn Layer<M>, slot: u32) -> Result<(), NandError> {
        let nand = layer.core_mut().flash_mut();
        let at = nand.areas.slot(slot);
        nand.put(at, &self.buffer)
    }
}

/// The rows of a table page.
fn fill<M: Medium>(layer: &dyn Layer<M>, id: &Identity, table: Table, page: u32, rows: &mut [u8]) {
    let per_page = table.rows_per_page(id);
    let first = page * per_page;
    let last = (first + per_page).min(table.rows(id));
    let mut out = Writer::new(rows);
    for row in first..last {
        match table {
            Table::Map => {
                out.u32(layer.map_row(row));
            }
            Table::Objects => {
                let object = layer.object_row(row);
                out.u32(object.location.0);
                if id.trusts_digests() {
                    out.u32(0).u64(object.birth).u128(object.digest.0);
                } else {
                    out.u32(object.digest.0 as u32).u64(object.birth);
                }
                if id.encoding.is_on() {
                    let packed = object.packed.unwrap_or_default();
                    out.u32(packed.base).u16(packed.length).u16(packed.slot);
                }
            }
            Table::Packs => {
                let pack = layer.pack_row(row);
                out.u32(pack.unit.0).u16(pack.bytes).u16(pack.slots);
            }
            _ => block_row(layer, row, &mut out),
        }
    }
}

impl HistoryRows {
    /// The rows of a page of the history's tables.
    fn fill<M: Medium>(
        &self,
        ring: &Ring,
        layer: &dyn Layer<M>,
        id: &Identity,
        table: Table,
        page: u32,
        rows: &mut [u8],
    ) {
        let per_page = table.rows_per_page(id);
        let first = page * per_page;
        let last = (first + per_page).min(table.rows(id));
        let mut out = Writer::new(rows);
        match table {
            Table::Pins => {
                let pins = self.pins.iter().skip(first as usize);
                for pin in pins.take((last - first) as usize) {
                    let flags = u32::from(pin.snapshot) | u32::from(pin.scheduled) << 1;
                    out.u64(pin.instant).u32(flags).u32(pin.kept.len() as u32);
                }
            }
            Table::Kept => {
                let end = (last as usize).min(self.kept.len());
                for &(lpn, object) in &self.kept[first as usize..end] {
                    out.u32(lpn).u32(object);
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
                    if from_first < end.wrapping_sub(number) {
                        let (lpn, object, stamp) = history.entry(number.wrapping_add(from_first));
                        out.u32(lpn).u32(object).u64(stamp);
                    } else {
                        out.u32(0).u32(0).u64(0);
                    }
                }
            }
        }
    }
}

fn block_row<M: Medium>(layer: &dyn Layer<M>, block: u32, out: &mut Writer<'_>) {
    let core = layer.core();
    let life = core.flash().lives[block as usize];
    let (state, stream) = match core.blocks().records()[block as usize].state {
        State::Free => (0, 0),
        State::Open => (2, core.stream_of(block).map_or(0, |s| s as u8)),
        State::Sealed | State::Collecting | State::Erasing | State::Retired => (1, 0),
    };
    out.u8(state).u8(stream).u16(0).u32(life.erases);
    out.u64(life.opening).u32(life.taken).u32(0);
}
