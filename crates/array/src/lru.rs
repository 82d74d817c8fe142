//! Numbers in the order of their last use: a linked list whose links lie in one table.
//!
//! Invariants: a number is in the list at most once; stamps fall from its head to its tail.

const NONE: u32 = u32::MAX;

/// A number's place in the list. Its stamp is 0 while it is not in the list.
#[derive(Debug, Clone, Copy)]
struct Node {
    stamp: u64,
    newer: u32,
    older: u32,
}

const OUTSIDE: Node = Node {
    stamp: 0,
    newer: NONE,
    older: NONE,
};

/// The list. Its numbers should be small: its memory grows with the greatest.
#[derive(Debug)]
pub(crate) struct Lru {
    nodes: Vec<Node>,
    head: u32,
    tail: u32,
    stamp: u64,
    len: u32,
}

impl Lru {
    /// An empty list.
    pub fn new() -> Self {
        Lru {
            nodes: Vec::new(),
            head: NONE,
            tail: NONE,
            stamp: 0,
            len: 0,
        }
    }

    /// How many numbers are in it.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Moves a number to the head, or puts it there.
    pub fn touch(&mut self, number: u32) {
        self.remove(number);
        if self.nodes.len() <= number as usize {
            self.nodes.resize(number as usize + 1, OUTSIDE);
        }
        self.stamp += 1;
        self.nodes[number as usize] = Node {
            stamp: self.stamp,
            newer: NONE,
            older: self.head,
        };
        match self.head {
            NONE => self.tail = number,
            head => self.nodes[head as usize].newer = number,
        }
        self.head = number;
        self.len += 1;
    }

    /// Takes a number out, if it is in the list.
    pub fn remove(&mut self, number: u32) {
        if self.stamp_of(number) == 0 {
            return;
        }
        let Node { newer, older, .. } = self.nodes[number as usize];
        match newer {
            NONE => self.head = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.tail = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        self.nodes[number as usize] = OUTSIDE;
        self.len -= 1;
    }

    /// Whether `a` was touched after `b`.
    pub fn is_newer(&self, a: u32, b: u32) -> bool {
        self.stamp_of(a) > self.stamp_of(b)
    }

    /// From the number touched last to the oldest.
    pub fn newest_first(&self) -> impl Iterator<Item = u32> {
        self.walk(self.head, |node| node.older)
    }

    /// From the oldest number to the one touched last.
    pub fn oldest_first(&self) -> impl Iterator<Item = u32> {
        self.walk(self.tail, |node| node.newer)
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }

    /// Recounts the list in both directions.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
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
        let linked = self.nodes.iter().filter(|node| node.stamp > 0).count();
        let is_whole = forwards.len() == self.len as usize && linked == forwards.len();
        if !is_whole || !self.oldest_first().take(linked + 1).eq(forwards) {
            return Err(format!(
                "the LRU list of {} numbers, {linked} of them linked, is not the same forwards and backwards",
                self.len
            ));
        }
        Ok(())
    }

    /// The stamp of a number: it grows each time that one is touched, and is 0 if it is not in the list.
    pub fn stamp_of(&self, number: u32) -> u64 {
        self.nodes.get(number as usize).map_or(0, |node| node.stamp)
    }

    fn walk(&self, first: u32, next: fn(&Node) -> u32) -> impl Iterator<Item = u32> {
        let mut number = first;
        std::iter::from_fn(move || {
            let found = (number != NONE).then_some(number)?;
            number = next(&self.nodes[found as usize]);
            Some(found)
        })
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
