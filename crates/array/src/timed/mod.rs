//! Requests to an array in simulated time.
//!
//! An element carries a request out at once and tells what it asked of its media and of the processor, in order
//! ([`steps`]). Here that takes its time ([`engine`]): the steps of a request follow one another, each on a device
//! that has a queue of its own; steps of different requests run side by side. What comes after the answer goes on in
//! the background, as a chain like any other, and is limited: where it does not keep up, requests wait for it.
//!
//! Time is in nanoseconds, an argument and a result; nobody asks a clock.

pub mod engine;
pub mod steps;

use crate::element::{DeviceOperation, OperationKind};
use crate::hdd::{Completion, Hdd, Raid0, Request, RequestError, SECTOR_BYTES, Time};

pub use engine::{Ended, Engine, Limits};
pub use steps::{Costs, Listener, TimedStep};

pub trait TimedDevice {
    /// Submits an operation under a name of the caller's.
    ///
    /// # Errors
    /// It does not lie within the device, or its time has passed.
    fn submit(
        &mut self,
        time: Time,
        id: u64,
        operation: &DeviceOperation,
    ) -> Result<(), TimedError>;

    /// The next step of what is under way, if anything is. Advancing to it makes progress.
    fn next_event(&self) -> Option<Time>;

    /// Lets time pass to `until` and appends what has ended by then to `done`, in order of time.
    ///
    /// # Errors
    /// It cannot go on with what is under way.
    fn advance(&mut self, until: Time, done: &mut Vec<Completion>) -> Result<(), TimedError>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimedError {
    #[error("an operation on the slow medium: {0}")]
    Disk(#[from] RequestError),
    /// Any other device refused it, or cannot go on.
    #[error("{0}")]
    Refused(String),
    #[error("a device has forgotten an operation")]
    Lost,
    #[error("{bytes} bytes at {offset} are not sectors of {SECTOR_BYTES} bytes")]
    Sectors { offset: u64, bytes: u64 },
}

/// An operation as a request of a disk.
fn as_request(operation: &DeviceOperation) -> Result<Request, TimedError> {
    let &DeviceOperation {
        kind,
        offset,
        bytes,
        ..
    } = operation;
    let refused = TimedError::Sectors { offset, bytes };
    if !offset.is_multiple_of(SECTOR_BYTES) || !bytes.is_multiple_of(SECTOR_BYTES) {
        return Err(refused);
    }
    let sectors = u32::try_from(bytes / SECTOR_BYTES).map_err(|_| refused)?;
    Ok(match kind {
        OperationKind::Read => Request::read(offset / SECTOR_BYTES, sectors),
        OperationKind::Write => Request::write(offset / SECTOR_BYTES, sectors),
        OperationKind::Sync => Request::FLUSH,
    })
}

macro_rules! disks {
    ($($disk:ty),*) => {$(
        impl TimedDevice for $disk {
            fn submit(
                &mut self,
                time: Time,
                id: u64,
                operation: &DeviceOperation,
            ) -> Result<(), TimedError> {
                Ok(<$disk>::submit(self, time, id, as_request(operation)?)?)
            }

            fn next_event(&self) -> Option<Time> {
                <$disk>::next_event(self)
            }

            fn advance(
                &mut self,
                until: Time,
                done: &mut Vec<Completion>,
            ) -> Result<(), TimedError> {
                <$disk>::advance(self, until, done);
                Ok(())
            }
        }
    )*};
}

disks!(Hdd, Raid0);
