//! Output files that appear under their name when they are complete: they are written beside it and
//! renamed.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::Error;

/// A file in the directory of `output`, which is gone when it is dropped.
pub(crate) fn beside(output: &Path) -> io::Result<NamedTempFile> {
    let directory = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    tempfile::Builder::new()
        .prefix(".flashlore-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
}

/// Makes a file durable and gives it its name.
pub(crate) fn complete(file: NamedTempFile, output: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(output).map_err(|error| error.error)?;
    Ok(())
}

/// The error of an output that cannot be written.
pub(crate) fn failed(output: &Path, source: io::Error) -> Error {
    Error::Write {
        path: output.display().to_string(),
        source,
    }
}
