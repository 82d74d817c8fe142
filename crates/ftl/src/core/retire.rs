//! The end of a block's life: retirement, and what a pool may still collect.
//!
//! A block that has been filled as often as it endures is emptied once more and not erased: it holds
//! nothing from then on and takes nothing. The same happens to one whose erase fails. A pool's spare
//! space shrinks by each, and its watermarks with it, down to one block.
//!
//! Invariant: emptying a block that will be retired leaves the pool the free block that the next
//! collection copies into. Where that cannot be, the block keeps its data, and a write that finds no
//! room is refused ([`crate::FtlError::WornOut`]); what is stored can be read for ever.

use flashlore_flash::{BlockId, Flash, Geometry, PlaneId, PoolId, Stream};

use crate::alloc::Plane;
use crate::blocks::Blocks;
use crate::core::background::is_idle;
use crate::core::collect::{Victim, target_stream};
use crate::core::{Core, Pool};
use crate::gc::VictimPolicy;
use crate::layout::Layout;
use crate::map_cache::MapCache;
use crate::options::Watermarks;

/// What collection may write to in a pool.
struct Room<'a, P> {
    geometry: &'a Geometry,
    layout: &'a Layout,
    planes: &'a [Plane<P>],
    pool: &'a Pool,
    /// The streams that take the units of victims.
    targets: &'a [Stream],
    /// How often a block may be filled, 0 for any number of times.
    endurance: u32,
}

impl<P> Room<'_, P> {
    /// Whether a victim can be emptied so that the next one can be, too.
    fn affords(&self, blocks: &Blocks, victim: BlockId) -> bool {
        let valid = u32::from(blocks.record(victim).valid);
        if valid > blocks.most_valid() && self.pool.free < 2 {
            // Packed pages are packed anew in no more pages than they were, and one begun before.
            return false;
        }
        if self.endurance == 0 && self.pool.retired == 0 {
            // Every collection gives a block back: there is room for one more.
            return true;
        }
        let own = self.geometry.plane_of(victim);
        // A block holds data or translation pages; there must be room for either.
        let fits = |&to: &Stream| !opens_block(self.layout, self.planes, own, to, valid);
        let opens = valid > 0 && !self.targets.iter().all(fits);
        let lost = wears_out(blocks, victim, self.endurance);
        self.pool.free >= u32::from(opens) + u32::from(lost)
    }
}

/// Whether moving so many units, at most a block's, out of a plane may open a block.
fn opens_block<P>(
    layout: &Layout,
    planes: &[Plane<P>],
    own: PlaneId,
    stream: Stream,
    units: u32,
) -> bool {
    let mut room = 0;
    for plane in layout.pool_from(own) {
        let p = &planes[plane.index()];
        room += p.open[stream as usize].room();
        if room >= units {
            return false;
        }
        if !p.free.is_empty() {
            return true;
        }
    }
    true
}

/// Whether a block is to be retired instead of erased.
fn wears_out(blocks: &Blocks, block: BlockId, endurance: u32) -> bool {
    endurance != 0 && blocks.record(block).erases + 1 >= endurance
}

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// Says how often a block may be filled from now on, 0 for any number of times.
    pub fn set_endurance(&mut self, endurance: u32) {
        self.options.wear.endurance = endurance;
    }

    /// Blocks retired since the device was new.
    pub fn retired(&self) -> u32 {
        self.pools.iter().map(|p| p.retired).sum()
    }

    /// The next victim of a pool; `idle` asks for one whose plane and die have no background work.
    pub(crate) fn next_victim(&mut self, pool: PoolId, idle: bool) -> Option<Victim> {
        let all = [
            target_stream(&self.options, Stream::Gc),
            Stream::Map,
            Stream::LogGc,
        ];
        let targets = if self.options.log {
            &all[..]
        } else if K::CACHED {
            &all[..2]
        } else {
            &all[..1]
        };
        let room = Room {
            geometry: &self.geometry,
            layout: &self.layout,
            planes: &self.planes,
            pool: &self.pools[pool.index()],
            targets,
            endurance: self.options.wear.endurance,
        };
        self.aside.bring_back(self.counters.erases);
        let (jobs, erasing, aside) = (&self.jobs, &self.erasing, &self.aside);
        let allowed = |blocks: &Blocks, block| {
            (!idle || is_idle(&self.geometry, jobs, erasing, block))
                && !aside.holds(block)
                && room.affords(blocks, block)
        };
        let gained = !std::mem::take(&mut self.gained_nothing);
        let (victims, blocks) = (&mut self.victims, &mut self.blocks);
        let old = self.seal_times.as_ref();
        let old = old.filter(|times| gained && times.is_useful());
        let preferred = old.and_then(|times| {
            let before = |blocks: &Blocks, b| times.is_before(b) && allowed(blocks, b);
            victims.choose(blocks, pool, &before)
        });
        let victim = preferred.or_else(|| match gained {
            true => victims.choose(blocks, pool, &allowed),
            false => None,
        });
        if victim.is_some() {
            return victim.map(Victim::rewritable);
        }
        let fewest = match self.options.log {
            true => self.blocks.fewest_units(pool, |b| allowed(&self.blocks, b)),
            false => None,
        };
        if fewest.is_some() || idle || self.aside.is_empty() || self.pools[pool.index()].free >= 2 {
            return fewest.map(Victim::as_is);
        }
        let affords = |block| room.affords(&self.blocks, block);
        let given_up = self.aside.last_resort(&self.blocks, pool, affords);
        given_up.map(Victim::rewritable)
    }

    /// Whether moving the units of one flash page out of a plane may open a block.
    pub(crate) fn opens_block(&self, own: PlaneId, stream: Stream) -> bool {
        opens_block(&self.layout, &self.planes, own, stream, self.units_per_page)
    }

    /// Whether a block is to be retired instead of erased.
    pub(crate) fn wears_out(&self, block: BlockId) -> bool {
        wears_out(&self.blocks, block, self.options.wear.endurance)
    }

    /// The watermarks of a pool: each retired block lowers them by one, down to one.
    pub(crate) fn watermarks(&self, pool: PoolId) -> Watermarks {
        let Watermarks { low, high } = self.options.collect.watermarks;
        let retired = self.pools[pool.index()].retired;
        let lowered = |mark: u32| mark.saturating_sub(retired).max(1);
        Watermarks {
            low: lowered(low),
            high: lowered(high),
        }
    }

    /// An empty victim is never used again.
    pub(crate) fn retire(&mut self, block: BlockId) {
        self.blocks.retire(block);
        self.counters.retired += 1;
        let pool = self.blocks.record(block).pool();
        self.pools[pool.index()].retired += 1;
        self.note_watermark(pool);
    }
}
