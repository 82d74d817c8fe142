//! A unit with its record: reading both from a medium, and judging whether they hold.
//!
//! However a unit is read, it is verified by the same three questions: is its record of its block's generation
//! (`own_record`), does it say what the map means (`Proof`), and do the data agree with it (`Units::verify`).

use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes};
use flashlore_flash::{Lpn, PageId, Ppn};
use flashlore_medium::Medium;

use crate::error::NandError;
use crate::format::record::RECORD_BYTES;
use crate::format::{Areas, Identity, Record, Slot, UnitKind};
use crate::values::{Ahead, PackedValue};

/// A unit with its record.
#[derive(Debug, Clone)]
pub struct StoredUnit {
    /// What is known of it.
    pub record: Record,
    /// Its content.
    pub bytes: Arc<PageBytes>,
    /// The encoded values of a packed unit that is not programmed yet, in place of its content.
    pub(crate) values: Option<Arc<[Arc<PackedValue>]>>,
    /// What the content is in fewer bytes, if that was found before it is written.
    pub(crate) ahead: Option<Arc<Ahead>>,
}

impl StoredUnit {
    pub(crate) fn new(record: Record, bytes: Arc<PageBytes>) -> Self {
        StoredUnit {
            record,
            bytes,
            values: None,
            ahead: None,
        }
    }

    /// In place of one that cannot be read any more.
    pub(crate) fn lost(write_seq: u64, lpn: Lpn) -> Self {
        let record = Record {
            kind: UnitKind::Lost,
            lpn,
            write_seq,
            stamp: 0,
            digest: Default::default(),
        };
        StoredUnit::new(record, Arc::new([0; PAGE_BYTES]))
    }
}

/// A unit in one generation of its block: never the same again once the block is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct UnitPlace {
    pub generation: u64,
    pub ppn: Ppn,
}

/// What a unit must say of itself to be the one that the map means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The address it was written to: a plain volume knows no more.
    Lpn(Lpn),
    /// The number of the write.
    WriteSeq(u64),
    /// That it holds packed values: it has no identity of its own, its values have.
    Packed,
    /// The lower half of the digest of its data: who knows that needs no record.
    Content(u64),
}

impl Proof {
    pub fn holds(self, record: &Record) -> bool {
        match (self, record.kind) {
            (Proof::Packed, kind) => kind != UnitKind::Data,
            (_, UnitKind::Packed) => false,
            (Proof::Lpn(lpn), _) => record.lpn == lpn,
            // One that was lost with its record has lost its write sequence number too.
            (Proof::WriteSeq(_), UnitKind::Lost) if record.write_seq == 0 => true,
            (Proof::WriteSeq(write_seq), _) => record.write_seq == write_seq,
            (Proof::Content(check), _) => record.digest.0 as u64 == check,
        }
    }

    /// Whether the data alone show that it holds.
    pub fn is_of_content(self) -> bool {
        matches!(self, Proof::Content(_))
    }
}

/// Units that are read at once.
pub(crate) const MOST_RUN: usize = 16;
/// The sectors that hold their records: the longest sector has 4096 bytes.
const MOST_RECORD_BYTES: usize = 8192;

/// Why a unit cannot be read.
const NO_RECORD: &str = "its record is missing";
const BROKEN_RECORD: &str = "the checksum of its record does not hold";
const BROKEN_DATA: &str = "the checksum of its data does not hold";
pub(crate) const LOST: &str = "its content was lost before it was copied here";
pub(crate) const ELSEWHERE: &str = "it holds another write than the map means";

/// The units of a volume.
pub(crate) struct Units<'a> {
    pub medium: &'a dyn Medium,
    pub areas: &'a Areas,
    pub id: &'a Identity,
}

impl Units<'_> {
    /// Reads a unit of a block's generation and compares it with its record.
    pub fn read(&self, ppn: Ppn, generation: u64) -> Result<StoredUnit, NandError> {
        let rot = |why| NandError::Rot { ppn, why };
        let record = own_record(self.record(ppn, generation)?, generation).map_err(rot)?;
        if record.kind == UnitKind::Lost {
            return Err(rot(LOST));
        }
        let mut bytes = Arc::new([0; PAGE_BYTES]);
        if let Some(space) = Arc::get_mut(&mut bytes) {
            self.medium.read(self.areas.unit(ppn), space)?;
        }
        self.verify(&record, &*bytes).map_err(rot)?;
        Ok(StoredUnit::new(record, bytes))
    }

    /// The record of a unit of a block's generation in the bytes of its flash page, if the data there are what it says;
    /// otherwise what does not hold.
    pub fn held_in(&self, page: &[u8], ppn: Ppn, generation: u64) -> Result<Record, &'static str> {
        let found = read_slot(page, self.areas, self.id, ppn);
        let record = own_record(found, generation)?;
        self.verify(&record, &page[self.areas.data_in_page(ppn)])?;
        Ok(record)
    }

    /// Reads the data of a unit without its record, to be judged by their digest, which is known.
    pub fn read_data(&self, ppn: Ppn) -> Result<StoredUnit, NandError> {
        let mut bytes = Arc::new([0; PAGE_BYTES]);
        if let Some(space) = Arc::get_mut(&mut bytes) {
            self.medium.read(self.areas.unit(ppn), space)?;
        }
        let record = Record {
            kind: UnitKind::Data,
            lpn: Lpn::NONE,
            write_seq: 0,
            stamp: 0,
            digest: self.id.key.digest(&bytes),
        };
        Ok(StoredUnit::new(record, bytes))
    }

    /// Whether the data of a unit are what its record says; otherwise what does not hold.
    pub fn verify(&self, record: &Record, data: &[u8]) -> Result<(), &'static str> {
        if record.kind == UnitKind::Lost {
            return Err(LOST);
        }
        let digest = data.first_chunk().map(|data| self.id.key.digest(data));
        match digest == Some(record.digest) {
            true => Ok(()),
            false => Err(BROKEN_DATA),
        }
    }

    /// Reads at most [`MOST_RUN`] units that lie side by side in a flash page, and compares each with its record, and
    /// that with what it must say.
    pub fn read_run(
        &self,
        first: Ppn,
        generation: u64,
        proofs: impl Iterator<Item = Proof> + Clone,
        bytes: &mut [u8],
    ) -> Result<(), NandError> {
        self.medium.read(self.areas.unit(first), bytes)?;
        if proofs.clone().all(Proof::is_of_content) {
            return self.prove_run(first, proofs, bytes);
        }
        let count = bytes.len() / PAGE_BYTES;
        let alignment = self.id.alignment as usize;
        let within = self.areas.record_in_page(first).start - self.areas.page_data;
        let start = within / alignment * alignment;
        let end = (within + count * RECORD_BYTES).next_multiple_of(alignment);
        let mut sectors = [0; MOST_RECORD_BYTES];
        let records = &mut sectors[..end - start];
        let at = self.areas.records(self.areas.page_of(first)) + start as u64;
        self.medium.read(at, records)?;
        let records = records[within - start..].as_chunks::<RECORD_BYTES>().0;
        let units = bytes.as_chunks::<PAGE_BYTES>().0.iter();
        let ppns = (first.0..).map(Ppn);
        for (((ppn, unit), record), proof) in ppns.zip(units).zip(records).zip(proofs) {
            let record = own_record(Slot::decode(record, &self.id.key, ppn), generation);
            let holds = |record| proof.holds(record) && self.verify(record, unit).is_ok();
            if !record.as_ref().is_ok_and(holds) {
                let why = "it is not what its record says, or was moved";
                return Err(NandError::Rot { ppn, why });
            }
        }
        Ok(())
    }

    /// Compares data that lie side by side with their digests.
    fn prove_run(
        &self,
        first: Ppn,
        proofs: impl Iterator<Item = Proof>,
        bytes: &[u8],
    ) -> Result<(), NandError> {
        let units = bytes.as_chunks::<PAGE_BYTES>().0.iter();
        for ((ppn, unit), proof) in (first.0..).map(Ppn).zip(units).zip(proofs) {
            if proof != Proof::Content(self.id.key.digest(unit).0 as u64) {
                let why = "its data are not what was written, or it was moved";
                return Err(NandError::Rot { ppn, why });
            }
        }
        Ok(())
    }

    /// Reads a flash page with its records. Of a page that cannot be read whole, each unit and each
    /// part of the record area that cannot be read is zero.
    pub fn read_page(&self, page: PageId, bytes: &mut [u8]) {
        let start = self.areas.page(page);
        if self.medium.read(start, bytes).is_ok() {
            return;
        }
        let (data, records) = bytes.split_at_mut(self.areas.page_data);
        let units = data.chunks_mut(PAGE_BYTES);
        let mut at = start;
        for piece in units.chain(records.chunks_mut(self.id.alignment as usize)) {
            if self.medium.read(at, piece).is_err() {
                piece.fill(0);
            }
            at += piece.len() as u64;
        }
    }

    /// Reads the record of a unit; one of another generation counts as missing.
    pub fn record(&self, ppn: Ppn, generation: u64) -> Result<Slot, NandError> {
        let alignment = self.id.alignment as usize;
        let within = self.areas.record_in_page(ppn).start - self.areas.page_data;
        let start = within / alignment * alignment;
        let mut sector = [0; 4096];
        let at = self.areas.records(self.areas.page_of(ppn)) + start as u64;
        self.medium.read(at, &mut sector[..alignment])?;
        let bytes = &sector[within - start..within - start + RECORD_BYTES];
        Ok(match Slot::decode(bytes, &self.id.key, ppn) {
            Slot::Record(placed) if placed.generation != generation => Slot::Empty,
            other => other,
        })
    }
}

/// The record of a unit, if it is one of a generation of its block; otherwise what does not hold.
pub(crate) fn own_record(found: Slot, generation: u64) -> Result<Record, &'static str> {
    match found {
        Slot::Record(placed) if placed.generation == generation => Ok(placed.record),
        Slot::Record(_) | Slot::Empty => Err(NO_RECORD),
        Slot::Broken => Err(BROKEN_RECORD),
    }
}

/// The record of a unit in the bytes of its page.
pub(crate) fn read_slot(page: &[u8], areas: &Areas, id: &Identity, ppn: Ppn) -> Slot {
    Slot::decode(&page[areas.record_in_page(ppn)], &id.key, ppn)
}
