//! The volume under its lock.
//!
//! The lock is fair: a writer that comes again at once does not keep the others waiting for tens of milliseconds, as
//! it would where whoever is awake takes it. Whoever changes the volume, and so may have to collect first, waits in a
//! queue of its own; a look at it, which takes microseconds, waits for one change at most that is under way, and for
//! other looks, but not for the changes that wait.
//!
//! Invariants: the queue is taken before the volume; after a panic of whoever held it, what the volume holds in memory
//! is trusted by nobody, also by a change that let others look; after [`Locked::close`] there is no volume.

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
        held.trust()?;
        Ok(held)
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
    ///
    /// # Errors
    /// One of them panicked.
    pub fn let_look(&mut self) -> Result<(), DiskError> {
        MutexGuard::bump(&mut self.volume);
        self.trust()
    }

    fn trust(&self) -> Result<(), DiskError> {
        match self.broken.load(Ordering::Relaxed) {
            true => Err(DiskError::Broken),
            false => Ok(()),
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use flashlore_medium::MemoryMedium;

    use super::*;
    use crate::{CreateOptions, Encoding, Policy, bytes_needed, create};

    fn locked() -> Locked {
        let options = CreateOptions {
            policy: Policy::Plain,
            history: None,
            encoding: Encoding::default(),
            size: 1 << 20,
            capacity: 1 << 20,
            now: 1,
            seed: [3; 48],
        };
        let id = options.identity().unwrap();
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&medium, &id).unwrap();
        Locked::new(Volume::open(medium).unwrap().0)
    }

    #[test]
    fn a_change_lets_others_look_and_lets_nobody_change() {
        let locked = locked();
        thread::scope(|scope| {
            let mut held = locked.hold().unwrap();
            let change = scope.spawn(|| locked.hold().is_ok());
            let look = scope.spawn(|| locked.look().is_ok());
            while !look.is_finished() {
                held.let_look().unwrap();
            }
            assert!(look.join().unwrap());
            assert!(!change.is_finished());
            drop(held);
            assert!(change.join().unwrap());
        });
    }

    #[test]
    fn a_change_ends_when_somebody_panicked_whom_it_let_look() {
        let locked = locked();
        thread::scope(|scope| {
            let mut held = locked.hold().unwrap();
            let look = scope.spawn(|| {
                let _held = locked.look().unwrap();
                panic!("planned");
            });
            while !look.is_finished() {
                // Once it has, this may tell already.
                let _ = held.let_look();
            }
            assert!(look.join().is_err());
            assert!(matches!(held.let_look(), Err(DiskError::Broken)));
        });
    }
}
