//! Fields of a line, taken apart by hand: no allocation unless something is wrong.

use crate::error::Fault;
use crate::record::SECTOR_BYTES;

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
        let field = match rest.iter().position(|&b| b == b',') {
            Some(n) => {
                self.rest = Some(&rest[n + 1..]);
                &rest[..n]
            }
            None => {
                self.rest = None;
                rest
            }
        };
        field.trim_ascii()
    }

    /// The next word between blanks; empty when there is none left.
    #[inline]
    pub(crate) fn word(&mut self) -> &'a [u8] {
        let rest = self.rest.unwrap_or_default().trim_ascii_start();
        let n = rest.iter().position(|&b| is_blank(b)).unwrap_or(rest.len());
        self.rest = Some(&rest[n..]);
        &rest[..n]
    }

    /// The last word between blanks; empty when there is none left.
    #[inline]
    pub(crate) fn last_word(&mut self) -> &'a [u8] {
        let rest = self.rest.unwrap_or_default().trim_ascii_end();
        let n = rest
            .iter()
            .rposition(|&b| is_blank(b))
            .map_or(0, |last| last + 1);
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

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
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

/// A number of sectors, as bytes.
#[inline]
pub(crate) fn sectors(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    digits(text)
        .and_then(|value| value.checked_mul(SECTOR_BYTES))
        .ok_or_else(|| Fault::bytes(field, text, "a whole number of 512-byte sectors below 2^55"))
}

#[inline]
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    if text.len() <= 19 {
        // Nineteen digits cannot overflow.
        let mut value = 0u64;
        for &byte in text {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
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

/// Sixteen bytes from 32 hexadecimal digits of either case. Without branches or tables, so that it
/// becomes vector instructions.
#[inline]
pub(crate) fn hex16(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; 32] = text.try_into().ok()?;
    let mut nibbles = [0u8; 32];
    let mut bad = 0;
    for (nibble, &byte) in nibbles.iter_mut().zip(text) {
        let digit = byte.wrapping_sub(b'0');
        let letter = (byte | 0x20).wrapping_sub(b'a');
        let is_digit = if digit < 10 { 0xff } else { 0 };
        let is_letter = if letter < 6 { 0xff } else { 0 };
        *nibble = digit & is_digit | letter.wrapping_add(10) & is_letter;
        bad |= !(is_digit | is_letter);
    }
    let mut out = [0; 16];
    for (byte, pair) in out.iter_mut().zip(nibbles.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    (bad == 0).then_some(out)
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
            let mut text = [b'0'; 32];
            text[5] = byte;
            let wanted = char::from(byte).to_digit(16).map(|digit| digit as u8);
            assert_eq!(hex16(&text).map(|bytes| bytes[2]), wanted, "{byte}");
        }
    }
}
