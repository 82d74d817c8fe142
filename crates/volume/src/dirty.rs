//! Which pages of the checkpoint tables have changed, or have been written.
//!
//! Invariant: a bit for each page, and none that is set beyond the last page.

use std::marker::PhantomData;

use crate::format::{Identity, PageInTable, RowId, Table, TablePage};

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

    fn has(&self, number: u32) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 == 1
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

/// The pages of a table that have changed since they were last written; `R` is what has a row there.
#[derive(Debug, Clone)]
pub(crate) struct DirtyPages<R> {
    pages: Bits,
    rows_per_page: u32,
    rows: PhantomData<R>,
}

impl<R: Into<RowId>> DirtyPages<R> {
    /// Nothing of a table is dirty.
    pub fn of(table: Table, id: &Identity) -> Self {
        DirtyPages::new(table.pages(id), table.rows_per_page(id))
    }

    fn new(pages: u32, rows_per_page: u32) -> Self {
        DirtyPages {
            pages: Bits::new(pages as usize),
            rows_per_page,
            rows: PhantomData,
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

    /// A page is written.
    pub fn clear(&mut self, page: PageInTable) {
        self.pages.clear(page.0);
    }

    /// Pages that have changed.
    pub fn count(&self) -> u32 {
        self.pages.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// The table pages and directories that have been written for the next checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct WrittenPages(Bits);

impl WrittenPages {
    /// None is, of so many.
    pub fn new(pages: usize) -> Self {
        WrittenPages(Bits::new(pages))
    }

    /// A page has been written.
    pub fn mark(&mut self, page: TablePage) {
        self.0.set(page.0);
    }

    /// Whether a page has been written.
    pub fn has(&self, page: TablePage) -> bool {
        self.0.has(page.0)
    }

    /// The first page from one on that has been written.
    pub fn next(&self, from: TablePage) -> Option<TablePage> {
        self.0.next(from.0).map(TablePage)
    }

    /// What is written from now on counts for another checkpoint.
    pub fn clear_all(&mut self) {
        self.0.0.fill(0);
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
