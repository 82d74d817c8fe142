//! Places in an order: doubly linked lists over one table of links.
//!
//! Invariant: a place is in one list at most, and the lists of a table are told apart by who keeps them.

/// No place.
const NONE: u32 = u32::MAX;

/// The neighbours of every place: the one towards the head, the one towards the tail.
#[derive(Debug, Clone, Default)]
pub(crate) struct Links(Vec<[u32; 2]>);

impl Links {
    /// So many places.
    pub fn new(places: u32) -> Self {
        Links(vec![[NONE; 2]; places as usize])
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<[u32; 2]>()
    }

    /// Makes room for one more place.
    pub fn grow(&mut self) {
        self.0.push([NONE; 2]);
    }
}

/// A list.
#[derive(Debug, Clone)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        List {
            head: NONE,
            tail: NONE,
            len: 0,
        }
    }
}

impl List {
    /// Places in it.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The last place.
    pub fn tail(&self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// Takes a place that is in no list in at the head.
    pub fn push_head(&mut self, links: &mut Links, place: u32) {
        links.0[place as usize] = [NONE, self.head];
        match self.head {
            NONE => self.tail = place,
            head => links.0[head as usize][0] = place,
        }
        self.head = place;
        self.len += 1;
    }

    /// Takes a place of this list out.
    pub fn remove(&mut self, links: &mut Links, place: u32) {
        let [before, after] = links.0[place as usize];
        match before {
            NONE => self.head = after,
            before => links.0[before as usize][1] = after,
        }
        match after {
            NONE => self.tail = before,
            after => links.0[after as usize][0] = before,
        }
        self.len -= 1;
    }

    /// The places from head to tail.
    pub fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + 'a {
        let first = (self.head != NONE).then_some(self.head);
        std::iter::successors(first, |&place| {
            let after = links.0[place as usize][1];
            (after != NONE).then_some(after)
        })
    }
}
