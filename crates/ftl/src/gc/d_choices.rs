//! The fewest valid units among `d` sealed blocks drawn at random (B. Van Houdt, "A mean field model
//! for a class of garbage collection algorithms in flash-based solid state drives", SIGMETRICS
//! 2013). `d = 1` is random choice; a growing `d` approaches greedy.

use flashlore_flash::{BlockId, PoolId};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::VictimPolicy;
use crate::blocks::{BlockPhase, Blocks};

/// Draws for one choice before the search gives up and takes the emptiest block.
const DRAWS_PER_CHOICE: u32 = 256;

/// The d-choices policy.
#[derive(Debug, Clone)]
pub struct DChoices {
    choices: u32,
    random: Xoshiro256PlusPlus,
}

impl DChoices {
    /// Draws `choices` blocks (at least one) a victim.
    pub fn new(choices: u32, seed: u64) -> Self {
        DChoices {
            choices: choices.max(1),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// A block of the pool, each with the same chance.
    fn draw(&mut self, blocks: &Blocks, pool: PoolId) -> BlockId {
        let members = blocks.members(pool);
        let count = u128::from(members.end.0 - members.start.0);
        let drawn = (u128::from(self.random.next_u64()) * count) >> 64;
        BlockId(members.start.0 + drawn as u32)
    }
}

impl VictimPolicy for DChoices {
    fn choose(
        &mut self,
        blocks: &mut Blocks,
        pool: PoolId,
        allowed: &dyn Fn(&Blocks, BlockId) -> bool,
    ) -> Option<BlockId> {
        let emptiest = blocks.emptiest(pool)?;
        let most = blocks.most_valid();
        let mut best: Option<(u32, BlockId)> = None;
        let mut found = 0;
        for _ in 0..DRAWS_PER_CHOICE * self.choices {
            let block = self.draw(blocks, pool);
            let record = blocks.record(block);
            let fits = record.state == BlockPhase::Sealed
                && blocks.weight(block) <= most
                && allowed(blocks, block);
            if !fits {
                continue;
            }
            let weight = blocks.weight(block);
            if best.is_none_or(|(least, _)| weight < least) {
                best = Some((weight, block));
            }
            found += 1;
            if found == self.choices {
                break;
            }
        }
        match best {
            Some((_, block)) => Some(block),
            None => Some(emptiest).filter(|&b| allowed(blocks, b)),
        }
    }
}
