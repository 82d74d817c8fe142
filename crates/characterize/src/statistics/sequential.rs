//! Requests that begin at the byte after the last one of the read or write before, on the same
//! device (definition 3). A run is a request that is not sequential with all that follow it without
//! a break.

use flashlore_trace::{Access, Op};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::measures::share;

/// How sequential reads and writes are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequential {
    /// Reads that are sequential.
    pub reads: u64,
    /// Writes that are sequential.
    pub writes: u64,
    /// Share of the reads and writes.
    pub share: Option<f64>,
    /// Share of the reads.
    pub share_of_reads: Option<f64>,
    /// Share of the writes.
    pub share_of_writes: Option<f64>,
    /// Number of runs.
    pub runs: u64,
    /// Mean length of a run in requests.
    pub mean_run_requests: Option<f64>,
    /// Mean length of a run in bytes.
    pub mean_run_bytes: Option<f64>,
}

#[derive(Debug, Default)]
struct RequestClass {
    requests: u64,
    sequential: u64,
}

/// Remembers where the last request of each device ended.
#[derive(Debug, Default)]
pub(crate) struct SequentialCounter {
    ends: FxHashMap<u32, u64>,
    reads: RequestClass,
    writes: RequestClass,
    bytes: u64,
}

impl SequentialCounter {
    /// Looks at a read or write.
    pub fn observe(&mut self, access: &Access<'_>) {
        let class = match access.op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Trim | Op::Flush => return,
        };
        let end = access.offset.saturating_add(access.length);
        let before = self.ends.insert(access.device, end);
        class.requests += 1;
        class.sequential += u64::from(before == Some(access.offset));
        self.bytes += access.length;
    }

    /// The shares and runs.
    pub fn finish(self) -> Sequential {
        let (reads, writes) = (self.reads, self.writes);
        let requests = reads.requests + writes.requests;
        let sequential = reads.sequential + writes.sequential;
        let runs = requests - sequential;
        Sequential {
            reads: reads.sequential,
            writes: writes.sequential,
            share: share(sequential, requests),
            share_of_reads: share(reads.sequential, reads.requests),
            share_of_writes: share(writes.sequential, writes.requests),
            runs,
            mean_run_requests: share(requests, runs),
            mean_run_bytes: share(self.bytes, runs),
        }
    }
}
