//! Indices in the order of the stamps that a list gives them, where a new stamp costs nothing.
//!
//! Each member stands where it stood when it was put in or seen last. Stamps only grow, so that is never behind its
//! present place, and a walk from the front finds the true order if it moves each member that it meets at an old
//! place to its present one. That is at most one move for each time a member was touched.
//!
//! Invariant: `order` has each index with a stamp in `noted` once, under that stamp.

use std::collections::BTreeSet;

use crate::index::Index;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is one of those that were looked for.
    Take,
    /// It is not, and stays.
    Pass,
    /// It is no member any more.
    Drop,
}

#[derive(Debug)]
pub(crate) struct ByAge<I> {
    order: BTreeSet<(u64, I)>,
    /// By index the stamp under which it stands; 0 if it is no member.
    noted: Vec<u64>,
}

impl<I: Index> ByAge<I> {
    pub fn new() -> Self {
        ByAge {
            order: BTreeSet::new(),
            noted: Vec::new(),
        }
    }

    /// Puts an index with its stamp, which is not 0, in; if it is in, nothing changes.
    pub fn insert(&mut self, index: I, stamp: u64) {
        let row = index.number() as usize;
        if self.noted.len() <= row {
            self.noted.resize(row + 1, 0);
        }
        let noted = &mut self.noted[row];
        if *noted == 0 {
            *noted = stamp;
            self.order.insert((stamp, index));
        }
    }

    pub fn remove(&mut self, index: I) {
        if let Some(noted) = self.noted.get_mut(index.number() as usize)
            && *noted > 0
        {
            self.order.remove(&(*noted, index));
            *noted = 0;
        }
    }

    pub fn holds(&self, index: I) -> bool {
        let noted = self.noted.get(index.number() as usize);
        noted.is_some_and(|&noted| noted > 0)
    }

    /// The oldest members that are taken, at most so many, the oldest first. `stamp` is the present one of a member.
    pub fn oldest(
        &mut self,
        most: usize,
        stamp: impl Fn(I) -> u64,
        verdict: impl Fn(I) -> Verdict,
    ) -> Vec<I> {
        let mut taken = Vec::new();
        let mut from = (0, I::numbered(0));
        while taken.len() < most {
            let Some(&(noted, index)) = self.order.range(from..).next() else {
                break;
            };
            if verdict(index) == Verdict::Drop {
                self.remove(index);
                continue;
            }
            let present = stamp(index);
            if present != noted {
                self.remove(index);
                self.insert(index, present);
                continue;
            }
            if verdict(index) == Verdict::Take {
                taken.push(index);
            }
            from = (noted, index + 1);
        }
        taken
    }

    /// Bytes held, about: a tree stores a few more than its members.
    pub fn heap_bytes(&self) -> usize {
        self.order.len() * size_of::<(u64, I)>() + self.noted.capacity() * size_of::<u64>()
    }

    /// Recounts the members, given the present stamp of each index, 0 if it has none.
    pub fn check(&self, stamp: impl Fn(I) -> u64) -> Result<(), String> {
        let members = self.noted.iter().filter(|&&noted| noted > 0).count();
        if members != self.order.len() {
            return Err(format!(
                "{members} numbers are noted as members, {} are in order",
                self.order.len()
            ));
        }
        for &(noted, index) in &self.order {
            let present = stamp(index);
            let row = index.number() as usize;
            if self.noted[row] != noted || noted > present {
                return Err(format!(
                    "{index} stands at {noted}, is noted at {} and belongs at {present}",
                    self.noted[row]
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Slot;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain walk over all members in the order of their present stamps.
        #[test]
        fn the_oldest_are_those_of_a_plain_walk(
            steps in prop::collection::vec((0u8..5, 0u32..10, 1usize..4), 0..120),
        ) {
            let mut members = ByAge::new();
            let mut stamps = [1u64; 10];
            let mut model: BTreeSet<Slot> = BTreeSet::new();
            for (now, (step, number, most)) in steps.into_iter().enumerate() {
                let number = Slot(number);
                match step {
                    0 => {
                        model.insert(number);
                        members.insert(number, stamps[number.index()]);
                    }
                    1 => {
                        model.remove(&number);
                        members.remove(number);
                    }
                    2 | 3 => stamps[number.index()] = now as u64 + 2,
                    _ => {
                        // One is no member any more; odd ones are passed.
                        let verdict = |n: Slot| match n {
                            n if n == number => Verdict::Drop,
                            n if n.0 % 2 == 1 => Verdict::Pass,
                            _ => Verdict::Take,
                        };
                        let mut walk: Vec<Slot> = model.iter().copied().collect();
                        walk.retain(|&n| n != number && n.0 % 2 == 0);
                        walk.sort_by_key(|&n| (stamps[n.index()], n));
                        walk.truncate(most);
                        let found = members.oldest(most, |n| stamps[n.index()], verdict);
                        prop_assert_eq!(found, walk);
                        if !members.holds(number) {
                            model.remove(&number);
                        }
                    }
                }
                members.check(|n| stamps[n.index()]).map_err(TestCaseError::fail)?;
                for n in Slot::first(10) {
                    prop_assert_eq!(members.holds(n), model.contains(&n));
                }
            }
        }
    }
}
