//! Sizes of reads and writes (definition 2).

use flashlore_trace::{Access, Op};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::ids::map_bytes;
use crate::measures::buckets::{Bucket, PowerBuckets};
use crate::measures::reached;

/// Up to so many distinct sizes have a bar each.
const EXACT_SIZES: usize = 64;

/// How the sizes of one operation are spread, in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeSpread {
    /// Mean.
    pub mean: f64,
    /// The smallest size that at least 50 % of the requests do not exceed.
    pub p50: u64,
    /// The same for 90 %.
    pub p90: u64,
    /// The same for 99 %.
    pub p99: u64,
    /// The largest.
    pub max: u64,
    /// Requests by exact size if there are at most 64 sizes, else by powers of two.
    pub histogram: Vec<Bucket>,
}

/// Sizes of reads and of writes; absent where there are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Of reads.
    pub reads: Option<SizeSpread>,
    /// Of writes.
    pub writes: Option<SizeSpread>,
}

/// Counts how often each size occurs.
#[derive(Debug, Default)]
pub(crate) struct SizeCounter {
    reads: FxHashMap<u64, u64>,
    writes: FxHashMap<u64, u64>,
}

impl SizeCounter {
    /// Counts a read or write.
    pub fn observe(&mut self, access: &Access<'_>) {
        let sizes = match access.op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Trim | Op::Flush => return,
        };
        *sizes.entry(access.length).or_default() += 1;
    }

    /// How they are spread.
    pub fn finish(self) -> Sizes {
        Sizes {
            reads: spread(self.reads),
            writes: spread(self.writes),
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        map_bytes(&self.reads) + map_bytes(&self.writes)
    }
}

fn spread(counts: FxHashMap<u64, u64>) -> Option<SizeSpread> {
    let mut sizes: Vec<(u64, u64)> = counts.into_iter().collect();
    sizes.sort_unstable();
    let max = sizes.last()?.0;
    let count: u64 = sizes.iter().map(|(_, n)| n).sum();
    let sum: u128 = sizes
        .iter()
        .map(|(size, n)| u128::from(*size) * u128::from(*n))
        .sum();
    let percentile = |percent| {
        let reached = reached(sizes.iter().map(|(_, n)| *n), percent);
        reached.map_or(max, |at| sizes[at].0)
    };
    Some(SizeSpread {
        mean: sum as f64 / count as f64,
        p50: percentile(50),
        p90: percentile(90),
        p99: percentile(99),
        max,
        histogram: histogram(&sizes),
    })
}

fn histogram(sizes: &[(u64, u64)]) -> Vec<Bucket> {
    if sizes.len() <= EXACT_SIZES {
        let bucket = |&(size, count): &(u64, u64)| Bucket {
            low: size,
            high: size,
            count,
        };
        return sizes.iter().map(bucket).collect();
    }
    let mut buckets = PowerBuckets::default();
    for (size, count) in sizes {
        buckets.add(*size, *count);
    }
    buckets.finish()
}
