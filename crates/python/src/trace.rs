//! Traces: where their records are and how they are to be read. The workload made of them is kept, so that runs share
//! it; another layout or content replaces it, and there is never more than one.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flashlore_command::error::CliError;
use flashlore_command::input::{Input, Reading, content_model, open, profile};
use flashlore_command::plan::Plan;
use flashlore_trace::{Join, ReadOptions, WorkloadOptions};
use pyo3::prelude::*;

use crate::errors::{raised, usage};
use crate::watch::{Watch, watched};

/// One trace, or several that are one.
#[pyclass(frozen, module = "flashlore._core")]
pub struct Trace {
    paths: Vec<PathBuf>,
    reading: Reading,
    loaded: Mutex<Option<Loaded>>,
}

/// A workload and what it was made with.
struct Loaded {
    options: WorkloadOptions,
    with_bytes: bool,
    input: Arc<Input>,
}

#[pymethods]
impl Trace {
    /// Names traces and makes sure that they can be opened.
    #[staticmethod]
    #[pyo3(signature = (paths, *, format, lenient, content, delta, compact, devices, join))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the names of the arguments are Python's"
    )]
    fn open(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        format: Option<&str>,
        lenient: bool,
        content: &str,
        delta: Option<&str>,
        compact: Option<bool>,
        devices: Vec<String>,
        join: Option<&str>,
    ) -> PyResult<Self> {
        if paths.is_empty() {
            return Err(usage("no trace is named, expected at least one"));
        }
        if paths.iter().any(|path| path.as_path() == Path::new("-")) {
            return Err(usage("standard input can be read once; expected a file"));
        }
        let format = format.map(str::parse).transpose().map_err(usage_of)?;
        let reading = Reading {
            read: ReadOptions { format, lenient },
            join: join_of(join)?,
            devices,
            compact,
            content: content_model(content).map_err(usage)?,
            delta: delta.map(str::parse).transpose().map_err(usage_of)?,
        };
        py.detach(|| {
            paths
                .iter()
                .try_for_each(|path| open(path, &reading.read).map(drop))
        })
        .map_err(raised)?;
        Ok(Trace::of(paths, reading))
    }

    /// The same records with other content.
    fn with_content(&self, model: &str) -> PyResult<Self> {
        let reading = Reading {
            content: content_model(model).map_err(usage)?,
            ..self.reading.clone()
        };
        Ok(Trace::of(self.paths.clone(), reading))
    }

    /// The summary as JSON. Where it was not said, the layout is compact.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        let watch = Watch::default();
        let summary = watched(py, &watch, None, || {
            let input = self.own(&watch)?;
            Ok(serde_json::to_string(input.summary()).expect("a summary is plain data"))
        })?;
        summary.map_err(raised)
    }
}

impl Trace {
    fn of(paths: Vec<PathBuf>, reading: Reading) -> Self {
        Trace {
            paths,
            reading,
            loaded: Mutex::default(),
        }
    }

    /// Whether it is made by a profile.
    pub fn is_profile(&self) -> bool {
        self.paths.iter().any(|path| profile(path).is_some())
    }

    /// Its workload for a plan; `profiles` tells whether some trace of the plan is made by a profile.
    ///
    /// # Errors
    /// A trace that cannot be read or laid out.
    pub fn for_plan(
        &self,
        plan: &Plan,
        profiles: bool,
        watch: &Watch,
    ) -> Result<Arc<Input>, CliError> {
        let options = self.reading.options(plan, profiles)?;
        self.load(&options, plan.needs_bytes(), watch)
    }

    /// Its workload by itself.
    fn own(&self, watch: &Watch) -> Result<Arc<Input>, CliError> {
        let Reading {
            read,
            join,
            devices,
            compact,
            content,
            delta,
        } = self.reading.clone();
        let options = WorkloadOptions {
            read,
            join,
            devices,
            compact: compact.unwrap_or(true),
            content,
            delta,
        };
        self.load(&options, false, watch)
    }

    fn load(
        &self,
        options: &WorkloadOptions,
        with_bytes: bool,
        _watch: &Watch,
    ) -> Result<Arc<Input>, CliError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*loaded
            && known.options == *options
            && known.with_bytes >= with_bytes
        {
            return Ok(known.input.clone());
        }
        // The old one goes before the new one comes.
        *loaded = None;
        let input = Arc::new(Input::load(&self.paths, options, with_bytes)?);
        *loaded = Some(Loaded {
            options: options.clone(),
            with_bytes,
            input: input.clone(),
        });
        Ok(input)
    }
}

fn join_of(text: Option<&str>) -> PyResult<Join> {
    match text {
        None | Some("sequence") => Ok(Join::Sequence),
        Some("timeline") => Ok(Join::Timeline),
        Some(found) => Err(usage(format!(
            "join={found:?}: expected \"sequence\" or \"timeline\""
        ))),
    }
}

fn usage_of(error: impl ToString) -> PyErr {
    usage(error.to_string())
}
