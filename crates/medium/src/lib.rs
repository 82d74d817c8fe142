//! The media a persistent volume stands on: byte-addressed stores with a volatile write cache.
//!
//! Everything of a volume lies on one medium, so that one barrier orders everything.
//!
//! | file | what it holds |
//! |---|---|
//! | `medium.rs` | `trait Medium` and what it promises |
//! | `error.rs` | what failed, where, and why |
//! | `buffer.rs` | bytes aligned for direct I/O |
//! | `memory.rs` | a medium in memory |
//! | `file.rs` | a file or block device (Linux) |
//! | `lock.rs` | the lock that keeps a second opener out, and how long it is waited for (Linux) |
//! | `crash.rs` | a medium whose power can be cut, and what it may hold afterwards |
//! | `survivors.rs` | which pending calls survive a power cut |
//! | `faulty.rs` | a wrapper whose calls fail as told |
//! | `overlay.rs` | a medium that is only looked at: writes stay in memory |
//! | `pieced.rs` | a medium whose ranges lie in another order below |
//! | `watched.rs` | a medium whose failures somebody hears of |
//! | `pattern.rs` | pages that follow from 8 bytes, for tests |
//! | `elided.rs` | a medium that notes such pages and stores everything else |
//! | `parted.rs` | a medium whose pages lie below part by part: data together, records together |

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

mod buffer;
mod crash;
mod elided;
mod error;
mod faulty;
#[cfg(target_os = "linux")]
mod file;
#[cfg(target_os = "linux")]
mod lock;
mod medium;
mod memory;
mod overlay;
mod parted;
mod pattern;
mod pieced;
mod survivors;
mod watched;

pub use buffer::{AlignedBuf, PAGE};
pub use crash::CrashMedium;
pub use elided::Elided;
pub use error::{Cause, MediumError, Operation};
pub use faulty::{Failure, Faults, FaultyMedium, ReadFault, When, WriteFault};
#[cfg(target_os = "linux")]
pub use file::{Access, FileMedium, Mode};
pub use medium::{Medium, SECTOR};
pub use memory::MemoryMedium;
pub use overlay::Overlay;
pub use parted::{PageParts, Parted};
pub use pattern::{CHANGED_VERSIONS, MOST_CHANGES, PATTERN_BYTES, Pattern, WHOLE_VERSIONS};
pub use pieced::{Piece, Pieced, cut, end_of, joined};
pub use survivors::Style;
pub use watched::Watched;
