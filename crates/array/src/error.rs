//! What can go wrong with an array.

use flashlore_delta::DecodeError;
use flashlore_medium::MediumError;

use crate::icash::place::DataBlock;
use crate::index::ArrayBlock;

/// Why a block has no content that could be given out.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    #[error(transparent)]
    Medium(#[from] MediumError),
    #[error("its checksum is {found:#010x}, expected {expected:#010x}")]
    Checksum { found: u32, expected: u32 },
    #[error("its delta does not decode: {0}")]
    Decode(#[from] DecodeError),
    #[error("its data block {data} lies nowhere")]
    NoData { data: DataBlock },
    #[error(
        "it was lost with a fast medium that was replaced; writing the whole block or trimming it ends this"
    )]
    Lost,
    /// Where it is, is not known.
    #[error("{0}")]
    Place(String),
}

#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    #[error("block {address} of virtual machine {machine} does not exist, it has {blocks} blocks")]
    OutOfRange {
        /// The virtual machine: the highest byte of the address.
        machine: u8,
        /// The rest of the address.
        address: u64,
        /// Blocks the virtual machine has; 0 if there is none of this number.
        blocks: u64,
    },
    /// The content of a block cannot be read any more (EIO).
    #[error("block {address} of virtual machine {machine} cannot be read: {source}")]
    Unreadable {
        machine: u8,
        address: u64,
        source: ContentError,
    },
    /// Nothing more can be stored (ENOSPC).
    #[error("no room: {0}")]
    NoRoom(&'static str),
    /// An operation on a medium failed; nothing has changed.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A medium failed earlier in a way that leaves open what it holds.
    #[error(
        "a medium failed earlier ({0}), nothing is changed any more until the array is opened again"
    )]
    Stopped(String),
    #[error("block {block} is to be laid in and holds something")]
    Occupied { block: ArrayBlock },
    #[error("{0}")]
    Shape(String),
    /// One of the media is an older copy of itself: the other has been used since.
    #[error(
        "the fast medium is of session {fast} of the array, the slow one of session {slow}: the one with the lower \
         number is an older copy, and nothing was written; put that of the same session in its place"
    )]
    Stale { fast: u32, slow: u32 },
    #[error("{0}")]
    Damaged(String),
}
