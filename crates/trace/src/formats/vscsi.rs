//! VMware vscsiStats: binary records of SCSI commands, packed and little-endian.
//!
//! | version | fields |
//! |---|---|
//! | 1, 32 bytes | u32 serial, u32 length, u32 segments, u16 code, u16 version, u64 block, u64 time |
//! | 2, 40 bytes | u16 code, u16 version, u32 serial, u32 length, u32 segments, u64 block, u64 time, u64 response |
//!
//! The version stands in the upper byte of its field. Times are microseconds, lengths bytes, blocks
//! have 512 bytes. A file has records of one version. One file is one virtual disk.

use super::raw::{Line, RawRecord};
use super::scsi;
use crate::error::Fault;

/// Records that are looked at to recognise the format.
const SAMPLE_RECORDS: usize = 64;

/// Nanoseconds of one tick of the clock.
const TICK_NS: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

impl Version {
    /// The version of an input that begins with `head`, if more than half of its first records are
    /// of one.
    pub(crate) fn recognise(head: &[u8]) -> Option<Version> {
        [Version::One, Version::Two].into_iter().find(|version| {
            let records = head.chunks_exact(version.record_bytes());
            let count = records.len().min(SAMPLE_RECORDS);
            let fitting = records
                .take(count)
                .filter(|record| version.fits(record))
                .count();
            fitting * 2 > count
        })
    }

    /// As [`Version::recognise`], for an input that was said to be of this format.
    pub(crate) fn of(head: &[u8]) -> Version {
        Version::recognise(head).unwrap_or(Version::One)
    }

    pub(crate) fn record_bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    pub(crate) fn parser(self) -> fn(&[u8], &mut RawRecord) -> Result<Line, Fault> {
        match self {
            Version::One => |record, out| parse(Version::One, record, out),
            Version::Two => |record, out| parse(Version::Two, record, out),
        }
    }

    fn number(self) -> u16 {
        match self {
            Version::One => 1,
            Version::Two => 2,
        }
    }

    /// Where a record has operation code, version, length, block and time.
    fn places(self) -> [usize; 5] {
        match self {
            Version::One => [12, 14, 4, 16, 24],
            Version::Two => [0, 2, 8, 16, 24],
        }
    }

    /// Whether a whole record has the right version and an operation code of one byte.
    fn fits(self, record: &[u8]) -> bool {
        let [code, version, ..] = self.places();
        u16_at(record, version) >> 8 == self.number() && u16_at(record, code) <= 0xff
    }
}

fn parse(layout: Version, record: &[u8], out: &mut RawRecord) -> Result<Line, Fault> {
    if record.len() != layout.record_bytes() {
        return Err(Fault::value(
            "the last record",
            format_args!("{} bytes long", record.len()),
            match layout {
                Version::One => "32 bytes",
                Version::Two => "40 bytes",
            },
        ));
    }
    let [code, version, length, block, time] = layout.places();
    let found = u16_at(record, version) >> 8;
    if found != layout.number() {
        return Err(Fault::value(
            "version",
            found,
            match layout {
                Version::One => "1, as in the first records",
                Version::Two => "2, as in the first records",
            },
        ));
    }
    let time_us = u64_at(record, time);
    out.time_ns = time_us.checked_mul(TICK_NS).ok_or_else(|| {
        Fault::value(
            "time",
            time_us,
            "microseconds whose nanoseconds stay below 2^64",
        )
    })?;
    out.device = 0;
    let length = u64::from(u32_at(record, length));
    scsi::command(u16_at(record, code), u64_at(record, block), length, out)
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(record[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
}
