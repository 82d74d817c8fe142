//! What can go wrong with a trace, each as a sentence that names the place, what was found there and
//! what was expected.

use std::fmt;
use std::io;

use crate::formats::Format;
use crate::input::Compression;
use crate::output::OutputError;

/// The result of every fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The longest excerpt of an input that an error message quotes, in bytes.
const EXCERPT_BYTES: usize = 60;

/// Why a trace cannot be read, replayed or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Who reads was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// The file cannot be opened.
    #[error("{path}: cannot open the file: {source}")]
    Open {
        /// Name of the input.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// Reading failed part of the way.
    #[error("{path}: cannot read on after byte {byte}: {source}")]
    Read {
        /// Name of the input.
        path: String,
        /// Bytes read before the failure.
        byte: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// Compressed data breaks off or is damaged.
    #[error(
        "{path}: the {compression} data breaks off or is damaged near byte {byte} of the file \
         ({source}); expected a complete {compression} stream"
    )]
    Compressed {
        /// Name of the input.
        path: String,
        /// How the file is compressed.
        compression: Compression,
        /// Bytes of the compressed file taken in before the failure.
        byte: u64,
        /// What the decompressor said.
        source: io::Error,
    },
    /// There is nothing in the file.
    #[error("{path}: the input is empty; expected a trace with at least one record")]
    Empty {
        /// Name of the input.
        path: String,
    },
    /// The file holds no usable record.
    #[error(
        "{path}: the trace holds no record ({skipped} malformed ones were skipped, {passed_over} \
         events are no requests); expected at least one"
    )]
    NoRecords {
        /// Name of the input.
        path: String,
        /// Malformed records that lenient mode skipped.
        skipped: u64,
        /// Events that are no requests of the trace.
        passed_over: u64,
    },
    /// No format fits what the file begins with.
    #[error(
        "{path}: no known trace format fits the beginning of the input, {found}; expected one of \
         {} (name the format if the first records are damaged)", Format::list(&Format::ALL)
    )]
    Unrecognised {
        /// Name of the input.
        path: String,
        /// Excerpt of the first line.
        found: String,
    },
    /// One record breaks the rules of its format.
    #[error("{path}, {place}: {fault}")]
    Malformed {
        /// Name of the input.
        path: String,
        /// Where in the input.
        place: Place,
        /// Which field, what was found and what was expected.
        fault: Fault,
    },
    /// A native file is damaged, of another version, or not ours.
    #[error("{path}: not a usable native trace: {what}")]
    Native {
        /// Name of the input.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// A file of pages is damaged, too large, or not the one of its trace.
    #[error("{path}: not a usable file of pages: {what}")]
    Pages {
        /// Name of the input.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// The trace cannot be laid out as the caller asked.
    #[error("cannot lay the trace out as a workload: {0}")]
    Layout(String),
    /// The format can be read only.
    #[error("traces are not written as {format}; expected one of {}", Format::list(&Format::WRITABLE))]
    Unwritable {
        /// The output format asked for.
        format: Format,
    },
    /// The output format cannot express a record.
    #[error("record {record} cannot be written as {format}: {why}")]
    Unrepresentable {
        /// Number of the record, from 1.
        record: u64,
        /// The output format.
        format: Format,
        /// What the format lacks.
        why: String,
    },
    /// A write has no difference ratio that could be told.
    #[error("record {record} cannot be given an R_c: {why}")]
    Unrated {
        /// Number of the record, from 1.
        record: u64,
        /// What is missing.
        why: String,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Where in an input a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// A line of a text trace, from 1.
    Line(u64),
    /// A record of a binary trace, from 1.
    Record(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(n) => write!(f, "line {n}"),
            Place::Record(n) => write!(f, "record {n}"),
        }
    }
}

/// One broken rule: the field, what stood there, what belongs there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}, expected {expected}")]
pub struct Fault {
    /// Name of the field.
    pub field: &'static str,
    /// What was found, quoted and shortened.
    pub found: String,
    /// What the format demands.
    pub expected: &'static str,
    /// Whether the value was understood and is out of bounds, which speaks for the format.
    pub(crate) understood: bool,
}

impl Fault {
    /// A fault about raw input bytes, which are quoted and shortened.
    pub(crate) fn bytes(field: &'static str, found: &[u8], expected: &'static str) -> Self {
        Fault {
            field,
            found: excerpt(found),
            expected,
            understood: false,
        }
    }

    /// A fault about a field that should be a number, which is understood if it is one, but too
    /// large.
    pub(crate) fn number(field: &'static str, found: &[u8], expected: &'static str) -> Self {
        Fault {
            understood: !found.is_empty() && found.iter().all(u8::is_ascii_digit),
            ..Self::bytes(field, found, expected)
        }
    }

    /// A fault about a value that was understood but is not allowed.
    pub(crate) fn value(
        field: &'static str,
        found: impl fmt::Display,
        expected: &'static str,
    ) -> Self {
        Fault {
            field,
            found: found.to_string(),
            expected,
            understood: true,
        }
    }
}

/// Input bytes as printable text in quotes, shortened.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "missing".to_owned();
    }
    let shown = &bytes[..bytes.len().min(EXCERPT_BYTES)];
    let dots = if shown.len() < bytes.len() { "..." } else { "" };
    format!("'{}{dots}'", shown.escape_ascii())
}
