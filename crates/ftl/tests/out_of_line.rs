//! Pages that are hashed in idle time: random histories with writes that are hashed and writes that are
//! not, while what is scanned may be overwritten, trimmed or moved between its read and its end.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};

use common::devices::drawn;
use common::{Medium, medium, single_plane, slc};
use flashlore_content::{DedupOptions, Ledger, NoCensus, PageTag, ValueLedger};
use flashlore_flash::{Cause, Flash, Geometry, Lpn, PlaneId, Tag, Time, When};
use flashlore_ftl::map_cache::{CacheOptions, CachedMap, EntryKind, MapCache};
use flashlore_ftl::{ContentFtl, FtlError, FtlOptions, Mode, Scanned, Unhashed, Watermarks};
use proptest::prelude::*;

const UNLIMITED: DedupOptions = DedupOptions {
    index_entries: None,
    fingerprint_bits: 128,
    verify: false,
    bypass: None,
    out_of_line: true,
};

#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32, u32, Option<Unhashed>),
    Trim(u32),
    Read(u32),
    /// The next page is read.
    Scan,
    /// What was read is looked up.
    EndScan,
    Flush,
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![
        5 => Just(None),
        4 => Just(Some(Unhashed::Unsampled)),
        4 => Just(Some(Unhashed::Off)),
        1 => Just(Some(Unhashed::Foreign)),
    ];
    let step = prop_oneof![
        20 => (any::<u32>(), 0u32..40, how).prop_map(|(l, v, how)| Step::Write(l, v, how)),
        2 => any::<u32>().prop_map(Step::Trim),
        3 => any::<u32>().prop_map(Step::Read),
        5 => Just(Step::Scan),
        5 => Just(Step::EndScan),
        1 => Just(Step::Flush),
        1 => Just(Step::Wait),
    ];
    prop::collection::vec(step, 100..1000)
}

/// A device, what it should hold, and the present.
struct Run<K: MapCache<PageTag>> {
    ftl: ContentFtl<PageTag, Medium<PageTag>, ValueLedger, K>,
    model: BTreeMap<Lpn, PageTag>,
    now: Time,
}

impl<K: MapCache<PageTag>> Run<K> {
    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let exported = self.exported();
        let ftl = &mut self.ftl;
        self.now += 1;
        let now = self.now;
        ftl.advance(now).unwrap();
        match step {
            Step::Write(raw, value, how) => {
                let lpn = raw % exported;
                let foreign = how == Some(Unhashed::Foreign);
                let value = if foreign {
                    PageTag::FOREIGN
                } else {
                    PageTag(value)
                };
                let when = When::now(now);
                let done = match how {
                    None => ftl
                        .write(when, Lpn(lpn), value, Tag::NONE)
                        .map(|(_, done)| done),
                    Some(why) => ftl.write_unhashed(when, Lpn(lpn), value, why, Tag::NONE),
                };
                match done {
                    Ok(_) => {
                        self.model.insert(Lpn(lpn), value);
                    }
                    Err(FtlError::WornOut { .. }) => {}
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                }
            }
            Step::Trim(raw) => {
                ftl.trim(Lpn(raw % exported)).unwrap();
                self.model.remove(&Lpn(raw % exported));
            }
            Step::Read(raw) => return self.check_page(Lpn(raw % exported)),
            Step::Scan => {
                let programs = ftl.core().counters().programs_host;
                if ftl.scan_start().is_some() {
                    prop_assert!(ftl.scan(now, Tag::NONE).unwrap().is_some());
                    prop_assert_eq!(ftl.scan_start(), None, "one at a time");
                }
                prop_assert_eq!(ftl.core().counters().programs_host, programs);
            }
            Step::EndScan => {
                ftl.end_scan(now).unwrap();
            }
            Step::Flush => ftl.core_mut().flush(now).unwrap(),
            Step::Wait => {
                self.now += 50;
                ftl.advance(self.now).unwrap();
            }
        }
        Ok(())
    }

    fn exported(&self) -> u32 {
        self.ftl.core().options().exported
    }

    fn check_page(&mut self, lpn: Lpn) -> Result<(), TestCaseError> {
        let (found, _) = self
            .ftl
            .read(self.now, lpn, Cause::Host, Tag::NONE)
            .unwrap();
        prop_assert_eq!(found, self.model.get(&lpn).copied(), "page {}", lpn);
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        self.ftl.check().map_err(TestCaseError::fail)?;
        for lpn in 0..self.exported() {
            self.check_page(Lpn(lpn))?;
        }
        Ok(())
    }

    /// The host leaves the device alone until there is nothing left to hash.
    fn idle(&mut self) -> Result<(), TestCaseError> {
        self.ftl.end_scan(self.now).unwrap();
        while self.ftl.scan_start().is_some() {
            self.now += 1;
            self.ftl.advance(self.now).unwrap();
            self.ftl.scan(self.now, Tag::NONE).unwrap();
            let end = self.ftl.end_scan(self.now).unwrap();
            prop_assert_ne!(end, Scanned::Gone, "nothing happens meanwhile");
        }
        Ok(())
    }

    /// Objects that there must be when every value is stored once.
    fn fewest(&self) -> usize {
        let foreign = self
            .model
            .values()
            .filter(|&&v| v == PageTag::FOREIGN)
            .count();
        let values: BTreeSet<PageTag> = self.model.values().copied().collect();
        values.len() - usize::from(foreign > 0) + foreign
    }
}

fn history<K: MapCache<PageTag>>(
    mut run: Run<K>,
    steps: &[Step],
    limited: bool,
) -> Result<(), TestCaseError> {
    for (i, &step) in steps.iter().enumerate() {
        run.step(step)?;
        if i % 61 == 0 {
            run.ftl.check().map_err(TestCaseError::fail)?;
        }
    }
    let waiting = run.ftl.pages_to_scan().unwrap().waiting();
    prop_assert!(waiting <= run.exported() as usize + 1);
    run.check()?;
    run.idle()?;
    run.check()?;
    let (dedup, counters) = (run.ftl.dedup_counters(), run.ftl.core().counters());
    prop_assert_eq!(
        dedup.misses + dedup.unhashed + dedup.unsampled,
        counters.programs_host
    );
    prop_assert!(counters.page_reads_scan <= dedup.scanned);
    prop_assert_eq!(dedup.corrupted, 0);
    if !limited {
        prop_assert_eq!(run.ftl.objects().live() as usize, run.fewest());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// What is read is what was written last; and when the device has been left alone, an unlimited
    /// index leaves one object for each value.
    #[test]
    fn idle_time_leaves_one_page_for_each_value(
        drawn in drawn(12..20, 4..9),
        steps in steps(),
        entries in prop_oneof![2 => Just(None), 1 => (0u32..30).prop_map(Some)],
        cached in any::<bool>(),
    ) {
        let (geometry, options) = (drawn.geometry(), drawn.options());
        let medium = medium(&geometry);
        let dedup = DedupOptions { index_entries: entries, ..UNLIMITED };
        let (ledger, model) = (ValueLedger::default(), BTreeMap::new());
        if cached {
            let cache = CacheOptions {
                entries: 8,
                protected: 0,
                kind: EntryKind::Shared,
                journal_pages: 0,
            };
            let map_cache = CachedMap::new(options.exported, cache, PageTag::FOREIGN);
            let Ok(ftl) = ContentFtl::with_map_cache(medium, options, dedup, ledger, map_cache) else {
                return Err(TestCaseError::reject("no room for translation pages"));
            };
            history(Run { ftl, model, now: 0 }, &steps, entries.is_some())?;
        } else {
            let ftl = ContentFtl::new(medium, options, dedup, ledger).unwrap();
            history(Run { ftl, model, now: 0 }, &steps, entries.is_some())?;
        }
    }
}

fn device() -> ContentFtl<PageTag, Medium<PageTag>, ValueLedger> {
    let geometry = Geometry::single_plane(16, 8, 4096).unwrap();
    let medium = medium(&geometry);
    ContentFtl::new(
        medium,
        FtlOptions::new(64),
        UNLIMITED,
        ValueLedger::default(),
    )
    .unwrap()
}

/// Writes without hashing.
fn leave<F, L>(ftl: &mut ContentFtl<PageTag, F, L>, at: Time, lpn: Lpn, value: u32)
where
    F: Flash,
    F::Page: Clone,
    PageTag: Into<F::Page>,
    L: Ledger<PageTag>,
{
    let (when, why) = (When::now(at), Unhashed::Unsampled);
    ftl.write_unhashed(when, lpn, PageTag(value), why, Tag::NONE)
        .unwrap();
}

#[test]
fn a_page_that_changes_while_it_is_hashed_is_left_alone() {
    for change in 0..3 {
        let mut ftl = device();
        ftl.write(When::now(0), Lpn(9), PageTag(1), Tag::NONE)
            .unwrap();
        leave(&mut ftl, 0, Lpn(0), 1);
        ftl.scan(0, Tag::NONE).unwrap();
        match change {
            0 => ftl.trim(Lpn(0)).unwrap(),
            1 => drop(
                ftl.write(When::now(0), Lpn(0), PageTag(2), Tag::NONE)
                    .unwrap(),
            ),
            // The handle of the page is used again, by one that must wait for its own turn.
            _ => {
                ftl.trim(Lpn(0)).unwrap();
                leave(&mut ftl, 0, Lpn(3), 7);
            }
        }
        assert_eq!(ftl.end_scan(0).unwrap(), Scanned::Gone);
        assert_eq!(ftl.dedup_counters().scan_duplicates, 0);
        ftl.check().unwrap();
        assert_eq!(ftl.scan_start().is_some(), change == 2);
    }
}

#[test]
fn a_duplicate_shares_what_is_indexed_and_its_own_page_dies() {
    let mut ftl = device();
    leave(&mut ftl, 0, Lpn(0), 1);
    leave(&mut ftl, 0, Lpn(1), 1);
    leave(&mut ftl, 0, Lpn(2), 1);
    let mut scan = || {
        ftl.scan(0, Tag::NONE).unwrap();
        (ftl.end_scan(0).unwrap(), ftl.objects().live())
    };
    assert_eq!(scan(), (Scanned::Indexed, 3));
    assert_eq!(scan(), (Scanned::Duplicate, 2));
    assert_eq!(scan(), (Scanned::Duplicate, 1));
    assert_eq!(scan(), (Scanned::Gone, 1));
    assert_eq!(ftl.core().counters().programs(), 3, "nothing is programmed");
    assert_eq!(ftl.core().counters().page_reads_scan, 3);
    assert_eq!(ftl.objects().references(ftl.objects().get(Lpn(0))), 3);
    let counters = ftl.dedup_counters();
    assert_eq!((counters.scanned, counters.scan_duplicates), (3, 2));
    ftl.check().unwrap();
}

#[test]
fn pages_that_come_and_go_do_not_pile_up() {
    let mut ftl = device();
    for round in 0..10_000 {
        leave(&mut ftl, 0, Lpn(round % 3), round);
    }
    assert!(ftl.pages_to_scan().unwrap().waiting() <= 4);
    ftl.check().unwrap();
}

/// Idle time belongs to collection first.
#[test]
fn a_die_that_collection_has_work_for_is_not_read() {
    let flash = single_plane(16, 8, slc());
    let mut options = FtlOptions::new(64);
    options.collect.mode = Mode::Background;
    options.collect.watermarks = Watermarks { low: 2, high: 4 };
    let mut ftl = ContentFtl::new(flash, options, UNLIMITED, NoCensus).unwrap();
    let mut now = 0;
    let mut collected = 0;
    for value in 0..600 {
        ftl.advance(now).unwrap();
        leave(&mut ftl, now, Lpn(value * 7 % 64), value);
        let idle = ftl.core().flash().idle_since(PlaneId(0));
        now = idle.unwrap_or(now + 10_000_000);
        ftl.advance(now).unwrap();
        let before = ftl.core().counters().clone();
        let read = ftl.scan(now, Tag::NONE).unwrap();
        let after = ftl.core().counters();
        if after.programs_gc + after.erases > before.programs_gc + before.erases {
            collected += 1;
            assert_eq!(read, None, "write {value}");
        }
        ftl.end_scan(now).unwrap();
    }
    assert!(collected > 20, "{collected}");
    assert!(ftl.dedup_counters().scanned > 20);
    ftl.check().unwrap();
}

#[test]
fn duplicates_are_not_compared_so_verification_is_refused() {
    let geometry = Geometry::single_plane(16, 8, 4096).unwrap();
    let medium = medium::<PageTag>(&geometry);
    let verify = DedupOptions {
        verify: true,
        ..UNLIMITED
    };
    let refused = ContentFtl::<PageTag, _, _>::new(medium, FtlOptions::new(64), verify, NoCensus);
    let message = refused.err().map(|error| error.to_string());
    assert!(message.is_some_and(|m| m.contains("excludes verification")));
}
