//! Latencies: exact count, mean, standard deviation and maximum; percentiles to three digits.
//!
//! Recording adds one to a count: the counts are those of a high dynamic range histogram, which is
//! made of them when somebody asks. Memory does not depend on the number of values.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Digits that percentiles keep: a value read from the histogram is at most 0.1 % too large.
const DIGITS: u8 = 3;

/// Values below have a count each. Above, every power of two is cut into half as many: finer than
/// the digits ask for, and just as the histogram does it.
const EXACT: u64 = 2048;

/// Longer latencies are recorded as this one: 292 years.
const MAX_NS: u64 = i64::MAX as u64;

/// A set of latencies in nanoseconds of simulated time.
#[derive(Debug, Clone)]
pub struct Latency {
    counts: Vec<u64>,
    count: u64,
    max_ns: u64,
    sum: u128,
    sum_of_squares: u128,
}

impl Latency {
    /// An empty set.
    pub fn new() -> Self {
        Self {
            counts: Vec::new(),
            count: 0,
            max_ns: 0,
            sum: 0,
            sum_of_squares: 0,
        }
    }

    /// Adds one latency.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let ns = ns.min(MAX_NS);
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
        self.sum += u128::from(ns);
        self.sum_of_squares = self
            .sum_of_squares
            .saturating_add(u128::from(ns) * u128::from(ns));
        let class = class_of(ns);
        if class >= self.counts.len() {
            self.counts.resize((class + 1).next_power_of_two(), 0);
        }
        self.counts[class] += 1;
    }

    /// The distribution.
    fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new(DIGITS).expect("the digits are few");
        for (class, &count) in self.counts.iter().enumerate() {
            if count > 0 {
                histogram
                    .record_n(smallest_of(class), count)
                    .expect("a growing histogram takes every value");
            }
        }
        histogram
    }

    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// Latencies recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean in nanoseconds, if there is a latency.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Standard deviation of the latencies recorded (not of a population they were drawn from), in
    /// nanoseconds.
    pub fn std_ns(&self) -> Option<f64> {
        let n = u128::from(self.count);
        let mean = self.mean_ns()?;
        // n Σx² − (Σx)² in integers, where they hold it: floating point would lose a spread that is
        // small against the mean.
        let exact = n
            .checked_mul(self.sum_of_squares)
            .zip(self.sum.checked_mul(self.sum))
            .map(|(a, b)| a.saturating_sub(b) as f64 / (n as f64 * n as f64));
        let variance = exact.unwrap_or_else(|| self.sum_of_squares as f64 / n as f64 - mean * mean);
        Some(variance.max(0.0).sqrt())
    }

    /// The smallest recorded value, to three digits, that `quantile` of the latencies, which are those of
    /// `histogram`, do not exceed, in nanoseconds.
    fn quantile_of(&self, histogram: &Histogram<u64>, quantile: f64) -> Option<u64> {
        (self.count > 0).then(|| histogram.value_at_quantile(quantile).min(self.max_ns))
    }

    /// The figures that are reported, in microseconds.
    pub fn stats(&self) -> LatencyStats {
        let us = |ns: f64| ns / 1000.0;
        let histogram = self.histogram();
        let quantile = |q| self.quantile_of(&histogram, q).map(|ns| us(ns as f64));
        LatencyStats {
            count: self.count,
            mean: self.mean_ns().map(us),
            std: self.std_ns().map(us),
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: quantile(0.999),
            p9999: quantile(0.9999),
            max: (self.count > 0).then(|| us(self.max_ns as f64)),
        }
    }

    /// The distribution: each recorded value in microseconds, to three digits, with the share of
    /// latencies that do not exceed it. Ends at 1.
    pub fn cdf(&self) -> Vec<(f64, f64)> {
        let mut below = 0_u64;
        let point = |value: hdrhistogram::iterators::IterationValue<u64>| {
            below += value.count_at_value();
            let ns = value.value_iterated_to().min(self.max_ns);
            (ns as f64 / 1000.0, below as f64 / self.count as f64)
        };
        self.histogram().iter_recorded().map(point).collect()
    }
}

/// Where a value is counted.
#[inline(always)]
fn class_of(ns: u64) -> usize {
    let shift = u64::from((ns | (EXACT - 1)).ilog2() + 1 - EXACT.ilog2());
    (shift * (EXACT / 2) + (ns >> shift)) as usize
}

/// The smallest value that is counted there.
fn smallest_of(class: usize) -> u64 {
    let class = class as u64;
    let shift = (class / (EXACT / 2)).saturating_sub(1);
    (class - shift * (EXACT / 2)) << shift
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

/// Figures of a set of latencies, in microseconds; all but the count are `null` when there is none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyStats {
    /// Latencies recorded.
    pub count: u64,
    /// Mean, exact.
    pub mean: Option<f64>,
    /// Standard deviation, exact.
    pub std: Option<f64>,
    /// Median; percentiles are at most 0.1 % too large.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// 99.99th percentile.
    pub p9999: Option<f64>,
    /// Maximum, exact.
    pub max: Option<f64>,
}

/// Latencies by kind of request.
#[derive(Debug, Clone, Default)]
pub struct LatencyByKind {
    /// Of reads.
    pub read: Latency,
    /// Of writes.
    pub write: Latency,
    /// Of trims.
    pub trim: Latency,
}

impl LatencyByKind {
    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.trim.merge(&other.trim);
    }

    /// The latencies of all kinds together.
    pub fn all(&self) -> Latency {
        let mut all = self.read.clone();
        all.merge(&self.write);
        all.merge(&self.trim);
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Latency {
        let mut latency = Latency::new();
        values.iter().for_each(|ns| latency.record(*ns));
        latency
    }

    #[test]
    fn an_empty_set_has_no_figures() {
        assert_eq!(Latency::new().stats(), LatencyStats::default());
        assert!(Latency::new().cdf().is_empty());
    }

    #[test]
    fn classes_are_those_of_the_histogram() {
        let histogram = Histogram::<u64>::new_with_max(MAX_NS, DIGITS).unwrap();
        for bits in 0..63 {
            for ns in [
                1 << bits,
                (1 << bits) + (1 << bits >> 3) + 1,
                (2 << bits) - 1,
            ] {
                let smallest = smallest_of(class_of(ns));
                assert_eq!(smallest, histogram.lowest_equivalent(ns), "{ns}");
                assert_eq!(class_of(smallest), class_of(ns), "{ns}");
            }
        }
    }

    #[test]
    fn a_small_spread_on_a_large_mean_is_exact() {
        // 10 s apart by 1 ns: the standard deviation is half a nanosecond.
        let latency = of(&[10_000_000_000, 10_000_000_001].repeat(1000));
        assert_eq!(latency.mean_ns(), Some(10_000_000_000.5));
        assert_eq!(latency.std_ns(), Some(0.5));
    }

    #[test]
    fn extreme_values_do_not_panic() {
        let latency = of(&[0, u64::MAX, u64::MAX, 1]);
        assert_eq!(latency.stats().max, Some(i64::MAX as f64 / 1000.0));
        assert!(latency.std_ns().unwrap().is_finite());
        assert_eq!(of(&[0]).stats().p99, Some(0.0));
    }

    proptest! {
        #[test]
        fn figures_equal_those_of_the_sorted_values(
            mut values in prop::collection::vec(prop_oneof![0..1000_u64, 0..10_000_000_u64, 0..1_u64 << 45], 1..300),
            cut in 0..300_usize,
        ) {
            let cut = cut.min(values.len());
            let mut latency = of(&values[..cut]);
            latency.merge(&of(&values[cut..]));
            values.sort_unstable();
            let n = values.len() as f64;
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / n;
            let variance = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / n;
            prop_assert_eq!(latency.count(), values.len() as u64);
            prop_assert!((latency.mean_ns().unwrap() - mean).abs() <= 1e-9 * mean);
            prop_assert!((latency.std_ns().unwrap() - variance.sqrt()).abs() <= 1e-6 * variance.sqrt() + 1e-6);
            prop_assert_eq!(latency.stats().max, Some(*values.last().unwrap() as f64 / 1000.0));
            let histogram = latency.histogram();
            for q in [0.5, 0.95, 0.99, 0.999, 0.9999] {
                let rank = ((q * n).ceil() as usize).clamp(1, values.len());
                let (exact, found) = (values[rank - 1], latency.quantile_of(&histogram, q).unwrap());
                prop_assert!(found >= exact && found as f64 <= exact as f64 * 1.001 + 1.0, "{q}: {found} for {exact}");
            }
            let cdf = latency.cdf();
            prop_assert!(cdf.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1));
            prop_assert_eq!(cdf.last().unwrap().1, 1.0);
        }
    }
}
