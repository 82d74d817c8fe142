//! Definition 10: misses of an LRU index of written values, one naive list a size.
//!
//! Every list has its most recently written value in front. In the plain reading a value leaves
//! it by eviction alone; in the live reading also when the last page holding it gets another
//! content.

use std::collections::{BTreeMap, BTreeSet};

use super::access::{Access, AccessOp, Page, values};
use super::numbers::counted;

/// The powers of two from 1 to the number of distinct written values.
pub fn index_sizes(accesses: &[Access]) -> Vec<u64> {
    let distinct: BTreeSet<u32> = values(accesses, AccessOp::Write).into_iter().collect();
    let powers = (0..64).map(|exponent| 1 << exponent);
    powers
        .take_while(|&size| size <= distinct.len() as u64)
        .collect()
}

/// Definition 10, plain: by size, the page writes with a value that is not in the index.
pub fn plain_misses(accesses: &[Access], sizes: &[u64]) -> BTreeMap<u64, u64> {
    let mut misses = BTreeMap::new();
    for &size in sizes {
        let mut list: Vec<u32> = Vec::new();
        let mut missed = 0;
        for value in values(accesses, AccessOp::Write) {
            missed += u64::from(!use_value(&mut list, size, value));
        }
        misses.insert(size, missed);
    }
    misses
}

/// Definition 10, live: by size, the page writes with a value that is not in the index, from
/// which values go as soon as no page holds them.
///
/// A page holds the value last written to it; what a read returned does not count. A write uses
/// the index first (it may evict) and then ends the old content of its page.
pub fn live_misses(accesses: &[Access], sizes: &[u64]) -> BTreeMap<u64, u64> {
    let mut lists: BTreeMap<u64, Vec<u32>> = sizes.iter().map(|&size| (size, Vec::new())).collect();
    let mut misses: BTreeMap<u64, u64> = sizes.iter().map(|&size| (size, 0)).collect();
    let mut holds: BTreeMap<Page, u32> = BTreeMap::new();
    for access in accesses {
        match access.op {
            AccessOp::Write => {
                for write in access.pages() {
                    if let Some(value) = write.value {
                        for (&size, list) in &mut lists {
                            let hit = use_value(list, size, value);
                            *misses.entry(size).or_insert(0) += u64::from(!hit);
                        }
                    }
                    let old = match write.value {
                        Some(value) => holds.insert(write.page, value),
                        None => holds.remove(&write.page),
                    };
                    remove_if_dead(&mut lists, &holds, old);
                }
            }
            AccessOp::Trim => {
                let trimmed: Vec<Page> = holds
                    .keys()
                    .copied()
                    .filter(|&page| access.covers(page))
                    .collect();
                for page in trimmed {
                    let old = holds.remove(&page);
                    remove_if_dead(&mut lists, &holds, old);
                }
            }
            AccessOp::Read | AccessOp::Flush => {}
        }
    }
    misses
}

/// Moves a value to the front of a list, evicting from a full one, and says whether it was there.
fn use_value(list: &mut Vec<u32>, size: u64, value: u32) -> bool {
    let place = list.iter().position(|&listed| listed == value);
    if let Some(place) = place {
        list.remove(place);
    }
    list.insert(0, value);
    list.truncate(size as usize);
    place.is_some()
}

/// Takes a value that a page has just lost off every list if no other page holds it.
fn remove_if_dead(
    lists: &mut BTreeMap<u64, Vec<u32>>,
    holds: &BTreeMap<Page, u32>,
    lost: Option<u32>,
) {
    let Some(lost) = lost else { return };
    if holds.values().all(|&held| held != lost) {
        for list in lists.values_mut() {
            list.retain(|&listed| listed != lost);
        }
    }
}

/// Definition 10: the smallest set of most frequent written values that makes at least half of the
/// page writes with a value. Of equally frequent values the one with the smaller id is taken.
pub fn popular_values(accesses: &[Access]) -> BTreeSet<u32> {
    let count_of_value = counted(values(accesses, AccessOp::Write));
    let writes: u64 = count_of_value.values().sum();
    let mut by_count: Vec<(u32, u64)> = count_of_value.into_iter().collect();
    by_count.sort_by(|(id, count), (other_id, other)| other.cmp(count).then(id.cmp(other_id)));
    let mut popular = BTreeSet::new();
    let mut covered = 0;
    for (value, count) in by_count {
        if 2 * covered >= writes {
            break;
        }
        covered += count;
        popular.insert(value);
    }
    popular
}

/// Page writes of popular values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PopularMisses {
    pub writes: u64,
    /// Those that miss, first writes included.
    pub misses: u64,
    /// The first write of each value: always misses.
    pub first_writes: u64,
}

/// Definition 10: misses of an index of so many entries, plain reading, among the writes of
/// popular values.
pub fn popular_misses(accesses: &[Access], size: u64) -> PopularMisses {
    let popular = popular_values(accesses);
    let mut list: Vec<u32> = Vec::new();
    let mut written: BTreeSet<u32> = BTreeSet::new();
    let mut counts = PopularMisses::default();
    for value in values(accesses, AccessOp::Write) {
        let hit = use_value(&mut list, size, value);
        let first = written.insert(value);
        if popular.contains(&value) {
            counts.writes += 1;
            counts.misses += u64::from(!hit);
            counts.first_writes += u64::from(first);
        }
    }
    counts
}
