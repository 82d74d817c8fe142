//! LRU stack distances up to a limit: the upper part of the stack, in memory that does not grow.
//!
//! Sampling cannot tell distances below the inverse of its rate apart; this tells them exactly.

use rustc_hash::FxHashMap;

use super::slots::Slots;

/// The last `limit` different keys.
#[derive(Debug)]
pub struct NearStack {
    limit: u32,
    slots: Slots,
    /// The slot of each key that is in.
    places: FxHashMap<u64, u32>,
    /// The key of each slot that is taken.
    keys: Vec<u64>,
    /// No slot below is taken.
    oldest: u32,
}

impl NearStack {
    /// An empty stack of at most `limit` keys.
    pub fn new(limit: u32) -> Self {
        Self {
            limit,
            slots: Slots::default(),
            places: FxHashMap::default(),
            keys: Vec::new(),
            oldest: 0,
        }
    }

    /// Accesses a key and gives its stack distance if that is at most the limit.
    pub fn access(&mut self, key: u64) -> Option<u32> {
        let distance = self.places.remove(&key).map(|place| {
            let distance = self.slots.above(place) + 1;
            self.slots.free(place);
            distance
        });
        if self.slots.taken() == self.limit {
            self.drop_oldest();
        }
        if self.slots.is_full() {
            self.compact();
        }
        let place = self.slots.take();
        self.keys.push(key);
        self.places.insert(key, place);
        distance
    }

    fn drop_oldest(&mut self) {
        while !self.slots.is_taken(self.oldest) {
            self.oldest += 1;
        }
        self.slots.free(self.oldest);
        self.places.remove(&self.keys[self.oldest as usize]);
    }

    fn compact(&mut self) {
        let mut slot = 0;
        let slots = &self.slots;
        self.keys.retain(|_| {
            slot += 1;
            slots.is_taken(slot - 1)
        });
        self.slots.compact();
        self.oldest = 0;
        for (place, key) in self.keys.iter().enumerate() {
            self.places.insert(*key, place as u32);
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.slots.heap_bytes()
            + self.keys.capacity() * size_of::<u64>()
            + self.places.capacity() * 17 * 8 / 7
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::structures::stack::StackDistances;

    proptest! {
        #[test]
        fn agrees_with_the_whole_stack(
            (limit, keys) in (1_u32..300, 1_u32..600),
            draws in prop::collection::vec(any::<u32>(), 1..5000),
        ) {
            let mut near = NearStack::new(limit);
            let mut whole = StackDistances::default();
            for draw in draws {
                let key = if draw % 2 == 0 { draw / 2 % keys } else { draw / 2 % (keys / 10 + 1) };
                let distance = whole.access(key).filter(|distance| *distance <= limit);
                prop_assert_eq!(near.access(u64::from(key)), distance);
            }
        }
    }
}
