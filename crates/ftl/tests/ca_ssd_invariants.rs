//! The invariants of `spec/ca-ssd.md` section 6 that can be seen at every step of a random history,
//! under collection, eviction and trim. (Invariants 1, 3, 4 and 5 are in `histories.rs` and, with the
//! whole state, in `reference_models.rs`; 9 is in `identities.rs`.)

use crate::common;

use common::{Medium, Random};
use flashlore_content::{Content, DedupOptions, Ledger, PageTag, ValueLedger};
use flashlore_flash::record::Op;
use flashlore_flash::{Cause, Geometry, Lpn, Owner, Tag, When};
use flashlore_ftl::{ContentFtl, FtlOptions, Outcome, PlainFtl};
use proptest::prelude::*;

type Device = ContentFtl<PageTag, Medium<PageTag>, ValueLedger>;

const EXPORTED: u32 = 120;

fn medium() -> Medium<PageTag> {
    let geometry = Geometry::single_plane(24, 8, 4096).unwrap();
    common::medium(&geometry)
}

fn device(index_entries: Option<u32>) -> Device {
    let dedup = DedupOptions {
        index_entries,
        fingerprint_bits: 128,
        verify: false,
        bypass: None,
        out_of_line: false,
    };
    let ledger = ValueLedger::default();
    ContentFtl::new(medium(), FtlOptions::new(EXPORTED), dedup, ledger).unwrap()
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32, u32),
    Trim(u32),
}

/// Values repeat, more or less.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::sample::select(vec![60u32, 300, 5000]).prop_flat_map(|values| {
        let step = prop_oneof![
            15 => (0..EXPORTED, 0..values).prop_map(|(lpn, value)| Step::Write(lpn, value)),
            1 => (0..EXPORTED).prop_map(Step::Trim),
        ];
        prop::collection::vec(step, 300..2500)
    })
}

fn entries() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![Just(None), (0u32..100).prop_map(Some)]
}

/// Units programmed since the last call.
fn programs(ops: &[Op]) -> u64 {
    let programs = ops.iter().filter(|op| matches!(op, Op::Program { .. }));
    programs.count() as u64
}

/// Invariant 2: what the index names is valid, holds the content it is found by, and is marked; the
/// index is no larger than its capacity.
fn check_index(ftl: &Device, capacity: Option<u32>) -> Result<(), TestCaseError> {
    let index = &ftl.dedup().index;
    prop_assert!(capacity.is_none_or(|most| index.len() <= most));
    for object in index.objects(ftl.objects()) {
        let (content, ppn) = (ftl.objects().content(object), ftl.objects().at(object));
        prop_assert!(ftl.core().blocks().is_valid(ppn));
        prop_assert!(ftl.objects().is_indexed(object));
        let stored = ftl.core().flash().inner().inner().stored(ppn);
        prop_assert_eq!(
            stored.map(|s| (s.owner, s.page)),
            Some((Owner::object(object), content))
        );
        let same = |other| ftl.objects().content(other) == content;
        let found = index.find(content.fingerprint(128), same);
        prop_assert_eq!(found, Some(object));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Invariants 2, 6 and 7.
    #[test]
    fn a_hit_programs_and_evicts_nothing_and_every_program_is_counted(
        steps in steps(),
        entries in entries(),
    ) {
        let mut ftl = device(entries);
        let (mut total, mut writes) = (0, 0);
        for (number, &step) in steps.iter().enumerate() {
            let before = ftl.dedup_counters();
            let outcome = match step {
                Step::Write(lpn, value) => {
                    writes += 1;
                    Some(ftl.write(When::now(0), Lpn(lpn), PageTag(value), Tag::NONE).unwrap().0)
                }
                Step::Trim(lpn) => {
                    ftl.trim(Lpn(lpn)).unwrap();
                    None
                }
            };
            let ops = ftl.core_mut().flash_mut().take();
            total += programs(&ops);
            let after = ftl.dedup_counters();
            if outcome != Some(Outcome::Programmed) {
                prop_assert!(ops.is_empty(), "{:?}: {:?}", outcome, ops);
                prop_assert_eq!(after.evictions, before.evictions);
            }
            let hit = matches!(outcome, Some(Outcome::Silent | Outcome::Shared));
            prop_assert_eq!(after.hits - before.hits, u64::from(hit));
            let silent = u64::from(outcome == Some(Outcome::Silent));
            prop_assert_eq!(after.silent - before.silent, silent);
            if number % 50 == 0 {
                check_index(&ftl, entries)?;
            }
        }
        check_index(&ftl, entries)?;
        ftl.check().map_err(TestCaseError::fail)?;
        let (dedup, counters) = (ftl.dedup_counters(), ftl.core().counters());
        let census = ftl.ledger().census().unwrap();
        prop_assert_eq!(dedup.hits + dedup.misses, writes);
        prop_assert_eq!(dedup.misses, census.unique + census.duplicate + census.reborn);
        prop_assert_eq!(dedup.misses, counters.programs_host);
        prop_assert_eq!(counters.programs_host + counters.programs_gc, total);
    }

    /// Invariant 8: with an unlimited index the host never causes more programs than on the baseline.
    #[test]
    fn an_unlimited_index_never_programs_more_for_the_host_than_the_baseline(steps in steps()) {
        let mut ftl = device(None);
        let mut baseline = PlainFtl::new(medium(), FtlOptions::new(EXPORTED)).unwrap();
        for &step in &steps {
            match step {
                Step::Write(lpn, value) => {
                    let (now, tag) = (When::now(0), PageTag(value));
                    ftl.write(now, Lpn(lpn), tag, Tag::NONE).unwrap();
                    baseline.write(now, Lpn(lpn), tag, Tag::NONE).unwrap();
                }
                Step::Trim(lpn) => {
                    ftl.trim(Lpn(lpn)).unwrap();
                    baseline.trim(Lpn(lpn)).unwrap();
                }
            }
            let (with, without) = (ftl.core().counters(), baseline.core().counters());
            prop_assert!(with.programs_host <= without.programs_host);
        }
    }
}

/// Invariant 7, second half: a shared page survives as long as one address refers to it, also when
/// it is collected meanwhile.
#[test]
fn a_shared_page_survives_until_its_last_address_goes() {
    let mut ftl = device(None);
    let shared = PageTag(9_999);
    let write =
        |ftl: &mut Device, lpn, value| ftl.write(When::now(0), lpn, value, Tag::NONE).unwrap().0;
    for lpn in 0..10 {
        write(&mut ftl, Lpn(lpn), shared);
    }
    let first_place = ftl.objects().at(ftl.objects().get(Lpn(0)));
    let (mut value, mut random) = (0, Random::new(10));
    for round in 0..9 {
        // One address after the other leaves by trim or by overwriting; others are overwritten until
        // everything has been collected many times.
        if round % 2 == 0 {
            ftl.trim(Lpn(round)).unwrap();
        } else {
            value += 1;
            write(&mut ftl, Lpn(round), PageTag(value));
        }
        for _ in 0..400 {
            value += 1;
            let lpn = 20 + random.below(EXPORTED - 20);
            write(&mut ftl, Lpn(lpn), PageTag(value));
        }
        let (content, _) = ftl.read(0, Lpn(9), Cause::Host, Tag::NONE).unwrap();
        assert_eq!(content, Some(shared));
    }
    let place = ftl.objects().at(ftl.objects().get(Lpn(9)));
    assert_ne!(place, first_place, "it has been moved");
    ftl.trim(Lpn(9)).unwrap();
    assert!(!ftl.core().blocks().is_valid(place));
    assert_eq!(write(&mut ftl, Lpn(9), shared), Outcome::Programmed);
    assert_eq!(ftl.ledger().census().unwrap().reborn, 1);
    ftl.check().unwrap();
}
