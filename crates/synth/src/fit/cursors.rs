//! Where recent runs ended, so that another can go on there.

use flashlore_trace::Op;

/// How many ends are remembered.
const KEPT: usize = 48;

/// Ends of runs, the latest first. An end is the position behind the run's last.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursors(Vec<u64>);

impl Cursors {
    /// How many runs ended since the one that ended at `place`.
    pub(super) fn rank(&self, place: u64) -> Option<usize> {
        self.0.iter().position(|&end| end == place)
    }

    /// The end of this rank.
    pub(super) fn at(&self, rank: usize) -> Option<u64> {
        self.0.get(rank).copied()
    }

    /// The rank of the end that differs least.
    pub(super) fn nearest(&self, difference: impl Fn(u64) -> f64) -> Option<(usize, f64)> {
        let all = self.0.iter().enumerate();
        all.map(|(rank, &end)| (rank, difference(end)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// A run ended at `end`; with a rank, it went on from there.
    pub(super) fn ended(&mut self, rank: Option<usize>, end: u64) {
        if let Some(rank) = rank {
            self.0.remove(rank);
        }
        self.0.insert(0, end);
        self.0.truncate(KEPT);
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct ByOp([Cursors; 3]);

impl ByOp {
    pub(super) fn of(&mut self, op: Op) -> &mut Cursors {
        &mut self.0[match op {
            Op::Write => 0,
            Op::Trim => 1,
            _ => 2,
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_ends_come_first_and_old_ones_go() {
        let mut cursors = Cursors::default();
        for end in 0..60 {
            cursors.ended(None, end);
        }
        assert_eq!((cursors.rank(59), cursors.rank(11)), (Some(0), None));
        assert_eq!(cursors.rank(12), Some(47));
        cursors.ended(Some(47), 13);
        assert_eq!((cursors.rank(12), cursors.at(0)), (None, Some(13)));
        let near = cursors.nearest(|end| (end as f64 - 40.2).abs()).unwrap();
        assert_eq!(cursors.at(near.0), Some(40));
    }
}
