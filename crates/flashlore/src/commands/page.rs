//! `flashlore report` and `flashlore sweep`, which the Python package carries out.

use std::path::Path;

use flashlore_trace::Existing;
use serde_json::json;

use crate::cli::{ReportArgs, SweepArgs};
use crate::error::CliError;
use crate::python::{Python, as_text};

/// Refuses early, before hours of work, a page that has no place.
///
/// # Errors
/// There is no directory for it, it is one, a file is there that is to stay, or its name cannot be handed on.
pub fn demand_place(page: &Path, existing: Existing) -> Result<(), CliError> {
    as_text(page)?;
    Ok(existing.check_file(page)?)
}

pub fn report(args: &ReportArgs, python: &dyn Python) -> Result<(), CliError> {
    python.demand("flashlore report")?;
    demand_place(&args.output, Existing::from(args.force))?;
    let arguments = json!({
        "results": as_text(&args.results)?,
        "output": as_text(&args.output)?,
        "title": args.title,
        "force": args.force,
    });
    python.call("report", arguments)
}

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
        "force": args.force,
        "as_json": args.json,
    });
    python.call("sweep", arguments)
}
