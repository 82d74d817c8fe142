//! What can be wrong with a profile.

#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("there is no profile '{name}'; expected a file or one of {known}")]
    Unknown { name: String, known: String },
    #[error("cannot read the profile {path}: {source}")]
    Io {
        path: String,
        source: std::io::Error,
    },
    #[error("{origin}: {source}")]
    Syntax {
        origin: String,
        source: Box<toml_edit::de::Error>,
    },
    #[error("{origin}: {key}: {message}")]
    Invalid {
        origin: String,
        key: &'static str,
        message: String,
    },
    #[error("profile '{name}': {message}")]
    Setting { name: String, message: String },
}
