//! What every array does, and who listens to what it asks of its media.
//!
//! An element knows no clock and no thread. Whoever wants to know how long a request takes listens: the element
//! tells an [`Observer`] of each operation on a medium and of each piece of work of the processor, in order, and
//! when what the host waits for is over.

use flashlore_delta::Page;

use crate::counts::counts;
use crate::error::ArrayError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Device {
    /// The solid-state one.
    Fast,
    /// The disk.
    Slow,
}

impl Device {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Device::Fast => "fast",
            Device::Slow => "slow",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationKind {
    Read,
    Write,
    /// Everything written becomes durable; it has no bytes.
    Sync,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceOperation {
    pub device: Device,
    pub kind: OperationKind,
    /// First byte; 0 for a sync.
    pub offset: u64,
    /// Bytes; 0 for a sync.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// A block is encoded, with or without a base.
    Encode,
    Decode,
    /// The signature of a block is computed, or its sketch.
    Signature,
    /// The strong hash of a block is computed.
    Fingerprint,
}

/// Hears what an element does. All methods do nothing unless they are written.
pub trait Observer: Send {
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

    /// What follows waits for everything that was asked of media and processor before, behind answers too.
    fn wait_for_answered(&mut self) {}
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

counts! {
    /// What was asked of a medium so far.
    pub struct Traffic {
        pub reads: u64,
        pub read_bytes: u64,
        pub writes: u64,
        pub written_bytes: u64,
        pub syncs: u64,
    }
}

impl Traffic {
    pub fn add(&mut self, operation: &DeviceOperation) {
        match operation.kind {
            OperationKind::Read => {
                self.reads += 1;
                self.read_bytes += operation.bytes;
            }
            OperationKind::Write => {
                self.writes += 1;
                self.written_bytes += operation.bytes;
            }
            OperationKind::Sync => self.syncs += 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Blocks read by the host.
    pub reads: u64,
    /// Blocks written by the host.
    pub writes: u64,
    /// Blocks trimmed by the host.
    pub trims: u64,
    pub flushes: u64,
    pub fast: Traffic,
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

    /// The next block belongs to the same request as the one before: together they count as one.
    fn continue_request(&mut self) {}

    /// One bounded step of the work that follows requests; false if none is due. Whoever has the element calls it
    /// between requests. A request does such work itself only where it cannot go on without.
    ///
    /// # Errors
    /// The step failed, which is counted. It is due again with the next request.
    fn work(&mut self) -> Result<bool, ArrayError> {
        Ok(false)
    }

    /// Does all the work that is due, up to a step that fails.
    fn work_off(&mut self) {
        while matches!(self.work(), Ok(true)) {}
    }

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

    fn statistics(&self) -> Statistics;
}
