//! What waits until all changes that arrived before it are through: reads with `reads.order = "fifo"`.
//!
//! Changes arrive in order of their numbers, which may have gaps, and are through in any order.
//!
//! Invariants: the oldest change of the book is not through; what waits is in order of arrival.

use std::collections::VecDeque;

/// The changes under way, and what waits for all of them.
#[derive(Debug)]
pub struct Barrier<W> {
    /// The number of the oldest change under way; if there is none, of one that has not arrived.
    oldest: u64,
    /// Whether a change is through, from the oldest on; a number that no change has counts as one.
    through: VecDeque<bool>,
    /// With the first number that it does not wait for.
    waiting: VecDeque<(u64, W)>,
}

impl<W> Default for Barrier<W> {
    fn default() -> Self {
        Barrier {
            oldest: 0,
            through: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }
}

impl<W> Barrier<W> {
    /// A change arrives.
    pub fn arrive(&mut self, number: u64) {
        if self.through.is_empty() {
            self.oldest = number;
        }
        self.through.resize((number - self.oldest) as usize, true);
        self.through.push_back(false);
    }

    /// A change that arrived is through.
    pub fn leave(&mut self, number: u64) {
        self.through[(number - self.oldest) as usize] = true;
        while self.through.front() == Some(&true) {
            self.through.pop_front();
            self.oldest += 1;
        }
    }

    /// Waits for the changes under way; false if there are none.
    pub fn wait(&mut self, waiting: W) -> bool {
        if self.through.is_empty() {
            return false;
        }
        let end = self.oldest + self.through.len() as u64;
        self.waiting.push_back((end, waiting));
        true
    }

    /// The next that waited and need not any more.
    pub fn released(&mut self) -> Option<W> {
        let &(end, _) = self.waiting.front()?;
        if !self.through.is_empty() && self.oldest < end {
            return None;
        }
        self.waiting.pop_front().map(|(_, waiting)| waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_when_all_that_came_before_are_through() {
        let mut barrier = Barrier::default();
        assert!(!barrier.wait("nothing is under way"));
        barrier.arrive(3);
        // Numbers 4 and 5 are of no change.
        barrier.arrive(6);
        assert!(barrier.wait("a"));
        barrier.arrive(7);
        assert!(barrier.wait("b"));
        barrier.leave(7);
        barrier.leave(3);
        assert_eq!(barrier.released(), None);
        barrier.leave(6);
        assert_eq!(barrier.released(), Some("a"));
        assert_eq!(barrier.released(), Some("b"));
        assert_eq!(barrier.released(), None);
        barrier.arrive(9);
        assert!(barrier.wait("c"));
        barrier.arrive(10);
        barrier.leave(9);
        assert_eq!(barrier.released(), Some("c"));
        barrier.leave(10);
        assert!(!barrier.wait("nothing is under way"));
    }
}
