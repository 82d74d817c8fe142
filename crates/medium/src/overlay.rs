//! A medium that is only looked at: what is written stays in memory and is gone with it.
//!
//! Invariant: the medium behind is never written, discarded or synced. What was written here is read back.

use std::collections::BTreeMap;

use parking_lot::RwLock;

use crate::error::{MediumError, Operation};
use crate::medium::{Medium, SECTOR, check};

/// A medium whose changes stay in memory: so many bytes are taken as are written.
#[derive(Debug)]
pub struct Overlay<M> {
    inner: M,
    /// Sectors that were written, by their numbers.
    written: RwLock<BTreeMap<u64, [u8; SECTOR]>>,
}

impl<M: Medium> Overlay<M> {
    pub fn new(inner: M) -> Self {
        Overlay {
            inner,
            written: RwLock::default(),
        }
    }
}

impl<M: Medium> Medium for Overlay<M> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        let first = offset / SECTOR as u64;
        let behind = first + (buf.len() / SECTOR) as u64;
        let written = self.written.read();
        let over = written.range(first..behind);
        // What was written can be read wherever the medium behind cannot.
        if over.clone().count() as u64 != behind - first || buf.is_empty() {
            self.inner.read(offset, buf)?;
        }
        for (sector, bytes) in over {
            let at = (sector - first) as usize * SECTOR;
            buf[at..at + SECTOR].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        check(self, Operation::Write, offset, buf.len() as u64)?;
        let mut written = self.written.write();
        let (sectors, _) = buf.as_chunks::<SECTOR>();
        written.extend((offset / SECTOR as u64..).zip(sectors.iter().copied()));
        Ok(())
    }

    /// Bytes keep the content they have, which is one that they may have.
    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        check(self, Operation::Discard, offset, len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Faults, FaultyMedium, MemoryMedium};

    #[test]
    fn what_is_written_is_read_back_and_stays_here() {
        let inner =
            MemoryMedium::from_bytes((0..16 * SECTOR).map(|n| (n / SECTOR) as u8).collect());
        let mut expected = vec![0; 16 * SECTOR];
        inner.read(0, &mut expected).unwrap();
        let before = expected.clone();
        let overlay = Overlay::new(&inner);
        for (sector, sectors, value) in [(3, 2, 100), (4, 3, 101), (15, 1, 102), (0, 1, 103)] {
            let bytes = vec![value; sectors * SECTOR];
            overlay.write((sector * SECTOR) as u64, &bytes).unwrap();
            expected[sector * SECTOR..(sector + sectors) * SECTOR].fill(value);
            overlay
                .discard((sector * SECTOR) as u64, SECTOR as u64)
                .unwrap();
            overlay.sync().unwrap();
            for first in 0..16 {
                for last in first..=16 {
                    let mut found = vec![1; (last - first) * SECTOR];
                    overlay.read((first * SECTOR) as u64, &mut found).unwrap();
                    assert!(found == expected[first * SECTOR..last * SECTOR]);
                }
            }
        }
        assert!(inner.into_bytes() == before);
    }

    #[test]
    fn what_was_written_is_read_where_the_medium_behind_cannot_be() {
        let faults = Faults {
            unreadable: std::iter::once(0..2 * SECTOR as u64).collect(),
            ..Faults::default()
        };
        let overlay = Overlay::new(FaultyMedium::new(MemoryMedium::new(4 * SECTOR), faults));
        overlay.write(0, &[7; SECTOR]).unwrap();
        let mut found = [0; 2 * SECTOR];
        overlay.read(0, &mut found).unwrap_err();
        overlay.read(0, &mut found[..SECTOR]).unwrap();
        assert_eq!(found[..SECTOR], [7; SECTOR]);
        overlay.write(1, &[7; SECTOR]).unwrap_err();
        overlay.write(4 * SECTOR as u64, &[7; SECTOR]).unwrap_err();
        overlay.read(4 * SECTOR as u64, &mut found).unwrap_err();
    }
}
