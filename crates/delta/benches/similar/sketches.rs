//! Ways to sketch a page: that of the crate, and others to compare with it.

use flashlore_delta::{PAGE_BYTES, Page, sketch};

/// Most features of a page.
const MOST: usize = 12;

/// A way to sketch, and what it is called.
pub struct Way {
    pub name: &'static str,
    /// The super-features of a page.
    pub sketch: fn(&Page) -> Vec<u32>,
}

/// All ways: strings of so many bytes, one of so many looked at, so many super-features of so many features.
pub fn all() -> Vec<Way> {
    let way = |name, sketch| Way { name, sketch };
    vec![
        way("the crate's", |page| sketch(page).to_vec()),
        way("64 B, all, 3 x 4", |page| transforms::<1, 0>(page, 3, 4)),
        way("16 B, all, 3 x 4", |page| transforms::<4, 0>(page, 3, 4)),
        way("16 B, all, 4 x 2", |page| transforms::<4, 0>(page, 4, 2)),
        way("64 B, 1/128, 3 x 4", |page| transforms::<1, 7>(page, 3, 4)),
        way("16 B, 1/8, 3 x 4", |page| transforms::<4, 3>(page, 3, 4)),
        way("16 B, 1/8, 3 x 2", |page| transforms::<4, 3>(page, 3, 2)),
        way("16 B, 1/8, 6 x 2", |page| transforms::<4, 3>(page, 6, 2)),
        way("16 B, 1/8, 4 x 1", |page| transforms::<4, 3>(page, 4, 1)),
        way("Finesse, 64 B", finesse::<1>),
        way("Finesse, 16 B", finesse::<4>),
    ]
}

/// A bijection on 64 bits: a step of SplitMix64.
const fn spread(x: u64) -> u64 {
    let mut x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

static GEAR: [u64; 256] = {
    let mut gear = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        gear[byte] = spread(byte as u64);
        byte += 1;
    }
    gear
};

fn group(features: impl Iterator<Item = u64>) -> u32 {
    (features.fold(0, |mixed, feature| spread(mixed ^ feature)) >> 32) as u32
}

/// Maxima of linear transforms of a gear hash of 64 / `SHIFT` bytes; one string in 2^`SAMPLING` is looked at.
fn transforms<const SHIFT: u32, const SAMPLING: u32>(
    page: &Page,
    supers: usize,
    each: usize,
) -> Vec<u32> {
    const OF: [(u64, u64); MOST] = {
        let mut of = [(0, 0); MOST];
        let mut feature = 0;
        while feature < MOST {
            let seed = 2000 + 2 * feature as u64;
            of[feature] = (spread(seed) | 1, spread(seed + 1));
            feature += 1;
        }
        of
    };
    let mut features = [0u64; MOST];
    let features = &mut features[..supers * each];
    let mut hash = 0u64;
    for &byte in page {
        hash = (hash << SHIFT).wrapping_add(GEAR[usize::from(byte)]);
        if SAMPLING == 0 || hash >> (64 - SAMPLING.max(1)) == 0 {
            for (feature, (factor, summand)) in features.iter_mut().zip(OF) {
                *feature = (*feature).max(hash.wrapping_mul(factor).wrapping_add(summand));
            }
        }
    }
    let groups = features.chunks(each);
    groups.map(|g| group(g.iter().copied())).collect()
}

/// One feature of each twelfth of the page; each super-feature takes those of one rank among three neighbours
/// (Zhang et al., "Finesse", FAST 2019).
fn finesse<const SHIFT: u32>(page: &Page) -> Vec<u32> {
    let mut features = [0u64; MOST];
    for (part, feature) in page.chunks(PAGE_BYTES.div_ceil(MOST)).zip(&mut features) {
        let mut hash = 0u64;
        for &byte in part {
            hash = (hash << SHIFT).wrapping_add(GEAR[usize::from(byte)]);
            *feature = (*feature).max(spread(hash));
        }
    }
    features.chunks_mut(3).for_each(<[u64]>::sort_unstable);
    let of_rank = |rank| group(features.iter().skip(rank).step_by(3).copied());
    (0..3).map(of_rank).collect()
}
