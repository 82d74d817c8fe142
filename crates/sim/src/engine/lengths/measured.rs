//! Lengths of encoded bytes: header and body, as the codec makes them of the values' pages.
//!
//! A pair of values is encoded once; its length is remembered. Two pages and the codec's own buffers are
//! all that encoding takes, so a write allocates nothing but room for the lengths.
//!
//! Invariant: what is remembered is what encoding would give. A value whose bytes are unknown is not
//! remembered and has no length.

use std::collections::HashMap;

use flashlore_content::{PageTag, Sketch};
use flashlore_delta::{Codec, Encoder, PAGE_BYTES, Page};
use flashlore_trace::PageSource;
use rustc_hash::FxBuildHasher;

/// The length of what is not shorter than a page.
const WHOLE: u16 = PAGE_BYTES as u16;

/// Encodes the pages of values.
pub struct MeasuredLengths<'a> {
    pages: &'a dyn PageSource,
    codec: Codec,
    encoder: Encoder,
    base: Box<Page>,
    new: Box<Page>,
    /// By base and value.
    deltas: HashMap<(u32, u32), u16, FxBuildHasher>,
    /// By value; 0 where it was not encoded yet.
    alone: Vec<u16>,
    /// By value.
    sketches: HashMap<u32, Sketch, FxBuildHasher>,
}

impl<'a> MeasuredLengths<'a> {
    /// Nothing has been encoded yet.
    pub fn new(pages: &'a dyn PageSource, codec: Codec) -> Self {
        MeasuredLengths {
            pages,
            codec,
            encoder: Encoder::new(),
            base: Box::new([0; PAGE_BYTES]),
            new: Box::new([0; PAGE_BYTES]),
            deltas: HashMap::default(),
            alone: Vec::new(),
            sketches: HashMap::default(),
        }
    }

    /// Bytes of a value as its delta from another, at most those of a page; nothing if the bytes of
    /// either are unknown.
    pub fn delta(&mut self, base: PageTag, new: PageTag) -> Option<u16> {
        let key = (base.0, new.0);
        if let Some(&length) = self.deltas.get(&key) {
            return Some(length);
        }
        let known =
            self.pages.fill(base.0, &mut self.base) && self.pages.fill(new.0, &mut self.new);
        if !known {
            return None;
        }
        let encoded = self
            .encoder
            .delta(self.codec, &self.base, &self.new, PAGE_BYTES);
        let length = encoded.map_or(WHOLE, |bytes| bytes.len() as u16);
        self.deltas.insert(key, length);
        Some(length)
    }

    /// Bytes of a value compressed by itself, at most those of a page; nothing if its bytes are unknown.
    pub fn alone(&mut self, new: PageTag) -> Option<u16> {
        let at = new.0 as usize;
        if let Some(&length) = self.alone.get(at).filter(|&&length| length > 0) {
            return Some(length);
        }
        if !self.pages.fill(new.0, &mut self.new) {
            return None;
        }
        let encoded = self.encoder.alone(self.codec, &self.new, PAGE_BYTES);
        let length = encoded.map_or(WHOLE, |bytes| bytes.len() as u16);
        if self.alone.len() <= at {
            self.alone.resize(at + 1, 0);
        }
        self.alone[at] = length;
        Some(length)
    }

    /// The super-features of a value; nothing if its bytes are unknown.
    pub fn sketch(&mut self, new: PageTag) -> Option<Sketch> {
        if let Some(&sketch) = self.sketches.get(&new.0) {
            return Some(sketch);
        }
        if !self.pages.fill(new.0, &mut self.new) {
            return None;
        }
        let sketch = Sketch(flashlore_delta::sketch(&self.new));
        self.sketches.insert(new.0, sketch);
        Some(sketch)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pages of a few kinds, so that some differ little, some compress and some do neither.
    struct Made(Vec<Page>);

    impl PageSource for Made {
        fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool {
            let page = self.0.get(value as usize);
            if let Some(page) = page {
                *into = *page;
            }
            page.is_some()
        }
    }

    fn page(kind: u8, seed: u64) -> Page {
        let mut page = [kind; PAGE_BYTES];
        let mut state = seed;
        let noisy = match kind % 3 {
            0 => PAGE_BYTES,
            1 => 700,
            _ => 8,
        };
        for byte in &mut page[..noisy] {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        page
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Lengths that are remembered are those that a fresh encoder gives, in whatever order and however
        /// often they are asked for.
        #[test]
        fn what_is_remembered_is_what_encoding_gives(
            kinds in prop::collection::vec((any::<u8>(), any::<u64>()), 1..8),
            asked in prop::collection::vec((0u32..9, 0u32..9, any::<bool>()), 1..60),
            codec in prop::sample::select(Codec::ALL.to_vec()),
        ) {
            let pages: Vec<Page> = kinds.iter().map(|&(kind, seed)| page(kind, seed)).collect();
            let made = Made(pages.clone());
            let mut measured = MeasuredLengths::new(&made, codec);
            for (base, new, alone) in asked {
                let mut encoder = Encoder::new();
                let pages = (pages.get(base as usize), pages.get(new as usize));
                let (expected, found) = if alone {
                    let encoded = pages.1.map(|new| encoder.alone(codec, new, PAGE_BYTES));
                    let length = encoded.map(|e| e.map_or(PAGE_BYTES, <[u8]>::len));
                    (length, measured.alone(PageTag(new)))
                } else {
                    let pages = pages.0.zip(pages.1);
                    let encoded = pages.map(|(base, new)| encoder.delta(codec, base, new, PAGE_BYTES));
                    let length = encoded.map(|e| e.map_or(PAGE_BYTES, <[u8]>::len));
                    (length, measured.delta(PageTag(base), PageTag(new)))
                };
                prop_assert_eq!(found.map(usize::from), expected);
            }
        }
    }
}
