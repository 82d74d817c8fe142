//! Definitions 1 to 3: the mix of requests, their sizes, and how far they are sequential.

use std::collections::{BTreeMap, BTreeSet};

use super::access::{Access, AccessOp};
use super::numbers::{Share, counted, powers_of_two};

/// Requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpCount {
    pub requests: u64,
    /// Units they touch.
    pub pages: u64,
    /// Bytes they ask for.
    pub bytes: u64,
}

/// Definition 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mix {
    pub reads: OpCount,
    pub writes: OpCount,
    pub trims: OpCount,
    pub flushes: OpCount,
    /// Write requests in read and write requests.
    pub write_requests: Share,
    /// Pages of writes in pages of reads and writes.
    pub write_pages: Share,
    /// Bytes of writes in bytes of reads and writes.
    pub write_bytes: Share,
}

/// Definition 1: requests, pages and bytes by kind, and the share of writes in each.
pub fn mix(accesses: &[Access]) -> Mix {
    let mut mix = Mix::default();
    for access in accesses {
        let count = match access.op {
            AccessOp::Read => &mut mix.reads,
            AccessOp::Write => &mut mix.writes,
            AccessOp::Trim => &mut mix.trims,
            AccessOp::Flush => &mut mix.flushes,
        };
        count.requests += 1;
        count.pages += u64::from(access.units);
        count.bytes += access.length;
    }
    let share = |writes: u64, reads: u64| Share {
        part: writes,
        whole: reads + writes,
    };
    mix.write_requests = share(mix.writes.requests, mix.reads.requests);
    mix.write_pages = share(mix.writes.pages, mix.reads.pages);
    mix.write_bytes = share(mix.writes.bytes, mix.reads.bytes);
    mix
}

/// Definition 2: the sizes in bytes of all requests of a kind, in order.
pub fn sizes(accesses: &[Access], op: AccessOp) -> Vec<u64> {
    let of_kind = accesses.iter().filter(|access| access.op == op);
    of_kind.map(|access| access.length).collect()
}

/// How often each size occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeHistogram {
    /// By the size itself.
    Exact(BTreeMap<u64, u64>),
    /// By the lower bound of the class, 0 or a power of two.
    PowersOfTwo(BTreeMap<u64, u64>),
}

/// Definition 2: the histogram of sizes, exact if there are at most 64 distinct ones.
pub fn size_histogram(sizes: &[u64]) -> SizeHistogram {
    let distinct: BTreeSet<u64> = sizes.iter().copied().collect();
    if distinct.len() > 64 {
        return SizeHistogram::PowersOfTwo(powers_of_two(sizes));
    }
    SizeHistogram::Exact(counted(sizes.iter().copied()))
}

/// A request that is not sequential and the sequential ones that follow it on its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Run {
    pub requests: u64,
    /// Bytes they ask for.
    pub bytes: u64,
}

/// Definition 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequential {
    /// Sequential reads in all reads.
    pub reads: Share,
    /// Sequential writes in all writes.
    pub writes: Share,
    /// Sequential requests in all reads and writes.
    pub all: Share,
    /// The runs in the order of their first requests. Every read or write is in exactly one.
    pub runs: Vec<Run>,
}

/// Definition 3: requests that begin at the byte after the last one of the read or write before
/// them on the same device, and the chains they form.
pub fn sequential(accesses: &[Access]) -> Sequential {
    let requests: Vec<&Access> = accesses
        .iter()
        .filter(|access| access.op == AccessOp::Read || access.op == AccessOp::Write)
        .collect();
    let (mut reads, mut writes, mut all) = (Share::default(), Share::default(), Share::default());
    let mut runs: Vec<Run> = Vec::new();
    let mut run_of_request: Vec<usize> = Vec::new();
    for (i, request) in requests.iter().enumerate() {
        let of_op = match request.op {
            AccessOp::Read => &mut reads,
            _ => &mut writes,
        };
        of_op.whole += 1;
        all.whole += 1;
        let before = (0..i).rev().find(|&j| requests[j].device == request.device);
        let follows = before.filter(|&j| requests[j].offset + requests[j].length == request.offset);
        let run = match follows {
            Some(j) => {
                of_op.part += 1;
                all.part += 1;
                run_of_request[j]
            }
            None => {
                runs.push(Run::default());
                runs.len() - 1
            }
        };
        runs[run].requests += 1;
        runs[run].bytes += request.length;
        run_of_request.push(run);
    }
    Sequential {
        reads,
        writes,
        all,
        runs,
    }
}
