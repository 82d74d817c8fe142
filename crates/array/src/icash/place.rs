//! Where the durable content of a block is: one entry of 16 bytes a block.
//!
//! An entry has the CRC-32 of the content, so that rot is an error and never other data. Entries of the same form say
//! what is in the frozen places of the slow medium.

use std::fmt;

use crate::index::{LogBlock, Slot};

pub const ENTRY_BYTES: usize = 16;

/// Bytes in a block of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    pub block: LogBlock,
    /// First byte in it, below 4096.
    pub offset: u16,
    /// Bytes, below 4096.
    pub bytes: u16,
}

/// The name of a data block: 4 KiB that are the content of a block or the base of deltas. It is not where they are:
/// they lie in a slot of the fast medium, in a frozen place of the slow one, or in both. One that was never frozen
/// lies in its first slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataBlock(u32);

impl DataBlock {
    /// Stands where a record or an entry names none.
    pub const NONE: DataBlock = DataBlock(0);

    /// The one that an entry or a record names.
    pub fn named(name: u32) -> Self {
        DataBlock(name)
    }

    pub fn name(self) -> u32 {
        self.0
    }

    /// The slot, of so many, in which it was written first.
    pub fn first_slot(self, slots: u32) -> Slot {
        Slot(self.0 % slots)
    }
}

impl fmt::Display for DataBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is in a frozen place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frozen {
    pub data: DataBlock,
    /// CRC-32 of it.
    pub crc: u32,
}

/// Where the content of a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockPlace {
    /// Nowhere: it is zeros.
    Zero,
    /// At its native place on the slow medium.
    Home,
    /// In a data block.
    Slot(DataBlock),
    /// A delta from the data block that was the block's own content when it became a reference.
    Own { data: DataBlock, at: LogPlace },
    /// A delta from a reference.
    Delta {
        /// The reference's data block.
        base: DataBlock,
        at: LogPlace,
    },
    /// Compressed by itself, in the log.
    Alone(LogPlace),
    /// Whole, in this block of the log.
    Whole(LogBlock),
    /// Nowhere: it was on a fast medium that was replaced, and nothing else had it.
    Lost,
}

impl BlockPlace {
    /// The data block that the content cannot be had without.
    pub fn data(&self) -> Option<DataBlock> {
        match *self {
            BlockPlace::Slot(data) | BlockPlace::Own { data, .. } => Some(data),
            BlockPlace::Delta { base, .. } => Some(base),
            _ => None,
        }
    }

    /// The data block that is the block's own: it holds the content, or is its frozen base.
    pub fn own_data(&self) -> Option<DataBlock> {
        match *self {
            BlockPlace::Slot(data) | BlockPlace::Own { data, .. } => Some(data),
            _ => None,
        }
    }

    /// The bytes of the log that hold it, if they are less than a block.
    pub fn at(&self) -> Option<LogPlace> {
        match *self {
            BlockPlace::Own { at, .. } | BlockPlace::Delta { at, .. } | BlockPlace::Alone(at) => {
                Some(at)
            }
            _ => None,
        }
    }

    /// The block of the log that holds it, and the bytes it takes there.
    pub fn log(&self) -> Option<(LogBlock, u32)> {
        match *self {
            BlockPlace::Whole(block) => Some((block, super::parameters::BLOCK_BYTES as u32)),
            _ => self.at().map(|at| (at.block, at.bytes.into())),
        }
    }
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.offset + self.bytes;
        write!(
            f,
            "bytes {} to {end} of block {} of the log",
            self.offset, self.block
        )
    }
}

impl fmt::Display for BlockPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockPlace::Zero => f.write_str("nowhere, as zeros"),
            BlockPlace::Home => f.write_str("its place on the slow medium"),
            BlockPlace::Slot(data) => write!(f, "data block {data}"),
            BlockPlace::Own { data, at } => {
                write!(f, "{at}, a delta from its own data block {data}")
            }
            BlockPlace::Delta { base, at } => write!(f, "{at}, a delta from data block {base}"),
            BlockPlace::Alone(at) => write!(f, "{at}, compressed"),
            BlockPlace::Whole(block) => write!(f, "block {block} of the log"),
            BlockPlace::Lost => f.write_str("nowhere: it was on a fast medium that was replaced"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEntry {
    pub place: BlockPlace,
    /// CRC-32 of the content; 0 where there is none.
    pub crc: u32,
    /// Whether the native place was ever written: with ordered write-back what it holds then is an older state.
    pub has_home: bool,
}

impl BlockEntry {
    /// Whether the native place, zeros if it was never written, holds something else.
    pub fn is_away(&self) -> bool {
        match self.place {
            BlockPlace::Home => false,
            BlockPlace::Zero => self.has_home,
            _ => true,
        }
    }

    pub fn holds_nothing(&self) -> bool {
        self.place == BlockPlace::Zero
    }

    /// That of a block never written, and the default.
    pub const ZERO: BlockEntry = BlockEntry {
        place: BlockPlace::Zero,
        crc: 0,
        has_home: false,
    };
}

impl Default for BlockEntry {
    fn default() -> Self {
        BlockEntry::ZERO
    }
}

/// The bytes of an entry: kind with the flag of the native place in its highest bit, offset (12 bits) and length
/// (12 bits), name of the data block, block of the log, CRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawEntry(pub [u8; ENTRY_BYTES]);

const HAS_HOME: u8 = 0x80;

/// The kind of an entry of a frozen place.
const FROZEN: u8 = 7;

/// That of a block that was lost.
const LOST: u8 = 8;

impl From<BlockEntry> for RawEntry {
    fn from(entry: BlockEntry) -> Self {
        let none = LogPlace {
            block: LogBlock(0),
            offset: 0,
            bytes: 0,
        };
        let (kind, data, at) = match entry.place {
            BlockPlace::Zero => (0, DataBlock::NONE, none),
            BlockPlace::Home => (1, DataBlock::NONE, none),
            BlockPlace::Slot(data) => (2, data, none),
            BlockPlace::Own { data, at } => (3, data, at),
            BlockPlace::Delta { base, at } => (4, base, at),
            BlockPlace::Alone(at) => (5, DataBlock::NONE, at),
            BlockPlace::Whole(block) => (6, DataBlock::NONE, LogPlace { block, ..none }),
            BlockPlace::Lost => (LOST, DataBlock::NONE, none),
        };
        let kind = kind | if entry.has_home { HAS_HOME } else { 0 };
        let span = u32::from(at.offset) | u32::from(at.bytes) << 12;
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&(u32::from(kind) | span << 8).to_le_bytes());
        bytes[4..8].copy_from_slice(&data.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&at.block.0.to_le_bytes());
        bytes[12..].copy_from_slice(&entry.crc.to_le_bytes());
        RawEntry(bytes)
    }
}

impl From<Frozen> for RawEntry {
    fn from(frozen: Frozen) -> Self {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = FROZEN;
        bytes[4..8].copy_from_slice(&frozen.data.0.to_le_bytes());
        bytes[12..].copy_from_slice(&frozen.crc.to_le_bytes());
        RawEntry(bytes)
    }
}

impl RawEntry {
    fn word(&self, at: usize) -> u32 {
        super::format::bytes::get_u32(&self.0, at)
    }

    /// What is in a frozen place, if anything ever was; nothing if there is no such entry.
    pub fn frozen(&self) -> Option<Option<Frozen>> {
        match self.0[0] {
            FROZEN => Some(Some(Frozen {
                data: DataBlock(self.word(4)),
                crc: self.word(12),
            })),
            _ => (*self == RawEntry::default()).then_some(None),
        }
    }

    /// What the bytes say, if there is such a place.
    pub fn entry(&self) -> Option<BlockEntry> {
        let (kind, block) = (self.0[0], LogBlock(self.word(8)));
        let data = DataBlock(self.word(4));
        let at = LogPlace {
            block,
            offset: (self.word(0) >> 8 & 0xFFF) as u16,
            bytes: (self.word(0) >> 20) as u16,
        };
        let place = match kind & !HAS_HOME {
            0 => BlockPlace::Zero,
            1 => BlockPlace::Home,
            2 => BlockPlace::Slot(data),
            3 => BlockPlace::Own { data, at },
            4 => BlockPlace::Delta { base: data, at },
            5 => BlockPlace::Alone(at),
            6 => BlockPlace::Whole(block),
            LOST => BlockPlace::Lost,
            _ => return None,
        };
        Some(BlockEntry {
            place,
            crc: self.word(12),
            has_home: kind & HAS_HOME != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn places() -> impl Strategy<Value = BlockPlace> {
        let at =
            (any::<u32>(), 0u16..4096, 0u16..4096).prop_map(|(block, offset, bytes)| LogPlace {
                block: LogBlock(block),
                offset,
                bytes,
            });
        (0..8, any::<u32>(), at).prop_map(|(kind, number, at)| match kind {
            0 => BlockPlace::Zero,
            1 => BlockPlace::Home,
            2 => BlockPlace::Slot(DataBlock(number)),
            3 => BlockPlace::Own {
                data: DataBlock(number),
                at,
            },
            4 => BlockPlace::Delta {
                base: DataBlock(number),
                at,
            },
            5 => BlockPlace::Alone(at),
            6 => BlockPlace::Lost,
            _ => BlockPlace::Whole(LogBlock(number)),
        })
    }

    proptest! {
        #[test]
        fn an_entry_comes_back(place in places(), crc: u32, has_home: bool) {
            let entry = BlockEntry { place, crc, has_home };
            prop_assert_eq!(RawEntry::from(entry).entry(), Some(entry));
        }

        #[test]
        fn any_bytes_are_an_entry_or_none(bytes: [u8; ENTRY_BYTES]) {
            let _ = (RawEntry(bytes).entry(), RawEntry(bytes).frozen());
        }

        #[test]
        fn a_frozen_place_comes_back_and_is_that_of_no_block(name: u32, crc: u32) {
            let frozen = Frozen { data: DataBlock(name), crc };
            prop_assert_eq!(RawEntry::from(frozen).frozen(), Some(Some(frozen)));
            prop_assert_eq!(RawEntry::from(frozen).entry(), None);
        }
    }

    #[test]
    fn zeros_are_the_entry_of_a_block_never_written() {
        assert_eq!(RawEntry::default().entry(), Some(BlockEntry::ZERO));
        assert_eq!(RawEntry::default().frozen(), Some(None));
    }
}
