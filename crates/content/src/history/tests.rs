//! The vectors of the specification, and the store against the naive model of the oracle crate.

use super::chains::Chains;
use super::removal::Removal;
use super::*;
use flashlore_flash::tables::LastFirst;
use flashlore_flash::{
    EntryNumber, InMemory, Lpn, ObjectId, Queue, QueueAt, Ring, Row, Table, TableName, Tables,
};
use flashlore_oracle::history::HistoryModel;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;

/// A history without a budget and without a schedule.
fn history(pages: u32) -> History<InMemory> {
    History::new(&InMemory, pages, HistoryOptions::default())
}

/// The objects given up by an operation, in order.
fn lost<A>(operation: impl FnOnce(&mut dyn FnMut(ObjectId)) -> A) -> Vec<u32> {
    let mut objects = Vec::new();
    operation(&mut |object| objects.push(object.0));
    objects.sort_unstable();
    objects
}

const A: Lpn = Lpn(0);
const B: Lpn = Lpn(1);
const A1: ObjectId = ObjectId(11);
const A2: ObjectId = ObjectId(12);
const B1: ObjectId = ObjectId(21);

/// `spec/bvssd.md` section 7: W(A,a1) W(A,a2) W(B,b1) W(A,a3) TRIM(B) at 1, 3, 5, 7, 9.
fn vector() -> History<InMemory> {
    let mut history = history(2);
    history.record(A, ObjectId::NONE, 1);
    history.record(A, A1, 3);
    history.record(B, ObjectId::NONE, 5);
    history.record(A, A2, 7);
    history.record(B, B1, 9);
    history
}

fn state(history: &History<InMemory>, instant: u64) -> [Version; 2] {
    [A, B].map(|lpn| history.at(lpn, instant).unwrap())
}

#[test]
fn the_recovery_vector() {
    use Version::{Current, Nothing, Object};
    let history = vector();
    assert_eq!(state(&history, 0), [Nothing, Nothing]);
    assert_eq!(state(&history, 2), [Object(A1), Nothing]);
    // The rule as it is printed, nearest before T, gives A1 here.
    assert_eq!(state(&history, 4), [Object(A2), Nothing]);
    assert_eq!(state(&history, 6), [Object(A2), Object(B1)]);
    assert_eq!(state(&history, 8), [Current, Object(B1)]);
    assert_eq!(state(&history, 10), [Current, Current]);
    // A write at exactly T is included.
    for t in [1, 3, 5, 7, 9] {
        assert_eq!(state(&history, t), state(&history, t + 1), "{t}");
        assert_ne!(state(&history, t), state(&history, t - 1), "{t}");
    }
}

#[test]
fn the_collection_vector() {
    let mut history = vector();
    assert_eq!(lost(|mut drop| history.advance(4, &mut drop)), [A1.0]);
    let objects: Vec<ObjectId> = history.objects().collect();
    assert_eq!(objects, [A2, B1], "A2 survives although it is not current");
    assert_eq!(lost(|mut drop| history.advance(7, &mut drop)), [A2.0]);
    assert_eq!(history.objects().collect::<Vec<_>>(), [B1]);
    assert_eq!((history.len(), history.recorded()), (1, 5));
}

#[test]
fn the_papers_example() {
    // LPN 3 lies on page 4 and is written to page 5 at T1: (3, 4, T1).
    const T1: u64 = 100;
    let mut history = history(8);
    history.record(Lpn(3), ObjectId(4), T1);
    assert_eq!(history.at(Lpn(3), T1 - 1), Ok(Version::Object(ObjectId(4))));
    assert_eq!(history.at(Lpn(3), T1), Ok(Version::Current));
    assert_eq!(history.at(Lpn(2), 0), Ok(Version::Current));
}

#[test]
fn of_equal_stamps_the_first_recorded_counts() {
    let mut history = history(2);
    history.record(A, ObjectId::NONE, 5);
    history.record(A, A1, 5);
    history.record(A, A2, 5);
    assert_eq!(history.at(A, 4), Ok(Version::Nothing));
    assert_eq!(history.at(A, 5), Ok(Version::Current));
    assert_eq!(history.stamp_to_drop(1), Some(5));
    history.snapshot(4).unwrap();
    assert_eq!(lost(|mut drop| history.advance(5, &mut drop)), [A1.0, A2.0]);
    assert_eq!(history.at(A, 4), Ok(Version::Nothing));
    history.check().unwrap();
}

#[test]
fn a_forgotten_instant_is_refused_with_the_window() {
    let mut history = vector();
    history.advance(4, &mut |_| ());
    assert_eq!(
        history.at(A, 3).unwrap_err().to_string(),
        "instant 3 is forgotten; expected 4 or later, or a snapshot"
    );
    assert!(history.changed_since(3).is_err());
    assert!(history.snapshot(3).is_err());
    assert_eq!(history.pinned().count(), 0);
    history.advance(2, &mut |_| ());
    assert_eq!(history.oldest(), 4, "the window never begins earlier again");
}

#[test]
fn a_late_entry_changes_no_instant_of_the_window_and_goes_with_the_next_advance() {
    let mut history = vector();
    history.advance(8, &mut |_| ());
    // Handed on late by a write queue: A was written at 8, before the window began.
    history.record(A, ObjectId(13), 8);
    history.check().unwrap();
    assert_eq!(history.at(A, 8), Ok(Version::Current));
    assert_eq!(lost(|mut drop| history.advance(8, &mut drop)), [13]);
}

#[test]
fn alternating_values_fill_the_budget_and_no_more_when_the_caller_advances() {
    let options = HistoryOptions {
        max_entries: Some(100),
        schedule: None,
    };
    let mut history = History::new(&InMemory, 1, options);
    let mut references = [0i32; 2];
    for stamp in 0..10_000u64 {
        let object = (stamp % 2) as u32;
        references[object as usize] += 1;
        history.record(Lpn(0), ObjectId(object), stamp);
        while history.is_full() {
            let to = history.stamp_to_drop(10).unwrap();
            history.advance(to, &mut |object| references[object.index()] -= 1);
        }
        assert!(history.len() < 100);
    }
    assert_eq!(history.oldest(), 10_000 - 1 - history.len() as u64);
    for object in 0..2 {
        let held = history.objects().filter(|&o| o == ObjectId(object)).count();
        assert_eq!(references[object as usize], held as i32);
    }
}

#[test]
fn what_was_purged_is_told_and_never_shown_as_something_else() {
    let mut history = vector();
    history.snapshot(4).unwrap();
    assert_eq!(lost(|mut drop| history.advance(8, &mut drop)), [A1.0]);
    assert_eq!(
        history.kept(),
        2,
        "A2 for the snapshot, and that B was unmapped"
    );
    assert_eq!(
        lost(|mut drop| history.purge(Lpn(0)..Lpn(2), &mut drop)),
        [A2.0, B1.0]
    );
    assert_eq!(history.objects().count(), 0);
    assert_eq!(state(&history, 4), [Version::Purged; 2]);
    assert_eq!(state(&history, 8), [Version::Current, Version::Purged]);
    assert_eq!(state(&history, 9), [Version::Current; 2]);
    history.check().unwrap();
}

/// A row that cannot be read answers as zeros: what is to go does not stand first then, and nobody waits for it to go.
#[test]
fn an_entry_that_cannot_be_read_is_not_waited_for() {
    let mut history = history(3);
    history.snapshot(0).unwrap();
    // The first changes after the snapshot are needed, the others can go.
    for (lpn, object, stamp) in [(A, A1, 5), (B, B1, 6), (A, A2, 7), (B, A2, 8)] {
        history.record(lpn, object, stamp);
    }
    let (at, mut of) = history.into_tables();
    let third = at.window.queue.first.plus(2);
    of.versions.set(third, VersionEntry::default());
    let mut history = History::of_tables(&InMemory, HistoryOptions::default(), &at, of);
    let to = history.stamp_to_drop(1);
    assert_eq!(to, Some(0));
    assert!(!history.advance(0, &mut |_| ()));
    assert!(history.advance(5, &mut |_| ()));
}

/// The same where the window is moved on in steps: it is moved on at once then.
#[test]
fn a_step_that_cannot_be_read_is_not_taken_again() {
    let mut history = history(3);
    for (lpn, object, stamp) in [(A, A1, 5), (B, B1, 6), (A, A2, 7), (B, A2, 8)] {
        history.record(lpn, object, stamp);
    }
    let (at, mut of) = history.into_tables();
    let second = at.window.queue.first.plus(1);
    of.versions.set(second, VersionEntry::default());
    let mut history = History::of_tables(&InMemory, HistoryOptions::default(), &at, of);
    let mut removal = Removal::advance(7);
    let mut steps = 0;
    while history.remove(&mut removal, 2, &mut |_| ()) {
        steps += 1;
        assert!(steps < 4);
    }
    assert_eq!(history.oldest(), 7);
}

#[test]
fn memory_follows_the_number_of_entries() {
    let mut history = history(4);
    let empty = history.heap_bytes();
    for stamp in 0..100_000 {
        history.record(Lpn(stamp as u32 % 4), ObjectId(stamp as u32), stamp);
    }
    let full = history.heap_bytes();
    let chunk = 4096 * 20;
    let entries = 2_000_000..2_000_000 + 2 * chunk;
    assert!(entries.contains(&(full - empty)), "{full} {empty}");
    history.advance(100_000, &mut |_| ());
    assert!(history.is_empty() && history.heap_bytes() < empty + 3 * chunk);
}

#[test]
fn gaps_are_closed_when_what_lies_before_them_has_gone() {
    let mut history = history(2);
    for stamp in 0..20 {
        history.record(A, ObjectId(1), stamp);
    }
    for stamp in 20..32 {
        history.record(B, ObjectId(2), stamp);
    }
    history.purge(B..Lpn(B.0 + 1), &mut |_| ());
    history.check().unwrap();
    history.advance(15, &mut |_| ());
    history.check().unwrap();
    assert_eq!(history.len(), 5);
    assert_eq!(history.at(B, 30), Ok(Version::Purged));
}

const PAGES: u32 = 6;

#[derive(Debug, Clone)]
enum HistoryStep {
    /// Time goes on, and a page is written or trimmed, stamped so long ago.
    Write {
        lpn: Lpn,
        trim: bool,
        later: u64,
        ago: u64,
    },
    /// The window is to begin so long ago.
    Advance(u64),
    /// So many entries are to go.
    Free(usize),
    /// An instant so long ago, or ahead.
    Snapshot(i64),
    /// Of the pinned instants.
    Delete(usize),
    Purge(u32, u32),
    /// Everything before an instant so long ago, snapshots too.
    Forget(u64),
    ApplySchedule,
    Expire,
    /// It is taken out of its tables, and made of them again.
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<HistoryStep>> {
    let write = (0..PAGES, prop::bool::weighted(0.15), 0..3u64, 0..12u64).prop_map(
        |(lpn, trim, later, ago)| HistoryStep::Write {
            lpn: Lpn(lpn),
            trim,
            later,
            ago,
        },
    );
    let step = prop_oneof![
        24 => write,
        2 => (0..40u64).prop_map(HistoryStep::Advance),
        3 => (0..24usize).prop_map(HistoryStep::Free),
        2 => (-4..30i64).prop_map(HistoryStep::Snapshot),
        2 => (0..6usize).prop_map(HistoryStep::Delete),
        1 => (0..PAGES, 0..PAGES + 1).prop_map(|(from, to)| HistoryStep::Purge(from, to)),
        1 => (0..40u64).prop_map(HistoryStep::Forget),
        1 => Just(HistoryStep::ApplySchedule),
        1 => Just(HistoryStep::Expire),
        1 => Just(HistoryStep::Reopen),
    ];
    prop::collection::vec(step, 1..160)
}

/// Ages and spacings of the tiers, or none.
fn tiers() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop_oneof![
        Just(vec![]),
        Just(vec![(20, 3)]),
        Just(vec![(16, 2), (20, 4), (60, 20)])
    ]
}

/// Tables whose queues are rings of so many rows.
#[derive(Debug, Clone, Copy)]
struct Rings(usize);

impl Tables for Rings {
    type Of<R: Row> = Vec<R>;
    type Queue<R: Row> = Ring<Flaky<R>>;
    type Note = ();
    type Free = LastFirst;

    fn empty<R: Row>(&self, name: TableName, most: usize) -> Vec<R> {
        InMemory.empty(name, most)
    }

    fn filled<R: Row>(&self, name: TableName, row: R, rows: usize) -> Vec<R> {
        InMemory.filled(name, row, rows)
    }

    fn queue<R: Row>(&self, _: TableName, at: QueueAt) -> Ring<Flaky<R>> {
        let table = Flaky {
            rows: vec![R::of_byte(0); self.0],
            failures: Cell::new(0),
        };
        Ring::new(table, at)
    }

    fn free_handles(&self, exported: u32) -> LastFirst {
        InMemory.free_handles(exported)
    }
}

/// A table whose first reads fail: they answer what a row holds that was never written.
#[derive(Debug)]
struct Flaky<R> {
    rows: Vec<R>,
    failures: Cell<u32>,
}

impl<R: Row> Table<R> for Flaky<R> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn get(&self, at: usize) -> R {
        match self.failures.get() {
            0 => self.rows.get(at),
            left => {
                self.failures.set(left - 1);
                R::of_byte(0)
            }
        }
    }

    fn set(&mut self, at: usize, row: R) {
        self.rows.set(at, row);
    }

    fn change<A>(&mut self, at: usize, change: impl FnOnce(&mut R) -> A) -> A {
        self.rows.change(at, change)
    }

    fn push(&mut self, row: R) {
        self.rows.push(row);
    }

    fn prefetch(&self, at: usize) {
        self.rows.prefetch(at);
    }

    fn heap_bytes(&self) -> usize {
        self.rows.heap_bytes()
    }
}

/// Of the two searches the first may fail to read what the second reads, and so end behind what that would find.
#[test]
fn entries_between_two_stamps_are_never_more_than_there_are() {
    for failures in 0..6 {
        let entry = |stamp| VersionEntry {
            stamp,
            ..VersionEntry::default()
        };
        let table = Flaky {
            rows: (1..=8).map(entry).collect(),
            failures: Cell::new(failures),
        };
        let at = QueueAt {
            len: 8,
            ..QueueAt::default()
        };
        // The newest entry is read here.
        let entries = Chains::<Rings>::of(Ring::new(table, at), vec![0], 0);
        let (first, count) = entries.between(2, 3);
        let is_there = first.0 <= 8 && count <= 8 - first.0;
        assert!(is_there, "{failures} failures: {count} from {first} on");
        assert!(failures > 1 || count == 1, "{failures} failures: {count}");
    }
}

/// What goes when something is taken out in small steps, or at once.
fn removed<S: Tables>(history: &mut History<S>, mut removal: Removal, draw: u32) -> Vec<u32> {
    let most = [1, 2, 5, u32::MAX][draw as usize % 4];
    lost(|mut drop| while history.remove(&mut removal, most, &mut drop) {})
}

/// The store, the model, and the clock of the test.
struct Pair<S: Tables> {
    tables: S,
    options: HistoryOptions,
    history: History<S>,
    model: HistoryModel,
    now: u64,
    written: u32,
}

impl<S: Tables> Pair<S> {
    fn new(tables: S, tiers: Vec<(u64, u64)>, at: QueueAt) -> Self {
        const EXACT: u64 = 8;
        let model = HistoryModel::new(PAGES as usize, EXACT, tiers.clone());
        let to_tier = |(up_to, spacing)| Tier { up_to, spacing };
        let tiers: Vec<Tier> = tiers.into_iter().map(to_tier).collect();
        let options = HistoryOptions {
            max_entries: None,
            schedule: (!tiers.is_empty()).then(|| Schedule::new(EXACT, tiers).unwrap()),
        };
        Pair {
            history: History::starting_at(&tables, PAGES, options.clone(), at),
            tables,
            options,
            model,
            now: 0,
            written: 0,
        }
    }

    fn step(&mut self, step: HistoryStep) -> Result<(), TestCaseError> {
        let (history, model) = (&mut self.history, &mut self.model);
        match step {
            HistoryStep::Write {
                lpn,
                trim,
                later,
                ago,
            } => {
                self.now += later;
                let first = model.written(lpn.index());
                let stamp = self.now.saturating_sub(ago).max(first);
                // Every object has a name of its own, so that none is taken for another.
                self.written += 1;
                let object = (!trim).then_some(self.written);
                let old = model.write(lpn.index(), object, stamp);
                history.record(lpn, old.map_or(ObjectId::NONE, ObjectId), stamp);
            }
            HistoryStep::Advance(ago) => {
                let to = self.now.saturating_sub(ago);
                let gone = removed(history, Removal::advance(to), self.written);
                prop_assert_eq!(gone, model.advance(to));
            }
            HistoryStep::Free(entries) => self.free(entries)?,
            HistoryStep::Snapshot(ago) => {
                let instant = self.now.saturating_add_signed(-ago);
                prop_assert_eq!(history.snapshot(instant).is_ok(), model.snapshot(instant));
            }
            HistoryStep::Delete(which) => {
                let instant = history.pinned().nth(which).unwrap_or(self.now);
                let removal = history.begin_to_delete_snapshot(instant);
                let gone = removal.map(|removal| removed(history, removal, self.written));
                prop_assert_eq!(gone, model.delete_snapshot(instant));
            }
            HistoryStep::Purge(from, to) => {
                let removal = Removal::purge(Lpn(from)..Lpn(to));
                let gone = removed(history, removal, self.written);
                prop_assert_eq!(gone, model.purge(from as usize..to as usize));
            }
            HistoryStep::Forget(ago) => {
                let to = self.now.saturating_sub(ago);
                let (removal, ended) = history.begin_to_forget(to);
                let gone = removed(history, removal, self.written);
                prop_assert_eq!((ended, gone), model.forget(to));
            }
            HistoryStep::ApplySchedule => {
                let gone = lost(|mut drop| history.apply_schedule(self.now, &mut drop));
                prop_assert_eq!(gone, model.apply_schedule(self.now));
            }
            HistoryStep::Expire => {
                let mut expired = None;
                let gone = lost(|mut drop| expired = history.expire_oldest(&mut drop));
                prop_assert_eq!(
                    expired.map(|instant| (instant, gone)),
                    model.expire_oldest()
                );
            }
            HistoryStep::Reopen => {
                let none = History::new(&self.tables, PAGES, self.options.clone());
                let (at, of) = std::mem::replace(history, none).into_tables();
                *history = History::of_tables(&self.tables, self.options.clone(), &at, of);
            }
        }
        Ok(())
    }

    /// Advances to where so many entries go.
    fn free(&mut self, entries: usize) -> Result<(), TestCaseError> {
        let before = self.history.len();
        let to = self.history.stamp_to_drop(entries);
        prop_assert_eq!(to, self.model.stamp_to_drop(entries));
        let Some(to) = to else {
            return Ok(());
        };
        let gone = lost(|mut drop| self.history.advance(to, &mut drop));
        prop_assert_eq!(gone, self.model.advance(to));
        prop_assert!(self.history.len() < before);
        Ok(())
    }

    /// Everything that can be asked is answered alike.
    fn compare(&self) -> Result<(), TestCaseError> {
        let (history, model) = (&self.history, &self.model);
        history.check().map_err(TestCaseError::fail)?;
        prop_assert_eq!(history.oldest(), model.oldest());
        prop_assert_eq!(history.len(), model.len());
        prop_assert!(history.pinned().eq(model.pinned()));
        prop_assert!(history.snapshots().eq(model.snapshots().iter().copied()));
        let mut objects: Vec<u32> = history.objects().map(|object| object.0).collect();
        objects.sort_unstable();
        prop_assert_eq!(objects, model.objects());
        for instant in 0..self.now + 6 {
            for lpn in 0..PAGES {
                let version = history.at(Lpn(lpn), instant).ok();
                let expected = model.at(lpn as usize, instant);
                prop_assert_eq!(version, expected.map(version_of), "{} at {}", lpn, instant);
            }
            prop_assert_eq!(changed(history, instant), expected_changes(model, instant));
        }
        Ok(())
    }
}

fn version_of(version: Option<Option<u32>>) -> Version {
    match version.map(|named| named.map(ObjectId)) {
        None => Version::Current,
        Some(None) => Version::Nothing,
        Some(Some(PURGED)) => Version::Purged,
        Some(Some(object)) => Version::Object(object),
    }
}

/// The pages the store tells of, with what they held then.
fn changed<S: Tables>(history: &History<S>, instant: u64) -> Option<BTreeMap<u32, Version>> {
    let changed = history.changed_since(instant).ok()?;
    let at = |lpn: Lpn| (lpn.0, history.at(lpn, instant).unwrap());
    let pages: BTreeMap<u32, Version> = changed.iter().map(at).collect();
    assert_eq!(pages.len() as u64, changed.len());
    let purged = history.purged_since(instant).unwrap();
    let is_purged = |lpn: u32| pages.get(&lpn) == Some(&Version::Purged);
    assert!((0..PAGES).all(|lpn| purged.contains(Lpn(lpn)) == is_purged(lpn)));
    Some(pages)
}

fn expected_changes(model: &HistoryModel, instant: u64) -> Option<BTreeMap<u32, Version>> {
    let changed = model.changed_since(instant)?.into_iter();
    Some(
        changed
            .map(|(lpn, object)| (lpn, version_of(Some(object))))
            .collect(),
    )
}

/// Rows of a ring in which what so many steps record finds room.
const RING: usize = 256;

/// An empty queue whose first entry will have this number.
fn numbered(number: u32) -> QueueAt {
    QueueAt {
        first: EntryNumber(number),
        ..QueueAt::default()
    }
}

fn equals_a_list_of_versions(
    mut pair: Pair<impl Tables>,
    steps: Vec<HistoryStep>,
) -> Result<(), TestCaseError> {
    for step in steps {
        pair.step(step)?;
        pair.compare()?;
    }
    // Every reference is given up once: what is held now goes when nothing is wanted any more.
    let snapshots: Vec<u64> = pair.history.snapshots().collect();
    let mut left: Vec<u32> = pair.history.objects().map(|object| object.0).collect();
    left.sort_unstable();
    let gone = lost(|mut drop| {
        pair.history.advance(pair.now, &mut drop);
        for instant in snapshots {
            pair.history.delete_snapshot(instant, &mut drop);
        }
        while pair.history.expire_oldest(&mut drop).is_some() {}
    });
    prop_assert_eq!(gone, left);
    prop_assert!(pair.history.is_empty());
    pair.history.check().map_err(TestCaseError::fail)
}

proptest! {
    #[test]
    fn the_store_equals_a_list_of_versions(steps in steps(), tiers in tiers(), start in 0..60u32) {
        // The numbers of the entries run over in the middle of the test.
        let pair = Pair::new(InMemory, tiers, numbered(start.wrapping_neg()));
        equals_a_list_of_versions(pair, steps)?;
    }

    #[test]
    fn in_rings_it_does_too(steps in steps(), tiers in tiers(), start in 0..60u32) {
        // So do their rows.
        let at = QueueAt { row: RING as u32 - 1 - start, ..numbered(start.wrapping_neg()) };
        let pair = Pair::new(Rings(RING), tiers, at);
        equals_a_list_of_versions(pair, steps)?;
    }
}
