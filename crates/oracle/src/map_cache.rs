//! A naive demand-cached map: which accesses hit, which translation pages are read and written.
//!
//! The rules: entries are kept in order of use. An entry that is used and absent is loaded: first, if
//! there is no room, the least recently used one is dropped, and if that was newer than flash its
//! translation page is written; then the page of the new entry is read, if it was ever written. A
//! translation page that is written is read before, if it was ever written, and holds everything known of
//! it: its cached entries are as on flash afterwards, and it is not stale. The page of a dropped entry is stale
//! until it is written. A moved unit makes each cached
//! entry that names it newer than flash, and the pages of the others stale.

use std::collections::{BTreeMap, BTreeSet};

/// The cache and what it has cost so far.
#[derive(Debug, Clone)]
pub struct MapModel {
    capacity: usize,
    entries_per_page: u64,
    /// Cached entries and whether they are newer than flash, the one used last first.
    cached: Vec<(u64, bool)>,
    stale: Vec<u64>,
    on_flash: BTreeSet<u64>,
    /// The page whose writing an access has asked for.
    owed: Option<u64>,
    /// What each logical page refers to, where that is not the page itself.
    refers: BTreeMap<u64, u64>,
    shared: bool,
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
    /// An empty cache of so many entries; `shared` where units belong to objects.
    pub fn new(capacity: usize, entries_per_page: u64, shared: bool) -> Self {
        MapModel {
            capacity: capacity.max(1),
            entries_per_page,
            cached: Vec::new(),
            stale: Vec::new(),
            on_flash: BTreeSet::new(),
            owed: None,
            refers: BTreeMap::new(),
            shared,
            hits: 0,
            misses: 0,
            reads: 0,
            writes: 0,
        }
    }

    /// There was no room for the page that was to be written: it stays stale.
    pub fn forgive(&mut self) {
        self.owed = None;
    }

    /// Uses the entry of a logical page; whether it was cached, and the page to be written for it.
    ///
    /// # Panics
    /// If a page that was to be written for an access before was not.
    pub fn access(&mut self, lpn: u64) -> (bool, Option<u64>) {
        assert_eq!(self.owed, None, "a dropped entry was not written back");
        if let Some(at) = self.cached.iter().position(|&(l, _)| l == lpn) {
            let entry = self.cached.remove(at);
            self.cached.insert(0, entry);
            self.hits += 1;
            return (true, None);
        }
        self.misses += 1;
        if self.cached.len() == self.capacity
            && let Some((dropped, true)) = self.cached.pop()
        {
            let page = dropped / self.entries_per_page;
            self.owed = Some(page);
            if !self.stale.contains(&page) {
                self.stale.push(page);
            }
        }
        self.cached.insert(0, (lpn, false));
        // Read after the page that is owed has been written, which may be the same one.
        let page = lpn / self.entries_per_page;
        self.reads += u64::from(self.on_flash.contains(&page) || self.owed == Some(page));
        (false, self.owed)
    }

    /// The entry of a logical page has a new value.
    ///
    /// # Panics
    /// If it is not cached.
    pub fn changed(&mut self, lpn: u64) {
        assert!(self.mark(lpn), "entry {lpn} changed and was not cached");
    }

    fn mark(&mut self, lpn: u64) -> bool {
        match self.cached.iter_mut().find(|(l, _)| *l == lpn) {
            Some((_, newer)) => {
                *newer = true;
                true
            }
            None => false,
        }
    }

    /// A logical page refers to an object, or to none.
    pub fn refers(&mut self, lpn: u64, object: Option<u64>) {
        match object {
            Some(object) => self.refers.insert(lpn, object),
            None => self.refers.remove(&lpn),
        };
    }

    /// The unit of a logical page, or of an object, has moved.
    pub fn moved(&mut self, owner: u64) {
        let named: Vec<u64> = match self.shared {
            true => {
                let all = self.refers.iter().filter(|&(_, &o)| o == owner);
                all.map(|(&lpn, _)| lpn).collect()
            }
            false => vec![owner],
        };
        for lpn in named {
            let page = lpn / self.entries_per_page;
            if !self.mark(lpn) && !self.stale.contains(&page) {
                self.stale.push(page);
            }
        }
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
        self.owed = self.owed.filter(|&o| o != page);
        self.stale.retain(|&p| p != page);
        for (lpn, newer) in &mut self.cached {
            *newer &= *lpn / self.entries_per_page != page;
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
        let mut map = MapModel::new(2, 4, false);
        for lpn in [0, 1] {
            assert_eq!(map.access(lpn), (false, None));
            map.changed(lpn);
        }
        assert_eq!(map.access(5), (false, Some(0)));
        map.written(0);
        // Entry 1 is as on flash now.
        assert_eq!(map.access(9), (false, None));
        assert_eq!(map.access(1), (false, None));
        assert_eq!(map.access(9), (true, None));
        assert_eq!((map.hits, map.misses, map.reads, map.writes), (1, 5, 1, 1));
    }

    #[test]
    fn a_moved_object_changes_the_entries_of_all_who_refer_to_it() {
        let mut map = MapModel::new(1, 4, true);
        for lpn in [2, 6, 7, 10] {
            map.refers(lpn, Some(3));
        }
        map.access(2);
        map.moved(3);
        assert_eq!(map.stale(), BTreeSet::from([1, 2]));
        assert_eq!(map.access(20), (false, Some(0)));
    }
}
