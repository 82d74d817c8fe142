//! What is known about the locality of a trace.

use std::fs;
use std::path::PathBuf;

use flashlore_characterize::{Characteristics, Options, PageSource, tables, write_dir};
use flashlore_command::bytes::pages_of;
use flashlore_command::characterizing::characterized;
use flashlore_command::error::CliError;
use flashlore_sim::config::{Nanos, Size};
use flashlore_sim::results::ResultsError;
use flashlore_trace::{ContentModel, DeltaModel, Existing, WorkloadOptions};
use pyo3::prelude::*;

use crate::errors::{raised, usage};
use crate::table::Table;
use crate::trace::Trace;
use crate::watch::{Watch, watched};

/// The statistics of a trace.
#[pyclass(frozen, module = "flashlore._core")]
pub struct Characterization(Characteristics);

#[pymethods]
impl Characterization {
    /// Everything as JSON, as in `summary.json`.
    fn to_json(&self) -> String {
        serde_json::to_string(&self.0).expect("characteristics are plain data")
    }

    /// Everything as the command line prints it.
    fn __str__(&self) -> String {
        self.0.to_string()
    }

    /// The tables by name, those without rows too.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, Table)>> {
        let frames: Vec<_> = py.detach(|| tables(&self.0).collect());
        let table = |(name, frame)| Ok((name, Table::of_frame(&frame)?));
        frames.into_iter().map(table).collect()
    }

    /// Writes what `--out` writes.
    fn save(&self, py: Python<'_>, directory: PathBuf, force: bool) -> PyResult<()> {
        py.detach(|| write_dir(&directory, &self.0, Existing::from(force)))
            .map_err(|error| raised(error.into()))
    }

    /// Reads a directory of `--out`, or its `summary.json`.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let file = match path.is_dir() {
            true => path.join("summary.json"),
            false => path,
        };
        let text = fs::read_to_string(&file).map_err(|source| {
            raised(CliError::File {
                action: "read",
                path: file.clone(),
                source,
            })
        })?;
        let found = serde_json::from_str(&text).map_err(|source| {
            let name = file.display().to_string();
            raised(ResultsError::Parse { name, source }.into())
        })?;
        Ok(Characterization(found))
    }
}

/// Looks at a trace once. The R_c of writes is what the trace's reading says, or the trace's own where there is one.
#[pyfunction]
#[pyo3(signature = (trace, *, slice, sample, capacities, pages, pages_memory))]
pub fn characterize(
    py: Python<'_>,
    trace: Py<Trace>,
    slice: Option<&str>,
    sample: f64,
    capacities: Vec<String>,
    pages: Option<PathBuf>,
    pages_memory: u64,
) -> PyResult<Characterization> {
    let said = |what: &str, error: String| usage(format!("{what}: {error}"));
    let slice: Option<Nanos> = slice
        .map(str::parse)
        .transpose()
        .map_err(|error: flashlore_sim::config::ParseUnitError| said("slice", error.to_string()))?;
    let capacities = capacities
        .iter()
        .map(|text| text.parse().map(|size: Size| size.0))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| said("capacities", error.to_string()))?;
    let options = Options {
        slice_ns: slice.map(|slice| slice.0),
        sample_rate: sample,
        capacities,
        ..Options::default()
    };
    let watch = Watch::default();
    let found = watched(py, &watch, None, || {
        let trace = trace.get();
        let asked = trace.reading().delta;
        let workload = WorkloadOptions {
            delta: asked.or(Some(DeltaModel::FromTrace)),
            ..trace.as_read()
        };
        options.check()?;
        let pages = match (&pages, trace.path()) {
            (None, _) => None,
            (Some(file), Some(path)) if workload.content == ContentModel::FromTrace => {
                Some(pages_of(file, path, &workload.read, pages_memory)?)
            }
            _ => {
                return Err(CliError::Usage(
                    "pages belong to one trace in a file, with its own content".to_owned(),
                ));
            }
        };
        let source = pages.as_ref().map(|pages| pages as &dyn PageSource);
        let readers = trace.readers(watch.stop())?;
        characterized(readers, &options, &workload, source, asked)
    })?;
    found.map(Characterization).map_err(raised)
}
