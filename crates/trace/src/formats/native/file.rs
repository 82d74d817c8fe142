//! A native trace as a file that appears under its name when it is complete.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::writer::NativeWriter;
use crate::devices::{DeviceNames, NameStyle};
use crate::error::Result;
use crate::output::{Existing, OutputError, OutputFile};
use crate::record::Record;

const BUFFER_BYTES: usize = 1 << 18;

/// A native trace that is being written. Until it is complete it has no name of its own: a file
/// `.flashlore-` and some letters in the same directory, which is removed when this is dropped.
pub struct NativeFile {
    path: PathBuf,
    writer: NativeWriter<BufWriter<OutputFile>>,
}

impl NativeFile {
    /// Begins a file, which must not exist and which nobody else can read: a recording is of somebody's disk.
    pub fn create(path: impl AsRef<Path>) -> Result<NativeFile> {
        let path = path.as_ref().to_path_buf();
        let file = OutputFile::create(&path, Existing::Refuse)?;
        file.make_private()?;
        let writer = NativeWriter::new(BufWriter::with_capacity(BUFFER_BYTES, file))
            .map_err(|source| OutputError::write(&path, source))?;
        Ok(NativeFile { path, writer })
    }

    /// Appends a record, whose time must not be below that of the one before.
    ///
    /// # Panics
    /// As [`crate::Batch::push`].
    pub fn push(&mut self, record: &Record<'_>) -> Result<()> {
        let pushed = self.writer.push(record);
        Ok(pushed.map_err(|source| OutputError::write(&self.path, source))?)
    }

    /// Completes the file: device numbers mean themselves, and `origin_ns` is the first record's time
    /// on the clock of the trace.
    ///
    /// # Errors
    /// When it cannot be written. Nothing is left behind then.
    pub fn finish(self, origin_ns: u64) -> Result<()> {
        let NativeFile { path, writer } = self;
        let written = || {
            let mut file = writer.finish(&DeviceNames::new(NameStyle::Number), origin_ns)?;
            file.flush()?;
            file.into_inner().map_err(|e| e.into_error())
        };
        let file = written().map_err(|source| OutputError::Write { path, source })?;
        Ok(file.complete()?)
    }
}
