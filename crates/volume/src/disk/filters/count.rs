//! Counting requests, their bytes, their errors and their times.

use std::sync::Arc;
use std::time::Instant;

use hdrhistogram::Histogram;
use parking_lot::{Mutex, MutexGuard};

use super::{Filter, Request};
use crate::disk::device::DiskError;

/// Times are kept to three digits.
const DIGITS: u8 = 3;
/// The longest time that is told apart, in nanoseconds: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// What was counted of one kind of requests.
#[derive(Debug, Clone)]
pub struct RequestCounts {
    pub name: &'static str,
    /// Requests that succeeded.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Times of those that succeeded, in nanoseconds.
    pub times: Histogram<u64>,
    /// The sum of these times.
    pub total: u64,
}

/// What was counted: read, write, zero, trim, flush.
#[derive(Debug, Clone)]
pub struct Counts {
    pub kinds: [RequestCounts; 5],
}

/// Counts what passes. Clones count together.
#[derive(Debug, Clone)]
pub struct Count(Arc<[Mutex<RequestCounts>; 5]>);

fn lock(kind: &Mutex<RequestCounts>) -> MutexGuard<'_, RequestCounts> {
    kind.lock()
}

impl Default for Count {
    fn default() -> Self {
        let kind = |name| {
            let times = Histogram::new_with_bounds(1, LONGEST, DIGITS);
            Mutex::new(RequestCounts {
                name,
                requests: 0,
                bytes: 0,
                errors: 0,
                total: 0,
                // The bounds are constants that it accepts.
                times: times.unwrap_or_else(|_| unreachable!("the bounds hold")),
            })
        };
        Count(Arc::new(
            ["read", "write", "zero", "trim", "flush"].map(kind),
        ))
    }
}

impl Count {
    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        Counts {
            kinds: self.0.each_ref().map(|kind| lock(kind).clone()),
        }
    }
}

impl Filter for Count {
    fn around(
        &self,
        request: Request<'_>,
        inner: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let (kind, bytes) = match request {
            Request::Read(_, bytes) => (0, bytes),
            Request::Write(_, data) => (1, data.len() as u64),
            Request::Zero(_, bytes, _) => (2, bytes),
            Request::Trim(_, bytes) => (3, bytes),
            Request::Flush => (4, 0),
        };
        let began = Instant::now();
        let done = inner();
        let time = began.elapsed().as_nanos() as u64;
        let mut kind = lock(&self.0[kind]);
        match done {
            Ok(()) => {
                kind.requests += 1;
                kind.bytes += bytes;
                kind.times.saturating_record(time.max(1));
                kind.total += time;
            }
            Err(_) => kind.errors += 1,
        }
        done
    }
}
