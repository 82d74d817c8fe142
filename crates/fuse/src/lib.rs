//! A volume or an array as files that FUSE mounts, so that a loop device or any program uses it without an NBD tool.
//!
//! | path | what it is |
//! |---|---|
//! | `NAME` | the live volume; its directory's name, or `volume` if that is `at` |
//! | `NAME`, `NAME.1`, ... | instead, the machines of an array; it has no instants |
//! | `at/` | the snapshots, by name |
//! | `at/INSTANT` | any other instant that can be named, such as `at/10min ago`; not listed |
//!
//! | module | what it is |
//! |---|---|
//! | [`mounted`] | mounting, unmounting, the end of a mount |
//! | `kernel` | the kernel's side of a mount: where it is, how it begins and ends |
//! | `filesystem` | what the kernel asks, answered |
//! | `node` | numbers of files, and their attributes |
//! | `file` | an open file: reads, writes, holes |
//! | `later` | requests that take long, off the threads that serve |
//! | `errno` | errors as the kernel knows them |
//!
//! Invariants: the kernel caches no bytes of the volume (every file is opened for direct I/O), so that a rewind to an
//! instant or a purge is seen by the next read; a file that was opened goes on to show the same instant, whatever its
//! name means later; while the live file is open for writing the volume does not go back in time.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

pub mod mounted;

mod errno;
mod file;
mod filesystem;
mod kernel;
mod later;
mod node;

pub use mounted::{MountError, MountPoint, Mounted, mount};
