//! Tables of a store as the translation layer has them ([`Tables`]): rows by number, read and changed by value.
//!
//! A row whose page is not in memory is fetched where it is asked for: correct and slow, and counted, so that a plan that
//! forgets rows is noticed ([`StoredTables::fetched_at_once`]).
//!
//! Invariant: once a page could not be had, [`StoredTables::failures`] has counted it, and nothing that was done since can
//! be trusted: a row that could not be read holds what a row holds that was never written, one that could not be changed
//! stays as it was.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashlore_flash::{MOST_ROW_BYTES, Note, QueueAt, Ring, Row, Table, TableName, Tables};
use parking_lot::Mutex;

use crate::address::{self, Empty, Node, TableId};
use crate::error::{Access, MetadataError};
use crate::free::FreeByPage;
use crate::page::PAYLOAD;
use crate::store::Store;

/// The tables of one store. `N` is what its user keeps of each object.
pub struct StoredTables<N> {
    shared: Arc<Shared>,
    /// Which of its tables is which.
    ids: [TableId; TableName::COUNT],
    note: PhantomData<fn() -> N>,
}

struct Shared {
    store: Mutex<Fetching>,
    /// Pages that could not be had.
    failures: AtomicU64,
    /// Pages that were read while the store was held.
    fetched_at_once: AtomicU64,
}

/// A store that fetches what it lacks.
struct Fetching {
    store: Store,
    error: Option<MetadataError>,
}

impl<N> Clone for StoredTables<N> {
    fn clone(&self) -> Self {
        StoredTables {
            shared: Arc::clone(&self.shared),
            ids: self.ids,
            note: PhantomData,
        }
    }
}

impl<N> StoredTables<N> {
    /// The tables of a store, `ids` in the order of [`TableName`].
    pub fn new(store: Store, ids: [TableId; TableName::COUNT]) -> Self {
        StoredTables {
            shared: Arc::new(Shared {
                store: Mutex::new(Fetching { store, error: None }),
                failures: AtomicU64::new(0),
                fetched_at_once: AtomicU64::new(0),
            }),
            ids,
            note: PhantomData,
        }
    }

    /// Does something with the store.
    pub fn with<A>(&self, act: impl FnOnce(&mut Store) -> A) -> A {
        act(&mut self.shared.store.lock().store)
    }

    /// Pages that were read while the store was held, since nobody had asked for them before.
    pub fn fetched_at_once(&self) -> u64 {
        self.shared.fetched_at_once.load(Ordering::Relaxed)
    }

    /// How many pages could not be had so far.
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    /// Why a page could not be had: the first such error since the last call.
    pub fn take_error(&self) -> Option<MetadataError> {
        self.shared.store.lock().error.take()
    }

    /// Reads a row; nothing if the table has no such row, or it cannot be read.
    pub fn read<A>(&self, name: TableName, row: usize, read: impl FnOnce(&[u8]) -> A) -> Option<A> {
        let (table, mut read) = (self.id(name), Some(read));
        let mut fetching = self.shared.store.lock();
        if row >= fetching.store.shape(table).rows as usize {
            return None;
        }
        let number = address::Row(row as u32);
        self.shared.reach(&mut fetching, |store| {
            let bytes = store.row(table, number)?;
            Ok(read.take().map(|read| read(bytes)))
        })?
    }

    /// Which of the tables of the store is which.
    pub(crate) fn ids(&self) -> &[TableId; TableName::COUNT] {
        &self.ids
    }

    fn id(&self, name: TableName) -> TableId {
        self.ids[name as usize]
    }

    /// A table of rows that hold this until they are set; the first so many of those that the store has for it, or all.
    ///
    /// # Panics
    /// If the rows of the store are others.
    fn table<R: Row>(&self, name: TableName, filler: R, rows: Option<usize>) -> StoredTable<R> {
        let table = self.id(name);
        let shape = self.with(|store| store.shape(table));
        let mut bytes = [0; MOST_ROW_BYTES];
        filler.encode(&mut bytes[..R::BYTES]);
        let is_filler = bytes[..R::BYTES]
            .iter()
            .all(|&byte| byte == shape.empty.byte());
        assert!(
            is_filler && R::BYTES == usize::from(shape.row_bytes),
            "rows of {name:?} are {shape:?}"
        );
        let rows = rows.unwrap_or(shape.rows as usize);
        assert!(rows <= shape.rows as usize, "{name:?} has {shape:?}");
        StoredTable {
            shared: Arc::clone(&self.shared),
            table,
            empty: shape.empty,
            rows,
            row: PhantomData,
        }
    }
}

impl<N: Note> Tables for StoredTables<N> {
    type Of<R: Row> = StoredTable<R>;
    type Queue<R: Row> = Ring<StoredTable<R>>;
    type Note = N;
    type Free = FreeByPage;

    fn empty<R: Row>(&self, name: TableName, _most: usize) -> StoredTable<R> {
        self.table(name, R::of_byte(0), None)
    }

    fn filled<R: Row>(&self, name: TableName, row: R, rows: usize) -> StoredTable<R> {
        self.table(name, row, Some(rows))
    }

    fn queue<R: Row>(&self, name: TableName, at: QueueAt) -> Ring<StoredTable<R>> {
        Ring::new(self.table(name, R::of_byte(0), None), at)
    }

    fn free_handles(&self, exported: u32) -> FreeByPage {
        let objects = self.with(|store| store.shape(self.id(TableName::Objects)));
        let first = self.table(TableName::FreeHandles, 0u8, None);
        FreeByPage::new(first, &objects, exported)
    }
}

impl Shared {
    /// Asks the store, and fetches what it lacks; nothing if that cannot be had.
    #[inline(always)]
    fn reach<A>(
        &self,
        fetching: &mut Fetching,
        mut ask: impl FnMut(&mut Store) -> Result<A, Access>,
    ) -> Option<A> {
        match ask(&mut fetching.store) {
            Ok(answer) => Some(answer),
            Err(lacking) => self.reach_further(fetching, lacking, &mut ask),
        }
    }

    /// Fetches what the store lacked, and asks again.
    #[cold]
    fn reach_further<A>(
        &self,
        fetching: &mut Fetching,
        mut lacking: Access,
        ask: &mut dyn FnMut(&mut Store) -> Result<A, Access>,
    ) -> Option<A> {
        let error = loop {
            match lacking {
                Access::Error(error) => break error,
                Access::Absent(fetch) => {
                    self.fetched_at_once.fetch_add(1, Ordering::Relaxed);
                    if let Err(error) = fetching.store.fetch_at_once(&fetch) {
                        break error;
                    }
                }
            }
            match ask(&mut fetching.store) {
                Ok(answer) => return Some(answer),
                Err(still) => lacking = still,
            }
        };
        self.fail(fetching, error);
        None
    }

    fn fail(&self, fetching: &mut Fetching, error: MetadataError) {
        fetching.error.get_or_insert(error);
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

/// A table of a store.
pub struct StoredTable<R> {
    shared: Arc<Shared>,
    table: TableId,
    empty: Empty,
    rows: usize,
    row: PhantomData<fn() -> R>,
}

impl<R: Row> StoredTable<R> {
    /// Rows of a leaf: known when this is compiled, unlike those of a [`Shape`](address::Shape).
    const PER_PAGE: usize = PAYLOAD / R::BYTES;

    /// The leaf of a row, and which of the rows there that is.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    fn leaf_of(&self, at: usize) -> (Node, usize) {
        assert!(at < self.rows, "row {at} of {}", self.rows);
        let leaf = Node {
            table: self.table,
            level: 0,
            index: (at / Self::PER_PAGE) as u32,
        };
        (leaf, at % Self::PER_PAGE)
    }

    #[inline(always)]
    fn place_of(&self, at: usize) -> (Node, Range<usize>) {
        let (leaf, row) = self.leaf_of(at);
        (leaf, row * R::BYTES..(row + 1) * R::BYTES)
    }

    #[inline(always)]
    fn read(&self, fetching: &mut Fetching, (leaf, within): (Node, Range<usize>)) -> R {
        let row = self.shared.reach(fetching, |store| {
            store.row_in(leaf, within.clone()).map(R::decode)
        });
        row.unwrap_or_else(|| R::of_byte(self.empty.byte()))
    }

    fn write(&self, fetching: &mut Fetching, (leaf, within): (Node, Range<usize>), row: R) {
        self.shared.reach(fetching, |store| {
            row.encode(store.row_in_mut(leaf, within.clone())?);
            Ok(())
        });
    }

    /// How many pages of the store could not be had so far.
    pub(crate) fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    /// Rows there is no room for are asked of it.
    pub(crate) fn fail(&self, error: MetadataError) {
        self.shared.fail(&mut self.shared.store.lock(), error);
    }
}

impl<R: Row> Table<R> for StoredTable<R> {
    fn len(&self) -> usize {
        self.rows
    }

    #[inline]
    fn get(&self, at: usize) -> R {
        let place = self.place_of(at);
        self.read(&mut self.shared.store.lock(), place)
    }

    fn each(&self, rows: Range<usize>, mut each: impl FnMut(usize, R)) {
        let mut fetching = self.shared.store.lock();
        let mut from = rows.start;
        while from < rows.end {
            let (leaf, first) = self.leaf_of(from);
            let count = (rows.end - from).min(Self::PER_PAGE - first);
            let within = first * R::BYTES..(first + count) * R::BYTES;
            let read = self.shared.reach(&mut fetching, |store| {
                let rows = store.row_in(leaf, within.clone())?;
                let rows = rows.chunks_exact(R::BYTES).map(R::decode);
                (from..).zip(rows).for_each(|(at, row)| each(at, row));
                Ok(())
            });
            if read.is_none() {
                let row = R::of_byte(self.empty.byte());
                (from..from + count).for_each(|at| each(at, row));
            }
            from += count;
        }
    }

    fn set(&mut self, at: usize, row: R) {
        let place = self.place_of(at);
        self.write(&mut self.shared.store.lock(), place, row);
    }

    fn set_first(&mut self, at: usize, row: R, unneeded: usize) {
        let place = self.place_of(at);
        let mut fetching = self.shared.store.lock();
        // The last page may have fewer rows.
        let is_first = at.is_multiple_of(Self::PER_PAGE);
        if !is_first || unneeded < Self::PER_PAGE.min(self.rows - at) {
            return self.write(&mut fetching, place, row);
        }
        self.shared.reach(&mut fetching, |store| {
            let rows = store.rows_to_set(self.table, address::Row(at as u32))?;
            rows.fill(self.empty.byte());
            row.encode(&mut rows[..R::BYTES]);
            Ok(())
        });
    }

    fn change<A>(&mut self, at: usize, change: impl FnOnce(&mut R) -> A) -> A {
        let place = self.place_of(at);
        let mut fetching = self.shared.store.lock();
        if let Some(bytes) = fetching.store.changed_row(place.0, place.1.clone()) {
            let mut row = R::decode(bytes);
            let answer = change(&mut row);
            row.encode(bytes);
            return answer;
        }
        let mut row = self.read(&mut fetching, place.clone());
        let (mut before, mut after) = ([0; MOST_ROW_BYTES], [0; MOST_ROW_BYTES]);
        row.encode(&mut before[..R::BYTES]);
        let answer = change(&mut row);
        row.encode(&mut after[..R::BYTES]);
        // What stays as it is need not be written.
        if before != after {
            self.write(&mut fetching, place, row);
        }
        answer
    }

    /// All rows that the store has room for are there.
    fn push(&mut self, _row: R) {
        let (table, rows) = (self.table, self.rows);
        self.fail(MetadataError::Rows { table, rows });
    }

    fn prefetch(&self, _: usize) {}

    /// Its pages are the store's.
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl<R> fmt::Debug for StoredTable<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoredTable { table, rows, .. } = self;
        write!(f, "table {table} of {rows} rows")
    }
}
