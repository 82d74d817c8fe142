//! The root of a checkpoint of versions 3 and 4. Two alternate; the higher valid one counts.
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
use flashlore_content::history::ChainsAt;
use flashlore_flash::QueueAt;
use flashlore_ftl::mapping::tallies::Tallies;

use super::tables::TableSlot;
use crate::format::cursor::Reader;
use crate::format::{HistoryRoot, Root};

/// Bytes before the list of slots.
pub const FIXED_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"FLRT";

/// A root, and where its tables lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldRoot {
    /// What a root of any version says.
    pub root: Root,
    /// What the checks of the table pages in use come to ([`super::tables::sum`]), 0 if that is not known.
    pub sum: u32,
    /// Slots of the directory pages.
    pub directories: Vec<TableSlot>,
}

impl OldRoot {
    /// Reads the root at `offset` with so many directories; `None` if it does not hold.
    pub fn decode(bytes: &[u8], key: &VolumeKey, offset: u64, directories: u32) -> Option<OldRoot> {
        let mut fields = Reader::new(bytes);
        if fields.take::<4>() != MAGIC {
            return None;
        }
        let (epoch, checkpoint, sequence) = (fields.u32(), fields.u64(), fields.u64());
        let stamp = fields.u64();
        let history = HistoryRoot {
            oldest: fields.u64(),
            window: ChainsAt {
                queue: QueueAt {
                    row: fields.u32(),
                    len: fields.u32(),
                    ..QueueAt::default()
                },
                gaps: 0,
            },
            kept: ChainsAt::default(),
            pins: u32::from(fields.u16()),
            notes: u32::from(fields.u16()),
        };
        let sum = fields.u32();
        if fields.u64() != key.checksum(offset, &[&bytes[..56], &bytes[FIXED_BYTES..]]) {
            return None;
        }
        Some(OldRoot {
            root: Root {
                checkpoint,
                epoch,
                sequence,
                stamp,
                history,
                tallies: Tallies::default(),
            },
            sum,
            directories: (0..directories).map(|_| TableSlot(fields.u32())).collect(),
        })
    }
}
