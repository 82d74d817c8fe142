//! Small measures that several statistics share.
//!
//! | module | what it is |
//! |---|---|
//! | [`buckets`] | counts by powers of two, or by exact number |
//! | `samples` | percentiles of a list |
//! | [`ratios`] | shares counted in fixed steps, for mean, deviation and percentiles |

pub mod buckets;
pub mod ratios;
pub(crate) mod samples;

/// The rank, from 1 on, of the smallest of `count` things that at least `percent` % do not exceed.
pub(crate) fn rank(count: u64, percent: u64) -> u64 {
    ((u128::from(count) * u128::from(percent)).div_ceil(100) as u64).max(1)
}

/// Where in a list of counts the things are reached that at least `percent` % do not exceed; nothing if all are 0.
pub(crate) fn reached(counts: impl Iterator<Item = u64> + Clone, percent: u64) -> Option<usize> {
    let wanted = rank(counts.clone().sum(), percent);
    let mut below = 0;
    counts.into_iter().position(|count| {
        below += count;
        below >= wanted
    })
}

/// The place of a number in a table, which grows to it with `empty` places.
pub(crate) fn place<T: Clone>(table: &mut Vec<T>, number: usize, empty: T) -> &mut T {
    if number >= table.len() {
        table.resize(number + 1, empty);
    }
    &mut table[number]
}

/// `part / whole`, if there is a whole.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
