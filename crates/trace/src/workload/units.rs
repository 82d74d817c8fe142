//! Sets of mapping units: sparse bitmaps that cost what is touched, not what is addressed.

use std::collections::BTreeMap;

/// Units of one 64-bit word.
const WORD_UNITS: u64 = 64;

/// Words of one chunk.
const CHUNK_WORDS: u64 = 64;

/// Units of one chunk: 16 MiB of address space.
const CHUNK_UNITS: u64 = WORD_UNITS * CHUNK_WORDS;

/// Marks a chunk whose units are all in the set and that needs no bitmap.
const FULL: u32 = u32::MAX;

/// A set of units of one device.
#[derive(Debug, Default)]
pub(crate) struct UnitSet {
    index: BTreeMap<u64, u32>,
    bits: Vec<[u64; CHUNK_WORDS as usize]>,
    cached: Option<(u64, u32)>,
}

impl UnitSet {
    /// Adds the units `from..to`.
    pub(crate) fn insert(&mut self, from: u64, to: u64) {
        let mut unit = from;
        while unit < to {
            let chunk = unit / CHUNK_UNITS;
            let end = to.min((chunk + 1) * CHUNK_UNITS);
            if end - unit == CHUNK_UNITS {
                self.index.insert(chunk, FULL);
                self.cached = None;
            } else {
                self.insert_within(chunk, unit, end);
            }
            unit = end;
        }
    }

    fn insert_within(&mut self, chunk: u64, from: u64, to: u64) {
        let slot = match self.slot(chunk) {
            Some(slot) => slot,
            None => {
                let slot = self.bits.len() as u32;
                self.bits.push([0; CHUNK_WORDS as usize]);
                self.index.insert(chunk, slot);
                self.cached = Some((chunk, slot));
                slot
            }
        };
        if slot == FULL {
            return;
        }
        for (word, mask) in masks(from, to) {
            self.bits[slot as usize][(word % CHUNK_WORDS) as usize] |= mask;
        }
    }

    /// The 64 units from `word * 64` on, the first in the lowest bit.
    #[inline]
    pub(crate) fn word(&mut self, word: u64) -> u64 {
        match self.slot(word / CHUNK_WORDS) {
            None => 0,
            Some(FULL) => u64::MAX,
            Some(slot) => self.bits[slot as usize][(word % CHUNK_WORDS) as usize],
        }
    }

    #[inline]
    fn slot(&mut self, chunk: u64) -> Option<u32> {
        if let Some((cached, slot)) = self.cached
            && cached == chunk
        {
            return Some(slot);
        }
        let slot = *self.index.get(&chunk)?;
        self.cached = Some((chunk, slot));
        Some(slot)
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The set with its counts, for asking ranks.
    pub(crate) fn into_ranks(self) -> Ranks {
        let mut ranks = Ranks {
            chunks: Vec::with_capacity(self.index.len()),
            total: 0,
            bits: self.bits,
        };
        for (&chunk, &slot) in &self.index {
            ranks.chunks.push(RankedChunk {
                chunk,
                before: ranks.total,
                slot,
            });
            ranks.total += match slot {
                FULL => CHUNK_UNITS,
                _ => ranks.bits[slot as usize]
                    .iter()
                    .map(|w| u64::from(w.count_ones()))
                    .sum(),
            };
        }
        ranks
    }
}

/// The words that `from..to` touches, each with the bits of its share.
pub(crate) fn masks(from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
    (from / WORD_UNITS..to.div_ceil(WORD_UNITS)).map(move |word| {
        let first = word * WORD_UNITS;
        let low = from.saturating_sub(first);
        let high = (to - first).min(WORD_UNITS);
        (word, (u64::MAX << low) & (u64::MAX >> (WORD_UNITS - high)))
    })
}

/// A finished set that knows how many of its units lie below any unit.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    chunks: Vec<RankedChunk>,
    total: u64,
    bits: Vec<[u64; CHUNK_WORDS as usize]>,
}

#[derive(Debug)]
struct RankedChunk {
    chunk: u64,
    before: u64,
    slot: u32,
}

impl Ranks {
    /// Number of units in the set.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Number of units in the set below `unit`.
    pub(crate) fn rank(&self, unit: u64) -> u64 {
        let chunk = unit / CHUNK_UNITS;
        let at = self.chunks.partition_point(|ranked| ranked.chunk < chunk);
        let Some(ranked) = self.chunks.get(at) else {
            return self.total;
        };
        if ranked.chunk != chunk {
            return ranked.before;
        }
        let within = unit % CHUNK_UNITS;
        if ranked.slot == FULL {
            return ranked.before + within;
        }
        let bits = &self.bits[ranked.slot as usize];
        let word = (within / WORD_UNITS) as usize;
        let below: u32 = bits[..word].iter().map(|w| w.count_ones()).sum();
        let partial = bits[word] & ((1 << (within % WORD_UNITS)) - 1);
        ranked.before + u64::from(below + partial.count_ones())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_an_ordered_set(
            ranges in prop::collection::vec((0u64..40_000, 0u64..9_000), 1..20),
            asked in prop::collection::vec(0u64..60_000, 50),
        ) {
            let mut set = UnitSet::default();
            let mut oracle = BTreeSet::new();
            for (from, length) in ranges {
                set.insert(from, from + length);
                oracle.extend(from..from + length);
            }
            for &unit in &asked {
                let word = set.word(unit / 64);
                prop_assert_eq!(word >> (unit % 64) & 1 == 1, oracle.contains(&unit));
            }
            let ranks = set.into_ranks();
            prop_assert_eq!(ranks.total(), oracle.len() as u64);
            for unit in asked {
                prop_assert_eq!(ranks.rank(unit), oracle.range(..unit).count() as u64);
            }
        }
    }
}
