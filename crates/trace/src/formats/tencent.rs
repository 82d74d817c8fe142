//! Tencent block storage, CSV: `timestamp_s,offset,size,0|1,volume`.
//!
//! Offset and size count 512-byte sectors, 0 is a read and 1 a write, and times are whole seconds
//! since 1970: requests of one second share their time and keep their order. There is no header.

use super::fields::{Cursor, seconds, sectors, uint32};
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
    out.time_ns = seconds("timestamp", fields.comma())?;
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
