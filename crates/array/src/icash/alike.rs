//! Signatures that are searched for those which share the most positions with another.
//!
//! Two signatures that share a position stand in one list, that of the position and the value there. Where these
//! lists are short, the signatures in them are counted; where they are longer than all signatures together, as when
//! many blocks hold zeros somewhere, each signature is compared.
//!
//! Invariants: `listed` has each number once for each position, in ascending order; between two searches `counts` is
//! zero everywhere.

use std::cmp::Reverse;

use crate::icash::parameters::{SIGNATURE_VALUES, SUB_BLOCKS};
use crate::icash::signature::Signature;

/// Signatures, numbered in the order in which they came.
#[derive(Debug)]
pub struct Alike {
    signatures: Vec<Signature>,
    /// By position and value the numbers of those that have it there.
    listed: Vec<Vec<u32>>,
    counts: Vec<u8>,
    least_shared: u32,
}

impl Alike {
    /// None yet. Those that share fewer positions than `least_shared` are not alike.
    pub fn new(least_shared: u32) -> Self {
        Alike {
            signatures: Vec::new(),
            listed: vec![Vec::new(); SUB_BLOCKS * SIGNATURE_VALUES],
            counts: Vec::new(),
            least_shared,
        }
    }

    pub fn push(&mut self, signature: Signature) {
        let number = self.signatures.len() as u32;
        for list in lists_of(&signature) {
            self.listed[list].push(number);
        }
        self.signatures.push(signature);
        self.counts.push(0);
    }

    /// Of those numbered `from` and above the `most` that share the most positions with a signature, and at least so
    /// many that they are alike: first those that share more, of equals the first.
    pub fn best(&mut self, signature: &Signature, from: usize, most: usize) -> Vec<usize> {
        let Some(lists) = short_lists(&self.listed, signature, from, self.signatures.len()) else {
            let others = self.signatures[from..].iter();
            let shared = others.map(|other| other.shared(signature));
            return those_with_most((from..).zip(shared), self.least_shared, most);
        };
        for &number in lists.iter().copied().flatten() {
            self.counts[number as usize] += 1;
        }
        let numbers = lists.iter().copied().flatten();
        let shared = numbers.map(|&number| {
            let count = std::mem::take(&mut self.counts[number as usize]);
            (number as usize, count.into())
        });
        those_with_most(shared, self.least_shared, most)
    }

    /// Whether one of those numbered `from` and above is alike.
    pub fn has_any(&mut self, signature: &Signature, from: usize) -> bool {
        if short_lists(&self.listed, signature, from, self.signatures.len()).is_some() {
            return !self.best(signature, from, 1).is_empty();
        }
        let mut others = self.signatures[from..].iter();
        others.any(|other| other.shared(signature) >= self.least_shared)
    }
}

/// The numbers from `from` on in the lists that a signature stands in, if together they are no more than all `count`
/// signatures from there on.
fn short_lists<'a>(
    listed: &'a [Vec<u32>],
    signature: &Signature,
    from: usize,
    count: usize,
) -> Option<[&'a [u32]; SUB_BLOCKS]> {
    let lists = lists_of(signature).map(|list| {
        let numbers = &listed[list];
        &numbers[numbers.partition_point(|&number| (number as usize) < from)..]
    });
    let together: usize = lists.iter().map(|list| list.len()).sum();
    (together <= count - from).then_some(lists)
}

/// The lists that a signature stands in.
fn lists_of(signature: &Signature) -> [usize; SUB_BLOCKS] {
    std::array::from_fn(|position| position * SIGNATURE_VALUES + usize::from(signature.0[position]))
}

/// Of numbers with counts of at least `least` the `most` with the highest, of equals the lowest first.
fn those_with_most(
    counted: impl Iterator<Item = (usize, u32)>,
    least: u32,
    most: usize,
) -> Vec<usize> {
    let mut best: Vec<(Reverse<u32>, usize)> = Vec::with_capacity(most + 1);
    for (number, count) in counted.filter(|&(_, count)| count >= least) {
        let found = (Reverse(count), number);
        // Most are no better than those that there are already.
        if best.len() == most && best.last().is_some_and(|last| *last < found) {
            continue;
        }
        best.insert(best.partition_point(|other| *other < found), found);
        best.truncate(most);
    }
    best.into_iter().map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a comparison with each; few values make long lists, many make short ones.
        #[test]
        fn the_best_is_that_of_a_plain_comparison(
            values in 1u8..40,
            drawn in prop::collection::vec(any::<[u8; SUB_BLOCKS]>(), 1..60),
            least in 1u32..9,
            from in 0usize..60,
            most in 1usize..6,
        ) {
            let signatures: Vec<Signature> =
                drawn.iter().map(|s| Signature(s.map(|value| value % values))).collect();
            let mut alike = Alike::new(least);
            signatures.iter().for_each(|&signature| alike.push(signature));
            let from = from.min(signatures.len());
            for wanted in &signatures {
                let all = signatures.iter().enumerate().skip(from);
                let mut best: Vec<_> = all
                    .map(|(number, signature)| (Reverse(signature.shared(wanted)), number))
                    .filter(|&(Reverse(shared), _)| shared >= least)
                    .collect();
                best.sort();
                prop_assert_eq!(alike.has_any(wanted, from), !best.is_empty());
                let best: Vec<usize> = best.into_iter().take(most).map(|(_, n)| n).collect();
                prop_assert_eq!(alike.best(wanted, from, most), best);
            }
        }
    }
}
