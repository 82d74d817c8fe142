//! Loading the journal that follows a checkpoint.

use flashlore_flash::BlockId;
use flashlore_medium::{AlignedBuf, Medium};

use crate::error::VolumeError;
use crate::format::journal::{ENTRY_BYTES, HEADER_BYTES};
use crate::format::mark::{DurableMark, MARK_BYTES};
use crate::format::{Areas, Batch, Identity, JournalEntry, Root};
use crate::journal::{MOST_ENTRIES, Position};

/// The journal after a checkpoint.
#[derive(Debug, Clone)]
pub struct JournalTail {
    /// Its batches in order.
    pub batches: Vec<Batch>,
    /// Where it goes on.
    pub(crate) position: Position,
    /// Everything up to this event was durable once.
    pub durable: u64,
    /// The newest epoch that wrote any of it.
    pub epoch: u32,
}

/// Reads the journal that follows a checkpoint, up to the first batch that does not hold.
///
/// # Errors
/// The medium failed, or a later checkpoint has been lost.
pub fn journal(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<JournalTail, VolumeError> {
    refuse_lost_root(medium, id, areas, root)?;
    let mut tail = JournalTail {
        batches: Vec::new(),
        position: Position::start(root.checkpoint),
        durable: root.sequence,
        epoch: root.epoch,
    };
    let base = areas.journal(root.checkpoint);
    let mut window = Window::new(medium, base, id);
    while let Some(bytes) = window.at(tail.position.offset)? {
        let Some((batch, check)) = Batch::decode(bytes, &id.key, tail.position.offset, id.naming())
        else {
            break;
        };
        if batch.segment != root.checkpoint || batch.chain != tail.position.chain {
            break;
        }
        for entry in &batch.entries {
            if let JournalEntry::Open { block, .. } = *entry
                && block >= BlockId(id.blocks)
            {
                return Err(VolumeError::Damaged(format!(
                    "the journal opens block {block}, there are {}",
                    id.blocks
                )));
            }
        }
        tail.durable = tail.durable.max(batch.durable);
        tail.epoch = tail.epoch.max(batch.epoch);
        let length = Batch::bytes(
            batch.entries.len(),
            batch.value_bytes(),
            id.alignment as usize,
        );
        tail.position.offset += length as u64;
        tail.position.chain = check;
        tail.batches.push(batch);
    }
    if let Some(mark) = mark(medium, id, areas, root)? {
        tail.durable = tail.durable.max(mark.durable);
        tail.epoch = tail.epoch.max(mark.epoch);
    }
    // What follows a broken batch cannot be replayed, but may tell that the batch was durable once.
    let mut offset = tail.position.offset;
    while let Some(bytes) = window.at(offset)? {
        if let Some((batch, _)) = Batch::decode(bytes, &id.key, offset, id.naming())
            && batch.segment == root.checkpoint
        {
            tail.durable = tail.durable.max(batch.durable);
            tail.epoch = tail.epoch.max(batch.epoch);
        }
        offset += u64::from(id.alignment);
    }
    Ok(tail)
}

/// How much of the journal after a checkpoint was durable, where that was written apart from it.
fn mark(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<Option<DurableMark>, VolumeError> {
    let offset = id.journal_bytes - MARK_BYTES;
    let mut sector = AlignedBuf::zeroed(id.alignment as usize);
    medium.read(areas.journal(root.checkpoint + 1) + offset, &mut sector)?;
    let mark = DurableMark::decode(&sector, &id.key, offset);
    Ok(mark.filter(|mark| mark.checkpoint == root.checkpoint))
}

/// A root that was written after `root` begins the other journal segment: if that has begun and the
/// later root does not hold, it was lost.
fn refuse_lost_root(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<(), VolumeError> {
    let next = root.checkpoint + 1;
    let mut window = Window::new(medium, areas.journal(next), id);
    let first = window.at(0)?;
    let begun = first
        .and_then(|bytes| Batch::decode(bytes, &id.key, 0, id.naming()))
        .is_some_and(|(batch, _)| batch.segment == next);
    if begun {
        return Err(VolumeError::Damaged(format!(
            "checkpoint {next} was taken, but its root does not hold"
        )));
    }
    Ok(())
}

/// A journal segment, read in large pieces.
struct Window<'a> {
    medium: &'a dyn Medium,
    base: u64,
    len: u64,
    alignment: u64,
    start: u64,
    bytes: AlignedBuf,
}

/// More than the longest batch.
const PIECE: u64 = 1 << 20;
const _: () = assert!(PIECE as usize > 2 * (HEADER_BYTES + MOST_ENTRIES * ENTRY_BYTES));

impl<'a> Window<'a> {
    fn new(medium: &'a dyn Medium, base: u64, id: &Identity) -> Self {
        Window {
            medium,
            base,
            len: id.journal_bytes - MARK_BYTES,
            alignment: u64::from(id.alignment),
            start: 0,
            bytes: AlignedBuf::new(),
        }
    }

    /// The bytes from an offset on, enough for any batch that fits; `None` at the end.
    fn at(&mut self, offset: u64) -> Result<Option<&[u8]>, VolumeError> {
        if offset + self.alignment > self.len {
            return Ok(None);
        }
        let end = self.start + self.bytes.len() as u64;
        let longest = (PIECE / 2).min(self.len - offset);
        if offset < self.start || offset + longest > end {
            self.start = offset;
            self.bytes.resize(PIECE.min(self.len - offset) as usize);
            self.medium.read(self.base + offset, &mut self.bytes)?;
        }
        Ok(Some(&self.bytes[(offset - self.start) as usize..]))
    }
}

/// All entries of a tail.
pub fn entries(tail: &JournalTail) -> impl Iterator<Item = JournalEntry> + '_ {
    tail.batches.iter().flat_map(|b| b.entries.iter().copied())
}
