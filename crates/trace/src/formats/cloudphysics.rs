//! CloudPhysics CSV: `version,time,op,size,lbn`, with a header.
//!
//! The text form of a vscsi trace: version 1 or 2, times in whole seconds, the SCSI operation code in
//! hexadecimal digits, the size in bytes and the address in 512-byte blocks. Requests of one second
//! share their time and keep their order. One file is one virtual disk.

use super::fields::{Cursor, bytes, seconds, uint};
use super::raw::{Line, RawRecord};
use super::scsi;
use crate::error::Fault;

const HEADER: &[u8] = b"version,time,op,size,lbn";

pub(crate) fn parse(line: &[u8], out: &mut RawRecord) -> Result<Line, Fault> {
    if line == HEADER {
        return Ok(Line::Frame);
    }
    let mut fields = Cursor::new(line);
    let version = fields.comma();
    if !matches!(version, b"1" | b"2") {
        return Err(Fault::bytes("version", version, "1 or 2"));
    }
    out.time_ns = seconds("time", fields.comma())?;
    let code = fields.comma();
    let code_number = operation_code(code)
        .ok_or_else(|| Fault::bytes("op", code, "a SCSI operation code in hexadecimal digits"))?;
    let length = bytes("size", fields.comma())?;
    let block = uint("lbn", fields.comma())?;
    fields.finish("five fields")?;
    out.device = 0;
    scsi::command(code_number, block, length, out)
}

fn operation_code(text: &[u8]) -> Option<u16> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    let digits = matches!(text.len(), 1 | 2) && text.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(text).ok().filter(|_| digits)?;
    u16::from_str_radix(text, 16).ok()
}
