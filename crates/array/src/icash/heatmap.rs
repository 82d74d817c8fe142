//! The heatmap: how often each sub-signature was accessed at each position.
//!
//! Invariant: until it is halved or a counter is full, each row sums to the number of accesses recorded.

/// Counters, one for each row (position of a sub-block) and column (value of a sub-signature).
#[derive(Debug, Clone)]
pub struct Heatmap {
    columns: usize,
    counters: Vec<u32>,
    recorded: u64,
    is_exact: bool,
}

impl Heatmap {
    /// One of so many rows and columns, all 0.
    pub fn new(rows: usize, columns: usize) -> Self {
        Heatmap {
            columns,
            counters: vec![0; rows * columns],
            recorded: 0,
            is_exact: true,
        }
    }

    /// Counts an access to a block with these sub-signatures, one a row.
    pub fn record(&mut self, signature: &[u8]) {
        self.recorded += 1;
        for (row, &value) in self.counters.chunks_mut(self.columns).zip(signature) {
            let counter = &mut row[usize::from(value)];
            self.is_exact &= *counter < u32::MAX;
            *counter = counter.saturating_add(1);
        }
    }

    /// The popularity of a block: the sum of the counters that its sub-signatures name.
    pub fn popularity(&self, signature: &[u8]) -> u64 {
        let rows = self.counters.chunks(self.columns).zip(signature);
        rows.map(|(row, &value)| u64::from(row[usize::from(value)]))
            .sum()
    }

    /// Halves every counter: what was accessed long ago weighs less.
    pub fn halve(&mut self) {
        self.counters.iter_mut().for_each(|counter| *counter /= 2);
        self.is_exact = false;
    }

    pub fn row(&self, row: usize) -> &[u32] {
        &self.counters[row * self.columns..][..self.columns]
    }

    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    pub fn heap_bytes(&self) -> usize {
        self.counters.capacity() * size_of::<u32>()
    }

    pub fn check(&self) -> Result<(), String> {
        for (number, row) in self.counters.chunks(self.columns).enumerate() {
            let sum: u64 = row.iter().copied().map(u64::from).sum();
            if self.is_exact && sum != self.recorded {
                return Err(format!(
                    "row {number} of the heatmap sums to {sum}, expected {} accesses",
                    self.recorded
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u8 = 0;
    const B: u8 = 1;
    const C: u8 = 2;
    const D: u8 = 3;

    /// The blocks of tables 1 and 2 of the paper, in the order of their accesses.
    const BLOCKS: [[u8; 2]; 4] = [[A, B], [C, D], [A, D], [B, D]];

    #[test]
    fn vector_a_the_heatmap_of_table_1() {
        let mut heatmap = Heatmap::new(2, 4);
        let steps = [
            ([1, 0, 0, 0], [0, 1, 0, 0]),
            ([1, 0, 1, 0], [0, 1, 0, 1]),
            ([2, 0, 1, 0], [0, 1, 0, 2]),
            ([2, 1, 1, 0], [0, 1, 0, 3]),
        ];
        for (block, (row0, row1)) in BLOCKS.iter().zip(steps) {
            heatmap.record(block);
            assert_eq!((heatmap.row(0), heatmap.row(1)), (&row0[..], &row1[..]));
            heatmap.check().unwrap();
        }
    }

    /// Blocks' worth of space when all blocks are halves that differ from the reference's, or one block each.
    fn space(reference: Option<[u8; 2]>) -> f64 {
        let stored = BLOCKS.iter().map(|block| match reference {
            Some(reference) if reference != *block => {
                let differing = block.iter().zip(reference).filter(|&(a, b)| *a != b);
                differing.count() as f64 / 2.0
            }
            _ => 1.0,
        });
        stored.sum()
    }

    #[test]
    fn vector_b_the_most_popular_block_saves_the_most_space() {
        let mut heatmap = Heatmap::new(2, 4);
        BLOCKS.iter().for_each(|block| heatmap.record(block));
        let popularity = BLOCKS.map(|block| heatmap.popularity(&block));
        assert_eq!(popularity, [3, 4, 5, 4]);
        assert_eq!(space(None), 4.0);
        let spaces = BLOCKS.map(|block| space(Some(block)));
        assert_eq!(spaces, [3.5, 3.0, 2.5, 3.0]);
        let most = (0..4).max_by_key(|&block| popularity[block]);
        let least = (0..4).min_by(|&a, &b| spaces[a].total_cmp(&spaces[b]));
        assert_eq!((most, least), (Some(2), Some(2)));
    }

    #[test]
    fn figure_4_a_signature_raises_one_counter_a_row() {
        let mut heatmap = Heatmap::new(8, 256);
        heatmap.record(&[55, 0, 9, 9, 9, 9, 9, 9]);
        assert_eq!((heatmap.row(0)[55], heatmap.row(1)[0]), (1, 1));
        assert_eq!(heatmap.row(0).iter().sum::<u32>(), 1);
    }

    #[test]
    fn halving_forgets() {
        let mut heatmap = Heatmap::new(2, 4);
        (0..5).for_each(|_| heatmap.record(&[A, B]));
        heatmap.halve();
        assert_eq!(heatmap.popularity(&[A, B]), 4);
        heatmap.check().unwrap();
    }
}
