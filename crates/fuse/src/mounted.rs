//! Mounting, unmounting, the end of a mount. Whoever mounted may use the files, and nobody else: for a loop device,
//! mount as root.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use flashlore_serve::Served;
use fuser::{Config, Session, SessionACL};

use crate::filesystem::{Files, OpenFiles, file_name};
use crate::kernel::{self, DEVICE, Gone, MountId};

/// Requests that are served at once.
const THREADS: usize = 8;

/// Why a volume is not mounted, or not unmounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel has no FUSE, or this place must not use it.
    #[error("{DEVICE} is missing: load the module fuse, or let this container have the device")]
    NoDevice,
    #[error("cannot mount at {}: {why}", point.display())]
    Point { point: PathBuf, why: String },
    #[error("cannot mount at {}: {source}; without root it takes fusermount3 and {DEVICE}", point.display())]
    Refused { point: PathBuf, source: io::Error },
    #[error("cannot unmount {}: {source}", point.display())]
    Unmount { point: PathBuf, source: io::Error },
    #[error("the mount at {} broke: {source}", point.display())]
    Broke { point: PathBuf, source: io::Error },
}

/// A directory on which a volume can be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPoint(PathBuf);

impl MountPoint {
    /// Looks at a directory, and whether there is FUSE at all.
    ///
    /// # Errors
    /// There is no such directory, something is mounted there already, or there is no FUSE.
    pub fn new(path: &Path) -> Result<Self, MountError> {
        let fail = |why: String| MountError::Point {
            point: path.to_path_buf(),
            why,
        };
        let told = |error: io::Error| match error.raw_os_error() {
            Some(libc::ENOTCONN) => fail(format!(
                "what was mounted there ended without unmounting; fusermount3 -u {} removes it",
                path.display()
            )),
            _ => fail(error.to_string()),
        };
        let own = path.metadata().map_err(told)?;
        if !own.is_dir() {
            return Err(fail("it is not a directory".to_owned()));
        }
        let full = path.canonicalize().map_err(told)?;
        let above = full.parent().unwrap_or(&full).metadata().map_err(told)?;
        if above.dev() != own.dev() || full.parent().is_none() {
            return Err(fail("something is mounted there already".to_owned()));
        }
        match Path::new(DEVICE).try_exists() {
            Ok(true) => Ok(MountPoint(full)),
            _ => Err(MountError::NoDevice),
        }
    }

    /// Whether what lies at this path could not be reached by its name once something is mounted here.
    pub fn hides(&self, path: &Path) -> bool {
        path.canonicalize()
            .is_ok_and(|full| full.starts_with(&self.0))
    }
}

/// A mounted volume. Dropping it unmounts it as soon as nobody uses it.
pub struct Mounted {
    point: MountPoint,
    files: Vec<PathBuf>,
    open: Arc<OpenFiles>,
    id: MountId,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Mounts a volume or an array. `ended` is called when the mount has ended, however that came.
pub fn mount(
    service: &Arc<dyn Served>,
    read_only: bool,
    point: MountPoint,
    ended: impl FnOnce() + Send + 'static,
) -> Result<Mounted, MountError> {
    let refused = |source| MountError::Refused {
        point: point.0.clone(),
        source,
    };
    let open = Arc::new(OpenFiles::default());
    let files = Files::new(Arc::clone(service), read_only, Arc::clone(&open));
    let files = files.map_err(refused)?;
    let mut config = Config::default();
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    let (device, id) = kernel::mount(&point.0, read_only).map_err(refused)?;
    let session = Session::from_fd(files, device, SessionACL::Owner, config);
    let own = id.clone();
    let run = move |session: Session<Files>| {
        let result = match session.run() {
            // The last request was on its way when the mount ended.
            Err(error) if error.raw_os_error() == Some(libc::ECONNABORTED) => Ok(()),
            other => other,
        };
        // Nothing answers there any more.
        let _ = own.unmount();
        ended();
        result
    };
    let thread = session.and_then(|session| {
        let thread = thread::Builder::new().name("fuse".into());
        thread.spawn(move || run(session))
    });
    let thread = thread.map_err(|error| {
        let _ = id.unmount();
        refused(error)
    })?;
    service.clients().mount(point.0.clone());
    let lives = service.lives();
    Ok(Mounted {
        files: lives
            .iter()
            .map(|live| point.0.join(file_name(&live.name)))
            .collect(),
        point,
        open,
        id,
        thread: Some(thread),
    })
}

impl Mounted {
    /// The files of the live volume, or of the machines of an array.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    pub fn open_files(&self) -> usize {
        self.open.count()
    }

    /// Takes the mount away: nobody finds it any more. It ends when the last one who uses it has left; whether somebody
    /// does.
    ///
    /// # Errors
    /// The kernel does not let it go.
    pub fn unmount(&mut self) -> Result<bool, MountError> {
        let gone = self.id.unmount();
        let gone = gone.map_err(|source| MountError::Unmount {
            point: self.point.0.clone(),
            source,
        })?;
        Ok(gone == Gone::Detached || self.open_files() > 0)
    }

    /// Waits for the end of the mount.
    ///
    /// # Errors
    /// It ended because the kernel's requests could not be served any more.
    pub fn join(mut self) -> Result<(), MountError> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let ended = thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        ended.map_err(|source| MountError::Broke {
            point: self.point.0.clone(),
            source,
        })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Best effort: there is nobody to tell.
            let _ = self.unmount();
        }
    }
}
