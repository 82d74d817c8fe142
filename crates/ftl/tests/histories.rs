//! Random histories on a medium that keeps every page and refuses what NAND cannot do: every read
//! returns the last content written, and `check()` recounts every invariant.

use crate::common;

use std::collections::BTreeMap;

use common::devices::drawn;
use common::{Medium, medium};
use flashlore_content::dedup::BypassOptions;
use flashlore_content::{Content, DedupOptions, Ledger, PageTag, ValueLedger};
use flashlore_flash::{Cause, Geometry, Lpn, Tag, When};
use flashlore_ftl::{ContentFtl, FtlError, FtlOptions, Outcome, PlainFtl, Unhashed};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32, u32),
    Trim(u32),
    Read(u32),
    Flush,
    Wait,
}

#[derive(Debug, Clone)]
struct Device {
    geometry: Geometry,
    options: FtlOptions,
}

fn devices() -> impl Strategy<Value = Device> {
    drawn(12..20, 4..9).prop_map(|drawn| Device {
        geometry: drawn.geometry(),
        options: drawn.options(),
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (any::<u32>(), 0u32..40).prop_map(|(l, v)| Step::Write(l, v)),
        2 => any::<u32>().prop_map(Step::Trim),
        4 => any::<u32>().prop_map(Step::Read),
        1 => Just(Step::Flush),
        1 => Just(Step::Wait),
    ];
    prop::collection::vec(step, 200..1500)
}

/// What a write answers; `None` where a device with an end to its life is worn out.
fn stored<T, E: std::error::Error>(
    done: Result<T, FtlError<E>>,
    device: &Device,
) -> Result<Option<T>, TestCaseError> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(FtlError::WornOut { .. }) if device.options.wear.endurance > 0 => Ok(None),
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

/// Skews addresses to a quarter of the device, so that blocks die unevenly.
fn address(raw: u32, exported: u32) -> u32 {
    if raw.is_multiple_of(4) {
        raw / 4 % exported
    } else {
        raw / 4 % (exported / 4).max(1)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_plain_device_returns_what_was_written(device in devices(), steps in steps()) {
        let exported = device.options.exported;
        let mut ftl = PlainFtl::new(medium(&device.geometry), device.options.clone()).unwrap();
        let mut model: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut now, mut trims) = (0, 0);
        for (i, step) in steps.iter().enumerate() {
            now += 1;
            ftl.advance(now).unwrap();
            match *step {
                Step::Write(raw, value) => {
                    let lpn = address(raw, exported);
                    let done = ftl.write(When::now(now), Lpn(lpn), PageTag(value), Tag::NONE);
                    if stored(done, &device)?.is_some() {
                        model.insert(lpn, value);
                    }
                }
                Step::Trim(raw) => {
                    let lpn = address(raw, exported);
                    ftl.trim(Lpn(lpn)).unwrap();
                    trims += u64::from(model.remove(&lpn).is_some());
                }
                Step::Read(raw) => {
                    let lpn = address(raw, exported);
                    let (found, _) = ftl.read(now, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                    prop_assert_eq!(found, model.get(&lpn).map(|&v| PageTag(v)));
                }
                Step::Flush => ftl.core_mut().flush(now).unwrap(),
                Step::Wait => now += 50,
            }
            if i % 97 == 0 {
                ftl.check().map_err(TestCaseError::fail)?;
            }
        }
        ftl.settle(now).unwrap();
        prop_assert_eq!(ftl.core().counters().host_trims, trims);
        ftl.check().map_err(TestCaseError::fail)?;
        for lpn in 0..exported {
            let (found, _) = ftl.read(now, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
            prop_assert_eq!(found, model.get(&lpn).map(|&v| PageTag(v)));
        }
    }

    #[test]
    fn the_deduplicating_device_returns_what_was_written(
        device in devices(),
        steps in steps(),
        entries in prop_oneof![Just(None), (0u32..30).prop_map(Some)],
        cut in any::<bool>(),
        spread in prop::sample::select(vec![1u32, 7, 5000]),
    ) {
        let exported = device.options.exported;
        // Eight bits and thousands of values make collisions certain.
        let dedup = DedupOptions {
            index_entries: entries,
            fingerprint_bits: if cut { 8 } else { 128 },
            verify: cut,
            bypass: None,
            out_of_line: false,
        };
        let ledger = ValueLedger::default();
        let mut ftl =
            ContentFtl::new(medium(&device.geometry), device.options.clone(), dedup, ledger).unwrap();
        let mut model: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut now, mut trims) = (0, 0);
        for (i, step) in steps.iter().enumerate() {
            now += 1;
            ftl.advance(now).unwrap();
            match *step {
                Step::Write(raw, value) => {
                    let lpn = address(raw, exported);
                    let value = if spread == 5000 { raw % 5000 } else { value * spread };
                    ftl.fetch_candidate(now, PageTag(value), None, Tag::NONE).unwrap();
                    let done = ftl.write(When::now(now), Lpn(lpn), PageTag(value), Tag::NONE);
                    let Some((outcome, _)) = stored(done, &device)? else {
                        continue;
                    };
                    let held = model.insert(lpn, value);
                    if outcome == Outcome::Silent {
                        prop_assert_eq!(held, Some(value));
                    }
                    if entries.is_none() && !cut && held == Some(value) {
                        prop_assert_eq!(outcome, Outcome::Silent);
                    }
                }
                Step::Trim(raw) => {
                    let lpn = address(raw, exported);
                    ftl.trim(Lpn(lpn)).unwrap();
                    trims += u64::from(model.remove(&lpn).is_some());
                }
                Step::Read(raw) => {
                    let lpn = address(raw, exported);
                    let (found, _) = ftl.read(now, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                    prop_assert_eq!(found, model.get(&lpn).map(|&v| PageTag(v)));
                }
                Step::Flush => ftl.core_mut().flush(now).unwrap(),
                Step::Wait => now += 50,
            }
            if i % 97 == 0 {
                ftl.check().map_err(TestCaseError::fail)?;
            }
        }
        ftl.settle(now).unwrap();
        prop_assert_eq!(ftl.core().counters().host_trims, trims);
        ftl.check().map_err(TestCaseError::fail)?;
        for lpn in 0..exported {
            let (found, _) = ftl.read(now, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
            prop_assert_eq!(found, model.get(&lpn).map(|&v| PageTag(v)));
        }
        let counters = ftl.dedup_counters();
        let census = ftl.ledger().census().unwrap();
        prop_assert_eq!(counters.corrupted, 0);
        prop_assert_eq!(counters.misses, census.unique + census.duplicate + census.reborn);
        prop_assert_eq!(counters.misses, ftl.core().counters().programs_host);
        if entries.is_none() && !cut {
            // Invariant 5: with an unlimited index no two valid pages hold equal content.
            prop_assert_eq!(census.duplicate, 0);
            let mut distinct: Vec<u32> = model.values().copied().collect();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(ftl.objects().live() as usize, distinct.len());
        }
    }
}

#[test]
fn hashing_is_switched_off_without_duplicates_and_comes_back_with_them() {
    let geometry = Geometry::single_plane(32, 16, 4096).unwrap();
    let dedup = DedupOptions {
        index_entries: None,
        fingerprint_bits: 128,
        verify: false,
        bypass: Some(BypassOptions {
            window: 16,
            windows: 2,
            sample: 4,
            break_even_hits: 4,
        }),
        out_of_line: false,
    };
    let options = FtlOptions::new(256);
    let ledger = ValueLedger::default();
    let mut ftl = ContentFtl::new(medium::<PageTag>(&geometry), options, dedup, ledger).unwrap();
    let mut write = |lpn: u32, value: u32| {
        let lpn = Lpn(lpn % 256);
        let (when, tag) = (When::now(0), Tag::NONE);
        if ftl.wants_hash() {
            ftl.write(when, lpn, PageTag(value), tag).unwrap();
        } else {
            ftl.write_unhashed(when, lpn, PageTag(value), Unhashed::Off, tag)
                .unwrap();
        }
        let bypass = ftl.dedup().bypass.as_ref().unwrap();
        (bypass.is_off(), ftl.dedup_counters().unhashed)
    };
    let mut state = (false, 0);
    for i in 0..200 {
        state = write(i, i);
    }
    assert!(state.0 && state.1 > 100, "{state:?}");
    let before = state.1;
    for i in 0..400 {
        state = write(i, 7_000 + i % 4);
    }
    assert!(!state.0 && state.1 > before, "{state:?}");
    ftl.check().unwrap();
}

#[test]
fn without_verification_a_collision_shares_the_wrong_page_and_is_counted() {
    let geometry = Geometry::single_plane(8, 8, 4096).unwrap();
    let options = FtlOptions::new(16);
    let dedup = DedupOptions {
        index_entries: None,
        fingerprint_bits: 1,
        verify: false,
        bypass: None,
        out_of_line: false,
    };
    let ledger = ValueLedger::default();
    let mut ftl: ContentFtl<PageTag, Medium<PageTag>, _> =
        ContentFtl::new(medium(&geometry), options, dedup, ledger).unwrap();
    for lpn in 0..3 {
        ftl.write(When::now(0), Lpn(lpn), PageTag(lpn), Tag::NONE)
            .unwrap();
    }
    assert!(
        ftl.dedup_counters().corrupted > 0,
        "three values in one bit must collide"
    );
}

#[test]
fn a_candidate_is_read_again_when_it_is_another_one_by_the_time_of_the_commit() {
    let geometry = Geometry::single_plane(8, 8, 4096).unwrap();
    let dedup = DedupOptions {
        index_entries: None,
        fingerprint_bits: 1,
        verify: true,
        bypass: None,
        out_of_line: false,
    };
    let ledger = ValueLedger::default();
    let mut ftl = ContentFtl::new(
        medium::<PageTag>(&geometry),
        FtlOptions::new(16),
        dedup,
        ledger,
    )
    .unwrap();
    let bit = |value: u32| PageTag(value).fingerprint(1);
    let mut alike = (0..).filter(|&value| bit(value) == bit(0)).map(PageTag);
    let (value, other) = (alike.next().unwrap(), alike.next().unwrap());
    let now = When::now(0);
    ftl.write(now, Lpn(0), value, Tag::NONE).unwrap();
    let fetch = |ftl: &mut ContentFtl<_, _, _>, read| {
        let read = ftl.fetch_candidate(0, value, read, Tag::NONE).unwrap();
        read.map(|(candidate, _)| candidate)
    };
    let first = fetch(&mut ftl, None);
    assert_eq!(fetch(&mut ftl, first), None, "it is the same still");
    // The entry names another page of the same fingerprint from now on.
    ftl.write(now, Lpn(1), other, Tag::NONE).unwrap();
    let second = fetch(&mut ftl, first);
    assert!(second.is_some() && second != first);
    assert_eq!(fetch(&mut ftl, second), None);
    assert_eq!(ftl.core().counters().page_reads_verify, 2);
    let (outcome, _) = ftl.write(now, Lpn(2), value, Tag::NONE).unwrap();
    assert_eq!(outcome, Outcome::Programmed);
}
