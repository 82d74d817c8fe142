//! The parts of the translation layer in one place: flash, blocks, write frontiers and pools.
//!
//! It knows owners, not logical pages: whoever maps addresses ([`crate::plain`], [`crate::content`])
//! appends units under an owner and invalidates them, and is told when a unit moves
//! ([`crate::mapping::Mapping::relocate`]).
//!
//! Life of an append: the next write frontier in round-robin order takes it (`host_frontier`), whose pool may be
//! collected first; the unit takes the next slot of the write frontier's open block; a page is programmed when its last
//! slot is taken; a block is sealed when its last page is.
//!
//! Invariants: the free count of a pool is the number of blocks on its planes' free lists; every
//! valid unit lies where the mapping says its owner lies ([`crate::check`]).

use flashlore_flash::hints::on_large_pages;
use flashlore_flash::{
    BlockId, Cause, Completion, Finished, Flash, Geometry, OpId, Owner, PageId, PlaneId, Ppn,
    Ready, Route, Stream, Tag, Time, Unit, When,
};

use crate::alloc::{CLOSED, OpenBlock, Plane};
use crate::blocks::Blocks;
use crate::counters::Counters;
use crate::error::{FtlError, OptionsError};
use crate::gc::Victims;
use crate::gc::aside::Aside;
use crate::gc::background::Job;
use crate::gc::sealed::SealTimes;
use crate::layout::{Layout, Rotate};
use crate::map_cache::{MapCache, Resident};
use crate::mapping::Relocate;
use crate::options::{FtlOptions, Mode, Streams, Trigger};

/// Tags from here on name blocks being erased; the caller's own must be smaller.
pub const FIRST_RESERVED_TAG: u32 = 1 << 31;

/// What a read of a logical page answers: its content if it has any, and when it is there.
pub type PageRead<P> = (Option<P>, Completion);

/// A pool of planes.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    /// Blocks on the free lists of its planes.
    pub free: u32,
    /// Whether `free` is at or below the low watermark.
    pub low: bool,
    /// Background collection: it has been low, and `free` is not above the high watermark yet.
    pub filling: bool,
    /// Most erases of any of its blocks.
    pub most_erases: u32,
    /// Retired blocks.
    pub retired: u32,
    /// Erases until static wear levelling looks again.
    pub until_wear_check: u32,
}

/// Everything below the mapping; `K` caches the map, in RAM or partly on flash.
pub struct Core<F: Flash, K = Resident> {
    pub(crate) flash: F,
    pub(crate) options: FtlOptions,
    pub(crate) layout: Layout,
    pub(crate) blocks: Blocks,
    pub(crate) owners: Vec<Owner>,
    pub(crate) planes: Vec<Plane<F::Page>>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) low_pools: u32,
    pub(crate) victims: Victims,
    /// Where victims are to be sealed before the window of old versions.
    pub(crate) seal_times: Option<SealTimes>,
    pub(crate) jobs: Vec<Job>,
    /// Units that collection owes for what the host wrote, in 256ths.
    pub(crate) owed: u32,
    /// Background erases that are not over, with their pools.
    pub(crate) erasing: Vec<(BlockId, usize)>,
    /// Victims that could not be read.
    pub(crate) aside: Aside,
    pub(crate) counters: Counters,
    /// The round-robin position of each group: of the host's next page, and of the next packed page.
    cursors: [Vec<u32>; 2],
    /// The latest instant that was advanced to.
    pub(crate) present: Time,
    pub(crate) finished: Vec<Finished>,
    pub(crate) map_cache: K,
    /// The place in striping order of the write frontier for the next translation page.
    pub(crate) map_frontier: usize,
    pub(crate) geometry: Geometry,
    pub(crate) units_per_page: u32,
    /// Pages that wait in buffers for more units of the host.
    partial_pages: u32,
    /// With barriers: blocks freed since the last one.
    unsettled: Vec<BlockId>,
    /// Barriers so far.
    barriers: u64,
    most_live: u64,
    /// The last collection gained no page, because it gave units other forms: the next victim is chosen for its
    /// units, which keep theirs.
    pub(crate) gained_nothing: bool,
    /// What is stale is being erased: nothing is materialized, no wear is levelled and no job begun for that time.
    pub(crate) erasing_stale: bool,
    /// While a pool is low a write frontier is looked at also when it has a block open.
    looks_at_open_frontiers: bool,
}

/// A barrier of which the first half is done.
#[derive(Debug)]
#[must_use = "blocks freed before it are not written again until it ends"]
pub struct OpenBarrier {
    /// Whole barriers before it.
    barriers: u64,
    /// Blocks it settles.
    freed: usize,
}

impl<F: Flash> Core<F>
where
    F::Page: Clone,
{
    /// An empty device with its map in RAM.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn new(flash: F, options: FtlOptions) -> Result<Self, OptionsError> {
        Core::with_map_cache(flash, options, Resident)
    }
}

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
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
        let geometry = flash.geometry().clone();
        if (options.log || K::CACHED) && geometry.units() > Owner::VALUES {
            return Err(OptionsError::TooLarge {
                units: geometry.units(),
                most: Owner::VALUES,
            });
        }
        let layout = Layout::new(&geometry, &options.layout)?;
        let data_units = geometry.units_per_block()
            - u32::from(options.summary_page) * geometry.units_per_page();
        let pool_of = |block| layout.pool_of(geometry.plane_of(block));
        let blocks = Blocks::new(&geometry, data_units, layout.pools().len(), pool_of);
        let most_live =
            check_spare::<F::Page, K>(&geometry, &layout, &options, &map_cache, data_units)?;
        let mut planes: Vec<Plane<F::Page>> = (0..geometry.planes())
            .map(|_| Plane::new(options.wear.dynamic))
            .collect();
        for block in (0..geometry.blocks()).map(BlockId) {
            planes[geometry.plane_of(block).index()].free.push(block, 0);
        }
        let pools = layout
            .pools()
            .iter()
            .map(|members| Pool {
                free: members.len() as u32 * geometry.blocks_per_plane(),
                low: false,
                filling: false,
                most_erases: 0,
                retired: 0,
                until_wear_check: 1,
            })
            .collect();
        let looks_at_open_frontiers = matches!(options.collect.trigger, Trigger::Dispatch { .. })
            || fills_with_copies(&options);
        Ok(Core {
            owners: on_large_pages(vec![Owner::value(0); geometry.units() as usize]),
            victims: Victims::new(options.collect.victims, options.seed),
            seal_times: options
                .collect
                .sealed_before_window
                .then(|| SealTimes::new(geometry.blocks())),
            counters: Counters::new(data_units),
            cursors: [
                vec![0; layout.groups().len()],
                vec![0; layout.groups().len()],
            ],
            units_per_page: geometry.units_per_page(),
            flash,
            options,
            layout,
            blocks,
            planes,
            pools,
            low_pools: 0,
            jobs: Vec::new(),
            owed: 0,
            erasing: Vec::new(),
            aside: Aside::default(),
            present: 0,
            finished: Vec::new(),
            map_cache,
            map_frontier: 0,
            geometry,
            partial_pages: 0,
            unsettled: Vec::new(),
            barriers: 0,
            most_live,
            gained_nothing: false,
            erasing_stale: false,
            looks_at_open_frontiers,
        })
    }

    /// The flash device.
    pub fn flash(&self) -> &F {
        &self.flash
    }

    /// The flash device, to change what stands behind the translation layer.
    pub fn flash_mut(&mut self) -> &mut F {
        &mut self.flash
    }

    /// The settings.
    pub fn options(&self) -> &FtlOptions {
        &self.options
    }

    /// What has been counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The map cache.
    pub fn map_cache(&self) -> &K {
        &self.map_cache
    }

    /// Block records.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Counts the erases of all blocks from here on, for [`Blocks::erase_tally`].
    pub fn tally_erases(&mut self) {
        self.blocks.tally_erases();
    }

    /// Free blocks of the device.
    pub fn free_blocks(&self) -> u32 {
        self.pools.iter().map(|p| p.free).sum()
    }

    /// Whether a unit waits in a page buffer.
    pub fn is_buffered(&self, ppn: Ppn) -> bool {
        self.buffered(ppn).is_some()
    }

    /// Whose a unit is that is valid.
    pub fn owner_of(&self, ppn: Ppn) -> Owner {
        self.owners[ppn.index()]
    }

    /// Blocks of the device that were freed since the last barrier: they are free, and written only after one.
    pub fn unsettled_blocks(&self) -> usize {
        self.unsettled.len()
    }

    /// The stream that has a block open.
    pub fn stream_of(&self, block: u32) -> Option<Stream> {
        Stream::ALL.into_iter().find(|&s| {
            self.planes
                .iter()
                .any(|p| p.open[s as usize].block == block)
        })
    }

    /// The most units that can be valid while writes and collection always find room.
    pub fn most_live(&self) -> u64 {
        self.most_live
    }

    /// Replaces the victim policy.
    pub fn set_victims(&mut self, victims: Victims) {
        self.victims = victims;
    }

    /// Completions decided since the last call.
    #[inline(always)]
    pub fn finished(&mut self) -> &mut Vec<Finished> {
        &mut self.finished
    }

    /// Whether a unit of the host waits for its page to fill.
    #[inline(always)]
    pub fn has_partial(&self) -> bool {
        self.partial_pages > 0
    }

    /// Sets all counters to 0; wear starts anew only when the device's history does.
    pub fn restart_counters(&mut self) {
        self.counters = Counters::new(self.blocks.data_units());
    }

    /// Forgets the wear so far: the end of preconditioning.
    pub fn restart_wear(&mut self) {
        self.blocks.restart();
        for pool in &mut self.pools {
            pool.most_erases = 0;
        }
        for plane in &mut self.planes {
            let free: Vec<BlockId> = std::iter::from_fn(|| plane.free.pop()).collect();
            for block in free {
                plane.free.push(block, 0);
            }
        }
    }

    /// Asks for what invalidating a unit will touch.
    #[inline(always)]
    pub fn prefetch(&self, ppn: Ppn) {
        self.blocks.prefetch(ppn);
    }

    /// Bytes held, without what the flash back end stores.
    pub fn heap_bytes(&self) -> usize {
        self.owners.capacity() * size_of::<Owner>() + self.blocks.heap_bytes()
    }

    /// Lets time pass: idle gaps before `until` are used, decided completions are gathered.
    ///
    /// # Errors
    /// A failure of the device.
    #[inline(always)]
    pub fn advance<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        until: Time,
    ) -> Result<(), FtlError<F::Error>> {
        if !self.jobs.is_empty() || !self.erasing.is_empty() {
            self.run_background(map, until)?;
        }
        self.flash.advance(until, &mut self.finished);
        self.present = until;
        // Of a block that the host took while its erase ran, the end is reported all the same.
        if !self.finished.is_empty() && self.options.collect.mode.has_jobs() && self.take_erased() {
            self.wake_pools();
        }
        Ok(())
    }

    /// A background erase that is over gives its block back; whether one was.
    pub(crate) fn take_erased(&mut self) -> bool {
        let mut erased = false;
        let mut i = 0;
        while i < self.finished.len() {
            let tag = self.finished[i].tag.0;
            if tag < FIRST_RESERVED_TAG || tag == Tag::NONE.0 {
                i += 1;
                continue;
            }
            self.finished.swap_remove(i);
            erased = true;
            let block = BlockId(tag - FIRST_RESERVED_TAG);
            if let Some(at) = self.erasing.iter().position(|&(b, _)| b == block) {
                self.erasing.swap_remove(at);
                self.give_back(block);
            }
        }
        erased
    }

    /// Refuses a logical page that the device does not have.
    #[inline(always)]
    pub(crate) fn check_range(&self, lpn: u32) -> Result<(), FtlError<F::Error>> {
        let exported = self.options.exported;
        if lpn < exported {
            Ok(())
        } else {
            Err(FtlError::OutOfRange { lpn, exported })
        }
    }

    /// Appends new content of the host.
    ///
    /// # Errors
    /// [`FtlError::Full`] when no page can be freed, or a failure of the device.
    #[inline(always)]
    pub(crate) fn append_host<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        when: When,
        lpn: u32,
        owner: u32,
        page: F::Page,
        tag: Tag,
    ) -> Result<(Ppn, Completion), FtlError<F::Error>> {
        let owner = Owner::value(owner);
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
        lpn: u32,
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
        lpn: u32,
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
        let (group, _) = self.layout.seat_of(plane);
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
    fn cursors(&mut self, stream: Stream) -> &mut Vec<u32> {
        &mut self.cursors[usize::from(stream == Stream::Log)]
    }

    #[inline(always)]
    fn move_on(&mut self, group: usize, stream: Stream) {
        let count = self.layout.groups()[group].len() as u32;
        let cursor = &mut self.cursors(stream)[group];
        let next = *cursor + 1;
        *cursor = if next == count { 0 } else { next };
    }

    /// The write frontier that takes the next unit of a group, with a block of the stream open.
    #[inline(always)]
    fn host_frontier<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        group: usize,
        stream: Stream,
    ) -> Result<PlaneId, FtlError<F::Error>> {
        let frontier = self.cursors(stream)[group];
        let plane = self.layout.groups()[group][frontier as usize];
        let look = self.low_pools != 0 && self.looks_at_open_frontiers;
        if !look && self.is_open(plane, stream) {
            return Ok(plane);
        }
        self.find_frontier(map, at, group, stream)
    }

    #[inline(never)]
    fn find_frontier<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        group: usize,
        stream: Stream,
    ) -> Result<PlaneId, FtlError<F::Error>> {
        let groups = self.layout.groups().len();
        // A page of a group may need a unit more while others need its units: bases, packed pages of several groups.
        // Then it lies elsewhere, for all groups together have room.
        let tried = if self.options.log { groups } else { 1 };
        for group in (group..groups).chain(0..group).take(tried) {
            for _ in 0..self.layout.groups()[group].len() {
                let frontier = self.cursors(stream)[group];
                let plane = self.layout.groups()[group][frontier as usize];
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
    fn prepare_frontier<M: Relocate<F, K>>(
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
        if fills_with_copies(&self.options) && self.pools[pool].free == 0 {
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
    fn is_open(&self, plane: PlaneId, stream: Stream) -> bool {
        self.planes[plane.index()].open[stream as usize].is_open()
    }

    /// Whether the host may take a block of this plane and leave collection its reserve.
    pub(crate) fn may_open(&self, plane: PlaneId) -> bool {
        let pool = self.layout.pool_of(plane);
        !self.planes[plane.index()].free.is_empty() && self.pools[pool].free >= 2
    }

    /// Whether collection that is a job has not kept pace: the host has to wait for it.
    pub(crate) fn is_urgent(&self, plane: PlaneId) -> bool {
        match self.options.collect.mode {
            Mode::Foreground => false,
            Mode::Background => !self.may_open(plane),
            Mode::Stepped { urgent } => {
                !self.may_open(plane) || self.pools[self.layout.pool_of(plane)].free <= urgent
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
            let pool = usize::from(self.layout.pools_of_die(die)[i]);
            self.collect_pool(map, at, pool)?;
        }
        Ok(())
    }

    /// Opens a free block of a plane for a stream; there must be one.
    pub(crate) fn open(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        at: Time,
    ) -> Result<(), FtlError<F::Error>> {
        self.settle_before_opening(plane, stream, at)?;
        let blocks = &self.blocks;
        let free = &mut self.planes[plane.index()].free;
        let taken = match stream {
            Stream::Wear => free.pop_highest(|b| blocks.record(b).erases),
            _ => free.pop(),
        };
        let Some(block) = taken else {
            unreachable!("a block is opened only where one is free")
        };
        debug_assert!(!self.planes[plane.index()].open[stream as usize].is_open());
        let first = self.geometry.first_unit(block).0;
        self.planes[plane.index()].open[stream as usize] = OpenBlock {
            block: block.0,
            next: first,
            end: first + self.blocks.data_units(),
        };
        self.blocks.open(block);
        let pool = self.layout.pool_of(plane);
        self.pools[pool].free -= 1;
        self.note_watermark(pool);
        Ok(())
    }

    /// A power loss undoes the erases since the last barrier, and not the openings. So a block that was
    /// free at the barrier is left for the collection that follows a power loss: before the last one is
    /// taken there is a barrier. Where blocks are not taken in the order in which they became free,
    /// there is one whenever one of them was freed since.
    fn settle_before_opening(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        at: Time,
    ) -> Result<(), FtlError<F::Error>> {
        if self.unsettled.is_empty() {
            return Ok(());
        }
        let pool = self.layout.pool_of(plane);
        let freed = self.unsettled.iter();
        let unsettled = freed.filter(|b| usize::from(self.blocks.record(**b).pool) == pool);
        let unsettled = unsettled.count();
        let any_may_be_taken = stream == Stream::Wear || self.options.wear.dynamic;
        if unsettled + 1 >= self.pools[pool].free as usize || any_may_be_taken && unsettled > 0 {
            self.barrier(at)?;
        }
        Ok(())
    }

    /// Everything written so far becomes durable; blocks freed so far may be written again.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn barrier(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        self.flush_news(at)?;
        self.flash.barrier()?;
        self.unsettled.clear();
        self.barriers += 1;
        Ok(())
    }

    /// The first half of a barrier, for a device that takes long over one: what waits in page buffers is
    /// programmed. Once all that was programmed so far is durable, [`Core::end_barrier`] takes what this answers.
    /// The core may be used in between.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn begin_barrier(&mut self, at: Time) -> Result<OpenBarrier, FtlError<F::Error>> {
        self.flush_news(at)?;
        Ok(OpenBarrier {
            barriers: self.barriers,
            freed: self.unsettled.len(),
        })
    }

    /// What was programmed before the first half is durable: blocks freed before it may be written again.
    pub fn end_barrier(&mut self, open: OpenBarrier) {
        // A whole barrier in between has settled them.
        if open.barriers == self.barriers {
            self.unsettled.drain(..open.freed);
            self.barriers += 1;
        }
    }

    /// An erased block goes to the free list of its plane.
    pub(crate) fn give_back(&mut self, block: BlockId) {
        let plane = self.geometry.plane_of(block);
        let erases = self.blocks.record(block).erases;
        self.blocks.free(block);
        self.planes[plane.index()].free.push(block, erases);
        if self.options.barriers {
            self.unsettled.push(block);
        }
        let pool = self.layout.pool_of(plane);
        self.pools[pool].free += 1;
        self.note_watermark(pool);
    }

    pub(crate) fn note_watermark(&mut self, pool: usize) {
        let marks = self.watermarks(pool);
        let low = self.pools[pool].free <= marks.low;
        if low != self.pools[pool].low {
            self.pools[pool].low = low;
            self.low_pools = if low {
                self.low_pools + 1
            } else {
                self.low_pools - 1
            };
        }
        if self.options.collect.mode.has_jobs() {
            let record = &mut self.pools[pool];
            record.filling = low || (record.filling && record.free <= marks.high);
            if record.filling {
                self.wake(pool);
            }
        }
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
        let (ppn, block) = (Ppn(open.next), BlockId(open.block));
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
        self.planes[plane.index()].open[stream as usize].next += 1;
        if let Some(owner) = owner {
            self.owners[ppn.index()] = owner;
        }
        self.blocks.set_valid(block, ppn);
        if fills {
            let sealed = self.seal(plane, stream, done, when.at, sealer)?;
            return Ok((ppn, sealed));
        }
        Ok((ppn, done))
    }

    /// Gathers a unit in the page buffer; programs the page when it is full.
    fn append_to_page(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        unit: Unit<F::Page>,
        ready: Ready,
        route: Route,
        tag: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        let buffer = &mut self.planes[plane.index()].buffers[stream as usize];
        if buffer.units.is_empty() {
            buffer.ready = ready;
            buffer.route = route;
            self.partial_pages += u32::from(waits(stream));
        }
        buffer.ready = buffer.ready.and(ready);
        if route == Route::Channel {
            buffer.route = Route::Channel;
        }
        buffer.units.push(unit);
        if buffer.units.len() as u32 == self.units_per_page {
            let last = Ppn(self.planes[plane.index()].open[stream as usize].next);
            return self.program_page(plane, stream, self.geometry.page_of(last), tag);
        }
        if tag != Tag::NONE {
            buffer.tags.push(tag);
        }
        Ok(Completion::Later(OpId::NONE))
    }

    /// Programs the buffered page. Its completion is answered to `asker`, who filled it, and reported
    /// to those who waited for that.
    fn program_page(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        page: PageId,
        asker: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        if !waits(stream) {
            self.drop_stale_copies(plane, stream, page);
        }
        let buffer = &mut self.planes[plane.index()].buffers[stream as usize];
        self.partial_pages -= u32::from(waits(stream));
        self.counters.page_programs += 1;
        let waiters = buffer.tags.len();
        buffer.tags.push(asker);
        let done = self.flash.program(
            buffer.ready,
            page,
            &buffer.units,
            stream,
            buffer.route,
            &buffer.tags,
        )?;
        if let Completion::At { start, end } = done {
            let waiters = buffer.tags[..waiters].iter();
            self.finished
                .extend(waiters.map(|&tag| Finished { tag, start, end }));
        }
        buffer.units.clear();
        buffer.tags.clear();
        Ok(done)
    }

    /// A copy that waited for more of its victim may have lost its referrer since: its owner may name something
    /// else by now. The unit that fills the page has just been moved.
    fn drop_stale_copies(&mut self, plane: PlaneId, stream: Stream, page: PageId) {
        let first = self.geometry.first_unit_of_page(page).0;
        let units = &mut self.planes[plane.index()].buffers[stream as usize].units;
        let waited = units.len() - 1;
        for (ppn, unit) in (first..).zip(&mut units[..waited]) {
            if matches!(unit, Unit::Copy { .. }) && !self.blocks.is_valid(Ppn(ppn)) {
                *unit = Unit::Pad;
            }
        }
    }

    /// Programs the partly filled page of a stream, padded.
    pub(crate) fn pad(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        at: Time,
    ) -> Result<bool, FtlError<F::Error>> {
        let p = &mut self.planes[plane.index()];
        let buffer = &mut p.buffers[stream as usize];
        if buffer.units.is_empty() {
            return Ok(false);
        }
        // It is decided only now that nothing else is waited for.
        buffer.ready = buffer.ready.and(Ready::At(at));
        let missing = self.units_per_page - buffer.units.len() as u32;
        buffer.units.extend((0..missing).map(|_| Unit::Pad));
        self.counters.programs_padding += u64::from(missing);
        let next = p.open[stream as usize].next;
        let page = self.geometry.page_of(Ppn(next));
        let done = self.program_page(plane, stream, page, Tag::NONE)?;
        // Only now: the units of a page that could not be programmed are still read from its buffer.
        let open = &mut self.planes[plane.index()].open[stream as usize];
        open.next = next + missing;
        let full = open.next == open.end;
        if full {
            self.seal(plane, stream, done, at, Tag::NONE)?;
        }
        Ok(true)
    }

    /// Pads and programs every partly filled page of the host, packed ones too.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn flush(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        for stream in [Stream::Host, Stream::Log] {
            for frontier in 0..self.layout.frontiers().len() {
                let plane = self.layout.frontiers()[frontier];
                let (group, seat) = self.layout.seat_of(plane);
                let padded = self.pad(plane, stream, at)?;
                let open = self.is_open(plane, stream);
                let moves_on = padded && (self.options.layout.rotate == Rotate::Page || !open);
                if moves_on && self.cursors(stream)[group] == seat {
                    self.move_on(group, stream);
                }
            }
            if !self.options.log {
                break;
            }
        }
        Ok(())
    }

    /// The same for collection: then nothing waits in a page buffer any more.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn flush_all(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        self.flush_with(at, |_| true)
    }

    /// The same for what collection wrote in another form: it is no copy of anything that is still there, as the
    /// rest of what waits for more of a victim.
    fn flush_news(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        self.flush_with(at, |unit| matches!(unit, Unit::New { .. }))
    }

    fn flush_with(
        &mut self,
        at: Time,
        due: impl Fn(&Unit<F::Page>) -> bool,
    ) -> Result<(), FtlError<F::Error>> {
        self.flush(at)?;
        for stream in [Stream::Gc, Stream::LogGc] {
            for frontier in 0..self.layout.frontiers().len() {
                let plane = self.layout.frontiers()[frontier];
                let waiting = &self.planes[plane.index()].buffers[stream as usize].units;
                if waiting.iter().any(&due) {
                    self.pad(plane, stream, at)?;
                }
            }
        }
        Ok(())
    }

    /// The last data page of an open block is programmed: the summary follows, the block is sealed.
    /// Answers when both are done; a completion reported later, to `sealer`, begins with the summary.
    fn seal(
        &mut self,
        plane: PlaneId,
        stream: Stream,
        last: Completion,
        at: Time,
        sealer: Tag,
    ) -> Result<Completion, FtlError<F::Error>> {
        let open = &mut self.planes[plane.index()].open[stream as usize];
        let block = BlockId(std::mem::replace(open, CLOSED).block);
        let mut done = last;
        if self.options.summary_page {
            let ready = match last {
                Completion::At { .. } => Ready::At(at),
                Completion::Later(op) => Ready::After(op, at),
            };
            let page =
                PageId(self.geometry.first_page(block).0 + self.geometry.pages_per_block() - 1);
            let slots: Vec<Unit<F::Page>> = (0..self.units_per_page).map(|_| Unit::Pad).collect();
            self.counters.programs_summary += u64::from(self.units_per_page);
            self.counters.page_programs += 1;
            let route = Route::OnChip;
            let summary = self
                .flash
                .program(ready, page, &slots, stream, route, &[sealer])?;
            done = match (last, summary) {
                (Completion::At { start, .. }, Completion::At { end, .. }) => {
                    Completion::At { start, end }
                }
                _ => summary,
            };
        }
        self.blocks.seal(block);
        if let Some(times) = &mut self.seal_times {
            times.seal(block, at);
        }
        Ok(done)
    }

    /// Begins to read a logical page: checks and counts it, and accesses its map entry, which is waited for.
    ///
    /// # Errors
    /// An address out of range or a failure of the device.
    #[inline(always)]
    pub(crate) fn begin_read<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        lpn: u32,
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
        lpn: u32,
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
    fn read_flash(
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
    fn content_on_flash(&mut self, ppn: Ppn) -> Result<F::Page, FtlError<F::Error>> {
        let page = self.flash.content(ppn)?;
        if F::PROVES {
            self.flash.prove(ppn, self.owners[ppn.index()], &page)?;
        }
        Ok(page)
    }

    /// The unit in a page buffer that will be programmed at `ppn`, if it is not programmed yet.
    pub(crate) fn buffered(&self, ppn: Ppn) -> Option<&Unit<F::Page>> {
        let block = self.geometry.block_of(ppn);
        let plane = &self.planes[self.geometry.plane_of(block).index()];
        let (stream, slot) = plane.buffered(block, ppn, self.units_per_page)?;
        Some(&plane.buffers[stream].units[slot])
    }

    /// A unit is no longer referenced.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self, ppn: Ppn) {
        self.blocks.invalidate(ppn);
    }
}

/// A read that takes no time. Where its map entry is still being read it is done at once, too: nobody
/// could tell it the end of that.
fn from_buffer(ready: Ready) -> Completion {
    let (Ready::At(at) | Ready::After(_, at)) = ready;
    Completion::instant(at)
}

/// Whether background collection fills the blocks that the host fills, a step now and then.
fn fills_with_copies(options: &FtlOptions) -> bool {
    options.collect.mode.has_jobs() && options.streams == Streams::Shared
}

/// Whether somebody waits for what is in a page buffer of the stream, so that it is flushed in time.
fn waits(stream: Stream) -> bool {
    matches!(stream, Stream::Host | Stream::Log)
}

/// Every pool must be able to hold its share of the exported pages with its open blocks, its low
/// watermark and at least one invalid unit to collect. Answers how much that is.
fn check_spare<P, K: MapCache<P>>(
    geometry: &Geometry,
    layout: &Layout,
    options: &FtlOptions,
    map_cache: &K,
    data_units: u32,
) -> Result<u64, OptionsError> {
    let marks = options.collect.watermarks;
    if marks.low == 0 || marks.high < marks.low {
        return Err(OptionsError::Watermarks {
            low: marks.low,
            high: marks.high,
        });
    }
    let streams = match options.streams {
        Streams::Separate => 2,
        Streams::Shared => 1,
    } + u32::from(options.wear.static_gap > 0)
        + u32::from(K::CACHED)
        + 2 * u32::from(options.log);
    let most = |units: u32| -> u64 {
        let pools = layout.pools().iter().map(|members| {
            let planes = members.len() as u32;
            let blocks = planes * geometry.blocks_per_plane();
            let kept = marks.high + 1 + planes * streams;
            (u64::from(blocks.saturating_sub(kept)) * u64::from(units)).saturating_sub(1)
        });
        let sum: u64 = pools.sum();
        sum.saturating_sub(u64::from(map_cache.pages()))
    };
    // A victim gains whole pages, because its copies are padded. Whoever fills a device up to here must always
    // find one, so every sealed block could lack all units of a page but one.
    let always = most(data_units + 1 - geometry.units_per_page());
    let most = most(data_units);
    if u64::from(options.exported) > most && !options.thin {
        return Err(OptionsError::NoSpare {
            exported: options.exported,
            most,
            units: u64::from(geometry.blocks()) * u64::from(data_units),
        });
    }
    // What is exported may be live, unless it is exported thinly.
    let exported = if options.thin { 0 } else { options.exported };
    Ok(always.max(u64::from(exported)))
}
