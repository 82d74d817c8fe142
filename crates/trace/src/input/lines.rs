//! Lines of a text input, as slices of one buffer.
//!
//! Archives: published traces come as tar files that users cut with line tools, so that the first
//! record is glued to an archive header and zero bytes follow the last. When the beginning of the
//! input holds a tar header, everything up to the last zero byte before text is skipped, and lines
//! of zero bytes only are taken for padding. Elsewhere a zero byte is left in its line, which the
//! format then rejects.

use memchr::{memchr, memmem, memrchr};

use super::Input;
use crate::error::{Error, Fault, Place, Result};

/// How much is decompressed before the format is decided, and the longest line, in bytes.
const HEAD_BYTES: usize = 64 * 1024;

/// Size of the buffer.
const BUFFER_BYTES: usize = 4 * HEAD_BYTES;

/// An archive header ends within this many bytes.
const ARCHIVE_HEADER_BYTES: usize = 16 * 1024;

/// A text input, line by line.
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
    /// Reads the head of the input and skips an archive header.
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
        if lines.end == 0 {
            return Err(Error::Empty {
                path: lines.input.path().to_owned(),
            });
        }
        lines.skip_archive_header();
        Ok(lines)
    }

    /// The bytes at hand and whether they are all there is.
    pub(crate) fn head(&self) -> (&[u8], bool) {
        (&self.buffer[self.start..self.end], self.at_end)
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
                return Ok(Some(trim_end(&self.buffer[from..to])));
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
        let line = trim_end(&self.buffer[from..to]);
        !line.is_empty() && !(self.archive && line.iter().all(|&b| b == 0))
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
        let head = &self.buffer[..self.end.min(ARCHIVE_HEADER_BYTES)];
        let text_end = head
            .iter()
            .rposition(|&b| b != 0)
            .map_or(0, |last| last + 1);
        let Some(last_zero) = memrchr(0, &head[..text_end]) else {
            return;
        };
        if memmem::find(&head[..last_zero], b"ustar").is_none() {
            return;
        }
        self.archive = true;
        self.line = head[..last_zero].iter().filter(|&&b| b == b'\n').count() as u64;
        self.start = last_zero + 1;
    }

    fn too_long(&self) -> Error {
        Error::Malformed {
            path: self.input.path().to_owned(),
            place: Place::Line(self.line + 1),
            fault: Fault::bytes(
                "the line",
                &self.buffer[self.start..self.end],
                "a line of at most 65536 bytes",
            ),
        }
    }
}

fn trim_end(line: &[u8]) -> &[u8] {
    line.trim_ascii_end()
}
