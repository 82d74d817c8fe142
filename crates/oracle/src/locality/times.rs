//! Definition 5: when requests arrive. All kinds of requests and all devices count.

use super::access::Access;
use super::numbers::{counted, mean, standard_deviation};

const SECOND_NS: u64 = 1_000_000_000;

/// The windows of the index of dispersion: 10 ms, 100 ms, 1 s, 10 s, 1 min, 10 min, 1 h.
pub const DISPERSION_WINDOWS_NS: [u64; 7] = [
    SECOND_NS / 100,
    SECOND_NS / 10,
    SECOND_NS,
    10 * SECOND_NS,
    60 * SECOND_NS,
    600 * SECOND_NS,
    3600 * SECOND_NS,
];

/// The longest gap within a burst: 100 ms.
pub const BURST_GAP_NS: u64 = SECOND_NS / 10;

/// The differences of the times of consecutive requests, in nanoseconds.
pub fn gaps_ns(accesses: &[Access]) -> Vec<u64> {
    let pairs = accesses.windows(2);
    pairs
        .map(|pair| pair[1].time_ns - pair[0].time_ns)
        .collect()
}

/// The standard deviation over the mean; absent without numbers or when the mean is 0.
pub fn coefficient_of_variation(numbers: &[u64]) -> Option<f64> {
    let mean = mean(numbers)?;
    let deviation = standard_deviation(numbers)?;
    (mean > 0.0).then(|| deviation / mean)
}

/// Variance over mean of the number of requests in the windows [0, w), [w, 2w) and so on that end
/// no later than the last request. The sum of squares is divided by the number of windows. Absent
/// if fewer than two windows are complete, or if there is no request in them.
///
/// # Panics
/// When `window_ns` is 0.
pub fn index_of_dispersion(accesses: &[Access], window_ns: u64) -> Option<f64> {
    let windows = accesses.last()?.time_ns / window_ns;
    if windows < 2 {
        return None;
    }
    let window = |access: &Access| access.time_ns / window_ns;
    let counts = counted(accesses.iter().map(window).filter(|at| *at < windows));
    let requests: u64 = counts.values().sum();
    let mean = requests as f64 / windows as f64;
    let in_occupied: f64 = counts
        .values()
        .map(|&count| (count as f64 - mean).powi(2))
        .sum();
    let in_empty = (windows - counts.len() as u64) as f64 * mean.powi(2);
    let variance = (in_occupied + in_empty) / windows as f64;
    (requests > 0).then(|| variance / mean)
}

/// The largest number of requests in one of the windows [0 s, 1 s), [1 s, 2 s) and so on, the last
/// one included whether complete or not; 0 for an empty trace.
pub fn most_in_a_second(accesses: &[Access]) -> u64 {
    let counts = counted(accesses.iter().map(|access| access.time_ns / SECOND_NS));
    counts.values().copied().max().unwrap_or(0)
}

/// The maximal sequences of requests with gaps of at most [`BURST_GAP_NS`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bursts {
    /// The requests of each burst.
    pub requests: Vec<u64>,
    /// From the last request of a burst to the first of the next, in nanoseconds: one fewer.
    pub gaps_ns: Vec<u64>,
}

/// Definition 5: bursts and what lies between them.
pub fn bursts(accesses: &[Access]) -> Bursts {
    let mut bursts = Bursts::default();
    for (i, access) in accesses.iter().enumerate() {
        let gap = i
            .checked_sub(1)
            .map(|j| access.time_ns - accesses[j].time_ns);
        match gap {
            Some(gap) if gap <= BURST_GAP_NS => {
                *bursts.requests.last_mut().expect("a burst is open") += 1;
            }
            _ => {
                bursts.requests.push(1);
                bursts.gaps_ns.extend(gap);
            }
        }
    }
    bursts
}
