//! The map entries in RAM: a segmented LRU list, and which parts of them are newer than flash.
//!
//! Invariant: only a cached entry is dirty.

use std::ops::Range;

use super::{ENTRIES_PER_PAGE, MapTable};
use crate::segmented::{Segments, Use};
use flashlore_flash::Lpn;

/// 64-bit words of the dirty bits of a translation page.
const WORDS_PER_PAGE: usize = ENTRIES_PER_PAGE as usize / 64;

/// What a use of an entry led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// It was there.
    Hit,
    /// It is there now; this one, if the cache was full, is not any more.
    Loaded(Option<Dropped>),
}

/// An entry that made room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Its logical page.
    pub lpn: Lpn,
    /// Whether it was newer than flash, by table.
    pub dirty: [bool; MapTable::COUNT],
}

/// The cache.
#[derive(Debug, Clone)]
pub struct Entries {
    cached: Segments,
    /// Dirty bits, by table; none for a table that there is not.
    dirty: [Vec<u64>; MapTable::COUNT],
}

impl Entries {
    /// An empty cache of so many entries (at least one), and so many of them at most in the protected
    /// segment, of a map of so many; `tables` tables are behind it.
    pub fn new(exported: u32, entries: u32, protected: u32, tables: usize) -> Self {
        let words = exported.div_ceil(ENTRIES_PER_PAGE) as usize * WORDS_PER_PAGE;
        Entries {
            cached: Segments::new(exported, entries, protected),
            dirty: std::array::from_fn(|table| vec![0; if table < tables { words } else { 0 }]),
        }
    }

    /// Uses an entry; the one at the tail makes room.
    pub fn touch(&mut self, lpn: Lpn) -> Touched {
        let Use::Loaded(dropped) = self.cached.touch(lpn) else {
            return Touched::Hit;
        };
        Touched::Loaded(dropped.map(|lpn| Dropped {
            lpn,
            dirty: std::array::from_fn(|table| clear(&mut self.dirty[table], lpn)),
        }))
    }

    /// Whether an entry is cached.
    pub fn holds(&self, lpn: Lpn) -> bool {
        self.cached.holds(lpn)
    }

    /// What a table says of a cached entry is older than the entry from now on; false if it is not cached.
    pub fn mark(&mut self, lpn: Lpn, table: MapTable) -> bool {
        let cached = self.cached.holds(lpn);
        if cached {
            self.dirty[table as usize][lpn.index() / 64] |= 1 << (lpn.0 % 64);
        }
        cached
    }

    /// The entries of a page of a table, of which one is named, are as on flash.
    pub fn clean(&mut self, table: MapTable, lpn: Lpn) {
        self.dirty[table as usize][words_beside(lpn)].fill(0);
    }

    /// Whether any entry of a page of a table, of which one is named, is newer than flash.
    pub fn is_dirty(&self, table: MapTable, lpn: Lpn) -> bool {
        self.dirty[table as usize][words_beside(lpn)]
            .iter()
            .any(|&word| word != 0)
    }

    /// Recounts list and bits.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        self.cached.check()?;
        for words in &self.dirty {
            let bits = (0..words.len() as u32 * 64)
                .map(Lpn)
                .filter(|lpn| words[lpn.index() / 64] >> (lpn.0 % 64) & 1 == 1);
            if let Some(lpn) = bits.into_iter().find(|&lpn| !self.cached.holds(lpn)) {
                return Err(format!("map entry {lpn} is dirty, not cached"));
            }
        }
        Ok(())
    }
}

/// Where the dirty bits of the entries lie that share a page of a table with this one.
fn words_beside(lpn: Lpn) -> Range<usize> {
    let first = (lpn.0 / ENTRIES_PER_PAGE) as usize * WORDS_PER_PAGE;
    first..first + WORDS_PER_PAGE
}

/// Clears a bit; whether it was set.
fn clear(words: &mut [u64], lpn: Lpn) -> bool {
    let Some(word) = words.get_mut(lpn.index() / 64) else {
        return false;
    };
    let was = *word >> (lpn.0 % 64) & 1 == 1;
    *word &= !(1 << (lpn.0 % 64));
    was
}
