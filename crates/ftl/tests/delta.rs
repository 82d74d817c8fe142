//! Deltas and compression on a medium that keeps every page: random histories against a plain map,
//! with `check()` after the steps, and the papers' examples.

use crate::common;

use std::collections::BTreeMap;

use common::devices::drawn;
use common::values::{Lengths, Page, V};
use common::{Medium, medium};
use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::{Cause, Geometry, Lpn, Tag, When};
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::policies::options::{EncodingOptions, HeatOptions, ViabilityOptions};
use flashlore_ftl::{ContentFtl, FtlError, FtlOptions, Policies, Unhashed};
use proptest::prelude::*;

type Device = ContentFtl<V, Medium<Page>, NoCensus, Resident, Lengths, Past>;

#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32, u32),
    Read(u32),
    Trim(u32),
    Scan,
    MergeCold,
    Flush,
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => (any::<u32>(), any::<u32>()).prop_map(|(l, v)| Step::Write(l, v)),
        8 => any::<u32>().prop_map(Step::Read),
        2 => any::<u32>().prop_map(Step::Trim),
        1 => Just(Step::Scan),
        3 => Just(Step::MergeCold),
        1 => Just(Step::Flush),
        1 => Just(Step::Wait),
    ];
    prop::collection::vec(step, 200..1200)
}

fn delta_options() -> impl Strategy<Value = EncodingOptions> {
    let entries = prop_oneof![Just(None), (1u32..40).prop_map(Some)];
    (
        any::<bool>(),
        any::<bool>(),
        0u8..4,
        1u8..17,
        prop_oneof![500u16..4085, Just(4084)],
        (prop_oneof![200u16..4085, Just(4084)], 1u32..40, 1u32..8),
        (entries, 0u32..30),
        prop_oneof![Just(0u32), Just(100), Just(1500)],
        prop_oneof![Just(u32::MAX), 0u32..60],
    )
        .prop_map(
            |(deltas, compress, writes, reads, most_bytes, viable, heat, lambda, pinned)| {
                EncodingOptions {
                    deltas,
                    compress,
                    hot_writes: writes,
                    hot_reads: reads,
                    most_bytes,
                    viability: ViabilityOptions {
                        most_bytes: viable.0,
                        window: viable.1,
                        probe: viable.2,
                    },
                    heat: HeatOptions {
                        entries: heat.0,
                        protected: heat.1,
                    },
                    lambda,
                    most_pinned: pinned,
                    similar: None,
                }
            },
        )
}

fn lengths() -> impl Strategy<Value = Lengths> {
    (20u16..2500, 0u16..2500, 0u16..100).prop_map(|(least, more, alone)| Lengths {
        least,
        most: least + more,
        alone,
    })
}

fn dedup(on: bool) -> DedupOptions {
    DedupOptions {
        index_entries: if on { None } else { Some(0) },
        fingerprint_bits: 64,
        verify: false,
        bypass: None,
        out_of_line: false,
    }
}

fn device(
    geometry: &Geometry,
    options: FtlOptions,
    deduplicates: bool,
    delta: EncodingOptions,
    encoder: Lengths,
) -> Device {
    let policies = Policies {
        dedup: dedup(deduplicates),
        encoding: Some(delta),
        versions: None,
        encoder,
    };
    let medium = medium(geometry);
    ContentFtl::with_policies(medium, options, policies, NoCensus, Resident).unwrap()
}

/// The most pages that a device with packed pages can export.
fn most_exported(geometry: &Geometry, options: &FtlOptions) -> u32 {
    let least = FtlOptions {
        exported: 1,
        log: true,
        ..options.clone()
    };
    let medium: Medium<Page> = medium(geometry);
    let core = flashlore_ftl::core::Core::new(medium, least).unwrap();
    core.most_live() as u32
}

/// Skews addresses to a quarter of the device.
fn address(raw: u32, exported: u32) -> u32 {
    if raw.is_multiple_of(4) {
        raw / 4 % exported
    } else {
        raw / 4 % (exported / 4).max(1)
    }
}

fn write(ftl: &mut Device, hashes: bool, now: u64, lpn: Lpn, value: u32) -> Result<(), String> {
    let when = When::now(now);
    let done = if hashes {
        ftl.write(when, lpn, V(value), Tag::NONE).map(drop)
    } else {
        ftl.write_unhashed(when, lpn, V(value), Unhashed::Off, Tag::NONE)
            .map(drop)
    };
    done.map_err(|e: FtlError<_>| e.to_string())
}

fn read(ftl: &mut Device, now: u64, lpn: Lpn) -> Result<Option<u32>, String> {
    let (page, _) = ftl
        .read(now, lpn, Cause::Host, Tag::NONE)
        .map_err(|e| e.to_string())?;
    Ok(page.map(|page| page.value().0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_was_written_is_read(
        drawn in drawn(14..22, 4..9),
        fill in 60u32..101,
        delta in delta_options(),
        lengths in lengths(),
        deduplicates in any::<bool>(),
        values in prop_oneof![Just(12u32), Just(100_000)],
        steps in steps(),
    ) {
        let mut options = drawn.options();
        options.wear.endurance = 0;
        options.exported = (most_exported(&drawn.geometry(), &options) * fill / 100).max(8);
        let exported = options.exported;
        let mut ftl = device(&drawn.geometry(), options, deduplicates, delta, lengths);
        let mut model: BTreeMap<u32, u32> = BTreeMap::new();
        let mut now = 0;
        for (i, step) in steps.iter().enumerate() {
            now += 1;
            ftl.advance(now).unwrap();
            match *step {
                Step::Write(raw, value) => {
                    let (lpn, value) = (address(raw, exported), value % values);
                    write(&mut ftl, deduplicates, now, Lpn(lpn), value).map_err(TestCaseError::fail)?;
                    model.insert(lpn, value);
                }
                Step::Read(raw) => {
                    let lpn = address(raw, exported);
                    let found = read(&mut ftl, now, Lpn(lpn)).map_err(TestCaseError::fail)?;
                    prop_assert_eq!(found, model.get(&lpn).copied());
                    ftl.merge_if_read_hot(When::now(now), Lpn(lpn)).unwrap();
                }
                Step::Trim(raw) => {
                    let lpn = address(raw, exported);
                    ftl.trim(Lpn(lpn)).unwrap();
                    model.remove(&lpn);
                }
                Step::Scan => {
                    ftl.begin_cold_scan();
                }
                Step::MergeCold => {
                    ftl.merge_cold(now).unwrap();
                }
                Step::Flush => {
                    ftl.flush_packs(now).unwrap();
                    ftl.core_mut().flush(now).unwrap();
                }
                Step::Wait => now += 50,
            }
            if i % 11 == 0 {
                ftl.check().map_err(TestCaseError::fail)?;
            }
        }
        ftl.settle(now).unwrap();
        ftl.check().map_err(TestCaseError::fail)?;
        for lpn in 0..exported {
            let found = read(&mut ftl, now, Lpn(lpn)).map_err(TestCaseError::fail)?;
            prop_assert_eq!(found, model.get(&lpn).copied());
        }
    }
}
