//! FIU IODedup text: `timestamp_ns pid process lba sectors R|W major minor digests`.
//!
//! The digests are 32 hexadecimal digits for each started 4 KiB, or 32 for each 512-byte sector, all
//! concatenated. Sector digests of one 4 KiB chunk become one digest
//! ([`crate::digests::of_sectors`]). Process names may contain blanks: the fields before are counted
//! from the left and those after from the right.

use std::fmt::Write as _;

use super::fields::{Cursor, hex16, major_minor, sectors, uint};
use super::raw::{RawRecord, check, read_or_write};
use crate::devices::{self, DeviceNames};
use crate::digests::{Digest, of_sectors};
use crate::error::Fault;
use crate::record::{Op, Record, SECTOR_BYTES, chunks};

/// Hexadecimal digits of one digest.
const DIGEST_DIGITS: usize = 32;

/// Sectors of one 4 KiB chunk.
const CHUNK_SECTORS: usize = 8;

pub(crate) fn parse(
    line: &[u8],
    _names: &mut DeviceNames,
    out: &mut RawRecord,
) -> Result<(), Fault> {
    let mut fields = Cursor::new(line);
    out.time_ns = uint("timestamp", fields.word())?;
    let pid = fields.word();
    let digests = fields.last_word();
    let minor = fields.last_word();
    let major = fields.last_word();
    let op = fields.last_word();
    let count = fields.last_word();
    let lba = fields.last_word();
    let process = fields.rest();
    out.op = match op {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        _ => return Err(Fault::bytes("operation", op, "R or W")),
    };
    uint("pid", pid)?;
    if process.is_empty() {
        return Err(Fault::bytes(
            "process",
            process,
            "a name, nine fields in all",
        ));
    }
    out.device = major_minor(major, minor)?;
    out.offset = sectors("lba", lba)?;
    out.length = sectors("sector count", count)?;
    check(out.op, out.offset, out.length)?;
    parse_digests(digests, out)
}

#[inline]
fn parse_digests(text: &[u8], out: &mut RawRecord) -> Result<(), Fault> {
    let sectors = (out.length / SECTOR_BYTES) as usize;
    let pages = chunks(out.length) as usize;
    if text.len() == pages * DIGEST_DIGITS {
        for digits in text.chunks_exact(DIGEST_DIGITS) {
            out.digests
                .push(hex16(digits).ok_or_else(|| bad_digits(text))?);
        }
        return Ok(());
    }
    if text.len() != sectors * DIGEST_DIGITS {
        return Err(Fault::value(
            "digest",
            format!("{} characters long for {sectors} sectors", text.len()),
            "32 hexadecimal digits for each started 4 KiB or for each sector",
        ));
    }
    for digits in text.chunks(CHUNK_SECTORS * DIGEST_DIGITS) {
        let mut joined = [0; CHUNK_SECTORS * 16];
        let count = digits.len() / DIGEST_DIGITS;
        for (bytes, digits) in joined
            .chunks_exact_mut(16)
            .zip(digits.chunks_exact(DIGEST_DIGITS))
        {
            bytes.copy_from_slice(&hex16(digits).ok_or_else(|| bad_digits(text))?);
        }
        out.digests.push(of_sectors(&joined[..count * 16]));
    }
    Ok(())
}

fn bad_digits(text: &[u8]) -> Fault {
    Fault::bytes("digest", text, "hexadecimal digits only")
}

/// Appends a line; `Err` says what the format lacks.
pub(crate) fn write(
    out: &mut String,
    time_ns: u64,
    record: &Record<'_>,
    digest: impl Fn(u32) -> Digest,
) -> Result<(), String> {
    let op = read_or_write(record.op, 'R', 'W')?;
    let (lba, count) = super::ssdsim::in_sectors(record)?;
    let Some(content) = record.content else {
        return Err("the record has no content and the format demands a digest".to_owned());
    };
    let (major, minor) = devices::major_minor(record.device);
    let _ = write!(out, "{time_ns} 0 - {lba} {count} {op} {major} {minor} ");
    for &value in content {
        out.push_str(&crate::input::hex(&digest(value)));
    }
    out.push('\n');
    Ok(())
}
