//! Files of pages: the bytes that belong to the digests of a trace.
//!
//! A file holds the distinct pages of a trace, 4,096 bytes each, in the order in which their digests
//! first appear in it. Value ids are given in the same order ([`crate::digests`]), so page `i` is the
//! content of value `i`. The file is zstd with a window of up to 128 MiB, known by its first four
//! bytes, or else the bare pages. [`Pages`] holds all pages in memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use md5::{Digest as _, Md5};
use zstd::zstd_safe::CParameter;

use crate::digests::Digest;
use crate::error::{Error, Result};
use crate::input::{Compression, Input, hex};
use crate::output::{Existing, OutputError, OutputFile};
use crate::record::UNIT_BYTES;

pub const PAGE_BYTES: usize = UNIT_BYTES as usize;

/// The largest zstd window, as a power of two: 128 MiB.
const WINDOW_LOG_MAX: u32 = 27;

/// Level of compression when writing.
const LEVEL: i32 = 9;

/// Level when somebody waits for it.
const QUICK_LEVEL: i32 = 1;

/// How many bytes are asked for at once.
const READ_BYTES: usize = 1 << 18;

/// Gives the bytes of values.
pub trait PageSource {
    /// Fills `into` with the bytes of a value and says whether they are known; where they are not,
    /// `into` may hold anything.
    fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    path: String,
    pages: Vec<[u8; PAGE_BYTES]>,
}

impl Pages {
    /// Where the pages of a trace are looked for: its name up to the first dot, and `.pages.zst`.
    pub fn beside(trace: &Path) -> PathBuf {
        let name = trace.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split('.').next().unwrap_or_default();
        trace.with_file_name(format!("{stem}.pages.zst"))
    }

    /// Reads a file of pages that hold at most `limit_bytes` bytes together.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, holds more, or does not end with a page.
    pub fn open(path: impl AsRef<Path>, limit_bytes: u64) -> Result<Pages> {
        let name = path.as_ref().display().to_string();
        let file = File::open(path).map_err(|source| Error::Open {
            path: name.clone(),
            source,
        })?;
        Self::from_input(
            Input::packed(name, file, zstd_or_none, WINDOW_LOG_MAX)?,
            limit_bytes,
        )
    }

    /// As [`Pages::open`], from memory.
    pub fn from_bytes(name: &str, bytes: Vec<u8>, limit_bytes: u64) -> Result<Pages> {
        let stream = io::Cursor::new(bytes);
        let input = Input::packed(name.to_owned(), stream, zstd_or_none, WINDOW_LOG_MAX)?;
        Self::from_input(input, limit_bytes)
    }

    fn from_input(mut input: Input, limit_bytes: u64) -> Result<Pages> {
        let mut pages: Vec<[u8; PAGE_BYTES]> = Vec::new();
        let mut buffer = vec![0; READ_BYTES];
        let mut filled = 0;
        loop {
            let n = input.read(&mut buffer[filled..])?;
            if n == 0 {
                break;
            }
            filled += n;
            let (whole, rest) = buffer[..filled].as_chunks();
            let bytes = (pages.len() + whole.len()) as u64 * UNIT_BYTES + rest.len() as u64;
            if bytes > limit_bytes {
                return Err(unusable(
                    input.path(),
                    format!(
                        "its pages take more than {limit_bytes} bytes, which is all the memory \
                         they may have; byte {} of the file was reached",
                        input.stored_bytes()
                    ),
                ));
            }
            pages.extend_from_slice(whole);
            let begun = whole.len() * PAGE_BYTES;
            buffer.copy_within(begun..filled, 0);
            filled -= begun;
        }
        if filled > 0 {
            return Err(unusable(
                input.path(),
                format!(
                    "its last page, at offset {} of the pages, has {filled} bytes, expected {PAGE_BYTES}",
                    pages.len() * PAGE_BYTES
                ),
            ));
        }
        Ok(Pages {
            path: input.path().to_owned(),
            pages,
        })
    }

    /// The content of a value, if the file has that many pages.
    #[inline]
    pub fn page(&self, value: u32) -> Option<&[u8; PAGE_BYTES]> {
        self.pages.get(value as usize)
    }

    pub fn len(&self) -> usize {
        self.pages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Demands that the pages are those of a trace with these digests, which are MD5, in order of
    /// value ids.
    ///
    /// # Errors
    /// At the first page that has another digest, and when there are fewer or more pages than digests.
    pub fn verify(&self, digests: impl IntoIterator<Item = Digest>) -> Result<()> {
        let mut count = 0;
        for (value, wanted) in digests.into_iter().enumerate() {
            count = value + 1;
            let Some(page) = self.pages.get(value) else {
                continue;
            };
            let found = Md5::digest(page);
            if found[..] != wanted {
                return Err(unusable(
                    &self.path,
                    format!(
                        "page {value}, at offset {} of the pages, has the MD5 {}, expected {} as \
                         value {value} of the trace",
                        value * PAGE_BYTES,
                        hex(&found),
                        hex(&wanted)
                    ),
                ));
            }
        }
        if count != self.pages.len() {
            return Err(unusable(
                &self.path,
                format!(
                    "it holds {} pages, expected {count}, one for each distinct value of the trace",
                    self.pages.len()
                ),
            ));
        }
        Ok(())
    }
}

impl PageSource for Pages {
    fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool {
        let page = self.page(value);
        if let Some(page) = page {
            into.copy_from_slice(page);
        }
        page.is_some()
    }
}

fn zstd_or_none(head: &[u8]) -> Compression {
    match Compression::detect(head) {
        Compression::Zstd => Compression::Zstd,
        _ => Compression::None,
    }
}

fn unusable(path: &str, what: String) -> Error {
    Error::Pages {
        path: path.to_owned(),
        what,
    }
}

/// Writes a file of pages, as zstd. The file appears under its name when it is complete.
pub struct PagesWriter {
    path: PathBuf,
    encoder: zstd::Encoder<'static, BufWriter<OutputFile>>,
    pages: u64,
}

impl PagesWriter {
    /// Begins a file.
    pub fn create(path: impl AsRef<Path>, existing: Existing) -> Result<PagesWriter> {
        let file = OutputFile::create(path.as_ref(), existing)?;
        Self::with_level(path, file, LEVEL)
    }

    /// As [`PagesWriter::create`] of a file that must not exist, for pages that must be taken as they come: quicker
    /// and less small. Nobody else can read it: a recording is of somebody's disk.
    pub fn create_quick(path: impl AsRef<Path>) -> Result<PagesWriter> {
        let file = OutputFile::create(path.as_ref(), Existing::Refuse)?;
        file.make_private()?;
        Self::with_level(path, file, QUICK_LEVEL)
    }

    fn with_level(path: impl AsRef<Path>, file: OutputFile, level: i32) -> Result<PagesWriter> {
        let path = path.as_ref().to_path_buf();
        let file = BufWriter::new(file);
        let begin = || {
            let mut encoder = zstd::Encoder::new(file, level)?;
            encoder.set_parameter(CParameter::WindowLog(WINDOW_LOG_MAX))?;
            encoder.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
            encoder.include_checksum(true)?;
            Ok(encoder)
        };
        let encoder = begin().map_err(|source: io::Error| OutputError::write(&path, source))?;
        Ok(PagesWriter {
            path,
            encoder,
            pages: 0,
        })
    }

    /// Appends the page of the next value id, which is the number of pages before.
    pub fn push(&mut self, page: &[u8; PAGE_BYTES]) -> Result<()> {
        self.pages += 1;
        let written = self.encoder.write_all(page);
        Ok(written.map_err(|source| OutputError::write(&self.path, source))?)
    }

    /// Completes the file; its number of pages.
    ///
    /// # Errors
    /// When it cannot be written. Nothing is left behind then.
    pub fn finish(self) -> Result<u64> {
        let (pages, file) = self.written()?;
        file.complete()?;
        Ok(pages)
    }

    /// Writes everything; the number of pages, and the file that is still to be completed.
    pub fn written(self) -> Result<(u64, OutputFile)> {
        let PagesWriter {
            path,
            encoder,
            pages,
        } = self;
        let written = || encoder.finish()?.into_inner().map_err(|e| e.into_error());
        let file = written().map_err(|source| OutputError::Write { path, source })?;
        Ok((pages, file))
    }
}
