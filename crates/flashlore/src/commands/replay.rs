//! `flashlore compare` and `flashlore simulate`.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use flashlore_sim::results::{
    RESULT_FILES, ResultsFile, RunOutput, RunResult, compare_table, write_directory,
};
use flashlore_trace::{Existing, Join};

use crate::cli::{CompareArgs, RunArgs, SimulateArgs};
use crate::error::CliError;
use crate::input::{Input, Reading, profile, same_file};
use crate::output::{print, style, tell};
use crate::plan::{Plan, PlanOptions};
use crate::progress::Progress;
use crate::runs::{Recording, in_parallel, run_all, threads};

pub fn compare(args: &CompareArgs) -> Result<(), CliError> {
    let plan = Plan::new(&PlanOptions {
        systems: &args.systems,
        device: &args.run.device,
        set: &args.run.set,
        seeds: args.run.seeds.get(),
        different_devices: args.allow_different_devices,
    })?;
    replay(&plan, &args.traces, &args.run, None)
}

pub fn simulate(args: &SimulateArgs) -> Result<(), CliError> {
    let plan = Plan::new(&PlanOptions {
        systems: std::slice::from_ref(&args.system),
        device: &args.run.device,
        set: &args.run.set,
        seeds: args.run.seeds.get(),
        different_devices: false,
    })?;
    let instants = args.recovery_check.map(NonZeroU32::get);
    replay(&plan, &args.traces, &args.run, instants)
}

fn replay(
    plan: &Plan,
    traces: &[PathBuf],
    args: &RunArgs,
    recovery_check: Option<u32>,
) -> Result<(), CliError> {
    let workloads = workloads(traces, args.trace.join.is_some())?;
    if let Some(log) = &args.results.request_log {
        refuse_trace(log, traces)?;
    }
    let reading = Reading {
        read: args.trace.read.options(),
        join: args.trace.join.map_or(Join::Sequence, Join::from),
        devices: args.trace.device_filter.clone(),
        compact: args.trace.compact.then_some(true),
        content: args.trace.content.clone(),
        delta: args.trace.delta,
    };
    let options = reading.options(plan, traces.iter().any(|path| profile(path).is_some()))?;
    let existing = Existing::from(args.results.force);
    let recording = Recording {
        timeline_ns: timeline_width(args)?,
        request_log: args.results.request_log.clone(),
        existing,
        recovery_check,
        ..Recording::default()
    };
    // Before hours of work, not after them.
    if let Some(dir) = &args.results.out {
        existing.check_set(dir, RESULT_FILES)?;
    }
    let threads = threads(args.jobs);
    if recovery_check.is_some() && !plan.all_have_history() {
        return Err(CliError::Usage(
            "--recovery-check needs a system with history.enabled = true, such as bvssd or trap"
                .into(),
        ));
    }
    let reading = Progress::phase("reading the traces");
    let inputs = in_parallel(&workloads, threads, |paths| {
        Input::load(paths, &options, plan.needs_bytes())
    })?;
    drop(reading);
    let mut jobs = Vec::new();
    for input in &inputs {
        jobs.extend(plan.jobs(input, &recording.stop)?);
    }
    let outputs = run_all(&jobs, threads, &recording)?;
    for (job, output) in jobs.iter().zip(&outputs) {
        if let Some(recovered) = output.recovered {
            tell(&format!(
                "{}: {} pages compared at {} instants of the window, and after {} rewinds to one and back: all \
                 as written; the rewinds changed {} pages, with {} reads, {} decodings and {} programs",
                job.input.name(),
                recovered.pages,
                recovered.instants,
                recovered.rewinds,
                recovered.cost.pages,
                recovered.cost.reads,
                recovered.cost.decodes,
                recovered.cost.programs
            ));
        }
    }
    if let Some(dir) = &args.results.out {
        write_directory(dir, &outputs, existing)?;
        let file = dir.join("results.json");
        tell(&format!(
            "results are in {}; `flashlore rerun {}` repeats them",
            dir.display(),
            file.display()
        ));
    }
    print_results(outputs, args.results.json, |runs| {
        compare_table(runs, style())
    })
}

/// Prints runs as JSON, or as `table` makes them.
pub fn print_results(
    outputs: Vec<RunOutput>,
    json: bool,
    table: impl Fn(&[RunResult]) -> String,
) -> Result<(), CliError> {
    let runs: Vec<RunResult> = outputs.into_iter().map(|output| output.result).collect();
    if json {
        print(&ResultsFile::new(runs).to_json())
    } else {
        print(&table(&runs))
    }
}

/// Refuses to write over a trace.
fn refuse_trace(log: &Path, traces: &[PathBuf]) -> Result<(), CliError> {
    match traces.iter().find(|trace| same_file(trace, log)) {
        Some(trace) => Err(CliError::Usage(format!(
            "--request-log {}: this is the trace {}; name another file",
            log.display(),
            trace.display()
        ))),
        None => Ok(()),
    }
}

/// The traces of each workload.
fn workloads(traces: &[PathBuf], join: bool) -> Result<Vec<Vec<PathBuf>>, CliError> {
    let mut seen = HashSet::new();
    let twice = traces.iter().find(|path| !seen.insert(path.as_path()));
    let stdin = |path: &&PathBuf| path.as_path() == Path::new("-");
    match twice.filter(|path| !join || stdin(path)) {
        Some(path) if stdin(&path) => Err(CliError::Usage(
            "standard input (-) is named twice and can be read once".to_string(),
        )),
        Some(path) => Err(CliError::Usage(format!(
            "trace {} is named twice; --join replays it twice in one run",
            path.display()
        ))),
        None if join && traces.len() == 1 => Err(CliError::Usage(
            "--join makes several traces one workload, found one trace".to_string(),
        )),
        None if join => Ok(vec![traces.to_vec()]),
        None => {
            refuse_same_names(traces)?;
            Ok(traces.iter().map(|path| vec![path.clone()]).collect())
        }
    }
}

/// Refuses traces that results could not tell apart: they would be taken for seeds of one run.
fn refuse_same_names(traces: &[PathBuf]) -> Result<(), CliError> {
    let mut named: HashMap<&OsStr, &Path> = HashMap::new();
    for path in traces {
        let name = path.file_name().unwrap_or(path.as_os_str());
        if let Some(other) = named.insert(name, path) {
            return Err(CliError::Usage(format!(
                "{} and {} have the same file name, by which results tell traces apart: rename one, or --join them",
                other.display(),
                path.display()
            )));
        }
    }
    Ok(())
}

fn timeline_width(args: &RunArgs) -> Result<Option<u64>, CliError> {
    match args.results.timeline {
        Some(width) if width.0 == 0 => Err(CliError::Usage(
            "--timeline 0: expected a duration above 0, such as 1s".to_string(),
        )),
        width => Ok(width.map(|width| width.0)),
    }
}
