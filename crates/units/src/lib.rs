//! Quantities as a person writes them: sizes, counts, durations, shares.
//!
//! Every type parses from text, prints text that parses back to the same value, and is exact:
//! a text that its integer unit cannot hold is an error, never rounded. The one exception is
//! [`Share`], a binary floating-point number.

// Used within this workspace alone: a comment stands where a name does not say it all.
#![allow(missing_docs)]

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A text that is not the quantity it should be: a sentence saying what was expected and found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found:?}{why}")]
pub struct ParseUnitError {
    expected: &'static str,
    found: String,
    why: &'static str,
}

impl ParseUnitError {
    fn new(expected: &'static str, found: &str, why: &'static str) -> Self {
        Self {
            expected,
            found: found.to_string(),
            why,
        }
    }
}

/// The factors of binary multiples, largest first.
const BINARY: [(&str, u64); 4] = [
    ("Ti", 1 << 40),
    ("Gi", 1 << 30),
    ("Mi", 1 << 20),
    ("Ki", 1 << 10),
];

/// The durations a text may name, longest first, in nanoseconds.
const TIMES: [(&str, u64); 9] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ns", 1),
];

const SIZE: &str = "a size such as \"4GiB\", \"512KiB\" or 4096";
const COUNT: &str = "a count such as 4096 or \"128Ki\"";
const ENTRIES: &str = "a count such as 4096 or \"128Ki\", or \"unlimited\"";
const BYTES: &str = "a size such as 64KiB, or \"unlimited\"";
const TIME: &str = "a duration such as \"25us\", \"1.5ms\" or \"10min\"";
const SHARE: &str = "a share from 0 to 1 such as 0.15, or \"15%\"";
const WATERMARK: &str =
    "a share of the pool's blocks below 1 such as 0.05, or a whole number of blocks";

/// `text` as number and unit: `"1.5ms"` is `("1.5", "ms")`.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// A decimal number times `factor`, if the product is a whole number that fits.
fn scale_exactly(number: &str, factor: u64) -> Result<u64, &'static str> {
    const MALFORMED: &str = ": not a decimal number";
    const TOO_LARGE: &str = ": too large for 64 bits";
    let digits = number.replace('_', "");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, "0"));
    let fraction = if fraction.is_empty() {
        return Err(MALFORMED);
    } else {
        fraction.trim_end_matches('0')
    };
    let whole: u64 = whole
        .parse()
        .map_err(|e: std::num::ParseIntError| match e.kind() {
            std::num::IntErrorKind::PosOverflow => TOO_LARGE,
            _ => MALFORMED,
        })?;
    let whole = whole.checked_mul(factor).ok_or(TOO_LARGE)?;
    if fraction.is_empty() {
        return Ok(whole);
    }
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(MALFORMED);
    }
    const TOO_FINE: &str = ": finer than the smallest unit";
    let power = u32::try_from(fraction.len())
        .ok()
        .and_then(|n| 10_u128.checked_pow(n))
        .ok_or(TOO_FINE)?;
    let part = fraction.parse::<u128>().map_err(|_| TOO_FINE)?;
    let product = part.checked_mul(u128::from(factor)).ok_or(TOO_FINE)?;
    if product % power != 0 {
        return Err(TOO_FINE);
    }
    // The quotient is below `factor`, so it fits.
    u64::try_from(product / power)
        .ok()
        .and_then(|part| whole.checked_add(part))
        .ok_or(TOO_LARGE)
}

/// Writes `value` with the largest binary multiple that divides it.
fn write_binary(f: &mut fmt::Formatter<'_>, value: u64, tail: &str) -> fmt::Result {
    for (name, factor) in BINARY {
        if value != 0 && value.is_multiple_of(factor) {
            return write!(f, "{}{name}{tail}", value / factor);
        }
    }
    write!(f, "{value}")
}

/// A number of bytes: `4GiB`, `512KiB`, `4096`. Multiples are binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// A number of things: `4096`, `128Ki`, `2Mi`. Multiples are binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(pub u64);

/// A number of table entries, or `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entries {
    Limited(u64),
    Unlimited,
}

/// A number of bytes, or `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bytes {
    Limited(Size),
    Unlimited,
}

/// A duration in whole nanoseconds: `25us`, `1.5ms`, `10min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A share from 0 to 1: `0.15` or `15%`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(f64);

/// A number of free blocks of an allocation pool: a share of its blocks, or a count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Watermark {
    /// This share of the pool's blocks, rounded down; below 1.
    Share(Share),
    /// This many blocks, at least 1.
    Blocks(u32),
}

impl Share {
    /// The share `value`, or nothing if it is not a number from 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        // Adding 0.0 turns -0.0 into 0.0, so that equal shares print alike.
        (0.0..=1.0).contains(&value).then_some(Self(value + 0.0))
    }

    /// The share as a number from 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The share in billionths, rounded: for exact arithmetic on counts.
    pub fn billionths(self) -> u64 {
        // At most 1e9: the conversion is exact.
        (self.0 * 1e9).round() as u64
    }
}

impl Watermark {
    /// The number of blocks this is in a pool of `pool_blocks`; a share is rounded down, but never
    /// to none.
    pub fn blocks(self, pool_blocks: u64) -> u64 {
        match self {
            Self::Blocks(n) => u64::from(n),
            Self::Share(share) => {
                let product =
                    u128::from(pool_blocks) * u128::from(share.billionths()) / 1_000_000_000;
                // At most `pool_blocks`, since the share is at most 1.
                u64::try_from(product).unwrap_or(pool_blocks).max(1)
            }
        }
    }
}

impl FromStr for Size {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let fail = |why| ParseUnitError::new(SIZE, text, why);
        let (number, unit) = split_unit(text.trim());
        let factor = match unit {
            "" | "B" => 1,
            "kB" | "KB" | "MB" | "GB" | "TB" | "k" | "K" | "M" | "G" | "T" => {
                return Err(fail(": units are binary, so write KiB, MiB, GiB or TiB"));
            }
            _ => factor(&BINARY, unit.strip_suffix('B').unwrap_or("")).ok_or_else(|| fail(""))?,
        };
        scale_exactly(number, factor).map(Self).map_err(fail)
    }
}

fn factor(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    let known = units.iter().find(|(name, _)| *name == unit);
    known.map(|(_, factor)| *factor)
}

impl FromStr for Count {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_count(text, COUNT).map(Self)
    }
}

fn parse_count(text: &str, expected: &'static str) -> Result<u64, ParseUnitError> {
    let fail = |why| ParseUnitError::new(expected, text, why);
    let (number, unit) = split_unit(text.trim());
    let factor = match unit {
        "" => 1,
        "k" | "K" | "M" | "G" | "T" => {
            return Err(fail(": multiples are binary, so write Ki, Mi, Gi or Ti"));
        }
        _ => factor(&BINARY, unit).ok_or_else(|| fail(""))?,
    };
    scale_exactly(number, factor).map_err(fail)
}

impl FromStr for Entries {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        if text.trim() == "unlimited" {
            return Ok(Self::Unlimited);
        }
        parse_count(text, ENTRIES).map(Self::Limited)
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        if text.trim() == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let size: Result<Size, _> = text.parse();
        size.map(Self::Limited)
            .map_err(|_| ParseUnitError::new(BYTES, text, ""))
    }
}

impl FromStr for Nanos {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let fail = |why| ParseUnitError::new(TIME, text, why);
        let (number, unit) = split_unit(text.trim());
        if unit.is_empty() {
            return match number {
                "0" => Ok(Self(0)),
                _ => Err(fail(": the unit is missing")),
            };
        }
        let factor = factor(&TIMES, unit).ok_or_else(|| fail(""))?;
        scale_exactly(number, factor).map(Self).map_err(fail)
    }
}

impl FromStr for Share {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let trimmed = text.trim();
        let number = match trimmed.strip_suffix('%') {
            // The exponent keeps the conversion correctly rounded, which a division would not.
            Some(percent) => format!("{}e-2", percent.trim_end()).parse(),
            None => trimmed.parse(),
        };
        number
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| ParseUnitError::new(SHARE, text, ""))
    }
}

impl FromStr for Watermark {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let fail = || ParseUnitError::new(WATERMARK, text, "");
        if let Ok(blocks) = text.trim().parse::<u32>() {
            let some = Some(blocks).filter(|blocks| *blocks > 0);
            return some.map(Self::Blocks).ok_or_else(fail);
        }
        let share: Share = text.parse().map_err(|_| fail())?;
        let below = Some(share).filter(|share| share.get() < 1.0);
        below.map(Self::Share).ok_or_else(fail)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_binary(f, self.0, "B")
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_binary(f, self.0, "")
    }
}

impl fmt::Display for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(n) => write_binary(f, *n, ""),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(size) => size.fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0ns");
        }
        for (name, factor) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
            if self.0 >= factor {
                let (whole, rest) = (self.0 / factor, self.0 % factor);
                if rest == 0 {
                    return write!(f, "{whole}{name}");
                }
                let digits = factor.ilog10() as usize;
                let fraction = format!("{rest:0digits$}");
                return write!(f, "{whole}.{}{name}", fraction.trim_end_matches('0'));
            }
        }
        write!(f, "{}ns", self.0)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A share of 0 would print as a count of blocks.
            Self::Share(share) if share.get() == 0.0 => f.write_str("0%"),
            Self::Share(share) => share.fmt(f),
            Self::Blocks(n) => n.fmt(f),
        }
    }
}

/// Reads a quantity from a string, or from a bare number by way of its text.
struct TextVisitor<T> {
    expected: &'static str,
    make: std::marker::PhantomData<T>,
}

impl<T: FromStr<Err = ParseUnitError>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        // Debug keeps the point of a whole number: 1.0 is no count of blocks.
        format!("{number:?}").parse().map_err(E::custom)
    }
}

macro_rules! serde_as_text {
    ($($type:ty: $expected:expr),* $(,)?) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let make = std::marker::PhantomData;
                deserializer.deserialize_any(TextVisitor { expected: $expected, make })
            }
        }
    )*};
}

serde_as_text! {
    Size: SIZE, Bytes: BYTES, Count: COUNT, Entries: ENTRIES, Nanos: TIME, Share: SHARE, Watermark: WATERMARK,
}

macro_rules! serialize_as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

serialize_as_text!(Size, Bytes, Nanos);

/// Writes a plain number as a number, a multiple as text.
fn serialize_count<S: Serializer>(value: u64, serializer: S) -> Result<S::Ok, S::Error> {
    if value != 0 && value.is_multiple_of(1024) {
        serializer.collect_str(&Count(value))
    } else {
        serializer.serialize_u64(value)
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_count(self.0, serializer)
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Limited(n) => serialize_count(*n, serializer),
            Self::Unlimited => serializer.serialize_str("unlimited"),
        }
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl Serialize for Watermark {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Share(share) => share.serialize(serializer),
            Self::Blocks(n) => serializer.serialize_u32(*n),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    /// Those of all crates do: cargo tells the seed (`.cargo/config.toml`).
    #[test]
    fn property_tests_draw_from_a_seed() {
        let drawn_from = ProptestConfig::default().rng_seed;
        assert!(matches!(drawn_from, RngSeed::Fixed(_)), "{drawn_from}");
    }

    fn fails<T: FromStr<Err = ParseUnitError> + fmt::Debug>(texts: &[&str]) {
        for text in texts {
            let error = text.parse::<T>().expect_err(text);
            assert!(error.to_string().starts_with("expected a"), "{error}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("4GiB", 4 << 30),
            ("512KiB", 512 << 10),
            ("4096", 4096),
            ("0.5 KiB", 512),
            ("7B", 7),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        assert_eq!(Size(4 << 30).to_string(), "4GiB");
        assert_eq!(Size(4095).to_string(), "4095");
        fails::<Size>(&[
            "",
            "GiB",
            "4GB",
            "4G",
            "4Gi",
            "-1",
            "1.2.3",
            "1.",
            "0.3B",
            "16777216TiB",
            "4 X",
            "99999999999999999999",
        ]);
    }

    #[test]
    fn counts_and_entries() {
        assert_eq!("128Ki".parse(), Ok(Count(131_072)));
        assert_eq!("1_000".parse(), Ok(Count(1000)));
        assert_eq!("unlimited".parse(), Ok(Entries::Unlimited));
        assert_eq!("16Ki".parse(), Ok(Entries::Limited(16_384)));
        fails::<Count>(&["unlimited", "4KiB", "3k", "0.3"]);
        fails::<Entries>(&["none", "-4", ""]);
    }

    #[test]
    fn limits_in_bytes() {
        assert_eq!("unlimited".parse(), Ok(Bytes::Unlimited));
        assert_eq!("64KiB".parse(), Ok(Bytes::Limited(Size(65_536))));
        assert_eq!(Bytes::Limited(Size(65_536)).to_string(), "64KiB");
        fails::<Bytes>(&["none", "-4", "", "64KB"]);
    }

    #[test]
    fn durations() {
        for (text, nanos) in [
            ("25us", 25_000),
            ("25 µs", 25_000),
            ("1.5ms", 1_500_000),
            ("102.4us", 102_400),
            ("10min", 600_000_000_000),
            ("2h", 7_200_000_000_000),
            ("1d", 86_400_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(nanos)), "{text}");
        }
        assert_eq!(Nanos(102_400).to_string(), "102.4us");
        fails::<Nanos>(&[
            "25",
            "25 usec",
            "1.0000001us",
            "0.5ns",
            "us",
            "-3ms",
            "6000000h",
        ]);
    }

    #[test]
    fn shares_and_watermarks() {
        assert_eq!("15%".parse(), Ok(Share(0.15)));
        assert_eq!("7.3%".parse(), Ok(Share(0.073)));
        assert_eq!("0.05".parse(), Ok(Watermark::Share(Share(0.05))));
        assert_eq!("4".parse(), Ok(Watermark::Blocks(4)));
        fails::<Share>(&["1.1", "101%", "-0.1", "NaN", "inf", "", "%"]);
        fails::<Watermark>(&["0", "1.0", "100%", "-1", "4 blocks"]);
    }

    #[test]
    fn watermarks_round_down_but_not_to_none() {
        assert_eq!("5%".parse::<Watermark>().unwrap().blocks(2048), 102);
        assert_eq!("5%".parse::<Watermark>().unwrap().blocks(10), 1);
        assert_eq!("7".parse::<Watermark>().unwrap().blocks(2048), 7);
        // In binary floating point .29 x 100 is below 29.
        assert_eq!("29%".parse::<Watermark>().unwrap().blocks(100), 29);
    }

    proptest! {
        #[test]
        fn round_trips(n: u64, shift in 0_u32..50, share in 0.0..=1.0_f64, blocks in 1_u32..) {
            for value in [n, n >> shift, n >> shift << (shift / 2)] {
                prop_assert_eq!(Size(value).to_string().parse(), Ok(Size(value)));
                prop_assert_eq!(Count(value).to_string().parse(), Ok(Count(value)));
                prop_assert_eq!(Nanos(value).to_string().parse(), Ok(Nanos(value)));
                prop_assert_eq!(Entries::Limited(value).to_string().parse(), Ok(Entries::Limited(value)));
                let json = serde_json::to_string(&(Size(value), Count(value), Nanos(value))).unwrap();
                prop_assert_eq!(serde_json::from_str::<(Size, Count, Nanos)>(&json).unwrap(), (Size(value), Count(value), Nanos(value)));
            }
            prop_assert_eq!(share.to_string().parse(), Ok(Share(share)));
            let marks = [Watermark::Blocks(blocks), Watermark::Share(Share(share * 0.99))];
            for mark in marks {
                prop_assert_eq!(mark.to_string().parse(), Ok(mark));
                let json = serde_json::to_string(&mark).unwrap();
                prop_assert_eq!(serde_json::from_str::<Watermark>(&json).unwrap(), mark);
            }
        }

        #[test]
        fn any_text_is_a_value_or_an_error(text in "[0-9.KiMGTBunhms% _µ-]{0,12}|.{0,8}") {
            let _ = text.parse::<Size>();
            let _ = text.parse::<Entries>();
            let _ = text.parse::<Nanos>();
            let _ = text.parse::<Share>();
            let _ = text.parse::<Watermark>();
        }
    }
}
