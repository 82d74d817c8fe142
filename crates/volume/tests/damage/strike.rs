//! Where damage strikes a killed volume, drawn from what is in use.

use flashlore_flash::PageId;
use flashlore_medium::SECTOR;
use flashlore_volume::format::record::RECORD_BYTES;

use super::killed::{Killed, SHAPE};
use crate::support::Draw;
use crate::support::strike::Strike;

/// A strike, what it takes the bytes from, and how it is called.
pub struct Drawn<'a> {
    pub strike: Strike,
    pub other: &'a [u8],
    pub how: &'static str,
}

/// A bit flips: anywhere in the superblocks, the roots, the journals and the tables, in a record, or in data.
pub fn flip<'a>(killed: &'a Killed, draw: &mut Draw) -> Drawn<'a> {
    let (start, len) = match draw.below(10) {
        0 => (0, 8192),
        1..5 => metadata(killed, draw),
        5..9 => record(killed, draw),
        _ => data(killed, draw),
    };
    let at = start + draw.below(len as u32) as usize;
    let bit = draw.below(8) as u8;
    Drawn {
        strike: Strike::Flip { at, bit },
        other: &killed.image,
        how: "a bit flipped",
    }
}

/// A sector, 4096 bytes or a flash page are zeroed, or replaced by what lay there earlier, lies elsewhere, or is of
/// another volume.
pub fn replace<'a>(killed: &'a Killed, foreign: &'a Killed, draw: &mut Draw) -> Drawn<'a> {
    let (at, len) = range(killed, draw);
    let from = range(killed, draw).0.min(killed.image.len() - len);
    let (strike, other, how): (_, &[u8], _) = match draw.below(4) {
        0 => (Strike::Zero { at, len }, &killed.image, "zeroed"),
        1 => {
            let older = draw.below(killed.older.len() as u32) as usize;
            (Strike::Put { at, len }, &killed.older[older], "older")
        }
        2 => (Strike::Move { at, from, len }, &killed.image, "moved"),
        _ => {
            let at = at.min(foreign.image.len() - len);
            (Strike::Put { at, len }, &foreign.image, "foreign")
        }
    };
    Drawn { strike, other, how }
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
