//! The persistent volume: the translation layer over bytes, durable and recoverable.
//!
//! | module | what it is |
//! |---|---|
//! | [`mod@format`] | the bytes: superblock, root, tables, journal, records |
//! | [`nand`] | flash pages on a medium, and the journal beside them |
//! | [`volume`] | write, read, trim, flush, checkpoint |
//! | [`history`] | instants: reading them, returning to them, snapshots, marks |
//! | [`purge`] | forgetting old versions |
//! | [`notes`] | names, marks, purges, clocks |
//! | [`fetch`] | reads that are planned here and carried out elsewhere |
//! | [`disk`] | the same as a block device of bytes, for many threads |
//! | [`memory`] | the memory an open volume needs |
//! | [`options`] | sizes and policy of a new volume |
//! | [`open`] | making and opening a volume |
//! | [`grow`] | a volume becomes larger |
//! | [`policies`] | the settings of the translation layer under it |
//! | [`load`] | what the last checkpoint holds |
//! | [`mod@check`] | checking a volume that is not open |
//! | [`findings`] | unreadable pages with their addresses; scrubbing |
//! | [`mod@dump`] | what lies on a medium, in words |
//! | [`error`] | what can go wrong |
//!
//! Inside: `journal` and `tables` write, `scan`, `best`, `replay`, `place` and `restore` recover, `layer` hides which
//! policy is on.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

pub mod check;
pub mod disk;
pub mod dump;
pub mod error;
pub mod fetch;
pub mod findings;
pub mod format;
pub mod grow;
pub mod history;
pub mod load;
pub mod memory;
pub mod nand;
pub mod open;
pub mod options;
pub mod purge;
pub mod volume;

mod best;
mod dirty;
mod encoder;
mod journal;
mod layer;
mod lost;
pub mod notes;
mod place;
pub mod policies;
mod replay;
mod restore;
mod scan;
mod tables;
mod unit;

pub use flashlore_content::dedup::DedupCounters;
pub use flashlore_flash::{Lpn, ObjectId, Ppn};
pub use flashlore_ftl::Counters;
pub use flashlore_ftl::policies::encoding::EncodingCounters;

pub use check::{CheckReport, check};
pub use dump::{DumpParts, dump};
pub use error::VolumeError;
pub use fetch::{Codec, EncodingPlan, Prepared, Preparer, ReadPlan, Reader};
pub use findings::{Finding, ScrubProgress};
pub use format::{ClockNote, PurgeNote};
pub use format::{Encoding, HistoryIdentity, Identity, Policy};
pub use grow::Growth;
pub use history::{Differences, HistoryStatus};
pub use memory::{least_memory, memory_needed};
pub use notes::{Mark, Notes};
pub use open::{Recovery, bytes_needed, create, probe};
pub use options::CreateOptions;
pub use purge::Purged;
pub use volume::{Chores, OpenCheckpoint, OpenFlush, Status, StoredAs, Survey, Volume};
