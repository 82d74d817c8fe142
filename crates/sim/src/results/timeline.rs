//! What happened in each stretch of simulated time.
//!
//! Memory is bounded: when the buckets become too many, neighbours are joined and the width
//! doubles, so a long trace is described more coarsely, never more expensively.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Default for the largest number of buckets: some 100 MB at most.
const MAX_BUCKETS: usize = 8192;

/// Digits that response percentiles keep: at most 1 % too large.
const DIGITS: u8 = 2;

/// Counters by stretch of simulated time.
#[derive(Debug, Clone)]
pub struct Timeline {
    width_ns: u64,
    max_buckets: usize,
    buckets: Vec<Bucket>,
}

/// The counters of one stretch of time.
#[derive(Debug, Clone, Default)]
pub struct Bucket {
    /// Requests that arrived.
    pub requests: u64,
    /// Units read by them.
    pub read_pages: u64,
    /// Units written by them.
    pub write_pages: u64,
    /// Units trimmed by them.
    pub trim_pages: u64,
    /// Units programmed for the host.
    pub host_programs: u64,
    /// Units programmed by garbage collection.
    pub gc_programs: u64,
    /// Units programmed for anything else.
    pub other_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Free blocks when last looked at.
    pub free_blocks: Option<u64>,
    response: Option<Histogram<u32>>,
    response_sum_ns: u128,
}

/// One row of a written timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelineRow {
    /// Start of the stretch, in seconds of simulated time.
    pub start_s: f64,
    /// Its length in seconds.
    pub width_s: f64,
    /// Requests that arrived.
    pub requests: u64,
    /// Units read by them.
    pub read_pages: u64,
    /// Units written by them.
    pub write_pages: u64,
    /// Units trimmed by them.
    pub trim_pages: u64,
    /// Units programmed for the host.
    pub host_programs: u64,
    /// Units programmed by garbage collection: the units it moved.
    pub gc_programs: u64,
    /// Units programmed for anything else.
    pub other_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Free blocks when last looked at, here or before.
    pub free_blocks: Option<u64>,
    /// Units programmed over units written; absent without writes.
    pub waf: Option<f64>,
    /// Mean response of the requests that arrived, in microseconds.
    pub response_mean_us: Option<f64>,
    /// Their median response.
    pub response_p50_us: Option<f64>,
    /// Their 99th percentile; percentiles are at most 1 % too large.
    pub response_p99_us: Option<f64>,
}

impl Timeline {
    /// An empty timeline of buckets `width_ns` nanoseconds wide (at least 1), which doubles when
    /// the run lasts longer than 8,192 of them.
    pub fn new(width_ns: u64) -> Self {
        Self::with_limit(width_ns, MAX_BUCKETS)
    }

    fn with_limit(width_ns: u64, max_buckets: usize) -> Self {
        Self {
            width_ns: width_ns.max(1),
            max_buckets,
            buckets: Vec::new(),
        }
    }

    /// The bucket of the instant `time_ns`. Times may come in any order.
    #[inline]
    pub fn at(&mut self, time_ns: u64) -> &mut Bucket {
        while time_ns / self.width_ns >= self.max_buckets as u64 {
            self.coarsen();
        }
        // Below `max_buckets`.
        let at = (time_ns / self.width_ns) as usize;
        if at >= self.buckets.len() {
            self.buckets.resize_with(at + 1, Bucket::default);
        }
        &mut self.buckets[at]
    }

    /// Width of the buckets in nanoseconds: as asked for, or doubled as often as needed.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// The buckets as rows, from time 0 to the last instant with an event.
    pub fn rows(&self) -> Vec<TimelineRow> {
        let mut free_blocks = None;
        let row = |(at, bucket): (usize, &Bucket)| {
            free_blocks = bucket.free_blocks.or(free_blocks);
            let width_s = self.width_ns as f64 / 1e9;
            bucket.row(at as f64 * width_s, width_s, free_blocks)
        };
        self.buckets.iter().enumerate().map(row).collect()
    }

    fn coarsen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let mut narrow = std::mem::take(&mut self.buckets).into_iter();
        while let Some(mut bucket) = narrow.next() {
            if let Some(next) = narrow.next() {
                bucket.join(next);
            }
            self.buckets.push(bucket);
        }
    }
}

impl Bucket {
    /// Adds the response of a request, in nanoseconds. It belongs to the bucket of the arrival.
    pub fn respond(&mut self, ns: u64) {
        self.response_sum_ns += u128::from(ns);
        let histogram = self.response.get_or_insert_with(|| {
            let mut histogram = Histogram::new(DIGITS).expect("the digits are few");
            histogram.auto(true);
            histogram
        });
        let ns = ns.min(i64::MAX as u64);
        histogram
            .record(ns)
            .expect("a growing histogram takes every value");
    }

    /// Adds a later bucket.
    fn join(&mut self, later: Self) {
        self.requests += later.requests;
        self.read_pages += later.read_pages;
        self.write_pages += later.write_pages;
        self.trim_pages += later.trim_pages;
        self.host_programs += later.host_programs;
        self.gc_programs += later.gc_programs;
        self.other_programs += later.other_programs;
        self.erases += later.erases;
        self.free_blocks = later.free_blocks.or(self.free_blocks);
        self.response_sum_ns += later.response_sum_ns;
        match (&mut self.response, later.response) {
            (Some(mine), Some(theirs)) => {
                mine.add(&theirs)
                    .expect("a growing histogram takes every value");
            }
            (mine @ None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
    }

    fn row(&self, start_s: f64, width_s: f64, free_blocks: Option<u64>) -> TimelineRow {
        let programs = self.host_programs + self.gc_programs + self.other_programs;
        let response = self.response.as_ref();
        let quantile = |q| response.map(|histogram| histogram.value_at_quantile(q) as f64 / 1000.0);
        let mean = |histogram: &Histogram<u32>| {
            self.response_sum_ns as f64 / histogram.len() as f64 / 1000.0
        };
        TimelineRow {
            start_s,
            width_s,
            requests: self.requests,
            read_pages: self.read_pages,
            write_pages: self.write_pages,
            trim_pages: self.trim_pages,
            host_programs: self.host_programs,
            gc_programs: self.gc_programs,
            other_programs: self.other_programs,
            erases: self.erases,
            free_blocks,
            waf: (self.write_pages > 0).then(|| programs as f64 / self.write_pages as f64),
            response_mean_us: response.map(mean),
            response_p50_us: quantile(0.5),
            response_p99_us: quantile(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_tell_what_happened_when() {
        let mut timeline = Timeline::new(1_000_000_000);
        let bucket = timeline.at(2_500_000_000);
        bucket.requests += 2;
        bucket.write_pages += 4;
        bucket.host_programs += 4;
        bucket.gc_programs += 2;
        bucket.respond(1000);
        bucket.respond(3000);
        timeline.at(0).free_blocks = Some(9);
        let rows = timeline.rows();
        assert_eq!(rows.len(), 3);
        assert_eq!(
            (rows[2].start_s, rows[2].width_s, rows[2].waf),
            (2.0, 1.0, Some(1.5))
        );
        assert_eq!(rows[2].response_mean_us, Some(2.0));
        assert!((rows[2].response_p99_us.unwrap() - 3.0).abs() <= 0.03);
        assert_eq!((rows[1].waf, rows[1].response_p50_us), (None, None));
        assert_eq!(
            rows[2].free_blocks,
            Some(9),
            "what was last seen still holds"
        );
        assert!(Timeline::new(0).rows().is_empty());
    }

    proptest! {
        #[test]
        fn joining_buckets_keeps_every_count(
            events in prop::collection::vec((0..u64::MAX, 0..1_000_000_000_u64), 1..60),
            width in 1..1_u64 << 40,
        ) {
            let mut timeline = Timeline::with_limit(width, 16);
            for (time, response) in &events {
                let bucket = timeline.at(*time);
                bucket.requests += 1;
                bucket.erases += 2;
                bucket.respond(*response);
            }
            let rows = timeline.rows();
            prop_assert!(rows.len() <= 16);
            prop_assert_eq!(rows.iter().map(|row| row.requests).sum::<u64>(), events.len() as u64);
            prop_assert_eq!(rows.iter().map(|row| row.erases).sum::<u64>(), 2 * events.len() as u64);
            let last = events.iter().map(|(time, _)| *time).max().unwrap();
            prop_assert_eq!(rows.len() as u64, last / timeline.width_ns() + 1);
            for (at, row) in rows.iter().enumerate() {
                let mine = events.iter().filter(|(time, _)| time / timeline.width_ns() == at as u64);
                let responses: Vec<u64> = mine.map(|(_, response)| *response).collect();
                prop_assert_eq!(row.requests, responses.len() as u64);
                if !responses.is_empty() {
                    let mean = responses.iter().sum::<u64>() as f64 / responses.len() as f64 / 1000.0;
                    prop_assert!((row.response_mean_us.unwrap() - mean).abs() <= 1e-9 * mean);
                }
            }
        }
    }
}
