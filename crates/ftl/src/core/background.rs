//! Collection in idle gaps: one page-sized step at a time.
//!
//! A pool at its low watermark gets jobs, one a plane, until it is above the high one; a job empties
//! one victim. Static wear levelling is a job too. A step starts when whatever serves the plane has
//! nothing to do, finishes once begun, and changes the map when it starts. The block is free when its
//! erase is over. A gap is used to its end: what the device decides within it may open the way for the
//! next step.
//!
//! The host works against a job only when its write frontier has nothing left: then erases that run are waited
//! for, a running job is finished, and further victims are collected in the host's way.
//!
//! Collections come before wear levelling.
//!
//! Invariants: at most one collection a plane and one job of wear levelling a pool; the victim of a job
//! is in state Collecting; the oldest collection of a pool can always be finished (`may_step`).

use std::ops::Range;

use flashlore_flash::{BlockId, Flash, Geometry, PlaneId, PoolId, Ppn, Stream, Time};

use crate::core::Core;
use crate::core::collect::{Erase, Moving, Victim};
use crate::core::relocate::Relocate;
use crate::error::FtlError;
use crate::map_cache::MapCache;
use crate::options::Mode;

/// Flash pages that one write moves for collection at most.
const MOST_OWED: u32 = 16;
/// Flash pages of a victim that one step looks at before it is emptied.
const PAGES_PROVEN: u32 = 16;

/// The collection of one victim in the background.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pool: PoolId,
    plane: PlaneId,
    victim: BlockId,
    /// For its invalid units, or because it is cold.
    stream: Stream,
    /// Units that were valid when it began.
    units: u32,
    /// The unit to go on from.
    from: Ppn,
    /// Units before this one can be read.
    proven: Ppn,
    /// What becomes of its units.
    moving: Moving,
    /// Units written for it so far.
    written: u64,
}

impl Job {
    /// Whether it is to free a block of this pool.
    fn collects(&self, pool: PoolId) -> bool {
        self.pool == pool && self.stream == Stream::Gc
    }

    /// The block being emptied.
    pub fn victim(&self) -> BlockId {
        self.victim
    }
}

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// A pool is filling up: starts jobs on planes that have none.
    pub(crate) fn wake(&mut self, pool: PoolId) {
        if self.erasing_stale {
            // What is stale is being erased already.
            return;
        }
        // A pool of one plane that collects already would look at its blocks in vain, at each request.
        let idle =
            |plane: &PlaneId| is_plane_idle(&self.geometry, &self.jobs, &self.erasing, *plane);
        if !self.layout.pool(pool).iter().any(idle) {
            return;
        }
        let planned = self.pools[pool.index()].free
            + self.erasing.iter().filter(|&&(_, p)| p == pool).count() as u32
            + self.jobs.iter().filter(|j| j.collects(pool)).count() as u32;
        let wanted = (self.watermarks(pool).high + 1).saturating_sub(planned);
        for _ in 0..wanted {
            let Some(victim) = self.next_victim(pool, true) else {
                return;
            };
            self.begin_job(pool, victim, Stream::Gc);
        }
    }

    fn begin_job(
        &mut self,
        pool: PoolId,
        Victim {
            block: victim,
            moving,
        }: Victim,
        stream: Stream,
    ) {
        self.begin_collection(victim, stream);
        let first = self.geometry.first_unit(victim);
        self.jobs.push(Job {
            pool,
            plane: self.geometry.plane_of(victim),
            victim,
            stream,
            units: u32::from(self.blocks.record(victim).valid),
            from: first,
            proven: match F::PROVES {
                true if self.blocks.record(victim).valid > 0 => first,
                _ => Ppn::NONE,
            },
            moving,
            written: 0,
        });
    }

    /// Units that collection moves next: what is valid of so many flash pages of the victim it is at.
    pub fn next_moves(&self, flash_pages: u32) -> impl Iterator<Item = Ppn> {
        let next = self.jobs.first().and_then(|job| {
            let end = self.blocks.units_of(job.victim).end;
            let from = self.blocks.next_valid(job.from..end)?;
            let page = from.0 / self.units_per_page + flash_pages;
            Some(from..Ppn(page * self.units_per_page).min(end))
        });
        let units = next.into_iter().flat_map(Ppn::each);
        units.filter(|&unit| self.blocks.is_valid(unit))
    }

    /// The coldest block of a pool is to be moved, unless one is being moved already.
    pub(crate) fn begin_wear_job(&mut self, pool: PoolId, coldest: BlockId) {
        let moves = |job: &Job| job.pool == pool && job.stream == Stream::Wear;
        if !self.jobs.iter().any(moves) {
            self.begin_job(pool, Victim::as_is(coldest), Stream::Wear);
        }
    }

    /// Whether a job may take the room that its next step needs. The oldest collection of a pool that
    /// gives a block back may take all there is; the others leave a free block, so that it can always
    /// be finished.
    fn may_step(&self, job: usize) -> bool {
        let Job {
            pool,
            victim,
            stream,
            ..
        } = self.jobs[job];
        if self.blocks.record(victim).valid == 0 {
            return true;
        }
        let free = self.pools[pool.index()].free;
        let gives = |job: &Job| job.collects(pool) && !self.wears_out(job.victim);
        let opens = self.opens_block(self.jobs[job].plane, self.next_target(job));
        match stream {
            Stream::Wear => !opens || free >= 2,
            _ if gives(&self.jobs[job]) && !self.jobs[..job].iter().any(gives) => {
                !opens || free >= 1
            }
            _ => free >= if opens { 2 } else { 1 },
        }
    }

    /// The stream that takes what the next step of a job moves.
    fn next_target(&self, job: usize) -> Stream {
        let Job {
            victim,
            stream,
            from,
            ..
        } = self.jobs[job];
        if !K::CACHED && !self.options.log && !F::PROVES {
            return self.target_stream(stream);
        }
        let end = self.blocks.units_of(victim).end;
        match self.blocks.next_valid(from..end) {
            Some(unit) => self.target_of(unit, stream),
            None => self.target_stream(stream),
        }
    }

    /// Starts every step that fits into an idle gap before `until`.
    pub(crate) fn run_background<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        until: Time,
    ) -> Result<(), FtlError<F::Error>> {
        loop {
            let step = self.next_step();
            // What the device decides first may take the gap, free a block, or open another gap.
            let event = self.flash.next_event().map(|at| at.max(self.present));
            let next = step.map(|(start, _)| start).into_iter().chain(event).min();
            let Some(at) = next.filter(|&at| at < until) else {
                return Ok(());
            };
            self.flash.advance(at, &mut self.finished);
            self.present = at;
            if event == Some(at) {
                // At one instant it comes first, wherever time is stopped on the way.
                if self.take_erased() {
                    self.wake_pools();
                }
                continue;
            }
            if let Some((start, job)) = step
                && start == at
                && self.is_idle(job, start)
            {
                self.step(map, start, job, Erase::Background)?;
            }
            self.wake_pools();
        }
    }

    /// Starts every step that can start at the present, so that what else there is to do in idle gaps
    /// comes after collection.
    pub(crate) fn start_background<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
    ) -> Result<(), FtlError<F::Error>> {
        while let Some((start, job)) = self.next_step()
            && start <= self.present
        {
            self.step(map, start, job, Erase::Background)?;
            self.wake_pools();
        }
        Ok(())
    }

    /// One step of collection, where the device is told when ([`crate::options::Mode::Stepped`]): at most a page is
    /// copied, or a block erased. Whether there was anything to do, and room to do it: whether a full device has
    /// room for the host is for a write to tell.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn collect_step<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
    ) -> Result<bool, FtlError<F::Error>> {
        let Some((_, job)) = self.next_step() else {
            return Ok(false);
        };
        match self.step(map, at, job, Erase::Now) {
            Err(FtlError::Full { .. }) => return Ok(false),
            stepped => stepped?,
        }
        self.wake_pools();
        Ok(true)
    }

    /// How many units collection has to move for each that the host writes to keep pace, in 256ths: as many as the
    /// victim at hand holds valid for each that it gains, and a quarter more; twice that where fewer blocks are
    /// free than it began at. Nothing while nothing is collected.
    fn pace(&self) -> u32 {
        let Some(job) = self.jobs.first() else {
            return 0;
        };
        let marks = self.watermarks(job.pool);
        let gained = self.blocks.data_units().saturating_sub(job.units).max(1);
        let behind = self.pools[job.pool.index()].free < marks.low;
        let units = job.units + self.units_per_page;
        (units * 320 / gained) << u32::from(behind)
    }

    /// Before each write of the host, where collection goes in steps: as many of them as it owes.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn keep_pace<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
    ) -> Result<(), FtlError<F::Error>> {
        let page = self.units_per_page * 256;
        self.owed = match self.pace() {
            0 => 0,
            pace => self.owed.saturating_add(pace).min(MOST_OWED * page),
        };
        while self.owed >= page {
            self.owed -= page;
            if !self.collect_step(map, at)? {
                self.owed = 0;
            }
        }
        Ok(())
    }

    /// Whether a job could go on.
    pub fn has_steps(&self) -> bool {
        self.next_step().is_some()
    }

    /// Whether a job can go on at this instant.
    fn is_idle(&self, job: usize, at: Time) -> bool {
        let plane = self.jobs.get(job).map(|j| j.plane);
        let idle = plane.and_then(|plane| self.flash.idle_since(plane));
        idle.is_some_and(|since| since <= at) && self.may_step(job)
    }

    /// The job whose next step can start first, and when.
    fn next_step(&self) -> Option<(Time, usize)> {
        let starts = self.jobs.iter().enumerate().filter_map(|(i, job)| {
            let idle = self.flash.idle_since(job.plane)?;
            let wear = job.stream == Stream::Wear;
            self.may_step(i)
                .then_some((idle.max(self.present), wear, i))
        });
        starts.min().map(|(start, _, job)| (start, job))
    }

    /// One page of a victim, or its erase.
    fn step<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        job: usize,
        erase: Erase,
    ) -> Result<(), FtlError<F::Error>> {
        let Job {
            victim,
            from,
            stream,
            moving,
            ..
        } = self.jobs[job];
        let end = self.blocks.units_of(victim).end;
        let proven = self.jobs[job].proven;
        if proven < end {
            return self.prove_step(job, proven..end);
        }
        match self.blocks.next_valid(from..end) {
            Some(ppn) => {
                let before = self.counters.programs_by_collection();
                let Some(next) = self.move_page(
                    map,
                    at,
                    Victim {
                        block: victim,
                        moving,
                    },
                    ppn,
                    stream,
                )?
                else {
                    self.jobs.remove(job);
                    self.leave_alone(victim);
                    return Ok(());
                };
                let job = &mut self.jobs[job];
                job.from = next;
                job.written += self.counters.programs_by_collection() - before;
                Ok(())
            }
            None => {
                let before = self.counters.programs_by_collection();
                map.settle_victim(self, at, victim)?;
                let written = self.counters.programs_by_collection() - before;
                let job = self.jobs.remove(job);
                self.note_gain(stream, job.written + written);
                self.finish_collection(map, at, victim, stream, erase)
            }
        }
    }

    /// Before a victim is emptied it is looked at, a few flash pages at a time: one that cannot be read is left alone.
    fn prove_step(&mut self, job: usize, left: Range<Ppn>) -> Result<(), FtlError<F::Error>> {
        let victim = self.jobs[job].victim;
        let to = (left.start + PAGES_PROVEN * self.units_per_page).min(left.end);
        if self.aside.gives_up(victim) || self.is_readable(left.start..to)? {
            self.jobs[job].proven = to;
            return Ok(());
        }
        self.jobs.remove(job);
        self.leave_alone(victim);
        Ok(())
    }

    /// An erase that is over lets other planes of its die begin.
    pub(crate) fn wake_pools(&mut self) {
        for pool in self.layout.pool_ids() {
            if self.pools[pool.index()].filling {
                self.wake(pool);
            }
        }
    }

    /// The host needs a block of this pool now.
    pub(crate) fn collect_urgently<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        pool: PoolId,
    ) -> Result<(), FtlError<F::Error>> {
        // A block whose erase runs is taken now; its first program waits for the end of the erase.
        while let Some(i) = self.erasing.iter().position(|&(_, p)| p == pool) {
            let (block, _) = self.erasing.swap_remove(i);
            self.give_back(block);
        }
        let enough = match self.options.collect.mode {
            Mode::Stepped { urgent } => urgent,
            _ => self.watermarks(pool).low,
        };
        while self.pools[pool.index()].free <= enough {
            let collects = |i: &usize| self.jobs[*i].collects(pool);
            let mut jobs = (0..self.jobs.len()).filter(collects);
            if let Some(job) = jobs.clone().find(|&i| self.may_step(i)) {
                self.finish_job(map, at, job)?;
                continue;
            }
            if jobs.any(|i| !self.wears_out(self.jobs[i].victim)) {
                break;
            }
            let Some(victim) = self.next_victim(pool, false) else {
                break;
            };
            self.collect(map, at, victim, Stream::Gc)?;
        }
        Ok(())
    }

    /// Ends a job at once; whether there was room for that.
    fn finish_job<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        job: usize,
    ) -> Result<bool, FtlError<F::Error>> {
        let victim = self.jobs[job].victim;
        while self.jobs.get(job).is_some_and(|j| j.victim == victim) {
            if !self.may_step(job) {
                return Ok(false);
            }
            self.step(map, at, job, Erase::Now)?;
        }
        Ok(true)
    }

    /// Ends every job and erase at once: the end of preconditioning. Cold data that there is no room
    /// for stay with their job.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn settle<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
    ) -> Result<(), FtlError<F::Error>> {
        for (block, _) in std::mem::take(&mut self.erasing) {
            self.give_back(block);
        }
        let mut job = 0;
        while job < self.jobs.len() {
            if self.finish_job(map, at, job)? {
                job = 0;
            } else {
                job += 1;
            }
        }
        Ok(())
    }
}

/// Whether the plane of a block collects nothing and its die has no background erase.
pub(crate) fn is_idle(
    geometry: &Geometry,
    jobs: &[Job],
    erasing: &[(BlockId, PoolId)],
    block: BlockId,
) -> bool {
    is_plane_idle(geometry, jobs, erasing, geometry.plane_of(block))
}

fn is_plane_idle(
    geometry: &Geometry,
    jobs: &[Job],
    erasing: &[(BlockId, PoolId)],
    plane: PlaneId,
) -> bool {
    let die = geometry.die_of(plane);
    let die_of = |block| geometry.die_of(geometry.plane_of(block));
    let collects = |j: &Job| j.plane == plane && j.stream == Stream::Gc;
    !jobs.iter().any(collects) && !erasing.iter().any(|&(b, _)| die_of(b) == die)
}
