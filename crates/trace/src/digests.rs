//! Digests to value ids: the ids are dense and given in order of first appearance, so that the id of
//! a page is its index in a file of distinct pages kept in that order.
//!
//! Digests are opaque and random already, so the table hashes them with one folded multiplication
//! under keys drawn per table; a trace made to collide cannot know them. The keys decide places in
//! the table only, never an id.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::error::Fault;

/// A page's digest as a trace gives it.
pub type Digest = [u8; 16];

/// Value ids stay below this number; the rest of the range marks what has no content.
pub const MAX_VALUES: u32 = u32::MAX - 1;

/// What the digest of an id begins with when the trace knew ids only.
const DERIVED_PREFIX: [u8; 12] = *b"flashlore:id";

/// An interner of page digests.
#[derive(Debug, Clone)]
pub struct Values {
    digests: Vec<Digest>,
    table: HashTable<u32>,
    keys: [u64; 2],
}

impl Default for Values {
    fn default() -> Self {
        let state = RandomState::new();
        let keys = [state.hash_one(0u64), state.hash_one(1u64)];
        Values {
            digests: Vec::new(),
            table: HashTable::new(),
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
        let Values {
            digests,
            table,
            keys,
        } = self;
        let same = |&id: &u32| digests[id as usize] == digest;
        let rehash = |&id: &u32| place(keys, &digests[id as usize]);
        match table.entry(place(keys, &digest), same, rehash) {
            Entry::Occupied(entry) => Ok(*entry.get()),
            Entry::Vacant(entry) => {
                let id = digests.len() as u32;
                if id >= MAX_VALUES {
                    return Err(Fault::value(
                        "digest",
                        "one more new value",
                        "at most 4294967294 distinct values in a trace",
                    ));
                }
                entry.insert(id);
                digests.push(digest);
                Ok(id)
            }
        }
    }

    /// Number of distinct digests, which is the next new id.
    pub fn len(&self) -> u32 {
        self.digests.len() as u32
    }

    /// Whether no digest has been seen.
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

fn place(keys: &[u64; 2], digest: &Digest) -> u64 {
    let bits = u128::from_le_bytes(*digest);
    let product = u128::from(bits as u64 ^ keys[0]) * u128::from((bits >> 64) as u64 ^ keys[1]);
    product as u64 ^ (product >> 64) as u64
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
