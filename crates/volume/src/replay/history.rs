//! The history while events are replayed: tables that read what the checkpoint has, and keep what differs apart.
//!
//! Invariant: a row that was never set is that of the checkpoint; nothing is written to it.

use std::fmt;

use flashlore_content::history::{History, HistoryTables, VersionEntry};
use flashlore_flash::tables::LastFirst;
use flashlore_flash::{
    EntryNumber, InMemory, ObjectId, Queue, QueueAt, Row, Table, TableName, Tables,
};
use flashlore_metadata::StoredTables;
use rustc_hash::FxHashMap;

use super::overlay::RowOverlay;
use crate::error::VolumeError;
use crate::format::{self, Identity, ObjectNote};
use crate::policies::history_options;

/// The history after some events.
pub(crate) type ReplayedHistory = History<ReplayTables>;

/// Tables over those of a checkpoint, or over none.
#[derive(Clone)]
pub(crate) struct ReplayTables {
    below: Option<StoredTables<ObjectNote>>,
    /// Rows that a queue has there.
    ring: u32,
}

impl ReplayTables {
    /// Tables in which nothing stands.
    pub fn empty() -> Self {
        ReplayTables {
            below: None,
            ring: u32::MAX,
        }
    }

    /// Those of a checkpoint.
    pub fn over(stored: StoredTables<ObjectNote>, id: &Identity) -> Self {
        ReplayTables {
            below: Some(stored),
            ring: format::Table::Versions.rows(id),
        }
    }
}

impl Tables for ReplayTables {
    type Of<R: Row> = RowOverlay<'static, R>;
    type Queue<R: Row> = QueueOverlay<R>;
    type Note = ();
    type Free = LastFirst;

    fn empty<R: Row>(&self, name: TableName, most: usize) -> RowOverlay<'static, R> {
        self.filled(name, R::of_byte(0), most)
    }

    fn filled<R: Row>(&self, name: TableName, row: R, rows: usize) -> RowOverlay<'static, R> {
        let below = self.below.clone();
        RowOverlay::new(rows, move |at| {
            let stored = below.as_ref();
            let known = stored.and_then(|below| below.read(name, at, R::decode));
            Some(known.unwrap_or(row))
        })
    }

    fn queue<R: Row>(&self, name: TableName, at: QueueAt) -> QueueOverlay<R> {
        QueueOverlay {
            below: self.below.clone().map(|stored| (stored, name)),
            ring: self.ring,
            before: at,
            at,
            changed: FxHashMap::default(),
        }
    }

    fn free_handles(&self, exported: u32) -> LastFirst {
        InMemory.free_handles(exported)
    }
}

/// A queue of a checkpoint, and what has become of it. It may have more rows than its table has room for, until what has
/// left the window goes.
pub(crate) struct QueueOverlay<R> {
    below: Option<(StoredTables<ObjectNote>, TableName)>,
    ring: u32,
    /// Where the queue of the checkpoint stands.
    before: QueueAt,
    at: QueueAt,
    changed: FxHashMap<EntryNumber, R>,
}

impl<R> fmt::Debug for QueueOverlay<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueueOverlay { changed, at, .. } = self;
        write!(f, "{at:?}, {} rows changed", changed.len())
    }
}

impl<R: Row> Queue<R> for QueueOverlay<R> {
    fn at(&self) -> QueueAt {
        self.at
    }

    fn get(&self, number: EntryNumber) -> R {
        let changed = self.changed.get(&number).copied();
        let stored = || {
            let (below, name) = self.below.as_ref()?;
            let row = self.before.row_of(number, self.ring);
            below.read(*name, row as usize, R::decode)
        };
        changed.or_else(stored).unwrap_or(R::of_byte(0))
    }

    fn set(&mut self, number: EntryNumber, row: R) {
        self.changed.insert(number, row);
    }

    fn push(&mut self, row: R) {
        let number = self.end();
        self.changed.insert(number, row);
        self.at.len += 1;
    }

    fn pop(&mut self) {
        self.changed.remove(&self.at.first);
        self.at.pop(self.ring);
    }

    fn truncate(&mut self, end: EntryNumber) {
        let len = end.since(self.at.first);
        for taken in len..self.at.len {
            self.changed.remove(&self.at.first.plus(taken));
        }
        self.at.len = len;
    }

    fn glance(&self, _: EntryNumber) -> Option<R> {
        None
    }

    fn heap_bytes(&self) -> usize {
        self.changed.capacity() * size_of::<(EntryNumber, R)>()
    }
}

impl QueueOverlay<VersionEntry> {
    /// Names the objects of the entries that were recorded since the checkpoint anew.
    fn rename(&mut self, name: &impl Fn(ObjectId) -> ObjectId) {
        for entry in self.changed.values_mut() {
            entry.object = name(entry.object);
        }
    }

    /// Brings what differs into the tables of the checkpoint.
    fn bring_into(&self, stored: &StoredTables<ObjectNote>, name: TableName) {
        let known = self.before.end().since(self.at.first);
        // All that the checkpoint had may have left.
        let known = if known > self.before.len { 0 } else { known };
        let at = QueueAt {
            len: known.min(self.at.len),
            ..self.at
        };
        let mut queue = stored.queue::<VersionEntry>(name, at);
        for (&number, &entry) in self.changed.iter() {
            if queue.contains(number) {
                queue.set(number, entry);
            }
        }
        // What follows goes where nothing lies that is needed.
        let new = (at.len..self.at.len).map(|i| self.changed.get(&self.at.first.plus(i)));
        new.flatten().for_each(|&entry| queue.push(entry));
    }
}

impl<R: Row> Table<R> for RowOverlay<'static, R> {
    fn len(&self) -> usize {
        RowOverlay::len(self)
    }

    fn get(&self, at: usize) -> R {
        RowOverlay::get(self, at).unwrap_or(R::of_byte(0))
    }

    fn set(&mut self, at: usize, row: R) {
        RowOverlay::set(self, at, row);
    }

    fn change<A>(&mut self, at: usize, change: impl FnOnce(&mut R) -> A) -> A {
        let mut row = Table::get(self, at);
        let answer = change(&mut row);
        RowOverlay::set(self, at, row);
        answer
    }

    fn push(&mut self, row: R) {
        let rows = RowOverlay::len(self);
        self.extend_to(rows + 1, row);
    }

    fn prefetch(&self, _: usize) {}

    fn heap_bytes(&self) -> usize {
        0
    }
}

/// Names the objects of what was recorded since the checkpoint anew.
pub(super) fn renamed(
    history: ReplayedHistory,
    id: &Identity,
    tables: &ReplayTables,
    name: impl Fn(ObjectId) -> ObjectId,
) -> ReplayedHistory {
    let (at, mut of) = history.into_tables();
    of.versions.rename(&name);
    if let Some((kept, _)) = &mut of.kept {
        kept.rename(&name);
    }
    let options = history_options(id).unwrap_or_default();
    History::of_tables(tables, options, &at, of)
}

/// The history in the tables of the checkpoint, into which what differs is brought.
///
/// # Errors
/// They have no room for it.
pub(crate) fn brought_into(
    stored: &StoredTables<ObjectNote>,
    id: &Identity,
    history: ReplayedHistory,
) -> Result<History<StoredTables<ObjectNote>>, VolumeError> {
    let (at, of) = history.into_tables();
    let HistoryTables {
        versions,
        heads,
        kept,
    } = of;
    let places = at.window.queue.len.max(at.kept.queue.len);
    let room = format::Table::Versions.rows(id);
    if places > room {
        return Err(VolumeError::Damaged(format!(
            "the history takes {places} rows of its table, there are {room}"
        )));
    }
    let bring = |queue: QueueOverlay<VersionEntry>, heads: RowOverlay<'static, u32>, names| {
        let (entries_name, heads_name) = names;
        queue.bring_into(stored, entries_name);
        let mut newest = stored.filled(heads_name, 0u32, id.exported as usize);
        for (lpn, number) in heads.into_changes().rows() {
            newest.set(lpn, number);
        }
    };
    bring(versions, heads, (TableName::Versions, TableName::Heads));
    if let Some((kept, heads)) = kept {
        bring(kept, heads, (TableName::Kept, TableName::KeptHeads));
    }
    let options = history_options(id).unwrap_or_default();
    Ok(History::stored(stored, id.exported, options, &at))
}

/// The history in other tables, in which nothing stands yet.
pub(crate) fn copied_into(
    stored: &StoredTables<ObjectNote>,
    id: &Identity,
    history: &ReplayedHistory,
) -> History<StoredTables<ObjectNote>> {
    let at = history.at_rest();
    let options = history_options(id).unwrap_or_default();
    let (window, kept) = (history.window(), history.kept_entries());
    History::restore(
        stored,
        id.exported,
        options,
        (at.oldest, &at.pins),
        window,
        kept,
    )
}
