//! Time slots: each is taken or free, and the next one to take is always above all taken ones.
//!
//! A bit a slot, and a Fenwick tree over blocks of 512 bits (a cache line). Taking, freeing and
//! counting cost O(log n). When the slots run out, [`Slots::compact`] renumbers the taken ones from
//! 0 on in their order; afterwards at least seven eighths are free, so that this costs O(1) a slot
//! taken. (Beyond 2^29 taken slots fewer are free: there are at most 2^32.)
//!
//! Invariants: no slot at or above `next` is taken; `tree` counts the bits of `words`.

const WORD_BITS: usize = 64;
const BLOCK_WORDS: usize = 8;
const BLOCK_BITS: usize = WORD_BITS * BLOCK_WORDS;

/// After compaction there are this many slots for each taken one, at least.
const ROOM: usize = 8;

/// Slots are numbered by 32 bits, and the last number is none.
const MAX_BLOCKS: usize = (1 << 32) / BLOCK_BITS - 1;

/// Slots and how many of them are taken above any.
#[derive(Debug)]
pub struct Slots {
    words: Vec<u64>,
    tree: Vec<u32>,
    next: usize,
    taken: u32,
}

/// Where compaction put the slots that were taken.
#[derive(Debug)]
pub struct Renumbering {
    words: Vec<u64>,
    before: Vec<u32>,
}

impl Default for Slots {
    fn default() -> Self {
        Self::with_blocks(2)
    }
}

impl Slots {
    fn with_blocks(blocks: usize) -> Self {
        Self {
            words: vec![0; blocks * BLOCK_WORDS],
            tree: vec![0; blocks + 1],
            next: 0,
            taken: 0,
        }
    }

    /// Number of slots taken.
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// Number of slots there are.
    pub fn capacity(&self) -> usize {
        self.words.len() * WORD_BITS
    }

    /// Whether [`Slots::compact`] is due before another slot can be taken.
    pub fn is_full(&self) -> bool {
        self.next == self.capacity()
    }

    /// Takes the next slot.
    ///
    /// # Panics
    /// When the slots are full.
    pub fn take(&mut self) -> u32 {
        let slot = self.next;
        self.words[slot / WORD_BITS] |= 1 << (slot % WORD_BITS);
        self.next += 1;
        self.taken += 1;
        let mut node = slot / BLOCK_BITS + 1;
        while node < self.tree.len() {
            self.tree[node] += 1;
            node += node & node.wrapping_neg();
        }
        slot as u32
    }

    /// Frees a taken slot.
    pub fn free(&mut self, slot: u32) {
        let slot = slot as usize;
        debug_assert!(self.is_taken(slot as u32));
        self.words[slot / WORD_BITS] &= !(1 << (slot % WORD_BITS));
        self.taken -= 1;
        let mut node = slot / BLOCK_BITS + 1;
        while node < self.tree.len() {
            self.tree[node] -= 1;
            node += node & node.wrapping_neg();
        }
    }

    /// Whether a slot is taken.
    pub fn is_taken(&self, slot: u32) -> bool {
        self.words[slot as usize / WORD_BITS] >> (slot as usize % WORD_BITS) & 1 == 1
    }

    /// Number of taken slots above `slot`.
    pub fn above(&self, slot: u32) -> u32 {
        let slot = slot as usize;
        let mut upto = bits_upto(&self.words, slot);
        let mut node = slot / BLOCK_BITS;
        while node > 0 {
            upto += self.tree[node];
            node &= node - 1;
        }
        self.taken - upto
    }

    /// Renumbers the taken slots from 0 on, and says how.
    pub fn compact(&mut self) -> Renumbering {
        let taken = self.taken as usize;
        let blocks = (taken * ROOM)
            .div_ceil(BLOCK_BITS)
            .min(MAX_BLOCKS)
            .max(self.capacity() / BLOCK_BITS);
        let mut new = Self::with_blocks(blocks);
        new.words[..taken / WORD_BITS].fill(u64::MAX);
        if !taken.is_multiple_of(WORD_BITS) {
            new.words[taken / WORD_BITS] = (1 << (taken % WORD_BITS)) - 1;
        }
        for node in 1..new.tree.len() {
            let first = (node - (node & node.wrapping_neg())) * BLOCK_BITS;
            let end = node * BLOCK_BITS;
            new.tree[node] = (taken.clamp(first, end) - first) as u32;
        }
        new.next = taken;
        new.taken = self.taken;
        let old = std::mem::replace(self, new);
        Renumbering::of(old.words)
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>() + self.tree.capacity() * size_of::<u32>()
    }
}

impl Renumbering {
    fn of(words: Vec<u64>) -> Self {
        let mut sum = 0;
        let before = words
            .chunks(BLOCK_WORDS)
            .map(|block| {
                let before = sum;
                sum += block.iter().map(|word| word.count_ones()).sum::<u32>();
                before
            })
            .collect();
        Self { words, before }
    }

    /// The new number of a slot that was taken.
    pub fn of_slot(&self, slot: u32) -> u32 {
        let slot = slot as usize;
        self.before[slot / BLOCK_BITS] + bits_upto(&self.words, slot).saturating_sub(1)
    }
}

/// Number of bits set from the begin of the slot's block up to the slot itself.
fn bits_upto(words: &[u64], slot: usize) -> u32 {
    let first = slot / BLOCK_BITS * BLOCK_WORDS;
    let last = slot / WORD_BITS;
    let whole: u32 = words[first..last].iter().map(|w| w.count_ones()).sum();
    let mask = u64::MAX >> (WORD_BITS - 1 - slot % WORD_BITS);
    whole + (words[last] & mask).count_ones()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_an_ordered_set(steps in prop::collection::vec((0_u8..4, any::<u32>()), 1..3000)) {
            let mut slots = Slots::default();
            let mut oracle = BTreeSet::new();
            for (step, draw) in steps {
                if slots.is_full() {
                    let renumbering = slots.compact();
                    for (new, old) in oracle.iter().enumerate() {
                        prop_assert_eq!(renumbering.of_slot(*old), new as u32);
                    }
                    oracle = (0..oracle.len() as u32).collect();
                    prop_assert!(slots.capacity() >= ROOM * oracle.len());
                }
                let asked = draw % slots.capacity() as u32;
                if step < 3 {
                    oracle.insert(slots.take());
                } else if oracle.remove(&asked) {
                    slots.free(asked);
                }
                prop_assert_eq!(slots.taken() as usize, oracle.len());
                prop_assert_eq!(slots.above(asked) as usize, oracle.range(asked + 1..).count());
                prop_assert_eq!(slots.is_taken(asked), oracle.contains(&asked));
            }
        }
    }
}
