//! One set of the bounded index: the entries whose fingerprints agree in the bits that choose the set, in one cache
//! line.
//!
//! Entries stand in the order of their last use, the newest first. A full set gives up an entry for a new one. The
//! [`RECENT`] newest stay. Of the others that of the highest *rank* goes, and a rank follows from the object's handle
//! alone. So what is left of all older entries is a sample of them, as even as ranks are spread, whatever the order in
//! which they came: scans that are longer than the index leave a part of everything, not all of the end and nothing of
//! the beginning.
//!
//! Invariants: entries have no gap between them; no two name one object; what is empty is zero.

use flashlore_flash::ObjectId;

/// Most entries of a set.
pub const WAYS: usize = 12;

/// Entries that are not given up, whatever their rank: those used last. An LRU of a third of the index.
pub const RECENT: usize = 4;

/// Bytes of a set, in memory and written.
pub const SET_BYTES: usize = 64;

/// Bytes of the handles in a written set; the tags follow.
const HANDLE_BYTES: usize = WAYS * 4;

/// Where in a written set it stands whether the set has evicted.
const EVICTED_AT: usize = HANDLE_BYTES + WAYS;

/// A set; all zero is empty.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EntrySet {
    /// Handles plus 1, the newest first.
    handles: [u32; WAYS],
    /// Of each entry bits of its fingerprint that did not choose the set.
    tags: [u8; WAYS],
    len: u8,
    has_evicted: bool,
}

const _: () = assert!(size_of::<EntrySet>() == SET_BYTES);

/// What became of an entry that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// It is in the set, which has one more.
    Added,
    /// Its object had an entry before.
    Known,
    /// The set was full: this entry or another one has no place any more.
    Evicted,
}

/// Which of two old entries stays: that of the lower rank. Multiples of the golden ratio spread evenly over all
/// numbers, so that of objects numbered one after the other every second stays, or every third, without long gaps.
fn rank(object: ObjectId) -> u32 {
    object.0.wrapping_mul(0x9E37_79B9)
}

impl EntrySet {
    /// Entries held.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether an entry ever lost its place to another one.
    pub fn has_evicted(&self) -> bool {
        self.has_evicted
    }

    /// Notes that entries are missing.
    pub fn note_evicted(&mut self) {
        self.has_evicted = true;
    }

    /// The entry at a place; 0 is the newest.
    pub fn entry(&self, at: usize) -> Option<(u8, ObjectId)> {
        (at < self.len()).then(|| (self.tags[at], self.object(at)))
    }

    /// The first object with a tag, the newest first, that is accepted.
    #[inline]
    pub fn find(&self, tag: u8, mut accepts: impl FnMut(ObjectId) -> bool) -> Option<ObjectId> {
        let mut equal = 0u32;
        for (at, &found) in self.tags.iter().enumerate() {
            equal |= u32::from(found == tag) << at;
        }
        equal &= (1 << self.len) - 1;
        while equal != 0 {
            let object = self.object(equal.trailing_zeros() as usize);
            if accepts(object) {
                return Some(object);
            }
            equal &= equal - 1;
        }
        None
    }

    /// Makes the entry of an object the newest; whether it has one.
    pub fn touch(&mut self, object: ObjectId) -> bool {
        let at = self.position(object);
        if let Some(at) = at {
            self.rotate(at);
        }
        at.is_some()
    }

    /// Makes an object the newest. An older entry of its handle, which named what had the handle before, is given up.
    pub fn insert(&mut self, tag: u8, object: ObjectId) -> Offered {
        let (at, outcome) = match self.position(object) {
            Some(at) => (at, Offered::Known),
            None if self.len() < WAYS => {
                self.len += 1;
                (self.len() - 1, Offered::Added)
            }
            None => {
                self.has_evicted = true;
                (self.highest(RECENT - 1), Offered::Evicted)
            }
        };
        self.rotate(at);
        self.set(0, tag, object);
        outcome
    }

    /// Takes an object that is older than all entries; in a full set the ranks decide. One that has an entry keeps it.
    pub fn insert_oldest(&mut self, tag: u8, object: ObjectId) -> Offered {
        if self.position(object).is_some() {
            return Offered::Known;
        }
        if self.len() < WAYS {
            self.set(self.len(), tag, object);
            self.len += 1;
            return Offered::Added;
        }
        self.has_evicted = true;
        let highest = self.highest(RECENT);
        if rank(object) < rank(self.object(highest)) {
            self.handles[highest..].rotate_left(1);
            self.tags[highest..].rotate_left(1);
            self.set(WAYS - 1, tag, object);
        }
        Offered::Evicted
    }

    /// Removes the entry with a tag and an object; whether there was one.
    pub fn remove(&mut self, tag: u8, object: ObjectId) -> bool {
        let Some(at) = self.position(object).filter(|&at| self.tags[at] == tag) else {
            return false;
        };
        let last = self.len() - 1;
        self.handles[at..=last].rotate_left(1);
        self.tags[at..=last].rotate_left(1);
        (self.handles[last], self.tags[last]) = (0, 0);
        self.len -= 1;
        true
    }

    /// The set as bytes, numbers little-endian: handles plus 1, tags, whether it has evicted, three zeros.
    pub fn encode(&self, out: &mut [u8; SET_BYTES]) {
        out.fill(0);
        let (handles, _) = out.as_chunks_mut::<4>();
        for (out, handle) in handles.iter_mut().zip(self.handles) {
            *out = handle.to_le_bytes();
        }
        out[HANDLE_BYTES..EVICTED_AT].copy_from_slice(&self.tags);
        out[EVICTED_AT] = u8::from(self.has_evicted);
    }

    /// The entries of a set that was written, the newest first, whatever the bytes are.
    pub fn decode(bytes: &[u8; SET_BYTES]) -> impl Iterator<Item = (u8, ObjectId)> {
        let (handles, _) = bytes.as_chunks::<4>();
        let tags = &bytes[HANDLE_BYTES..EVICTED_AT];
        let entries = handles.iter().zip(tags);
        entries.filter_map(|(&handle, &tag)| {
            let handle = u32::from_le_bytes(handle).checked_sub(1)?;
            Some((tag, ObjectId(handle)))
        })
    }

    /// Whether a set that was written had evicted.
    pub fn decode_evicted(bytes: &[u8; SET_BYTES]) -> bool {
        bytes[EVICTED_AT] != 0
    }

    /// Looks at every invariant.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        if self.len() > WAYS {
            return Err(format!("has {} entries of {WAYS}", self.len));
        }
        let (used, empty) = self.handles.split_at(self.len());
        if empty.iter().any(|&handle| handle != 0)
            || self.tags[self.len()..].iter().any(|&tag| tag != 0)
        {
            return Err(format!("has more than its {} entries", self.len));
        }
        for (at, &handle) in used.iter().enumerate() {
            if handle == 0 {
                return Err(format!("has no entry at {at} of {}", self.len));
            }
            if used[..at].contains(&handle) {
                return Err(format!("names object {} twice", handle - 1));
            }
        }
        Ok(())
    }

    fn object(&self, at: usize) -> ObjectId {
        ObjectId(self.handles[at].wrapping_sub(1))
    }

    fn set(&mut self, at: usize, tag: u8, object: ObjectId) {
        (self.handles[at], self.tags[at]) = (object.0.wrapping_add(1), tag);
    }

    fn position(&self, object: ObjectId) -> Option<usize> {
        let handle = object.0.wrapping_add(1);
        let entries = &self.handles[..self.len()];
        entries.iter().position(|&found| found == handle)
    }

    /// Makes the entry at a place the newest.
    fn rotate(&mut self, at: usize) {
        self.handles[..=at].rotate_right(1);
        self.tags[..=at].rotate_right(1);
    }

    /// In a full set the place of the entry of the highest rank behind the first so many.
    fn highest(&self, first: usize) -> usize {
        let places = first..WAYS;
        let highest = places.max_by_key(|&at| rank(self.object(at)));
        highest.unwrap_or(WAYS - 1)
    }
}
