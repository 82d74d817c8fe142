//! Writing the journal: entries gather in memory and leave in batches, each chained to the one before.
//!
//! Invariants: `offset` is where the next batch goes; `chain` is the checksum of the batch before it,
//! so that a batch of a life that was cut off never continues a later one.

use flashlore_content::VolumeKey;
use flashlore_medium::{AlignedBuf, Medium, MediumError};

use crate::format::journal::ENTRY_BYTES;
use crate::format::journal::JournalValue;
use crate::format::mark::{DurableMark, MARK_BYTES};
use crate::format::packed::Head;
use crate::format::{Areas, Batch, Identity, JournalEntry, Naming};

/// Entries of a batch at most.
pub(crate) const MOST_ENTRIES: usize = 2048;
/// What a batch takes of its segment at most: one in so many bytes.
const BATCH_SHARE: u64 = 8;

/// Where the journal goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The checkpoint the segment follows.
    pub segment: u64,
    /// Where in the segment the next batch goes, in bytes.
    pub offset: u64,
    /// Checksum of the batch before it.
    pub chain: u64,
}

impl Position {
    pub fn start(segment: u64) -> Self {
        Position {
            segment,
            offset: 0,
            chain: 0,
        }
    }
}

/// The end of the journal.
pub(crate) struct Journal {
    position: Position,
    entries: Vec<JournalEntry>,
    values: Vec<JournalValue>,
    value_bytes: usize,
    buffer: AlignedBuf,
    key: VolumeKey,
    naming: Naming,
    /// The last event before the present epoch.
    after: u64,
    alignment: usize,
    capacity: u64,
    /// Entries that fill a batch.
    full: usize,
}

/// Why a batch was not written.
pub(crate) enum JournalError {
    /// The segment has no room for it.
    Full,
    /// The medium refused.
    Medium(MediumError),
}

impl Journal {
    pub fn new(id: &Identity, position: Position, after: u64) -> Self {
        Journal {
            position,
            entries: Vec::new(),
            values: Vec::new(),
            value_bytes: 0,
            buffer: AlignedBuf::new(),
            key: id.key,
            naming: id.naming(),
            after,
            alignment: id.alignment as usize,
            capacity: id.journal_bytes - MARK_BYTES,
            full: MOST_ENTRIES.min((id.journal_bytes / BATCH_SHARE) as usize / ENTRY_BYTES),
        }
    }

    /// A checkpoint holds all that has gathered.
    pub fn forget(&mut self) {
        self.entries.clear();
        self.values.clear();
        self.value_bytes = 0;
    }

    /// Goes on at the start of the segment that follows a checkpoint.
    pub fn restart(&mut self, checkpoint: u64) {
        self.position = Position::start(checkpoint);
    }

    /// The checkpoint that the segment in use follows.
    pub fn segment(&self) -> u64 {
        self.position.segment
    }

    pub fn push(&mut self, entry: JournalEntry) {
        self.entries.push(entry);
    }

    /// Adds an encoded value that waits in RAM.
    pub fn push_value(&mut self, head: Head, bytes: &[u8]) {
        self.value_bytes += self.naming.head_bytes() + bytes.len();
        self.values.push(JournalValue {
            head,
            bytes: bytes.into(),
        });
    }

    /// Whether a batch should be written before more entries gather.
    pub fn is_due(&self) -> bool {
        self.entries.len() >= self.full
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.values.is_empty()
    }

    /// Whether one part in so many of the segment is in use. Half is left free: what one call may add must always fit.
    pub fn is_full_to(&self, part: u64) -> bool {
        let waiting = Batch::bytes(self.entries.len(), self.value_bytes, self.alignment) as u64;
        (self.position.offset + waiting) * part > self.capacity
    }

    /// Says, in the segment that is not in use, how much is durable.
    pub fn write_mark(
        &mut self,
        medium: &dyn Medium,
        areas: &Areas,
        epoch: u32,
        durable: u64,
    ) -> Result<(), MediumError> {
        let checkpoint = self.position.segment;
        let mark = DurableMark {
            epoch,
            checkpoint,
            durable,
        };
        self.buffer.resize(self.alignment);
        mark.encode(&self.key, self.capacity, &mut self.buffer);
        medium.write(areas.journal(checkpoint + 1) + self.capacity, &self.buffer)
    }

    /// Writes what has gathered, or an empty batch that only says that the segment has begun.
    pub fn write(
        &mut self,
        medium: &dyn Medium,
        areas: &Areas,
        epoch: u32,
        durable: u64,
    ) -> Result<(), JournalError> {
        let bytes = Batch::bytes(self.entries.len(), self.value_bytes, self.alignment);
        if self.position.offset + bytes as u64 > self.capacity {
            return Err(JournalError::Full);
        }
        let batch = Batch {
            segment: self.position.segment,
            durable,
            chain: self.position.chain,
            epoch,
            after: self.after,
            entries: std::mem::take(&mut self.entries),
            values: std::mem::take(&mut self.values),
            naming: self.naming,
        };
        self.buffer.resize(bytes);
        let chain = batch.encode(&self.key, self.position.offset, &mut self.buffer);
        let at = areas.journal(self.position.segment) + self.position.offset;
        medium
            .write(at, &self.buffer)
            .map_err(JournalError::Medium)?;
        self.position.offset += bytes as u64;
        self.position.chain = chain;
        self.entries = batch.entries;
        self.entries.clear();
        self.value_bytes = 0;
        Ok(())
    }
}
