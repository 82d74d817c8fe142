//! The content of a page: what a policy may ask of it.
//!
//! Simulation replays digests, not bytes: a [`PageTag`] stands for one distinct value of the trace.
//! Two pages are equal exactly when their tags are.

use flashlore_flash::{Row, number_rows};

use crate::dedup::{FingerprintIndex, LruIndex};

/// Content of one mapping unit.
pub trait Content: Row + Eq {
    /// The index in which fingerprints of such content are looked up.
    type Index: FingerprintIndex;

    /// The fingerprint, `bits` wide. From 64 bits on it never collides; fewer bits are for
    /// experiments with collisions.
    fn fingerprint(self, bits: u32) -> u64;

    /// Whether this can be the content that is sought, by fingerprints of so many bits and what else is known of it.
    #[inline]
    fn may_equal(self, sought: Self, bits: u32) -> bool {
        self.fingerprint(bits) == sought.fingerprint(bits)
    }
}

/// One distinct value of a trace, numbered from 0 in order of first appearance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageTag(pub u32);

impl PageTag {
    /// Content that equals nothing a host writes: what a device held before a run.
    pub const FOREIGN: PageTag = PageTag(u32::MAX);

    /// What stands for the first four bytes of the page, as a number: the same for the same value,
    /// spread evenly over values, and independent of the half of the fingerprint that the index keeps.
    pub fn first_bytes(self) -> u32 {
        (self.fingerprint(64) >> 32) as u32
    }
}

number_rows!(u32: PageTag);

impl Content for PageTag {
    type Index = LruIndex;

    #[inline(always)]
    fn fingerprint(self, bits: u32) -> u64 {
        // Whole fingerprints never collide and cut ones collide evenly.
        let x = spread(u64::from(self.0));
        if bits >= 64 { x } else { x & ((1 << bits) - 1) }
    }
}

/// A bijection on 64 bits that spreads its argument: a step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[inline(always)]
pub(crate) fn spread(x: u64) -> u64 {
    let mut x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// In simulated time the device keeps no content.
impl From<PageTag> for () {
    fn from(_: PageTag) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_fingerprints_use_all_their_values_and_whole_ones_differ() {
        let mut seen = [false; 256];
        let mut whole: Vec<u64> = (0..10_000).map(|v| PageTag(v).fingerprint(64)).collect();
        for v in 0..10_000 {
            seen[PageTag(v).fingerprint(8) as usize] = true;
        }
        assert!(seen.iter().all(|&s| s));
        whole.sort_unstable();
        whole.dedup();
        assert_eq!(whole.len(), 10_000);
    }
}
