//! The records of a group to blocks of the log.
//!
//! Records are packed in the order given, as many as fit in a block. A block and the whole blocks that follow it lie
//! in one segment; what is contiguous is one write.

use std::collections::BTreeSet;

use crate::icash::format::block::{BlockBuilder, BlockHead, Record, RecordKind};
use crate::icash::format::root::Head;
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::{DataBlock, LogPlace};
use crate::index::{ArrayBlock, FrozenPlace, LogBlock, LogSegment};

/// What a record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recorded {
    Block(ArrayBlock),
    FrozenPlace(FrozenPlace),
}

impl Recorded {
    /// The block, if it is one.
    pub fn block(self) -> Option<ArrayBlock> {
        match self {
            Recorded::Block(block) => Some(block),
            Recorded::FrozenPlace(_) => None,
        }
    }
}

/// A record to be packed. The payload of a whole block is its content.
#[derive(Debug, Clone)]
pub struct Unpacked {
    pub of: Recorded,
    pub lba: u64,
    pub kind: RecordKind,
    pub data: DataBlock,
    /// CRC-32 of the content.
    pub crc: u32,
    /// The encoded or whole content.
    pub payload: Vec<u8>,
}

/// A group that can be written.
#[derive(Debug)]
pub struct Packed {
    /// Bytes and the block of the log at which they begin.
    pub writes: Vec<(LogBlock, Vec<u8>)>,
    /// Where the content of each record lies, 0 where it has none.
    pub places: Vec<LogPlace>,
    pub head: Head,
    /// Segments it took from the free ones.
    pub taken: Vec<LogSegment>,
    /// Blocks it has, whole ones too.
    pub blocks: u32,
}

/// What the blocks of a group have in common.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub tag: u64,
    pub group: u64,
    /// The one before.
    pub previous: u64,
    /// Blocks of a segment.
    pub segment_blocks: u32,
}

struct Packer<'a> {
    group: Group,
    head: Head,
    free: std::collections::btree_set::Iter<'a, LogSegment>,
    taken: Vec<LogSegment>,
    builder: BlockBuilder,
    /// Contents that follow the block under construction.
    whole: Vec<u8>,
    /// Records whose content is in `whole`.
    whole_records: Vec<usize>,
    /// Finished blocks: where, what they say of themselves, and what follows.
    blocks: Vec<(LogBlock, BlockHead, BlockBuilder, Vec<u8>)>,
    places: Vec<LogPlace>,
}

/// Packs a group. None if there are too few free segments.
pub fn pack(
    group: Group,
    head: Head,
    free: &BTreeSet<LogSegment>,
    records: &[Unpacked],
) -> Option<Packed> {
    let mut packer = Packer {
        group,
        head,
        free: free.iter(),
        taken: Vec::new(),
        builder: BlockBuilder::default(),
        whole: Vec::new(),
        whole_records: Vec::new(),
        blocks: Vec::new(),
        places: Vec::with_capacity(records.len()),
    };
    for record in records {
        packer.add(record)?;
    }
    packer.close()?;
    Some(packer.finish())
}

impl Packer<'_> {
    fn add(&mut self, unpacked: &Unpacked) -> Option<()> {
        let is_whole = unpacked.kind == RecordKind::Whole;
        let record = Record {
            kind: unpacked.kind,
            lba: unpacked.lba,
            data: unpacked.data,
            crc: unpacked.crc,
            payload: if is_whole { &[] } else { &unpacked.payload },
        };
        let at = loop {
            self.enter_segment()?;
            if (!is_whole || self.room_for_whole())
                && let Some(at) = self.builder.push(&record)
            {
                break at;
            }
            self.close()?;
        };
        self.places.push(LogPlace {
            block: self.number(),
            offset: at % BLOCK_BYTES as u16,
            bytes: record.payload.len() as u16,
        });
        if is_whole {
            self.whole_records.push(self.places.len() - 1);
            self.whole.extend_from_slice(&unpacked.payload);
        }
        Some(())
    }

    /// Goes on in the next segment if this one is full.
    fn enter_segment(&mut self) -> Option<()> {
        if self.head.position < self.group.segment_blocks {
            return Some(());
        }
        let &next = self.free.next()?;
        self.taken.push(next);
        self.head = Head {
            segment: self.head.next,
            position: 0,
            next,
        };
        Some(())
    }

    /// Whether one more whole block can follow the block under construction in its segment.
    fn room_for_whole(&self) -> bool {
        let after = self.head.position + 1 + u32::from(self.builder.whole());
        after < self.group.segment_blocks
    }

    /// The block of the log under construction.
    fn number(&self) -> LogBlock {
        let Head {
            segment, position, ..
        } = self.head;
        segment.block(position, self.group.segment_blocks)
    }

    /// Ends the block under construction. It may be empty: whole blocks need two blocks of a segment.
    fn close(&mut self) -> Option<()> {
        self.enter_segment()?;
        let number = self.number();
        for (position, &record) in self.whole_records.iter().enumerate() {
            self.places[record] = LogPlace {
                block: number + 1 + position as u32,
                offset: 0,
                bytes: 0,
            };
        }
        self.whole_records.clear();
        let head = BlockHead {
            group: self.group.group,
            previous: self.group.previous,
            index: self.blocks.len() as u32,
            next_segment: self.head.next,
            is_last: false,
        };
        let builder = std::mem::take(&mut self.builder);
        self.head.position += 1 + u32::from(builder.whole());
        let whole = std::mem::take(&mut self.whole);
        self.blocks.push((number, head, builder, whole));
        Some(())
    }

    fn finish(mut self) -> Packed {
        if let Some((_, head, ..)) = self.blocks.last_mut() {
            head.is_last = true;
        }
        let mut writes: Vec<(LogBlock, Vec<u8>)> = Vec::new();
        let mut blocks = 0;
        for (number, head, builder, whole) in self.blocks {
            let mut bytes = builder.finish(&head, self.group.tag, number);
            bytes.extend_from_slice(&whole);
            blocks += (bytes.len() / BLOCK_BYTES) as u32;
            match writes.last_mut() {
                Some((first, run)) if *first + (run.len() / BLOCK_BYTES) as u32 == number => {
                    run.extend(bytes)
                }
                _ => writes.push((number, bytes)),
            }
        }
        Packed {
            writes,
            places: self.places,
            head: self.head,
            taken: self.taken,
            blocks,
        }
    }
}
