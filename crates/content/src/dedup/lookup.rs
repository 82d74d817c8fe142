//! What deduplication asks of a fingerprint index. Which index it is the content says: exactly the LRU of the paper where
//! digests are replayed, one of bounded memory where pages are stored for real.

use std::fmt;

use flashlore_flash::ObjectId;

use super::bounded::BoundedIndex;
use super::index::{LruIndex, Members};

/// Bytes of a bounded index for each entry that is asked for: half more than an entry takes, since fingerprints choose
/// their sets by chance.
const BYTES_FOR_ONE: u64 = 8;

/// A fingerprint index.
pub trait FingerprintIndex: fmt::Debug + Clone + Send {
    /// Whether an entry may name an object that is dead, or another one by now: then whoever asks looks.
    const MAY_BE_STALE: bool;

    /// An empty index of so many entries; `None` for as many as there are stored values, of which there are `most`. 0 keeps
    /// nothing.
    fn with_entries(entries: Option<u32>, most: u32) -> Self;

    /// Entries that were asked for.
    fn capacity(&self) -> Option<u32>;

    /// The object with a fingerprint; `is` says whether an object has it.
    fn find(&self, fingerprint: u64, is: impl Fn(ObjectId) -> bool) -> Option<ObjectId>;

    /// A write shared an object.
    fn touch(&mut self, members: &mut impl Members, object: ObjectId);

    /// Enters an object whose fingerprint was not found. Whether an entry was discarded for it.
    fn enter(&mut self, members: &mut impl Members, object: ObjectId) -> bool;

    /// Enters an object that was stored some time ago, unless its fingerprint has an entry.
    fn refill(&mut self, members: &mut impl Members, object: ObjectId);

    /// Enters an object in place of another with the same fingerprint.
    fn take_over(&mut self, members: &mut impl Members, before: ObjectId, object: ObjectId);

    /// An object that was entered died.
    fn remove(&mut self, members: &mut impl Members, object: ObjectId);

    /// A write found nothing.
    fn missed(&mut self, _fingerprint: u64) {}

    /// Whether objects are stored that were never entered.
    fn set_incomplete(&mut self, _is_incomplete: bool) {}

    /// Asks the processor for where a fingerprint is looked for.
    fn prefetch_slot(&self, fingerprint: u64);

    /// The object a fingerprint probably has, once that is near; none if that costs more than it brings.
    fn likely(&self, fingerprint: u64) -> Option<ObjectId>;

    /// Bytes held.
    fn heap_bytes(&self) -> usize;

    /// The objects that have an entry; none if an entry is a hint.
    fn entered(&self, members: &impl Members) -> Option<Vec<ObjectId>>;

    /// Recounts every invariant.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    fn check(&self, members: &impl Members) -> Result<(), String>;
}

impl FingerprintIndex for LruIndex {
    const MAY_BE_STALE: bool = false;

    fn with_entries(entries: Option<u32>, most: u32) -> Self {
        // An entry names a living object: a larger index is never full, and must not be allocated.
        LruIndex::new(entries.map(|entries| entries.min(most)))
    }

    #[inline(always)]
    fn capacity(&self) -> Option<u32> {
        LruIndex::capacity(self)
    }

    #[inline(always)]
    fn find(&self, fingerprint: u64, is: impl Fn(ObjectId) -> bool) -> Option<ObjectId> {
        LruIndex::find(self, fingerprint, is)
    }

    #[inline(always)]
    fn touch(&mut self, members: &mut impl Members, object: ObjectId) {
        LruIndex::touch(self, members, object);
    }

    #[inline(always)]
    fn enter(&mut self, members: &mut impl Members, object: ObjectId) -> bool {
        // An index without entries refuses the new one: nothing had to make room.
        let evicted = LruIndex::insert(self, members, object);
        evicted.is_some_and(|evicted| evicted != object)
    }

    fn refill(&mut self, members: &mut impl Members, object: ObjectId) {
        self.enter(members, object);
    }

    #[inline(always)]
    fn take_over(&mut self, members: &mut impl Members, before: ObjectId, object: ObjectId) {
        LruIndex::take_over(self, members, before, object);
    }

    #[inline(always)]
    fn remove(&mut self, members: &mut impl Members, object: ObjectId) {
        LruIndex::remove(self, members, object);
    }

    #[inline(always)]
    fn prefetch_slot(&self, fingerprint: u64) {
        LruIndex::prefetch_slot(self, fingerprint);
    }

    #[inline(always)]
    fn likely(&self, fingerprint: u64) -> Option<ObjectId> {
        LruIndex::likely(self, fingerprint)
    }

    fn heap_bytes(&self) -> usize {
        LruIndex::heap_bytes(self)
    }

    fn entered(&self, members: &impl Members) -> Option<Vec<ObjectId>> {
        Some(self.objects(members).collect())
    }

    fn check(&self, members: &impl Members) -> Result<(), String> {
        LruIndex::check(self, members)
    }
}

impl BoundedIndex {
    /// The budget of one with room for so many entries, in bytes.
    pub fn budget_for(entries: u32) -> u64 {
        match entries {
            0 => 0,
            entries => Self::least_budget() + u64::from(entries) * BYTES_FOR_ONE,
        }
    }
}

/// It knows 32 bits of a fingerprint, which an object keeps for it. An object is marked as indexed once it was entered,
/// whether its entry has left since or not.
impl FingerprintIndex for BoundedIndex {
    const MAY_BE_STALE: bool = true;

    fn with_entries(entries: Option<u32>, most: u32) -> Self {
        BoundedIndex::new(BoundedIndex::budget_for(entries.unwrap_or(most)))
    }

    fn capacity(&self) -> Option<u32> {
        Some(BoundedIndex::capacity(self).try_into().unwrap_or(u32::MAX))
    }

    fn find(&self, fingerprint: u64, is: impl Fn(ObjectId) -> bool) -> Option<ObjectId> {
        BoundedIndex::find(self, known(fingerprint), is)
    }

    fn touch(&mut self, members: &mut impl Members, object: ObjectId) {
        let fingerprint = members.tag(object).into();
        if BoundedIndex::touch(self, fingerprint, object) {
            let end = members
                .handles()
                .min(object.0.saturating_add(1 + BoundedIndex::window() as u32));
            let mut neighbours = [(0, ObjectId::NONE); BoundedIndex::window()];
            let mut free = neighbours.iter_mut();
            members.each_tag(object.0.saturating_add(1)..end, |object, tag| {
                if let Some(place) = free.next() {
                    *place = (tag.into(), object);
                }
            });
            let neighbours = neighbours
                .into_iter()
                .take_while(|(_, object)| object.is_some());
            self.follow(fingerprint, object, neighbours);
        }
    }

    fn enter(&mut self, members: &mut impl Members, object: ObjectId) -> bool {
        if BoundedIndex::capacity(self) == 0 {
            return false;
        }
        let before = self.counters().evictions;
        self.insert(members.tag(object).into(), object);
        members.set_indexed(object, true);
        self.counters().evictions > before
    }

    fn refill(&mut self, members: &mut impl Members, object: ObjectId) {
        if BoundedIndex::capacity(self) > 0 {
            BoundedIndex::refill(self, members.tag(object).into(), object);
            members.set_indexed(object, true);
        }
    }

    fn take_over(&mut self, members: &mut impl Members, before: ObjectId, object: ObjectId) {
        FingerprintIndex::remove(self, members, before);
        self.enter(members, object);
    }

    fn remove(&mut self, members: &mut impl Members, object: ObjectId) {
        BoundedIndex::remove(self, members.tag(object).into(), object);
        members.set_indexed(object, false);
    }

    fn missed(&mut self, fingerprint: u64) {
        BoundedIndex::missed(self, known(fingerprint));
    }

    fn set_incomplete(&mut self, is_incomplete: bool) {
        BoundedIndex::set_incomplete(self, is_incomplete);
    }

    fn prefetch_slot(&self, fingerprint: u64) {
        self.prefetch(known(fingerprint));
    }

    fn likely(&self, _fingerprint: u64) -> Option<ObjectId> {
        None
    }

    fn heap_bytes(&self) -> usize {
        BoundedIndex::heap_bytes(self)
    }

    fn entered(&self, _members: &impl Members) -> Option<Vec<ObjectId>> {
        None
    }

    fn check(&self, _members: &impl Members) -> Result<(), String> {
        BoundedIndex::check(self)
    }
}

/// As much of a fingerprint as objects keep.
fn known(fingerprint: u64) -> u64 {
    fingerprint & u64::from(u32::MAX)
}
