//! What runs leave: records, distributions and time lines, as they come from a run or from the files of one.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use flashlore_command::error::CliError;
use flashlore_sim::results::{
    Column, Frame, LABELS, ResultsFile, ResultsTable, RunOutput, RunResult, TableStyle, Tabled,
    compare_table, write_directory,
};
use flashlore_trace::Existing;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;

use crate::errors::{exception, raised, usage};
use crate::table::Table;

/// What one run left.
#[pyclass(frozen, module = "flashlore._core")]
#[derive(Clone)]
pub struct Output(Arc<HeldResult>);

/// A pickled output.
type PickledState<'py> = (
    String,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyBytes>>,
);

enum HeldResult {
    Ran(Box<RunOutput>),
    Read {
        result: Box<RunResult>,
        response: Option<Rows>,
        timeline: Option<Rows>,
    },
}

/// The rows of a run in a table of several runs.
struct Rows {
    frame: Arc<Frame>,
    rows: Range<usize>,
}

impl From<RunOutput> for Output {
    fn from(output: RunOutput) -> Self {
        Output(Arc::new(HeldResult::Ran(Box::new(output))))
    }
}

#[pymethods]
impl Output {
    /// The record as JSON.
    fn record(&self) -> String {
        serde_json::to_string(self.result()).expect("a record is plain data")
    }

    /// All of it: the record as JSON, response times and time line as Parquet.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<PickledState<'py>> {
        let table = |has: bool, table: ResultsTable| -> PyResult<_> {
            if !has {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            py.detach(|| {
                table
                    .of(std::slice::from_ref(self))
                    .write_parquet(&mut bytes)
            })
            .map_err(unreadable)?;
            Ok(Some(PyBytes::new(py, &bytes)))
        };
        Ok((
            self.record(),
            table(self.has_responses(), ResultsTable::ResponseCdf)?,
            table(self.has_timeline(), ResultsTable::Timeline)?,
        ))
    }

    /// Makes it of its state.
    #[staticmethod]
    fn restore(state: PickledState<'_>) -> PyResult<Self> {
        let (record, response, timeline) = state;
        let result = serde_json::from_str(&record).map_err(unreadable)?;
        let rows = |bytes: Option<Bound<'_, PyBytes>>| -> PyResult<_> {
            let Some(bytes) = bytes else {
                return Ok(None);
            };
            let bytes = Bytes::copy_from_slice(bytes.as_bytes());
            let frame = Frame::read_parquet(bytes).map_err(unreadable)?;
            let rows = 0..frame.len();
            Ok(Some(Rows {
                frame: Arc::new(frame),
                rows,
            }))
        };
        Ok(Output(Arc::new(HeldResult::Read {
            result,
            response: rows(response)?,
            timeline: rows(timeline)?,
        })))
    }

    /// Whether the response times are known, and not their percentiles alone.
    #[getter]
    fn has_responses(&self) -> bool {
        match &*self.0 {
            HeldResult::Ran(_) => true,
            HeldResult::Read { response, .. } => response.is_some(),
        }
    }

    /// Whether there is a time line.
    #[getter]
    fn has_timeline(&self) -> bool {
        match &*self.0 {
            HeldResult::Ran(output) => output.timeline.is_some(),
            HeldResult::Read { timeline, .. } => timeline.is_some(),
        }
    }

    /// Pages compared with what was written, at so many instants of the window, and rewinds to them.
    #[getter]
    fn recovered(&self) -> Option<(u64, u32, u64)> {
        match &*self.0 {
            HeldResult::Ran(output) => output
                .recovered
                .map(|found| (found.pages, found.instants, found.rewinds.into())),
            HeldResult::Read { .. } => None,
        }
    }
}

impl Tabled for Output {
    fn result(&self) -> &RunResult {
        match &*self.0 {
            HeldResult::Ran(output) => &output.result,
            HeldResult::Read { result, .. } => result,
        }
    }

    fn response_rows(&self) -> Vec<Value> {
        match &*self.0 {
            HeldResult::Ran(output) => output.response_rows(),
            HeldResult::Read { response, .. } => response.iter().flat_map(Rows::all).collect(),
        }
    }

    fn timeline_rows(&self) -> Vec<Value> {
        match &*self.0 {
            HeldResult::Ran(output) => output.timeline_rows(),
            HeldResult::Read { timeline, .. } => timeline.iter().flat_map(Rows::all).collect(),
        }
    }
}

impl Rows {
    /// Without the labels.
    fn all(&self) -> impl Iterator<Item = Value> + '_ {
        self.rows.clone().map(|number| {
            let mut row = self.frame.row(number);
            row.retain(|name, _| !LABELS.contains(&name.as_str()));
            Value::Object(row)
        })
    }
}

/// Writes what `--out` writes.
#[pyfunction]
pub fn save(
    py: Python<'_>,
    outputs: Vec<Py<Output>>,
    directory: PathBuf,
    force: bool,
) -> PyResult<()> {
    let outputs = of_python(&outputs);
    py.detach(|| write_directory(&directory, &outputs, Existing::from(force)))
        .map_err(|error| raised(error.into()))
}

/// The table with this name: results, response_cdf, victim_cdf, erase_cdf or timeline.
#[pyfunction]
pub fn table(py: Python<'_>, outputs: Vec<Py<Output>>, name: &str) -> PyResult<Table> {
    let table = match name {
        "results" => ResultsTable::Runs,
        "response_cdf" => ResultsTable::ResponseCdf,
        "victim_cdf" => ResultsTable::VictimCdf,
        "erase_cdf" => ResultsTable::EraseCdf,
        "timeline" => ResultsTable::Timeline,
        _ => return Err(usage(format!("there is no table {name:?}"))),
    };
    let outputs = of_python(&outputs);
    Table::of_frame(&py.detach(|| table.of(&outputs)))
}

/// The results as the command line prints them: as a table, and as JSON.
#[pyfunction]
pub fn describe(py: Python<'_>, outputs: Vec<Py<Output>>) -> (String, String) {
    let outputs = of_python(&outputs);
    py.detach(|| {
        let runs: Vec<RunResult> = outputs.iter().map(|o| o.result().clone()).collect();
        let table = compare_table(&runs, TableStyle { color: false });
        (table, ResultsFile::new(runs).to_json())
    })
}

/// What to mind before numbers of these runs are trusted, as JSON.
#[pyfunction]
pub fn findings(py: Python<'_>, outputs: Vec<Py<Output>>) -> String {
    let outputs = of_python(&outputs);
    py.detach(|| {
        let runs: Vec<RunResult> = outputs.iter().map(|o| o.result().clone()).collect();
        let found = flashlore_sim::results::findings(&runs);
        serde_json::to_string(&found).expect("findings are plain data")
    })
}

/// Reads a directory of `--out`, a `results.json`, or the output of `--json`.
#[pyfunction]
pub fn load(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Output>> {
    py.detach(|| read(&path)).map_err(raised)
}

fn unreadable(error: impl ToString) -> PyErr {
    exception("ResultsError", error.to_string())
}

fn of_python(outputs: &[Py<Output>]) -> Vec<Output> {
    outputs.iter().map(|output| output.get().clone()).collect()
}

fn read(path: &Path) -> Result<Vec<Output>, CliError> {
    let (file, dir) = match path.is_dir() {
        true => (path.join("results.json"), Some(path)),
        false => (path.to_path_buf(), None),
    };
    if !file.exists() {
        let source = std::io::ErrorKind::NotFound.into();
        let (action, path) = ("read", file);
        return Err(CliError::File {
            action,
            path,
            source,
        });
    }
    let runs = ResultsFile::read(&file)?.runs;
    let table = |name: &str| match dir.map(|dir| dir.join(name)) {
        Some(path) if path.exists() => read_frame(&path).map(Some),
        _ => Ok(None),
    };
    let mut response = table("response_cdf.parquet")?.map(Cut::new);
    let mut timeline = table("timeline.parquet")?.map(Cut::new);
    let output = |result: RunResult| {
        let response = response.as_mut().map(|cut| cut.next(&result));
        let timeline = timeline.as_mut().and_then(|cut| cut.next_if_any(&result));
        Output(Arc::new(HeldResult::Read {
            result: Box::new(result),
            response,
            timeline,
        }))
    };
    Ok(runs.into_iter().map(output).collect())
}

fn read_frame(path: &Path) -> Result<Frame, CliError> {
    let file = File::open(path).map_err(|source| CliError::File {
        action: "read",
        path: path.to_path_buf(),
        source,
    })?;
    Frame::read_parquet(file).map_err(|source| {
        CliError::Results(flashlore_sim::results::ResultsError::Read {
            path: path.to_path_buf(),
            source,
        })
    })
}

/// A table being cut into the rows of its runs, which stand in the order of the runs.
struct Cut {
    frame: Arc<Frame>,
    at: usize,
}

impl Cut {
    fn new(frame: Frame) -> Self {
        Cut {
            frame: Arc::new(frame),
            at: 0,
        }
    }

    /// The rows of the next run: those with its labels, as long as they ascend. Two runs may have the same labels.
    fn next(&mut self, result: &RunResult) -> Rows {
        let columns = PlaceColumns::of(&self.frame);
        let seed = result.seed.to_string();
        let labels = [&result.system, &result.device, &result.trace, &seed];
        let first = self.at;
        let mut last = None;
        while self.at < self.frame.len() && columns.are(self.at, labels) {
            let place = columns.place(self.at);
            if last.is_some_and(|last| place <= last) {
                break;
            }
            last = Some(place);
            self.at += 1;
        }
        Rows {
            frame: self.frame.clone(),
            rows: first..self.at,
        }
    }

    fn next_if_any(&mut self, result: &RunResult) -> Option<Rows> {
        let rows = self.next(result);
        (!rows.rows.is_empty()).then_some(rows)
    }
}

/// The columns that say whose a row is and where it stands.
struct PlaceColumns<'a> {
    labels: [Option<&'a Column>; 4],
    kind: Option<&'a Column>,
    /// Microseconds of a distribution, or seconds of a time line.
    along: Option<&'a Column>,
}

impl<'a> PlaceColumns<'a> {
    fn of(frame: &'a Frame) -> Self {
        let column = |name: &str| {
            let mut columns = frame.columns().iter();
            columns.find(|(known, _)| known == name).map(|(_, c)| c)
        };
        PlaceColumns {
            labels: LABELS.map(column),
            kind: column("kind"),
            along: column("response_us").or_else(|| column("start_s")),
        }
    }

    /// Whether a row has these labels.
    fn are(&self, row: usize, labels: [&String; 4]) -> bool {
        let is = |(column, label): (&Option<&Column>, &String)| match column {
            Some(Column::Text(values)) => values[row].as_ref() == Some(label),
            Some(Column::Integer(values)) => {
                values[row].map(|value| value.to_string()).as_ref() == Some(label)
            }
            Some(Column::Float(_)) | None => false,
        };
        self.labels.iter().zip(labels).all(is)
    }

    /// Where a row stands among those of its run.
    fn place(&self, row: usize) -> (usize, f64) {
        let kind = match self.kind {
            Some(Column::Text(values)) => values[row].as_deref(),
            _ => None,
        };
        let along = match self.along {
            Some(Column::Float(values)) => values[row],
            Some(Column::Integer(values)) => values[row].map(|value| value as f64),
            _ => None,
        };
        let kinds = ["read", "write", "all"];
        (
            kinds.iter().position(|k| Some(*k) == kind).unwrap_or(0),
            along.unwrap_or(0.0),
        )
    }
}
