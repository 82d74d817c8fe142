//! R_c of every write of a trace by the bytes of its pages, as definition 13 measures it.
//!
//! A page is encoded as its delta from what it held before: the last write, or before any write what
//! a read found there. A page of which nothing is known before, or not since a trim, has nothing to
//! differ from, and R_c is 1.

use flashlore_delta::{Codec, Encoder, MAX_BYTES};
use flashlore_trace::pages::{PAGE_BYTES, PageSource};
use flashlore_trace::workload::{CurrentValues, NO_VALUE};
use flashlore_trace::{FULL_RATIO, Op, RateWrites, Record, UNIT_BYTES};

use crate::statistics::compressibility::body_bytes;

/// Encodes what a trace writes.
pub struct ByteRater<'a> {
    source: &'a dyn PageSource,
    codec: Codec,
    encoder: Encoder,
    held: CurrentValues,
    new: Box<[u8; PAGE_BYTES]>,
    old: Box<[u8; PAGE_BYTES]>,
}

impl<'a> ByteRater<'a> {
    /// Nothing was written yet; `source` has the bytes of the values.
    pub fn new(source: &'a dyn PageSource, codec: Codec) -> Self {
        Self {
            source,
            codec,
            encoder: Encoder::new(),
            held: CurrentValues::default(),
            new: Box::new([0; PAGE_BYTES]),
            old: Box::new([0; PAGE_BYTES]),
        }
    }

    fn write(&mut self, record: &Record<'_>, out: &mut Vec<u16>) -> Result<(), String> {
        if !record.bytes().is_whole() {
            return Err(format!(
                "it writes {} bytes at {}, and the bytes of a page written in part are not known; \
                 expected whole pages of {UNIT_BYTES}",
                record.length, record.offset
            ));
        }
        let content = record.content.ok_or("it has no content, and so no bytes")?;
        for (unit, &value) in record.bytes().touched().zip(content) {
            let old = self.held.replace(record.device, unit, value);
            out.push(self.ratio(old, value)?);
        }
        Ok(())
    }

    fn ratio(&mut self, old: u32, new: u32) -> Result<u16, String> {
        if old == NO_VALUE {
            return Ok(FULL_RATIO);
        }
        for (value, page) in [(old, &mut self.old), (new, &mut self.new)] {
            if !self.source.fill(value, page) {
                return Err(format!("the bytes of value {value} are not known"));
            }
        }
        let encoded = self
            .encoder
            .delta(self.codec, &self.old, &self.new, MAX_BYTES);
        let bytes = body_bytes(encoded).min(PAGE_BYTES);
        let ratio = (bytes * usize::from(FULL_RATIO) + PAGE_BYTES / 2) / PAGE_BYTES;
        Ok(ratio.max(1) as u16)
    }

    /// Pages read before they were written were found so.
    fn read(&mut self, record: &Record<'_>) {
        let bytes = record.bytes();
        // Else its chunks are no units.
        let Some(content) = record.content.filter(|_| !bytes.begins_within()) else {
            return;
        };
        for (unit, &value) in bytes.covered().zip(content) {
            if self.held.get(record.device, unit) == NO_VALUE {
                self.held.replace(record.device, unit, value);
            }
        }
    }
}

impl RateWrites for ByteRater<'_> {
    fn rate(&mut self, record: &Record<'_>, out: &mut Vec<u16>) -> Result<(), String> {
        match record.op {
            Op::Write => self.write(record, out)?,
            Op::Read => self.read(record),
            Op::Trim => {
                let units = record.bytes().covered();
                self.held.forget(record.device, units.start, units.end);
            }
            Op::Flush => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise; value v differs from value 0 in its first v bytes, and values from 100 on are not known.
    struct TestPages;

    impl PageSource for TestPages {
        fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool {
            let mut state = 7_u32;
            for (at, byte) in (0..).zip(into.iter_mut()) {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let changed = if at < value { (at * 37) as u8 | 1 } else { 0 };
                *byte = (state >> 24) as u8 ^ changed;
            }
            value < 100
        }
    }

    fn record(op: Op, page: u64, content: Option<&[u32]>) -> Record<'_> {
        Record {
            time_ns: 0,
            device: 3,
            op,
            offset: page * UNIT_BYTES,
            length: content.map_or(1, <[u32]>::len) as u64 * UNIT_BYTES,
            content,
            delta_ratios: None,
        }
    }

    fn measured(old: u32, new: u32, codec: Codec) -> u16 {
        let (mut base, mut page) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
        assert!(TestPages.fill(old, &mut base) && TestPages.fill(new, &mut page));
        let mut encoder = Encoder::new();
        let encoded = encoder.delta(codec, &base, &page, MAX_BYTES).unwrap();
        let bytes = encoded.len() - flashlore_delta::HEADER_BYTES;
        (bytes as f64 / 4096.0 * 65535.0).round() as u16
    }

    #[test]
    fn a_page_differs_from_what_it_held() {
        for codec in Codec::ALL {
            let mut rater = ByteRater::new(&TestPages, codec);
            let mut rate = |op, page, content| {
                let mut out = Vec::new();
                rater.rate(&record(op, page, content), &mut out).unwrap();
                out
            };
            // Nothing was there; then a write, one that a read found, and one after a trim.
            assert_eq!(rate(Op::Write, 0, Some(&[0])), [FULL_RATIO]);
            assert!(rate(Op::Read, 0, Some(&[9, 50])).is_empty());
            let wanted = [measured(0, 60, codec), measured(50, 10, codec)];
            assert!(wanted[0] > wanted[1] || codec == Codec::Copy);
            assert_eq!(rate(Op::Write, 0, Some(&[60, 10])), wanted);
            assert!(rate(Op::Trim, 1, None).is_empty());
            let wanted = [measured(60, 60, codec), FULL_RATIO];
            assert!(wanted[0] < 1000);
            assert_eq!(rate(Op::Write, 0, Some(&[60, 10])), wanted);
        }
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut rater = ByteRater::new(&TestPages, Codec::Lz4);
        let mut why = |record: &Record<'_>| rater.rate(record, &mut Vec::new()).unwrap_err();
        let without = why(&record(Op::Write, 0, None));
        assert_eq!(without, "it has no content, and so no bytes");
        let part = Record {
            length: 512,
            ..record(Op::Write, 1, Some(&[1]))
        };
        assert!(why(&part).starts_with("it writes 512 bytes at 4096, and"));
        let mut first = Vec::new();
        rater
            .rate(&record(Op::Write, 0, Some(&[1])), &mut first)
            .unwrap();
        let unknown = rater.rate(&record(Op::Write, 0, Some(&[100])), &mut first);
        assert_eq!(unknown.unwrap_err(), "the bytes of value 100 are not known");
    }
}
