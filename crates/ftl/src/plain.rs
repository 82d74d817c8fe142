//! A page-mapped device without a content policy: the baseline of every comparison.
//!
//! The owner of a unit is its logical page. Every host write programs; an overwrite, identical or
//! not, invalidates the old unit.

use flashlore_flash::{Cause, Completion, Flash, PlaneId, Tag, Time, When};

use crate::core::{Core, PageRead};
use crate::error::{FtlError, OptionsError};
use crate::mapping::Mapping;
use crate::mapping::direct::Direct;
use crate::options::{FtlOptions, Trigger};

/// The plain device.
pub struct PlainFtl<F: Flash> {
    core: Core<F>,
    map: Direct,
}

impl<F: Flash> PlainFtl<F>
where
    F::Page: Clone,
{
    /// An empty device.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn new(flash: F, options: FtlOptions) -> Result<Self, OptionsError> {
        let map = Direct::new(options.exported);
        Ok(PlainFtl {
            core: Core::new(flash, options)?,
            map,
        })
    }

    /// What lies below the map.
    pub fn core(&self) -> &Core<F> {
        &self.core
    }

    /// What lies below the map.
    pub fn core_mut(&mut self) -> &mut Core<F> {
        &mut self.core
    }

    /// The map.
    pub fn map(&self) -> &Direct {
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

    /// Writes a logical page whose content is at hand when `ready`.
    ///
    /// # Errors
    /// An address out of range, a full device, or a failure of the device.
    #[inline(always)]
    pub fn write(
        &mut self,
        when: When,
        lpn: u32,
        page: F::Page,
        tag: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        self.check_range(lpn)?;
        let (ppn, done) = self
            .core
            .append_host(&mut self.map, when, lpn, lpn, page, tag)?;
        self.core.counters.host_writes += 1;
        // Looked up only now: the append may have collected and moved the old unit.
        let old = self.map.replace(lpn, ppn);
        if old.is_some() {
            self.core.invalidate(old);
        }
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
        lpn: u32,
        cause: Cause,
        tag: Tag,
    ) -> Result<PageRead<F::Page>, FtlError<F::Error>> {
        self.check_range(lpn)?;
        self.core.counters.host_reads += u64::from(cause == Cause::Host);
        let mut ppn = self.map.get(lpn);
        if !ppn.is_some() {
            return Ok((None, Completion::instant(at)));
        }
        if self.core.low_pools != 0
            && self.core.options.collect.trigger == (Trigger::Dispatch { reads: true })
            && self.core.buffered(ppn).is_none()
        {
            let plane: PlaneId = self.core.geometry.plane_of_unit(ppn);
            self.core.collect_die(&mut self.map, at, plane)?;
            ppn = self.map.get(lpn);
        }
        let (page, done) = self.core.read(at, ppn, cause, tag)?;
        Ok((Some(page), done))
    }

    /// Forgets a logical page.
    ///
    /// # Errors
    /// An address out of range.
    pub fn trim(&mut self, lpn: u32) -> Result<(), FtlError<F::Error>> {
        self.check_range(lpn)?;
        let old = self.map.replace(lpn, flashlore_flash::Ppn::NONE);
        if old.is_some() {
            self.core.counters.host_trims += 1;
            self.core.invalidate(old);
        }
        Ok(())
    }

    /// Asks for the map entry of a page that will be used soon.
    #[inline(always)]
    pub fn prefetch_map(&self, lpn: u32) {
        self.map.prefetch(lpn);
    }

    /// Asks for what a write of the page will touch, once its map entry is near.
    #[inline(always)]
    pub fn prefetch_unit(&self, lpn: u32) {
        if lpn < self.map.len() {
            self.core.prefetch(self.map.get(lpn));
        }
    }

    /// Asks for the neighbours of its block in the bucket, once the block is near.
    #[inline(always)]
    pub fn prefetch_neighbours(&self, lpn: u32) {
        if lpn < self.map.len() {
            self.core.blocks().prefetch_neighbours(self.map.get(lpn));
        }
    }

    #[inline(always)]
    fn check_range(&self, lpn: u32) -> Result<(), FtlError<F::Error>> {
        if lpn < self.map.len() {
            Ok(())
        } else {
            Err(FtlError::OutOfRange {
                lpn,
                exported: self.map.len(),
            })
        }
    }

    /// Recounts every invariant from scratch.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mapped = (0..self.map.len()).filter(|&l| self.map.get(l).is_some());
        self.core.check(&self.map, mapped)
    }
}
