//! What happened in each stretch of simulated time.
//!
//! Memory is bounded: when the buckets become too many, neighbours are joined and the width
//! doubles, so a long trace is described more coarsely, never more expensively.

use flashlore_ftl::erase_tally::EraseTally;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::record::mean_and_std;

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
    /// Flash programs for the host, in units.
    pub host_programs: u64,
    /// Flash programs of garbage collection, in units.
    pub gc_programs: u64,
    /// Flash programs for anything else, in units.
    pub other_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Free blocks when last looked at.
    pub free_blocks: Option<u64>,
    /// How much of the stretch the device was watched.
    pub watched_ns: u64,
    /// How long its dies worked meanwhile, on average.
    pub die_busy_ns: f64,
    /// How long its channels did.
    pub channel_busy_ns: f64,
    /// Wear when last looked at.
    pub wear: Option<Wear>,
    /// Space in use when last looked at.
    pub space: Space,
    response: Option<Histogram<u32>>,
    response_sum_ns: u128,
}

/// Erases of the blocks since counting began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wear {
    /// Mean over the blocks.
    pub mean: f64,
    /// Of the most erased block.
    pub max: u64,
    /// Standard deviation over the blocks.
    pub std: f64,
}

impl Wear {
    /// The figures of a tally.
    pub fn of(tally: &EraseTally) -> Self {
        let figures = [tally.blocks(), tally.total(), tally.squares()].map(u128::from);
        let (mean, std) = mean_and_std(figures[0], figures[1], figures[2]);
        Self {
            mean,
            max: u64::from(tally.most()),
            std,
        }
    }
}

/// What is in use of a device; absent where it is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Space {
    /// Seconds from the start of the window of old versions.
    pub window_s: Option<f64>,
    /// Entries of the history.
    pub history_entries: Option<u64>,
    /// Units on flash that hold anything.
    pub units_in_use: Option<u64>,
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
    /// Flash programs for the host, in units.
    pub host_programs: u64,
    /// Flash programs of garbage collection: the units it moved.
    pub gc_programs: u64,
    /// Flash programs for anything else, in units.
    pub other_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Free blocks when last looked at, here or before.
    pub free_blocks: Option<u64>,
    /// Mean busy share of the dies while the device was watched; absent where it was not.
    pub die_busy: Option<f64>,
    /// Mean busy share of the channels, likewise.
    pub channel_busy: Option<f64>,
    /// Erases of a block so far, on average over the blocks, when last looked at.
    pub erases_mean: Option<f64>,
    /// Erases of the most erased block so far.
    pub erases_max: Option<u64>,
    /// Their standard deviation over the blocks.
    pub erases_std: Option<f64>,
    /// Seconds from the start of the window of old versions to when last looked at.
    pub window_s: Option<f64>,
    /// Entries of the history when last looked at.
    pub history_entries: Option<u64>,
    /// Units on flash that held anything when last looked at.
    pub units_in_use: Option<u64>,
    /// Flash programs over units written; absent without writes, or if nobody looked at the device.
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

    /// The end of the bucket of an instant.
    pub fn end_of(&self, time_ns: u64) -> u64 {
        (time_ns / self.width_ns + 1).saturating_mul(self.width_ns)
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
        // What was looked at later holds for both.
        if later.wear.is_some() {
            (self.wear, self.space) = (later.wear, later.space);
        }
        self.watched_ns += later.watched_ns;
        self.die_busy_ns += later.die_busy_ns;
        self.channel_busy_ns += later.channel_busy_ns;
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
        let wrote = self.write_pages > 0 && free_blocks.is_some();
        let share = |busy_ns| (self.watched_ns > 0).then(|| busy_ns / self.watched_ns as f64);
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
            die_busy: share(self.die_busy_ns),
            channel_busy: share(self.channel_busy_ns),
            erases_mean: self.wear.map(|wear| wear.mean),
            erases_max: self.wear.map(|wear| wear.max),
            erases_std: self.wear.map(|wear| wear.std),
            window_s: self.space.window_s,
            history_entries: self.space.history_entries,
            units_in_use: self.space.units_in_use,
            waf: wrote.then(|| programs as f64 / self.write_pages as f64),
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
        assert_eq!(timeline.end_of(2_500_000_000), 3_000_000_000);
        assert_eq!(timeline.end_of(3_000_000_000), 4_000_000_000);
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
        let mut unseen = Timeline::new(1);
        unseen.at(0).write_pages += 1;
        assert_eq!(unseen.rows()[0].waf, None, "nobody looked at the device");
    }

    proptest! {
        #[test]
        fn what_was_seen_last_in_a_stretch_holds_for_it(
            looks in prop::collection::vec(0..1_u64 << 40, 1..60),
            width in 1..1_u64 << 30,
        ) {
            let mut timeline = Timeline::with_limit(width, 16);
            let mut looks = looks;
            looks.sort_unstable();
            for &time in &looks {
                let bucket = timeline.at(time);
                bucket.wear = Some(Wear { mean: 0.5, max: time, std: 1.0 });
                bucket.space.history_entries = Some(time);
            }
            for (at, row) in timeline.rows().iter().enumerate() {
                let mine = looks.iter().filter(|&&time| time / timeline.width_ns() == at as u64);
                let last = mine.max().copied();
                prop_assert_eq!((row.erases_max, row.history_entries), (last, last));
            }
        }

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
                bucket.watched_ns += 10;
                bucket.die_busy_ns += 2.5;
                bucket.channel_busy_ns += 5.0;
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
                let shares = (row.die_busy, row.channel_busy);
                let watched = !responses.is_empty();
                prop_assert_eq!(shares, (watched.then_some(0.25), watched.then_some(0.5)));
                if watched {
                    let mean = responses.iter().sum::<u64>() as f64 / responses.len() as f64 / 1000.0;
                    prop_assert!((row.response_mean_us.unwrap() - mean).abs() <= 1e-9 * mean);
                }
            }
        }
    }
}
