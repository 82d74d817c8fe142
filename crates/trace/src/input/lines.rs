//! Lines of a text input, as slices of one buffer.
//!
//! Archives: published traces come as tar files, and users cut those with line tools. A tar header in
//! front (with the extended headers before it) is skipped, and so is a header of which only the end
//! is left, glued to the first record. After a header, lines of zero bytes only are padding. Then a
//! byte order mark of UTF-8 is skipped, which some editors and spreadsheets put in front of a text.
//! Elsewhere a zero byte is left in its line, which the format then rejects.

use memchr::{memchr, memmem, memrchr};

use super::Input;
use super::records::FixedRecords;
use crate::error::{Error, Fault, RecordPlace, Result};

/// How much is decompressed before the format is decided, and the longest line, in bytes.
const HEAD_BYTES: usize = 64 * 1024;

const BUFFER_BYTES: usize = 4 * HEAD_BYTES;

/// What marks a tar header, and where in it.
const TAR_MAGIC: &[u8] = b"ustar";
const TAR_MAGIC_AT: usize = 257;

/// The byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Size of a tar header, and what everything in a tar file is padded to.
const TAR_BLOCK: usize = 512;

pub(crate) struct Lines {
    input: Input,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    archive: bool,
    line: u64,
}

impl Lines {
    /// Reads the head of the input and skips an archive header and a byte order mark.
    pub(crate) fn new(input: Input) -> Result<Lines> {
        let mut lines = Lines {
            input,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            at_end: false,
            archive: false,
            line: 0,
        };
        while lines.end < HEAD_BYTES && !lines.at_end {
            lines.refill()?;
        }
        lines.skip_archive_header();
        if lines.head().0.starts_with(BYTE_ORDER_MARK) {
            lines.start += BYTE_ORDER_MARK.len();
        }
        if lines.head().0.is_empty() {
            return Err(Error::Empty {
                path: lines.input.path().to_owned(),
            });
        }
        Ok(lines)
    }

    /// The bytes at hand and whether they are all there is.
    pub(crate) fn head(&self) -> (&[u8], bool) {
        (&self.buffer[self.start..self.end], self.at_end)
    }

    /// As [`Lines::head`] before anything was skipped, which is how a binary input begins. Only until
    /// the first line is read.
    pub(crate) fn whole_head(&self) -> &[u8] {
        &self.buffer[..self.end]
    }

    /// The whole input as binary records. Only until the first line is read.
    pub(crate) fn into_records(self, record_bytes: usize) -> FixedRecords {
        FixedRecords::new(self.input, self.buffer, self.end, self.at_end, record_bytes)
    }

    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    /// Number of the line returned last, from 1.
    pub(crate) fn line_number(&self) -> u64 {
        self.line
    }

    /// The next line that is not blank, without its end; `None` at the end of the input.
    #[inline]
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>> {
        loop {
            let Some((from, to)) = self.next_span()? else {
                return Ok(None);
            };
            if self.is_content(from, to) {
                return Ok(Some(self.buffer[from..to].trim_ascii_end()));
            }
        }
    }

    /// Bounds of the next line in the buffer.
    #[inline]
    fn next_span(&mut self) -> Result<Option<(usize, usize)>> {
        loop {
            let found = memchr(b'\n', &self.buffer[self.start..self.end]);
            let from = self.start;
            if let Some(n) = found {
                self.start = from + n + 1;
                self.line += 1;
                return Ok(Some((from, from + n)));
            }
            if self.at_end {
                self.start = self.end;
                self.line += u64::from(from < self.end);
                return Ok((from < self.end).then_some((from, self.end)));
            }
            if self.end - from > HEAD_BYTES {
                return Err(self.too_long());
            }
            self.refill()?;
        }
    }

    fn is_content(&self, from: usize, to: usize) -> bool {
        let line = self.buffer[from..to].trim_ascii_end();
        let padding = self.archive && line.iter().all(|&b| b == 0);
        !line.is_empty() && !padding
    }

    /// Moves the rest to the front and reads once.
    fn refill(&mut self) -> Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let n = self.input.read(&mut self.buffer[self.end..])?;
        self.at_end = n == 0;
        self.end += n;
        if self.archive && self.buffer[..self.end].iter().all(|&b| b == 0) {
            self.end = 0;
        }
        Ok(())
    }

    fn skip_archive_header(&mut self) {
        let head = &self.buffer[..self.end];
        let Some(start) = tar_headers(head).or_else(|| glued_header(head)) else {
            return;
        };
        self.archive = true;
        self.line = head[..start].iter().filter(|&&b| b == b'\n').count() as u64;
        self.start = start;
    }

    fn too_long(&self) -> Error {
        Error::Malformed {
            path: self.input.path().to_owned(),
            place: RecordPlace::Line(self.line + 1),
            fault: Fault::bytes(
                "the line",
                &self.buffer[self.start..self.end],
                "a line of at most 65536 bytes",
            ),
        }
    }
}

/// Where the contents of the first file begin when `head` begins with a tar header.
fn tar_headers(head: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let block = head.get(at..at + TAR_BLOCK)?;
        if !block[TAR_MAGIC_AT..].starts_with(TAR_MAGIC) {
            return None;
        }
        at += TAR_BLOCK;
        match block[156] {
            // Extended headers and long names carry data of their own before the file's header.
            b'x' | b'g' | b'L' => {
                at += octal(&block[124..136])?.checked_next_multiple_of(TAR_BLOCK)?
            }
            _ => return Some(at),
        }
    }
}

/// The number in a field of a tar header.
fn octal(field: &[u8]) -> Option<usize> {
    let end = field
        .iter()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(field.len());
    usize::from_str_radix(std::str::from_utf8(&field[..end]).ok()?, 8).ok()
}

/// Where the first record begins when the first line is the end of a tar header and that record.
fn glued_header(head: &[u8]) -> Option<usize> {
    let line = &head[..memchr(b'\n', head)?];
    let magic = memmem::find(line, TAR_MAGIC)?;
    let last_zero = memrchr(0, line)?;
    (magic < last_zero).then_some(last_zero + 1)
}
