//! The bytes of a root: what one commit made durable.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | `FLMR` |
//! | 4 | 4 | tables |
//! | 8 | 8 | number of the commit, from 1 |
//! | 16 | 4 | slots |
//! | 20 | 4 | bytes of the user |
//! | 24 | 8 | checksum, position = offset of the root on the medium, of bytes 0 to 23 and from 32 to the end |
//! | 32 | 16 each | kind (1), what an empty row holds (1: 0 zeros, 1 ones), bytes of a row (2), rows (4), pointer to the top page (8) |
//! | | 4 each | of each page of counts: its copy in the highest bit, below it the check of the page; 0 if all its counts are 0 |
//! | | | the bytes of the user |

use flashlore_content::VolumeKey;

use crate::address::{Empty, Pointer, Shape};
use crate::area::Area;
use crate::page::{HEADER, PAYLOAD, put_seal, sealed};
use crate::space::CountsPlace;

const MAGIC: [u8; 4] = *b"FLMR";
const TABLE: usize = 16;

/// A table in a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RootTable {
    pub kind: u8,
    pub shape: Shape,
    pub top: Pointer,
}

/// A root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub commit: u64,
    pub tables: Vec<RootTable>,
    pub counts: Vec<CountsPlace>,
    pub user: Vec<u8>,
}

/// Bytes that a root of an area needs.
pub(crate) fn bytes(area: &Area) -> usize {
    let counts = area.count_pages() as usize * 4;
    HEADER + usize::from(area.tables) * TABLE + counts + area.user_bytes as usize
}

impl Root {
    /// Writes the root over a buffer of zeros.
    ///
    /// # Panics
    /// If it has more tables or user bytes than its area has room for.
    pub fn encode(&self, area: &Area, key: &VolumeKey, out: &mut [u8]) {
        assert!(
            self.tables.len() <= usize::from(area.tables)
                && self.user.len() <= area.user_bytes as usize
        );
        out[4..8].copy_from_slice(&(self.tables.len() as u32).to_le_bytes());
        out[8..16].copy_from_slice(&self.commit.to_le_bytes());
        out[16..20].copy_from_slice(&area.slots.to_le_bytes());
        out[20..24].copy_from_slice(&(self.user.len() as u32).to_le_bytes());
        let mut at = HEADER;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        for RootTable { kind, shape, top } in &self.tables {
            put(&[*kind, u8::from(shape.empty == Empty::Ones)]);
            put(&shape.row_bytes.to_le_bytes());
            put(&shape.rows.to_le_bytes());
            put(&top.bytes());
        }
        self.counts
            .iter()
            .for_each(|place| put(&place.0.to_le_bytes()));
        put(&self.user);
        put_seal(out, MAGIC, area.root(self.commit), key);
    }

    /// Reads the root of this parity; nothing if it does not hold.
    pub fn decode(area: &Area, key: &VolumeKey, parity: u64, bytes: &[u8]) -> Option<Root> {
        sealed(bytes, MAGIC, area.root(parity), key)?;
        let mut at = 4;
        let mut take = |count: usize| {
            let taken = bytes.get(at..at + count);
            at += count;
            taken
        };
        let u32_of = |bytes: &[u8]| bytes.first_chunk().copied().map(u32::from_le_bytes);
        let tables = u32_of(take(4)?)?;
        let commit = u64::from_le_bytes(*take(8)?.first_chunk()?);
        let slots = u32_of(take(4)?)?;
        let user = u32_of(take(4)?)?;
        let fits = tables <= u32::from(area.tables) && user <= area.user_bytes;
        if !fits || slots != area.slots || commit % 2 != parity {
            return None;
        }
        take(8)?;
        let mut root = Root {
            commit,
            tables: Vec::new(),
            counts: Vec::new(),
            user: Vec::new(),
        };
        for _ in 0..tables {
            let table = take(TABLE)?;
            let row_bytes = u16::from_le_bytes(*table[2..4].first_chunk()?);
            let top = Pointer::read(table[8..16].first_chunk()?);
            root.tables.push(RootTable {
                kind: table[0],
                shape: Shape {
                    rows: u32_of(&table[4..8])?,
                    row_bytes,
                    empty: if table[1] == 0 {
                        Empty::Zeros
                    } else {
                        Empty::Ones
                    },
                },
                top,
            });
            let is_there = !top.is_some() || top.slot.0 < area.slots;
            if row_bytes == 0 || usize::from(row_bytes) > PAYLOAD || !is_there {
                return None;
            }
        }
        for _ in 0..area.count_pages() {
            root.counts.push(CountsPlace(u32_of(take(4)?)?));
        }
        root.user = take(user as usize)?.to_vec();
        Some(root)
    }
}
