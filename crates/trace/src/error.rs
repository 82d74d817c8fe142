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
    #[error("interrupted")]
    Interrupted,
    #[error("{path}: cannot open the file: {source}")]
    Open { path: String, source: io::Error },
    #[error("{path}: cannot read on after byte {byte}: {source}")]
    Read {
        path: String,
        byte: u64,
        source: io::Error,
    },
    #[error(
        "{path}: the {compression} data breaks off or is damaged near byte {byte} of the file \
         ({source}); expected a complete {compression} stream"
    )]
    Compressed {
        path: String,
        compression: Compression,
        byte: u64,
        source: io::Error,
    },
    #[error("{path}: the input is empty; expected a trace with at least one record")]
    Empty { path: String },
    #[error(
        "{path}: the trace holds no record ({skipped} malformed ones were skipped, {passed_over} \
         events are no requests); expected at least one"
    )]
    NoRecords {
        path: String,
        skipped: u64,
        passed_over: u64,
    },
    #[error(
        "{path}: no known trace format fits the beginning of the input, {found}; expected one of \
         {} (name the format if the first records are damaged)", Format::list(&Format::ALL)
    )]
    Unrecognised { path: String, found: String },
    #[error("{path}, {place}: {fault}")]
    Malformed {
        path: String,
        place: RecordPlace,
        fault: Fault,
    },
    #[error("{path}: not a usable native trace: {what}")]
    Native { path: String, what: String },
    #[error("{path}: not a usable file of pages: {what}")]
    Pages { path: String, what: String },
    #[error("cannot lay the trace out as a workload: {0}")]
    Layout(String),
    #[error("traces are not written as {format}; expected one of {}", Format::list(&Format::WRITABLE))]
    Unwritable { format: Format },
    #[error("record {record} cannot be written as {format}: {why}")]
    Unrepresentable {
        /// Number of the record, from 1.
        record: u64,
        format: Format,
        why: String,
    },
    #[error("record {record} cannot be given an R_c: {why}")]
    Unrated {
        /// Number of the record, from 1.
        record: u64,
        why: String,
    },
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Where in an input a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordPlace {
    /// A line of a text trace, from 1.
    Line(u64),
    /// A record of a binary trace, from 1.
    Record(u64),
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordPlace::Line(n) => write!(f, "line {n}"),
            RecordPlace::Record(n) => write!(f, "record {n}"),
        }
    }
}

/// One broken rule: the field, what stood there, what belongs there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}, expected {expected}")]
pub struct Fault {
    pub field: &'static str,
    /// What was found, quoted and shortened.
    pub found: String,
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
