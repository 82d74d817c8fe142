//! The root of a checkpoint. Two alternate; the higher valid one counts.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | magic `FLRT` |
//! | 4 | 4 | epoch of the checkpoint |
//! | 8 | 8 | number of the checkpoint |
//! | 16 | 8 | sequence: the tables hold the state after this event |
//! | 24 | 8 | stamp of that event, nanoseconds since 1970 |
//! | 32 | 8 | start of the window: the oldest instant that can be rewound to |
//! | 40 | 4 | row of the first entry of the history |
//! | 44 | 4 | entries of the history |
//! | 48 | 2 | pinned instants |
//! | 50 | 2 | notes |
//! | 52 | 4 | sum of the table pages in use ([`super::tables::sum`]); 0 if it is not known |
//! | 56 | 8 | keyed checksum of the root's offset and everything but these 8 bytes |
//! | 64 | 4 each | slots of the directory pages, all ones for a page never written |

use flashlore_content::VolumeKey;

use super::address::{RowId, TableSlot};
use super::cursor::{Reader, Writer};

/// Bytes before the list of slots.
pub const FIXED_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"FLRT";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Number of the checkpoint, from 1.
    pub checkpoint: u64,
    /// Epoch it was taken in.
    pub epoch: u32,
    /// The last event its tables hold.
    pub sequence: u64,
    /// Stamp of that event.
    pub stamp: u64,
    /// The history of the map.
    pub history: HistoryRoot,
    /// What the checks of the table pages in use come to ([`super::tables::sum`]), 0 if that is not known.
    pub sum: u32,
    /// Slots of the directory pages.
    pub directories: Vec<TableSlot>,
}

/// Where the history lies in its tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryRoot {
    /// The oldest instant that can be rewound to.
    pub oldest: u64,
    /// The row of the first entry; the others follow, after the last row comes the first.
    pub first: RowId,
    pub entries: u32,
    /// Pinned instants.
    pub pins: u32,
    pub notes: u32,
}

impl Root {
    /// Its bytes at `offset` of the medium; `out` has the length of a root.
    pub fn encode(&self, key: &VolumeKey, offset: u64, out: &mut [u8]) {
        out.fill(0);
        let mut writer = Writer::new(out);
        writer.put(&MAGIC).u32(self.epoch).u64(self.checkpoint);
        writer.u64(self.sequence).u64(self.stamp);
        let history = &self.history;
        writer.u64(history.oldest).u32(history.first.0);
        writer.u32(history.entries);
        writer.u16(history.pins as u16).u16(history.notes as u16);
        writer.u32(self.sum).put(&[0; 8]);
        for &slot in &self.directories {
            writer.u32(slot.0);
        }
        let check = key.checksum(offset, &[&out[..56], &out[FIXED_BYTES..]]);
        out[56..FIXED_BYTES].copy_from_slice(&check.to_le_bytes());
    }

    /// Reads the root at `offset` with so many directories; `None` if it does not hold.
    pub fn decode(bytes: &[u8], key: &VolumeKey, offset: u64, directories: u32) -> Option<Root> {
        let mut fields = Reader::new(bytes);
        if fields.take::<4>() != MAGIC {
            return None;
        }
        let (epoch, checkpoint, sequence) = (fields.u32(), fields.u64(), fields.u64());
        let stamp = fields.u64();
        let history = HistoryRoot {
            oldest: fields.u64(),
            first: RowId(fields.u32()),
            entries: fields.u32(),
            pins: u32::from(fields.u16()),
            notes: u32::from(fields.u16()),
        };
        let sum = fields.u32();
        if fields.u64() != key.checksum(offset, &[&bytes[..56], &bytes[FIXED_BYTES..]]) {
            return None;
        }
        Some(Root {
            checkpoint,
            epoch,
            sequence,
            stamp,
            history,
            sum,
            directories: (0..directories).map(|_| TableSlot(fields.u32())).collect(),
        })
    }
}
