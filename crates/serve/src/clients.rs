//! Who uses a volume, and how those who may write are kept out while it goes back in time.
//!
//! Invariant: while a [`ShutOut`] lives, nobody may write.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::request::ClientCounts;

/// How long clients that are dropped may take to leave.
const LEAVING: Duration = Duration::from_secs(30);
/// How long those that cannot be dropped are waited for: the kernel closes what was unmounted a little later, and the later
/// the busier it is.
const CLOSING: Duration = Duration::from_secs(3);

type Dropper = Box<dyn Fn() + Send>;

#[derive(Default)]
struct Uses {
    /// Clients that may write and can be dropped.
    writers: u64,
    /// Clients that may write and leave by themselves alone.
    fixed: u64,
    readers: u64,
    /// How many want no client let in that may write.
    shut: u64,
    /// Clients can come.
    served: bool,
    dropper: Option<Dropper>,
    mounted: Option<PathBuf>,
}

impl Uses {
    fn of(&mut self, access: Access) -> &mut u64 {
        match access {
            Access::Read => &mut self.readers,
            Access::Write { droppable: true } => &mut self.writers,
            Access::Write { droppable: false } => &mut self.fixed,
        }
    }
}

#[derive(Default)]
pub struct Clients {
    uses: Mutex<Uses>,
    changed: Condvar,
}

/// Clients that may write and are still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writers {
    pub count: u64,
    /// Those that cannot be dropped.
    pub fixed: u64,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock()
    }

    /// The volume is served; `dropper` ends all connections.
    pub fn serve(&self, dropper: Dropper) {
        let mut uses = self.lock();
        uses.served = true;
        uses.dropper = Some(dropper);
    }

    /// The volume is served as files at a mount point.
    pub fn mount(&self, at: PathBuf) {
        let mut uses = self.lock();
        uses.served = true;
        uses.mounted = Some(at);
    }

    pub fn is_served(&self) -> bool {
        self.lock().served
    }

    pub fn mounted(&self) -> Option<PathBuf> {
        self.lock().mounted.clone()
    }

    pub fn count(&self) -> ClientCounts {
        let uses = self.lock();
        ClientCounts {
            writers: uses.writers + uses.fixed,
            readers: uses.readers,
        }
    }

    /// Lets no client in that may write, for as long as the answer lives. One that cannot be dropped has a moment to leave.
    ///
    /// # Errors
    /// Who may write and is not dropped, cannot be dropped or does not leave. If one cannot be dropped, none is.
    pub fn shut_out(&self, disconnect: bool) -> Result<ShutOut<'_>, Writers> {
        let mut uses = self.lock();
        uses.shut += 1;
        // From here on it is taken back, whatever happens.
        let shut_out = ShutOut(self);
        let are_fixed = |uses: &mut Uses| uses.fixed > 0;
        self.changed.wait_while_for(&mut uses, are_fixed, CLOSING);
        if uses.writers > 0 && uses.fixed == 0 && disconnect {
            if let Some(dropper) = &uses.dropper {
                dropper();
            }
            let are_there = |uses: &mut Uses| uses.writers > 0;
            self.changed.wait_while_for(&mut uses, are_there, LEAVING);
        }
        let writers = Writers {
            count: uses.writers + uses.fixed,
            fixed: uses.fixed,
        };
        // Taking it back needs the lock.
        drop(uses);
        match writers.count {
            0 => Ok(shut_out),
            _ => Err(writers),
        }
    }
}

/// While it lives no client that may write is let in.
pub struct ShutOut<'a>(&'a Clients);

impl Drop for ShutOut<'_> {
    fn drop(&mut self) {
        self.0.lock().shut -= 1;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write {
        /// Whether its connection can be ended from here.
        droppable: bool,
    },
}

/// A client's use of a volume or an instant of it, until it is dropped.
pub struct Use {
    clients: Arc<Clients>,
    access: Access,
}

impl Use {
    /// Counts a client; nothing if it may write and none such is let in now.
    pub fn begin(clients: &Arc<Clients>, access: Access) -> Option<Self> {
        let mut uses = clients.lock();
        if access != Access::Read && uses.shut > 0 {
            return None;
        }
        *uses.of(access) += 1;
        Some(Use {
            clients: Arc::clone(clients),
            access,
        })
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        *self.clients.lock().of(self.access) -= 1;
        self.clients.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn nobody_who_may_write_comes_in_while_they_are_shut_out() {
        let clients = Arc::new(Clients::default());
        let write = Access::Write { droppable: true };
        let reader = Use::begin(&clients, Access::Read);
        let shut_out = clients.shut_out(false).ok();
        assert!(reader.is_some() && shut_out.is_some());
        assert!(Use::begin(&clients, write).is_none());
        assert!(Use::begin(&clients, Access::Read).is_some());
        drop(shut_out);
        let writer = Use::begin(&clients, write);
        assert_eq!(clients.count(), (1, 1).into());
        let refused = clients.shut_out(false).err();
        assert_eq!(refused, Some(Writers { count: 1, fixed: 0 }));
        assert!(Use::begin(&clients, write).is_some(), "it was taken back");
        drop(writer);
        assert_eq!(clients.count(), (0, 1).into());
    }

    #[test]
    fn who_wants_writers_out_does_not_let_them_in_for_another() {
        let clients = Arc::new(Clients::default());
        let write = Access::Write { droppable: true };
        let first = clients.shut_out(false).ok();
        let second = clients.shut_out(false).ok();
        drop(first);
        assert!(Use::begin(&clients, write).is_none());
        drop(second);
        assert!(Use::begin(&clients, write).is_some());
    }

    #[test]
    fn who_cannot_be_dropped_stays_and_so_do_the_others() {
        let clients = Arc::new(Clients::default());
        let dropped = Arc::new(AtomicU64::new(0));
        let leaving = Arc::new(Mutex::new(None));
        let (count, leaves) = (Arc::clone(&dropped), Arc::clone(&leaving));
        clients.serve(Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
            // A client leaves while another thread waits for it.
            let client: Option<Use> = leaves.lock().take();
            std::thread::spawn(move || drop(client));
        }));
        let droppable = Access::Write { droppable: true };
        *leaving.lock() = Use::begin(&clients, droppable);
        let fixed = Use::begin(&clients, Access::Write { droppable: false });
        let refused = clients.shut_out(true).err();
        assert_eq!(refused, Some(Writers { count: 2, fixed: 1 }));
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        // What was unmounted is closed while somebody waits for that.
        std::thread::spawn(move || drop(fixed));
        assert!(clients.shut_out(true).is_ok());
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}
