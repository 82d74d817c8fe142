//! The block with the fewest valid units; among equals the one that has had so few for the longest.

use flashlore_flash::{BlockId, PoolId};

use super::VictimPolicy;
use crate::blocks::Blocks;

/// How many blocks are looked at beyond the first when that one is not allowed.
const LOOK_AHEAD: usize = 64;

/// The greedy policy: constant time, the buckets keep the order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Greedy;

impl VictimPolicy for Greedy {
    fn choose(
        &mut self,
        blocks: &mut Blocks,
        pool: PoolId,
        allowed: &dyn Fn(&Blocks, BlockId) -> bool,
    ) -> Option<BlockId> {
        let first = blocks.emptiest(pool)?;
        if allowed(blocks, first) {
            return Some(first);
        }
        blocks
            .candidates(pool)
            .take(LOOK_AHEAD)
            .find(|&b| allowed(blocks, b))
    }
}
