//! A medium that stores no data: pages that follow from 8 bytes ([`Pattern`]) are noted by these, and everything else lies
//! on a real medium. So a test can fill a volume of 1 TiB on a machine that has room for its records and tables.
//!
//! ```text
//! block of 4096 bytes     side table, 8 bytes a block
//! a pattern               its seed
//! zeros                   all ones
//! anything else           0: the medium below has it
//! ```
//! Invariants:
//!
//! - What is read is what was written. A page is noted only if every byte of it follows from what is noted.
//! - A block that is noted and then written in part is first written whole to the medium below, unless it can be noted
//!   again afterwards.
//! - The medium below changes before the side table forgets. A process that is killed in between leaves the block as it
//!   was.
//! - Calls run beside each other. Only who writes a part of a block that is noted, or zeros to a part of a block, is
//!   alone among those who change something.
//!
//! What is elided are whole blocks at multiples of 4096. Flash pages of a volume with an alignment of 4096 lie so; those
//! with a finer one are brought there by [`crate::Parted`].
//!
//! A write that finds nothing noted and nothing to note is one call below, and so is such a read. Otherwise each run of
//! blocks that are not noted is one.
//!
//! The side table is in memory, or in a file. After the process is killed the medium can be made again from the medium below
//! and the file: both hold all that was written, as far as the kernel has it. Nothing is promised beyond that: a sync
//! is passed on to the medium below and the side table does not take part in it.

mod table;

use std::ops::Range;
#[cfg(target_os = "linux")]
use std::path::Path;

use parking_lot::RwLock;

use crate::buffer::AlignedBuf;
use crate::error::{Cause, MediumError, Operation};
use crate::medium::{Medium, check};
use crate::pattern::{PATTERN_BYTES, Pattern};

use table::SideTable;

const BLOCK: u64 = PATTERN_BYTES as u64;
/// What stands in the side table for a block that the medium below has.
const BELOW: u64 = 0;
/// What stands in the side table for a block of zeros. No pattern has this seed.
const ZEROS: u64 = u64::MAX;
/// Notes of a call that need no memory of their own.
const FEW: usize = 64;

/// A medium that notes pages which are patterns or zeros, and has everything else on the medium below.
#[derive(Debug)]
pub struct Elided<M> {
    inner: M,
    table: SideTable,
    /// Blocks that can be noted: what is behind the last whole one cannot.
    blocks: u64,
    /// Held alone by who takes a block from the side table to change a part of it.
    changes: RwLock<()>,
}

impl<M: Medium> Elided<M> {
    /// A medium that takes what is below as it is. Its side table is in memory, and takes that as blocks are noted for the
    /// first time: 32 KiB for each 16 MiB of the medium that have any, and 1 MiB for each TiB of the medium.
    ///
    /// # Errors
    /// The medium below asks for an alignment of more than 4096 bytes.
    pub fn new(inner: M) -> Result<Self, MediumError> {
        let blocks = whole_blocks(&inner)?;
        Ok(Elided::with_table(
            inner,
            SideTable::in_memory(blocks),
            blocks,
        ))
    }

    /// As [`Elided::new`], with the side table in a new file, which is sparse. A TiB of the medium needs 2 GiB there at
    /// most. The process needs no memory for it: the file is read and written through the page cache of the kernel, which
    /// gives it back when memory is short.
    ///
    /// # Errors
    /// The medium below asks for an alignment of more than 4096 bytes, the file exists, or the file system refuses.
    #[cfg(target_os = "linux")]
    pub fn create(inner: M, table: impl AsRef<Path>) -> Result<Self, MediumError> {
        let blocks = whole_blocks(&inner)?;
        let table = SideTable::create(table.as_ref(), inner.len())?;
        Ok(Elided::with_table(inner, table, blocks))
    }

    /// The medium that was made of the medium below and this side table. They must be those that belong together: only
    /// their lengths are compared.
    ///
    /// # Errors
    /// The medium below asks for an alignment of more than 4096 bytes; the file cannot be read, is in use, is no side
    /// table, or is one of a medium of another length.
    #[cfg(target_os = "linux")]
    pub fn open(inner: M, table: impl AsRef<Path>) -> Result<Self, MediumError> {
        let blocks = whole_blocks(&inner)?;
        let table = SideTable::open(table.as_ref(), inner.len())?;
        Ok(Elided::with_table(inner, table, blocks))
    }

    fn with_table(inner: M, table: SideTable, blocks: u64) -> Self {
        Elided {
            inner,
            table,
            blocks,
            changes: RwLock::default(),
        }
    }

    /// The medium below.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// Blocks of 4096 bytes that are noted now, found by looking at the whole side table.
    ///
    /// # Errors
    /// The file of the side table cannot be read.
    pub fn elided_blocks(&self) -> Result<u64, MediumError> {
        self.table.count()
    }

    /// Fills `bytes` with those of a noted block from `within` on.
    fn make(
        &self,
        block: u64,
        note: u64,
        within: usize,
        bytes: &mut [u8],
    ) -> Result<(), MediumError> {
        if note == ZEROS {
            bytes.fill(0);
            return Ok(());
        }
        let pattern = Pattern::from_seed(note).ok_or_else(|| self.table.no_note(block, note))?;
        match bytes.first_chunk_mut() {
            Some(page) => pattern.fill(page),
            None => bytes.copy_from_slice(&pattern.page()[within..within + bytes.len()]),
        }
        Ok(())
    }

    /// The notes of the blocks that a range touches; one that cannot be noted is below.
    fn notes<'a>(
        &self,
        touched: &Touched,
        few: &'a mut [u64; FEW],
        many: &'a mut Vec<u64>,
    ) -> Result<&'a [u64], MediumError> {
        let notes = room(touched.blocks(), few, many);
        let known = touched
            .blocks()
            .min((self.blocks - touched.first.min(self.blocks)) as usize);
        self.table.load(touched.first, &mut notes[..known])?;
        Ok(notes)
    }

    /// Writes a part of a block so that it needs not be written any more, if the block is noted or can be noted now. Nobody
    /// else changes anything meanwhile. Whether it did.
    fn write_part(&self, block: u64, within: usize, bytes: &[u8]) -> Result<bool, MediumError> {
        let at = block * BLOCK;
        let mut note = [BELOW];
        self.table.load(block, &mut note)?;
        let [note] = note;
        let mut buffer = AlignedBuf::zeroed(PATTERN_BYTES);
        let page: &mut [u8; PATTERN_BYTES] = buffer.first_chunk_mut().expect("a page");
        if note != BELOW {
            self.make(block, note, 0, page)?;
        } else if !is_zero(bytes) || self.inner.read(at, page).is_err() {
            return Ok(false);
        }
        page[within..within + bytes.len()].copy_from_slice(bytes);
        let new = note_of(page);
        if note == BELOW && new == BELOW {
            return Ok(false);
        }
        if new == BELOW {
            self.inner.write(at, page)?;
        }
        if new != note {
            self.table.store(block, &[new])?;
        }
        Ok(true)
    }

    /// Whether a part of a block must be written by [`Elided::write_part`].
    fn needs_care(&self, part: &PartOfBlock, buf: &[u8]) -> Result<bool, MediumError> {
        let mut note = [BELOW];
        self.table.load(part.block, &mut note)?;
        Ok(note != [BELOW] || is_zero(&buf[part.bytes.clone()]))
    }

    /// Writes whole blocks, and at both ends parts of blocks that are not noted: these stay as they are, for another call
    /// may note them meanwhile.
    fn write_through(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        let touched = Touched::new(offset, buf.len());
        let whole = touched.whole(self.blocks);
        let (mut few, mut many) = ([BELOW; FEW], Vec::new());
        let notes = room(whole.len(), &mut few, &mut many);
        let write = |from: usize, to: usize| match from < to {
            true => self.inner.write(offset + from as u64, &buf[from..to]),
            false => Ok(()),
        };
        let mut below = 0;
        let begin = touched.bytes(whole.start).start;
        let pages = buf[begin..].as_chunks().0;
        for ((index, note), page) in whole.clone().zip(&mut *notes).zip(pages) {
            *note = note_of(page);
            if *note != BELOW {
                let bytes = touched.bytes(index);
                write(below, bytes.start)?;
                below = bytes.end;
            }
        }
        write(below, buf.len())?;
        let first = touched.first + whole.start as u64;
        match notes.iter().all(|&note| note == BELOW) {
            true => self.table.clear(first, notes.len() as u64),
            false => self.table.store(first, notes),
        }
    }
}

impl<M: Medium> Medium for Elided<M> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        check(self, Operation::Read, offset, buf.len() as u64)?;
        if buf.is_empty() {
            return Ok(());
        }
        let touched = Touched::new(offset, buf.len());
        let (mut few, mut many) = ([BELOW; FEW], Vec::new());
        let notes = self.notes(&touched, &mut few, &mut many)?;
        let mut below = 0;
        for (index, &note) in notes.iter().enumerate() {
            if note == BELOW {
                continue;
            }
            let bytes = touched.bytes(index);
            if below < bytes.start {
                self.inner
                    .read(offset + below as u64, &mut buf[below..bytes.start])?;
            }
            below = bytes.end;
            let within = touched.within(index);
            self.make(touched.first + index as u64, note, within, &mut buf[bytes])?;
        }
        match below < buf.len() {
            true => self.inner.read(offset + below as u64, &mut buf[below..]),
            false => Ok(()),
        }
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        check(self, Operation::Write, offset, buf.len() as u64)?;
        if buf.is_empty() {
            return Ok(());
        }
        let [head, tail] = Touched::new(offset, buf.len()).edges(self.blocks);
        let parts = || head.iter().chain(&tail);
        let shared = self.changes.read();
        let mut care = false;
        for part in parts() {
            care = care || self.needs_care(part, buf)?;
        }
        if !care {
            return self.write_through(offset, buf);
        }
        drop(shared);
        let _alone = self.changes.write();
        let mut rest = 0..buf.len();
        for part in parts() {
            let PartOfBlock { block, within, .. } = *part;
            if self.write_part(block, within, &buf[part.bytes.clone()])? {
                match part.bytes.start == rest.start {
                    true => rest.start = part.bytes.end,
                    false => rest.end = part.bytes.start,
                }
            }
        }
        match rest.is_empty() {
            true => Ok(()),
            false => self.write_through(offset + rest.start as u64, &buf[rest]),
        }
    }

    /// Passed on as it is. Blocks that it covers are not noted any more; one of which it covers a part keeps its content.
    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let _shared = self.changes.read();
        self.inner.discard(offset, len)?;
        let first = offset.div_ceil(BLOCK);
        let behind = ((offset + len) / BLOCK).min(self.blocks);
        match first < behind {
            true => self.table.clear(first, behind - first),
            false => Ok(()),
        }
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.inner.sync()
    }
}

/// Blocks of a medium that can be noted, if it can be written in blocks at all.
fn whole_blocks(inner: &impl Medium) -> Result<u64, MediumError> {
    let alignment = inner.alignment();
    let most = PATTERN_BYTES as u32;
    if alignment > most {
        let cause = Cause::TooCoarse { alignment, most };
        return Err(MediumError::at(Operation::Open, 0, inner.len(), cause));
    }
    Ok(inner.len() / BLOCK)
}

/// What stands in the side table for a page.
fn note_of(page: &[u8; PATTERN_BYTES]) -> u64 {
    match Pattern::of(page) {
        Some(pattern) => pattern.seed(),
        None if is_zero(page) => ZEROS,
        None => BELOW,
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    let (pieces, rest) = bytes.as_chunks::<64>();
    pieces.iter().all(|piece| *piece == [0; 64]) && rest.iter().all(|&byte| byte == 0)
}

/// Room for so many notes, all of blocks that the medium below has.
fn room<'a>(count: usize, few: &'a mut [u64; FEW], many: &'a mut Vec<u64>) -> &'a mut [u64] {
    match few.get_mut(..count) {
        Some(few) => few,
        None => {
            many.resize(count, BELOW);
            many
        }
    }
}

/// The blocks that a range of at least one byte touches.
struct Touched {
    first: u64,
    /// Bytes of the first one before the range.
    skipped: usize,
    bytes: usize,
}

/// A part of a block that a range ends or begins with.
struct PartOfBlock {
    block: u64,
    /// Where it begins in the block.
    within: usize,
    /// Which bytes of the range it is.
    bytes: Range<usize>,
}

impl Touched {
    fn new(offset: u64, bytes: usize) -> Self {
        Touched {
            first: offset / BLOCK,
            skipped: (offset % BLOCK) as usize,
            bytes,
        }
    }

    fn blocks(&self) -> usize {
        (self.skipped + self.bytes).div_ceil(PATTERN_BYTES)
    }

    /// The bytes of the range that lie in its block of this index.
    fn bytes(&self, index: usize) -> Range<usize> {
        let start = index * PATTERN_BYTES;
        let end = start + PATTERN_BYTES - self.skipped;
        let start = start.saturating_sub(self.skipped);
        start.min(self.bytes)..end.min(self.bytes)
    }

    /// How many blocks from the first one on can be noted, of which the medium has so many.
    fn notable(&self, blocks: u64) -> usize {
        usize::try_from(blocks.saturating_sub(self.first)).unwrap_or(usize::MAX)
    }

    /// The indexes of the blocks that it covers, of those that can be noted.
    fn whole(&self, blocks: u64) -> Range<usize> {
        let start = usize::from(self.skipped > 0);
        let end = (self.skipped + self.bytes) / PATTERN_BYTES;
        start..end.min(self.notable(blocks)).max(start)
    }

    /// Where these begin in their block.
    fn within(&self, index: usize) -> usize {
        match index {
            0 => self.skipped,
            _ => 0,
        }
    }

    /// The blocks at both ends of which the range has a part only, of those that can be noted.
    fn edges(&self, notable: u64) -> [Option<PartOfBlock>; 2] {
        let last = self.blocks() - 1;
        let part = |index: usize| {
            let part = PartOfBlock {
                block: self.first + index as u64,
                within: self.within(index),
                bytes: self.bytes(index),
            };
            (part.bytes.len() < PATTERN_BYTES && part.block < notable).then_some(part)
        };
        [part(0), part(last).filter(|_| last > 0)]
    }
}
