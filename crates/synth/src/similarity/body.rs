//! What the origin of a page holds: the bytes before any variant or version, by kind.

use super::hash::{self, Purpose};
use super::model::{Records, Similarity};
use super::recipe::{PageKind, Recipe};
use crate::draw::Draw;

/// Words of the vocabulary that all text of a workload shares.
const WORDS: u32 = 1000;

/// Bytes of the longest word and the space behind it.
const WORD_BYTES: usize = 12;

/// The share of a record that is its own: one byte in so many; the others are those of the page's
/// first record.
const OWN_OF_RECORD: usize = 16;

/// Fills the body of a page with what its origin holds.
pub(crate) fn fill(model: &Similarity, seed: u64, recipe: &Recipe, body: &mut [u8]) {
    let mut draw = hash::draw(seed, Purpose::Body, recipe.origin(), 0);
    match recipe.kind {
        PageKind::Record => records(&model.records, &mut draw, body),
        PageKind::Log => lines(seed, &mut draw, body),
        PageKind::Text => words(seed, &mut draw, body),
        PageKind::Zero => {}
        PageKind::Padded | PageKind::Random => hash::fill(&mut draw, body),
    }
}

/// Records of one schema: most bytes are those of the first record, the last ones of each are its own.
fn records(model: &Records, draw: &mut Draw, body: &mut [u8]) {
    let length = body.len() / model.page as usize;
    let own = (length / OWN_OF_RECORD).max(1);
    let (first, others) = body.split_at_mut(length);
    hash::fill(draw, first);
    let mut records = others.chunks_exact_mut(length);
    for record in &mut records {
        record.copy_from_slice(first);
        hash::fill(draw, &mut record[length - own..]);
    }
    records.into_remainder().fill(0);
}

/// Lines that begin with a time and a source.
fn lines(seed: u64, draw: &mut Draw, body: &mut [u8]) {
    let mut seconds = draw.below(1 << 30);
    let source = draw.below(1000);
    let mut at = 0;
    while at < body.len() {
        seconds = seconds.wrapping_add(draw.below(4));
        let head = format!("{seconds:010} host{source:03} daemon[{:05}]: ", source * 31);
        let end = put(body, at, head.as_bytes());
        let words = 4 + draw.below(8);
        at = (0..words).fold(end, |at, _| word(seed, draw, body, at));
        at = put(body, at, b"\n");
    }
}

fn words(seed: u64, draw: &mut Draw, body: &mut [u8]) {
    let mut at = 0;
    while at < body.len() {
        at = word(seed, draw, body, at);
    }
}

/// One word and a space; the smaller its number, the more frequent it is.
fn word(seed: u64, draw: &mut Draw, body: &mut [u8], at: usize) -> usize {
    let unit = draw.unit();
    let number = (unit * unit * unit * f64::from(WORDS)) as u32;
    let mut bits = hash::hash(seed, Purpose::Word, number, 0);
    let length = 2 + (bits % (WORD_BYTES as u64 - 2)) as usize;
    let mut word = [b' '; WORD_BYTES];
    for letter in &mut word[..length - 1] {
        bits >>= 5;
        *letter = b'a' + ((bits & 31) * 26 / 32) as u8;
    }
    put(body, at, &word[..length])
}

/// Writes `bytes` at `at`, as far as there is room; the end of what was written.
fn put(body: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    let room = body.len() - at;
    let bytes = &bytes[..bytes.len().min(room)];
    body[at..at + bytes.len()].copy_from_slice(bytes);
    at + bytes.len()
}
