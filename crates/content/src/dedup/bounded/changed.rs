//! Which sets may differ from what was read of a medium: a bit for a few neighbours.
//!
//! Invariant: once a set was marked, every range that has it says so.

use std::ops::Range;

/// Neighbours that share a bit.
const NEIGHBOURS: usize = 32;
/// Sets of a word of bits, and its bytes.
pub const SETS_OF_WORD: usize = NEIGHBOURS * u64::BITS as usize;
pub const WORD_BYTES: usize = size_of::<u64>();

/// Sets that may have changed.
#[derive(Debug, Clone)]
pub struct ChangedSets(Vec<u64>);

impl ChangedSets {
    /// None of so many.
    pub fn none(sets: usize) -> Self {
        ChangedSets(vec![0; sets.div_ceil(SETS_OF_WORD)])
    }

    /// A set changes.
    #[inline]
    pub fn mark(&mut self, set: usize) {
        let (word, bit) = place(set);
        self.0[word] |= bit;
    }

    /// Whether any of a range may have changed.
    pub fn any(&self, sets: Range<usize>) -> bool {
        let last = sets.clone().next_back();
        let mut of_each = sets.step_by(NEIGHBOURS).chain(last);
        of_each.any(|set| {
            let (word, bit) = place(set);
            self.0[word] & bit != 0
        })
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.0.capacity() * WORD_BYTES
    }
}

fn place(set: usize) -> (usize, u64) {
    let bit = set / NEIGHBOURS;
    (bit / u64::BITS as usize, 1 << (bit % u64::BITS as usize))
}
