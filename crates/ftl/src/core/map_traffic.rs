//! Reads and programs of translation pages.
//!
//! An access that misses reads its translation page; before, the page of a dirty entry that made room is
//! read, brought up to date with all dirty entries of it, and programmed. The host's operation waits for
//! the read. Translation pages have open blocks of their own in every plane, filled in striping order,
//! and are collected like others; only the directory notices.
//!
//! Pages that a collection made stale are written behind it as far as the pool has a block to spare, the
//! rest before the next access. Where there is no room they stay stale: an access to the map is never
//! refused. A translation page in a page buffer is read from there in no time, and
//! nobody waits for its program.

use flashlore_flash::{
    Cause, Completion, Flash, Lpn, MapPageId, OpId, Owner, PlaneId, PoolId, Ppn, Ready, Route,
    Stream, Tag, Time, Unit, When,
};

use crate::core::Core;
use crate::core::relocate::Relocate;
use crate::error::FtlError;
use crate::map_cache::{Access, MapCache};

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// Accesses the map entry of a logical page; answers its read, which is reported under `tag`, if it
    /// takes one.
    #[inline(always)]
    pub(crate) fn access_map<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        lpn: Lpn,
        tag: Tag,
    ) -> Result<Option<Completion>, FtlError<F::Error>> {
        if !K::CACHED {
            return Ok(None);
        }
        self.access_cached(map, at, lpn, tag)
    }

    /// Accesses the map entry of a page to be written: the program waits for it.
    #[inline(always)]
    pub(crate) fn after_map<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        when: When,
        lpn: Lpn,
    ) -> Result<When, FtlError<F::Error>> {
        let read = self.access_map(map, when.at, lpn, Tag::NONE)?;
        let ready = read.map_or(when.ready, |read| when.ready.and(Ready::from(read)));
        Ok(When { ready, ..when })
    }

    fn access_cached<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        lpn: Lpn,
        tag: Tag,
    ) -> Result<Option<Completion>, FtlError<F::Error>> {
        self.write_stale(map, at)?;
        self.write_journals(map, at)?;
        let (dropped, write_back) = match self.map_cache.access(lpn) {
            Access::Miss {
                dropped,
                write_back,
            } => (dropped, write_back),
            Access::Hit => {
                self.counters.map_hits += 1;
                return Ok(None);
            }
        };
        self.counters.map_misses += 1;
        if let Some(dropped) = dropped {
            map.entry_dropped(dropped);
        }
        let mut ready = Ready::At(at);
        for page in write_back.into_iter().flatten() {
            let plane = self.map_frontier(map, at)?;
            // A collection on the way to a block may have written it.
            if let Some(plane) = plane
                && self.map_cache.is_stale(page)
            {
                ready = ready.and(self.rewrite(plane, at, page)?);
            }
        }
        self.read_entry(ready, lpn, tag)
    }

    /// Writes the translation pages that are stale, as far as there is room. Writing one may collect and make
    /// others stale: those are the next access's.
    fn write_stale<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
    ) -> Result<(), FtlError<F::Error>> {
        for _ in 0..self.map_cache.stale() {
            let plane = self.map_frontier(map, at)?;
            let (Some(plane), Some(page)) = (plane, self.map_cache.first_stale()) else {
                break;
            };
            self.rewrite(plane, at, page)?;
        }
        Ok(())
    }

    /// Programs the journal pages that are due, folds journals that are full, and gives their pages up once
    /// the tables are written.
    fn write_journals<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
    ) -> Result<(), FtlError<F::Error>> {
        loop {
            while let Some(page) = self.map_cache.take_folded() {
                let ppn = self.map_cache.location(page);
                self.map_cache.place(page, Ppn::NONE);
                self.invalidate(ppn);
            }
            if self.map_cache.begin_fold() {
                self.counters.map_folds += 1;
                self.write_stale(map, at)?;
                continue;
            }
            if self.map_cache.due().is_none() {
                return Ok(());
            }
            let Some(plane) = self.map_frontier(map, at)? else {
                return Ok(());
            };
            // A collection on the way changes entries; what is due next may be another page.
            let Some((page, unit)) = self.map_cache.due().and_then(|page| self.unit_for(page))
            else {
                return Ok(());
            };
            let (ppn, _) = self.append_map_page(plane, unit, When::now(at))?;
            self.counters.programs_journal += 1;
            self.map_cache.place(page, ppn);
            self.map_cache.journalled();
        }
    }

    /// A page of a table or journal, to be programmed anew.
    fn unit_for(&self, page: MapPageId) -> Option<(MapPageId, Unit<F::Page>)> {
        let unit = Unit::New {
            owner: Owner::map_page(page),
            page: self.map_cache.content_of(page)?,
        };
        Some((page, unit))
    }

    /// Appends a page of a table or journal, in a plane that has a block open for it.
    fn append_map_page(
        &mut self,
        plane: PlaneId,
        unit: Unit<F::Page>,
        when: When,
    ) -> Result<(Ppn, Completion), FtlError<F::Error>> {
        let (ppn, done) = self.append(plane, Stream::Map, unit, when, Route::Channel, Tag::NONE)?;
        self.counters.programs_map += 1;
        if (ppn.0 + 1).is_multiple_of(self.units_per_page) {
            self.map_frontier = (self.map_frontier + 1) % self.layout.frontiers().len();
        }
        Ok((ppn, done))
    }

    /// Reads the translation pages of an entry. Only the first says whether there is a second to read.
    fn read_entry(
        &mut self,
        ready: Ready,
        lpn: Lpn,
        tag: Tag,
    ) -> Result<Option<Completion>, FtlError<F::Error>> {
        let [first, second] = self.map_cache.pages_of(lpn);
        let place =
            |page: Option<MapPageId>| page.map_or(Ppn::NONE, |page| self.map_cache.location(page));
        let (first, second) = (place(first), place(second));
        // Whoever waits is told of the last one.
        let first_tag = if second.is_some() { Tag::NONE } else { tag };
        let read = self.read_map_page(ready, first, first_tag)?;
        let ready = read.map_or(ready, Ready::from);
        Ok(self.read_map_page(ready, second, tag)?.or(read))
    }

    /// Reads a translation page that lies on flash.
    fn read_map_page(
        &mut self,
        ready: Ready,
        ppn: Ppn,
        tag: Tag,
    ) -> Result<Option<Completion>, FtlError<F::Error>> {
        if !ppn.is_some() {
            return Ok(None);
        }
        // A copy in a page buffer still lies where it came from.
        let ppn = match self.buffered(ppn) {
            Some(Unit::Copy { from, .. }) => *from,
            Some(_) => return Ok(None),
            None => ppn,
        };
        self.counters.page_reads_map += 1;
        let done = self
            .flash
            .read(ready, ppn, 1, Cause::Map, Route::Channel, tag)?;
        Ok(Some(done))
    }

    /// Writes a translation page anew, in a plane that has a block open for it; answers when that is
    /// done.
    fn rewrite(
        &mut self,
        plane: PlaneId,
        at: Time,
        page: MapPageId,
    ) -> Result<Ready, FtlError<F::Error>> {
        let Some((_, unit)) = self.unit_for(page) else {
            return Ok(Ready::At(at));
        };
        let old = self.map_cache.location(page);
        let read = self.read_map_page(Ready::At(at), old, Tag::NONE)?;
        let when = When {
            ready: read.map_or(Ready::At(at), Ready::from),
            at,
        };
        let (ppn, done) = self.append_map_page(plane, unit, when)?;
        if old.is_some() {
            self.invalidate(old);
        }
        self.map_cache.place(page, ppn);
        self.map_cache.written(page);
        Ok(match done {
            Completion::Later(OpId::NONE) => Ready::At(at),
            done => Ready::from(done),
        })
    }

    /// The write frontier that takes the next translation page, with a block open for it, if the device has room.
    fn map_frontier<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
    ) -> Result<Option<PlaneId>, FtlError<F::Error>> {
        // A collection on the way writes translation pages, too, and moves the turn.
        let (first, count) = (self.map_frontier, self.layout.frontiers().len());
        for frontier in (first..first + count).map(|frontier| frontier % count) {
            let plane = self.layout.frontiers()[frontier];
            if self.prepare_map_frontier(map, at, plane)? {
                self.map_frontier = frontier;
                return Ok(Some(plane));
            }
        }
        Ok(None)
    }

    /// Collects what is due and opens a block for translation pages; whether there is one now.
    fn prepare_map_frontier<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        plane: PlaneId,
    ) -> Result<bool, FtlError<F::Error>> {
        if self.has_map_block(plane) {
            return Ok(true);
        }
        let pool = self.layout.pool_of(plane);
        self.collect_pool(map, at, pool)?;
        if self.is_urgent(plane) {
            self.collect_urgently(map, at, pool)?;
        }
        // A collection may have opened one.
        if !self.has_map_block(plane) && self.may_open(plane) {
            self.open(plane, Stream::Map, at)?;
        }
        Ok(self.has_map_block(plane))
    }

    fn has_map_block(&self, plane: PlaneId) -> bool {
        self.planes[plane.index()].open[Stream::Map as usize].is_open()
    }

    /// Writes the translation pages that a collection of a pool made stale, as far as the pool has
    /// room without collecting more.
    #[inline(always)]
    pub(crate) fn follow_collection(
        &mut self,
        at: Time,
        pool: PoolId,
    ) -> Result<(), FtlError<F::Error>> {
        if !K::CACHED {
            return Ok(());
        }
        while let Some(page) = self.map_cache.first_stale() {
            let members = self.layout.pool(pool).iter().copied();
            let roomy = members.clone().find(|&p| self.has_map_block(p));
            let Some(plane) = roomy.or_else(|| members.clone().find(|&p| self.may_open(p))) else {
                break;
            };
            if roomy.is_none() {
                self.open(plane, Stream::Map, at)?;
            }
            self.rewrite(plane, at, page)?;
        }
        Ok(())
    }
}
