//! The two media, with what was asked of them and who listens.
//!
//! Invariants: `is_unsynced` of a medium is true if something was written since its last sync. Nothing is written once it is
//! said why nothing may be ([`Halt`]).

use std::io;
use std::sync::{Arc, OnceLock};

use flashlore_medium::{Cause, Medium, MediumError, Operation};

use crate::element::{
    Device, DeviceOperation, Observer, OperationKind, Statistics, Traffic, Unobserved, Work,
};

pub(crate) struct Media {
    fast: Side,
    slow: Side,
    observer: Box<dyn Observer>,
    halt: Halt,
}

/// Why nothing may be written any more, once there is a reason: a medium failed in a way that leaves open what it holds.
#[derive(Clone, Default)]
pub(crate) struct Halt(Arc<OnceLock<String>>);

impl Halt {
    /// Lets nothing be written from now on. The first reason stays.
    pub fn set(&self, why: String) {
        let _ = self.0.set(why);
    }

    pub fn why(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

struct Side {
    medium: Arc<dyn Medium>,
    traffic: Traffic,
    is_unsynced: bool,
}

impl Side {
    fn new(medium: Arc<dyn Medium>) -> Self {
        Side {
            medium,
            traffic: Traffic::default(),
            is_unsynced: false,
        }
    }
}

impl Media {
    pub fn new(fast: Arc<dyn Medium>, slow: Arc<dyn Medium>) -> Self {
        Media {
            fast: Side::new(fast),
            slow: Side::new(slow),
            observer: Box::new(Unobserved),
            halt: Halt::default(),
        }
    }

    /// What says whether anything may be written.
    pub fn halt(&self) -> &Halt {
        &self.halt
    }

    /// The slow medium, for whoever reads of it what no request waits for.
    pub fn slow_medium(&self) -> Arc<dyn Medium> {
        Arc::clone(&self.slow.medium)
    }

    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = observer;
    }

    pub fn begin_background(&mut self) {
        self.observer.begin_background();
    }

    pub fn wait_for_answered(&mut self) {
        self.observer.wait_for_answered();
    }

    pub fn work(&mut self, work: Work, bytes: usize) {
        self.observer.work(work, bytes);
    }

    /// The counts of a host's requests, with what was asked of the media.
    pub fn complete(&self, requests: Statistics) -> Statistics {
        Statistics {
            fast: self.fast.traffic,
            slow: self.slow.traffic,
            ..requests
        }
    }

    pub fn len(&self, device: Device) -> u64 {
        match device {
            Device::Fast => self.fast.medium.len(),
            Device::Slow => self.slow.medium.len(),
        }
    }

    pub fn read(
        &mut self,
        device: Device,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), MediumError> {
        self.side(device).medium.read(offset, bytes)?;
        self.tell(device, OperationKind::Read, offset, bytes.len());
        Ok(())
    }

    pub fn write(&mut self, device: Device, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.demand_writable(Operation::Write, offset, bytes.len() as u64)?;
        let side = self.side(device);
        side.is_unsynced = true;
        side.medium.write(offset, bytes)?;
        self.tell(device, OperationKind::Write, offset, bytes.len());
        Ok(())
    }

    /// Gives bytes back that nobody needs. Nobody hears of it: a simulation gives nothing back.
    pub fn discard(&mut self, device: Device, offset: u64, bytes: u64) -> Result<(), MediumError> {
        self.demand_writable(Operation::Discard, offset, bytes)?;
        let side = self.side(device);
        side.is_unsynced = true;
        side.medium.discard(offset, bytes)
    }

    fn demand_writable(
        &self,
        operation: Operation,
        offset: u64,
        length: u64,
    ) -> Result<(), MediumError> {
        match self.halt.why() {
            None => Ok(()),
            Some(why) => Err(MediumError {
                operation,
                offset,
                length,
                path: None,
                cause: Cause::Io(io::Error::other(why.to_owned())),
            }),
        }
    }

    /// Makes what was written durable, if there is anything.
    pub fn sync(&mut self, device: Device) -> Result<(), MediumError> {
        let side = self.side(device);
        if std::mem::take(&mut side.is_unsynced) {
            side.medium.sync()?;
            self.tell(device, OperationKind::Sync, 0, 0);
        }
        Ok(())
    }

    fn side(&mut self, device: Device) -> &mut Side {
        match device {
            Device::Fast => &mut self.fast,
            Device::Slow => &mut self.slow,
        }
    }

    fn tell(&mut self, device: Device, kind: OperationKind, offset: u64, bytes: usize) {
        let operation = DeviceOperation {
            device,
            kind,
            offset,
            bytes: bytes as u64,
        };
        self.side(device).traffic.add(&operation);
        self.observer.device(operation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashlore_medium::MemoryMedium;

    #[test]
    fn nothing_is_written_or_given_back_once_there_is_a_reason() {
        let medium = || Arc::new(MemoryMedium::from_bytes(vec![7; 8192]));
        let (fast, slow) = (medium(), medium());
        let mut media = Media::new(fast.clone(), slow.clone());
        media.write(Device::Slow, 0, &[8; 4096]).unwrap();
        media.halt().set("a page is lost".into());
        media.halt().set("another, later".into());
        for device in [Device::Fast, Device::Slow] {
            let refused = media.write(device, 4096, &[9; 4096]).unwrap_err();
            assert_eq!(
                refused.to_string(),
                "cannot write 4096 bytes at offset 4096: a page is lost"
            );
            assert!(media.discard(device, 4096, 4096).is_err());
            let mut bytes = [0; 4096];
            media.read(device, 4096, &mut bytes).unwrap();
            assert_eq!(bytes, [7; 4096]);
        }
    }
}
