//! What can fail, and what is only not there yet.

use flashlore_medium::MediumError;
use thiserror::Error;

use crate::address::{Node, Slot, TableId};
use crate::fetch::Fetch;

/// What went wrong. The store is usable after it, but for [`MetadataError::Medium`] of a write: then nothing is written
/// any more.
#[derive(Debug, Error)]
pub enum MetadataError {
    /// The medium failed.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A page is not the one that its pointer means.
    #[error("{node}, in slot {slot}: {why}")]
    Damaged {
        /// The page.
        node: Node,
        /// Where it lies.
        slot: Slot,
        /// What does not hold.
        why: &'static str,
    },
    /// Neither root holds, or what belongs to one does not.
    #[error("{0}")]
    Root(String),
    /// No slot is free before the next commit is durable.
    #[error("no slot is free for a page of the tables until a commit is durable")]
    Full,
    /// All of the cache is in use by pages that may not leave.
    #[error("the cache of {frames} pages has none that may leave")]
    Crowded {
        /// How many it has.
        frames: usize,
    },
    /// A row is asked for that the table has no room for.
    #[error("table {table} has no room for more than {rows} rows")]
    Rows {
        /// The table.
        table: TableId,
        /// Rows that it has.
        rows: usize,
    },
    /// All rows of objects are in use.
    #[error("no row of the objects is free")]
    NoFreeRow,
    /// A write failed before: what the medium holds of it is not known.
    #[error(
        "a write of table pages failed before; nothing is written until the volume is opened again"
    )]
    Failed,
}

/// Why a row cannot be had now.
#[derive(Debug, Error)]
pub enum Access {
    /// A page has to be read first.
    #[error("{} is not in memory", .0.node())]
    Absent(Fetch),
    /// It cannot be had.
    #[error(transparent)]
    Error(#[from] MetadataError),
}

impl From<MediumError> for Access {
    fn from(error: MediumError) -> Self {
        Access::Error(error.into())
    }
}
