//! Indices in the order of their last use: a linked list whose links lie in one table.
//!
//! Invariants: an index is in the list at most once; stamps fall from its head to its tail.

use std::marker::PhantomData;

use flashlore_content::list::{List, Node};

use crate::index::Index;

/// The list. Its indices should be small: its memory grows with the greatest.
#[derive(Debug)]
pub(crate) struct Lru<I> {
    /// By index: its stamp, 0 while it is not in the list.
    nodes: Vec<Node<u64>>,
    list: List,
    stamp: u64,
    indices: PhantomData<I>,
}

impl<I: Index> Lru<I> {
    pub fn new() -> Self {
        Lru {
            nodes: Vec::new(),
            list: List::default(),
            stamp: 0,
            indices: PhantomData,
        }
    }

    pub fn len(&self) -> u32 {
        self.list.len()
    }

    /// Moves an index to the head, or puts it there.
    pub fn touch(&mut self, index: I) {
        self.remove(index);
        let number = index.number();
        if self.nodes.len() <= number as usize {
            self.nodes.resize(number as usize + 1, Node::new(0));
        }
        self.stamp += 1;
        self.nodes[number as usize].item = self.stamp;
        self.list.push_head(&mut self.nodes, number);
    }

    pub fn remove(&mut self, index: I) {
        if self.stamp_of(index) > 0 {
            self.list.remove(&mut self.nodes, index.number());
            self.nodes[index.number() as usize].item = 0;
        }
    }

    pub fn is_newer(&self, a: I, b: I) -> bool {
        self.stamp_of(a) > self.stamp_of(b)
    }

    pub fn newest_first(&self) -> impl Iterator<Item = I> {
        self.list.iter(&self.nodes).map(I::numbered)
    }

    pub fn oldest_first(&self) -> impl Iterator<Item = I> {
        self.list.iter_back(&self.nodes).map(I::numbered)
    }

    pub fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node<u64>>()
    }

    /// Recounts the list in both directions.
    pub fn check(&self) -> Result<(), String> {
        let mut stamp = u64::MAX;
        let mut forwards = Vec::new();
        for index in self.newest_first() {
            let own = self.stamp_of(index);
            if own == 0 || own >= stamp {
                return Err(format!("the LRU list is not in order at {index}"));
            }
            stamp = own;
            forwards.push(index);
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

    /// The stamp of an index: it grows each time that one is touched, and is 0 if it is not in the list.
    pub fn stamp_of(&self, index: I) -> u64 {
        let node = self.nodes.get(index.number() as usize);
        node.map_or(0, |node| node.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Slot;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_list_whose_numbers_move_to_the_front(
            steps in prop::collection::vec((any::<bool>(), 0u32..12), 0..200),
        ) {
            let mut lru = Lru::new();
            let mut list: Vec<Slot> = Vec::new();
            for (is_touch, number) in steps {
                let number = Slot(number);
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
