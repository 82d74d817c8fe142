//! Traces: where their records are and how they are to be read. The workload made of them is kept, so that runs share
//! it; another layout or content replaces it, and there is never more than one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder, UInt64Builder};
use flashlore_command::draws::redrawn;
use flashlore_command::error::CliError;
use flashlore_command::input::{Input, Reading, content_model, open, profile};
use flashlore_command::plan::Plan;
use flashlore_sim::config::Nanos;
use flashlore_trace::{
    ContentModel, Join, Op, ReadOptions, Record, Records, Stop, TraceReader, WorkloadOptions,
    for_each_record,
};
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::arrays;
use crate::errors::{raised, usage};
use crate::table::Table;
use crate::watch::{Watch, watched};

/// One trace, or several that are one.
#[pyclass(frozen, module = "flashlore._core")]
pub struct Trace {
    source: TraceSource,
    reading: Reading,
    loaded: Mutex<Option<Loaded>>,
}

#[derive(Clone)]
enum TraceSource {
    Paths(Vec<PathBuf>),
    Records(Arc<Records>),
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
    #[pyo3(signature = (paths, *, format, lenient, coalesce, content, delta, compact, devices, join))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the names of the arguments are Python's"
    )]
    fn open(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        format: Option<&str>,
        lenient: bool,
        coalesce: Option<&str>,
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
            read: ReadOptions {
                format,
                lenient,
                coalesce_ns: coalesce.map(within).transpose()?,
            },
            join: join_of(join)?,
            devices,
            compact,
            content: content_model(content).map_err(usage)?,
            delta: delta.map(str::parse).transpose().map_err(usage_of)?,
        };
        py.detach(|| {
            let mut paths = paths.iter();
            paths.try_for_each(|path| open(path, &reading.read).map(drop))
        })
        .map_err(raised)?;
        Ok(Trace::of(TraceSource::Paths(paths), reading))
    }

    /// The records that arrays of equal length describe.
    #[staticmethod]
    fn from_arrays(
        py: Python<'_>,
        op: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
        length: &Bound<'_, PyAny>,
        time: Option<&Bound<'_, PyAny>>,
        content: Option<&Bound<'_, PyAny>>,
        name: &str,
    ) -> PyResult<Self> {
        let records = arrays::of_buffers(py, [op, offset, length], time, content, name)?;
        Ok(Trace::of(
            TraceSource::Records(Arc::new(records)),
            as_it_is(),
        ))
    }

    /// The records of an Arrow stream with columns of fixed types.
    #[staticmethod]
    fn from_stream(py: Python<'_>, data: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let records = arrays::of_stream(py, data, name)?;
        Ok(Trace::of(
            TraceSource::Records(Arc::new(records)),
            as_it_is(),
        ))
    }

    /// The same records, read in another way where it is said. Those in memory are shared.
    fn with_content(&self, model: &str) -> PyResult<Self> {
        let reading = Reading {
            content: content_model(model).map_err(usage)?,
            ..self.reading.clone()
        };
        Ok(Trace::of(self.source.clone(), reading))
    }

    /// The same trace with every seed that it is drawn with `number` higher; none if nothing of it is drawn.
    fn redrawn(&self, number: u64) -> PyResult<Option<Self>> {
        let options = WorkloadOptions {
            delta: self.reading.delta,
            ..self.as_read()
        };
        let paths = match &self.source {
            TraceSource::Paths(paths) => &paths[..],
            TraceSource::Records(_) => &[],
        };
        let Some((paths, options)) = redrawn(paths, &options, number).map_err(raised)? else {
            return Ok(None);
        };
        let source = match &self.source {
            TraceSource::Paths(_) => TraceSource::Paths(paths),
            records => records.clone(),
        };
        let reading = Reading {
            content: options.content,
            delta: options.delta,
            ..self.reading.clone()
        };
        Ok(Some(Trace::of(source, reading)))
    }

    /// The summary as JSON. Where it was not said, the layout is compact.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        let watch = Watch::default();
        let summary = watched(py, &watch, None, || {
            let options = WorkloadOptions {
                compact: self.reading.compact.unwrap_or(true),
                delta: self.reading.delta,
                ..self.as_read()
            };
            let input = self.load(&options, false, watch.stop())?;
            Ok(serde_json::to_string(input.summary()).expect("a summary is plain data"))
        })?;
        summary.map_err(raised)
    }

    /// The records as a table; content is that of the trace itself.
    fn to_table(&self, py: Python<'_>) -> PyResult<Table> {
        let watch = Watch::default();
        let columns = watched(py, &watch, None, || {
            let mut columns = Columns::default();
            for_each_record(self.readers(watch.stop())?, self.reading.join, |record| {
                columns.push(record);
                Ok(())
            })?;
            Ok(columns)
        })?;
        columns.map_err(raised)?.finish()
    }
}

impl Trace {
    fn of(source: TraceSource, reading: Reading) -> Self {
        Trace {
            source,
            reading,
            loaded: Mutex::default(),
        }
    }

    pub fn is_profile(&self) -> bool {
        match &self.source {
            TraceSource::Paths(paths) => paths.iter().any(|path| profile(path).is_some()),
            TraceSource::Records(_) => false,
        }
    }

    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// Its path, if it is one trace that has one.
    pub fn path(&self) -> Option<&Path> {
        match &self.source {
            TraceSource::Paths(paths) if paths.len() == 1 => Some(&paths[0]),
            _ => None,
        }
    }

    /// Its options without a layout and without R_c.
    pub fn as_read(&self) -> WorkloadOptions {
        WorkloadOptions {
            read: self.reading.read,
            join: self.reading.join,
            devices: self.reading.devices.clone(),
            ..WorkloadOptions::new(self.reading.content.clone())
        }
    }

    /// Its records, none of which has been read.
    pub fn readers(&self, stop: &Stop) -> Result<Vec<TraceReader>, CliError> {
        let opened = |path: &PathBuf| Ok(open(path, &self.reading.read)?.stopped_by(stop));
        match &self.source {
            TraceSource::Paths(paths) => paths.iter().map(opened).collect(),
            TraceSource::Records(records) => Ok(vec![
                TraceReader::recorded(records.clone()).stopped_by(stop),
            ]),
        }
    }

    /// Its workload for a plan; `profiles` tells whether some trace of the plan is made by a profile.
    pub fn for_plan(
        &self,
        plan: &Plan,
        profiles: bool,
        stop: &Stop,
    ) -> Result<Arc<Input>, CliError> {
        let options = self.reading.options(plan, profiles)?;
        self.load(&options, plan.needs_bytes(), stop)
    }

    fn load(
        &self,
        options: &WorkloadOptions,
        with_bytes: bool,
        stop: &Stop,
    ) -> Result<Arc<Input>, CliError> {
        let mut loaded = self.loaded.lock();
        if let Some(known) = &*loaded
            && known.options == *options
            && known.with_bytes >= with_bytes
        {
            return Ok(known.input.clone());
        }
        // The old one goes before the new one comes.
        *loaded = None;
        let input = match &self.source {
            TraceSource::Paths(paths) => Input::load_until(paths, options, with_bytes, stop)?,
            TraceSource::Records(records) => Input::recorded(records, options, stop)?,
        };
        let input = Arc::new(input);
        *loaded = Some(Loaded {
            options: options.clone(),
            with_bytes,
            input: input.clone(),
        });
        Ok(input)
    }
}

fn as_it_is() -> Reading {
    Reading {
        read: ReadOptions::default(),
        join: Join::Sequence,
        devices: Vec::new(),
        compact: None,
        content: ContentModel::FromTrace,
        delta: None,
    }
}

/// How much later than the first record of a request the others may arrive, in nanoseconds.
fn within(text: &str) -> PyResult<u64> {
    let within: Nanos = text
        .parse()
        .map_err(|error| usage(format!("coalesce: {error}")))?;
    Ok(within.0)
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

#[derive(Default)]
struct Columns {
    time: Int64Builder,
    op: StringBuilder,
    offset: UInt64Builder,
    length: UInt64Builder,
    content: ListBuilder<UInt64Builder>,
}

impl Columns {
    fn push(&mut self, record: &Record<'_>) {
        self.time
            .append_value(i64::try_from(record.time_ns).unwrap_or(i64::MAX));
        self.op.append_value(match record.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "flush",
        });
        self.offset.append_value(record.offset);
        self.length.append_value(record.length);
        for &value in record.content.unwrap_or_default() {
            self.content.values().append_value(value.into());
        }
        self.content.append(record.content.is_some());
    }

    fn finish(mut self) -> PyResult<Table> {
        Table::of(vec![
            ("time", Arc::new(self.time.finish())),
            ("op", Arc::new(self.op.finish())),
            ("offset", Arc::new(self.offset.finish())),
            ("length", Arc::new(self.length.finish())),
            ("content", Arc::new(self.content.finish())),
        ])
        .map_err(usage_of)
    }
}
