//! Static wear levelling: data that never change free the little worn blocks they sit on.
//!
//! When the most worn block of a pool has `static_gap` erases more than the least worn sealed one,
//! that one is collected and its units go to the most worn free block of a plane: in one piece in the
//! foreground, as a job of page-sized steps in the background. The search looks at every sealed block,
//! so it runs once every sixteenth of the pool's blocks erased.
//!
//! Dynamic wear levelling is the order of the free list ([`crate::alloc::FreeList`]).

use flashlore_flash::{Flash, PoolId, Stream, Time};

use crate::core::Core;
use crate::core::collect::Victim;
use crate::core::relocate::Relocate;
use crate::error::FtlError;
use crate::map_cache::MapCache;

/// A search follows after so many erases, as a share of the pool's blocks.
const BLOCKS_PER_SEARCH: u32 = 16;

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// After an erase: moves the coldest block of a pool if the wear is uneven.
    pub(crate) fn level_wear<M: Relocate<F, K>>(
        &mut self,
        map: &mut M,
        at: Time,
        pool: PoolId,
    ) -> Result<(), FtlError<F::Error>> {
        let gap = self.options.wear.static_gap;
        // What is stale must not move on.
        if gap == 0 || self.erasing_stale {
            return Ok(());
        }
        let record = &mut self.pools[pool.index()];
        record.until_wear_check -= 1;
        if record.until_wear_check > 0 {
            return Ok(());
        }
        let blocks = self.layout.pool(pool).len() as u32 * self.geometry.blocks_per_plane();
        record.until_wear_check = (blocks / BLOCKS_PER_SEARCH).max(2);
        let (most_erases, free) = (record.most_erases, record.free);
        let coldest = self
            .blocks
            .sealed(pool)
            .filter(|&b| !self.aside.holds(b))
            .min_by_key(|&b| (self.blocks.record(b).erases, b));
        let Some(coldest) = coldest else {
            return Ok(());
        };
        let uneven = most_erases - self.blocks.record(coldest).erases > gap;
        if !uneven || free < 2 {
            return Ok(());
        }
        if self.options.collect.mode.has_jobs() {
            self.begin_wear_job(pool, coldest);
            return Ok(());
        }
        self.collect(map, at, Victim::as_is(coldest), Stream::Wear)?;
        Ok(())
    }
}
