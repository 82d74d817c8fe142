//! Which connections there are, and the bound on the memory of their long requests.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::socket::Socket;

/// Requests up to so many bytes need no part of the shared budget: what they hold is bounded by the
/// number of connections and workers.
pub const SMALL_BYTES: usize = 256 << 10;

#[derive(Debug)]
struct Entry {
    socket: Socket,
    serving: bool,
}

#[derive(Debug, Default)]
struct Connections {
    /// By number, so the first that negotiates is the oldest.
    open: BTreeMap<u64, Entry>,
    next: u64,
    budget_used: usize,
}

impl Connections {
    fn serving(&self) -> usize {
        self.open.values().filter(|entry| entry.serving).count()
    }
}

/// What all connections of a server share.
#[derive(Debug, Default)]
pub(super) struct Registry {
    draining: AtomicBool,
    inner: Mutex<Connections>,
    changed: Condvar,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a connection that begins to negotiate; its number, or nothing if there is no place for
    /// it. If too many negotiate, the oldest of them is dropped.
    pub(super) fn enter(&self, socket: Socket, negotiating: usize, most: usize) -> Option<u64> {
        let mut inner = self.lock();
        if self.is_draining() || inner.serving() >= most {
            return None;
        }
        let waiting = inner.open.values().filter(|entry| !entry.serving);
        if waiting.count() >= negotiating.max(1) {
            let oldest = inner.open.iter().find(|(_, entry)| !entry.serving);
            let oldest = oldest.map(|(number, _)| *number);
            if let Some(entry) = oldest.and_then(|number| inner.open.remove(&number)) {
                entry.socket.shutdown(Shutdown::Both);
            }
        }
        let number = inner.next;
        inner.next += 1;
        let serving = false;
        inner.open.insert(number, Entry { socket, serving });
        Some(number)
    }

    /// Whether a connection may go on from negotiation to transmission.
    pub(super) fn serve(&self, number: u64, most: usize) -> bool {
        let mut inner = self.lock();
        if self.is_draining() || inner.serving() >= most {
            return false;
        }
        match inner.open.get_mut(&number) {
            Some(entry) => {
                entry.serving = true;
                true
            }
            None => false,
        }
    }

    pub(super) fn leave(&self, number: u64) {
        self.lock().open.remove(&number);
        self.changed.notify_all();
    }

    /// Connections that use an export, and those that negotiate.
    pub(super) fn count(&self) -> (usize, usize) {
        let inner = self.lock();
        let serving = inner.serving();
        (serving, inner.open.len() - serving)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Lets nobody in, ends negotiations, and lets no connection read more requests.
    pub(super) fn drain(&self) {
        // Whoever takes the lock after this sees it, so nobody slips in behind the loop.
        self.draining.store(true, Ordering::SeqCst);
        let inner = self.lock();
        for entry in inner.open.values() {
            entry.socket.shutdown(if entry.serving {
                Shutdown::Read
            } else {
                Shutdown::Both
            });
        }
    }

    /// Waits until no connection is left; `false` if some are after `time`.
    pub(super) fn wait_empty(&self, time: Duration) -> bool {
        let (inner, _) = self
            .changed
            .wait_timeout_while(self.lock(), time, |inner| !inner.open.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        inner.open.is_empty()
    }

    /// Ends every connection at once.
    pub(super) fn abandon(&self) {
        for entry in self.lock().open.values() {
            entry.socket.shutdown(Shutdown::Both);
        }
    }

    /// Waits for room for a request of `bytes` and takes it. Small ones never wait.
    pub(super) fn acquire(&self, bytes: usize, budget: usize) -> Permit<'_> {
        let bytes = if bytes <= SMALL_BYTES { 0 } else { bytes };
        if bytes > 0 {
            let full = |inner: &mut Connections| {
                inner.budget_used > 0 && inner.budget_used.saturating_add(bytes) > budget
            };
            let mut inner = self
                .changed
                .wait_while(self.lock(), full)
                .unwrap_or_else(PoisonError::into_inner);
            inner.budget_used = inner.budget_used.saturating_add(bytes);
        }
        Permit {
            registry: self,
            bytes,
        }
    }
}

/// A part of the budget, given back at the end.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    registry: &'a Registry,
    bytes: usize,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let mut inner = self.registry.lock();
            inner.budget_used = inner.budget_used.saturating_sub(self.bytes);
            drop(inner);
            self.registry.changed.notify_all();
        }
    }
}
