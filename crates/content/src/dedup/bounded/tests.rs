//! The index against a list for each set, and what it promises by name.

use std::collections::HashMap;

use flashlore_flash::ObjectId;
use proptest::prelude::*;

use super::pages::AsOf;
use super::runs::{RUNS, WINDOW};
use super::set::{EntrySet, RECENT, SET_BYTES, WAYS};
use super::{BESIDE_SETS, BoundedCounters, BoundedIndex, WORD_BYTES};
use crate::bytes::VolumeKey;

const KEY: VolumeKey = VolumeKey([7; 32]);
const PAGE_BYTES: usize = 256;

/// The budget of so many sets.
fn budget(sets: usize) -> u64 {
    (BESIDE_SETS + WORD_BYTES + sets * SET_BYTES) as u64
}

fn index(sets: usize) -> BoundedIndex {
    BoundedIndex::new(budget(sets))
}

/// What SplitMix64 makes of a number, written from the paper.
fn spread(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^ (z >> 31)
}

/// The reference model: a list for each set and for each window, all the newest first.
#[derive(Clone)]
struct Model {
    sets: Vec<Vec<(u16, u32)>>,
    evicted: Vec<bool>,
    runs: Vec<Vec<(u32, u32)>>,
    counters: BoundedCounters,
}

impl Model {
    fn new(sets: usize) -> Model {
        Model {
            sets: vec![Vec::new(); sets],
            evicted: vec![false; sets],
            runs: vec![Vec::new(); RUNS],
            counters: BoundedCounters::default(),
        }
    }

    fn place(&self, fingerprint: u64) -> (usize, u16, u32) {
        let spread = spread(fingerprint);
        let set = (u128::from(spread >> 32) * self.sets.len() as u128) >> 32;
        (set as usize, (spread % 1024) as u16, spread as u32)
    }

    fn find(&self, fingerprint: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        if self.sets.is_empty() {
            return None;
        }
        let (set, tag, run_tag) = self.place(fingerprint);
        let neighbours = self.runs.iter().flatten();
        let neighbours = neighbours.filter(|(found, _)| *found == run_tag);
        let neighbours = neighbours.map(|(_, object)| *object);
        let entries = self.sets[set].iter().filter(|(found, _)| *found == tag);
        let mut all = neighbours.chain(entries.map(|(_, object)| *object));
        all.find(|object| is(*object))
    }

    fn run_of(&self, run_tag: u32, object: u32) -> Option<(usize, usize)> {
        self.runs.iter().enumerate().find_map(|(run, list)| {
            let at = list.iter().position(|entry| *entry == (run_tag, object))?;
            Some((run, at))
        })
    }

    fn touch(&mut self, fingerprint: u64, object: u32) -> bool {
        if self.sets.is_empty() {
            return false;
        }
        let (set, _, run_tag) = self.place(fingerprint);
        if let Some((run, at)) = self.run_of(run_tag, object) {
            self.counters.run_hits += 1;
            let list = self.runs.remove(run);
            self.runs.insert(0, list);
            return at >= WINDOW / 2;
        }
        self.counters.hits += 1;
        let list = &mut self.sets[set];
        if let Some(at) = list.iter().position(|(_, found)| *found == object) {
            let entry = list.remove(at);
            list.insert(0, entry);
        }
        true
    }

    fn follow(&mut self, fingerprint: u64, object: u32, neighbours: &[(u64, ObjectId)]) {
        if self.sets.is_empty() {
            return;
        }
        self.counters.windows += 1;
        let (_, _, run_tag) = self.place(fingerprint);
        let run = self.run_of(run_tag, object);
        self.runs.remove(run.map_or(RUNS - 1, |(run, _)| run));
        let list = neighbours.iter().take(WINDOW);
        let list = list.map(|(fingerprint, object)| (spread(*fingerprint) as u32, object.0));
        self.runs.insert(0, list.collect());
    }

    fn missed(&mut self, fingerprint: u64) {
        let is_doubtful = self.sets.is_empty() || self.evicted[self.place(fingerprint).0];
        self.counters.misses += 1;
        self.counters.doubtful_misses += u64::from(is_doubtful);
    }

    /// Gives up the entry of the highest rank but for the newest ones.
    fn limit(&mut self, set: usize) {
        let list = &mut self.sets[set];
        if list.len() > WAYS {
            let rank = |at: &usize| u64::from(list[*at].1) * 0x9E37_79B9 % (1 << 32);
            let highest = (RECENT..list.len()).max_by_key(rank).unwrap();
            list.remove(highest);
            self.evicted[set] = true;
            self.counters.evictions += 1;
        }
    }

    fn insert(&mut self, fingerprint: u64, object: u32) {
        if self.sets.is_empty() {
            return;
        }
        let (set, tag, _) = self.place(fingerprint);
        self.sets[set].retain(|(_, found)| *found != object);
        self.sets[set].insert(0, (tag, object));
        self.limit(set);
    }

    fn refill(&mut self, fingerprint: u64, object: u32) {
        if self.sets.is_empty() {
            return;
        }
        let (set, tag, _) = self.place(fingerprint);
        if self.sets[set].iter().all(|(_, found)| *found != object) {
            self.sets[set].push((tag, object));
            self.limit(set);
        }
    }

    fn remove(&mut self, fingerprint: u64, object: u32) -> bool {
        if self.sets.is_empty() {
            return false;
        }
        let (set, tag, _) = self.place(fingerprint);
        let before = self.sets[set].len();
        self.sets[set].retain(|entry| *entry != (tag, object));
        self.sets[set].len() < before
    }

    fn resize(&mut self, sets: usize, fingerprint: impl Fn(u32) -> Option<u64>) {
        let mut resized = Model::new(sets);
        for at in 0..WAYS {
            for (set, list) in self.sets.iter().enumerate() {
                let Some(&(tag, object)) = list.get(at) else {
                    continue;
                };
                let known = fingerprint(object);
                if let Some(known) = known.filter(|known| {
                    let home = self.place(*known);
                    (home.0, home.1) == (set, tag)
                }) {
                    resized.refill(known, object);
                }
            }
        }
        // Sets as ranges of fingerprints: those that share one.
        let old = self.sets.len();
        for set in 0..sets {
            let shares =
                |other: &usize| other * sets < (set + 1) * old && set * old < (other + 1) * sets;
            resized.evicted[set] |=
                old == 0 || (0..old).filter(shares).any(|other| self.evicted[other]);
        }
        self.counters.evictions += resized.counters.evictions;
        resized.counters = self.counters;
        *self = resized;
    }

    fn len(&self) -> u64 {
        self.sets.iter().map(|list| list.len() as u64).sum()
    }
}

/// Demands that an index is what the model is.
fn compare(index: &BoundedIndex, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(index.check(), Ok(()));
    prop_assert_eq!(index.len(), model.len());
    prop_assert_eq!(index.counters(), model.counters);
    for (number, (set, list)) in index.sets.iter().zip(&model.sets).enumerate() {
        let entries = (0..WAYS).filter_map(|at| set.entry(at));
        let entries: Vec<_> = entries.map(|(tag, object)| (tag, object.0)).collect();
        prop_assert_eq!(&entries, list, "set {}", number);
        prop_assert_eq!(set.has_evicted(), model.evicted[number], "set {}", number);
    }
    Ok(())
}

/// The same entries in another index, through pages.
fn through_pages(index: &BoundedIndex) -> BoundedIndex {
    let mut read = BoundedIndex::new(index.budget());
    let mut page = [0; PAGE_BYTES];
    for number in 0..index.pages(PAGE_BYTES) {
        index.write_page(&KEY, number, &mut page);
        assert!(read.read_page(&KEY, number, &page, u32::MAX));
    }
    read
}

#[derive(Debug, Clone)]
enum Action {
    /// A write of a content, which gets a handle if it is not found.
    Write(u64, u32),
    Die(u32),
    /// An object dies and the index is not told.
    DieUnheard(u32),
    Refill(u32),
    /// The program ends and begins anew.
    Restart,
    /// A crash: the index is empty.
    Crash,
    Resize(usize),
}

const HANDLES: u32 = 160;

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        40 => (0u64..120, 0..HANDLES).prop_map(|(content, handle)| Action::Write(content, handle)),
        6 => (0..HANDLES).prop_map(Action::Die),
        3 => (0..HANDLES).prop_map(Action::DieUnheard),
        10 => (0..HANDLES).prop_map(Action::Refill),
        1 => Just(Action::Restart),
        1 => Just(Action::Crash),
        1 => (0usize..9).prop_map(Action::Resize),
    ]
}

/// Runs a history on the index and on the model.
fn run(sets: usize, actions: &[Action]) -> Result<(), TestCaseError> {
    let mut index = index(sets);
    let mut model = Model::new(sets);
    // By handle: what it holds.
    let mut objects: Vec<Option<u64>> = vec![None; HANDLES as usize];
    for action in actions {
        match *action {
            Action::Write(content, handle) => {
                let found = index.find(content, |object| objects[object.index()] == Some(content));
                let expected =
                    model.find(content, |object| objects[object as usize] == Some(content));
                prop_assert_eq!(found, expected.map(ObjectId));
                if let Some(object) = found {
                    let wanted = index.touch(content, object);
                    prop_assert_eq!(wanted, model.touch(content, object.0));
                    if wanted {
                        let neighbours = (object.0 + 1..HANDLES)
                            .filter_map(|next| Some((objects[next as usize]?, ObjectId(next))));
                        let neighbours: Vec<_> = neighbours.collect();
                        index.follow(content, object, neighbours.iter().copied());
                        model.follow(content, object.0, &neighbours);
                    }
                } else {
                    index.missed(content);
                    model.missed(content);
                    if let Some(before) = objects[handle as usize].replace(content) {
                        let removed = index.remove(before, ObjectId(handle));
                        prop_assert_eq!(removed, model.remove(before, handle));
                    }
                    index.insert(content, ObjectId(handle));
                    model.insert(content, handle);
                }
            }
            Action::Die(handle) => {
                if let Some(content) = objects[handle as usize].take() {
                    let removed = index.remove(content, ObjectId(handle));
                    prop_assert_eq!(removed, model.remove(content, handle));
                }
            }
            Action::DieUnheard(handle) => objects[handle as usize] = None,
            Action::Refill(handle) => {
                if let Some(content) = objects[handle as usize] {
                    index.refill(content, ObjectId(handle));
                    model.refill(content, handle);
                }
            }
            Action::Restart => {
                index = through_pages(&index);
                model.counters = BoundedCounters::default();
                model.runs = vec![Vec::new(); RUNS];
            }
            Action::Crash => {
                index = BoundedIndex::new(index.budget());
                model = Model::new(model.sets.len());
            }
            Action::Resize(sets) => {
                index.resize(budget(sets), |object| objects[object.index()]);
                model.resize(sets, |object| objects[object as usize]);
            }
        }
        compare(&index, &model)?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn it_is_a_list_for_each_set(
        sets in 1usize..6,
        actions in prop::collection::vec(action(), 1..400),
    ) {
        run(sets, &actions)?;
    }

    #[test]
    fn pages_of_any_bytes_are_read(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        number in 0u64..40,
        is_signed: bool,
    ) {
        let mut index = index(8);
        let mut bytes = bytes;
        // The right head, and anything behind it.
        if is_signed && bytes.len() >= 32 {
            bytes[8..16].copy_from_slice(&super::pages::MAGIC.to_le_bytes());
            bytes[16..20].copy_from_slice(&8u32.to_le_bytes());
            let checksum = KEY.checksum(number, &[&bytes[8..]]);
            bytes[..8].copy_from_slice(&checksum.to_le_bytes());
        }
        let read = index.read_page(&KEY, number, &bytes, 1 << 31);
        let is_zero = bytes.iter().all(|&byte| byte == 0);
        prop_assert!(is_signed || !read || is_zero);
        prop_assert_eq!(index.check(), Ok(()));
        for set in index.sets.iter() {
            let entries = (0..WAYS).filter_map(|at| set.entry(at));
            prop_assert!(entries.into_iter().all(|(_, object)| object.0 < 1 << 31));
        }
    }
}

/// An index with objects 0, 1, 2, ... of contents of the same numbers.
fn filled(sets: usize, objects: u32) -> BoundedIndex {
    let mut index = index(sets);
    for object in 0..objects {
        index.insert(object.into(), ObjectId(object));
    }
    index
}

/// How many of so many contents are found.
fn found(index: &BoundedIndex, objects: u32) -> usize {
    let found = (0..objects).filter(|&content| {
        index
            .find(content.into(), |object| object.0 == content)
            .is_some()
    });
    found.count()
}

#[test]
fn a_clean_end_keeps_everything() {
    let mut index = filled(40, 1_000);
    assert!(index.counters().evictions > 0);
    let read = through_pages(&index);
    assert_eq!(*read.sets, *index.sets);
    assert_eq!(read.len(), index.len());
    assert_eq!(read.check(), Ok(()));
    // Whatever the size of a page, the last one included.
    for page_bytes in [96, 160, 512, 4096] {
        let mut read = BoundedIndex::new(index.budget());
        for number in 0..index.pages(page_bytes) {
            let mut page = vec![1; page_bytes];
            index.write_page(&KEY, number, &mut page);
            assert!(read.read_page(&KEY, number, &page, 1_000));
        }
        assert_eq!((*read.sets == *index.sets, read.len()), (true, index.len()));
        let pages = BoundedIndex::pages_within(index.budget(), page_bytes);
        assert_eq!(pages, index.pages(page_bytes));
    }
    // Reading what is there already changes nothing.
    let before = index.sets.clone();
    let mut page = [0; PAGE_BYTES];
    for number in 0..index.pages(PAGE_BYTES) {
        index.write_page(&KEY, number, &mut page);
        index.read_page(&KEY, number, &page, 1_000);
    }
    assert_eq!(*index.sets, *before);
    assert_eq!(index.check(), Ok(()));
}

/// The pages of an index as they would be written now.
fn pages_of(index: &BoundedIndex) -> Vec<[u8; PAGE_BYTES]> {
    let mut pages = vec![[1; PAGE_BYTES]; index.pages(PAGE_BYTES) as usize];
    for (number, page) in (0..).zip(&mut pages) {
        index.write_page(&KEY, number, page);
    }
    pages
}

proptest! {
    /// What does not count as changed is as it was read.
    #[test]
    fn pages_that_are_not_as_they_were_read_count_as_changed(
        before in prop::collection::vec((0u64..300, 0u32..100), 0..60),
        meanwhile in prop::collection::vec((0u64..300, 0u32..100), 0..4),
        after in prop::collection::vec((0u64..300, 0u32..100, 0..5), 0..6),
        broken in prop::option::of(0usize..40),
        handles in prop_oneof![Just(u32::MAX), Just(50)],
    ) {
        let mut first = index(100);
        before.iter().for_each(|&(content, object)| first.insert(content, ObjectId(object)));
        let mut stored = pages_of(&first);
        if let Some(page) = stored.get_mut(broken.unwrap_or(usize::MAX)) {
            page[20] ^= 1;
        }
        let mut read = index(100);
        meanwhile.iter().for_each(|&(content, object)| read.insert(content, ObjectId(object)));
        for (number, page) in (0..).zip(&stored) {
            let holds = read.read_page(&KEY, number, page, handles);
            prop_assert_eq!(holds, Some(number as usize) != broken);
        }
        if meanwhile.is_empty() && broken.is_none() {
            let changed = (0..read.pages(PAGE_BYTES)).filter(|&page| read.is_changed(page, PAGE_BYTES));
            prop_assert_eq!(changed.count(), 0);
        }
        for &(content, object, how) in &after {
            let object = ObjectId(object);
            match how {
                0 => read.insert(content, object),
                1 => read.refill(content, object),
                2 => _ = read.touch(content, object),
                3 => _ = read.remove(content, object),
                _ => _ = read.find(content, |_| true),
            }
        }
        let now = pages_of(&read);
        for (number, (stored, now)) in stored.iter().zip(&now).enumerate() {
            // Entries of handles that there are not stay on the medium, where they are left out again.
            let is_same = stored == now || handles == 50 && broken != Some(number);
            prop_assert!(read.is_changed(number as u64, PAGE_BYTES) || is_same, "page {}", number);
        }
        read.forget_pages();
        prop_assert!((0..read.pages(PAGE_BYTES)).all(|page| read.is_changed(page, PAGE_BYTES)));
    }
}

#[test]
fn a_head_says_what_pages_are_as_of() {
    const AS_OF: AsOf = AsOf {
        state: 0x0123_4567_89ab_cdef,
        entered: 0xfedc_ba98,
    };
    let index = filled(8, 90);
    let mut head = [1; PAGE_BYTES];
    index.write_head(&KEY, AS_OF, &mut head);
    assert_eq!(index.read_head(&KEY, &head), Some(AS_OF));
    assert_eq!(self::index(9).read_head(&KEY, &head), None);
    assert_eq!(index.read_head(&VolumeKey([8; 32]), &head), None);
    assert_eq!(index.read_head(&KEY, &[0; PAGE_BYTES]), None);
    assert_eq!(index.read_head(&KEY, &head[..PAGE_BYTES - 1]), None);
    assert_eq!(index.read_head(&KEY, &[]), None);
    for bit in 0..PAGE_BYTES * 8 {
        let mut damaged = head;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(index.read_head(&KEY, &damaged), None, "bit {bit}");
    }
    // A page of sets is none, nor is it a page of sets.
    let mut page = [0; PAGE_BYTES];
    index.write_page(&KEY, 0, &mut page);
    assert_eq!(index.read_head(&KEY, &page), None);
    assert!(!self::index(8).read_page(&KEY, 0, &head, 1_000));
}

#[test]
fn an_empty_index_is_pages_of_zeros() {
    let index = index(8);
    assert!(pages_of(&index).iter().all(|page| *page == [0; PAGE_BYTES]));
    let mut read = filled(8, 90);
    let before = read.sets.clone();
    assert!(read.read_page(&KEY, 1, &[0; PAGE_BYTES], 1_000));
    assert_eq!(*read.sets, *before);
    // Behind the last page there is none.
    assert!(!read.read_page(&KEY, 9, &[0; PAGE_BYTES], 1_000));
    // One that is full no more says so.
    let mut emptied = filled(1, 100);
    for object in 0..100 {
        emptied.remove(object.into(), ObjectId(object));
    }
    assert!(emptied.is_empty() && pages_of(&emptied)[0] != [0; PAGE_BYTES]);
}

#[test]
fn pages_read_while_it_serves_are_older_than_what_is_there() {
    let written = filled(1, 12);
    let mut page = [0; PAGE_BYTES];
    written.write_page(&KEY, 0, &mut page);
    let mut index = index(1);
    for object in 100..100 + RECENT as u32 {
        index.insert(object.into(), ObjectId(object));
    }
    assert!(index.read_page(&KEY, 0, &page, 1_000));
    for object in 100..100 + RECENT as u64 {
        assert!(
            index
                .find(object, |found| u64::from(found.0) == object)
                .is_some()
        );
    }
    assert_eq!(found(&index, 12), WAYS - RECENT);
}

#[test]
fn garbage_pages_are_ignored() {
    let index = filled(8, 90);
    let mut page = [0; PAGE_BYTES];
    index.write_page(&KEY, 1, &mut page);
    let read = |number, page: &[u8], key: &VolumeKey, sets| {
        let mut read = self::index(sets);
        let answer = read.read_page(key, number, page, 1_000);
        assert_eq!(answer, !read.is_empty());
        answer
    };
    assert!(read(1, &page, &KEY, 8));
    // Of another place, volume or size.
    assert!(!read(0, &page, &KEY, 8));
    assert!(!read(1, &page, &VolumeKey([8; 32]), 8));
    assert!(!read(1, &page, &KEY, 9));
    assert!(!read(u64::MAX, &page, &KEY, 8));
    // Cut short, empty, or one bit wrong.
    for len in 0..PAGE_BYTES {
        assert!(!read(1, &page[..len], &KEY, 8));
    }
    for bit in 0..PAGE_BYTES * 8 {
        let mut damaged = page;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(!read(1, &damaged, &KEY, 8), "bit {bit}");
    }
    // A page of something else that has the same key.
    let mut other = page;
    other[8] ^= 1;
    let checksum = KEY.checksum(1, &[&other[8..]]);
    other[..8].copy_from_slice(&checksum.to_le_bytes());
    assert!(!read(1, &other, &KEY, 8));
    // A page that there is not is zeros.
    index.write_page(&KEY, index.pages(PAGE_BYTES), &mut page);
    assert_eq!(page, [0; PAGE_BYTES]);
}

#[test]
fn entries_of_handles_that_there_are_not_are_left_out() {
    let index = filled(8, 90);
    let mut read = self::index(8);
    let mut page = [0; PAGE_BYTES];
    for number in 0..index.pages(PAGE_BYTES) {
        index.write_page(&KEY, number, &mut page);
        read.read_page(&KEY, number, &page, 30);
    }
    assert_eq!(found(&read, 90), found(&index, 30));
    assert_eq!(read.len(), found(&index, 30) as u64);
    assert_eq!(read.check(), Ok(()));
}

#[test]
fn stale_entries_are_harmless() {
    // Every object died unheard, and every handle has another content now.
    let mut index = filled(8, 90);
    let content = |object: ObjectId| u64::from(object.0) + 1_000;
    let mut shared = 0;
    for write in 0..4_000 {
        let asked = write % 1_090;
        if let Some(object) = index.find(asked, |object| content(object) == asked) {
            assert_eq!(content(object), asked);
            shared += 1;
            if index.touch(asked, object) {
                let neighbours = (1..40).map(|distance| {
                    let next = ObjectId(object.0 + distance);
                    (content(next), next)
                });
                index.follow(asked, object, neighbours);
            }
        } else if let Some(object) = asked.checked_sub(1_000) {
            index.missed(asked);
            index.insert(asked, ObjectId(object as u32));
        }
        assert_eq!(index.check(), Ok(()));
    }
    assert!(shared > 0);
    // A handle has one entry in a set, that of its last content.
    let mut one = self::index(1);
    one.insert(1, ObjectId(5));
    one.insert(2, ObjectId(5));
    assert_eq!((one.len(), one.find(1, |_| true)), (1, None));
    assert_eq!(one.find(2, |_| true), Some(ObjectId(5)));
    // What is removed under another fingerprint stays.
    assert!(!one.remove(1, ObjectId(5)));
    assert!(one.remove(2, ObjectId(5)));
    assert!(one.is_empty());
}

#[test]
fn a_smaller_budget_keeps_the_newest() {
    let known = |object: ObjectId| Some(u64::from(object.0));
    let mut index = filled(16, 100);
    let all = found(&index, 100);
    index.resize(budget(8), known);
    assert_eq!(index.check(), Ok(()));
    assert!(index.len() <= 8 * WAYS as u64);
    assert_eq!(found(&index, 100) as u64, index.len());
    // The last one inserted into each set is still there.
    let full = filled(16, 100);
    for set in full.sets.iter() {
        let (_, newest) = set.entry(0).unwrap();
        assert!(
            index
                .find(newest.0.into(), |found| found == newest)
                .is_some()
        );
    }
    // More room loses nothing, and what does not come back is told.
    let some = found(&index, 100);
    index.resize(budget(64), known);
    assert_eq!((found(&index, 100), index.check()), (some, Ok(())));
    assert!(some <= all);
    for object in 0..100 {
        index.refill(object.into(), ObjectId(object));
    }
    assert_eq!(found(&index, 100), 100);
    // Objects whose content is not at hand lose their entries, and so do stale ones.
    index.resize(budget(64), |object| {
        known(object).filter(|content| content % 2 == 0)
    });
    assert_eq!(found(&index, 100), 50);
    index.resize(budget(64), |object| Some(u64::from(object.0) + 1));
    assert!(index.len() < 5, "a tag agrees by chance: {}", index.len());
    // Nothing, and back.
    index.resize(0, known);
    assert_eq!((index.len(), index.check()), (0, Ok(())));
    index.resize(budget(4), known);
    index.insert(1, ObjectId(1));
    index.missed(2);
    assert_eq!(index.counters().doubtful_misses, 1);
}

#[test]
fn a_budget_of_nothing_keeps_nothing() {
    for bytes in [0, 1, SET_BYTES as u64, budget(1) - 1] {
        let mut index = BoundedIndex::new(bytes);
        index.prefetch(1);
        index.insert(1, ObjectId(1));
        index.refill(2, ObjectId(2));
        index.follow(1, ObjectId(1), [(2, ObjectId(2))]);
        assert!(!index.touch(1, ObjectId(1)));
        assert!(!index.remove(1, ObjectId(1)));
        assert_eq!(index.find(1, |_| true), None);
        assert_eq!(index.find(2, |_| true), None);
        index.missed(1);
        assert_eq!(index.counters().doubtful_misses, 1);
        assert_eq!((index.capacity(), index.heap_bytes()), (0, 0));
        assert_eq!(index.pages(4096), 0);
        assert!(!index.read_page(&KEY, 0, &[0; 4096], 9));
        let mut page = [1; 4096];
        index.write_page(&KEY, 0, &mut page);
        assert_eq!(page, [0; 4096]);
        assert_eq!(index.check(), Ok(()));
        assert_eq!(index.coverage(10).share(), 0.0);
    }
}

#[test]
fn memory_keeps_the_budget() {
    for bytes in (0..20_000).step_by(37) {
        let mut index = BoundedIndex::new(bytes);
        for object in 0..1_000 {
            index.insert(object.into(), ObjectId(object));
        }
        assert_eq!(index.check(), Ok(()));
        assert!(index.heap_bytes() as u64 <= bytes);
        assert!(bytes < budget(1) || bytes - index.heap_bytes() as u64 <= SET_BYTES as u64);
    }
}

/// Writes so many contents in turn, so many times; the objects are as many. How many writes were found.
fn scans(index: &mut BoundedIndex, contents: u32, times: u32) -> u32 {
    let mut stored = HashMap::new();
    let mut order = Vec::new();
    let mut hits = 0;
    for write in 0..contents * times {
        let content = u64::from(write % contents);
        let is = |object: ObjectId| order.get(object.index()) == Some(&content);
        let found = index.find(content, is);
        let Some(object) = found else {
            index.missed(content);
            let object = ObjectId(order.len() as u32);
            stored.insert(content, object);
            order.push(content);
            index.insert(content, object);
            continue;
        };
        hits += 1;
        if index.touch(content, object) {
            let next = order.iter().enumerate().skip(object.index() + 1);
            let next = next.map(|(handle, &content)| (content, ObjectId(handle as u32)));
            index.follow(content, object, next);
        }
    }
    hits
}

#[test]
fn scans_longer_than_the_index_are_found() {
    // 16 times as many contents as entries: an LRU finds none, a sample of its size one of 16.
    let mut index = index(100);
    let contents = 16 * index.capacity() as u32;
    let hits = scans(&mut index, contents, 5);
    let most = contents * 4;
    assert!(hits * 100 >= most * 99, "{hits} of {most}");
    let counters = index.counters();
    assert!(counters.run_hits > counters.hits * 10, "{counters:?}");
    assert_eq!(counters.hits + counters.run_hits, u64::from(hits));
    assert_eq!(index.check(), Ok(()));
    // Without windows of neighbours: the sample.
    let mut index = self::index(100);
    for round in 0..2 {
        for content in 0..contents {
            let found = index.find(content.into(), |object| object.0 == content);
            assert!(round == 1 || found.is_none());
            if round == 0 {
                index.insert(content.into(), ObjectId(content));
            }
        }
    }
    assert_eq!(found(&index, contents), 100 * WAYS);
}

#[test]
fn several_scans_at_a_time_are_found() {
    let mut index = index(20);
    let contents = 2_000u64;
    for content in 0..contents {
        index.insert(content, ObjectId(content as u32));
    }
    let mut hits = 0;
    for content in 0..contents {
        for scan in 0..RUNS as u64 {
            let content = (content + scan * 200) % contents;
            let found = index.find(content, |object| u64::from(object.0) == content);
            hits += u64::from(found.is_some());
            if let Some(object) = found.filter(|&object| index.touch(content, object)) {
                let next = (content + 1..contents).map(|next| (next, ObjectId(next as u32)));
                index.follow(content, object, next);
            }
        }
    }
    let most = contents * RUNS as u64;
    assert!(hits * 100 >= most * 97, "{hits} of {most}");
}

#[test]
fn it_can_be_refilled_in_any_order() {
    let objects = 3_000;
    let in_order = |order: &dyn Fn(u32) -> u32| {
        let mut index = index(40);
        for step in 0..objects {
            let object = order(step);
            index.refill(object.into(), ObjectId(object));
            // Again changes nothing.
            index.refill(object.into(), ObjectId(object));
        }
        assert_eq!(index.check(), Ok(()));
        let kept = (0..objects).filter(|&content| {
            index
                .find(content.into(), |object| object.0 == content)
                .is_some()
        });
        kept.collect::<Vec<_>>()
    };
    let up = in_order(&|step| step);
    let down = in_order(&|step| objects - 1 - step);
    let mixed = in_order(&|step| (step * 1_021 + 7) % objects);
    assert_eq!(up.len(), 40 * WAYS);
    // But for the first few of each set, which are its newest, they are the same sample.
    let common = |other: &[u32]| up.iter().filter(|object| other.contains(object)).count();
    assert!(
        common(&down) >= 40 * (WAYS - RECENT - 2),
        "{}",
        common(&down)
    );
    assert!(
        common(&mixed) >= 40 * (WAYS - RECENT - 2),
        "{}",
        common(&mixed)
    );
}

#[test]
fn the_sample_is_even() {
    let index = filled(100, 4_800);
    let kept: Vec<u32> = (0..4_800)
        .filter(|&content| {
            index
                .find(content.into(), |object| object.0 == content)
                .is_some()
        })
        .collect();
    assert_eq!(kept.len(), 1_200);
    let gaps = kept.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.max() <= Some(40));
}

#[test]
fn misses_are_doubtful_where_entries_left() {
    let mut index = index(2);
    let count = |index: &mut BoundedIndex, content| {
        let before = index.counters().doubtful_misses;
        index.missed(content);
        index.counters().doubtful_misses - before
    };
    assert_eq!(count(&mut index, 1), 0);
    let set_of = |content: u64| spread(content) >> 63;
    let crowd = (0..)
        .filter(|&content| set_of(content) == set_of(1))
        .take(WAYS + 1);
    for content in crowd {
        index.insert(content, ObjectId(content as u32));
    }
    assert_eq!(index.counters().evictions, 1);
    assert_eq!(count(&mut index, 1), 1);
    let other = (0..).find(|&content| set_of(content) != set_of(1)).unwrap();
    assert_eq!(count(&mut index, other), 0);
    // It stays known through a clean end.
    let mut read = through_pages(&index);
    assert_eq!((count(&mut read, 1), count(&mut read, other)), (1, 0));
    // After a crash any miss is doubtful until all is refilled.
    read.set_incomplete(true);
    assert_eq!((read.is_incomplete(), count(&mut read, other)), (true, 1));
    read.set_incomplete(false);
    assert_eq!(count(&mut read, other), 0);
}

#[test]
fn coverage_is_a_share_of_what_is_stored() {
    let index = filled(10, 60);
    let coverage = index.coverage(120);
    assert_eq!((coverage.entries, coverage.capacity), (60, 120));
    assert_eq!(coverage.share(), 0.5);
    assert_eq!(index.coverage(10).share(), 1.0);
    assert_eq!(index.coverage(0).share(), 1.0);
}

#[test]
fn what_names_nothing_is_not_entered() {
    let mut index = index(1);
    index.insert(1, ObjectId::NONE);
    index.refill(1, ObjectId::NONE);
    index.follow(1, ObjectId(1), [(2, ObjectId::NONE)]);
    assert!(index.is_empty());
    assert_eq!(index.find(1, |_| true), None);
    assert_eq!(index.find(2, |_| true), None);
}

#[test]
fn a_set_is_a_line_of_the_cache() {
    assert_eq!((size_of::<EntrySet>(), align_of::<EntrySet>()), (64, 64));
}
