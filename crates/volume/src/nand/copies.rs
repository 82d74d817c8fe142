//! Flash pages that are read to be copied.
//!
//! Whoever asks first reads such a page with the records of all its units, be it the look at a victim before that is
//! emptied or the read of collection itself; it is read once. A unit of it is verified as any unit that is read is:
//! by its record, which must be of its block's generation, say what the map means, and agree with the data. What was
//! found is the content of the copy, and of a read of that unit.
//!
//! Invariants: a page is kept until its block is erased, or a unit of it could not be read: then it is read anew when
//! it is tried again. What was found of a unit stays so for as long.

use std::ops::Range;
use std::sync::Arc;

use flashlore_flash::{BlockId, Lpn, Owner, PageId, Ppn};
use flashlore_medium::AlignedBuf;

use super::Nand;
use crate::format::{Record, UnitKind};
use crate::unit::{StoredUnit, own_record, read_slot};

/// A flash page that was read.
pub(super) struct SensedPage {
    bytes: AlignedBuf,
    /// What was found of its units, once it has been asked for.
    found: Vec<Option<CopyFound>>,
}

/// What of a unit is to be copied.
#[derive(Debug, Clone, Copy)]
pub(super) enum CopyFound {
    /// Record and data hold, and are what the map means.
    Good(Record),
    /// It was lost before it was copied here.
    Lost(Record),
    /// It holds, and is something else: what the map means is nowhere.
    Elsewhere,
    /// It cannot be read, now at least; its record, if that can be, and what does not hold.
    Unreadable(Option<Record>, &'static str),
}

impl Nand {
    /// Reads a flash page whose units are copied, unless it was. What of it cannot be read is zero, and does not verify.
    pub(super) fn sense(&mut self, page: PageId) {
        if self.sensed.contains_key(&page) {
            return;
        }
        let mut bytes = AlignedBuf::zeroed(self.areas.page_stride as usize);
        self.units().read_page(page, &mut bytes);
        let found = vec![None; self.geometry.units_per_page() as usize];
        self.sensed.insert(page, SensedPage { bytes, found });
    }

    /// Nothing of a block is to be copied any more, or not as it was read.
    pub(super) fn forget_sensed(&mut self, block: BlockId) {
        let geometry = &self.geometry;
        self.sensed
            .retain(|&page, _| geometry.block_of_page(page) != block);
    }

    /// What of a unit is to be copied; its flash page is read for that if it was not.
    pub(super) fn find_copy(&mut self, from: Ppn, owner: Owner) -> CopyFound {
        let page = self.geometry.page_of(from);
        self.sense(page);
        let slot = self.slot_of(from);
        if let Some(found) = self.sensed[&page].found[slot] {
            return found;
        }
        let found = self.verify_copy(&self.sensed[&page].bytes, from, owner);
        if let Some(sensed) = self.sensed.get_mut(&page) {
            sensed.found[slot] = Some(found);
        }
        found
    }

    fn verify_copy(&self, page: &[u8], from: Ppn, owner: Owner) -> CopyFound {
        let slot = read_slot(page, &self.areas, &self.id, from);
        // Of an earlier generation: what was to be programmed here never was.
        let record = match own_record(slot, self.generation_of(from)) {
            Ok(record) => record,
            Err(why) => return CopyFound::Unreadable(None, why),
        };
        if !self.proves(owner, &record) {
            return CopyFound::Elsewhere;
        }
        match self
            .units()
            .verify(&record, &page[self.areas.data_in_page(from)])
        {
            Ok(()) => CopyFound::Good(record),
            Err(_) if record.kind == UnitKind::Lost => CopyFound::Lost(record),
            Err(why) => CopyFound::Unreadable(Some(record), why),
        }
    }

    /// A unit of a flash page that was read to be copied, if it is good: it is not read again.
    pub(super) fn sensed_unit(&self, ppn: Ppn) -> Option<StoredUnit> {
        let sensed = self.sensed.get(&self.geometry.page_of(ppn))?;
        match sensed.found[self.slot_of(ppn)] {
            Some(CopyFound::Good(record)) => {
                let bytes = sensed.bytes[self.areas.data_in_page(ppn)].first_chunk()?;
                Some(StoredUnit::new(record, Arc::new(*bytes)))
            }
            _ => None,
        }
    }

    /// Puts what was read of a unit into the page buffer; what cannot be read is given up and marked as lost.
    pub(super) fn copy_in(&mut self, data: Range<usize>, owner: Owner, from: Ppn) -> Record {
        let record = match self.find_copy(from, owner) {
            CopyFound::Good(record) => {
                let sensed = &self.sensed[&self.geometry.page_of(from)];
                let unit = &sensed.bytes[self.areas.data_in_page(from)];
                self.buffer[data].copy_from_slice(unit);
                return record;
            }
            CopyFound::Lost(record) | CopyFound::Unreadable(Some(record), _) => record,
            CopyFound::Elsewhere | CopyFound::Unreadable(None, _) => self.lost_record(owner, from),
        };
        self.buffer[data].fill(0);
        self.lost.push(owner.as_object());
        Record {
            kind: UnitKind::Lost,
            ..record
        }
    }

    /// The record of a unit whose own cannot be read.
    fn lost_record(&self, owner: Owner, from: Ppn) -> Record {
        let young = self.young.in_block(self.geometry.block_of(from));
        let (write_seq, lpn) = match self.write_seq(owner.as_object()) {
            Some(write_seq) => (write_seq, Lpn(0)),
            None => {
                let last = young.iter().rev().find(|y| y.lpn == owner.as_page());
                (last.map_or(0, |y| y.write_seq), owner.as_page())
            }
        };
        let born = young.iter().find(|y| y.write_seq == write_seq);
        Record {
            lpn: born.map_or(lpn, |y| y.lpn),
            write_seq,
            stamp: born.map_or(0, |y| y.stamp),
            kind: UnitKind::Lost,
            digest: Default::default(),
        }
    }

    /// Which unit of its flash page a unit is.
    fn slot_of(&self, ppn: Ppn) -> usize {
        (ppn.0 % self.geometry.units_per_page()) as usize
    }
}
