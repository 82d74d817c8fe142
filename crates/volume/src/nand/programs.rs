//! Programming flash pages: each leaves with the records of its units in one write.
//!
//! Invariants: a block has a generation of its own from its first page on, which the journal names; a write that the
//! checkpoint does not know is young in the block it comes to lie in.

use std::ops::Range;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::{BlockId, Owned, Owner, PageId, PageInBlock, Ppn, Stream, Unit};

use super::{Nand, write_seq_in};
use crate::error::NandError;
use crate::format::{JournalEntry, PlacedRecord, Record, UnitKind, packed};
use crate::unit::{StoredUnit, UnitPlace};
use crate::young::Young;

impl Nand {
    /// Programs a flash page of a block that a stream fills.
    pub(super) fn program_page(
        &mut self,
        page: PageId,
        units: &[Unit<StoredUnit>],
        stream: Stream,
    ) -> Result<(), NandError> {
        let block = self.geometry.block_of_page(page);
        let within = self.geometry.page_in_block(page);
        if within == PageInBlock(0) {
            self.open(block, stream)?;
        }
        let generation = self.lives[block.index()].generation;
        let first = self.geometry.first_unit_of_page(page);
        // Every unit sets all of its data and its record; what is behind the last record stays zero.
        self.buffer.resize(self.areas.page_stride as usize);
        for (ppn, unit) in (first.0..).map(Ppn).zip(units) {
            self.lay_out(ppn, generation, unit)?;
        }
        let bytes = std::mem::take(&mut self.buffer);
        let written = self.put(self.areas.page(page), &bytes);
        self.buffer = bytes;
        written?;
        self.lives[block.index()].taken = within.0 + 1;
        self.programs += 1;
        self.programmed.mark(block);
        Ok(())
    }

    fn open(&mut self, block: BlockId, stream: Stream) -> Result<(), NandError> {
        debug_assert!(
            !self.pending.contains(&block),
            "block {block} is programmed before the barrier that lets it be erased"
        );
        // What an earlier life left in it names another generation.
        self.kept.retain(|&b| b != block);
        self.generations += 1;
        let life = &mut self.lives[block.index()];
        life.generation = self.generations;
        life.taken = 0;
        let entry = JournalEntry::Open {
            block,
            stream,
            generation: life.generation,
            erases: life.erases,
        };
        self.note(entry)
    }

    /// Lays a unit and its record out in the page buffer.
    fn lay_out(
        &mut self,
        ppn: Ppn,
        generation: u64,
        unit: &Unit<StoredUnit>,
    ) -> Result<(), NandError> {
        let data = self.areas.data_in_page(ppn);
        let (owner, record) = match unit {
            Unit::Pad => {
                self.buffer[data].fill(0);
                self.buffer[self.areas.record_in_page(ppn)].fill(0);
                return Ok(());
            }
            Unit::New { owner, page } => (*owner, self.lay_out_new(data.clone(), *owner, page)),
            Unit::Copy { owner, from } => (*owner, self.copy_in(data.clone(), *owner, *from)),
        };
        let placed = PlacedRecord {
            record,
            generation,
            epoch: self.epoch,
            owner,
        };
        let bytes = placed.encode(&self.id.key, ppn);
        self.buffer[self.areas.record_in_page(ppn)].copy_from_slice(&bytes);
        let place = UnitPlace { generation, ppn };
        if record.kind == UnitKind::Lost && self.bad.insert(place) {
            self.newly_bad.push(ppn);
        }
        let is_new = matches!(unit, Unit::New { .. });
        match self.owned(owner) {
            Owned::Pack(_) => {
                let heads = packed::read(&self.buffer[data]).unwrap_or_default();
                let whole = record.kind == UnitKind::Packed;
                for head in heads.into_iter().filter(|_| whole) {
                    let write = Young {
                        write_seq: head.write_seq,
                        lpn: head.lpn,
                        stamp: head.stamp,
                        object: head.object,
                    };
                    self.note_young(ppn, write, is_new);
                }
            }
            _ => {
                let write = Young {
                    write_seq: record.write_seq,
                    lpn: record.lpn,
                    stamp: record.stamp,
                    object: owner.as_object(),
                };
                self.note_young(ppn, write, is_new);
            }
        }
        Ok(())
    }

    /// A unit holds a write, which is noted if the checkpoint does not know it.
    fn note_young(&mut self, ppn: Ppn, write: Young, is_new: bool) {
        if write.write_seq > self.since {
            self.young.note(self.geometry.block_of(ppn), write, is_new);
        }
    }

    /// Puts new data into the page buffer.
    fn lay_out_new(&mut self, data: Range<usize>, owner: Owner, page: &StoredUnit) -> Record {
        let mut record = page.record;
        match &page.values {
            Some(values) => {
                let zeros = [0; PAGE_BYTES];
                let naming = self.id.naming();
                let tables = &self.tables;
                let write_seq = |object| write_seq_in(tables, object).unwrap_or(0);
                let parts = values.iter().map(|v| v.parts(write_seq, &zeros));
                let parts = parts.map(|(head, bytes)| (self.young.name_lost(head), bytes));
                let space = &mut self.buffer[data];
                space.fill(0);
                record.write_seq = packed::encode(&self.id.key, parts, naming, space);
                if let Some(space) = space.first_chunk() {
                    record.digest = self.id.key.digest(space);
                }
                values.iter().for_each(|value| value.note_safe());
            }
            None if record.kind == UnitKind::Lost => {
                self.buffer[data].fill(0);
                self.lost.push(owner.as_object());
                record.write_seq = self.write_seq(owner.as_object()).unwrap_or(0);
                if let Some(write) = self.young.find(record.write_seq) {
                    (record.lpn, record.stamp) = (write.lpn, write.stamp);
                }
            }
            None => self.buffer[data].copy_from_slice(&*page.bytes),
        }
        record
    }
}
