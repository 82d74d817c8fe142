//! Digests to value ids: the ids are dense and given in order of first appearance, so that the id of
//! a page is its index in a file of distinct pages kept in that order.
//!
//! The table is open addressing over 8-byte slots, each with 32 bits of the hash and an id. A slot's
//! place is the upper bits of what it holds, so that growing is one pass in order over both tables
//! and reads no digest. Digests come in groups: first the slots of the whole group are read, then the
//! digests they point to, then new ones are entered, so that cache misses overlap.
//!
//! Digests are random already, so one folded multiplication under keys drawn per table hashes them;
//! a trace made to collide cannot know the keys. They decide places in the table only, never an id.

use std::hash::{BuildHasher, RandomState};

use crate::error::Fault;

/// A page's digest as a trace gives it.
pub type Digest = [u8; 16];

/// Value ids stay below this number; the rest of the range marks what has no content.
pub const MAX_VALUES: u32 = u32::MAX - 1;

/// What the digest of an id begins with when the trace knew ids only.
const DERIVED_PREFIX: [u8; 12] = *b"flashlore:id";

/// Digests looked up together.
const GROUP: usize = 32;

/// Slots of a new table, as a power of two.
const FIRST_BITS: u32 = 10;

/// What an unused slot holds.
const EMPTY: u64 = 0;

/// An interner of page digests.
#[derive(Debug, Clone)]
pub struct Values {
    digests: Vec<Digest>,
    /// The hash in the upper half, the id plus one in the lower.
    slots: Vec<u64>,
    bits: u32,
    keys: [u64; 2],
}

impl Default for Values {
    fn default() -> Self {
        let state = RandomState::new();
        let keys = [state.hash_one(0u64), state.hash_one(1u64)];
        Values {
            digests: Vec::new(),
            slots: vec![EMPTY; 1 << FIRST_BITS],
            bits: FIRST_BITS,
            keys,
        }
    }
}

impl Values {
    /// The id of a digest, a new one if it was never seen.
    ///
    /// # Errors
    /// When 2^32 - 2 distinct digests have been seen already.
    pub fn intern(&mut self, digest: Digest) -> Result<u32, Fault> {
        self.enter(hash(&self.keys, &digest), digest)
    }

    /// Appends the ids of many digests to `ids`, as [`Values::intern`] gives them one by one.
    pub fn intern_all(&mut self, digests: &[Digest], ids: &mut Vec<u32>) -> Result<(), Fault> {
        ids.reserve(digests.len());
        for group in digests.chunks(GROUP) {
            let mut hashes = [0; GROUP];
            let mut first = [EMPTY; GROUP];
            for ((digest, hash_out), slot) in group.iter().zip(&mut hashes).zip(&mut first) {
                *hash_out = hash(&self.keys, digest);
                *slot = self.slots[place(*hash_out, self.bits)];
            }
            let mut found = [None; GROUP];
            for (i, digest) in group.iter().enumerate() {
                found[i] = self.matches(first[i], hashes[i], digest);
            }
            for (i, digest) in group.iter().enumerate() {
                ids.push(match found[i] {
                    Some(id) => id,
                    None => self.enter(hashes[i], *digest)?,
                });
            }
        }
        Ok(())
    }

    /// The id in a slot, if it is that of this digest.
    #[inline]
    fn matches(&self, slot: u64, hash: u32, digest: &Digest) -> Option<u32> {
        if slot == EMPTY || (slot >> 32) as u32 != hash {
            return None;
        }
        let id = slot as u32 - 1;
        (self.digests[id as usize] == *digest).then_some(id)
    }

    fn enter(&mut self, hash: u32, digest: Digest) -> Result<u32, Fault> {
        let mask = self.slots.len() - 1;
        let mut at = place(hash, self.bits);
        while self.slots[at] != EMPTY {
            if let Some(id) = self.matches(self.slots[at], hash, &digest) {
                return Ok(id);
            }
            at = (at + 1) & mask;
        }
        let id = self.digests.len() as u32;
        if id >= MAX_VALUES {
            return Err(too_many_values("digest"));
        }
        self.slots[at] = u64::from(hash) << 32 | u64::from(id + 1);
        self.digests.push(digest);
        if self.digests.len() * 5 > self.slots.len() * 3 {
            self.grow();
        }
        Ok(id)
    }

    /// Doubles the table. The old slots come in order of the new places, but for a few at its ends.
    fn grow(&mut self) {
        self.bits += 1;
        let mut slots = vec![EMPTY; 1 << self.bits];
        let mask = slots.len() - 1;
        for &slot in self.slots.iter().filter(|&&slot| slot != EMPTY) {
            let mut at = place((slot >> 32) as u32, self.bits);
            while slots[at] != EMPTY {
                at = (at + 1) & mask;
            }
            slots[at] = slot;
        }
        self.slots = slots;
    }

    /// Number of distinct digests, which is the next new id.
    pub fn len(&self) -> u32 {
        self.digests.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// The digest of an id, if this table gave it.
    pub fn digest(&self, id: u32) -> Option<Digest> {
        self.digests.get(id as usize).copied()
    }
}

/// The digest printed for an id whose trace knew ids only: 12 fixed bytes and the id, so that
/// different ids have different digests.
pub fn derived_digest(id: u32) -> Digest {
    let mut digest = [0; 16];
    digest[..12].copy_from_slice(&DERIVED_PREFIX);
    digest[12..].copy_from_slice(&id.to_be_bytes());
    digest
}

/// The one digest of a page given as digests of its sectors: the first 16 bytes of the BLAKE3 of
/// those digests in order.
pub fn of_sectors(sectors: &[u8]) -> Digest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(sectors).as_bytes()[..16]);
    digest
}

pub(crate) fn too_many_values(field: &'static str) -> Fault {
    let expected = "at most 4294967294 distinct values in a trace";
    Fault::value(field, "one more new value", expected)
}

#[inline]
fn hash(keys: &[u64; 2], digest: &Digest) -> u32 {
    let bits = u128::from_le_bytes(*digest);
    let product = u128::from(bits as u64 ^ keys[0]) * u128::from((bits >> 64) as u64 ^ keys[1]);
    ((product as u64 ^ (product >> 64) as u64) >> 32) as u32
}

/// The place of a hash in a table of 2^`bits` slots. A table of more than 2^32 slots (beyond
/// 2.5 billion ids) leaves places between.
#[inline]
fn place(hash: u32, bits: u32) -> usize {
    match bits {
        0..=32 => (u64::from(hash) >> (32 - bits)) as usize,
        _ => (u64::from(hash) << (bits - 32)) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_dense_in_order_of_first_appearance() {
        let mut values = Values::default();
        let digests: Vec<Digest> = (0..5000u32).map(|i| *blake3_of(i % 1000)).collect();
        for (i, digest) in digests.iter().enumerate() {
            assert_eq!(values.intern(*digest), Ok(i as u32 % 1000));
        }
        assert_eq!(values.len(), 1000);
        assert_eq!(values.digest(7), Some(digests[7]));
        assert_eq!(values.digest(1000), None);
    }

    #[test]
    fn groups_give_the_ids_of_single_calls() {
        let digests: Vec<Digest> = (0..30_000u32)
            .map(|i| *blake3_of(i.wrapping_mul(i) % 9001))
            .collect();
        let mut one_by_one = Values::default();
        let wanted: Vec<u32> = digests
            .iter()
            .map(|digest| one_by_one.intern(*digest).unwrap())
            .collect();
        let mut values = Values::default();
        let mut ids = Vec::new();
        for part in digests.chunks(777) {
            values.intern_all(part, &mut ids).unwrap();
        }
        assert_eq!(ids, wanted);
        assert_eq!(values.len(), one_by_one.len());
    }

    #[test]
    fn digests_that_share_a_half_keep_apart() {
        let mut values = Values::default();
        for i in 0..10_000u64 {
            let mut low = [0; 16];
            low[..8].copy_from_slice(&i.to_le_bytes());
            let mut high = [0xff; 16];
            high[8..].copy_from_slice(&i.to_le_bytes());
            assert_eq!(values.intern(low), Ok(2 * i as u32));
            assert_eq!(values.intern(high), Ok(2 * i as u32 + 1));
        }
    }

    #[test]
    fn derived_digests_differ() {
        assert_ne!(derived_digest(1), derived_digest(256));
        assert_eq!(&derived_digest(0x0102_0304)[12..], [1, 2, 3, 4]);
    }

    fn blake3_of(i: u32) -> Box<Digest> {
        Box::new(of_sectors(&i.to_le_bytes()))
    }
}
