//! Tencent block storage, CSV: `timestamp_s,offset,size,0|1,volume`.
//!
//! Offset and size count 512-byte sectors, 0 is a read and 1 a write, and times are whole seconds
//! since 1970: requests of one second share their time and keep their order. There is no header.

use super::fields::{Cursor, sectors, uint, uint32};
use super::raw::{RawRecord, check};
use crate::devices::DeviceNames;
use crate::error::Fault;
use crate::record::Op;

/// Nanoseconds of one tick of the clock.
const TICK_NS: u64 = 1_000_000_000;

pub(crate) fn parse(
    line: &[u8],
    _names: &mut DeviceNames,
    out: &mut RawRecord,
) -> Result<(), Fault> {
    let mut fields = Cursor::new(line);
    let timestamp = fields.comma();
    out.time_ns = uint("timestamp", timestamp)?
        .checked_mul(TICK_NS)
        .ok_or_else(|| {
            Fault::bytes(
                "timestamp",
                timestamp,
                "whole seconds whose nanoseconds stay below 2^64",
            )
        })?;
    out.offset = sectors("offset", fields.comma())?;
    out.length = sectors("size", fields.comma())?;
    let op = fields.comma();
    out.op = match op {
        b"0" => Op::Read,
        b"1" => Op::Write,
        _ => return Err(Fault::bytes("operation", op, "0 (read) or 1 (write)")),
    };
    out.device = uint32("volume", fields.comma())?;
    fields.finish("five fields")?;
    check(out.op, out.offset, out.length)
}
