//! Index entries behind a hit are read from flash.

use flashlore_content::dedup::FingerprintIndex;
use flashlore_flash::{Cause, Lpn, ObjectId, Ready, Tag, Time};

use super::device::ContentDevice;
use super::parts::{Failure, Parts};
use crate::map_cache::MapCache;
use crate::policies::prefetch::{Prefetch, PrefetchCounters};

impl<T: Parts> ContentDevice<T> {
    /// The same device, restoring the index entries of so many pages behind each hit; 0 for none. An index
    /// that never discards anything has none to restore.
    #[must_use]
    pub fn with_prefetch(mut self, degree: u32) -> Self {
        let limited = self
            .store
            .policies
            .dedup
            .index
            .capacity()
            .is_some_and(|most| most > 0);
        self.store.policies.prefetch = (degree > 0 && limited).then(|| Prefetch::new(degree));
        self
    }

    /// What prefetching did, if it is on.
    pub fn prefetch_counters(&self) -> PrefetchCounters {
        let prefetch = self.store.policies.prefetch.as_ref();
        prefetch.map_or(PrefetchCounters::default(), |p| p.counters)
    }

    /// The page that an object was stored for, if entries behind it are to be restored.
    #[inline(always)]
    pub(super) fn home_of(&self, object: ObjectId) -> Option<Lpn> {
        let prefetch = self.store.policies.prefetch.as_ref()?;
        prefetch.home(&self.store.objects, object)
    }

    /// Restores the entries of what is stored behind a page.
    #[inline(never)]
    pub(super) fn prefetch_behind(&mut self, at: Time, home: Lpn) -> Result<(), Failure<T>> {
        let objects = &self.store.objects;
        let Some(prefetch) = &self.store.policies.prefetch else {
            return Ok(());
        };
        let last = home
            .0
            .saturating_add(prefetch.degree)
            .min(objects.len() - 1);
        for lpn in (home.0 + 1..=last).map(Lpn) {
            let object = self.store.objects.get(lpn);
            if object.is_some() && self.is_to_restore(lpn, object) {
                self.restore_entry(at, object)?;
            }
        }
        Ok(())
    }

    /// Whether an object has no entry, and a digest that can be read.
    fn is_to_restore(&self, lpn: Lpn, object: ObjectId) -> bool {
        let store = &self.store;
        let digest = store
            .policies
            .prefetch
            .as_ref()
            .is_some_and(|p| p.has_digest(object));
        let whole = !store.objects.is_indexed(object) && !store.objects.is_packed(object);
        digest && whole && self.core.map_cache.holds(lpn)
    }

    /// Reads the digest of an object and enters it into the index, unless another has an entry for it.
    fn restore_entry(&mut self, at: Time, object: ObjectId) -> Result<(), Failure<T>> {
        let ppn = self.store.objects.at(object);
        if self.core.buffered(ppn).is_none() {
            self.core
                .read(Ready::At(at), ppn, Cause::Prefetch, Tag::NONE)?;
        }
        let known = self.candidate(self.store.objects.content(object)).is_some();
        if !known {
            self.store.index(object);
        }
        if let Some(prefetch) = &mut self.store.policies.prefetch {
            prefetch.counters.looked_up += 1;
            prefetch.counters.restored += u64::from(!known);
        }
        Ok(())
    }
}
