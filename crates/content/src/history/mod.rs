//! Versioning as BVSSD does it (SYSTOR 2012): which object each logical page referred to, until when.
//!
//! * [`store`] — [`History`]: records, the window, versions at an instant, snapshots, purges
//! * [`schedule`] — which instants outlive the window by themselves, and for how long (combination K)
//! * [`capacity`] — how far back a device can go, and what the paper charges for an entry
//! * `chains` — the entries of the window in order of their stamps, those of a page linked
//! * [`entry`] — an entry, and how a history stands in tables
//! * `changed` — the pages that changed after an instant
//! * `removal` — what is taken out in steps
//! * `pins` — instants that are kept behind the window, and the entries they need
//! * `recount` — what entries that are not in memory say of each other
//!
//! Nothing here knows flash: an object is a handle that somebody else owns, and an entry is one
//! reference to it.

use flashlore_flash::ObjectId;

pub mod capacity;
pub mod entry;
pub mod schedule;
pub mod store;

mod chains;
mod changed;
mod pins;
mod recount;
mod removal;

#[cfg(test)]
mod tests;

pub use capacity::{PAPER_ENTRY_BYTES, protection_window};
pub use chains::most_places;
pub use changed::ChangedPages;
pub use entry::{ChainsAt, HistoryAt, VersionEntry};
pub use pins::PinnedInstant;
pub use recount::ChainRecount;
pub use removal::Removal;
pub use schedule::{Schedule, ScheduleError, Tier};
pub use store::{History, HistoryOptions, HistoryTables, Holders, TooOld, Version};

/// In an entry instead of an object: what the page referred to was purged and is not known any more.
pub const PURGED: ObjectId = ObjectId(u32::MAX - 1);

/// Whether an entry with this handle holds a reference to an object.
fn names_object(handle: ObjectId) -> bool {
    handle < PURGED
}
