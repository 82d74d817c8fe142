//! The bytes of a volume: pure encoding and decoding, nothing is read or written here.
//!
//! docs/format.md is the same in prose, with the assumptions about the medium.

pub mod address;
pub mod areas;
pub mod cursor;
pub mod journal;
pub mod mark;
pub mod name;
pub mod notes;
pub mod old;
pub mod packed;
pub mod record;
pub mod root;
pub mod rows;
pub mod superblock;
pub mod tables;

#[cfg(test)]
mod tests;

pub use address::{PageInTable, RowId};
pub use areas::{Areas, AreasError};
pub use flashlore_flash::PackSlot;
pub use journal::{Batch, Change, JournalEntry};
pub use name::{Naming, ObjectName};
pub use notes::{ClockNote, Note, NoteKind, PurgeNote};
pub use record::{PlacedRecord, Record, Slot, UnitKind};
pub use root::{HistoryRoot, Root};
pub use rows::{
    BlockRow, BlockState, MapRow, ObjectNote, ObjectPlace, ObjectRow, PackedRow, pack_of,
};
pub use superblock::{Encoding, EpochStart, HistoryIdentity, Identity, Policy, Superblock};
pub use tables::Table;
