//! Misses of a fingerprint index with LRU replacement over writes, for all sizes at once
//! (definition 10), in two readings.
//!
//! *Plain*: a write misses an index of C entries if its stack distance is above C, or if it is the
//! value's first. *Live*: besides, a value leaves the index when no page holds it any more; the page
//! that is written takes its new value before it gives up the old one.
//!
//! With sampling the plain reading comes from the sampled distances. The live reading is that plus
//! the difference of both readings among the followed values, so that what both have in common is
//! not left to chance.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::locality::LocalityCurve;
use crate::ids::{Sampler, map_bytes};
use crate::measures::{place, share};
use crate::structures::holes::HoleStack;
use crate::structures::stack::StackDistances;

/// Misses of an index of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissPoint {
    /// Entries of the index.
    pub entries: u64,
    /// Writes that miss, plain reading.
    pub plain_misses: u64,
    /// Their share of the writes.
    pub plain_ratio: f64,
    /// Writes that miss, live reading.
    pub live_misses: u64,
    /// Their share of the writes.
    pub live_ratio: f64,
}

/// Misses of popular values in an index of one size, plain reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PopularMisses {
    /// Entries of the index.
    pub entries: u64,
    /// Writes of popular values.
    pub writes: u64,
    /// Of these, first writes of their value, which miss in any index.
    pub first: u64,
    /// Of these, others that miss.
    pub again: u64,
    /// Share of `writes` that miss: (`first` + `again`) / `writes`.
    pub miss_share: Option<f64>,
    /// The same without first writes: `again` / (`writes` - `first`).
    pub miss_share_without_first: Option<f64>,
}

/// The fingerprint index over writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Misses at powers of two, from 1 up to the number of distinct values.
    pub curve: Vec<MissPoint>,
    /// Number of popular values: the smallest set of values that makes half of the writes.
    pub popular_values: u64,
    /// Misses of popular values.
    pub popular: Vec<PopularMisses>,
}

/// Feeds the index.
#[derive(Debug)]
pub(crate) struct IndexCounter {
    sampler: Sampler,
    writes: u64,
    live: HoleStack,
    /// Writes by the smallest index that hits, less 1: living values.
    live_hits: Vec<u64>,
    /// The same without deaths; only while sampling, to compare with.
    control: Option<(StackDistances, Vec<u64>)>,
    sizes: Vec<u64>,
    /// Where the counts of a value begin in `far_counts`, if it ever missed again.
    far: FxHashMap<u32, usize>,
    /// For each such value, how often it missed each of `sizes` after its first write.
    far_counts: Vec<u64>,
}

impl IndexCounter {
    /// An empty index; popular misses are counted at `sizes`.
    pub fn new(sampler: Sampler, sizes: &[u64]) -> Self {
        Self {
            sampler,
            writes: 0,
            live: HoleStack::default(),
            live_hits: Vec::new(),
            control: (!sampler.is_exact()).then(Default::default),
            sizes: sizes.to_vec(),
            far: FxHashMap::default(),
            far_counts: Vec::new(),
        }
    }

    /// A write of a followed value, whose plain distance is `distance`.
    pub fn observe(&mut self, value: u32, distance: Option<u64>) {
        self.writes += 1;
        count(&mut self.live_hits, self.live.access(value));
        if let Some((stack, hits)) = &mut self.control {
            count(hits, stack.access(value));
        }
        if let Some(distance) = distance
            && self.sizes.iter().any(|size| distance > *size)
        {
            self.miss_again(value, distance);
        }
    }

    fn miss_again(&mut self, value: u32, distance: u64) {
        let next = self.far_counts.len();
        let row = *self.far.entry(value).or_insert(next);
        if row == next {
            self.far_counts.resize(next + self.sizes.len(), 0);
        }
        for (count, size) in self.far_counts[row..].iter_mut().zip(&self.sizes) {
            *count += u64::from(distance > *size);
        }
    }

    /// No page holds this value any more.
    pub fn die(&mut self, value: u32) {
        self.live.die(value);
    }

    /// The misses. `plain` is the curve of values written; `popular` the followed popular values
    /// and how often each is written.
    pub fn finish(self, plain: &LocalityCurve, popular: &[(u32, u64)]) -> Index {
        let sizes = (0..u64::BITS).map(|bit| 1_u64 << bit);
        let sizes: Vec<u64> = sizes.take_while(|size| *size <= plain.first).collect();
        Index {
            curve: self.curve(plain, &sizes),
            popular_values: self.sampler.scale(popular.len() as u64),
            popular: self.popular(popular),
        }
    }

    fn curve(&self, plain: &LocalityCurve, sizes: &[u64]) -> Vec<MissPoint> {
        let mut below = plain.accesses;
        let point = |&entries: &u64| {
            let plain_misses = plain.accesses - plain.within(entries);
            let live_hits = hits(&self.live_hits, entries, self.sampler);
            let live_misses = match &self.control {
                None => self.writes - live_hits,
                Some((_, control)) => {
                    let plain_hits = hits(control, entries, self.sampler);
                    let more = (plain_hits as f64 - live_hits as f64) / self.sampler.rate();
                    (plain_misses as f64 + more).round().max(0.0) as u64
                }
            };
            // An estimate may rise by chance, a miss curve does not.
            below = below.min(live_misses);
            MissPoint {
                entries,
                plain_misses,
                plain_ratio: share(plain_misses, plain.accesses).unwrap_or(0.0),
                live_misses: below,
                live_ratio: share(below, plain.accesses).unwrap_or(0.0),
            }
        };
        sizes.iter().map(point).collect()
    }

    fn popular(&self, popular: &[(u32, u64)]) -> Vec<PopularMisses> {
        let writes: u64 = popular.iter().map(|(_, writes)| writes).sum();
        let first = popular.len() as u64;
        let scale = |count| self.sampler.scale(count);
        let misses = |(at, &entries): (usize, &u64)| {
            let rows = popular.iter().filter_map(|(value, _)| self.far.get(value));
            let again: u64 = rows.map(|row| self.far_counts[row + at]).sum();
            PopularMisses {
                entries,
                writes: scale(writes),
                first: scale(first),
                again: scale(again),
                miss_share: share(first + again, writes),
                miss_share_without_first: share(again, writes - first),
            }
        };
        self.sizes.iter().enumerate().map(misses).collect()
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        let counts = self.live_hits.capacity() + self.far_counts.capacity();
        let control = self.control.iter();
        self.live.heap_bytes()
            + counts * size_of::<u64>()
            + map_bytes(&self.far)
            + control
                .map(|(stack, hits)| stack.heap_bytes() + hits.capacity() * size_of::<u64>())
                .sum::<usize>()
    }
}

/// Counts a hit at this depth.
fn count(hits: &mut Vec<u64>, depth: Option<u32>) {
    if let Some(depth) = depth {
        *place(hits, depth as usize - 1, 0) += 1;
    }
}

/// Hits of an index of `entries` entries: of depths d among the followed values, those for which
/// 1 + (d - 1) / rate is at most `entries`.
fn hits(hits: &[u64], entries: u64, sampler: Sampler) -> u64 {
    let depth = match sampler.is_exact() {
        true => entries,
        false => 1 + ((entries - 1) as f64 * sampler.rate()) as u64,
    };
    hits.iter().take(depth as usize).sum()
}
