//! A range of bytes in terms of mapping units: those it touches, those it covers, and what of it lies on each.

use std::ops::Range;

use crate::record::UNIT_BYTES;

/// Bytes of a device, from one on and before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    first: u64,
    end: u64,
}

impl ByteRange {
    /// `length` bytes from `offset` on, which end before byte 2^64.
    pub fn new(offset: u64, length: u64) -> Self {
        ByteRange {
            first: offset,
            end: offset + length,
        }
    }

    /// The units from that in which it begins to that in which it ends.
    pub fn touched(self) -> Range<u64> {
        self.first / UNIT_BYTES..self.end.div_ceil(UNIT_BYTES)
    }

    /// The units that lie within it as a whole; an empty range where there is none.
    pub fn covered(self) -> Range<u64> {
        let first = self.first.div_ceil(UNIT_BYTES);
        first..(self.end / UNIT_BYTES).max(first)
    }

    /// Whether it begins within a unit, which it then touches from its middle on.
    pub fn begins_within(self) -> bool {
        !self.first.is_multiple_of(UNIT_BYTES)
    }

    /// Whether it ends within a unit.
    pub fn ends_within(self) -> bool {
        !self.end.is_multiple_of(UNIT_BYTES)
    }

    /// Whether it consists of whole units.
    pub fn is_whole(self) -> bool {
        !self.begins_within() && !self.ends_within()
    }

    /// Its bytes on a unit that it touches, counted from its own first byte.
    pub fn on(self, unit: u64) -> Range<u64> {
        let first = unit * UNIT_BYTES;
        // The last unit may end at byte 2^64.
        let end = (self.end - first).min(UNIT_BYTES) + first;
        first.max(self.first) - self.first..end - self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_the_bytes_counted_one_by_one() {
        for offset in [0, 1, 511, 4095, 4096, 4097, 8191, 8192, 12287] {
            for length in [
                1, 2, 511, 4094, 4095, 4096, 4097, 8191, 8192, 8193, 12288, 16385,
            ] {
                let range = ByteRange::new(offset, length);
                let end = offset + length;
                let bytes_on = |unit: u64| {
                    let on = (0..length).filter(|byte| (offset + byte) / UNIT_BYTES == unit);
                    on.collect::<Vec<u64>>()
                };
                let all = 0..end.div_ceil(UNIT_BYTES);
                let touched = all.clone().filter(|&unit| !bytes_on(unit).is_empty());
                assert!(range.touched().eq(touched), "{range:?}");
                let covered = all.filter(|&unit| bytes_on(unit).len() as u64 == UNIT_BYTES);
                assert!(range.covered().eq(covered), "{range:?}");
                for unit in range.touched() {
                    assert!(range.on(unit).eq(bytes_on(unit)), "{range:?}");
                }
                let whole = range.touched().eq(range.covered());
                assert_eq!(range.is_whole(), whole, "{range:?}");
                assert_eq!(range.begins_within(), offset % UNIT_BYTES > 0);
                assert_eq!(range.ends_within(), end % UNIT_BYTES > 0);
            }
        }
    }

    #[test]
    fn a_range_may_be_empty_or_end_where_numbers_do() {
        assert!(ByteRange::new(0, 0).touched().is_empty());
        assert!(ByteRange::new(4097, 0).covered().is_empty());
        let last = ByteRange::new(u64::MAX - 1, 1);
        assert_eq!(last.on(u64::MAX / UNIT_BYTES), 0..1);
    }
}
