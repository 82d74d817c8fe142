//! RAM that keeps pages the host has read, for later reads (matrix row 16, combination F).
//!
//! A page is kept under its address, or under its value: then equal pages take one place, and a page that
//! was never read is there if one like it was. What is written is renewed in passing, so nothing here is
//! ever out of date. A page has its place when it is asked for, and is there when it has been read; until
//! then other reads of it go to flash as well.
//!
//! Invariants: the list holds the kept pages, each once, from the one used last, and no more than there are
//! places; the table finds each.

use flashlore_content::PageTag;
use flashlore_content::list::{List, ListPlace, Node};
use flashlore_flash::Lpn;
use rustc_hash::FxHashMap;

use crate::config::CacheKey;
use crate::results::CacheTraffic;

/// Set in the key of a value, clear in that of an address.
const VALUE: u64 = 1 << 32;

/// Where a page is kept.
#[derive(Debug, Clone, Copy)]
struct CachePlace(u32);

impl ListPlace for CachePlace {
    #[inline(always)]
    fn number(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn numbered(number: u32) -> Self {
        CachePlace(number)
    }
}

#[derive(Debug, Clone, Copy)]
struct CachedUnit {
    key: u64,
    /// Whether it has been read.
    here: bool,
}

#[derive(Debug)]
pub struct ReadCache {
    key: CacheKey,
    most: usize,
    found: FxHashMap<u64, CachePlace>,
    places: Vec<Node<CachedUnit>>,
    /// From the page used last.
    order: List<CachePlace>,
    counted: CacheTraffic,
}

impl ReadCache {
    /// An empty one of so many pages (at least one).
    pub fn new(key: CacheKey, places: u32) -> Self {
        ReadCache {
            key,
            most: places.max(1) as usize,
            found: FxHashMap::default(),
            places: Vec::new(),
            order: List::default(),
            counted: CacheTraffic::default(),
        }
    }

    /// What a page is kept under: its address, or its value. A value that equals nothing is known by its
    /// address; of a page without any nothing is kept.
    pub fn key(&self, lpn: Lpn, value: impl FnOnce() -> Option<PageTag>) -> Option<u64> {
        match self.key {
            CacheKey::None => None,
            CacheKey::Lpn => Some(u64::from(lpn)),
            CacheKey::Value => value().map(|value| match value {
                PageTag::FOREIGN => u64::from(lpn),
                PageTag(value) => VALUE | u64::from(value),
            }),
        }
    }

    /// A page is read: whether it is here. If not, it has a place from now on.
    pub fn reads(&mut self, key: u64) -> bool {
        let here = match self.found.get(&key) {
            Some(&place) => {
                self.order.remove(&mut self.places, place);
                self.order.push_head(&mut self.places, place);
                self.places[place.0 as usize].item.here
            }
            None => {
                self.take_place(key);
                false
            }
        };
        match here {
            true => self.counted.hits += 1,
            false => self.counted.misses += 1,
        }
        here
    }

    /// A page has been read: it is here, unless its place has been taken.
    pub fn has_read(&mut self, key: u64) {
        if let Some(&place) = self.found.get(&key) {
            self.places[place.0 as usize].item.here = true;
        }
    }

    /// Counts from 0 again.
    pub fn restart(&mut self) {
        self.counted = CacheTraffic::default();
    }

    /// What was counted.
    pub fn traffic(&self) -> CacheTraffic {
        self.counted
    }

    /// The page used longest ago makes room if there is none.
    fn take_place(&mut self, key: u64) {
        let fresh = CachedUnit { key, here: false };
        let place = match self.order.tail() {
            Some(place) if self.places.len() == self.most => {
                self.order.remove(&mut self.places, place);
                let old = std::mem::replace(&mut self.places[place.0 as usize].item, fresh);
                self.found.remove(&old.key);
                place
            }
            _ => {
                self.places.push(Node::new(fresh));
                CachePlace((self.places.len() - 1) as u32)
            }
        };
        self.found.insert(key, place);
        self.order.push_head(&mut self.places, place);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The pages from the one used last, and whether each has been read.
    fn naive_reads(kept: &mut Vec<(u64, bool)>, key: u64, most: usize) -> bool {
        let old = kept.iter().position(|&(kept, _)| kept == key);
        let here = old.is_some_and(|i| kept.remove(i).1);
        kept.insert(0, (key, here));
        kept.truncate(most);
        here
    }

    proptest! {
        #[test]
        fn it_is_a_list_in_order_of_use(
            most in 1u32..6,
            reads in proptest::collection::vec((0u64..9, any::<bool>()), 0..200),
        ) {
            let mut cache = ReadCache::new(CacheKey::Lpn, most);
            let mut kept = Vec::new();
            let mut hits = 0;
            for &(key, done) in &reads {
                let here = naive_reads(&mut kept, key, most as usize);
                prop_assert_eq!(cache.reads(key), here);
                hits += u64::from(here);
                // Some reads are under way for long.
                if done {
                    cache.has_read(key);
                    kept[0].1 = true;
                }
                prop_assert!(cache.places.len() <= most as usize);
                prop_assert_eq!(cache.found.len(), cache.places.len());
            }
            let misses = reads.len() as u64 - hits;
            prop_assert_eq!(cache.traffic(), CacheTraffic { hits, misses });
        }
    }

    #[test]
    fn equal_values_take_one_place_and_what_equals_nothing_its_own() {
        let cache = ReadCache::new(CacheKey::Value, 4);
        let key = |lpn, value| cache.key(lpn, || value);
        assert_eq!(key(Lpn(1), Some(PageTag(7))), key(Lpn(2), Some(PageTag(7))));
        assert_ne!(key(Lpn(1), Some(PageTag(7))), key(Lpn(1), Some(PageTag(8))));
        assert_ne!(
            key(Lpn(1), Some(PageTag::FOREIGN)),
            key(Lpn(2), Some(PageTag::FOREIGN))
        );
        assert_ne!(
            key(Lpn(7), Some(PageTag::FOREIGN)),
            key(Lpn(1), Some(PageTag(7)))
        );
        assert_eq!(key(Lpn(1), None), None);
    }
}
