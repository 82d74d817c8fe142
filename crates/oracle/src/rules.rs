//! Geometry and options of the flash-level models, and the address arithmetic they imply.
//!
//! A *unit* is one mapping unit (a logical page). A flash page holds `U` units, a block `N` flash
//! pages of which `D` carry data, a plane `B` blocks. Global block number = plane * B + block in
//! plane; unit address (PPN) = (block * N + page) * U + slot.

use crate::OracleError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    pub dies: usize,
    /// Planes of one die; plane p belongs to die p / `planes_per_die`.
    pub planes_per_die: usize,
    /// Blocks of one plane (`B`).
    pub blocks_per_plane: usize,
    /// Flash pages of one block (`N`).
    pub pages_per_block: usize,
    /// Mapping units of one flash page (`U`).
    pub units_per_page: usize,
    /// Whether the last page of a block is a summary, which holds no units.
    pub summary_page: bool,
}

impl Geometry {
    /// Planes of the device (`P`).
    pub fn planes(&self) -> usize {
        self.dies * self.planes_per_die
    }

    pub fn blocks(&self) -> usize {
        self.planes() * self.blocks_per_plane
    }

    /// Flash pages of a block that carry data (`D`).
    pub fn data_pages(&self) -> usize {
        self.pages_per_block - usize::from(self.summary_page)
    }

    /// Units a sealed block holds, padding included: `D` * `U`.
    pub fn units_per_block(&self) -> usize {
        self.data_pages() * self.units_per_page
    }

    pub fn die_of(&self, plane: usize) -> usize {
        plane / self.planes_per_die
    }

    pub fn plane_of(&self, block: usize) -> usize {
        block / self.blocks_per_plane
    }

    /// The address of the `index`-th unit of a block, counted over its data pages.
    pub fn ppn(&self, block: usize, index: usize) -> u64 {
        (block * self.pages_per_block * self.units_per_page + index) as u64
    }

    /// The block of a unit address and the unit's index within it: the inverse of [`Self::ppn`].
    pub fn locate(&self, ppn: u64) -> (usize, usize) {
        let slots = self.pages_per_block * self.units_per_page;
        (ppn as usize / slots, ppn as usize % slots)
    }
}

/// Which planes share their free blocks and are collected together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolScope {
    /// Each plane is a pool.
    Plane,
    /// Each die is a pool.
    Die,
    /// The device is one pool.
    Device,
}

/// When a host write moves on to the next write frontier of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotate {
    /// After every flash page.
    Page,
    /// After every block.
    Block,
}

/// Whether host units and relocated units go to different open blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Each plane may have one open block for host units and one for relocated units.
    Separate,
    /// Relocated units are appended to the plane's host block.
    Shared,
}

/// Which write frontier (plane) a host unit is appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// One cursor walks the stripe.
    Dynamic,
    /// The die is the LPN modulo the number of dies; a cursor per die walks its planes.
    Static,
}

/// When the free blocks of a pool are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// When a host write must open a block.
    Allocation,
    /// Before every host write that reaches a die, for all pools with planes on that die.
    Dispatch {
        /// Also before every host read that reaches a die.
        reads: bool,
    },
}

/// Which block is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victims {
    /// Fewest valid units; ties to the one that has had so few for the longest.
    Greedy,
    /// Fewest valid units among the first so many in the order of turns; ties to the first. A block
    /// takes the last turn when it is sealed, and when its turn has come and it has no page to gain.
    Window(usize),
}

/// Everything that determines the operation sequence of the models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub geometry: Geometry,
    /// All planes, each once, in the order in which they are visited.
    pub stripe: Vec<usize>,
    pub pools: PoolScope,
    pub streams: Streams,
    pub placement: Placement,
    pub rotate: Rotate,
    pub check: Check,
    pub victims: Victims,
    /// How often a block is filled before it is retired instead of erased; 0 for any number of times.
    /// Each retired block of a pool lowers both its watermarks by one, down to one.
    pub endurance: u64,
    /// Collection starts when a pool has this many free blocks or fewer.
    pub low: usize,
    /// Collection ends when a pool has more free blocks than this.
    pub high: usize,
}

impl Rules {
    /// Rules with dynamic placement, separate streams, a pool per plane, check at allocation, an
    /// ascending stripe and both watermarks at one block.
    pub fn new(geometry: Geometry) -> Rules {
        Rules {
            geometry,
            stripe: (0..geometry.planes()).collect(),
            pools: PoolScope::Plane,
            streams: Streams::Separate,
            placement: Placement::Dynamic,
            rotate: Rotate::Page,
            check: Check::Allocation,
            victims: Victims::Greedy,
            endurance: 0,
            low: 1,
            high: 1,
        }
    }

    pub fn pool_of(&self, plane: usize) -> usize {
        match self.pools {
            PoolScope::Plane => plane,
            PoolScope::Die => self.geometry.die_of(plane),
            PoolScope::Device => 0,
        }
    }

    /// The write frontiers of each placement group, in stripe order. Dynamic placement has one group of all
    /// planes; static placement one a die, in order of the die's first appearance in the stripe.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        if self.placement == Placement::Dynamic {
            return vec![self.stripe.clone()];
        }
        let mut dies = Vec::new();
        for &plane in &self.stripe {
            let die = self.geometry.die_of(plane);
            if !dies.contains(&die) {
                dies.push(die);
            }
        }
        dies.iter().map(|&die| self.planes_of_die(die)).collect()
    }

    /// The planes of a die in stripe order.
    pub fn planes_of_die(&self, die: usize) -> Vec<usize> {
        let on_die = |plane: &usize| self.geometry.die_of(*plane) == die;
        self.stripe.iter().copied().filter(on_die).collect()
    }

    /// The pools that have planes on a die, in order of the die's planes, each once.
    pub fn pools_of_die(&self, die: usize) -> Vec<usize> {
        let mut pools = Vec::new();
        for plane in self.planes_of_die(die) {
            let pool = self.pool_of(plane);
            if !pools.contains(&pool) {
                pools.push(pool);
            }
        }
        pools
    }

    /// Refuses rules that contradict themselves.
    ///
    /// # Errors
    /// [`OracleError::Rules`] names the first field at fault.
    pub fn validate(&self) -> Result<(), OracleError> {
        let g = &self.geometry;
        let fields = [
            ("dies", g.dies),
            ("planes_per_die", g.planes_per_die),
            ("blocks_per_plane", g.blocks_per_plane),
            ("pages_per_block", g.pages_per_block),
            ("units_per_page", g.units_per_page),
        ];
        for (field, value) in fields {
            if value == 0 {
                return Err(fault(field, value, "at least 1"));
            }
        }
        if g.summary_page && g.pages_per_block < 2 {
            let expected = "at least 2 when the last page is a summary";
            return Err(fault("pages_per_block", g.pages_per_block, expected));
        }
        let mut sorted = self.stripe.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..g.planes()) {
            let expected = format!("each of the planes 0 to {} once", g.planes() - 1);
            return Err(fault("stripe", format!("{:?}", self.stripe), expected));
        }
        if self.low > self.high {
            let expected = format!("at most `high`, which is {}", self.high);
            return Err(fault("low", self.low, expected));
        }
        Ok(())
    }
}

fn fault(field: &'static str, found: impl ToString, expected: impl ToString) -> OracleError {
    OracleError::Rules {
        field,
        found: found.to_string(),
        expected: expected.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry {
            dies: 2,
            planes_per_die: 2,
            blocks_per_plane: 5,
            pages_per_block: 4,
            units_per_page: 3,
            summary_page: true,
        }
    }

    #[test]
    fn addresses_follow_the_formula() {
        let g = geometry();
        // Plane 1, block 2 of the plane, page 1, slot 2: ((1*5+2)*4+1)*3+2.
        let block = 5 + 2;
        assert_eq!(g.ppn(block, 3 + 2), 89);
        assert_eq!(g.locate(89), (block, 5));
        assert_eq!(g.units_per_block(), 9);
        assert_eq!((g.plane_of(block), g.die_of(1), g.die_of(2)), (1, 0, 1));
    }

    #[test]
    fn groups_and_pools_follow_the_stripe() {
        let mut rules = Rules::new(geometry());
        rules.stripe = vec![3, 0, 2, 1];
        assert_eq!(rules.groups(), vec![vec![3, 0, 2, 1]]);
        rules.placement = Placement::Static;
        assert_eq!(rules.groups(), vec![vec![3, 2], vec![0, 1]]);
        assert_eq!(rules.pools_of_die(1), vec![3, 2]);
        rules.pools = PoolScope::Die;
        assert_eq!(rules.pools_of_die(1), vec![1]);
        rules.pools = PoolScope::Device;
        assert_eq!(rules.pools_of_die(1), vec![0]);
    }

    #[test]
    fn contradictions_are_named() {
        let name = |change: fn(&mut Rules)| {
            let mut rules = Rules::new(geometry());
            change(&mut rules);
            match rules.validate() {
                Err(OracleError::Rules { field, .. }) => field,
                other => panic!("{other:?}"),
            }
        };
        assert!(Rules::new(geometry()).validate().is_ok());
        assert_eq!(name(|r| r.geometry.dies = 0), "dies");
        assert_eq!(name(|r| r.geometry.units_per_page = 0), "units_per_page");
        assert_eq!(name(|r| r.geometry.pages_per_block = 1), "pages_per_block");
        assert_eq!(name(|r| r.stripe = vec![0, 1, 2, 2]), "stripe");
        assert_eq!(name(|r| r.low = 2), "low");
    }
}
