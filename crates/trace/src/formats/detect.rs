//! Which format an input has, by its first records.
//!
//! Each text parser is tried on the first lines; the one that understands most of them wins. SSDsim
//! and DiskSim have the same five columns and tell apart by the time: nanoseconds are whole, and
//! milliseconds have a decimal point. Such an input is DiskSim when at least half of the times have
//! one, or when SSDsim understands nothing of it; else it is SSDsim, and a damaged record is reported
//! as one instead of making the times a million times longer. The other formats exclude each other.
//!
//! Where no line is understood, a format still fits if it takes the first line apart and only finds a
//! value out of bounds there, as a size of 0. Reading then says what is wrong with that record, which
//! helps more than that nothing is known.

use super::fields::Cursor;
use super::raw::{Line, RawRecord};
use super::{Format, native, vscsi};
use crate::devices::DeviceNames;

/// How many lines are tried.
const SAMPLE_LINES: usize = 64;

/// What a line counts for that a format takes for a record, and for one that it knows for something
/// else.
const RECORD_POINTS: usize = 2;
const OTHER_POINTS: usize = 1;

/// Text formats, the preferred one first where two fit equally well.
const CANDIDATES: [Format; 11] = [
    Format::Fiu,
    Format::Msr,
    Format::Spc,
    Format::Alibaba,
    Format::Tencent,
    Format::Systor,
    Format::Cloudphysics,
    Format::Ssdsim,
    Format::Disksim,
    Format::Blkparse(None),
    Format::Fio,
];

/// The format of an input that begins with `head`; `complete` says that nothing follows. `None` when
/// no format fits any of the first lines or records.
pub fn detect(head: &[u8], complete: bool) -> Option<Format> {
    binary(head).or_else(|| text(head, complete))
}

/// As [`detect`], for binary formats only.
pub(crate) fn binary(head: &[u8]) -> Option<Format> {
    if head.starts_with(&native::MAGIC) {
        return Some(Format::Native);
    }
    vscsi::Version::recognise(head).map(|_| Format::Vscsi)
}

/// As [`detect`], for text formats only.
pub(crate) fn text(head: &[u8], complete: bool) -> Option<Format> {
    let lines = sample(head, complete);
    let mut best = None;
    let mut most = 0;
    for format in CANDIDATES {
        let points = match format {
            Format::Disksim if most > 0 && !mostly_decimal(&lines) => 0,
            _ => points(format, head, &lines),
        };
        if points > most {
            (best, most) = (Some(format), points);
        }
    }
    best.or_else(|| {
        let first = lines.first()?;
        CANDIDATES
            .into_iter()
            .find(|format| finds_out_of_bounds(*format, first))
    })
}

/// The first lines that are not blank; a last line without its end counts if nothing follows.
fn sample(head: &[u8], complete: bool) -> Vec<&[u8]> {
    let whole = match (complete, memchr::memrchr(b'\n', head)) {
        (true, _) | (false, None) => head,
        (false, Some(last)) => &head[..last],
    };
    whole
        .split(|&b| b == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .filter(|line| !line.is_empty())
        .take(SAMPLE_LINES)
        .collect()
}

/// Whether a format understands a line but for a value that is out of bounds.
fn finds_out_of_bounds(format: Format, line: &[u8]) -> bool {
    let Some(mut parser) = format.parser(line) else {
        return false;
    };
    let mut names = DeviceNames::new(format.name_style());
    parser
        .parse(line, &mut names, &mut RawRecord::default())
        .is_err_and(|fault| fault.understood)
}

fn points(format: Format, head: &[u8], lines: &[&[u8]]) -> usize {
    let Some(mut parser) = format.parser(head) else {
        return 0;
    };
    let mut names = DeviceNames::new(format.name_style());
    let mut record = RawRecord::default();
    let mut worth = |line| {
        record.digests.clear();
        match parser.parse(line, &mut names, &mut record) {
            Ok(Line::Record) => RECORD_POINTS,
            Ok(Line::PassedOver | Line::Frame) => OTHER_POINTS,
            Err(_) => 0,
        }
    };
    lines.iter().map(|line| worth(line)).sum()
}

/// Whether at least half of the lines begin with a number that has a decimal point.
fn mostly_decimal(lines: &[&[u8]]) -> bool {
    let decimal = lines
        .iter()
        .filter(|line| Cursor::new(line).word().contains(&b'.'))
        .count();
    decimal * 2 >= lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_times_are_ssdsim_and_decimal_ones_disksim() {
        let cases: [(&[u8], Option<Format>); 7] = [
            (b"0 0 8 8 0\n100 0 16 8 1\n", Some(Format::Ssdsim)),
            (b"0.0 0 8 8 0\n100.5 0 16 8 1\n", Some(Format::Disksim)),
            // A whole time among decimals.
            (b"0 0 8 8 0\n100.5 0 16 8 1\n", Some(Format::Disksim)),
            // A damaged SSDsim record stays one.
            (
                b"0 0 8 8 0\n7 0 8 8 0\n100.5 0 16 8 1\n",
                Some(Format::Ssdsim),
            ),
            (b"0 0 8 8 0\n100 0 16 8 3\n", Some(Format::Ssdsim)),
            // Flags that SSDsim does not know at all.
            (b"0 0 8 8 5\n", Some(Format::Disksim)),
            (b"0 0 8 8\n", None),
        ];
        for (text, format) in cases {
            assert_eq!(detect(text, true), format, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_cut_last_line_counts_only_at_the_end() {
        let text = b"1,8,4096,r,0.5\n1,16,40";
        assert_eq!(detect(text, false), Some(Format::Spc));
        assert_eq!(detect(b"1,8,4096,r,0.5", true), Some(Format::Spc));
        assert_eq!(
            detect(b"1,8,4096,r,0.5,extra,fields\n", true),
            Some(Format::Spc)
        );
    }

    #[test]
    fn one_damaged_record_does_not_hide_the_format() {
        let text = b"128166372003061629,hm,1,Read,0,512,58\ngarbage\n128166372003061630,hm,1,Write,0,512,58\n";
        assert_eq!(detect(text, true), Some(Format::Msr));
        assert_eq!(detect(b"garbage\n", true), None);
        assert_eq!(detect(b"\0\x01\x02", true), None);
    }
}
