//! TRAP against a list of versions, on a medium that keeps every page: an old version is what decoding its
//! chain gives, and a parity decoded against another page than it was taken from stops the test.

use crate::common;

use std::collections::BTreeMap;

use common::devices::{Drawn, drawn};
use common::values::{Lengths, Page, V};
use common::{Medium, medium};
use flashlore_content::history::HistoryOptions;
use flashlore_flash::{Cause, Geometry, Lpn, Tag, When};
use flashlore_ftl::core::Core;
use flashlore_ftl::policies::history::{OnPressure, VersionsOptions};
use flashlore_ftl::trap::recover::RewindError;
use flashlore_ftl::{
    FtlError, FtlOptions, Mode, Placement, PoolScope, Rotate, Streams, TrapFtl, Trigger,
    VictimChoice,
};
use proptest::prelude::*;
use proptest::sample::select;

type Device = TrapFtl<V, Medium<Page>, Lengths>;

#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32, u32),
    Trim(u32),
    Read(u32),
    ReadAt(u32, u32),
    RewindTo(u32),
    Advance(u32),
    Flush,
    Wait,
}

#[derive(Debug, Clone)]
struct Case {
    drawn: Drawn,
    versions: VersionsOptions,
    lengths: Lengths,
    /// Exported pages in per cent of what can be held.
    fill: u32,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        40 => (any::<u32>(), 0u32..400).prop_map(|(l, v)| Step::Write(l, v)),
        4 => any::<u32>().prop_map(Step::Trim),
        4 => any::<u32>().prop_map(Step::Read),
        12 => (any::<u32>(), any::<u32>()).prop_map(|(l, t)| Step::ReadAt(l, t)),
        1 => any::<u32>().prop_map(Step::RewindTo),
        1 => any::<u32>().prop_map(Step::Advance),
        1 => Just(Step::Flush),
        1 => Just(Step::Wait),
    ];
    prop::collection::vec(step, 200..1500)
}

fn cases() -> impl Strategy<Value = Case> {
    let versions = (
        select(vec![None, Some(3u32), Some(60)]),
        select(vec![OnPressure::Shrink, OnPressure::Refuse]),
        select(vec![0u64, 20, 300]),
        select(vec![0u64, 5]),
    );
    let versions =
        versions.prop_map(
            |(max_entries, on_pressure, least_window, reserve)| VersionsOptions {
                history: HistoryOptions {
                    max_entries,
                    schedule: None,
                },
                least_window,
                on_pressure,
                reserve,
                entries_in_ram: None,
            },
        );
    // Up to lengths that are not stored as parities.
    let lengths = (select(vec![20u16, 900]), select(vec![1200u16, 4400]));
    let lengths = lengths.prop_map(|(least, most)| Lengths {
        least,
        most,
        alone: 30,
    });
    (
        drawn(12..20, 4..9),
        versions,
        lengths,
        select(vec![40u32, 80, 95]),
    )
        .prop_map(|(mut drawn, versions, lengths, fill)| {
            drawn.endurance = 0;
            Case {
                drawn,
                versions,
                lengths,
                fill,
            }
        })
}

/// Every version of every page, oldest first.
#[derive(Default)]
struct Model(BTreeMap<Lpn, Vec<(u64, Option<u32>)>>);

impl Model {
    fn at(&self, lpn: Lpn, instant: u64) -> Option<u32> {
        let versions = self.0.get(&lpn)?;
        let found = versions.iter().rev().find(|(stamp, _)| *stamp <= instant);
        found?.1
    }

    fn change(&mut self, lpn: Lpn, stamp: u64, value: Option<u32>) {
        self.0.entry(lpn).or_default().push((stamp, value));
    }

    /// Entries of a page that lie after an instant.
    fn changes(&self, lpn: Lpn, instant: u64) -> u64 {
        let versions = self.0.get(&lpn).into_iter().flatten();
        versions.filter(|(stamp, _)| *stamp > instant).count() as u64
    }
}

struct Rig {
    ftl: Device,
    model: Model,
    exported: u32,
    /// The window that no write may shorten.
    least: u64,
    now: u64,
}

impl Rig {
    fn new(case: &Case) -> Self {
        let geometry = case.drawn.geometry();
        let medium = || -> Medium<Page> { medium(&geometry) };
        let least = FtlOptions {
            exported: 1,
            log: true,
            ..case.drawn.options()
        };
        let most = Core::new(medium(), least).unwrap().most_live() as u32;
        // On the smallest devices watermarks leave room for two pages.
        let exported = (most * case.fill / 100).max(4.min(most));
        let options = FtlOptions {
            exported,
            ..case.drawn.options()
        };
        let mut ftl = TrapFtl::new(medium(), options, case.versions.clone(), case.lengths).unwrap();
        ftl.begin_history();
        Rig {
            ftl,
            model: Model::default(),
            exported,
            least: match case.versions.on_pressure {
                OnPressure::Refuse if case.versions.history.max_entries.is_none() => {
                    case.versions.least_window
                }
                _ => 0,
            },
            now: 0,
        }
    }

    /// A page; three quarters of the numbers name the first quarter.
    fn page(&self, raw: u32) -> u32 {
        match raw % 4 {
            0 => raw / 4 % self.exported,
            _ => raw / 4 % (self.exported / 4).max(1),
        }
    }

    /// An instant up to the present, more often a late one.
    fn instant(&self, raw: u32) -> u64 {
        let back = u64::from(raw >> 8) % (1 << (raw % 12));
        self.now.saturating_sub(back)
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        self.now += 1;
        let now = self.now;
        let text = |error: &dyn std::fmt::Display| error.to_string();
        self.ftl.advance(now).map_err(|e| text(&e))?;
        self.ftl.set_instant(now);
        match step {
            Step::Write(raw, value) => {
                let lpn = self.page(raw);
                let may_begin = now.saturating_sub(self.least).max(self.ftl.oldest());
                match self
                    .ftl
                    .write(When::now(now), Lpn(lpn), V(value), Tag::NONE)
                {
                    Ok(_) => self.model.change(Lpn(lpn), now, Some(value)),
                    Err(FtlError::Protected { .. }) => {}
                    Err(other) => return Err(other.to_string()),
                }
                if self.ftl.oldest() > may_begin {
                    return Err(format!("the window begins at {}", self.ftl.oldest()));
                }
            }
            Step::Trim(raw) => {
                let lpn = self.page(raw);
                let mapped = self.ftl.content(Lpn(lpn)).is_some();
                match self.ftl.trim(Lpn(lpn)) {
                    Ok(()) if mapped => self.model.change(Lpn(lpn), now, None),
                    Ok(()) | Err(FtlError::Protected { .. }) => {}
                    Err(other) => return Err(other.to_string()),
                }
            }
            Step::Read(raw) => {
                let lpn = self.page(raw);
                let read = self.ftl.read(now, Lpn(lpn), Cause::Host, Tag::NONE);
                let (page, _) = read.map_err(|e| e.to_string())?;
                let found = page.map(|page| page.value().0);
                if found != self.model.at(Lpn(lpn), now) {
                    return Err(format!("page {lpn} holds {found:?}"));
                }
            }
            Step::ReadAt(raw, time) => self.compare(Lpn(self.page(raw)), self.instant(time))?,
            Step::RewindTo(raw) => self.rewind_to(self.instant(raw))?,
            Step::Advance(raw) => self.ftl.advance_window(self.instant(raw)),
            Step::Flush => self.ftl.core_mut().flush(now).map_err(|e| text(&e))?,
            Step::Wait => self.now += 50,
        }
        Ok(())
    }

    fn compare(&mut self, lpn: Lpn, instant: u64) -> Result<(), String> {
        let read = match self.ftl.read_at_instant(lpn, instant) {
            Err(RewindError::TooOld(_)) if instant < self.ftl.oldest() => return Ok(()),
            read => read.map_err(|e| e.to_string())?,
        };
        let (page, steps) = read;
        let found = page.map(|page| page.value().0);
        let expected = self.model.at(lpn, instant);
        if found != expected {
            return Err(format!(
                "page {lpn} at {instant}: {found:?}, expected {expected:?}"
            ));
        }
        let content = self.ftl.content_at_instant(lpn, instant);
        if content.map_err(|e| e.to_string())?.map(|v| v.0) != expected {
            return Err(format!("page {lpn} at {instant} is named otherwise"));
        }
        if steps > self.model.changes(lpn, instant) {
            return Err(format!("page {lpn} at {instant}: {steps} decoded"));
        }
        Ok(())
    }

    fn rewind_to(&mut self, instant: u64) -> Result<(), String> {
        let returned = match self.ftl.rewind_to(instant) {
            Err(RewindError::TooOld(_)) if instant < self.ftl.oldest() => return Ok(()),
            Err(RewindError::Device(FtlError::Protected { .. })) => None,
            returned => Some(returned.map_err(|e| e.to_string())?),
        };
        let mut pages = 0;
        for lpn in 0..self.exported {
            let (then, present) = (
                self.model.at(Lpn(lpn), instant),
                self.model.at(Lpn(lpn), self.now),
            );
            let found = self.ftl.content(Lpn(lpn)).map(|v| v.0);
            if found != then && (returned.is_some() || found != present) {
                return Err(format!("page {lpn} went back to {found:?}"));
            }
            if found != present {
                pages += 1;
                self.model.change(Lpn(lpn), self.now, found);
            }
        }
        if returned.is_some_and(|cost| cost.pages != pages) {
            return Err(format!("{pages} pages changed, counted {returned:?}"));
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        self.ftl.check()?;
        let oldest = self.ftl.oldest();
        for lpn in 0..self.exported {
            for instant in [oldest, (oldest + self.now) / 2, self.now] {
                self.compare(Lpn(lpn), instant)?;
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_instant_of_the_window_is_the_list_of_versions(case in cases(), steps in steps()) {
        play(&case, &steps).map_err(TestCaseError::fail)?;
    }
}

fn play(case: &Case, steps: &[Step]) -> Result<(), String> {
    let mut rig = Rig::new(case);
    for (i, &step) in steps.iter().enumerate() {
        let done = rig.step(step);
        done.map_err(|e| format!("step {i}, {step:?}: {e}"))?;
        if i % 97 == 0 {
            rig.check()?;
        }
    }
    rig.ftl.settle(rig.now).map_err(|e| e.to_string())?;
    rig.check()
}

/// A device that watermarks leave room for two pages was asked to show four.
#[test]
fn a_device_with_room_for_two_pages_keeps_its_promises() {
    for on_pressure in [OnPressure::Shrink, OnPressure::Refuse] {
        let case = Case {
            drawn: Drawn {
                channels: 1,
                dies: 1,
                planes: 1,
                blocks: 12,
                pages: 4,
                units: 1,
                placement: Placement::Static,
                pool: PoolScope::Plane,
                reversed: false,
                rotate: Rotate::Page,
                victims: VictimChoice::Greedy,
                mode: Mode::Foreground,
                trigger: Trigger::Allocation,
                low: 3,
                above: 2,
                streams: Streams::Separate,
                summary_page: false,
                dynamic: false,
                static_gap: 3,
                endurance: 0,
                sealed_before_window: false,
            },
            versions: VersionsOptions {
                history: HistoryOptions::default(),
                least_window: 20,
                on_pressure,
                reserve: 0,
                entries_in_ram: None,
            },
            lengths: Lengths {
                least: 20,
                most: 1200,
                alone: 30,
            },
            fill: 40,
        };
        let step = |n: u32| match n % 7 {
            0 => Step::Trim(n / 7),
            3 => Step::ReadAt(n / 7, n),
            5 => Step::Read(n / 7),
            _ => Step::Write(n / 7, n),
        };
        play(&case, &(0..1000).map(step).collect::<Vec<_>>()).unwrap();
    }
}

/// A device of one plane that holds far more than it exports.
fn roomy(lengths: Lengths, on_pressure: OnPressure) -> Device {
    let geometry = Geometry::single_plane(32, 8, 4096).unwrap();
    let versions = VersionsOptions {
        history: HistoryOptions::default(),
        least_window: 1000,
        on_pressure,
        reserve: 0,
        entries_in_ram: None,
    };
    let medium = medium(&geometry);
    let mut ftl = TrapFtl::new(medium, FtlOptions::new(16), versions, lengths).unwrap();
    ftl.begin_history();
    ftl
}

const THIRDS: Lengths = Lengths {
    least: 1350,
    most: 1350,
    alone: 0,
};

#[test]
fn three_parities_of_a_third_fill_a_log_page_and_n_overwrites_back_take_n_steps() {
    let mut ftl = roomy(THIRDS, OnPressure::Shrink);
    for n in 0..31u64 {
        ftl.set_instant(n + 1);
        ftl.write(When::now(0), Lpn(3), V(n as u32), Tag::NONE)
            .unwrap();
    }
    // The first write ends no version. 30 parities of 1350 + 8 bytes are 10 pages, the last of which is
    // programmed when another comes; the head of the first write lies with the first three.
    assert_eq!(ftl.trap_counters().encoded, 30);
    assert_eq!(ftl.core().counters().programs_log, 9);
    assert_eq!(ftl.core().counters().programs_host, 31);
    for back in 0..31u64 {
        let (page, steps) = ftl.read_at_instant(Lpn(3), 31 - back).unwrap();
        assert_eq!((page.unwrap().value(), steps), (V(30 - back as u32), back));
    }
    assert_eq!(ftl.read_at_instant(Lpn(3), 0).unwrap().0, None);
    // One page is read and written for all of its steps, and nine log pages.
    let cost = ftl.rewind_to(11).unwrap();
    assert_eq!((cost.pages, cost.decodes), (1, 20));
    assert_eq!(
        cost.reads,
        1 + 6,
        "the present page and six log pages of seven"
    );
    assert_eq!(ftl.content(Lpn(3)), Some(V(10)));
    ftl.check().unwrap();
}

#[test]
fn a_window_that_is_protected_refuses_writes_and_one_that_is_not_shrinks() {
    let mut refused = 0;
    for on_pressure in [OnPressure::Refuse, OnPressure::Shrink] {
        let mut ftl = roomy(THIRDS, on_pressure);
        for n in 0..900u64 {
            ftl.set_instant(n + 1);
            match ftl.write(When::now(0), Lpn((n % 16) as u32), V(n as u32), Tag::NONE) {
                Ok(_) => {}
                Err(FtlError::Protected { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
            }
            let shrinks = on_pressure == OnPressure::Shrink;
            assert!(
                shrinks || ftl.oldest() == 0,
                "the window of 1000 has begun to move"
            );
        }
        ftl.check().unwrap();
        if on_pressure == OnPressure::Shrink {
            assert!(ftl.oldest() > 0 && ftl.trap_counters().dropped > 0);
        } else {
            assert!(refused > 0);
        }
    }
}
