//! Writing the checkpoint tables: dirty pages go to free slots, the root last.
//!
//! Invariants: no slot that the last durable root reaches is written; `free` holds every other slot.

use flashlore_ftl::blocks::State;
use flashlore_medium::{AlignedBuf, Medium};

use crate::dirty::DirtyPages;
use crate::format::cursor::Writer;
use crate::format::tables::{NO_SLOT, SLOTS_PER_DIRECTORY, TABLE_PAGE_BYTES, encode_page};
use crate::format::{Identity, Policy, Root, Table};
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
    buffer: AlignedBuf,
}

impl TableStore {
    /// The tables of a root.
    pub fn new(root: &Root, slots: Vec<u32>, slot_count: u32, mapped: DirtyPages) -> Self {
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
            buffer: AlignedBuf::zeroed(TABLE_PAGE_BYTES),
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
        let mut given_up = Vec::new();
        let mut touched = vec![false; self.directories.len()];
        for table in Table::ALL {
            for page in 0..table.pages(&id) {
                if self.is_dirty(layer, table, page) {
                    let number = table.first_page(&id) + page;
                    let slot = self.take_slot(&mut given_up, number, false)?;
                    touched[(number / SLOTS_PER_DIRECTORY) as usize] = true;
                    encode_page(
                        &id.key,
                        slot,
                        number,
                        checkpoint,
                        |rows| fill(layer, &id, table, page, rows),
                        &mut self.buffer,
                    );
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
        nand.programmed.clear();
        nand.after_checkpoint(checkpoint)
    }

    fn is_dirty<M: Medium>(&self, layer: &dyn Layer<M>, table: Table, page: u32) -> bool {
        let nand = layer.core().flash();
        match (table, nand.id.policy) {
            (Table::Map, Policy::Plain) => {
                nand.located.is_dirty(page) || self.mapped.is_dirty(page)
            }
            (Table::Map, _) => self.mapped.is_dirty(page),
            (Table::Objects, _) => nand.located.is_dirty(page),
            (Table::Blocks, _) => nand.programmed.is_dirty(page),
        }
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
                if id.policy == Policy::DedupTrusted {
                    out.u32(0).u64(object.birth).u128(object.digest.0);
                } else {
                    out.u32(object.digest.0 as u32).u64(object.birth);
                }
            }
            Table::Blocks => block_row(layer, row, &mut out),
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
