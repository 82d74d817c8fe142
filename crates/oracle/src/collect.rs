//! Garbage collection: when a pool is collected, which block is the victim, where its valid units
//! go.
//!
//! Candidates are the sealed blocks of the pool whose valid units fit in fewer pages than the block
//! has; [`Victims`] says which of them is the victim.

use crate::blocks::{BlockState, Blocks, Owner, Stream};
use crate::ops::{Cause, ReadCause};
use crate::rules::{Streams, Victims};

impl<T: Copy> Blocks<T> {
    /// Runs a collection step for every pool that has planes on the plane's die.
    pub(crate) fn check_die_of_plane(&mut self, plane: usize, owner: &mut impl Owner<T>) {
        for pool in self.rules.pools_of_die(self.rules.geometry.die_of(plane)) {
            self.collection_step(pool, owner);
        }
    }

    /// If the pool is at or below its low watermark, collects victims until it is above the high
    /// one or no candidate is left.
    ///
    /// # Panics
    /// If as many victims as the pool has blocks are collected in a row without the pool gaining a
    /// page: every candidate would be rewritten at its full length for ever.
    pub(crate) fn collection_step(&mut self, pool: usize, owner: &mut impl Owner<T>) {
        let mark = |mark: usize, retired: usize| mark.saturating_sub(retired).max(mark.min(1));
        if self.free_blocks(pool) > mark(self.rules.low, self.retired(pool)) {
            return;
        }
        let blocks_in_pool = self.blocks.len() / self.pools();
        let mut best = self.free_pages(pool);
        let mut futile = 0;
        while let Some(victim) = self.victim(pool) {
            self.collect(victim, pool, owner);
            if self.free_blocks(pool) > mark(self.rules.high, self.retired(pool)) {
                break;
            }
            let now = self.free_pages(pool);
            futile = if now > best { 0 } else { futile + 1 };
            best = best.max(now);
            assert!(
                futile <= blocks_in_pool,
                "the rules never end: {futile} victims of pool {pool} gained no page, {now} are free"
            );
        }
    }

    fn pools(&self) -> usize {
        1 + self
            .rules
            .stripe
            .iter()
            .map(|&p| self.rules.pool_of(p))
            .max()
            .unwrap_or(0)
    }

    /// Data pages that collection may still program without erasing: those of free blocks and the
    /// rest of the blocks it appends to.
    fn free_pages(&self, pool: usize) -> usize {
        let g = &self.rules.geometry;
        let in_pool = |plane: &usize| self.rules.pool_of(*plane) == pool;
        let open = (0..g.planes())
            .filter(in_pool)
            .filter_map(|p| self.open[p][self.gc_stream() as usize]);
        let rest =
            open.map(|b| g.data_pages() - self.blocks[b].slots.len().div_ceil(g.units_per_page));
        self.free_blocks(pool) * g.data_pages() + rest.sum::<usize>()
    }

    fn victim(&mut self, pool: usize) -> Option<usize> {
        let sealed: Vec<usize> = (0..self.blocks.len())
            .filter(|&b| self.rules.pool_of(self.rules.geometry.plane_of(b)) == pool)
            .filter(|&b| self.blocks[b].state == BlockState::Sealed)
            .collect();
        let gainful = sealed.iter().any(|&b| self.gains(b));
        let candidates = sealed.iter().copied();
        let candidates = candidates.filter(|&b| self.gains(b) && self.affords(b, pool));
        match self.rules.victims {
            Victims::Greedy => {
                candidates.min_by_key(|&b| (self.blocks[b].valid, self.blocks[b].since))
            }
            Victims::Window(window) => {
                let mut candidates: Vec<usize> = candidates.collect();
                candidates.sort_by_key(|&b| self.blocks[b].turn);
                candidates.truncate(window);
                let end = match candidates.last() {
                    Some(&last) if candidates.len() == window => self.blocks[last].turn,
                    _ if gainful => u64::MAX,
                    _ => 0,
                };
                let mut passed: Vec<usize> =
                    sealed.iter().copied().filter(|&b| !self.gains(b)).collect();
                passed.retain(|&b| self.blocks[b].turn < end);
                passed.sort_by_key(|&b| self.blocks[b].turn);
                for block in passed {
                    self.take_last_turn(block);
                }
                let order = |&&b: &&usize| (self.blocks[b].valid, self.blocks[b].turn);
                candidates.iter().min_by_key(order).copied()
            }
        }
    }

    /// Whether emptying a block leaves the pool a free block, from its erase or besides: only asked
    /// where blocks are retired.
    fn affords(&self, block: usize, pool: usize) -> bool {
        if self.rules.endurance == 0 {
            return true;
        }
        let g = &self.rules.geometry;
        let mut left = self.blocks[block].valid;
        let mut free: Vec<usize> = self.free.iter().map(|f| f.len()).collect();
        let stream = self.gc_stream() as usize;
        let mut room: Vec<usize> = (0..g.planes())
            .map(|p| {
                self.open[p][stream].map_or(0, |b| g.units_per_block() - self.blocks[b].slots.len())
            })
            .collect();
        // Plays it through, unit by unit.
        while left > 0 {
            let Some(frontier) = self.frontiers_from(g.plane_of(block)).find(|&frontier| {
                self.rules.pool_of(frontier) == pool && (room[frontier] > 0 || free[frontier] > 0)
            }) else {
                return false;
            };
            if room[frontier] == 0 {
                free[frontier] -= 1;
                room[frontier] = g.units_per_block();
            }
            room[frontier] -= 1;
            left -= 1;
        }
        let in_pool = |plane: &usize| self.rules.pool_of(*plane) == pool;
        let rest: usize = (0..g.planes()).filter(in_pool).map(|p| free[p]).sum();
        !self.is_worn(block) || rest > 0
    }

    /// Whether collecting a block gains a page.
    fn gains(&self, block: usize) -> bool {
        let g = &self.rules.geometry;
        self.blocks[block].valid.div_ceil(g.units_per_page) < g.data_pages()
    }

    fn collect(&mut self, victim: usize, pool: usize, owner: &mut impl Owner<T>) {
        let g = self.rules.geometry;
        let mut last_frontier = None;
        for page in 0..g.data_pages() {
            let slots = page * g.units_per_page..(page + 1) * g.units_per_page;
            let valid = slots.filter(|&index| self.blocks[victim].slots[index].valid);
            let valid: Vec<usize> = valid.collect();
            if let Some(&first) = valid.first() {
                self.emit_read(g.ppn(victim, first), ReadCause::Gc);
            }
            for index in valid {
                let frontier = self.destination(g.plane_of(victim), pool);
                self.relocate(g.ppn(victim, index), frontier, owner);
                last_frontier = Some(frontier);
            }
        }
        // A write frontier is left only when its block is full, so no other write frontier's page is partly filled.
        if let Some(frontier) = last_frontier {
            self.pad(frontier, self.gc_stream());
        }
        if self.is_worn(victim) {
            self.blocks[victim].state = BlockState::Retired;
        } else {
            self.erase(victim);
        }
        self.totals.victims += 1;
    }

    fn relocate(&mut self, from: u64, frontier: usize, owner: &mut impl Owner<T>) {
        let unit = self.unit(from).expect("a valid slot holds a unit");
        let to = self.append(frontier, self.gc_stream(), Some((unit, Cause::Gc)));
        self.invalidate(from);
        owner.moved(unit, from, to);
        self.totals.moved_units += 1;
    }

    /// The victim's own plane if it can take a unit, else the next in stripe order that can.
    fn destination(&self, plane: usize, pool: usize) -> usize {
        let mut frontiers = self.frontiers_from(plane);
        let takes = |&frontier: &usize| {
            self.rules.pool_of(frontier) == pool
                && (self.open[frontier][self.gc_stream() as usize].is_some()
                    || !self.free[frontier].is_empty())
        };
        frontiers.find(takes).unwrap_or_else(|| {
            panic!("the rules lead nowhere: a victim of plane {plane} finds no destination in pool {pool}")
        })
    }

    /// All write frontiers in stripe order, from the plane's own on.
    fn frontiers_from(&self, plane: usize) -> impl Iterator<Item = usize> + '_ {
        let stripe = &self.rules.stripe;
        let start = stripe
            .iter()
            .position(|&p| p == plane)
            .expect("the stripe names every plane");
        let around = stripe.iter().cycle().skip(start);
        around.take(stripe.len()).copied()
    }

    fn gc_stream(&self) -> Stream {
        match self.rules.streams {
            Streams::Separate => Stream::Gc,
            Streams::Shared => Stream::Host,
        }
    }
}
