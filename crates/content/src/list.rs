//! Lists of numbered places: doubly linked, with the links beside what else a table holds of a place.
//!
//! Invariant: a place is in one list at most, and the lists of a table are told apart by who keeps them.

use std::marker::PhantomData;

use flashlore_flash::Lpn;

/// No place.
const NONE: u32 = u32::MAX;

/// What names the places of a table: a number below `u32::MAX`, in a type of its own where it has one.
pub trait ListPlace: Copy {
    /// The number of a place.
    fn number(self) -> u32;

    /// The place of a number.
    fn numbered(number: u32) -> Self;
}

impl ListPlace for u32 {
    #[inline(always)]
    fn number(self) -> u32 {
        self
    }

    #[inline(always)]
    fn numbered(number: u32) -> Self {
        number
    }
}

impl ListPlace for Lpn {
    #[inline(always)]
    fn number(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn numbered(number: u32) -> Self {
        Lpn(number)
    }
}

/// A row of the table: what is held of a place, and its neighbours in its list.
#[derive(Debug, Clone, Copy)]
pub struct Node<V> {
    to_head: u32,
    to_tail: u32,
    /// What is held of the place.
    pub item: V,
}

impl<V> Node<V> {
    /// A place that is in no list.
    #[inline]
    pub fn new(item: V) -> Self {
        Node {
            to_head: NONE,
            to_tail: NONE,
            item,
        }
    }
}

/// A list of places, which `P` names.
#[derive(Debug, Clone)]
pub struct List<P = u32> {
    head: u32,
    tail: u32,
    len: u32,
    places: PhantomData<P>,
}

impl<P> Default for List<P> {
    fn default() -> Self {
        List {
            head: NONE,
            tail: NONE,
            len: 0,
            places: PhantomData,
        }
    }
}

impl<P: ListPlace> List<P> {
    /// Places in it.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no place is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The last place.
    #[inline]
    pub fn tail(&self) -> Option<P> {
        some(self.tail).map(P::numbered)
    }

    /// Takes a place that is in no list in at the head.
    #[inline]
    pub fn push_head<V>(&mut self, nodes: &mut [Node<V>], place: P) {
        let place = place.number();
        let node = &mut nodes[place as usize];
        (node.to_head, node.to_tail) = (NONE, self.head);
        match self.head {
            NONE => self.tail = place,
            head => nodes[head as usize].to_head = place,
        }
        self.head = place;
        self.len += 1;
    }

    /// Takes a place of this list out.
    #[inline]
    pub fn remove<V>(&mut self, nodes: &mut [Node<V>], place: P) {
        let &Node {
            to_head, to_tail, ..
        } = &nodes[place.number() as usize];
        match to_head {
            NONE => self.head = to_tail,
            before => nodes[before as usize].to_tail = to_tail,
        }
        match to_tail {
            NONE => self.tail = to_head,
            after => nodes[after as usize].to_head = to_head,
        }
        self.len -= 1;
    }

    /// The places from head to tail.
    pub fn iter<'a, V>(&self, nodes: &'a [Node<V>]) -> impl Iterator<Item = P> + use<'a, P, V> {
        let next = |&place: &u32| some(nodes[place as usize].to_tail);
        std::iter::successors(some(self.head), next).map(P::numbered)
    }

    /// The places from tail to head.
    pub fn iter_back<'a, V>(
        &self,
        nodes: &'a [Node<V>],
    ) -> impl Iterator<Item = P> + use<'a, P, V> {
        let next = |&place: &u32| some(nodes[place as usize].to_head);
        std::iter::successors(some(self.tail), next).map(P::numbered)
    }
}

#[inline]
fn some(place: u32) -> Option<u32> {
    (place != NONE).then_some(place)
}
