//! LRU caches of all sizes at once, whose members may die.
//!
//! A cache of C entries holds what lies in the upper C places of one stack. A key that dies leaves
//! every cache; its place becomes a *hole*, which is a free entry of each cache that reaches down to
//! it. An access pushes its key on top:
//!
//! * A cache smaller than the key's depth d misses; one of d or more hits, and the key leaves place d.
//! * A cache that reaches down to a hole has room. So what lies above the topmost hole moves down by
//!   one and fills it, and nothing below that hole moves.
//! * If that hole is above d, caches between the two have used their room, caches of d or more have
//!   room as before: the hole is at d now. For a miss everywhere (first access, or dead) it is gone.
//! * Without a hole above d, everything above d moves down by one and fills d.
//!
//! Living keys thus lie in the order of their last access, with holes between them. Both hold a time
//! slot; "moving down" needs no work. Holes are used from the top only, so they wait in a heap.

use std::collections::BinaryHeap;

use super::slots::Slots;
use crate::measures::place;

/// Not in the stack.
const OUT: u32 = u32::MAX;

/// The stack with its holes.
#[derive(Debug, Default)]
pub struct HoleStack {
    slots: Slots,
    last: Vec<u32>,
    holes: BinaryHeap<u32>,
}

impl HoleStack {
    /// Accesses a key, which is a dense number, and gives the smallest cache that hits; nothing if
    /// none does.
    pub fn access(&mut self, key: u32) -> Option<u32> {
        let key = key as usize;
        let place = *place(&mut self.last, key, OUT);
        let lives = place != OUT;
        let depth = lives.then(|| self.slots.above(place) + 1);
        match self.holes.peek() {
            Some(&hole) if !lives || hole > place => {
                self.holes.pop();
                self.slots.free(hole);
                if lives {
                    self.holes.push(place);
                }
            }
            _ if lives => self.slots.free(place),
            _ => {}
        }
        self.last[key] = OUT;
        if self.slots.is_full() {
            self.compact();
        }
        self.last[key] = self.slots.take();
        depth
    }

    /// Removes a key from all caches; its place becomes a hole.
    pub fn die(&mut self, key: u32) {
        if let Some(place) = self.last.get_mut(key as usize)
            && *place != OUT
        {
            self.holes.push(*place);
            *place = OUT;
        }
    }

    fn compact(&mut self) {
        let renumbering = self.slots.compact();
        for place in self.last.iter_mut().filter(|place| **place != OUT) {
            *place = renumbering.of_slot(*place);
        }
        let mut holes = std::mem::take(&mut self.holes).into_vec();
        for hole in &mut holes {
            *hole = renumbering.of_slot(*hole);
        }
        self.holes = holes.into();
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.slots.heap_bytes() + (self.last.capacity() + self.holes.capacity()) * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One LRU list of at most `size` keys, the last accessed first.
    struct Cache {
        size: usize,
        keys: Vec<u32>,
    }

    impl Cache {
        fn access(&mut self, key: u32) -> bool {
            let hit = self.remove(key);
            self.keys.insert(0, key);
            self.keys.truncate(self.size);
            hit
        }

        fn remove(&mut self, key: u32) -> bool {
            let at = self.keys.iter().position(|other| *other == key);
            at.map(|at| self.keys.remove(at)).is_some()
        }
    }

    #[test]
    fn an_example_by_hand() {
        let mut stack = HoleStack::default();
        // a b c, b dies: c - a. Then a: sizes 3 and up hit, and its push takes the hole at 2.
        for key in [0, 1, 2] {
            assert_eq!(stack.access(key), None);
        }
        stack.die(1);
        assert_eq!(stack.access(0), Some(3));
        // a c -: the hole moved to place 3. d takes it: d a c.
        assert_eq!(stack.access(3), None);
        assert_eq!(stack.access(2), Some(3));
        // c d a, nothing is free: e gives e c d a, so a needs four entries now.
        assert_eq!(stack.access(4), None);
        assert_eq!(stack.access(0), Some(4));
    }

    proptest! {
        #[test]
        fn agrees_with_a_cache_of_each_size(
            (keys, steps) in (1_u32..60, prop::collection::vec((0_u8..5, any::<u32>()), 1..2500)),
        ) {
            let mut stack = HoleStack::default();
            let mut caches: Vec<Cache> = (1..=64)
                .map(|size| Cache { size, keys: Vec::new() })
                .collect();
            for (step, draw) in steps {
                let key = draw % keys;
                if step == 0 {
                    stack.die(key);
                    caches.iter_mut().for_each(|cache| { cache.remove(key); });
                    continue;
                }
                let depth = stack.access(key);
                for cache in &mut caches {
                    let hit = depth.is_some_and(|depth| depth as usize <= cache.size);
                    prop_assert_eq!(cache.access(key), hit, "size {}", cache.size);
                }
            }
        }
    }
}
