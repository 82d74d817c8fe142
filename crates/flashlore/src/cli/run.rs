//! Flags of the commands that replay.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flashlore_sim::config::Nanos;
use flashlore_trace::{ContentModel, DeltaModel, Format, Join, ReadOptions};

use super::readable;
use crate::input::content_model;

/// Flags of `demo`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  flashlore demo --out demo --report demo.html\n  \
                  flashlore demo --json > demo.json && flashlore rerun demo.json"
)]
pub struct DemoArgs {
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// Write results, distributions and time lines into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Make a page of what is in --out, which opens without a network
    #[arg(long, value_name = "FILE", requires = "out")]
    pub report: Option<PathBuf>,
    /// Replace results and page that are there already
    #[arg(long)]
    pub force: bool,
    /// Runs at a time [default: the cores there are]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

/// Flags of `compare`.
#[derive(Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// Traces; each is replayed by itself and gets its own table, unless --join makes them one
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Systems: presets or TOML files, each with @DEVICE behind it if it has a device of its own
    #[arg(
        long,
        value_name = "SYSTEM[@DEVICE],…",
        value_delimiter = ',',
        default_value = "plain,ca-ssd"
    )]
    pub systems: Vec<String>,
    /// Let the devices of the systems differ; the table says so
    #[arg(long)]
    pub allow_different_devices: bool,
    /// Everything else.
    #[command(flatten)]
    pub run: RunArgs,
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  flashlore compare mail.fiu.xz
  flashlore compare mail.fiu.xz web.fiu.xz --device ca-ssd-4g --compact --json
  flashlore compare mail.fiu.xz --systems plain,ca-ssd,my.toml --set dedup.index_entries=128Ki
  flashlore compare prxy_0.csv.gz --content distinct --set host.mode=closed --set host.queue_depth=32
  flashlore compare prxy_0.csv.gz profile:homes-1d --content profile:mail
  flashlore compare mail.fiu.xz --seeds 5 --timeline 1s --out results
  flashlore compare mail.fiu.xz --systems plain@ca-ssd-6g,ca-ssd@ca-ssd-4g --allow-different-devices";

/// Flags of `simulate`.
#[derive(Args)]
#[command(after_help = SIMULATE_EXAMPLES)]
pub struct SimulateArgs {
    /// Traces; each is replayed by itself and gets its own table, unless --join makes them one
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// The system: a preset or a TOML file
    #[arg(long, value_name = "SYSTEM")]
    pub system: String,
    /// Rewind to this many random instants of the window of old versions after the run, and compare every
    /// page with what had been written by then; needs a system with history
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "20")]
    pub recovery_check: Option<NonZeroU32>,
    /// Everything else.
    #[command(flatten)]
    pub run: RunArgs,
}

const SIMULATE_EXAMPLES: &str = "\
Examples:
  flashlore simulate mail.fiu.xz --system ca-ssd
  flashlore simulate mail.fiu.xz --system plain --device tlc-1t --compact
  flashlore simulate mail.fiu.xz --system ca-ssd --request-log requests.csv
  flashlore simulate mail.fiu.xz --system bvssd --recovery-check";

/// Flags of `compare` and `simulate`.
#[derive(Args)]
pub struct RunArgs {
    /// The device: a preset, a TOML file, or `auto`, which is sized from the trace
    #[arg(long, value_name = "NAME|FILE", default_value = "auto")]
    pub device: String,
    /// Change a key: device.KEY, host.KEY or a system's key [example: dedup.index_entries=128Ki]
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Repeat each run with seeds host.seed, host.seed + 1, … and print means with 95 % intervals
    #[arg(long, value_name = "N", default_value = "1")]
    pub seeds: NonZeroU64,
    /// Runs at a time [default: the cores there are]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// How the traces are read.
    #[command(flatten, next_help_heading = "Traces")]
    pub trace: TraceArgs,
    /// What comes out.
    #[command(flatten, next_help_heading = "Results")]
    pub results: ResultArgs,
}

/// How traces are read.
#[derive(Args)]
pub struct ReadArgs {
    #[arg(long, value_name = "FORMAT", help = readable("Format of the input"))]
    format: Option<Format>,
    /// Skip malformed records, and count them, instead of stopping
    #[arg(long)]
    lenient: bool,
    /// Join records that were one request: of one device and operation, at adjacent addresses, at the same time or
    /// at most WITHIN after the first [example: --coalesce=100us]
    #[arg(
        long,
        value_name = "WITHIN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0s"
    )]
    coalesce: Option<Nanos>,
}

impl ReadArgs {
    /// As the library wants it.
    pub fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            lenient: self.lenient,
            coalesce_ns: self.coalesce.map(|within| within.0),
        }
    }
}

/// How traces become workloads.
#[derive(Args)]
pub struct TraceArgs {
    /// How they are read
    #[command(flatten)]
    pub read: ReadArgs,
    /// Where the content of pages comes from: trace (its digests), or assumed: distinct (every page
    /// written is unlike all others), zipf:a=EXPONENT,n=VALUES[,seed=SEED] or
    /// uniform:n=VALUES[,seed=SEED] (values drawn independently for each page write), or
    /// profile:NAME[,seed=SEED] (the values of a synthetic workload on the trace's addresses)
    #[arg(
        long,
        value_name = "MODEL",
        value_parser = content_model,
        default_value_t = ContentModel::FromTrace
    )]
    pub content: ContentModel,
    /// R_c of page writes for systems with codec.ratio = "trace": trace (its own, the default), or drawn:
    /// gaussian:mean=MEAN,std=DEVIATION[,seed=SEED]
    #[arg(long, value_name = "MODEL")]
    pub delta: Option<DeltaModel>,
    /// Leave out pages never touched; implied by devices sized from the trace
    #[arg(long)]
    pub compact: bool,
    /// Replay only requests to this device of the trace; may be repeated
    #[arg(long, value_name = "NAME")]
    pub device_filter: Vec<String>,
    /// Make the traces one workload: one after another, or merged by their times
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "sequence"
    )]
    pub join: Option<JoinBy>,
}

/// What comes out of runs.
#[derive(Args)]
pub struct ResultArgs {
    /// Print the results as JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write results.json, results.parquet, distributions and time lines into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write figures for every stretch of simulated time into --out [example: 1s]
    #[arg(long, value_name = "DURATION", requires = "out")]
    pub timeline: Option<Nanos>,
    /// Write a line of CSV for every request of the one run there is
    #[arg(long, value_name = "FILE")]
    pub request_log: Option<PathBuf>,
    /// Replace results and log that are there already
    #[arg(long)]
    pub force: bool,
}

/// How several traces become one workload.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum JoinBy {
    /// One after another
    Sequence,
    /// Merged by their times, which must be of one clock
    Timeline,
}

impl From<JoinBy> for Join {
    fn from(join: JoinBy) -> Self {
        match join {
            JoinBy::Sequence => Self::Sequence,
            JoinBy::Timeline => Self::Timeline,
        }
    }
}

/// Flags of `rerun`.
#[derive(Args)]
#[command(after_help = "Examples:\n  flashlore rerun results/results.json\n  \
                  flashlore rerun results.json --trace-dir /data/traces")]
pub struct RerunArgs {
    /// A results.json of --out, or the output of --json
    pub results: PathBuf,
    /// Look for the trace files in this directory instead of where they were
    #[arg(long, value_name = "DIR")]
    pub trace_dir: Option<PathBuf>,
    /// Runs at a time [default: the cores there are]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}
