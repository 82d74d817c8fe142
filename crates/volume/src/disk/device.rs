//! What a block device can do, whoever is behind it.

use crate::error::VolumeError;

/// What a part of a device is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Whether anything was written there: [`HOLE`] or 0.
    Allocation,
    /// How it is stored: a sum of [`UNIQUE`], [`SHARED`], [`DELTA`] and [`COMPRESSED`], or 0 for nothing.
    Stored,
    /// Whether it was written since an instant: [`CHANGED`] or 0.
    ChangedSince(u64),
}

/// Nothing was written there; it reads as zeros.
pub const HOLE: u32 = 1;
/// One page refers to it.
pub const UNIQUE: u32 = 1;
/// Several pages refer to it.
pub const SHARED: u32 = 2;
/// It is stored as the delta from another page.
pub const DELTA: u32 = 4;
/// It is stored compressed by itself.
pub const COMPRESSED: u32 = 8;
/// It was written since.
pub const CHANGED: u32 = 1;

/// A device of bytes that survive a flush. Calls come from several threads; calls that overlap at the same time have
/// no defined order, but each page of 4 KiB holds what one of them left.
pub trait BlockDevice: Send + Sync {
    /// Size in bytes.
    fn size(&self) -> u64;

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// Out of range, or a page that cannot be read.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError>;

    /// Writes `data` at `offset`. It is durable after the next flush.
    ///
    /// # Errors
    /// Out of range, read-only, no space, or a failure. A part may have been written.
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError>;

    /// Makes a range read as zeros. With `allocate` it is stored and no hole.
    ///
    /// # Errors
    /// As [`BlockDevice::write`].
    fn write_zeroes(&self, offset: u64, length: u64, allocate: bool) -> Result<(), DiskError>;

    /// Forgets the whole pages of a range; they read as zeros.
    ///
    /// # Errors
    /// As [`BlockDevice::write`].
    fn trim(&self, offset: u64, length: u64) -> Result<(), DiskError>;

    /// Makes durable whatever had returned before this was called.
    ///
    /// # Errors
    /// The store failed: how much is durable is not known.
    fn flush(&self) -> Result<(), DiskError>;

    /// Tells about a range in pieces from its start on: bytes and flags. `piece` answers whether to go on.
    ///
    /// # Errors
    /// Out of range, or the question cannot be answered here.
    fn ask(
        &self,
        about: About,
        offset: u64,
        length: u64,
        piece: &mut dyn FnMut(u64, u32) -> bool,
    ) -> Result<(), DiskError>;
}

impl<D: BlockDevice + ?Sized> BlockDevice for std::sync::Arc<D> {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        (**self).read(offset, buffer)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        (**self).write(offset, data)
    }

    fn write_zeroes(&self, offset: u64, length: u64, allocate: bool) -> Result<(), DiskError> {
        (**self).write_zeroes(offset, length, allocate)
    }

    fn trim(&self, offset: u64, length: u64) -> Result<(), DiskError> {
        (**self).trim(offset, length)
    }

    fn flush(&self) -> Result<(), DiskError> {
        (**self).flush()
    }

    fn ask(
        &self,
        about: About,
        offset: u64,
        length: u64,
        piece: &mut dyn FnMut(u64, u32) -> bool,
    ) -> Result<(), DiskError> {
        (**self).ask(about, offset, length, piece)
    }
}

/// Why a device did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Beyond the end.
    #[error("bytes {offset} to {end} do not exist, the device has {size}")]
    OutOfRange {
        /// First byte.
        offset: u64,
        /// Behind the last byte.
        end: u64,
        /// Bytes of the device.
        size: u64,
    },
    /// An instant cannot be written to, nor an array whose fast medium is not there.
    #[error("it is read-only")]
    ReadOnly,
    /// The question makes no sense here.
    #[error("it is not known here how a page is stored, or what changed since an instant")]
    NotKnown,
    /// A thread panicked inside the volume: what it holds in memory may be wrong.
    #[error("the volume stopped after an error of the program; open it again")]
    Broken,
    /// The volume was closed.
    #[error("the volume is closed")]
    Closed,
    /// A filter made it fail.
    #[error("an error that a filter injected")]
    Injected,
    /// A store that is no volume did not do it.
    #[error("{source}")]
    Store {
        /// What that means.
        kind: ErrorKind,
        /// Its own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The volume's own error.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

/// What an error means to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// EINVAL.
    Invalid,
    /// EPERM.
    ReadOnly,
    /// ENOSPC.
    NoSpace,
    /// ESHUTDOWN.
    Closed,
    /// EIO.
    Failed,
}

impl DiskError {
    /// What it means to a client.
    pub fn kind(&self) -> ErrorKind {
        match self {
            DiskError::OutOfRange { .. } | DiskError::NotKnown => ErrorKind::Invalid,
            DiskError::ReadOnly => ErrorKind::ReadOnly,
            DiskError::Closed => ErrorKind::Closed,
            DiskError::Store { kind, .. } => *kind,
            DiskError::Volume(
                VolumeError::NoSpace { .. }
                | VolumeError::Held { .. }
                | VolumeError::HistoryFull { .. }
                | VolumeError::TooManySnapshots { .. },
            ) => ErrorKind::NoSpace,
            DiskError::Volume(VolumeError::OutOfRange { .. }) => ErrorKind::Invalid,
            DiskError::Broken | DiskError::Injected | DiskError::Volume(_) => ErrorKind::Failed,
        }
    }
}
