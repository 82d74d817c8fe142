//! `results.json` and the directory that `--out` names.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flashlore_trace::{Existing, OutputError, OutputSet};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::findings::{Finding, findings};
use super::frame::{Frame, FrameError};
use super::interval::{SeedSummary, seed_summaries};
use super::latency::LatencyByKind;
use super::record::RunResult;
use super::timeline::Timeline;
use crate::engine::recovery::Recovered;

/// The columns that come first in every table: whose row it is.
pub const LABELS: [&str; 4] = ["system", "device", "trace", "seed"];

/// What a run hands over: its record, and what is too large for it.
#[derive(Debug, Clone)]
pub struct RunOutput {
    /// The record.
    pub result: RunResult,
    /// The response times behind `response_us`.
    pub response: LatencyByKind,
    /// The timeline, if one was asked for.
    pub timeline: Option<Timeline>,
    /// The comparison of old versions, if one was asked for.
    pub recovered: Option<Recovered>,
}

/// A run as the tables of a results directory are made of it.
pub trait Tabled {
    /// Its record.
    fn result(&self) -> &RunResult;

    /// Rows of its `response_cdf`: the kind of request, microseconds, the share of requests not above.
    fn response_rows(&self) -> Vec<Value>;

    /// Rows of its `timeline`; none if none was asked for.
    fn timeline_rows(&self) -> Vec<Value>;

    /// Rows of its `victim_cdf`: valid units, victims that held so many, the share of victims not above.
    fn victim_rows(&self) -> Vec<Value> {
        let victims = &self.result().gc.valid_per_victim;
        distribution_rows(victims, ["valid_units", "victims"])
    }

    /// Rows of its `erase_cdf`: erases, blocks erased so often, the share of blocks not above.
    fn erase_rows(&self) -> Vec<Value> {
        distribution_rows(&self.result().erases.per_block, ["erases", "blocks"])
    }
}

impl Tabled for RunOutput {
    fn result(&self) -> &RunResult {
        &self.result
    }

    fn response_rows(&self) -> Vec<Value> {
        let latencies = &self.response;
        let all = latencies.all();
        let kinds = [
            ("read", &latencies.read),
            ("write", &latencies.write),
            ("all", &all),
        ];
        let rows = kinds.into_iter().flat_map(|(kind, latency)| {
            let row = move |(us, share): (f64, f64)| json!({"kind": kind, "response_us": us, "share": share});
            latency.cdf().into_iter().map(row)
        });
        rows.collect()
    }

    fn timeline_rows(&self) -> Vec<Value> {
        let rows = self.timeline.iter().flat_map(Timeline::rows);
        rows.map(|row| serde_json::to_value(row).unwrap_or(Value::Null))
            .collect()
    }
}

/// The tables of a results directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultsTable {
    /// `results`: a row for each run, a column for each number and text of its record; configuration and lists are
    /// left out.
    Runs,
    /// `response_cdf`.
    ResponseCdf,
    /// `victim_cdf`.
    VictimCdf,
    /// `erase_cdf`.
    EraseCdf,
    /// `timeline`.
    Timeline,
}

impl ResultsTable {
    /// The table of these runs, rows labelled by system, device, trace and seed. Without rows it has no columns.
    pub fn of<R: Tabled>(self, runs: &[R]) -> Frame {
        let rows = |run: &R| match self {
            Self::Runs => vec![record_row(run.result())],
            Self::ResponseCdf => run.response_rows(),
            Self::VictimCdf => run.victim_rows(),
            Self::EraseCdf => run.erase_rows(),
            Self::Timeline => run.timeline_rows(),
        };
        let labelled = |run| {
            let rows = rows(run).into_iter();
            rows.map(|row| labelled(run.result(), row))
        };
        Frame::from_rows(&LABELS, &runs.iter().flat_map(labelled).collect::<Vec<_>>())
    }
}

/// The top level of `--json` and `results.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultsFile {
    /// Version of Flashlore that wrote it.
    pub version: String,
    /// The runs.
    pub runs: Vec<RunResult>,
    /// Means and intervals of each configuration that ran with several seeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<SeedSummary>,
    /// What to mind before a number is trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// Results that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Its file.
        path: PathBuf,
        /// The reason.
        source: FrameError,
    },
    /// What is no JSON of results, such as a trace.
    #[error(
        "{name} is not a results file: expected the results.json of --out or the output of --json, which begin with \
         {{, found something else; a trace is replayed with `flashlore compare`"
    )]
    Foreign {
        /// The name of the file.
        name: String,
    },
    /// A text that is not a results file.
    #[error("{name} is not a results file: {source}")]
    Parse {
        /// The name of the text.
        name: String,
        /// The reason, with line and column.
        source: serde_json::Error,
    },
}

impl ResultsFile {
    /// The results of `runs`, with a summary for each configuration that ran with several seeds.
    pub fn new(runs: Vec<RunResult>) -> Self {
        let seeds = seed_summaries(&runs);
        let findings = findings(&runs);
        Self {
            version: env!("CARGO_PKG_VERSION").to_string(),
            runs,
            seeds,
            findings,
        }
    }

    /// The results as indented JSON, ending in a newline.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("results are plain data");
        text.push('\n');
        text
    }

    /// Reads what [`Self::to_json`] wrote; `name` is for the error.
    ///
    /// # Errors
    /// A text that is not JSON, lacks fields or has others.
    pub fn from_json(text: &str, name: &str) -> Result<Self, ResultsError> {
        let name = name.to_string();
        if !text.trim_start().starts_with('{') {
            return Err(ResultsError::Foreign { name });
        }
        serde_json::from_str(text).map_err(|source| ResultsError::Parse { name, source })
    }

    /// Reads a results file.
    ///
    /// # Errors
    /// As [`Self::from_json`], and a file that cannot be read.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        let name = path.display().to_string();
        let bytes = fs::read(path).map_err(|source| ResultsError::Read {
            path: path.to_path_buf(),
            source: source.into(),
        })?;
        match String::from_utf8(bytes) {
            Ok(text) => Self::from_json(&text, &name),
            Err(_) => Err(ResultsError::Foreign { name }),
        }
    }
}

/// The files of runs in a results directory, the head first.
pub const RESULT_FILES: &[&str] = &[
    "results.json",
    "results.parquet",
    "response_cdf.parquet",
    "response_cdf.csv",
    "victim_cdf.parquet",
    "victim_cdf.csv",
    "erase_cdf.parquet",
    "erase_cdf.csv",
    "timeline.parquet",
    "timeline.csv",
];

/// Writes into `dir`, which is made if needed, all files or none:
///
/// * `results.json`, and `results.parquet` with a row for each run and a column for each number and
///   text of its record (configuration and lists left out);
/// * `response_cdf` (kind of request, microseconds, share of requests not above), `victim_cdf`
///   (valid units, victims, share of victims not above), `erase_cdf` (erases, blocks, share of blocks
///   not above) and, where runs have one, `timeline`: each as `.parquet` and `.csv`, rows labelled by system, device, trace and seed.
///
/// # Errors
/// A directory that holds results that are to stay, and what cannot be written.
pub fn write_directory<R: Tabled>(
    dir: &Path,
    runs: &[R],
    existing: Existing,
) -> Result<(), OutputError> {
    let mut set = OutputSet::create(dir, RESULT_FILES, existing)?;
    let results = ResultsFile::new(runs.iter().map(|run| run.result().clone()).collect());
    set.write("results.json", |out| {
        out.write_all(results.to_json().as_bytes())
    })?;
    let records = ResultsTable::Runs.of(runs);
    set.write("results.parquet", |out| Ok(records.write_parquet(out)?))?;
    for (name, table) in [
        ("response_cdf", ResultsTable::ResponseCdf),
        ("victim_cdf", ResultsTable::VictimCdf),
        ("erase_cdf", ResultsTable::EraseCdf),
        ("timeline", ResultsTable::Timeline),
    ] {
        let frame = table.of(runs);
        // Without rows there are no files.
        if !frame.is_empty() {
            set.write(&format!("{name}.parquet"), |out| {
                Ok(frame.write_parquet(out)?)
            })?;
            set.write(&format!("{name}.csv"), |out| frame.write_csv(out))?;
        }
    }
    set.complete()
}

fn record_row(result: &RunResult) -> Value {
    let mut row = serde_json::to_value(result).unwrap_or(Value::Null);
    if let Value::Object(fields) = &mut row {
        fields.remove("configuration");
    }
    row
}

/// The columns that tell whose row it is, with those of `row`.
fn labelled(result: &RunResult, row: Value) -> Value {
    let mut labelled = json!({
        "system": result.system,
        "device": result.device,
        "trace": result.trace,
        "seed": result.seed,
    });
    if let (Value::Object(all), Value::Object(own)) = (&mut labelled, row) {
        all.extend(own);
    }
    labelled
}

/// A row for each pair of a value and how many have it, with the share of those not above; values ascend.
fn distribution_rows(pairs: &[(u64, u64)], [value_name, count_name]: [&str; 2]) -> Vec<Value> {
    let all: u64 = pairs.iter().map(|(_, count)| count).sum();
    let mut below = 0;
    let row = |&(value, count): &(u64, u64)| {
        below += count;
        json!({value_name: value, count_name: count, "share": below as f64 / all as f64})
    };
    pairs.iter().map(row).collect()
}
