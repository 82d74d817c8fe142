//! Where the next page goes: the striping order, pools of planes, and placement.
//!
//! A *write frontier* is a plane in striping order. Placement walks the write frontiers of a *group*: with dynamic
//! placement one group holds all write frontiers, with static placement every die is a group and an address
//! belongs to group `lpn mod dies`. A *pool* is the set of planes that share free blocks, a watermark
//! and the choice of victims.
//!
//! Invariants: every plane is in exactly one write frontier, one group and one pool.

use flashlore_flash::{DieId, Geometry, GroupId, Lpn, PlaneId, PoolId};

use crate::error::OptionsError;

/// A level of the geometry that pages are striped over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Channels of the device.
    Channel,
    /// Packages of a channel.
    Package,
    /// Dies of a package.
    Die,
    /// Planes of a die.
    Plane,
}

/// What decides the die of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The next write frontier in round-robin order.
    Dynamic,
    /// The address: logical page number modulo the number of dies.
    Static,
}

/// When writes move on to the next write frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotate {
    /// After every flash page.
    Page,
    /// After every block: one block of a group is written at a time.
    Block,
}

/// Which planes share free blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolScope {
    /// Each plane alone.
    Plane,
    /// The planes of a die.
    Die,
    /// The planes of a package.
    Package,
    /// All planes.
    Device,
}

/// How pages are laid out over the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutOptions {
    /// Striping order, fastest first: a permutation of the four levels.
    pub stripe: [Level; 4],
    /// Dynamic or static.
    pub placement: Placement,
    /// Scope of a pool.
    pub pool: PoolScope,
    /// How long a write frontier is written to before the next one is.
    pub rotate: Rotate,
}

impl Default for LayoutOptions {
    fn default() -> Self {
        LayoutOptions {
            stripe: [Level::Channel, Level::Package, Level::Die, Level::Plane],
            placement: Placement::Dynamic,
            pool: PoolScope::Plane,
            rotate: Rotate::Page,
        }
    }
}

/// The tables derived from the options.
#[derive(Debug, Clone)]
pub struct Layout {
    groups: Vec<Vec<PlaneId>>,
    pool_of: Vec<u16>,
    pools: Vec<Vec<PlaneId>>,
    pools_of_die: Vec<Vec<PoolId>>,
    frontiers: Vec<PlaneId>,
    group_of: Vec<GroupId>,
}

impl Layout {
    /// Derives the tables.
    ///
    /// # Errors
    /// When the stripe is not a permutation of the four levels, or placement is static over pools
    /// wider than a die.
    pub fn new(geometry: &Geometry, options: &LayoutOptions) -> Result<Self, OptionsError> {
        let wide = match options.pool {
            PoolScope::Plane | PoolScope::Die => false,
            PoolScope::Package => geometry.dies_per_package() > 1,
            PoolScope::Device => geometry.dies() > 1,
        };
        if wide && options.placement == Placement::Static {
            return Err(OptionsError::WidePool);
        }
        let frontiers = frontiers(geometry, options.stripe)?;
        let last = PlaneId(geometry.planes() - 1);
        let found = pool_of(geometry, options.pool, last).index() + 1;
        if found > usize::from(u16::MAX) {
            return Err(OptionsError::TooManyPools { found });
        }
        let mut pools: Vec<Vec<PlaneId>> = vec![Vec::new(); found];
        let mut pools_of_die = vec![Vec::new(); geometry.dies() as usize];
        for &plane in &frontiers {
            let pool = pool_of(geometry, options.pool, plane);
            pools[pool.index()].push(plane);
            let of_die: &mut Vec<PoolId> = &mut pools_of_die[geometry.die_of(plane).index()];
            if !of_die.contains(&pool) {
                of_die.push(pool);
            }
        }
        let groups = match options.placement {
            Placement::Dynamic => vec![frontiers.clone()],
            Placement::Static => by_die(geometry, &frontiers),
        };
        let mut group_of = vec![GroupId(0); frontiers.len()];
        for (group, members) in (0..).map(GroupId).zip(&groups) {
            for plane in members {
                group_of[plane.index()] = group;
            }
        }
        Ok(Layout {
            groups,
            pool_of: (0..geometry.planes())
                .map(|plane| pool_of(geometry, options.pool, PlaneId(plane)).0 as u16)
                .collect(),
            pools,
            pools_of_die,
            frontiers,
            group_of,
        })
    }

    /// The groups, each a list of planes to be visited in turn.
    pub fn groups(&self) -> &[Vec<PlaneId>] {
        &self.groups
    }

    /// The planes of a group, to be visited in turn.
    #[inline(always)]
    pub fn group(&self, group: GroupId) -> &[PlaneId] {
        &self.groups[group.index()]
    }

    /// The group a logical page belongs to.
    #[inline(always)]
    pub fn group_of(&self, lpn: Lpn) -> GroupId {
        if self.groups.len() == 1 {
            GroupId(0)
        } else {
            GroupId((lpn.index() % self.groups.len()) as u32)
        }
    }

    /// The group of a plane.
    #[inline(always)]
    pub fn group_of_plane(&self, plane: PlaneId) -> GroupId {
        self.group_of[plane.index()]
    }

    /// The pool of a plane.
    #[inline(always)]
    pub fn pool_of(&self, plane: PlaneId) -> PoolId {
        PoolId(self.pool_of[plane.index()].into())
    }

    /// The planes of every pool, in striping order.
    pub fn pools(&self) -> &[Vec<PlaneId>] {
        &self.pools
    }

    /// The names of the pools, in order.
    pub fn pool_ids(&self) -> impl Iterator<Item = PoolId> + use<> {
        (0..self.pools.len() as u32).map(PoolId)
    }

    /// The planes of a pool, in striping order.
    #[inline(always)]
    pub fn pool(&self, pool: PoolId) -> &[PlaneId] {
        &self.pools[pool.index()]
    }

    /// The planes of a pool in striping order, from one of them on.
    pub fn pool_from(&self, own: PlaneId) -> impl Iterator<Item = PlaneId> + '_ {
        let members = self.pool(self.pool_of(own));
        let start = members.iter().position(|&p| p == own).unwrap_or(0);
        members[start..].iter().chain(&members[..start]).copied()
    }

    /// The pools with planes on a die, in striping order.
    pub fn pools_of_die(&self, die: DieId) -> &[PoolId] {
        &self.pools_of_die[die.index()]
    }

    /// All planes in striping order.
    pub fn frontiers(&self) -> &[PlaneId] {
        &self.frontiers
    }
}

/// All planes in striping order.
fn frontiers(geometry: &Geometry, stripe: [Level; 4]) -> Result<Vec<PlaneId>, OptionsError> {
    let size = |level| match level {
        Level::Channel => geometry.channels(),
        Level::Package => geometry.packages_per_channel(),
        Level::Die => geometry.dies_per_package(),
        Level::Plane => geometry.planes_per_die(),
    };
    for level in [Level::Channel, Level::Package, Level::Die, Level::Plane] {
        if !stripe.contains(&level) {
            return Err(OptionsError::Stripe);
        }
    }
    let plane_at = |frontier: u32| {
        let digit = |level| {
            let mut rest = frontier;
            for &faster in stripe.iter().take_while(|&&l| l != level) {
                rest /= size(faster);
            }
            rest % size(level)
        };
        let channel = digit(Level::Channel);
        let package = digit(Level::Package);
        let die = digit(Level::Die);
        let plane = digit(Level::Plane);
        let die_id = (channel * geometry.packages_per_channel() + package)
            * geometry.dies_per_package()
            + die;
        PlaneId(die_id * geometry.planes_per_die() + plane)
    };
    Ok((0..geometry.planes()).map(plane_at).collect())
}

/// The write frontiers of every die; dies in order of first appearance.
fn by_die(geometry: &Geometry, frontiers: &[PlaneId]) -> Vec<Vec<PlaneId>> {
    let mut groups: Vec<Vec<PlaneId>> = Vec::new();
    for &plane in frontiers {
        let die = geometry.die_of(plane);
        match groups.iter_mut().find(|g| geometry.die_of(g[0]) == die) {
            Some(group) => group.push(plane),
            None => groups.push(vec![plane]),
        }
    }
    groups
}

fn pool_of(geometry: &Geometry, scope: PoolScope, plane: PlaneId) -> PoolId {
    let die = geometry.die_of(plane).0;
    PoolId(match scope {
        PoolScope::Plane => plane.0,
        PoolScope::Die => die,
        PoolScope::Package => die / geometry.dies_per_package(),
        PoolScope::Device => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashlore_flash::geometry::Counts;

    fn geometry() -> Geometry {
        Geometry::new(Counts {
            channels: 2,
            packages_per_channel: 2,
            dies_per_package: 1,
            planes_per_die: 2,
            blocks_per_plane: 4,
            pages_per_block: 4,
            page_bytes: 4096,
        })
        .unwrap()
    }

    fn planes(list: &[PlaneId]) -> Vec<u32> {
        list.iter().map(|p| p.0).collect()
    }

    #[test]
    fn the_stripe_visits_its_first_level_fastest() {
        let g = geometry();
        let options = LayoutOptions::default();
        let layout = Layout::new(&g, &options).unwrap();
        // Planes: channel 0 package 0 = {0,1}, package 1 = {2,3}; channel 1 = {4,5}, {6,7}.
        assert_eq!(planes(layout.group(GroupId(0))), [0, 4, 2, 6, 1, 5, 3, 7]);
        let stripe = [Level::Plane, Level::Die, Level::Package, Level::Channel];
        let layout = Layout::new(&g, &LayoutOptions { stripe, ..options }).unwrap();
        assert_eq!(planes(layout.group(GroupId(0))), [0, 1, 2, 3, 4, 5, 6, 7]);
        let twice = [Level::Plane, Level::Plane, Level::Package, Level::Channel];
        let refused = Layout::new(
            &g,
            &LayoutOptions {
                stripe: twice,
                ..options
            },
        );
        assert_eq!(refused.unwrap_err(), OptionsError::Stripe);
    }

    #[test]
    fn static_placement_groups_dies_in_striping_order() {
        let options = LayoutOptions {
            placement: Placement::Static,
            ..LayoutOptions::default()
        };
        let layout = Layout::new(&geometry(), &options).unwrap();
        let groups: Vec<_> = layout.groups().iter().map(|g| planes(g)).collect();
        assert_eq!(groups, [[0, 1], [4, 5], [2, 3], [6, 7]]);
        assert_eq!(layout.group_of(Lpn(6)), GroupId(2));
    }

    #[test]
    fn pools_follow_their_scope() {
        let g = geometry();
        for (scope, count) in [
            (PoolScope::Plane, 8),
            (PoolScope::Die, 4),
            (PoolScope::Package, 4),
            (PoolScope::Device, 1),
        ] {
            let options = LayoutOptions {
                pool: scope,
                ..LayoutOptions::default()
            };
            let layout = Layout::new(&g, &options).unwrap();
            assert_eq!(layout.pools().len(), count, "{scope:?}");
            let members: usize = layout.pools().iter().map(Vec::len).sum();
            assert_eq!(members, 8);
        }
    }
}
