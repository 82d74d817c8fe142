//! The record of a run. Its field names are the names in `--json`, `results.json` and
//! `results.parquet`; they are documented and stay. The classes of `python/flashlore/record.py` are made of the structs
//! here, comments included, by `tools/records.py`.
//!
//! Units: *pages* of the host and *units* are 4 KiB mapping units; *flash pages* are those of the
//! device. A figure without meaning for a run, such as a mean of nothing, is absent (`null`).

mod device;
mod policies;

use flashlore_trace::workload::InputSummary;
use flashlore_trace::{Format, Summary, WorkloadOptions};
use serde::{Deserialize, Serialize};

pub(crate) use self::device::mean_and_std;
pub use self::device::{
    BufferTraffic, CacheTraffic, EraseSpread, Flash, Gc, MapTraffic, Programs, QueueTraffic,
    Utilization,
};
pub use self::policies::{Compress, Dedup, Delta, History, Merges, Rewind, Similar};
use super::array::Array;
use super::latency::{LatencyByKind, LatencyStats};
use crate::config::RunConfig;

/// The record of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// Name of the system.
    pub system: String,
    /// Name of the device.
    pub device: String,
    /// Name of the trace, or of several joined.
    pub trace: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Hash of the configuration without the seed.
    pub config_hash: String,
    /// Version of Flashlore that ran it.
    pub version: String,
    /// The files replayed.
    pub trace_files: Vec<TraceFile>,
    /// How they were read and laid out.
    pub workload: WorkloadOptions,
    /// What the host asked for, after the warm-up.
    pub host: Host,
    /// What the flash device did, after the warm-up.
    pub flash: Flash,
    /// Programmed units by cause.
    pub programs: Programs,
    /// All programmed units over units written by the host; below 1 when writes are shared.
    pub waf_total: Option<f64>,
    /// Amplification by garbage collection alone: programmed units for the host and for collection
    /// over those for the host.
    pub waf_gc: Option<f64>,
    /// Garbage collection.
    pub gc: Gc,
    /// Traffic of a map that is partly in RAM; zeros where all of it is.
    pub map: MapTraffic,
    /// The write buffer; zeros on a device without one.
    pub buffer: BufferTraffic,
    /// The read cache; zeros on a device without one.
    pub read_cache: CacheTraffic,
    /// The write queue; zeros on a system without one.
    pub queue: QueueTraffic,
    /// Deduplication; zeros on a system without it.
    pub dedup: Dedup,
    /// Old versions; zeros on a system without them.
    pub history: History,
    /// Updates as deltas; zeros on a system without them.
    pub delta: Delta,
    /// Values compressed by themselves; zeros on a system without them.
    pub compress: Compress,
    /// The array that the device is a part of; zeros on a system that is none. Host and responses are then those of
    /// the array, all other figures those of its SSD.
    pub array: Array,
    /// From arrival to completion, queueing included.
    pub response_us: ResponseByKind,
    /// From the start of service to completion.
    pub service_us: ResponseByKind,
    /// Erases per block while the run was measured.
    pub erases: EraseSpread,
    /// Busy shares of simulated time.
    pub utilization: Utilization,
    /// Energy of the flash operations, in microjoules; 0 when the device publishes none.
    pub energy_uj: f64,
    /// The run itself.
    pub run: RunSpeed,
    /// With [`Self::workload`], everything needed to repeat the run, besides the trace.
    pub configuration: RunConfig,
    /// When requests arrived; absent in results of versions that did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// What the workload of the first seed is known by, where that of this seed was drawn anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn_from: Option<String>,
}

impl RunResult {
    /// Says that the workload was drawn anew, as that of another seed of `first`, whose name it bears.
    pub fn is_drawn_from(&mut self, first: &Summary) {
        let digests = first.inputs.iter().map(|input| input.sha256.as_str());
        self.drawn_from = Some(workload_id(digests, &first.options));
        self.trace = trace_name(first);
    }

    /// What the workload is known by, whichever seed it was drawn with: 32 hexadecimal digits of the files' checksums
    /// and of how they were read.
    pub fn workload_id(&self) -> String {
        let digests = self.trace_files.iter().map(|file| file.sha256.as_str());
        let own = || workload_id(digests, &self.workload);
        self.drawn_from.clone().unwrap_or_else(own)
    }
}

fn workload_id<'a>(digests: impl Iterator<Item = &'a str>, options: &WorkloadOptions) -> String {
    let mut hasher = blake3::Hasher::new();
    for digest in digests {
        hasher.update(digest.as_bytes());
        hasher.update(b"\n");
    }
    hasher.update(&serde_json::to_vec(options).expect("options are plain data"));
    hasher.finalize().to_hex()[..32].to_string()
}

/// The file names of the traces, without folders.
pub fn trace_name(summary: &Summary) -> String {
    let names = summary.inputs.iter().map(|input| {
        let path = std::path::Path::new(&input.path);
        path.file_name()
            .map_or(input.path.as_str().into(), |n| n.to_string_lossy())
    });
    names.collect::<Vec<_>>().join(" + ")
}

/// When requests arrived while the run was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Simulated seconds from the first to the last.
    pub span_s: f64,
    /// Simulated seconds from the last to the end of the run: what was outstanding then.
    pub backlog_s: f64,
}

/// A file that was replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// Its path, as given.
    pub path: String,
    /// Its SHA-256 in hexadecimal, of the bytes in the file (compressed if it is).
    pub sha256: String,
    /// Its format, given or recognised.
    pub format: Format,
    /// Records read from it.
    pub records: u64,
    /// Records whose time was below that of an earlier one and was raised.
    pub clamped: u64,
    /// Malformed records that lenient reading skipped.
    pub skipped: u64,
}

impl TraceFile {
    /// The file behind one input of a workload.
    pub fn of(input: &InputSummary) -> Self {
        Self {
            path: input.path.clone(),
            sha256: input.sha256.clone(),
            format: input.format,
            records: input.read.records,
            clamped: input.read.clamped,
            skipped: input.read.skipped,
        }
    }
}

/// What the host asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Requests of all kinds.
    pub requests: u64,
    /// Units read.
    pub read_pages: u64,
    /// Units written.
    pub write_pages: u64,
    /// Units trimmed.
    pub trim_pages: u64,
    /// Bytes of reads and writes, in whole 4 KiB units.
    pub bytes: u64,
}

/// Latencies by kind of request, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseByKind {
    /// Of reads.
    pub read: LatencyStats,
    /// Of writes.
    pub write: LatencyStats,
    /// Of all requests, trims included.
    pub all: LatencyStats,
}

impl ResponseByKind {
    /// The figures of the latencies recorded.
    pub fn of(latencies: &LatencyByKind) -> Self {
        Self {
            read: latencies.read.stats(),
            write: latencies.write.stats(),
            all: latencies.all().stats(),
        }
    }
}

/// The run itself. Only `simulated_s` repeats exactly.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpeed {
    /// Seconds of real time.
    pub wall_s: f64,
    /// Requests replayed per second of real time.
    pub requests_per_s: f64,
    /// Seconds of simulated time.
    pub simulated_s: f64,
    /// Largest memory of the process so far, in bytes; several runs at once share it.
    pub peak_rss_bytes: Option<u64>,
}
