//! Why a trace cannot be characterised.

/// Why a trace cannot be characterised.
#[derive(Debug, thiserror::Error)]
pub enum CharacterizeError {
    /// An option that means nothing.
    #[error("the {option} is {found}, expected {expected}")]
    Option {
        /// Which one.
        option: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// More things than can be numbered.
    #[error(
        "the trace has more than {limit} different {what} to follow; follow a share of them by \
         sampling"
    )]
    TooMany {
        /// Pages or values.
        what: &'static str,
        /// How many can be followed.
        limit: u32,
    },
}
