//! One set of the bounded index: the entries whose fingerprints agree in the bits that choose the set, in one cache
//! line.
//!
//! Entries stand in the order of their last use, the newest first. A full set gives up an entry for a new one. The
//! [`RECENT`] newest stay. Of the others that of the highest *rank* goes, and a rank follows from the object's handle
//! alone. So what is left of all older entries is a sample of them, as even as ranks are spread, whatever the order in
//! which they came: scans that are longer than the index leave a part of everything, not all of the end and nothing of
//! the beginning.
//!
//! An entry has a tag of ten bits. A tag that agrees by chance makes the caller look at an object for nothing, which on a
//! large volume may be a read of the medium: with 12 entries that is one search in 85, with tags of a byte one in 21.
//!
//! Invariants: entries have no gap between them; no two name one object; what is empty is zero.

use flashlore_flash::ObjectId;

/// Most entries of a set.
pub const WAYS: usize = 12;

/// Entries that are not given up, whatever their rank: those used last. An LRU of a third of the index.
pub const RECENT: usize = 4;

/// Bytes of a set, in memory and written.
pub const SET_BYTES: usize = 64;

/// Bits of a tag.
pub const TAG_BITS: u32 = 10;

/// In a written set the low bytes of the tags follow the handles, then two more bits of each, then whether the set has
/// evicted.
const LOW_AT: usize = WAYS * 4;
const HIGH_AT: usize = LOW_AT + WAYS;
const EVICTED_AT: usize = SET_BYTES - 1;

/// A set; all zero is empty.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EntrySet {
    /// Handles plus 1, the newest first.
    handles: [u32; WAYS],
    /// Of each entry bits of its fingerprint that did not choose the set: eight of them,
    low: [u8; WAYS],
    /// two more of each, those of the newest lowest; then the number of entries (4 bits), and whether the set has evicted.
    rest: u32,
}

const _: () = assert!(size_of::<EntrySet>() == SET_BYTES);

/// Where in `rest` the number of entries begins, its bits, and the bit of a set that has evicted.
const LEN_AT: u32 = 2 * WAYS as u32;
const LEN: u32 = 0xf;
const EVICTED: u32 = 1 << (LEN_AT + 4);

/// The two bits of so many entries.
fn two_bits(entries: usize) -> u32 {
    (1 << (2 * entries)) - 1
}

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
        (self.rest >> LEN_AT & LEN) as usize
    }

    fn set_len(&mut self, len: usize) {
        self.rest = self.rest & !(LEN << LEN_AT) | (len as u32) << LEN_AT;
    }

    /// Whether an entry ever lost its place to another one.
    pub fn has_evicted(&self) -> bool {
        self.rest & EVICTED != 0
    }

    /// Whether it is as it was made: without entries, and it never had more than it has room for.
    pub fn is_new(&self) -> bool {
        *self == EntrySet::default()
    }

    /// Notes that entries are missing.
    pub fn note_evicted(&mut self) {
        self.rest |= EVICTED;
    }

    /// The entry at a place; 0 is the newest.
    pub fn entry(&self, at: usize) -> Option<(u16, ObjectId)> {
        (at < self.len()).then(|| (self.tag(at), self.object(at)))
    }

    /// The first object with a tag, the newest first, that is accepted.
    #[inline]
    pub fn find(&self, tag: u16, mut accepts: impl FnMut(ObjectId) -> bool) -> Option<ObjectId> {
        let mut equal = 0u32;
        for (at, &found) in self.low.iter().enumerate() {
            equal |= u32::from(found == tag as u8) << at;
        }
        equal &= (1 << self.len()) - 1;
        while equal != 0 {
            let at = equal.trailing_zeros() as usize;
            if self.tag(at) == tag && accepts(self.object(at)) {
                return Some(self.object(at));
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
    pub fn insert(&mut self, tag: u16, object: ObjectId) -> Offered {
        let (at, outcome) = match self.position(object) {
            Some(at) => (at, Offered::Known),
            None if self.len() < WAYS => {
                self.set_len(self.len() + 1);
                (self.len() - 1, Offered::Added)
            }
            None => {
                self.note_evicted();
                (self.highest(RECENT - 1), Offered::Evicted)
            }
        };
        self.rotate(at);
        self.set(0, tag, object);
        outcome
    }

    /// Takes an object that is older than all entries; in a full set the ranks decide. One that has an entry keeps it.
    pub fn insert_oldest(&mut self, tag: u16, object: ObjectId) -> Offered {
        if self.position(object).is_some() {
            return Offered::Known;
        }
        if self.len() < WAYS {
            self.set(self.len(), tag, object);
            self.set_len(self.len() + 1);
            return Offered::Added;
        }
        self.note_evicted();
        let highest = self.highest(RECENT);
        if rank(object) < rank(self.object(highest)) {
            self.make_last(highest, WAYS - 1);
            self.set(WAYS - 1, tag, object);
        }
        Offered::Evicted
    }

    /// Removes the entry with a tag and an object; whether there was one.
    pub fn remove(&mut self, tag: u16, object: ObjectId) -> bool {
        let Some(at) = self.position(object).filter(|&at| self.tag(at) == tag) else {
            return false;
        };
        let last = self.len() - 1;
        self.make_last(at, last);
        // A handle of 0 names nobody.
        self.set(last, 0, ObjectId::NONE);
        self.set_len(last);
        true
    }

    /// The set as bytes, numbers little-endian: handles plus 1, eight bits of the tags, two more of each, whether it has
    /// evicted.
    pub fn encode(&self, out: &mut [u8; SET_BYTES]) {
        out.fill(0);
        let (handles, _) = out.as_chunks_mut::<4>();
        for (out, handle) in handles.iter_mut().zip(self.handles) {
            *out = handle.to_le_bytes();
        }
        out[LOW_AT..HIGH_AT].copy_from_slice(&self.low);
        // Three bytes of bits; the fourth is the last one.
        out[HIGH_AT..].copy_from_slice(&(self.rest & two_bits(WAYS)).to_le_bytes());
        out[EVICTED_AT] = self.has_evicted().into();
    }

    /// The entries of a set that was written, the newest first, whatever the bytes are.
    pub fn decode(bytes: &[u8; SET_BYTES]) -> impl Iterator<Item = (u16, ObjectId)> {
        let (words, _) = bytes.as_chunks::<4>();
        let high = u32::from_le_bytes(words[HIGH_AT / 4]);
        let entries = words.iter().zip(&bytes[LOW_AT..HIGH_AT]).enumerate();
        entries.filter_map(move |(at, (&handle, &low))| {
            let handle = u32::from_le_bytes(handle).checked_sub(1)?;
            let high = (high >> (2 * at) & 3) as u16;
            Some((high << 8 | u16::from(low), ObjectId(handle)))
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
            return Err(format!("has {} entries of {WAYS}", self.len()));
        }
        let (used, empty) = self.handles.split_at(self.len());
        let mut places = self.len()..WAYS;
        if empty.iter().any(|&handle| handle != 0) || places.any(|at| self.tag(at) != 0) {
            return Err(format!("has more than its {} entries", self.len()));
        }
        for (at, &handle) in used.iter().enumerate() {
            if handle == 0 {
                return Err(format!("has no entry at {at} of {}", self.len()));
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

    fn tag(&self, at: usize) -> u16 {
        let high = (self.rest >> (2 * at) & 3) as u16;
        high << 8 | u16::from(self.low[at])
    }

    fn set(&mut self, at: usize, tag: u16, object: ObjectId) {
        (self.handles[at], self.low[at]) = (object.0.wrapping_add(1), tag as u8);
        self.rest = self.rest & !(3 << (2 * at)) | u32::from(tag >> 8) << (2 * at);
    }

    fn position(&self, object: ObjectId) -> Option<usize> {
        let handle = object.0.wrapping_add(1);
        let entries = &self.handles[..self.len()];
        entries.iter().position(|&found| found == handle)
    }

    /// Makes the entry at a place the newest.
    fn rotate(&mut self, at: usize) {
        self.handles[..=at].rotate_right(1);
        self.low[..=at].rotate_right(1);
        let all = two_bits(at + 1);
        let high = self.rest & all;
        self.rest = self.rest & !all | high << 2 & all | high >> (2 * at);
    }

    /// Makes the entry at a place the last of those up to another place.
    fn make_last(&mut self, at: usize, last: usize) {
        self.handles[at..=last].rotate_left(1);
        self.low[at..=last].rotate_left(1);
        let all = two_bits(last + 1) & !two_bits(at);
        let high = self.rest & all;
        let own = high >> (2 * at) & 3;
        self.rest = self.rest & !all | high >> 2 & all | own << (2 * last);
    }

    /// In a full set the place of the entry of the highest rank behind the first so many.
    fn highest(&self, first: usize) -> usize {
        let places = first..WAYS;
        let highest = places.max_by_key(|&at| rank(self.object(at)));
        highest.unwrap_or(WAYS - 1)
    }
}
