//! What can be wrong with a configuration, each as a sentence that names key and place.

use std::path::PathBuf;

use super::layer::Origin;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A key that does not exist.
    #[error("{origin}: there is no key {key:?}{hint}")]
    UnknownKey {
        /// Where it was found.
        origin: Origin,
        /// The key in full.
        key: String,
        /// The nearest known key as ` (did you mean …?)`, or nothing.
        hint: String,
    },
    /// A value of the wrong type, or out of range.
    #[error("{origin}: {key}: {message}")]
    Invalid {
        /// Where it was found.
        origin: Origin,
        /// The key in full.
        key: String,
        /// What was expected and what was found.
        message: String,
    },
    /// Two keys that exclude each other.
    #[error("{origin}: {key} contradicts {other} ({other_origin}): {reason}")]
    Contradiction {
        /// Where the key was found.
        origin: Box<Origin>,
        /// The key in full.
        key: String,
        /// The key that it contradicts.
        other: String,
        /// Where that one was found.
        other_origin: Box<Origin>,
        /// Why they exclude each other.
        reason: &'static str,
    },
    /// A key without which nothing can run.
    #[error("{name}: {key} is not set: {hint}")]
    Missing {
        /// The preset or file.
        name: String,
        /// The key in full.
        key: String,
        /// How to set it.
        hint: &'static str,
    },
    /// A preset that does not exist.
    #[error("{place}there is no {kind} named {name:?}{hint}; known are {known}")]
    UnknownPreset {
        /// Where the name was found, as `file:line: `; empty for a name given by the caller.
        place: String,
        /// `device`, `system` or `part`.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The nearest known name as ` (did you mean …?)`, or nothing.
        hint: String,
        /// The names that exist, and how to name a file where one may stand.
        known: String,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A text that is not TOML.
    #[error("{name} is not valid TOML: {message}")]
    Syntax {
        /// The preset or file.
        name: String,
        /// The parser's message, with line and column.
        message: String,
    },
    /// A `--set` that is not an assignment to a key.
    #[error(
        "--set {text}: expected KEY=VALUE such as device.capacity=4GiB or dedup.index_entries=128Ki"
    )]
    Setting {
        /// The text of the option.
        text: String,
    },
    /// A device template used where a device is needed.
    #[error("device {name} is a template: its size follows from a trace")]
    Template {
        /// The device.
        name: String,
    },
}
