//! The block sealed longest ago: the log is cleaned in a circle.
//!
//! A block without a page to gain is not rewritten; its turn passes over it and comes again after those
//! of all others, when a log that did rewrite it would meet it again. So full blocks cost a step of the
//! circle and no copies, and each of them is met once a round.

use flashlore_flash::{BlockId, PoolId};

use super::VictimPolicy;
use crate::blocks::{BlockPhase, Blocks};

/// How many blocks that are not allowed a walk goes past.
const LOOK_AHEAD: u32 = 64;

/// The FIFO policy: constant time but for the full blocks passed over.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fifo;

impl VictimPolicy for Fifo {
    fn choose(
        &mut self,
        blocks: &mut Blocks,
        pool: PoolId,
        allowed: &dyn Fn(&Blocks, BlockId) -> bool,
    ) -> Option<BlockId> {
        let mut oldest = None;
        walk(blocks, pool, 1, allowed, |block, _| oldest = Some(block));
        oldest
    }
}

/// Visits the first `count` blocks in the order of their turns whose collection gains a page and is
/// allowed, with their weights, and passes over the full ones before the last of them.
pub(super) fn walk(
    blocks: &mut Blocks,
    pool: PoolId,
    count: u32,
    allowed: &dyn Fn(&Blocks, BlockId) -> bool,
    mut visit: impl FnMut(BlockId, u32),
) {
    if blocks.emptiest(pool).is_none() {
        return;
    }
    let last = blocks.last_turn(pool);
    let (mut left, mut refused) = (count, 0);
    let mut turn = blocks.first_turn(pool);
    while let Some(block) = turn
        && left > 0
        && refused < LOOK_AHEAD
    {
        turn = blocks.later_turn(block).filter(|_| Some(block) != last);
        let record = blocks.record(block);
        let sealed = record.state == BlockPhase::Sealed;
        let weight = blocks.weight(block);
        if sealed && weight > blocks.most_valid() {
            blocks.pass_over(block);
        } else if sealed && allowed(blocks, block) {
            visit(block, weight);
            left -= 1;
        } else {
            refused += 1;
        }
    }
}
