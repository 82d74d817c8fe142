//! Shares counted in fixed steps: exact mean, deviation and percentiles in constant memory.

use serde::{Deserialize, Serialize};

use super::reached;

/// Bars of the histogram: 0.05 each.
const BARS: usize = 20;

/// Counts of shares that are whole multiples of one step.
#[derive(Debug, Clone)]
pub(crate) struct Ratios {
    /// How many shares of `index` steps.
    counts: Vec<u64>,
}

/// How shares from 0 to 1 are spread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioSpread {
    /// How many shares.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, of these shares and not estimated for a population.
    pub std: f64,
    /// The smallest share that at least 10 % do not exceed.
    pub p10: f64,
    /// The same for 50 %.
    pub p50: f64,
    /// The same for 90 %.
    pub p90: f64,
    /// How many lie in [0, 0.05), [0.05, 0.1) and so on; the last includes 1.
    pub histogram: Vec<u64>,
}

impl Ratios {
    /// Shares of `steps` steps.
    pub fn new(steps: usize) -> Self {
        Self {
            counts: vec![0; steps + 1],
        }
    }

    /// Counts a share of so many steps; at most 1.
    pub fn add(&mut self, steps: usize) {
        let last = self.counts.len() - 1;
        self.counts[steps.min(last)] += 1;
    }

    /// How they are spread, if there are any.
    pub fn finish(&self) -> Option<RatioSpread> {
        let count: u64 = self.counts.iter().sum();
        if count == 0 {
            return None;
        }
        let steps = self.counts.len() - 1;
        let (mut sum, mut squares) = (0_u128, 0_u128);
        let mut histogram = vec![0; BARS];
        for (step, &n) in self.counts.iter().enumerate() {
            let (wide, n128) = (step as u128, u128::from(n));
            sum += wide * n128;
            squares += wide * wide * n128;
            histogram[(step * BARS / steps).min(BARS - 1)] += n;
        }
        let scale = steps as f64;
        let mean = sum as f64 / count as f64 / scale;
        // count * squares - sum^2 is exact, and so is free of cancellation.
        let spread = u128::from(count) * squares - sum * sum;
        let std = (spread as f64).sqrt() / count as f64 / scale;
        let reached = |percent| reached(self.counts.iter().copied(), percent);
        let percentile = |percent| reached(percent).unwrap_or(steps) as f64 / scale;
        Some(RatioSpread {
            count,
            mean,
            std,
            p10: percentile(10),
            p50: percentile(50),
            p90: percentile(90),
            histogram,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_by_hand() {
        let mut ratios = Ratios::new(4096);
        for steps in [0, 1024, 2048, 5000] {
            ratios.add(steps);
        }
        let spread = ratios.finish().unwrap();
        // 0, 0.25, 0.5, 1: mean 0.4375, mean square 1.3125 / 4, variance 0.13671875.
        assert_eq!((spread.count, spread.mean), (4, 0.4375));
        assert!((spread.std - 0.136_718_75_f64.sqrt()).abs() < 1e-12);
        assert_eq!((spread.p10, spread.p50, spread.p90), (0.0, 0.25, 1.0));
        let filled: Vec<usize> = (0..20).filter(|bar| spread.histogram[*bar] == 1).collect();
        assert_eq!(filled, [0, 5, 10, 19]);
        assert_eq!(Ratios::new(4096).finish(), None);
    }
}
