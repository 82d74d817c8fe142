//! Writes whose equality somebody else has judged: a persistent volume compares bytes.
//!
//! The phases are the caller's: ask for the candidate, read and compare it, then share it or store the
//! page as new. Nothing may happen to the device in between.

use std::marker::PhantomData;

use flashlore_content::{Content, Dedup, DedupOptions, Ledger, NoEncoder};
use flashlore_flash::{Cause, Completion, Flash, Ppn, Ready, Tag, Time, When};

use super::store::Store;
use super::{DedupFtl, Fresh, Outcome};
use crate::core::Core;
use crate::error::{FtlError, OptionsError};
use crate::mapping::objects::Objects;
use crate::options::FtlOptions;
use crate::restore::RestoredBlocks;

/// An object found by a recovery.
#[derive(Debug, Clone, Copy)]
pub struct RestoredObject<C> {
    /// Its handle.
    pub handle: u32,
    /// Where it lies.
    pub location: Ppn,
    /// Its content.
    pub content: C,
}

impl<C, F, L> DedupFtl<C, F, L>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    L: Ledger<C>,
{
    /// A device with content: `map` has an object handle, or
    /// [`NO_OBJECT`](crate::mapping::objects::NO_OBJECT), for each exported page; `objects` are those
    /// that are mapped, the first to be forgotten by the index at the front. Nothing is hashed in idle
    /// time.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn restore(
        flash: F,
        options: FtlOptions,
        dedup: DedupOptions,
        ledger: L,
        map: &[u32],
        objects: &[RestoredObject<C>],
        blocks: &RestoredBlocks,
    ) -> Result<Self, OptionsError> {
        let owners = objects.iter().map(|o| (o.location, o.handle));
        let most = Self::most_objects(&flash, &options);
        let core = Core::restore(flash, options, blocks, owners)?;
        let placed = objects.iter().map(|o| (o.handle, o.location, o.content));
        let store = Store {
            objects: Objects::restore(map, most, dedup.fingerprint_bits, placed),
            dedup: Dedup::new(Self::bounded(dedup, most)),
            scan: None,
            ledger,
            encoder: NoEncoder,
            delta: None,
            versions: None,
            page: PhantomData,
        };
        let mut ftl = DedupFtl { core, store };
        for object in objects {
            if ftl.candidate(object.content).is_none() {
                ftl.store.index(object.handle);
            }
        }
        ftl.store.dedup.counters = Default::default();
        Ok(ftl)
    }

    /// Erases the blocks in which nothing is valid.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn reclaim_empty(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        self.core.reclaim_empty(&mut self.store, at)
    }

    /// Writes a logical page whose content is that of the candidate `object`.
    ///
    /// # Errors
    /// An address out of range.
    pub fn write_shared(&mut self, lpn: u32, object: u32) -> Result<Outcome, FtlError<F::Error>> {
        self.core.check_range(lpn)?;
        Ok(self.hit(lpn, object))
    }

    /// Reads what an object holds, to compare it.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn read_object(&mut self, object: u32) -> Result<F::Page, FtlError<F::Error>> {
        let ppn = self.store.objects.at(object);
        Ok(self
            .core
            .read(Ready::At(0), ppn, Cause::Verify, Tag::NONE)?
            .0)
    }

    /// Writes a logical page whose content is not that of the candidate, if there was one. Answers its
    /// object.
    ///
    /// # Errors
    /// As [`DedupFtl::write`].
    pub fn write_new(
        &mut self,
        when: When,
        lpn: u32,
        content: C,
        page: F::Page,
        candidate: Option<u32>,
    ) -> Result<u32, FtlError<F::Error>> {
        self.core.check_range(lpn)?;
        let new = Fresh {
            content,
            page,
            encode: false,
        };
        let (object, _) = self.miss(when, lpn, new, candidate, Tag::NONE)?;
        Ok(object)
    }

    /// Writes the content of an object anew, because the stored page has rotted.
    ///
    /// # Errors
    /// As [`DedupFtl::write`].
    pub fn rewrite(
        &mut self,
        when: When,
        lpn: u32,
        object: u32,
        page: F::Page,
    ) -> Result<Completion, FtlError<F::Error>> {
        let (ppn, done) =
            self.core
                .append_host(&mut self.store, when, lpn, object, page, Tag::NONE)?;
        self.core.invalidate(self.store.objects.at(object));
        self.store.objects.place(object, ppn);
        Ok(done)
    }
}
