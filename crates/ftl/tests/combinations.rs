//! Deduplication, encoding and history in every combination, against a plain list of the versions of every
//! page, with `check()` between the steps.

mod common;

use std::collections::BTreeMap;

use common::devices::{Drawn, drawn};
use common::values::{Lengths, Page, V};
use flashlore_content::history::HistoryOptions;
use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::memory::MemoryFlash;
use flashlore_flash::rules::Checked;
use flashlore_flash::{Cause, Tag, When};
use flashlore_ftl::content::delta::DeltaOptions;
use flashlore_ftl::content::delta::heat::HeatOptions;
use flashlore_ftl::content::delta::viability::ViabilityOptions;
use flashlore_ftl::content::history::{OnPressure, VersionsOptions};
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::{DedupFtl, FtlError, FtlOptions, Outcome, Policies, Unhashed};
use proptest::prelude::*;

type Medium = Checked<MemoryFlash<Page>>;
type Device = DedupFtl<V, Medium, NoCensus, Resident, Lengths>;

#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32, u32),
    Read(u32),
    ReadAt(u32, u32),
    Trim(u32),
    Scan,
    MergeCold,
    Flush,
    Snapshot(u32),
    DeleteSnapshot(u32),
    ReturnTo(u32),
    Advance(u32),
    Purge(u32, u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let any2 = || (any::<u32>(), any::<u32>());
    let step = prop_oneof![
        60 => any2().prop_map(|(l, v)| Step::Write(l, v)),
        8 => any::<u32>().prop_map(Step::Read),
        8 => any2().prop_map(|(l, t)| Step::ReadAt(l, t)),
        4 => any::<u32>().prop_map(Step::Trim),
        1 => Just(Step::Scan),
        3 => Just(Step::MergeCold),
        1 => Just(Step::Flush),
        1 => any::<u32>().prop_map(Step::Snapshot),
        1 => any::<u32>().prop_map(Step::DeleteSnapshot),
        1 => any::<u32>().prop_map(Step::ReturnTo),
        1 => any::<u32>().prop_map(Step::Advance),
        1 => any2().prop_map(|(l, n)| Step::Purge(l, n)),
    ];
    prop::collection::vec(step, 200..1200)
}

/// What is on, and how it is set.
#[derive(Debug, Clone)]
struct Policy {
    dedup: bool,
    delta: Option<DeltaOptions>,
    versions: Option<VersionsOptions>,
    lengths: Lengths,
}

fn policies() -> impl Strategy<Value = Policy> {
    let delta = (
        any::<bool>(),
        0u8..3,
        2u8..17,
        prop_oneof![500u16..4085, Just(4084)],
        prop_oneof![Just(None), (1u32..40).prop_map(Some)],
        prop_oneof![Just(0u32), Just(100), Just(1500)],
        prop_oneof![Just(u32::MAX), 0u32..60],
    );
    let delta =
        delta.prop_map(
            |(compress, writes, reads, most, entries, lambda, pinned)| DeltaOptions {
                differences: true,
                compress,
                hot_writes: writes,
                hot_reads: reads,
                most_bytes: most,
                viability: ViabilityOptions {
                    most_bytes: 4084,
                    window: 16,
                    probe: 4,
                },
                heat: HeatOptions {
                    entries,
                    protected: 10,
                },
                lambda,
                most_pinned: pinned,
            },
        );
    let versions = (
        prop_oneof![Just(None), (1u32..100).prop_map(Some)],
        prop_oneof![Just(0u64), 1u64..300],
        any::<bool>(),
        0u64..20,
    );
    let versions =
        versions.prop_map(
            |(max_entries, least_window, refuses, reserve)| VersionsOptions {
                history: HistoryOptions {
                    max_entries,
                    schedule: None,
                },
                least_window,
                on_pressure: if refuses {
                    OnPressure::Refuse
                } else {
                    OnPressure::Shrink
                },
                reserve,
            },
        );
    let lengths = (20u16..2500, 0u16..2500, 0u16..100);
    (
        any::<bool>(),
        prop::option::of(delta),
        prop::option::of(versions),
        lengths,
    )
        .prop_map(|(dedup, delta, versions, (least, more, alone))| Policy {
            dedup,
            delta,
            versions,
            lengths: Lengths {
                least,
                most: least + more,
                alone,
            },
        })
}

/// The versions of every page, oldest first, and what a device may not tell apart.
#[derive(Default)]
struct Model {
    pages: BTreeMap<u32, Vec<(u64, Option<u32>)>>,
    /// Since when the present version may have begun later than noted here.
    unsure: BTreeMap<u32, u64>,
    /// Instants of a page before this one are not compared.
    forgotten: BTreeMap<u32, u64>,
    snapshots: Vec<u64>,
}

impl Model {
    fn at(&self, lpn: u32, instant: u64) -> Option<u32> {
        let versions = self.pages.get(&lpn)?;
        let version = versions.iter().rev().find(|(stamp, _)| *stamp <= instant)?;
        version.1
    }

    fn change(&mut self, lpn: u32, now: u64, value: Option<u32>) {
        self.pages.entry(lpn).or_default().push((now, value));
    }

    fn return_to(&mut self, instant: u64, now: u64) {
        let changed: Vec<u32> = self
            .pages
            .iter()
            .filter(|(_, versions)| versions.last().is_some_and(|v| v.0 > instant))
            .map(|(&lpn, _)| lpn)
            .collect();
        for lpn in changed {
            let (then, before) = (self.at(lpn, instant), self.at(lpn, now));
            if then != before {
                self.change(lpn, now, then);
            } else {
                // Another object may hold the same value.
                self.unsure.insert(lpn, now);
            }
        }
    }

    fn purge(&mut self, lpn: u32, now: u64) {
        let Some(versions) = self.pages.get_mut(&lpn) else {
            return;
        };
        if self.unsure.contains_key(&lpn) {
            self.forgotten.insert(lpn, now);
        }
        versions.drain(..versions.len() - 1);
    }

    fn compares(&self, lpn: u32, instant: u64) -> bool {
        self.forgotten.get(&lpn).is_none_or(|&from| instant >= from)
    }
}

/// A device and what it should hold.
struct Run {
    ftl: Device,
    model: Model,
    exported: u32,
    dedups: bool,
    keeps: bool,
    now: u64,
    refused: u32,
}

impl Run {
    fn new(drawn: &Drawn, fill: u32, policy: &Policy) -> Self {
        let geometry = drawn.geometry();
        let mut options = drawn.options();
        options.wear.endurance = 0;
        let least = FtlOptions {
            exported: 1,
            log: policy.delta.is_some(),
            ..options.clone()
        };
        let medium = || -> Medium { Checked::new(MemoryFlash::new(geometry.clone())) };
        let core = flashlore_ftl::core::Core::new(medium(), least).unwrap();
        options.exported = (core.most_live() as u32 * fill / 100).max(8);
        let exported = options.exported;
        let policies = Policies {
            dedup: DedupOptions {
                index_entries: if policy.dedup { None } else { Some(0) },
                fingerprint_bits: 64,
                verify: false,
                bypass: None,
                out_of_line: false,
            },
            delta: policy.delta,
            versions: policy.versions.clone(),
            encoder: policy.lengths,
        };
        let mut ftl =
            DedupFtl::with_policies(medium(), options, policies, NoCensus, Resident).unwrap();
        ftl.begin_history();
        Run {
            ftl,
            model: Model::default(),
            exported,
            dedups: policy.dedup,
            keeps: policy.versions.is_some(),
            now: 0,
            refused: 0,
        }
    }

    fn page(&self, raw: u32) -> u32 {
        if raw.is_multiple_of(4) {
            raw / 4 % self.exported
        } else {
            raw / 4 % (self.exported / 4).max(1)
        }
    }

    /// An instant up to the present, more often a late one.
    fn instant(&self, raw: u32) -> u64 {
        let back = u64::from(raw >> 8) % (1 << (raw % 12));
        self.now.saturating_sub(back)
    }

    fn write(&mut self, lpn: u32, value: u32) -> Result<(), String> {
        let when = When::now(self.now);
        let written = if self.dedups {
            let written = self.ftl.write(when, lpn, V(value), Tag::NONE);
            written.map(|(outcome, _)| outcome)
        } else {
            let off = Unhashed::Off;
            let written = self.ftl.write_unhashed(when, lpn, V(value), off, Tag::NONE);
            written.map(|_| Outcome::Programmed)
        };
        match written {
            Ok(Outcome::Silent) => Ok(()),
            Ok(_) => {
                self.model.change(lpn, self.now, Some(value));
                Ok(())
            }
            Err(FtlError::Protected { .. }) => {
                self.refused += 1;
                Ok(())
            }
            Err(other) => Err(other.to_string()),
        }
    }

    fn compare(&mut self, lpn: u32, instant: u64) -> Result<(), String> {
        if !self.keeps || !self.model.compares(lpn, instant) {
            return Ok(());
        }
        match self.ftl.version_at(lpn, instant) {
            Err(_) => {
                if self.model.snapshots.contains(&instant) {
                    return Err(format!("the snapshot of {instant} is not remembered"));
                }
                Ok(())
            }
            Ok(object) => {
                let found = match object {
                    Some(object) => {
                        let page = self.ftl.read_version(object);
                        Some(page.map_err(|e| e.to_string())?.value().0)
                    }
                    None => None,
                };
                let expected = self.model.at(lpn, instant);
                (found == expected).then_some(()).ok_or(format!(
                    "page {lpn} at {instant} (now {}): {found:?}, expected {expected:?}",
                    self.now
                ))
            }
        }
    }

    fn read(&mut self, lpn: u32) -> Result<(), String> {
        let read = self.ftl.read(self.now, lpn, Cause::Host, Tag::NONE);
        let (page, _) = read.map_err(|e| e.to_string())?;
        let found = page.map(|page| page.value().0);
        let expected = self.model.at(lpn, self.now);
        (found == expected)
            .then_some(())
            .ok_or(format!("page {lpn}: {found:?}, expected {expected:?}"))
    }

    fn tolerate(
        &mut self,
        done: Result<(), FtlError<impl std::error::Error>>,
    ) -> Result<(), String> {
        match done {
            Err(FtlError::Protected { .. }) | Ok(()) => Ok(()),
            Err(other) => Err(other.to_string()),
        }
    }

    fn step(&mut self, step: Step, values: u32) -> Result<(), String> {
        self.now += 1;
        let now = self.now;
        self.ftl.advance(now).map_err(|e| e.to_string())?;
        self.ftl.set_instant(now);
        match step {
            Step::Write(raw, value) => self.write(self.page(raw), value % values)?,
            Step::Read(raw) => {
                let lpn = self.page(raw);
                self.read(lpn)?;
                let done = self.ftl.merge_if_read_hot(When::now(now), lpn).map(drop);
                self.tolerate(done)?;
            }
            Step::ReadAt(raw, time) => self.compare(self.page(raw), self.instant(time))?,
            Step::Trim(raw) => {
                let lpn = self.page(raw);
                self.ftl.trim(lpn).map_err(|e| e.to_string())?;
                if self.model.at(lpn, now).is_some() {
                    self.model.change(lpn, now, None);
                }
            }
            Step::Scan => self.ftl.begin_cold_scan(),
            Step::MergeCold => {
                let done = self.ftl.merge_cold(now).map(drop);
                self.tolerate(done)?;
            }
            Step::Flush => {
                let done = self.ftl.flush_packs(now);
                self.tolerate(done)?;
                let flushed = self.ftl.core_mut().flush(now);
                flushed.map_err(|e| e.to_string())?;
            }
            Step::Snapshot(raw) => {
                let instant = self.instant(raw);
                if self.keeps && self.ftl.snapshot(instant).is_ok() {
                    self.model.snapshots.push(instant);
                }
            }
            Step::DeleteSnapshot(raw) => {
                let snapshots = &mut self.model.snapshots;
                if !snapshots.is_empty() {
                    let instant = snapshots.swap_remove(raw as usize % snapshots.len());
                    snapshots.retain(|&other| other != instant);
                    if !self.ftl.delete_snapshot(instant) {
                        return Err(format!("there is no snapshot of {instant}"));
                    }
                }
            }
            Step::ReturnTo(raw) => {
                let instant = self.instant(raw);
                if self.keeps && self.ftl.return_to(instant).is_ok() {
                    self.model.return_to(instant, now);
                }
            }
            Step::Advance(raw) => self.ftl.advance_window(self.instant(raw)),
            Step::Purge(raw, count) => {
                let first = self.page(raw);
                let end = (first + count % 4).min(self.exported);
                if self.keeps {
                    self.ftl.purge(first..end);
                    (first..end).for_each(|lpn| self.model.purge(lpn, now));
                }
            }
        }
        Ok(())
    }

    /// Every page, now and at all instants of a few.
    fn compare_all(&mut self) -> Result<(), String> {
        for lpn in 0..self.exported {
            self.read(lpn)?;
            for back in [0, 1, 2, 5, 11, 31, 77, 160, 333] {
                self.compare(lpn, self.now.saturating_sub(back))?;
            }
            for snapshot in self.model.snapshots.clone() {
                self.compare(lpn, snapshot)?;
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_combination_equals_the_list_of_versions(
        drawn in drawn(14..22, 4..9),
        fill in 40u32..101,
        policy in policies(),
        values in prop_oneof![Just(12u32), Just(100_000)],
        steps in steps(),
    ) {
        let mut run = Run::new(&drawn, fill, &policy);
        for (i, &step) in steps.iter().enumerate() {
            run.step(step, values).map_err(TestCaseError::fail)?;
            if i % 7 == 0 {
                run.ftl.check().map_err(TestCaseError::fail)?;
            }
        }
        run.ftl.check().map_err(TestCaseError::fail)?;
        run.compare_all().map_err(TestCaseError::fail)?;
    }
}
