//! What dedup can save, counted without any flash.
//!
//! Three counts over a sequence of page writes and trims: programs with an unlimited index; the
//! same with an LRU index of few entries; and the writes of the sequence by what became of their
//! content before. None of them knows blocks, addresses or garbage collection, which with an exact
//! fingerprint change none of these numbers.
//!
//! `V` is whatever tells contents apart: a digest, or an interned number.

use std::collections::{BTreeMap, BTreeSet};

/// One step of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiskAccess<V> {
    /// A logical page is written.
    Write {
        lpn: u64,
        /// Its new content.
        value: V,
    },
    /// A logical page is unmapped.
    Trim { lpn: u64 },
}

/// The logical pages and, for each content, how many of them hold it.
struct DiskContents<V> {
    content: BTreeMap<u64, V>,
    holders: BTreeMap<V, u64>,
}

impl<V: Copy + Ord> DiskContents<V> {
    fn new() -> DiskContents<V> {
        DiskContents {
            content: BTreeMap::new(),
            holders: BTreeMap::new(),
        }
    }

    fn apply(&mut self, access: DiskAccess<V>) {
        let old = match access {
            DiskAccess::Write { lpn, value } => {
                *self.holders.entry(value).or_insert(0) += 1;
                self.content.insert(lpn, value)
            }
            DiskAccess::Trim { lpn } => self.content.remove(&lpn),
        };
        if let Some(old) = old {
            let holders = self.holders.get_mut(&old).expect("held content is counted");
            *holders -= 1;
            if *holders == 0 {
                self.holders.remove(&old);
            }
        }
    }
}

/// Programs that dedup with an unlimited index needs: the writes whose content is, at that
/// moment, the content of no logical page.
pub fn programs_unlimited<V: Copy + Ord>(accesses: impl IntoIterator<Item = DiskAccess<V>>) -> u64 {
    let mut disk = DiskContents::new();
    let mut programs = 0;
    for access in accesses {
        if let DiskAccess::Write { value, .. } = access {
            programs += u64::from(!disk.holders.contains_key(&value));
        }
        disk.apply(access);
    }
    programs
}

/// The writes of a sequence by the history of their content, whatever device they go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteClasses {
    /// The logical page holds this content already.
    pub silent: u64,
    /// Another logical page holds it.
    pub duplicate: u64,
    /// It was written before, but no logical page holds it now.
    pub reborn: u64,
    /// It was never written before.
    pub unique: u64,
}

/// Sorts the writes of a sequence into [`WriteClasses`].
pub fn classify_writes<V: Copy + Ord>(
    accesses: impl IntoIterator<Item = DiskAccess<V>>,
) -> WriteClasses {
    let mut disk = DiskContents::new();
    let mut written = BTreeSet::new();
    let mut classes = WriteClasses::default();
    for access in accesses {
        if let DiskAccess::Write { lpn, value } = access {
            let seen = !written.insert(value);
            if disk.content.get(&lpn) == Some(&value) {
                classes.silent += 1;
            } else if disk.holders.contains_key(&value) {
                classes.duplicate += 1;
            } else if seen {
                classes.reborn += 1;
            } else {
                classes.unique += 1;
            }
        }
        disk.apply(access);
    }
    classes
}

/// What dedup with an LRU index of so many entries comes to. `programs` is the sum of unique,
/// duplicate and reborn; `hits` includes the silent ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexCounts {
    /// Writes that program.
    pub programs: u64,
    /// Writes that find their content in the index.
    pub hits: u64,
    /// Hits on the page that the logical page already refers to.
    pub silent: u64,
    /// Entries discarded to make room.
    pub evictions: u64,
    /// Programs of content never programmed before.
    pub unique: u64,
    /// Programs of content that a live page holds.
    pub duplicate: u64,
    /// Programs of content programmed before that no live page holds.
    pub reborn: u64,
}

/// A stored page: its content and the logical pages that refer to it.
struct IndexedPage<V> {
    value: V,
    references: u64,
}

/// Pages are numbered in the order of their programming and never move.
struct Store<V> {
    entries: usize,
    map: BTreeMap<u64, u64>,
    /// The live pages.
    pages: BTreeMap<u64, IndexedPage<V>>,
    live: BTreeMap<V, u64>,
    programmed: BTreeSet<V>,
    /// Content -> (page, time of last use). A content that is not here is not in the index.
    index: BTreeMap<V, (u64, u64)>,
    /// Time of last use -> content.
    by_use: BTreeMap<u64, V>,
    counts: IndexCounts,
}

/// Counts dedup with an LRU index of `entries` entries. An entry is used by a hit or an insertion,
/// is discarded when it is the oldest and another is inserted into a full index, and goes with
/// the death of its page. A full index discards before the old page of the write dies.
pub fn with_lru_index<V: Copy + Ord>(
    accesses: impl IntoIterator<Item = DiskAccess<V>>,
    entries: usize,
) -> IndexCounts {
    let mut store = Store {
        entries,
        map: BTreeMap::new(),
        pages: BTreeMap::new(),
        live: BTreeMap::new(),
        programmed: BTreeSet::new(),
        index: BTreeMap::new(),
        by_use: BTreeMap::new(),
        counts: IndexCounts::default(),
    };
    for (now, access) in (1..).zip(accesses) {
        match access {
            DiskAccess::Write { lpn, value } => store.write(now, lpn, value),
            DiskAccess::Trim { lpn } => {
                if let Some(page) = store.map.remove(&lpn) {
                    store.dereference(page);
                }
            }
        }
    }
    store.counts
}

impl<V: Copy + Ord> Store<V> {
    fn write(&mut self, now: u64, lpn: u64, value: V) {
        let page = match self.index.get(&value).copied() {
            Some((page, _)) => {
                self.counts.hits += 1;
                self.unindex(value);
                self.index(now, value, page);
                page
            }
            None => self.program(now, value),
        };
        if self.map.get(&lpn) == Some(&page) {
            self.counts.silent += 1;
            return;
        }
        self.pages
            .get_mut(&page)
            .expect("indexed pages are live")
            .references += 1;
        if let Some(old) = self.map.insert(lpn, page) {
            self.dereference(old);
        }
    }

    fn program(&mut self, now: u64, value: V) -> u64 {
        self.counts.programs += 1;
        if self.programmed.insert(value) {
            self.counts.unique += 1;
        } else if self.live.contains_key(&value) {
            self.counts.duplicate += 1;
        } else {
            self.counts.reborn += 1;
        }
        let page = self.counts.programs;
        self.pages.insert(
            page,
            IndexedPage {
                value,
                references: 0,
            },
        );
        *self.live.entry(value).or_insert(0) += 1;
        if self.entries > 0 {
            if self.index.len() == self.entries {
                let oldest = *self.by_use.first_key_value().expect("the index is full").1;
                self.unindex(oldest);
                self.counts.evictions += 1;
            }
            self.index(now, value, page);
        }
        page
    }

    fn index(&mut self, now: u64, value: V, page: u64) {
        self.index.insert(value, (page, now));
        self.by_use.insert(now, value);
    }

    fn unindex(&mut self, value: V) {
        if let Some((_, used)) = self.index.remove(&value) {
            self.by_use.remove(&used);
        }
    }

    fn dereference(&mut self, page: u64) {
        let stored = self.pages.get_mut(&page).expect("mapped pages are live");
        stored.references -= 1;
        if stored.references > 0 {
            return;
        }
        let value = stored.value;
        self.pages.remove(&page);
        let live = self.live.get_mut(&value).expect("live content is counted");
        *live -= 1;
        if *live == 0 {
            self.live.remove(&value);
        }
        // The entry may be gone, or belong to a newer page of the same content.
        if self
            .index
            .get(&value)
            .is_some_and(|&(entry, _)| entry == page)
        {
            self.unindex(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn write(lpn: u64, value: char) -> DiskAccess<char> {
        DiskAccess::Write { lpn, value }
    }

    #[test]
    fn figure_5b_needs_one_program() {
        let start = [write(1, 'a'), write(2, 'b')];
        let all = start.iter().copied().chain([write(3, 'c'), write(2, 'a')]);
        assert_eq!(
            programs_unlimited(all.clone()) - programs_unlimited(start),
            1
        );
        let counts = with_lru_index(all, 3);
        assert_eq!((counts.programs, counts.hits, counts.evictions), (3, 1, 0));
    }

    #[test]
    fn each_class_of_write_occurs_once() {
        let sequence = [
            write(1, 'a'),                // unique
            write(1, 'a'),                // silent
            write(2, 'a'),                // duplicate
            DiskAccess::Trim { lpn: 1 },  // 'a' is still at 2
            DiskAccess::Trim { lpn: 2 },  // 'a' is dead
            DiskAccess::Trim { lpn: 99 }, // nothing there
            write(3, 'a'),                // reborn
        ];
        let expected = WriteClasses {
            silent: 1,
            duplicate: 1,
            reborn: 1,
            unique: 1,
        };
        assert_eq!(classify_writes(sequence), expected);
        assert_eq!(programs_unlimited(sequence), 2);
    }

    #[test]
    fn a_small_index_forgets_by_use_and_by_death() {
        let sequence = [
            write(1, 'a'),
            write(2, 'b'),
            write(3, 'a'), // hit: 'b' is now the oldest
            write(4, 'c'), // evicts 'b'
            write(5, 'b'), // duplicate of the page at 2; evicts 'a'
            write(2, 'c'), // hit; the older page of 'b' dies, the newer keeps its entry
            write(6, 'b'), // hit
            write(5, 'd'), // evicts 'c'; 'b' is still at 6
            write(6, 'd'), // hit; 'b' dies with its entry
            write(7, 'b'), // reborn into the free entry: no eviction
            write(7, 'b'), // silent
        ];
        let expected = IndexCounts {
            programs: 6,
            hits: 5,
            silent: 1,
            evictions: 3,
            unique: 4,
            duplicate: 1,
            reborn: 1,
        };
        assert_eq!(with_lru_index(sequence, 2), expected);
    }

    #[test]
    fn the_counts_agree_with_each_other_on_random_sequences() {
        let mut random = Random(7);
        for _ in 0..200 {
            let sequence: Vec<DiskAccess<u64>> = (0..300)
                .map(|_| match random.below(10) {
                    0 => DiskAccess::Trim {
                        lpn: random.below(20),
                    },
                    _ => DiskAccess::Write {
                        lpn: random.below(20),
                        value: random.below(30),
                    },
                })
                .collect();
            let it = || sequence.iter().copied();
            let classes = classify_writes(it());
            let unlimited = with_lru_index(it(), usize::MAX);
            assert_eq!(programs_unlimited(it()), classes.unique + classes.reborn);
            assert_eq!(unlimited.programs, programs_unlimited(it()));
            assert_eq!((unlimited.duplicate, unlimited.evictions), (0, 0));
            assert_eq!(
                (unlimited.silent, unlimited.hits),
                (classes.silent, classes.silent + classes.duplicate)
            );
            assert_eq!(
                (unlimited.unique, unlimited.reborn),
                (classes.unique, classes.reborn)
            );
            let none = with_lru_index(it(), 0);
            assert_eq!((none.hits, none.unique), (0, classes.unique));
            assert_eq!(
                (none.duplicate, none.reborn),
                (classes.silent + classes.duplicate, classes.reborn)
            );
        }
    }
}
