//! The two media, with what was asked of them and who listens.
//!
//! Invariant: `is_unsynced` of a medium is true if something was written since its last sync.

use std::sync::Arc;

use flashlore_medium::{Medium, MediumError};

use crate::element::{
    Device, DeviceOperation, Kind, Observer, Statistics, Traffic, Unobserved, Work,
};

pub(crate) struct Media {
    fast: Arc<dyn Medium>,
    slow: Arc<dyn Medium>,
    observer: Box<dyn Observer>,
    fast_traffic: Traffic,
    slow_traffic: Traffic,
    fast_unsynced: bool,
    slow_unsynced: bool,
}

impl Media {
    pub fn new(fast: Arc<dyn Medium>, slow: Arc<dyn Medium>) -> Self {
        Media {
            fast,
            slow,
            observer: Box::new(Unobserved),
            fast_traffic: Traffic::default(),
            slow_traffic: Traffic::default(),
            fast_unsynced: false,
            slow_unsynced: false,
        }
    }

    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = observer;
    }

    pub fn begin_background(&mut self) {
        self.observer.begin_background();
    }

    pub fn work(&mut self, work: Work, bytes: usize) {
        self.observer.work(work, bytes);
    }

    /// The counts of a host's requests, with what was asked of the media.
    pub fn complete(&self, requests: Statistics) -> Statistics {
        Statistics {
            fast: self.fast_traffic,
            slow: self.slow_traffic,
            ..requests
        }
    }

    pub fn len(&self, device: Device) -> u64 {
        self.medium(device).len()
    }

    pub fn read(
        &mut self,
        device: Device,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), MediumError> {
        self.medium(device).read(offset, bytes)?;
        self.tell(device, Kind::Read, offset, bytes.len());
        Ok(())
    }

    pub fn write(&mut self, device: Device, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        match device {
            Device::Fast => self.fast_unsynced = true,
            Device::Slow => self.slow_unsynced = true,
        }
        self.medium(device).write(offset, bytes)?;
        self.tell(device, Kind::Write, offset, bytes.len());
        Ok(())
    }

    /// Makes what was written durable, if there is anything.
    pub fn sync(&mut self, device: Device) -> Result<(), MediumError> {
        let unsynced = match device {
            Device::Fast => &mut self.fast_unsynced,
            Device::Slow => &mut self.slow_unsynced,
        };
        if std::mem::take(unsynced) {
            self.medium(device).sync()?;
            self.tell(device, Kind::Sync, 0, 0);
        }
        Ok(())
    }

    fn medium(&self, device: Device) -> &dyn Medium {
        match device {
            Device::Fast => &*self.fast,
            Device::Slow => &*self.slow,
        }
    }

    fn tell(&mut self, device: Device, kind: Kind, offset: u64, bytes: usize) {
        let operation = DeviceOperation {
            device,
            kind,
            offset,
            bytes: bytes as u64,
        };
        match device {
            Device::Fast => self.fast_traffic.add(&operation),
            Device::Slow => self.slow_traffic.add(&operation),
        }
        self.observer.device(operation);
    }
}
