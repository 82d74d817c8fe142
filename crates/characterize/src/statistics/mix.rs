//! Requests, pages and bytes by operation (definition 1).

use flashlore_trace::{Access, Op};
use serde::{Deserialize, Serialize};

use crate::measures::share;

/// How much of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// Requests.
    pub requests: u64,
    /// Pages of 4 KiB touched.
    pub pages: u64,
    /// Bytes, as the trace gives them.
    pub bytes: u64,
}

/// All operations, and the share of writes among reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Reads.
    pub reads: Amount,
    /// Writes.
    pub writes: Amount,
    /// Trims.
    pub trims: Amount,
    /// Flushes.
    pub flushes: Amount,
    /// Share of writes in requests.
    pub write_share_requests: Option<f64>,
    /// Share of writes in pages.
    pub write_share_pages: Option<f64>,
    /// Share of writes in bytes.
    pub write_share_bytes: Option<f64>,
}

/// Counts operations.
#[derive(Debug, Default)]
pub(crate) struct MixCounter {
    mix: Mix,
}

impl MixCounter {
    /// Counts a request.
    pub fn observe(&mut self, access: &Access<'_>) {
        let amount = match access.op {
            Op::Read => &mut self.mix.reads,
            Op::Write => &mut self.mix.writes,
            Op::Trim => &mut self.mix.trims,
            Op::Flush => &mut self.mix.flushes,
        };
        amount.requests += 1;
        amount.pages += u64::from(access.units);
        amount.bytes += access.length;
    }

    /// The counts.
    pub fn finish(self) -> Mix {
        let Mix { reads, writes, .. } = self.mix;
        let of = |field: fn(&Amount) -> u64| share(field(&writes), field(&reads) + field(&writes));
        Mix {
            write_share_requests: of(|amount| amount.requests),
            write_share_pages: of(|amount| amount.pages),
            write_share_bytes: of(|amount| amount.bytes),
            ..self.mix
        }
    }
}
