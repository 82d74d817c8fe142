//! SSDsim and MQSim ASCII: `time_ns device lba sectors op`, where op is 0 for a write and 1 for a read.

use std::fmt::Write as _;

use super::fields::{Cursor, sectors, uint, uint32};
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
    out.time_ns = uint("time", fields.word())?;
    out.device = uint32("device", fields.word())?;
    out.offset = sectors("lba", fields.word())?;
    out.length = sectors("size", fields.word())?;
    let op = fields.word();
    out.op = match op {
        b"0" => Op::Write,
        b"1" => Op::Read,
        _ => return Err(Fault::bytes("operation", op, "0 (write) or 1 (read)")),
    };
    fields.finish("five fields")?;
    check(out.op, out.offset, out.length)
}

/// Appends a line; `Err` says what the format lacks.
pub(crate) fn write(out: &mut String, time_ns: u64, record: &Record<'_>) -> Result<(), String> {
    let op = read_or_write(record.op, 1, 0)?;
    let (lba, count) = in_sectors(record)?;
    let _ = writeln!(out, "{time_ns} {} {lba} {count} {op}", record.device);
    Ok(())
}

/// First sector and number of sectors of a record, for the formats that count in sectors.
pub(crate) fn in_sectors(record: &Record<'_>) -> Result<(u64, u64), String> {
    for (what, bytes) in [("offset", record.offset), ("size", record.length)] {
        if bytes % SECTOR_BYTES != 0 {
            return Err(format!("{what} {bytes} is not a multiple of 512 bytes"));
        }
    }
    Ok((record.offset / SECTOR_BYTES, record.length / SECTOR_BYTES))
}
