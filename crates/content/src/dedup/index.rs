//! The fingerprint index: which stored object may hold the content of a write.
//!
//! An LRU over writes with a fixed number of entries (CA-SSD's HPT and iHPT, sections 4.1-4.2): a hit
//! or an insertion moves the entry to the head, reads never touch the order, the entry at the tail is
//! discarded to make room, and an entry goes with the last reference to its object.
//!
//! Open addressing with linear probing over 8-byte slots (32-bit tag, entry number + 1; 0 is empty),
//! deletion by shifting back, entries in a list threaded through 16-byte records. The tag alone
//! decides the home slot, so a slot can be moved without its fingerprint. The index knows objects by
//! handle only; the caller compares the content.
//!
//! Invariants: every entry is in exactly one slot, reachable from its home without an empty slot
//! between; the list holds every entry once; at most `capacity` entries.

use flashlore_flash::prefetch::prefetch;

const NONE: u32 = u32::MAX;
/// Slots for 2 entries: a load of at most two thirds.
const SLOTS_FOR_TWO: usize = 3;
const SMALLEST: usize = 16;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Slot {
    tag: u32,
    entry_plus_1: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    object: u32,
    tag: u32,
    /// Towards the head (more recent).
    newer: u32,
    /// Towards the tail; also threads the free entries.
    older: u32,
}

/// An entry of the index; valid until it is removed or evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryId(u32);

/// The index.
#[derive(Debug, Clone)]
pub struct LruIndex {
    slots: Vec<Slot>,
    entries: Vec<Entry>,
    free: u32,
    head: u32,
    tail: u32,
    len: u32,
    capacity: Option<u32>,
}

impl LruIndex {
    /// An empty index of so many entries; `None` grows with its content. A capacity of 0 keeps
    /// nothing.
    pub fn new(capacity: Option<u32>) -> Self {
        let expected = capacity.unwrap_or(0) as usize;
        LruIndex {
            slots: vec![Slot::default(); slots_for(expected)],
            entries: Vec::with_capacity(expected),
            free: NONE,
            head: NONE,
            tail: NONE,
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
        self.slots.capacity() * size_of::<Slot>() + self.entries.capacity() * size_of::<Entry>()
    }

    /// The object an entry names.
    #[inline(always)]
    pub fn object(&self, entry: EntryId) -> u32 {
        self.entries[entry.0 as usize].object
    }

    /// The entry of a fingerprint; `is` says whether an object has the whole fingerprint, of which
    /// the index keeps 32 bits.
    #[inline(always)]
    pub fn find(&self, fingerprint: u64, is: impl Fn(u32) -> bool) -> Option<EntryId> {
        let tag = fingerprint as u32;
        let mut at = self.home(tag);
        loop {
            let slot = self.slots[at];
            if slot.entry_plus_1 == 0 {
                return None;
            }
            if slot.tag == tag && is(self.entries[(slot.entry_plus_1 - 1) as usize].object) {
                return Some(EntryId(slot.entry_plus_1 - 1));
            }
            at = self.after(at);
        }
    }

    /// Moves an entry to the head.
    #[inline(always)]
    pub fn touch(&mut self, entry: EntryId) {
        if self.head != entry.0 {
            self.unlink(entry.0);
            self.link_head(entry.0);
        }
    }

    /// Inserts a fingerprint that has no entry, at the head. Answers the object whose entry was
    /// discarded to make room, which with a capacity of 0 is the new one.
    #[inline]
    pub fn insert(&mut self, fingerprint: u64, object: u32) -> Option<u32> {
        let mut evicted = None;
        match self.capacity {
            Some(0) => return Some(object),
            Some(capacity) if self.len == capacity => {
                let tail = self.tail;
                evicted = Some(self.entries[tail as usize].object);
                self.delete(tail);
            }
            Some(_) => {}
            None => self.make_room(),
        }
        let tag = fingerprint as u32;
        let record = Entry {
            object,
            tag,
            newer: NONE,
            older: NONE,
        };
        let entry = if self.free == NONE {
            self.entries.push(record);
            (self.entries.len() - 1) as u32
        } else {
            let entry = self.free;
            self.free = self.entries[entry as usize].older;
            self.entries[entry as usize] = record;
            entry
        };
        self.fill_slot(tag, entry);
        self.link_head(entry);
        self.len += 1;
        evicted
    }

    /// Gives an entry to another object with the same fingerprint and moves it to the head.
    /// Answers the object it named before.
    pub fn take_over(&mut self, entry: EntryId, object: u32) -> u32 {
        let before = std::mem::replace(&mut self.entries[entry.0 as usize].object, object);
        self.touch(entry);
        before
    }

    /// Removes the entry of an object, which must have one.
    #[inline]
    pub fn remove(&mut self, fingerprint: u64, object: u32) {
        if let Some(EntryId(entry)) = self.find(fingerprint, |o| o == object) {
            self.delete(entry);
        } else {
            debug_assert!(
                false,
                "object {object} is marked as indexed but has no entry"
            );
        }
    }

    /// Asks for the home slot of a fingerprint.
    #[inline(always)]
    pub fn prefetch_slot(&self, fingerprint: u64) {
        prefetch(&self.slots, self.home(fingerprint as u32));
    }

    /// Asks for the entry a fingerprint probably has, once its slot is near.
    #[inline(always)]
    pub fn prefetch_entry(&self, fingerprint: u64) {
        if let Some(entry) = self.likely(fingerprint) {
            prefetch(&self.entries, entry as usize);
        }
    }

    /// Asks for the neighbours of the entry a fingerprint probably has, once the entry is near;
    /// answers its object.
    #[inline(always)]
    pub fn prefetch_neighbours(&self, fingerprint: u64) -> Option<u32> {
        let entry = self.entries[self.likely(fingerprint)? as usize];
        prefetch(&self.entries, entry.newer as usize);
        prefetch(&self.entries, entry.older as usize);
        Some(entry.object)
    }

    /// Asks for what the next evictions will touch, once the index is full: the record that is third
    /// from the tail, and the slot of the second; answers the second's object.
    #[inline(always)]
    pub fn prefetch_tail(&self) -> Option<u32> {
        if self.capacity != Some(self.len) {
            return None;
        }
        let last = self.entries.get(self.tail as usize)?;
        let second = self.entries.get(last.newer as usize)?;
        prefetch(&self.entries, second.newer as usize);
        prefetch(&self.slots, self.home(second.tag));
        Some(second.object)
    }

    /// The entry with the right tag in the first slots after the home.
    #[inline(always)]
    fn likely(&self, fingerprint: u64) -> Option<u32> {
        let tag = fingerprint as u32;
        let mut at = self.home(tag);
        loop {
            let slot = self.slots[at];
            if slot.entry_plus_1 == 0 {
                return None;
            }
            if slot.tag == tag {
                return Some(slot.entry_plus_1 - 1);
            }
            at = self.after(at);
        }
    }

    /// The objects from head to tail.
    pub fn objects(&self) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let entry = *self.entries.get(at as usize)?;
            at = entry.older;
            Some(entry.object)
        })
    }

    /// Recounts every invariant.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        if self.capacity.is_some_and(|c| self.len > c) {
            return Err(format!(
                "index holds {} entries, capacity {:?}",
                self.len, self.capacity
            ));
        }
        let mut listed = vec![false; self.entries.len()];
        let (mut at, mut newer) = (self.head, NONE);
        while at != NONE {
            let entry = self.entries[at as usize];
            if std::mem::replace(&mut listed[at as usize], true) || entry.newer != newer {
                return Err(format!("index list is broken at entry {at}"));
            }
            newer = at;
            at = entry.older;
        }
        if newer != self.tail {
            return Err(format!("index list ends at {newer}, tail is {}", self.tail));
        }
        let listed_count = listed.iter().filter(|&&l| l).count();
        let mut slots = 0;
        for (position, slot) in self.slots.iter().enumerate() {
            if slot.entry_plus_1 == 0 {
                continue;
            }
            slots += 1;
            let entry = (slot.entry_plus_1 - 1) as usize;
            if !listed[entry] || self.entries[entry].tag != slot.tag {
                return Err(format!("index slot {position} names entry {entry} wrongly"));
            }
            let mut probe = self.home(slot.tag);
            while probe != position {
                if self.slots[probe].entry_plus_1 == 0 {
                    return Err(format!(
                        "index slot {position} cannot be reached from its home"
                    ));
                }
                probe = self.after(probe);
            }
        }
        if slots != self.len as usize || listed_count != slots {
            return Err(format!(
                "index counts {} entries, {listed_count} are listed, {slots} have slots",
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

    fn fill_slot(&mut self, tag: u32, entry: u32) {
        let mut at = self.home(tag);
        while self.slots[at].entry_plus_1 != 0 {
            at = self.after(at);
        }
        self.slots[at] = Slot {
            tag,
            entry_plus_1: entry + 1,
        };
    }

    /// Doubles the table when two thirds are full; only an unlimited index grows.
    fn make_room(&mut self) {
        if slots_for(self.len as usize + 1) <= self.slots.len() {
            return;
        }
        let doubled = vec![Slot::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, doubled);
        for slot in old {
            if slot.entry_plus_1 != 0 {
                self.fill_slot(slot.tag, slot.entry_plus_1 - 1);
            }
        }
    }

    fn delete(&mut self, entry: u32) {
        let tag = self.entries[entry as usize].tag;
        let mut at = self.home(tag);
        while self.slots[at].entry_plus_1 != entry + 1 {
            at = self.after(at);
        }
        self.close_gap(at);
        self.unlink(entry);
        self.entries[entry as usize].older = self.free;
        self.free = entry;
        self.len -= 1;
    }

    /// Empties a slot and moves back those behind it that would become unreachable.
    fn close_gap(&mut self, mut gap: usize) {
        let mut at = self.after(gap);
        loop {
            let slot = self.slots[at];
            if slot.entry_plus_1 == 0 {
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

    #[inline(always)]
    fn unlink(&mut self, entry: u32) {
        let Entry { newer, older, .. } = self.entries[entry as usize];
        match self.entries.get_mut(newer as usize) {
            Some(e) => e.older = older,
            None => self.head = older,
        }
        match self.entries.get_mut(older as usize) {
            Some(e) => e.newer = newer,
            None => self.tail = newer,
        }
    }

    #[inline(always)]
    fn link_head(&mut self, entry: u32) {
        let head = self.head;
        let e = &mut self.entries[entry as usize];
        e.newer = NONE;
        e.older = head;
        match self.entries.get_mut(head as usize) {
            Some(e) => e.newer = entry,
            None => self.tail = entry,
        }
        self.head = entry;
    }
}

fn slots_for(entries: usize) -> usize {
    (entries * SLOTS_FOR_TWO / 2 + 1).max(SMALLEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow twin: newest first.
    #[derive(Default)]
    struct Model(Vec<(u64, u32)>);

    #[derive(Debug, Clone)]
    enum Step {
        Write(u64),
        Remove(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0u64..60).prop_map(Step::Write),
            1 => (0u64..60).prop_map(Step::Remove),
        ];
        prop::collection::vec(step, 1..400)
    }

    proptest! {
        #[test]
        fn the_index_equals_a_list(steps in steps(), capacity in prop::option::of(0u32..40)) {
            let mut index = LruIndex::new(capacity);
            let mut model = Model::default();
            let mut names: Vec<u64> = Vec::new();
            for step in steps {
                match step {
                    Step::Write(fp) => {
                        // Tags that agree in the low bits land in the same slots.
                        let fp = fp % 7 * 0x1_0000_0000 + fp;
                        let found = index.find(fp, |o| names[o as usize] == fp);
                        let at = model.0.iter().position(|&(f, _)| f == fp);
                        prop_assert_eq!(found.map(|e| index.object(e)), at.map(|i| model.0[i].1));
                        if let (Some(entry), Some(i)) = (found, at) {
                            index.touch(entry);
                            let hit = model.0.remove(i);
                            model.0.insert(0, hit);
                        } else {
                            let object = names.len() as u32;
                            names.push(fp);
                            let evicted = index.insert(fp, object);
                            model.0.insert(0, (fp, object));
                            let over = capacity.is_some_and(|c| model.0.len() > c as usize);
                            let expected = if over { model.0.pop() } else { None };
                            prop_assert_eq!(evicted, expected.map(|(_, o)| o));
                        }
                    }
                    Step::Remove(fp) => {
                        let fp = fp % 7 * 0x1_0000_0000 + fp;
                        if let Some(i) = model.0.iter().position(|&(f, _)| f == fp) {
                            let (_, object) = model.0.remove(i);
                            index.remove(fp, object);
                        }
                    }
                }
                index.check().map_err(TestCaseError::fail)?;
                let listed: Vec<u32> = index.objects().collect();
                let expected: Vec<u32> = model.0.iter().map(|&(_, o)| o).collect();
                prop_assert_eq!(listed, expected);
            }
        }
    }

    #[test]
    fn a_taken_over_entry_names_the_newer_object_at_the_head() {
        let mut index = LruIndex::new(Some(4));
        index.insert(1, 10);
        index.insert(2, 20);
        let entry = index.find(1, |o| o == 10).unwrap();
        assert_eq!(index.take_over(entry, 11), 10);
        assert_eq!(index.objects().collect::<Vec<_>>(), [11, 20]);
        index.check().unwrap();
    }
}
