//! Values, and the pages that stand for them: families of similar pages, pages that compress, and noise.

use flashlore_delta::Page;

use crate::support::draw::Draw;

/// Stands for a page. 0 is zeros; otherwise a family in the high half and a version in the low one.
pub type Value = u32;

/// Families of similar pages; those above are pages that compress, and pages of noise.
pub const FAMILIES: u64 = 6;

/// A value that is not 0.
pub fn draw_value(draw: &mut Draw) -> Value {
    let family = match draw.below(10) {
        0 => FAMILIES + 1 + draw.below(3),
        1 => FAMILIES + 10 + draw.below(1000),
        _ => 1 + draw.below(FAMILIES),
    };
    (family << 16 | draw.below(64)) as Value
}

/// Its page.
pub fn page(value: Value) -> Page {
    let (family, version) = (u64::from(value >> 16), u64::from(value & 0xFFFF));
    if value == 0 {
        return [0; 4096];
    }
    let mut page = noise(family);
    if family > FAMILIES && family < FAMILIES + 10 {
        for (at, byte) in page.iter_mut().enumerate() {
            *byte = b"reads as text "[at % 14].wrapping_add((at / 600) as u8 * family as u8);
        }
    }
    // Of eight versions one is the family's page, five change little, one much and one too much.
    let changed = match version % 8 {
        0 if version == 0 => 0,
        6 => 1500,
        7 => 3000,
        _ => 8 + version * 3,
    };
    let other = noise(family << 20 | version << 1 | 1);
    let start = (version * 97) as usize % (4096 - changed as usize);
    page[start..start + changed as usize].copy_from_slice(&other[start..start + changed as usize]);
    page
}

fn noise(seed: u64) -> Page {
    let mut draw = Draw::new(seed);
    let mut page = [0; 4096];
    for word in page.as_chunks_mut().0 {
        *word = draw.number().to_le_bytes();
    }
    page
}
