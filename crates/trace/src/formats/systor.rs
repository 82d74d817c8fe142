//! SYSTOR '17 CSV: `timestamp,response,R|W|,LUN,offset,size`, with a header.
//!
//! Times are seconds since 1970 with decimals; offset and size are bytes. The trace is published in
//! many files, and put together they have their header in the middle, so it is skipped wherever it
//! stands. A record with an empty operation is passed over. The response time must be a number and is
//! not kept.

use super::fields::{Cursor, SECOND_SCALE, bytes, decimal_ns, uint32};
use super::raw::{Line, RawRecord, check};
use crate::error::Fault;
use crate::record::Op;

const HEADER: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size";

pub(crate) fn parse(line: &[u8], out: &mut RawRecord) -> Result<Line, Fault> {
    if line == HEADER {
        return Ok(Line::Frame);
    }
    let mut fields = Cursor::new(line);
    out.time_ns = decimal_ns("timestamp", fields.comma(), SECOND_SCALE)?;
    decimal_ns("response time", fields.comma(), SECOND_SCALE)?;
    let op = fields.comma();
    out.device = uint32("LUN", fields.comma())?;
    out.offset = bytes("offset", fields.comma())?;
    out.length = bytes("size", fields.comma())?;
    fields.finish("six fields")?;
    out.op = match op {
        b"R" => Op::Read,
        b"W" => Op::Write,
        b"" => return Ok(Line::PassedOver),
        _ => return Err(Fault::bytes("operation", op, "R, W or nothing")),
    };
    check(out.op, out.offset, out.length)?;
    Ok(Line::Record)
}
