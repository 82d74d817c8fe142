//! How many pointers lead to each slot, and which slots may be written.
//!
//! A slot is *free* if no pointer leads to it and none of the last durable root does; *fresh* if it was taken since the
//! last commit began: then no root reaches it, and it may be written again where it is. One that was given up is held
//! back until a root without it is durable: of the commit that is under way (`leaving`), or of the next (`held`).
//!
//! Counts are stored in pages of their own, each in one of two places; a root says in which. That keeps them out of the
//! trees that they count, and opening reads 2 bytes a slot.
//!
//! | offset | bytes | field of a page of counts |
//! |---:|---:|---|
//! | 0 | 4 | `FLMC` |
//! | 4 | 4 | number of the page |
//! | 8 | 8 | the commit that it was written for |
//! | 16 | 8 | zero |
//! | 24 | 8 | checksum, position = offset on the medium, of bytes 0 to 23 and 32 to 4095 |
//! | 32 | 2 each | counts of 2032 slots |
//!
//! Slots are taken one after the other, from the first ones of the area around and around: what is written together lies
//! together as far as there is room. A sparse file then takes what the tables need and a third more, not all of the area,
//! which has room for every page twice.
//!
//! Invariants: a slot is marked as busy iff its count is above 0 or it is held back; a fresh one has a count; no slot
//! behind those that are gone around is busy.

use std::collections::BTreeSet;

use flashlore_content::VolumeKey;

use crate::address::Slot;
use crate::error::MetadataError;
use crate::page::{HEADER, PAYLOAD, put_seal, sealed};

/// Counts of a page.
pub(crate) const COUNTS_PER_PAGE: u32 = (PAYLOAD / 2) as u32;

const MAGIC: [u8; 4] = *b"FLMC";

/// Where a page of counts lies, as a root says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CountsPlace(pub u32);

impl CountsPlace {
    const COPY: u32 = 1 << 31;

    fn new(copy: u32, sum: u64) -> Self {
        let check = (sum as u32 & !CountsPlace::COPY).max(1);
        CountsPlace(check | copy << 31)
    }

    /// Which copy counts; nothing if all its counts are 0.
    pub fn copy(self) -> Option<u32> {
        (self.0 != 0).then_some(self.0 >> 31)
    }
}

/// Of the slots that are gone around one in so many is free, or there are no more.
const FREE_SHARE: u32 = 4;
/// Then one in so many are added.
const ADDED_SHARE: u32 = 16;
/// There are so many at least, or all.
const LEAST_AROUND: u32 = 1 << 8;

/// A set of slots.
#[derive(Debug, Clone)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(slots: u32) -> Self {
        Bits(vec![0; (slots as usize).div_ceil(64)])
    }

    #[inline(always)]
    fn has(&self, slot: Slot) -> bool {
        self.0[slot.index() / 64] >> (slot.0 % 64) & 1 == 1
    }

    fn set(&mut self, slot: Slot) {
        self.0[slot.index() / 64] |= 1 << (slot.0 % 64);
    }

    fn clear(&mut self, slot: Slot) {
        self.0[slot.index() / 64] &= !(1 << (slot.0 % 64));
    }
}

/// The slots of a store.
#[derive(Debug)]
pub(crate) struct Space {
    counts: Vec<u16>,
    busy: Bits,
    fresh: Vec<Slot>,
    is_fresh: Bits,
    /// Given up since the last commit began.
    held: Vec<Slot>,
    /// Given up before that, while the commit is not durable.
    leaving: Vec<Slot>,
    /// Where the search for a free slot goes on, and where it begins again.
    cursor: Slot,
    end: Slot,
    free: u32,
    /// Pages of counts that have changed.
    changed: BTreeSet<u32>,
    places: Vec<CountsPlace>,
}

impl Space {
    /// All slots are free.
    pub fn new(slots: u32) -> Self {
        Space {
            counts: vec![0; slots as usize],
            busy: Bits::new(slots),
            fresh: Vec::new(),
            is_fresh: Bits::new(slots),
            held: Vec::new(),
            leaving: Vec::new(),
            cursor: Slot(0),
            end: Slot(slots.min(LEAST_AROUND)),
            free: slots,
            changed: BTreeSet::new(),
            places: vec![CountsPlace::default(); slots.div_ceil(COUNTS_PER_PAGE) as usize],
        }
    }

    /// Slots of which none is in use or held back.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Pointers that lead to a slot.
    #[inline(always)]
    pub fn count(&self, slot: Slot) -> u16 {
        self.counts[slot.index()]
    }

    /// Whether a slot is there.
    pub fn has(&self, slot: Slot) -> bool {
        slot.index() < self.counts.len()
    }

    /// Whether a slot may be written where it is: no root reaches it, and one pointer leads to it.
    pub fn is_own(&self, slot: Slot) -> bool {
        self.is_fresh.has(slot) && self.count(slot) == 1
    }

    /// Where too few of the slots that are gone around are free, there are more from now on.
    fn widen(&mut self) {
        let slots = self.counts.len() as u32;
        let free = self.free - (slots - self.end.0);
        if free < self.end.0.div_ceil(FREE_SHARE) {
            self.end = Slot((self.end.0 + self.end.0 / ADDED_SHARE + 1).min(slots));
        }
    }

    /// A free slot, to which one pointer leads from now on.
    pub fn take(&mut self) -> Result<Slot, MetadataError> {
        if self.free == 0 {
            return Err(MetadataError::Full);
        }
        self.widen();
        let words = self.end.index().div_ceil(64);
        let mut word = self.cursor.index() / 64;
        let mut mask = u64::MAX << (self.cursor.0 % 64);
        let mut found = None;
        // Once around, and the word where it began again.
        for _ in 0..=words {
            let open = !self.busy.0[word] & mask;
            let slot = Slot(word as u32 * 64 + open.trailing_zeros());
            if open != 0 && slot < self.end {
                found = Some(slot);
                break;
            }
            word = (word + 1) % words;
            mask = u64::MAX;
        }
        let slot = found.ok_or(MetadataError::Full)?;
        self.cursor = Slot((slot.0 + 1) % self.end.0);
        self.free -= 1;
        self.busy.set(slot);
        self.is_fresh.set(slot);
        self.fresh.push(slot);
        self.set_count(slot, 1);
        Ok(slot)
    }

    fn set_count(&mut self, slot: Slot, count: u16) {
        self.counts[slot.index()] = count;
        self.changed.insert(slot.0 / COUNTS_PER_PAGE);
    }

    /// One more pointer leads to a slot. A count that has reached its end stays there, and the slot is never free again.
    pub fn share(&mut self, slot: Slot) {
        let count = self.count(slot).saturating_add(1);
        self.set_count(slot, count);
    }

    /// One pointer less leads to a slot.
    pub fn give_up(&mut self, slot: Slot) {
        let before = self.count(slot);
        if before == u16::MAX {
            return;
        }
        let count = before.saturating_sub(1);
        self.set_count(slot, count);
        if count > 0 {
            return;
        }
        if self.is_fresh.has(slot) {
            // No root ever reached it. It stays in the list of fresh ones, which the bit decides about.
            self.is_fresh.clear(slot);
            self.busy.clear(slot);
            self.free += 1;
        } else {
            self.held.push(slot);
        }
    }

    /// A commit begins: what was taken belongs to its root, what was given up leaves with it. Answers the pages of
    /// counts that have to be written: their numbers, and the copies to which.
    pub fn begin_commit(&mut self) -> Vec<(u32, u32)> {
        for slot in std::mem::take(&mut self.fresh) {
            self.is_fresh.clear(slot);
        }
        debug_assert!(self.leaving.is_empty());
        self.leaving = std::mem::take(&mut self.held);
        let copy = |page: u32| 1 - self.places[page as usize].copy().unwrap_or(1);
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|page| (page, copy(page))).collect()
    }

    /// Lays out a page of counts for a place of the medium, which the next root names.
    pub fn encode(
        &mut self,
        page: u32,
        copy: u32,
        at: u64,
        commit: u64,
        key: &VolumeKey,
        out: &mut [u8],
    ) {
        out.fill(0);
        out[4..8].copy_from_slice(&page.to_le_bytes());
        out[8..16].copy_from_slice(&commit.to_le_bytes());
        let first = (page * COUNTS_PER_PAGE) as usize;
        let last = self.counts.len().min(first + COUNTS_PER_PAGE as usize);
        for (count, out) in self.counts[first..last]
            .iter()
            .zip(out[HEADER..].as_chunks_mut().0)
        {
            *out = count.to_le_bytes();
        }
        let sum = put_seal(out, MAGIC, at, key);
        self.places[page as usize] = CountsPlace::new(copy, sum);
    }

    /// Where the pages of counts lie.
    pub fn places(&self) -> &[CountsPlace] {
        &self.places
    }

    /// Takes a page of counts over as a root names it.
    pub fn restore(
        &mut self,
        page: u32,
        place: CountsPlace,
        at: u64,
        key: &VolumeKey,
        bytes: &[u8],
    ) -> Result<(), String> {
        let copy = place.copy().unwrap_or(0);
        let found = sealed(bytes, MAGIC, at, key).map(|sum| CountsPlace::new(copy, sum));
        if found != Some(place) || bytes[4..8] != page.to_le_bytes() {
            return Err(format!(
                "page {page} of the counts of slots is not the one that the root means"
            ));
        }
        self.places[page as usize] = place;
        let first = page * COUNTS_PER_PAGE;
        for (slot, count) in (first..).map(Slot).zip(bytes[HEADER..].as_chunks().0) {
            let count = u16::from_le_bytes(*count);
            if count > 0 && self.has(slot) {
                self.counts[slot.index()] = count;
                self.busy.set(slot);
                self.free -= 1;
                self.end = self.end.max(Slot(slot.0 + 1));
            }
        }
        Ok(())
    }

    /// The commit is durable: what it gave up is free.
    pub fn end_commit(&mut self) {
        for slot in std::mem::take(&mut self.leaving) {
            self.busy.clear(slot);
            self.free += 1;
        }
    }

    /// Looks at the marks of all slots.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mut held = Bits::new(self.counts.len() as u32);
        for &slot in self.held.iter().chain(&self.leaving) {
            if held.has(slot) || self.count(slot) > 0 {
                return Err(format!(
                    "slot {slot} is held back, with {} pointers to it",
                    self.count(slot)
                ));
            }
            held.set(slot);
        }
        let mut free = 0;
        for slot in (0..self.counts.len() as u32).map(Slot) {
            let used = self.count(slot) > 0;
            if self.busy.has(slot) != (used || held.has(slot)) || self.is_fresh.has(slot) && !used {
                return Err(format!(
                    "slot {slot} has {} pointers, held back: {}, busy: {}, fresh: {}",
                    self.count(slot),
                    held.has(slot),
                    self.busy.has(slot),
                    self.is_fresh.has(slot)
                ));
            }
            if self.busy.has(slot) && slot >= self.end {
                return Err(format!("slot {slot} is busy, behind {}", self.end));
            }
            free += u32::from(!self.busy.has(slot));
        }
        match free == self.free {
            true => Ok(()),
            false => Err(format!("{free} slots are free, counted are {}", self.free)),
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        let lists = self.fresh.capacity() + self.held.capacity() + self.leaving.capacity();
        self.counts.len() * 2
            + (self.busy.0.len() + self.is_fresh.0.len()) * 8
            + lists * 4
            + self.places.len() * 4
    }
}
