//! Gaps between consecutive requests, and how unevenly requests arrive (definition 5).
//!
//! Times count from the begin of what is looked at. Windows follow each other from time 0 on; the
//! one in which the last request falls is not complete.

use flashlore_trace::Access;
use serde::{Deserialize, Serialize};

use crate::ids::Sampler;
use crate::measures::samples::Samples;
use crate::measures::share;

/// Window lengths in nanoseconds: 10 ms, 100 ms, 1 s, 10 s, 1 min, 10 min, 1 h.
const WINDOWS_NS: [u64; 7] = [
    10_000_000,
    100_000_000,
    SECOND_NS,
    10 * SECOND_NS,
    60 * SECOND_NS,
    600 * SECOND_NS,
    3600 * SECOND_NS,
];

const SECOND_NS: u64 = 1_000_000_000;

/// Requests of a burst follow each other within this time.
const BURST_GAP_NS: u64 = 100_000_000;

/// Gaps between consecutive requests, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gaps {
    /// Number of gaps.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation, of these gaps.
    pub std_ns: f64,
    /// Standard deviation over mean; absent if all requests come at once.
    pub variation: Option<f64>,
    /// The smallest gap that at least 50 % of the gaps do not exceed.
    pub p50_ns: u64,
    /// The same for 90 %.
    pub p90_ns: u64,
    /// The same for 99 %.
    pub p99_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

/// Requests in consecutive windows of one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dispersion {
    /// Length of a window in nanoseconds.
    pub window_ns: u64,
    /// Complete windows, at least 2.
    pub windows: u64,
    /// Mean number of requests in one.
    pub mean: f64,
    /// Variance over mean of that number: the index of dispersion.
    pub index: f64,
}

/// Bursts: requests that follow each other within 100 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Number of bursts.
    pub count: u64,
    /// Mean number of requests in one.
    pub mean_requests: Option<f64>,
    /// Mean gap between the end of one and the begin of the next, in nanoseconds.
    pub mean_gap_ns: Option<f64>,
}

/// How requests arrive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Requests of all kinds and devices.
    pub requests: u64,
    /// Time from the first request to the last, in nanoseconds.
    pub span_ns: u64,
    /// Gaps; absent with fewer than 2 requests.
    pub gaps: Option<Gaps>,
    /// For each window length with at least 2 complete windows.
    pub dispersion: Vec<Dispersion>,
    /// The most requests in a window of 1 s, the last incomplete one included.
    pub peak_second: u64,
    /// Bursts and the gaps between them.
    pub bursts: Bursts,
}

/// Counts of the windows of one length.
#[derive(Debug, Default, Clone, Copy)]
struct Windows {
    current: u64,
    count: u64,
    sum: u128,
    squares: u128,
    peak: u64,
}

/// Watches the clock.
#[derive(Debug)]
pub(crate) struct ArrivalCounter {
    sampler: Sampler,
    requests: u64,
    first_ns: u64,
    last_ns: u64,
    gaps: Samples,
    gap_sum: u128,
    gap_squares: u128,
    gap_max: u64,
    windows: [Windows; WINDOWS_NS.len()],
    breaks: u64,
    break_sum: u128,
}

impl ArrivalCounter {
    /// Percentiles of gaps are those of the share of gaps that the sampler follows.
    pub fn new(sampler: Sampler) -> Self {
        Self {
            sampler,
            requests: 0,
            first_ns: 0,
            last_ns: 0,
            gaps: Samples::default(),
            gap_sum: 0,
            gap_squares: 0,
            gap_max: 0,
            windows: Default::default(),
            breaks: 0,
            break_sum: 0,
        }
    }

    /// A request of any kind.
    pub fn observe(&mut self, access: &Access<'_>) {
        let time_ns = access.time_ns;
        if self.requests == 0 {
            self.first_ns = time_ns;
        } else {
            self.gap(time_ns.saturating_sub(self.last_ns));
        }
        self.requests += 1;
        self.last_ns = time_ns;
        for (windows, length) in self.windows.iter_mut().zip(WINDOWS_NS) {
            windows.count(time_ns / length);
        }
    }

    fn gap(&mut self, gap: u64) {
        if self.sampler.follows(self.requests) {
            self.gaps.add(gap);
        }
        self.gap_sum += u128::from(gap);
        self.gap_squares += u128::from(gap) * u128::from(gap);
        self.gap_max = self.gap_max.max(gap);
        if gap > BURST_GAP_NS {
            self.breaks += 1;
            self.break_sum += u128::from(gap);
        }
    }

    /// How they arrived.
    pub fn finish(mut self) -> Arrivals {
        let last_ns = self.last_ns;
        let dispersion = self.windows.iter_mut().zip(WINDOWS_NS);
        let dispersion = dispersion
            .filter_map(|(windows, length)| windows.dispersion(length, last_ns))
            .collect();
        Arrivals {
            requests: self.requests,
            span_ns: last_ns.saturating_sub(self.first_ns),
            dispersion,
            peak_second: self.windows[2].peak,
            bursts: self.bursts(),
            gaps: self.gap_spread(),
        }
    }

    fn bursts(&self) -> Bursts {
        let count = if self.requests == 0 {
            0
        } else {
            self.breaks + 1
        };
        Bursts {
            count,
            mean_requests: share(self.requests, count),
            mean_gap_ns: (self.breaks > 0).then(|| self.break_sum as f64 / self.breaks as f64),
        }
    }

    fn gap_spread(self) -> Option<Gaps> {
        let count = self.requests.checked_sub(1).filter(|count| *count > 0)?;
        let mean_ns = self.gap_sum as f64 / count as f64;
        let std_ns = deviation(count, self.gap_sum, self.gap_squares);
        let gaps = self.gaps.sort();
        // A sample may have followed none of a few gaps.
        let percentile = |percent| gaps.percentile(percent).unwrap_or(self.gap_max);
        Some(Gaps {
            count,
            mean_ns,
            std_ns,
            variation: (mean_ns > 0.0).then(|| std_ns / mean_ns),
            p50_ns: percentile(50),
            p90_ns: percentile(90),
            p99_ns: percentile(99),
            max_ns: self.gap_max,
        })
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.gaps.heap_bytes()
    }
}

impl Windows {
    fn count(&mut self, window: u64) {
        if window != self.current {
            self.close();
            self.current = window;
        }
        self.count += 1;
        self.peak = self.peak.max(self.count);
    }

    fn close(&mut self) {
        self.sum += u128::from(self.count);
        self.squares += u128::from(self.count) * u128::from(self.count);
        self.count = 0;
    }

    /// The window of the last request is open and stays out.
    fn dispersion(&self, window_ns: u64, last_ns: u64) -> Option<Dispersion> {
        let windows = last_ns / window_ns;
        if windows < 2 || self.sum == 0 {
            return None;
        }
        let mean = self.sum as f64 / windows as f64;
        let std = deviation(windows, self.sum, self.squares);
        Some(Dispersion {
            window_ns,
            windows,
            mean,
            index: std * std / mean,
        })
    }
}

/// The standard deviation of `count` numbers with this sum and this sum of squares.
fn deviation(count: u64, sum: u128, squares: u128) -> f64 {
    let wide = u128::from(count);
    match (wide.checked_mul(squares), sum.checked_mul(sum)) {
        (Some(a), Some(b)) => ((a - b) as f64).sqrt() / count as f64,
        _ => {
            let mean = sum as f64 / count as f64;
            (squares as f64 / count as f64 - mean * mean)
                .max(0.0)
                .sqrt()
        }
    }
}
