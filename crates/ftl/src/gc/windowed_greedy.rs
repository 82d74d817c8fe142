//! The fewest valid units among the `w` blocks sealed longest ago (X.-Y. Hu, E. Eleftheriou, R. Haas,
//! I. Iliadis, R. Pletka, "Write amplification analysis in flash-based solid state drives", SYSTOR
//! 2009); among equals the oldest. A window of one block is FIFO, one of the whole pool is greedy.
//!
//! Full blocks do not count: their turn passes over them as in [`super::fifo`].

use flashlore_flash::{BlockId, PoolId};

use super::fifo::walk;
use super::{Greedy, VictimPolicy};
use crate::blocks::Blocks;

/// The windowed greedy policy: looks at as many blocks as the window has.
#[derive(Debug, Clone, Copy)]
pub struct WindowedGreedy {
    window: u32,
}

impl WindowedGreedy {
    /// Looks at `window` blocks (at least one) a victim.
    pub fn new(window: u32) -> Self {
        WindowedGreedy {
            window: window.max(1),
        }
    }
}

impl VictimPolicy for WindowedGreedy {
    fn choose(
        &mut self,
        blocks: &mut Blocks,
        pool: PoolId,
        allowed: &dyn Fn(&Blocks, BlockId) -> bool,
    ) -> Option<BlockId> {
        let members = blocks.members(pool);
        if self.window >= members.end.0 - members.start.0 {
            return Greedy.choose(blocks, pool, allowed);
        }
        let mut best: Option<(u32, BlockId)> = None;
        walk(blocks, pool, self.window, allowed, |block, weight| {
            if best.is_none_or(|(least, _)| weight < least) {
                best = Some((weight, block));
            }
        });
        best.map(|(_, block)| block)
    }
}
