//! Percentiles of a list of numbers.

use super::rank;

/// Numbers, kept one by one.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    numbers: Vec<u64>,
}

/// The same, sorted.
#[derive(Debug)]
pub(crate) struct Sorted {
    numbers: Vec<u64>,
}

impl Samples {
    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        self.numbers.push(number);
    }

    /// Sorts them.
    pub fn sort(mut self) -> Sorted {
        self.numbers.sort_unstable();
        Sorted {
            numbers: self.numbers,
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.numbers.capacity() * size_of::<u64>()
    }
}

impl Sorted {
    /// The smallest number that at least `percent` % of them do not exceed.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let at = rank(self.numbers.len() as u64, percent) as usize - 1;
        self.numbers.get(at).copied()
    }

    /// The numbers, ascending.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_numbers_of_the_list() {
        let mut samples = Samples::default();
        [40, 10, 30, 20]
            .into_iter()
            .for_each(|number| samples.add(number));
        let sorted = samples.sort();
        let found = [1, 25, 26, 50, 75, 76, 100].map(|p| sorted.percentile(p));
        assert_eq!(found, [10, 10, 20, 20, 30, 40, 40].map(Some));
        assert_eq!(Samples::default().sort().percentile(50), None);
    }
}
