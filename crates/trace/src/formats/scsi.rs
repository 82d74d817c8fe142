//! SCSI commands as requests, for the traces that record commands.

use super::raw::{Line, RawRecord, check};
use crate::error::Fault;
use crate::record::{Op, SECTOR_BYTES};

/// What a command of this operation code asks of the device, if it is one of reading, writing,
/// discarding or making durable.
fn op_of(code: u16) -> Option<Op> {
    match code {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(Op::Read),
        0x0a | 0x2a | 0x8a | 0xaa => Some(Op::Write),
        0x42 => Some(Op::Trim),
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

/// Fills in operation and address of a command on the blocks from `block` on. Commands of other kinds
/// and those that move no byte are passed over; whatever range a flush names, it flushes all.
pub(crate) fn command(
    code: u16,
    block: u64,
    length: u64,
    out: &mut RawRecord,
) -> Result<Line, Fault> {
    let Some(op) = op_of(code) else {
        return Ok(Line::PassedOver);
    };
    if op == Op::Flush {
        out.set_flush();
        return Ok(Line::Record);
    }
    if length == 0 {
        return Ok(Line::PassedOver);
    }
    if op != Op::Trim && !length.is_multiple_of(SECTOR_BYTES) {
        return Err(Fault::value(
            "size",
            length,
            "a multiple of 512 bytes for a read or write",
        ));
    }
    out.op = op;
    out.offset = block
        .checked_mul(SECTOR_BYTES)
        .ok_or_else(|| Fault::value("block", block, "a number of 512-byte sectors below 2^55"))?;
    out.length = length;
    check(op, out.offset, length)?;
    Ok(Line::Record)
}
