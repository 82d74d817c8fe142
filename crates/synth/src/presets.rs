//! The profiles that come with the program.

use crate::definition::Definition;
use crate::error::ProfileError;
use crate::profile::Profile;

pub struct Preset {
    /// Its name, which `profile:NAME` asks for.
    pub name: &'static str,
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
    "maildir",
    "sqlite-tpcb",
    "sqlite-bytes",
    "django-upgrade",
    "upgrade-bytes",
];

/// A profile or fit with its text, by the name of a preset or of a file.
pub fn load(name: &str) -> Result<(Definition, String), ProfileError> {
    if let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) {
        let definition = Definition::parse(name, preset.text)?;
        return Ok((definition, preset.text.to_owned()));
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
    Ok((Definition::parse(name, &text)?, text))
}

/// A profile of figures with its text, as [`load`].
///
/// # Errors
/// As [`load`], and when it is a fit.
pub fn load_profile(name: &str) -> Result<(Profile, String), ProfileError> {
    match load(name)? {
        (Definition::Profile(profile), text) => Ok((*profile, text)),
        (Definition::Fit(_), _) => Err(ProfileError::Setting {
            name: name.to_owned(),
            message:
                "found a fit, whose values belong to its own addresses; expected a profile of \
                      figures"
                    .to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_profile_of_its_own_name() {
        for preset in PRESETS {
            let (definition, _) = load(preset.name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(definition.name(), preset.name);
        }
    }
}
