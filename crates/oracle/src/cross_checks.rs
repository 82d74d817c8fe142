//! Checks of the models against each other and against the rules of flash (tests only).

use std::collections::BTreeMap;

use crate::ca_ftl::{CaFtl, CaOptions};
use crate::counts::{DiskAccess, IndexCounts, programs_unlimited, with_lru_index};
use crate::curves;
use crate::ops::{Cause, Op};
use crate::page_ftl::PageFtl;
use crate::rules::{Check, Geometry, Placement, PoolScope, Rules, Streams};
use crate::testing::Random;

/// Rules drawn at random, with enough spare space that no collection is futile, and no pool wider
/// than a die under static placement (its free blocks may all be on another die).
fn random_rules(random: &mut Random) -> Rules {
    let mut pick = |choices: u64| random.below(choices);
    let mut rules = Rules::new(Geometry {
        dies: 1 + pick(3) as usize,
        planes_per_die: 1 + pick(2) as usize,
        blocks_per_plane: 16,
        pages_per_block: 6 + pick(4) as usize,
        units_per_page: 1 + pick(4) as usize,
        summary_page: pick(2) == 0,
    });
    rules.pools = [PoolScope::Plane, PoolScope::Die, PoolScope::Device][pick(3) as usize];
    rules.streams = [Streams::Separate, Streams::Shared][pick(2) as usize];
    rules.placement = [Placement::Dynamic, Placement::Static][pick(2) as usize];
    if (rules.placement, rules.pools) == (Placement::Static, PoolScope::Device) {
        rules.pools = PoolScope::Die;
    }
    let checks = [
        Check::Allocation,
        Check::Dispatch { reads: false },
        Check::Dispatch { reads: true },
    ];
    rules.check = checks[pick(3) as usize];
    let planes = rules.stripe.len();
    for i in (1..planes).rev() {
        rules.stripe.swap(i, pick(i as u64 + 1) as usize);
    }
    let planes_of_pool = match rules.pools {
        PoolScope::Plane => 1,
        PoolScope::Die => rules.geometry.planes_per_die,
        PoolScope::Device => planes,
    };
    rules.low = planes_of_pool + pick(2) as usize;
    rules.high = rules.low + pick(2) as usize;
    rules
}

/// Half of the raw units.
fn logical_pages(rules: &Rules) -> u64 {
    (rules.geometry.blocks() * rules.geometry.units_per_block() / 2) as u64
}

/// What is on the flash according to the operations alone, held against the rules of NAND: erase
/// first, program once and in order, read only what is programmed.
struct Nand<T> {
    geometry: Geometry,
    /// The programmed pages of each block; a summary page has no slots.
    blocks: Vec<Vec<Page<T>>>,
}

type Page<T> = Vec<Option<(T, Cause)>>;

impl<T: Copy> Nand<T> {
    fn new(geometry: Geometry) -> Nand<T> {
        Nand {
            geometry,
            blocks: vec![Vec::new(); geometry.blocks()],
        }
    }

    fn apply(&mut self, ops: Vec<Op<T>>) {
        for op in ops {
            match op {
                Op::Read { block, page, .. } => assert!(page < self.blocks[block].len()),
                Op::Program { block, page, slots } => {
                    assert_eq!(page, self.blocks[block].len(), "out of order");
                    assert!(page < self.geometry.data_pages());
                    assert_eq!(slots.len(), self.geometry.units_per_page);
                    assert!(slots[0].is_some(), "a page of padding only");
                    self.blocks[block].push(slots);
                }
                Op::Summary { block, page } => {
                    assert_eq!(
                        (page, page),
                        (self.blocks[block].len(), self.geometry.data_pages())
                    );
                    self.blocks[block].push(Vec::new());
                }
                Op::Erase { block } => {
                    assert_eq!(self.blocks[block].len(), self.geometry.pages_per_block);
                    self.blocks[block].clear();
                }
            }
        }
    }

    fn unit(&self, ppn: u64) -> Option<T> {
        let (block, index) = self.geometry.locate(ppn);
        let page = self.blocks[block].get(index / self.geometry.units_per_page)?;
        page[index % self.geometry.units_per_page].map(|(unit, _)| unit)
    }
}

#[test]
fn the_page_ftl_keeps_the_rules_of_flash_and_its_data_under_any_rules() {
    let mut random = Random(11);
    let mut victims = 0;
    for _ in 0..60 {
        let rules = random_rules(&mut random);
        let pages = logical_pages(&rules);
        let mut nand = Nand::new(rules.geometry);
        let mut ftl = PageFtl::new(rules.clone()).unwrap();
        let mut mapped = vec![false; pages as usize];
        for step in 0..10 * pages {
            let lpn = random.below(pages);
            match random.below(40) {
                0 => {
                    ftl.trim(lpn);
                    mapped[lpn as usize] = false;
                }
                1 => ftl.flush(),
                2..10 => ftl.read(lpn),
                _ => {
                    ftl.write(lpn)
                        .unwrap_or_else(|error| panic!("{error}: {rules:?}"));
                    mapped[lpn as usize] = true;
                }
            }
            if step % 97 == 0 {
                ftl.check();
            }
        }
        ftl.flush();
        ftl.check();
        nand.apply(ftl.take_ops());
        for lpn in 0..pages {
            let stored = ftl.location(lpn).and_then(|ppn| nand.unit(ppn));
            assert_eq!(stored, mapped[lpn as usize].then_some(lpn));
        }
        let totals = ftl.totals();
        assert_eq!(totals.gc_units, totals.moved_units);
        assert_eq!(totals.total_erases(), totals.victims);
        victims += totals.victims;
    }
    assert!(
        victims > 5000,
        "the rules were hardly tested: {victims} victims"
    );
}

/// Renames the units, so that sequences that name them differently compare.
fn renamed<T: Copy + Ord>(ops: Vec<Op<T>>, name: impl Fn(T) -> u64) -> Vec<Op<u64>> {
    let rename = |op| match op {
        Op::Read { block, page, cause } => Op::Read { block, page, cause },
        Op::Summary { block, page } => Op::Summary { block, page },
        Op::Erase { block } => Op::Erase { block },
        Op::Program { block, page, slots } => {
            let renamed = slots
                .iter()
                .map(|slot| slot.map(|(unit, cause)| (name(unit), cause)));
            Op::Program {
                block,
                page,
                slots: renamed.collect(),
            }
        }
    };
    ops.into_iter().map(rename).collect()
}

#[test]
fn without_equal_contents_ca_ssd_is_the_page_ftl() {
    let mut random = Random(12);
    for _ in 0..20 {
        let rules = random_rules(&mut random);
        let pages = logical_pages(&rules);
        let mut plain = PageFtl::new(rules.clone()).unwrap();
        let mut aware = CaFtl::new(rules, CaOptions::exact(Some(50))).unwrap();
        let mut lpn_of_value = Vec::new();
        for _ in 0..3 * pages {
            let lpn = random.below(pages);
            match random.below(20) {
                0 => {
                    plain.trim(lpn);
                    aware.trim(lpn);
                }
                1 => {
                    plain.flush();
                    aware.flush();
                }
                2..5 => {
                    plain.read(lpn);
                    aware.read(lpn);
                }
                _ => {
                    plain.write(lpn).unwrap();
                    aware.write(lpn, lpn_of_value.len() as u32).unwrap();
                    lpn_of_value.push(lpn);
                }
            }
        }
        let aware = renamed(aware.take_ops(), |value| lpn_of_value[value as usize]);
        assert_eq!(renamed(plain.take_ops(), |lpn| lpn), aware);
    }
}

/// A random sequence with skewed values, so that hits, evictions and deaths all occur.
fn accesses(random: &mut Random, pages: u64, length: u64) -> Vec<DiskAccess<u32>> {
    let mut access = || {
        let lpn = random.below(pages);
        if random.below(15) == 0 {
            return DiskAccess::Trim { lpn };
        }
        let bound = 1 + random.below(2 * pages);
        DiskAccess::Write {
            lpn,
            value: random.below(bound) as u32,
        }
    };
    (0..length).map(|_| access()).collect()
}

#[test]
fn ca_ssd_programs_what_the_counts_say_with_and_without_collection() {
    let mut random = Random(13);
    for entries in [None, Some(0), Some(1), Some(7), Some(64), None, Some(30)] {
        let rules = random_rules(&mut random);
        let pages = logical_pages(&rules);
        let sequence = accesses(&mut random, pages, 4 * pages);
        let mut ftl = CaFtl::new(rules, CaOptions::exact(entries)).unwrap();
        for access in &sequence {
            match *access {
                DiskAccess::Write { lpn, value } => _ = ftl.write(lpn, value).unwrap(),
                DiskAccess::Trim { lpn } => ftl.trim(lpn),
            }
        }
        ftl.check();
        ftl.flush();
        let t = ftl.totals();
        let counted = with_lru_index(sequence.iter().copied(), entries.unwrap_or(usize::MAX));
        let modelled = IndexCounts {
            programs: t.misses,
            hits: t.hits,
            silent: t.silent,
            evictions: t.evictions,
            unique: t.unique,
            duplicate: t.duplicate,
            reborn: t.reborn,
        };
        assert_eq!(modelled, counted, "index of {entries:?}");
        assert_eq!(ftl.flash_totals().host_units, t.misses);
        if entries.is_none() {
            assert_eq!(t.misses, programs_unlimited(sequence));
            assert_eq!(t.duplicate, 0);
            let mut held: Vec<Option<u32>> =
                ftl.ilpt().keys().map(|ppn| ftl.content(*ppn)).collect();
            let units = held.len();
            held.sort_unstable();
            held.dedup();
            assert_eq!(held.len(), units, "two valid units of equal content");
        }
    }
}

#[test]
fn ca_ssd_keeps_its_data_under_collisions_eviction_trim_and_collection() {
    let mut random = Random(14);
    let (mut mismatches, mut victims) = (0, 0);
    for round in 0..30 {
        let rules = random_rules(&mut random);
        let pages = logical_pages(&rules);
        let options = CaOptions {
            index_entries: [None, Some(20)][round % 2],
            fingerprint: Box::new(|value| u64::from(value.wrapping_mul(0x9e37_79b1) >> 24)),
            verify: true,
        };
        let mut nand = Nand::new(rules.geometry);
        let mut ftl = CaFtl::new(rules, options).unwrap();
        let mut disk = BTreeMap::new();
        for (step, access) in accesses(&mut random, pages, 4 * pages)
            .into_iter()
            .enumerate()
        {
            match access {
                DiskAccess::Write { lpn, value } => {
                    ftl.write(lpn, value).unwrap();
                    disk.insert(lpn, value);
                }
                DiskAccess::Trim { lpn } => {
                    ftl.trim(lpn);
                    disk.remove(&lpn);
                }
            }
            let lpn = random.below(pages);
            assert_eq!(ftl.read(lpn), disk.get(&lpn).copied());
            if step % 97 == 0 {
                ftl.check();
            }
        }
        ftl.flush();
        ftl.check();
        nand.apply(ftl.take_ops());
        for lpn in 0..pages {
            let stored = ftl.location(lpn).and_then(|ppn| nand.unit(ppn));
            assert_eq!(stored, disk.get(&lpn).copied());
        }
        assert_eq!(ftl.totals().corrupted, 0);
        mismatches += ftl.totals().mismatches;
        victims += ftl.flash_totals().victims;
    }
    assert!(
        mismatches > 1000 && victims > 500,
        "{mismatches} mismatches, {victims} victims"
    );
}

#[test]
fn greedy_write_amplification_meets_the_curve_and_the_steady_state_identities() {
    let mut random = Random(15);
    let (blocks, pages_per_block) = (1000, 32);
    for spare in [0.07, 0.15, 0.28, 0.50] {
        let rules = Rules::new(Geometry {
            dies: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block,
            units_per_page: 1,
            summary_page: false,
        });
        let raw = (blocks * pages_per_block) as f64;
        let pages = (raw * curves::utilisation_from_spare_of_exported(spare)) as u64;
        let mut ftl = PageFtl::new(rules).unwrap();
        ftl.fill(0..pages).unwrap();
        ftl.fill(
            (0..5 * pages)
                .map(|_| random.below(pages))
                .collect::<Vec<_>>(),
        )
        .unwrap();
        for _ in 0..5 * pages {
            ftl.write(random.below(pages)).unwrap();
            ftl.take_ops();
        }
        let t = ftl.totals();
        let amplification = t.page_programs as f64 / t.host_units as f64;
        let rho = ftl.sealed_utilisation().unwrap();
        let curve = curves::greedy(rho, pages_per_block as u32);
        println!("spare {spare}: rho {rho:.4}, A {amplification:.4}, curve {curve:.4}");
        assert!(
            (amplification / curve - 1.0).abs() < 0.01,
            "{amplification} against {curve}"
        );
        // Copies a victim c: A = B / (B - c); erases = programs / B up to the open blocks.
        let copies = t.gc_units as f64 / t.victims as f64;
        let b = pages_per_block as f64;
        assert!((b / (b - copies) / amplification - 1.0).abs() < 0.002);
        assert!((t.total_erases() as f64 * b / t.page_programs as f64 - 1.0).abs() < 0.002);
    }
}
