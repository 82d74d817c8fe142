//! What a sweep asks about a cell before anything runs.

use flashlore_command::error::CliError;
use flashlore_sim::config::{Settings, load_device, load_host, load_system};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::raised;

/// All that decides a run besides its trace, and what does not.
#[derive(IntoPyObject)]
pub struct Configuration {
    /// Name of the system.
    system: String,
    /// Name of the device.
    device: String,
    /// Every value of system, device and host, as JSON.
    values: String,
    /// Keys of the settings that the others make useless.
    unused: Vec<String>,
}

/// The configuration of a cell. A key that it does not use is no error here: another cell may use it.
#[pyfunction]
pub fn configuration(system: &str, device: &str, settings: Vec<String>) -> PyResult<Configuration> {
    resolve(system, device, &settings).map_err(raised)
}

fn resolve(system: &str, device: &str, settings: &[String]) -> Result<Configuration, CliError> {
    let settings = Settings::parse(settings)?;
    let system = load_system(system, &settings)?;
    let device = load_device(device, &settings)?;
    let host = load_host(&settings)?;
    Ok(Configuration {
        values: json(&(&system.config, &device.config, &host.config)),
        system: system.config.name,
        device: device.config.name,
        unused: [system.unused, device.unused, host.unused].concat(),
    })
}

fn json(values: &impl Serialize) -> String {
    serde_json::to_string(values).expect("a configuration is plain data")
}
