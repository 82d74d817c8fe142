//! Definition 14: how fast bytes are written, and how long a capacity lasts for history.

use super::access::{Access, AccessOp};

const HOUR_NS: f64 = 3600e9;

/// The time from the first request to the last, and the bytes written in all.
fn span_and_bytes(accesses: &[Access]) -> Option<(u64, u64)> {
    let span_ns = accesses.last()?.time_ns - accesses.first()?.time_ns;
    let writes = accesses
        .iter()
        .filter(|access| access.op == AccessOp::Write);
    Some((span_ns, writes.map(|write| write.length).sum()))
}

/// Definition 14: bytes written an hour, over the time from the first request of any kind to the
/// last. Absent when that is 0.
pub fn bytes_per_hour(accesses: &[Access]) -> Option<f64> {
    let (span_ns, bytes) = span_and_bytes(accesses)?;
    (span_ns > 0).then(|| bytes as f64 / (span_ns as f64 / HOUR_NS))
}

/// Definition 14: the time in nanoseconds in which `capacity` bytes are written at the mean rate.
/// Absent when there is no rate or nothing is written.
pub fn mean_window_ns(accesses: &[Access], capacity: u64) -> Option<f64> {
    let rate = bytes_per_hour(accesses)?;
    (rate > 0.0).then(|| capacity as f64 / rate * HOUR_NS)
}

/// Definition 14: the least time in nanoseconds between two writes such that they and those
/// between them write at least `capacity` bytes; 0 when a single write does. Absent if all writes
/// together write less.
pub fn shortest_window_ns(accesses: &[Access], capacity: u64) -> Option<u64> {
    let writes: Vec<&Access> = accesses
        .iter()
        .filter(|access| access.op == AccessOp::Write)
        .collect();
    let mut shortest: Option<u64> = None;
    for first in 0..writes.len() {
        let mut bytes = 0;
        for last in first..writes.len() {
            bytes += writes[last].length;
            if bytes >= capacity {
                let window_ns = writes[last].time_ns - writes[first].time_ns;
                shortest = Some(shortest.map_or(window_ns, |least| least.min(window_ns)));
                break;
            }
        }
    }
    shortest
}
