//! `flashlore systems` and `flashlore devices`: what there is, and one of it as TOML.

use flashlore_sim::config::{
    Preset, Settings, device_presets, load_device, load_system, part_presets, system_presets,
};

use crate::cli::ListArgs;
use crate::error::CliError;
use crate::output::print;
use crate::plan::all_used;

pub fn systems(args: &ListArgs) -> Result<(), CliError> {
    let Some(name) = &args.name else {
        return print(&list(system_presets()));
    };
    let settings = settings(&args.set, "a system", |key| {
        !key.starts_with("device.") && !key.starts_with("host.")
    })?;
    print(&all_used(load_system(name, &settings)?)?.to_toml())
}

/// Lists the devices and the part sets they are made of, or prints a device.
pub fn devices(args: &ListArgs) -> Result<(), CliError> {
    let Some(name) = &args.name else {
        let parts = list(part_presets());
        return print(&format!(
            "{}\nFlash parts, which a device names by `part`:\n{parts}",
            list(device_presets())
        ));
    };
    let settings = settings(&args.set, "a device", |key| key.starts_with("device."))?;
    print(&all_used(load_device(name, &settings)?)?.to_toml())
}

/// Settings of what is printed, and of nothing else.
fn settings(
    texts: &[String],
    what: &str,
    belongs: impl Fn(&str) -> bool,
) -> Result<Settings, CliError> {
    let settings = Settings::parse(texts)?;
    match settings.keys().into_iter().find(|key| !belongs(key)) {
        Some(key) => Err(CliError::Usage(format!(
            "--set {key}: expected a key of {what}, which is all that is printed"
        ))),
        None => Ok(settings),
    }
}

fn list(presets: &[Preset]) -> String {
    let width = presets.iter().map(|p| p.name.len()).max().unwrap_or(0);
    let line = |preset: &Preset| format!("{:width$}  {}\n", preset.name, preset.description);
    presets.iter().map(line).collect()
}
