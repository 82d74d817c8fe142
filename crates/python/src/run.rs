//! Runs of systems on devices, and what they leave.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use flashlore_command::error::CliError;
use flashlore_command::input::Input;
use flashlore_command::plan::{Choice, Named, Plan, all_used};
use flashlore_command::runs::{Recording, in_parallel, run_told, threads};
use flashlore_sim::config::{
    Nanos, Preset, Settings, device_presets, load_device, load_system, system_presets,
};
use flashlore_sim::results::RunOutput;
use flashlore_trace::Existing;
use pyo3::prelude::*;

use crate::errors::{raised, usage};
use crate::results::Output;
use crate::trace::Trace;
use crate::watch::{Watch, watched};

/// A preset or file, and settings of its own.
type Spec = (String, Vec<String>);

/// The name of a system and the whole of it as TOML.
#[pyfunction]
pub fn system(name: &str, settings: Vec<String>) -> PyResult<(String, String)> {
    let loaded =
        || -> Result<_, CliError> { all_used(load_system(name, &Settings::parse(&settings)?)?) };
    let loaded = loaded().map_err(raised)?;
    Ok((loaded.config.name.clone(), loaded.to_toml()))
}

/// The name of a device and the whole of it as TOML.
#[pyfunction]
pub fn device(name: &str, settings: Vec<String>) -> PyResult<(String, String)> {
    let loaded =
        || -> Result<_, CliError> { all_used(load_device(name, &Settings::parse(&settings)?)?) };
    let loaded = loaded().map_err(raised)?;
    Ok((loaded.config.name.clone(), loaded.to_toml()))
}

/// The systems there are, each with a sentence about it.
#[pyfunction]
pub fn systems() -> Vec<(&'static str, &'static str)> {
    described(system_presets())
}

/// The devices there are, each with a sentence about it.
#[pyfunction]
pub fn devices() -> Vec<(&'static str, &'static str)> {
    described(device_presets())
}

fn described(presets: &'static [Preset]) -> Vec<(&'static str, &'static str)> {
    let pair = |preset: &'static Preset| (preset.name, preset.description);
    presets.iter().map(pair).collect()
}

/// Replays every trace on every system with every seed, in this order.
#[pyfunction]
#[pyo3(signature = (traces, columns, *, settings, seeds, different_devices, timeline, recovery_check, request_log, force, jobs, progress))]
#[expect(
    clippy::too_many_arguments,
    reason = "the names of the arguments are Python's"
)]
pub fn compare(
    py: Python<'_>,
    traces: Vec<Py<Trace>>,
    columns: Vec<(Spec, Spec)>,
    settings: Vec<String>,
    seeds: u64,
    different_devices: bool,
    timeline: Option<&str>,
    recovery_check: Option<u32>,
    request_log: Option<PathBuf>,
    force: bool,
    jobs: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Output>> {
    let named = |(name, set): Spec| Named { name, set };
    let columns: Vec<_> = columns
        .into_iter()
        .map(|(system, device)| (named(system), named(device)))
        .collect();
    let plan = Plan::of(&Choice {
        columns: &columns,
        set: &settings,
        seeds,
        different_devices,
    })
    .map_err(raised)?;
    if recovery_check.is_some() && !plan.all_have_history() {
        return Err(usage(
            "recovery_check needs a system with history.enabled = true, such as bvssd or trap",
        ));
    }
    let watch = Watch::default();
    let recording = Recording {
        timeline_ns: timeline.map(width).transpose()?,
        request_log,
        existing: Existing::from(force),
        recovery_check,
        stop: watch.stop().clone(),
    };
    let work = || run(&traces, &plan, &recording, threads(jobs), &watch);
    let outputs = watched(py, &watch, progress.as_ref(), work)?.map_err(raised)?;
    Ok(outputs.into_iter().map(Output::from).collect())
}

fn run(
    traces: &[Py<Trace>],
    plan: &Plan,
    recording: &Recording,
    threads: NonZeroUsize,
    watch: &Watch,
) -> Result<Vec<RunOutput>, CliError> {
    let profiles = traces.iter().any(|trace| trace.get().is_profile());
    let inputs: Vec<Arc<Input>> = in_parallel(traces, threads, |trace| {
        trace.get().for_plan(plan, profiles, watch.stop())
    })?;
    let mut jobs = Vec::new();
    for input in &inputs {
        jobs.extend(plan.jobs(input, &recording.stop)?);
    }
    run_told(&jobs, threads, recording, |requests, _| {
        watch.expect(requests);
        watch.clone()
    })
}

fn width(text: &str) -> PyResult<u64> {
    match text.parse::<Nanos>() {
        Ok(width) if width.0 > 0 => Ok(width.0),
        Ok(_) => Err(usage(
            "timeline = 0: expected a duration above 0, such as 1s",
        )),
        Err(error) => Err(usage(format!("timeline: {error}"))),
    }
}
