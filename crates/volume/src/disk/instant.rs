//! One instant of a volume as a read-only block device, while the volume goes on.
//!
//! It holds nothing back: once the window of the history has passed the instant, reading fails. Who needs it longer
//! makes a snapshot.

use std::ops::Range;
use std::sync::Arc;

use flashlore_flash::Lpn;

use super::device::{About, BlockDevice, DiskError, HOLE};
use super::live::{Disk, When};
use super::range::{check_range, tell};

/// One instant of a volume.
pub struct InstantDevice {
    disk: Arc<Disk>,
    instant: u64,
}

impl InstantDevice {
    /// The volume as it was at an instant, in nanoseconds since 1970.
    ///
    /// # Errors
    /// The volume keeps no history, the instant is not remembered or has not come.
    pub fn new(disk: Arc<Disk>, instant: u64) -> Result<Self, DiskError> {
        disk.with(|volume| volume.knows_instant(instant))??;
        Ok(InstantDevice { disk, instant })
    }

    /// The instant, in nanoseconds since 1970.
    pub fn instant(&self) -> u64 {
        self.instant
    }

    fn flags(&self, pages: Range<Lpn>) -> Result<Vec<u32>, DiskError> {
        let mut held = self.disk.look()?;
        let volume = held.get()?;
        let holes =
            Lpn::each(pages).map(|lpn| Ok(u32::from(!volume.held_at(self.instant, lpn)?) * HOLE));
        holes.collect()
    }
}

impl BlockDevice for InstantDevice {
    fn size(&self) -> u64 {
        self.disk.size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        self.disk.read_bytes(When::At(self.instant), offset, buffer)
    }

    fn write(&self, _offset: u64, _data: &[u8]) -> Result<(), DiskError> {
        Err(DiskError::ReadOnly)
    }

    fn write_zeroes(&self, _offset: u64, _length: u64, _allocate: bool) -> Result<(), DiskError> {
        Err(DiskError::ReadOnly)
    }

    fn trim(&self, _offset: u64, _length: u64) -> Result<(), DiskError> {
        Err(DiskError::ReadOnly)
    }

    fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn ask(
        &self,
        about: About,
        offset: u64,
        length: u64,
        piece: &mut dyn FnMut(u64, u32) -> bool,
    ) -> Result<(), DiskError> {
        check_range(self.size(), offset, length)?;
        match about {
            About::Allocation => tell(offset, length, |pages| self.flags(pages), piece),
            About::Stored | About::ChangedSince(_) => Err(DiskError::NotKnown),
        }
    }
}
