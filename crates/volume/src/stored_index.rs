//! The fingerprint index on a medium of its own, between a clean end and the next opening.
//!
//! A clean end writes all pages of it ([`flashlore_content::dedup::bounded::pages`]); the next opening reads them, a few at a
//! time while it serves, instead of the rows of all objects. It is a cache: there is no barrier, a page that does not hold
//! is passed over, and what nothing proves to be entered is entered from the rows afterwards. After a crash the pages of the
//! last clean end are read all the same: most of what they name is still there.
//!
//! Invariants: a page that was not read is not written over; all objects count as entered only if every page says so as of
//! the state that the last user closed.

use std::sync::Arc;

use flashlore_content::VolumeKey;
use flashlore_content::dedup::BoundedIndex;
use flashlore_content::dedup::bounded::pages::AsOf;
use flashlore_flash::ObjectId;
use flashlore_medium::{AlignedBuf, Medium};

use crate::format::Identity;
use crate::memory::MemoryShares;
use crate::policies::dedup_options;

const PAGE_BYTES: usize = 4096;
/// Pages that are read or written at a time: some twelve thousand entries.
const AT_ONCE: u64 = 16;

/// Bytes of the medium that keeps the index of a volume which has so much memory; 0 if it has no index.
pub fn stored_index_bytes(id: &Identity, memory: &MemoryShares) -> u64 {
    let entries = dedup_options(id, memory.index_entries).index_entries;
    let budget = BoundedIndex::budget_for(entries.unwrap_or(u32::MAX));
    BoundedIndex::pages_within(budget, PAGE_BYTES) * PAGE_BYTES as u64
}

/// The index as the last user left it, and as this one will.
pub(crate) struct StoredIndex {
    medium: Arc<dyn Medium>,
    key: VolumeKey,
    /// The page that is read next, of so many.
    next: u64,
    pages: u64,
    /// The state that the last user closed, if it did.
    closed: Option<u64>,
    /// Objects with smaller handles have been entered, as far as pages were read.
    entered: u32,
}

/// Pages that are to be read, without the volume.
pub(crate) struct PagesToRead {
    medium: Arc<dyn Medium>,
    first: u64,
    count: u64,
}

/// Pages as they were read.
pub(crate) struct ReadPages {
    first: u64,
    bytes: AlignedBuf,
}

impl PagesToRead {
    /// Reads them. What cannot be read is zeros, as a page that was never written.
    pub fn read(self) -> ReadPages {
        let mut bytes = AlignedBuf::zeroed(self.count as usize * PAGE_BYTES);
        let read = self.medium.read(self.first * PAGE_BYTES as u64, &mut bytes);
        if read.is_err() {
            bytes.fill(0);
        }
        ReadPages {
            first: self.first,
            bytes,
        }
    }
}

impl StoredIndex {
    /// What is on a medium, of a volume with this key whose last user closed this state.
    pub fn new(
        medium: Arc<dyn Medium>,
        key: VolumeKey,
        index: &BoundedIndex,
        closed: Option<u64>,
    ) -> Self {
        let all = index.pages(PAGE_BYTES);
        let pages = all.min(medium.len() / PAGE_BYTES as u64);
        StoredIndex {
            medium,
            key,
            next: 0,
            pages,
            closed,
            entered: if pages == all { u32::MAX } else { 0 },
        }
    }

    /// The pages that are read next; nothing once all were.
    pub fn to_read(&self) -> Option<PagesToRead> {
        let count = AT_ONCE.min(self.pages - self.next);
        (count > 0).then(|| PagesToRead {
            medium: Arc::clone(&self.medium),
            first: self.next,
            count,
        })
    }

    /// Enters what pages have into an index of objects with so many handles. Those that were taken already change nothing.
    pub fn take(&mut self, read: &ReadPages, index: &mut BoundedIndex, handles: u32) {
        if read.first != self.next {
            return;
        }
        for page in read.bytes.chunks(PAGE_BYTES) {
            let as_of = index.read_page(&self.key, self.next, page, handles);
            let entered = as_of.filter(|as_of| Some(as_of.state) == self.closed);
            self.entered = self.entered.min(entered.map_or(0, |as_of| as_of.entered));
            self.next += 1;
        }
    }

    /// The object from which on not all have been entered, once all pages were read; nothing if all have.
    pub fn unentered(&self) -> Option<ObjectId> {
        (self.entered < u32::MAX).then_some(ObjectId(self.entered))
    }

    /// Writes the index, as the volume is closed. What cannot be written is entered from the rows of the objects by the next
    /// opening.
    pub fn write(&self, index: &BoundedIndex, as_of: AsOf) {
        let mut bytes = AlignedBuf::new();
        for first in (0..self.pages).step_by(AT_ONCE as usize) {
            let count = AT_ONCE.min(self.pages - first);
            bytes.resize(count as usize * PAGE_BYTES);
            for (number, page) in (first..).zip(bytes.chunks_mut(PAGE_BYTES)) {
                index.write_page(&self.key, number, as_of, page);
            }
            if self
                .medium
                .write(first * PAGE_BYTES as u64, &bytes)
                .is_err()
            {
                return;
            }
        }
    }

    /// Nothing of what is there is to stay: it may name what was purged. All objects are to be entered again, if the pages
    /// were not read before.
    pub fn forget(&mut self) {
        // A medium that cannot do it keeps a part of each digest, and no content.
        let _ = self.medium.discard(0, self.pages * PAGE_BYTES as u64);
        if self.next < self.pages {
            self.entered = 0;
            self.next = self.pages;
        }
    }
}
