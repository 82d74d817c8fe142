//! `results.json` and the directory that `--out` names.
//!
//! A file appears complete or not at all: it is written under another name and then renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::frame::{Frame, FrameError};
use super::interval::{SeedSummary, seed_summaries};
use super::latency::LatencyByKind;
use super::record::RunResult;
use super::timeline::Timeline;
use crate::engine::recovery::Recovered;

/// The columns that come first in every table: whose row it is.
const LABELS: [&str; 4] = ["system", "device", "trace", "seed"];

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
}

/// Results that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file or directory that cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: FrameError,
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
        Self {
            version: env!("CARGO_PKG_VERSION").to_string(),
            runs,
            seeds,
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
        serde_json::from_str(text).map_err(|source| ResultsError::Parse {
            name: name.to_string(),
            source,
        })
    }
}

/// Writes into `dir`, which is made if needed:
///
/// * `results.json`, and `results.parquet` with a row for each run and a column for each number and
///   text of its record (configuration and lists left out);
/// * `response_cdf` (kind of request, microseconds, share of requests not above), `victim_cdf`
///   (valid units, victims, share of victims not above), `erase_cdf` (erases, blocks, share of blocks
///   not above) and, where runs have one, `timeline`: each as `.parquet` and `.csv`, rows labelled by system, device, trace and seed.
///
/// # Errors
/// A directory or file that cannot be written. Files written before stay.
pub fn write_directory(dir: &Path, outputs: &[RunOutput]) -> Result<(), ResultsError> {
    fs::create_dir_all(dir).map_err(|source| ResultsError::Write {
        path: dir.to_path_buf(),
        source: source.into(),
    })?;
    let results = ResultsFile::new(outputs.iter().map(|output| output.result.clone()).collect());
    write_file(&dir.join("results.json"), |out| {
        Ok(out.write_all(results.to_json().as_bytes())?)
    })?;
    let runs = Frame::from_rows(
        &LABELS,
        &results.runs.iter().map(record_row).collect::<Vec<_>>(),
    );
    write_file(&dir.join("results.parquet"), |out| runs.write_parquet(out))?;
    write_frame(dir, "response_cdf", outputs.iter().flat_map(response_rows))?;
    write_frame(dir, "victim_cdf", outputs.iter().flat_map(victim_rows))?;
    write_frame(dir, "erase_cdf", outputs.iter().flat_map(erase_rows))?;
    write_frame(dir, "timeline", outputs.iter().flat_map(timeline_rows))
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

fn response_rows(output: &RunOutput) -> Vec<Value> {
    let latencies = &output.response;
    let all = latencies.all();
    let kinds = [
        ("read", &latencies.read),
        ("write", &latencies.write),
        ("all", &all),
    ];
    let rows = kinds.into_iter().flat_map(|(kind, latency)| {
        let row =
            move |(us, share): (f64, f64)| json!({"kind": kind, "response_us": us, "share": share});
        latency.cdf().into_iter().map(row)
    });
    rows.map(|row| labelled(&output.result, row)).collect()
}

fn victim_rows(output: &RunOutput) -> Vec<Value> {
    let victims = &output.result.gc.valid_per_victim;
    distribution_rows(&output.result, victims, ["valid_units", "victims"])
}

fn erase_rows(output: &RunOutput) -> Vec<Value> {
    let blocks = &output.result.erases.per_block;
    distribution_rows(&output.result, blocks, ["erases", "blocks"])
}

/// A row for each pair of a value and how many have it, with the share of those not above; values ascend.
fn distribution_rows(
    result: &RunResult,
    pairs: &[(u64, u64)],
    [value_name, count_name]: [&str; 2],
) -> Vec<Value> {
    let all: u64 = pairs.iter().map(|(_, count)| count).sum();
    let mut below = 0;
    let row = |&(value, count): &(u64, u64)| {
        below += count;
        let share = below as f64 / all as f64;
        let row = json!({value_name: value, count_name: count, "share": share});
        labelled(result, row)
    };
    pairs.iter().map(row).collect()
}

fn timeline_rows(output: &RunOutput) -> Vec<Value> {
    let rows = output.timeline.iter().flat_map(Timeline::rows);
    let row = |row| {
        labelled(
            &output.result,
            serde_json::to_value(row).unwrap_or(Value::Null),
        )
    };
    rows.map(row).collect()
}

/// Writes `rows` as `NAME.parquet` and `NAME.csv`; without rows there are no files.
fn write_frame(
    dir: &Path,
    name: &str,
    rows: impl Iterator<Item = Value>,
) -> Result<(), ResultsError> {
    let rows: Vec<Value> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    let frame = Frame::from_rows(&LABELS, &rows);
    write_file(&dir.join(format!("{name}.parquet")), |out| {
        frame.write_parquet(out)
    })?;
    write_file(&dir.join(format!("{name}.csv")), |out| {
        Ok(frame.write_csv(out)?)
    })
}

/// Writes a file beside `path` and renames it to `path`; removes it if that fails.
///
/// # Errors
/// What `write` says, and a file that cannot be made, written or renamed.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), FrameError>,
) -> Result<(), ResultsError> {
    // A link stays one; what is no file is not replaced by one.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if path.exists() && !path.is_file() {
        return Err(ResultsError::Write {
            path: path.clone(),
            source: io::Error::other("found no regular file, expected one or nothing").into(),
        });
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = write_through(&temporary, write).and_then(|()| Ok(fs::rename(&temporary, path)?));
    written.map_err(|source| {
        // What is left of it is worthless, and there may be nothing.
        let _ = fs::remove_file(&temporary);
        ResultsError::Write {
            path: path.to_path_buf(),
            source,
        }
    })
}

fn write_through(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), FrameError>,
) -> Result<(), FrameError> {
    let mut out = BufWriter::new(File::create(path)?);
    write(&mut out)?;
    out.into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()?;
    Ok(())
}
