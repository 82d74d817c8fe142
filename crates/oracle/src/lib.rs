//! Slow, naive models that judge the fast core. Test-only: nothing a user runs depends on them.
//!
//! Every model here prefers the plainest data structure to the fast one and shares no code with
//! the core. They depend on no other Flashlore crate, so that an error in the core cannot hide in
//! its own judge. The rules of the flash-level models are written down in [`rules`] and, step by
//! step, in [`page_ftl`].

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

mod blocks;
mod collect;
mod error;

pub mod bus;
pub mod ca_ftl;
pub mod counts;
pub mod curves;

pub mod delta_ftl;
pub mod des;
pub mod disk;
pub mod history;
pub mod index;
pub mod locality;
pub mod map_cache;
pub mod ops;
pub mod page_ftl;
pub mod rules;

#[cfg(test)]
mod cross_checks;
#[cfg(test)]
mod testing;

pub use error::OracleError;
