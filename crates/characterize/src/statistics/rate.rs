//! Bytes written an hour, and how long a capacity of old data lasts (definition 14).

use std::collections::VecDeque;

use flashlore_trace::{Access, Op};
use serde::{Deserialize, Serialize};

const HOUR_NS: f64 = 3.6e12;

/// How long it takes to write as much as a capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The capacity in bytes.
    pub capacity_bytes: u64,
    /// At the mean rate, in nanoseconds; absent without a rate.
    pub mean_ns: Option<f64>,
    /// The least time between two requests that, with what lies between, write that many bytes;
    /// absent if the trace writes less.
    pub shortest_ns: Option<u64>,
}

/// The writing rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Bytes written.
    pub bytes: u64,
    /// Bytes written an hour, over the time from the first request to the last; absent if that is 0.
    pub bytes_per_hour: Option<f64>,
    /// For each capacity asked for.
    pub windows: Vec<Window>,
}

#[derive(Debug, Clone, Copy)]
struct Write {
    time_ns: u64,
    bytes: u64,
}

/// The writes that a capacity reaches back to.
#[derive(Debug)]
struct Reach {
    capacity: u64,
    /// Number of the first write within, counted from the begin.
    first: u64,
    /// Bytes of the writes within.
    bytes: u64,
    shortest_ns: Option<u64>,
}

/// Adds up writes, and keeps those that the largest capacity reaches back to.
#[derive(Debug)]
pub(crate) struct RateCounter {
    bytes: u64,
    recent: VecDeque<Write>,
    /// Writes no longer in `recent`.
    dropped: u64,
    reaches: Vec<Reach>,
}

impl RateCounter {
    /// Watches these capacities.
    pub fn new(capacities: &[u64]) -> Self {
        let reach = |&capacity: &u64| Reach {
            capacity,
            first: 0,
            bytes: 0,
            shortest_ns: None,
        };
        Self {
            bytes: 0,
            recent: VecDeque::new(),
            dropped: 0,
            reaches: capacities.iter().map(reach).collect(),
        }
    }

    /// Looks at a write.
    pub fn observe(&mut self, access: &Access<'_>) {
        if access.op != Op::Write {
            return;
        }
        self.bytes += access.length;
        if self.reaches.is_empty() {
            return;
        }
        self.recent.push_back(Write {
            time_ns: access.time_ns,
            bytes: access.length,
        });
        for reach in &mut self.reaches {
            reach.extend(&self.recent, self.dropped);
        }
        let needed = self.reaches.iter().map(|reach| reach.first).min();
        while needed.is_some_and(|needed| self.dropped < needed) {
            self.recent.pop_front();
            self.dropped += 1;
        }
    }

    /// The rate over this span.
    pub fn finish(self, span_ns: u64) -> Rate {
        let (bytes, span) = (self.bytes as f64, span_ns as f64);
        let window = |reach: &Reach| Window {
            capacity_bytes: reach.capacity,
            mean_ns: (span_ns > 0 && self.bytes > 0).then(|| reach.capacity as f64 * span / bytes),
            shortest_ns: reach.shortest_ns,
        };
        Rate {
            bytes: self.bytes,
            bytes_per_hour: (span_ns > 0).then(|| bytes / span * HOUR_NS),
            windows: self.reaches.iter().map(window).collect(),
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.recent.capacity() * size_of::<Write>()
    }
}

impl Reach {
    /// The last of `recent` is new; `dropped` came before the first.
    fn extend(&mut self, recent: &VecDeque<Write>, dropped: u64) {
        let Some(last) = recent.back() else { return };
        self.bytes += last.bytes;
        // As late a begin as still gives the capacity is the shortest time that ends here.
        while let Some(first) = recent.get((self.first - dropped) as usize)
            && self.bytes - first.bytes >= self.capacity
        {
            self.bytes -= first.bytes;
            self.first += 1;
        }
        if self.bytes >= self.capacity
            && let Some(first) = recent.get((self.first - dropped) as usize)
        {
            let time_ns = last.time_ns.saturating_sub(first.time_ns);
            self.shortest_ns = Some(self.shortest_ns.map_or(time_ns, |s| s.min(time_ns)));
        }
    }
}
