//! What is served, whatever is behind it: a volume, or the machines of an array.
//!
//! Exports over NBD, mounted files, the control socket, metrics and loads know this and nothing behind it. A volume
//! has one disk and a past; an array has a disk for each of its virtual machines and no past.

use std::sync::Arc;

use flashlore_medium::{Access, Mode};
use flashlore_volume::Recovery;
use flashlore_volume::disk::filters::Filtered;
use flashlore_volume::disk::{BlockDevice, DiskError};
use flashlore_volume::format::Superblock;

use crate::array::ArrayService;
use crate::clients::Clients;
use crate::clock::{Clocks, even};
use crate::error::ServeError;
use crate::home::Home;
use crate::metrics::text::Page;
use crate::moment::Time;
use crate::request::{Answer, MOST_READ, Request};
use crate::service::Service;
use crate::troubles::Noted;

#[derive(Clone)]
pub struct Live {
    /// Its name, as an export and as a file.
    pub name: String,
    pub device: Arc<dyn BlockDevice>,
}

/// Pages of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// That are stored.
    pub stored: u64,
    /// That can be stored.
    pub most: u64,
}

pub type Tell = Box<dyn Fn(&str) + Send + Sync>;

pub trait Served: Send + Sync {
    fn home(&self) -> &Home;

    fn clients(&self) -> &Arc<Clients>;

    /// The present, in nanoseconds since 1970.
    fn now(&self) -> u64;

    /// What whoever opened it should know, as a sentence: that it was not closed.
    fn recovered(&self) -> Option<String>;

    /// Has somebody told what should be known of it: now what happened so far, then what happens.
    fn hear(&self, _tell: Tell) {}

    /// Its disks, at least one. They lie on the same media: a flush of one is a flush of all. The order does not
    /// change while it is open.
    fn lives(&self) -> Vec<Live>;

    /// A disk of which failed requests are noted.
    fn noted(&self, device: impl BlockDevice + 'static) -> Arc<dyn BlockDevice>
    where
        Self: Sized,
    {
        let noted = Noted(Arc::clone(self.home().troubles()));
        Arc::new(Filtered::new(device, noted))
    }

    /// The number in [`Served::lives`] of a machine of an array; that of the first disk if none is named.
    ///
    /// # Errors
    /// There is no such machine.
    fn disk_of(&self, machine: Option<u8>) -> Result<usize, ServeError>;

    /// What a disk takes, by its number in [`Served::lives`].
    ///
    /// # Errors
    /// It is closed, or broken.
    fn space(&self, disk: usize) -> Result<Space, DiskError>;

    /// Why nothing can be written, if something failed.
    ///
    /// # Errors
    /// It is closed, or broken.
    fn failure(&self) -> Result<Option<String>, DiskError>;

    /// The volume behind it, whose past can be looked at.
    fn volume(&self) -> Option<&Service> {
        None
    }

    /// Carries a request out.
    fn carry_out(&self, request: &Request) -> Result<Answer, ServeError>;

    /// Carries a request out. Failures are answers too.
    fn answer(&self, request: &Request) -> Answer {
        self.carry_out(request)
            .unwrap_or_else(|error| Answer::Error {
                text: error.to_string(),
                usage: error.is_usage(),
            })
    }

    /// Tells its figures, besides those of requests and clients.
    fn measure(&self, page: &mut Page);

    /// Ends the use. Everything written is durable then; later calls fail. Nothing was written to what was opened to be
    /// looked at, and nothing is.
    ///
    /// # Errors
    /// The store failed, or it was closed before.
    fn close(&self) -> Result<(), DiskError>;
}

/// Opens what a directory holds; [`Served::recovered`] says whether it was closed. What is opened to be looked at is not
/// written: what an opening writes stays in memory.
///
/// # Errors
/// There is nothing, it is in use or damaged, or the machine has too little memory.
pub fn open(
    home: &Home,
    mode: Mode,
    clocks: Arc<dyn Clocks>,
    access: Access,
) -> Result<Box<dyn Served>, ServeError> {
    let home = home.held()?;
    if home.is_array() {
        let array = ArrayService::open(home, mode, even(clocks), access)?;
        return Ok(Box::new(array));
    }
    let opened = home.open(mode, access)?;
    Ok(Box::new(Service::opened(home, opened, clocks, access)?))
}

/// Bytes of a device, as the answer to a request.
pub(crate) fn read_bytes(
    device: &dyn BlockDevice,
    offset: u64,
    length: u64,
) -> Result<Answer, ServeError> {
    refuse_more_than_at_once(length)?;
    let mut bytes = vec![0; length as usize];
    device.read(offset, &mut bytes)?;
    Ok(Answer::of_bytes(&bytes))
}

/// Refuses to read more than one answer holds.
pub(crate) fn refuse_more_than_at_once(length: u64) -> Result<(), ServeError> {
    if length > MOST_READ {
        return Err(ServeError::Usage(format!(
            "{length} bytes at once, at most {MOST_READ} are read"
        )));
    }
    Ok(())
}

/// What the file of a volume that was not closed may be instead.
const COPIED: &str = "if its file was copied while the volume was in use, the copy is of an instant, and may be older \
                      than the original or damaged";

/// What is to be known of a volume whose superblock alone is read: that it was not closed, as a sentence.
pub fn unclosed_volume_told(superblock: &Superblock) -> Option<String> {
    superblock
        .in_use
        .then(|| format!("the volume was not closed; {COPIED}"))
}

/// What is to be known of a volume that was not closed, as a sentence.
pub fn recovery_told(recovery: &Recovery) -> Option<String> {
    (!recovery.closed).then(|| {
        format!(
            "the volume was not closed: it shows its state at {}, with all that was flushed ({} events recovered from \
             {} units in {} blocks); {COPIED}",
            Time(recovery.instant),
            recovery.events,
            recovery.units,
            recovery.blocks
        )
    })
}

/// How an array was left by whoever used it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastUse {
    #[default]
    Closed,
    NotClosed,
    /// The same, and its slow medium is read alone.
    NotClosedAlone,
    /// Its fast medium is a new one since.
    FastReplaced,
}

impl LastUse {
    /// Of an array with both media.
    pub fn of(was_closed: bool, is_fast_fresh: bool) -> Self {
        match (was_closed, is_fast_fresh) {
            (true, _) => Self::Closed,
            (false, true) => Self::FastReplaced,
            (false, false) => Self::NotClosed,
        }
    }

    pub fn is_closed(self) -> bool {
        self == Self::Closed
    }

    /// What is to be known of an array that was not closed, as a sentence.
    pub fn told(self) -> Option<String> {
        let told = match self {
            Self::Closed => return None,
            Self::NotClosed => {
                "the array was not closed: it shows a state with all that was flushed; if its media were copied while the \
                 array was in use, the copies are of an instant, and may be older than the originals or damaged"
            }
            Self::NotClosedAlone => {
                "the array was not closed: this is the last batch that went home; what was flushed later needs the fast \
                 medium"
            }
            Self::FastReplaced => {
                "the array was not closed before its fast medium was replaced: it shows what the slow medium holds; what \
                 that replacement said would go back or be lost, did"
            }
        };
        Some(told.to_owned())
    }
}
