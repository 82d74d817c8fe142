//! How many valid units the victims of collection held.

/// Victims by the number of valid units they held when they were chosen. Memory is bounded by the
/// units of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Victims {
    by_valid: Vec<u64>,
}

impl Victims {
    /// Adds a victim with `valid` valid units.
    pub fn record(&mut self, valid: u32) {
        let at = valid as usize;
        if at >= self.by_valid.len() {
            self.by_valid.resize(at + 1, 0);
        }
        self.by_valid[at] += 1;
    }

    /// Adds the victims of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.by_valid.len() > self.by_valid.len() {
            self.by_valid.resize(other.by_valid.len(), 0);
        }
        for (mine, theirs) in self.by_valid.iter_mut().zip(&other.by_valid) {
            *mine += theirs;
        }
    }

    /// Pairs of valid units and victims that held as many, ascending, without empty ones.
    pub fn pairs(&self) -> Vec<(u64, u64)> {
        let pairs = self
            .by_valid
            .iter()
            .enumerate()
            .map(|(valid, victims)| (valid as u64, *victims));
        pairs.filter(|(_, victims)| *victims > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victims_are_counted_by_valid_units() {
        let (mut a, mut b) = (Victims::default(), Victims::default());
        [3, 0, 3].into_iter().for_each(|valid| a.record(valid));
        [5, 0].into_iter().for_each(|valid| b.record(valid));
        a.merge(&b);
        assert_eq!(a.pairs(), [(0, 2), (3, 2), (5, 1)]);
    }
}
