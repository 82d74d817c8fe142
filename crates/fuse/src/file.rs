//! An open file: the live volume or an instant, as a file of fixed size.
//!
//! At its end it behaves as a block device does: a write that crosses it is cut, one behind it finds no space.

use std::sync::Arc;

use flashlore_serve::clients::Use;
use flashlore_volume::disk::device::HOLE;
use flashlore_volume::disk::{About, BlockDevice};
use fuser::Errno;
use nix::fcntl::FallocateFlags;

use crate::errno::of_disk;

/// What a seek looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sought {
    Data,
    Hole,
}

pub(crate) struct OpenFile {
    device: Arc<dyn BlockDevice>,
    writable: bool,
    /// Counted for as long as it is open; tests open a device that nobody counts.
    _use: Option<Use>,
}

impl OpenFile {
    pub fn new(device: Arc<dyn BlockDevice>, writable: bool, counted: Option<Use>) -> Self {
        OpenFile {
            device,
            writable,
            _use: counted,
        }
    }

    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// The part of a range that exists.
    fn clip(&self, offset: u64, length: u64) -> u64 {
        length.min(self.device.size().saturating_sub(offset))
    }

    fn demand_writable(&self) -> Result<(), Errno> {
        if self.writable {
            Ok(())
        } else {
            Err(Errno::EBADF)
        }
    }

    /// Reads up to the end of the file.
    pub fn read(&self, offset: u64, size: u32) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; self.clip(offset, u64::from(size)) as usize];
        if !bytes.is_empty() {
            self.device
                .read(offset, &mut bytes)
                .map_err(|e| of_disk(&e))?;
        }
        Ok(bytes)
    }

    /// Writes up to the end of the file; how many bytes that was.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<u32, Errno> {
        self.demand_writable()?;
        let count = self.clip(offset, data.len() as u64) as usize;
        if count == 0 && !data.is_empty() {
            return Err(Errno::ENOSPC);
        }
        let written = self.device.write(offset, &data[..count]);
        written.map_err(|e| of_disk(&e))?;
        Ok(count as u32)
    }

    /// Punches a hole, or writes zeros. Space cannot be set aside: what a write costs depends on its content.
    pub fn allocate(&self, offset: u64, length: u64, mode: i32) -> Result<(), Errno> {
        self.demand_writable()?;
        let mode = FallocateFlags::from_bits_retain(mode);
        let keeps_size = mode.contains(FallocateFlags::FALLOC_FL_KEEP_SIZE);
        let allocate = match mode.difference(FallocateFlags::FALLOC_FL_KEEP_SIZE) {
            FallocateFlags::FALLOC_FL_PUNCH_HOLE => false,
            FallocateFlags::FALLOC_FL_ZERO_RANGE => true,
            _ => return Err(Errno::EOPNOTSUPP),
        };
        let count = self.clip(offset, length);
        if count < length && !keeps_size {
            return Err(Errno::ENOSPC);
        }
        let zeroed = self.device.write_zeroes(offset, count, allocate);
        zeroed.map_err(|e| of_disk(&e))
    }

    /// Where the next data or hole begins. There is a hole at the end of the file.
    pub fn seek(&self, offset: i64, sought: Sought) -> Result<i64, Errno> {
        let size = self.device.size();
        let start = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        if start >= size {
            return Err(Errno::ENXIO);
        }
        let (mut at, mut found) = (start, false);
        let mut piece = |bytes: u64, flags: u32| {
            found = (flags & HOLE != 0) == (sought == Sought::Hole);
            if !found {
                at += bytes;
            }
            !found
        };
        let asked = self
            .device
            .ask(About::Allocation, start, size - start, &mut piece);
        asked.map_err(|e| of_disk(&e))?;
        if !found && sought == Sought::Data {
            return Err(Errno::ENXIO);
        }
        i64::try_from(at).map_err(|_| Errno::EOVERFLOW)
    }
}
