//! What pages and their deltas compress to (definition 13).
//!
//! The codec is [`Codec::Lz4`] without its header: LZ4's block format, byte-oriented and fast. A ratio
//! is the compressed size over 4096, at most 1. With sampling, only writes whose values are followed are compressed.

use flashlore_delta::{Codec, Encoder, HEADER_BYTES, MAX_BYTES};
use flashlore_trace::pages::{PAGE_BYTES, PageSource};
use serde::{Deserialize, Serialize};

use crate::measures::ratios::{RatioSpread, Ratios};
use crate::measures::share;

/// What pages and their deltas compress to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compressibility {
    /// Page writes whose bytes are known.
    pub pages: u64,
    /// Of these, pages of 4096 zero bytes.
    pub zero_pages: u64,
    /// Their share.
    pub zero_share: Option<f64>,
    /// The page written and the page it replaces, combined by exclusive or; silent writes left out.
    pub delta: Option<RatioSpread>,
    /// The page written by itself.
    pub alone: Option<RatioSpread>,
    /// The ratios of page writes that the trace or an overlay gives instead of bytes.
    pub given: Option<RatioSpread>,
}

/// Compresses pages.
struct Measure<'a> {
    source: &'a dyn PageSource,
    pages: u64,
    zero_pages: u64,
    delta: Ratios,
    alone: Ratios,
    new: Box<[u8; PAGE_BYTES]>,
    old: Box<[u8; PAGE_BYTES]>,
    encoder: Encoder,
}

/// Compresses pages where their bytes are known, and counts the ratios that are given.
pub(crate) struct CompressibilityCounter<'a> {
    measure: Option<Measure<'a>>,
    given: Option<Ratios>,
}

impl<'a> CompressibilityCounter<'a> {
    /// Takes the bytes of values from `source`, if there is one.
    pub fn new(source: Option<&'a dyn PageSource>) -> Self {
        Self {
            measure: source.map(Measure::new),
            given: None,
        }
    }

    /// A page that held `old`, if that is known, is written with `new`.
    pub fn observe(&mut self, new: u32, old: Option<u32>) {
        if let Some(measure) = &mut self.measure {
            measure.observe(new, old);
        }
    }

    /// A page write whose ratio is given, in 1/65535.
    pub fn given(&mut self, ratio: u16) {
        let steps = usize::from(u16::MAX);
        let given = self.given.get_or_insert_with(|| Ratios::new(steps));
        given.add(usize::from(ratio));
    }

    /// The ratios; nothing without bytes and ratios.
    pub fn finish(self) -> Option<Compressibility> {
        if self.measure.is_none() && self.given.is_none() {
            return None;
        }
        let found = self.measure.map(Measure::finish).unwrap_or_default();
        Some(Compressibility {
            given: self.given.and_then(|given| given.finish()),
            ..found
        })
    }
}

impl<'a> Measure<'a> {
    fn new(source: &'a dyn PageSource) -> Self {
        Self {
            source,
            pages: 0,
            zero_pages: 0,
            delta: Ratios::new(PAGE_BYTES),
            alone: Ratios::new(PAGE_BYTES),
            new: Box::new([0; PAGE_BYTES]),
            old: Box::new([0; PAGE_BYTES]),
            encoder: Encoder::new(),
        }
    }

    fn observe(&mut self, new: u32, old: Option<u32>) {
        if !self.source.fill(new, &mut self.new) {
            return;
        }
        self.pages += 1;
        self.zero_pages += u64::from(self.new.iter().all(|byte| *byte == 0));
        let alone = self.encoder.alone(Codec::Lz4, &self.new, MAX_BYTES);
        self.alone.add(body_bytes(alone));
        if let Some(old) = old.filter(|old| *old != new)
            && self.source.fill(old, &mut self.old)
        {
            let encoder = &mut self.encoder;
            let delta = encoder.delta(Codec::Lz4, &self.old, &self.new, MAX_BYTES);
            self.delta.add(body_bytes(delta));
        }
    }

    fn finish(self) -> Compressibility {
        Compressibility {
            pages: self.pages,
            zero_pages: self.zero_pages,
            zero_share: share(self.zero_pages, self.pages),
            delta: self.delta.finish(),
            alone: self.alone.finish(),
            given: None,
        }
    }
}

/// Bytes of an encoded page without its header; those of a page if it became no shorter.
pub(crate) fn body_bytes(encoded: Option<&[u8]>) -> usize {
    encoded.map_or(PAGE_BYTES, |encoded| encoded.len() - HEADER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 is the zero page, 1 noise, 2 the same noise with one byte changed; others are not known.
    struct TestPages;

    impl PageSource for TestPages {
        fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool {
            let mut state = 7_u32;
            for byte in into.iter_mut() {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = if value == 0 { 0 } else { (state >> 24) as u8 };
            }
            into[100] ^= u8::from(value == 2);
            value < 3
        }
    }

    #[test]
    fn deltas_are_of_known_and_different_pages() {
        let mut counter = CompressibilityCounter::new(Some(&TestPages));
        counter.observe(0, None);
        counter.observe(1, Some(0)); // noise either way
        counter.observe(1, Some(1)); // silent
        counter.observe(2, Some(1)); // one byte
        counter.observe(2, Some(9)); // the old page is not known
        counter.observe(9, Some(1)); // the new page is not known
        counter.given(u16::MAX);
        let found = counter.finish().unwrap();
        assert_eq!(
            (found.pages, found.zero_pages, found.zero_share),
            (5, 1, Some(0.2))
        );
        let (alone, delta) = (found.alone.unwrap(), found.delta.unwrap());
        assert_eq!((alone.count, alone.p50, alone.p90), (5, 1.0, 1.0));
        assert!(alone.p10 < 0.01, "the zero page: {}", alone.p10);
        assert_eq!((delta.count, delta.p90), (2, 1.0));
        let given = found.given.unwrap();
        assert_eq!((given.count, given.mean), (1, 1.0));
        assert!(
            delta.p10 > 0.0 && delta.p10 < 0.02,
            "one byte: {}",
            delta.p10
        );
    }
}
