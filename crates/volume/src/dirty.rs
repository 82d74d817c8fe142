//! Which pages of the checkpoint tables have changed since their rows were handed to the store.
//!
//! Invariant: a bit for each page, and none that is set beyond the last page.

use std::marker::PhantomData;

use crate::format::{Identity, PageInTable, RowId, Table};

/// A set of numbers.
#[derive(Debug, Clone)]
struct Bits(Vec<u64>);

impl Bits {
    /// Nothing is in it, and so many numbers may be.
    fn new(count: usize) -> Self {
        Bits(vec![0; count.div_ceil(64)])
    }

    fn set(&mut self, number: u32) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    fn clear(&mut self, number: u32) {
        self.0[number as usize / 64] &= !(1 << (number % 64));
    }

    /// The first number from one on that is in it.
    fn next(&self, from: u32) -> Option<u32> {
        let word = from as usize / 64;
        let first = *self.0.get(word)? >> (from % 64) << (from % 64);
        let rest = self.0[word + 1..].iter().copied();
        let words = (word as u32..).zip(std::iter::once(first).chain(rest));
        let (word, bits) = words.into_iter().find(|&(_, bits)| bits != 0)?;
        Some(word * 64 + bits.trailing_zeros())
    }
}

/// The pages of a table that have changed since their rows were last handed over; `R` is what has a row there.
#[derive(Debug, Clone)]
pub(crate) struct DirtyPages<R> {
    pages: Bits,
    rows_per_page: u32,
    rows: PhantomData<R>,
}

impl<R: Into<RowId>> DirtyPages<R> {
    /// Nothing of a table is dirty.
    pub fn of(table: Table, id: &Identity) -> Self {
        DirtyPages::new(table.pages(id), table.shape(id).rows_per_page())
    }

    fn new(pages: u32, rows_per_page: u32) -> Self {
        DirtyPages {
            pages: Bits::new(pages as usize),
            rows_per_page,
            rows: PhantomData,
        }
    }

    /// Every row has changed.
    pub fn mark_all(&mut self, table: Table, id: &Identity) {
        for page in table.each_page(id) {
            self.pages.set(page.0);
        }
    }

    /// A row has changed.
    pub fn mark(&mut self, row: R) {
        let row: RowId = row.into();
        self.pages.set(row.0 / self.rows_per_page);
    }

    /// The first page from one on that has changed.
    pub fn next(&self, from: PageInTable) -> Option<PageInTable> {
        self.pages.next(from.0).map(PageInTable)
    }

    /// The rows of a page have been handed over.
    pub fn clear(&mut self, page: PageInTable) {
        self.pages.clear(page.0);
    }

    /// Pages that have changed.
    pub fn count(&self) -> u32 {
        self.pages.0.iter().map(|word| word.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use flashlore_flash::Lpn;

    use super::*;

    #[test]
    fn pages_that_have_changed_are_found_in_order() {
        let mut dirty = DirtyPages::new(300, 10);
        for row in [0, 9, 640, 1279, 2990] {
            dirty.mark(Lpn(row));
        }
        let all = |dirty: &DirtyPages<Lpn>| {
            let mut found: Vec<PageInTable> = Vec::new();
            let from = |found: &[PageInTable]| {
                let last = found.last().copied();
                last.map_or(PageInTable(0), PageInTable::following)
            };
            while let Some(page) = dirty.next(from(&found)) {
                found.push(page);
            }
            found
        };
        assert_eq!(all(&dirty), [0, 64, 127, 299].map(PageInTable));
        assert_eq!(dirty.count(), 4);
        dirty.clear(PageInTable(64));
        assert_eq!(all(&dirty), [0, 127, 299].map(PageInTable));
        assert_eq!(dirty.next(PageInTable(300)), None);
        assert_eq!(dirty.next(PageInTable(10_000)), None);
    }
}
