//! Pages that will be needed, named while somebody holds what says which, and read by whoever wants them without it.
//!
//! Invariant: a plan changes nothing. What could not be read, or lies elsewhere by now, is left to who asks for the row.

use std::ops::Range;

use flashlore_flash::{Row, TableName};

use crate::address::{self, TableId};
use crate::error::Access;
use crate::fetch::{Fetch, Fetched};
use crate::store::Store;
use crate::table::StoredTables;

/// Rows that are asked for, and the pages that are missing for them.
pub struct TablePlan<'a> {
    store: &'a mut Store,
    ids: &'a [TableId; TableName::COUNT],
    fetches: Vec<Fetch>,
}

impl TablePlan<'_> {
    /// What is made of a row whose page is in memory, or was never written. Otherwise that page, or one above it, is among
    /// those to be read. Nothing if there is no such row.
    pub fn read<A>(
        &mut self,
        name: TableName,
        row: usize,
        read: impl FnOnce(&[u8]) -> A,
    ) -> Option<A> {
        let table = self.ids[name as usize];
        if row >= self.store.shape(table).rows as usize {
            return None;
        }
        match self.store.glimpse(table, address::Row(row as u32)) {
            Ok(bytes) => Some(read(bytes)),
            Err(Access::Absent(fetch)) => {
                if !self.fetches.contains(&fetch) {
                    self.store.count_miss();
                    self.fetches.push(fetch);
                }
                None
            }
            // Told to who asks for the row.
            Err(Access::Error(_)) => None,
        }
    }

    /// Asks for all of these rows, as far as there are so many: each page is looked for once.
    pub fn want(&mut self, name: TableName, rows: Range<u32>) {
        let shape = self.store.shape(self.ids[name as usize]);
        let mut next = rows.start;
        while next < rows.end.min(shape.rows) {
            self.read(name, next as usize, |_| ());
            next = (next / shape.rows_per_page() + 1) * shape.rows_per_page();
        }
    }

    /// A row, likewise.
    pub fn row<R: Row>(&mut self, name: TableName, row: usize) -> Option<R> {
        self.read(name, row, R::decode)
    }
}

impl<N> StoredTables<N> {
    /// The pages that are missing for rows, as far as those in memory say which rows that will be.
    pub fn plan(&self, of: impl FnOnce(&mut TablePlan<'_>)) -> Vec<Fetch> {
        self.with(|store| {
            let mut plan = TablePlan {
                store,
                ids: self.ids(),
                fetches: Vec::new(),
            };
            of(&mut plan);
            plan.fetches
        })
    }

    /// The first row from one on, of so many that are looked at, whose page was ever written, as far as pages in memory say;
    /// else the one behind them.
    pub fn first_written(&self, name: TableName, from: u32, most: u32) -> u32 {
        let (table, from) = (self.ids()[name as usize], address::Row(from));
        self.with(|store| store.first_written(table, from, most)).0
    }

    /// Reads pages while others use the tables. One that cannot be had is left to who asks for its rows.
    pub fn read_pages(&self, fetches: &[Fetch]) -> impl Iterator<Item = Fetched> {
        let (medium, area, key) = self.with(|store| store.place());
        let carry_out = move |fetch: &Fetch| fetch.carry_out(&medium, &area, &key).ok();
        fetches.iter().filter_map(carry_out)
    }

    /// The same, and they stay in memory.
    pub fn fetch(&self, fetches: &[Fetch]) {
        for fetched in self.read_pages(fetches) {
            // Where there is no room it is read again once it is asked for.
            let _ = self.with(|store| store.install(&fetched));
        }
    }

    /// Does something that needs these pages once: none leaves memory for them.
    pub fn with_pages<A>(&self, pages: &[Fetched], act: impl FnOnce() -> A) -> A {
        let lent = |store: &mut Store| {
            let lent = pages.iter().filter(|page| store.lend(page));
            lent.collect::<Vec<_>>()
        };
        let lent = self.with(lent);
        let answer = act();
        self.with(|store| lent.iter().for_each(|page| store.give_back(page)));
        answer
    }
}
