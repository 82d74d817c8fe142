//! How the delta ratios of a trace are spread.

use serde::Serialize;

use crate::overlay::FULL_RATIO;
use crate::record::{Op, Record, chunks};

/// R_c of the page writes of a trace, each a share of a page. Pages are the record's chunks of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatioInfo {
    /// Pages written with an R_c.
    pub pages: u64,
    /// Pages written without.
    pub pages_without: u64,
    pub mean: f64,
    /// The smallest that at least 10 % do not exceed.
    pub p10: f64,
    /// The same for 50 %.
    pub p50: f64,
    /// The same for 90 %.
    pub p90: f64,
}

/// Counts ratios; it takes memory when the first one comes.
#[derive(Debug, Default)]
pub(super) struct RatioCounter {
    written: u64,
    /// How many of each ratio; empty while there is none.
    counts: Vec<u64>,
}

impl RatioCounter {
    pub(super) fn add(&mut self, record: &Record<'_>) {
        if record.op != Op::Write {
            return;
        }
        self.written += chunks(record.length);
        for &ratio in record.delta_ratios.unwrap_or_default() {
            if self.counts.is_empty() {
                self.counts.resize(usize::from(FULL_RATIO) + 1, 0);
            }
            self.counts[usize::from(ratio)] += 1;
        }
    }

    /// What was found, if any write has ratios.
    pub(super) fn finish(&self) -> Option<RatioInfo> {
        let pages: u64 = self.counts.iter().sum();
        if pages == 0 {
            return None;
        }
        let full = f64::from(FULL_RATIO);
        let sum: u128 = (0..)
            .zip(&self.counts)
            .map(|(r, &n)| r * u128::from(n))
            .sum();
        let percentile = |percent| self.percentile(pages, percent) as f64 / full;
        Some(RatioInfo {
            pages,
            pages_without: self.written - pages,
            mean: sum as f64 / pages as f64 / full,
            p10: percentile(10),
            p50: percentile(50),
            p90: percentile(90),
        })
    }

    fn percentile(&self, count: u64, percent: u64) -> usize {
        let wanted = (u128::from(count) * u128::from(percent)).div_ceil(100) as u64;
        let mut below = 0;
        let reached = self.counts.iter().position(|n| {
            below += n;
            below >= wanted
        });
        reached.unwrap_or(usize::from(FULL_RATIO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write<'a>(length: u64, delta_ratios: Option<&'a [u16]>) -> Record<'a> {
        Record {
            time_ns: 0,
            device: 0,
            op: Op::Write,
            offset: 0,
            length,
            content: None,
            delta_ratios,
        }
    }

    #[test]
    fn an_example_by_hand() {
        let mut counter = RatioCounter::default();
        counter.add(&write(4097, None));
        assert_eq!(counter.finish(), None);
        let mut ratios = vec![FULL_RATIO / 5; 8];
        ratios.extend([FULL_RATIO / 3, FULL_RATIO]);
        counter.add(&write(40_960, Some(&ratios)));
        counter.add(&Record {
            op: Op::Read,
            ..write(4096, None)
        });
        let found = counter.finish().unwrap();
        assert_eq!((found.pages, found.pages_without), (10, 2));
        assert_eq!((found.p10, found.p50, found.p90), (0.2, 0.2, 1.0 / 3.0));
        assert!((found.mean - (1.6 + 1.0 / 3.0 + 1.0) / 10.0).abs() < 1e-12);
    }
}
