//! Reading a logical page or a unit, from flash or from a page buffer.

use flashlore_flash::{Cause, Completion, Flash, Lpn, Ppn, Ready, Route, Table, Tag, Time, Unit};

use crate::core::Core;
use crate::core::relocate::Relocate;
use crate::error::FtlError;
use crate::map_cache::MapCache;
use crate::options::Trigger;

/// What a read of a logical page answers: its content if it has any, and when it is there.
pub type PageRead<P> = (Option<P>, Completion);

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// Begins to read a logical page: checks and counts it, and accesses its map entry, which is waited for.
    ///
    /// # Errors
    /// An address out of range or a failure of the device.
    #[inline(always)]
    pub(crate) fn begin_read<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        lpn: Lpn,
        cause: Cause,
    ) -> Result<Ready, FtlError<F::Error>> {
        self.check_range(lpn)?;
        self.counters.host_reads += u64::from(cause == Cause::Host);
        let entry = self.access_map(map, at, lpn, Tag::NONE)?;
        let now = Ready::At(at);
        Ok(entry.map_or(now, |read| Ready::from(read).and(now)))
    }

    /// Before a unit is read its die may have to be collected; it may lie elsewhere afterwards.
    #[inline(always)]
    pub(crate) fn collect_before_read<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        ppn: Ppn,
    ) -> Result<(), FtlError<F::Error>> {
        if self.low_pools != 0
            && self.options.collect.trigger == (Trigger::Dispatch { reads: true })
            && self.buffered(ppn).is_none()
        {
            self.collect_die(map, at, self.geometry.plane_of_unit(ppn))?;
        }
        Ok(())
    }

    /// Reads a logical page; one that was never written costs nothing. Its die may be collected first.
    ///
    /// # Errors
    /// An address out of range or a failure of the device.
    #[inline(always)]
    pub(crate) fn read_page<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        lpn: Lpn,
        cause: Cause,
        tag: Tag,
    ) -> Result<PageRead<F::Page>, FtlError<F::Error>> {
        let ready = self.begin_read(map, at, lpn, cause)?;
        let ppn = map.unit_of(lpn);
        if !ppn.is_some() {
            return Ok((None, Completion::instant(at)));
        }
        self.collect_before_read(map, at, ppn)?;
        let ppn = map.unit_of(lpn);
        let done = self.read(ready, ppn, cause, tag)?;
        Ok((Some(self.content(ppn)?), done))
    }

    /// Reads a unit for the host or for a policy; a unit that waits in a page buffer costs nothing. What it holds,
    /// [`Core::content`] says.
    ///
    /// # Errors
    /// A failure of the device.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        ready: Ready,
        ppn: Ppn,
        cause: Cause,
        tag: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        if self.units_per_page > 1
            && let Some(unit) = self.buffered(ppn)
        {
            match unit {
                Unit::New { .. } => return Ok(from_buffer(ready)),
                Unit::Copy { from, .. } => return self.read_flash(ready, *from, cause, tag),
                Unit::Pad => unreachable!("padding has no owner"),
            }
        }
        self.read_flash(ready, ppn, cause, tag)
    }

    #[inline(always)]
    pub(super) fn read_flash(
        &mut self,
        ready: Ready,
        ppn: Ppn,
        cause: Cause,
        tag: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        let count = match cause {
            Cause::Verify => &mut self.counters.page_reads_verify,
            Cause::Scan => &mut self.counters.page_reads_scan,
            Cause::Prefetch => &mut self.counters.page_reads_prefetch,
            Cause::Modify => &mut self.counters.page_reads_modify,
            Cause::Delta => &mut self.counters.page_reads_delta,
            Cause::Merge => &mut self.counters.page_reads_merge,
            Cause::Map => &mut self.counters.page_reads_map,
            _ => &mut self.counters.page_reads_host,
        };
        *count += 1;
        Ok(self.flash.read(ready, ppn, 1, cause, Route::Channel, tag)?)
    }

    /// What a unit holds that has been read, or is at hand in a page buffer: not counted, no time.
    #[inline(always)]
    pub(crate) fn content(&mut self, ppn: Ppn) -> Result<F::Page, FtlError<F::Error>> {
        if self.units_per_page == 1 {
            return self.content_on_flash(ppn);
        }
        match self.buffered(ppn).cloned() {
            Some(Unit::New { page, .. }) => Ok(page),
            Some(Unit::Copy { from, .. }) => self.content_on_flash(from),
            Some(Unit::Pad) => unreachable!("padding has no owner"),
            None => self.content_on_flash(ppn),
        }
    }

    #[inline(always)]
    pub(super) fn content_on_flash(&mut self, ppn: Ppn) -> Result<F::Page, FtlError<F::Error>> {
        let page = self.flash.content(ppn)?;
        if F::PROVES {
            self.flash.prove(ppn, self.owners.get(ppn.index()), &page)?;
        }
        Ok(page)
    }
}

/// A read that takes no time. Where its map entry is still being read it is done at once, too: nobody
/// could tell it the end of that.
pub(super) fn from_buffer(ready: Ready) -> Completion {
    let (Ready::At(at) | Ready::After(_, at)) = ready;
    Completion::instant(at)
}
