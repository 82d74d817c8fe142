//! The keys that exist, with their comments and defaults: read from one annotated TOML text per
//! kind, so that what is printed, what is known and what is the default cannot differ.

use std::collections::BTreeSet;

use super::error::ConfigError;
use super::layer::{self, Layer, LayerEntry, Origin, TomlSource};
use super::presets::PresetKind;

/// The keys of one kind of configuration.
pub(super) struct Template {
    pub kind: PresetKind,
    /// Every key with its value; the empty text where there is no default.
    keys: Layer,
    /// Every path that has keys below it.
    sections: BTreeSet<String>,
    open: bool,
}

impl Template {
    /// The keys of `kind`.
    pub fn of(kind: PresetKind) -> Self {
        let name = format!("template of {}", kind.name());
        let source = TomlSource {
            name,
            text: kind.template(),
            origin: &|_| Origin::Default,
        };
        // A bundled text: a test loads every kind.
        let mut keys = layer::flatten_unchecked(&source).expect("bundled template is valid TOML");
        if matches!(kind, PresetKind::Part) {
            keys.retain(|(key, _)| PART_KEYS.contains(&key.as_str()));
        }
        let sections = keys.iter().flat_map(|(key, _)| {
            key.match_indices('.')
                .map(|(end, _)| key[..end].to_string())
        });
        Self {
            kind,
            sections: sections.collect(),
            keys,
            open: false,
        }
    }

    /// A template to read templates with.
    pub fn accepting_anything() -> Self {
        Self {
            kind: PresetKind::Device,
            keys: Vec::new(),
            sections: BTreeSet::new(),
            open: true,
        }
    }

    /// The keys that have a default, as the lowest layer.
    pub fn defaults(&self) -> Layer {
        self.keys
            .iter()
            .filter(|(_, entry)| entry.value != "")
            .cloned()
            .collect()
    }

    /// The default of `key`, if it has one.
    pub fn default_of(&self, key: &str) -> Option<&LayerEntry> {
        self.keys
            .iter()
            .find(|(known, entry)| known == key && entry.value != "")
            .map(|(_, e)| e)
    }

    /// Whether `key` names a value.
    pub fn has_key(&self, key: &str) -> bool {
        self.keys.iter().any(|(known, _)| known == key)
    }

    /// The names of all values.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(key, _)| key.as_str())
    }

    /// Refuses a key that does not exist, a section given as a value, and a value as a section.
    pub fn check_key(&self, key: &str, is_table: bool, origin: &Origin) -> Result<(), ConfigError> {
        let (is_value, is_section) = (self.has_key(key), self.sections.contains(key));
        let is_base = key == "base" && !is_table && self.kind.has_presets();
        if self.open || is_base || (is_value && !is_table) || (is_section && is_table) {
            return Ok(());
        }
        let full = self.kind.full_key(key);
        let origin = origin.clone();
        if is_value {
            let message = "expected a value, found a table".to_string();
            return Err(ConfigError::Invalid {
                origin,
                key: full,
                message,
            });
        }
        if is_section {
            let message = "expected a table of keys, found a value".to_string();
            return Err(ConfigError::Invalid {
                origin,
                key: full,
                message,
            });
        }
        let base = self.kind.has_presets().then_some("base");
        let known = self
            .keys()
            .chain(self.sections.iter().map(String::as_str))
            .chain(base);
        let hint = did_you_mean(&full, known.map(|key| self.kind.full_key(key)));
        Err(ConfigError::UnknownKey {
            origin,
            key: full,
            hint,
        })
    }
}

/// The keys that a part set may give.
const PART_KEYS: [&str; 14] = [
    "name",
    "description",
    "source",
    "geometry.pages_per_block",
    "geometry.page_size",
    "geometry.oob_size",
    "geometry.endurance",
    "timing.read",
    "timing.program",
    "timing.erase",
    "timing.transfer",
    "energy.read_uj",
    "energy.program_uj",
    "energy.erase_uj",
];

/// ` (did you mean "x"?)` for the candidate nearest to `wrong`, or nothing if none is near.
///
/// Candidates that agree in the last part of the path come first: the section is what people
/// forget.
pub(super) fn did_you_mean(wrong: &str, candidates: impl Iterator<Item = String>) -> String {
    let last = |key: &str| key.rsplit('.').next().unwrap_or("").to_string();
    let wrong_last = last(wrong);
    let distance = |key: &String| {
        let whole = strsim::damerau_levenshtein(wrong, key);
        let tail = strsim::damerau_levenshtein(&wrong_last, &last(key));
        let near = whole <= 1 + wrong.len() / 4 || tail <= wrong_last.len() / 4;
        near.then_some((tail, whole))
    };
    let nearest = candidates
        .filter_map(|key| distance(&key).map(|d| (d, key)))
        .min();
    nearest.map_or_else(String::new, |(_, key)| format!(" (did you mean {key:?}?)"))
}
