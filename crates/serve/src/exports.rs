//! The volume and its instants, or the machines of an array, as exports over NBD.
//!
//! | name | what it is |
//! |---|---|
//! | empty, or that of the directory | the live volume, or the first machine |
//! | that of another machine | that machine |
//! | the first two, `@`, an instant | that instant of a volume, read-only |
//!
//! Contexts: `base:allocation`; `flashlore:stored` of what is live and `flashlore:changed-since=INSTANT` of a live volume, with the
//! flags of [`flashlore_volume::disk::device`].

use std::sync::Arc;

use flashlore_nbd::server::Export;
use flashlore_nbd::transmission::Extents;
use flashlore_nbd::wire::base_allocation;
use flashlore_nbd::{Directory, Errno, ExportInfo, Refusal};
use flashlore_volume::disk::device::HOLE;
use flashlore_volume::disk::{About, BlockDevice, DiskError, ErrorKind};

use crate::clients::{Access, Use};
use crate::error::ServeError;
use crate::moment::Time;
use crate::served::{Live, Served};

/// The context of how pages are stored.
pub const STORED: &str = "flashlore:stored";
/// The beginning of the context of what has changed since an instant.
pub const CHANGED_SINCE: &str = "flashlore:changed-since=";
/// Bytes fetched at once by CACHE.
const CACHE_BYTES: u64 = 1 << 20;
struct Exported {
    device: Arc<dyn BlockDevice>,
    service: Arc<dyn Served>,
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

impl Exported {
    fn durably(&self, done: Result<(), DiskError>, durable: bool) -> Result<(), Errno> {
        done.map_err(errno)?;
        if durable { self.flush() } else { Ok(()) }
    }

    fn about(&self, context: &str) -> Option<About> {
        match context.strip_prefix(CHANGED_SINCE) {
            _ if context == base_allocation::NAME => Some(About::Allocation),
            _ if !self.live => None,
            _ if context == STORED => Some(About::Stored),
            Some(text) => {
                let instant = self.service.volume()?.resolve(text).ok()?;
                Some(About::ChangedSince(instant))
            }
            None => None,
        }
    }
}

impl Export for Exported {
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
            let zeros = match about == About::Allocation && flags == HOLE {
                true => base_allocation::ZERO,
                false => 0,
            };
            extents.push(bytes, flags | zeros)
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
    service: Arc<dyn Served>,
    /// What can be written, with what stands around it.
    lives: Vec<Live>,
    read_only: bool,
}

impl Exports {
    /// The exports of a service. `lives` are its disks, perhaps with filters around them; nobody may write if
    /// `read_only`.
    pub fn new(service: Arc<dyn Served>, lives: Vec<Live>, read_only: bool) -> Self {
        Exports {
            service,
            lives,
            read_only,
        }
    }

    fn open_live(&self, live: &Live) -> Result<(ExportInfo, Arc<dyn Export>), Refusal> {
        let size = live.device.size();
        let mut info = match self.read_only {
            true => ExportInfo::read_only(size),
            false => ExportInfo::writable(size),
        };
        info.canonical_name = Some(live.name.clone());
        info.contexts.push(STORED.to_owned());
        let access = match self.read_only {
            true => Access::Read,
            false => Access::Write { droppable: true },
        };
        let begun = Use::begin(self.service.clients(), access);
        let begun = begun.ok_or_else(|| {
            Refusal::Policy("the volume is just going back in time, try again".to_owned())
        })?;
        Ok((info, self.exported(Arc::clone(&live.device), true, begun)))
    }

    fn open_instant(&self, text: &str) -> Result<(ExportInfo, Arc<dyn Export>), Refusal> {
        let Some(volume) = self.service.volume() else {
            return Err(Refusal::Unknown(format!(
                "there is no instant {text:?}: an array keeps no history"
            )));
        };
        let unknown = |error: ServeError| Refusal::Unknown(error.to_string());
        let device = volume.instant(text).map_err(unknown)?;
        let mut info = ExportInfo::read_only(device.size());
        info.description = format!("as it was at {}", Time(device.instant()));
        let begun = Use::begin(self.service.clients(), Access::Read);
        let begun = begun.ok_or(Refusal::Shutdown)?;
        Ok((info, self.exported(Arc::new(device), false, begun)))
    }

    fn exported(&self, device: Arc<dyn BlockDevice>, live: bool, begun: Use) -> Arc<dyn Export> {
        Arc::new(Exported {
            device,
            service: Arc::clone(&self.service),
            live,
            _use: begun,
        })
    }

    /// The disk of a name; the first one has also the empty name.
    fn find(&self, name: &str) -> Result<&Live, Refusal> {
        let found = match name.is_empty() {
            true => self.lives.first(),
            false => self.lives.iter().find(|live| live.name == name),
        };
        found.ok_or_else(|| {
            Refusal::Unknown(match self.lives.as_slice() {
                [own] => format!("there is no export {name:?}, the volume is {:?}", own.name),
                all => {
                    let names: Vec<String> =
                        all.iter().map(|live| format!("{:?}", live.name)).collect();
                    format!(
                        "there is no export {name:?}, there are {}",
                        names.join(", ")
                    )
                }
            })
        })
    }
}

impl Directory for Exports {
    type Export = Arc<dyn Export>;

    fn open(&self, name: &str) -> Result<(ExportInfo, Self::Export), Refusal> {
        let (disk, instant) = match name.split_once('@') {
            Some((disk, instant)) => (disk, Some(instant)),
            None => (name, None),
        };
        let live = self.find(disk)?;
        match instant {
            None => self.open_live(live),
            Some(text) => self.open_instant(text),
        }
    }

    fn list(&self) -> Vec<(String, String)> {
        let Some(volume) = self.service.volume() else {
            let machine = |live: &Live| (live.name.clone(), "a machine of the array".to_owned());
            return self.lives.iter().map(machine).collect();
        };
        let own = self.service.home().name();
        let mut list = vec![(own.clone(), "the volume as it is".to_owned())];
        let snapshots = volume.snapshot_list().unwrap_or_default();
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
