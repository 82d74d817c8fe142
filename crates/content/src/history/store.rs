//! The history of the map: which object each logical page referred to, until when.
//!
//! An *entry* says: until `stamp` the page referred to the object, or to none. It is made when a
//! reference is superseded, also the first one (before it there was none) and by a trim. A version
//! was current from the stamp of the entry of its page before it up to its own, the latter excluded,
//! so what a page referred to at `t` is **the entry with the smallest stamp above `t`, or else the
//! present**. A write at exactly `t` is in the state at `t`. (The rule printed in the paper, the entry
//! nearest *before* `t`, is one version too old.) Of entries of a page with equal stamps the first
//! recorded is the one that counts; the others never were the state at any instant.
//!
//! Life of an entry: it is recorded and lies in the window until [`History::advance`] passes its
//! stamp. Then it goes, and its object reference is given up, unless a pinned instant needs it: then
//! it is kept until that pin goes.
//!
//! Invariants:
//! 1. Exact are all instants from [`History::oldest`] on, which never falls, and the
//!    [pinned](History::pinned) ones.
//! 2. An entry in the window has a stamp above `oldest`, but for one recorded late: it was passed
//!    before it came, changes no instant of the window, and goes with the next advance.
//! 3. What is told of an instant is what was there: where a purge took it, that is told ([`Version::Purged`]).
//! 4. Each object reference taken over by [`History::record`] is told to a `drop` exactly once, or
//!    is in [`History::objects`].

use super::chains::{ChainNames, Chains};
use super::changed::ChangedPages;
use super::entry::{HistoryAt, VersionEntry};
use super::pins::{KEPT, PinnedInstant, Pins};
use super::removal::{Removal, Unpinning};
use super::schedule::Schedule;
use crate::history::{PURGED, names_object};
use flashlore_flash::{EntryNumber, Lpn, ObjectId, QueueAt, TableName, Tables};
use std::fmt;
use std::ops::Range;
use thiserror::Error;

/// How much is remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryOptions {
    /// Entries after which the history [is full](History::is_full); `None` for as many as come.
    pub max_entries: Option<u32>,
    /// Which instants stay behind the window by themselves.
    pub schedule: Option<Schedule>,
}

/// Who keeps old versions alive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holders {
    /// The window, from its start to the present.
    pub window: bool,
    /// Pinned instants: snapshots, for those that a schedule keeps go when room is needed.
    pub snapshots: bool,
}

impl fmt::Display for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.window, self.snapshots) {
            (true, true) => "snapshots and the protected window",
            (true, false) => "the protected window",
            _ => "snapshots",
        })
    }
}

/// What a page referred to at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// To what it refers to now: it has not changed since.
    Current,
    Object(ObjectId),
    /// To none: it was unmapped.
    Nothing,
    /// Nobody knows: a purge took it.
    Purged,
}

impl Version {
    fn of_entry(object: ObjectId) -> Self {
        match object {
            ObjectId::NONE => Version::Nothing,
            PURGED => Version::Purged,
            object => Version::Object(object),
        }
    }
}

/// The instant is not remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("instant {instant} is forgotten; expected {oldest} or later, or a snapshot")]
pub struct TooOld {
    /// What was asked for.
    pub instant: u64,
    /// The start of the window.
    pub oldest: u64,
}

/// The tables of the window.
const WINDOW: ChainNames = ChainNames {
    entries: TableName::Versions,
    heads: TableName::Heads,
};

/// The history of a map, in tables. Stamps have any unit; an instant is a stamp.
#[derive(Debug)]
pub struct History<S: Tables> {
    chains: Chains<S>,
    pins: Pins<S>,
    options: HistoryOptions,
    oldest: u64,
    recorded: u64,
}

/// The tables of a history.
#[derive(Debug)]
pub struct HistoryTables<S: Tables> {
    /// The entries of the window.
    pub versions: S::Queue<VersionEntry>,
    /// By page the number of its newest entry there, or anything else.
    pub heads: S::Of<u32>,
    /// The same of the entries that pinned instants keep behind it.
    pub kept: Option<(S::Queue<VersionEntry>, S::Of<u32>)>,
}

impl<S: Tables> History<S> {
    /// Nothing has ever changed, on this many pages.
    pub fn new(tables: &S, pages: u32, options: HistoryOptions) -> Self {
        let at = HistoryAt::default();
        History {
            chains: Chains::new(tables, WINDOW, pages, &at.window),
            pins: Pins::new(tables, pages),
            options,
            oldest: 0,
            recorded: 0,
        }
    }

    /// What stands so in tables that outlive a run, of this many pages.
    pub fn stored(tables: &S, pages: u32, options: HistoryOptions, at: &HistoryAt) -> Self {
        let window = Chains::new(tables, WINDOW, pages, &at.window);
        let kept = Chains::new(tables, KEPT, pages, &at.kept);
        History::of_chains(tables, options, at, window, kept)
    }

    /// What stands so in these tables, which have what is kept, too.
    pub fn of_tables(
        tables: &S,
        options: HistoryOptions,
        at: &HistoryAt,
        of: HistoryTables<S>,
    ) -> Self {
        let window = Chains::of(of.versions, of.heads, at.window.gaps);
        let pages = window.pages();
        let kept = match of.kept {
            Some((log, heads)) => Chains::of(log, heads, at.kept.gaps),
            None => Chains::new(tables, KEPT, pages, &at.kept),
        };
        History::of_chains(tables, options, at, window, kept)
    }

    fn of_chains(
        tables: &S,
        options: HistoryOptions,
        at: &HistoryAt,
        window: Chains<S>,
        kept: Chains<S>,
    ) -> Self {
        History {
            recorded: u64::from(window.len()),
            chains: window,
            pins: Pins::restore(tables, &at.pins, kept),
            options,
            oldest: at.oldest,
        }
    }

    /// A history in other tables, in which nothing stands yet: the start of its window, its pins, and the entries of the
    /// window and those kept, both in order of their stamps.
    pub fn restore(
        tables: &S,
        pages: u32,
        options: HistoryOptions,
        (oldest, pins): (u64, &[PinnedInstant]),
        window: impl Iterator<Item = VersionEntry>,
        kept: impl Iterator<Item = VersionEntry>,
    ) -> Self {
        let at = HistoryAt {
            oldest,
            pins: pins.to_vec(),
            ..HistoryAt::default()
        };
        let mut chains = Chains::new(tables, WINDOW, pages, &at.window);
        window.for_each(|entry| chains.push(entry.lpn, entry.object, entry.stamp));
        let mut kept_chains = Chains::new(tables, KEPT, pages, &at.kept);
        kept.for_each(|entry| kept_chains.push(entry.lpn, entry.object, entry.stamp));
        History::of_chains(tables, options, &at, chains, kept_chains)
    }

    /// As `new`, and the queues begin there.
    #[cfg(test)]
    pub(super) fn starting_at(
        tables: &S,
        pages: u32,
        options: HistoryOptions,
        queue: QueueAt,
    ) -> Self {
        let mut at = HistoryAt::default();
        at.window.queue = queue;
        at.kept.queue = queue;
        History::stored(tables, pages, options, &at)
    }

    /// How it stands in its tables. Its entries must have come in order of their stamps.
    pub fn at_rest(&self) -> HistoryAt {
        HistoryAt {
            oldest: self.oldest,
            window: self.chains.at(),
            kept: self.pins.at(),
            pins: self.pins.all().collect(),
        }
    }

    /// Where the entries of the window stand in their table.
    pub fn window_at(&self) -> QueueAt {
        self.chains.queue_at()
    }

    /// Its tables, and how it stands in them.
    pub fn into_tables(self) -> (HistoryAt, HistoryTables<S>) {
        let mut at = HistoryAt {
            oldest: self.oldest,
            pins: self.pins.all().collect(),
            ..HistoryAt::default()
        };
        let (window, versions, heads) = self.chains.into_tables();
        at.window = window;
        let kept = self.pins.into_kept().map(|kept| {
            let (stands, log, heads) = kept.into_tables();
            at.kept = stands;
            (log, heads)
        });
        let tables = HistoryTables {
            versions,
            heads,
            kept,
        };
        (at, tables)
    }

    /// Until `stamp` the page referred to `object`, or to none ([`ObjectId::NONE`]); the history takes
    /// over a reference to it. Stamps of one page never fall; those of different pages may come in
    /// any order, and cost the less the closer it is to theirs.
    ///
    /// # Panics
    /// If there is no such page.
    #[inline(always)]
    pub fn record(&mut self, lpn: Lpn, object: ObjectId, stamp: u64) {
        self.recorded += 1;
        self.chains.push(lpn, object, stamp);
    }

    /// A hint that a page will be recorded soon: some writes ahead it hides most of the latency.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        self.chains.prefetch(lpn);
    }

    /// The object of the entry of the window that so many others probably leave before, if it names any: to ask
    /// for it in time.
    #[inline(always)]
    pub fn upcoming(&self, others: u32) -> Option<ObjectId> {
        self.chains.upcoming(others)
    }

    /// The start of the window: all instants from this one on can be rewound to.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Whether the state at an instant is exactly known.
    pub fn is_exact(&self, instant: u64) -> bool {
        instant >= self.oldest || self.pins.contains(instant)
    }

    /// Whether the state at an instant is exactly known.
    ///
    /// # Errors
    /// If it is not.
    pub fn knows(&self, instant: u64) -> Result<(), TooOld> {
        match self.is_exact(instant) {
            true => Ok(()),
            false => Err(TooOld {
                instant,
                oldest: self.oldest,
            }),
        }
    }

    /// Whether some instants stay behind the window by themselves.
    pub(super) fn has_schedule(&self) -> bool {
        self.options.schedule.is_some()
    }

    /// Moves the start of the window on, to `to` or not at all if it is there already: ADVANCE.
    /// Instants passed that the schedule wants are pinned. Every entry with a stamp up to there goes
    /// unless a pinned instant needs it; each object reference given up is told to `drop`. Whether anything has changed:
    /// where entries cannot be read, what was to go may not be what stands first.
    pub fn advance(&mut self, to: u64, drop: &mut impl FnMut(ObjectId)) -> bool {
        let to = to.max(self.oldest);
        if let Some(schedule) = &self.options.schedule {
            for instant in schedule.instants(self.oldest, to) {
                self.pins.add_scheduled(instant);
            }
        }
        self.chains.sort_up_to(to);
        let mut lost = told_of_objects(drop);
        let mut changed = to > self.oldest;
        while let Some(entry) = self.chains.pop_up_to(to) {
            changed = true;
            if !self.pins.keep(entry) {
                lost(entry.object);
            }
        }
        self.chains.close_gaps();
        self.oldest = to;
        changed
    }

    /// The smallest stamp to advance to so that this many entries go, not counting those a pin
    /// needs; if there are fewer, so that all of them go; `None` if there is none. With a schedule
    /// every multiple of its first spacing counts as pinned, so more may go.
    pub fn stamp_to_drop(&mut self, entries: usize) -> Option<u64> {
        let (found, stamp) = self.stamp_among_sorted(entries);
        let (_, tail_min) = self.chains.sorted();
        if found == entries && stamp.is_none_or(|stamp| stamp <= tail_min) {
            return stamp;
        }
        self.chains.sort();
        self.stamp_among_sorted(entries).1
    }

    /// So many entries of those in order, at most, can go, and the stamp of the last of them.
    fn stamp_among_sorted(&self, entries: usize) -> (usize, Option<u64>) {
        let (sorted, _) = self.chains.sorted();
        let can_go =
            sorted.filter(|&(number, entry)| !self.is_needed(number, entry.lpn, entry.stamp));
        let stamps = can_go.take(entries).map(|(_, entry)| entry.stamp);
        stamps.fold((0, None), |(found, _), stamp| (found + 1, Some(stamp)))
    }

    /// Whether an entry will be kept when the window passes it.
    fn is_needed(&self, number: EntryNumber, lpn: Lpn, stamp: u64) -> bool {
        let schedule = self.options.schedule.as_ref();
        let scheduled = schedule.and_then(|s| s.last_before(self.oldest, stamp));
        let pinned = self.pins.last_before(stamp, lpn);
        let Some(instant) = scheduled.max(pinned.map(|(instant, _)| instant)) else {
            return false;
        };
        let covered = pinned.is_some_and(|(pin, has_page)| pin == instant && has_page);
        let before = self.chains.stamp_before(number);
        !covered && before.is_none_or(|before| before <= instant)
    }

    /// What a page referred to at an instant, in time proportional to its changes since.
    ///
    /// # Errors
    /// If the instant is not remembered.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn at(&self, lpn: Lpn, instant: u64) -> Result<Version, TooOld> {
        self.knows(instant)?;
        if instant < self.oldest
            && let Some(object) = self.pins.at_instant(lpn, instant)
        {
            return Ok(Version::of_entry(object));
        }
        let first = self.chains.first_after(lpn, instant);
        Ok(first.map_or(Version::Current, |entry| Version::of_entry(entry.object)))
    }

    /// The pages that changed after an instant. What they refer to now may be the same again. In time proportional to the
    /// entries since, in the window and kept behind it.
    ///
    /// # Errors
    /// If the instant is not remembered.
    pub fn changed_since(&self, instant: u64) -> Result<ChangedPages, TooOld> {
        self.pages_since(instant, |_| true)
    }

    /// Those of them of which it is not known what they referred to then, since it was purged.
    ///
    /// # Errors
    /// If the instant is not remembered.
    pub fn purged_since(&self, instant: u64) -> Result<ChangedPages, TooOld> {
        let mut pages = self.pages_since(instant, |entry| { entry.object } == PURGED)?;
        pages.retain(|lpn| self.at(lpn, instant) == Ok(Version::Purged));
        Ok(pages)
    }

    /// The pages with entries of this kind after an instant.
    fn pages_since(
        &self,
        instant: u64,
        is_wanted: impl Fn(&VersionEntry) -> bool,
    ) -> Result<ChangedPages, TooOld> {
        self.knows(instant)?;
        let mut pages = ChangedPages::none_of(self.chains.pages());
        let mut note = |entry: VersionEntry| {
            if is_wanted(&entry) {
                pages.insert(entry.lpn);
            }
        };
        if instant < self.oldest {
            self.pins.after(instant).for_each(&mut note);
        }
        let in_window = self.chains.after(instant);
        in_window.for_each(|(_, entry)| note(entry));
        Ok(pages)
    }

    /// The instants of the changes in the window, in no particular order: one for each change of a page.
    pub fn stamps(&self) -> impl Iterator<Item = u64> {
        self.chains.all().map(|(_, entry)| entry.stamp)
    }

    /// Pins an instant: it stays readable until the snapshot is deleted, wherever the window begins.
    /// It may lie ahead. A change recorded later and stamped exactly so is in it. Nothing happens if
    /// there is a snapshot of it already.
    ///
    /// # Errors
    /// If the instant is not remembered.
    pub fn snapshot(&mut self, instant: u64) -> Result<(), TooOld> {
        self.knows(instant)?;
        self.pins.add_snapshot(instant);
        Ok(())
    }

    /// Deletes a snapshot; whether there was one. Entries nobody else needs go; each object
    /// reference given up is told to `drop`. In time proportional to the entries kept for this
    /// instant.
    pub fn delete_snapshot(&mut self, instant: u64, drop: &mut impl FnMut(ObjectId)) -> bool {
        let Some(removal) = self.begin_to_delete_snapshot(instant) else {
            return false;
        };
        self.remove_all(removal, drop);
        true
    }

    /// Nobody has a snapshot of an instant any more, if somebody had: what is to be removed then.
    pub fn begin_to_delete_snapshot(&mut self, instant: u64) -> Option<Removal> {
        let was_there = self.pins.end_snapshot(instant);
        was_there.then(|| Removal::instants(vec![instant], None))
    }

    pub(super) fn begin_to_unpin(&mut self, instant: u64) -> Option<Unpinning> {
        self.pins.begin_to_unpin(instant)
    }

    pub(super) fn unpin(
        &mut self,
        unpinning: &mut Unpinning,
        most: u32,
        drop: &mut impl FnMut(ObjectId),
    ) -> bool {
        self.pins.unpin(unpinning, most, &mut told_of_objects(drop))
    }

    /// The instants of the snapshots, oldest first.
    pub fn snapshots(&self) -> impl Iterator<Item = u64> {
        self.pins.snapshots()
    }

    /// The pinned instants, oldest first: the snapshots and what the schedule keeps. These, and all
    /// from [`Self::oldest`] on, are exact.
    pub fn pinned(&self) -> impl Iterator<Item = u64> {
        self.pins.instants()
    }

    /// Does what the schedule wants done at `now`: the window begins where its exact age ends, and
    /// instants it wants no more are unpinned. Without a schedule nothing happens.
    pub fn apply_schedule(&mut self, now: u64, drop: &mut impl FnMut(ObjectId)) {
        let Some(schedule) = &self.options.schedule else {
            return;
        };
        let exact = now.saturating_sub(schedule.exact());
        self.advance(exact, drop);
        let Some(schedule) = &self.options.schedule else {
            return;
        };
        let all = self.pins.scheduled();
        let unwanted: Vec<u64> = all
            .filter(|&instant| !schedule.wants(instant, now))
            .collect();
        for instant in unwanted {
            self.end_scheduled(instant, drop);
        }
    }

    fn end_scheduled(&mut self, instant: u64, drop: &mut impl FnMut(ObjectId)) {
        self.pins.end_scheduled(instant);
        self.remove_all(Removal::instants(vec![instant], None), drop);
    }

    /// Gives up the oldest instant that only the schedule keeps, and names it: what can be done when
    /// an advance frees nothing.
    pub fn expire_oldest(&mut self, drop: &mut impl FnMut(ObjectId)) -> Option<u64> {
        let instant = self.pins.scheduled().next()?;
        self.end_scheduled(instant, drop);
        Some(instant)
    }

    /// Forgets every version of these pages but the present one, also for snapshots: at instants
    /// before the present version they are [`Version::Purged`] from now on, at later ones as before.
    /// A page that had entries is left with one that says so. Each object reference given up is told
    /// to `drop`. Pages there are not are left out.
    pub fn purge(&mut self, pages: Range<Lpn>, drop: &mut impl FnMut(ObjectId)) {
        self.remove_all(Removal::purge(pages), drop);
    }

    pub(super) fn purge_at_once(&mut self, pages: Range<Lpn>, drop: &mut impl FnMut(ObjectId)) {
        let mut lost = told_of_objects(drop);
        let end = pages.end.min(Lpn(self.chains.pages()));
        let pages = pages.start.min(end)..end;
        self.chains.purge(pages.clone(), |_| true, &mut lost);
        let in_window = |lpn| self.chains.has(lpn);
        self.pins.purge(pages, in_window, &mut lost);
        self.chains.close_gaps();
    }

    /// Forgets every instant before `to`, pinned ones too if anything changed since; answers the
    /// snapshots that this ended. Each object reference given up is told to `drop`.
    pub fn forget_before(&mut self, to: u64, drop: &mut impl FnMut(ObjectId)) -> Vec<u64> {
        let (removal, ended) = self.begin_to_forget(to);
        self.remove_all(removal, drop);
        ended
    }

    /// Nobody wants the instants before `to` any more: what is to be removed then, and the snapshots that this ended.
    pub fn begin_to_forget(&mut self, to: u64) -> (Removal, Vec<u64>) {
        let to = to.max(self.oldest);
        let last = self.newest_change();
        let changed = |&instant: &u64| {
            let pins = &self.pins;
            last.is_some_and(|last| last > instant) || pins.after(instant).next().is_some()
        };
        let pinned: Vec<u64> = self.pins.instants().take_while(|&pin| pin < to).collect();
        let emptied: Vec<u64> = pinned.into_iter().filter(changed).collect();
        for &instant in &emptied {
            self.pins.end_scheduled(instant);
        }
        let mut ended = emptied.clone();
        ended.retain(|&instant| self.pins.end_snapshot(instant));
        (Removal::instants(emptied, Some(to)), ended)
    }

    /// When the last change of any page in the window was.
    pub fn newest_change(&self) -> Option<u64> {
        self.chains.newest()
    }

    /// When the last change of any of these pages in the window was.
    pub fn last_change(&self, pages: Range<Lpn>) -> Option<u64> {
        let pages = pages.start..pages.end.min(Lpn(self.chains.pages()));
        let newest = Lpn::each(pages).filter_map(|lpn| self.chains.newest_of(lpn));
        newest.max()
    }

    /// All entries of the window, those of a page in order of their stamps.
    pub fn window(&self) -> impl Iterator<Item = VersionEntry> {
        self.chains.all().map(|(_, entry)| entry)
    }

    /// All entries kept behind it, likewise.
    pub fn kept_entries(&self) -> impl Iterator<Item = VersionEntry> {
        self.pins.entries()
    }

    /// Whether so many more entries have room in the budget, if whatever no pin needs and no instant after `latest`
    /// goes first. Entries of the window that a pin will need count as staying. At once if nothing has to go, else in
    /// time proportional to the entries.
    pub fn has_room_for(&self, entries: usize, latest: u64) -> bool {
        let Some(most) = self.options.max_entries else {
            return true;
        };
        if self.len() + entries < most as usize {
            return true;
        }
        let needed = |&(number, entry): &(EntryNumber, VersionEntry)| {
            entry.stamp > latest || self.is_needed(number, entry.lpn, entry.stamp)
        };
        let needed = self.chains.all().filter(needed).count();
        self.pins.len() + needed + entries < most as usize
    }

    /// Entries of the window with stamps above this one; places of purged ones may count.
    pub fn entries_after(&self, stamp: u64) -> u32 {
        self.chains.count_after(stamp)
    }

    /// The stamp of the last of so many entries of the window behind a stamp, at least one, if there are so
    /// many. Entries of equal stamps may follow.
    pub fn stamp_after(&mut self, stamp: u64, entries: u32) -> Option<u64> {
        self.chains.sort();
        self.chains.stamp_after(stamp, entries)
    }

    /// Entries of these pages, in the window and kept behind it.
    pub fn entries_of(&self, pages: Range<Lpn>) -> u64 {
        let end = pages.end.min(Lpn(self.chains.pages()));
        let pages = Lpn::each(pages.start.min(end)..end);
        pages
            .map(|lpn| self.chains.count_of(lpn) + self.pins.count_of(lpn))
            .sum()
    }

    /// Entries that are looked at when a pinned instant goes.
    pub fn entries_kept_for(&self, instant: u64) -> u64 {
        self.pins.kept_for(instant).into()
    }

    /// Entries held, in the window and kept behind it.
    pub fn len(&self) -> usize {
        self.chains.len() as usize + self.pins.len()
    }

    /// Whether no entry is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries kept for pinned instants behind the window. An advance does not free them.
    pub fn kept(&self) -> usize {
        self.pins.len()
    }

    /// Who holds entries: the window those that would go with its start, snapshots what is kept behind it and what
    /// has changed since one of them.
    pub fn holders(&self) -> Holders {
        let mut entries = self.chains.all();
        let window = entries.any(|(number, e)| !self.is_needed(number, e.lpn, e.stamp));
        let newest = self.snapshots().last();
        let in_window = newest.is_some_and(|instant| instant >= self.oldest);
        Holders {
            window,
            snapshots: self.kept() > 0 || in_window && self.chains.len() > 0,
        }
    }

    /// Whether the budget is used up: time to advance. Recording goes on all the same.
    pub fn is_full(&self) -> bool {
        let budget = self.options.max_entries;
        budget.is_some_and(|entries| self.len() >= entries as usize)
    }

    /// Whether there are more than the budget allows.
    pub fn is_over(&self) -> bool {
        let budget = self.options.max_entries;
        budget.is_some_and(|entries| self.len() > entries as usize)
    }

    /// Entries ever recorded; those that are not held have gone.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Bytes held: 4 a page and 20 an entry of the window; the same of what is kept, once something was.
    pub fn heap_bytes(&self) -> usize {
        self.chains.heap_bytes() + self.pins.heap_bytes()
    }

    /// Every object reference held, as often as it is.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> {
        let entries = self.window().chain(self.kept_entries());
        let objects = entries.map(|entry| entry.object);
        objects.filter(|&object| names_object(object))
    }

    /// Recounts everything; says what is wrong.
    ///
    /// # Errors
    /// The first contradiction found, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        self.chains.check()?;
        self.pins.check(self.oldest)
    }
}

/// Tells only of entries that name an object.
fn told_of_objects(drop: &mut impl FnMut(ObjectId)) -> impl FnMut(ObjectId) {
    |object| {
        if names_object(object) {
            drop(object);
        }
    }
}
