//! A native trace as a file that appears under its name when it is complete.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::writer::NativeWriter;
use crate::devices::{DeviceNames, NameStyle};
use crate::error::Result;
use crate::output;
use crate::record::Record;

/// Bytes written at once.
const BUFFER_BYTES: usize = 1 << 18;

/// A native trace that is being written. Until it is complete it has no name of its own: a file
/// `.flashlore-` and some letters in the same directory, which is removed when this is dropped.
pub struct NativeFile {
    path: PathBuf,
    writer: NativeWriter<BufWriter<NamedTempFile>>,
}

impl NativeFile {
    /// Begins a file, which replaces one that exists when it is complete.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn create(path: impl AsRef<Path>) -> Result<NativeFile> {
        let path = path.as_ref().to_path_buf();
        let begin = || {
            let file = BufWriter::with_capacity(BUFFER_BYTES, output::beside(&path)?);
            NativeWriter::new(file)
        };
        match begin() {
            Ok(writer) => Ok(NativeFile { path, writer }),
            Err(source) => Err(output::failed(&path, source)),
        }
    }

    /// Appends a record, whose time must not be below that of the one before.
    ///
    /// # Errors
    /// When it cannot be written.
    ///
    /// # Panics
    /// As [`crate::Batch::push`].
    pub fn push(&mut self, record: &Record<'_>) -> Result<()> {
        self.writer
            .push(record)
            .map_err(|source| output::failed(&self.path, source))
    }

    /// Completes the file: device numbers mean themselves, and `origin_ns` is the first record's time
    /// on the clock of the trace.
    ///
    /// # Errors
    /// When it cannot be written. Nothing is left behind then.
    pub fn finish(self, origin_ns: u64) -> Result<()> {
        let NativeFile { path, writer } = self;
        let complete = || {
            let mut file = writer.finish(&DeviceNames::new(NameStyle::Number), origin_ns)?;
            file.flush()?;
            let file = file.into_inner().map_err(|e| e.into_error())?;
            output::complete(file, &path)
        };
        complete().map_err(|source| output::failed(&path, source))
    }
}
