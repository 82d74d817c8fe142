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
//! Invariant: of each page, the rows that its list names are those that nobody uses but the last one, each once.

use flashlore_flash::{FreeRows, Links, Lpn, Table};

use crate::address::Shape;
use crate::error::MetadataError;
use crate::table::StoredTable;

/// The first free row of a page that has none.
const NONE: u8 = u8::MAX;
/// Of the pages behind, one in so many more are used once all of those that are have no free row.
const MORE: usize = 16;
/// Pages that are looked at together: about as many as a page of their numbers has.
const LOOKED_AT: usize = 4096;

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
        };
        free.used = free.pages_used();
        free
    }

    /// Of the pages behind those up to the last one that was used. Of them there may be millions, and those behind it are
    /// passed over.
    fn pages_used(&self) -> usize {
        let (mut used, mut end) = (0, self.rows.pages());
        while used == 0 && end > self.own_pages {
            let begin = end.saturating_sub(LOOKED_AT).max(self.own_pages);
            self.first.each(begin..end, |page, first| {
                if first != 0 {
                    used = page + 1 - self.own_pages;
                }
            });
            end = begin;
        }
        used
    }

    /// The first free row of a page, if there is one.
    fn first_of(&self, page: usize) -> Option<usize> {
        self.rows.row(page, self.first.get(page))
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
            links.set(row, self.rows.link_to(row, next));
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
        let next = { &mut self.first }.change(page, |first| std::mem::replace(first, within));
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
}
