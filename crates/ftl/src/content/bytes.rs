//! Writes whose equality somebody else has judged: a persistent volume compares bytes.
//!
//! The phases are the caller's: ask for the candidate, read and compare it, then share it or store the
//! page as new. Nothing may happen to the device in between.

use std::marker::PhantomData;

use flashlore_content::history::History;
use flashlore_content::{Content, Dedup, Encoder, Ledger};
use flashlore_flash::{Cause, Completion, Flash, Ppn, Ready, Tag, Time, When};

use super::history::Versions;
use super::store::Store;
use super::{DedupFtl, Fresh, Outcome, Policies};
use crate::core::Core;
use crate::error::{FtlError, OptionsError};
use crate::map_cache::Resident;
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

/// What a recovery found.
#[derive(Debug)]
pub struct Restored<'a, C> {
    /// An object handle, or [`NO_OBJECT`](crate::mapping::objects::NO_OBJECT), for each exported page.
    pub map: &'a [u32],
    /// The objects that something refers to, the first to be forgotten by the index at the front.
    pub objects: &'a [RestoredObject<C>],
    /// Old versions, where they are kept.
    pub history: Option<History>,
    /// The blocks.
    pub blocks: &'a RestoredBlocks,
}

impl<C, F, L, E> DedupFtl<C, F, L, Resident, E>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    L: Ledger<C>,
    E: Encoder<C, F::Page>,
{
    /// A device with content. Nothing is hashed in idle time; without a history nothing becomes one.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn restore(
        flash: F,
        options: FtlOptions,
        policies: Policies<E>,
        ledger: L,
        found: Restored<'_, C>,
    ) -> Result<Self, OptionsError> {
        let Restored {
            map,
            objects,
            history,
            blocks,
        } = found;
        let dedup = policies.dedup;
        let owners = objects.iter().map(|o| (o.location, o.handle));
        let most = Self::most_objects(&flash, &options);
        let core = Core::restore(flash, options, blocks, owners)?;
        let placed = objects.iter().map(|o| (o.handle, o.location, o.content));
        let kept = history.iter().flat_map(History::objects);
        let restored = Objects::restore(map, most, dedup.fingerprint_bits, placed, kept, E::ON);
        let alive = |o: &&RestoredObject<C>| restored.references(o.handle) > 0;
        let store = Store {
            referenced: objects.iter().filter(alive).count() as u32,
            objects: restored,
            dedup: Dedup::new(Self::bounded(dedup, most)),
            scan: None,
            ledger,
            encoder: policies.encoder,
            delta: None,
            versions: policies
                .versions
                .zip(history)
                .map(|(options, history)| Versions::restore(history, options)),
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
