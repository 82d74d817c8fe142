//! The persistent volume: the translation layer over bytes, durable and recoverable.
//!
//! | module | what it is |
//! |---|---|
//! | [`mod@format`] | the bytes: superblock, root, tables, journal, records |
//! | [`nand`] | flash pages on a medium, and the journal beside them |
//! | [`mod@unit`] | a unit with its record, read and verified |
//! | [`volume`] | write, read, trim, flush, checkpoint |
//! | [`history`] | instants: reading them, returning to them, snapshots, marks |
//! | [`purge`] | forgetting old versions |
//! | [`notes`] | names, marks, purges, clocks |
//! | [`fetch`] | reads that are planned here and carried out elsewhere |
//! | [`disk`] | the same as a block device of bytes, for many threads |
//! | [`memory`] | the memory an open volume needs |
//! | [`options`] | sizes and policy of a new volume |
//! | [`survey`] | what is stored, and what for |
//! | [`image`] | what an opening finds, with nothing written |
//! | [`open`] | making and opening a volume |
//! | [`grow`] | a volume becomes larger |
//! | [`policies`] | the settings of the translation layer under it |
//! | [`load`] | what the last checkpoint holds |
//! | [`mod@check`] | checking a volume that is not open |
//! | [`findings`] | unreadable pages with their addresses |
//! | [`scrub`] | looking for them |
//! | [`mod@dump`] | what lies on a medium, in words |
//! | [`error`] | what can go wrong |
//!
//! Inside: `journal`, `tables` and `superblocks` write, `scan`, `best`, `replay`, `place` and `restore` recover, `layer`
//! hides which policy is on, `stored_index` keeps the fingerprint index, `encoder` and `values` are about encoded values,
//! `dirty` and `young` about what has changed since the checkpoint.
//!
//! Modules use each other in one direction. Below stand `format` and what is about a unit; above them `nand` and `layer`
//! on one side and on the other what a recovery finds, from `load` to `image`. `restore` makes the one of the other,
//! `volume` and what is done with it is on top.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

mod bounds;
mod bulk;
pub mod check;
pub mod disk;
pub mod dump;
pub mod error;
pub mod fetch;
pub mod findings;
pub mod format;
pub mod grow;
pub mod history;
pub mod image;
pub mod load;
pub mod memory;
pub mod nand;
pub mod open;
pub mod options;
pub mod purge;
pub mod scrub;
pub mod survey;
pub mod unit;
pub mod volume;

mod best;
mod dirty;
mod encoder;
mod journal;
mod layer;
pub mod notes;
mod place;
pub mod policies;
mod replay;
mod restore;
mod scan;
mod stored_index;
mod superblocks;
mod tables;
mod values;
mod wanted;
mod young;

pub use flashlore_content::dedup::DedupCounters;
pub use flashlore_flash::{Lpn, ObjectId, Ppn};
pub use flashlore_ftl::Counters;
pub use flashlore_ftl::content::encoding::EncodingCounters;

pub use bounds::RecoveryBounds;
pub use check::{CheckOptions, CheckReport, check, check_within};
pub use dump::{DumpParts, dump};
pub use error::{NandError, VolumeError};
pub use fetch::{Codec, PageReader, Prepared, Preparer, ReadPlan, WritePlan};
pub use findings::{Finding, ScrubProgress};
pub use format::{ClockNote, PurgeNote};
pub use format::{Encoding, HistoryIdentity, Identity, Policy};
pub use grow::Growth;
pub use history::{Differences, HistoryStatus};
pub use image::{Recovery, probe};
pub use memory::{
    CheckShares, MemoryShares, USUAL_MEMORY, least_memory, least_memory_to_check, memory_needed,
    memory_to_go_through,
};
pub use notes::{Mark, Notes};
pub use open::{bytes_needed, create};
pub use options::CreateOptions;
pub use purge::Purged;
pub use stored_index::stored_index_bytes;
pub use survey::{IndexState, StoredAs, Survey, TableState};
pub use volume::{Chores, OpenCheckpoint, OpenFlush, Status, Volume};
