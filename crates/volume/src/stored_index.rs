//! The fingerprint index on a medium of its own, between a clean end and the next opening.
//!
//! A clean end writes the pages that have changed ([`flashlore_content::dedup::bounded::pages`]), and once they are durable
//! the head, which says that they are of the state that was closed. The next opening reads them, a few at a time while it
//! serves, instead of the rows of all objects. It is a cache: a page that does not hold is passed over, and what nothing
//! proves to be entered is entered from the rows afterwards. After a crash the pages of the last clean end are read all the
//! same: most of what they name is still there.
//!
//! Invariants: a page that was not read is not written over; all objects count as entered only if the head is of the state
//! that the last user closed and every page holds.

use std::sync::Arc;

use flashlore_content::VolumeKey;
use flashlore_content::dedup::BoundedIndex;
use flashlore_content::dedup::bounded::pages::AsOf;
use flashlore_flash::ObjectId;
use flashlore_medium::{AlignedBuf, Medium, MediumError};

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
    match BoundedIndex::pages_within(budget, PAGE_BYTES) {
        0 => 0,
        pages => offset_of(pages),
    }
}

/// Where a page lies; the head is before them.
fn offset_of(page: u64) -> u64 {
    (1 + page) * PAGE_BYTES as u64
}

/// The index as the last user left it, and as this one will.
pub(crate) struct StoredIndex {
    medium: Arc<dyn Medium>,
    key: VolumeKey,
    /// The page that is read next, of so many.
    next: u64,
    pages: u64,
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
    /// Reads them. What cannot be read is ones, which no page is.
    pub fn read(self) -> ReadPages {
        let mut bytes = AlignedBuf::zeroed(self.count as usize * PAGE_BYTES);
        if self.medium.read(offset_of(self.first), &mut bytes).is_err() {
            bytes.fill(0xff);
        }
        ReadPages {
            first: self.first,
            bytes,
        }
    }
}

impl StoredIndex {
    /// What is on a medium, of a volume with this key whose last user closed this state, if it closed it. Nothing if there
    /// is no room for it.
    pub fn new(
        medium: Arc<dyn Medium>,
        key: VolumeKey,
        index: &BoundedIndex,
        closed: Option<u64>,
    ) -> Option<Self> {
        let pages = index.pages(PAGE_BYTES);
        if medium.len() < offset_of(pages) {
            return None;
        }
        let mut head = AlignedBuf::zeroed(PAGE_BYTES);
        let read = medium.read(0, &mut head).ok();
        let as_of = read.and_then(|()| index.read_head(&key, &head));
        let entered = as_of.filter(|as_of| Some(as_of.state) == closed);
        Some(StoredIndex {
            medium,
            key,
            next: 0,
            pages,
            entered: entered.map_or(0, |as_of| as_of.entered),
        })
    }

    /// Whether all pages were read.
    pub fn is_read(&self) -> bool {
        self.next == self.pages
    }

    /// The pages that are read next; nothing once all were.
    pub fn to_read(&self) -> Option<PagesToRead> {
        (!self.is_read()).then(|| PagesToRead {
            medium: Arc::clone(&self.medium),
            first: self.next,
            count: AT_ONCE.min(self.pages - self.next),
        })
    }

    /// Enters what pages have into an index of objects with so many handles. Those that were taken already change nothing.
    pub fn take(&mut self, read: &ReadPages, index: &mut BoundedIndex, handles: u32) {
        if read.first != self.next {
            return;
        }
        for page in read.bytes.chunks(PAGE_BYTES) {
            if !index.read_page(&self.key, self.next, page, handles) {
                self.entered = 0;
            }
            self.next += 1;
        }
    }

    /// The object from which on not all have been entered, once all pages were read; nothing if all have.
    pub fn unentered(&self) -> Option<ObjectId> {
        (self.entered < u32::MAX).then_some(ObjectId(self.entered))
    }

    /// Writes what has changed of the index, as the volume is closed.
    ///
    /// # Errors
    /// The medium failed: then no head says that the pages are of one state.
    pub fn write(&self, index: &BoundedIndex, as_of: AsOf) -> Result<(), MediumError> {
        let changed = |page: &u64| index.is_changed(*page, PAGE_BYTES);
        let mut from = 0;
        while let Some(first) = (from..self.pages).find(changed) {
            let behind = (first..self.pages.min(first + AT_ONCE)).take_while(changed);
            let count = behind.count();
            let mut bytes = AlignedBuf::zeroed(count * PAGE_BYTES);
            for (number, page) in (first..).zip(bytes.chunks_mut(PAGE_BYTES)) {
                index.write_page(&self.key, number, page);
            }
            self.medium.write(offset_of(first), &bytes)?;
            from = first + count as u64;
        }
        self.medium.sync()?;
        let mut head = AlignedBuf::zeroed(PAGE_BYTES);
        index.write_head(&self.key, as_of, &mut head);
        self.medium.write(0, &head)
    }

    /// Nothing of what is there is to stay: it may name what was purged. All objects are to be entered again, if the pages
    /// were not read before.
    pub fn forget(&mut self, index: &mut BoundedIndex) {
        // A medium that cannot do it keeps a part of each digest, and no content.
        let _ = self.medium.discard(0, offset_of(self.pages));
        index.forget_pages();
        if !self.is_read() {
            self.entered = 0;
            self.next = self.pages;
        }
    }
}
