//! What can be wrong with a profile.

/// A profile that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Neither a file nor one of the profiles that come with the program.
    #[error("there is no profile '{name}'; expected a file or one of {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A file that cannot be read.
    #[error("cannot read the profile {path}: {source}")]
    Io {
        /// Its name.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Text that is no profile.
    #[error("{origin}: {source}")]
    Syntax {
        /// Where the text comes from.
        origin: String,
        /// What the parser says.
        source: Box<toml_edit::de::Error>,
    },
    /// A parameter out of range, or figures that contradict one another.
    #[error("{origin}: {key}: {message}")]
    Invalid {
        /// Where the text comes from.
        origin: String,
        /// The parameter.
        key: &'static str,
        /// What was found and what was expected.
        message: String,
    },
    /// A setting that does not exist or does not fit the profile.
    #[error("profile '{name}': {message}")]
    Setting {
        /// The profile.
        name: String,
        /// What was found and what was expected.
        message: String,
    },
}
