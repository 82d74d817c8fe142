//! Room in the log: checkpoints that make old segments unneeded, and cleaning of those in which little lives.
//!
//! Invariant: between requests there are at least `reserve` free segments, which is enough for the largest group
//! that a request can lead to and for one step of cleaning. So a group never finds the log too small, and what
//! cannot be stored is refused before anything is changed.

use std::collections::BTreeSet;

use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::commit::{Extra, place_of};
use crate::icash::format::block::{RECORD_BYTES, ROOM};
use crate::icash::format::{Block, Record, RecordKind, Shape};
use crate::icash::log::{Recorded, Unpacked};
use crate::icash::parameters::{BLOCK_BYTES, Options};
use crate::icash::place::LogPlace;
use crate::icash::state::ICash;
use crate::index::{ArrayBlock, LogSegment};

/// Segments that cleaning makes free beyond the reserve when it begins.
const AHEAD: u32 = 2;

/// Segments that must be free before a request.
fn reserve(segment_blocks: u32, journal_blocks: u32, options: &Options) -> u32 {
    // Two blocks in sequence hold more than one block's worth of records; a request adds at most a whole block.
    let homes = options.write_back_batch.max(journal_blocks as usize) * RECORD_BYTES / ROOM + 1;
    let blocks = 2 * u64::from(options.flush_blocks) + homes as u64 + 6;
    // One block of a segment may stay empty. One segment more for the reserved one, and two for a step of cleaning.
    let segments = blocks.div_ceil(u64::from(segment_blocks).saturating_sub(1).max(1)) + 3;
    segments.min(u64::from(u32::MAX / 2)) as u32
}

impl Options {
    /// Segments, each of so many blocks, that a log must have for an element to be opened with these options, if its
    /// journal has so many blocks.
    pub fn least_log_segments(&self, segment_blocks: u32, journal_blocks: u32) -> u32 {
        // Besides the reserve the head, the segment reserved behind it, and two that can be cleaned.
        reserve(segment_blocks, journal_blocks, self) + AHEAD + 4
    }
}

/// Refuses options that need more reserve than the log has room for.
pub(super) fn validate(shape: &Shape, options: &Options) -> Result<(), ArrayError> {
    let needed = options.least_log_segments(shape.segment_blocks, shape.journal_blocks);
    if needed > shape.log_segments {
        return Err(ArrayError::Shape(format!(
            "a log of {} segments of {} blocks is too small for flush_blocks = {} and write_back_batch = {}, expected \
             {needed} segments",
            shape.log_segments,
            shape.segment_blocks,
            options.flush_blocks,
            options.write_back_batch
        )));
    }
    Ok(())
}

impl ICash {
    /// Makes enough segments of the log free, if there are not.
    pub(super) fn keep_room(&mut self) -> Result<(), ArrayError> {
        self.refuse_if_stopped()?;
        if self.cleaning.is_some() && self.has_log_room(0) {
            return Ok(());
        }
        while self.room_step()? {}
        Ok(())
    }

    /// Takes a checkpoint if a recovery would read half of the log or much of the table waits for one, and cleans a segment
    /// if there is too little room or cleaning goes on; false if there is nothing to do.
    pub(super) fn room_step(&mut self) -> Result<bool, ArrayError> {
        self.refuse_if_stopped()?;
        if self.table.is_checkpoint_due() {
            self.write_checkpoint()?;
        }
        if self.space.needed().len() as u32 > self.shape.log_segments / 2 {
            self.take_checkpoint()?;
        }
        let round = match self.cleaning.take() {
            None if self.has_log_room(0) => return Ok(false),
            round => round.unwrap_or(0),
        };
        self.take_checkpoint()?;
        if self.has_log_room(AHEAD) {
            return Ok(false);
        }
        let segments = u64::from(self.shape.log_segments);
        match self.space.victim().filter(|_| round < 2 * segments) {
            Some(victim) => {
                // Where moving does not gain enough, everything goes home in the end.
                self.clean(victim, round < segments)?;
                self.cleaning = Some(round + 1);
                Ok(true)
            }
            None if self.has_log_room(0) => Ok(false),
            None => Err(ArrayError::NoRoom(
                "what the log holds can neither be moved nor be written home",
            )),
        }
    }

    /// Whether [`ICash::room_step`] has something to do.
    pub(super) fn is_room_due(&self) -> bool {
        self.cleaning.is_some()
            || !self.has_log_room(0)
            || self.table.is_checkpoint_due()
            || self.space.needed().len() as u32 > self.shape.log_segments / 2
    }

    /// Whether so many segments beyond the reserve are free.
    pub(super) fn has_log_room(&self, beyond: u32) -> bool {
        let reserve = reserve(
            self.shape.segment_blocks,
            self.shape.journal_blocks,
            &self.options,
        );
        self.space.free().len() as u32 >= reserve + beyond
    }

    /// Empties a segment: its records move to the head of the log, or, if that would gain little, their blocks go
    /// home.
    fn clean(&mut self, segment: LogSegment, may_move: bool) -> Result<(), ArrayError> {
        self.counters.cleaned += 1;
        let live = self.live_records(segment);
        let enough = self.shape.segment_blocks as usize * 3 / 4;
        if may_move && blocks_for(&live) <= enough {
            self.move_records(live)?;
        } else {
            let blocks = live.iter().filter_map(|record| record.of.block());
            let blocks: BTreeSet<ArrayBlock> = blocks.collect();
            self.counters.cleaned_home += blocks.len() as u64;
            self.write_back(&blocks)?;
        }
        if self.space.live_bytes(segment) > 0 {
            self.space.give_up(segment);
        }
        Ok(())
    }

    /// Moves records to the head of the log, in groups of at most half a segment.
    fn move_records(&mut self, live: Vec<Unpacked>) -> Result<(), ArrayError> {
        let most = (self.shape.segment_blocks as usize / 2).max(1);
        let mut group: Vec<Unpacked> = Vec::new();
        for record in live {
            self.counters.moved += 1;
            group.push(record);
            if blocks_for(&group) >= most {
                let moved = std::mem::take(&mut group);
                self.commit_moved(moved)?;
            }
        }
        // What is unrecorded and had its old content here is recorded by this group, even if nothing is moved.
        self.commit_moved(group)
    }

    fn commit_moved(&mut self, moved: Vec<Unpacked>) -> Result<(), ArrayError> {
        self.commit_with(Extra {
            moved,
            ..Extra::default()
        })
    }

    /// The records in a segment that count and whose blocks have nothing unrecorded.
    fn live_records(&mut self, segment: LogSegment) -> Vec<Unpacked> {
        let first = segment.block(0, self.shape.segment_blocks);
        let mut bytes = vec![0; self.shape.segment_blocks as usize * BLOCK_BYTES];
        let offset = self.areas.log_block(first);
        if self.media.read(Device::Slow, offset, &mut bytes).is_err() {
            self.read_block_by_block(offset, &mut bytes);
        }
        let mut live = Vec::new();
        let mut seen = BTreeSet::new();
        let blocks: Vec<&[u8]> = bytes.chunks(BLOCK_BYTES).collect();
        for (position, block) in blocks.iter().enumerate() {
            let number = first + position as u32;
            let Some(parsed) = Block::parse(block, self.tag, number) else {
                continue;
            };
            let mut whole = blocks[position + 1..].iter();
            for (record, offset) in &parsed.records {
                let content = match record.kind {
                    RecordKind::Whole => whole.next().copied(),
                    _ => Some(record.payload),
                };
                let at = LogPlace {
                    // Whole blocks follow in the order of their records.
                    block: match record.kind {
                        RecordKind::Whole => first + (blocks.len() - whole.len() - 1) as u32,
                        _ => number,
                    },
                    offset: offset % BLOCK_BYTES as u16,
                    bytes: record.payload.len() as u16,
                };
                let moved = content.and_then(|content| self.moved(record, at, content));
                live.extend(moved.filter(|moved| seen.insert(moved.of)));
            }
        }
        live
    }

    /// The record to be written again, if it counts and its block has nothing unrecorded. A whole content that does
    /// not hold stays where it is.
    fn moved(&self, record: &Record<'_>, at: LogPlace, content: &[u8]) -> Option<Unpacked> {
        let block = self.addresses.block(record.lba).ok()?;
        let place = place_of(record.kind, record.data, at)?;
        let entry = self.table.get(block);
        let counts =
            place.log().is_some() && entry.place == place && !self.unrecorded.contains(&block);
        let holds = record.kind != RecordKind::Whole || crc32fast::hash(content) == entry.crc;
        (counts && holds).then(|| Unpacked {
            of: Recorded::Block(block),
            lba: record.lba,
            kind: record.kind,
            data: record.data,
            crc: entry.crc,
            payload: content.to_vec(),
        })
    }

    /// Reads what can be read of a range; the rest are zeros.
    fn read_block_by_block(&mut self, offset: u64, bytes: &mut [u8]) {
        for (number, block) in bytes.chunks_mut(BLOCK_BYTES).enumerate() {
            let at = offset + (number * BLOCK_BYTES) as u64;
            if self.media.read(Device::Slow, at, block).is_err() {
                block.fill(0);
            }
        }
    }
}

/// Blocks of the log that records take when they are packed in order.
fn blocks_for(records: &[Unpacked]) -> usize {
    let (mut blocks, mut left) = (0, 0);
    for record in records {
        let is_whole = record.kind == RecordKind::Whole;
        let inside = if is_whole { 0 } else { record.payload.len() };
        let bytes = RECORD_BYTES + inside;
        if bytes > left {
            blocks += 1;
            left = ROOM;
        }
        left -= bytes;
        blocks += usize::from(is_whole);
    }
    blocks
}
