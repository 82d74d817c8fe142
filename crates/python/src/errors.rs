//! The core's errors as exceptions. Their classes are Python's (`flashlore.errors`); what they say is the core's.

use flashlore_command::error::CliError;
use flashlore_sim::engine::RunError;
use pyo3::prelude::*;
use pyo3::types::PyType;

const MODULE: &str = "flashlore.errors";

/// The exception for an error of the command.
pub fn raised(error: CliError) -> PyErr {
    exception(class_of(&error), error.to_string())
}

/// An exception of the class with this name.
pub fn exception(class: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import(MODULE).and_then(|module| module.getattr(class));
        match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
            Ok(class) => PyErr::from_type(class, message),
            Err(error) => error,
        }
    })
}

/// A request that cannot work, whatever there is.
pub fn usage(message: impl Into<String>) -> PyErr {
    raised(CliError::Usage(message.into()))
}

/// The class follows the subject, and whether other arguments would have helped.
fn class_of(error: &CliError) -> &'static str {
    let usage = error.code() == 2;
    match error {
        CliError::Config(_) if usage => "ConfigError",
        CliError::Config(_) => "FileError",
        CliError::Run { source, .. } => match (&**source, usage) {
            (RunError::Config(_), _) => "ConfigError",
            (RunError::Trace(error), _) => trace_class(error),
            (_, true) => "RunUsageError",
            (_, false) => "RunError",
        },
        CliError::Trace(error) => trace_class(error),
        CliError::Results(_) => "ResultsError",
        CliError::Place(_) if usage => "UsageError",
        CliError::Profile(_) if usage => "ProfileError",
        CliError::Profile(_) | CliError::File { .. } | CliError::Place(_) => "FileError",
        CliError::Volume { .. } | CliError::Recording(_) if usage => "VolumeUsageError",
        CliError::Volume { .. } | CliError::Recording(_) | CliError::Mount(_) => "VolumeError",
        CliError::Usage(_) | CliError::Characterize(_) => "UsageError",
        CliError::Paper(_) if usage => "UsageError",
        CliError::Paper(_)
        | CliError::Output(_)
        | CliError::Python(_)
        | CliError::Differs(_)
        | CliError::Failed(_) => "FlashloreError",
    }
}

fn trace_class(error: &flashlore_trace::Error) -> &'static str {
    match error {
        flashlore_trace::Error::Layout(_) => "TraceUsageError",
        flashlore_trace::Error::Output(error) if error.is_usage() => "UsageError",
        flashlore_trace::Error::Output(_) => "FileError",
        _ => "TraceError",
    }
}
