//! The bytes of a trace's pages, for systems that encode them: from a file of pages beside the trace, or
//! from the profile that makes it.
//!
//! `mail.fiu.xz` has its pages in `mail.pages.zst`: the trace's name up to the first dot. All distinct
//! pages are in memory, 4 KiB each, once for all runs of the trace; a profile's are made anew each time.

use std::path::{Path, PathBuf};

use flashlore_synth::{ProfileSource, Recipes};
use flashlore_trace::{
    Batch, ContentModel, Error, Format, PageSource, Pages, ReadOptions, TraceReader,
    WorkloadOptions,
};

use crate::bundled::is_bundled;
use crate::error::CliError;
use crate::input::{open, profile};

/// What is known of the bytes of a workload's pages.
pub enum Bytes {
    /// A file has them.
    Pages(Pages),
    /// A profile tells them.
    Recipes(Recipes),
    /// Nothing, for this reason.
    Unknown(String),
}

impl Bytes {
    /// Looks for the bytes of the pages of a workload.
    ///
    /// # Errors
    /// A file of pages that cannot be read, or does not belong to the trace.
    pub fn of(paths: &[PathBuf], options: &WorkloadOptions) -> Result<Self, CliError> {
        let unknown = |why: &str| Ok(Bytes::Unknown(why.to_string()));
        let [trace] = paths else {
            return unknown("a file of pages belongs to one trace, and several are joined");
        };
        if options.content != ContentModel::FromTrace {
            return unknown("the content that --content assumes has no bytes");
        }
        if let Some(spec) = profile(trace) {
            return match ProfileSource::parse(spec)?.recipes() {
                Some(recipes) => Ok(Bytes::Recipes(recipes)),
                None => unknown("the profile has no [similarity], which tells the bytes of pages"),
            };
        }
        if is_bundled(trace) {
            return unknown("the captures inside the program come without their pages");
        }
        if trace == Path::new("-") {
            return unknown("standard input has no file of pages beside it");
        }
        let file = Pages::beside(trace);
        if !file.exists() {
            let why = format!("there is no file of pages {} beside it", file.display());
            return Ok(Bytes::Unknown(why));
        }
        Ok(Bytes::Pages(pages_of(
            &file,
            trace,
            &options.read,
            u64::MAX,
        )?))
    }

    pub fn source(&self) -> Option<&dyn PageSource> {
        match self {
            Bytes::Pages(pages) => Some(pages),
            Bytes::Recipes(recipes) => Some(recipes),
            Bytes::Unknown(_) => None,
        }
    }
}

/// Reads a file of pages, of at most `limit` bytes in memory, and demands that it belongs to the trace.
///
/// # Errors
/// A file that cannot be read, holds more, or does not belong to the trace.
pub fn pages_of(
    file: &Path,
    trace: &Path,
    read: &ReadOptions,
    limit: u64,
) -> Result<Pages, CliError> {
    let pages = Pages::open(file, limit)?;
    verify(file, &pages, open(trace, read)?)?;
    Ok(pages)
}

/// Compares the MD5 of each page with the trace's digests; a native trace has kept their number only.
fn verify(file: &Path, pages: &Pages, mut reader: TraceReader) -> Result<(), CliError> {
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch)? {}
    if reader.format() == Format::Native {
        let (found, expected) = (pages.len(), reader.value_count());
        return match found == expected as usize {
            true => Ok(()),
            false => Err(CliError::Trace(Error::Pages {
                path: file.display().to_string(),
                what: format!("it holds {found} pages, expected {expected}, one a distinct value"),
            })),
        };
    }
    let digests = (0..reader.value_count()).map(|value| reader.digest(value));
    Ok(pages.verify(digests)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_pages_has_the_name_of_its_trace() {
        for (trace, file) in [
            ("mail.fiu.xz", "mail.pages.zst"),
            ("/data/mail.parquet", "/data/mail.pages.zst"),
            ("../a.b/mail", "../a.b/mail.pages.zst"),
        ] {
            assert_eq!(Pages::beside(Path::new(trace)), Path::new(file));
        }
    }
}
