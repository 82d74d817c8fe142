//! The volume under its lock.
//!
//! The lock is fair: a writer that comes again at once does not keep the others waiting for tens of milliseconds, as
//! it would where whoever is awake takes it. Whoever changes the volume, and so may have to collect first, waits in a
//! queue of its own; a look at it, which takes microseconds, waits for one change at most that is under way, and for
//! other looks, but not for the changes that wait.
//!
//! Invariants: the queue is taken before the volume; after a panic of whoever held it, what the volume holds in memory is trusted by nobody; after
//! [`Locked::close`] there is no volume.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::device::DiskError;
use crate::volume::Volume;

/// A volume for one thread at a time.
pub(super) struct Locked {
    /// Held by the one that changes the volume or is the next to do so.
    queue: Mutex<()>,
    /// Nothing once it is closed.
    volume: Mutex<Option<Volume>>,
    broken: AtomicBool,
}

/// The volume, while nobody else has it.
pub(crate) struct Held<'a> {
    // Released in this order.
    volume: MutexGuard<'a, Option<Volume>>,
    _turn: Option<MutexGuard<'a, ()>>,
    broken: &'a AtomicBool,
}

impl Locked {
    pub fn new(volume: Volume) -> Self {
        Locked {
            queue: Mutex::new(()),
            volume: Mutex::new(Some(volume)),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits for the volume, to change it or for longer.
    ///
    /// # Errors
    /// Somebody panicked who held it.
    pub fn hold(&self) -> Result<Held<'_>, DiskError> {
        let turn = self.queue.lock();
        self.take(Some(turn))
    }

    /// Waits for the volume, to look something up.
    ///
    /// # Errors
    /// As above.
    pub fn look(&self) -> Result<Held<'_>, DiskError> {
        self.take(None)
    }

    fn take<'a>(&'a self, turn: Option<MutexGuard<'a, ()>>) -> Result<Held<'a>, DiskError> {
        let held = Held {
            volume: self.volume.lock(),
            _turn: turn,
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

    /// Lets those look who wait for it. Nothing changes meanwhile.
    pub fn let_look(&mut self) {
        MutexGuard::bump(&mut self.volume);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }
}
