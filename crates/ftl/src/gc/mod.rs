//! Which block is collected next; how it is emptied, [`crate::core`] says.
//!
//! * [`VictimPolicy`] — the choice; one policy a file: [`greedy`], [`fifo`], [`windowed_greedy`],
//!   [`cost_benefit`], [`d_choices`]
//! * `aside` — blocks that cannot be read now are left alone
//! * `sealed` — blocks sealed before the window of old versions are preferred

pub(crate) mod aside;
pub mod cost_benefit;
pub mod d_choices;
pub mod fifo;
pub mod greedy;
pub(crate) mod sealed;
pub mod windowed_greedy;

use flashlore_flash::{BlockId, PoolId};

use crate::blocks::Blocks;
use crate::options::VictimChoice;

pub use cost_benefit::CostBenefit;
pub use d_choices::DChoices;
pub use fifo::Fifo;
pub use greedy::Greedy;
pub use windowed_greedy::WindowedGreedy;

/// Chooses the next victim of a pool.
pub trait VictimPolicy {
    /// A sealed block of the pool whose collection gains a page ([`Blocks::most_valid`]) for which
    /// `allowed` holds; `None` when there is nothing to gain.
    fn choose(
        &mut self,
        blocks: &mut Blocks,
        pool: PoolId,
        allowed: &dyn Fn(&Blocks, BlockId) -> bool,
    ) -> Option<BlockId>;
}

/// The policies by name, with one arm left open.
pub enum Victims {
    /// Fewest valid units.
    Greedy(Greedy),
    /// Sealed longest ago.
    Fifo(Fifo),
    /// Fewest valid units of those sealed longest ago.
    WindowedGreedy(WindowedGreedy),
    /// Benefit over cost.
    CostBenefit(CostBenefit),
    /// Fewest valid units of a few drawn at random.
    DChoices(DChoices),
    /// Somebody else's policy.
    Custom(Box<dyn VictimPolicy + Send>),
}

impl Victims {
    /// The policy a setting names.
    pub fn new(choice: VictimChoice, seed: u64) -> Self {
        match choice {
            VictimChoice::Greedy => Victims::Greedy(Greedy),
            VictimChoice::Fifo => Victims::Fifo(Fifo),
            VictimChoice::WindowedGreedy(window) => {
                Victims::WindowedGreedy(WindowedGreedy::new(window))
            }
            VictimChoice::CostBenefit => Victims::CostBenefit(CostBenefit),
            VictimChoice::DChoices(d) => Victims::DChoices(DChoices::new(d, seed)),
        }
    }
}

impl VictimPolicy for Victims {
    fn choose(
        &mut self,
        blocks: &mut Blocks,
        pool: PoolId,
        allowed: &dyn Fn(&Blocks, BlockId) -> bool,
    ) -> Option<BlockId> {
        match self {
            Victims::Greedy(p) => p.choose(blocks, pool, allowed),
            Victims::Fifo(p) => p.choose(blocks, pool, allowed),
            Victims::WindowedGreedy(p) => p.choose(blocks, pool, allowed),
            Victims::CostBenefit(p) => p.choose(blocks, pool, allowed),
            Victims::DChoices(p) => p.choose(blocks, pool, allowed),
            Victims::Custom(p) => p.choose(blocks, pool, allowed),
        }
    }
}

impl std::fmt::Debug for Victims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Victims::Greedy(_) => "Greedy",
            Victims::Fifo(_) => "Fifo",
            Victims::WindowedGreedy(_) => "WindowedGreedy",
            Victims::CostBenefit(_) => "CostBenefit",
            Victims::DChoices(_) => "DChoices",
            Victims::Custom(_) => "Custom",
        })
    }
}
