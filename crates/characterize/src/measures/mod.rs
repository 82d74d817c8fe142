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

/// `part / whole`, if there is a whole.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
