//! The fingerprint index: which stored object may hold the content of a write.
//!
//! An LRU over writes with a fixed number of entries (CA-SSD's HPT and iHPT, sections 4.1-4.2): a hit
//! or an insertion moves the entry to the head, reads never touch the order, the entry at the tail is
//! discarded to make room, and an entry goes with the last reference to its object.
//!
//! Open addressing with linear probing over 8-byte slots (32-bit tag, object + 1; 0 is empty), deletion
//! by shifting back. The tag alone decides the home slot, so a slot can be moved without its
//! fingerprint. The index knows objects by handle only; the caller compares the content.
//!
//! The order is a queue of *uses*, least recent first. Of each object it is known how many uses in the queue name
//! it ([`Members`]); the last of them counts, if it has an entry. The others are stale and passed over at
//! the tail, or dropped when the queue is full. So a use touches the object and the end of the queue, never a
//! neighbour. An object that dies leaves its uses behind; its handle may be used again meanwhile.
//!
//! Invariants: every entry is in exactly one slot, reachable from its home without an empty slot
//! between; an object is marked iff it has an entry, and then the queue has a use of it, the last since
//! it has; at most `capacity` entries.

use std::collections::VecDeque;
use std::ops::Range;

use flashlore_flash::ObjectId;
use flashlore_flash::hints::{on_large_pages, prefetch};
use rustc_hash::{FxHashMap, FxHashSet};

/// A load of at most a half: what lies together is rarely more than a few slots.
const SLOTS_FOR_ONE: usize = 2;
/// Half the slots of a cache line.
const HALF_LINE: usize = 4;
/// Uses kept for an entry: dropping the stale ones looks at twice as many as it frees at worst.
const USES_FOR_ONE: usize = 2;
const SMALLEST: usize = 16;
/// How many uses before its turn at the tail an object is asked for, and then its slot.
const OBJECT_AHEAD: usize = 12;
const SLOT_AHEAD: usize = 6;

/// What the objects keep for the index.
pub trait Members {
    /// The lower half of an object's fingerprint.
    fn tag(&self, object: ObjectId) -> u32;
    /// The same of objects one after the other.
    fn each_tag(&self, objects: Range<u32>, mut each: impl FnMut(ObjectId, u32)) {
        objects
            .map(ObjectId)
            .for_each(|object| each(object, self.tag(object)));
    }
    /// Whether the object has an entry.
    fn is_indexed(&self, object: ObjectId) -> bool;
    /// Notes that.
    fn set_indexed(&mut self, object: ObjectId, indexed: bool);
    /// Uses in the queue that name the object's handle.
    fn uses(&self, object: ObjectId) -> u32;
    /// There is one more.
    fn add_use(&mut self, object: ObjectId);
    /// There is one less; whether that was the last.
    fn drop_use(&mut self, object: ObjectId) -> bool;
    /// Asks for what the others touch.
    fn prefetch(&self, object: ObjectId);
    /// Handles there are, those of the dead too: all below this have a fingerprint, were it that of a former life.
    fn handles(&self) -> u32;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Slot {
    tag: u32,
    object_plus_1: u32,
}

#[derive(Debug, Clone)]
pub struct LruIndex {
    slots: Vec<Slot>,
    /// Objects by time of use.
    uses: VecDeque<ObjectId>,
    /// Uses that are kept until the stale ones are dropped.
    most_uses: usize,
    len: u32,
    capacity: Option<u32>,
}

impl LruIndex {
    /// The most entries it takes; `None` for any number.
    pub fn capacity(&self) -> Option<u32> {
        self.capacity
    }

    /// An empty index of so many entries; `None` grows with its content. A capacity of 0 keeps
    /// nothing.
    pub fn new(capacity: Option<u32>) -> Self {
        let expected = capacity.unwrap_or(0) as usize;
        let most_uses = uses_for(expected);
        LruIndex {
            slots: empty_slots(slots_for(expected)),
            uses: VecDeque::with_capacity(most_uses),
            most_uses,
            len: 0,
            capacity,
        }
    }

    /// Entries held.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.uses.capacity() * size_of::<u32>()
    }

    /// The object with a fingerprint; `is` says whether an object has the whole fingerprint, of which
    /// the index keeps 32 bits.
    #[inline(always)]
    pub fn find(&self, fingerprint: u64, is: impl Fn(ObjectId) -> bool) -> Option<ObjectId> {
        let tag = fingerprint as u32;
        let mut at = self.home(tag);
        loop {
            let slot = self.slots[at];
            if slot.object_plus_1 == 0 {
                return None;
            }
            if slot.tag == tag && is(ObjectId(slot.object_plus_1 - 1)) {
                return Some(ObjectId(slot.object_plus_1 - 1));
            }
            at = self.after(at);
        }
    }

    /// Moves the entry of an object to the head.
    #[inline(always)]
    pub fn touch(&mut self, members: &mut impl Members, object: ObjectId) {
        if self.uses.back() != Some(&object) {
            self.use_now(members, object);
        }
    }

    /// Inserts an object whose fingerprint has no entry, at the head. Answers the object whose entry
    /// was discarded to make room, which with a capacity of 0 is the new one.
    #[inline(always)]
    pub fn insert(&mut self, members: &mut impl Members, object: ObjectId) -> Option<ObjectId> {
        let mut evicted = None;
        match self.capacity {
            Some(0) => return Some(object),
            Some(capacity) if self.len == capacity => evicted = self.discard_tail(members),
            Some(_) => {}
            None => self.make_room(),
        }
        let tag = members.tag(object);
        self.fill_slot(Slot {
            tag,
            object_plus_1: object.0 + 1,
        });
        members.set_indexed(object, true);
        self.use_now(members, object);
        self.len += 1;
        evicted
    }

    /// Gives the entry of an object to another with the same fingerprint and moves it to the head.
    pub fn take_over(&mut self, members: &mut impl Members, before: ObjectId, object: ObjectId) {
        let at = self.slot_of(members.tag(before), before);
        self.slots[at].object_plus_1 = object.0 + 1;
        members.set_indexed(before, false);
        members.set_indexed(object, true);
        self.use_now(members, object);
    }

    /// Removes the entry of an object, which must have one.
    #[inline(always)]
    pub fn remove(&mut self, members: &mut impl Members, object: ObjectId) {
        let at = self.slot_of(members.tag(object), object);
        self.close_gap(at);
        members.set_indexed(object, false);
        self.len -= 1;
    }

    /// Asks for the home slot of a fingerprint.
    #[inline(always)]
    pub fn prefetch_slot(&self, fingerprint: u64) {
        self.prefetch_home(fingerprint as u32);
    }

    /// Asks for the home of a tag and what follows: a probe often runs into the next line.
    #[inline(always)]
    fn prefetch_home(&self, tag: u32) {
        let home = self.home(tag);
        prefetch(&self.slots, home);
        prefetch(&self.slots, home + HALF_LINE);
    }

    /// The object a fingerprint probably has, once its slot is near.
    #[inline(always)]
    pub fn likely(&self, fingerprint: u64) -> Option<ObjectId> {
        self.find(fingerprint, |_| true)
    }

    /// Asks for what a later eviction will touch.
    #[inline(always)]
    fn prefetch_tail(&self, members: &impl Members) {
        if let Some(&object) = self.uses.get(OBJECT_AHEAD) {
            members.prefetch(object);
        }
        if let Some(&object) = self.uses.get(SLOT_AHEAD)
            && members.is_indexed(object)
            && members.uses(object) == 1
        {
            self.prefetch_home(members.tag(object));
        }
    }

    /// The objects from head to tail.
    pub fn objects<'a>(&'a self, members: &'a impl Members) -> impl Iterator<Item = ObjectId> + 'a {
        let mut seen = FxHashSet::default();
        let indexed = self.uses.iter().rev().copied();
        let indexed = indexed.filter(|&object| members.is_indexed(object));
        indexed.filter(move |&object| seen.insert(object))
    }

    /// Recounts every invariant.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self, members: &impl Members) -> Result<(), String> {
        if self.capacity.is_some_and(|c| self.len > c) {
            return Err(format!(
                "index holds {} entries, capacity {:?}",
                self.len, self.capacity
            ));
        }
        let mut uses = FxHashMap::default();
        for &object in &self.uses {
            *uses.entry(object).or_insert(0) += 1;
        }
        for (&object, &count) in &uses {
            if members.uses(object) != count {
                return Err(format!(
                    "{count} uses name object {object}, it notes {}",
                    members.uses(object)
                ));
            }
        }
        let mut slots = 0;
        for (position, slot) in self.slots.iter().enumerate() {
            if slot.object_plus_1 == 0 {
                continue;
            }
            slots += 1;
            let object = ObjectId(slot.object_plus_1 - 1);
            if members.tag(object) != slot.tag {
                return Err(format!(
                    "index slot {position} names object {object} wrongly"
                ));
            }
            if !members.is_indexed(object) || !uses.contains_key(&object) {
                return Err(format!(
                    "object {object} in index slot {position} is not marked, or has no place in the order"
                ));
            }
            let mut probe = self.home(slot.tag);
            while probe != position {
                if self.slots[probe].object_plus_1 == 0 {
                    return Err(format!(
                        "index slot {position} cannot be reached from its home"
                    ));
                }
                probe = self.after(probe);
            }
        }
        let listed = self.objects(members).count();
        if slots != self.len as usize || listed != slots {
            return Err(format!(
                "index counts {} entries, {listed} are listed, {slots} have slots",
                self.len
            ));
        }
        Ok(())
    }

    #[inline(always)]
    fn home(&self, tag: u32) -> usize {
        // Multiplicative hashing onto any table size; the tag of a cut fingerprint is small.
        let spread = tag.wrapping_mul(0x9E37_79B1);
        ((u64::from(spread) * self.slots.len() as u64) >> 32) as usize
    }

    #[inline(always)]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() {
            0
        } else {
            at + 1
        }
    }

    /// The slot of an object, which must have one.
    #[inline(always)]
    fn slot_of(&self, tag: u32, object: ObjectId) -> usize {
        let mut at = self.home(tag);
        while self.slots[at].object_plus_1 != object.0 + 1 {
            debug_assert!(
                self.slots[at].object_plus_1 != 0,
                "object {object} has a place but no slot"
            );
            at = self.after(at);
        }
        at
    }

    #[inline(always)]
    fn fill_slot(&mut self, slot: Slot) {
        let mut at = self.home(slot.tag);
        while self.slots[at].object_plus_1 != 0 {
            at = self.after(at);
        }
        self.slots[at] = slot;
    }

    /// Doubles the table when half of it is full; only an unlimited index grows.
    fn make_room(&mut self) {
        if slots_for(self.len as usize + 1) <= self.slots.len() {
            return;
        }
        let doubled = empty_slots(self.slots.len() * 2);
        let old = std::mem::replace(&mut self.slots, doubled);
        for slot in old {
            if slot.object_plus_1 != 0 {
                self.fill_slot(slot);
            }
        }
    }

    /// Discards the least recently used entry; answers its object.
    #[inline(always)]
    fn discard_tail(&mut self, members: &mut impl Members) -> Option<ObjectId> {
        loop {
            let object = self.uses.pop_front()?;
            self.prefetch_tail(members);
            if members.drop_use(object) && members.is_indexed(object) {
                self.remove(members, object);
                return Some(object);
            }
        }
    }

    /// The newest use is that of an object.
    #[inline(always)]
    fn use_now(&mut self, members: &mut impl Members, object: ObjectId) {
        if self.uses.len() >= self.most_uses {
            self.drop_stale(members);
        }
        members.add_use(object);
        self.uses.push_back(object);
    }

    /// Drops the uses that later ones or a removal made stale.
    #[cold]
    fn drop_stale(&mut self, members: &mut impl Members) {
        let mut kept = 0;
        for position in 0..self.uses.len() {
            if let Some(&object) = self.uses.get(position + OBJECT_AHEAD) {
                members.prefetch(object);
            }
            let object = self.uses[position];
            if members.drop_use(object) && members.is_indexed(object) {
                self.uses[kept] = object;
                members.add_use(object);
                kept += 1;
            }
        }
        self.uses.truncate(kept);
        self.most_uses = self.most_uses.max(uses_for(kept));
    }

    /// Empties a slot and moves back those behind it that would become unreachable.
    #[inline(always)]
    fn close_gap(&mut self, mut gap: usize) {
        let mut at = self.after(gap);
        loop {
            let slot = self.slots[at];
            if slot.object_plus_1 == 0 {
                break;
            }
            let home = self.home(slot.tag);
            let stays = if gap < at {
                home > gap && home <= at
            } else {
                home > gap || home <= at
            };
            if !stays {
                self.slots[gap] = slot;
                gap = at;
            }
            at = self.after(at);
        }
        self.slots[gap] = Slot::default();
    }
}

fn empty_slots(count: usize) -> Vec<Slot> {
    on_large_pages(vec![Slot::default(); count])
}

fn slots_for(entries: usize) -> usize {
    (entries * SLOTS_FOR_ONE + 1).max(SMALLEST)
}

fn uses_for(entries: usize) -> usize {
    entries * USES_FOR_ONE + SMALLEST
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Objects with these fingerprints.
    #[derive(Default)]
    struct Objects(Vec<Object>);

    struct Object {
        fingerprint: u64,
        indexed: bool,
        uses: u32,
    }

    impl Objects {
        fn add(&mut self, fingerprint: u64) -> ObjectId {
            self.0.push(Object {
                fingerprint,
                indexed: false,
                uses: 0,
            });
            ObjectId(self.0.len() as u32 - 1)
        }
    }

    impl Members for Objects {
        fn tag(&self, object: ObjectId) -> u32 {
            self.0[object.index()].fingerprint as u32
        }
        fn is_indexed(&self, object: ObjectId) -> bool {
            self.0[object.index()].indexed
        }
        fn set_indexed(&mut self, object: ObjectId, indexed: bool) {
            self.0[object.index()].indexed = indexed;
        }
        fn uses(&self, object: ObjectId) -> u32 {
            self.0[object.index()].uses
        }
        fn add_use(&mut self, object: ObjectId) {
            self.0[object.index()].uses += 1;
        }
        fn drop_use(&mut self, object: ObjectId) -> bool {
            self.0[object.index()].uses -= 1;
            self.0[object.index()].uses == 0
        }
        fn prefetch(&self, _: ObjectId) {}
        fn handles(&self) -> u32 {
            self.0.len() as u32
        }
    }

    /// The reference model: newest first.
    #[derive(Default)]
    struct Model(Vec<(u64, ObjectId)>);

    #[derive(Debug, Clone)]
    enum IndexStep {
        Write(u64),
        Remove(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<IndexStep>> {
        let step = prop_oneof![
            4 => (0u64..60).prop_map(IndexStep::Write),
            1 => (0u64..60).prop_map(IndexStep::Remove),
        ];
        prop::collection::vec(step, 1..400)
    }

    proptest! {
        #[test]
        fn the_index_equals_a_list(steps in steps(), capacity in prop::option::of(0u32..40)) {
            let mut index = LruIndex::new(capacity);
            let mut model = Model::default();
            let mut objects = Objects::default();
            // Handles of the dead, to be used again.
            let mut free = Vec::new();
            for step in steps {
                match step {
                    IndexStep::Write(fp) => {
                        // Tags that agree in the low bits land in the same slots.
                        let fp = fp % 7 * 0x1_0000_0000 + fp;
                        let found = index.find(fp, |o| objects.0[o.index()].fingerprint == fp);
                        let at = model.0.iter().position(|&(f, _)| f == fp);
                        prop_assert_eq!(found, at.map(|i| model.0[i].1));
                        if let (Some(object), Some(i)) = (found, at) {
                            index.touch(&mut objects, object);
                            let hit = model.0.remove(i);
                            model.0.insert(0, hit);
                        } else {
                            let object = free.pop().unwrap_or_else(|| objects.add(fp));
                            objects.0[object.index()].fingerprint = fp;
                            let evicted = index.insert(&mut objects, object);
                            model.0.insert(0, (fp, object));
                            let over = capacity.is_some_and(|c| model.0.len() > c as usize);
                            let expected = if over { model.0.pop() } else { None };
                            prop_assert_eq!(evicted, expected.map(|(_, o)| o));
                        }
                    }
                    IndexStep::Remove(fp) => {
                        let fp = fp % 7 * 0x1_0000_0000 + fp;
                        if let Some(i) = model.0.iter().position(|&(f, _)| f == fp) {
                            let (_, object) = model.0.remove(i);
                            index.remove(&mut objects, object);
                            free.push(object);
                        }
                    }
                }
                index.check(&objects).map_err(TestCaseError::fail)?;
                let listed: Vec<ObjectId> = index.objects(&objects).collect();
                let expected: Vec<ObjectId> = model.0.iter().map(|&(_, o)| o).collect();
                prop_assert_eq!(listed, expected);
            }
        }
    }

    #[test]
    fn a_taken_over_entry_names_the_newer_object_at_the_head() {
        let mut index = LruIndex::new(Some(4));
        let mut objects = Objects::default();
        let [first, other, newer] = [1, 2, 1].map(|fingerprint| objects.add(fingerprint));
        index.insert(&mut objects, first);
        index.insert(&mut objects, other);
        index.take_over(&mut objects, first, newer);
        assert!(!objects.is_indexed(first));
        let listed: Vec<ObjectId> = index.objects(&objects).collect();
        assert_eq!(listed, [newer, other]);
        index.check(&objects).unwrap();
    }

    #[test]
    fn touching_for_ever_keeps_the_queue_small() {
        let mut index = LruIndex::new(Some(8));
        let mut objects = Objects::default();
        for fingerprint in 0..8 {
            let object = objects.add(fingerprint);
            index.insert(&mut objects, object);
        }
        let before = index.heap_bytes();
        for round in 0..10_000 {
            index.touch(&mut objects, ObjectId(round * 5 % 8));
        }
        index.check(&objects).unwrap();
        assert_eq!(index.heap_bytes(), before);
        let listed: Vec<ObjectId> = index.objects(&objects).collect();
        assert_eq!(listed, [3, 6, 1, 4, 7, 2, 5, 0].map(ObjectId));
    }
}
