//! Shares, percentiles, moments and histograms of lists of whole numbers.

use std::collections::BTreeMap;

/// A part of a whole, as two exact counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    pub part: u64,
    pub whole: u64,
}

impl Share {
    /// Part over whole; absent when the whole is 0.
    pub fn value(self) -> Option<f64> {
        (self.whole > 0).then(|| self.part as f64 / self.whole as f64)
    }
}

/// How often each thing occurs.
pub(super) fn counted<T: Ord>(things: impl IntoIterator<Item = T>) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    for thing in things {
        *counts.entry(thing).or_insert(0) += 1;
    }
    counts
}

/// The smallest of the numbers such that at least `percent` % of the numbers are not greater.
/// Absent without numbers.
pub fn percentile(numbers: &[u64], percent: u64) -> Option<u64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let total = sorted.len() as u64;
    let mut not_greater = 0;
    for number in sorted {
        not_greater += 1;
        if not_greater * 100 >= percent * total {
            return Some(number);
        }
    }
    None
}

/// The mean. Absent without numbers.
pub fn mean(numbers: &[u64]) -> Option<f64> {
    let sum: u128 = numbers.iter().map(|&number| u128::from(number)).sum();
    (!numbers.is_empty()).then(|| sum as f64 / numbers.len() as f64)
}

/// The standard deviation: the root of the mean of the squared differences from the mean, their
/// sum divided by their number. Absent without numbers.
pub fn standard_deviation(numbers: &[u64]) -> Option<f64> {
    let mean = mean(numbers)?;
    let squares: f64 = numbers
        .iter()
        .map(|&number| (number as f64 - mean).powi(2))
        .sum();
    Some((squares / numbers.len() as f64).sqrt())
}

/// How many of the numbers are 0, 1, 2 to 3, 4 to 7 and so on, by the lower bound of the class.
/// Classes without numbers are left out.
pub fn powers_of_two(numbers: &[u64]) -> BTreeMap<u64, u64> {
    let class = |&number: &u64| {
        let mut bound = u64::from(number > 0);
        while bound > 0 && number / bound >= 2 {
            bound *= 2;
        }
        bound
    };
    counted(numbers.iter().map(class))
}
