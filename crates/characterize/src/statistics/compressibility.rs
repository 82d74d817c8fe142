//! What pages and their differences compress to (definition 13).
//!
//! The codec is LZ4's block format, byte-oriented and fast. A ratio is the compressed size over 4096,
//! at most 1. With sampling, only writes whose values are followed are compressed.

use serde::{Deserialize, Serialize};

use crate::measures::ratios::{RatioSpread, Ratios};
use crate::measures::share;
use crate::options::{PAGE_BYTES, PageSource};

/// What pages and their differences compress to.
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
struct Codec<'a> {
    source: &'a dyn PageSource,
    pages: u64,
    zero_pages: u64,
    delta: Ratios,
    alone: Ratios,
    new: Box<[u8; PAGE_BYTES]>,
    old: Box<[u8; PAGE_BYTES]>,
    compressed: Vec<u8>,
}

/// Compresses pages where their bytes are known, and counts the ratios that are given.
pub(crate) struct CompressibilityCounter<'a> {
    codec: Option<Codec<'a>>,
    given: Option<Ratios>,
}

impl<'a> CompressibilityCounter<'a> {
    /// Takes the bytes of values from `source`, if there is one.
    pub fn new(source: Option<&'a dyn PageSource>) -> Self {
        Self {
            codec: source.map(Codec::new),
            given: None,
        }
    }

    /// A page that held `old`, if that is known, is written with `new`.
    pub fn observe(&mut self, new: u32, old: Option<u32>) {
        if let Some(codec) = &mut self.codec {
            codec.observe(new, old);
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
        if self.codec.is_none() && self.given.is_none() {
            return None;
        }
        let found = self.codec.map(Codec::finish).unwrap_or_default();
        Some(Compressibility {
            given: self.given.and_then(|given| given.finish()),
            ..found
        })
    }
}

impl<'a> Codec<'a> {
    fn new(source: &'a dyn PageSource) -> Self {
        let largest = lz4_flex::block::get_maximum_output_size(PAGE_BYTES);
        Self {
            source,
            pages: 0,
            zero_pages: 0,
            delta: Ratios::new(PAGE_BYTES),
            alone: Ratios::new(PAGE_BYTES),
            new: Box::new([0; PAGE_BYTES]),
            old: Box::new([0; PAGE_BYTES]),
            compressed: vec![0; largest],
        }
    }

    fn observe(&mut self, new: u32, old: Option<u32>) {
        if !self.source.fill(new, &mut self.new) {
            return;
        }
        self.pages += 1;
        self.zero_pages += u64::from(self.new.iter().all(|byte| *byte == 0));
        self.alone.add(compressed(&self.new, &mut self.compressed));
        if let Some(old) = old.filter(|old| *old != new)
            && self.source.fill(old, &mut self.old)
        {
            for (old, new) in self.old.iter_mut().zip(self.new.iter()) {
                *old ^= new;
            }
            self.delta.add(compressed(&self.old, &mut self.compressed));
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

/// Bytes that `page` compresses to; that of a page if it does not.
fn compressed(page: &[u8; PAGE_BYTES], into: &mut [u8]) -> usize {
    lz4_flex::block::compress_into(page, into).unwrap_or(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 is the zero page, 1 noise, 2 the same noise with one byte changed; others are not known.
    struct Source;

    impl PageSource for Source {
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
        let mut counter = CompressibilityCounter::new(Some(&Source));
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
