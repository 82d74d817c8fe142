//! The entries of the window in order of their stamps, and for each page the chain of its own.
//!
//! Entries arrive almost in order: a write queue hands them on late. Those that came after the first
//! one out of order form the *tail*, which is sorted into place when it has grown as long as the part
//! it is sorted into. So every entry costs a constant time, and what leaves is taken from the front.
//!
//! Invariants:
//! 1. All entries before the tail are in order of their stamps. Within a page all are in the order
//!    in which they were recorded, which is that of their stamps too.
//! 2. `heads[p]` is the number of the newest entry of page `p`, if it has one. `older` of an entry is
//!    the number of the one before it in its page, if there is one. **Otherwise they may be any
//!    number**: a link is one only if it names an entry of the same page, and for `older` an entry
//!    that stands before. So nothing has to be cleared when entries leave or numbers run over, and
//!    the heads start as zeros.
//! 3. An entry taken from the middle becomes a *gap*: it keeps its stamp, belongs to no page and names no
//!    object. At most half of the log is gaps, or a chunk.

use super::log::{EntryNumber, Log, VersionEntry};
use crate::history::{PURGED, names_object};
use flashlore_flash::hints::{on_large_pages, prefetch};
use std::collections::HashMap;

use flashlore_flash::{Lpn, ObjectId};

/// The tail is left alone up to this length. Short in tests, so that they sort.
const SHORT_TAIL: u32 = if cfg!(test) { 4 } else { 1024 };

/// So many gaps are left alone.
const FEW_GAPS: u32 = if cfg!(test) { 8 } else { 4096 };

/// The entries and their order.
#[derive(Debug, Clone)]
pub(super) struct Chains {
    log: Log,
    /// Plain numbers, so that memory of zeros is a table of them.
    heads: Vec<u32>,
    gaps: u32,
    /// The largest stamp ever recorded.
    newest: u64,
    /// Entries of the tail, gaps included.
    tail: u32,
    /// No stamp of the tail is smaller.
    tail_min: u64,
    /// The length at which the tail is sorted.
    patience: u32,
    /// Entries from this number on have changed since [`Chains::note_stored`].
    changed: EntryNumber,
}

impl Chains {
    /// No entry, and so many pages.
    pub fn new(pages: u32) -> Self {
        Chains {
            log: Log::default(),
            heads: on_large_pages(vec![0; pages as usize]),
            gaps: 0,
            newest: 0,
            tail: 0,
            tail_min: u64::MAX,
            patience: SHORT_TAIL,
            changed: EntryNumber::default(),
        }
    }

    /// These entries (page, object, stamp), in order of their stamps, all of them stored.
    pub fn restore(pages: u32, entries: impl Iterator<Item = (Lpn, ObjectId, u64)>) -> Self {
        let mut chains = Chains::new(pages);
        for (lpn, object, stamp) in entries {
            chains.push(lpn, object, stamp);
        }
        chains.sort();
        chains.note_stored();
        chains
    }

    /// As `new`, and the first entry has this number.
    #[cfg(test)]
    pub fn starting_at(pages: u32, number: EntryNumber) -> Self {
        Chains {
            log: Log::starting_at(number),
            changed: number,
            ..Chains::new(pages)
        }
    }

    pub fn pages(&self) -> u32 {
        self.heads.len() as u32
    }

    /// Entries held.
    pub fn len(&self) -> u32 {
        self.log.len() - self.gaps
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.log.heap_bytes() + self.heads.capacity() * size_of::<u32>()
    }

    /// Fetches what `push` needs of a page.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.heads, lpn.index());
    }

    /// The object of the entry that so many others leave before, if there is one and it names any.
    #[inline(always)]
    pub fn upcoming(&self, others: u32) -> Option<ObjectId> {
        let number = self.log.first().plus(others);
        let object = self
            .log
            .contains(number)
            .then(|| self.log.get(number).object);
        object.filter(|&object| names_object(object))
    }

    /// Appends an entry.
    #[inline(always)]
    pub fn push(&mut self, lpn: Lpn, object: ObjectId, stamp: u64) {
        debug_assert!(
            self.head(lpn)
                .is_none_or(|n| self.log.get(n).stamp <= stamp),
            "page {lpn} is superseded at {stamp}, before it was written"
        );
        self.append(lpn, object, stamp);
        if self.tail == 0 && stamp >= self.newest {
            self.newest = stamp;
        } else {
            self.lengthen_tail(stamp);
        }
    }

    #[inline(always)]
    fn append(&mut self, lpn: Lpn, object: ObjectId, stamp: u64) {
        let number = self.log.end();
        let older = std::mem::replace(&mut self.heads[lpn.index()], number.0);
        self.log.push(VersionEntry {
            stamp,
            lpn,
            object,
            older: EntryNumber(older),
        });
    }

    fn lengthen_tail(&mut self, stamp: u64) {
        self.newest = self.newest.max(stamp);
        self.tail += 1;
        self.tail_min = self.tail_min.min(stamp);
        if self.tail >= self.patience {
            self.sort();
        }
    }

    /// Sorts the tail into place.
    pub fn sort(&mut self) {
        if self.tail == 0 {
            return;
        }
        let from = self.first_sorted_after(self.tail_min);
        let moved = self.log.end().since(from);
        self.patience = (moved - self.tail).max(SHORT_TAIL);
        self.rebuild(from);
    }

    /// Sorts the tail into place, unless all of its stamps are larger than this one.
    #[inline(always)]
    pub fn sort_up_to(&mut self, stamp: u64) {
        if self.tail_min <= stamp {
            self.sort();
        }
    }

    /// Entries from this number on, which is in range or the end, have changed since they were stored.
    pub fn changed_from(&self) -> EntryNumber {
        // What is not in range has left at the front.
        match self.log.contains(self.changed) || self.changed == self.log.end() {
            true => self.changed,
            false => self.log.first(),
        }
    }

    fn note_change(&mut self, number: EntryNumber) {
        let first = self.log.first();
        if number.since(first) < self.changed_from().since(first) {
            self.changed = number;
        }
    }

    /// All entries are stored as they are now.
    pub fn note_stored(&mut self) {
        self.changed = self.log.end();
    }

    /// The numbers in use: of the oldest entry, and the one behind the newest.
    pub fn numbers(&self) -> (EntryNumber, EntryNumber) {
        (self.log.first(), self.log.end())
    }

    /// The entry of a number in use: page, object and stamp. There must be no gaps.
    pub fn entry(&self, number: EntryNumber) -> (Lpn, ObjectId, u64) {
        let entry = self.log.get(number);
        (entry.lpn, entry.object, entry.stamp)
    }

    /// Names the objects of all entries anew.
    pub fn rename(&mut self, name: impl Fn(ObjectId) -> ObjectId) {
        let (first, end) = self.numbers();
        for i in 0..end.since(first) {
            let entry = self.log.get_mut(first.plus(i));
            if entry.lpn != Lpn::NONE && names_object(entry.object) {
                entry.object = name(entry.object);
            }
        }
    }

    /// Puts everything in order and closes all gaps.
    pub fn tidy(&mut self) {
        self.sort();
        if self.gaps > 0 {
            self.rebuild(self.log.first());
        }
    }

    /// Takes the entries from this number on out of their chains and puts them back in order,
    /// without the gaps. The tail must be among them.
    fn rebuild(&mut self, from: EntryNumber) {
        self.note_change(from);
        let mut entries = Vec::new();
        let mut number = self.log.end();
        while number != from {
            number = number.before();
            let entry = *self.log.get(number);
            if entry.lpn == Lpn::NONE {
                self.gaps -= 1;
            } else {
                self.heads[entry.lpn.index()] = entry.older.0;
                entries.push(entry);
            }
        }
        self.log.truncate(from);
        entries.reverse();
        // Stable: entries of equal stamps stay in the order in which they were recorded.
        entries.sort_by_key(|entry| entry.stamp);
        for entry in entries {
            self.append(entry.lpn, entry.object, entry.stamp);
        }
        self.tail = 0;
        self.tail_min = u64::MAX;
    }

    /// The number of the first entry before the tail with a stamp above this one; else that of the
    /// first of the tail.
    fn first_sorted_after(&self, stamp: u64) -> EntryNumber {
        let (mut low, mut high) = (0, self.log.len() - self.tail);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.log.get(self.log.first().plus(middle)).stamp > stamp {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        self.log.first().plus(low)
    }

    /// Takes away the oldest entry before the tail, if its stamp is not above this one.
    #[inline(always)]
    pub fn pop_up_to(&mut self, stamp: u64) -> Option<VersionEntry> {
        while self.log.len() > self.tail {
            let entry = *self.log.get(self.log.first());
            if entry.stamp > stamp {
                return None;
            }
            self.log.pop();
            if entry.lpn != Lpn::NONE {
                return Some(entry);
            }
            self.gaps -= 1;
        }
        None
    }

    /// The newest entry of a page.
    #[inline(always)]
    fn head(&self, lpn: Lpn) -> Option<EntryNumber> {
        let number = EntryNumber(self.heads[lpn.index()]);
        (self.log.contains(number) && self.log.get(number).lpn == lpn).then_some(number)
    }

    /// The entry of the same page before this one.
    #[inline(always)]
    fn before(&self, number: EntryNumber) -> Option<EntryNumber> {
        let (entry, first) = (self.log.get(number), self.log.first());
        let stands_before = entry.older.since(first) < number.since(first);
        (stands_before && self.log.get(entry.older).lpn == entry.lpn).then_some(entry.older)
    }

    /// The stamp of the entry of the same page before this one.
    #[inline(always)]
    pub fn stamp_before(&self, number: EntryNumber) -> Option<u64> {
        self.before(number).map(|older| self.log.get(older).stamp)
    }

    /// Whether a page has entries.
    pub fn has(&self, lpn: Lpn) -> bool {
        self.head(lpn).is_some()
    }

    /// The entries of a page, newest first.
    pub fn of_page(&self, lpn: Lpn) -> impl Iterator<Item = &VersionEntry> {
        let newest = self.head(lpn);
        std::iter::successors(newest, |&number| self.before(number))
            .map(|number| self.log.get(number))
    }

    fn entries(
        &self,
        from: EntryNumber,
        end: EntryNumber,
    ) -> impl Iterator<Item = (EntryNumber, &VersionEntry)> {
        let numbers = (0..end.since(from)).map(move |i| from.plus(i));
        let entries = numbers.map(|number| (number, self.log.get(number)));
        entries.filter(|(_, entry)| entry.lpn != Lpn::NONE)
    }

    /// All entries with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (EntryNumber, &VersionEntry)> {
        self.entries(self.log.first(), self.log.end())
    }

    /// The entries with stamps above this one.
    pub fn after(&self, stamp: u64) -> impl Iterator<Item = (EntryNumber, &VersionEntry)> {
        self.entries(self.first_sorted_after(stamp), self.log.end())
            .filter(move |(_, entry)| entry.stamp > stamp)
    }

    /// Entries with stamps above this one, gaps and those out of order counted too.
    pub fn count_after(&self, stamp: u64) -> u32 {
        self.log.end().since(self.first_sorted_after(stamp))
    }

    /// The stamp of the entry so many places behind the last with a stamp up to this one, if there is one.
    pub fn stamp_after(&self, stamp: u64, places: u32) -> Option<u64> {
        let place = self.first_sorted_after(stamp).plus(places - 1);
        let found = places > 0 && self.log.contains(place);
        found.then(|| self.log.get(place).stamp)
    }

    /// The entries in order of their stamps, but for the tail, and the smallest stamp that the
    /// tail may hold.
    pub fn sorted(&self) -> (impl Iterator<Item = (EntryNumber, &VersionEntry)>, u64) {
        let end = self.log.first().plus(self.log.len() - self.tail);
        (self.entries(self.log.first(), end), self.tail_min)
    }

    /// Of the entries of a page leaves the newest, which says that they were purged. Gives the
    /// objects that were named.
    pub fn purge(&mut self, lpn: Lpn, lost: &mut impl FnMut(ObjectId)) {
        let Some(newest) = self.head(lpn) else {
            return;
        };
        let mut next = self.before(newest);
        self.note_change(newest);
        lost(std::mem::replace(
            &mut self.log.get_mut(newest).object,
            PURGED,
        ));
        while let Some(number) = next {
            next = self.before(number);
            self.note_change(number);
            let entry = self.log.get_mut(number);
            lost(entry.object);
            // No hint may follow it: the object may be another one by then, or none.
            entry.object = ObjectId::NONE;
            entry.lpn = Lpn::NONE;
            self.gaps += 1;
        }
    }

    /// Closes the gaps if there are too many.
    pub fn close_gaps(&mut self) {
        if self.gaps > FEW_GAPS && self.gaps > self.log.len() / 2 {
            self.rebuild(self.log.first());
        }
    }

    /// Recounts everything.
    pub fn check(&self) -> Result<(), String> {
        self.check_order()?;
        self.check_links()
    }

    fn check_order(&self) -> Result<(), String> {
        let slots = (0..self.log.len()).map(|i| *self.log.get(self.log.first().plus(i)));
        let gaps = slots.clone().filter(|entry| entry.lpn == Lpn::NONE).count();
        if gaps != self.gaps as usize {
            return Err(format!("{gaps} gaps, counted {}", self.gaps));
        }
        if self.gaps > FEW_GAPS && self.gaps > self.log.len() / 2 {
            return Err(format!("{gaps} of {} slots are gaps", self.log.len()));
        }
        let names_object = |entry: &VersionEntry| entry.lpn == Lpn::NONE && entry.object.is_some();
        if slots.clone().any(|entry| names_object(&entry)) {
            return Err("a gap names an object".into());
        }
        let Some(sorted) = self.log.len().checked_sub(self.tail) else {
            return Err(format!("a tail of {} in {}", self.tail, self.log.len()));
        };
        if self.tail == 0 && self.tail_min != u64::MAX {
            return Err(format!("no tail, but {} in it", self.tail_min));
        }
        let mut last = 0;
        for (i, entry) in slots.enumerate() {
            let (stamp, in_tail) = (entry.stamp, i >= sorted as usize);
            if (in_tail && stamp < self.tail_min) || (!in_tail && stamp < last) {
                return Err(format!("slot {i}: {stamp} is out of order"));
            }
            if stamp > self.newest {
                return Err(format!("slot {i}: {stamp} is above {}", self.newest));
            }
            last = stamp;
        }
        Ok(())
    }

    fn check_links(&self) -> Result<(), String> {
        let mut newest: HashMap<Lpn, EntryNumber> = HashMap::new();
        for (number, entry) in self.all() {
            let lpn = entry.lpn;
            if lpn.0 >= self.pages() {
                return Err(format!("entry {number} is of page {lpn}"));
            }
            let before = newest.insert(lpn, number);
            if self.before(number) != before {
                return Err(format!(
                    "entry {number} of page {lpn}: before it {before:?}, linked {:?}",
                    self.before(number)
                ));
            }
            if self.stamp_before(number).is_some_and(|s| s > entry.stamp) {
                return Err(format!("the stamps of page {lpn} fall"));
            }
        }
        for lpn in (0..self.pages()).map(Lpn) {
            let expected = newest.get(&lpn).copied();
            if self.head(lpn) != expected {
                let head = self.head(lpn);
                return Err(format!("page {lpn}: head {head:?}, should be {expected:?}"));
            }
        }
        Ok(())
    }
}
