//! The order of changes to one page, where some of them fetch before they commit.
//!
//! A fetch (the old content of a partly written unit, the candidate of a verified duplicate) takes
//! time, and a later change to the same page could overtake it. So changes to a page are committed in
//! order of arrival: one that reaches its commit before its turn is *parked* and goes on when those
//! before it are through.
//!
//! What is no change, a read, may stand in a line too: it goes on when the changes before it are through.
//!
//! The book is kept only while something fetches or may fetch: without partial writes and without
//! verification the hash unit keeps the order by itself.
//!
//! Invariants: the tickets of a page are in order of arrival, each of a change that is not committed;
//! only the first may be unparked at its commit; what is no change is parked from the start; no empty line is kept.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use flashlore_flash::Lpn;

use rustc_hash::FxBuildHasher;

/// The number of what is no change.
const NO_CHANGE: u64 = 0;

/// A change in a line: its number, and where it goes on when it is parked.
#[derive(Debug, Clone, Copy)]
struct Ticket<P> {
    number: u64,
    parked: Option<P>,
}

/// The changes of one page that are under way.
#[derive(Debug)]
struct ChangesOfPage<P> {
    first: Ticket<P>,
    /// Rarely any.
    others: VecDeque<Ticket<P>>,
}

/// The lines of all pages with changes under way.
#[derive(Debug)]
pub struct Order<P> {
    lines: HashMap<Lpn, ChangesOfPage<P>, FxBuildHasher>,
}

impl<P> Default for Order<P> {
    fn default() -> Self {
        Order {
            lines: HashMap::default(),
        }
    }
}

impl<P: Copy> Order<P> {
    /// What is no change goes on with `parked` when the changes of a page that are under way are through; false if
    /// there are none.
    pub fn wait(&mut self, lpn: Lpn, parked: P) -> bool {
        let Some(line) = self.lines.get_mut(&lpn) else {
            return false;
        };
        line.others.push_back(Ticket {
            number: NO_CHANGE,
            parked: Some(parked),
        });
        true
    }

    /// A change to a page arrives; whether it is its turn. Its number is not 0.
    pub fn arrive(&mut self, lpn: Lpn, number: u64) -> bool {
        let ticket = Ticket {
            number,
            parked: None,
        };
        match self.lines.entry(lpn) {
            Entry::Occupied(line) => {
                line.into_mut().others.push_back(ticket);
                false
            }
            Entry::Vacant(place) => {
                place.insert(ChangesOfPage {
                    first: ticket,
                    others: VecDeque::new(),
                });
                true
            }
        }
    }

    /// Whether it is the turn of a change.
    pub fn is_first(&self, lpn: Lpn, number: u64) -> bool {
        let line = self.lines.get(&lpn);
        line.is_some_and(|line| line.first.number == number)
    }

    /// A change waits for its turn and goes on with `parked`.
    pub fn park(&mut self, lpn: Lpn, number: u64, parked: P) {
        let Some(line) = self.lines.get_mut(&lpn) else {
            return;
        };
        let mut tickets = std::iter::once(&mut line.first).chain(&mut line.others);
        if let Some(ticket) = tickets.find(|ticket| ticket.number == number) {
            ticket.parked = Some(parked);
        }
    }

    /// Whether no change is under way.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The first in the line of a page is through: a change is committed, or what waited has gone on. Answers what
    /// is parked next.
    pub fn commit(&mut self, lpn: Lpn) -> Option<P> {
        let Entry::Occupied(mut line) = self.lines.entry(lpn) else {
            return None;
        };
        let Some(next) = line.get_mut().others.pop_front() else {
            line.remove();
            return None;
        };
        let line = line.into_mut();
        line.first = next;
        line.first.parked.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_change_goes_on_when_those_before_it_are_through() {
        let mut order = Order::default();
        assert!(order.arrive(Lpn(7), 1));
        assert!(!order.arrive(Lpn(7), 2));
        assert!(!order.arrive(Lpn(7), 3));
        assert!(order.is_first(Lpn(7), 1) && !order.is_first(Lpn(7), 2));
        order.park(Lpn(7), 2, "two");
        assert_eq!(order.commit(Lpn(7)), Some("two"));
        assert!(order.is_first(Lpn(7), 2));
        // The third has not reached its commit yet: nothing goes on by itself.
        assert_eq!(order.commit(Lpn(7)), None);
        assert!(order.is_first(Lpn(7), 3));
        assert_eq!(order.commit(Lpn(7)), None);
        assert!(order.is_empty());
        assert!(order.arrive(Lpn(7), 4));
        assert!(!order.is_empty());
    }

    #[test]
    fn what_is_no_change_goes_on_behind_those_that_came_before_it() {
        let mut order = Order::default();
        assert!(!order.wait(Lpn(7), "nothing is under way"));
        assert!(order.arrive(Lpn(7), 1));
        assert!(order.wait(Lpn(7), "read"));
        assert!(!order.arrive(Lpn(7), 2));
        assert_eq!(order.commit(Lpn(7)), Some("read"));
        assert_eq!(order.commit(Lpn(7)), None);
        assert!(order.is_first(Lpn(7), 2));
        assert!(order.wait(Lpn(7), "last"));
        assert_eq!(order.commit(Lpn(7)), Some("last"));
        assert_eq!(order.commit(Lpn(7)), None);
        assert!(order.is_empty());
    }
}
