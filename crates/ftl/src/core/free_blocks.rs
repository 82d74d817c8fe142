//! Blocks leave the free lists and come back: opening, giving back, and the barriers between an erase and the next
//! use of a block.

use flashlore_flash::{BlockId, Flash, Geometry, PlaneId, PoolId, Stream, Time};

use crate::alloc::{OpenBlock, Plane};
use crate::core::{Core, OpenBarrier};
use crate::error::FtlError;
use crate::map_cache::MapCache;

/// These blocks are the free ones, with the erases of each, and became free in this order.
pub(super) fn set_free<P>(
    planes: &mut [Plane<P>],
    geometry: &Geometry,
    blocks: impl Iterator<Item = (BlockId, u32)>,
) {
    let mut of_planes = vec![Vec::new(); planes.len()];
    for (block, erases) in blocks {
        of_planes[geometry.plane_of(block).index()].push((block, erases));
    }
    for (plane, blocks) in planes.iter_mut().zip(of_planes) {
        plane.free.set(blocks);
    }
}

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// Whether the host may take a block of this plane and leave collection its reserve.
    pub(crate) fn may_open(&self, plane: PlaneId) -> bool {
        let pool = self.layout.pool_of(plane);
        !self.planes[plane.index()].free.is_empty() && self.pools[pool.index()].free >= 2
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
        let units = self.blocks.units_of(block);
        self.planes[plane.index()].open[stream as usize] = OpenBlock {
            block,
            next: units.start,
            end: units.end,
        };
        self.blocks.open(block);
        let pool = self.layout.pool_of(plane);
        self.pools[pool.index()].free -= 1;
        self.note_watermark(pool);
        Ok(())
    }

    /// A power loss undoes the erases since the last barrier, and not the openings. So a block that was
    /// free at the barrier is left for the collection that follows a power loss: before the last one is
    /// taken there is a barrier. Where blocks are not taken in the order in which they became free,
    /// there is one whenever one of them was freed since.
    pub(super) fn settle_before_opening(
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
        let unsettled = freed.filter(|b| self.blocks.record(**b).pool() == pool);
        let unsettled = unsettled.count();
        let any_may_be_taken = stream == Stream::Wear || self.options.wear.dynamic;
        let free = self.pools[pool.index()].free as usize;
        if unsettled + 1 >= free || any_may_be_taken && unsettled > 0 {
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
        self.pools[pool.index()].free += 1;
        self.note_watermark(pool);
    }

    pub(crate) fn note_watermark(&mut self, pool: PoolId) {
        let marks = self.watermarks(pool);
        let record = &mut self.pools[pool.index()];
        let low = record.free <= marks.low;
        if low != record.low {
            record.low = low;
            self.low_pools = if low {
                self.low_pools + 1
            } else {
                self.low_pools - 1
            };
        }
        if self.options.collect.mode.has_jobs() {
            let record = &mut self.pools[pool.index()];
            record.filling = low || (record.filling && record.free <= marks.high);
            if record.filling {
                self.wake(pool);
            }
        }
    }
}
