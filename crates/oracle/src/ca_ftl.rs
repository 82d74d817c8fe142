//! A naive CA-SSD on the same flash rules as [`crate::page_ftl`]: one valid unit per distinct
//! value, as far as the index remembers it.
//!
//! The tables are those of the paper: LPT (logical page -> unit), iLPT (unit -> its logical
//! pages), HPT and iHPT (the [`Index`]). Contents are value numbers; the caller's function gives
//! their fingerprints, so that collisions can be forced.
//!
//! Order within a write: the index is asked first, and a hit allocates, collects and checks
//! nothing. A miss places the new unit (which may collect), inserts it into the index (evicting
//! first when full), then adds the logical page to the new unit, and only then looks up the old
//! unit and releases it.

use std::collections::{BTreeMap, BTreeSet};

use crate::OracleError;
use crate::blocks::{Blocks, Owner};
use crate::index::Index;
use crate::ops::{Op, ReadCause, Totals};
use crate::rules::Rules;

/// What is not a matter of flash.
pub struct CaOptions {
    /// Entries of the index; `None` is unlimited.
    pub index_entries: Option<usize>,
    pub fingerprint: Box<dyn Fn(u32) -> u64>,
    /// Whether a hit is compared with the stored content before it is shared.
    pub verify: bool,
}

impl CaOptions {
    /// Fingerprints without collisions, no verification.
    pub fn exact(index_entries: Option<usize>) -> CaOptions {
        let fingerprint = Box::new(|value: u32| u64::from(value));
        CaOptions {
            index_entries,
            fingerprint,
            verify: false,
        }
    }
}

/// What a write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A hit on the unit that the logical page already maps to: nothing changed.
    Silent,
    /// A hit on another unit, now shared.
    Shared,
    /// Programmed; the value had never been programmed.
    Unique,
    /// Programmed although a valid unit holds the value.
    Duplicate,
    /// Programmed; the value had been programmed before, but no valid unit holds it.
    Reborn,
}

/// Totals over the writes. Preconditioning is not counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaTotals {
    /// Writes that found their value, silent ones included.
    pub hits: u64,
    /// Writes that programmed: the sum of unique, duplicate and reborn.
    pub misses: u64,
    /// Hits on the unit that the logical page already maps to.
    pub silent: u64,
    /// Index entries evicted for a new one.
    pub evictions: u64,
    /// Misses whose value had never been programmed.
    pub unique: u64,
    /// Misses whose value a valid unit holds.
    pub duplicate: u64,
    /// Misses whose value was programmed before but is held by no valid unit.
    pub reborn: u64,
    /// Hits on a unit of different content, which only happen without verification.
    pub corrupted: u64,
    /// Suspected duplicates that verification refuted.
    pub mismatches: u64,
}

pub struct CaFtl {
    blocks: Blocks<u32>,
    tables: Tables,
    fingerprint: Box<dyn Fn(u32) -> u64>,
    verify: bool,
    history: History,
    totals: CaTotals,
}

struct Tables {
    lpt: BTreeMap<u64, u64>,
    ilpt: BTreeMap<u64, BTreeSet<u64>>,
    index: Index,
}

impl Owner<u32> for Tables {
    fn moved(&mut self, _value: u32, from: u64, to: u64) {
        let lpns = self
            .ilpt
            .remove(&from)
            .expect("a valid unit has logical pages");
        for lpn in &lpns {
            self.lpt.insert(*lpn, to);
        }
        self.ilpt.insert(to, lpns);
        self.index.relocate(from, to);
    }
}

/// The observer that tells unique, duplicate and reborn programs apart.
#[derive(Default)]
struct History {
    programmed: BTreeSet<u32>,
    /// Valid units of each value that has any.
    valid: BTreeMap<u32, usize>,
}

impl History {
    fn program(&mut self, value: u32) -> Outcome {
        let new = self.programmed.insert(value);
        let valid = self.valid.entry(value).or_insert(0);
        *valid += 1;
        match (new, *valid) {
            (true, _) => Outcome::Unique,
            (false, 1) => Outcome::Reborn,
            (false, _) => Outcome::Duplicate,
        }
    }

    fn die(&mut self, value: u32) {
        let valid = self
            .valid
            .get_mut(&value)
            .expect("a valid unit was counted");
        *valid -= 1;
        if *valid == 0 {
            self.valid.remove(&value);
        }
    }
}

impl CaFtl {
    /// An empty device.
    ///
    /// # Errors
    /// [`OracleError::Rules`] if the rules contradict themselves.
    pub fn new(rules: Rules, options: CaOptions) -> Result<CaFtl, OracleError> {
        Ok(CaFtl {
            blocks: Blocks::new(rules)?,
            tables: Tables {
                lpt: BTreeMap::new(),
                ilpt: BTreeMap::new(),
                index: Index::new(options.index_entries),
            },
            fingerprint: options.fingerprint,
            verify: options.verify,
            history: History::default(),
            totals: CaTotals::default(),
        })
    }

    /// Writes a value to a logical page.
    ///
    /// # Errors
    /// [`OracleError::DeviceFull`] if no write frontier can take the unit; the old content stays mapped.
    ///
    /// # Panics
    /// If collection finds no destination or never gains a page: the rules are at fault.
    pub fn write(&mut self, lpn: u64, value: u32) -> Result<Outcome, OracleError> {
        let fingerprint = (self.fingerprint)(value);
        match self.lookup(fingerprint, value) {
            Some(ppn) => Ok(self.write_hit(lpn, value, fingerprint, ppn)),
            None => self.write_miss(lpn, value, fingerprint),
        }
    }

    /// The unit that a write of the value would share. Verification reads the candidate.
    fn lookup(&mut self, fingerprint: u64, value: u32) -> Option<u64> {
        let ppn = self.tables.index.get(fingerprint)?;
        if self.verify {
            self.blocks.emit_read(ppn, ReadCause::Verify);
            if self.blocks.unit(ppn) != Some(value) {
                self.totals.mismatches += 1;
                return None;
            }
        }
        Some(ppn)
    }

    fn write_hit(&mut self, lpn: u64, value: u32, fingerprint: u64, ppn: u64) -> Outcome {
        self.totals.hits += 1;
        if self.blocks.unit(ppn) != Some(value) {
            self.totals.corrupted += 1;
        }
        self.tables.index.move_to_head(fingerprint);
        if self.tables.lpt.get(&lpn) == Some(&ppn) {
            self.totals.silent += 1;
            return Outcome::Silent;
        }
        self.map(lpn, ppn);
        Outcome::Shared
    }

    fn write_miss(
        &mut self,
        lpn: u64,
        value: u32,
        fingerprint: u64,
    ) -> Result<Outcome, OracleError> {
        let ppn = self.blocks.place(lpn, value, &mut self.tables)?;
        let outcome = self.history.program(value);
        self.totals.misses += 1;
        match outcome {
            Outcome::Unique => self.totals.unique += 1,
            Outcome::Duplicate => self.totals.duplicate += 1,
            _ => self.totals.reborn += 1,
        }
        if self.tables.index.insert(fingerprint, ppn) {
            self.totals.evictions += 1;
        }
        self.map(lpn, ppn);
        Ok(outcome)
    }

    /// Maps a logical page to a unit other than its present one; adds before it releases.
    fn map(&mut self, lpn: u64, ppn: u64) {
        let old = self.tables.lpt.insert(lpn, ppn);
        self.tables.ilpt.entry(ppn).or_default().insert(lpn);
        if let Some(old) = old {
            self.release(lpn, old);
        }
    }

    /// Takes a logical page off a unit's list and invalidates the unit with its last one.
    fn release(&mut self, lpn: u64, ppn: u64) {
        let lpns = self
            .tables
            .ilpt
            .get_mut(&ppn)
            .expect("a mapped unit has logical pages");
        lpns.remove(&lpn);
        if lpns.is_empty() {
            self.tables.ilpt.remove(&ppn);
            self.tables.index.forget_page(ppn);
            self.history
                .die(self.blocks.unit(ppn).expect("a valid slot holds a unit"));
            self.blocks.invalidate(ppn);
        }
    }

    /// Reads a logical page: its content on flash (or in RAM), and one flash read if its page is
    /// programmed. `None` if it is unmapped.
    pub fn read(&mut self, lpn: u64) -> Option<u32> {
        self.blocks
            .host_read(&mut self.tables, |tables| tables.lpt.get(&lpn).copied());
        self.blocks.unit(self.location(lpn)?)
    }

    /// Unmaps a logical page. A shared unit survives.
    pub fn trim(&mut self, lpn: u64) {
        if let Some(old) = self.tables.lpt.remove(&lpn) {
            self.release(lpn, old);
        }
    }

    /// Pads and programs all partly filled host pages.
    pub fn flush(&mut self) {
        self.blocks.flush();
    }

    /// Preconditions: programs each value for its logical page, in the order given, past the index
    /// and neither recorded nor counted. For the split into unique, duplicate and reborn such a
    /// value has been programmed, and is held while its unit is valid.
    ///
    /// # Errors
    /// [`OracleError::DeviceFull`]; the pages before the failing one stay written.
    pub fn fill(&mut self, pages: impl IntoIterator<Item = (u64, u32)>) -> Result<(), OracleError> {
        let totals = self.blocks.begin_fill();
        let result = pages.into_iter().try_for_each(|(lpn, value)| {
            let ppn = self.blocks.place(lpn, value, &mut self.tables)?;
            self.history.program(value);
            self.map(lpn, ppn);
            Ok(())
        });
        self.blocks.end_fill(totals);
        result
    }

    /// The operations since the last call; a unit is named by its value.
    pub fn take_ops(&mut self) -> Vec<Op<u32>> {
        self.blocks.take_ops()
    }

    /// Totals over the flash operations, without preconditioning.
    pub fn flash_totals(&self) -> &Totals {
        &self.blocks.totals
    }

    /// Totals over the writes, without preconditioning.
    pub fn totals(&self) -> &CaTotals {
        &self.totals
    }

    /// The unit address of a logical page.
    pub fn location(&self, lpn: u64) -> Option<u64> {
        self.tables.lpt.get(&lpn).copied()
    }

    /// What a unit address holds, valid or not; `None` for padding and unwritten slots.
    pub fn content(&self, ppn: u64) -> Option<u32> {
        self.blocks.unit(ppn)
    }

    /// LPT: logical page -> unit address.
    pub fn lpt(&self) -> &BTreeMap<u64, u64> {
        &self.tables.lpt
    }

    /// iLPT: unit address -> the logical pages that share it.
    pub fn ilpt(&self) -> &BTreeMap<u64, BTreeSet<u64>> {
        &self.tables.ilpt
    }

    /// HPT and iHPT.
    pub fn index(&self) -> &Index {
        &self.tables.index
    }

    /// Erased, unopened blocks of a pool.
    pub fn free_blocks(&self, pool: usize) -> usize {
        self.blocks.free_blocks(pool)
    }

    /// Share of the sealed blocks' slots that hold valid units; `None` while none is sealed.
    pub fn sealed_utilisation(&self) -> Option<f64> {
        self.blocks.sealed_utilisation()
    }

    /// Recounts the invariants 1, 2, 3, 5 and 6 of CA-SSD and those of the flash from scratch.
    ///
    /// # Panics
    /// On the first contradiction, naming it.
    pub fn check(&self) {
        self.blocks.check();
        self.tables.index.check();
        let mut inverse: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (&lpn, &ppn) in &self.tables.lpt {
            inverse.entry(ppn).or_default().insert(lpn);
        }
        assert_eq!(self.tables.ilpt, inverse, "LPT and iLPT are not inverse");
        let valid: BTreeMap<u64, u32> = self.blocks.valid_units().into_iter().collect();
        assert!(
            valid.keys().eq(inverse.keys()),
            "a unit is valid iff its list is not empty"
        );
        for (fingerprint, ppn) in self.tables.index.head_to_tail() {
            let hashed = valid.get(&ppn).map(|&value| (self.fingerprint)(value));
            assert_eq!(hashed, Some(fingerprint), "HPT entry of unit {ppn}");
        }
        let mut held: BTreeMap<u32, usize> = BTreeMap::new();
        for &value in valid.values() {
            *held.entry(value).or_insert(0) += 1;
        }
        assert_eq!(self.history.valid, held, "valid units of each value");
        let t = &self.totals;
        assert_eq!(
            t.misses,
            t.unique + t.duplicate + t.reborn,
            "misses by class"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Cause;
    use crate::rules::{Check, Geometry};

    fn rules(blocks: usize, pages: usize, units: usize) -> Rules {
        Rules::new(Geometry {
            dies: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block: pages,
            units_per_page: units,
            summary_page: false,
        })
    }

    fn options(index_entries: Option<usize>, buckets: u64, verify: bool) -> CaOptions {
        let fingerprint = Box::new(move |value: u32| u64::from(value) % buckets);
        CaOptions {
            index_entries,
            fingerprint,
            verify,
        }
    }

    fn write_all(ftl: &mut CaFtl, writes: &[(u64, u32)]) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for &(lpn, value) in writes {
            outcomes.push(ftl.write(lpn, value).unwrap());
            ftl.check();
        }
        outcomes
    }

    fn program(block: usize, page: usize, value: u32, cause: Cause) -> Op<u32> {
        Op::Program {
            block,
            page,
            slots: vec![Some((value, cause))],
        }
    }

    #[test]
    fn figure_5b() {
        let mut ftl = CaFtl::new(rules(4, 8, 1), CaOptions::exact(None)).unwrap();
        write_all(&mut ftl, &[(1, 1), (2, 2)]);
        assert_eq!(ftl.lpt(), &BTreeMap::from([(1, 0), (2, 1)]));
        ftl.take_ops();
        assert_eq!(write_all(&mut ftl, &[(3, 3)]), vec![Outcome::Unique]);
        assert_eq!(ftl.lpt(), &BTreeMap::from([(1, 0), (2, 1), (3, 2)]));
        assert_eq!(ftl.index().head_to_tail(), vec![(3, 2), (2, 1), (1, 0)]);
        assert_eq!(write_all(&mut ftl, &[(2, 1)]), vec![Outcome::Shared]);
        assert_eq!(ftl.lpt(), &BTreeMap::from([(1, 0), (2, 0), (3, 2)]));
        let lists = [(0, BTreeSet::from([1, 2])), (2, BTreeSet::from([3]))];
        assert_eq!(ftl.ilpt(), &BTreeMap::from(lists));
        assert_eq!(ftl.index().head_to_tail(), vec![(1, 0), (3, 2)]);
        assert_eq!(ftl.take_ops(), vec![program(0, 2, 3, Cause::Host)]);
    }

    #[test]
    fn every_outcome_in_turn() {
        let mut ftl = CaFtl::new(rules(4, 8, 1), CaOptions::exact(Some(1))).unwrap();
        let outcomes = write_all(&mut ftl, &[(1, 1), (1, 1), (2, 1), (3, 2), (4, 1)]);
        use Outcome::*;
        assert_eq!(outcomes, vec![Unique, Silent, Shared, Unique, Duplicate]);
        // The older unit of value 1 dies; the newer keeps the entry.
        ftl.trim(1);
        ftl.trim(2);
        ftl.check();
        assert_eq!(write_all(&mut ftl, &[(5, 1)]), vec![Shared]);
        ftl.trim(4);
        ftl.trim(5);
        ftl.check();
        assert!(ftl.index().is_empty());
        assert_eq!(write_all(&mut ftl, &[(1, 1)]), vec![Reborn]);
        let expected = CaTotals {
            hits: 3,
            misses: 4,
            silent: 1,
            evictions: 2,
            unique: 2,
            duplicate: 1,
            reborn: 1,
            ..CaTotals::default()
        };
        assert_eq!(ftl.totals(), &expected);
        let content: Vec<_> = (1..6).map(|lpn| ftl.read(lpn)).collect();
        assert_eq!(content, vec![Some(1), None, Some(2), None, None]);
    }

    #[test]
    fn collection_moves_shared_units_once_and_patches_every_table() {
        let mut ftl = CaFtl::new(rules(4, 2, 1), CaOptions::exact(None)).unwrap();
        write_all(
            &mut ftl,
            &[
                (0, 10),
                (1, 11),
                (9, 10),
                (2, 12),
                (3, 13),
                (1, 14),
                (4, 15),
            ],
        );
        ftl.trim(2);
        ftl.take_ops();
        // Free: block 3. Block 0 holds value 10 for the pages 0 and 9, at the tail of the index;
        // block 1 holds value 13.
        let hashes = |ftl: &CaFtl| -> Vec<u64> {
            ftl.index()
                .head_to_tail()
                .iter()
                .map(|entry| entry.0)
                .collect()
        };
        let before = hashes(&ftl);
        assert_eq!(before, vec![15, 14, 13, 10]);
        write_all(&mut ftl, &[(5, 16)]);
        let read = |block, page| Op::Read {
            block,
            page,
            cause: ReadCause::Gc,
        };
        let expected = vec![
            read(0, 0),
            program(3, 0, 10, Cause::Gc),
            Op::Erase { block: 0 },
            read(1, 1),
            program(3, 1, 13, Cause::Gc),
            Op::Erase { block: 1 },
            program(0, 0, 16, Cause::Host),
        ];
        assert_eq!(ftl.take_ops(), expected);
        assert_eq!(
            (ftl.location(0), ftl.location(9), ftl.location(3)),
            (Some(6), Some(6), Some(7))
        );
        assert_eq!(hashes(&ftl), [vec![16], before].concat());
    }

    #[test]
    fn a_hit_collects_nothing_even_when_every_dispatch_checks() {
        let mut rules = rules(4, 2, 1);
        rules.check = Check::Dispatch { reads: true };
        let mut ftl = CaFtl::new(rules, options(None, 256, true)).unwrap();
        write_all(&mut ftl, &[(0, 10), (1, 11), (2, 12), (3, 13), (4, 14)]);
        ftl.trim(0);
        assert_eq!(ftl.free_blocks(0), 1);
        ftl.take_ops();
        write_all(&mut ftl, &[(5, 11)]);
        let verify = Op::Read {
            block: 0,
            page: 1,
            cause: ReadCause::Verify,
        };
        assert_eq!(ftl.take_ops(), vec![verify]);
        ftl.read(5);
        assert_eq!(
            ftl.take_ops().len(),
            4,
            "collection (read, program, erase), then the read"
        );
    }

    #[test]
    fn verification_refutes_a_collision_and_the_newer_unit_takes_the_entry_over() {
        let mut ftl = CaFtl::new(rules(4, 8, 1), options(Some(1), 10, true)).unwrap();
        let outcomes = write_all(&mut ftl, &[(1, 5), (2, 15), (3, 15), (4, 5)]);
        use Outcome::*;
        assert_eq!(outcomes, vec![Unique, Unique, Shared, Duplicate]);
        assert_eq!(ftl.index().head_to_tail(), vec![(5, 2)]);
        let t = ftl.totals();
        assert_eq!((t.mismatches, t.evictions, t.corrupted), (2, 0, 0));
        assert_eq!(ftl.flash_totals().verify_reads, 3);
        assert_eq!(
            (1..5).map(|lpn| ftl.read(lpn)).collect::<Vec<_>>(),
            [5, 15, 15, 5].map(Some)
        );
    }

    #[test]
    fn without_verification_a_collision_corrupts_and_is_counted() {
        let mut ftl = CaFtl::new(rules(4, 8, 1), options(None, 10, false)).unwrap();
        let outcomes = write_all(&mut ftl, &[(1, 5), (2, 15)]);
        assert_eq!(outcomes, vec![Outcome::Unique, Outcome::Shared]);
        assert_eq!(ftl.read(2), Some(5));
        assert_eq!(ftl.totals().corrupted, 1);
    }

    #[test]
    fn verifying_against_a_unit_in_ram_reads_no_flash() {
        let mut ftl = CaFtl::new(rules(4, 8, 2), options(None, 256, true)).unwrap();
        write_all(&mut ftl, &[(1, 5), (2, 5)]);
        assert_eq!((ftl.read(2), ftl.take_ops()), (Some(5), vec![]));
    }

    #[test]
    fn preconditioning_passes_the_index_by() {
        let mut ftl = CaFtl::new(rules(4, 8, 1), CaOptions::exact(None)).unwrap();
        ftl.fill([(1, 1), (2, 2)]).unwrap();
        ftl.check();
        assert!(ftl.index().is_empty() && ftl.take_ops().is_empty());
        assert_eq!(ftl.totals(), &CaTotals::default());
        assert_eq!(write_all(&mut ftl, &[(3, 1)]), vec![Outcome::Duplicate]);
    }
}
