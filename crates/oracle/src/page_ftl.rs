//! A naive direct-map page FTL that emits its operation sequence.
//!
//! One flash unit per logical page, every write programs. A fast core that follows the same rules
//! must emit the same operations, one by one, in the same order.
//!
//! A host write: (1) the write frontier is the one under the group's cursor; (2) if the write frontier must open a
//! block (or, checking at dispatch, always) the pool is collected when it is at or below the low
//! watermark; (3) a write frontier that cannot take the unit is passed over, with its own collection step
//! for the next; (4) the unit is appended, which may open a block, program a page, seal a block;
//! (5) the old unit, looked up only now, is invalidated.
//!
//! Checking at dispatch, a collection step covers every pool with planes on the write frontier's die, for
//! each further write frontier tried as for the first, and runs before a host read of a programmed unit too
//! if the rules say so.
//!
//! The cursor moves on when a host unit completes its flash page, when its write frontier is passed over,
//! and when a flush pads its write frontier; never because of collection.

use std::collections::BTreeMap;

use crate::OracleError;
use crate::blocks::{Blocks, Owner};
use crate::ops::{Op, Totals};
use crate::rules::Rules;

#[derive(Debug, Clone)]
pub struct PageFtl {
    blocks: Blocks<u64>,
    map: Map,
}

#[derive(Debug, Clone, Default)]
struct Map(BTreeMap<u64, u64>);

impl Owner<u64> for Map {
    fn moved(&mut self, lpn: u64, from: u64, to: u64) {
        let old = self.0.insert(lpn, to);
        assert_eq!(
            old,
            Some(from),
            "LPN {lpn} was not where collection found it"
        );
    }
}

impl PageFtl {
    /// An empty device.
    ///
    /// # Errors
    /// [`OracleError::Rules`] if the rules contradict themselves.
    pub fn new(rules: Rules) -> Result<PageFtl, OracleError> {
        let blocks = Blocks::new(rules)?;
        Ok(PageFtl {
            blocks,
            map: Map::default(),
        })
    }

    /// Writes a logical page.
    ///
    /// # Errors
    /// [`OracleError::DeviceFull`] if no write frontier can take the unit; the old unit stays mapped.
    ///
    /// # Panics
    /// If collection finds no destination or never gains a page: the rules are at fault.
    pub fn write(&mut self, lpn: u64) -> Result<(), OracleError> {
        let ppn = self.blocks.place(lpn, lpn, &mut self.map)?;
        if let Some(old) = self.map.0.insert(lpn, ppn) {
            self.blocks.invalidate(old);
        }
        Ok(())
    }

    /// Reads a logical page: one flash read if it is mapped and its page is programmed.
    pub fn read(&mut self, lpn: u64) {
        self.blocks
            .host_read(&mut self.map, |map| map.0.get(&lpn).copied());
    }

    /// Unmaps a logical page.
    pub fn trim(&mut self, lpn: u64) {
        if let Some(old) = self.map.0.remove(&lpn) {
            self.blocks.invalidate(old);
        }
    }

    /// Pads and programs all partly filled host pages.
    pub fn flush(&mut self) {
        self.blocks.flush();
    }

    /// Preconditions: writes the logical pages in the order given, neither recorded nor counted.
    ///
    /// # Errors
    /// As [`Self::write`]; the pages before the failing one stay written.
    pub fn fill(&mut self, lpns: impl IntoIterator<Item = u64>) -> Result<(), OracleError> {
        let totals = self.blocks.begin_fill();
        let result = lpns.into_iter().try_for_each(|lpn| self.write(lpn));
        self.blocks.end_fill(totals);
        result
    }

    /// The operations since the last call.
    pub fn take_ops(&mut self) -> Vec<Op<u64>> {
        self.blocks.take_ops()
    }

    /// Totals since the device was made, without preconditioning.
    pub fn totals(&self) -> &Totals {
        &self.blocks.totals
    }

    /// The unit address of a logical page.
    pub fn location(&self, lpn: u64) -> Option<u64> {
        self.map.0.get(&lpn).copied()
    }

    /// Erased, unopened blocks of a pool.
    pub fn free_blocks(&self, pool: usize) -> usize {
        self.blocks.free_blocks(pool)
    }

    /// Share of the sealed blocks' slots that hold valid units; `None` while none is sealed.
    pub fn sealed_utilisation(&self) -> Option<f64> {
        self.blocks.sealed_utilisation()
    }

    /// Recounts every invariant from scratch.
    ///
    /// # Panics
    /// On the first contradiction, naming it.
    pub fn check(&self) {
        self.blocks.check();
        let mapped: Vec<(u64, u64)> = {
            let mut pairs: Vec<_> = self.map.0.iter().map(|(&lpn, &ppn)| (ppn, lpn)).collect();
            pairs.sort_unstable();
            pairs
        };
        assert_eq!(
            mapped,
            self.blocks.valid_units(),
            "the map and the valid units differ"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Cause, ReadCause};
    use crate::rules::{Check, Geometry, Placement, PoolScope, Streams};

    fn rules(dies: usize, blocks: usize, pages: usize, units: usize) -> Rules {
        Rules::new(Geometry {
            dies,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block: pages,
            units_per_page: units,
            summary_page: false,
        })
    }

    fn program(block: usize, page: usize, cause: Cause, lpns: &[Option<u64>]) -> Op<u64> {
        let slots = lpns.iter().map(|lpn| lpn.map(|lpn| (lpn, cause))).collect();
        Op::Program { block, page, slots }
    }

    fn host(block: usize, page: usize, lpn: u64) -> Op<u64> {
        program(block, page, Cause::Host, &[Some(lpn)])
    }

    fn gc(block: usize, page: usize, lpn: u64) -> Op<u64> {
        program(block, page, Cause::Gc, &[Some(lpn)])
    }

    fn gc_read(block: usize, page: usize) -> Op<u64> {
        Op::Read {
            block,
            page,
            cause: ReadCause::Gc,
        }
    }

    fn host_read(block: usize, page: usize) -> Op<u64> {
        Op::Read {
            block,
            page,
            cause: ReadCause::Host,
        }
    }

    fn erase(block: usize) -> Op<u64> {
        Op::Erase { block }
    }

    fn write_all(ftl: &mut PageFtl, lpns: &[u64]) {
        for &lpn in lpns {
            ftl.write(lpn).unwrap();
            ftl.check();
        }
    }

    #[test]
    fn greedy_collection_breaks_ties_by_age_and_stops_above_the_high_watermark() {
        let mut ftl = PageFtl::new(rules(1, 4, 2, 1)).unwrap();
        write_all(&mut ftl, &[0, 1, 2, 3, 0, 2]);
        ftl.take_ops();
        // Free: block 3. Blocks 0 and 1 have one valid unit each, block 0 for longer.
        write_all(&mut ftl, &[1]);
        let expected = vec![
            gc_read(0, 1),
            gc(3, 0, 1),
            erase(0), // still one free block: not above the high watermark
            gc_read(1, 1),
            gc(3, 1, 3),
            erase(1),
            host(0, 0, 1),
        ];
        assert_eq!(ftl.take_ops(), expected);
        assert_eq!((ftl.location(1), ftl.location(3)), (Some(0), Some(7)));
        let totals = ftl.totals();
        assert_eq!(
            (totals.host_units, totals.gc_units, totals.victims),
            (7, 2, 2)
        );
        assert_eq!(totals.erases, vec![1, 1, 0, 0]);
    }

    #[test]
    fn pages_fill_slot_by_slot_are_padded_by_flush_and_end_in_a_summary() {
        let mut rules = rules(2, 4, 3, 2);
        rules.geometry.summary_page = true;
        rules.stripe = vec![1, 0];
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &[10]);
        ftl.read(10); // still in RAM
        ftl.read(99); // unmapped
        assert_eq!(ftl.take_ops(), vec![]);
        write_all(&mut ftl, &[11, 10]);
        ftl.read(10); // the new unit is in RAM again
        ftl.flush();
        ftl.flush(); // nothing left to pad
        ftl.read(10);
        write_all(&mut ftl, &[12, 13]);
        let expected = vec![
            program(4, 0, Cause::Host, &[Some(10), Some(11)]),
            program(0, 0, Cause::Host, &[Some(10), None]),
            host_read(0, 0),
            program(4, 1, Cause::Host, &[Some(12), Some(13)]),
            Op::Summary { block: 4, page: 2 },
        ];
        assert_eq!(ftl.take_ops(), expected);
        assert_eq!(ftl.totals().padding_slots, 1);
    }

    /// Four blocks of four pages of two units: block 0 holds 0, 1 and 4, block 1 holds 15, block
    /// 2 is full and valid, block 3 is free, nothing is open.
    fn two_sparse_blocks(streams: Streams) -> PageFtl {
        let mut rules = rules(1, 4, 4, 2);
        rules.streams = streams;
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &(0..16).collect::<Vec<_>>());
        (8..15).for_each(|lpn| ftl.trim(lpn));
        write_all(&mut ftl, &[2, 3, 5, 6, 7, 20, 21, 22]);
        ftl.take_ops();
        ftl
    }

    #[test]
    fn a_victim_page_is_read_once_and_the_last_gc_page_is_padded() {
        let mut ftl = two_sparse_blocks(Streams::Separate);
        write_all(&mut ftl, &[23, 24]);
        let expected = vec![
            gc_read(1, 3),
            program(3, 0, Cause::Gc, &[Some(15), None]),
            erase(1),
            gc_read(0, 0),
            program(3, 1, Cause::Gc, &[Some(0), Some(1)]),
            gc_read(0, 2),
            program(3, 2, Cause::Gc, &[Some(4), None]),
            erase(0),
            program(1, 0, Cause::Host, &[Some(23), Some(24)]),
        ];
        assert_eq!(ftl.take_ops(), expected);
    }

    #[test]
    fn shared_streams_append_relocated_units_to_the_host_block() {
        let mut ftl = two_sparse_blocks(Streams::Shared);
        write_all(&mut ftl, &[23, 24]);
        let ops = ftl.take_ops();
        assert_eq!(
            ops[7..],
            [erase(0), program(3, 3, Cause::Host, &[Some(23), Some(24)])]
        );
    }

    #[test]
    fn shared_streams_mix_host_and_relocated_units_in_a_page() {
        let mut rules = rules(1, 4, 4, 2);
        rules.streams = Streams::Shared;
        rules.check = Check::Dispatch { reads: true };
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &(0..19).collect::<Vec<_>>());
        (8..15).for_each(|lpn| ftl.trim(lpn));
        ftl.take_ops();
        ftl.read(0);
        let slots = vec![Some((18, Cause::Host)), Some((15, Cause::Gc))];
        let mixed = Op::Program {
            block: 2,
            page: 1,
            slots,
        };
        assert_eq!(
            ftl.take_ops(),
            vec![gc_read(1, 3), mixed, erase(1), host_read(0, 0)]
        );
        ftl.check();
    }

    #[test]
    fn relocated_units_do_not_move_the_cursor() {
        let mut rules = rules(1, 4, 4, 2);
        rules.geometry.planes_per_die = 2;
        rules.stripe = vec![0, 1];
        rules.streams = Streams::Shared;
        rules.check = Check::Dispatch { reads: true };
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &(0..33).collect::<Vec<_>>());
        [16, 17, 20, 21, 24, 25, 28]
            .into_iter()
            .for_each(|lpn| ftl.trim(lpn));
        ftl.take_ops();
        // Collection completes the page that 32 began; the next host page is on write frontier 0 all the same.
        ftl.read(0);
        write_all(&mut ftl, &[33, 34, 35, 36]);
        let slots = vec![Some((32, Cause::Host)), Some((29, Cause::Gc))];
        let mixed = Op::Program {
            block: 2,
            page: 0,
            slots,
        };
        let expected = vec![
            gc_read(1, 3),
            mixed,
            erase(1),
            host_read(0, 0),
            program(2, 1, Cause::Host, &[Some(33), Some(34)]),
            program(6, 0, Cause::Host, &[Some(35), Some(36)]),
        ];
        assert_eq!(ftl.take_ops(), expected);
    }

    #[test]
    fn a_block_sealed_by_a_write_is_older_than_the_block_that_the_write_invalidates() {
        let mut rules = rules(1, 4, 2, 1);
        (rules.low, rules.high) = (2, 2);
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &[2, 3, 0]);
        ftl.trim(0);
        write_all(&mut ftl, &[2]); // seals block 1 with one valid unit and leaves block 0 one
        ftl.take_ops();
        write_all(&mut ftl, &[5]);
        let expected = vec![
            gc_read(1, 1),
            gc(2, 0, 2),
            erase(1),
            gc_read(0, 1),
            gc(2, 1, 3),
            erase(0),
            host(3, 0, 5),
        ];
        assert_eq!(ftl.take_ops(), expected);
    }

    #[test]
    fn a_block_sealed_by_padding_takes_its_age_from_the_sealing() {
        let mut rules = rules(1, 4, 2, 2);
        (rules.low, rules.high) = (2, 2);
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &[0, 1, 2, 3, 4, 5, 6]);
        [4, 0, 1].into_iter().for_each(|lpn| ftl.trim(lpn)); // two valid units in either block
        ftl.flush(); // seals block 1
        ftl.take_ops();
        write_all(&mut ftl, &[9]);
        let expected = vec![
            gc_read(0, 1),
            program(2, 0, Cause::Gc, &[Some(2), Some(3)]),
            erase(0),
            gc_read(1, 0),
            gc_read(1, 1),
            program(2, 1, Cause::Gc, &[Some(5), Some(6)]),
            erase(1),
        ];
        assert_eq!(ftl.take_ops(), expected);
    }

    #[test]
    fn collection_starts_at_the_low_watermark_and_ends_above_the_high_one() {
        let mut rules = rules(1, 5, 2, 1);
        (rules.low, rules.high) = (1, 2);
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &(0..8).collect::<Vec<_>>());
        (0..6).for_each(|lpn| ftl.trim(lpn));
        ftl.take_ops();
        write_all(&mut ftl, &[8]);
        assert_eq!(ftl.take_ops(), vec![erase(0), erase(1), host(4, 0, 8)]);
    }

    #[test]
    fn collection_stays_in_the_victims_plane_while_that_has_room() {
        let mut rules = rules(1, 3, 2, 1);
        rules.geometry.planes_per_die = 2;
        rules.stripe = vec![0, 1];
        rules.pools = PoolScope::Die;
        (rules.low, rules.high) = (4, 4);
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &[0, 1, 2, 3]);
        ftl.trim(0);
        ftl.take_ops();
        write_all(&mut ftl, &[4]);
        let expected = vec![gc_read(0, 1), gc(1, 0, 2), erase(0), host(2, 0, 4)];
        assert_eq!(ftl.take_ops(), expected);
    }

    #[test]
    fn collection_goes_to_the_next_plane_of_the_pool_when_its_own_has_no_room() {
        let mut rules = rules(3, 2, 2, 1);
        rules.pools = PoolScope::Device;
        rules.stripe = vec![2, 0, 1];
        (rules.low, rules.high) = (2, 2);
        let mut ftl = PageFtl::new(rules).unwrap();
        // Block 4 holds 0 and 3, block 0 holds 1 and 4, block 2 holds 2 and 5, block 5 is open.
        write_all(&mut ftl, &[0, 1, 2, 3, 4, 5, 6]);
        ftl.trim(3);
        ftl.take_ops();
        assert_eq!(ftl.free_blocks(0), 2);
        // Plane 0 must open a block, so block 4 is collected. Plane 2 has no room for its unit, and
        // plane 0 gives its last block, so that the write passes on to plane 1.
        write_all(&mut ftl, &[7]);
        let expected = vec![gc_read(4, 0), gc(1, 0, 0), erase(4), host(3, 0, 7)];
        assert_eq!(ftl.take_ops(), expected);
    }

    /// With a candidate for every invalid slot the device would be half full and still every victim
    /// rewritten at its full length, because each leaves padding behind.
    #[test]
    fn padding_alone_does_not_make_a_candidate() {
        let mut ftl = PageFtl::new(rules(1, 4, 2, 2)).unwrap();
        write_all(&mut ftl, &[0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 4]);
        ftl.check();
        assert!(ftl.write(8).is_err());
    }

    /// A pool wider than a die has free blocks, so nothing is collected, but static
    /// placement cannot use those of the other die.
    #[test]
    fn static_placement_can_find_its_die_full_in_a_wider_pool_with_room() {
        let mut rules = rules(2, 4, 1, 1);
        rules.placement = Placement::Static;
        rules.pools = PoolScope::Device;
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &[1, 1, 1, 1]);
        assert_eq!(
            ftl.write(1),
            Err(OracleError::DeviceFull { lpn: 1, group: 1 })
        );
        assert_eq!(ftl.free_blocks(0), 4);
    }

    /// Else collection could be left without a destination.
    #[test]
    fn the_host_leaves_the_last_free_block_to_collection_with_shared_streams_too() {
        let mut rules = rules(1, 2, 2, 1);
        rules.streams = Streams::Shared;
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &[0, 1]);
        assert!(ftl.write(0).is_err());
        ftl.check();
    }

    #[test]
    fn static_placement_keeps_a_page_on_its_die() {
        let mut rules = rules(2, 4, 2, 1);
        rules.geometry.planes_per_die = 2;
        rules.stripe = vec![2, 1, 3, 0];
        rules.placement = Placement::Static;
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &[0, 2, 4, 1, 3]);
        // Group 0 is die 1 (planes 2, 3), group 1 is die 0 (planes 1, 0).
        let expected = vec![
            host(8, 0, 0),
            host(12, 0, 2),
            host(8, 1, 4),
            host(4, 0, 1),
            host(0, 0, 3),
        ];
        assert_eq!(ftl.take_ops(), expected);
    }

    #[test]
    fn a_frontier_without_blocks_is_passed_over_until_none_is_left() {
        let mut rules = rules(2, 2, 1, 1);
        rules.low = 0;
        rules.high = 0;
        let mut ftl = PageFtl::new(rules).unwrap();
        // Each plane keeps one of its two blocks for collection.
        write_all(&mut ftl, &[0, 1]);
        assert_eq!(
            ftl.write(2),
            Err(OracleError::DeviceFull { lpn: 2, group: 0 })
        );
        ftl.check();
        // An invalid unit does not help: collection starts only at the low watermark, 0.
        ftl.trim(1);
        assert!(ftl.write(2).is_err());
        assert_eq!(ftl.take_ops(), vec![host(0, 0, 0), host(2, 0, 1)]);
    }

    #[test]
    fn a_full_frontier_gives_its_turn_to_the_next() {
        let mut rules = rules(2, 3, 1, 1);
        rules.pools = PoolScope::Plane;
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &[0, 1, 2, 3]);
        ftl.trim(1);
        ftl.take_ops();
        // Write frontier 0 has one free block and no victim; write frontier 1's collection erases the trimmed block.
        write_all(&mut ftl, &[4]);
        assert_eq!(ftl.take_ops(), vec![erase(3), host(5, 0, 4)]);
    }

    #[test]
    fn dispatch_checks_collect_before_writes_and_reads_that_reach_the_die() {
        let mut rules = rules(1, 4, 2, 1);
        rules.check = Check::Dispatch { reads: true };
        rules.high = 1;
        let mut ftl = PageFtl::new(rules).unwrap();
        write_all(&mut ftl, &[0, 1, 2, 3, 0]);
        assert_eq!(ftl.free_blocks(0), 1);
        ftl.take_ops();
        // Checking at allocation would not collect here: block 2 is open.
        ftl.read(0);
        assert_eq!(
            ftl.take_ops(),
            vec![gc_read(0, 1), gc(3, 0, 1), erase(0), host_read(2, 0)]
        );
        ftl.check();
        ftl.trim(3);
        ftl.read(2); // collected away from block 1 and read where it is now
        assert_eq!(
            ftl.take_ops(),
            vec![gc_read(1, 0), gc(3, 1, 2), erase(1), host_read(3, 1)]
        );
        ftl.check();
    }

    #[test]
    fn preconditioning_leaves_no_trace_but_the_mapping() {
        let mut ftl = PageFtl::new(rules(1, 4, 2, 1)).unwrap();
        ftl.fill(0..4).unwrap();
        assert_eq!(ftl.take_ops(), vec![]);
        assert_eq!(ftl.totals().host_units + ftl.totals().page_programs, 0);
        ftl.read(3);
        assert_eq!(ftl.take_ops(), vec![host_read(1, 1)]);
        ftl.check();
    }
}
