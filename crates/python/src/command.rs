//! The command line, and what it asks the Python package for.

use std::ffi::OsString;

use flashlore_command::error::CliError;
use flashlore_command::python::Python as Package;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

/// Carries out a command line, whose first argument is the name of the program, and gives the exit status.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| flashlore_command::run(arguments, &Installed))
}

/// The package that this module is a part of.
struct Installed;

impl Package for Installed {
    fn demand(&self, _: &str) -> Result<(), CliError> {
        Ok(())
    }

    fn call(&self, function: &str, arguments: Value) -> Result<(), CliError> {
        Python::attach(|py| {
            called(py, function, &arguments).map_err(|error| as_the_command_says(py, &error))
        })
    }
}

fn called(py: Python<'_>, function: &str, arguments: &Value) -> PyResult<()> {
    let arguments = py
        .import("json")?
        .call_method1("loads", (arguments.to_string(),))?;
    let arguments = arguments.cast_into::<PyDict>()?;
    py.import("flashlore._command")?
        .getattr(function)?
        .call((), Some(&arguments))
        .map(drop)
}

/// What the package raises on purpose is a sentence, and a usage error where it says so. What else it raises is named.
fn as_the_command_says(py: Python<'_>, error: &PyErr) -> CliError {
    let is = |class: &str| {
        let class = py
            .import("flashlore.errors")
            .and_then(|module| module.getattr(class));
        class.is_ok_and(|class| error.matches(py, class).unwrap_or(false))
    };
    let sentence = error.value(py).to_string();
    match (is("UsageError"), is("FlashloreError")) {
        (true, _) => CliError::Usage(sentence),
        (false, true) => CliError::Python(sentence),
        (false, false) => CliError::Python(error.to_string()),
    }
}
