//! Workloads: what a simulation replays, in mapping units of 4 KiB.
//!
//! One record of any size and alignment becomes one [`Request`] over all units it touches; units
//! touched in part are flagged, because they cost a read-modify-write. A trim covers whole units
//! only. [`Workload`] holds the requests in memory, [`NativeSource`] streams them from a native file;
//! both are a [`RequestSource`] and give the same requests for the same trace.
//!
//! ```text
//! TraceReader(s) -> join -> devices -> translate -> scan -> Summary
//!                                          |                  |
//!                                          +---> layout <-----+  -> requests
//! ```

mod access;
mod current;
mod devices;
mod join;
mod layout;
mod memory;
mod merged;
mod options;
mod pass;
mod ratios;
mod request;
mod scan;
mod stream;
mod summary;
mod translate;
mod units;

pub use access::{Access, AccessSummary, for_each_access, for_each_record};
pub use current::{CurrentValues, NO_VALUE};
pub(crate) use join::Inputs;
pub use memory::Workload;
pub use options::{Join, WorkloadOptions};
pub(crate) use pass::Pass;
pub use request::{MAX_UNITS, Request, RequestBlock, RequestSource};
pub use stream::{FirstPass, NativeSource};
pub use summary::{
    ContentCounts, DeviceSummary, InputSummary, OpCount, OpCounts, PrefillRun, Summary,
};
