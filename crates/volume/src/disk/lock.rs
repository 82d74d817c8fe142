//! The volume under its lock.
//!
//! The lock is fair: a writer that comes again at once does not keep the others waiting for tens of milliseconds, as
//! it would where whoever is awake takes it.
//!
//! Invariants: after a panic of whoever held it, what the volume holds in memory is trusted by nobody; after
//! [`Locked::close`] there is no volume.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::device::DiskError;
use crate::volume::Volume;

/// A volume for one thread at a time.
pub(super) struct Locked {
    /// Nothing once it is closed.
    volume: Mutex<Option<Volume>>,
    broken: AtomicBool,
}

/// The volume, while nobody else has it.
pub(crate) struct Held<'a> {
    volume: MutexGuard<'a, Option<Volume>>,
    broken: &'a AtomicBool,
}

impl Locked {
    pub fn new(volume: Volume) -> Self {
        Locked {
            volume: Mutex::new(Some(volume)),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits for the lock.
    ///
    /// # Errors
    /// Somebody panicked who held it.
    pub fn hold(&self) -> Result<Held<'_>, DiskError> {
        let held = Held {
            volume: self.volume.lock(),
            broken: &self.broken,
        };
        match self.broken.load(Ordering::Relaxed) {
            true => Err(DiskError::Broken),
            false => Ok(held),
        }
    }

    /// Takes the volume away.
    ///
    /// # Errors
    /// It was closed before, or is broken.
    pub fn close(&self) -> Result<Volume, DiskError> {
        self.hold()?.volume.take().ok_or(DiskError::Closed)
    }
}

impl Held<'_> {
    /// The volume, if it is not closed.
    pub fn volume(&mut self) -> Result<&mut Volume, DiskError> {
        self.volume.as_mut().ok_or(DiskError::Closed)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }
}
