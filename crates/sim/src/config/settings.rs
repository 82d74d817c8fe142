//! `--set KEY=VALUE` options, sorted by what they address.

use serde_json::Value;

use super::error::ConfigError;
use super::layer::{Layer, LayerEntry, Origin, value_to_json};
use super::presets::PresetKind;
use super::template::{Template, did_you_mean};

/// Parsed `--set` options. Keys are known to exist; their values are checked when they are applied.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    device: Layer,
    system: Layer,
    host: Layer,
}

impl Settings {
    /// Reads `KEY=VALUE` texts. `device.…` addresses the device (with `device.capacity` for
    /// `device.space.capacity`), `host.…` the run, and the sections of a system, bare or after
    /// `system.`, the system. A later text for the same key wins.
    ///
    /// # Errors
    /// A text without `=`, or a key that does not exist.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        for text in texts {
            settings.add(text.as_ref())?;
        }
        Ok(settings)
    }

    fn add(&mut self, text: &str) -> Result<(), ConfigError> {
        let malformed = || ConfigError::Setting {
            text: text.to_string(),
        };
        let (path, value) = text.split_once('=').ok_or_else(malformed)?;
        let (path, value) = (path.trim(), value.trim());
        if path.is_empty() || value.is_empty() {
            return Err(malformed());
        }
        let origin = Origin::Set {
            text: text.to_string(),
        };
        let (kind, key) = address(path).ok_or_else(|| unknown(path, &origin))?;
        let key = match (kind, key) {
            (PresetKind::Device, "capacity") => "space.capacity",
            _ => key,
        };
        Template::of(kind).check_key(key, false, &origin)?;
        let value = parse_value(value).map_err(|message| ConfigError::Invalid {
            origin: origin.clone(),
            key: kind.full_key(key),
            message,
        })?;
        let layer = match kind {
            PresetKind::Device => &mut self.device,
            PresetKind::Host => &mut self.host,
            PresetKind::System | PresetKind::Part => &mut self.system,
        };
        layer.push((
            key.to_string(),
            LayerEntry {
                value,
                origin,
                note: String::new(),
            },
        ));
        Ok(())
    }

    /// The keys given, in full.
    pub fn keys(&self) -> Vec<String> {
        let of = |kind: PresetKind| {
            self.layer(kind)
                .iter()
                .map(move |(key, _)| kind.full_key(key))
        };
        let kinds = [PresetKind::Device, PresetKind::System, PresetKind::Host];
        kinds.into_iter().flat_map(of).collect()
    }

    /// The options that address `kind`.
    pub(super) fn layer(&self, kind: PresetKind) -> &Layer {
        match kind {
            PresetKind::Device => &self.device,
            PresetKind::Host => &self.host,
            PresetKind::System | PresetKind::Part => &self.system,
        }
    }
}

/// What `path` addresses, and the key within it.
fn address(path: &str) -> Option<(PresetKind, &str)> {
    let Some(parts) = path.split_once('.') else {
        // Without a section only a system's own values can be meant, such as its name.
        let is_system = Template::of(PresetKind::System).has_key(path);
        return is_system.then_some((PresetKind::System, path));
    };
    match parts {
        ("device", key) => Some((PresetKind::Device, key)),
        ("host", key) => Some((PresetKind::Host, key)),
        ("system", key) => Some((PresetKind::System, key)),
        (section, _) => {
            let is_section =
                |key: &str| key.split_once('.').is_some_and(|(head, _)| head == section);
            Template::of(PresetKind::System)
                .keys()
                .any(is_section)
                .then_some((PresetKind::System, path))
        }
    }
}

fn unknown(path: &str, origin: &Origin) -> ConfigError {
    let keys = [PresetKind::Device, PresetKind::System, PresetKind::Host]
        .into_iter()
        .flat_map(|kind| {
            let keys = Template::of(kind)
                .keys()
                .map(|key| kind.full_key(key))
                .collect::<Vec<_>>();
            keys.into_iter()
        });
    let hint = did_you_mean(path, keys);
    ConfigError::UnknownKey {
        origin: origin.clone(),
        key: path.to_string(),
        hint,
    }
}

/// A TOML value, or else a bare text; the items of a list may be bare too. TOML's numbers end below
/// 2^63, but a seed may be any number of 64 bits.
fn parse_value(text: &str) -> Result<Value, String> {
    if let Ok(value) = text.parse::<toml_edit::Value>() {
        return value_to_json(&value);
    }
    match text.parse::<u64>() {
        Ok(number) if i64::try_from(number).is_err() => return Ok(Value::from(number)),
        _ => {}
    }
    match text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(items) => Ok(items
            .split(',')
            .map(|item| Value::from(item.trim()))
            .collect()),
        None => Ok(Value::from(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_where_they_belong() {
        let texts = [
            "device.capacity=4GiB",
            "dedup.index_entries=128Ki",
            "system.dedup.verify=true",
            "name=mine",
            "host.queue_depth=32",
        ];
        let settings = Settings::parse(&texts).unwrap();
        let keys = |layer: &Layer| layer.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&settings.device), ["space.capacity"]);
        assert_eq!(
            keys(&settings.system),
            ["dedup.index_entries", "dedup.verify", "name"]
        );
        assert_eq!(keys(&settings.host), ["queue_depth"]);
        assert_eq!(settings.system[1].1.value, true);
        assert_eq!(settings.host[0].1.value, 32);
    }

    #[test]
    fn values_are_toml_or_bare_text() {
        assert_eq!(
            parse_value("[400us, 650us]").unwrap(),
            serde_json::json!(["400us", "650us"])
        );
        assert_eq!(
            parse_value("[\"plane\",\"die\"]").unwrap(),
            serde_json::json!(["plane", "die"])
        );
        assert_eq!(parse_value("greedy").unwrap(), "greedy");
        assert_eq!(parse_value("9223372036854775808").unwrap(), 1u64 << 63);
        assert_eq!(parse_value("18446744073709551615").unwrap(), u64::MAX);
        assert_eq!(
            parse_value("18446744073709551616").unwrap(),
            "18446744073709551616"
        );
        assert_eq!(parse_value("\"4GiB\"").unwrap(), "4GiB");
        assert_eq!(parse_value("0.05").unwrap(), 0.05);
        assert!(
            parse_value("2020-01-01")
                .unwrap_err()
                .contains("found a datetime")
        );
    }

    #[test]
    fn errors_name_the_option_and_the_nearest_key() {
        let error = |text: &str| Settings::parse(&[text]).unwrap_err().to_string();
        assert_eq!(
            error("device.gc.polciy=greedy"),
            "--set device.gc.polciy=greedy: there is no key \"device.gc.polciy\" (did you mean \"device.gc.policy\"?)"
        );
        assert!(error("dedup.index_entry=3").contains("did you mean \"dedup.index_entries\"?"));
        assert!(error("queue_depth=3").contains("did you mean \"host.queue_depth\"?"));
        assert!(error("device.channels=3").contains("did you mean \"device.geometry.channels\"?"));
        assert!(error("zzz.yyy=3").ends_with("there is no key \"zzz.yyy\""));
        assert!(error("device.gc=greedy").contains("expected a table of keys"));
        assert!(error("device.capacity").contains("expected KEY=VALUE"));
        assert!(error("=3").contains("expected KEY=VALUE"));
    }
}
