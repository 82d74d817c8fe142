//! The volume and its instants as exports over NBD, and who uses them.
//!
//! | name | what it is |
//! |---|---|
//! | empty, or that of the directory | the live volume |
//! | either of them, `@`, an instant | that instant, read-only |
//!
//! Contexts: `base:allocation`; `flashlore:stored` and `flashlore:changed-since=INSTANT` of the live volume, with the
//! flags of [`flashlore_volume::disk::device`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flashlore_nbd::server::Export;
use flashlore_nbd::transmission::Extents;
use flashlore_nbd::wire::base_allocation;
use flashlore_nbd::{Directory, Errno, ExportInfo, Refusal};
use flashlore_volume::disk::device::HOLE;
use flashlore_volume::disk::{About, BlockDevice, DiskError, ErrorKind};

use crate::error::ServeError;
use crate::moment::Time;
use crate::service::Service;

/// The context of how pages are stored.
pub const STORED: &str = "flashlore:stored";
/// The beginning of the context of what has changed since an instant.
pub const CHANGED_SINCE: &str = "flashlore:changed-since=";
/// In `base:allocation`: reads as zeros.
const ZERO: u32 = 2;
/// Bytes fetched at once by CACHE.
const CACHE_BYTES: u64 = 1 << 20;
/// How long clients that are dropped may take to leave.
const LEAVING: Duration = Duration::from_secs(30);

type Dropper = Box<dyn Fn() + Send>;

#[derive(Default)]
struct Uses {
    writers: u64,
    readers: u64,
    /// No client that may write is let in.
    shut: bool,
    dropper: Option<Dropper>,
}

/// Who uses a volume.
#[derive(Default)]
pub struct Clients {
    uses: Mutex<Uses>,
    changed: Condvar,
    served: AtomicBool,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume is served; `dropper` ends all connections.
    pub fn serve(&self, dropper: Dropper) {
        self.lock().dropper = Some(dropper);
        self.served.store(true, Ordering::SeqCst);
    }

    /// Whether the volume is served.
    pub fn is_served(&self) -> bool {
        self.served.load(Ordering::SeqCst)
    }

    /// Clients that may write, and clients of instants.
    pub fn count(&self) -> (u64, u64) {
        let uses = self.lock();
        (uses.writers, uses.readers)
    }

    /// Lets no client in that may write, for as long as the answer lives.
    ///
    /// # Errors
    /// How many there are, if there are any that are not dropped or do not leave.
    pub fn shut_out(&self, disconnect: bool) -> Result<ShutOut<'_>, u64> {
        let mut uses = self.lock();
        uses.shut = true;
        // From here on it is taken back, whatever happens.
        let shut_out = ShutOut(self);
        if uses.writers > 0 && disconnect {
            if let Some(dropper) = &uses.dropper {
                dropper();
            }
            let are_there = |uses: &mut Uses| uses.writers > 0;
            let waited = self.changed.wait_timeout_while(uses, LEAVING, are_there);
            uses = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match uses.writers {
            0 => Ok(shut_out),
            writers => {
                drop(uses);
                Err(writers)
            }
        }
    }
}

/// While it lives no client that may write is let in.
pub struct ShutOut<'a>(&'a Clients);

impl Drop for ShutOut<'_> {
    fn drop(&mut self) {
        self.0.lock().shut = false;
    }
}

/// A client's use of an export.
struct Use {
    clients: Arc<Clients>,
    writes: bool,
}

impl Use {
    fn begin(clients: &Arc<Clients>, writes: bool) -> Option<Self> {
        let mut uses = clients.lock();
        if writes && uses.shut {
            return None;
        }
        *(if writes {
            &mut uses.writers
        } else {
            &mut uses.readers
        }) += 1;
        Some(Use {
            clients: Arc::clone(clients),
            writes,
        })
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut uses = self.clients.lock();
        *(if self.writes {
            &mut uses.writers
        } else {
            &mut uses.readers
        }) -= 1;
        drop(uses);
        self.clients.changed.notify_all();
    }
}

/// A device as an export.
struct Served {
    device: Arc<dyn BlockDevice>,
    service: Arc<Service>,
    /// Whether it is the live volume.
    live: bool,
    _use: Use,
}

fn errno(error: DiskError) -> Errno {
    match error.kind() {
        ErrorKind::Invalid => Errno::Invalid,
        ErrorKind::ReadOnly => Errno::NotPermitted,
        ErrorKind::NoSpace => Errno::NoSpace,
        ErrorKind::Closed => Errno::Shutdown,
        ErrorKind::Failed => Errno::Io,
    }
}

impl Served {
    fn durably(&self, done: Result<(), DiskError>, durable: bool) -> Result<(), Errno> {
        done.map_err(errno)?;
        if durable { self.flush() } else { Ok(()) }
    }

    fn about(&self, context: &str) -> Option<About> {
        match context.strip_prefix(CHANGED_SINCE) {
            _ if context == base_allocation::NAME => Some(About::Allocation),
            _ if !self.live => None,
            _ if context == STORED => Some(About::Stored),
            Some(text) => self.service.resolve(text).ok().map(About::ChangedSince),
            None => None,
        }
    }
}

impl Export for Served {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        self.device.read(offset, buffer).map_err(errno)
    }

    fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<(), Errno> {
        self.durably(self.device.write(offset, data), durable)
    }

    fn flush(&self) -> Result<(), Errno> {
        self.device.flush().map_err(errno)
    }

    fn trim(&self, offset: u64, length: u64, durable: bool) -> Result<(), Errno> {
        self.durably(self.device.trim(offset, length), durable)
    }

    fn write_zeroes(
        &self,
        offset: u64,
        length: u64,
        allocate: bool,
        fast: bool,
        durable: bool,
    ) -> Result<(), Errno> {
        if allocate && fast {
            return Err(Errno::NotSupported);
        }
        self.durably(self.device.write_zeroes(offset, length, allocate), durable)
    }

    fn cache(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let mut bytes = vec![0; length.min(CACHE_BYTES) as usize];
        let mut at = offset;
        let end = offset + length;
        while at < end {
            let count = (end - at).min(CACHE_BYTES) as usize;
            self.device.read(at, &mut bytes[..count]).map_err(errno)?;
            at += count as u64;
        }
        Ok(())
    }

    fn block_status(
        &self,
        context: &str,
        offset: u64,
        length: u64,
        extents: &mut Extents,
    ) -> Result<(), Errno> {
        let about = self.about(context).ok_or(Errno::Invalid)?;
        let mut push = |bytes, flags| {
            // What was never written reads as zeros.
            let zero = about == About::Allocation && flags == HOLE;
            extents.push(bytes, if zero { flags | ZERO } else { flags })
        };
        self.device
            .ask(about, offset, length, &mut push)
            .map_err(errno)
    }

    fn knows_context(&self, context: &str) -> bool {
        self.about(context).is_some()
    }
}

/// Where clients look exports up.
pub struct Exports {
    service: Arc<Service>,
    /// The live volume, with what stands around it.
    live: Arc<dyn BlockDevice>,
    read_only: bool,
}

impl Exports {
    /// The exports of a service. `live` is its volume, perhaps with filters around it; nobody may write if
    /// `read_only`.
    pub fn new(service: Arc<Service>, live: Arc<dyn BlockDevice>, read_only: bool) -> Self {
        Exports {
            service,
            live,
            read_only,
        }
    }

    fn open_live(&self) -> Result<(ExportInfo, Arc<dyn Export>), Refusal> {
        let size = self.live.size();
        let mut info = match self.read_only {
            true => ExportInfo::read_only(size),
            false => ExportInfo::writable(size),
        };
        info.canonical_name = Some(self.service.home().name());
        info.contexts.push(STORED.to_owned());
        let begun = Use::begin(self.service.clients(), !self.read_only);
        let begun = begun.ok_or_else(|| {
            Refusal::Policy("the volume is just going back in time, try again".to_owned())
        })?;
        Ok((info, self.served(Arc::clone(&self.live), true, begun)))
    }

    fn open_instant(&self, text: &str) -> Result<(ExportInfo, Arc<dyn Export>), Refusal> {
        let unknown = |error: ServeError| Refusal::Unknown(error.to_string());
        let device = self.service.instant(text).map_err(unknown)?;
        let mut info = ExportInfo::read_only(device.size());
        info.description = format!("as it was at {}", Time(device.instant()));
        let begun = Use::begin(self.service.clients(), false);
        let begun = begun.ok_or(Refusal::Shutdown)?;
        Ok((info, self.served(Arc::new(device), false, begun)))
    }

    fn served(&self, device: Arc<dyn BlockDevice>, live: bool, begun: Use) -> Arc<dyn Export> {
        Arc::new(Served {
            device,
            service: Arc::clone(&self.service),
            live,
            _use: begun,
        })
    }
}

impl Directory for Exports {
    type Export = Arc<dyn Export>;

    fn open(&self, name: &str) -> Result<(ExportInfo, Self::Export), Refusal> {
        let (volume, instant) = match name.split_once('@') {
            Some((volume, instant)) => (volume, Some(instant)),
            None => (name, None),
        };
        let own = self.service.home().name();
        if !volume.is_empty() && volume != own {
            return Err(Refusal::Unknown(format!(
                "there is no export {volume:?}, the volume is {own:?}"
            )));
        }
        match instant {
            None => self.open_live(),
            Some(text) => self.open_instant(text),
        }
    }

    fn list(&self) -> Vec<(String, String)> {
        let own = self.service.home().name();
        let mut list = vec![(own.clone(), "the volume as it is".to_owned())];
        let snapshots = self.service.snapshot_list().unwrap_or_default();
        list.extend(snapshots.into_iter().map(|snapshot| {
            let time = Time(snapshot.instant).to_string();
            let name = snapshot.name.unwrap_or_else(|| time.clone());
            (format!("{own}@{name}"), format!("as it was at {time}"))
        }));
        list
    }

    fn knows_context(&self, export: &Self::Export, context: &str) -> bool {
        export.knows_context(context)
    }
}
