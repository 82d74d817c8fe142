//! Which connections there are, and the bound on the memory of their long requests.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::config::Config;
use super::socket::Socket;

/// Requests up to so many bytes, and pieces of longer ones, need no part of the shared budget: what they hold is bounded
/// by the number of connections and workers.
pub const SMALL_BYTES: usize = 256 << 10;

#[derive(Debug)]
struct OpenConnection {
    socket: Socket,
    serving: bool,
}

#[derive(Debug, Default)]
struct Connections {
    /// By number, so the first that negotiates is the oldest.
    open: BTreeMap<u64, OpenConnection>,
    next: u64,
    budget_used: usize,
}

impl Connections {
    fn serving(&self) -> usize {
        self.open.values().filter(|entry| entry.serving).count()
    }

    /// Whether a connection may use an export.
    fn has_place(&self, socket: &Socket, config: &Config) -> bool {
        let more = match socket.is_local() {
            true => config.local_connections,
            false => 0,
        };
        self.serving() < config.connections.saturating_add(more)
    }

    /// The oldest connection that negotiates, one of another machine or of TCP first.
    fn oldest_negotiating(&self) -> Option<u64> {
        let waiting = self.open.iter().filter(|(_, entry)| !entry.serving);
        let oldest = waiting.min_by_key(|(number, entry)| (entry.socket.is_local(), **number));
        oldest.map(|(&number, _)| number)
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
        self.inner.lock()
    }

    /// Enters a connection that begins to negotiate; its number, or nothing if there is no place for
    /// it. If too many negotiate, the oldest of them is dropped; one of this machine last.
    pub(super) fn enter(&self, socket: Socket, config: &Config) -> Option<u64> {
        let mut inner = self.lock();
        if self.is_draining() || !inner.has_place(&socket, config) {
            return None;
        }
        let waiting = inner.open.values().filter(|entry| !entry.serving);
        if waiting.count() >= config.negotiating.max(1)
            && let Some(oldest) = inner.oldest_negotiating()
            && let Some(entry) = inner.open.remove(&oldest)
        {
            entry.socket.shutdown(Shutdown::Both);
        }
        let number = inner.next;
        inner.next += 1;
        let serving = false;
        inner
            .open
            .insert(number, OpenConnection { socket, serving });
        Some(number)
    }

    /// Whether a connection may go on from negotiation to transmission.
    pub(super) fn serve(&self, number: u64, config: &Config) -> bool {
        let mut inner = self.lock();
        let entry = inner.open.get(&number);
        let may = entry.is_some_and(|entry| inner.has_place(&entry.socket, config));
        if self.is_draining() || !may {
            return false;
        }
        if let Some(entry) = inner.open.get_mut(&number) {
            entry.serving = true;
        }
        true
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
        let mut inner = self.lock();
        let changed = &self.changed;
        changed.wait_while_for(&mut inner, |inner| !inner.open.is_empty(), time);
        inner.open.is_empty()
    }

    /// Ends every connection at once.
    pub(super) fn abandon(&self) {
        for entry in self.lock().open.values() {
            entry.socket.shutdown(Shutdown::Both);
        }
    }

    /// The part of the budget that a connection may take.
    pub(super) fn share(&self, config: &Config) -> Share<'_> {
        Share {
            registry: self,
            held: AtomicUsize::new(0),
            most: config.client_bytes,
            budget: config.budget_bytes,
        }
    }
}

/// What one connection holds of the budget.
#[derive(Debug)]
pub(super) struct Share<'a> {
    registry: &'a Registry,
    held: AtomicUsize,
    most: usize,
    budget: usize,
}

impl Share<'_> {
    /// Takes room for a request of `bytes`, if there is any. Small ones need none.
    pub(super) fn take(&self, bytes: usize) -> Option<Permit<'_>> {
        let share = self;
        if bytes <= SMALL_BYTES {
            return Some(Permit { share, bytes: 0 });
        }
        let mut inner = self.registry.lock();
        let held = self.held.load(Ordering::Relaxed).saturating_add(bytes);
        let used = inner.budget_used.saturating_add(bytes);
        if held > self.most || used > self.budget {
            return None;
        }
        // Both change under the lock alone.
        self.held.store(held, Ordering::Relaxed);
        inner.budget_used = used;
        Some(Permit { share, bytes })
    }
}

/// A part of the budget, given back at the end.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    share: &'a Share<'a>,
    bytes: usize,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let mut inner = self.share.registry.lock();
            inner.budget_used -= self.bytes;
            self.share.held.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}
