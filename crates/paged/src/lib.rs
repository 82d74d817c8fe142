//! Large tables in a scratch file, so that they need not be in memory whole.
//!
//! | module | what it is |
//! |---|---|
//! | `region` | one shared mapping of a file without a name, from which ranges are given out |
//! | [`alloc`] | the global allocator that takes large ranges from there |
//! | [`pager`] | keeps the resident part below a limit |
//! | `usage` | the memory the process has, as the kernel counts it |
//!
//! A program names [`Paged`] as its global allocator. That is the one of the system until [`start`] is called; from
//! then on what is at least [`alloc::LEAST`] bytes long lies in the scratch file. Nothing else of the program changes:
//! a table is a `Vec` as before. The kernel reads and writes what is touched, as with swap, but to a file of this
//! process, whether the machine has swap or not.
//!
//! All `unsafe` code of it is here; each block says why it holds.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]
#![cfg(target_os = "linux")]

pub mod alloc;
pub mod pager;

mod region;
mod usage;

pub use alloc::{Paged, start};
pub use pager::Pager;
pub use region::RegionError;
