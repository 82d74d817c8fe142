//! A medium whose failures somebody hears of when they happen, whatever becomes of the calls that met them.

use crate::error::MediumError;
use crate::medium::Medium;

#[derive(Debug)]
pub struct Watched<M, F> {
    inner: M,
    heard: F,
}

impl<M: Medium, F: Fn(&MediumError) + Send + Sync> Watched<M, F> {
    pub fn new(inner: M, heard: F) -> Self {
        Watched { inner, heard }
    }

    fn told<T>(&self, result: Result<T, MediumError>) -> Result<T, MediumError> {
        result.inspect_err(&self.heard)
    }
}

impl<M: Medium, F: Fn(&MediumError) + Send + Sync> Medium for Watched<M, F> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.told(self.inner.read(offset, buf))
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        self.told(self.inner.write(offset, buf))
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.told(self.inner.discard(offset, len))
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.told(self.inner.sync())
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::{Faults, FaultyMedium, MemoryMedium, SECTOR};

    #[test]
    fn failures_are_heard_of_and_handed_on() {
        let faults = Faults {
            unreadable: std::iter::once(0..SECTOR as u64).collect(),
            ..Faults::default()
        };
        let heard = Mutex::new(Vec::new());
        let hear = |error: &MediumError| heard.lock().push(error.to_string());
        let medium = FaultyMedium::new(MemoryMedium::new(4 * SECTOR), faults);
        let watched = Watched::new(medium, hear);
        let mut sector = [0; SECTOR];
        watched.read(SECTOR as u64, &mut sector).unwrap();
        let error = watched.read(0, &mut sector).unwrap_err().to_string();
        watched.write(SECTOR as u64, &[1; SECTOR]).unwrap();
        watched.sync().unwrap();
        assert_eq!(*heard.lock(), [error]);
    }
}
