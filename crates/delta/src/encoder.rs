//! Pages to encoded bytes.

use crate::copy::{Matcher, STEP_BYTES};
use crate::form::{Codec, Form, HEADER_BYTES};
use crate::{MAX_BYTES, PAGE_BYTES, Page, lz4};

/// Encodes pages. It keeps the memory that encoding takes and allocates nothing after
/// [`Encoder::new`]; make one for each thread.
pub struct Encoder {
    lz4: lz4::Scratch,
    matcher: Matcher,
    encoded: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder.
    pub fn new() -> Self {
        Self {
            lz4: lz4::Scratch::new(),
            matcher: Matcher::new(),
            // Copies are given up one step beyond the limit.
            encoded: Vec::with_capacity(MAX_BYTES + PAGE_BYTES + STEP_BYTES),
        }
    }

    /// `page` as its delta from `base`: header and body, at most `limit_bytes` together and never
    /// more than [`MAX_BYTES`]; nothing if it takes more. Then the page itself is the shorter form.
    pub fn delta(
        &mut self,
        codec: Codec,
        base: &Page,
        page: &Page,
        limit_bytes: usize,
    ) -> Option<&[u8]> {
        self.encode(codec, Some(base), page, limit_bytes)
    }

    /// `page` compressed by itself; otherwise as [`Encoder::delta`].
    pub fn alone(&mut self, codec: Codec, page: &Page, limit_bytes: usize) -> Option<&[u8]> {
        self.encode(codec, None, page, limit_bytes)
    }

    fn encode(
        &mut self,
        codec: Codec,
        base: Option<&Page>,
        page: &Page,
        limit_bytes: usize,
    ) -> Option<&[u8]> {
        let limit = limit_bytes.min(MAX_BYTES);
        self.encoded.clear();
        self.encoded.extend_from_slice(&[0; HEADER_BYTES]);
        match codec {
            Codec::Lz4 => {
                let body = self.lz4.encode(base, page);
                if HEADER_BYTES + body.len() > limit {
                    return None;
                }
                self.encoded.extend_from_slice(body);
            }
            Codec::Copy => self.matcher.encode(base, page, limit, &mut self.encoded)?,
        }
        let form = Form {
            codec,
            has_base: base.is_some(),
            body_bytes: (self.encoded.len() - HEADER_BYTES) as u16,
        };
        self.encoded[..HEADER_BYTES].copy_from_slice(&form.header());
        Some(&self.encoded)
    }
}
