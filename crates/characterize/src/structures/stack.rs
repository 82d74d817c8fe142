//! LRU stack distances (Mattson et al., 1970; counted in a tree as Bennett and Kruskal, 1975).
//!
//! Each key that was seen holds the time slot of its last access. The distance of an access is one
//! more than the number of slots taken since.

use super::slots::Slots;
use crate::measures::place;

/// No access yet.
const NEVER: u32 = u32::MAX;

/// The stack of all keys seen, the last accessed on top.
#[derive(Debug, Default)]
pub struct StackDistances {
    slots: Slots,
    last: Vec<u32>,
}

impl StackDistances {
    /// Accesses a key, which is a dense number, and gives the number of different keys accessed
    /// since its last access, itself included; nothing for its first.
    pub fn access(&mut self, key: u32) -> Option<u32> {
        let key = key as usize;
        let before = *place(&mut self.last, key, NEVER);
        let distance = (before != NEVER).then(|| {
            let distance = self.slots.above(before) + 1;
            self.slots.free(before);
            distance
        });
        // Compaction must not look at a slot that is not taken.
        self.last[key] = NEVER;
        if self.slots.is_full() {
            self.compact();
        }
        self.last[key] = self.slots.take();
        distance
    }

    fn compact(&mut self) {
        let renumbering = self.slots.compact();
        for slot in self.last.iter_mut().filter(|slot| **slot != NEVER) {
            *slot = renumbering.of_slot(*slot);
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.slots.heap_bytes() + self.last.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Scans back to the last access of the same key.
    fn naive(accesses: &[u32]) -> Vec<Option<u32>> {
        let distance = |(at, key): (usize, &u32)| {
            let before = accesses[..at].iter().rposition(|other| other == key)?;
            let between: BTreeSet<u32> = accesses[before..at].iter().copied().collect();
            Some(between.len() as u32)
        };
        accesses.iter().enumerate().map(distance).collect()
    }

    #[test]
    fn an_example_by_hand() {
        let mut stack = StackDistances::default();
        // a b b c a: a has seen b and c since.
        let found = [0, 1, 1, 2, 0].map(|key| stack.access(key));
        assert_eq!(found, [None, None, Some(1), None, Some(3)]);
    }

    proptest! {
        #[test]
        fn agrees_with_scanning_back(
            (keys, draws) in (1_u32..700, prop::collection::vec(any::<u32>(), 1..1500)),
        ) {
            // Half of the draws fall on few keys.
            let accesses: Vec<u32> = draws
                .iter()
                .map(|draw| if draw % 2 == 0 { draw / 2 % keys } else { draw / 2 % (keys / 10 + 1) })
                .collect();
            let mut stack = StackDistances::default();
            let found: Vec<_> = accesses.iter().map(|key| stack.access(*key)).collect();
            prop_assert_eq!(found, naive(&accesses));
        }
    }
}
