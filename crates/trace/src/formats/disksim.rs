//! DiskSim ASCII: `time_ms device block blocks flags`.
//!
//! Times are milliseconds with decimals, blocks are 512-byte sectors, and bit 0 of the flags says
//! read; the other bits are hints of the simulator that do not change what is asked.

use std::fmt::Write as _;

use super::fields::{Cursor, decimal_ns, sectors, uint32};
use super::raw::{RawRecord, check, read_or_write};
use crate::devices::DeviceNames;
use crate::error::Fault;
use crate::record::{Op, Record};

/// A millisecond is 10^6 ns.
const MILLISECOND_SCALE: usize = 6;

pub(crate) fn parse(
    line: &[u8],
    _names: &mut DeviceNames,
    out: &mut RawRecord,
) -> Result<(), Fault> {
    let mut fields = Cursor::new(line);
    out.time_ns = decimal_ns("time", fields.word(), MILLISECOND_SCALE)?;
    out.device = uint32("device", fields.word())?;
    out.offset = sectors("block", fields.word())?;
    out.length = sectors("size", fields.word())?;
    let flags = uint32("flags", fields.word())?;
    out.op = if flags & 1 == 1 { Op::Read } else { Op::Write };
    fields.finish("five fields")?;
    check(out.op, out.offset, out.length)
}

/// Appends a line; `Err` says what the format lacks. The time always has a decimal point, which is
/// what tells the format from SSDsim's.
pub(crate) fn write(out: &mut String, time_ns: u64, record: &Record<'_>) -> Result<(), String> {
    let flags = read_or_write(record.op, 1, 0)?;
    let (lba, count) = super::ssdsim::in_sectors(record)?;
    let (ms, below) = (time_ns / 1_000_000, time_ns % 1_000_000);
    let _ = writeln!(
        out,
        "{ms}.{below:06} {} {lba} {count} {flags}",
        record.device
    );
    Ok(())
}
