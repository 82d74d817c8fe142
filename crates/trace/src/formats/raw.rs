//! What a line says before it becomes a record: absolute time, digests instead of value ids.

use crate::devices::DeviceNames;
use crate::digests::Digest;
use crate::error::Fault;
use crate::formats::blkparse::Action;
use crate::formats::{
    Format, alibaba, blkparse, cloudphysics, disksim, fio, fiu, msr, spc, ssdsim, systor, tencent,
    vscsi,
};
use crate::record::{MAX_TRANSFER_BYTES, Op};

/// One parsed line; reused from line to line.
#[derive(Debug)]
pub(crate) struct RawRecord {
    /// Absolute nanoseconds on the trace's own clock.
    pub time_ns: u64,
    pub device: u32,
    pub op: Op,
    pub offset: u64,
    pub length: u64,
    /// Whether a flush of the same time and device goes before; false when a parser is called.
    pub flush_first: bool,
    /// Digests of this and earlier records: a parser appends one a chunk of 4 KiB, or none at all.
    pub digests: Vec<Digest>,
}

impl Default for RawRecord {
    fn default() -> Self {
        RawRecord {
            time_ns: 0,
            device: 0,
            op: Op::Read,
            offset: 0,
            length: 0,
            flush_first: false,
            digests: Vec::new(),
        }
    }
}

impl RawRecord {
    /// Makes it a flush, which has no address.
    pub(crate) fn set_flush(&mut self) {
        (self.op, self.offset, self.length) = (Op::Flush, 0, 0);
    }
}

/// What a line that breaks no rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// A request, now in the `RawRecord`.
    Record,
    /// An event that is no request of the trace, which is counted.
    PassedOver,
    /// What frames the records and says nothing by itself: a header, a summary.
    Frame,
}

/// A parser with what it must remember from line to line. A line of a binary format is one record.
pub(crate) trait Parse: Send {
    /// Parses one line into `out`. After an error, digests may have been appended.
    fn parse(
        &mut self,
        line: &[u8],
        names: &mut DeviceNames,
        out: &mut RawRecord,
    ) -> Result<Line, Fault>;
}

/// A parser for which each line is a record and says all by itself.
struct EveryLine(fn(&[u8], &mut DeviceNames, &mut RawRecord) -> Result<(), Fault>);

impl Parse for EveryLine {
    #[inline]
    fn parse(
        &mut self,
        line: &[u8],
        names: &mut DeviceNames,
        out: &mut RawRecord,
    ) -> Result<Line, Fault> {
        (self.0)(line, names, out)?;
        Ok(Line::Record)
    }
}

/// A parser for which each line says all by itself.
struct AnyLine(fn(&[u8], &mut RawRecord) -> Result<Line, Fault>);

impl Parse for AnyLine {
    #[inline]
    fn parse(
        &mut self,
        line: &[u8],
        _names: &mut DeviceNames,
        out: &mut RawRecord,
    ) -> Result<Line, Fault> {
        (self.0)(line, out)
    }
}

impl Format {
    /// A parser of an input that begins with `head`; the native format has none.
    pub(crate) fn parser(self, head: &[u8]) -> Option<Box<dyn Parse>> {
        Some(match self {
            Format::Fiu => Box::new(EveryLine(fiu::parse)),
            Format::Msr => Box::new(EveryLine(msr::parse)),
            Format::Spc => Box::new(EveryLine(spc::parse)),
            Format::Alibaba => Box::new(EveryLine(alibaba::parse)),
            Format::Tencent => Box::new(EveryLine(tencent::parse)),
            Format::Systor => Box::new(AnyLine(systor::parse)),
            Format::Cloudphysics => Box::new(AnyLine(cloudphysics::parse)),
            Format::Disksim => Box::new(EveryLine(disksim::parse)),
            Format::Ssdsim => Box::new(EveryLine(ssdsim::parse)),
            Format::Blkparse(None) => Box::new(blkparse::BlkparseParser::new(Action::choose(head))),
            Format::Blkparse(Some(action)) => Box::new(blkparse::BlkparseParser::new(action)),
            Format::Fio => Box::new(fio::FioParser::default()),
            Format::Vscsi => Box::new(AnyLine(vscsi::Version::of(head).parser())),
            Format::Native | Format::Made => return None,
        })
    }

    /// The size of a record in bytes in an input that begins with `head`, for binary formats.
    pub(crate) fn record_bytes(self, head: &[u8]) -> Option<usize> {
        (self == Format::Vscsi).then(|| vscsi::Version::of(head).record_bytes())
    }
}

/// What stands for an operation in a format without trims and flushes; `Err` says what it lacks.
pub(super) fn read_or_write<T>(op: Op, read: T, write: T) -> Result<T, String> {
    match op {
        Op::Read => Ok(read),
        Op::Write => Ok(write),
        Op::Trim | Op::Flush => Err("the format knows reads and writes only".to_owned()),
    }
}

/// The rules every format shares: a transfer has a length, ends within the address space and is not
/// absurdly long; a flush has neither offset nor length.
pub(crate) fn check(op: Op, offset: u64, length: u64) -> Result<(), Fault> {
    if op == Op::Flush {
        if offset != 0 || length != 0 {
            return Err(Fault::value(
                "length of a flush",
                length,
                "offset and length 0",
            ));
        }
        return Ok(());
    }
    if length == 0 {
        return Err(Fault::value("size", 0, "at least one byte or sector"));
    }
    if offset.checked_add(length).is_none() {
        return Err(Fault::value(
            "offset",
            offset,
            "offset + size below 2^64 bytes",
        ));
    }
    if op != Op::Trim && length > MAX_TRANSFER_BYTES {
        return Err(Fault::value(
            "size",
            length,
            "a read or write of at most 2^30 bytes",
        ));
    }
    Ok(())
}
