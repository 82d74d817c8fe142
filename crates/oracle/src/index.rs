//! The fingerprint index of CA-SSD: HPT and iHPT in one place.
//!
//! The HPT is an LRU list of fingerprint -> unit address, ordered by the last use of a *write*;
//! the iHPT names the entry of a unit address. Invariant: both have the same entries, at most the
//! capacity.

use std::collections::BTreeMap;

/// An LRU index of fingerprints.
#[derive(Debug, Clone)]
pub struct Index {
    /// `None` is unlimited.
    capacity: Option<usize>,
    /// HPT: fingerprint -> (unit address, last use).
    entries: BTreeMap<u64, (u64, u64)>,
    /// The LRU list: last use -> fingerprint, oldest first.
    uses: BTreeMap<u64, u64>,
    /// iHPT: unit address -> fingerprint of its entry.
    by_page: BTreeMap<u64, u64>,
    clock: u64,
}

impl Index {
    /// An empty index of at most `capacity` entries; `None` is unlimited.
    pub fn new(capacity: Option<usize>) -> Index {
        Index {
            capacity,
            entries: BTreeMap::new(),
            uses: BTreeMap::new(),
            by_page: BTreeMap::new(),
            clock: 0,
        }
    }

    /// The unit address of a fingerprint. Does not touch the order.
    pub fn get(&self, fingerprint: u64) -> Option<u64> {
        self.entries.get(&fingerprint).map(|&(ppn, _)| ppn)
    }

    /// Moves a fingerprint's entry to the head.
    pub fn move_to_head(&mut self, fingerprint: u64) {
        if let Some(ppn) = self.get(fingerprint) {
            self.remove(fingerprint);
            self.put_at_head(fingerprint, ppn);
        }
    }

    /// Inserts an entry at the head and says whether another was evicted for it. If the
    /// fingerprint has an entry already, the new unit address takes it over, without eviction.
    pub fn insert(&mut self, fingerprint: u64, ppn: u64) -> bool {
        self.remove(fingerprint);
        if self.capacity == Some(0) {
            return false;
        }
        let full = self
            .capacity
            .is_some_and(|capacity| self.entries.len() >= capacity);
        if full {
            let (_, &oldest) = self
                .uses
                .first_key_value()
                .expect("a full index has entries");
            self.remove(oldest);
        }
        self.put_at_head(fingerprint, ppn);
        full
    }

    /// A unit was relocated: its entry, if it has one, follows in place.
    pub fn relocate(&mut self, from: u64, to: u64) {
        if let Some(fingerprint) = self.by_page.remove(&from) {
            self.by_page.insert(to, fingerprint);
            if let Some(entry) = self.entries.get_mut(&fingerprint) {
                entry.0 = to;
            }
        }
    }

    /// A unit died: its entry, if it still has one, goes with it.
    pub fn forget_page(&mut self, ppn: u64) {
        if let Some(&fingerprint) = self.by_page.get(&ppn) {
            self.remove(fingerprint);
        }
    }

    fn put_at_head(&mut self, fingerprint: u64, ppn: u64) {
        self.clock += 1;
        self.entries.insert(fingerprint, (ppn, self.clock));
        self.uses.insert(self.clock, fingerprint);
        self.by_page.insert(ppn, fingerprint);
    }

    fn remove(&mut self, fingerprint: u64) {
        if let Some((ppn, used)) = self.entries.remove(&fingerprint) {
            self.uses.remove(&used);
            self.by_page.remove(&ppn);
        }
    }

    /// All entries (fingerprint, unit address), most recently used first.
    pub fn head_to_tail(&self) -> Vec<(u64, u64)> {
        let newest_first = self.uses.values().rev();
        newest_first
            .map(|fingerprint| (*fingerprint, self.entries[fingerprint].0))
            .collect()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Checks that HPT, LRU list and iHPT name the same entries within the capacity.
    ///
    /// # Panics
    /// On the first contradiction.
    pub fn check(&self) {
        assert_eq!(self.entries.len(), self.uses.len(), "HPT and its LRU list");
        assert_eq!(self.entries.len(), self.by_page.len(), "|HPT| = |iHPT|");
        assert!(
            self.capacity.is_none_or(|capacity| self.len() <= capacity),
            "over capacity"
        );
        for (fingerprint, (ppn, used)) in &self.entries {
            assert_eq!(
                self.uses.get(used),
                Some(fingerprint),
                "LRU list of {fingerprint:#x}"
            );
            assert_eq!(
                self.by_page.get(ppn),
                Some(fingerprint),
                "iHPT of unit {ppn}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_written_entry_is_evicted() {
        let mut index = Index::new(Some(2));
        assert!(!index.insert(1, 10));
        assert!(!index.insert(2, 20));
        index.move_to_head(1);
        assert!(index.insert(3, 30));
        assert_eq!(index.head_to_tail(), vec![(3, 30), (1, 10)]);
        index.forget_page(20);
        assert_eq!(index.len(), 2, "unit 20 has lost its entry before");
        index.relocate(10, 11);
        index.forget_page(11);
        assert_eq!(index.head_to_tail(), vec![(3, 30)]);
        index.check();
    }

    #[test]
    fn a_newer_unit_takes_the_entry_over_and_keeps_it() {
        let mut index = Index::new(Some(1));
        index.insert(1, 10);
        assert!(!index.insert(1, 20), "no other entry was evicted");
        index.forget_page(10);
        assert_eq!(index.head_to_tail(), vec![(1, 20)]);
        index.check();
    }

    #[test]
    fn an_index_without_entries_stays_empty() {
        let mut index = Index::new(Some(0));
        assert!(!index.insert(1, 10));
        assert!(index.is_empty());
        index.check();
    }
}
