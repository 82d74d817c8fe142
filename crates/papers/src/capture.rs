//! Captures in files: requests with digests, and beside them the bytes of their pages.
//!
//! The pages are compared with the digests before they are used.

use std::path::{Path, PathBuf};

use flashlore_trace::{Batch, Pages, ReadOptions, TraceReader};

use crate::error::PaperError;

/// A capture that may or may not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The file of its requests.
    path: PathBuf,
}

impl Capture {
    pub fn of(directory: &Path, name: &str) -> Self {
        Capture {
            path: directory.join(format!("{name}.fiu.xz")),
        }
    }

    /// Its requests, from the first on.
    pub fn open(&self) -> Result<TraceReader, PaperError> {
        Ok(TraceReader::open(&self.path, &ReadOptions::default())?)
    }

    /// So many records it has; some become one request.
    pub fn requests(&self) -> Result<u64, PaperError> {
        Ok(read_through(self.open()?)?.1)
    }

    /// The bytes of its pages.
    ///
    /// # Errors
    /// A file that cannot be read, or pages that are not those of the capture.
    pub fn pages(&self) -> Result<Pages, PaperError> {
        let pages = Pages::open(Pages::beside(&self.path), u64::MAX)?;
        let (reader, _) = read_through(self.open()?)?;
        pages.verify((0..reader.value_count()).map(|value| reader.digest(value)))?;
        Ok(pages)
    }
}

/// A reader at its end, which knows all digests, and the number of records.
fn read_through(mut reader: TraceReader) -> Result<(TraceReader, u64), PaperError> {
    let mut batch = Batch::default();
    let mut records = 0;
    while reader.next_batch(&mut batch)? {
        records += batch.len() as u64;
    }
    Ok((reader, records))
}
