//! The directory of a volume or an array.
//!
//! | file | what it is |
//! |---|---|
//! | `volume.flashlore` | the volume, locked while it is open |
//! | `index.flashlore` | its fingerprint index while it is closed; without it that is filled anew |
//! | `names.json` | names of snapshots and marks, of a volume of an older format that was not opened since |
//! | `array.json` | of an array instead: where its media are ([`crate::array::description`]) |
//! | `control.sock` | where a served volume takes requests |
//! | `nbd.sock` | where it serves NBD, unless told otherwise |
//!
//! Invariant: whoever opens a volume holds its directory open ([`Home::held`]), and finds every file by that handle.
//! A directory that is renamed meanwhile stays the same one, and another one in its place is not touched.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashlore_medium::{Access, Cause, FileMedium, Medium, Mode, Overlay};
use flashlore_nbd::server::Address;
use flashlore_volume::format::superblock::VERSION;
use flashlore_volume::options::grown;
use flashlore_volume::{
    CheckOptions, CheckReport, CreateOptions, Growth, Identity, Recovery, Volume, VolumeError,
    bytes_needed, check_within, load, memory_to_go_through, probe, stored_index_bytes,
};

use rustix::fs::OFlags;

use crate::error::ServeError;
use crate::memory::{Budget, available, refuse_more_than};
use crate::names::NAMES;
use crate::troubles::{Troubles, watched};

const VOLUME: &str = "volume.flashlore";
const INDEX: &str = "index.flashlore";
pub(crate) const CONTROL: &str = "control.sock";
const NBD: &str = "nbd.sock";
pub(crate) const DESCRIPTION: &str = "array.json";

#[derive(Debug, Clone)]
pub struct Home {
    directory: PathBuf,
    held: Option<Arc<HeldVolume>>,
    troubles: Arc<Troubles>,
    budget: Budget,
}

#[derive(Debug)]
struct HeldVolume {
    directory: OwnedFd,
    /// Its name when it was opened.
    name: String,
}

impl Home {
    /// The volume in a directory, whether it exists or not.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Home {
            directory: directory.into(),
            held: None,
            troubles: Arc::default(),
            budget: Budget::default(),
        }
    }

    /// The same; the volume takes no more memory than this when it is opened.
    #[must_use]
    pub fn within(self, budget: Budget) -> Self {
        Home { budget, ..self }
    }

    /// The same, held open: from here on it is this directory, whatever becomes of its name.
    pub fn held(&self) -> Result<Self, ServeError> {
        if self.held.is_some() {
            return Ok(self.clone());
        }
        let opened =
            File::open(&self.directory).and_then(|opened| match opened.metadata()?.is_dir() {
                true => Ok(OwnedFd::from(opened)),
                false => Err(io::ErrorKind::NotADirectory.into()),
            });
        let held = HeldVolume {
            directory: opened.map_err(ServeError::file("open", &self.directory))?,
            name: self.name(),
        };
        Ok(Home {
            directory: self.directory.clone(),
            held: Some(Arc::new(held)),
            troubles: Arc::clone(&self.troubles),
            budget: self.budget,
        })
    }

    pub fn troubles(&self) -> &Arc<Troubles> {
        &self.troubles
    }

    /// Where a file is looked for: an open directory, and the path from there.
    fn at(&self, name: &str) -> (BorrowedFd<'_>, PathBuf) {
        match &self.held {
            Some(held) => (held.directory.as_fd(), PathBuf::from(name)),
            None => (rustix::fs::CWD, self.directory.join(name)),
        }
    }

    fn has(&self, name: &str) -> bool {
        let (directory, name) = self.at(name);
        rustix::fs::statat(directory, name, rustix::fs::AtFlags::empty()).is_ok()
    }

    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let (directory, name) = self.at(name);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(directory, name, flags, rustix::fs::Mode::empty())?;
        let mut bytes = Vec::new();
        File::from(opened).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file in place of the one of this name, which is there until the new one is complete and durable.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = format!("{name}.new");
        let (directory, path) = self.at(name);
        let (_, new_path) = self.at(&new);
        // Left by somebody who was killed; whoever has the array open is alone.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let opened = rustix::fs::openat(directory, &new_path, flags, mode)?;
        let mut file = File::from(opened);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| {
            Ok(rustix::fs::renameat(
                directory, &new_path, directory, &path,
            )?)
        });
        if renamed.is_err() {
            // Best effort: the reason why it failed says more.
            let _ = self.remove(&new);
        }
        renamed?;
        File::from(self.handle()?).sync_all()
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        let (directory, name) = self.at(name);
        Ok(rustix::fs::unlinkat(
            directory,
            name,
            rustix::fs::AtFlags::empty(),
        )?)
    }

    pub(crate) fn handle(&self) -> io::Result<OwnedFd> {
        match &self.held {
            Some(held) => held.directory.try_clone(),
            None => File::open(&self.directory).map(OwnedFd::from),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn volume(&self) -> PathBuf {
        self.directory.join(VOLUME)
    }

    /// The file in which volumes of an older format had the names of snapshots and marks.
    pub fn names(&self) -> PathBuf {
        self.directory.join(NAMES)
    }

    /// The file that says where the media of an array are.
    pub fn description(&self) -> PathBuf {
        self.directory.join(DESCRIPTION)
    }

    pub fn is_array(&self) -> bool {
        self.has(DESCRIPTION)
    }

    pub fn exists(&self) -> bool {
        self.has(VOLUME) || self.is_array()
    }

    /// Refuses what is done with volumes alone.
    ///
    /// # Errors
    /// It holds an array.
    pub fn demand_volume(&self, what: &str) -> Result<(), ServeError> {
        match self.is_array() {
            true => Err(ServeError::Usage(format!("an array {what}"))),
            false => Ok(()),
        }
    }

    /// The socket that takes requests while the volume is served.
    pub fn control(&self) -> PathBuf {
        self.directory.join(CONTROL)
    }

    /// The socket that speaks NBD unless another address is given.
    pub fn nbd(&self) -> Result<Address, ServeError> {
        let path = self.directory.join(NBD);
        let handle = self
            .handle()
            .map_err(ServeError::file("listen on", &path))?;
        Ok(Address::Within(handle.into(), path))
    }

    /// The name of the volume as an export: that of its directory, as it was when it was opened.
    pub fn name(&self) -> String {
        if let Some(held) = &self.held {
            return held.name.clone();
        }
        let full = fs::canonicalize(&self.directory).unwrap_or_else(|_| self.directory.clone());
        let name = full.file_name().map(|name| name.to_string_lossy());
        name.map_or_else(|| "volume".to_owned(), |name| name.replace('@', "_"))
    }

    /// Makes a volume; the directory too, if it does not exist. Nothing half-written stays behind.
    ///
    /// # Errors
    /// Sizes that cannot be used, a volume or the names of one that are there already, or a failure of the file system.
    pub fn create(&self, options: &CreateOptions) -> Result<Identity, ServeError> {
        let id = options.identity()?;
        let bytes = bytes_needed(&id)?;
        if self.is_array() {
            return Err(ServeError::Refused(format!(
                "{} is there already, of an array: choose another directory",
                self.description().display()
            )));
        }
        if self.names().exists() && !self.volume().exists() {
            return Err(ServeError::Refused(format!(
                "{} has the names of snapshots of a volume that is not there: remove it, or choose another directory",
                self.names().display()
            )));
        }
        let made = !self.directory.exists();
        fs::create_dir_all(&self.directory).map_err(ServeError::file("create", &self.directory))?;
        let path = self.volume();
        let created = FileMedium::create(&path, bytes, Mode::Buffered)
            .map_err(ServeError::from)
            .and_then(|medium| {
                let made = flashlore_volume::create(&medium, &id);
                made.map_err(|error| {
                    let _ = fs::remove_file(&path);
                    error.into()
                })
            });
        if let Err(error) = created {
            if made {
                // Best effort, and only if it is empty.
                let _ = fs::remove_dir(&self.directory);
            }
            return Err(error);
        }
        Ok(id)
    }

    /// The locked file of the volume.
    ///
    /// # Errors
    /// It does not exist or is in use, or there is an array instead.
    pub fn medium(&self, mode: Mode, access: Access) -> Result<FileMedium, ServeError> {
        self.demand_volume("has two media, and docs/array.md describes what lies on them")?;
        let (directory, name) = self.at(VOLUME);
        let opened = FileMedium::open_in(directory, &name, &self.volume(), mode, access);
        Ok(opened?)
    }

    /// Checks the volume within its budget, and reads every stored page if `data` says so; nothing is written. `progress` is
    /// told how much is done, of how much.
    ///
    /// # Errors
    /// As [`Home::medium`], too little memory, or the volume could not be opened either.
    pub fn check(
        &self,
        mode: Mode,
        data: bool,
        progress: &dyn Fn(u64, u64),
    ) -> Result<CheckReport, ServeError> {
        let medium = self.medium(mode, Access::Look)?;
        let id = load::superblock(&medium)?.identity;
        let memory = self.budget.for_check(&id)?;
        let options = CheckOptions {
            data,
            memory: Some(memory),
            progress,
            ..CheckOptions::default()
        };
        check_within(medium, &options).map_err(|error| match error {
            VolumeError::TooLittleMemory { .. } => ServeError::Usage(error.to_string()),
            other => other.into(),
        })
    }

    /// What the volume is, without opening it.
    ///
    /// # Errors
    /// As [`Home::medium`], or it holds no volume.
    pub fn identity(&self, mode: Mode) -> Result<Identity, ServeError> {
        Ok(load::superblock(&self.medium(mode, Access::Look)?)?.identity)
    }

    /// Opens the volume within its budget; one of an older format gets the present one. To look at it nothing is written,
    /// what an opening would write stays in memory: its file may lie on a file system that is read-only then.
    ///
    /// # Errors
    /// As [`Home::medium`], too little memory, or the volume is damaged.
    pub fn open(&self, mode: Mode, access: Access) -> Result<(Volume, Recovery), ServeError> {
        self.on(self.medium(mode, access)?, access)
    }

    /// Makes a volume that nobody has open larger; answers what it was and what it is, and what the opening that this
    /// takes found. [`grown`] says what grows with size and capacity.
    ///
    /// # Errors
    /// Sizes that cannot be used, a volume that is open or damaged, or a failure of the file system. The volume has
    /// its old size then.
    pub fn grow(
        &self,
        size: Option<u64>,
        capacity: Option<u64>,
        mode: Mode,
    ) -> Result<(Identity, Identity, Recovery), ServeError> {
        self.demand_volume("grows otherwise")?;
        let medium = FileMedium::open(self.volume(), mode).map_err(|error| match error.cause {
            Cause::InUse => ServeError::Refused(
                "it is open; a volume grows while nobody serves, mounts or uses it".to_owned(),
            ),
            _ => error.into(),
        })?;
        let superblock = load::superblock(&medium)?;
        let from = superblock.identity.clone();
        let to = grown(&from, size, capacity)?;
        let growth = Growth::plan(&superblock, to.clone())?;
        refuse_to_go_through(&to)?;
        probe(&medium)?;
        medium.extend(growth.bytes())?;
        let recovery = growth.carry_out(medium)?;
        Ok((from, to, recovery))
    }

    /// Gives a volume that nobody has open the present format. Answers the version it had, the one it has, and what the
    /// opening found that this takes, if it takes one.
    ///
    /// # Errors
    /// A volume that is open or damaged, or a failure of the file system. The volume has its old format then.
    pub fn upgrade(&self, mode: Mode) -> Result<(u32, u32, Option<Recovery>), ServeError> {
        self.demand_volume("has one format")?;
        let medium = self.medium(mode, Access::Change)?;
        let from = load::superblock(&medium)?.identity.version;
        let (_, recovery) = self.upgraded(medium, Access::Change)?;
        Ok((from, VERSION, recovery))
    }

    /// The medium of a volume. One of an older format gets the present one first, unless nothing may be written: then it
    /// answers what the opening found that this took.
    fn upgraded(
        &self,
        medium: FileMedium,
        access: Access,
    ) -> Result<(Arc<impl Medium + use<>>, Option<Recovery>), ServeError> {
        let superblock = load::superblock(&medium)?;
        let is_old = superblock.identity.version < VERSION && access == Access::Change;
        let upgrade = is_old.then(|| Growth::upgrade(&superblock)).transpose()?;
        if let Some(upgrade) = &upgrade {
            refuse_to_go_through(&superblock.identity)?;
            probe(&medium)?;
            medium.extend(upgrade.bytes())?;
        }
        let medium = Arc::new(watched(medium, &self.troubles));
        let upgraded = upgrade.map(|upgrade| upgrade.carry_out(Arc::clone(&medium)));
        Ok((medium, upgraded.transpose()?))
    }

    /// Where the fingerprint index of an open volume will be kept, in so many bytes. Without it all works, and the next
    /// opening finds duplicates later: a failure is noted.
    fn index(&self, bytes: u64) -> Option<Arc<dyn Medium>> {
        if bytes == 0 {
            return None;
        }
        let opened = self.opened_index(bytes);
        let noted = |error: &ServeError| self.troubles.note(error.to_string());
        let medium = opened.inspect_err(noted).ok()?;
        Some(Arc::new(watched(medium, &self.troubles)))
    }

    fn opened_index(&self, bytes: u64) -> Result<FileMedium, ServeError> {
        let path = self.directory.join(INDEX);
        if !self.has(INDEX) {
            let made = self.replace(INDEX, &[]);
            made.map_err(ServeError::file("create", &path))?;
        }
        let (directory, name) = self.at(INDEX);
        let medium = FileMedium::open_in(directory, &name, &path, Mode::Buffered, Access::Change)?;
        // One of another size is of no use.
        medium.shorten(bytes)?;
        medium.extend(bytes)?;
        Ok(medium)
    }

    /// Opens the volume on a medium. One of an older format gets the present one first, unless nothing may be written.
    fn on(&self, medium: FileMedium, access: Access) -> Result<(Volume, Recovery), ServeError> {
        let id = load::superblock(&medium)?.identity;
        let shares = self.budget.shares(&id)?;
        let (medium, upgraded) = self.upgraded(medium, access)?;
        let (volume, recovery) = match access {
            Access::Change => {
                let index = self.index(stored_index_bytes(&id, &shares));
                Volume::open_keeping_index(medium, shares, index)?
            }
            Access::Look => Volume::open_within(Overlay::new(medium), shares)?,
        };
        // The upgrade recovered what was not closed, and closed it.
        Ok((volume, upgraded.unwrap_or(recovery)))
    }
}

/// Refuses to go through all tables of a volume with less memory than that takes.
fn refuse_to_go_through(id: &Identity) -> Result<(), ServeError> {
    let help = "a machine with more memory can do it";
    let needs = ("to go through all of it takes", memory_to_go_through(id));
    refuse_more_than(available(), needs, help)
}
