//! Entries in order of their stamps, and for each page the chain of its own: those of the window, and those that pinned
//! instants keep behind it.
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
//!    object. At most an eighth of the places are gaps, or a few, and the first is none ([`most_places`]).

use std::ops::Range;

use flashlore_flash::{EntryNumber, Lpn, ObjectId, Queue, QueueAt, Table, TableName, Tables};
use rustc_hash::FxHashMap;

use super::entry::{ChainsAt, VersionEntry};
use crate::history::{PURGED, names_object};

/// The tail is left alone up to this length. Short in tests, so that they sort.
const SHORT_TAIL: u32 = if cfg!(test) { 4 } else { 1024 };

/// So many gaps are left alone.
const FEW_GAPS: u32 = if cfg!(test) { 8 } else { 64 };

/// One place in so many may be a gap, where there are more.
const PLACES_A_GAP: u32 = 8;

/// Places that so many entries take at most, gaps included.
pub fn most_places(entries: u32) -> u32 {
    let gaps = (entries / (PLACES_A_GAP - 1)).max(FEW_GAPS);
    entries.saturating_add(gaps + 1)
}

/// Whether these are more gaps than so many places may have.
pub(super) fn are_too_many_gaps(gaps: u32, places: u32) -> bool {
    gaps > FEW_GAPS && gaps > places / PLACES_A_GAP
}

/// The tables of chains: the entries, and by page the number of its newest one.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainNames {
    pub entries: TableName,
    pub heads: TableName,
}

/// The entries and their order.
#[derive(Debug)]
pub(super) struct Chains<S: Tables> {
    log: S::Queue<VersionEntry>,
    /// Plain numbers, so that memory of zeros is a table of them.
    heads: S::Of<u32>,
    gaps: u32,
    /// The largest stamp ever recorded, of those that are in the tables.
    newest: u64,
    /// Entries of the tail, gaps included.
    tail: u32,
    /// No stamp of the tail is smaller.
    tail_min: u64,
    /// The length at which the tail is sorted.
    patience: u32,
}

impl<S: Tables> Chains<S> {
    /// What stands so in these tables, of so many pages. Where tables do not outlive a run it has no entry.
    pub fn new(tables: &S, names: ChainNames, pages: u32, at: &ChainsAt) -> Self {
        let log = tables.queue(names.entries, at.queue);
        Chains::of(log, tables.filled(names.heads, 0, pages as usize), at.gaps)
    }

    /// These entries, all of them in order of their stamps, with the heads of their chains and so many gaps.
    pub fn of(log: S::Queue<VersionEntry>, heads: S::Of<u32>, gaps: u32) -> Self {
        let newest = match log.is_empty() {
            true => 0,
            false => log.get(log.end().before()).stamp,
        };
        Chains {
            log,
            heads,
            gaps,
            newest,
            tail: 0,
            tail_min: u64::MAX,
            patience: SHORT_TAIL,
        }
    }

    /// Its tables, after the tail is sorted into place, and how it stands in them.
    pub fn into_tables(mut self) -> (ChainsAt, S::Queue<VersionEntry>, S::Of<u32>) {
        self.sort();
        (self.at(), self.log, self.heads)
    }

    /// How it stands in its tables; there must be no tail.
    pub fn at(&self) -> ChainsAt {
        debug_assert_eq!(self.tail, 0);
        ChainsAt {
            queue: self.log.at(),
            gaps: self.gaps,
        }
    }

    /// Where the entries stand in their table.
    pub fn queue_at(&self) -> QueueAt {
        self.log.at()
    }

    pub fn pages(&self) -> u32 {
        self.heads.len() as u32
    }

    /// Entries held.
    pub fn len(&self) -> u32 {
        self.log.len().saturating_sub(self.gaps)
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.log.heap_bytes() + self.heads.heap_bytes()
    }

    /// Fetches what `push` needs of a page.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        self.heads.prefetch(lpn.index());
    }

    /// The object of the entry that so many others leave before, if there is one and it names any.
    #[inline(always)]
    pub fn upcoming(&self, others: u32) -> Option<ObjectId> {
        let number = self.log.first().plus(others);
        let object = self.log.glance(number)?.object;
        names_object(object).then_some(object)
    }

    /// Appends an entry.
    #[inline(always)]
    pub fn push(&mut self, lpn: Lpn, object: ObjectId, stamp: u64) {
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
        let heads = &mut self.heads;
        let older = heads.change(lpn.index(), |head| std::mem::replace(head, number.0));
        self.log.push(VersionEntry {
            stamp,
            lpn,
            object,
            older: EntryNumber(older),
        });
    }

    fn lengthen_tail(&mut self, stamp: u64) {
        self.newest = self.newest.max(stamp);
        // Where there was no room for it, it is not in the log.
        self.tail = (self.tail + 1).min(self.log.len());
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
        self.sort_from(from);
    }

    /// Sorts the tail into place, unless all of its stamps are larger than this one.
    #[inline(always)]
    pub fn sort_up_to(&mut self, stamp: u64) {
        if self.tail_min <= stamp {
            self.sort();
        }
    }

    /// Takes the entries from this number on out of their chains.
    fn unlink(&mut self, from: EntryNumber) {
        let mut number = self.log.end();
        while number != from {
            number = number.before();
            let entry = self.log.get(number);
            if !entry.is_gap() {
                self.heads.set(entry.lpn.index(), entry.older.0);
            }
        }
    }

    /// Puts the entries from this number on in order, without the gaps. The tail must be among them.
    fn sort_from(&mut self, from: EntryNumber) {
        self.unlink(from);
        let numbers = (0..self.log.end().since(from)).map(|i| from.plus(i));
        let mut entries: Vec<VersionEntry> = numbers.map(|number| self.log.get(number)).collect();
        let places = entries.len();
        entries.retain(|entry| !entry.is_gap());
        self.gaps = self.gaps.saturating_sub((places - entries.len()) as u32);
        self.log.truncate(from);
        // Stable: entries of equal stamps stay in the order in which they were recorded.
        entries.sort_by_key(|entry| entry.stamp);
        for entry in entries {
            self.append(entry.lpn, entry.object, entry.stamp);
        }
        self.tail = 0;
        self.tail_min = u64::MAX;
    }

    /// Takes gaps away at the front, and all of them if there are too many.
    pub fn close_gaps(&mut self) {
        while self.gaps > 0 && self.log.len() > self.tail && self.log.get(self.log.first()).is_gap()
        {
            self.log.pop();
            self.gaps -= 1;
        }
        if are_too_many_gaps(self.gaps, self.log.len()) {
            self.sort();
            self.move_together();
        }
    }

    /// Moves all entries up to the front, over the gaps; there must be no tail.
    fn move_together(&mut self) {
        let (mut from, end) = (self.log.first(), self.log.end());
        self.unlink(from);
        let mut to = from;
        while from != end {
            let mut entry = self.log.get(from);
            from = from.plus(1);
            if entry.is_gap() {
                continue;
            }
            let (heads, number) = (&mut self.heads, to.0);
            let older = heads.change(entry.lpn.index(), |head| std::mem::replace(head, number));
            entry.older = EntryNumber(older);
            self.log.set(to, entry);
            to = to.plus(1);
        }
        self.log.truncate(to);
        self.gaps = 0;
    }

    /// The number of the first entry before the tail with a stamp above this one; else that of the
    /// first of the tail.
    fn first_sorted_after(&self, stamp: u64) -> EntryNumber {
        self.first_sorted_from(self.log.first(), stamp)
    }

    /// The same from an entry on.
    fn first_sorted_from(&self, from: EntryNumber, stamp: u64) -> EntryNumber {
        let mut low = from.since(self.log.first());
        let mut high = self.log.len() - self.tail;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.log.get(self.log.first().plus(middle)).stamp > stamp {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        self.log.first().plus(low)
    }

    /// The first place with a stamp above one, and how many there are from it on with stamps up to another, gaps too; there
    /// must be no tail.
    pub fn between(&self, after: u64, up_to: u64) -> (EntryNumber, u32) {
        let first = self.first_sorted_after(after);
        // What was read for that may read otherwise now, if a page of the tables could not be read.
        (first, self.first_sorted_from(first, up_to).since(first))
    }

    /// Takes away the oldest entry before the tail, if its stamp is not above this one.
    #[inline(always)]
    pub fn pop_up_to(&mut self, stamp: u64) -> Option<VersionEntry> {
        while self.log.len() > self.tail {
            let entry = self.log.get(self.log.first());
            if entry.stamp > stamp {
                return None;
            }
            self.log.pop();
            if !entry.is_gap() {
                return Some(entry);
            }
            self.gaps = self.gaps.saturating_sub(1);
        }
        None
    }

    /// The newest entry of a page.
    #[inline(always)]
    fn head(&self, lpn: Lpn) -> Option<EntryNumber> {
        let number = EntryNumber(self.heads.get(lpn.index()));
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

    /// Entries of a page.
    pub fn count_of(&self, lpn: Lpn) -> u64 {
        let newest = self.head(lpn);
        std::iter::successors(newest, |&number| self.before(number)).count() as u64
    }

    /// Whether a page has entries.
    pub fn has(&self, lpn: Lpn) -> bool {
        self.head(lpn).is_some()
    }

    /// The stamp of the newest entry of a page.
    #[inline(always)]
    pub fn newest_of(&self, lpn: Lpn) -> Option<u64> {
        self.head(lpn).map(|number| self.log.get(number).stamp)
    }

    /// The largest stamp of all entries.
    pub fn newest(&self) -> Option<u64> {
        let places = self.log.len();
        let of = |place: u32| self.log.get(self.log.first().plus(place));
        let sorted = (0..places - self.tail).rev().map(of);
        let last = sorted.filter(|entry| !entry.is_gap()).take(1);
        let tail = (places - self.tail..places).map(of);
        let entries = last.chain(tail.filter(|entry| !entry.is_gap()));
        entries.map(|entry| entry.stamp).max()
    }

    /// The oldest entry of a page with a stamp above this one, if there is one.
    pub fn first_after(&self, lpn: Lpn, stamp: u64) -> Option<VersionEntry> {
        if stamp >= self.newest {
            return None;
        }
        let newest = self.head(lpn);
        let chain = std::iter::successors(newest, |&number| self.before(number));
        let entries = chain.map(|number| self.log.get(number));
        entries.take_while(|entry| entry.stamp > stamp).last()
    }

    /// The entry of a number in range, unless it is a gap.
    pub fn entry(&self, number: EntryNumber) -> Option<VersionEntry> {
        let entry = self.log.get(number);
        (!entry.is_gap()).then_some(entry)
    }

    fn entries(
        &self,
        from: EntryNumber,
        end: EntryNumber,
    ) -> impl Iterator<Item = (EntryNumber, VersionEntry)> {
        let numbers = (0..end.since(from)).map(move |i| from.plus(i));
        numbers.filter_map(|number| Some((number, self.entry(number)?)))
    }

    /// All entries with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (EntryNumber, VersionEntry)> {
        self.entries(self.log.first(), self.log.end())
    }

    /// The entries with stamps above this one.
    pub fn after(&self, stamp: u64) -> impl Iterator<Item = (EntryNumber, VersionEntry)> {
        self.entries(self.first_sorted_after(stamp), self.log.end())
            .filter(move |(_, entry)| entry.stamp > stamp)
    }

    /// Entries with stamps above this one, gaps and those out of order counted too.
    pub fn count_after(&self, stamp: u64) -> u32 {
        self.log.end().since(self.first_sorted_after(stamp))
    }

    /// The stamp of the entry so many places behind the last with a stamp up to this one, if there is one.
    pub fn stamp_after(&self, stamp: u64, places: u32) -> Option<u64> {
        let behind = self.first_sorted_after(stamp).since(self.log.first());
        let place = places.checked_sub(1)?.checked_add(behind)?;
        let found = place < self.log.len();
        found.then(|| self.log.get(self.log.first().plus(place)).stamp)
    }

    /// The entries in order of their stamps, but for the tail, and the smallest stamp that the
    /// tail may hold.
    pub fn sorted(&self) -> (impl Iterator<Item = (EntryNumber, VersionEntry)>, u64) {
        let end = self.log.first().plus(self.log.len() - self.tail);
        (self.entries(self.log.first(), end), self.tail_min)
    }

    /// Of the entries of these pages leaves the newest of each, which says that they were purged, or no entry where that
    /// need not be said. Gives the objects that were named.
    pub fn purge(
        &mut self,
        pages: Range<Lpn>,
        says_so: impl Fn(Lpn) -> bool,
        lost: &mut impl FnMut(ObjectId),
    ) {
        if pages.end.0.saturating_sub(pages.start.0) <= self.log.len() {
            for lpn in Lpn::each(pages) {
                if let Some(newest) = self.head(lpn) {
                    self.purge_before(newest, says_so(lpn), lost);
                }
            }
            return;
        }
        // From the newest entry on: what is met is the newest of its page, or a gap by then.
        let (mut number, first) = (self.log.end(), self.log.first());
        while number != first {
            number = number.before();
            let entry = self
                .entry(number)
                .filter(|entry| pages.contains(&{ entry.lpn }));
            if let Some(VersionEntry { lpn, .. }) = entry {
                self.purge_before(number, says_so(lpn), lost);
            }
        }
    }

    /// The same of one page, whose newest entry this is.
    fn purge_before(
        &mut self,
        newest: EntryNumber,
        says_so: bool,
        lost: &mut impl FnMut(ObjectId),
    ) {
        let mut next = self.before(newest);
        match says_so {
            true => {
                let entry = self.log.get(newest);
                lost(entry.object);
                let object = PURGED;
                self.log.set(newest, VersionEntry { object, ..entry });
            }
            false => lost(self.remove(newest)),
        }
        while let Some(number) = next {
            next = self.before(number);
            lost(self.remove(number));
        }
    }

    /// Takes an entry away that has none of its page before it, or all of those go too; gives the object that it named.
    pub fn remove(&mut self, number: EntryNumber) -> ObjectId {
        let entry = self.log.get(number);
        // No hint may follow it: the object may be another one by then, or none.
        self.log.set(
            number,
            VersionEntry {
                lpn: Lpn::NONE,
                object: ObjectId::NONE,
                ..entry
            },
        );
        self.gaps += 1;
        entry.object
    }

    /// An entry says from now on what the one of its page before it says, and takes its place in the chain; gives the
    /// object that it named itself.
    pub fn merge_with_older(&mut self, number: EntryNumber) -> Option<ObjectId> {
        let before = self.before(number)?;
        let (entry, older) = (self.log.get(number), self.log.get(before));
        self.remove(before);
        self.log.set(
            number,
            VersionEntry {
                object: older.object,
                older: older.older,
                ..entry
            },
        );
        Some(entry.object)
    }

    /// Recounts everything.
    pub fn check(&self) -> Result<(), String> {
        self.check_order()?;
        self.check_links()
    }

    fn check_order(&self) -> Result<(), String> {
        let slots = (0..self.log.len()).map(|i| self.log.get(self.log.first().plus(i)));
        let gaps = slots.clone().filter(VersionEntry::is_gap).count();
        if gaps != self.gaps as usize {
            return Err(format!("{gaps} gaps, counted {}", self.gaps));
        }
        if are_too_many_gaps(self.gaps, self.log.len()) {
            return Err(format!("{gaps} of {} places are gaps", self.log.len()));
        }
        let names_object = |entry: VersionEntry| entry.is_gap() && { entry.object }.is_some();
        if slots.clone().any(names_object) {
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
                return Err(format!("place {i}: {stamp} is out of order"));
            }
            if stamp > self.newest {
                return Err(format!("place {i}: {stamp} is above {}", self.newest));
            }
            last = stamp;
        }
        Ok(())
    }

    fn check_links(&self) -> Result<(), String> {
        let mut newest: FxHashMap<Lpn, EntryNumber> = FxHashMap::default();
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
