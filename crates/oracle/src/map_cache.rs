//! A naive demand-cached map: which accesses hit, which translation pages are read and written.
//!
//! The rules: entries are kept in order of use, in two segments. A new one comes first in the probationary
//! segment; used again it comes first in the protected one, if there is room for any there, and the last of
//! that, if it has too many, first in the probationary. An entry that is used and absent is loaded: first,
//! if there is no room, the last of the probationary segment is dropped, and each of its translation pages
//! that it is newer than is written; then the pages of the new entry are read, if they were ever written.
//!
//! There are two tables. The first says where a page's value lies, or the value it is a delta from, and
//! whether there is a delta; the second says where the delta lies. A page without delta has
//! no part in the second, nor has one whose delta waits in RAM, and reads none of it. A value that waits in RAM
//! and is no delta changes nothing until it has a place.
//!
//! A translation page that is written is read before, if it was ever written, and holds everything known of
//! it: its cached entries are as on flash afterwards, and it is not stale. The page of a dropped entry is stale
//! until it is written. A moved unit makes each cached
//! entry that names it newer than flash, and the pages of the others stale.

use std::collections::{BTreeMap, BTreeSet};

/// What a logical page refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refers {
    /// The object.
    pub object: Option<u64>,
    /// What it is a delta from.
    pub base: Option<u64>,
    /// Whether it waits in RAM for a place.
    pub waits: bool,
}

impl Refers {
    fn in_first_table(self) -> (Option<u64>, bool) {
        match self.base {
            Some(base) => (Some(base), true),
            None => (self.object, false),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Cached {
    lpn: u64,
    /// Whether it is newer than its part of either table.
    newer: [bool; 2],
}

/// A journal for each table: how many records and pages there are.
#[derive(Debug, Clone, Copy, Default)]
struct Journals {
    /// Pages of a full journal.
    most: u64,
    /// Records since the last full page.
    records: [u64; 2],
    /// Full pages not written yet.
    due: [u64; 2],
    /// Pages on flash.
    pages: [u64; 2],
    /// Pages on flash of journals that are being folded.
    folding: [u64; 2],
}

/// The cache and what it has cost so far.
#[derive(Debug, Clone, Default)]
pub struct MapModel {
    capacity: usize,
    protected: usize,
    entries_per_page: u64,
    /// Pages of a table; those of the second are numbered behind those of the first.
    table_pages: u64,
    /// The probationary and the protected segment, the one used last first.
    cached: [Vec<Cached>; 2],
    stale: Vec<u64>,
    on_flash: BTreeSet<u64>,
    /// The pages whose writing an access has asked for.
    owed: Vec<u64>,
    /// What each logical page refers to, where that is not the page itself.
    refers: BTreeMap<u64, Refers>,
    shared: bool,
    journals: Option<Journals>,
    pub journal_writes: u64,
    pub folds: u64,
    /// Parts of entries that have changed: a logical page and a table. Taken by who is interested.
    pub reported: BTreeSet<(u64, usize)>,
    /// Accesses to cached entries.
    pub hits: u64,
    /// Accesses to other entries.
    pub misses: u64,
    /// Reads of translation pages.
    pub reads: u64,
    /// Writes of translation pages.
    pub writes: u64,
}

impl MapModel {
    /// An empty cache of so many entries, of them so many protected at most, of a map of so many; `shared`
    /// where units belong to objects.
    pub fn new(
        capacity: usize,
        protected: usize,
        entries_per_page: u64,
        logical_pages: u64,
        shared: bool,
    ) -> Self {
        let capacity = capacity.max(1);
        MapModel {
            capacity,
            protected: protected.min(capacity - 1),
            entries_per_page,
            table_pages: logical_pages.div_ceil(entries_per_page),
            shared,
            ..MapModel::default()
        }
    }

    /// Every change of a table's part of an entry is also a record of its journal, which is written page by
    /// page; a journal of so many pages is folded: the pages of its table are written of which cached entries
    /// are newer, and it is given up once no page is stale. The next one grows meanwhile, and waits when it is full.
    #[must_use]
    pub fn with_journals(mut self, most: u64) -> Self {
        self.journals = (most > 0).then(|| Journals {
            most,
            ..Journals::default()
        });
        self
    }

    /// Whether a journal page is to be written.
    pub fn journal_is_due(&self) -> bool {
        let waits = |j: &Journals, table: usize| j.due[table] > 0 && j.pages[table] < j.most;
        self.journals.is_some_and(|j| waits(&j, 0) || waits(&j, 1))
    }

    /// A journal page is written, of the first table that has one due.
    pub fn journalled(&mut self) {
        assert!(
            self.journal_is_due(),
            "a journal page was written for nothing"
        );
        let journals = self.journals.as_mut().unwrap();
        let first = journals.due[0] > 0 && journals.pages[0] < journals.most;
        let table = usize::from(!first);
        journals.due[table] -= 1;
        journals.pages[table] += 1;
        self.journal_writes += 1;
    }

    /// Folds a journal that is full; whether there was one.
    pub fn begin_fold(&mut self) -> bool {
        let Some(journals) = &mut self.journals else {
            return false;
        };
        for table in 0..2 {
            if journals.pages[table] == journals.most && journals.folding[table] == 0 {
                journals.folding[table] = std::mem::take(&mut journals.pages[table]);
                let newer = self.cached.iter().flatten().filter(|c| c.newer[table]);
                let pages: Vec<u64> = newer.map(|c| self.page(c.lpn, table)).collect();
                pages.into_iter().for_each(|page| self.grow_stale(page));
                self.folds += 1;
                return true;
            }
        }
        false
    }

    /// A page of a folded journal is given up, if no page is stale; whether there was one.
    pub fn take_folded(&mut self) -> bool {
        let Some(journals) = self.journals.as_mut().filter(|_| self.stale.is_empty()) else {
            return false;
        };
        let left = journals.folding.iter_mut().find(|pages| **pages > 0);
        left.map(|pages| *pages -= 1).is_some()
    }

    /// Journal pages on flash.
    pub fn journal_pages(&self) -> u64 {
        let pages = |j: &Journals| j.pages.iter().chain(&j.folding).sum();
        self.journals.as_ref().map_or(0, pages)
    }

    /// There was no room for the pages that were to be written: they stay stale.
    pub fn forgive(&mut self) {
        self.owed.clear();
    }

    fn page(&self, lpn: u64, table: usize) -> u64 {
        lpn / self.entries_per_page + table as u64 * self.table_pages
    }

    /// Whether an entry is cached.
    pub fn is_cached(&self, lpn: u64) -> bool {
        self.cached.iter().flatten().any(|c| c.lpn == lpn)
    }

    /// Uses the entry of a logical page; whether it was cached, the one that was dropped for it, and the pages
    /// to be written for that.
    ///
    /// # Panics
    /// If a page that was to be written for an access before was not.
    pub fn access(&mut self, lpn: u64) -> (bool, Option<u64>, Vec<u64>) {
        assert!(self.owed.is_empty(), "a dropped entry was not written back");
        for segment in 0..2 {
            let Some(at) = self.cached[segment].iter().position(|c| c.lpn == lpn) else {
                continue;
            };
            let entry = self.cached[segment].remove(at);
            let to = usize::from(segment == 1 || self.protected > 0);
            self.cached[to].insert(0, entry);
            if self.cached[1].len() > self.protected {
                let fallen = self.cached[1].pop().unwrap();
                self.cached[0].insert(0, fallen);
            }
            self.hits += 1;
            return (true, None, Vec::new());
        }
        self.misses += 1;
        let mut dropped = None;
        if self.cached[0].len() + self.cached[1].len() == self.capacity {
            let last = self.cached[0].pop().unwrap();
            dropped = Some(last.lpn);
            for table in 0..2 {
                let page = self.page(last.lpn, table);
                if last.newer[table] {
                    self.owed.push(page);
                    self.grow_stale(page);
                }
            }
        }
        let newer = [false; 2];
        self.cached[0].insert(0, Cached { lpn, newer });
        (false, dropped, self.owed.clone())
    }

    fn grow_stale(&mut self, page: u64) {
        if !self.stale.contains(&page) {
            self.stale.push(page);
        }
    }

    /// The pages from which the entry is read that was accessed last; those on flash are read.
    pub fn read_entry(&mut self, lpn: u64) -> Vec<u64> {
        let refers = self.refers.get(&lpn).copied().unwrap_or_default();
        let mut pages = vec![self.page(lpn, 0)];
        if refers.base.is_some() && !refers.waits {
            pages.push(self.page(lpn, 1));
        }
        let on_flash = pages.iter().filter(|page| self.on_flash.contains(page));
        self.reads += on_flash.count() as u64;
        pages
    }

    /// The entry of a logical page has a new value.
    ///
    /// # Panics
    /// If it is not cached.
    pub fn changed(&mut self, lpn: u64) {
        assert!(
            self.is_cached(lpn),
            "entry {lpn} changed and was not cached"
        );
        self.part_changed(lpn, 0);
    }

    fn mark(&mut self, lpn: u64, table: usize) -> bool {
        match self.cached.iter_mut().flatten().find(|c| c.lpn == lpn) {
            Some(cached) => {
                cached.newer[table] = true;
                true
            }
            None => false,
        }
    }

    fn part_changed(&mut self, lpn: u64, table: usize) {
        self.reported.insert((lpn, table));
        if let Some(journals) = &mut self.journals {
            journals.records[table] += 1;
            if journals.records[table] == self.entries_per_page {
                journals.records[table] = 0;
                journals.due[table] += 1;
            }
        }
        if !self.mark(lpn, table) {
            self.grow_stale(self.page(lpn, table));
        }
    }

    /// A logical page refers to something else.
    pub fn refers(&mut self, lpn: u64, to: Refers) {
        let before = self.refers.insert(lpn, to).unwrap_or_default();
        let nowhere = to.waits && to.base.is_none();
        if before.in_first_table() != to.in_first_table() && !nowhere {
            self.part_changed(lpn, 0);
        }
        if to.base.is_some() && !to.waits {
            self.part_changed(lpn, 1);
        }
    }

    /// The unit of a logical page, or of an object, has moved, or is there at last.
    pub fn moved(&mut self, owner: u64) {
        if !self.shared {
            return self.part_changed(owner, 0);
        }
        for (lpn, refers) in self.refers.clone() {
            if refers.object == Some(owner) {
                self.refers.get_mut(&lpn).unwrap().waits = false;
                self.part_changed(lpn, usize::from(refers.base.is_some()));
            } else if refers.base == Some(owner) {
                self.part_changed(lpn, 0);
            }
        }
    }

    /// An object waits in RAM.
    pub fn waits(&mut self, object: u64) {
        let all = self.refers.values_mut();
        for refers in all.filter(|r| r.object == Some(object)) {
            refers.waits = true;
        }
    }

    /// An object is no delta any more and lies elsewhere.
    pub fn materialized(&mut self, object: u64) {
        let all = self.refers.values_mut();
        for refers in all.filter(|r| r.object == Some(object)) {
            refers.base = None;
        }
        self.moved(object);
    }

    /// The stale pages, in no order.
    pub fn stale(&self) -> BTreeSet<u64> {
        self.stale.iter().copied().collect()
    }

    /// A translation page is written.
    ///
    /// # Panics
    /// If there was no reason to.
    pub fn written(&mut self, page: u64) {
        let stale = self.stale.contains(&page);
        assert!(stale, "page {page} was written for nothing");
        self.owed.retain(|&o| o != page);
        self.stale.retain(|&p| p != page);
        let table = usize::from(page >= self.table_pages);
        for cached in self.cached.iter_mut().flatten() {
            let here = cached.lpn / self.entries_per_page + table as u64 * self.table_pages;
            cached.newer[table] &= here != page;
        }
        self.reads += u64::from(!self.on_flash.insert(page));
        self.writes += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_entry_takes_all_newer_ones_of_its_page_along() {
        let mut map = MapModel::new(2, 0, 4, 12, false);
        for lpn in [0, 1] {
            assert_eq!(map.access(lpn), (false, None, vec![]));
            map.changed(lpn);
        }
        assert_eq!(map.access(5), (false, Some(0), vec![0]));
        map.written(0);
        // Entry 1 is as on flash now.
        assert_eq!(map.access(9), (false, Some(1), vec![]));
        assert_eq!(map.access(1), (false, Some(5), vec![]));
        map.read_entry(1);
        assert_eq!(map.access(9), (true, None, vec![]));
        assert_eq!((map.hits, map.misses, map.reads, map.writes), (1, 5, 1, 1));
    }

    #[test]
    fn a_moved_object_changes_the_entries_of_all_who_refer_to_it() {
        let mut map = MapModel::new(1, 0, 4, 24, true);
        map.access(2);
        for lpn in [2, 6, 7, 10] {
            map.stale.clear();
            let object = Some(3);
            map.refers(
                lpn,
                Refers {
                    object,
                    ..Refers::default()
                },
            );
        }
        map.stale.clear();
        map.moved(3);
        assert_eq!(map.stale(), BTreeSet::from([1, 2]));
        assert_eq!(map.access(20), (false, Some(2), vec![0]));
    }

    #[test]
    fn a_delta_is_in_both_tables_and_its_base_in_the_first() {
        let mut map = MapModel::new(1, 0, 4, 8, true);
        let (object, base) = (Some(5), Some(4));
        map.refers(
            6,
            Refers {
                object,
                base,
                waits: true,
            },
        );
        assert_eq!(map.stale(), BTreeSet::from([1]));
        assert_eq!(map.read_entry(6), [1]);
        map.moved(5);
        assert_eq!(map.stale(), BTreeSet::from([1, 3]));
        assert_eq!(map.read_entry(6), [1, 3]);
        map.stale.clear();
        map.moved(4);
        assert_eq!(map.stale(), BTreeSet::from([1]));
    }

    #[test]
    fn what_was_used_again_stays() {
        let mut map = MapModel::new(2, 1, 4, 8, false);
        map.access(0);
        map.access(0);
        map.access(1);
        assert_eq!(map.access(2).1, Some(1));
        assert!(map.is_cached(0));
    }
}
