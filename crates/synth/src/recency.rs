//! Things in the order of their last use: what was used a given number of uses ago?
//!
//! Each use takes the next position; a thing stands at the position of its last use and the positions
//! it left are empty. [`Recency::nearest`] answers the thing that stands nearest to a position. A
//! summary of 64-bit words over 64-bit words makes that a few steps. This is how models reach back: a
//! gap drawn from a distribution becomes the thing that was last used so long ago.
//!
//! Invariant: a position is marked iff the thing written there was used last at that position.

/// Things by last use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recency {
    /// What was used at each position.
    things: Vec<u32>,
    /// Marked positions; each further level marks the words of the level below that are not 0.
    levels: Vec<Vec<u64>>,
    marked: u32,
}

/// No position.
pub(crate) const NOWHERE: u32 = u32::MAX;

impl Recency {
    /// Number of uses so far, which is the position of the next.
    pub(crate) fn uses(&self) -> u32 {
        self.things.len() as u32
    }

    /// Number of things that stand somewhere.
    #[cfg(test)]
    pub(crate) fn len(&self) -> u32 {
        self.marked
    }

    #[inline]
    pub(crate) fn thing(&self, position: u32) -> u32 {
        self.things[position as usize]
    }

    /// The next position is of a thing that does not stand at it.
    pub(crate) fn record(&mut self, thing: u32) {
        let at = self.things.len();
        self.things.push(thing);
        self.mark(at);
        self.leave(at as u32);
    }

    /// The thing of a position where none stands stands there.
    pub(crate) fn stand(&mut self, position: u32) {
        self.mark(position as usize);
    }

    /// Uses a thing: it leaves `position`, where it stood so far, for the one answered.
    #[inline]
    pub(crate) fn use_again(&mut self, thing: u32, position: u32) -> u32 {
        if position != NOWHERE {
            self.leave(position);
        }
        let at = self.things.len();
        self.things.push(thing);
        self.mark(at);
        at as u32
    }

    /// Empties a position.
    #[inline]
    pub(crate) fn leave(&mut self, position: u32) {
        let mut at = position as usize;
        self.marked -= 1;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    #[inline]
    fn mark(&mut self, mut at: usize) {
        self.marked += 1;
        let mut level = 0;
        loop {
            if self.levels.len() == level {
                // The level below has just got its second word: its first is marked here.
                let first = self.levels.last().is_some_and(|below| below[0] != 0);
                self.levels.push(vec![u64::from(first)]);
            }
            let words = &mut self.levels[level];
            if words.len() <= at / 64 {
                words.resize(at / 64 + 1, 0);
            }
            words[at / 64] |= 1 << (at % 64);
            if words.len() == 1 {
                return;
            }
            at /= 64;
            level += 1;
        }
    }

    /// The thing that stands nearest to `wanted`; of two equally near ones, the earlier.
    #[inline]
    pub(crate) fn nearest(&self, wanted: u32) -> Option<u32> {
        if self.marked == 0 {
            return None;
        }
        let wanted = wanted.min(self.uses() - 1) as usize;
        let before = self.at_or_before(wanted);
        let after = self.after(wanted);
        let position = match (before, after) {
            (Some(before), Some(after)) if after - wanted < wanted - before => after,
            (Some(before), _) => before,
            (None, Some(after)) => after,
            (None, None) => return None,
        };
        Some(self.things[position])
    }

    /// The last marked position up to `at`.
    pub(crate) fn at_or_before(&self, at: usize) -> Option<usize> {
        let mut place = at;
        for (level, words) in self.levels.iter().enumerate() {
            // From the second level on, the word that was searched already is left out.
            let upto = match (level, place % 64) {
                (0, bit) => u64::MAX >> (63 - bit),
                (_, bit) => (1u64 << bit) - 1,
            };
            let found = words[place / 64] & upto;
            if found != 0 {
                let bit = 63 - found.leading_zeros() as usize;
                return Some(self.descend(level, place / 64 * 64 + bit, |word| {
                    63 - word.leading_zeros() as usize
                }));
            }
            place /= 64;
        }
        None
    }

    /// The first marked position after `at`.
    pub(crate) fn after(&self, at: usize) -> Option<usize> {
        let mut place = at;
        for (level, words) in self.levels.iter().enumerate() {
            let from = (u64::MAX << (place % 64)) << 1;
            let found = words[place / 64] & from;
            if found != 0 {
                let bit = found.trailing_zeros() as usize;
                return Some(self.descend(level, place / 64 * 64 + bit, |word| {
                    word.trailing_zeros() as usize
                }));
            }
            place /= 64;
        }
        None
    }

    fn descend(&self, level: usize, mut place: usize, pick: impl Fn(u64) -> usize) -> usize {
        for words in self.levels[..level].iter().rev() {
            place = place * 64 + pick(words[place]);
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nearest_naively(stands: &[Option<u32>], wanted: u32) -> Option<u32> {
        let wanted = i64::from(wanted).min(stands.len() as i64 - 1);
        let marked = stands
            .iter()
            .enumerate()
            .filter_map(|(at, t)| t.map(|t| (at as i64, t)));
        marked
            .min_by_key(|&(at, _)| ((at - wanted).abs(), at))
            .map(|(_, thing)| thing)
    }

    proptest! {
        #[test]
        fn the_nearest_is_what_a_scan_finds(
            uses in prop::collection::vec((0u32..40, any::<u32>(), prop::bool::weighted(0.1)), 1..600),
            spread in prop::sample::select(vec![1u32, 30]),
        ) {
            let mut recency = Recency::default();
            let mut stands: Vec<Option<u32>> = Vec::new();
            let mut position = std::collections::HashMap::new();
            for (thing, wanted, leave) in uses {
                let old = position.insert(thing, recency.uses()).unwrap_or(NOWHERE);
                if old != NOWHERE {
                    stands[old as usize] = None;
                }
                recency.use_again(thing, old);
                stands.push(Some(thing));
                for other in 0..spread {
                    // Uses of things that leave at once make the marks sparse.
                    let at = recency.use_again(1000 + other, NOWHERE);
                    recency.leave(at);
                    stands.push(None);
                }
                if leave && let Some(at) = position.remove(&thing) {
                    recency.leave(at);
                    stands[at as usize] = None;
                }
                let wanted = wanted % (stands.len() as u32 + 3);
                prop_assert_eq!(recency.nearest(wanted), nearest_naively(&stands, wanted));
                prop_assert_eq!(recency.len() as usize, stands.iter().flatten().count());
            }
        }
    }
}
