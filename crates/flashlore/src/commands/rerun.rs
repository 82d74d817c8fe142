//! `flashlore rerun`: repeat the runs of a results file and verify that nothing differs.

use std::path::{Path, PathBuf};

use flashlore_sim::results::{ResultsFile, RunOutput, RunResult, differences};
use flashlore_synth::overlay;
use flashlore_trace::{ContentModel, WorkloadOptions};

use crate::bundled::is_bundled;
use crate::cli::RerunArgs;
use crate::error::CliError;
use crate::input::{Input, profile};
use crate::output::print;
use crate::progress::Progress;
use crate::runs::{Job, Recording, in_parallel, run_all, threads};

/// How many differences of a run are printed.
const SHOWN: usize = 20;

pub fn rerun(args: &RerunArgs) -> Result<(), CliError> {
    let recorded = read(&args.results)?;
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut places = Vec::new();
    for run in &recorded.runs {
        let workload = Wanted::of(run, args.trace_dir.as_deref())?;
        let known = wanted.iter().position(|known| known.is(&workload));
        let at = known.unwrap_or_else(|| {
            wanted.push(workload);
            wanted.len() - 1
        });
        wanted[at].needs_bytes |= run.configuration.system.needs_bytes();
        places.push(at);
    }
    let threads = threads(args.jobs);
    let reading = Progress::phase("reading the traces");
    let inputs = in_parallel(&wanted, threads, Wanted::load)?;
    drop(reading);
    let job = |(run, at): (&RunResult, usize)| Job {
        input: &inputs[at],
        config: run.configuration.clone(),
        draw: 0,
    };
    let jobs: Vec<Job> = recorded.runs.iter().zip(places).map(job).collect();
    let mut repeated = run_all(&jobs, threads, &Recording::default())?;
    // A workload that was drawn anew bears the name of the first one.
    for (old, new) in recorded.runs.iter().zip(&mut repeated) {
        if old.drawn_from.is_some() {
            new.result.trace.clone_from(&old.trace);
            new.result.drawn_from.clone_from(&old.drawn_from);
        }
    }

    let (text, different) = report(&recorded, &repeated);
    print(&text)?;
    if different > 0 {
        return Err(CliError::Differs(format!(
            "{different} of {} runs differ (recorded against repeated)",
            repeated.len()
        )));
    }
    Ok(())
}

/// What is equal and what differs, and how many runs do.
fn report(recorded: &ResultsFile, repeated: &[RunOutput]) -> (String, usize) {
    let mut text = String::new();
    let version = env!("CARGO_PKG_VERSION");
    if recorded.version != version {
        text.push_str(&format!(
            "The results are of version {}, this is version {version}.\n",
            recorded.version
        ));
    }
    let mut different = 0;
    for (old, new) in recorded.runs.iter().zip(repeated) {
        let found = differences(old, &new.result, SHOWN);
        let state = match found.is_empty() {
            true => "equal",
            false => "DIFFERENT",
        };
        text.push_str(&format!(
            "{state:9}  {} with system {} on device {}, seed {}\n",
            old.trace, old.system, old.device, old.seed
        ));
        for difference in &found {
            text.push_str(&format!("    {difference}\n"));
        }
        different += usize::from(!found.is_empty());
    }
    (text, different)
}

fn read(path: &Path) -> Result<ResultsFile, CliError> {
    let results = ResultsFile::read(path)?;
    if results.runs.is_empty() {
        let message = format!("{} holds no runs to repeat", path.display());
        return Err(CliError::Usage(message));
    }
    Ok(results)
}

/// Where a trace is once its file was moved to `dir`. Captures are inside the program, and profiles are
/// found where they were, as those of content are.
fn moved(path: &Path, dir: &Path) -> PathBuf {
    match path.file_name() {
        Some(name) if !is_bundled(path) && profile(path).is_none() => dir.join(name),
        _ => path.to_path_buf(),
    }
}

/// A workload that a run was made with.
struct Wanted {
    paths: Vec<PathBuf>,
    digests: Vec<String>,
    options: WorkloadOptions,
    /// Whether some run of it encodes the bytes of its pages.
    needs_bytes: bool,
}

impl Wanted {
    fn of(run: &RunResult, trace_dir: Option<&Path>) -> Result<Self, CliError> {
        let place = |path: &str| match trace_dir {
            Some(dir) => moved(Path::new(path), dir),
            None => PathBuf::from(path),
        };
        let mut options = run.workload.clone();
        if let ContentModel::Named(recorded) = &options.content {
            options.content = ContentModel::Named(overlay::restore(recorded)?);
        }
        Ok(Self {
            paths: run.trace_files.iter().map(|f| place(&f.path)).collect(),
            digests: run.trace_files.iter().map(|f| f.sha256.clone()).collect(),
            options,
            needs_bytes: false,
        })
    }

    fn is(&self, other: &Wanted) -> bool {
        (&self.paths, &self.digests, &self.options)
            == (&other.paths, &other.digests, &other.options)
    }

    /// Reads the traces and makes sure that they are the same bytes.
    fn load(&self) -> Result<Input, CliError> {
        let input = Input::load(&self.paths, &self.options, self.needs_bytes)?;
        for (now, recorded) in input.summary().inputs.iter().zip(&self.digests) {
            if now.sha256 != *recorded {
                return Err(CliError::Differs(format!(
                    "{}: the trace is not the one that was replayed: its SHA-256 is {}, expected \
                     {recorded}",
                    now.path, now.sha256
                )));
            }
        }
        Ok(input)
    }
}
