//! Rows of a checkpoint, and what has become of them: only what differs is kept apart.
//!
//! Invariant: a row that was never set is that of the checkpoint.

use rustc_hash::FxHashMap;
use std::fmt;

/// Rows, some of which differ from those of a checkpoint.
pub(crate) struct RowOverlay<'a, R> {
    /// A row of the checkpoint, if there is such a one.
    known: Box<dyn Fn(usize) -> Option<R> + 'a>,
    changed: FxHashMap<usize, R>,
    len: usize,
}

impl<'a, R: Copy> RowOverlay<'a, R> {
    /// Those of the checkpoint, of which there are so many.
    pub fn new(len: usize, known: impl Fn(usize) -> Option<R> + 'a) -> Self {
        RowOverlay {
            known: Box::new(known),
            changed: FxHashMap::default(),
            len,
        }
    }

    /// Rows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// A row, if there is such a one.
    pub fn get(&self, row: usize) -> Option<R> {
        let changed = self.changed.get(&row).copied();
        changed.or_else(|| (self.known)(row))
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = R> + '_ {
        (0..self.len).filter_map(|row| self.get(row))
    }

    /// A row becomes another.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn set(&mut self, row: usize, becomes: R) {
        assert!(row < self.len, "row {row} of {}", self.len);
        self.changed.insert(row, becomes);
    }

    /// There are so many rows at least; those behind the others hold this.
    pub fn extend_to(&mut self, len: usize, filler: R) {
        self.changed
            .extend((self.len..len).map(|row| (row, filler)));
        self.len = self.len.max(len);
    }

    /// What differs, to be brought into the rows of the checkpoint.
    pub fn into_changes(self) -> RowChanges<R> {
        RowChanges {
            changed: self.changed,
            len: self.len,
        }
    }
}

impl<R> fmt::Debug for RowOverlay<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RowOverlay { changed, len, .. } = self;
        write!(f, "{} of {len} rows changed", changed.len())
    }
}

/// What has become of the rows of a checkpoint.
#[derive(Debug)]
pub(crate) struct RowChanges<R> {
    changed: FxHashMap<usize, R>,
    len: usize,
}

impl<R: Copy> RowChanges<R> {
    /// A row that differs.
    pub fn get(&self, row: usize) -> Option<R> {
        self.changed.get(&row).copied()
    }

    /// A row becomes another.
    pub fn set(&mut self, row: usize, becomes: R) {
        self.changed.insert(row, becomes);
    }

    /// The rows that differ, in no order.
    pub fn rows(&self) -> impl Iterator<Item = (usize, R)> + '_ {
        self.changed.iter().map(|(&row, &becomes)| (row, becomes))
    }

    /// The rows of the checkpoint with what has become of them.
    pub fn applied_to(self, mut rows: Vec<R>, filler: R) -> Vec<R> {
        rows.resize(self.len, filler);
        for (row, becomes) in self.changed {
            rows[row] = becomes;
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_checkpoint_but_for_what_was_set() {
        let known = vec![10, 11, 12];
        let mut rows = RowOverlay::new(known.len(), |row| known.get(row).copied());
        rows.set(1, 21);
        rows.extend_to(5, 0);
        rows.extend_to(2, 9);
        rows.set(4, 24);
        assert_eq!(rows.all().collect::<Vec<i32>>(), [10, 21, 12, 0, 24]);
        assert_eq!((rows.get(2), rows.get(5), rows.len()), (Some(12), None, 5));
        let changes = rows.into_changes();
        assert_eq!(changes.applied_to(known, 0), [10, 21, 12, 0, 24]);
    }
}
