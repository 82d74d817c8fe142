//! The parts of the translation layer in one place: flash, blocks, write frontiers and pools, and what is done with
//! them.
//!
//! * `append` — from content to a slot on flash; `page_buffer` until its page is programmed
//! * `free_blocks` — blocks are opened and given back, and barriers
//! * `read` — reading a logical page or a unit
//! * `collect` — emptying a victim in the host's way; [`background`] in idle gaps, one page at a time;
//!   [`erase_stale`] for all blocks that hold anything without referrer, at once
//! * [`relocate`] — what collection asks of a mapping
//! * `retire` — blocks that reach the end of their life, and the next victim
//! * `wear` — static wear levelling
//! * `map_traffic` — the reads and programs that a cached map causes
//! * [`restore`] — the core as a recovery found it
//! * `spare` — how much must be free
//! * [`check`] — recounts every invariant from scratch
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
//! valid unit lies where the mapping says its owner lies ([`check`]).

mod append;
pub mod background;
pub mod check;
pub(crate) mod collect;
pub mod erase_stale;
mod free_blocks;
mod map_traffic;
mod page_buffer;
mod read;
pub mod relocate;
pub mod restore;
mod retire;
mod spare;
mod wear;

use flashlore_flash::{
    BlockId, Finished, Flash, Geometry, Lpn, Note, Owner, PoolId, Ppn, Stream, Table, TableName,
    Tables, Tag, Time,
};

use crate::alloc::Plane;
use crate::blocks::Blocks;
use crate::core::append::fills_with_copies;
use crate::core::background::Job;
use crate::core::free_blocks::set_free;
use crate::core::relocate::Relocate;
use crate::core::spare::check_spare;
use crate::counters::Counters;
use crate::error::{FtlError, OptionsError};
use crate::gc::Victims;
use crate::gc::aside::Aside;
use crate::gc::sealed::SealTimes;
use crate::layout::Layout;
use crate::map_cache::{MapCache, Resident};
use crate::options::{FtlOptions, Trigger};

pub use read::PageRead;

/// Tags from here on name blocks being erased; the caller's own must be smaller.
pub const FIRST_RESERVED_TAG: u32 = 1 << 31;

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
    pub(crate) owners: <F::Tables as Tables>::Of<Owner>,
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
    pub(crate) erasing: Vec<(BlockId, PoolId)>,
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
        let all = (0..geometry.blocks()).map(|block| (BlockId(block), 0));
        set_free(&mut planes, &geometry, all);
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
            owners: flash.tables().filled(
                TableName::Owners,
                Owner::page(Lpn(0)),
                geometry.units() as usize,
            ),
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
        self.owners.get(ppn.index())
    }

    /// Blocks of the device that were freed since the last barrier: they are free, and written only after one.
    pub fn unsettled_blocks(&self) -> usize {
        self.unsettled.len()
    }

    /// The stream that has a block open.
    pub fn stream_of(&self, block: BlockId) -> Option<Stream> {
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
        self.owners.heap_bytes() + self.blocks.heap_bytes()
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
    pub(crate) fn check_range(&self, lpn: Lpn) -> Result<(), FtlError<F::Error>> {
        let exported = self.options.exported;
        if lpn < Lpn(exported) {
            Ok(())
        } else {
            Err(FtlError::OutOfRange { lpn, exported })
        }
    }

    /// A unit is no longer referenced.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self, ppn: Ppn) {
        // A table that is kept may have told where something lies and been wrong, or not to be had.
        let is_kept = <F::Tables as Tables>::Note::ON;
        if is_kept && (ppn.0 >= self.geometry.units() || !self.blocks.is_valid(ppn)) {
            return;
        }
        self.blocks.invalidate(ppn);
        self.flash.validity_changed(ppn);
    }
}
