//! One place of a medium, damaged in one way.

use flashlore_flash::PageId;
use flashlore_medium::SECTOR;
use flashlore_volume::format::record::RECORD_BYTES;

use super::killed::{Killed, SHAPE};
use crate::support::Draw;

/// What became of a range of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strike {
    pub at: usize,
    pub bytes: Vec<u8>,
    pub how: &'static str,
}

impl Strike {
    /// A bit flips: anywhere in the superblocks, the roots, the journals and the tables, in a record, or in data.
    pub fn flip(killed: &Killed, draw: &mut Draw) -> Strike {
        let (start, len) = match draw.below(10) {
            0 => (0, 8192),
            1..5 => metadata(killed, draw),
            5..9 => record(killed, draw),
            _ => data(killed, draw),
        };
        let at = start + draw.below(len as u32) as usize;
        Strike {
            at,
            bytes: vec![killed.image[at] ^ 1 << draw.below(8)],
            how: "a bit flipped",
        }
    }

    /// A sector, 4096 bytes or a flash page are zeroed, or replaced by what lay there earlier, lies elsewhere, or is of
    /// another volume.
    pub fn replace(killed: &Killed, foreign: &Killed, draw: &mut Draw) -> Strike {
        let (at, len) = range(killed, draw);
        let elsewhere = range(killed, draw).0.min(killed.image.len() - len);
        let (bytes, how) = match draw.below(4) {
            0 => (vec![0; len], "zeroed"),
            1 => {
                let older = draw.below(killed.older.len() as u32) as usize;
                (killed.older[older][at..at + len].to_vec(), "older")
            }
            2 => (killed.image[elsewhere..elsewhere + len].to_vec(), "moved"),
            _ => {
                let at = at.min(foreign.image.len() - len);
                (foreign.image[at..at + len].to_vec(), "foreign")
            }
        };
        Strike { at, bytes, how }
    }

    /// The medium with the damage; `None` if it is as it was.
    pub fn on(&self, image: &[u8]) -> Option<Vec<u8>> {
        let range = self.at..self.at + self.bytes.len();
        if image[range.clone()] == self.bytes[..] {
            return None;
        }
        let mut damaged = image.to_vec();
        damaged[range].copy_from_slice(&self.bytes);
        Some(damaged)
    }
}

fn pages() -> u32 {
    SHAPE.blocks * SHAPE.pages_per_block
}

fn metadata(killed: &Killed, draw: &mut Draw) -> (usize, usize) {
    killed.metadata[draw.below(killed.metadata.len() as u32) as usize]
}

fn record(killed: &Killed, draw: &mut Draw) -> (usize, usize) {
    let records = killed.areas.records(PageId(draw.below(pages()))) as usize;
    let slot = draw.below(SHAPE.units_per_page) as usize;
    (records + slot * RECORD_BYTES, RECORD_BYTES)
}

fn data(killed: &Killed, draw: &mut Draw) -> (usize, usize) {
    let page = killed.areas.page(PageId(draw.below(pages()))) as usize;
    (page, killed.areas.page_data)
}

/// A sector, 4096 bytes or a flash page, anywhere.
fn range(killed: &Killed, draw: &mut Draw) -> (usize, usize) {
    let (start, len) = match draw.below(8) {
        0 => (0, 8192),
        1..4 => metadata(killed, draw),
        4..6 => record(killed, draw),
        _ => {
            let page = killed.areas.page(PageId(draw.below(pages())));
            return (page as usize, killed.areas.page_stride as usize);
        }
    };
    let size = match draw.below(2) {
        0 => SECTOR,
        _ => 4096,
    };
    let at = start + draw.below(len as u32) as usize;
    let at = at / size * size;
    (at, size.min(killed.image.len() - at))
}
