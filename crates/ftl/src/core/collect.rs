//! Emptying a victim in the host's way: one busy period of reads, programs and the erase.
//!
//! Valid units move to the open collection block of the victim's own plane while it has room or a
//! free block, else to the next plane of the pool in striping order. A page that is partly filled when
//! the victim is empty is padded: a block is erased only after its copies are programmed.

use std::ops::Range;

use flashlore_flash::{
    BlockId, Cause, Completion, Flash, Owned, Owner, PlaneId, PoolId, Ppn, Ready, Route, Stream,
    Table, Tag, Time, Unit, When,
};

use crate::core::relocate::{Relocate, Relocation};
use crate::core::{Core, FIRST_RESERVED_TAG};
use crate::error::FtlError;
use crate::map_cache::MapCache;
use crate::options::{FtlOptions, Streams};

/// What becomes of the forms in which the units of a victim are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moving {
    /// A policy may write them anew in another form.
    MayRewrite,
    /// They move as they are.
    AsIs,
}

/// A block that is to be emptied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Victim {
    pub block: BlockId,
    pub moving: Moving,
}

impl Victim {
    /// One whose units may change their forms.
    pub fn rewritable(block: BlockId) -> Self {
        let moving = Moving::MayRewrite;
        Victim { block, moving }
    }

    /// One whose units move as they are.
    pub fn as_is(block: BlockId) -> Self {
        let moving = Moving::AsIs;
        Victim { block, moving }
    }
}

/// Whether the erase at the end may be suspended and is reported later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Erase {
    /// At once, the block is free for what follows.
    Now,
    /// In the background, the block is free at its end.
    Background,
}

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// Collects a pool that is at its low watermark until it is above the high one.
    pub(crate) fn collect_pool<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        pool: PoolId,
    ) -> Result<(), FtlError<F::Error>> {
        if !self.pools[pool.index()].low || self.options.collect.mode.has_jobs() {
            return Ok(());
        }
        while let Some(victim) = self.next_victim(pool, false) {
            self.collect(map, at, victim, Stream::Gc)?;
            if self.pools[pool.index()].free > self.watermarks(pool).high {
                break;
            }
        }
        Ok(())
    }

    /// Erases the sealed blocks in which nothing is valid: there is nothing to copy.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn reclaim_empty<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
    ) -> Result<(), FtlError<F::Error>> {
        for pool in self.layout.pool_ids() {
            while let Some(block) = self.blocks.emptiest(pool) {
                if self.blocks.record(block).valid > 0 {
                    break;
                }
                self.collect(map, at, Victim::rewritable(block), Stream::Gc)?;
            }
        }
        Ok(())
    }

    /// Empties and erases a block, or leaves it alone if it cannot be read; which of them.
    pub(crate) fn collect<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        leaving: Victim,
        stream: Stream,
    ) -> Result<bool, FtlError<F::Error>> {
        let victim = leaving.block;
        if F::PROVES && !self.prove_victim(victim)? {
            self.aside.put(victim, self.counters.erases);
            return Ok(false);
        }
        let held = self.blocks.record(victim).valid > 0;
        self.begin_collection(victim, stream);
        let before = self.counters.programs_by_collection();
        match self.empty(map, at, leaving, stream) {
            Ok(true) => {}
            Ok(false) => {
                self.leave_alone(victim);
                return Ok(false);
            }
            Err(error) => {
                self.blocks.abandon_collection(victim);
                return Err(error);
            }
        }
        if held {
            map.settle_victim(self, at, victim)?;
        }
        self.note_gain(stream, self.counters.programs_by_collection() - before);
        self.finish_collection(map, at, victim, stream, Erase::Now)?;
        Ok(true)
    }

    /// Whether everything valid in a block can be read, or is to be given up: what is half emptied frees nothing.
    fn prove_victim(&mut self, victim: BlockId) -> Result<bool, FtlError<F::Error>> {
        let units = self.blocks.units_of(victim);
        Ok(self.aside.gives_up(victim) || self.is_readable(units)?)
    }

    /// A victim cannot be read: it keeps what is valid in it, and others are collected meanwhile.
    pub(crate) fn leave_alone(&mut self, victim: BlockId) {
        self.blocks.abandon_collection(victim);
        self.aside.put(victim, self.counters.erases);
    }

    /// A victim has been emptied, for which so many units were written. What is written anew in another form
    /// may take as much as it frees.
    pub(crate) fn note_gain(&mut self, stream: Stream, written: u64) {
        if self.options.log && stream == Stream::Gc {
            self.gained_nothing = written >= u64::from(self.blocks.data_units());
        }
    }

    /// Whether a block holds packed pages; blocks hold them alone.
    fn holds_log(&self, block: BlockId) -> bool {
        let unit = self.blocks.next_valid(self.blocks.units_of(block));
        unit.is_some_and(|ppn| self.is_log(self.owners.get(ppn.index())))
    }

    /// What a unit holds: on a device without translation pages, packed pages and tables nothing but values.
    #[inline(always)]
    pub(crate) fn owned(&self, owner: Owner) -> Owned {
        match self.options.log || K::CACHED {
            true => owner.owned(),
            false => Owned::Value(owner.as_object()),
        }
    }

    /// Whether a unit holds a packed page or a table.
    #[inline(always)]
    pub(crate) fn is_log(&self, owner: Owner) -> bool {
        matches!(self.owned(owner), Owned::Pack(_) | Owned::Table(_))
    }

    /// Moves all valid units out of a victim; whether they could be read.
    fn empty<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        victim: Victim,
        stream: Stream,
    ) -> Result<bool, FtlError<F::Error>> {
        let mut left = self.blocks.units_of(victim.block);
        self.prefetch_owners(map, left.clone());
        while let Some(ppn) = self.blocks.next_valid(left.clone()) {
            match self.move_page(map, at, victim, ppn, stream)? {
                Some(next) => left.start = next,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// A block becomes a victim.
    pub(crate) fn begin_collection(&mut self, victim: BlockId, stream: Stream) {
        let weight = self.blocks.weight(victim) as usize;
        self.blocks.begin_collection(victim);
        if stream == Stream::Wear {
            self.counters.wear_victims += 1;
        } else {
            self.counters.victims += 1;
            self.counters.valid_per_victim[weight] += 1;
            self.counters.log_victims += u64::from(self.holds_log(victim));
        }
    }

    #[inline(always)]
    fn prefetch_owners<M: Relocate<F, K>>(&self, map: &M, mut left: Range<Ppn>) {
        while let Some(ppn) = self.blocks.next_valid(left.clone()) {
            map.prefetch(self.owners.get(ppn.index()));
            left.start = ppn + 1;
        }
    }

    /// Moves the valid units of one flash page, the first of which is `first`; answers the unit to go
    /// on from. If one of them cannot be read, none moves and the answer is `None`, unless the block is given up.
    #[inline(always)]
    pub(crate) fn move_page<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        Victim {
            block: victim,
            moving,
        }: Victim,
        first: Ppn,
        stream: Stream,
    ) -> Result<Option<Ppn>, FtlError<F::Error>> {
        let page_end = Ppn((first.0 / self.units_per_page + 1) * self.units_per_page);
        let mut count = 1;
        for unit in Ppn::each(first + 1..page_end) {
            count += u32::from(self.blocks.is_valid(unit));
        }
        let own = self.geometry.plane_of(victim);
        let target = self.target_of(first, stream);
        let copyback = self.options.collect.copyback && self.has_room(own, target);
        let route = if copyback {
            Route::OnChip
        } else {
            Route::Channel
        };
        let cause = if stream == Stream::Wear {
            Cause::Wear
        } else {
            Cause::Gc
        };
        self.counters.page_reads_gc += 1;
        let ready = Ready::At(at);
        let read = self
            .flash
            .read(ready, first, count, cause, route, Tag::NONE)?;
        if !self.aside.gives_up(victim) && !self.is_readable(first..page_end)? {
            return Ok(None);
        }
        for unit in Ppn::each(first..page_end) {
            if unit == first || self.blocks.is_valid(unit) {
                self.move_unit(map, at, unit, moving, stream, read)?;
            }
        }
        Ok(Some(page_end))
    }

    /// Whether the valid ones of some units can be copied.
    #[inline(always)]
    pub(crate) fn is_readable(&mut self, mut left: Range<Ppn>) -> Result<bool, FtlError<F::Error>> {
        while F::PROVES
            && let Some(ppn) = self.blocks.next_valid(left.clone())
        {
            left.start = ppn + 1;
            match self.flash.prove_copy(ppn, self.owners.get(ppn.index())) {
                Ok(()) => {}
                Err(error) if F::is_loss(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    #[inline(always)]
    fn move_unit<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        from: Ppn,
        moving: Moving,
        stream: Stream,
        read: Completion,
    ) -> Result<(), FtlError<F::Error>> {
        let own = self.geometry.plane_of_unit(from);
        let owner = self.owners.get(from.index());
        if moving == Moving::MayRewrite || self.is_log(owner) && self.is_lost(from) {
            let unit = Relocation {
                at,
                from,
                owner,
                read,
            };
            if map.rewrite(self, unit)? {
                return Ok(());
            }
        }
        let target = self.target_of(from, stream);
        let plane = self.destination(own, target, at)?;
        // Inside a plane the program queues behind the read anyway; elsewhere it waits for it.
        let (ready, route) = if plane == own && self.options.collect.copyback {
            (Ready::At(at), Route::OnChip)
        } else if plane == own {
            (Ready::At(at), Route::Channel)
        } else {
            (Ready::from(read), Route::Channel)
        };
        let unit = Unit::Copy { owner, from };
        if stream == Stream::Wear {
            self.counters.programs_wear += 1;
        } else {
            self.counters.programs_gc += 1;
        }
        let when = When { ready, at };
        let (to, _) = self.append(plane, target, unit, when, route, Tag::NONE)?;
        let dead = map.dead_bytes(owner);
        self.blocks.moved_out(from, dead);
        self.flash.validity_changed(from);
        if dead > 0 {
            self.blocks.set_dead(to, 0, dead);
        }
        match self.owned(owner) {
            Owned::MapPage(page) => self.map_cache.place(page, to),
            Owned::Value(number) => {
                map.relocate(owner, to);
                self.map_cache.moved(number);
            }
            Owned::Pack(_) | Owned::Table(_) => {
                map.relocate(owner, to);
                if K::CACHED {
                    map.each_value(owner, &mut |object| self.map_cache.moved(object));
                }
            }
        }
        Ok(())
    }

    /// Whether a unit cannot be read any more. What was in a packed page must be named one by one then.
    fn is_lost(&mut self, unit: Ppn) -> bool {
        let content = self.flash.content(unit);
        content.is_err_and(|error| F::is_loss(&error))
    }

    /// The stream whose open blocks take what a stream moves.
    #[inline(always)]
    pub(crate) fn target_stream(&self, stream: Stream) -> Stream {
        target_stream(&self.options, stream)
    }

    /// The same for what a unit holds: translation pages and packed pages keep blocks of their own.
    #[inline(always)]
    pub(crate) fn target_of(&self, unit: Ppn, stream: Stream) -> Stream {
        let owner = self.owners.get(unit.index());
        match self.owned(owner) {
            Owned::MapPage(_) => Stream::Map,
            Owned::Pack(_) | Owned::Table(_) => Stream::LogGc,
            Owned::Value(_) if F::PROVES && stream == Stream::Gc && self.spills(unit) => {
                Stream::Host
            }
            Owned::Value(_) => self.target_stream(stream),
        }
    }

    /// Whether what a victim holds goes to the host's open block, as it fits and there is no other one: no block is
    /// free, and none is open for collection. Only a recovery leaves a device so, when damage made it keep blocks that
    /// had been emptied.
    fn spills(&self, unit: Ppn) -> bool {
        let victim = self.geometry.block_of(unit);
        let plane = self.geometry.plane_of(victim);
        let p = &self.planes[plane.index()];
        let host = &p.open[Stream::Host as usize];
        let valid = u32::from(self.blocks.record(victim).valid);
        self.pools[self.layout.pool_of(plane).index()].free == 0
            && !p.open[Stream::Gc as usize].is_open()
            && valid <= host.room()
    }

    /// Whether a unit can be appended to a stream in the pool of a plane without taking its last free block.
    pub(crate) fn has_block_to_spare(&self, own: PlaneId, stream: Stream) -> bool {
        let pool = self.layout.pool_of(own);
        self.planes[own.index()].open[stream as usize].is_open()
            || self.pools[pool.index()].free >= 2
    }

    #[inline(always)]
    pub(crate) fn has_room(&self, plane: PlaneId, stream: Stream) -> bool {
        let p = &self.planes[plane.index()];
        p.open[stream as usize].is_open() || !p.free.is_empty()
    }

    /// The plane that takes a unit moved out of `own`, with a block open.
    #[inline(always)]
    pub(crate) fn destination(
        &mut self,
        own: PlaneId,
        stream: Stream,
        at: Time,
    ) -> Result<PlaneId, FtlError<F::Error>> {
        if self.planes[own.index()].open[stream as usize].is_open() {
            return Ok(own);
        }
        let plane = self.roomy_plane(own, stream).ok_or_else(|| self.full())?;
        if !self.planes[plane.index()].open[stream as usize].is_open() {
            self.open(plane, stream, at)?;
        }
        Ok(plane)
    }

    /// `own` or the next plane of its pool, in striping order, that has room. Collection keeps one
    /// free block a pool in reserve; only a device restored after power losses can be without.
    fn roomy_plane(&self, own: PlaneId, stream: Stream) -> Option<PlaneId> {
        self.layout
            .pool_from(own)
            .find(|&plane| self.has_room(plane, stream))
    }

    /// Programs what is partly filled, then erases the empty victim.
    pub(crate) fn finish_collection<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        victim: BlockId,
        stream: Stream,
        erase: Erase,
    ) -> Result<(), FtlError<F::Error>> {
        let pool = self.blocks.record(victim).pool();
        if self.units_per_page > 1 {
            let target = self.target_stream(stream);
            for i in 0..self.layout.pool(pool).len() {
                let plane = self.layout.pool(pool)[i];
                if self.holds_copies(plane, target) {
                    self.pad(plane, target, at)?;
                }
                if K::CACHED && self.holds_copies(plane, Stream::Map) {
                    self.pad(plane, Stream::Map, at)?;
                }
                if self.options.log && self.holds_copies(plane, Stream::LogGc) {
                    self.pad(plane, Stream::LogGc, at)?;
                }
                if F::PROVES && self.holds_copies(plane, Stream::Host) {
                    self.pad(plane, Stream::Host, at)?;
                }
            }
        }
        if self.wears_out(victim) || !self.erase(at, victim, erase)? {
            self.retire(victim);
            return self.follow_collection(at, pool);
        }
        self.follow_collection(at, pool)?;
        self.level_wear(map, at, pool)
    }

    /// Erases an empty victim; false if the block has failed.
    fn erase(
        &mut self,
        at: Time,
        victim: BlockId,
        erase: Erase,
    ) -> Result<bool, FtlError<F::Error>> {
        let (background, tag) = match erase {
            Erase::Now => (false, Tag::NONE),
            Erase::Background => (true, Tag(FIRST_RESERVED_TAG + victim.0)),
        };
        match self.flash.erase(at, victim, background, tag) {
            Ok(_) => {}
            Err(error) if F::is_block_failure(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        self.counters.erases += 1;
        self.aside.take(victim);
        self.blocks.begin_erase(victim);
        let block = self.blocks.record(victim);
        let (erases, pool) = (block.erases, block.pool());
        let record = &mut self.pools[pool.index()];
        record.most_erases = record.most_erases.max(erases);
        match erase {
            Erase::Now => self.give_back(victim),
            Erase::Background => self.erasing.push((victim, pool)),
        }
        Ok(true)
    }

    /// Whether the page buffer of a stream holds copies of units that still lie elsewhere.
    fn holds_copies(&self, plane: PlaneId, stream: Stream) -> bool {
        let units = &self.planes[plane.index()].buffers[stream as usize].units;
        units.iter().any(|u| matches!(u, Unit::Copy { .. }))
    }
}

/// The stream whose open blocks take what a stream moves.
#[inline(always)]
pub(crate) fn target_stream(options: &FtlOptions, stream: Stream) -> Stream {
    if stream == Stream::Gc && options.streams == Streams::Shared {
        Stream::Host
    } else {
        stream
    }
}
