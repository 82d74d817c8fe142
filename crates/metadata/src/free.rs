//! Free rows of a table whose pages are on a medium: a list a page, so that what is written together lies together, and
//! a row that is taken is in a page that is in memory anyway.
//!
//! Objects of neighbouring logical pages get rows of one page as far as there are any: the first pages of the table are
//! shared out among the logical pages in their order. So a run of logical pages is a few pages of the table, whatever was
//! written in between. What does not fit there goes to the pages behind, which fill one after the other: what is
//! written together lies together there, and pages that were not needed yet stay unwritten.
//!
//! A byte for each page says which of its rows is the first free one, counted in the page; the link of a free row says which
//! follows, as the difference to the row behind it. So in a page that was never written, all bytes of which are 0,
//! every row is free and the list is in order. A number that no row of the page has ends the list.
//!
//! The last row of the table is nobody's: it is given out where no other can be had, and what is done with it counts no
//! more.
//!
//! What it says follows from the rows themselves. So a page of these bytes that cannot be read keeps nobody from anything:
//! of the pages that it speaks of no row is taken, and one that is given back there is nobody's. One that is met at the
//! beginning is found anew ([`FreeRows::find_lost`]).
//!
//! Invariant: of each page, the rows that its list names are those that nobody uses but the last one, each once; where the
//! list could not be read it may name fewer.

use std::ops::Range;

use flashlore_flash::{FreeRows, Links, Lpn, Table};

use crate::address::Shape;
use crate::error::MetadataError;
use crate::table::StoredTable;

/// The first free row of a page that has none.
const NONE: u8 = u8::MAX;
/// Of the pages behind, one in so many more are used once all of those that are have no free row.
const MORE: usize = 16;
/// Pages whose first free rows lie in one page of their own table.
const LOOKED_AT: usize = StoredTable::<u8>::PER_PAGE;

/// The rows of a table in pages, and what their links say.
#[derive(Debug, Clone, Copy)]
pub struct LinkedRows {
    rows: usize,
    per_page: usize,
}

impl LinkedRows {
    /// Those of a table of this shape, but for the last row.
    pub fn of(table: &Shape) -> Self {
        LinkedRows {
            rows: table.rows.saturating_sub(1) as usize,
            per_page: table.rows_per_page() as usize,
        }
    }

    fn pages(&self) -> usize {
        self.rows.div_ceil(self.per_page)
    }

    /// Whether a row is the last one of the table, which is nobody's.
    pub fn is_nobodys(&self, row: usize) -> bool {
        row == self.rows
    }

    /// A row by its number in its page, if there is one.
    fn row(&self, page: usize, within: u8) -> Option<usize> {
        let row = page * self.per_page + usize::from(within);
        (usize::from(within) < self.per_page && row < self.rows).then_some(row)
    }

    /// The number in its page of what follows a free row.
    fn next(&self, row: usize, link: u32) -> u8 {
        let within = (row % self.per_page) as u8;
        within.wrapping_add(1).wrapping_add(link as u8)
    }

    /// The link of a row that is followed by another.
    fn link_to(&self, row: usize, next: u8) -> u32 {
        let within = (row % self.per_page) as u8;
        next.wrapping_sub(within.wrapping_add(1)).into()
    }

    /// The free rows of a page whose first one is known, in the order of its list.
    ///
    /// # Errors
    /// A sentence if the list runs in a circle.
    pub fn list(
        &self,
        page: usize,
        first: u8,
        link: impl Fn(usize) -> u32,
    ) -> Result<Vec<usize>, String> {
        let mut free = Vec::new();
        let mut at = self.row(page, first);
        while let Some(row) = at {
            if free.len() == self.per_page {
                return Err(format!(
                    "the free rows of page {page} run in a circle at {row}"
                ));
            }
            free.push(row);
            at = self.row(page, self.next(row, link(row)));
        }
        Ok(free)
    }
}

/// The free rows of a table.
#[derive(Debug)]
pub struct FreeByPage {
    /// The first free row of each page.
    first: StoredTable<u8>,
    rows: LinkedRows,
    /// Pages for the objects of logical pages, in the order of those.
    own_pages: usize,
    /// Of the pages behind those that were used.
    used: usize,
    /// Where among them a page with free rows was found last.
    cursor: usize,
    /// Pages of which it could not be read at the beginning which rows are free: it says none until they are found anew.
    lost: Vec<Range<usize>>,
}

impl FreeByPage {
    /// The free rows of a table of this shape, for objects of so many logical pages.
    ///
    /// # Panics
    /// If a page has more rows than a byte counts, or there are not as many pages.
    pub(crate) fn new(first: StoredTable<u8>, objects: &Shape, exported: u32) -> Self {
        let rows = LinkedRows::of(objects);
        assert!(rows.per_page < usize::from(NONE), "{objects:?}");
        assert!(first.len() >= rows.pages(), "{objects:?} and {first:?}");
        let own_pages = (exported as usize).div_ceil(rows.per_page);
        let mut free = FreeByPage {
            first,
            rows,
            own_pages: own_pages.min(rows.pages()),
            used: 0,
            cursor: 0,
            lost: Vec::new(),
        };
        free.find_used();
        free
    }

    /// Counts the pages behind up to the last one that was used. Of them there may be millions, and those behind it are
    /// passed over. Those of which nothing can be read count as used.
    fn find_used(&mut self) {
        self.used = 0;
        let mut end = self.rows.pages();
        while self.used == 0 && end > self.own_pages {
            let begin = (end - 1) / LOOKED_AT * LOOKED_AT;
            let behind = begin.max(self.own_pages);
            let mut used = behind;
            let look = || {
                self.first.each(behind..end, |page, first| {
                    if first != 0 {
                        used = page + 1;
                    }
                });
            };
            if self.first.spared(look).is_none() {
                self.lose(begin..end);
                used = end;
            }
            self.used = used - self.own_pages;
            end = behind;
        }
    }

    /// Of these pages, which have a page of their first free rows to themselves, no row is free until they are found anew.
    fn lose(&mut self, pages: Range<usize>) {
        let failures = self.first.failures();
        self.first.set_first(pages.start, NONE, LOOKED_AT);
        for page in pages.clone() {
            self.first.set(page, NONE);
        }
        if self.first.failures() == failures {
            self.lost.push(pages);
        }
    }

    /// The number in a page of its first free row, if it can be read. Where it cannot a medium that fails one call may
    /// answer the next.
    fn read_first(&self, page: usize) -> Option<u8> {
        let read = || self.first.spared(|| self.first.get(page));
        read().or_else(read)
    }

    /// The first free row of a page, if there is one.
    fn first_of(&self, page: usize) -> Option<usize> {
        self.rows.row(page, self.read_first(page)?)
    }

    /// The page in which a row for a logical page is to be taken, and the first free row there.
    fn page_near(&mut self, near: Lpn) -> Option<(usize, usize)> {
        let found = |page: usize| Some((page, self.first_of(page)?));
        let own = near.index() / self.rows.per_page;
        if own < self.own_pages
            && let Some(free) = found(own)
        {
            return Some(free);
        }
        let behind = |from: usize, to: usize| (from..to).map(|page| self.own_pages + page);
        let mut used = behind(self.cursor, self.used).chain(behind(0, self.cursor));
        let unused = self.rows.pages() - self.own_pages - self.used;
        let more = (self.used / MORE + 1).min(unused);
        let (page, row) = used
            .find_map(found)
            .or_else(|| behind(self.used, self.used + more).find_map(found))
            .or_else(|| (0..self.own_pages).find_map(found))?;
        if page >= self.own_pages {
            self.cursor = page - self.own_pages;
            if self.cursor >= self.used {
                self.used += more;
            }
        }
        Some((page, row))
    }

    fn list(&self, page: usize, link: impl Fn(usize) -> u32) -> Result<Vec<usize>, String> {
        self.rows.list(page, self.first.get(page), link)
    }

    /// The free rows of a page are these, in the order of its list.
    fn relink(&mut self, page: usize, free: &[usize], links: &mut impl Links) {
        let mut next = NONE;
        for &row in free.iter().rev() {
            let link = self.rows.link_to(row, next);
            if links.get(row) != link {
                links.set(row, link);
            }
            next = (row % self.rows.per_page) as u8;
        }
        self.first.set(page, next);
    }
}

impl FreeRows for FreeByPage {
    fn take(&mut self, near: Lpn, link: impl Fn(usize) -> u32) -> Option<usize> {
        let failures = self.first.failures();
        let found = self.page_near(near);
        if found.is_none() {
            self.first.fail(MetadataError::NoFreeRow);
        }
        let taken = found.map(|(page, row)| (page, row, self.rows.next(row, link(row))));
        match taken.filter(|_| self.first.failures() == failures) {
            Some((page, row, next)) => {
                self.first.set(page, next);
                Some(row)
            }
            None => Some(self.rows.rows),
        }
    }

    fn give_back(&mut self, row: usize) -> u32 {
        let page = row / self.rows.per_page;
        let within = (row % self.rows.per_page) as u8;
        let Some(next) = self.read_first(page) else {
            return self.rows.link_to(row, NONE);
        };
        self.first.set(page, within);
        let next = self.rows.row(page, next).map_or(NONE, |_| next);
        self.rows.link_to(row, next)
    }

    fn all(&self, rows: usize, link: impl Fn(usize) -> u32) -> Result<Vec<usize>, String> {
        debug_assert_eq!(rows, self.rows.rows + 1);
        let mut free = Vec::new();
        for page in 0..self.rows.pages() {
            free.extend(self.list(page, &link)?);
        }
        free.push(self.rows.rows);
        Ok(free)
    }

    fn claim(&mut self, rows: &[usize], links: &mut impl Links) {
        let per_page = self.rows.per_page;
        for claimed in rows.chunk_by(|a, b| a / per_page == b / per_page) {
            let page = claimed[0] / per_page;
            if self.read_first(page).is_none() {
                continue;
            }
            let free = self.list(page, |row| links.get(row));
            let mut free = free.unwrap_or_default();
            free.retain(|row| claimed.binary_search(row).is_err());
            self.relink(page, &free, links);
        }
    }

    fn restore(&mut self, free: &[usize], _rows: usize, links: &mut impl Links) {
        let rows = self.rows.rows;
        let is_somebodys = |row: &usize| *row < rows;
        let mut free = free.iter().copied().filter(is_somebodys).peekable();
        for page in 0..self.rows.pages() {
            let end = (page + 1) * self.rows.per_page;
            let wanted: Vec<usize> =
                std::iter::from_fn(|| free.next_if(|&row| row < end)).collect();
            let there = self.list(page, |row| links.get(row)).map(|mut there| {
                there.sort_unstable();
                there
            });
            if there.as_ref() == Ok(&wanted) {
                continue;
            }
            self.relink(page, &wanted, links);
        }
    }
    fn find_lost(&mut self, links: &mut impl Links) {
        let per_page = self.rows.per_page;
        while let Some(pages) = self.lost.pop() {
            for page in pages {
                let rows = page * per_page..((page + 1) * per_page).min(self.rows.rows);
                let is_free = |&row: &usize| links.is_free(row);
                let free = self
                    .first
                    .spared(|| rows.filter(is_free).collect::<Vec<usize>>());
                // Where the rows themselves cannot be read none is taken.
                if let Some(free) = free {
                    self.relink(page, &free, links);
                }
            }
            self.find_used();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use flashlore_content::VolumeKey;
    use flashlore_flash::{TableName, Tables};
    use flashlore_medium::{Medium, MemoryMedium};

    use super::*;
    use crate::{Area, Empty, PAGE_BYTES, Store, StoredTables, TableId};

    /// Links of rows that were set, and which rows are free.
    #[derive(Default)]
    struct Rows {
        links: HashMap<usize, u32>,
        used: Vec<usize>,
    }

    impl Links for Rows {
        fn get(&self, row: usize) -> u32 {
            self.links.get(&row).copied().unwrap_or(0)
        }

        fn set(&mut self, row: usize, link: u32) {
            self.links.insert(row, link);
        }

        fn is_free(&self, row: usize) -> bool {
            !self.used.contains(&row)
        }
    }

    const AREA: Area = Area {
        at: 0,
        slots: 500,
        tables: 10,
        user_bytes: 0,
    };
    const KEY: VolumeKey = VolumeKey([7; 32]);
    const ROWS_PER_PAGE: usize = 127;

    fn tables(medium: Arc<dyn Medium>) -> StoredTables<()> {
        let (store, _) = Store::open(medium, AREA, KEY, 10).unwrap();
        let ids = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(TableId);
        StoredTables::new(store, ids)
    }

    /// The pages of the rows have three pages of first free rows; two of these are for logical pages.
    fn exported() -> u32 {
        (2 * LOOKED_AT * ROWS_PER_PAGE) as u32
    }

    /// After rows of all three were taken and one was given back, the one with this number has rotted.
    fn rotten(number: u32, rows: &mut Rows) -> StoredTables<()> {
        let shape = |rows, row_bytes| Shape {
            rows,
            row_bytes,
            empty: Empty::Zeros,
        };
        let objects = shape((3 * LOOKED_AT * ROWS_PER_PAGE) as u32, 32);
        let mut shapes = [(0, shape(1, 4)); 10];
        shapes[TableName::Objects as usize] = (1, objects);
        shapes[TableName::FreeHandles as usize] = (2, shape(objects.leaves(), 1));
        let medium = Arc::new(MemoryMedium::new(AREA.bytes() as usize));
        Store::create(&*medium, &AREA, &KEY, 1, &shapes, &[]).unwrap();
        let written = tables(Arc::clone(&medium) as _);
        let mut free = written.free_handles(exported());
        for near in [0, 1, exported() / 2] {
            rows.used
                .push(free.take(Lpn(near), |row| rows.get(row)).unwrap());
        }
        // All of a page of rows, so that one behind is taken.
        let last = exported() - 1;
        for _ in 0..=ROWS_PER_PAGE {
            rows.used
                .push(free.take(Lpn(last), |row| rows.get(row)).unwrap());
        }
        let given_back = rows.used.remove(0);
        rows.set(given_back, free.give_back(given_back));
        written.with(|store| store.commit_at_once(&[])).unwrap();
        let slots = (0..AREA.slots).map(|slot| AREA.slot(crate::Slot(slot)));
        let mut page = [0; PAGE_BYTES];
        for at in slots {
            medium.read(at, &mut page).unwrap();
            if page[..6] == [b'F', b'L', b'M', b'P', 2, 0] && page[8..12] == number.to_le_bytes() {
                medium.write(at, &[0x5a; PAGE_BYTES]).unwrap();
            }
        }
        tables(medium)
    }

    /// Rows near to which none can be taken come from elsewhere, those that are given back there are nobody's, and nothing
    /// of that counts as a failure.
    #[test]
    fn where_it_cannot_be_read_which_rows_are_free_none_is_taken() {
        let mut rows = Rows::default();
        let tables = rotten(0, &mut rows);
        let mut free = tables.free_handles(exported());
        free.find_lost(&mut rows);
        for near in [0, 1, 300] {
            let taken = free.take(Lpn(near), |row| rows.get(row)).unwrap();
            assert!(!rows.used.contains(&taken), "{taken}");
            assert!(taken / ROWS_PER_PAGE >= 2 * LOOKED_AT, "{taken}");
            rows.used.push(taken);
        }
        let near_it = free.take(Lpn(exported() / 2), |row| rows.get(row));
        assert_eq!(near_it, Some(exported() as usize / 2 + 1));
        let link = free.give_back(1);
        rows.set(1, link);
        free.claim(&[5, 6], &mut rows);
        assert_eq!(tables.failures(), 0);
        assert!(tables.take_error().is_none());
    }

    /// The page that an opening reads is found anew.
    #[test]
    fn rows_of_a_page_that_cannot_be_read_at_the_beginning_are_found_anew() {
        let mut rows = Rows::default();
        let tables = rotten(2, &mut rows);
        let mut free = tables.free_handles(exported());
        let behind = 2 * LOOKED_AT * ROWS_PER_PAGE;
        let before = free.list(2 * LOOKED_AT, |row| rows.get(row));
        assert_eq!(before, Ok(Vec::new()));
        free.find_lost(&mut rows);
        let after = free.list(2 * LOOKED_AT, |row| rows.get(row)).unwrap();
        assert_eq!(
            after,
            (behind + 1..behind + ROWS_PER_PAGE).collect::<Vec<_>>()
        );
        assert_eq!((free.used, tables.failures()), (1, 0));
        assert!(tables.take_error().is_none());
    }
}
