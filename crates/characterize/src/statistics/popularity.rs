//! How unevenly accesses fall on values (definitions 6 and 7), for reads and writes separately.
//!
//! With sampling, the number of distinct values and the unique share are scaled from the followed
//! values and all accesses; everything else is that of the followed values.

use serde::{Deserialize, Serialize};

use crate::ids::Sampler;
use crate::measures::buckets::Bucket;
use crate::measures::{place, share};

/// Shares of the values, most frequent first, at which the share of accesses is given, in ppm.
const CDF_PPM: [u64; 14] = [
    100, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 300_000, 400_000, 500_000,
    750_000, 1_000_000,
];

/// Values that occur equally often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frequency {
    /// Accesses of each.
    pub accesses: u64,
    /// Number of values.
    pub values: u64,
}

/// A point of the popularity curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PopularityPoint {
    /// Share of the distinct values, most frequent first.
    pub value_share: f64,
    /// Share of the accesses that the values up to there make (their number is rounded up).
    pub access_share: f64,
}

/// How the accesses of one class fall on values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassPopularity {
    /// Page accesses with a value.
    pub accesses: u64,
    /// Distinct values among them.
    pub distinct: u64,
    /// `distinct / accesses`.
    pub unique_share: Option<f64>,
    /// The smallest number of values that make half of the accesses.
    pub half_values: u64,
    /// The same as a share of the distinct values: x50.
    pub x50: Option<f64>,
    /// Accesses made by the most frequent values, at fixed shares of the values.
    pub cdf: Vec<PopularityPoint>,
    /// How many values occur once, twice, three times, 4 to 7, 8 to 15 times and so on.
    pub histogram: Vec<Bucket>,
    /// How many values occur how often, most frequent first: the whole distribution.
    pub frequencies: Vec<Frequency>,
}

/// Popularity of values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Popularity {
    /// Of values read.
    pub reads: ClassPopularity,
    /// Of values written.
    pub writes: ClassPopularity,
}

impl ClassPopularity {
    /// Share of the accesses that this share of the values makes, the most frequent ones, their
    /// number rounded up. With sampling both are those of the followed values.
    pub fn access_share(&self, value_share: f64) -> Option<f64> {
        let values: u64 = self.frequencies.iter().map(|f| f.values).sum();
        let taken = (value_share.clamp(0.0, 1.0) * values as f64).ceil() as u64;
        let all = accesses_of(&self.frequencies, values);
        share(accesses_of(&self.frequencies, taken), all)
    }
}

/// Counts accesses of each followed value, for one class.
#[derive(Debug, Default)]
pub(crate) struct PopularityCounter {
    accesses: u64,
    counts: Vec<u64>,
}

impl PopularityCounter {
    /// An access with a value, which is `None` if it is not followed.
    pub fn observe(&mut self, value: Option<u32>) {
        self.accesses += 1;
        if let Some(value) = value {
            *place(&mut self.counts, value as usize, 0) += 1;
        }
    }

    /// The popular values by their numbers, and how often each occurs: the smallest set that makes
    /// half of the accesses; among equally frequent ones those with the smaller `name`.
    pub fn popular(&self, names: &[u32]) -> Vec<(u32, u64)> {
        let frequencies = frequencies(&self.counts);
        let popular = half_values(&frequencies);
        // The frequency at which the set ends, and how many values are more frequent.
        let (mut above, mut border) = (0, u64::MAX);
        for frequency in frequencies {
            border = frequency.accesses;
            if above + frequency.values >= popular {
                break;
            }
            above += frequency.values;
        }
        let counted = || (0_u32..).zip(self.counts.iter().copied());
        let mut last: Vec<u32> = counted()
            .filter_map(|(value, count)| (count == border).then_some(value))
            .collect();
        last.sort_unstable_by_key(|value| names[*value as usize]);
        last.truncate((popular - above) as usize);
        let more = counted().filter(|(_, count)| *count > border);
        more.chain(last.into_iter().map(|value| (value, border)))
            .collect()
    }

    /// The popularity.
    pub fn finish(self, sampler: Sampler) -> ClassPopularity {
        let frequencies = frequencies(&self.counts);
        let values = frequencies.iter().map(|f| f.values).sum();
        let half_values = half_values(&frequencies);
        let distinct = sampler.scale(values).min(self.accesses);
        ClassPopularity {
            accesses: self.accesses,
            distinct,
            unique_share: share(distinct, self.accesses),
            half_values: sampler.scale(half_values),
            x50: share(half_values, values),
            cdf: cdf(&frequencies, values),
            histogram: histogram(&frequencies),
            frequencies,
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }
}

fn frequencies(counts: &[u64]) -> Vec<Frequency> {
    let mut counts: Vec<u64> = counts.iter().copied().filter(|count| *count > 0).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let equal = counts.chunk_by(|a, b| a == b).map(|equal| Frequency {
        accesses: equal[0],
        values: equal.len() as u64,
    });
    equal.collect()
}

/// Accesses of the `values` most frequent values.
fn accesses_of(frequencies: &[Frequency], mut values: u64) -> u64 {
    let mut accesses = 0;
    for frequency in frequencies {
        let taken = values.min(frequency.values);
        accesses += taken * frequency.accesses;
        values -= taken;
    }
    accesses
}

fn half_values(frequencies: &[Frequency]) -> u64 {
    let half = accesses_of(frequencies, u64::MAX).div_ceil(2);
    let (mut values, mut accesses) = (0, 0);
    for frequency in frequencies {
        let missing = (half - accesses).div_ceil(frequency.accesses);
        let taken = missing.min(frequency.values);
        values += taken;
        accesses += taken * frequency.accesses;
        if accesses >= half {
            break;
        }
    }
    values
}

fn cdf(frequencies: &[Frequency], values: u64) -> Vec<PopularityPoint> {
    let all = accesses_of(frequencies, values);
    let point = |ppm: u64| {
        let taken = (u128::from(values) * u128::from(ppm)).div_ceil(1_000_000) as u64;
        Some(PopularityPoint {
            value_share: ppm as f64 / 1e6,
            access_share: share(accesses_of(frequencies, taken), all)?,
        })
    };
    CDF_PPM.into_iter().filter_map(point).collect()
}

fn histogram(frequencies: &[Frequency]) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = Vec::new();
    for frequency in frequencies.iter().rev() {
        let (low, high) = match frequency.accesses {
            few @ 1..4 => (few, few),
            many => {
                let low = 1 << many.ilog2();
                (low, low + (low - 1))
            }
        };
        match buckets.last_mut().filter(|last| last.low == low) {
            Some(last) => last.count += frequency.values,
            None => buckets.push(Bucket {
                low,
                high,
                count: frequency.values,
            }),
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(accesses: &[u32]) -> PopularityCounter {
        let mut counter = PopularityCounter::default();
        for value in accesses {
            counter.observe(Some(*value));
        }
        counter
    }

    #[test]
    fn an_example_by_hand() {
        // a 4 times, b 2, c 2, d 1, e 1: ten accesses; a and b make six, a alone four.
        let counter = counter(&[0, 0, 0, 0, 1, 1, 2, 2, 3, 4]);
        let popularity = counter.finish(Sampler::new(1.0));
        assert_eq!(
            (popularity.distinct, popularity.unique_share),
            (5, Some(0.5))
        );
        assert_eq!((popularity.half_values, popularity.x50), (2, Some(0.4)));
        let frequencies: Vec<_> = popularity
            .frequencies
            .iter()
            .map(|f| (f.accesses, f.values))
            .collect();
        assert_eq!(frequencies, [(4, 1), (2, 2), (1, 2)]);
        let histogram: Vec<_> = popularity
            .histogram
            .iter()
            .map(|b| (b.low, b.high, b.count))
            .collect();
        assert_eq!(histogram, [(1, 1, 2), (2, 2, 2), (4, 7, 1)]);
        // 30 % of five values are two of them, rounded up.
        let at = |share| {
            popularity
                .cdf
                .iter()
                .find(|p| p.value_share == share)
                .unwrap()
        };
        assert_eq!(at(0.3).access_share, 0.6);
        assert_eq!(at(1.0).access_share, 1.0);
    }

    #[test]
    fn ties_go_to_the_smaller_name() {
        // Two values of three make half of six; the last two names are the smallest.
        let popular = counter(&[0, 1, 2, 0, 1, 2]).popular(&[30, 20, 10]);
        assert_eq!(popular, [(2, 2), (1, 2)]);
        // a 3 of 6 makes half alone.
        assert_eq!(counter(&[5, 5, 5, 0, 1, 2]).popular(&[0; 6]), [(5, 3)]);
        assert_eq!(counter(&[]).popular(&[]), []);
    }
}
