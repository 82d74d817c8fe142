//! Why a trace cannot be characterised.

#[derive(Debug, thiserror::Error)]
pub enum CharacterizeError {
    #[error("the {option} is {found}, expected {expected}")]
    Option {
        option: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error(
        "the trace has more than {limit} different {what} to follow; follow a share of them by \
         sampling"
    )]
    TooMany {
        /// Pages or values.
        what: &'static str,
        limit: u32,
    },
}
