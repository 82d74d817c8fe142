//! What can go wrong with an array.

use flashlore_delta::DecodeError;
use flashlore_medium::MediumError;

/// Why a block has no content that could be given out.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// A medium failed.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// The bytes are not those that were stored.
    #[error("its checksum is {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// That of what was read.
        found: u32,
        /// That of what was written.
        expected: u32,
    },
    /// A difference that does not decode.
    #[error("its difference does not decode: {0}")]
    Decode(#[from] DecodeError),
}

/// An array that cannot be made or opened, or an operation it did not do.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    /// An address that no virtual machine has.
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
        /// The virtual machine.
        machine: u8,
        /// The rest of the address.
        address: u64,
        /// What happened.
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
    /// A block that was to be laid in is not empty.
    #[error("block {block} is to be laid in and holds something")]
    Occupied {
        /// Its number, counted through all virtual machines.
        block: u32,
    },
    /// Sizes that do not fit each other or the media.
    #[error("{0}")]
    Shape(String),
    /// One of the media is an older copy of itself: the other has been used since.
    #[error(
        "the fast medium is of session {fast} of the array, the slow one of session {slow}: the one with the lower \
         number is an older copy, and nothing was written; put that of the same session in its place"
    )]
    Stale {
        /// The session that the fast medium knows.
        fast: u32,
        /// That of the slow one.
        slow: u32,
    },
    /// The media hold no array, parts of two, or a damaged one.
    #[error("{0}")]
    Damaged(String),
}
