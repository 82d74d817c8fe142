//! The signature index: which stored object resembles a page.
//!
//! An entry is an object and its sketch. Each super-feature has a table of its own, set associative: the bucket
//! that a super-feature belongs to names [`WAYS`] entries, the one entered last first. Of a super-feature that
//! many pages have, the oldest lose their place; an entry without any place is gone. When all entries are taken,
//! a clock decides which one goes: its hand passes over those that were of use since it came by.
//!
//! The index keeps nothing alive. Whoever owns the objects removes those that die.
//!
//! Invariants: an entry has as many places as it counts, at least one, each in the bucket of its super-feature;
//! a bucket has no gap before an entry; an object has at most one entry; at most `capacity` entries.

use super::{SUPER_FEATURES, Sketch};
use std::fmt;

/// Entries that a bucket names.
pub const WAYS: usize = 4;

/// Places for each entry, in halves: buckets that nobody asked for stay empty.
const PLACES_FOR_TWO: usize = 3;

/// Nothing: places and objects name entries by their number plus 1, so that memory of zeros is an empty table.
const NONE: u32 = 0;

/// An entry of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexEntryId(u32);

impl IndexEntryId {
    #[inline(always)]
    fn index(self) -> usize {
        self.0 as usize
    }

    /// How places and objects name it.
    #[inline(always)]
    fn name(self) -> u32 {
        self.0 + 1
    }

    /// The entry that a place or an object names, if it names any.
    #[inline(always)]
    fn named(name: u32) -> Option<Self> {
        (name != NONE).then(|| IndexEntryId(name - 1))
    }
}

#[derive(Debug, Clone, Copy)]
struct IndexEntry<K> {
    object: K,
    sketch: Sketch,
    /// Tables in which it has a place; 0 if the entry is free.
    places: u8,
    /// Whether it was of use since the hand came by.
    used: bool,
}

/// What an index can name: a small number.
pub trait Name: Copy + Eq + fmt::Display + Into<u64> {}

impl<K: Copy + Eq + fmt::Display + Into<u64>> Name for K {}

/// The index. `K` is how its owner calls an object.
#[derive(Debug, Clone)]
pub struct SimilarIndex<K> {
    tables: [Vec<u32>; SUPER_FEATURES],
    entries: Vec<IndexEntry<K>>,
    free: Vec<IndexEntryId>,
    /// By object.
    entry_of: Vec<u32>,
    hand: usize,
    capacity: u32,
}

/// The number of an object as an index into a table.
fn number_of(object: impl Name) -> usize {
    object.into() as usize
}

impl<K: Name> SimilarIndex<K> {
    /// An empty index of at most so many entries; one of 0 keeps nothing.
    pub fn new(capacity: u32) -> Self {
        let places = capacity as usize * PLACES_FOR_TWO / 2;
        let buckets = places.div_ceil(WAYS).max(1);
        SimilarIndex {
            tables: std::array::from_fn(|_| vec![NONE; buckets * WAYS]),
            entries: Vec::new(),
            free: Vec::new(),
            entry_of: Vec::new(),
            hand: 0,
            capacity,
        }
    }

    /// Entries held.
    pub fn len(&self) -> u32 {
        (self.entries.len() - self.free.len()) as u32
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an object has an entry.
    pub fn holds(&self, object: K) -> bool {
        self.entry_of(object).is_some()
    }

    /// The object that shares most super-features with a sketch, among those that are `accepted`; of equals one
    /// that was entered late.
    pub fn find(&self, sketch: &Sketch, accepted: impl Fn(K) -> bool) -> Option<K> {
        let mut best = None;
        let mut most = 0;
        for table in 0..SUPER_FEATURES {
            for &place in &self.tables[table][self.bucket(sketch.0[table])] {
                let Some(id) = IndexEntryId::named(place) else {
                    break;
                };
                let entry = &self.entries[id.index()];
                let shared = entry.sketch.shared(sketch);
                if entry.sketch.0[table] == sketch.0[table]
                    && shared > most
                    && accepted(entry.object)
                {
                    (best, most) = (Some(entry.object), shared);
                }
            }
        }
        best
    }

    /// An object has been of use.
    pub fn touch(&mut self, object: K) {
        if let Some(id) = self.entry_of(object) {
            self.entries[id.index()].used = true;
        }
    }

    /// Enters an object that has no entry.
    pub fn insert(&mut self, object: K, sketch: Sketch) {
        debug_assert!(!self.holds(object));
        let Some(id) = self.take_free(object) else {
            return;
        };
        self.entries[id.index()] = IndexEntry {
            object,
            sketch,
            places: SUPER_FEATURES as u8,
            used: false,
        };
        if self.entry_of.len() <= number_of(object) {
            self.entry_of.resize(number_of(object) + 1, NONE);
        }
        self.entry_of[number_of(object)] = id.name();
        for table in 0..SUPER_FEATURES {
            let bucket = self.bucket(sketch.0[table]);
            let places = &mut self.tables[table][bucket];
            places.rotate_right(1);
            let displaced = std::mem::replace(&mut places[0], id.name());
            if let Some(displaced) = IndexEntryId::named(displaced) {
                self.lose_place(displaced);
            }
        }
    }

    /// Removes an object, if it has an entry.
    pub fn remove(&mut self, object: K) {
        let Some(id) = self.entry_of(object) else {
            return;
        };
        let sketch = self.entries[id.index()].sketch;
        for table in 0..SUPER_FEATURES {
            let bucket = self.bucket(sketch.0[table]);
            let places = &mut self.tables[table][bucket];
            if let Some(at) = places.iter().position(|&p| p == id.name()) {
                places[at..].rotate_left(1);
                places[WAYS - 1] = NONE;
            }
        }
        self.entries[id.index()].places = 0;
        self.forget(id);
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        let words = self.tables.iter().map(Vec::capacity).sum::<usize>()
            + self.free.capacity()
            + self.entry_of.capacity();
        words * size_of::<u32>() + self.entries.capacity() * size_of::<IndexEntry<K>>()
    }

    fn entry_of(&self, object: K) -> Option<IndexEntryId> {
        let name = self.entry_of.get(number_of(object)).copied();
        name.and_then(IndexEntryId::named)
    }

    /// The places of a super-feature in its table; all tables are as long.
    fn bucket(&self, super_feature: u32) -> std::ops::Range<usize> {
        let buckets = (self.tables[0].len() / WAYS) as u64;
        // Super-features are hashes: a product with their number spreads them as well as a remainder does.
        let at = ((u64::from(super_feature) * buckets) >> 32) as usize * WAYS;
        at..at + WAYS
    }

    /// A free entry for an object; if there is none, that of whoever the hand meets first that was of no use.
    fn take_free(&mut self, object: K) -> Option<IndexEntryId> {
        if let Some(id) = self.free.pop() {
            return Some(id);
        }
        if self.entries.len() < self.capacity as usize {
            self.entries.push(IndexEntry {
                object,
                sketch: Sketch([0; SUPER_FEATURES]),
                places: 0,
                used: false,
            });
            return Some(IndexEntryId(self.entries.len() as u32 - 1));
        }
        if self.capacity == 0 {
            return None;
        }
        while std::mem::take(&mut self.entries[self.hand].used) {
            self.hand = (self.hand + 1) % self.entries.len();
        }
        let leaves = self.entries[self.hand].object;
        self.hand = (self.hand + 1) % self.entries.len();
        self.remove(leaves);
        self.free.pop()
    }

    fn lose_place(&mut self, id: IndexEntryId) {
        let entry = &mut self.entries[id.index()];
        entry.places -= 1;
        if entry.places == 0 {
            self.forget(id);
        }
    }

    /// An entry has no place any more.
    fn forget(&mut self, id: IndexEntryId) {
        self.entry_of[number_of(self.entries[id.index()].object)] = NONE;
        self.free.push(id);
    }

    /// Recounts everything; `is_base` says whether an object may be named.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self, is_base: impl Fn(K) -> bool) -> Result<(), String> {
        let mut places = vec![0u8; self.entries.len()];
        for (number, table) in self.tables.iter().enumerate() {
            for (at, bucket) in table.chunks(WAYS).enumerate() {
                let used = bucket.iter().position(|&p| p == NONE).unwrap_or(WAYS);
                if bucket[used..].iter().any(|&p| p != NONE) {
                    return Err(format!("bucket {at} of table {number} has a gap"));
                }
                for &place in &bucket[..used] {
                    places[place as usize - 1] += 1;
                    let sketch = self.entries[place as usize - 1].sketch;
                    if self.bucket(sketch.0[number]).start != at * WAYS {
                        return Err(format!(
                            "entry {} has a place in bucket {at} of table {number}, which is another's",
                            place - 1
                        ));
                    }
                }
            }
        }
        let mut live = 0;
        for (number, entry) in self.entries.iter().enumerate() {
            if entry.places != places[number] {
                return Err(format!(
                    "entry {number} counts {} places and has {}",
                    entry.places, places[number]
                ));
            }
            if entry.places == 0 {
                continue;
            }
            live += 1;
            if self.entry_of(entry.object) != Some(IndexEntryId(number as u32)) {
                return Err(format!(
                    "object {} of entry {number} is said to have {:?}",
                    entry.object,
                    self.entry_of(entry.object)
                ));
            }
            if !is_base(entry.object) {
                return Err(format!(
                    "the signature index names object {}, which is dead or a delta",
                    entry.object
                ));
            }
        }
        let named = self.entry_of.iter().filter(|&&n| n != NONE).count();
        if live != self.len() || named != live as usize || live > self.capacity {
            return Err(format!(
                "{live} entries have places, {} are counted, {named} objects name one, {} may be",
                self.len(),
                self.capacity
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashlore_flash::ObjectId;
    use proptest::prelude::*;

    /// What the index should hold, looked through from end to end: entries in the order of their numbers, and for
    /// each table the objects of each bucket, the last one entered first.
    struct Naive {
        entries: Vec<Option<(ObjectId, Sketch, bool)>>,
        free: Vec<usize>,
        buckets: [Vec<Vec<ObjectId>>; SUPER_FEATURES],
        hand: usize,
        capacity: usize,
    }

    impl Naive {
        fn new(capacity: u32) -> Self {
            let buckets = (capacity as usize * 3 / 2).div_ceil(WAYS).max(1);
            Naive {
                entries: Vec::new(),
                free: Vec::new(),
                buckets: std::array::from_fn(|_| vec![Vec::new(); buckets]),
                hand: 0,
                capacity: capacity as usize,
            }
        }

        fn bucket(&mut self, table: usize, sketch: &Sketch) -> &mut Vec<ObjectId> {
            let buckets = self.buckets[table].len() as u64;
            let at = (u64::from(sketch.0[table]) * buckets) >> 32;
            &mut self.buckets[table][at as usize]
        }

        fn number(&self, object: ObjectId) -> Option<usize> {
            let has = |e: &Option<(ObjectId, Sketch, bool)>| e.is_some_and(|e| e.0 == object);
            self.entries.iter().position(has)
        }

        fn remove(&mut self, object: ObjectId) {
            if let Some(number) = self.number(object) {
                let buckets = self.buckets.iter_mut().flatten();
                buckets.for_each(|bucket| bucket.retain(|&o| o != object));
                self.entries[number] = None;
                self.free.push(number);
            }
        }

        fn insert(&mut self, object: ObjectId, sketch: Sketch) {
            if self.capacity == 0 {
                return;
            }
            if self.free.is_empty() && self.entries.len() < self.capacity {
                self.entries.push(None);
                self.free.push(self.entries.len() - 1);
            }
            while self.free.is_empty() {
                let met = self.entries[self.hand].as_mut().expect("none is free");
                let leaves = (!std::mem::take(&mut met.2)).then_some(met.0);
                self.hand = (self.hand + 1) % self.entries.len();
                leaves.into_iter().for_each(|object| self.remove(object));
            }
            let number = self.free.pop().expect("one is free");
            self.entries[number] = Some((object, sketch, false));
            for table in 0..SUPER_FEATURES {
                let bucket = self.bucket(table, &sketch);
                bucket.insert(0, object);
                let displaced = (bucket.len() > WAYS).then(|| bucket.pop()).flatten();
                let held = |o: &ObjectId| self.buckets.iter().flatten().flatten().any(|b| b == o);
                if let Some(gone) = displaced.filter(|o| !held(o)) {
                    self.remove(gone);
                }
            }
        }

        fn find(
            &mut self,
            sketch: &Sketch,
            accepted: impl Fn(ObjectId) -> bool,
        ) -> Option<ObjectId> {
            let mut best: Option<(u32, ObjectId)> = None;
            for table in 0..SUPER_FEATURES {
                for object in self.bucket(table, sketch).clone() {
                    let number = self.number(object).expect("it is held");
                    let (_, held, _) = self.entries[number].expect("it is held");
                    let shared = held.shared(sketch);
                    let alike = held.0[table] == sketch.0[table] && accepted(object);
                    if alike && best.is_none_or(|(most, _)| shared > most) {
                        best = Some((shared, object));
                    }
                }
            }
            best.map(|(_, object)| object)
        }
    }

    /// Few super-features, so that objects share some, at places all over the range.
    fn sketch(raw: [u8; SUPER_FEATURES]) -> Sketch {
        Sketch(raw.map(|r| u32::from(r % 9).wrapping_mul(0x1F35_7A11)))
    }

    proptest! {
        #[test]
        fn it_answers_what_plain_lists_do(
            capacity in 0u32..20,
            steps in prop::collection::vec((0u8..4, 0u32..30, any::<[u8; 4]>()), 1..300),
        ) {
            let mut index = SimilarIndex::new(capacity);
            let mut naive = Naive::new(capacity);
            for (what, object, raw) in steps {
                let object = ObjectId(object);
                match what {
                    0 => {
                        index.remove(object);
                        naive.remove(object);
                    }
                    1 => {
                        index.touch(object);
                        if let Some(number) = naive.number(object) {
                            naive.entries[number].as_mut().expect("it is held").2 = true;
                        }
                    }
                    _ if !index.holds(object) => {
                        index.insert(object, sketch(raw));
                        naive.insert(object, sketch(raw));
                    }
                    _ => {}
                }
                let accepted = |o: ObjectId| o.0 % 5 != object.0 % 5;
                prop_assert_eq!(index.find(&sketch(raw), accepted), naive.find(&sketch(raw), accepted));
                for o in (0..30).map(ObjectId) {
                    prop_assert_eq!(index.holds(o), naive.number(o).is_some(), "object {}", o);
                }
                index.check(|o| naive.number(o).is_some()).map_err(TestCaseError::fail)?;
            }
        }
    }

    #[test]
    fn the_most_alike_is_found_and_of_equals_the_one_entered_last() {
        let mut index = SimilarIndex::new(8);
        index.insert(ObjectId(1), Sketch([1, 2, 3, 4]));
        index.insert(ObjectId(2), Sketch([1, 2, 5, 6]));
        index.insert(ObjectId(3), Sketch([1, 7, 8, 9]));
        let find = |sketch| index.find(&Sketch(sketch), |_| true).map(|object| object.0);
        assert_eq!(find([1, 2, 3, 4]), Some(1));
        assert_eq!(find([1, 2, 0, 0]), Some(2));
        assert_eq!(find([1, 8, 9, 0]), Some(3));
        assert_eq!(find([2, 1, 4, 3]), None);
        assert_eq!(
            index.find(&Sketch([1, 2, 3, 4]), |o| o != ObjectId(1)),
            Some(ObjectId(2))
        );
    }

    #[test]
    fn what_was_of_use_outlasts_what_was_not() {
        let mut index = SimilarIndex::new(2);
        index.insert(ObjectId(1), Sketch([1; 4]));
        index.insert(ObjectId(2), Sketch([2; 4]));
        index.touch(ObjectId(1));
        index.insert(ObjectId(3), Sketch([3; 4]));
        assert_eq!(
            [1, 2, 3].map(|o| index.holds(ObjectId(o))),
            [true, false, true]
        );
    }
}
