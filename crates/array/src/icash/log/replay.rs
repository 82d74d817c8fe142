//! The groups behind a root, up to the first gap.
//!
//! A group counts if all its blocks are there and hold, it names the group before it, and the contents that follow
//! its blocks have the checksums its records say.

use crate::icash::format::block::{Block, RecordKind};
use crate::icash::format::root::Head;
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::place::LogPlace;

/// A record that was found, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// What became of the block.
    pub kind: RecordKind,
    /// Its address.
    pub lba: u64,
    /// The data block.
    pub slot: u32,
    /// CRC-32 of the content.
    pub crc: u32,
    /// Where its content lies.
    pub at: LogPlace,
}

/// A group that counts.
#[derive(Debug)]
pub struct FoundGroup {
    /// Its number.
    pub group: u64,
    /// Its records.
    pub records: Vec<Found>,
    /// Where the next one begins.
    pub head: Head,
}

/// The sizes of the log, and the array it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct LogShape {
    /// The array.
    pub tag: u64,
    /// Segments.
    pub segments: u32,
    /// Blocks of one.
    pub segment_blocks: u32,
}

impl LogShape {
    /// Reads the group that begins at `head` after group `previous`. `read` fills one block, or says that it cannot.
    pub fn next_group(
        &self,
        mut head: Head,
        previous: u64,
        read: &mut dyn FnMut(u32, &mut [u8]) -> bool,
    ) -> Option<FoundGroup> {
        let mut group = None;
        let mut records = Vec::new();
        let mut bytes = vec![0; BLOCK_BYTES];
        for index in 0.. {
            if head.position >= self.segment_blocks {
                head.segment = head.next;
                head.position = 0;
            }
            if head.segment >= self.segments {
                return None;
            }
            let number = head.segment * self.segment_blocks + head.position;
            let block =
                read(number, &mut bytes).then(|| Block::parse(&bytes, self.tag, number))??;
            let belongs = block.head.index == index
                && block.head.previous == previous
                && block.head.group > previous
                && block.head.group == *group.get_or_insert(block.head.group)
                && head.position + block.whole < self.segment_blocks
                && block.head.next_segment < self.segments
                && block.head.next_segment != head.segment;
            if !belongs {
                return None;
            }
            head.next = block.head.next_segment;
            head.position += 1 + block.whole;
            let is_last = block.head.is_last;
            if !collect(&block, number, read, &mut records) {
                return None;
            }
            if is_last {
                return Some(FoundGroup {
                    group: block.head.group,
                    records,
                    head,
                });
            }
        }
        None
    }
}

/// Adds the records of a block; false if the content of one does not follow it.
fn collect(
    block: &Block<'_>,
    number: u32,
    read: &mut dyn FnMut(u32, &mut [u8]) -> bool,
    records: &mut Vec<Found>,
) -> bool {
    let mut next_whole = number + 1;
    let mut content = vec![0; BLOCK_BYTES];
    for (record, payload_at) in &block.records {
        let mut at = LogPlace {
            block: number,
            offset: payload_at % BLOCK_BYTES as u16,
            bytes: record.payload.len() as u16,
        };
        if record.kind == RecordKind::Whole {
            at.block = next_whole;
            if !read(next_whole, &mut content) || crc32fast::hash(&content) != record.crc {
                return false;
            }
            next_whole += 1;
        }
        records.push(Found {
            kind: record.kind,
            lba: record.lba,
            slot: record.slot,
            crc: record.crc,
            at,
        });
    }
    true
}
