//! A medium that fails: each barrier and each write in turn, ranges that cannot be read, pages that
//! have rotted or were never written, and no space left.

use crate::support;

use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes};
use flashlore_flash::{Lpn, ObjectId, Ppn};
use flashlore_medium::{
    CrashMedium, Failure, Faults, FaultyMedium, Medium, MemoryMedium, Operation, Style, When,
    WriteFault,
};
use flashlore_volume::NandError;
use flashlore_volume::format::Areas;
use flashlore_volume::{
    Codec, Encoding, Finding, Identity, Policy, Volume, VolumeError, bytes_needed, create,
};
use support::{
    Contents, Draw, Mix, POLICIES, Shape, Step, after, contents, history, page, read, step,
};

const SHAPE: Shape = Shape {
    exported: 30,
    blocks: 12,
    pages_per_block: 3,
    units_per_page: 2,
    alignment: 512,
    index_entries: 12,
    journal_bytes: 64 << 10,
};

/// As full as a volume may be: with a page in each block that cannot be read there is none that collection can empty.
const TIGHT: Shape = Shape {
    exported: 104,
    blocks: 26,
    ..SHAPE
};

fn fresh(id: &Identity) -> Vec<u8> {
    let medium = MemoryMedium::new(bytes_needed(id).unwrap() as usize);
    create(&medium, id).unwrap();
    medium.into_bytes()
}

// Failing barriers and writes.

type Failing = Arc<FaultyMedium<Arc<CrashMedium>>>;

/// A history up to the call that failed.
struct Life {
    /// Contents at first and after each step that was acknowledged.
    states: Vec<Contents>,
    /// The state the last acknowledged flush or checkpoint made durable.
    durable: usize,
    failed: Option<Step>,
}

impl Life {
    fn new(exported: u32) -> Life {
        Life {
            states: vec![vec![0; exported as usize]],
            durable: 0,
            failed: None,
        }
    }

    fn last(&self) -> &Contents {
        &self.states[self.states.len() - 1]
    }

    /// What the call that failed would have made of it.
    fn interrupted(&self) -> Option<Contents> {
        self.failed.map(|step| after(self.last(), step))
    }

    fn run(&mut self, volume: &mut Volume, steps: &[Step]) {
        for &step in steps {
            if step.run(volume).is_err() {
                self.failed = Some(step);
                return;
            }
            self.states.push(after(self.last(), step));
            if step.is_durable() {
                self.durable = self.states.len() - 1;
            }
        }
    }

    fn allows(&self, found: &Contents) -> bool {
        self.states[self.durable..].contains(found) || self.interrupted().as_ref() == Some(found)
    }
}

fn is_read_only(result: Result<(), VolumeError>) -> bool {
    matches!(result, Err(VolumeError::Store(NandError::ReadOnly(_))))
}

/// After a failure nothing changes any more, and what was acknowledged is still read.
fn stays_read_only(volume: &mut Volume, life: &Life, name: &str) {
    for round in 0..2 {
        assert!(is_read_only(volume.flush()), "{name}: flushed");
        assert!(
            is_read_only(volume.write(1, Lpn(0), &page(99))),
            "{name}: wrote"
        );
        assert!(is_read_only(volume.trim(0, Lpn(1))), "{name}: trimmed");
        assert!(
            is_read_only(volume.checkpoint()),
            "{name}: checkpoint {round}"
        );
    }
    assert!(volume.failure().is_some(), "{name}");
    let found = contents(volume);
    let allowed = found == *life.last() || Some(&found) == life.interrupted().as_ref();
    assert!(
        allowed,
        "{name}: read {found:?}, expected {:?}",
        life.last()
    );
}

/// What is left after the power is cut opens in an allowed state and goes on.
fn reopens(medium: &CrashMedium, life: &Life, seed: u64, name: &str) {
    let styles = [
        Style::Nothing,
        Style::All,
        Style::Calls { percent: 50 },
        Style::Sectors { percent: 50 },
        Style::Later,
    ];
    for style in styles {
        let name = format!("{name}, {style:?}");
        let bytes = medium.survivors(seed, style);
        let medium = Arc::new(MemoryMedium::from_bytes(bytes));
        let (mut volume, _) =
            Volume::open(medium).unwrap_or_else(|e| panic!("{name}: not opened: {e}"));
        volume.check().unwrap_or_else(|e| panic!("{name}: {e}"));
        let found = contents(&mut volume);
        assert!(life.allows(&found), "{name}: recovered {found:?}");
        let mut expected = found;
        let more = Mix {
            trims: 10,
            flushes: 10,
            checkpoints: 2,
            values: 20,
        };
        for step in history(seed, 20, volume.exported(), more) {
            step.run(&mut volume)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            expected = after(&expected, step);
        }
        assert_eq!(contents(&mut volume), expected, "{name}");
        volume.close().unwrap();
    }
}

fn steps(seed: u64) -> Vec<Step> {
    let mix = Mix {
        trims: 8,
        flushes: 8,
        checkpoints: 2,
        values: 60,
    };
    history(seed, 150, SHAPE.exported, mix)
}

/// Runs the history on a medium that fails as told, if the failure comes at all.
fn fail_once(policy: Policy, seed: u64, name: &str, arrange: impl Fn(&Failing, &CrashMedium)) {
    let crash = Arc::new(CrashMedium::from_bytes(fresh(&SHAPE.identity(policy))));
    let medium = Arc::new(FaultyMedium::new(Arc::clone(&crash), Faults::default()));
    arrange(&medium, &crash);
    let mut life = Life::new(SHAPE.exported);
    if let Ok((mut volume, _)) = Volume::open(Arc::clone(&medium)) {
        life.run(&mut volume, &steps(seed));
        assert!(life.failed.is_some(), "{name}: no failure came");
        stays_read_only(&mut volume, &life, name);
    }
    reopens(&crash, &life, seed, name);
}

/// Writes and syncs of the history without a failure.
fn calls(policy: Policy, seed: u64) -> (u64, u64) {
    let crash = Arc::new(CrashMedium::from_bytes(fresh(&SHAPE.identity(policy))));
    let medium = Arc::new(FaultyMedium::new(Arc::clone(&crash), Faults::default()));
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    let mut life = Life::new(SHAPE.exported);
    life.run(&mut volume, &steps(seed));
    assert_eq!(life.failed, None);
    assert!(
        volume.counters().victims > 1,
        "{} victims",
        volume.counters().victims
    );
    (medium.writes(), medium.syncs())
}

#[test]
fn every_barrier_that_fails_ends_the_writing() {
    for policy in POLICIES {
        let (_, syncs) = calls(policy, 3);
        for n in 1..=syncs {
            // The medium loses what it had not written: a later sync would say yes to nothing.
            let name = format!("{policy:?}, sync {n} of {syncs} loses");
            fail_once(policy, 3, &name, |_, crash| crash.fail_sync(n));
            let name = format!("{policy:?}, sync {n} of {syncs} fails");
            let faults = Faults {
                syncs: Some(When::Only(n)),
                ..Faults::default()
            };
            fail_once(policy, 3, &name, |medium, _| {
                medium.set_faults(faults.clone())
            });
        }
    }
}

#[test]
fn every_write_that_fails_ends_the_writing() {
    for policy in POLICIES {
        let (writes, _) = calls(policy, 4);
        for n in 1..=writes {
            let failure = if n % 2 == 0 {
                Failure::Eio
            } else {
                Failure::NoSpace
            };
            let name = format!("{policy:?}, write {n} of {writes} gives {failure:?}");
            let fault = WriteFault {
                when: When::Only(n),
                failure,
            };
            let faults = Faults {
                writes: Some(fault),
                ..Faults::default()
            };
            fail_once(policy, 4, &name, |medium, _| {
                medium.set_faults(faults.clone())
            });
        }
    }
}

// What cannot be read.

type Faulty = Arc<FaultyMedium<Arc<MemoryMedium>>>;

/// A volume with contents, flushed.
struct Filled {
    id: Identity,
    areas: Areas,
    medium: Faulty,
    volume: Volume,
    expected: Contents,
}

impl Filled {
    /// Every address holds one of `values` pages.
    fn new(policy: Policy, shape: Shape, values: u32) -> Filled {
        Filled::with(shape.identity(policy), values, page)
    }

    /// The same of a volume of any kind, and of other pages.
    fn with(id: Identity, values: u32, page: impl Fn(u32) -> PageBytes) -> Filled {
        let inner = Arc::new(MemoryMedium::from_bytes(fresh(&id)));
        let medium = Arc::new(FaultyMedium::new(inner, Faults::default()));
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        let expected: Contents = (0..id.exported).map(|lpn| 1 + lpn % values).collect();
        for (lpn, &value) in (0..).zip(&expected) {
            volume.write(1, Lpn(lpn), &page(value)).unwrap();
        }
        volume.flush().unwrap();
        Filled {
            areas: Areas::new(&id).unwrap(),
            id,
            medium,
            volume,
            expected,
        }
    }

    fn reopen(&mut self, checkpoint: bool) {
        if checkpoint {
            self.volume.checkpoint().unwrap();
        } else {
            self.volume.flush().unwrap();
        }
        (self.volume, _) = Volume::open(Arc::clone(&self.medium)).unwrap();
    }

    /// The addresses that lie on the same unit.
    fn sharers(&self, lpn: Lpn) -> Vec<u32> {
        let at = self.volume.location(lpn);
        (0..self.id.exported)
            .filter(|&l| self.volume.location(Lpn(l)) == at)
            .collect()
    }

    /// One sector of the data of a unit cannot be read, and has rotted when it can be again.
    fn spoil(&self, unit: Ppn) {
        self.rot(&[unit]);
        let at = self.areas.unit(unit) + 1024;
        let unreadable = std::iter::once(at..at + 512).collect();
        self.medium.set_faults(Faults {
            unreadable,
            ..Faults::default()
        });
    }

    fn rot(&self, units: &[Ppn]) {
        for &unit in units {
            let at = self.areas.unit(unit) + 1024;
            self.medium.inner().flip(at, 1).unwrap();
        }
    }

    /// Units of addresses in all blocks but that of `unit`, two in each: when they have rotted with that one, collection
    /// has no block that it can read, and `unit` is in the one with the least to lose.
    fn elsewhere(&self, unit: Ppn) -> Vec<Ppn> {
        let per_block = self.id.pages_per_block * self.id.units_per_page;
        let mut taken = std::collections::BTreeMap::<u32, Vec<Ppn>>::new();
        for ppn in (0..self.id.exported).filter_map(|lpn| self.volume.location(Lpn(lpn))) {
            let of_block = taken.entry(ppn.0 / per_block).or_default();
            if of_block.len() < 2 && !of_block.contains(&ppn) {
                of_block.push(ppn);
            }
        }
        taken.remove(&(unit.0 / per_block));
        taken.into_values().flatten().collect()
    }

    /// Others than a unit rot, so that it will have to be given up; the addresses that cannot be read then.
    fn corner(&self, unit: Ppn) -> Vec<u32> {
        let mut units = self.elsewhere(unit);
        self.rot(&units);
        units.push(unit);
        self.on(&units)
    }

    /// The addresses that lie on these units.
    fn on(&self, units: &[Ppn]) -> Vec<u32> {
        let at = |lpn: u32| self.volume.location(Lpn(lpn));
        let lies = |&lpn: &u32| at(lpn).is_some_and(|at| units.contains(&at));
        (0..self.id.exported).filter(lies).collect()
    }

    fn heal(&self) {
        self.medium.set_faults(Faults::default());
    }

    /// These addresses give an error, all others what they should.
    fn expect_bad(&mut self, bad: &[u32], name: &str) {
        self.volume.check().unwrap();
        for lpn in 0..self.id.exported {
            match read(&mut self.volume, Lpn(lpn)) {
                Ok(value) => {
                    assert!(!bad.contains(&lpn), "{name}: page {lpn} reads as {value}");
                    assert_eq!(value, self.expected[lpn as usize], "{name}: page {lpn}");
                }
                Err(VolumeError::Unreadable { lpn: named, source }) => {
                    assert_eq!(named, Lpn(lpn), "{name}");
                    assert!(
                        bad.contains(&lpn),
                        "{name}: page {lpn} cannot be read: {source}"
                    );
                }
                Err(other) => panic!("{name}: page {lpn}: {other}"),
            }
        }
    }

    /// Overwrites addresses at random, but not these, until one of them does not lie on its unit any more.
    fn collect_all(&mut self, spared: &[u32], moving: u32, unit: Ppn, name: &str) {
        for seed in 0..400 {
            self.overwrite(spared, seed);
            if self.volume.location(Lpn(moving)) != Some(unit) {
                return;
            }
        }
        panic!("{name}: unit {} was never collected", unit.0);
    }

    /// Overwrites addresses at random, but not these, and collects.
    fn overwrite(&mut self, spared: &[u32], seed: u64) {
        let mut draw = Draw::new(seed);
        let others: Vec<u32> = (0..self.id.exported)
            .filter(|l| !spared.contains(l))
            .collect();
        for n in 0..50 {
            let lpn = others[draw.below(others.len() as u32) as usize];
            let value = 1000 + 50 * seed as u32 + n;
            self.volume.write(2, Lpn(lpn), &page(value)).unwrap();
            self.expected[lpn as usize] = value;
        }
        // A copy is programmed with the rest of its victim at the latest.
        while self.volume.collect_step().unwrap() {}
        self.volume.flush().unwrap();
    }
}

fn findings_name(volume: &mut Volume, addresses: &[u32]) -> bool {
    let findings = volume.take_findings();
    findings.iter().any(|f| addresses_of(f) == addresses)
}

fn addresses_of(finding: &Finding) -> Vec<u32> {
    finding.addresses.iter().map(|lpn| lpn.0).collect()
}

#[test]
fn what_cannot_be_read_affects_its_addresses_alone_and_never_heals_by_copying() {
    for policy in POLICIES {
        for lpn in [0, 7, 13] {
            for checkpoint in [false, true] {
                let name = format!("{policy:?}, page {lpn}, checkpoint {checkpoint}");
                let mut filled = Filled::new(policy, TIGHT, 100);
                if checkpoint {
                    filled.volume.checkpoint().unwrap();
                }
                let unit = filled.volume.location(Lpn(lpn)).unwrap();
                let bad = filled.sharers(Lpn(lpn));
                filled.spoil(unit);
                filled.expect_bad(&bad, &name);
                assert!(
                    findings_name(&mut filled.volume, &bad),
                    "{name}: no finding"
                );
                filled.volume.scrub(ObjectId(0), u32::MAX);
                assert!(
                    !findings_name(&mut filled.volume, &bad),
                    "{name}: reported twice"
                );
                let shared = bad;
                let bad = filled.corner(unit);
                filled.collect_all(&bad, lpn, unit, &name);
                filled.heal();
                filled.expect_bad(&bad, &format!("{name}, copied"));
                assert!(
                    findings_name(&mut filled.volume, &shared),
                    "{name}: loss not reported"
                );
                filled.reopen(checkpoint);
                filled.expect_bad(&bad, &format!("{name}, reopened"));
                // New content heals the addresses.
                for &lpn in &bad {
                    filled.volume.write(3, Lpn(lpn), &page(7)).unwrap();
                    filled.expected[lpn as usize] = 7;
                }
                filled.reopen(checkpoint);
                filled.expect_bad(&[], &format!("{name}, overwritten"));
            }
        }
    }
}

#[test]
fn a_scrub_finds_what_cannot_be_read() {
    for policy in POLICIES {
        let mut filled = Filled::new(policy, SHAPE, 20);
        let bad = filled.sharers(Lpn(3));
        filled.spoil(filled.volume.location(Lpn(3)).unwrap());
        // What is known already is told again.
        for round in 0..2 {
            let (mut next, mut steps, mut told) = (Some(ObjectId(0)), 0, Vec::new());
            while let Some(from) = next {
                let progress = filled.volume.scrub(from, 3);
                told.extend(progress.unreadable);
                (next, steps) = (progress.next, steps + 1);
            }
            assert!(steps > 1, "{policy:?}");
            assert_eq!(told.len(), 1, "{policy:?}, {round}");
            assert_eq!(addresses_of(&told[0]), bad, "{policy:?}, {round}");
            let findings = filled.volume.take_findings();
            assert_eq!(findings, told[round..], "{policy:?}, {round}");
        }
    }
}

#[test]
fn a_finding_ends_when_its_page_can_be_read_and_comes_again_when_it_cannot() {
    for policy in POLICIES {
        let mut filled = Filled::new(policy, SHAPE, 20);
        let bad = filled.sharers(Lpn(3));
        let at = filled.areas.unit(filled.volume.location(Lpn(3)).unwrap());
        let faults = Faults {
            unreadable: std::iter::once(at..at + 512).collect(),
            ..Faults::default()
        };
        for round in 0..2 {
            filled.medium.set_faults(faults.clone());
            assert!(read(&mut filled.volume, Lpn(3)).is_err(), "{policy:?}");
            let findings = filled.volume.take_findings();
            assert_eq!(findings.len(), 1, "{policy:?}, {round}");
            assert_eq!(addresses_of(&findings[0]), bad, "{policy:?}, {round}");
            let still = filled.volume.still_found(&findings[0]);
            assert_eq!(still.as_ref(), Some(&findings[0]), "{policy:?}, {round}");
            filled.heal();
            let still = filled.volume.still_found(&findings[0]);
            assert_eq!(still, None, "{policy:?}, {round}");
        }
    }
}

fn read_any(volume: &mut Volume, lpn: Lpn) -> bool {
    volume.read(lpn, &mut [0; PAGE_BYTES]).is_ok()
}

/// A page that shares a value beside the lost one on the same unit holds nothing that was lost.
#[test]
fn a_finding_about_a_lost_value_ends_for_a_page_that_is_written_again() {
    let id = Identity {
        index_entries: 1000,
        encoding: Encoding {
            deltas: false,
            compression: true,
        },
        ..TIGHT.identity(Policy::Dedup)
    };
    let compressible = |value: u32| -> PageBytes {
        let mut bytes = [7; PAGE_BYTES];
        bytes[..600].copy_from_slice(&page(value)[..600]);
        bytes
    };
    let of = |value: u32| match value {
        0..=20 => compressible(value),
        _ => page(value),
    };
    let mut filled = Filled::with(Identity { exported: 94, ..id }, 94, of);
    filled.volume.checkpoint().unwrap();
    let unit = filled.volume.location(Lpn(1)).unwrap();
    filled.rot(&[unit]);
    // Of each packed page a value or two stay, so that it is packed anew with others.
    let mut spared = filled.corner(unit);
    spared.retain(|lpn| *lpn > 20);
    spared.extend([1, 3, 13, 15]);
    let found = (0..100).find_map(|seed| {
        filled.overwrite(&spared, seed);
        let findings = filled.volume.scrub(ObjectId(0), u32::MAX).unreadable;
        findings.into_iter().find_map(|lost| {
            lost.addresses.first()?;
            let unit = Some(lost.unit);
            let beside = |&lpn: &Lpn| {
                filled.volume.location(lpn) == unit && read_any(&mut filled.volume, lpn)
            };
            let good = [Lpn(13), Lpn(15)].into_iter().find(beside)?;
            Some((lost, good))
        })
    });
    let (lost, good) = found.expect("a lost value beside a good one");
    let lost = &lost;
    let page = lost.addresses[0];
    let mut volume = filled.volume;
    assert_eq!(volume.still_found(lost).as_ref(), Some(lost));
    volume.write(4, page, &compressible(good.0 + 1)).unwrap();
    assert_eq!(volume.location(page), Some(lost.unit));
    let still = volume
        .still_found(lost)
        .map_or(vec![], |still| still.addresses);
    assert!(!still.contains(&page), "{page}: {still:?}");
}

/// A recovery reads pages it has to: it ends with one that cannot be read, and one that has rotted costs its own
/// addresses only.
#[test]
fn a_page_that_rotted_before_a_recovery_costs_its_addresses_alone() {
    for policy in POLICIES {
        let mut filled = Filled::new(policy, SHAPE, 20);
        let bad = filled.sharers(Lpn(5));
        filled.spoil(filled.volume.location(Lpn(5)).unwrap());
        filled.volume.flush().unwrap();
        let opened = Volume::open(Arc::clone(&filled.medium));
        let Err(VolumeError::Medium(error)) = opened else {
            panic!("{policy:?}: opened although a read failed");
        };
        assert_eq!(error.operation, Operation::Read, "{policy:?}");
        filled.heal();
        filled.reopen(false);
        filled.expect_bad(&bad, &format!("{policy:?}"));
    }
}

#[test]
fn content_that_rotted_is_not_shared_and_is_repaired_by_the_next_equal_write() {
    for policy in [Policy::Dedup, Policy::DedupTrusted] {
        for known in [true, false] {
            if policy == Policy::DedupTrusted && !known {
                continue; // Nothing is read there: docs/durability.md says so.
            }
            // What is known of it may be known from the tables alone.
            for (checkpoint, reopened) in [(false, false), (true, false), (true, true)] {
                let name = format!(
                    "{policy:?}, checkpoint {checkpoint}, known {known}, reopened {reopened}"
                );
                rotten_content_is_repaired(policy, known, checkpoint, reopened, &name);
            }
        }
    }
}

fn rotten_content_is_repaired(
    policy: Policy,
    known: bool,
    checkpoint: bool,
    reopened: bool,
    name: &str,
) {
    let mut filled = Filled::new(policy, SHAPE, 10);
    if checkpoint {
        filled.volume.checkpoint().unwrap();
    }
    let unit = filled.volume.location(Lpn(4)).unwrap();
    let bad = filled.sharers(Lpn(4));
    assert_eq!(bad, [4, 14, 24]);
    let at = filled.areas.unit(unit) + 77;
    filled.medium.inner().flip(at, 3).unwrap();
    if known {
        filled.expect_bad(&bad, name);
    }
    if reopened {
        filled.reopen(true);
    }
    let value = filled.expected[4];
    filled.volume.write(5, Lpn(9), &page(value)).unwrap();
    filled.expected[9] = value;
    assert_eq!(
        read(&mut filled.volume, Lpn(9)).unwrap(),
        value,
        "{name}: shared"
    );
    filled.expect_bad(&[], name);
    filled.reopen(checkpoint);
    filled.expect_bad(&[], &format!("{name}, reopened"));
    filled.collect_all(&[9], 9, filled.volume.location(Lpn(9)).unwrap(), name);
    filled.expect_bad(&[], &format!("{name}, copied"));
}

/// A page was compared before its write with an object that has moved since, and rots where it lies now.
#[test]
fn what_was_compared_elsewhere_is_not_believed() {
    let roomy = Shape {
        exported: 20,
        ..SHAPE
    };
    for compression in [false, true] {
        let encoding = Encoding {
            deltas: false,
            compression,
        };
        let id = Identity {
            encoding,
            ..roomy.identity(Policy::Dedup)
        };
        let name = format!("{encoding:?}");
        let mut filled = Filled::with(id, 10, page);
        let unit = filled.volume.location(Lpn(4)).unwrap();
        let value = filled.expected[4];
        let mut prepared = filled.volume.preparer().prepare(&page(value));
        let plan = filled.volume.plan_write(Lpn(9), &prepared).unwrap();
        assert!(plan.compares());
        let reader = filled.volume.reader();
        reader.work_ahead(&mut Codec::default(), &plan, &mut prepared);
        filled.collect_all(&[4, 9, 14], 4, unit, &name);
        let unit = filled.volume.location(Lpn(4)).unwrap();
        let rotten = filled.sharers(Lpn(4));
        filled.rot(&[unit]);
        filled.volume.write_prepared(5, Lpn(9), prepared).unwrap();
        filled.expected[9] = value;
        let mut bad = rotten;
        bad.retain(|&lpn| compression && lpn != 9);
        filled.expect_bad(&bad, &name);
    }
}

/// The silent case: an address that holds rotten content is written with that content.
#[test]
fn rewriting_rotten_content_repairs_it() {
    for policy in POLICIES {
        let mut filled = Filled::new(policy, SHAPE, 10);
        let unit = filled.volume.location(Lpn(4)).unwrap();
        let bad = filled.sharers(Lpn(4));
        filled
            .medium
            .inner()
            .flip(filled.areas.unit(unit), 0)
            .unwrap();
        filled.expect_bad(&bad, &format!("{policy:?}"));
        for &lpn in &bad {
            filled
                .volume
                .write(5, Lpn(lpn), &page(filled.expected[4]))
                .unwrap();
        }
        filled.expect_bad(&[], &format!("{policy:?}"));
        filled.reopen(false);
        filled.expect_bad(&[], &format!("{policy:?}, reopened"));
    }
}

/// Content that was lost before it was copied is not shared either, nor after an opening.
#[test]
fn lost_content_is_not_shared_after_an_opening() {
    for policy in [Policy::Dedup, Policy::DedupTrusted] {
        for checkpoint in [false, true] {
            let name = format!("{policy:?}, checkpoint {checkpoint}");
            let mut filled = Filled::new(policy, TIGHT, 100);
            let unit = filled.volume.location(Lpn(5)).unwrap();
            let value = filled.expected[5];
            filled.spoil(unit);
            let bad = filled.corner(unit);
            filled.collect_all(&bad, 5, unit, &name);
            filled.heal();
            filled.reopen(checkpoint);
            let good = (0..TIGHT.exported).find(|l| !bad.contains(l)).unwrap();
            filled.volume.write(9, Lpn(good), &page(value)).unwrap();
            filled.expected[good as usize] = value;
            filled.expect_bad(&bad, &name);
            filled.reopen(checkpoint);
            filled.expect_bad(&bad, &format!("{name}, reopened"));
        }
    }
}

/// A write the medium acknowledged and dropped: the page holds what it held in an earlier life.
#[test]
fn a_page_that_was_never_written_is_not_taken_for_what_lay_there_before() {
    for policy in POLICIES {
        let mut filled = Filled::new(policy, TIGHT, 200);
        let old = image(&filled.medium);
        let mut draw = Draw::new(3);
        for n in 0..1500 {
            let lpn = draw.below(TIGHT.exported);
            filled.volume.write(2, Lpn(lpn), &page(500 + n)).unwrap();
            filled.expected[lpn as usize] = 500 + n;
        }
        filled.volume.checkpoint().unwrap();
        let stride = filled.areas.page_stride as usize;
        for victim in 0..TIGHT.exported {
            let unit = filled.volume.location(Lpn(victim)).unwrap();
            let page_number = flashlore_flash::PageId(unit.0 / TIGHT.units_per_page);
            let at = filled.areas.page(page_number);
            let mut now = vec![0; stride];
            filled.medium.read(at, &mut now).unwrap();
            filled
                .medium
                .write(at, &old[at as usize..][..stride])
                .unwrap();
            let result = read(&mut filled.volume, Lpn(victim));
            assert!(
                result.is_err(),
                "{policy:?}: page {victim} reads as {result:?}"
            );
            if victim % 7 == 0 {
                let on_page = |l: &u32| {
                    let there = filled.volume.location(Lpn(*l)).unwrap();
                    there.0 / TIGHT.units_per_page == page_number.0
                };
                let bad: Vec<u32> = (0..TIGHT.exported).filter(on_page).collect();
                let name = format!("{policy:?}, dropped page of {victim}");
                for seed in 0..10 {
                    filled.overwrite(&bad, seed);
                }
                filled.expect_bad(&bad, &name);
                for &lpn in &bad {
                    filled.volume.write(2, Lpn(lpn), &page(900 + lpn)).unwrap();
                    filled.expected[lpn as usize] = 900 + lpn;
                }
                filled.volume.checkpoint().unwrap();
            } else {
                filled.medium.write(at, &now).unwrap();
            }
        }
    }
}

fn image(medium: &Faulty) -> Vec<u8> {
    let mut bytes = vec![0; medium.len() as usize];
    medium.read(0, &mut bytes).unwrap();
    bytes
}

// No space.

/// Twice as much is exported as fits.
const THIN: Shape = Shape {
    exported: 160,
    blocks: 16,
    ..SHAPE
};

fn thin_shapes() -> [Shape; 4] {
    [
        THIN,
        Shape {
            units_per_page: 1,
            pages_per_block: 2,
            alignment: 4096,
            ..THIN
        },
        Shape {
            units_per_page: 4,
            pages_per_block: 2,
            exported: 300,
            ..THIN
        },
        Shape {
            pages_per_block: 8,
            exported: 500,
            alignment: 4096,
            ..THIN
        },
    ]
}

#[test]
fn a_full_volume_refuses_new_pages_and_goes_on() {
    for policy in POLICIES {
        let index_entries = THIN.exported;
        let id = Shape {
            index_entries,
            ..THIN
        }
        .identity(policy);
        let medium = Arc::new(MemoryMedium::from_bytes(fresh(&id)));
        let (mut volume, _) = Volume::open(medium).unwrap();
        let most = volume.status().most as u32;
        assert!(most < THIN.exported);
        for lpn in 0..most {
            volume.write(1, Lpn(lpn), &page(lpn + 1)).unwrap();
        }
        let mut expected = contents(&mut volume);
        let locations =
            |v: &Volume| -> Vec<_> { (0..THIN.exported).map(|l| v.location(Lpn(l))).collect() };
        let before = (locations(&volume), volume.status());
        let error = volume.write(2, Lpn(most), &page(5000)).unwrap_err();
        assert!(matches!(error, VolumeError::NoSpace { .. }), "{error}");
        assert_eq!((locations(&volume), volume.status()), before);
        volume.flush().unwrap();
        for n in 0..500 {
            let lpn = n * 7 % most;
            volume.write(3, Lpn(lpn), &page(6000 + n)).unwrap();
            expected[lpn as usize] = 6000 + n;
        }
        if policy != Policy::Plain {
            volume.write(3, Lpn(most), &page(expected[3])).unwrap();
            expected[most as usize] = expected[3];
            // What is shared gives no page up.
            assert!(volume.write(3, Lpn(most), &page(9000)).is_err());
            volume.trim(0, Lpn(most)).unwrap();
            expected[most as usize] = 0;
        }
        volume.trim(0, Lpn(5)).unwrap();
        expected[5] = 0;
        volume.write(4, Lpn(most), &page(8000)).unwrap();
        expected[most as usize] = 8000;
        assert!(volume.write(4, Lpn(5), &page(8001)).is_err());
        volume.check().unwrap();
        assert_eq!(contents(&mut volume), expected);
    }
}

/// Random histories of a full volume, on which the power is cut now and then.
#[test]
fn a_volume_at_the_brink_goes_on_through_power_cuts() {
    let (mut refused, mut collected, mut cuts) = (0, 0, 0);
    for policy in POLICIES {
        for (number, shape) in thin_shapes().into_iter().enumerate() {
            for seed in 0..3 {
                let name = format!("{policy:?}, shape {number}, seed {seed}");
                let (r, c, n) = at_the_brink(&shape.identity(policy), seed, &name);
                refused += r;
                collected += c;
                cuts += n;
            }
        }
    }
    println!("{refused} writes refused, {collected} collections, {cuts} power cuts");
    assert!(refused > 1000 && collected > 1000 && cuts > 100);
}

fn at_the_brink(id: &Identity, seed: u64, name: &str) -> (u64, u64, u64) {
    let mut draw = Draw::new(seed + 1);
    let mut bytes = fresh(id);
    let mut expected = vec![0; id.exported as usize];
    let (mut refused, mut collected, mut number) = (0, 0, 0);
    let lives = 8;
    for life in 0..lives {
        let name = format!("{name}, life {life}");
        let medium = Arc::new(CrashMedium::from_bytes(bytes));
        let (mut volume, _) =
            Volume::open(Arc::clone(&medium)).unwrap_or_else(|e| panic!("{name}: not opened: {e}"));
        volume.check().unwrap_or_else(|e| panic!("{name}: {e}"));
        let found = contents(&mut volume);
        assert_eq!(found, expected, "{name}");
        for at in 0..400 {
            let mix = Mix {
                trims: 4,
                flushes: 3,
                checkpoints: 1,
                values: 1,
            };
            let mut next = step(&mut draw, id.exported, mix);
            if let Step::Write { value, .. } = &mut next {
                number += 1;
                *value = if draw.below(8) == 0 {
                    1 + draw.below(9)
                } else {
                    100 + number
                };
            }
            let before = volume.status();
            match next.run(&mut volume) {
                Ok(()) => expected = after(&expected, next),
                Err(VolumeError::NoSpace { stored, most }) => {
                    refused += 1;
                    assert!(stored >= most, "{name}: refused at {stored} of {most}");
                    let now = volume.status();
                    assert_eq!(now.sequence, before.sequence, "{name}");
                    assert_eq!(now.stored, before.stored, "{name}");
                    let Step::Write { lpn, .. } = next else {
                        panic!("{name}: {next:?} has no space")
                    };
                    let plain = id.policy == Policy::Plain;
                    assert!(
                        !plain || volume.location(lpn).is_none(),
                        "{name}: overwrite"
                    );
                }
                Err(other) => panic!("{name}, step {at}, {next:?}: {other}"),
            }
            if at % 20 == 0 {
                volume
                    .check()
                    .unwrap_or_else(|e| panic!("{name}, step {at}: {e}"));
            }
        }
        assert_eq!(contents(&mut volume), expected, "{name}");
        collected += volume.counters().victims;
        // The cut comes some steps after a flush; what is lost then is the newest.
        volume.flush().unwrap_or_else(|e| panic!("{name}: {e}"));
        for _ in 0..draw.below(6) {
            let lpn = draw.below(id.exported);
            if expected[lpn as usize] != 0 {
                // Same content: whatever survives, the contents are these.
                let written = volume.write(9, Lpn(lpn), &page(expected[lpn as usize]));
                let full = matches!(written, Err(VolumeError::NoSpace { .. }));
                assert!(full || written.is_ok(), "{name}: {written:?}");
            }
        }
        bytes = medium.survivors(seed, Style::Calls { percent: 50 });
    }
    (refused, collected, lives)
}

// The journal.

/// Thousands of events that program nothing, between two flushes, with the smallest journal.
#[test]
fn a_small_journal_holds_any_number_of_events() {
    for alignment in [512, 4096] {
        for flushes in 0..10 {
            let shape = Shape {
                exported: 3000,
                alignment,
                index_entries: 50,
                ..SHAPE
            };
            let id = shape.identity(Policy::Dedup);
            let medium = Arc::new(MemoryMedium::from_bytes(fresh(&id)));
            let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            for n in 0..flushes {
                volume.write(1, Lpn(n), &page(1)).unwrap();
                volume.flush().unwrap();
            }
            for round in 0..3 {
                for lpn in 0..3000 {
                    let written = volume.write(1, Lpn(lpn), &page(1 + round));
                    written.unwrap_or_else(|e| panic!("{flushes} flushes, round {round}: {e}"));
                }
            }
            volume.flush().unwrap();
            drop(volume);
            let (mut volume, _) = Volume::open(medium).unwrap();
            assert_eq!(contents(&mut volume), vec![3; 3000]);
        }
    }
}
