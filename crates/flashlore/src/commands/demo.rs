//! `flashlore demo`: the captures inside the program on a plain SSD and on CA-SSD.

use std::path::PathBuf;

use flashlore_sim::results::{RESULT_FILES, RunResult, overview_table, write_directory};
use flashlore_trace::{ContentModel, Existing, WorkloadOptions};
use serde_json::json;

use super::page::demand_place;
use super::replay::print_results;
use crate::bundled::CAPTURES;
use crate::cli::DemoArgs;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{style, tell};
use crate::plan::{Plan, PlanOptions};
use crate::progress::Progress;
use crate::python::{Python, as_text};
use crate::runs::{Recording, in_parallel, run_all, threads};

/// The captures ran on a faster device than the one simulated: at their own times requests would only
/// pile up, so a fixed number is kept in flight.
const HOST: [&str; 2] = ["host.mode=closed", "host.queue_depth=8"];

const TITLE: &str = "Four captures on a plain SSD and on CA-SSD";

/// Width of the stretches of time lines, in nanoseconds: some hundreds a run.
const STRETCH: u64 = 100_000_000;

/// Replays every capture on both systems.
pub fn demo(args: &DemoArgs, python: &dyn Python) -> Result<(), CliError> {
    let existing = Existing::from(args.force);
    if let Some(page) = &args.report {
        python.demand("demo --report")?;
        demand_place(page, existing)?;
        args.out.as_deref().map(as_text).transpose()?;
    }
    if let Some(dir) = &args.out {
        existing.check_set(dir, RESULT_FILES)?;
    }
    let systems = ["plain", "ca-ssd"].map(String::from);
    let plan = Plan::new(&PlanOptions {
        systems: &systems,
        device: "auto",
        set: &HOST.map(String::from),
        seeds: 1,
        different_devices: false,
    })?;
    let threads = threads(args.jobs);
    let options = WorkloadOptions {
        compact: true,
        ..WorkloadOptions::new(ContentModel::FromTrace)
    };
    let reading = Progress::phase("reading the captures");
    let inputs = in_parallel(&CAPTURES, threads, |capture| {
        Input::load(&[PathBuf::from(capture.name)], &options, false)
    })?;
    drop(reading);
    let recording = Recording {
        timeline_ns: args.out.as_ref().map(|_| STRETCH),
        ..Recording::default()
    };
    let mut jobs = Vec::new();
    for input in &inputs {
        jobs.extend(plan.jobs(input, &recording.stop)?);
    }
    let outputs = run_all(&jobs, threads, &recording)?;
    if let Some(dir) = &args.out {
        write_directory(dir, &outputs, existing)?;
    }
    print_results(outputs, args.json, text)?;
    let (Some(dir), Some(page)) = (&args.out, &args.report) else {
        return Ok(());
    };
    python.call(
        "report",
        json!({ "results": as_text(dir)?, "output": as_text(page)?, "title": TITLE, "force": args.force }),
    )?;
    tell(&format!(
        "{} shows these results, and opens without a network",
        page.display()
    ));
    Ok(())
}

fn text(runs: &[RunResult]) -> String {
    let width = CAPTURES.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let captures: String = CAPTURES
        .iter()
        .map(|c| format!("  {:width$}  {}\n", c.name, c.description))
        .collect();
    format!(
        "Block writes captured on ext4, replayed in simulated time on an SLC device that each capture \
         fills,\nwith 8 requests in flight:\n{captures}\n{}\n\
         writes: pages of 4 KiB the host wrote. programs: pages the flash wrote, collection \
         included.\nWAF: programs per write. change: against the plain device; less is better.\n\n\
         Next: flashlore compare demo:maildir --set dedup.index_entries=1Ki   (a smaller index)\n      \
         flashlore compare YOUR-TRACE   (or `flashlore trace info YOUR-TRACE`; --help for more)\n",
        overview_table(runs, style())
    )
}
