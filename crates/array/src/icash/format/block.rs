//! Blocks of the log with their records.
//!
//! A block says which group it belongs to and where in it, which group came before, and which segment follows its
//! own. So a group is found whole or not at all, and a block that an earlier life left behind never continues a
//! later one. Whole blocks of content follow the block whose records name them.

use crate::icash::format::bytes::{get_u16, get_u32, get_u64, is_sealed, put, seal};
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::DataBlock;
use crate::index::{LogBlock, LogSegment};

const MAGIC: &[u8; 4] = b"FLAL";
const LAST: u8 = 1;

pub const RECORDS_AT: usize = 48;

/// Bytes of a record without its payload.
pub const RECORD_BYTES: usize = 20;

/// Bits of the number of a group below its epoch.
const NUMBER_BITS: u32 = 40;

/// The most epochs there can be: then they would not fit above the number.
pub const MOST_EPOCHS: u32 = 1 << (u64::BITS - NUMBER_BITS);

/// A group: the epoch, and a number that counts from 1 in it.
pub fn group_of(epoch: u32, number: u64) -> u64 {
    (u64::from(epoch) << NUMBER_BITS) | number
}

pub fn epoch_of(group: u64) -> u32 {
    (group >> NUMBER_BITS) as u32
}

/// Bytes for records and payloads.
pub const ROOM: usize = BLOCK_BYTES - RECORDS_AT;

/// What a block of the log says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHead {
    /// Its group, as [`group_of`] counts.
    pub group: u64,
    /// The group before.
    pub previous: u64,
    /// Its number among the blocks of its group, from 0, whole blocks not counted.
    pub index: u32,
    /// The segment that follows the one it lies in.
    pub next_segment: LogSegment,
    /// Whether it is the last one of its group.
    pub is_last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// It is zeros.
    Zero,
    /// It is at its native place.
    Home,
    /// It is in a data block.
    Slot,
    /// The payload is its delta from its own data block.
    Own,
    /// The payload is its delta from a reference's data block.
    Delta,
    /// The payload is the compressed content.
    Alone,
    /// The content follows as a whole block.
    Whole,
    /// It is no block's: the data block is in a frozen place, whose number stands for the address.
    Frozen,
}

const KINDS: [RecordKind; 8] = [
    RecordKind::Zero,
    RecordKind::Home,
    RecordKind::Slot,
    RecordKind::Own,
    RecordKind::Delta,
    RecordKind::Alone,
    RecordKind::Whole,
    RecordKind::Frozen,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    pub kind: RecordKind,
    /// The block's address; that of a frozen place is its number.
    pub lba: u64,
    /// The data block, that of name 0 where there is none.
    pub data: DataBlock,
    /// CRC-32 of the content.
    pub crc: u32,
    /// The encoded content, where it lies in the block itself.
    pub payload: &'a [u8],
}

impl Record<'_> {
    /// Bytes it takes in its block.
    pub fn bytes(&self) -> usize {
        RECORD_BYTES + self.payload.len()
    }
}

#[derive(Debug)]
pub struct BlockBuilder {
    bytes: Vec<u8>,
    end: usize,
    records: u16,
    whole: u16,
}

impl Default for BlockBuilder {
    fn default() -> Self {
        BlockBuilder {
            bytes: vec![0; BLOCK_BYTES],
            end: RECORDS_AT,
            records: 0,
            whole: 0,
        }
    }
}

impl BlockBuilder {
    /// Whole blocks that are to follow it.
    pub fn whole(&self) -> u16 {
        self.whole
    }

    /// Adds a record if there is room, and says at which byte its payload begins.
    pub fn push(&mut self, record: &Record<'_>) -> Option<u16> {
        if self.end + record.bytes() > BLOCK_BYTES {
            return None;
        }
        let at = self.end;
        self.bytes[at] = record.kind as u8;
        put(
            &mut self.bytes,
            at + 2,
            &(record.payload.len() as u16).to_le_bytes(),
        );
        put(&mut self.bytes, at + 4, &record.data.name().to_le_bytes());
        put(&mut self.bytes, at + 8, &record.lba.to_le_bytes());
        put(&mut self.bytes, at + 16, &record.crc.to_le_bytes());
        put(&mut self.bytes, at + RECORD_BYTES, record.payload);
        self.end += record.bytes();
        self.records += 1;
        self.whole += u16::from(record.kind == RecordKind::Whole);
        Some((at + RECORD_BYTES) as u16)
    }

    /// The finished block, which will be block `number` of the log of array `tag`.
    pub fn finish(mut self, head: &BlockHead, tag: u64, number: LogBlock) -> Vec<u8> {
        let bytes = &mut self.bytes;
        put(bytes, 8, &tag.to_le_bytes());
        put(bytes, 16, &head.group.to_le_bytes());
        put(bytes, 24, &head.previous.to_le_bytes());
        put(bytes, 32, &head.index.to_le_bytes());
        put(bytes, 36, &head.next_segment.0.to_le_bytes());
        put(bytes, 40, &self.records.to_le_bytes());
        put(bytes, 42, &self.whole.to_le_bytes());
        bytes[44] = if head.is_last { LAST } else { 0 };
        seal(bytes, MAGIC, number.into());
        self.bytes
    }
}

/// A block of the log that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<'a> {
    pub head: BlockHead,
    /// Whole blocks that follow it.
    pub whole: u32,
    /// Its records, each with the byte at which its payload begins.
    pub records: Vec<(Record<'a>, u16)>,
}

impl<'a> Block<'a> {
    /// What the bytes say, if they are block `number` of the log of array `tag`.
    pub fn parse(bytes: &'a [u8], tag: u64, number: LogBlock) -> Option<Self> {
        let holds = bytes.len() == BLOCK_BYTES
            && is_sealed(bytes, MAGIC, number.into())
            && get_u64(bytes, 8) == tag;
        if !holds {
            return None;
        }
        let mut records = Vec::new();
        let mut at = RECORDS_AT;
        for _ in 0..get_u16(bytes, 40) {
            let record = parse_record(bytes, at)?;
            let payload_at = at + RECORD_BYTES;
            at += record.bytes();
            records.push((record, payload_at as u16));
        }
        let is_whole = |(record, _): &&(Record<'_>, u16)| record.kind == RecordKind::Whole;
        let whole = u32::from(get_u16(bytes, 42));
        if records.iter().filter(is_whole).count() != whole as usize {
            return None;
        }
        Some(Block {
            head: BlockHead {
                group: get_u64(bytes, 16),
                previous: get_u64(bytes, 24),
                index: get_u32(bytes, 32),
                next_segment: LogSegment(get_u32(bytes, 36)),
                is_last: bytes[44] == LAST,
            },
            whole,
            records,
        })
    }
}

fn parse_record(bytes: &[u8], at: usize) -> Option<Record<'_>> {
    let head = bytes.get(at..at + RECORD_BYTES)?;
    let kind = *KINDS.get(usize::from(head[0]))?;
    let length = usize::from(get_u16(head, 2));
    let start = at + RECORD_BYTES;
    Some(Record {
        kind,
        lba: get_u64(head, 8),
        data: DataBlock::named(get_u32(head, 4)),
        crc: get_u32(head, 16),
        payload: bytes.get(start..start + length)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: BlockHead = BlockHead {
        group: 7 << 40 | 3,
        previous: 7 << 40 | 2,
        index: 1,
        next_segment: LogSegment(9),
        is_last: true,
    };

    proptest! {
        #[test]
        fn a_block_comes_back(
            records in prop::collection::vec((0usize..8, any::<u64>(), any::<u32>(), any::<u32>(), 0usize..2100), 0..20),
        ) {
            let bytes = [0xA7; 2100];
            let mut builder = BlockBuilder::default();
            let mut kept = Vec::new();
            for &(kind, lba, data, crc, length) in &records {
                let payload = &bytes[..length];
                let data = DataBlock::named(data);
                let record = Record { kind: KINDS[kind], lba, data, crc, payload };
                if let Some(at) = builder.push(&record) {
                    kept.push((record, at));
                }
            }
            let block = builder.finish(&HEAD, 5, LogBlock(11));
            let found = Block::parse(&block, 5, LogBlock(11)).expect("it holds");
            prop_assert_eq!(found.head, HEAD);
            prop_assert_eq!(found.records, kept);
            prop_assert!(Block::parse(&block, 5, LogBlock(12)).is_none());
            prop_assert!(Block::parse(&block, 6, LogBlock(11)).is_none());
        }

        /// The checksum is made to hold, so that what is behind it is reached.
        #[test]
        fn any_bytes_are_a_block_or_none(bytes in prop::collection::vec(any::<u8>(), BLOCK_BYTES), records: u16) {
            let mut bytes = bytes;
            put(&mut bytes, 8, &5u64.to_le_bytes());
            put(&mut bytes, 40, &(records % 300).to_le_bytes());
            for at in (RECORDS_AT..BLOCK_BYTES).step_by(RECORD_BYTES) {
                bytes[at] %= 9;
            }
            seal(&mut bytes, MAGIC, 11);
            let _ = Block::parse(&bytes, 5, LogBlock(11));
        }
    }
}
