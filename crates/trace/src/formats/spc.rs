//! SPC (UMass) CSV: `asu,lba,size,r|w,time`, with optional further fields that are ignored.
//!
//! The address counts 512-byte sectors, the size counts bytes and the time is seconds with decimals.
//! Each application storage unit (ASU) is a device of its own.

use std::fmt::Write as _;

use super::fields::{Cursor, SECOND_SCALE, bytes, decimal_ns, sectors, uint32};
use super::raw::{RawRecord, check, read_or_write};
use crate::devices::DeviceNames;
use crate::error::Fault;
use crate::record::{Op, Record, SECTOR_BYTES};

pub(crate) fn parse(
    line: &[u8],
    _names: &mut DeviceNames,
    out: &mut RawRecord,
) -> Result<(), Fault> {
    let mut fields = Cursor::new(line);
    out.device = uint32("asu", fields.comma())?;
    out.offset = sectors("lba", fields.comma())?;
    out.length = bytes("size", fields.comma())?;
    let op = fields.comma();
    out.op = match op {
        b"r" | b"R" => Op::Read,
        b"w" | b"W" => Op::Write,
        _ => return Err(Fault::bytes("operation", op, "r or w")),
    };
    out.time_ns = decimal_ns("time", fields.comma(), SECOND_SCALE)?;
    check(out.op, out.offset, out.length)
}

/// Appends a line; `Err` says what the format lacks.
pub(crate) fn write(out: &mut String, time_ns: u64, record: &Record<'_>) -> Result<(), String> {
    let op = read_or_write(record.op, 'r', 'w')?;
    if !record.offset.is_multiple_of(SECTOR_BYTES) {
        return Err(format!(
            "offset {} is not a multiple of 512 bytes",
            record.offset
        ));
    }
    let (seconds, below) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    let lba = record.offset / SECTOR_BYTES;
    let _ = writeln!(
        out,
        "{},{lba},{},{op},{seconds}.{below:09}",
        record.device, record.length
    );
    Ok(())
}
