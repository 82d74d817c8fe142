//! The directory of a volume or an array.
//!
//! | file | what it is |
//! |---|---|
//! | `volume.flashlore` | the volume, locked while it is open |
//! | `names.json` | names of snapshots and marks |
//! | `array.json` | of an array instead: where its media are ([`crate::array::description`]) |
//! | `control.sock` | where a served volume takes requests |
//! | `nbd.sock` | where it serves NBD, unless told otherwise |

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashlore_medium::{Cause, FileMedium, Mode};
use flashlore_volume::options::grown;
use flashlore_volume::{
    CreateOptions, Growth, Identity, Recovery, Volume, bytes_needed, load, memory_needed,
};

use crate::error::ServeError;
use crate::memory::{VOLUME_HELP, available, refuse_more_than};
use crate::names::Names;

/// The directory of a volume or an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    directory: PathBuf,
}

impl Home {
    /// The volume in a directory, whether it exists or not.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Home {
            directory: directory.into(),
        }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file that holds the volume.
    pub fn volume(&self) -> PathBuf {
        self.directory.join("volume.flashlore")
    }

    /// The file with the names of snapshots and marks.
    pub fn names(&self) -> PathBuf {
        self.directory.join("names.json")
    }

    /// The file that says where the media of an array are.
    pub fn description(&self) -> PathBuf {
        self.directory.join("array.json")
    }

    /// Whether it holds an array rather than a volume.
    pub fn is_array(&self) -> bool {
        self.description().exists()
    }

    /// Whether it holds a volume or an array.
    pub fn exists(&self) -> bool {
        self.volume().exists() || self.is_array()
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
        self.directory.join("control.sock")
    }

    /// The socket that speaks NBD unless another address is given.
    pub fn nbd(&self) -> PathBuf {
        self.directory.join("nbd.sock")
    }

    /// The name of the volume as an export: that of its directory.
    pub fn name(&self) -> String {
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
    pub fn medium(&self, mode: Mode) -> Result<FileMedium, ServeError> {
        self.demand_volume("has two media, and docs/array.md describes what lies on them")?;
        Ok(FileMedium::open(self.volume(), mode)?)
    }

    /// The file of the volume, as [`Home::medium`], if the machine has the memory that the volume may need.
    ///
    /// # Errors
    /// As [`Home::medium`], or there is too little memory.
    pub fn affordable(&self, mode: Mode) -> Result<FileMedium, ServeError> {
        let medium = self.medium(mode)?;
        let superblock = load::superblock(&medium)?;
        refuse_more_than(
            available(),
            memory_needed(&superblock.identity),
            VOLUME_HELP,
        )?;
        Ok(medium)
    }

    /// What the volume is, without opening it.
    ///
    /// # Errors
    /// As [`Home::medium`], or it holds no volume.
    pub fn identity(&self, mode: Mode) -> Result<Identity, ServeError> {
        Ok(load::superblock(&self.medium(mode)?)?.identity)
    }

    /// Opens the volume.
    ///
    /// # Errors
    /// As [`Home::affordable`], or the volume is damaged.
    pub fn open(&self, mode: Mode) -> Result<(Volume, Recovery), ServeError> {
        Ok(Volume::open(Arc::new(self.affordable(mode)?))?)
    }

    /// Opens the volume, whatever memory there is: the caller bounds what is taken.
    ///
    /// # Errors
    /// As [`Home::medium`], or the volume is damaged.
    pub fn open_bounded(&self, mode: Mode) -> Result<(Volume, Recovery), ServeError> {
        Ok(Volume::open(Arc::new(self.medium(mode)?))?)
    }

    /// Makes a volume that nobody has open larger; answers what it was and what it is. [`grown`] says what grows with
    /// size and capacity.
    ///
    /// # Errors
    /// Sizes that cannot be used, a volume that is open or damaged, or a failure of the file system. The volume has
    /// its old size then.
    pub fn grow(
        &self,
        size: Option<u64>,
        capacity: Option<u64>,
        mode: Mode,
    ) -> Result<(Identity, Identity), ServeError> {
        self.demand_volume("keeps the size it was made with: make another one and copy it")?;
        let mut medium =
            FileMedium::open(self.volume(), mode).map_err(|error| match error.cause {
                Cause::InUse => ServeError::Refused(
                    "it is open; a volume grows while nobody serves, mounts or uses it".to_owned(),
                ),
                _ => error.into(),
            })?;
        let superblock = load::superblock(&medium)?;
        let from = superblock.identity.clone();
        let to = grown(&from, size, capacity)?;
        let growth = Growth::plan(&superblock, to.clone())?;
        refuse_more_than(available(), memory_needed(&to), VOLUME_HELP)?;
        medium.extend(growth.bytes())?;
        growth.carry_out(medium)?;
        Ok((from, to))
    }

    /// Reads the names of snapshots and marks.
    ///
    /// # Errors
    /// The file cannot be read or holds something else.
    pub fn load_names(&self) -> Result<Names, ServeError> {
        Names::load(self.names())
    }
}
