//! Super-features: numbers that pages which are alike have in common.
//!
//! A *feature* is the maximum of a hash over all short strings of a page: two pages that share most of their
//! strings share it most likely, wherever the strings lie. A *super-feature* is [`GROUP`] features in one
//! number, so that pages which share it by chance are rare (Shilane et al., "WAN optimized replication of backup
//! datasets", FAST 2012). The hash of a string is a gear hash; only strings whose hash is small are looked at,
//! which are the same ones wherever they lie (Zou et al., "The dilemma between deduplication and locality", FAST
//! 2021: Odess).
//!
//! Invariant: super-features follow from the bytes of the page and nothing else. They are kept in RAM alone, so
//! they may become others in another version. What was tried instead is in `docs/delta.md`.

use crate::Page;

/// Super-features of a page.
pub const SUPER_FEATURES: usize = 4;

/// Features in a super-feature.
pub const GROUP: usize = 2;

const FEATURES: usize = SUPER_FEATURES * GROUP;

/// Each byte moves the hash by so many of its 64 bits: it depends on the last 16 bytes.
const SHIFT: u32 = 4;

/// One string in 2 to the power of this is looked at.
const SAMPLING: u32 = 3;

/// A number for each byte.
static GEAR: [u64; 256] = {
    let mut gear = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        gear[byte] = spread(byte as u64);
        byte += 1;
    }
    gear
};

/// Where the numbers of the transforms are drawn from.
const FIRST_SEED: u64 = 2000;

/// For each feature a factor, which is odd, and a summand.
const TRANSFORMS: [(u64, u64); FEATURES] = {
    let mut transforms = [(0, 0); FEATURES];
    let mut feature = 0;
    while feature < FEATURES {
        let seed = FIRST_SEED + 2 * feature as u64;
        transforms[feature] = (spread(seed) | 1, spread(seed + 1));
        feature += 1;
    }
    transforms
};

pub fn sketch(page: &Page) -> [u32; SUPER_FEATURES] {
    let mut features = [0u64; FEATURES];
    let mut hash = 0u64;
    for &byte in page {
        hash = (hash << SHIFT).wrapping_add(GEAR[usize::from(byte)]);
        if hash >> (u64::BITS - SAMPLING) == 0 {
            for (feature, (factor, summand)) in features.iter_mut().zip(TRANSFORMS) {
                *feature = (*feature).max(hash.wrapping_mul(factor).wrapping_add(summand));
            }
        }
    }
    let mut supers = [0; SUPER_FEATURES];
    for (of_group, group) in supers.iter_mut().zip(features.chunks_exact(GROUP)) {
        let mixed = group.iter().fold(0, |mixed, &f| spread(mixed ^ f));
        *of_group = (mixed >> 32) as u32;
    }
    supers
}

/// A bijection on 64 bits: a step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
const fn spread(x: u64) -> u64 {
    let mut x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE_BYTES;

    fn noise(seed: u64) -> Page {
        let mut page = [0; PAGE_BYTES];
        for (word, bytes) in page.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&spread(seed << 32 | word as u64).to_le_bytes());
        }
        page
    }

    fn shared(a: &Page, b: &Page) -> usize {
        let (a, b) = (sketch(a), sketch(b));
        a.iter().zip(b).filter(|&(x, y)| *x == y).count()
    }

    /// Of 200 pairs of pages the mean of shared super-features.
    fn mean(change: impl Fn(&Page, u64) -> Page) -> f64 {
        let shared = (0..200).map(|seed| shared(&noise(seed), &change(&noise(seed), seed)));
        shared.sum::<usize>() as f64 / 200.0
    }

    #[test]
    fn a_page_of_which_a_part_moves_or_changes_shares_most_of_its_super_features() {
        let moved = mean(|page, _| {
            let mut moved = *page;
            moved.rotate_right(52);
            moved
        });
        // A feature outlasts a change if the largest hash of old and new strings is that of a string in both. Some 32
        // of 4,096 strings are new and as many gone: 0.98 of features, 0.97 of groups, 3.9 of 4.
        assert!(moved > 3.75, "{moved}");
        let changed = mean(|page, seed| {
            let mut changed = *page;
            changed[1000..1400].copy_from_slice(&noise(seed + 1000)[1000..1400]);
            changed
        });
        // A tenth is new: 0.9 / 1.1 of features, 0.67 of groups, 2.7 of 4.
        assert!((2.4..3.0).contains(&changed), "{changed}");
        let half = mean(|page, seed| {
            let mut half = *page;
            half[..2048].copy_from_slice(&noise(seed + 1000)[..2048]);
            half
        });
        // A third of features, a ninth of groups, 0.44 of 4.
        assert!((0.3..0.6).contains(&half), "{half}");
    }

    #[test]
    fn pages_that_have_nothing_in_common_share_no_super_feature() {
        assert_eq!(mean(|_, seed| noise(seed + 1000)), 0.0);
    }
}
