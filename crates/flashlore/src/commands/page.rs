//! `flashlore report` and `flashlore sweep`, which the Python package carries out.

use serde_json::json;

use crate::cli::{ReportArgs, SweepArgs};
use crate::error::CliError;
use crate::python::{Python, as_text};

/// Makes a page of results.
pub fn report(args: &ReportArgs, python: &dyn Python) -> Result<(), CliError> {
    python.demand("flashlore report")?;
    let arguments = json!({
        "results": as_text(&args.results)?,
        "output": as_text(&args.output)?,
        "title": args.title,
    });
    python.call("report", arguments)
}

/// Runs a grid.
pub fn sweep(args: &SweepArgs, python: &dyn Python) -> Result<(), CliError> {
    python.demand("flashlore sweep")?;
    let arguments = json!({
        "file": as_text(&args.file)?,
        "output": args.output.as_deref().map(as_text).transpose()?,
        "scheduler": args.scheduler,
        "send_traces": args.send_traces,
        "jobs": args.jobs,
        "memory": args.memory.map(|size| size.0),
        "retry_failed": args.retry_failed,
        "as_json": args.json,
    });
    python.call("sweep", arguments)
}
