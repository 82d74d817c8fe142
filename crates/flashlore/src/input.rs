//! From the traces named on the command line to workloads that runs can share.
//!
//! A text trace is read once and its requests are shared between runs. A native trace is streamed:
//! each run reads the file itself, and memory stays flat.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashlore_synth::{ProfileSource, overlay, source::PREFIX};
use flashlore_trace::{
    ContentModel, DeltaModel, FirstPass, Format, Join, NativeSource, PageSource, ReadOptions,
    Records, RequestSource, Stop, Summary, TraceReader, Workload, WorkloadOptions,
};

use crate::bundled;
use crate::bytes::Bytes;
use crate::draws::redrawn;
use crate::error::CliError;
use crate::plan::Plan;

/// How traces are to become workloads, as far as it does not follow from the systems.
#[derive(Debug, Clone)]
pub struct Reading {
    pub read: ReadOptions,
    pub join: Join,
    /// Names of the devices to keep; all when empty.
    pub devices: Vec<String>,
    /// Whether addresses are made compact; if it is not said, where the plan demands it.
    pub compact: Option<bool>,
    pub content: ContentModel,
    /// Where R_c comes from; if it is not said, from the trace where the plan needs it.
    pub delta: Option<DeltaModel>,
}

impl Reading {
    /// The options for a plan; `profiles` tells whether some trace is made by a profile.
    ///
    /// # Errors
    /// R_c that no system reads.
    pub fn options(&self, plan: &Plan, profiles: bool) -> Result<WorkloadOptions, CliError> {
        if self.delta.is_some() && !plan.needs_ratios() {
            return Err(CliError::Usage(
                "--delta gives page writes an R_c, which no system here reads; expected one with \
                 delta.enabled = true and codec.ratio = \"trace\""
                    .into(),
            ));
        }
        let needed = plan.needs_ratios().then_some(DeltaModel::FromTrace);
        Ok(WorkloadOptions {
            read: self.read,
            join: self.join,
            devices: self.devices.clone(),
            compact: self.compact.unwrap_or_else(|| plan.compacts(profiles)),
            content: self.content.clone(),
            delta: self.delta.or(needed),
        })
    }
}

/// A workload of one or several traces, ready for any number of runs.
pub struct Input {
    requests: Requests,
    /// The bytes of its pages; none where nobody asked for them.
    bytes: Option<Bytes>,
    /// Pages of each virtual machine, if it has several.
    machine_pages: Option<u32>,
    origin: Origin,
}

/// Where a workload is from, to draw it anew.
enum Origin {
    Paths(Vec<PathBuf>),
    Records(Arc<Records>),
    Made,
}

enum Requests {
    Memory(Workload),
    Native {
        path: PathBuf,
        summary: Box<Summary>,
    },
    Recorded {
        records: Arc<Records>,
        first: Arc<FirstPass>,
    },
}

/// Opens a trace: a file, standard input (`-`), a bundled capture or a profile.
///
/// # Errors
/// As [`TraceReader::open`], and a bundled capture or profile that does not exist or cannot be used.
pub fn open(path: &Path, read: &ReadOptions) -> Result<TraceReader, CliError> {
    if let Some(capture) = bundled::find(path) {
        return Ok(TraceReader::from_bytes(capture.name, capture.bytes, read)?);
    }
    if bundled::is_bundled(path) {
        let names: Vec<&str> = bundled::CAPTURES.iter().map(|c| c.name).collect();
        return Err(CliError::Usage(format!(
            "there is no bundled capture {}; expected one of {}",
            path.display(),
            names.join(", ")
        )));
    }
    if let Some(spec) = profile(path) {
        return open_profile(spec, read);
    }
    Ok(TraceReader::open(path, read)?)
}

pub fn profile(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PREFIX)
}

/// A content model by its text: of a profile, or one of those that need none.
///
/// # Errors
/// A sentence that says what was expected.
pub fn content_model(text: &str) -> Result<ContentModel, String> {
    match text.strip_prefix(PREFIX) {
        Some(spec) => overlay::parse(spec)
            .map(ContentModel::Named)
            .map_err(|error| error.to_string()),
        None => text
            .parse()
            .map_err(|error| format!("{error}, or {PREFIX}NAME[,seed=SEED]")),
    }
}

fn open_profile(spec: &str, read: &ReadOptions) -> Result<TraceReader, CliError> {
    match read.format {
        Some(format) => Err(CliError::Usage(format!(
            "--format {format}: {PREFIX}{spec} is no file, its records are made while they are read"
        ))),
        None => Ok(ProfileSource::parse(spec)?.open().coalescing(read)),
    }
}

/// Pages of each virtual machine of a profile that has several. Where holes are closed their images do not lie
/// beside each other any more.
fn machine_pages(paths: &[PathBuf], options: &WorkloadOptions) -> Result<Option<u32>, CliError> {
    let spec = match paths {
        [path] if !options.compact => profile(path),
        _ => None,
    };
    let Some(spec) = spec else { return Ok(None) };
    Ok(ProfileSource::parse(spec)?.image_pages())
}

/// Whether two paths name one file that exists.
pub fn same_file(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(a).is_some_and(|a| real(b) == Some(a))
}

impl Input {
    /// Reads what `paths` name as one workload, and looks for the bytes of its pages if some system
    /// encodes them.
    ///
    /// # Errors
    /// When a trace cannot be read, the whole cannot be laid out as asked, or a file of pages does not
    /// belong to its trace.
    pub fn load(
        paths: &[PathBuf],
        options: &WorkloadOptions,
        needs_bytes: bool,
    ) -> Result<Self, CliError> {
        Self::load_until(paths, options, needs_bytes, &Stop::default())
    }

    /// As [`Input::load`], unless it is asked to stop.
    ///
    /// # Errors
    /// As [`Input::load`], and when it is asked to stop.
    pub fn load_until(
        paths: &[PathBuf],
        options: &WorkloadOptions,
        needs_bytes: bool,
        stop: &Stop,
    ) -> Result<Self, CliError> {
        Ok(Self {
            requests: Requests::load(paths, options, stop)?,
            bytes: needs_bytes.then(|| Bytes::of(paths, options)).transpose()?,
            machine_pages: machine_pages(paths, options)?,
            origin: Origin::Paths(paths.to_vec()),
        })
    }

    /// The same workload with every seed it is drawn with `number` higher (`draws.rs`); nothing if none of it
    /// is drawn.
    ///
    /// # Errors
    /// As [`Input::load`], and when it is asked to stop.
    pub fn redrawn(&self, number: u64, stop: &Stop) -> Result<Option<Self>, CliError> {
        let options = &self.summary().options;
        let paths: &[PathBuf] = match &self.origin {
            _ if number == 0 => return Ok(None),
            Origin::Made => return Ok(None),
            Origin::Paths(paths) => paths,
            Origin::Records(_) => &[],
        };
        let Some((paths, options)) = redrawn(paths, options, number)? else {
            return Ok(None);
        };
        let again = match &self.origin {
            Origin::Records(records) => Self::recorded(records, &options, stop)?,
            _ => Self::load_until(&paths, &options, self.bytes.is_some(), stop)?,
        };
        Ok(Some(again))
    }

    /// The workload of records in memory, which it shares.
    ///
    /// # Errors
    /// When they cannot be laid out as asked, and when it is asked to stop.
    pub fn recorded(
        records: &Arc<Records>,
        options: &WorkloadOptions,
        stop: &Stop,
    ) -> Result<Self, CliError> {
        let reader = TraceReader::recorded(records.clone()).stopped_by(stop);
        let why = "records given as arrays have no file of pages beside them";
        Ok(Self {
            requests: Requests::Recorded {
                records: records.clone(),
                first: NativeSource::from_reader(reader, options)?.first_pass(),
            },
            bytes: Some(Bytes::Unknown(why.to_string())),
            machine_pages: None,
            origin: Origin::Records(records.clone()),
        })
    }

    /// Makes the workload of a profile or fit.
    ///
    /// # Errors
    /// When it cannot be laid out as asked.
    pub fn made(source: &ProfileSource, options: &WorkloadOptions) -> Result<Self, CliError> {
        let workload = Workload::from_readers(vec![source.open()], options)?;
        Ok(Self {
            requests: Requests::Memory(workload),
            bytes: None,
            machine_pages: None,
            origin: Origin::Made,
        })
    }

    pub fn summary(&self) -> &Summary {
        match &self.requests {
            Requests::Memory(workload) => workload.summary(),
            Requests::Native { summary, .. } => summary,
            Requests::Recorded { first, .. } => first.summary(),
        }
    }

    /// Its requests, from the first on, until it is asked to stop.
    ///
    /// # Errors
    /// When a native file cannot be read any more.
    pub fn source(&self, stop: &Stop) -> flashlore_trace::Result<Box<dyn RequestSource>> {
        match &self.requests {
            Requests::Memory(workload) => Ok(Box::new(workload.clone())),
            Requests::Native { path, summary } => {
                let reader = TraceReader::open(path, &summary.options.read)?.stopped_by(stop);
                let source = NativeSource::from_reader(reader, &summary.options)?;
                Ok(Box::new(source))
            }
            Requests::Recorded { records, first } => {
                let reader = TraceReader::recorded(records.clone()).stopped_by(stop);
                Ok(Box::new(NativeSource::after(reader, first.clone())?))
            }
        }
    }

    /// Pages of each virtual machine whose image it is laid out on, if there are several.
    pub fn machine_pages(&self) -> Option<u32> {
        self.machine_pages
    }

    /// The bytes of its pages, if they were asked for and are known.
    pub fn pages(&self) -> Option<&dyn PageSource> {
        self.bytes.as_ref()?.source()
    }

    /// Why they are not known.
    pub fn why_no_pages(&self) -> Option<&str> {
        match &self.bytes {
            Some(Bytes::Unknown(why)) => Some(why),
            _ => None,
        }
    }

    /// The names of its traces, for messages.
    pub fn name(&self) -> String {
        let paths = self.summary().inputs.iter().map(|i| i.path.as_str());
        paths.collect::<Vec<_>>().join(" + ")
    }
}

impl Requests {
    fn load(paths: &[PathBuf], options: &WorkloadOptions, stop: &Stop) -> Result<Self, CliError> {
        let mut readers = paths
            .iter()
            .map(|path| Ok(open(path, &options.read)?.stopped_by(stop)))
            .collect::<Result<Vec<_>, CliError>>()?;
        if let [path] = paths
            && readers[0].format() == Format::Native
        {
            let source = NativeSource::from_reader(readers.remove(0), options)?;
            return Ok(Requests::Native {
                path: path.clone(),
                summary: Box::new(source.summary().clone()),
            });
        }
        Ok(Requests::Memory(Workload::from_readers(readers, options)?))
    }
}
