//! The index as pages of a medium: written at a clean end and read at the next start, page by page, without a second
//! copy in memory.
//!
//! A page has any size from [`LEAST_PAGE_BYTES`] on, the same for all. Numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | checksum of all that follows, with the volume's key and the number of the page, of the head all ones |
//! | 8 | [`MAGIC`] |
//! | 4 | sets of the index |
//! | 4 | of the head [`AsOf::entered`], otherwise zero |
//! | 8 | of the head [`AsOf::state`], otherwise zero |
//! | 64 each | sets; those of page `n` begin with set `n` times the sets of a page; the head has none |
//! | the rest | zero |
//!
//! | bytes of a set | what |
//! |---|---|
//! | 4 times 12 | handles plus 1, the entry used last first; 0 where there is none |
//! | 12 | their tags but for two bits |
//! | 3 | these, those of the first entry lowest |
//! | 1 | 1 if the set has evicted entries, otherwise 0 |
//!
//! A page whose sets are empty and have evicted nothing is zeros, as a page that was never written: an index takes room
//! on its medium as it fills. Any other page by itself is whole or is ignored, and the index that it is read into may hold
//! entries already. Pages that are as they were read need not be written again ([`BoundedIndex::is_changed`]). Which state
//! of the volume all of them are of, the head says; it is written once they are durable.

use super::set::{EntrySet, SET_BYTES};
use super::{BoundedIndex, sets_within};
use crate::bytes::VolumeKey;

/// What a page begins with, behind its checksum: `FLINDEX` and the version of the format.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FLINDEX1");

/// What the index knew when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsOf {
    /// A number that the volume never has again once anything changes.
    pub state: u64,
    /// Objects with smaller handles had all been entered.
    pub entered: u32,
}

/// Bytes before the sets.
const HEAD_BYTES: usize = 32;

/// The smallest page: one of a set.
pub const LEAST_PAGE_BYTES: usize = HEAD_BYTES + SET_BYTES;

/// The number of the head.
const HEAD: u64 = u64::MAX;

impl BoundedIndex {
    /// Pages of so many bytes that the index takes beside its head; 0 if it has no sets or the pages are too small.
    pub fn pages(&self, page_bytes: usize) -> u64 {
        pages_of(self.sets.len(), page_bytes)
    }

    /// The same of an index of such a budget.
    pub fn pages_within(budget: u64, page_bytes: usize) -> u64 {
        pages_of(sets_within(budget), page_bytes)
    }

    /// Fills a page with what all others are as of.
    pub fn write_head(&self, key: &VolumeKey, as_of: AsOf, page: &mut [u8]) {
        page.fill(0);
        self.seal(key, HEAD, as_of, page);
    }

    /// What a head says of the pages of an index of this size; nothing if it does not hold.
    pub fn read_head(&self, key: &VolumeKey, page: &[u8]) -> Option<AsOf> {
        self.sealed(key, HEAD, page)
    }

    /// Fills a page with the sets that belong there as they are now; with zeros if there is no such page.
    pub fn write_page(&self, key: &VolumeKey, number: u64, page: &mut [u8]) {
        page.fill(0);
        let sets = &self.sets[self.sets_on(number, page.len())];
        if sets.iter().all(EntrySet::is_new) {
            return;
        }
        let (places, _) = page[HEAD_BYTES..].as_chunks_mut();
        for (out, set) in places.iter_mut().zip(sets) {
            set.encode(out);
        }
        let nothing = AsOf {
            state: 0,
            entered: 0,
        };
        self.seal(key, number, nothing, page);
    }

    /// Reads a page that an index of as many sets wrote. Its entries are older than those that the index holds, which
    /// stay. `handles` is the number of handles that objects have; entries that name others are left out. Whether it is
    /// a page of that number, of that volume and of an index of this size: otherwise nothing is read, and it counts as
    /// changed.
    pub fn read_page(&mut self, key: &VolumeKey, number: u64, page: &[u8], handles: u32) -> bool {
        let sets = self.sets_on(number, page.len());
        if sets.is_empty() || page.iter().all(|&byte| byte == 0) {
            return !sets.is_empty();
        }
        if self.sealed(key, number, page).is_none() {
            self.mark_changed(sets);
            return false;
        }
        if !self.sets[sets.clone()].iter().all(EntrySet::is_new) {
            self.mark_changed(sets.clone());
        }
        let (places, _) = page[HEAD_BYTES..].as_chunks();
        for (set, bytes) in sets.zip(places) {
            let known = EntrySet::decode(bytes).filter(|(_, object)| object.0 < handles);
            for (tag, object) in known {
                self.offer_oldest(set, tag, object);
            }
            if EntrySet::decode_evicted(bytes) {
                self.sets[set].note_evicted();
            }
        }
        true
    }

    /// Whether a page may differ from what was read of it.
    pub fn is_changed(&self, number: u64, page_bytes: usize) -> bool {
        let sets = self.sets_on(number, page_bytes);
        !sets.is_empty() && self.changed.any(sets)
    }

    /// All pages are to be written again.
    pub fn forget_pages(&mut self) {
        self.mark_changed(0..self.sets.len());
    }

    fn seal(&self, key: &VolumeKey, number: u64, as_of: AsOf, page: &mut [u8]) {
        page[8..16].copy_from_slice(&MAGIC.to_le_bytes());
        page[16..20].copy_from_slice(&(self.sets.len() as u32).to_le_bytes());
        page[20..24].copy_from_slice(&as_of.entered.to_le_bytes());
        page[24..32].copy_from_slice(&as_of.state.to_le_bytes());
        let checksum = key.checksum(number, &[&page[8..]]);
        page[..8].copy_from_slice(&checksum.to_le_bytes());
    }

    /// What the first bytes of a page say, if it holds.
    fn sealed(&self, key: &VolumeKey, number: u64, page: &[u8]) -> Option<AsOf> {
        let (checksum, all) = page.split_first_chunk()?;
        let (magic, rest) = all.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (entered, rest) = rest.split_first_chunk()?;
        let (state, _) = rest.split_first_chunk()?;
        let is_it = u64::from_le_bytes(*magic) == MAGIC
            && u32::from_le_bytes(*count) as usize == self.sets.len()
            && u64::from_le_bytes(*checksum) == key.checksum(number, &[all]);
        is_it.then(|| AsOf {
            state: u64::from_le_bytes(*state),
            entered: u32::from_le_bytes(*entered),
        })
    }

    /// The sets on a page.
    fn sets_on(&self, number: u64, page_bytes: usize) -> std::ops::Range<usize> {
        let all = self.sets.len();
        let sets = sets_of_page(page_bytes);
        let first = number.saturating_mul(sets as u64).min(all as u64) as usize;
        first..(first + sets).min(all)
    }
}

fn pages_of(sets: usize, page_bytes: usize) -> u64 {
    match sets_of_page(page_bytes) {
        0 => 0,
        of_page => sets.div_ceil(of_page) as u64,
    }
}

fn sets_of_page(page_bytes: usize) -> usize {
    page_bytes.saturating_sub(HEAD_BYTES) / SET_BYTES
}
