//! What every array does, and who listens to what it asks of its media.
//!
//! An element knows no clock and no thread. Whoever wants to know how long a request takes listens: the element
//! tells an [`Observer`] of each operation on a medium and of each piece of work of the processor, in order, and
//! when what the host waits for is over.

use flashlore_delta::Page;

use crate::error::ArrayError;

/// A medium of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Device {
    /// The solid-state one.
    Fast,
    /// The disk.
    Slow,
}

/// What is asked of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// Everything written becomes durable; it has no bytes.
    Sync,
}

/// One operation on a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceOperation {
    /// Which medium.
    pub device: Device,
    /// What is asked of it.
    pub kind: Kind,
    /// First byte; 0 for a sync.
    pub offset: u64,
    /// Bytes; 0 for a sync.
    pub bytes: u64,
}

/// Work of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// A block is encoded, with or without a base.
    Encode,
    /// A block is decoded.
    Decode,
    /// The signature of a block is computed, or its sketch.
    Signature,
    /// The strong hash of a block is computed.
    Fingerprint,
}

/// Hears what an element does. All methods do nothing unless they are written.
pub trait Observer: Send {
    /// An operation on a medium was carried out.
    fn device(&mut self, operation: DeviceOperation) {
        let _ = operation;
    }

    /// The processor worked on so many bytes of a block.
    fn work(&mut self, work: Work, bytes: usize) {
        let _ = (work, bytes);
    }

    /// The host has its answer; what follows until the next request is work in the background. It may be said more
    /// than once of a request.
    fn begin_background(&mut self) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// What was asked of a medium so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Syncs.
    pub syncs: u64,
}

impl Traffic {
    /// What was asked since traffic that was counted earlier.
    #[must_use]
    pub fn since(&self, earlier: &Traffic) -> Traffic {
        Traffic {
            reads: self.reads - earlier.reads,
            read_bytes: self.read_bytes - earlier.read_bytes,
            writes: self.writes - earlier.writes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            syncs: self.syncs - earlier.syncs,
        }
    }

    /// Counts an operation.
    pub fn add(&mut self, operation: &DeviceOperation) {
        match operation.kind {
            Kind::Read => {
                self.reads += 1;
                self.read_bytes += operation.bytes;
            }
            Kind::Write => {
                self.writes += 1;
                self.written_bytes += operation.bytes;
            }
            Kind::Sync => self.syncs += 1,
        }
    }
}

/// What can be told of every array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Blocks read by the host.
    pub reads: u64,
    /// Blocks written by the host.
    pub writes: u64,
    /// Blocks trimmed by the host.
    pub trims: u64,
    /// Flushes of the host.
    pub flushes: u64,
    /// What was asked of the fast medium.
    pub fast: Traffic,
    /// What was asked of the slow medium.
    pub slow: Traffic,
}

/// A block device of blocks of 4 KiB on two media. An address has the number of the virtual machine in its
/// highest byte and counts blocks below it.
pub trait Element {
    /// Fills `page` with the content of a block; one that was never written is zeros.
    ///
    /// # Errors
    /// No such address, or its content cannot be read.
    fn read(&mut self, lba: u64, page: &mut Page) -> Result<(), ArrayError>;

    /// Gives a block new content.
    ///
    /// # Errors
    /// No such address, no room, or a medium failed. The block holds what it held before.
    fn write(&mut self, lba: u64, page: &Page) -> Result<(), ArrayError>;

    /// Gives the content of a block up: it reads as zeros.
    ///
    /// # Errors
    /// As for a write.
    fn trim(&mut self, lba: u64) -> Result<(), ArrayError>;

    /// Makes everything before durable.
    ///
    /// # Errors
    /// A medium failed. What is durable is some state since the last flush that succeeded.
    fn flush(&mut self) -> Result<(), ArrayError>;

    /// Gives blocks that hold nothing their first content, as data that were there before anybody used them: they
    /// lie at home and nothing of them is cached. They count as no requests.
    ///
    /// # Errors
    /// As for a write, or a block holds something. Some blocks have their content then and the others nothing.
    fn lay_in(&mut self, pages: &mut dyn Iterator<Item = (u64, Page)>) -> Result<(), ArrayError>;

    /// What was done so far.
    fn statistics(&self) -> Statistics;
}
