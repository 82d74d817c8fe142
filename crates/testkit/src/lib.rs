//! What tests share: how a test says that it cannot run here, and where it finds data and programs.
//!
//! Outside of continuous integration a skip is a line of output. With `CI=true` it is a failure, unless
//! `.ci/skips.txt` lists its name with a reason: tests that silently test nothing would stay green.

mod here;
mod skips;

pub use here::{data, installed, is_root, may_mount};
pub use skips::Skips;

use std::fmt::Display;

/// Says that a test, or the rest of one, cannot run here. The caller returns.
///
/// # Panics
/// In continuous integration, if `.ci/skips.txt` does not list the name.
#[track_caller]
pub fn skip(name: &str, what: impl Display) {
    Skips::new(|variable| std::env::var_os(variable)).skip(name, what);
}
