//! Everything of a page that looks random is a function of the seed and of names: no state, no order.

use flashlore_trace::overlay::splitmix64;

use crate::draw::Draw;

/// What a random choice is about; choices of different purposes are independent.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(crate) enum Purpose {
    Body = 1,
    Length,
    Word,
    Changes,
    Places,
    Record,
    Touched,
    Stamp,
    Anchor,
    Member,
    Cloned,
    Kind,
    Fresh,
}

/// 64 bits that depend on all of the seed, the purpose and two names.
#[inline]
pub(crate) fn hash(seed: u64, purpose: Purpose, name: u32, number: u32) -> u64 {
    let names = u64::from(name) << 32 | u64::from(number);
    splitmix64(splitmix64(seed ^ (u64::from(purpose as u32) << 56)) ^ names)
}

/// A number in [0, 1) by the same names.
#[inline]
pub(crate) fn unit(seed: u64, purpose: Purpose, name: u32, number: u32) -> f64 {
    (hash(seed, purpose, name, number) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A stream of draws by the same names.
#[inline]
pub(crate) fn draw(seed: u64, purpose: Purpose, name: u32, number: u32) -> Draw {
    Draw::new(hash(seed, purpose, name, number), 0)
}

/// Fills `bytes` with random ones.
#[inline]
pub(crate) fn fill(draw: &mut Draw, bytes: &mut [u8]) {
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&draw.bits().to_le_bytes()[..piece.len()]);
    }
}
