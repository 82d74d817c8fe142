//! What a write or a read that comes soon will touch is asked for ahead: nothing changes.

use super::device::ContentDevice;
use super::parts::Parts;
use crate::policies::Policy;
use flashlore_content::dedup::FingerprintIndex;
use flashlore_flash::{Lpn, ObjectId};

impl<T: Parts> ContentDevice<T> {
    /// Asks for the index slot and the map entry of a write that will come soon.
    #[inline(always)]
    pub fn prefetch_slot(&self, lpn: Lpn, content: T::Content) {
        self.store.objects.prefetch_map(lpn);
        self.store
            .policies
            .dedup
            .index
            .prefetch_slot(self.store.objects.fingerprint(content));
        if T::HOLDS_MORE {
            self.store.policies.prefetch(lpn);
        }
    }

    /// Asks for the object found and the old one, once slot and map entry are near.
    #[inline(always)]
    pub fn prefetch_objects(&self, lpn: Lpn, content: T::Content) {
        self.prefetch_object(lpn);
        let fingerprint = self.store.objects.fingerprint(content);
        if let Some(object) = self.store.policies.dedup.index.likely(fingerprint) {
            self.store.objects.prefetch_object(object);
        }
    }

    /// The object that dies when a page is written, unless it is written or shared meanwhile.
    #[inline(always)]
    fn dying(&self, lpn: Lpn) -> Option<ObjectId> {
        if T::REMEMBERS && self.store.records() {
            return None;
        }
        let old = self.store.objects.object_of(lpn);
        old.filter(|&object| self.store.objects.is_last(object))
    }

    /// Asks for the neighbours of its block in the bucket, once the block is near.
    #[inline(always)]
    pub fn prefetch_neighbours(&self, lpn: Lpn) {
        if let Some(old) = self.dying(lpn) {
            self.store.prefetch_neighbours(&self.core, old);
        }
    }

    /// Asks for the block and the index slot of the old object, once that is near and if it dies.
    #[inline(always)]
    pub fn prefetch_death(&self, lpn: Lpn) {
        if let Some(old) = self.dying(lpn) {
            self.store.prefetch_death(&self.core, old);
        }
    }

    /// Asks for the map entry of a page that will be read soon.
    #[inline(always)]
    pub fn prefetch_map(&self, lpn: Lpn) {
        self.store.objects.prefetch_map(lpn);
    }

    /// Asks for the object of a page, once its map entry is near.
    #[inline(always)]
    pub fn prefetch_object(&self, lpn: Lpn) {
        if let Some(object) = self.store.objects.object_of(lpn) {
            self.store.objects.prefetch_object(object);
        }
    }
}
