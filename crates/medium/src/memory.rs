//! A medium in memory. Nothing of it is volatile: every write is durable at once.

use parking_lot::RwLock;

use crate::error::{Cause, MediumError, Operation};
use crate::medium::{Medium, SECTOR, check};

/// Bytes in memory behind a lock. Discarded sectors read as zeros.
#[derive(Debug)]
pub struct MemoryMedium {
    bytes: RwLock<Vec<u8>>,
    len: u64,
}

impl MemoryMedium {
    /// A medium of `len` zeros.
    ///
    /// # Panics
    /// If `len` is not a multiple of [`SECTOR`].
    pub fn new(len: usize) -> Self {
        Self::from_bytes(vec![0; len])
    }

    /// A medium that holds these bytes.
    ///
    /// # Panics
    /// If their number is not a multiple of [`SECTOR`].
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        assert_whole_sectors(&bytes);
        MemoryMedium {
            len: bytes.len() as u64,
            bytes: RwLock::new(bytes),
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes.into_inner()
    }

    /// Flips one bit (0 to 7) of the byte at `offset`, as ageing does.
    pub fn flip(&self, offset: u64, bit: u8) -> Result<(), MediumError> {
        let mut bytes = self.bytes.write();
        flip(&mut bytes, offset, bit)
    }

    fn change(
        &self,
        operation: Operation,
        offset: u64,
        length: u64,
        apply: impl FnOnce(&mut [u8]),
    ) -> Result<(), MediumError> {
        check(self, operation, offset, length)?;
        let mut bytes = self.bytes.write();
        apply(&mut bytes[offset as usize..(offset + length) as usize]);
        Ok(())
    }
}

impl Medium for MemoryMedium {
    fn len(&self) -> u64 {
        self.len
    }

    fn alignment(&self) -> u32 {
        SECTOR as u32
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        check(self, Operation::Read, offset, buf.len() as u64)?;
        let bytes = self.bytes.read();
        buf.copy_from_slice(&bytes[offset as usize..][..buf.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        self.change(Operation::Write, offset, buf.len() as u64, |place| {
            place.copy_from_slice(buf);
        })
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.change(Operation::Discard, offset, len, |place| place.fill(0))
    }

    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
}

/// Refuses bytes that end within a sector.
pub(crate) fn assert_whole_sectors(bytes: &[u8]) {
    assert!(
        bytes.len().is_multiple_of(SECTOR),
        "a medium holds whole sectors of {SECTOR} bytes, not {} bytes",
        bytes.len()
    );
}

pub(crate) fn flip(bytes: &mut [u8], offset: u64, bit: u8) -> Result<(), MediumError> {
    let medium_len = bytes.len() as u64;
    let byte = usize::try_from(offset)
        .ok()
        .and_then(|offset| bytes.get_mut(offset))
        .ok_or_else(|| {
            let cause = Cause::OutOfRange { medium_len };
            MediumError::at(Operation::Flip, offset, 1, cause)
        })?;
    *byte ^= 1 << (bit % 8);
    Ok(())
}
