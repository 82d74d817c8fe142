//! What can go wrong with a volume in its directory.

use std::io;
use std::path::{Path, PathBuf};

use flashlore_array::ArrayError;
use flashlore_medium::{Cause, MediumError, Operation};
use flashlore_volume::disk::DiskError;
use flashlore_volume::{VolumeError, options::SizeError};

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It was asked for in a way that cannot work.
    #[error("{0}")]
    Usage(String),
    /// The volume is in a state in which it cannot be done now.
    #[error("{0}")]
    Refused(String),
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{}: {why}", path.display())]
    Content { path: PathBuf, why: String },
    #[error(transparent)]
    Medium(#[from] MediumError),
    #[error(transparent)]
    Volume(#[from] VolumeError),
    #[error(transparent)]
    Array(#[from] ArrayError),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Trace(Box<flashlore_trace::Error>),
    #[error(transparent)]
    Size(#[from] SizeError),
    /// A served volume said why not, and whether the request itself was at fault.
    #[error("{text}")]
    Remote {
        text: String,
        /// Whether another request would help.
        usage: bool,
    },
}

impl From<flashlore_trace::Error> for ServeError {
    fn from(error: flashlore_trace::Error) -> Self {
        ServeError::Trace(Box::new(error))
    }
}

impl ServeError {
    /// Whether another request would help: exit code 2 rather than 1.
    pub fn is_usage(&self) -> bool {
        match self {
            ServeError::Usage(_) | ServeError::Size(_) => true,
            ServeError::Remote { usage, .. } => *usage,
            _ => false,
        }
    }

    /// Why the system did not open a medium, if that is what failed.
    fn not_opened(&self) -> Option<io::ErrorKind> {
        match self {
            ServeError::Medium(MediumError {
                operation: Operation::Open,
                cause: Cause::Io(error),
                ..
            }) => Some(error.kind()),
            _ => None,
        }
    }

    /// Whether a file could not be opened for writing: it, or its file system, is read-only.
    pub fn is_not_writable(&self) -> bool {
        matches!(
            self.not_opened(),
            Some(io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
        )
    }

    /// Whether a medium is not there.
    pub(crate) fn is_missing(&self) -> bool {
        self.not_opened() == Some(io::ErrorKind::NotFound)
    }

    pub(crate) fn file<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl Fn(io::Error) -> ServeError + 'a {
        move |source| ServeError::File {
            action,
            path: path.to_path_buf(),
            source,
        }
    }
}
