//! One instant of a volume as a read-only block device, while the volume goes on.
//!
//! It holds nothing back: once the window of the history has passed the instant, reading fails. Who needs it longer
//! makes a snapshot.

use std::ops::Range;
use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_medium::Medium;

use super::device::{About, BlockDevice, DiskError, HOLE, check_range};
use super::live::{Disk, tell};

/// Pages that are read under one hold of the lock.
const BATCH: u32 = 64;

/// One instant of a volume.
pub struct InstantDevice<M: Medium> {
    disk: Arc<Disk<M>>,
    instant: u64,
}

impl<M: Medium + 'static> InstantDevice<M> {
    /// The volume as it was at an instant, in nanoseconds since 1970.
    ///
    /// # Errors
    /// The volume keeps no history, the instant is not remembered or has not come.
    pub fn new(disk: Arc<Disk<M>>, instant: u64) -> Result<Self, DiskError> {
        disk.with(|volume| volume.knows_instant(instant))??;
        Ok(InstantDevice { disk, instant })
    }

    /// The instant, in nanoseconds since 1970.
    pub fn instant(&self) -> u64 {
        self.instant
    }

    fn read_pages(&self, pages: Range<u32>, bytes: &mut [u8]) -> Result<(), DiskError> {
        let batches = bytes.chunks_mut(BATCH as usize * PAGE_BYTES);
        for (first, bytes) in pages.step_by(BATCH as usize).zip(batches) {
            let count = (bytes.len() / PAGE_BYTES) as u32;
            let mut held = self.disk.hold()?;
            let volume = held.volume()?;
            let plans: Result<Vec<_>, _> = (first..first + count)
                .map(|lpn| volume.plan_read_at(self.instant, lpn))
                .collect();
            drop(held);
            self.disk
                .fetch(first, &plans?, bytes, |volume, lpn, page| {
                    volume.read_at(self.instant, lpn, page)
                })?;
        }
        Ok(())
    }

    fn flags(&self, pages: Range<u32>) -> Result<Vec<u32>, DiskError> {
        let mut held = self.disk.hold()?;
        let volume = held.volume()?;
        let holes = pages.map(|lpn| Ok(u32::from(!volume.held_at(self.instant, lpn)?) * HOLE));
        holes.collect()
    }
}

impl<M: Medium + 'static> BlockDevice for InstantDevice<M> {
    fn size(&self) -> u64 {
        self.disk.size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let length = buffer.len() as u64;
        check_range(self.size(), offset, length)?;
        let page = PAGE_BYTES as u64;
        if (offset | length).is_multiple_of(page) {
            let first = (offset / page) as u32;
            return self.read_pages(first..first + (length / page) as u32, buffer);
        }
        let pages = offset / page..(offset + length).div_ceil(page);
        let mut whole = vec![0; (pages.end - pages.start) as usize * PAGE_BYTES];
        self.read_pages(pages.start as u32..pages.end as u32, &mut whole)?;
        let start = (offset % page) as usize;
        buffer.copy_from_slice(&whole[start..start + buffer.len()]);
        Ok(())
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
