//! Definitions 6 and 7: how many values there are, and how unevenly they are used.
//!
//! Reads and writes are counted apart, and only those with a value id.

use std::collections::{BTreeMap, BTreeSet};

use super::access::{Access, AccessOp, values};
use super::numbers::{Share, counted};

/// Definition 6: distinct values in the page accesses of a kind that carry a value.
pub fn unique_share(accesses: &[Access], op: AccessOp) -> Share {
    let values = values(accesses, op);
    let distinct: BTreeSet<u32> = values.iter().copied().collect();
    Share {
        part: distinct.len() as u64,
        whole: values.len() as u64,
    }
}

/// Definition 7: how often each value is accessed, in descending order.
pub fn popularity(accesses: &[Access], op: AccessOp) -> Vec<u64> {
    let mut counts: Vec<u64> = counted(values(accesses, op)).into_values().collect();
    counts.sort_unstable();
    counts.reverse();
    counts
}

/// Definition 7: the smallest number of most frequent values with at least half of the accesses,
/// in the number of distinct values. `counts` is in descending order.
pub fn x50(counts: &[u64]) -> Share {
    let total: u64 = counts.iter().sum();
    let enough = |k: &usize| 2 * counts[..*k].iter().sum::<u64>() >= total;
    let k = (0..=counts.len()).find(enough);
    Share {
        part: k.expect("all values have all accesses") as u64,
        whole: counts.len() as u64,
    }
}

/// Definition 7: the share of the accesses that go to the most frequent `values.part` in
/// `values.whole` of the values, their number rounded up. `counts` is in descending order.
///
/// # Panics
/// When `values.whole` is 0 or less than `values.part`.
pub fn accesses_of_top(counts: &[u64], values: Share) -> Share {
    let k = (values.part * counts.len() as u64).div_ceil(values.whole);
    Share {
        part: counts[..k as usize].iter().sum(),
        whole: counts.iter().sum(),
    }
}

/// Definition 7: how many values occur 1, 2, 3, 4 to 7, 8 to 15 and so on times, by the lower
/// bound of the class. Classes without values are left out.
pub fn count_histogram(counts: &[u64]) -> BTreeMap<u64, u64> {
    let class = |&count: &u64| {
        let mut bound = count.min(3);
        if count >= 4 {
            bound = 4;
            while count / bound >= 2 {
                bound *= 2;
            }
        }
        bound
    };
    counted(counts.iter().map(class))
}
