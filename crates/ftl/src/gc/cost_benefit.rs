//! Benefit over cost (A. Kawaguchi, S. Nishioka, H. Motoda, "A flash-memory based file system",
//! USENIX 1995): `age (1 - u) / 2u` with `u` the valid share of a block. A block without valid units
//! comes first. Age is counted in blocks sealed since the block was.

use flashlore_flash::{BlockId, PoolId};

use super::VictimPolicy;
use crate::blocks::Blocks;

/// The cost-benefit policy: looks at every sealed block of the pool.
#[derive(Debug, Clone, Copy, Default)]
pub struct CostBenefit;

impl VictimPolicy for CostBenefit {
    fn choose(
        &mut self,
        blocks: &mut Blocks,
        pool: PoolId,
        allowed: &dyn Fn(&Blocks, BlockId) -> bool,
    ) -> Option<BlockId> {
        let full = f64::from(blocks.data_units());
        let score = |block: BlockId| {
            let valid = f64::from(blocks.weight(block));
            let age = f64::from(blocks.age(block));
            if blocks.record(block).valid == 0 {
                f64::INFINITY
            } else {
                age * (full - valid) / (2.0 * valid)
            }
        };
        let mut best = None;
        for block in blocks.candidates(pool).filter(|&b| allowed(blocks, b)) {
            let found = score(block);
            if best.is_none_or(|(_, top)| found > top) {
                best = Some((block, found));
            }
        }
        best.map(|(block, _)| block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashlore_flash::{Geometry, Ppn};

    /// Opens, fills with so many valid units and seals a block.
    fn seal(blocks: &mut Blocks, block: u32, valid: u32) {
        blocks.open(BlockId(block));
        for unit in 0..valid {
            blocks.set_valid(BlockId(block), Ppn(block * 4 + unit));
        }
        blocks.seal(BlockId(block));
    }

    #[test]
    fn an_old_block_goes_before_a_young_one_with_fewer_valid_units() {
        let geometry = Geometry::single_plane(16, 4, 4096).unwrap();
        let mut blocks = Blocks::new(&geometry, 4, 1, |_| PoolId(0));
        seal(&mut blocks, 0, 3);
        for full in 1..8 {
            seal(&mut blocks, full, 4);
        }
        seal(&mut blocks, 8, 2);
        // Ages 9 and 1: 9 x 1/6 against 1 x 2/4.
        assert_eq!(
            CostBenefit.choose(&mut blocks, PoolId(0), &|_, _| true),
            Some(BlockId(0))
        );
        assert_eq!(
            CostBenefit.choose(&mut blocks, PoolId(0), &|_, b| b.0 != 0),
            Some(BlockId(8))
        );
        seal(&mut blocks, 9, 0);
        assert_eq!(
            CostBenefit.choose(&mut blocks, PoolId(0), &|_, _| true),
            Some(BlockId(9))
        );
    }
}
