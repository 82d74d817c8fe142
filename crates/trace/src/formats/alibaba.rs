//! Alibaba block traces, CSV: `device,R|W,offset,length,timestamp_us`.
//!
//! Offset and length are bytes; times are microseconds since 1970. There is no header.

use super::fields::{Cursor, bytes, micros, uint32};
use super::raw::{RawRecord, check};
use crate::devices::DeviceNames;
use crate::error::Fault;
use crate::record::Op;

pub(crate) fn parse(
    line: &[u8],
    _names: &mut DeviceNames,
    out: &mut RawRecord,
) -> Result<(), Fault> {
    let mut fields = Cursor::new(line);
    out.device = uint32("device", fields.comma())?;
    let op = fields.comma();
    out.op = match op {
        b"R" => Op::Read,
        b"W" => Op::Write,
        _ => return Err(Fault::bytes("operation", op, "R or W")),
    };
    out.offset = bytes("offset", fields.comma())?;
    out.length = bytes("length", fields.comma())?;
    out.time_ns = micros("timestamp", fields.comma())?;
    fields.finish("five fields")?;
    check(out.op, out.offset, out.length)
}
