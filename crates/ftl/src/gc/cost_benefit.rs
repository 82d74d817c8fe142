//! Benefit over cost (A. Kawaguchi, S. Nishioka, H. Motoda, "A flash-memory based file system",
//! USENIX 1995): `age (1 - u) / 2u` with `u` the valid share of a block. A block without valid units
//! comes first. Age is counted in blocks sealed since the block was.

use flashlore_flash::BlockId;

use super::VictimPolicy;
use crate::blocks::Blocks;

/// The cost-benefit policy: looks at every sealed block of the pool.
#[derive(Debug, Clone, Copy, Default)]
pub struct CostBenefit;

impl VictimPolicy for CostBenefit {
    fn choose(
        &mut self,
        blocks: &mut Blocks,
        pool: usize,
        allowed: &dyn Fn(BlockId) -> bool,
    ) -> Option<BlockId> {
        let (now, full) = (blocks.seals(), f64::from(blocks.data_units()));
        let score = |block: BlockId| {
            let record = blocks.record(block);
            let valid = f64::from(record.valid);
            let age = f64::from(now.wrapping_sub(record.sealed));
            if record.valid == 0 {
                f64::INFINITY
            } else {
                age * (full - valid) / (2.0 * valid)
            }
        };
        let mut best = None;
        for block in blocks.candidates(pool).filter(|&b| allowed(b)) {
            let found = score(block);
            if best.is_none_or(|(_, top)| found > top) {
                best = Some((block, found));
            }
        }
        best.map(|(block, _)| block)
    }
}
