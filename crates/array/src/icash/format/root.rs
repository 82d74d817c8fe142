//! Where a recovery begins: which copies of the table's pages count, and where the log goes on behind them.

use crate::icash::format::areas::Areas;
use crate::icash::format::bytes::{get_u32, get_u64, is_sealed, put, seal};
use crate::icash::parameters::BLOCK_BYTES;
use crate::index::LogSegment;

const MAGIC: &[u8; 4] = b"FLAR";
const COPIES_AT: usize = 64;

/// Numbers of checkpoints are below this: no array takes so many, and counting on from there never overflows.
const CHECKPOINTS: u64 = 1 << 62;

/// Pages whose copies a byte tells.
const PAGES_IN_BYTE: usize = 4;

/// Where the next group of the log begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub segment: LogSegment,
    /// The blocks before it in the segment; if it is the number of its blocks, the group begins in the next segment.
    pub position: u32,
    /// The segment after it.
    pub next: LogSegment,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Number of its checkpoint, from 1.
    pub checkpoint: u64,
    /// The mount epoch that wrote it, from 1; 0 for the one that a new array has.
    pub epoch: u32,
    pub session: u32,
    /// Whether somebody uses the array, or did and never closed it.
    pub in_use: bool,
    /// The last group of the log that the table contains.
    pub group: u64,
    pub head: Head,
    /// For each page of the table 0 if it was never written, else 1 plus the number of the copy that counts.
    pub copies: Vec<u8>,
}

/// Bytes of a root for so many pages.
pub fn bytes_of(pages: u64) -> u64 {
    COPIES_AT as u64 + pages.div_ceil(PAGES_IN_BYTE as u64)
}

impl Root {
    /// Its bytes, whole blocks; `tag` names the array, `offset` is where they will lie.
    pub fn encode(&self, tag: u64, offset: u64) -> Vec<u8> {
        let length = bytes_of(self.copies.len() as u64) as usize;
        let mut bytes = vec![0; length.next_multiple_of(BLOCK_BYTES)];
        put(&mut bytes, 8, &tag.to_le_bytes());
        put(&mut bytes, 16, &self.checkpoint.to_le_bytes());
        put(&mut bytes, 24, &self.group.to_le_bytes());
        let numbers = [
            self.epoch,
            self.head.segment.0,
            self.head.position,
            self.head.next.0,
            self.session,
            self.in_use.into(),
        ];
        for (index, number) in numbers.iter().enumerate() {
            put(&mut bytes, 32 + 4 * index, &number.to_le_bytes());
        }
        for (page, copy) in self.copies.iter().enumerate() {
            bytes[COPIES_AT + page / PAGES_IN_BYTE] |= copy << (2 * (page % PAGES_IN_BYTE));
        }
        seal(&mut bytes, MAGIC, offset);
        bytes
    }

    /// The bytes of both copies, as they follow each other from the place of the first one on. Rot of one of them
    /// does no harm.
    pub fn encode_twice(&self, tag: u64, areas: &Areas) -> Vec<u8> {
        let mut bytes = self.encode(tag, areas.root(self.checkpoint, 0));
        bytes.extend(self.encode(tag, areas.root(self.checkpoint, 1)));
        bytes
    }

    /// What the bytes say, if they are a root of this array with so many pages.
    pub fn parse(bytes: &[u8], tag: u64, offset: u64, pages: usize) -> Option<Self> {
        let long_enough = bytes.len() as u64 >= bytes_of(pages as u64);
        if !long_enough || !is_sealed(bytes, MAGIC, offset) || get_u64(bytes, 8) != tag {
            return None;
        }
        let copy = |page: usize| {
            bytes[COPIES_AT + page / PAGES_IN_BYTE] >> (2 * (page % PAGES_IN_BYTE)) & 3
        };
        let copies: Vec<u8> = (0..pages).map(copy).collect();
        let checkpoint = get_u64(bytes, 16);
        if copies.contains(&3) || checkpoint >= CHECKPOINTS {
            return None;
        }
        Some(Root {
            checkpoint,
            group: get_u64(bytes, 24),
            epoch: get_u32(bytes, 32),
            head: Head {
                segment: LogSegment(get_u32(bytes, 36)),
                position: get_u32(bytes, 40),
                next: LogSegment(get_u32(bytes, 44)),
            },
            session: get_u32(bytes, 48),
            in_use: get_u32(bytes, 52) != 0,
            copies,
        })
    }
}
