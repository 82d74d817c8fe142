//! `flashlore report` and `flashlore sweep`, which the Python package carries out.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::json;

use crate::cli::{ReportArgs, SweepArgs};
use crate::error::CliError;
use crate::python::{Python, as_text};

/// Refuses early, before hours of work, a page that has no place.
///
/// # Errors
/// There is no directory for it, it is one, or its name cannot be handed on.
pub fn demand_place(page: &Path) -> Result<(), CliError> {
    as_text(page)?;
    let refused = |source| CliError::File {
        action: "write a page as",
        path: page.to_path_buf(),
        source,
    };
    if page.is_dir() {
        return Err(refused(ErrorKind::IsADirectory.into()));
    }
    let folder = match page.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    match fs::metadata(folder).map_err(refused)?.is_dir() {
        true => Ok(()),
        false => Err(refused(ErrorKind::NotADirectory.into())),
    }
}

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
