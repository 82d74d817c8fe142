//! From content to a slot on flash: the next write frontier in round-robin order, collected first if its pool is low,
//! and the next slot of its open block.

use flashlore_flash::{
    Completion, Flash, GroupId, Lpn, Owner, PageId, PlaneId, Ppn, Route, Stream, Table, Tag, Time,
    Unit, When,
};

use crate::core::Core;
use crate::core::relocate::Relocate;
use crate::error::FtlError;
use crate::layout::Rotate;
use crate::map_cache::MapCache;
use crate::options::{FtlOptions, Mode, Streams, Trigger};

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// Appends new content of the host.
    ///
    /// # Errors
    /// [`FtlError::Full`] when no page can be freed, or a failure of the device.
    #[inline(always)]
    pub(crate) fn append_host<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        when: When,
        lpn: Lpn,
        owner: Owner,
        page: F::Page,
        tag: Tag,
    ) -> Result<(Ppn, Completion), FtlError<F::Error>> {
        let unit = Unit::New { owner, page };
        let appended = self.append_to_next(map, Stream::Host, when, lpn, unit, tag)?;
        self.counters.programs_host += 1;
        Ok(appended)
    }

    /// Appends a unit to the next write frontier of a stream; the caller counts it.
    #[inline(always)]
    pub(crate) fn append_to_next<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        stream: Stream,
        when: When,
        lpn: Lpn,
        unit: Unit<F::Page>,
        tag: Tag,
    ) -> Result<(Ppn, Completion), FtlError<F::Error>> {
        let plane = self.next_frontier(map, stream, when.at, lpn)?;
        self.append_to_frontier(plane, stream, when, unit, tag)
    }

    /// The next write frontier of a stream in round-robin order, with a block open: the way there may collect.
    #[inline(always)]
    pub(crate) fn next_frontier<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        stream: Stream,
        at: Time,
        lpn: Lpn,
    ) -> Result<PlaneId, FtlError<F::Error>> {
        self.host_frontier(map, at, self.layout.group_of(lpn), stream)
    }

    /// Appends a unit to a write frontier with a block open; nothing is collected.
    #[inline(always)]
    pub(crate) fn append_to_frontier(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        when: When,
        unit: Unit<F::Page>,
        tag: Tag,
    ) -> Result<(Ppn, Completion), FtlError<F::Error>> {
        let group = self.layout.group_of_plane(plane);
        let (ppn, done) = self.append(plane, stream, unit, when, Route::Channel, tag)?;
        let moves_on = match self.options.layout.rotate {
            Rotate::Page => (ppn.0 + 1).is_multiple_of(self.units_per_page),
            Rotate::Block => !self.planes[plane.index()].open[stream as usize].is_open(),
        };
        if moves_on {
            self.move_on(group, stream);
        }
        Ok((ppn, done))
    }

    #[inline(always)]
    pub(super) fn cursors(&mut self, stream: Stream) -> &mut Vec<u32> {
        &mut self.cursors[usize::from(stream == Stream::Log)]
    }

    #[inline(always)]
    pub(super) fn move_on(&mut self, group: GroupId, stream: Stream) {
        let count = self.layout.group(group).len() as u32;
        let cursor = &mut self.cursors(stream)[group.index()];
        let next = *cursor + 1;
        *cursor = if next == count { 0 } else { next };
    }

    /// The write frontier whose turn it is in a group.
    #[inline(always)]
    pub(super) fn due_frontier(&mut self, group: GroupId, stream: Stream) -> PlaneId {
        let frontier = self.cursors(stream)[group.index()];
        self.layout.group(group)[frontier as usize]
    }

    /// The write frontier that takes the next unit of a group, with a block of the stream open.
    #[inline(always)]
    pub(super) fn host_frontier<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        group: GroupId,
        stream: Stream,
    ) -> Result<PlaneId, FtlError<F::Error>> {
        let plane = self.due_frontier(group, stream);
        let look = self.low_pools != 0 && self.looks_at_open_frontiers;
        if !look && self.is_open(plane, stream) {
            return Ok(plane);
        }
        self.find_frontier(map, at, group, stream)
    }

    #[inline(never)]
    pub(super) fn find_frontier<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        group: GroupId,
        stream: Stream,
    ) -> Result<PlaneId, FtlError<F::Error>> {
        let groups = self.layout.groups().len() as u32;
        // A page of a group may need a unit more while others need its units: bases, packed pages of several groups.
        // Then it lies elsewhere, for all groups together have room.
        let tried = if self.options.log { groups } else { 1 };
        let in_turn = (group.0..groups).chain(0..group.0).map(GroupId);
        for group in in_turn.take(tried as usize) {
            for _ in 0..self.layout.group(group).len() {
                let plane = self.due_frontier(group, stream);
                if self.prepare_frontier(map, at, plane, stream)? {
                    return Ok(plane);
                }
                self.move_on(group, stream);
            }
        }
        Err(self.full())
    }

    /// Nothing can be written and nothing collected.
    pub(crate) fn full(&self) -> FtlError<F::Error> {
        let retired = self.retired();
        if retired > 0 || self.options.wear.endurance > 0 {
            return FtlError::WornOut {
                retired,
                blocks: self.geometry.blocks(),
                valid: self.blocks.valid_units(),
            };
        }
        FtlError::Full {
            valid: self.blocks.valid_units(),
            units: u64::from(self.geometry.blocks()) * u64::from(self.blocks.data_units()),
        }
    }

    /// Collects what is due and opens a block of the stream; whether the write frontier has one now. A collection may
    /// open one too, for its copies, where they share the host's blocks.
    pub(super) fn prepare_frontier<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        plane: PlaneId,
        stream: Stream,
    ) -> Result<bool, FtlError<F::Error>> {
        let pool = self.layout.pool_of(plane);
        if let Trigger::Dispatch { .. } = self.options.collect.trigger {
            self.collect_die(map, at, plane)?;
        }
        if fills_with_copies(&self.options) && self.pools[pool.index()].free == 0 {
            // What is left of the open block is for the copies that free the next one.
            self.collect_urgently(map, at, pool)?;
        }
        if self.is_open(plane, stream) {
            return Ok(true);
        }
        if self.options.collect.trigger == Trigger::Allocation {
            self.collect_pool(map, at, pool)?;
        }
        if !self.is_open(plane, stream) && self.is_urgent(plane) {
            self.collect_urgently(map, at, pool)?;
        }
        if self.is_open(plane, stream) {
            return Ok(true);
        }
        if !self.may_open(plane) {
            return Ok(false);
        }
        self.open(plane, stream, at)?;
        Ok(true)
    }

    #[inline(always)]
    pub(super) fn is_open(&self, plane: PlaneId, stream: Stream) -> bool {
        self.planes[plane.index()].open[stream as usize].is_open()
    }

    /// Whether collection that is a job has not kept pace: the host has to wait for it.
    pub(crate) fn is_urgent(&self, plane: PlaneId) -> bool {
        match self.options.collect.mode {
            Mode::Foreground => false,
            Mode::Background => !self.may_open(plane),
            Mode::Stepped { urgent } => {
                !self.may_open(plane)
                    || self.pools[self.layout.pool_of(plane).index()].free <= urgent
            }
        }
    }

    /// Before an operation is handed to a die: collects the pools of that die that are low.
    pub(crate) fn collect_die<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        plane: PlaneId,
    ) -> Result<(), FtlError<F::Error>> {
        if self.low_pools == 0 {
            return Ok(());
        }
        let die = self.geometry.die_of(plane);
        for i in 0..self.layout.pools_of_die(die).len() {
            let pool = self.layout.pools_of_die(die)[i];
            self.collect_pool(map, at, pool)?;
        }
        Ok(())
    }

    /// Appends a unit, which is not padding, to the open block of a stream.
    #[inline(always)]
    pub(crate) fn append(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        unit: Unit<F::Page>,
        when: When,
        route: Route,
        tag: Tag,
    ) -> Result<(Ppn, Completion), FtlError<F::Error>> {
        let open = self.planes[plane.index()].open[stream as usize];
        let (ppn, block) = (open.next, open.block);
        let owner = unit.owner();
        let fills = open.next + 1 == open.end;
        // Who fills a block with a summary waits for that instead of the data.
        let (tag, sealer) = if fills && self.options.summary_page {
            (Tag::NONE, tag)
        } else {
            (tag, Tag::NONE)
        };
        // A failed program of a page with one unit leaves everything as it was.
        let done = if self.units_per_page == 1 {
            let page = PageId(ppn.0);
            let done = self
                .flash
                .program(when.ready, page, &[unit], stream, route, &[tag])?;
            self.counters.page_programs += 1;
            done
        } else {
            self.append_to_page(plane, stream, unit, when.ready, route, tag)?
        };
        self.planes[plane.index()].open[stream as usize].next = ppn + 1;
        if let Some(owner) = owner {
            self.owners.set(ppn.index(), owner);
        }
        self.blocks.set_valid(block, ppn);
        self.flash.validity_changed(ppn);
        if fills {
            let sealed = self.seal(plane, stream, done, when.at, sealer)?;
            return Ok((ppn, sealed));
        }
        Ok((ppn, done))
    }
}

/// Whether background collection fills the blocks that the host fills, a step now and then.
pub(super) fn fills_with_copies(options: &FtlOptions) -> bool {
    options.collect.mode.has_jobs() && options.streams == Streams::Shared
}
