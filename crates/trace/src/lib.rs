//! Block traces: formats -> records -> a workload in mapping units.
//!
//! | layer | what it does |
//! |---|---|
//! | [`input`] | opens a file or standard input, sees through gzip, xz and zstd, splits lines |
//! | [`formats`] | one file a format: text or binary records to records and back; the native columnar format |
//! | [`pages`] | the bytes that belong to the digests of a trace |
//! | [`byte_range`] | a range of bytes in terms of mapping units |
//! | [`digests`] | 16-byte page digests to dense value ids |
//! | `coalesce` | records that were one request become one again |
//! | [`reader`] | [`TraceReader`]: batches of [`Record`]s of any trace, times put in order |
//! | [`recorded`] | a trace in memory, of arrays of records |
//! | [`stop`] | how a reader is told to stop |
//! | [`workload`] | records to [`Request`]s in 4 KiB mapping units, and what the run needs to know before |
//! | [`overlay`] | content and delta ratios that a trace does not tell |
//! | [`info`] | what can be said about one trace |
//! | [`mod@convert`] | a trace in one format to the same trace in another |
//!
//! Every record of a trace is read, is counted as skipped (lenient mode), or stops the reading with
//! an error that names file, line, field, what was found and what was expected.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

pub mod byte_range;
mod coalesce;
pub mod convert;
pub mod devices;
pub mod digests;
pub mod error;
pub mod formats;
pub mod info;
pub mod input;
pub mod output;
pub mod overlay;
pub mod pages;
pub mod reader;
pub mod record;
pub mod recorded;
pub mod stop;
pub mod workload;

pub use byte_range::ByteRange;
pub use convert::{ConvertOptions, ConvertReport, RateWrites, convert};
pub use devices::DeviceNames;
pub use error::{Error, Fault, RecordPlace, Result};
pub use formats::Format;
pub use formats::native::NativeFile;
pub use info::Info;
pub use input::Compression;
pub use output::{Existing, OutputError, OutputFile, OutputSet};
pub use overlay::{ContentModel, DeltaModel, FULL_RATIO, MakeOverlay, NamedOverlay, Overlay};
pub use pages::{PageSource, Pages, PagesWriter};
pub use reader::{ReadOptions, ReadStats, TraceReader};
pub use record::{Batch, NO_CONTENT, Op, Record, UNIT_BYTES};
pub use recorded::{Recorder, Records};
pub use stop::Stop;
pub use workload::{
    Access, AccessSummary, FirstPass, Join, MAX_UNITS, NativeSource, Request, RequestBlock,
    RequestSource, Summary, Workload, WorkloadOptions, for_each_access, for_each_record,
};
