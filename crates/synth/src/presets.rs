//! The profiles that come with the program.

use crate::error::ProfileError;
use crate::profile::Profile;

/// A profile's name and text.
pub struct Preset {
    /// Its name, which `profile:NAME` asks for.
    pub name: &'static str,
    /// Its TOML.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset {
            name: $name,
            text: include_str!(concat!("../profiles/", $name, ".toml")),
        }),*]
    };
}

/// All of them.
pub const PRESETS: &[Preset] = presets![
    "mail",
    "web",
    "homes-7d",
    "homes-1d",
    "sysbench",
    "hadoop",
    "tpc-c",
    "loadsim",
    "specsfs",
    "rubis",
    "tpc-c-5vm",
    "rubis-5vm",
    "financial",
    "cello99",
    "proxy",
    "hm",
    "ts",
    "mds",
    "src1",
    "f1",
    "f2",
    "c3",
    "c8",
    "dap",
    "msn",
    "bvssd-financial1",
    "bvssd-cello99",
    "bvssd-tpch",
    "bvssd-websearch1",
];

/// A profile with its text, by the name of a preset or of a file.
///
/// # Errors
/// When there is no such profile, or it cannot be used.
pub fn load(name: &str) -> Result<(Profile, String), ProfileError> {
    if let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) {
        return Ok((Profile::parse(name, preset.text)?, preset.text.to_owned()));
    }
    if !name.contains(['/', '.']) {
        let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        return Err(ProfileError::Unknown {
            name: name.to_owned(),
            known: known.join(" "),
        });
    }
    let text = std::fs::read_to_string(name).map_err(|source| ProfileError::Io {
        path: name.to_owned(),
        source,
    })?;
    Ok((Profile::parse(name, &text)?, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_profile_of_its_own_name() {
        for preset in PRESETS {
            let (profile, _) = load(preset.name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name, preset.name);
        }
    }
}
