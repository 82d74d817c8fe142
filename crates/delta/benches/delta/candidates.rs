//! The codecs of this crate, and others that were not chosen.

use flashlore_delta::{Codec, Encoder, HEADER_BYTES, PAGE_BYTES, Page, decode};
use zstd::zstd_safe::{CCtx, CParameter, DCtx, compress_bound};

use crate::versions::Pair;

/// A codec.
pub trait Candidate<'a> {
    /// What the tables call it.
    fn name(&self) -> &'static str;

    /// Whether it belongs to this crate.
    fn is_ours(&self) -> bool {
        false
    }

    /// Bytes before the body.
    fn header_bytes(&self) -> usize {
        0
    }

    /// Appends a new page, encoded.
    fn encode(&mut self, pair: &Pair<'a>, into: &mut Vec<u8>);

    /// The new page, from the old one and the body.
    fn decode(&mut self, pair: &Pair<'a>, body: &[u8], page: &mut Page);
}

/// Codecs of deltas.
pub fn of_deltas<'a>() -> Vec<Box<dyn Candidate<'a> + 'a>> {
    vec![
        Box::new(Ours::new("xor + lz4", Codec::Lz4, true)),
        Box::new(Ours::new("copy", Codec::Copy, true)),
        Box::new(XorZeroRuns),
        Box::new(Lz4Dictionary),
        Box::new(Zstd::new("xor + zstd -1", Use::Xor)),
        Box::new(Zstd::new("zstd -1, prefix", Use::Prefix)),
    ]
}

/// Codecs of pages alone.
pub fn of_pages<'a>() -> Vec<Box<dyn Candidate<'a> + 'a>> {
    vec![
        Box::new(Ours::new("lz4", Codec::Lz4, false)),
        Box::new(Ours::new("copy", Codec::Copy, false)),
        Box::new(Zstd::new("zstd -1", Use::Alone)),
    ]
}

/// A codec of this crate. What does not become shorter is kept as the page, without a header.
struct Ours {
    name: &'static str,
    codec: Codec,
    has_base: bool,
    encoder: Encoder,
}

impl Ours {
    fn new(name: &'static str, codec: Codec, has_base: bool) -> Ours {
        Ours {
            name,
            codec,
            has_base,
            encoder: Encoder::new(),
        }
    }
}

impl<'a> Candidate<'a> for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn header_bytes(&self) -> usize {
        HEADER_BYTES
    }

    fn encode(&mut self, pair: &Pair<'a>, into: &mut Vec<u8>) {
        let limit = PAGE_BYTES - 1;
        let encoded = match self.has_base {
            true => self.encoder.delta(self.codec, pair.old, pair.new, limit),
            false => self.encoder.alone(self.codec, pair.new, limit),
        };
        into.extend_from_slice(encoded.unwrap_or(pair.new));
    }

    fn decode(&mut self, pair: &Pair<'a>, body: &[u8], page: &mut Page) {
        if body.len() == PAGE_BYTES {
            page.copy_from_slice(body);
        } else {
            decode(body, Some(pair.old), page).expect("what was encoded");
        }
    }
}

fn exclusive_or(page: &mut Page, other: &Page) {
    for (byte, other) in page.iter_mut().zip(other) {
        *byte ^= other;
    }
}

/// Exclusive or, then runs: zeros (two bytes), others (two bytes), the others; until the page ends.
struct XorZeroRuns;

/// Zeros between others that are worth a new run.
const WORTH: usize = 5;

impl<'a> Candidate<'a> for XorZeroRuns {
    fn name(&self) -> &'static str {
        "xor, zero runs"
    }

    fn encode(&mut self, pair: &Pair<'a>, into: &mut Vec<u8>) {
        let mut page = *pair.new;
        exclusive_or(&mut page, pair.old);
        let mut rest = &page[..];
        while !rest.is_empty() {
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            rest = &rest[zeros..];
            let worth = rest.windows(WORTH).position(|bytes| bytes == [0; WORTH]);
            let others = worth.unwrap_or(rest.len());
            into.extend_from_slice(&(zeros as u16).to_le_bytes());
            into.extend_from_slice(&(others as u16).to_le_bytes());
            into.extend_from_slice(&rest[..others]);
            rest = &rest[others..];
        }
    }

    fn decode(&mut self, pair: &Pair<'a>, mut body: &[u8], page: &mut Page) {
        *page = *pair.old;
        let mut at = 0;
        while let Some((&[a, b, c, d], rest)) = body.split_first_chunk() {
            at += usize::from(u16::from_le_bytes([a, b]));
            let (others, rest) = rest.split_at(u16::from_le_bytes([c, d]).into());
            for (byte, other) in page[at..].iter_mut().zip(others) {
                *byte ^= other;
            }
            at += others.len();
            body = rest;
        }
    }
}

/// LZ4 with the old page as dictionary. It allocates its table for every page.
struct Lz4Dictionary;

impl<'a> Candidate<'a> for Lz4Dictionary {
    fn name(&self) -> &'static str {
        "lz4, dictionary"
    }

    fn encode(&mut self, pair: &Pair<'a>, into: &mut Vec<u8>) {
        let begin = into.len();
        let room = lz4_flex::block::get_maximum_output_size(PAGE_BYTES);
        into.resize(begin + room, 0);
        let body = &mut into[begin..];
        let bytes = lz4_flex::block::compress_into_with_dict(pair.new, body, pair.old);
        into.truncate(begin + bytes.expect("room for the largest output"));
    }

    fn decode(&mut self, pair: &Pair<'a>, body: &[u8], page: &mut Page) {
        lz4_flex::block::decompress_into_with_dict(body, page, pair.old).expect("what was encoded");
    }
}

/// What zstd compresses.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Alone,
    Xor,
    Prefix,
}

/// Zstd, level 1, with contexts that are used again, and frames that hold no more than they must.
struct Zstd<'a> {
    name: &'static str,
    how: Use,
    compress: CCtx<'a>,
    decompress: DCtx<'a>,
    room: Vec<u8>,
}

impl Zstd<'_> {
    fn new(name: &'static str, how: Use) -> Self {
        let mut compress = CCtx::create();
        for parameter in [
            CParameter::CompressionLevel(1),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
        ] {
            compress.set_parameter(parameter).expect("a parameter");
        }
        Self {
            name,
            how,
            compress,
            decompress: DCtx::create(),
            room: Vec::with_capacity(compress_bound(PAGE_BYTES)),
        }
    }
}

impl<'a> Candidate<'a> for Zstd<'a> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn encode(&mut self, pair: &Pair<'a>, into: &mut Vec<u8>) {
        let mut page = *pair.new;
        match self.how {
            Use::Alone => {}
            Use::Xor => exclusive_or(&mut page, pair.old),
            Use::Prefix => {
                self.compress.ref_prefix(pair.old).expect("a prefix");
            }
        }
        self.room.clear();
        let done = self.compress.compress2(&mut self.room, &page);
        done.expect("room for the largest output");
        into.extend_from_slice(&self.room);
    }

    fn decode(&mut self, pair: &Pair<'a>, body: &[u8], page: &mut Page) {
        if self.how == Use::Prefix {
            self.decompress.ref_prefix(pair.old).expect("a prefix");
        }
        let done = self.decompress.decompress(&mut page[..], body);
        done.expect("what was encoded");
        if self.how == Use::Xor {
            exclusive_or(page, pair.old);
        }
    }
}
