//! Reading one unit and its record from a medium, and judging whether they hold.

use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::{PageId, Ppn};
use flashlore_medium::Medium;

use crate::fetch::Proof;
use crate::format::record::RECORD_BYTES;
use crate::format::{Areas, Identity, Slot, UnitKind};
use crate::nand::{NandError, StoredUnit};

/// Units that are read at once.
pub(crate) const MOST_RUN: usize = 16;
/// The sectors that hold their records: the longest sector has 4096 bytes.
const MOST_RECORD_BYTES: usize = 8192;

/// Why a unit cannot be read.
pub(crate) const NO_RECORD: &str = "its record is missing";
pub(crate) const BROKEN_RECORD: &str = "the checksum of its record does not hold";
pub(crate) const BROKEN_DATA: &str = "the checksum of its data does not hold";
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
        let record = match self.record(ppn, generation)? {
            Slot::Record(placed) => placed.record,
            Slot::Empty => return Err(rot(NO_RECORD)),
            Slot::Broken => return Err(rot(BROKEN_RECORD)),
        };
        if record.kind == UnitKind::Lost {
            return Err(rot("its content was lost before it was copied here"));
        }
        let mut bytes = Arc::new([0; PAGE_BYTES]);
        if let Some(space) = Arc::get_mut(&mut bytes) {
            self.medium.read(self.areas.unit(ppn), space)?;
        }
        if self.id.key.digest(&bytes) != record.digest {
            return Err(rot(BROKEN_DATA));
        }
        Ok(StoredUnit::new(record, bytes))
    }

    /// Reads at most [`MOST_RUN`] units that lie side by side in a flash page, and compares each with its record, and
    /// that with what it must say.
    pub fn read_run(
        &self,
        first: Ppn,
        generation: u64,
        proofs: impl Iterator<Item = Proof>,
        bytes: &mut [u8],
    ) -> Result<(), NandError> {
        self.medium.read(self.areas.unit(first), bytes)?;
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
            let holds = matches!(Slot::decode(record, &self.id.key, ppn), Slot::Record(placed)
                if placed.generation == generation
                    && placed.record.kind != UnitKind::Lost
                    && proof.holds(&placed.record)
                    && placed.record.digest == self.id.key.digest(unit));
            if !holds {
                let why = "it is not what its record says, or was moved";
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

/// The record of a unit in the bytes of its page.
pub(crate) fn read_slot(page: &[u8], areas: &Areas, id: &Identity, ppn: Ppn) -> Slot {
    Slot::decode(&page[areas.record_in_page(ppn)], &id.key, ppn)
}
