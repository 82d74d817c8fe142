//! A set of 64-bit numbers that is added to by whole ranges.
//!
//! Invariant: the ranges do not touch each other.

use std::collections::BTreeMap;

/// The set, by begins and ends (not included) of its ranges.
#[derive(Debug, Default)]
pub struct RangeSet {
    ends: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Adds `from..to`.
    pub fn insert(&mut self, mut from: u64, mut to: u64) {
        if from >= to {
            return;
        }
        while let Some((&begin, &end)) = self.ends.range(..=to).next_back()
            && end >= from
        {
            self.ends.remove(&begin);
            from = from.min(begin);
            to = to.max(end);
        }
        self.ends.insert(from, to);
    }

    /// Whether `number` was added.
    pub fn contains(&self, number: u64) -> bool {
        let below = self.ends.range(..=number).next_back();
        below.is_some_and(|(_, end)| number < *end)
    }

    /// Bytes held, about.
    pub fn heap_bytes(&self) -> usize {
        self.ends.len() * 3 * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_set_of_numbers(
            ranges in prop::collection::vec((0_u64..200, 0_u64..30), 0..20),
        ) {
            let mut set = RangeSet::default();
            let mut oracle = BTreeSet::new();
            for (from, length) in ranges {
                set.insert(from, from + length);
                oracle.extend(from..from + length);
            }
            for number in 0..260 {
                prop_assert_eq!(set.contains(number), oracle.contains(&number));
            }
            let ends: Vec<_> = set.ends.into_iter().collect();
            prop_assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
