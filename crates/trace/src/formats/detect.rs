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
use super::{Format, RawRecord, native};
use crate::devices::DeviceNames;

/// How many lines are tried.
const SAMPLE_LINES: usize = 64;

/// Text formats, the preferred one first where two fit equally well.
const CANDIDATES: [Format; 5] = [
    Format::Fiu,
    Format::Msr,
    Format::Spc,
    Format::Ssdsim,
    Format::Disksim,
];

/// The format of an input that begins with `head`; `complete` says that nothing follows. `None` when
/// no format fits any of the first lines.
pub fn detect(head: &[u8], complete: bool) -> Option<Format> {
    if head.starts_with(&native::MAGIC) {
        return Some(Format::Native);
    }
    let lines = sample(head, complete);
    let mut best = None;
    let mut most = 0;
    for format in CANDIDATES {
        let understood = match format {
            Format::Disksim if most > 0 && !mostly_decimal(&lines) => 0,
            _ => count_understood(format, &lines),
        };
        if understood > most {
            (best, most) = (Some(format), understood);
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
    let Some(parse) = format.line_parser() else {
        return false;
    };
    let mut names = DeviceNames::new(format.name_style());
    parse(line, &mut names, &mut RawRecord::default()).is_err_and(|fault| fault.understood)
}

fn count_understood(format: Format, lines: &[&[u8]]) -> usize {
    let Some(parse) = format.line_parser() else {
        return 0;
    };
    let mut names = DeviceNames::new(format.name_style());
    let mut record = RawRecord::default();
    lines
        .iter()
        .filter(|line| {
            record.digests.clear();
            parse(line, &mut names, &mut record).is_ok()
        })
        .count()
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
