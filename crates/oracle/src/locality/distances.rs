//! Definitions 8 and 9: LRU stack distances, of values and of pages.
//!
//! A distance is at least 1; a first access has none.

use std::collections::{BTreeMap, BTreeSet};

use super::access::{Access, AccessOp, Page, page_accesses, values};
use super::numbers::counted;

/// Definition 8: for each page access of a kind with a value, the number of distinct values
/// accessed since the previous access of the same value, this value included.
pub fn value_distances(accesses: &[Access], op: AccessOp) -> Vec<Option<u64>> {
    let values = values(accesses, op);
    let distance = |i: usize| {
        let mut since: BTreeSet<u32> = BTreeSet::new();
        for j in (0..i).rev() {
            since.insert(values[j]);
            if values[j] == values[i] {
                return Some(since.len() as u64);
            }
        }
        None
    };
    (0..values.len()).map(distance).collect()
}

/// Definition 9: for each page access of a kind, with a value or without, the number of distinct
/// pages accessed in the same way since the previous such access of the same page, this page
/// included.
pub fn page_distances(accesses: &[Access], op: AccessOp) -> Vec<Option<u64>> {
    let pages: Vec<Page> = page_accesses(accesses)
        .iter()
        .filter(|access| access.op == op)
        .map(|access| access.page)
        .collect();
    let mut distances = Vec::new();
    for (i, page) in pages.iter().enumerate() {
        let previous = pages[..i].iter().rposition(|earlier| earlier == page);
        distances.push(previous.map(|j| {
            let since: BTreeSet<&Page> = pages[j..i].iter().collect();
            since.len() as u64
        }));
    }
    distances
}

/// The distribution: for each distance that occurs, the number of accesses with this distance or
/// a smaller one. Over the re-references or over all accesses it is the same count.
pub fn reference_counts(distances: &[Option<u64>]) -> BTreeMap<u64, u64> {
    let mut counts = counted(distances.iter().flatten().copied());
    let mut sum = 0;
    for count in counts.values_mut() {
        sum += *count;
        *count = sum;
    }
    counts
}

/// The smallest d such that at least `percent` % of the re-references have a distance of at most
/// d. Absent without re-references.
pub fn distance_over_references(distances: &[Option<u64>], percent: u64) -> Option<u64> {
    distance_over(distances, percent, distances.iter().flatten().count())
}

/// The smallest d such that at least `percent` % of all accesses have a distance of at most d.
/// Absent when there are too many first accesses for that.
pub fn distance_over_all(distances: &[Option<u64>], percent: u64) -> Option<u64> {
    distance_over(distances, percent, distances.len())
}

fn distance_over(distances: &[Option<u64>], percent: u64, accesses: usize) -> Option<u64> {
    let mut finite: Vec<u64> = distances.iter().flatten().copied().collect();
    finite.sort_unstable();
    let reached = |i: &usize| (*i as u64 + 1) * 100 >= percent * accesses as u64;
    (0..finite.len()).find(reached).map(|i| finite[i])
}
