//! Spatial value locality: index entries that were discarded, restored from flash before they are missed.
//!
//! CA-SSD (FAST 2011, section 3.3) observes that values written together are written together again, and
//! leaves the use of it open. Here: a write that hits an object names a place, the logical page that the
//! object was stored for (its *home*, from the way back from physical to logical pages). The values of the
//! next pages behind it are likely to be written next. For each of so many of them that lies whole in a unit
//! of its own and has no entry, the unit is read: its out-of-band area has the digest that it was written with,
//! and the entry is entered at the head of the index, where another may have to go. No other table is kept,
//! so only what is still stored comes back, and each costs a read of a flash page.
//!
//! The host waits for none of this, and an entry can be found at once, though its read takes time: the
//! benefit is at most what is measured. What was written without being hashed has no digest there. Where the
//! map is partly in RAM only pages are looked at whose entries are in RAM.
//!
//! Invariant: a home is that of the object which has the handle now; it counts while the page refers to it.

use crate::map_cache::MapCache;
use flashlore_content::Content;
use flashlore_flash::{Cause, Ready, Tag, Time};

use super::ContentDevice;
use super::parts::{Failure, Parts};
use crate::mapping::objects::{NO_OBJECT, Objects};

/// No logical page.
const NONE: u32 = u32::MAX;

/// What prefetching did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrefetchCounters {
    /// Units looked at whose digest had to be read.
    pub looked_up: u64,
    /// Of them, those whose entry was restored; of the others another object has an entry.
    pub restored: u64,
}

/// The policy's state.
#[derive(Debug, Clone)]
pub struct Prefetch {
    /// Pages behind a hit that are looked at.
    degree: u32,
    /// By object: the logical page it was stored for, if it was hashed.
    homes: Vec<u32>,
    /// Counts since the start or the end of warm-up.
    pub counters: PrefetchCounters,
}

impl Prefetch {
    /// Looks at so many pages behind each hit.
    pub fn new(degree: u32) -> Self {
        Prefetch {
            degree,
            homes: Vec::new(),
            counters: PrefetchCounters::default(),
        }
    }

    /// A new object is stored for a page, with its digest if it was hashed.
    pub fn stored(&mut self, object: u32, lpn: u32, hashed: bool) {
        if object as usize >= self.homes.len() {
            self.homes.resize(object as usize + 1, NONE);
        }
        self.homes[object as usize] = if hashed { lpn } else { NONE };
    }

    /// A page has come to share an object: it is its home, if the one before refers to something else now.
    pub fn shared<C: Content>(&mut self, objects: &Objects<C>, object: u32, lpn: u32) {
        if let Some(home) = self.homes.get_mut(object as usize)
            && *home != NONE
            && objects.object_of(*home) != Some(object)
        {
            *home = lpn;
        }
    }

    /// The page an object was stored for, if it was hashed and the page refers to it still.
    fn home<C: Content>(&self, objects: &Objects<C>, object: u32) -> Option<u32> {
        let home = *self.homes.get(object as usize)?;
        (objects.object_of(home) == Some(object)).then_some(home)
    }

    /// Whether an object was stored with its digest.
    fn has_digest(&self, object: u32) -> bool {
        let home = self.homes.get(object as usize);
        home.is_some_and(|&home| home != NONE)
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.homes.capacity() * size_of::<u32>()
    }
}

impl<T: Parts> ContentDevice<T> {
    /// The same device, restoring the index entries of so many pages behind each hit; 0 for none. An index
    /// that never discards anything has none to restore.
    #[must_use]
    pub fn with_prefetch(mut self, degree: u32) -> Self {
        let limited = self
            .store
            .dedup
            .index
            .capacity()
            .is_some_and(|most| most > 0);
        self.store.prefetch = (degree > 0 && limited).then(|| Prefetch::new(degree));
        self
    }

    /// What prefetching did, if it is on.
    pub fn prefetch_counters(&self) -> PrefetchCounters {
        let prefetch = self.store.prefetch.as_ref();
        prefetch.map_or(PrefetchCounters::default(), |p| p.counters)
    }

    /// Restores the entries of what is stored behind an object.
    #[inline(never)]
    pub(super) fn prefetch_behind(&mut self, at: Time, object: u32) -> Result<(), Failure<T>> {
        let objects = &self.store.objects;
        let Some(prefetch) = &self.store.prefetch else {
            return Ok(());
        };
        let Some(home) = prefetch.home(objects, object) else {
            return Ok(());
        };
        let last = home.saturating_add(prefetch.degree).min(objects.len() - 1);
        for lpn in home + 1..=last {
            let object = self.store.objects.get(lpn);
            if object != NO_OBJECT && self.is_to_restore(lpn, object) {
                self.restore_entry(at, object)?;
            }
        }
        Ok(())
    }

    /// Whether an object has no entry, and a digest that can be read.
    fn is_to_restore(&self, lpn: u32, object: u32) -> bool {
        let store = &self.store;
        let digest = store
            .prefetch
            .as_ref()
            .is_some_and(|p| p.has_digest(object));
        let whole = !store.objects.is_indexed(object) && !store.objects.is_packed(object);
        digest && whole && self.core.map_cache.holds(lpn)
    }

    /// Reads the digest of an object and enters it into the index, unless another has an entry for it.
    fn restore_entry(&mut self, at: Time, object: u32) -> Result<(), Failure<T>> {
        let ppn = self.store.objects.at(object);
        if self.core.buffered(ppn).is_none() {
            self.core
                .read(Ready::At(at), ppn, Cause::Prefetch, Tag::NONE)?;
        }
        let known = self.candidate(self.store.objects.content(object)).is_some();
        if !known {
            self.store.index(object);
        }
        if let Some(prefetch) = &mut self.store.prefetch {
            prefetch.counters.looked_up += 1;
            prefetch.counters.restored += u64::from(!known);
        }
        Ok(())
    }
}
