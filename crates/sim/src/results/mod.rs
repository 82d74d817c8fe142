//! What a run reports: records with documented names, latencies, timelines, and the tables and
//! files made of them.

mod array;
mod compare;
mod equality;
mod findings;
mod frame;
mod interval;
mod latency;
mod notes;
mod output;
mod overview;
mod process;
mod record;
mod timeline;

pub use array::Array;
pub use compare::{TableStyle, compare_table};
pub use equality::{Difference, differences};
pub use findings::{Finding, FindingId, Findings, findings, findings_text};
pub use frame::{Column, Frame, FrameError};
pub use interval::{Estimate, SeedSummary, estimate, seed_summaries, summarize};
pub use latency::{Latency, LatencyByKind, LatencyStats};
pub use output::{
    LABELS, RESULT_FILES, ResultsError, ResultsFile, ResultsTable, RunOutput, Tabled,
    write_directory,
};
pub use overview::overview_table;
pub use process::peak_rss_bytes;
pub use record::{
    Arrivals, BufferTraffic, CacheTraffic, Compress, Dedup, Delta, EraseSpread, Flash, Gc, History,
    Host, MapTraffic, Merges, Programs, QueueTraffic, ResponseByKind, Rewind, RunResult, RunSpeed,
    Similar, TraceFile, Utilization, trace_name,
};
pub use timeline::{Bucket, Space, Timeline, TimelineRow, Wear};
