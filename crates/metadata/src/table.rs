//! Tables of a store as the translation layer has them ([`Tables`]): rows by number, read and changed by value.
//!
//! Whoever plans an operation asks for the pages of its rows before ([`Store::absent`]) and reads them without the store.
//! A row whose page is not in memory all the same is fetched where it is asked for: correct and slow, and counted, so that
//! a plan that forgets rows is noticed ([`StoredTables::fetched_at_once`]).
//!
//! Invariant: once a page could not be had, [`StoredTables::error`] says why, and nothing that was done since can be
//! trusted: a row that could not be read holds what a row holds that was never written, one that could not be changed stays
//! as it was.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use flashlore_flash::{Row, Table, Tables};
use parking_lot::Mutex;

use crate::address::{self, Empty, Shape, TableId};
use crate::error::{Access, MetadataError};
use crate::store::Store;

/// Bytes of the longest row.
const MOST_ROW_BYTES: usize = 64;

/// The tables of one store.
#[derive(Clone)]
pub struct StoredTables(Arc<Mutex<Shared>>);

struct Shared {
    store: Store,
    fetched_at_once: u64,
    error: Option<MetadataError>,
}

impl StoredTables {
    /// Tables are made in this store.
    pub fn new(store: Store) -> Self {
        StoredTables(Arc::new(Mutex::new(Shared {
            store,
            fetched_at_once: 0,
            error: None,
        })))
    }

    /// Does something with the store.
    pub fn with<A>(&self, act: impl FnOnce(&mut Store) -> A) -> A {
        act(&mut self.0.lock().store)
    }

    /// Pages that were read while the store was held, since nobody had asked for them before.
    pub fn fetched_at_once(&self) -> u64 {
        self.0.lock().fetched_at_once
    }

    /// Why a page could not be had, if one could not: the first such error.
    pub fn error(&self) -> Option<String> {
        self.0.lock().error.as_ref().map(MetadataError::to_string)
    }

    fn table<R: Row>(&self, rows: usize, empty: Empty, len: usize) -> StoredTable<R> {
        assert!(R::BYTES <= MOST_ROW_BYTES, "a row has {} bytes", R::BYTES);
        let shape = Shape {
            rows: rows.try_into().expect("a table has fewer than 2^32 rows"),
            row_bytes: R::BYTES as u16,
            empty,
        };
        let table = self.with(|store| {
            let kind = store.tables() as u8;
            store.add_table(kind, shape)
        });
        StoredTable {
            tables: self.clone(),
            table,
            empty,
            rows,
            len,
            row: PhantomData,
        }
    }
}

impl Tables for StoredTables {
    type Of<R: Row> = StoredTable<R>;

    fn empty<R: Row>(&self, most: usize) -> StoredTable<R> {
        self.table(most, Empty::Zeros, 0)
    }

    fn filled<R: Row>(&self, row: R, rows: usize) -> StoredTable<R> {
        let mut bytes = [0; MOST_ROW_BYTES];
        row.encode(&mut bytes[..R::BYTES]);
        let is_all = |empty: Empty| bytes[..R::BYTES].iter().all(|&byte| byte == empty.byte());
        let empty = [Empty::Zeros, Empty::Ones].into_iter().find(|&e| is_all(e));
        let mut table = self.table(rows, empty.unwrap_or(Empty::Zeros), rows);
        if empty.is_none() {
            (0..rows).for_each(|at| table.set(at, row));
        }
        table
    }
}

impl Shared {
    /// Asks the store, and fetches what it lacks; nothing if that cannot be had.
    fn reach<A>(&mut self, mut ask: impl FnMut(&mut Store) -> Result<A, Access>) -> Option<A> {
        loop {
            let error = match ask(&mut self.store) {
                Ok(answer) => return Some(answer),
                Err(Access::Error(error)) => error,
                Err(Access::Absent(fetch)) => {
                    self.fetched_at_once += 1;
                    match self.store.fetch_at_once(&fetch) {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
            };
            self.error.get_or_insert(error);
            return None;
        }
    }
}

/// A table of a store.
pub struct StoredTable<R> {
    tables: StoredTables,
    table: TableId,
    empty: Empty,
    /// Rows that there may be, and that there are.
    rows: usize,
    len: usize,
    row: PhantomData<fn() -> R>,
}

impl<R: Row> StoredTable<R> {
    fn number(&self, at: usize) -> address::Row {
        assert!(at < self.len, "row {at} of {}", self.len);
        address::Row(at as u32)
    }

    fn never_written(&self) -> R {
        R::decode(&[self.empty.byte(); MOST_ROW_BYTES][..R::BYTES])
    }
}

impl<R: Row> Table<R> for StoredTable<R> {
    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, at: usize) -> R {
        let (table, number) = (self.table, self.number(at));
        let mut shared = self.tables.0.lock();
        let row = shared.reach(|store| store.row(table, number).map(R::decode));
        row.unwrap_or_else(|| self.never_written())
    }

    fn set(&mut self, at: usize, row: R) {
        let (table, number) = (self.table, self.number(at));
        let mut shared = self.tables.0.lock();
        shared.reach(|store| {
            row.encode(store.row_mut(table, number)?);
            Ok(())
        });
    }

    fn change<A>(&mut self, at: usize, change: impl FnOnce(&mut R) -> A) -> A {
        let mut row = self.get(at);
        let answer = change(&mut row);
        self.set(at, row);
        answer
    }

    fn push(&mut self, row: R) {
        if self.len == self.rows {
            let (table, rows) = (self.table, 2 * self.rows + 1);
            let more = rows.try_into().expect("a table has fewer than 2^32 rows");
            let mut shared = self.tables.0.lock();
            if shared.reach(|store| store.grow(table, more)).is_none() {
                return;
            }
            self.rows = rows;
        }
        self.len += 1;
        self.set(self.len - 1, row);
    }

    fn prefetch(&self, _: usize) {}

    /// Its pages are the store's.
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl<R> fmt::Debug for StoredTable<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoredTable { table, len, .. } = self;
        write!(f, "table {table} of {len} rows")
    }
}
