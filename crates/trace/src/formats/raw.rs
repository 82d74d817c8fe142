//! What a line says before it becomes a record: absolute time, digests instead of value ids.

use crate::devices::DeviceNames;
use crate::digests::Digest;
use crate::error::Fault;
use crate::formats::{Format, disksim, fiu, msr, spc, ssdsim};
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
            digests: Vec::new(),
        }
    }
}

/// Parses one line into `out`. After an error, digests may have been appended.
pub(crate) type LineParser = fn(&[u8], &mut DeviceNames, &mut RawRecord) -> Result<(), Fault>;

impl Format {
    /// The parser of a text format; the native format has none.
    pub(crate) fn line_parser(self) -> Option<LineParser> {
        match self {
            Format::Fiu => Some(fiu::parse),
            Format::Msr => Some(msr::parse),
            Format::Spc => Some(spc::parse),
            Format::Disksim => Some(disksim::parse),
            Format::Ssdsim => Some(ssdsim::parse),
            Format::Native => None,
        }
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
