//! How often logical pages were written and read of late (DeltaFTL, EuroSys 2012, section 3.5).
//!
//! DeltaFTL counts in the cached entries of its map: a page whose entry leaves the cache is cold again,
//! and all counts begin anew with each periodic scan. A page is *hot* for writes or reads when it has
//! that many.
//!
//! Where a part of the map is in RAM, its cache decides whose counts are kept: an entry that it drops is
//! [forgotten](Heat::forget) here, and no list of its own is kept. Where all of the map is, a bounded
//! number of counted pages is a segmented LRU list here (`segmented.rs`).
//!
//! Invariant: a count stops at 15.

use flashlore_flash::Lpn;
use flashlore_flash::hints::{on_large_pages, prefetch};

use crate::policies::options::HeatOptions;
use crate::segmented::{Segments, Use};

/// The most that is counted.
const MOST: u8 = 15;

/// Counts of writes and reads by logical page.
#[derive(Debug, Clone)]
pub struct Heat {
    /// By logical page: reads in the upper four bits, writes in the lower.
    counts: Vec<u8>,
    /// Whether anything has been counted since they began.
    counted: bool,
    cached: Option<Segments>,
}

impl Heat {
    /// Nothing has been used.
    pub fn new(exported: u32, options: HeatOptions) -> Self {
        let entries = options.entries.filter(|&entries| entries < exported);
        Heat {
            counts: on_large_pages(vec![0; exported as usize]),
            counted: false,
            cached: entries.map(|entries| Segments::new(exported, entries, options.protected)),
        }
    }

    /// A page is written.
    #[inline(always)]
    pub fn write(&mut self, lpn: Lpn) {
        self.touch(lpn);
        let count = &mut self.counts[lpn.index()];
        *count += u8::from(*count & MOST < MOST);
    }

    /// A page is read.
    #[inline(always)]
    pub fn read(&mut self, lpn: Lpn) {
        self.touch(lpn);
        let count = &mut self.counts[lpn.index()];
        *count += u8::from(*count >> 4 < MOST) << 4;
    }

    #[inline(always)]
    fn touch(&mut self, lpn: Lpn) {
        self.counted = true;
        if let Some(segments) = &mut self.cached
            && let Use::Loaded(Some(cold)) = segments.touch(lpn)
        {
            self.counts[cold.index()] = 0;
        }
    }

    /// Asks for the counts of a page.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.counts, lpn.index());
    }

    /// A page is forgotten.
    pub fn forget(&mut self, lpn: Lpn) {
        self.counts[lpn.index()] = 0;
        if let Some(segments) = &mut self.cached {
            segments.remove(lpn);
        }
    }

    /// Writes counted.
    #[inline(always)]
    pub fn writes(&self, lpn: Lpn) -> u8 {
        self.counts[lpn.index()] & MOST
    }

    /// Reads counted.
    #[inline(always)]
    pub fn reads(&self, lpn: Lpn) -> u8 {
        self.counts[lpn.index()] >> 4
    }

    /// All counts begin anew; whether anything was counted since they did so before.
    pub fn restart(&mut self) -> bool {
        let counted = std::mem::take(&mut self.counted);
        if counted {
            self.counts.fill(0);
        }
        counted
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.counts.capacity() + self.cached.as_ref().map_or(0, Segments::heap_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two lists of pages, most recently used first, and their counts.
    #[derive(Default)]
    struct Naive {
        lists: [Vec<(Lpn, u8, u8)>; 2],
    }

    impl Naive {
        fn touch(&mut self, lpn: Lpn, entries: usize, protected: usize) -> &mut (Lpn, u8, u8) {
            let place = |list: &[(Lpn, u8, u8)]| list.iter().position(|e| e.0 == lpn);
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
                let entry = naive.touch(Lpn(lpn), entries as usize, share.min(entries - 1) as usize);
                if write {
                    heat.write(Lpn(lpn));
                    entry.1 = (entry.1 + 1).min(15);
                } else {
                    heat.read(Lpn(lpn));
                    entry.2 = (entry.2 + 1).min(15);
                }
                for page in 0..12 {
                    let all = naive.lists.iter().flatten();
                    let found = all.clone().find(|e| e.0 == Lpn(page)).map_or((0, 0), |e| (e.1, e.2));
                    prop_assert_eq!((heat.writes(Lpn(page)), heat.reads(Lpn(page))), found);
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
            heat.write(Lpn(1));
            heat.read(Lpn(1));
        }
        assert_eq!((heat.writes(Lpn(1)), heat.reads(Lpn(1))), (15, 15));
        assert!(heat.restart());
        assert_eq!((heat.writes(Lpn(1)), heat.reads(Lpn(0))), (0, 0));
        assert!(!heat.restart());
    }
}
