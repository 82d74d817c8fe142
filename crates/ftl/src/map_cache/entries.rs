//! The map entries in RAM: a list in order of use, and which of them are newer than flash.
//!
//! Plain LRU. Links are kept for every logical page, so nothing is searched.
//!
//! Invariants: the list holds the cached entries, each once, and no more than the capacity; only a
//! cached entry is dirty.

use super::ENTRIES_PER_PAGE;

/// No entry.
const NONE: u32 = u32::MAX;

/// 64-bit words of the dirty bits of a translation page.
const WORDS_PER_PAGE: usize = ENTRIES_PER_PAGE as usize / 64;

/// What a use of an entry led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It was there.
    Hit,
    /// It is there now; this one, if the cache was full, is not any more, and whether it was dirty.
    Loaded(Option<(u32, bool)>),
}

/// The cache.
#[derive(Debug, Clone)]
pub struct Entries {
    capacity: u32,
    count: u32,
    head: u32,
    tail: u32,
    /// The entry used after and before each.
    links: Vec<[u32; 2]>,
    cached: Vec<u64>,
    dirty: Vec<u64>,
}

impl Entries {
    /// An empty cache of so many entries (at least one) of a map of so many.
    pub fn new(exported: u32, capacity: u32) -> Self {
        let pages = exported.div_ceil(ENTRIES_PER_PAGE) as usize;
        Entries {
            capacity: capacity.max(1),
            count: 0,
            head: NONE,
            tail: NONE,
            links: vec![[NONE; 2]; exported as usize],
            cached: vec![0; pages * WORDS_PER_PAGE],
            dirty: vec![0; pages * WORDS_PER_PAGE],
        }
    }

    /// Brings an entry to the head; the one at the tail makes room.
    pub fn touch(&mut self, lpn: u32) -> Use {
        if bit(&self.cached, lpn) {
            if self.head != lpn {
                self.unlink(lpn);
                self.link_first(lpn);
            }
            return Use::Hit;
        }
        let mut dropped = None;
        if self.count == self.capacity {
            let last = self.tail;
            self.unlink(last);
            self.count -= 1;
            dropped = Some((last, bit(&self.dirty, last)));
            clear(&mut self.cached, last);
            clear(&mut self.dirty, last);
        }
        self.link_first(lpn);
        self.count += 1;
        self.cached[lpn as usize / 64] |= 1 << (lpn % 64);
        Use::Loaded(dropped)
    }

    /// A cached entry is newer than flash from now on; false if it is not cached.
    pub fn mark(&mut self, lpn: u32) -> bool {
        let cached = bit(&self.cached, lpn);
        if cached {
            self.dirty[lpn as usize / 64] |= 1 << (lpn % 64);
        }
        cached
    }

    /// The entries of a translation page are as on flash.
    pub fn clean(&mut self, page: u32) {
        let first = page as usize * WORDS_PER_PAGE;
        self.dirty[first..first + WORDS_PER_PAGE].fill(0);
    }

    fn unlink(&mut self, lpn: u32) {
        let [after, before] = self.links[lpn as usize];
        match self.links.get_mut(after as usize) {
            Some(link) => link[1] = before,
            None => self.head = before,
        }
        match self.links.get_mut(before as usize) {
            Some(link) => link[0] = after,
            None => self.tail = after,
        }
    }

    fn link_first(&mut self, lpn: u32) {
        let before = std::mem::replace(&mut self.head, lpn);
        self.links[lpn as usize] = [NONE, before];
        match self.links.get_mut(before as usize) {
            Some(link) => link[0] = lpn,
            None => self.tail = lpn,
        }
    }

    /// Recounts list and bits.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let (mut at, mut after, mut listed) = (self.head, NONE, 0);
        while at != NONE {
            if self.links[at as usize][0] != after || !bit(&self.cached, at) {
                return Err(format!("the list of map entries is broken at entry {at}"));
            }
            listed += 1;
            if listed > self.count {
                return Err("the list of map entries runs in a circle".into());
            }
            (after, at) = (at, self.links[at as usize][1]);
        }
        let cached: u32 = self.cached.iter().map(|w| w.count_ones()).sum();
        if listed != self.count || cached != self.count || self.tail != after {
            return Err(format!(
                "{} map entries are counted, {listed} listed, {cached} marked",
                self.count
            ));
        }
        if self.count > self.capacity {
            return Err(format!("{listed} map entries, room for {}", self.capacity));
        }
        let mut both = self.dirty.iter().zip(&self.cached);
        match both.position(|(dirty, cached)| dirty & !cached != 0) {
            Some(word) => Err(format!(
                "an entry from {} on is dirty, not cached",
                word * 64
            )),
            None => Ok(()),
        }
    }
}

fn bit(words: &[u64], lpn: u32) -> bool {
    words[lpn as usize / 64] >> (lpn % 64) & 1 == 1
}

fn clear(words: &mut [u64], lpn: u32) {
    words[lpn as usize / 64] &= !(1 << (lpn % 64));
}
