//! How often logical pages were written and read of late (DeltaFTL, EuroSys 2012, section 3.5).
//!
//! DeltaFTL counts in the cached entries of its map: a page whose entry leaves the cache is cold again,
//! and all counts begin anew with each periodic scan. A page is *hot* for writes or reads when it has
//! that many. With a bounded cache the entries form a segmented LRU list: an entry enters the
//! probationary segment, the next access moves it to the protected one, whose last falls back to the
//! head of the probationary; the entry at the tail of that leaves.
//!
//! Invariants: a count stops at 15; the protected segment is no longer than its share.

use flashlore_flash::hints::{on_large_pages, prefetch};

use crate::list::{Links, List};

/// The most that is counted.
const MOST: u8 = 15;

/// How many entries the cache has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeatOptions {
    /// Entries that are cached; `None` for one of every logical page.
    pub entries: Option<u32>,
    /// Of them, those of the protected segment.
    pub protected: u32,
}

/// Counts of writes and reads by logical page.
#[derive(Debug, Clone)]
pub struct Heat {
    /// By logical page: reads in the upper four bits, writes in the lower.
    counts: Vec<u8>,
    cached: Option<Segments>,
}

impl Heat {
    /// Nothing has been used.
    pub fn new(exported: u32, options: HeatOptions) -> Self {
        let entries = options.entries.filter(|&entries| entries < exported);
        Heat {
            counts: on_large_pages(vec![0; exported as usize]),
            cached: entries.map(|entries| Segments::new(exported, entries, options.protected)),
        }
    }

    /// A page is written.
    #[inline(always)]
    pub fn write(&mut self, lpn: u32) {
        self.touch(lpn);
        let count = &mut self.counts[lpn as usize];
        *count += u8::from(*count & MOST < MOST);
    }

    /// A page is read.
    #[inline(always)]
    pub fn read(&mut self, lpn: u32) {
        self.touch(lpn);
        let count = &mut self.counts[lpn as usize];
        *count += u8::from(*count >> 4 < MOST) << 4;
    }

    #[inline(always)]
    fn touch(&mut self, lpn: u32) {
        if let Some(segments) = &mut self.cached
            && let Some(cold) = segments.touch(lpn)
        {
            self.counts[cold as usize] = 0;
        }
    }

    /// Asks for the counts of a page.
    #[inline(always)]
    pub fn prefetch(&self, lpn: u32) {
        prefetch(&self.counts, lpn as usize);
    }

    /// A page is forgotten.
    pub fn forget(&mut self, lpn: u32) {
        self.counts[lpn as usize] = 0;
        if let Some(segments) = &mut self.cached {
            segments.remove(lpn);
        }
    }

    /// Writes counted.
    #[inline(always)]
    pub fn writes(&self, lpn: u32) -> u8 {
        self.counts[lpn as usize] & MOST
    }

    /// Reads counted.
    #[inline(always)]
    pub fn reads(&self, lpn: u32) -> u8 {
        self.counts[lpn as usize] >> 4
    }

    /// All counts begin anew.
    pub fn restart(&mut self) {
        self.counts.fill(0);
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.counts.capacity() + self.cached.as_ref().map_or(0, Segments::heap_bytes)
    }
}

/// A segmented LRU list of logical pages.
#[derive(Debug, Clone)]
struct Segments {
    links: Links,
    /// By logical page: the segment, or [`NEITHER`].
    segment: Vec<u8>,
    lists: [List; 2],
    entries: u32,
    protected: u32,
}

const PROBATION: usize = 0;
const PROTECTED: usize = 1;
const NEITHER: u8 = 2;

impl Segments {
    fn new(pages: u32, entries: u32, protected: u32) -> Self {
        Segments {
            links: Links::new(pages),
            segment: vec![NEITHER; pages as usize],
            lists: Default::default(),
            entries: entries.max(1),
            protected: protected.min(entries.saturating_sub(1)),
        }
    }

    /// An entry is used; answers the one that leaves to make room.
    fn touch(&mut self, lpn: u32) -> Option<u32> {
        match usize::from(self.segment[lpn as usize]) {
            PROBATION if self.protected > 0 => {
                self.remove(lpn);
                self.push(lpn, PROTECTED);
                if self.lists[PROTECTED].len() > self.protected {
                    self.fall_back();
                }
                None
            }
            segment @ (PROBATION | PROTECTED) => {
                self.remove(lpn);
                self.push(lpn, segment);
                None
            }
            _ => {
                let held = self.lists[PROBATION].len() + self.lists[PROTECTED].len();
                let last = self.lists[PROBATION].tail();
                let leaves = last.filter(|_| held == self.entries);
                if let Some(last) = leaves {
                    self.remove(last);
                }
                self.push(lpn, PROBATION);
                leaves
            }
        }
    }

    /// The last of the protected segment goes to the head of the probationary one.
    fn fall_back(&mut self) {
        if let Some(last) = self.lists[PROTECTED].tail() {
            self.remove(last);
            self.push(last, PROBATION);
        }
    }

    /// An entry leaves its segment, if it is in one.
    fn remove(&mut self, lpn: u32) {
        let segment = std::mem::replace(&mut self.segment[lpn as usize], NEITHER);
        if let Some(list) = self.lists.get_mut(usize::from(segment)) {
            list.remove(&mut self.links, lpn);
        }
    }

    fn push(&mut self, lpn: u32, segment: usize) {
        self.lists[segment].push_head(&mut self.links, lpn);
        self.segment[lpn as usize] = segment as u8;
    }

    fn heap_bytes(&self) -> usize {
        self.links.heap_bytes() + self.segment.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two lists of pages, most recently used first, and their counts.
    #[derive(Default)]
    struct Naive {
        lists: [Vec<(u32, u8, u8)>; 2],
    }

    impl Naive {
        fn touch(&mut self, lpn: u32, entries: usize, protected: usize) -> &mut (u32, u8, u8) {
            let place = |list: &[(u32, u8, u8)]| list.iter().position(|e| e.0 == lpn);
            let segment = if let Some(at) = place(&self.lists[0]) {
                let entry = self.lists[0].remove(at);
                let to = usize::from(protected > 0);
                self.lists[to].insert(0, entry);
                if self.lists[1].len() > protected {
                    let fallen = self.lists[1].pop().unwrap();
                    self.lists[0].insert(0, fallen);
                }
                to
            } else if let Some(at) = place(&self.lists[1]) {
                let entry = self.lists[1].remove(at);
                self.lists[1].insert(0, entry);
                1
            } else {
                if self.lists[0].len() + self.lists[1].len() == entries {
                    self.lists[0].pop();
                }
                self.lists[0].insert(0, (lpn, 0, 0));
                0
            };
            self.lists[segment].iter_mut().find(|e| e.0 == lpn).unwrap()
        }
    }

    proptest! {
        #[test]
        fn the_cache_counts_as_two_plain_lists_do(
            entries in 1u32..8,
            share in 0u32..8,
            uses in proptest::collection::vec((0u32..12, any::<bool>()), 1..300),
        ) {
            let options = HeatOptions { entries: Some(entries), protected: share };
            let mut heat = Heat::new(12, options);
            let mut naive = Naive::default();
            for (lpn, write) in uses {
                let entry = naive.touch(lpn, entries as usize, share.min(entries - 1) as usize);
                if write {
                    heat.write(lpn);
                    entry.1 = (entry.1 + 1).min(15);
                } else {
                    heat.read(lpn);
                    entry.2 = (entry.2 + 1).min(15);
                }
                for page in 0..12 {
                    let all = naive.lists.iter().flatten();
                    let found = all.clone().find(|e| e.0 == page).map_or((0, 0), |e| (e.1, e.2));
                    prop_assert_eq!((heat.writes(page), heat.reads(page)), found);
                }
            }
        }
    }

    #[test]
    fn counts_stop_at_fifteen_and_begin_anew() {
        let all = HeatOptions {
            entries: None,
            protected: 0,
        };
        let mut heat = Heat::new(2, all);
        for _ in 0..40 {
            heat.write(1);
            heat.read(1);
        }
        assert_eq!((heat.writes(1), heat.reads(1)), (15, 15));
        heat.restart();
        assert_eq!((heat.writes(1), heat.reads(0)), (0, 0));
    }
}
