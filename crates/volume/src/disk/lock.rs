//! A store, such as a volume, under its lock.
//!
//! The lock is fair: a writer that comes again at once does not keep the others waiting for tens of milliseconds, as
//! it would where whoever is awake takes it. Whoever changes the store, and so may have to collect first, waits in a
//! queue of its own; a look at it, which takes microseconds, waits for one change at most that is under way, and for
//! other looks, but not for the changes that wait.
//!
//! Invariants: the queue is taken before the store; after a panic of whoever held it, what the store holds in memory
//! is trusted by nobody, also by a change that let others look; after [`Locked::close`] there is no store.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::device::DiskError;

/// A store for one thread at a time.
pub struct Locked<S> {
    /// HeldStore by the one that changes the store or is the next to do so.
    queue: Mutex<()>,
    /// Nothing once it is closed.
    store: Mutex<Option<S>>,
    broken: AtomicBool,
}

/// The store, while nobody else has it.
pub struct HeldStore<'a, S> {
    // Released in this order.
    store: MutexGuard<'a, Option<S>>,
    _turn: Option<MutexGuard<'a, ()>>,
    broken: &'a AtomicBool,
}

impl<S> Locked<S> {
    /// A store that many threads will use.
    pub fn new(store: S) -> Self {
        Locked {
            queue: Mutex::new(()),
            store: Mutex::new(Some(store)),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits for the store, to change it or for longer.
    ///
    /// # Errors
    /// Somebody panicked who held it.
    pub fn hold(&self) -> Result<HeldStore<'_, S>, DiskError> {
        let turn = self.queue.lock();
        self.take(Some(turn))
    }

    /// Waits for the store, to look something up.
    ///
    /// # Errors
    /// As above.
    pub fn look(&self) -> Result<HeldStore<'_, S>, DiskError> {
        self.take(None)
    }

    fn take<'a>(&'a self, turn: Option<MutexGuard<'a, ()>>) -> Result<HeldStore<'a, S>, DiskError> {
        let held = HeldStore {
            store: self.store.lock(),
            _turn: turn,
            broken: &self.broken,
        };
        held.trust()?;
        Ok(held)
    }

    /// Takes the store away.
    ///
    /// # Errors
    /// It was closed before, or is broken.
    pub fn close(&self) -> Result<S, DiskError> {
        self.hold()?.store.take().ok_or(DiskError::Closed)
    }
}

impl<S> HeldStore<'_, S> {
    /// The store.
    ///
    /// # Errors
    /// It is closed.
    pub fn get(&mut self) -> Result<&mut S, DiskError> {
        self.store.as_mut().ok_or(DiskError::Closed)
    }

    /// Lets those look who wait for it. Nothing changes meanwhile.
    ///
    /// # Errors
    /// One of them panicked.
    pub fn let_look(&mut self) -> Result<(), DiskError> {
        MutexGuard::bump(&mut self.store);
        self.trust()
    }

    fn trust(&self) -> Result<(), DiskError> {
        match self.broken.load(Ordering::Relaxed) {
            true => Err(DiskError::Broken),
            false => Ok(()),
        }
    }
}

impl<S> Drop for HeldStore<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_change_lets_others_look_and_lets_nobody_change() {
        let locked = Locked::new(());
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
        let locked = Locked::new(());
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
