//! The pieces a format takes an input apart into: lines of text, or binary records of one size.

use super::{Input, Lines};
use crate::error::{RecordPlace, Result};

pub(crate) enum Pieces {
    Lines(Lines),
    Records(FixedRecords),
}

impl Pieces {
    /// The next piece; `None` at the end of the input.
    #[inline]
    pub(crate) fn next_piece(&mut self) -> Result<Option<&[u8]>> {
        match self {
            Pieces::Lines(lines) => lines.next_line(),
            Pieces::Records(records) => records.next_record(),
        }
    }

    /// Where the piece returned last stands.
    pub(crate) fn place(&self) -> RecordPlace {
        match self {
            Pieces::Lines(lines) => RecordPlace::Line(lines.line_number()),
            Pieces::Records(records) => RecordPlace::Record(records.record),
        }
    }

    pub(crate) fn input(&self) -> &Input {
        match self {
            Pieces::Lines(lines) => lines.input(),
            Pieces::Records(records) => &records.input,
        }
    }
}

pub(crate) struct FixedRecords {
    input: Input,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    record_bytes: usize,
    record: u64,
}

impl FixedRecords {
    /// Records of an input of which `buffer[..end]` has been read; `at_end` says that nothing follows.
    pub(super) fn new(
        input: Input,
        buffer: Vec<u8>,
        end: usize,
        at_end: bool,
        record_bytes: usize,
    ) -> Self {
        FixedRecords {
            input,
            buffer,
            start: 0,
            end,
            at_end,
            record_bytes,
            record: 0,
        }
    }

    /// The next record; the last one is shorter when the input breaks off in it.
    #[inline]
    fn next_record(&mut self) -> Result<Option<&[u8]>> {
        while self.end - self.start < self.record_bytes && !self.at_end {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            let n = self.input.read(&mut self.buffer[self.end..])?;
            self.at_end = n == 0;
            self.end += n;
        }
        let from = self.start;
        self.start = self.end.min(from + self.record_bytes);
        self.record += u64::from(self.start > from);
        Ok((self.start > from).then_some(&self.buffer[from..self.start]))
    }
}
