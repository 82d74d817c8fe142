//! Fields of a line, taken apart by hand: no allocation unless something is wrong.
//!
//! Fields are short and of changing length, so that a loop over their bytes is mostly mispredicted
//! branches. Eight bytes are looked at together instead, as one word whose lowest byte comes first.

use crate::devices::from_major_minor;
use crate::error::Fault;
use crate::record::SECTOR_BYTES;

/// A second is 10^9 ns.
pub(crate) const SECOND_SCALE: usize = 9;

/// The rest of a line.
pub(crate) struct Cursor<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Cursor { rest: Some(line) }
    }

    /// The field up to the next comma, without blanks around it; empty when there is none left.
    #[inline]
    pub(crate) fn comma(&mut self) -> &'a [u8] {
        let Some(rest) = self.rest else { return &[] };
        let n = first(rest, |word| equal(word, b','));
        self.rest = rest.get(n + 1..);
        rest[..n].trim_ascii()
    }

    /// The next word between blanks; empty when there is none left.
    #[inline]
    pub(crate) fn word(&mut self) -> &'a [u8] {
        let rest = self.rest.unwrap_or_default().trim_ascii_start();
        let n = first(rest, blanks);
        self.rest = Some(&rest[n..]);
        &rest[..n]
    }

    /// The last word between blanks; empty when there is none left.
    #[inline]
    pub(crate) fn last_word(&mut self) -> &'a [u8] {
        let rest = self.rest.unwrap_or_default().trim_ascii_end();
        let n = after_last(rest, blanks);
        self.rest = Some(&rest[..n]);
        &rest[n..]
    }

    /// What is left, without blanks around it.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.unwrap_or_default().trim_ascii()
    }

    /// Demands that nothing is left.
    #[inline]
    pub(crate) fn finish(&self, expected: &'static str) -> Result<(), Fault> {
        match self.rest() {
            [] => Ok(()),
            rest => Err(Fault::bytes("the end of the line", rest, expected)),
        }
    }
}

/// Where the first byte is that `mask` marks; the length of the text if there is none.
#[inline]
fn first(text: &[u8], mask: impl Fn(u64) -> u64) -> usize {
    let mut rest = text;
    while let Some((eight, behind)) = rest.split_first_chunk::<8>() {
        let found = mask(u64::from_le_bytes(*eight));
        if found != 0 {
            return text.len() - rest.len() + found.trailing_zeros() as usize / 8;
        }
        rest = behind;
    }
    let found = |&byte: &u8| mask(byte.into()) & 0x80 != 0;
    let before = rest.iter().position(found).unwrap_or(rest.len());
    text.len() - rest.len() + before
}

/// Where the bytes behind the last one begin that `mask` marks; 0 if there is none.
#[inline]
fn after_last(text: &[u8], mask: impl Fn(u64) -> u64) -> usize {
    let mut rest = text;
    while let Some((before, eight)) = rest.split_last_chunk::<8>() {
        let found = mask(u64::from_le_bytes(*eight));
        if found != 0 {
            return rest.len() - found.leading_zeros() as usize / 8;
        }
        rest = before;
    }
    let found = |&byte: &u8| mask(byte.into()) & 0x80 != 0;
    rest.iter().rposition(found).map_or(0, |last| last + 1)
}

/// The upper bit of each byte that is a blank or a tabulator.
#[inline]
fn blanks(word: u64) -> u64 {
    equal(word, b' ') | equal(word, b'\t')
}

/// The upper bit of each byte that equals `byte`.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    let differences = word ^ every(byte);
    let nonzero = ((differences & every(0x7f)) + every(0x7f)) | differences;
    !nonzero & every(0x80)
}

/// A decimal number below 2^64.
#[inline]
pub(crate) fn uint(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    digits(text).ok_or_else(|| Fault::bytes(field, text, "a whole number below 2^64"))
}

/// A decimal number below 2^32.
#[inline]
pub(crate) fn uint32(field: &'static str, text: &[u8]) -> Result<u32, Fault> {
    digits(text)
        .and_then(|value| u32::try_from(value).ok())
        .ok_or_else(|| Fault::bytes(field, text, "a whole number below 2^32"))
}

/// A number of ticks of a clock, as nanoseconds.
#[inline]
pub(crate) fn ticks(
    field: &'static str,
    text: &[u8],
    tick_ns: u64,
    expected: &'static str,
) -> Result<u64, Fault> {
    let ns = uint(field, text)?.checked_mul(tick_ns);
    ns.ok_or_else(|| Fault::bytes(field, text, expected))
}

/// A number of whole seconds, as nanoseconds.
pub(crate) fn seconds(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    let expected = "whole seconds whose nanoseconds stay below 2^64";
    ticks(field, text, 1_000_000_000, expected)
}

/// A number of microseconds, as nanoseconds.
#[inline]
pub(crate) fn micros(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    digits(text)
        .and_then(|value| value.checked_mul(1000))
        .ok_or_else(|| {
            Fault::number(
                field,
                text,
                "whole microseconds whose nanoseconds stay below 2^64",
            )
        })
}

/// The device of a Linux major and minor number.
pub(crate) fn major_minor(major: &[u8], minor: &[u8]) -> Result<u32, Fault> {
    let major_number = uint32("major", major)?;
    let minor_number = uint32("minor", minor)?;
    if major_number >= 1 << 12 {
        return Err(Fault::bytes("major", major, "a number below 4096"));
    }
    if minor_number >= 1 << 20 {
        return Err(Fault::bytes("minor", minor, "a number below 1048576"));
    }
    Ok(from_major_minor(major_number, minor_number))
}

/// A number of bytes.
#[inline]
pub(crate) fn bytes(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    digits(text).ok_or_else(|| Fault::number(field, text, "a whole number of bytes below 2^64"))
}

/// A number of sectors, as bytes.
#[inline]
pub(crate) fn sectors(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    digits(text)
        .and_then(|value| value.checked_mul(SECTOR_BYTES))
        .ok_or_else(|| Fault::number(field, text, "a whole number of 512-byte sectors below 2^55"))
}

#[inline]
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    if text.len() <= 19 {
        // Nineteen digits cannot overflow.
        let (front, eights) = text.as_rchunks();
        let mut value = few_digits(front)?;
        for eight in eights {
            value = value * 100_000_000 + decimal8(u64::from_le_bytes(*eight))?;
        }
        return Some(value);
    }
    text.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            None
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))
        }
    })
}

/// The number of up to seven decimal digits.
#[inline]
fn few_digits(text: &[u8]) -> Option<u64> {
    if let (Some(front), Some(back)) = (text.first_chunk(), text.last_chunk()) {
        // The two overlap, and what is before them becomes leading zeros.
        let shift = 64 - 8 * text.len();
        let digits = u64::from(u32::from_le_bytes(*front)) << shift
            | u64::from(u32::from_le_bytes(*back)) << 32;
        return decimal8(digits | every(b'0') & ((1 << shift) - 1));
    }
    text.iter().try_fold(0, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then(|| value * 10 + u64::from(digit))
    })
}

/// A decimal fraction of a unit of 10^`scale` nanoseconds, as whole nanoseconds; digits below a
/// nanosecond are cut off. No floating point is involved.
#[inline]
pub(crate) fn decimal_ns(field: &'static str, text: &[u8], scale: usize) -> Result<u64, Fault> {
    let fault = || {
        Fault::bytes(
            field,
            text,
            "a decimal number whose nanoseconds stay below 2^64",
        )
    };
    let point = text.iter().position(|&b| b == b'.');
    let (whole, fraction) = match point {
        Some(n) => (&text[..n], &text[n + 1..]),
        None => (text, &text[text.len()..]),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(fault());
    }
    let whole = if whole.is_empty() {
        0
    } else {
        digits(whole).ok_or_else(fault)?
    };
    let mut below = 0u64;
    for (place, &byte) in fraction.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(fault());
        }
        if place < scale {
            below = below * 10 + u64::from(digit);
        }
    }
    for _ in fraction.len()..scale {
        below *= 10;
    }
    let unit = 10u64.pow(scale as u32);
    whole
        .checked_mul(unit)
        .and_then(|ns| ns.checked_add(below))
        .ok_or_else(fault)
}

/// Sixteen bytes from 32 hexadecimal digits of either case.
#[inline]
pub(crate) fn hex16(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; 32] = text.try_into().ok()?;
    let mut out = [0; 16];
    let mut bad = 0;
    for (bytes, digits) in out.chunks_exact_mut(4).zip(text.as_chunks().0) {
        let (four, wrong) = hex4(u64::from_le_bytes(*digits));
        bytes.copy_from_slice(&four.to_le_bytes());
        bad |= wrong;
    }
    (bad == 0).then_some(out)
}

/// Four bytes from eight hexadecimal digits, all at once within one word; the second number is not 0
/// if any of them is no digit. Adding `0x80 - c` to a byte below 0x80 sets its upper bit iff the byte
/// is at least `c`.
#[inline]
fn hex4(text: u64) -> (u32, u64) {
    let at_least = |bytes: u64, least: u8| bytes.wrapping_add(every(0x80 - least));
    let lower = text | every(0x20);
    let is_digit = at_least(text, b'0') & !at_least(text, b'9' + 1);
    let is_letter = at_least(lower, b'a') & !at_least(lower, b'f' + 1) & every(0x80);
    let bad = (!(is_digit | is_letter) | text) & every(0x80);
    let nibbles = (text & every(0x0f)) + (is_letter >> 7) * 9;
    let bytes = (nibbles << 4 | nibbles >> 8) & 0x00ff_00ff_00ff_00ff;
    let pairs = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    ((pairs | pairs >> 16) as u32, bad)
}

/// The number of eight decimal digits, all at once within one word: neighbours are joined to numbers
/// of two, then four, then eight digits.
#[inline]
fn decimal8(text: u64) -> Option<u64> {
    let digits = text.wrapping_sub(every(b'0'));
    if (digits.wrapping_add(every(0x80 - 10)) | digits | text) & every(0x80) != 0 {
        return None;
    }
    let twos = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

/// A word of eight equal bytes.
const fn every(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stop_at_their_limits() {
        assert_eq!(uint("f", b"18446744073709551615"), Ok(u64::MAX));
        assert!(uint("f", b"18446744073709551616").is_err());
        assert!(uint("f", b"00000000000000000000000001").is_ok());
        for bad in [
            &b""[..],
            b"-1",
            b"1x",
            b"1.5",
            b"+1",
            b"999999999999999999999",
        ] {
            assert!(uint("f", bad).is_err(), "{}", bad.escape_ascii());
        }
        assert_eq!(uint32("f", b"4294967295"), Ok(u32::MAX));
        assert!(uint32("f", b"4294967296").is_err());
        assert_eq!(sectors("f", b"36028797018963967"), Ok(u64::MAX - 511));
        assert!(sectors("f", b"36028797018963968").is_err());
    }

    #[test]
    fn words_are_found_from_either_end_whatever_their_length() {
        for (before, after) in (0..20).flat_map(|before| (0..20).map(move |after| (before, after)))
        {
            for blank in [b' ', b'\t'] {
                // The bytes next to a blank and those that differ from it in one bit.
                let mut text = vec![b'!'; before];
                text.push(blank);
                text.extend(std::iter::repeat_n(blank | 0x80, after));
                let (first, last) = (&text[..before], &text[before + 1..]);
                let all = &text[..before + 1 + after];
                if before > 0 {
                    assert_eq!(Cursor::new(all).word(), first);
                }
                if after > 0 {
                    assert_eq!(Cursor::new(all).last_word(), last);
                }
            }
        }
        let mut fields = Cursor::new(b" one ,twotwotwo,,four");
        let found: Vec<_> = std::iter::repeat_with(|| fields.comma()).take(5).collect();
        assert_eq!(found, [&b"one"[..], b"twotwotwo", b"", b"four", b""]);
    }

    #[test]
    fn numbers_of_every_length_are_read() {
        let text = b"9876543210123456789";
        for from in 0..text.len() {
            let text = &text[from..];
            let wanted = std::str::from_utf8(text).unwrap().parse();
            assert_eq!(digits(text), wanted.ok(), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn every_byte_at_every_place_is_a_digit_or_refused() {
        for (place, byte) in (0..19).flat_map(|place| (0..=u8::MAX).map(move |byte| (place, byte)))
        {
            let mut text = *b"1234567890987654321";
            text[place] = byte;
            let wanted = std::str::from_utf8(&text)
                .ok()
                .filter(|_| byte.is_ascii_digit())
                .and_then(|text| text.parse().ok());
            assert_eq!(digits(&text), wanted, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal_ns("t", b"5265.313", 6), Ok(5_265_313_000));
        assert_eq!(decimal_ns("t", b"0.026214", 9), Ok(26_214_000));
        assert_eq!(
            decimal_ns("t", b"9007199254.740993", 6),
            Ok(9_007_199_254_740_993)
        );
        assert_eq!(decimal_ns("t", b"1.9999999999999", 6), Ok(1_999_999));
        assert_eq!(decimal_ns("t", b".5", 6), Ok(500_000));
        assert_eq!(decimal_ns("t", b"7.", 6), Ok(7_000_000));
        for bad in [
            &b"."[..],
            b"",
            b"1e3",
            b"1.2.3",
            b"-1.0",
            b"nan",
            b"99999999999999999.0",
        ] {
            assert!(decimal_ns("t", bad, 6).is_err(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn hexadecimal_digits_of_both_cases() {
        let lower = hex16(b"000102030405060708090a0b0c0d0e0f");
        assert_eq!(
            lower,
            Some([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
        );
        assert_eq!(lower, hex16(b"000102030405060708090A0B0C0D0E0F"));
        assert_eq!(hex16(b"000102030405060708090a0b0c0d0e0g"), None);
        assert_eq!(hex16(b"0001"), None);
        for byte in 0..=u8::MAX {
            for place in 0..32 {
                let mut text = *b"0123456789abcdefFEDCBA9876543210";
                text[place] = byte;
                let wanted = char::from(byte).to_digit(16).map(|_| {
                    let digit = |at| char::from(text[at]).to_digit(16).unwrap_or(0) as u8;
                    std::array::from_fn(|i| digit(2 * i) << 4 | digit(2 * i + 1))
                });
                assert_eq!(hex16(&text), wanted, "{byte} at {place}");
            }
        }
    }
}
