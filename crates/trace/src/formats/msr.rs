//! MSR Cambridge CSV: `timestamp,host,disk,Read|Write,offset,size,response_time`.
//!
//! Timestamps are Windows FILETIME, counts of 100 ns; offset and size are bytes. The response time
//! must be a number and is not kept.

use std::fmt::Write as _;

use super::fields::{Cursor, bytes, ticks, uint};
use super::raw::{RawRecord, check, read_or_write};
use crate::devices::DeviceNames;
use crate::error::Fault;
use crate::record::{Op, Record};

/// Nanoseconds of one tick of the clock.
pub(crate) const TICK_NS: u64 = 100;

pub(crate) fn parse(
    line: &[u8],
    names: &mut DeviceNames,
    out: &mut RawRecord,
) -> Result<(), Fault> {
    let mut fields = Cursor::new(line);
    let filetime = "a FILETIME whose nanoseconds stay below 2^64";
    out.time_ns = ticks("timestamp", fields.comma(), TICK_NS, filetime)?;
    let host = fields.comma();
    let disk = fields.comma();
    let op = fields.comma();
    out.op = match op {
        b"Read" => Op::Read,
        b"Write" => Op::Write,
        _ if op.eq_ignore_ascii_case(b"read") => Op::Read,
        _ if op.eq_ignore_ascii_case(b"write") => Op::Write,
        _ => return Err(Fault::bytes("operation", op, "Read or Write")),
    };
    let disk_number = u16::try_from(uint("disk", disk)?)
        .map_err(|_| Fault::bytes("disk", disk, "a number below 65536"))?;
    out.offset = bytes("offset", fields.comma())?;
    out.length = bytes("size", fields.comma())?;
    uint("response time", fields.comma())?;
    fields.finish("seven fields")?;
    check(out.op, out.offset, out.length)?;
    out.device = names.intern_host(host, disk_number)?;
    Ok(())
}

/// Appends a line, with response time 0; `Err` says what the format lacks. A trace that names no
/// hosts is written as that of the host `host`.
pub(crate) fn write(
    out: &mut String,
    time_ns: u64,
    record: &Record<'_>,
    names: &DeviceNames,
) -> Result<(), String> {
    let op = read_or_write(record.op, "Read", "Write")?;
    let (host, disk) = names
        .host_disk(record.device)
        .unwrap_or(("host", record.device));
    if disk > u32::from(u16::MAX) {
        return Err(format!(
            "device {} is above 65535, the last disk number",
            record.device
        ));
    }
    let ticks = time_ns / TICK_NS;
    let _ = writeln!(
        out,
        "{ticks},{host},{disk},{op},{},{},0",
        record.offset, record.length
    );
    Ok(())
}
