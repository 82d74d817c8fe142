//! Block records, the bitmap of valid units, and the sealed blocks of every pool in buckets by their
//! number of valid units and in the order of their turns.
//!
//! A block goes Free -> Open -> Sealed -> Collecting -> Erasing -> Free, at the end of its life
//! Collecting -> Retired. Only sealed blocks are in a
//! bucket. Within a bucket blocks stand in the order in which they reached its count, so "the first
//! of the lowest bucket" is the block with the fewest valid units, and among equals the one that has
//! had so few for the longest.
//!
//! The turns of a pool are its sealed and collecting blocks, the one sealed longest ago first; a block
//! whose turn passes over it goes to the end with a new number, as if it had been written anew.
//!
//! Packed units are valid while anything in them is referred to; what is not is the block's *slack*, and
//! its *weight* is its valid units less the whole units of slack.
//!
//! Invariants: `valid` is the number of bits set in the block's part of the bitmap; a sealed block is
//! in the bucket of its pool with its weight; no bucket below `lowest` holds a block; turns are in
//! ascending order of `sealed`.

use std::ops::Range;

use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::hints::{on_large_pages, prefetch};
use flashlore_flash::{BlockId, Geometry, PoolId, Ppn};

use crate::erase_tally::EraseTally;

/// Where a block is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockPhase {
    /// Erased, on the free list of its plane.
    Free,
    /// Being filled.
    Open,
    /// Full; a candidate for collection.
    Sealed,
    /// Its valid units are being moved.
    Collecting,
    /// Its erase has begun and is not over.
    Erasing,
    /// Empty and never used again.
    Retired,
}

/// What is known of one block: 32 bytes, so that a cache line holds whole ones.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
pub struct Block {
    next: BlockId,
    prev: BlockId,
    /// The block whose turn is next, and the one whose turn was before.
    later: BlockId,
    earlier: BlockId,
    /// Times it was erased.
    pub erases: u32,
    /// Number of the sealing, counted over the device; a turn that passes over the block renews it.
    pub sealed: u32,
    /// Valid units in it.
    pub valid: u16,
    /// Its pool; there are fewer than 2^16.
    pool: u16,
    /// What packed pages in it hold that nobody refers to, in grains.
    slack: u16,
    /// Where it is in its life.
    pub state: BlockPhase,
}

const _: () = assert!(size_of::<Block>() == 32);

impl Block {
    /// Its pool.
    #[inline(always)]
    pub fn pool(&self) -> PoolId {
        PoolId(self.pool.into())
    }

    /// Its valid units less the whole units of its slack, in which a unit has so many grains.
    #[inline(always)]
    fn weight(&self, grain_bits: u32) -> u32 {
        u32::from(self.valid) - u32::from(self.slack >> grain_bits)
    }
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    head: BlockId,
    tail: BlockId,
}

const EMPTY: Bucket = Bucket {
    head: BlockId::NONE,
    tail: BlockId::NONE,
};

/// All blocks of the device.
#[derive(Debug, Clone)]
pub struct Blocks {
    records: Vec<Block>,
    valid: Vec<u64>,
    buckets: Vec<Bucket>,
    lowest: Vec<u32>,
    /// The turns of every pool: their first and last block.
    turns: Vec<Bucket>,
    buckets_per_pool: u32,
    data_units: u32,
    most_valid: u32,
    units_per_block: u32,
    seals: u32,
    /// Grains of slack in a unit, as a power of two: a block's must fit in its record.
    grain_bits: u32,
    /// Erases since somebody began to watch.
    tally: Option<Box<EraseTally>>,
    geometry: Geometry,
}

/// Slack is counted in 256ths of a unit, in blocks of more units than 255 in larger grains.
const FINEST_GRAIN_BITS: u32 = 8;

impl Blocks {
    /// Erased blocks; `pool_of` names the pool of a block.
    pub fn new(
        geometry: &Geometry,
        data_units: u32,
        pools: usize,
        pool_of: impl Fn(BlockId) -> PoolId,
    ) -> Self {
        let record = |block| Block {
            next: BlockId::NONE,
            prev: BlockId::NONE,
            later: BlockId::NONE,
            earlier: BlockId::NONE,
            erases: 0,
            sealed: 0,
            valid: 0,
            slack: 0,
            pool: pool_of(BlockId(block)).0 as u16,
            state: BlockPhase::Free,
        };
        let buckets_per_pool = data_units + 1;
        Blocks {
            records: (0..geometry.blocks()).map(record).collect(),
            valid: on_large_pages(vec![0; (geometry.units() as usize).div_ceil(64)]),
            buckets: vec![EMPTY; pools * buckets_per_pool as usize],
            lowest: vec![buckets_per_pool; pools],
            turns: vec![EMPTY; pools],
            buckets_per_pool,
            data_units,
            most_valid: data_units - geometry.units_per_page(),
            units_per_block: geometry.units_per_block(),
            seals: 0,
            grain_bits: FINEST_GRAIN_BITS.min(u16::MAX.ilog2().saturating_sub(data_units.ilog2())),
            tally: None,
            geometry: geometry.clone(),
        }
    }

    /// Counts the erases of all blocks from here on.
    pub fn tally_erases(&mut self) {
        let before = self.records.iter().map(|r| r.erases);
        self.tally = Some(Box::new(EraseTally::new(before)));
    }

    /// The erases since counting began, if somebody counts them.
    pub fn erase_tally(&self) -> Option<&EraseTally> {
        self.tally.as_deref()
    }

    /// Units of a block that can hold data.
    #[inline(always)]
    pub fn data_units(&self) -> u32 {
        self.data_units
    }

    /// The most valid units a victim may have: they fit in fewer pages than the block has, so that
    /// collecting it gains a page. (With one invalid unit a padded copy could be as long again.)
    #[inline(always)]
    pub fn most_valid(&self) -> u32 {
        self.most_valid
    }

    /// The record of a block.
    #[inline(always)]
    pub fn record(&self, block: BlockId) -> &Block {
        &self.records[block.index()]
    }

    /// The blocks of a pool: pools are whole branches of the geometry, so their numbers are dense.
    pub fn members(&self, pool: PoolId) -> Range<BlockId> {
        let count = (self.records.len() / self.lowest.len()) as u32;
        BlockId(pool.0 * count)..BlockId((pool.0 + 1) * count)
    }

    /// The units of a block that can hold data.
    #[inline(always)]
    pub fn units_of(&self, block: BlockId) -> Range<Ppn> {
        let first = self.geometry.first_unit(block);
        first..first + self.data_units
    }

    /// What collecting a block is expected to cost, in units: its valid ones, and of packed ones what is
    /// referred to.
    #[inline(always)]
    pub fn weight(&self, block: BlockId) -> u32 {
        self.record(block).weight(self.grain_bits)
    }

    /// Grains for so many bytes of a unit.
    fn grains(&self, bytes: u32) -> u16 {
        ((bytes << self.grain_bits) / UNIT_BYTES) as u16
    }

    /// Of a valid unit `after` bytes instead of `before` are not referred to any more.
    pub fn set_dead(&mut self, ppn: Ppn, before: u32, after: u32) {
        let block = self.geometry.block_of(ppn);
        let (before, after) = (self.grains(before), self.grains(after));
        self.reweigh(block, |record| {
            record.slack = record.slack - before + after;
        });
    }

    /// Changes what a block weighs, in its bucket.
    #[inline(always)]
    fn reweigh(&mut self, block: BlockId, change: impl FnOnce(&mut Block)) {
        let bits = self.grain_bits;
        let record = &mut self.records[block.index()];
        let before = record.weight(bits);
        change(record);
        let (state, pool, after) = (record.state, record.pool(), record.weight(bits));
        if state == BlockPhase::Sealed && before != after {
            self.unlink(block, before);
            self.link(block, pool, after);
        }
    }

    /// The block of a pool with the fewest valid units, packed ones counted whole, if moving them as they
    /// are gains a page. It looks at every sealed block.
    pub fn fewest_units(&self, pool: PoolId, allowed: impl Fn(BlockId) -> bool) -> Option<BlockId> {
        let units = |&block: &BlockId| (self.record(block).valid, block);
        let sealed = self.sealed(pool).filter(|&block| allowed(block));
        let fewest = sealed.min_by_key(units)?;
        Some(fewest).filter(|&block| u32::from(self.record(block).valid) <= self.most_valid)
    }

    /// All records, by block number.
    pub fn records(&self) -> &[Block] {
        &self.records
    }

    /// Blocks sealed since this one was: the clock of victim policies that know age.
    pub fn age(&self, block: BlockId) -> u32 {
        self.seals.wrapping_sub(self.record(block).sealed)
    }

    /// Whether a unit is valid.
    #[inline(always)]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[ppn.index() / 64] >> (ppn.0 % 64) & 1 == 1
    }

    /// A word of the bitmap of valid units: bit `n` of word `w` is unit `64 w + n`.
    pub fn valid_word(&self, at: usize) -> u64 {
        self.valid[at]
    }

    /// Asks for what an invalidation of the unit will touch.
    #[inline(always)]
    pub fn prefetch(&self, ppn: Ppn) {
        if ppn.is_some() {
            prefetch(&self.valid, ppn.index() / 64);
            prefetch(&self.records, self.geometry.block_of(ppn).index());
        }
    }

    /// Asks for the neighbours of its block in the bucket, once the block is near.
    #[inline(always)]
    pub fn prefetch_neighbours(&self, ppn: Ppn) {
        if ppn.is_some() {
            let record = self.record(self.geometry.block_of(ppn));
            prefetch(&self.records, record.next.index());
            prefetch(&self.records, record.prev.index());
        }
    }

    /// The first valid unit of a range.
    #[inline(always)]
    pub fn next_valid(&self, units: Range<Ppn>) -> Option<Ppn> {
        if units.is_empty() {
            return None;
        }
        let mut word = units.start.index() / 64;
        let mut bits = self.valid[word] & (u64::MAX << (units.start.0 % 64));
        while bits == 0 {
            word += 1;
            if word * 64 >= units.end.index() {
                return None;
            }
            bits = self.valid[word];
        }
        let unit = Ppn(word as u32 * 64 + bits.trailing_zeros());
        (unit < units.end).then_some(unit)
    }

    /// A unit of an open block holds data from now on.
    #[inline(always)]
    pub fn set_valid(&mut self, block: BlockId, ppn: Ppn) {
        self.valid[ppn.index() / 64] |= 1 << (ppn.0 % 64);
        self.records[block.index()].valid += 1;
    }

    /// These units are valid, as [`Blocks::valid_word`] tells of them; no block is sealed yet.
    pub fn restore_valid(&mut self, mut words: Vec<u64>) {
        words.resize(self.valid.len(), 0);
        self.valid = on_large_pages(words);
        for block in (0..self.records.len() as u32).map(BlockId) {
            let units = self.units_of(block);
            self.records[block.index()].valid = self.valid_in(units) as u16;
        }
    }

    /// Valid units of a range.
    fn valid_in(&self, units: Range<Ppn>) -> u32 {
        let mut counted = 0;
        let mut at = units.start.0;
        while at < units.end.0 {
            let end = units.end.0.min((at / 64 + 1) * 64);
            let word = self.valid[at as usize / 64] >> (at % 64);
            let bits = end - at;
            counted += (word << (64 - bits)).count_ones();
            at = end;
        }
        counted
    }

    /// A unit is no longer referenced.
    #[inline(always)]
    pub fn invalidate(&mut self, ppn: Ppn) {
        debug_assert!(self.is_valid(ppn), "unit {} is invalidated twice", ppn.0);
        self.valid[ppn.index() / 64] &= !(1 << (ppn.0 % 64));
        let block = self.geometry.block_of(ppn);
        self.reweigh(block, |record| record.valid -= 1);
    }

    /// A unit has been copied out of its block, which is being collected; so many bytes of it were dead.
    #[inline(always)]
    pub fn moved_out(&mut self, ppn: Ppn, dead: u32) {
        let block = self.geometry.block_of(ppn);
        self.valid[ppn.index() / 64] &= !(1 << (ppn.0 % 64));
        let dead = self.grains(dead);
        let record = &mut self.records[block.index()];
        record.valid -= 1;
        record.slack -= dead;
    }

    /// A free block is opened.
    pub fn open(&mut self, block: BlockId) {
        let record = &mut self.records[block.index()];
        debug_assert_eq!(record.state, BlockPhase::Free);
        record.state = BlockPhase::Open;
    }

    /// An open block is full.
    pub fn seal(&mut self, block: BlockId) {
        let record = &mut self.records[block.index()];
        debug_assert_eq!(record.state, BlockPhase::Open);
        record.state = BlockPhase::Sealed;
        let pool = record.pool();
        self.link(block, pool, self.weight(block));
        self.append_turn(block);
    }

    /// The turn of a block passes over it and comes again after those of all others.
    pub fn pass_over(&mut self, block: BlockId) {
        self.remove_turn(block);
        self.append_turn(block);
    }

    /// The block of a pool whose turn is next: the one sealed longest ago, or passed over then.
    pub fn first_turn(&self, pool: PoolId) -> Option<BlockId> {
        some_block(self.turns[pool.index()].head)
    }

    /// The block whose turn comes after that of another.
    pub fn later_turn(&self, block: BlockId) -> Option<BlockId> {
        some_block(self.record(block).later)
    }

    /// The block whose turn comes last.
    pub fn last_turn(&self, pool: PoolId) -> Option<BlockId> {
        some_block(self.turns[pool.index()].tail)
    }

    fn append_turn(&mut self, block: BlockId) {
        let record = &mut self.records[block.index()];
        record.sealed = self.seals;
        self.seals = self.seals.wrapping_add(1);
        let turns = &mut self.turns[record.pool().index()];
        let earlier = std::mem::replace(&mut turns.tail, block);
        (record.earlier, record.later) = (earlier, BlockId::NONE);
        match self.records.get_mut(earlier.index()) {
            Some(r) => r.later = block,
            None => turns.head = block,
        }
    }

    fn remove_turn(&mut self, block: BlockId) {
        let record = self.records[block.index()];
        let Block { later, earlier, .. } = record;
        let turns = &mut self.turns[record.pool().index()];
        match self.records.get_mut(earlier.index()) {
            Some(r) => r.later = later,
            None => turns.head = later,
        }
        match self.records.get_mut(later.index()) {
            Some(r) => r.earlier = earlier,
            None => turns.tail = earlier,
        }
    }

    /// A sealed block becomes a victim and leaves its bucket.
    pub fn begin_collection(&mut self, block: BlockId) {
        let record = &mut self.records[block.index()];
        debug_assert_eq!(record.state, BlockPhase::Sealed);
        record.state = BlockPhase::Collecting;
        self.unlink(block, self.weight(block));
    }

    /// A block could not be emptied and stays a candidate with what is still valid.
    pub fn abandon_collection(&mut self, block: BlockId) {
        let record = &mut self.records[block.index()];
        debug_assert_eq!(record.state, BlockPhase::Collecting);
        record.state = BlockPhase::Sealed;
        let pool = record.pool();
        self.link(block, pool, self.weight(block));
    }

    /// Valid units of all blocks.
    pub fn valid_units(&self) -> u64 {
        self.records.iter().map(|b| u64::from(b.valid)).sum()
    }

    /// A collected block is being erased.
    pub fn begin_erase(&mut self, block: BlockId) {
        let record = &mut self.records[block.index()];
        debug_assert_eq!(
            (record.valid, record.slack),
            (0, 0),
            "block {} is erased with valid units",
            block.0
        );
        record.state = BlockPhase::Erasing;
        record.erases += 1;
        if let Some(tally) = &mut self.tally {
            tally.count(block, record.erases);
        }
        self.remove_turn(block);
    }

    /// A collected block is never used again.
    pub fn retire(&mut self, block: BlockId) {
        let record = &mut self.records[block.index()];
        debug_assert_eq!((record.state, record.valid), (BlockPhase::Collecting, 0));
        record.state = BlockPhase::Retired;
        self.remove_turn(block);
    }

    /// An erased block is free.
    pub fn free(&mut self, block: BlockId) {
        self.records[block.index()].state = BlockPhase::Free;
    }

    /// Says how often a block has been erased, before anybody counts.
    pub fn set_erases(&mut self, block: BlockId, erases: u32) {
        debug_assert!(self.tally.is_none(), "erases are being counted");
        self.records[block.index()].erases = erases;
    }

    /// Sets the erase counts to 0: the end of preconditioning. Nobody counts them then.
    pub fn restart(&mut self) {
        for record in &mut self.records {
            record.erases = 0;
        }
        self.tally = None;
    }

    /// The sealed block of a pool with the fewest valid units, if collecting it gains a page.
    #[inline]
    pub fn emptiest(&mut self, pool: PoolId) -> Option<BlockId> {
        let first = pool.index() * self.buckets_per_pool as usize;
        let mut count = self.lowest[pool.index()];
        while count <= self.most_valid {
            let head = self.buckets[first + count as usize].head;
            if head.is_some() {
                self.lowest[pool.index()] = count;
                return Some(head);
            }
            count += 1;
        }
        self.lowest[pool.index()] = count;
        None
    }

    /// The sealed blocks of a pool whose collection gains a page, emptiest first.
    pub fn candidates(&self, pool: PoolId) -> impl Iterator<Item = BlockId> + '_ {
        (self.lowest[pool.index()]..=self.most_valid)
            .flat_map(move |weight| self.bucket(pool, weight))
    }

    /// All sealed blocks of a pool, full ones too.
    pub fn sealed(&self, pool: PoolId) -> impl Iterator<Item = BlockId> + '_ {
        (self.lowest[pool.index()]..=self.data_units)
            .flat_map(move |weight| self.bucket(pool, weight))
    }

    /// Where the sealed blocks of a pool that have a weight are listed.
    #[inline(always)]
    fn bucket_of(&self, pool: PoolId, weight: u32) -> usize {
        pool.index() * self.buckets_per_pool as usize + weight as usize
    }

    /// Those blocks.
    fn bucket(&self, pool: PoolId, weight: u32) -> impl Iterator<Item = BlockId> + '_ {
        let mut at = self.buckets[self.bucket_of(pool, weight)].head;
        std::iter::from_fn(move || {
            let record = self.records.get(at.index())?;
            Some(std::mem::replace(&mut at, record.next))
        })
    }

    #[inline(always)]
    fn unlink(&mut self, block: BlockId, weight: u32) {
        let record = self.records[block.index()];
        let Block { next, prev, .. } = record;
        let bucket = self.bucket_of(record.pool(), weight);
        match self.records.get_mut(prev.index()) {
            Some(r) => r.next = next,
            None => self.buckets[bucket].head = next,
        }
        match self.records.get_mut(next.index()) {
            Some(r) => r.prev = prev,
            None => self.buckets[bucket].tail = prev,
        }
    }

    #[inline(always)]
    fn link(&mut self, block: BlockId, pool: PoolId, weight: u32) {
        let bucket = self.bucket_of(pool, weight);
        let tail = self.buckets[bucket].tail;
        let record = &mut self.records[block.index()];
        record.prev = tail;
        record.next = BlockId::NONE;
        match self.records.get_mut(tail.index()) {
            Some(r) => r.next = block,
            None => self.buckets[bucket].head = block,
        }
        self.buckets[bucket].tail = block;
        if weight < self.lowest[pool.index()] {
            self.lowest[pool.index()] = weight;
        }
    }

    /// Recounts bitmap, records and buckets.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mut bucketed = vec![None; self.records.len()];
        for pool in self.pools() {
            for count in 0..self.buckets_per_pool {
                let mut prev = BlockId::NONE;
                for block in self.bucket(pool, count) {
                    let record = self.record(block);
                    if record.prev != prev || bucketed[block.index()].is_some() {
                        return Err(format!("bucket list is broken at block {}", block.0));
                    }
                    if count < self.lowest[pool.index()] {
                        return Err(format!("block {} lies below the lowest bucket", block.0));
                    }
                    bucketed[block.index()] = Some((pool, count));
                    prev = block;
                }
                if self.buckets[self.bucket_of(pool, count)].tail != prev {
                    return Err(format!("tail of bucket {count} of pool {pool} is wrong"));
                }
            }
        }
        self.check_turns()?;
        if let Some(tally) = &self.tally {
            tally.check(self.records.iter().map(|r| r.erases))?;
        }
        for (number, record) in self.records.iter().enumerate() {
            let first = number as u32 * self.units_per_block;
            let counted = (first..first + self.units_per_block)
                .filter(|&u| self.is_valid(Ppn(u)))
                .count();
            if counted != usize::from(record.valid) {
                return Err(format!(
                    "block {number} counts {} valid units, {counted} bits are set",
                    record.valid
                ));
            }
            let expected = (record.state == BlockPhase::Sealed)
                .then_some((record.pool(), record.weight(self.grain_bits)));
            if bucketed[number] != expected {
                return Err(format!(
                    "block {number} ({:?}, {} valid) is in bucket {:?}",
                    record.state, record.valid, bucketed[number]
                ));
            }
            let empty = matches!(
                record.state,
                BlockPhase::Free | BlockPhase::Erasing | BlockPhase::Retired
            );
            if empty && (record.valid, record.slack) != (0, 0) {
                return Err(format!(
                    "block {number} is {:?} with valid units",
                    record.state
                ));
            }
        }
        Ok(())
    }

    /// Recounts the slack of every block; `dead` says how many bytes of a valid unit are dead.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check_slack(&self, dead: impl Fn(Ppn) -> u32) -> Result<(), String> {
        for (number, record) in self.records.iter().enumerate() {
            let first = number as u32 * self.units_per_block;
            let units = (first..first + self.units_per_block).map(Ppn);
            let valid = units.filter(|&ppn| self.is_valid(ppn));
            let slack: u32 = valid.map(|ppn| u32::from(self.grains(dead(ppn)))).sum();
            if slack != u32::from(record.slack) {
                return Err(format!(
                    "block {number} notes {} grains of slack, its units have {slack}",
                    record.slack
                ));
            }
        }
        Ok(())
    }

    /// Every sealed or collecting block has its turn in its pool, in order of the numbers.
    fn check_turns(&self) -> Result<(), String> {
        let mut waiting = 0;
        for pool in self.pools() {
            let mut before: Option<BlockId> = None;
            let mut at = self.first_turn(pool);
            while let Some(block) = at {
                let record = self.record(block);
                let numbered = before.is_none_or(|b| self.age(b) > self.age(block));
                let waits = matches!(record.state, BlockPhase::Sealed | BlockPhase::Collecting);
                let linked = some_block(record.earlier) == before;
                if record.pool() != pool || !numbered || !waits || !linked {
                    return Err(format!(
                        "block {} ({:?}, pool {}) has no place in the turns of pool {pool} after {before:?}",
                        block.0, record.state, record.pool
                    ));
                }
                waiting += 1;
                before = at;
                at = self.later_turn(block);
            }
            if self.last_turn(pool) != before {
                return Err(format!("the last turn of pool {pool} is not {before:?}"));
            }
        }
        let states = self.records.iter().map(|r| r.state);
        let full = states
            .filter(|s| matches!(s, BlockPhase::Sealed | BlockPhase::Collecting))
            .count();
        if full != waiting {
            return Err(format!("{full} blocks are full, {waiting} have a turn"));
        }
        Ok(())
    }

    fn pools(&self) -> impl Iterator<Item = PoolId> + use<> {
        (0..self.lowest.len() as u32).map(PoolId)
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Block>()
            + self.valid.capacity() * size_of::<u64>()
            + self.buckets.capacity() * size_of::<Bucket>()
            + self.lowest.capacity() * size_of::<u32>()
            + self.turns.capacity() * size_of::<Bucket>()
    }
}

fn some_block(block: BlockId) -> Option<BlockId> {
    block.is_some().then_some(block)
}
