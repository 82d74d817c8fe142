//! How soon a page is written again (definition 12).
//!
//! With sampling, first writes of the followed pages are scaled; distances and times need no scaling.

use serde::{Deserialize, Serialize};

use crate::ids::Sampler;
use crate::measures::buckets::{Bucket, PowerBuckets};
use crate::measures::samples::{Samples, Sorted};
use crate::measures::{place, share};

/// How far overwrites are apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distances {
    /// The smallest distance that at least 50 % of the overwrites do not exceed.
    pub p50: u64,
    /// The same for 90 %.
    pub p90: u64,
    /// The same for 99 %.
    pub p99: u64,
    /// Overwrites by powers of two; with sampling those of followed pages.
    pub histogram: Vec<Bucket>,
}

/// Overwrites of pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overwrites {
    /// Page writes.
    pub page_writes: u64,
    /// Of these, writes of pages written before and not trimmed since.
    pub overwrites: u64,
    /// Their share.
    pub share: Option<f64>,
    /// Distances in page writes: 1 is the very next page write.
    pub distance: Option<Distances>,
    /// Distances in nanoseconds.
    pub time_ns: Option<Distances>,
}

/// When a page was last written.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    /// Number of the page write, from 1 on; 0 if there is none.
    number: u64,
    time_ns: u64,
}

/// Remembers when each followed page was last written.
#[derive(Debug)]
pub(crate) struct OverwriteCounter {
    sampler: Sampler,
    page_writes: u64,
    first: u64,
    last: Vec<Last>,
    distances: Samples,
    times_ns: Samples,
}

impl OverwriteCounter {
    /// No writes yet.
    pub fn new(sampler: Sampler) -> Self {
        Self {
            sampler,
            page_writes: 0,
            first: 0,
            last: Vec::new(),
            distances: Samples::default(),
            times_ns: Samples::default(),
        }
    }

    /// A page is written; `None` if it is not followed.
    pub fn observe(&mut self, page: Option<u32>, time_ns: u64) {
        self.page_writes += 1;
        let Some(page) = page else { return };
        let now = Last {
            number: self.page_writes,
            time_ns,
        };
        let last = place(&mut self.last, page as usize, Last::default());
        let last = std::mem::replace(last, now);
        if last.number == 0 {
            self.first += 1;
        } else {
            self.distances.add(now.number - last.number);
            self.times_ns.add(time_ns.saturating_sub(last.time_ns));
        }
    }

    /// A page is trimmed.
    pub fn trim(&mut self, page: u32) {
        if let Some(last) = self.last.get_mut(page as usize) {
            *last = Last::default();
        }
    }

    /// The overwrites.
    pub fn finish(self) -> Overwrites {
        let first = self.sampler.scale(self.first).min(self.page_writes);
        let overwrites = self.page_writes - first;
        Overwrites {
            page_writes: self.page_writes,
            overwrites,
            share: share(overwrites, self.page_writes),
            distance: distances(&self.distances.sort()),
            time_ns: distances(&self.times_ns.sort()),
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.last.capacity() * size_of::<Last>()
            + self.distances.heap_bytes()
            + self.times_ns.heap_bytes()
    }
}

fn distances(sorted: &Sorted) -> Option<Distances> {
    let mut buckets = PowerBuckets::default();
    for number in sorted.numbers() {
        buckets.add(*number, 1);
    }
    Some(Distances {
        p50: sorted.percentile(50)?,
        p90: sorted.percentile(90)?,
        p99: sorted.percentile(99)?,
        histogram: buckets.finish(),
    })
}
