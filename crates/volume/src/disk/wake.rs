//! Tells the thread that maintains a volume that there is something to do.
//!
//! Invariants: what is to be done is noted before the thread is woken, and one wait takes all of it; once stopped there
//! is nothing to do any more.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::volume::Chores;

/// Nobody has written for so long: collection goes on by itself.
const IDLE: Duration = Duration::from_millis(20);
#[derive(Debug, Default)]
struct WakeState {
    chores: Chores,
    stopped: bool,
}

/// Tells the thread that there is something to do.
#[derive(Debug, Default)]
pub(super) struct Wake {
    state: Mutex<WakeState>,
    changed: Condvar,
    /// Changes so far.
    changes: AtomicU64,
    /// Whether a thread listens.
    heard: AtomicBool,
    /// Whether there was a request since that was asked last.
    used: AtomicBool,
}

impl Wake {
    fn lock(&self) -> MutexGuard<'_, WakeState> {
        self.state.lock()
    }

    /// The volume was changed, and has this to do now.
    pub fn after_change(&self, chores: Chores) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        if chores.any() {
            let mut state = self.lock();
            if state.chores != chores {
                state.chores = chores;
                self.changed.notify_all();
            }
        }
    }

    /// Changes so far.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// There is a request.
    #[inline]
    pub fn note_use(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there was a request since the last call.
    pub fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Somebody begins to do what is to be done, or does it no more.
    pub fn set_heard(&self, heard: bool) {
        self.heard.store(heard, Ordering::Relaxed);
    }

    /// What was begun is to go on later; false once stopped.
    pub fn goes_on(&self, left: Chores) -> bool {
        let mut state = self.lock();
        state.chores.collection |= left.collection;
        state.chores.rest |= left.rest;
        !state.stopped
    }

    /// Whether somebody does what is to be done.
    pub fn is_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// Whether nothing is to be done any more.
    pub fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Nothing is done any more.
    pub fn stop(&self) {
        self.set_heard(false);
        let mut state = self.lock();
        state.stopped = true;
        self.changed.notify_all();
    }

    /// Waits until something is to be done: at once, or, if it is collection alone, after a while. `None` once
    /// stopped.
    pub fn wait(&self) -> Option<Chores> {
        let mut state = self.lock();
        while !state.stopped && !state.chores.any() {
            self.changed.wait(&mut state);
        }
        if is_collection_alone(state.chores) && !state.stopped {
            self.changed.wait_for(&mut state, IDLE);
        }
        (!state.stopped).then(|| std::mem::take(&mut state.chores))
    }
}

fn is_collection_alone(chores: Chores) -> bool {
    chores
        == Chores {
            collection: true,
            ..Chores::default()
        }
}
