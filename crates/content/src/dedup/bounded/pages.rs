//! The index as pages of a medium: written at a clean end and read at the next start, page by page, without a second
//! copy in memory.
//!
//! A page has any size from [`LEAST_PAGE_BYTES`] on, the same for all. Numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | checksum of all that follows, with the volume's key and the number of the page |
//! | 8 | [`MAGIC`] |
//! | 4 | sets of the index |
//! | 4 | [`AsOf::entered`] |
//! | 8 | [`AsOf::state`] |
//! | 64 each | sets; those of page `n` begin with set `n` times the sets of a page |
//! | the rest | zero |
//!
//! | bytes of a set | what |
//! |---|---|
//! | 4 times 12 | handles plus 1, the entry used last first; 0 where there is none |
//! | 12 | their tags but for two bits |
//! | 3 | these, those of the first entry lowest |
//! | 1 | 1 if the set has evicted entries, otherwise 0 |
//!
//! A page by itself is whole or is ignored, whatever the others are: pages may be written while the index is in use, a
//! crash may leave some of them old, and the index that they are read into may hold entries already. Each says of which
//! state of the volume it is: only where all are of the present one nothing is missing.

use super::set::{EntrySet, SET_BYTES};
use super::{BoundedIndex, sets_within};
use crate::bytes::VolumeKey;

/// What a page begins with, behind its checksum: `FLINDEX` and the version of the format.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FLINDEX1");

/// What the index knew when a page of it was written.
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

impl BoundedIndex {
    /// Pages of so many bytes that the index takes; 0 if it has no sets or the pages are too small.
    pub fn pages(&self, page_bytes: usize) -> u64 {
        pages_of(self.sets.len(), page_bytes)
    }

    /// The same of an index of such a budget.
    pub fn pages_within(budget: u64, page_bytes: usize) -> u64 {
        pages_of(sets_within(budget), page_bytes)
    }

    /// Fills a page with the sets that belong there as they are now; with zeros if there is no such page.
    pub fn write_page(&self, key: &VolumeKey, number: u64, as_of: AsOf, page: &mut [u8]) {
        page.fill(0);
        let sets = self.sets_on(number, page.len());
        if sets.is_empty() {
            return;
        }
        page[8..16].copy_from_slice(&MAGIC.to_le_bytes());
        page[16..20].copy_from_slice(&(self.sets.len() as u32).to_le_bytes());
        page[20..24].copy_from_slice(&as_of.entered.to_le_bytes());
        page[24..32].copy_from_slice(&as_of.state.to_le_bytes());
        let (places, _) = page[HEAD_BYTES..].as_chunks_mut();
        for (out, set) in places.iter_mut().zip(&self.sets[sets]) {
            set.encode(out);
        }
        let checksum = key.checksum(number, &[&page[8..]]);
        page[..8].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Reads a page that an index of as many sets wrote. Its entries are older than those that the index holds, which
    /// stay. `handles` is the number of handles that objects have; entries that name others are left out. Answers what
    /// the page says of itself; `None` if it is no page of that number, of that volume or of an index of this size. Then
    /// nothing changes.
    pub fn read_page(
        &mut self,
        key: &VolumeKey,
        number: u64,
        page: &[u8],
        handles: u32,
    ) -> Option<AsOf> {
        let sets = self.sets_on(number, page.len());
        let (checksum, all) = page.split_first_chunk()?;
        let (magic, rest) = all.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (entered, rest) = rest.split_first_chunk()?;
        let (state, places) = rest.split_first_chunk()?;
        let is_it = u64::from_le_bytes(*magic) == MAGIC
            && u32::from_le_bytes(*count) as usize == self.sets.len()
            && u64::from_le_bytes(*checksum) == key.checksum(number, &[all]);
        if sets.is_empty() || !is_it {
            return None;
        }
        let (places, _) = places.as_chunks();
        for (set, bytes) in sets.zip(places) {
            let known = EntrySet::decode(bytes).filter(|(_, object)| object.0 < handles);
            for (tag, object) in known {
                self.insert_oldest(set, tag, object);
            }
            if EntrySet::decode_evicted(bytes) {
                self.sets[set].note_evicted();
            }
        }
        Some(AsOf {
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
