//! [`TraceReader`]: the records of one trace, in batches.
//!
//! **Time.** Records are given in the order of the file. Times count from the first record. Real
//! traces step back a little (several processors write them): such a record keeps its place, its
//! time is raised to the largest seen before, and it is counted ([`ReadStats::clamped`]) together
//! with the largest step back. Times never decrease in what comes out.
//!
//! **Damage.** A malformed record ends the reading with an error; in lenient mode it is skipped and
//! counted, and the first few messages are kept. Damage below the records (a broken file, a cut
//! compressed stream, a bad seal) is an error in either mode.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::coalesce::Coalescer;
use crate::devices::DeviceNames;
use crate::digests::{Digest, Values, derived_digest};
use crate::error::{Error, Fault, Result, excerpt};
use crate::formats::native::{MAGIC, NativeReader, NativeSourceBytes};
use crate::formats::{Format, Line, Parse, RawRecord, detect};
use crate::input::{Compression, Input, Lines, Pieces, STDIN};
use crate::record::{Batch, NO_CONTENT};
use crate::recorded::Records;
use crate::stop::Stop;

/// Records of one batch of a trace that is not native,
const BATCH_RECORDS: usize = 4096;

/// or value ids, whichever is reached first.
const BATCH_VALUES: usize = 1 << 16;

/// How many messages about skipped records are kept.
const KEPT_MESSAGES: usize = 5;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadOptions {
    /// The format; `None` recognises it by content.
    pub format: Option<Format>,
    /// Skip and count malformed records instead of stopping at the first.
    pub lenient: bool,
    /// Join records that were one request: those that continue the record before them, of the same device and
    /// operation, at most so many nanoseconds after the first of them; `None` leaves records as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coalesce_ns: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReadStats {
    /// Records given out.
    pub records: u64,
    /// Records that became part of the one before them, when asked for.
    pub coalesced: u64,
    /// Records whose time was below that of an earlier one and was raised.
    pub clamped: u64,
    /// The largest such step back, in nanoseconds.
    pub largest_step_back_ns: u64,
    /// Events that break no rule and are no requests, as those of other actions than the one chosen
    /// (blkparse), other SCSI commands, or without an operation (SYSTOR).
    pub passed_over: u64,
    /// Malformed records skipped in lenient mode.
    pub skipped: u64,
    /// What was wrong with the first of them.
    pub skipped_messages: Vec<String>,
}

pub struct TraceReader {
    path: String,
    format: Format,
    lenient: bool,
    source: RecordSource,
    coalescer: Option<Coalescer>,
    stats: ReadStats,
    stop: Stop,
}

enum RecordSource {
    Stream(Box<Stream>),
    Native(Box<NativeReader>),
    Made(Made),
    Recorded(Recorded),
}

/// Records in memory.
struct Recorded {
    records: Arc<Records>,
    /// The next batch.
    next: usize,
    names: DeviceNames,
}

impl Recorded {
    fn next_batch(&mut self, batch: &mut Batch) -> bool {
        let next = self.records.batches.get(self.next);
        match next {
            Some(next) => batch.copy_from(next),
            None => batch.clear(),
        }
        self.next += usize::from(next.is_some());
        next.is_some()
    }
}

/// Records that a model makes.
struct Made {
    next: Box<dyn FnMut(&mut Batch) -> bool + Send>,
    identity: [u8; 32],
    names: DeviceNames,
    values: u32,
}

impl Made {
    fn next_batch(&mut self, batch: &mut Batch) -> bool {
        let more = (self.next)(batch);
        let last = batch.values.iter().max();
        self.values = self.values.max(last.map_or(0, |&value| value + 1));
        more
    }
}

/// Text, or binary records, parsed piece by piece.
struct Stream {
    pieces: Pieces,
    parser: Box<dyn Parse>,
    raw: RawRecord,
    names: DeviceNames,
    values: Values,
    clock: Clock,
}

/// Makes absolute times relative to the first and never decreasing.
#[derive(Default)]
pub(crate) struct Clock {
    origin_ns: Option<u64>,
    latest_ns: u64,
}

impl Clock {
    pub(crate) fn relative(&mut self, time_ns: u64, stats: &mut ReadStats) -> u64 {
        let origin_ns = *self.origin_ns.get_or_insert_with(|| {
            self.latest_ns = time_ns;
            time_ns
        });
        if time_ns < self.latest_ns {
            stats.clamped += 1;
            stats.largest_step_back_ns = stats.largest_step_back_ns.max(self.latest_ns - time_ns);
        }
        self.latest_ns = self.latest_ns.max(time_ns);
        self.latest_ns - origin_ns
    }
}

impl TraceReader {
    /// Opens a file; the path `-` is standard input.
    ///
    /// # Errors
    /// When the file cannot be read, is empty, or fits no format.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        let name = path.as_ref().display().to_string();
        if name == STDIN {
            return Self::from_reader("standard input", io::stdin(), options);
        }
        let mut file = File::open(&path).map_err(|source| Error::Open {
            path: name.clone(),
            source,
        })?;
        let unreadable = |source| Error::Read {
            path: name.clone(),
            byte: 0,
            source,
        };
        let mut head = Vec::new();
        file.by_ref()
            .take(MAGIC.len() as u64)
            .read_to_end(&mut head)
            .map_err(unreadable)?;
        if head != MAGIC {
            // A pipe has no beginning to return to, so what was read is put in front again.
            return Self::from_reader(&name, io::Cursor::new(head).chain(file), options);
        }
        file.rewind().map_err(unreadable)?;
        Self::from_native(name, NativeSourceBytes::File(file), options)
    }

    /// Reads a trace from a stream, which must not be a native one: that is read from its end.
    pub fn from_reader(
        name: &str,
        stream: impl Read + Send + 'static,
        options: &ReadOptions,
    ) -> Result<Self> {
        let lines = Lines::new(Input::new(name.to_owned(), stream)?)?;
        let found = detect::binary(lines.whole_head());
        let (head, complete) = lines.head();
        let format = match (found, options.format) {
            (Some(Format::Native), _) | (None, None) => {
                found.or_else(|| detect::text(head, complete))
            }
            (_, given) => given.or(found),
        };
        let Some(format) = format else {
            let first = head.split(|&b| b == b'\n').next().unwrap_or_default();
            return Err(Error::Unrecognised {
                path: name.to_owned(),
                found: excerpt(first),
            });
        };
        let format = format.settled(head);
        let Some(parser) = format.parser(lines.whole_head()) else {
            return Err(Error::Native {
                path: name.to_owned(),
                what: match found {
                    Some(Format::Native) => {
                        "native traces are read from an uncompressed file, not from a \
                                stream or through a decompressor"
                    }
                    _ => "it does not begin with 'PAR1'",
                }
                .to_owned(),
            });
        };
        let pieces = match format.record_bytes(lines.whole_head()) {
            Some(record_bytes) => Pieces::Records(lines.into_records(record_bytes)),
            None => Pieces::Lines(lines),
        };
        let stream = Stream {
            pieces,
            parser,
            raw: RawRecord::default(),
            names: DeviceNames::new(format.name_style()),
            values: Values::default(),
            clock: Clock::default(),
        };
        let source = RecordSource::Stream(Box::new(stream));
        Ok(Self::over(name.to_owned(), format, source, options))
    }

    fn over(path: String, format: Format, source: RecordSource, options: &ReadOptions) -> Self {
        TraceReader {
            path,
            format,
            lenient: options.lenient,
            source,
            coalescer: options.coalesce_ns.map(Coalescer::new),
            stats: ReadStats::default(),
            stop: Stop::default(),
        }
    }

    /// Reads a trace of any format from memory.
    pub fn from_bytes(name: &str, bytes: impl Into<Bytes>, options: &ReadOptions) -> Result<Self> {
        let bytes = bytes.into();
        if bytes.starts_with(&MAGIC) {
            return Self::from_native(name.to_owned(), NativeSourceBytes::Memory(bytes), options);
        }
        Self::from_reader(name, io::Cursor::new(bytes), options)
    }

    fn from_native(path: String, bytes: NativeSourceBytes, options: &ReadOptions) -> Result<Self> {
        if let Some(format) = options.format.filter(|&format| format != Format::Native) {
            return Err(Error::Native {
                path,
                what: format!("it is a Parquet file, expected the format {format}"),
            });
        }
        let native = NativeReader::open(path.clone(), bytes)?;
        let source = RecordSource::Native(Box::new(native));
        Ok(Self::over(path, Format::Native, source, options))
    }

    /// Records that a model makes: `next` replaces the contents of a batch and answers false at the
    /// end. Their times count from 0 and never decrease, their device is number 0, their value ids are
    /// dense in order of first appearance. `identity` stands for the checksum of a file: whatever
    /// determines the records.
    pub fn made(
        name: impl Into<String>,
        identity: [u8; 32],
        next: Box<dyn FnMut(&mut Batch) -> bool + Send>,
    ) -> Self {
        let source = RecordSource::Made(Made {
            next,
            identity,
            names: DeviceNames::new(Format::Made.name_style()),
            values: 0,
        });
        Self::over(name.into(), Format::Made, source, &ReadOptions::default())
    }

    pub fn recorded(records: Arc<Records>) -> Self {
        let (path, stats) = (records.name.clone(), records.stats.clone());
        let source = RecordSource::Recorded(Recorded {
            records,
            next: 0,
            names: DeviceNames::new(Format::Made.name_style()),
        });
        TraceReader {
            stats,
            ..Self::over(path, Format::Made, source, &ReadOptions::default())
        }
    }

    /// The same reader, which joins records as `options` say; one that was opened with them does so already.
    pub fn coalescing(self, options: &ReadOptions) -> Self {
        TraceReader {
            coalescer: options.coalesce_ns.map(Coalescer::new),
            ..self
        }
    }

    /// The same reader, which stops with an error when it is asked to.
    pub fn stopped_by(self, stop: &Stop) -> Self {
        TraceReader {
            stop: stop.clone(),
            ..self
        }
    }

    /// Replaces the contents of `batch` with the next records; false, and no record, at the end.
    ///
    /// # Errors
    /// At a malformed record (unless lenient), when the input cannot be read on, and when it was asked to stop.
    pub fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        if self.stop.is_asked() {
            return Err(Error::Interrupted);
        }
        let TraceReader {
            source,
            stats,
            lenient,
            ..
        } = self;
        let mut joined = 0;
        let mut next = |batch: &mut Batch| source.next_batch(batch, *lenient, stats);
        let more = match &mut self.coalescer {
            None => next(batch)?,
            Some(coalescer) => coalescer.next_batch(batch, &mut joined, next)?,
        };
        self.stats.coalesced += joined;
        self.stats.records += batch.len() as u64;
        if !more && self.stats.records == 0 {
            return Err(Error::NoRecords {
                path: self.path.clone(),
                skipped: self.stats.skipped,
                passed_over: self.stats.passed_over,
            });
        }
        Ok(more)
    }

    /// Name of the input, as errors give it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The format, given or recognised.
    pub fn format(&self) -> Format {
        self.format
    }

    pub fn compression(&self) -> Compression {
        match &self.source {
            RecordSource::Stream(stream) => stream.pieces.input().compression(),
            RecordSource::Native(_) | RecordSource::Made(_) | RecordSource::Recorded(_) => {
                Compression::None
            }
        }
    }

    /// Counts up to the last batch.
    pub fn stats(&self) -> &ReadStats {
        &self.stats
    }

    /// The first record's time on the trace's own clock, in nanoseconds; 0 before the first batch of
    /// a text trace.
    pub fn origin_ns(&self) -> u64 {
        match &self.source {
            RecordSource::Stream(stream) => stream.clock.origin_ns.unwrap_or(0),
            RecordSource::Native(native) => native.origin_ns(),
            RecordSource::Made(_) | RecordSource::Recorded(_) => 0,
        }
    }

    /// Names of the devices seen so far.
    pub fn device_names(&self) -> &DeviceNames {
        match &self.source {
            RecordSource::Stream(stream) => &stream.names,
            RecordSource::Native(native) => native.names(),
            RecordSource::Made(made) => &made.names,
            RecordSource::Recorded(recorded) => &recorded.names,
        }
    }

    /// Number of value ids: of a native trace all, of any other those given so far.
    pub fn value_count(&self) -> u32 {
        match &self.source {
            RecordSource::Stream(stream) => stream.values.len(),
            RecordSource::Native(native) => native.values(),
            RecordSource::Made(made) => made.values,
            RecordSource::Recorded(recorded) => recorded.records.values,
        }
    }

    /// The digest of a value id: the trace's own, or where there are ids only the [`derived_digest`].
    pub fn digest(&self, value: u32) -> Digest {
        match &self.source {
            RecordSource::Stream(stream) => stream.values.digest(value),
            RecordSource::Native(_) | RecordSource::Made(_) | RecordSource::Recorded(_) => None,
        }
        .unwrap_or_else(|| derived_digest(value))
    }

    /// Bytes of the stored input taken so far; all of them once the last batch was read.
    pub fn stored_bytes(&self) -> u64 {
        match &self.source {
            RecordSource::Stream(stream) => stream.pieces.input().stored_bytes(),
            RecordSource::Native(native) => native.stored_bytes(),
            RecordSource::Made(_) | RecordSource::Recorded(_) => 0,
        }
    }

    /// SHA-256 of the input as stored; of all of it once the last batch was read.
    pub fn sha256(&self) -> [u8; 32] {
        match &self.source {
            RecordSource::Stream(stream) => stream.pieces.input().sha256(),
            RecordSource::Native(native) => native.sha256(),
            RecordSource::Made(made) => made.identity,
            RecordSource::Recorded(recorded) => recorded.records.identity,
        }
    }

    /// Whether it can go back to the first record. Only native traces and those in memory can: the others may come
    /// from a pipe.
    pub(crate) fn can_rewind(&self) -> bool {
        matches!(
            self.source,
            RecordSource::Native(_) | RecordSource::Recorded(_)
        )
    }

    /// Back to the first record, where that can be done.
    pub(crate) fn rewind(&mut self) -> bool {
        if let Some(coalescer) = &mut self.coalescer {
            coalescer.rewind();
        }
        match &mut self.source {
            RecordSource::Stream(_) | RecordSource::Made(_) => false,
            RecordSource::Native(native) => {
                native.rewind();
                self.stats = ReadStats::default();
                true
            }
            RecordSource::Recorded(recorded) => {
                recorded.next = 0;
                self.stats = recorded.records.stats.clone();
                true
            }
        }
    }
}

impl RecordSource {
    /// Replaces the contents of `batch` with the next records as the trace has them; false at the end.
    fn next_batch(
        &mut self,
        batch: &mut Batch,
        lenient: bool,
        stats: &mut ReadStats,
    ) -> Result<bool> {
        match self {
            RecordSource::Stream(stream) => stream.fill(batch, lenient, stats),
            RecordSource::Native(native) => native.next_batch(batch),
            RecordSource::Made(made) => Ok(made.next_batch(batch)),
            RecordSource::Recorded(recorded) => Ok(recorded.next_batch(batch)),
        }
    }
}

impl Stream {
    fn fill(&mut self, batch: &mut Batch, lenient: bool, stats: &mut ReadStats) -> Result<bool> {
        batch.clear();
        self.raw.digests.clear();
        while batch.len() < BATCH_RECORDS && self.raw.digests.len() < BATCH_VALUES {
            let Some(piece) = self.pieces.next_piece()? else {
                break;
            };
            let first_value = self.raw.digests.len();
            self.raw.flush_first = false;
            match self.parser.parse(piece, &mut self.names, &mut self.raw) {
                Ok(Line::Record) => {}
                Ok(Line::PassedOver) => {
                    stats.passed_over += 1;
                    continue;
                }
                Ok(Line::Frame) => continue,
                Err(fault) => {
                    self.raw.digests.truncate(first_value);
                    self.malformed(fault, lenient, stats)?;
                    continue;
                }
            }
            let raw = &self.raw;
            let has_content = raw.digests.len() > first_value;
            let time_ns = self.clock.relative(raw.time_ns, stats);
            if raw.flush_first {
                batch.push_flush(time_ns, raw.device);
            }
            batch.time_ns.push(time_ns);
            batch.device.push(raw.device);
            batch.op.push(raw.op);
            batch.offset.push(raw.offset);
            batch.length.push(raw.length);
            batch.first_value.push(if has_content {
                first_value as u32
            } else {
                NO_CONTENT
            });
        }
        self.values
            .intern_all(&self.raw.digests, &mut batch.values)
            .map_err(|fault| self.fault_here(fault))?;
        Ok(!batch.is_empty())
    }

    /// A fault of the piece read last, as an error.
    fn fault_here(&self, fault: Fault) -> Error {
        Error::Malformed {
            path: self.pieces.input().path().to_owned(),
            place: self.pieces.place(),
            fault,
        }
    }

    fn malformed(&self, fault: Fault, lenient: bool, stats: &mut ReadStats) -> Result<()> {
        if !lenient {
            return Err(self.fault_here(fault));
        }
        stats.skipped += 1;
        if stats.skipped_messages.len() < KEPT_MESSAGES {
            let place = self.pieces.place();
            stats.skipped_messages.push(format!("{place}: {fault}"));
        }
        Ok(())
    }
}
