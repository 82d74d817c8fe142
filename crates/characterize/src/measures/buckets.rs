//! Counts by powers of two, or by exact number.

use serde::{Deserialize, Serialize};

/// How many things measure from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// The least measure.
    pub low: u64,
    /// The largest measure.
    pub high: u64,
    /// How many things.
    pub count: u64,
}

/// Counts of 0, 1, 2–3, 4–7, 8–15, …
#[derive(Debug, Clone)]
pub(crate) struct PowerBuckets {
    counts: [u64; 65],
}

impl Default for PowerBuckets {
    fn default() -> Self {
        Self { counts: [0; 65] }
    }
}

impl PowerBuckets {
    /// Counts `times` things of this measure.
    pub fn add(&mut self, measure: u64, times: u64) {
        self.counts[(u64::BITS - measure.leading_zeros()) as usize] += times;
    }

    /// The buckets that are not empty, ascending.
    pub fn finish(&self) -> Vec<Bucket> {
        let bucket = |(bits, &count): (usize, &u64)| {
            let low = if bits == 0 { 0 } else { 1 << (bits - 1) };
            let high = if bits == 0 { 0 } else { low + (low - 1) };
            (count > 0).then_some(Bucket { low, high, count })
        };
        self.counts.iter().enumerate().filter_map(bucket).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_powers_of_two() {
        let mut buckets = PowerBuckets::default();
        for measure in [0, 1, 2, 3, 4, 7, 8, u64::MAX] {
            buckets.add(measure, 1);
        }
        let found: Vec<_> = buckets
            .finish()
            .iter()
            .map(|b| (b.low, b.high, b.count))
            .collect();
        let last = (1 << 63, u64::MAX, 1);
        assert_eq!(
            found,
            [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 2), (8, 15, 1), last]
        );
    }
}
