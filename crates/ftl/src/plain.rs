//! A page-mapped device without a content policy: the baseline of every comparison.
//!
//! The owner of a unit is its logical page. Every host write programs; an overwrite, identical or
//! not, invalidates the old unit.

use flashlore_flash::{Cause, Completion, Flash, Lpn, Owner, Ppn, Tag, Time, When};

use crate::core::relocate::Relocate;
use crate::core::restore::{RestoredBlocks, RestoredUnits};
use crate::core::{Core, PageRead};
use crate::error::{FtlError, OptionsError};
use crate::map_cache::{MapCache, Resident};
use crate::mapping::Mapping;
use crate::mapping::direct::Direct;
use crate::options::FtlOptions;

// Every unit moves as it is.
impl<F: Flash, K> Relocate<F, K> for Direct<F::Tables> {}

/// The plain device; `K` keeps its map.
pub struct PlainFtl<F: Flash, K = Resident> {
    core: Core<F, K>,
    map: Direct<F::Tables>,
}

impl<F: Flash> PlainFtl<F>
where
    F::Page: Clone,
{
    /// An empty device with its map in RAM.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn new(flash: F, options: FtlOptions) -> Result<Self, OptionsError> {
        PlainFtl::with_map_cache(flash, options, Resident)
    }

    /// A device with content.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn restore(
        flash: F,
        options: FtlOptions,
        map: Direct<F::Tables>,
        blocks: &RestoredBlocks,
        units: RestoredUnits,
    ) -> Result<Self, OptionsError> {
        Ok(PlainFtl {
            core: Core::restore(flash, options, blocks, units)?,
            map,
        })
    }
}

impl<F: Flash, K: MapCache<F::Page>> PlainFtl<F, K>
where
    F::Page: Clone,
{
    /// An empty device.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn with_map_cache(
        flash: F,
        options: FtlOptions,
        map_cache: K,
    ) -> Result<Self, OptionsError> {
        let map = Direct::new(&flash.tables(), options.exported);
        Ok(PlainFtl {
            core: Core::with_map_cache(flash, options, map_cache)?,
            map,
        })
    }

    /// What lies below the map.
    pub fn core(&self) -> &Core<F, K> {
        &self.core
    }

    /// What lies below the map.
    pub fn core_mut(&mut self) -> &mut Core<F, K> {
        &mut self.core
    }

    /// The map.
    pub fn map(&self) -> &Direct<F::Tables> {
        &self.map
    }

    /// Lets time pass to `until`.
    ///
    /// # Errors
    /// A failure of the device.
    #[inline(always)]
    pub fn advance(&mut self, until: Time) -> Result<(), FtlError<F::Error>> {
        self.core.advance(&mut self.map, until)
    }

    /// Ends all background work at once.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn settle(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        self.core.settle(&mut self.map, at)
    }

    /// Erases the blocks in which nothing is valid.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn reclaim_empty(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        self.core.reclaim_empty(&mut self.map, at)
    }

    /// Before each write of the host, where collection goes in steps: as many of them as it owes.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn keep_pace(&mut self) -> Result<(), FtlError<F::Error>> {
        self.core.keep_pace(&mut self.map, 0)
    }

    /// One step of collection; whether there was anything to do.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn collect_step(&mut self) -> Result<bool, FtlError<F::Error>> {
        self.core.collect_step(&mut self.map, 0)
    }

    /// Writes a logical page whose content is at hand when `ready`.
    ///
    /// # Errors
    /// An address out of range, a full device, or a failure of the device.
    #[inline(always)]
    pub fn write(
        &mut self,
        when: When,
        lpn: Lpn,
        page: F::Page,
        tag: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        self.core.check_range(lpn)?;
        let when = self.core.after_map(&mut self.map, when, lpn)?;
        let (ppn, done) =
            self.core
                .append_host(&mut self.map, when, lpn, Owner::page(lpn), page, tag)?;
        self.core.counters.host_writes += 1;
        // Looked up only now: the append may have collected and moved the old unit.
        let old = self.map.replace(lpn, ppn);
        if old.is_some() {
            self.core.invalidate(old);
        }
        self.core.map_cache.changed(lpn);
        Ok(done)
    }

    /// Reads a logical page; one that was never written costs nothing.
    ///
    /// # Errors
    /// An address out of range or a failure of the device.
    #[inline(always)]
    pub fn read(
        &mut self,
        at: Time,
        lpn: Lpn,
        cause: Cause,
        tag: Tag,
    ) -> Result<PageRead<F::Page>, FtlError<F::Error>> {
        self.core.read_page(&mut self.map, at, lpn, cause, tag)
    }

    /// The host reads a page that somebody else fetches from where it lies.
    pub fn note_read(&mut self) {
        self.core.counters.host_reads += 1;
    }

    /// Forgets a logical page, at the present and at once.
    ///
    /// # Errors
    /// An address out of range, or what its map entry meets.
    pub fn trim(&mut self, lpn: Lpn) -> Result<(), FtlError<F::Error>> {
        self.core.check_range(lpn)?;
        let now = self.core.present;
        self.core.access_map(&mut self.map, now, lpn, Tag::NONE)?;
        let old = self.map.replace(lpn, Ppn::NONE);
        if old.is_some() {
            self.core.map_cache.changed(lpn);
            self.core.counters.host_trims += 1;
            self.core.invalidate(old);
        }
        Ok(())
    }

    /// Asks for the map entry of a page that will be used soon.
    #[inline(always)]
    pub fn prefetch_map(&self, lpn: Lpn) {
        self.map.prefetch(Owner::page(lpn));
    }

    /// Asks for what a write of the page will touch, once its map entry is near.
    #[inline(always)]
    pub fn prefetch_unit(&self, lpn: Lpn) {
        if lpn < Lpn(self.map.len()) {
            self.core.prefetch(self.map.get(lpn));
        }
    }

    /// Asks for the neighbours of its block in the bucket, once the block is near.
    #[inline(always)]
    pub fn prefetch_neighbours(&self, lpn: Lpn) {
        if lpn < Lpn(self.map.len()) {
            self.core.blocks().prefetch_neighbours(self.map.get(lpn));
        }
    }

    /// Recounts every invariant from scratch.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mapped = (0..self.map.len())
            .map(Lpn)
            .filter(|&lpn| self.map.get(lpn).is_some());
        self.core.check(&self.map, mapped.map(Owner::page))
    }
}
