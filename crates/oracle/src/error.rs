//! What can go wrong when a model is set up or driven.

/// An error of the models.
///
/// A violation of the *rules themselves* (a collection that finds no destination, or that never
/// gains a page) is a panic instead: it means that the rules need mending, not the input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OracleError {
    /// A field of [`Rules`](crate::rules::Rules) contradicts the others or itself.
    #[error("rules: `{field}` is {found}, expected {expected}")]
    Rules {
        /// The field at fault.
        field: &'static str,
        /// What it holds.
        found: String,
        /// What it should hold.
        expected: String,
    },
    /// No write frontier on which the unit may be placed has an open host block or may open one, and
    /// collection freed none.
    #[error("device full: no write frontier of placement group {group} can take LPN {lpn}")]
    DeviceFull {
        /// The logical page that could not be written. Its old content stays mapped.
        lpn: u64,
        /// The placement group: 0 for dynamic placement, the die's rank in the stripe for static.
        group: usize,
    },
}
