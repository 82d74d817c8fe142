//! Numbers in the order of the stamps that a list gives them, where a new stamp costs nothing.
//!
//! Each member stands where it stood when it was put in or seen last. Stamps only grow, so that is never behind its
//! present place, and a walk from the front finds the true order if it moves each member that it meets at an old
//! place to its present one. That is at most one move for each time a member was touched.
//!
//! Invariant: `order` has each number with a stamp in `noted` once, under that stamp.

use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is one of those that were looked for.
    Take,
    /// It is not, and stays.
    Pass,
    /// It is no member any more.
    Drop,
}

#[derive(Debug, Default)]
pub(crate) struct ByAge {
    order: BTreeSet<(u64, u32)>,
    /// By number the stamp under which it stands; 0 if it is no member.
    noted: Vec<u64>,
}

impl ByAge {
    /// Puts a number with its stamp, which is not 0, in; if it is in, nothing changes.
    pub fn insert(&mut self, number: u32, stamp: u64) {
        if self.noted.len() <= number as usize {
            self.noted.resize(number as usize + 1, 0);
        }
        let noted = &mut self.noted[number as usize];
        if *noted == 0 {
            *noted = stamp;
            self.order.insert((stamp, number));
        }
    }

    pub fn remove(&mut self, number: u32) {
        if let Some(noted) = self.noted.get_mut(number as usize)
            && *noted > 0
        {
            self.order.remove(&(*noted, number));
            *noted = 0;
        }
    }

    pub fn holds(&self, number: u32) -> bool {
        self.noted.get(number as usize).is_some_and(|&n| n > 0)
    }

    /// The oldest members that are taken, at most so many, the oldest first. `stamp` is the present one of a member.
    pub fn oldest(
        &mut self,
        most: usize,
        stamp: impl Fn(u32) -> u64,
        verdict: impl Fn(u32) -> Verdict,
    ) -> Vec<u32> {
        let mut taken = Vec::new();
        let mut from = (0, 0);
        while taken.len() < most {
            let Some(&(noted, number)) = self.order.range(from..).next() else {
                break;
            };
            if verdict(number) == Verdict::Drop {
                self.remove(number);
                continue;
            }
            let present = stamp(number);
            if present != noted {
                self.remove(number);
                self.insert(number, present);
                continue;
            }
            if verdict(number) == Verdict::Take {
                taken.push(number);
            }
            from = (noted, number + 1);
        }
        taken
    }

    /// Bytes held, about: a tree stores a few more than its members.
    pub fn heap_bytes(&self) -> usize {
        self.order.len() * size_of::<(u64, u32)>() + self.noted.capacity() * size_of::<u64>()
    }

    /// Recounts the members, given the present stamp of each number, 0 if it has none.
    pub fn check(&self, stamp: impl Fn(u32) -> u64) -> Result<(), String> {
        let members = self.noted.iter().filter(|&&noted| noted > 0).count();
        if members != self.order.len() {
            return Err(format!(
                "{members} numbers are noted as members, {} are in order",
                self.order.len()
            ));
        }
        for &(noted, number) in &self.order {
            let present = stamp(number);
            if self.noted[number as usize] != noted || noted > present {
                return Err(format!(
                    "{number} stands at {noted}, is noted at {} and belongs at {present}",
                    self.noted[number as usize]
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain walk over all members in the order of their present stamps.
        #[test]
        fn the_oldest_are_those_of_a_plain_walk(
            steps in prop::collection::vec((0u8..5, 0u32..10, 1usize..4), 0..120),
        ) {
            let mut members = ByAge::default();
            let mut stamps = [1u64; 10];
            let mut model: BTreeSet<u32> = BTreeSet::new();
            for (now, (step, number, most)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        model.insert(number);
                        members.insert(number, stamps[number as usize]);
                    }
                    1 => {
                        model.remove(&number);
                        members.remove(number);
                    }
                    2 | 3 => stamps[number as usize] = now as u64 + 2,
                    _ => {
                        // One is no member any more; odd ones are passed.
                        let verdict = |n: u32| match n {
                            n if n == number => Verdict::Drop,
                            n if n % 2 == 1 => Verdict::Pass,
                            _ => Verdict::Take,
                        };
                        let mut walk: Vec<u32> = model.iter().copied().collect();
                        walk.retain(|&n| n != number && n % 2 == 0);
                        walk.sort_by_key(|&n| (stamps[n as usize], n));
                        walk.truncate(most);
                        let found = members.oldest(most, |n| stamps[n as usize], verdict);
                        prop_assert_eq!(found, walk);
                        if !members.holds(number) {
                            model.remove(&number);
                        }
                    }
                }
                members.check(|n| stamps[n as usize]).map_err(TestCaseError::fail)?;
                for n in 0..10 {
                    prop_assert_eq!(members.holds(n), model.contains(&n));
                }
            }
        }
    }
}
