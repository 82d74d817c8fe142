//! Recounting every invariant of the core from scratch: slow, and never run in a replay.

use std::collections::HashMap;

use flashlore_flash::{BlockId, Flash, MapPageId, Owner, PoolId, Ppn, Stream, Table};

use crate::blocks::BlockPhase;
use crate::core::Core;
use crate::map_cache::MapCache;
use crate::mapping::Mapping;

impl<F: Flash, K: MapCache<F::Page>> Core<F, K>
where
    F::Page: Clone,
{
    /// Checks blocks, free lists, open blocks and the agreement with the mapping. `owners` are those
    /// that hold a unit, each once.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check<M: Mapping>(
        &self,
        map: &M,
        owners: impl Iterator<Item = Owner>,
    ) -> Result<(), String> {
        self.blocks.check()?;
        self.check_states()?;
        self.map_cache.check()?;
        self.check_locations(map, owners)?;
        self.check_programs()
    }

    /// Free lists, open blocks, jobs and erases account for every block that is not sealed.
    fn check_states(&self) -> Result<(), String> {
        let mut expected: HashMap<BlockId, BlockPhase> = HashMap::new();
        let mut note = |block: BlockId, state: BlockPhase| match expected.insert(block, state) {
            Some(other) => Err(format!("block {block} is both {other:?} and {state:?}")),
            None => Ok(()),
        };
        let mut free = vec![0; self.pools.len()];
        for plane in &self.planes {
            for block in plane.free.iter() {
                note(block, BlockPhase::Free)?;
                free[self.blocks.record(block).pool().index()] += 1;
            }
            for open in plane.open.iter().filter(|o| o.is_open()) {
                note(open.block, BlockPhase::Open)?;
            }
        }
        for job in &self.jobs {
            note(job.victim(), BlockPhase::Collecting)?;
        }
        for &(block, _) in &self.erasing {
            note(block, BlockPhase::Erasing)?;
        }
        let mut retired = vec![0; self.pools.len()];
        for (block, record) in (0..).map(BlockId).zip(self.blocks.records()) {
            let state = expected.get(&block);
            if record.state == BlockPhase::Retired && state.is_none() {
                retired[record.pool().index()] += 1;
                continue;
            }
            let state = state.copied().unwrap_or(BlockPhase::Sealed);
            if record.state != state {
                return Err(format!(
                    "block {block} is {:?}, expected {state:?}",
                    record.state
                ));
            }
        }
        for (id, pool) in (0..).map(PoolId).zip(&self.pools) {
            if pool.free != free[id.index()] {
                return Err(format!(
                    "pool {id} counts {} free, has {}",
                    pool.free,
                    free[id.index()]
                ));
            }
            if pool.retired != retired[id.index()] {
                return Err(format!(
                    "pool {id} counts {} retired blocks, has {}",
                    pool.retired,
                    retired[id.index()]
                ));
            }
            if pool.low != (pool.free <= self.watermarks(id).low) {
                return Err(format!("pool {id} is marked low: {}", pool.low));
            }
        }
        let low = self.pools.iter().filter(|p| p.low).count();
        if low != self.low_pools as usize {
            return Err(format!("{low} pools are low, {} counted", self.low_pools));
        }
        Ok(())
    }

    /// Every owner lies on a valid unit that names it, and there are no other valid units.
    fn check_locations<M: Mapping>(
        &self,
        map: &M,
        owners: impl Iterator<Item = Owner>,
    ) -> Result<(), String> {
        let mut count = 0u64;
        for owner in owners {
            count += 1;
            let ppn = map
                .location(owner)
                .ok_or_else(|| format!("{owner:?} lies nowhere"))?;
            if !self.blocks.is_valid(ppn) {
                return Err(format!(
                    "{owner:?} lies on unit {}, which is invalid",
                    ppn.0
                ));
            }
            if self.owners.get(ppn.index()) != owner {
                return Err(format!(
                    "{owner:?} lies on unit {}, which names {:?}",
                    ppn.0,
                    self.owners.get(ppn.index())
                ));
            }
        }
        for page in (0..self.map_cache.pages()).map(MapPageId) {
            let ppn = self.map_cache.location(page);
            if !ppn.is_some() {
                continue;
            }
            count += 1;
            let named = self.owners.get(ppn.index());
            if !self.blocks.is_valid(ppn) || named != Owner::map_page(page) {
                return Err(format!(
                    "translation page {page} lies on unit {}, which names {named:?}",
                    ppn.0
                ));
            }
        }
        let valid = self.blocks.valid_units();
        if valid != count {
            return Err(format!("{valid} units are valid, {count} are owned"));
        }
        Ok(())
    }

    /// The slack of every block is that of its packed units.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub(crate) fn check_slack<M: Mapping>(&self, map: &M) -> Result<(), String> {
        let dead = |ppn: Ppn| map.dead_bytes(self.owners.get(ppn.index()));
        self.blocks.check_slack(dead)
    }

    /// Programs by cause and slots of programmed pages are the same number.
    fn check_programs(&self) -> Result<(), String> {
        let waiting: u64 = self
            .planes
            .iter()
            .flat_map(|p| Stream::ALL.map(|s| p.buffers[s as usize].units.len() as u64))
            .sum();
        let slots = self.counters.page_programs * u64::from(self.units_per_page);
        let appended = self.counters.programs();
        // Counters may have been restarted while units waited, so programs may exceed appends.
        if appended > slots + waiting {
            return Err(format!(
                "{appended} units were appended, {slots} slots programmed and {waiting} wait"
            ));
        }
        Ok(())
    }
}
