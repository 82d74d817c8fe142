//! Text output of blkparse: `major,minor cpu sequence time pid action RWBS [sector + sectors] ...`.
//!
//! A request leaves an event at each stage of the block layer, so the events of one action only are
//! the requests of the trace ([`Action`]); the others are passed over and counted. Times are seconds
//! with decimals, addresses 512-byte sectors. The output of several processors is not quite in order.
//! The summary at the end is no part of the trace, and no event may follow it.
//!
//! RWBS: R read, W write, D discard, N nothing of these (passed over). A leading F is a flush: without
//! sectors it is all there is, with sectors it goes before the request. A later F (FUA) and the
//! letters A, S, M, B and E say how, not what, and are not kept.

use std::fmt::Write as _;

use super::fields::{Cursor, SECOND_SCALE, decimal_ns, major_minor, sectors, uint, uint32};
use super::raw::{Line, Parse, RawRecord, check};
use crate::devices::{self, DeviceNames};
use crate::error::Fault;
use crate::record::{Op, Record};

/// What the lines of the summary begin with that are not indented.
const SUMMARY: [&[u8]; 5] = [b"CPU", b"Total (", b"Throughput (", b"Events (", b"Skips: "];

/// What blkparse says about its input files before the first event.
const PREAMBLE: &[u8] = b"Input file ";

/// A stage of the block layer whose events are taken for the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Q: a request enters the block layer, before merging. Times are arrivals.
    Queued,
    /// D: a request is issued to the driver, after merging and scheduling.
    Issued,
    /// I: a request is inserted into the scheduler's queue.
    Inserted,
    /// C: a request is completed. Times are completions.
    Completed,
}

impl Action {
    /// Every action, the preferred one first.
    pub const ALL: [Action; 4] = [
        Action::Queued,
        Action::Issued,
        Action::Inserted,
        Action::Completed,
    ];

    fn letter(self) -> &'static [u8] {
        match self {
            Action::Queued => b"Q",
            Action::Issued => b"D",
            Action::Inserted => b"I",
            Action::Completed => b"C",
        }
    }

    /// The first of Q, D, I and C that occurs in the beginning of a trace; Q where none does.
    pub(crate) fn choose(head: &[u8]) -> Action {
        let mut found = [false; Action::ALL.len()];
        for line in head.split(|&byte| byte == b'\n') {
            if let Ok(event) = BlkEvent::parse(line) {
                let known = Action::ALL.iter().position(|a| a.letter() == event.action);
                known.into_iter().for_each(|at| found[at] = true);
            }
        }
        let first = found.iter().position(|&found| found);
        first.map_or(Action::Queued, |at| Action::ALL[at])
    }
}

/// What every event begins with, and the rest of its line.
struct BlkEvent<'a> {
    device: u32,
    time_ns: u64,
    action: &'a [u8],
    rest: Cursor<'a>,
}

impl<'a> BlkEvent<'a> {
    fn parse(line: &'a [u8]) -> Result<BlkEvent<'a>, Fault> {
        let mut fields = Cursor::new(line);
        let device = fields.word();
        let comma = device
            .iter()
            .position(|&byte| byte == b',')
            .ok_or_else(|| {
                Fault::bytes("device", device, "major,minor, or the summary's first line")
            })?;
        let device = major_minor(&device[..comma], &device[comma + 1..])?;
        uint32("cpu", fields.word())?;
        uint("sequence", fields.word())?;
        let time_ns = decimal_ns("time", fields.word(), SECOND_SCALE)?;
        uint32("pid", fields.word())?;
        let action = fields.word();
        if action.is_empty() || action.len() > 2 || !action.iter().all(u8::is_ascii_alphabetic) {
            return Err(Fault::bytes("action", action, "one or two letters"));
        }
        Ok(BlkEvent {
            device,
            time_ns,
            action,
            rest: fields,
        })
    }
}

/// Parses the events of one action.
#[derive(Debug)]
pub(crate) struct BlkparseParser {
    action: Action,
    in_summary: bool,
}

impl BlkparseParser {
    pub(crate) fn new(action: Action) -> Self {
        BlkparseParser {
            action,
            in_summary: false,
        }
    }
}

impl Parse for BlkparseParser {
    fn parse(
        &mut self,
        line: &[u8],
        _names: &mut DeviceNames,
        out: &mut RawRecord,
    ) -> Result<Line, Fault> {
        let is_event = line
            .trim_ascii_start()
            .first()
            .is_some_and(u8::is_ascii_digit);
        if self.in_summary && is_event {
            return Err(Fault::bytes(
                "the line",
                line,
                "no event after the summary, which ends the trace",
            ));
        }
        self.in_summary |= SUMMARY.iter().any(|start| line.starts_with(start));
        if self.in_summary || line.starts_with(PREAMBLE) {
            return Ok(Line::Frame);
        }
        let event = BlkEvent::parse(line)?;
        if event.action != self.action.letter() {
            return Ok(Line::PassedOver);
        }
        out.device = event.device;
        out.time_ns = event.time_ns;
        request(event.rest, out)
    }
}

/// What the letters of RWBS ask for, besides a flush before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Transfer(Op),
    Nothing,
}

fn request(mut fields: Cursor<'_>, out: &mut RawRecord) -> Result<Line, Fault> {
    let letters = fields.word();
    let flush = letters.first() == Some(&b'F');
    let asked = match letters.get(usize::from(flush)) {
        Some(b'R') => Asked::Transfer(Op::Read),
        Some(b'W') => Asked::Transfer(Op::Write),
        Some(b'D') => Asked::Transfer(Op::Trim),
        Some(b'N') => Asked::Nothing,
        Some(b'F' | b'A' | b'S' | b'M' | b'B') | None if flush => Asked::Nothing,
        _ => {
            return Err(Fault::bytes(
                "RWBS",
                letters,
                "letters that begin with R, W, D, F or N",
            ));
        }
    };
    let place = place(&mut fields)?;
    match (asked, place) {
        (Asked::Transfer(op), Some((offset, length))) => {
            (out.op, out.offset, out.length) = (op, offset, length);
            out.flush_first = flush;
            check(op, offset, length)?;
            Ok(Line::Record)
        }
        _ if flush => {
            out.set_flush();
            Ok(Line::Record)
        }
        _ => Ok(Line::PassedOver),
    }
}

/// Offset and length in bytes, if the event has a sector and a number of sectors above 0.
fn place(fields: &mut Cursor<'_>) -> Result<Option<(u64, u64)>, Fault> {
    let sector = fields.word();
    if matches!(sector.first(), None | Some(b'[' | b'(')) {
        return Ok(None);
    }
    let offset = sectors("sector", sector)?;
    let plus = fields.word();
    match plus {
        b"+" => {}
        // A completion without sectors, or the bytes of a command of another kind.
        _ if matches!(plus.first(), None | Some(b'[' | b'(')) => return Ok(None),
        _ => return Err(Fault::bytes("what follows the sector", plus, "+ or [")),
    }
    let length = sectors("number of sectors", fields.word())?;
    Ok((length > 0).then_some((offset, length)))
}

/// Appends the queue event of record number `number`; `Err` says what the format lacks.
pub(crate) fn write(
    out: &mut String,
    number: u64,
    time_ns: u64,
    record: &Record<'_>,
) -> Result<(), String> {
    let (major, minor) = devices::major_minor(record.device);
    let (seconds, below) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    let letter = match record.op {
        Op::Read => "R",
        Op::Write => "W",
        Op::Trim => "D",
        Op::Flush => "FN",
    };
    let _ = write!(
        out,
        "{major:3},{minor:<3} 0 {number:8} {seconds:5}.{below:09}     0  Q {letter:>3} "
    );
    if record.op != Op::Flush {
        let (lba, count) = super::ssdsim::in_sectors(record)?;
        let _ = write!(out, "{lba} + {count} ");
    }
    out.push_str("[-]\n");
    Ok(())
}
