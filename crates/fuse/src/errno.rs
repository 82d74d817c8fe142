//! Errors as the kernel knows them.

use flashlore_serve::ServeError;
use flashlore_volume::disk::{DiskError, ErrorKind};
use fuser::Errno;

pub(crate) fn of_disk(error: &DiskError) -> Errno {
    match error.kind() {
        ErrorKind::Invalid => Errno::EINVAL,
        ErrorKind::ReadOnly => Errno::EROFS,
        ErrorKind::NoSpace => Errno::ENOSPC,
        ErrorKind::Closed => Errno::ESHUTDOWN,
        ErrorKind::Failed => Errno::EIO,
    }
}

/// An error of looking an instant up: a name that means nothing, or nothing that is remembered, is no file.
pub(crate) fn of_lookup(error: &ServeError) -> Errno {
    match error {
        ServeError::Disk(disk) => of_disk(disk),
        _ => Errno::ENOENT,
    }
}
