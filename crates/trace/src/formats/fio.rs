//! fio iolog, versions 2 and 3.
//!
//! The first line is `fio version 2 iolog` or the same with 3; put together logs have one in the
//! middle too. Then `file add`, `file open`, `file close`, which make no record, and
//! `file read|write|trim|sync|datasync|syncfs offset length`, in bytes. Version 3 has the time in
//! front of each line, in microseconds from the start of the run.
//!
//! Version 2 has **no times** but pauses: `file wait microseconds [length]`. A record's time is the
//! sum of the pauses before it, so the records between two pauses arrive together. Version 3 knows no
//! pauses; fio ignores them there, and so they are passed over, as is `sync_file_range`, which makes
//! nothing durable. Each file is a device. A file must have been added before it is used.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::fields::{Cursor, bytes, micros};
use super::raw::{Line, Parse, RawRecord, check};
use crate::devices::DeviceNames;
use crate::error::{Fault, excerpt};
use crate::record::{Op, Record};

/// Nanoseconds of one tick of the clock.
pub(crate) const TICK_NS: u64 = 1_000;

const VERSION_2: &[u8] = b"fio version 2 iolog";
const VERSION_3: &[u8] = b"fio version 3 iolog";

/// What a header begins with.
const HEADER_START: &[u8] = b"fio version ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IologVersion {
    /// With the pauses so far, in nanoseconds.
    Two {
        paused_ns: u64,
    },
    Three,
}

/// Parses a log.
#[derive(Debug, Default)]
pub(crate) struct FioParser {
    version: Option<IologVersion>,
    added: HashSet<u32>,
}

impl Parse for FioParser {
    fn parse(
        &mut self,
        line: &[u8],
        names: &mut DeviceNames,
        out: &mut RawRecord,
    ) -> Result<Line, Fault> {
        if line.starts_with(HEADER_START) {
            return self.header(line);
        }
        let Some(version) = self.version else {
            return Err(Fault::bytes(
                "the first line",
                line,
                "'fio version 2 iolog' or 'fio version 3 iolog'",
            ));
        };
        let mut fields = Cursor::new(line);
        out.time_ns = match version {
            IologVersion::Two { paused_ns } => paused_ns,
            IologVersion::Three => micros("time", fields.word())?,
        };
        let name = fields.word();
        let action = fields.word();
        match action {
            b"add" => {
                self.added.insert(names.intern_file(name)?);
                return frame(&fields);
            }
            b"open" | b"close" => {
                self.device(name, names)?;
                return frame(&fields);
            }
            b"wait" => return self.wait(&mut fields),
            _ => {}
        }
        out.device = self.device(name, names)?;
        let offset = bytes("offset", fields.word())?;
        let length = bytes("length", fields.word())?;
        fields.finish("a file, an action, offset and length")?;
        match action {
            b"read" => (out.op, out.offset, out.length) = (Op::Read, offset, length),
            b"write" => (out.op, out.offset, out.length) = (Op::Write, offset, length),
            b"trim" => (out.op, out.offset, out.length) = (Op::Trim, offset, length),
            b"sync" | b"datasync" | b"syncfs" => out.set_flush(),
            b"sync_file_range" => return Ok(Line::PassedOver),
            _ => return Err(Fault::bytes("action", action, "an action of fio's iologs")),
        }
        check(out.op, out.offset, out.length)?;
        Ok(Line::Record)
    }
}

impl FioParser {
    /// A header; a second one of version 2 leaves the clock as it is.
    fn header(&mut self, line: &[u8]) -> Result<Line, Fault> {
        let version = match (line, self.version) {
            (VERSION_2, Some(version @ IologVersion::Two { .. })) => version,
            (VERSION_2, _) => IologVersion::Two { paused_ns: 0 },
            (VERSION_3, _) => IologVersion::Three,
            _ => {
                return Err(Fault::value(
                    "version",
                    excerpt(line),
                    "'fio version 2 iolog' or 'fio version 3 iolog'",
                ));
            }
        };
        self.version = Some(version);
        Ok(Line::Frame)
    }

    /// The device of a file that was added.
    fn device(&self, name: &[u8], names: &mut DeviceNames) -> Result<u32, Fault> {
        let device = names.intern_file(name)?;
        if self.added.contains(&device) {
            return Ok(device);
        }
        Err(Fault::bytes("file", name, "one that was added before"))
    }

    fn wait(&mut self, fields: &mut Cursor<'_>) -> Result<Line, Fault> {
        let pause = fields.word();
        let pause_ns = micros("pause", pause)?;
        // The length says nothing here.
        fields.word();
        frame(fields)?;
        let Some(IologVersion::Two { paused_ns }) = &mut self.version else {
            return Ok(Line::PassedOver);
        };
        *paused_ns = paused_ns.checked_add(pause_ns).ok_or_else(|| {
            Fault::bytes(
                "pause",
                pause,
                "pauses that together stay below 2^64 nanoseconds",
            )
        })?;
        Ok(Line::Frame)
    }
}

/// Demands the end of a line that makes no record.
fn frame(fields: &Cursor<'_>) -> Result<Line, Fault> {
    fields.finish("nothing after the action")?;
    Ok(Line::Frame)
}

/// Writes version 3: the header first, and each file added and opened before its first record.
#[derive(Debug, Default)]
pub(crate) struct FioWriter {
    begun: bool,
    added: HashSet<u32>,
}

impl FioWriter {
    /// Appends the lines of a record. Every record can be expressed.
    pub(crate) fn write(
        &mut self,
        out: &mut String,
        time_ns: u64,
        record: &Record<'_>,
        names: &DeviceNames,
    ) {
        if !self.begun {
            out.push_str("fio version 3 iolog\n");
            self.begun = true;
        }
        let time_us = time_ns / TICK_NS;
        let name = names.name(record.device);
        if self.added.insert(record.device) {
            let _ = write!(out, "{time_us} {name} add\n{time_us} {name} open\n");
        }
        let action = match record.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "sync",
        };
        let (offset, length) = (record.offset, record.length);
        let _ = writeln!(out, "{time_us} {name} {action} {offset} {length}");
    }
}
