//! Numbers in the order of their last use: a linked list whose links lie in one table.
//!
//! Invariants: a number is in the list at most once; stamps fall from its head to its tail.

use flashlore_content::list::{List, Node};

/// The list. Its numbers should be small: its memory grows with the greatest.
#[derive(Debug, Default)]
pub(crate) struct Lru {
    /// By number: its stamp, 0 while it is not in the list.
    nodes: Vec<Node<u64>>,
    list: List,
    stamp: u64,
}

impl Lru {
    pub fn new() -> Self {
        Lru::default()
    }

    pub fn len(&self) -> u32 {
        self.list.len()
    }

    /// Moves a number to the head, or puts it there.
    pub fn touch(&mut self, number: u32) {
        self.remove(number);
        if self.nodes.len() <= number as usize {
            self.nodes.resize(number as usize + 1, Node::new(0));
        }
        self.stamp += 1;
        self.nodes[number as usize].item = self.stamp;
        self.list.push_head(&mut self.nodes, number);
    }

    pub fn remove(&mut self, number: u32) {
        if self.stamp_of(number) > 0 {
            self.list.remove(&mut self.nodes, number);
            self.nodes[number as usize].item = 0;
        }
    }

    pub fn is_newer(&self, a: u32, b: u32) -> bool {
        self.stamp_of(a) > self.stamp_of(b)
    }

    pub fn newest_first(&self) -> impl Iterator<Item = u32> {
        self.list.iter(&self.nodes)
    }

    pub fn oldest_first(&self) -> impl Iterator<Item = u32> {
        self.list.iter_back(&self.nodes)
    }

    pub fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node<u64>>()
    }

    /// Recounts the list in both directions.
    pub fn check(&self) -> Result<(), String> {
        let mut stamp = u64::MAX;
        let mut forwards = Vec::new();
        for number in self.newest_first() {
            let own = self.stamp_of(number);
            if own == 0 || own >= stamp {
                return Err(format!("the LRU list is not in order at {number}"));
            }
            stamp = own;
            forwards.push(number);
        }
        forwards.reverse();
        let linked = self.nodes.iter().filter(|node| node.item > 0).count();
        let is_whole = forwards.len() == self.len() as usize && linked == forwards.len();
        if !is_whole || !self.oldest_first().take(linked + 1).eq(forwards) {
            return Err(format!(
                "the LRU list of {} numbers, {linked} of them linked, is not the same forwards and backwards",
                self.len()
            ));
        }
        Ok(())
    }

    /// The stamp of a number: it grows each time that one is touched, and is 0 if it is not in the list.
    pub fn stamp_of(&self, number: u32) -> u64 {
        self.nodes.get(number as usize).map_or(0, |node| node.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_list_whose_numbers_move_to_the_front(
            steps in prop::collection::vec((any::<bool>(), 0u32..12), 0..200),
        ) {
            let mut lru = Lru::new();
            let mut list: Vec<u32> = Vec::new();
            for (is_touch, number) in steps {
                list.retain(|&other| other != number);
                if is_touch {
                    list.insert(0, number);
                    lru.touch(number);
                } else {
                    lru.remove(number);
                }
                prop_assert_eq!(lru.check(), Ok(()));
                prop_assert!(lru.newest_first().eq(list.iter().copied()));
                prop_assert_eq!(lru.len() as usize, list.len());
                for pair in list.windows(2) {
                    prop_assert!(lru.is_newer(pair[0], pair[1]) && !lru.is_newer(pair[1], pair[0]));
                }
            }
        }
    }
}
