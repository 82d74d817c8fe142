//! How a run drives the device: open or closed loop, warm-up, seed.
//!
//! The meaning of each key, for users, stands in `template/host.toml`; here is its type.

use serde::{Deserialize, Serialize};

use flashlore_units::{Nanos, Share};

/// The host of a run. Loaded values are checked: see [`super::load_host`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// What decides when a request arrives. [`HostConfig::load`] gives it with its values.
    pub mode: HostMode,
    /// Requests in flight. Used by [`HostMode::Closed`] alone.
    pub queue_depth: u32,
    /// Pause between a completion and the next request. Used by [`HostMode::Closed`] alone.
    pub think_time: Nanos,
    /// Factor on the time between arrivals. Used by [`HostMode::Open`] alone.
    pub time_scale: f64,
    /// Share of the requests, from the start, that no result counts.
    pub warmup: Share,
    /// Seed of all random choices.
    pub seed: u64,
    /// Replay at most this many requests; absent = all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// What decides when a request arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostMode {
    /// Its time stamp.
    Open,
    /// The completion of an earlier one.
    Closed,
}

/// [`HostMode`] with the values that belong to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Requests arrive at their time stamps times `time_scale`.
    Open {
        /// Factor on the time between arrivals, above 0.
        time_scale: f64,
    },
    /// `queue_depth` requests are kept in flight.
    Closed {
        /// Requests in flight, at least 1.
        queue_depth: u32,
        /// Pause between a completion and the next request, in nanoseconds.
        think_time_ns: u64,
    },
}

impl HostConfig {
    /// When requests arrive.
    pub fn load(&self) -> Load {
        match self.mode {
            HostMode::Open => Load::Open {
                time_scale: self.time_scale,
            },
            HostMode::Closed => Load::Closed {
                queue_depth: self.queue_depth,
                think_time_ns: self.think_time.0,
            },
        }
    }
}
