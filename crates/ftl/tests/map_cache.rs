//! The map partly in RAM: against a naive model of cache and translation pages, and its identities.

use crate::common;

use common::maps::{Both, Device, devices};
use common::{Random, medium, slc};
use flashlore_content::{DedupOptions, NoCensus, PageTag};
use flashlore_flash::record::Op;
use flashlore_flash::sim::NandSim;
use flashlore_flash::{Cause, Completion, Geometry, Lpn, Owned, Tag, Time, When};
use flashlore_ftl::map_cache::{CacheOptions, CachedMap, EntryKind};
use flashlore_ftl::{ContentFtl, Counters, FtlError, FtlOptions, PlainFtl};
use proptest::prelude::*;
use proptest::sample::select;

/// A cache of so many entries of pages that own their units.
fn direct(entries: u32) -> CacheOptions {
    CacheOptions {
        entries,
        protected: 0,
        kind: EntryKind::Direct,
        journal_pages: 0,
    }
}

/// Counts what the medium saw of translation pages: reads, programs of new ones, programs of copies.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Seen {
    reads: u64,
    new: u64,
    copies: u64,
    others: u64,
}

impl Seen {
    fn see(&mut self, ops: &[Op]) {
        for op in ops {
            match *op {
                Op::Read { cause, .. } => self.reads += u64::from(cause == Cause::Map),
                Op::Program {
                    owner: Some(owner),
                    from,
                    ..
                } => {
                    let count = match (matches!(owner.owned(), Owned::MapPage(_)), from) {
                        (false, _) => &mut self.others,
                        (true, Some(_)) => &mut self.copies,
                        (true, None) => &mut self.new,
                    };
                    *count += 1;
                }
                _ => {}
            }
        }
    }
}

/// What has been counted is what the model expects and the medium saw.
fn compare(
    c: &Counters,
    both: &Both<PageTag>,
    seen: Seen,
    units: u32,
) -> Result<(), TestCaseError> {
    let model = &both.model;
    prop_assert_eq!((c.map_hits, c.map_misses), (model.hits, model.misses));
    prop_assert_eq!(c.programs_map, model.writes + model.journal_writes);
    prop_assert_eq!(
        (c.programs_journal, c.map_folds),
        (model.journal_writes, model.folds)
    );
    prop_assert_eq!(c.page_reads_map, seen.reads);
    if units == 1 {
        prop_assert_eq!(seen.new, c.programs_map);
        // Without room for a first translation page there is none to read.
        prop_assert!(seen.reads == model.reads || both.mortal && seen.reads < model.reads);
        prop_assert_eq!(seen.new + seen.copies + seen.others, c.programs());
    } else {
        // What still waits in a page buffer was not programmed, and is read from there.
        prop_assert!(seen.new <= c.programs_map && seen.reads <= model.reads);
    }
    Ok(())
}

/// Whether a device with an end to its life is worn out.
fn is_worn_out<T, E: std::error::Error>(
    done: &Result<T, FtlError<E>>,
    device: &Device,
) -> Result<bool, TestCaseError> {
    match done {
        Ok(_) => Ok(false),
        Err(FtlError::WornOut { .. }) if device.options.wear.endurance > 0 => Ok(true),
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

/// Three quarters of the writes go to a quarter of the device.
fn address(random: &mut Random, exported: u32) -> u32 {
    match random.below(4) {
        0 => random.below(exported),
        _ => random.below(exported / 4),
    }
}

/// Reads, writes and trims at random, on a device of either kind: what was written is read, and the map
/// does what the naive model does. `$value` is what write `$number` writes.
macro_rules! exercise {
    ($ftl:ident, $device:ident, $rounds:expr, |$random:ident, $number:ident| $value:expr) => {{
        let exported = $device.options.exported;
        let mut stored = vec![None; exported as usize];
        let mut seen = Seen::default();
        let mut refused = false;
        for $number in 0..exported * $rounds {
            let now = u64::from($number);
            let lpn = address(&mut $random, exported);
            $ftl.advance(now).unwrap();
            match $random.below(20) {
                0 => {
                    $ftl.trim(Lpn(lpn)).unwrap();
                    stored[lpn as usize] = None;
                }
                1..4 => {
                    let (found, _) = $ftl.read(now, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                    prop_assert_eq!(found, stored[lpn as usize]);
                }
                _ => {
                    let value = $value;
                    let done = $ftl.write(When::now(now), Lpn(lpn), value, Tag::NONE);
                    refused = is_worn_out(&done, &$device)?;
                    if !refused {
                        stored[lpn as usize] = Some(value);
                    }
                }
            }
            seen.see(&$ftl.core_mut().flash_mut().take());
            if refused {
                break;
            }
            if $number % 1999 == 0 {
                $ftl.check().map_err(TestCaseError::fail)?;
            }
        }
        $ftl.check().map_err(TestCaseError::fail)?;
        let units = $device.geometry.units_per_page();
        compare($ftl.core().counters(), $ftl.core().map_cache(), seen, units)?;
        for lpn in 0..exported {
            let (found, _) = $ftl
                .read(u64::MAX / 2, Lpn(lpn), Cause::Host, Tag::NONE)
                .unwrap();
            prop_assert_eq!(found, stored[lpn as usize]);
        }
    }};
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn the_plain_device_reads_and_writes_the_translation_pages_of_a_naive_model(
        device in devices(),
        seed in any::<u64>(),
        rounds in 1u32..5,
    ) {
        let both = Both::new(&device, EntryKind::Direct, PageTag(7));
        let mut ftl =
            PlainFtl::with_map_cache(medium::<PageTag>(&device.geometry), device.options.clone(), both).unwrap();
        let mut random = Random::new(seed);
        exercise!(ftl, device, rounds, |random, number| PageTag(number));
    }

    #[test]
    fn the_deduplicating_device_does_too_with_an_entry_for_each_page_that_shares(
        device in devices(),
        seed in any::<u64>(),
        values in select(vec![3u32, 500, 1_000_000]),
    ) {
        let both = Both::new(&device, EntryKind::Shared, PageTag(7));
        let dedup = DedupOptions {
            index_entries: Some(200),
            fingerprint_bits: 128,
            verify: false,
            bypass: None,
            out_of_line: false,
        };
        let (geometry, options) = (&device.geometry, device.options.clone());
        let mut ftl = ContentFtl::with_map_cache(medium::<PageTag>(geometry), options, dedup, NoCensus, both).unwrap();
        let mut random = Random::new(seed);
        exercise!(ftl, device, 2, |random, number| PageTag(random.below(values)));
    }
}

/// With every entry in RAM nothing is read or written for the map, and the device does exactly what one
/// without a cache does.
#[test]
fn a_cache_of_everything_costs_nothing() {
    let geometry = Geometry::single_plane(40, 64, 4096).unwrap();
    let options = FtlOptions::new(30 * 64);
    let exported = options.exported;
    let map_cache = CachedMap::new(exported, direct(exported), PageTag(0));
    let mut cached =
        PlainFtl::with_map_cache(medium::<PageTag>(&geometry), options.clone(), map_cache).unwrap();
    let mut resident = PlainFtl::new(medium::<PageTag>(&geometry), options).unwrap();
    let mut random = Random::new(2);
    for number in 0..exported * 6 {
        let lpn = address(&mut random, exported);
        let now = When::now(0);
        cached
            .write(now, Lpn(lpn), PageTag(number), Tag::NONE)
            .unwrap();
        resident
            .write(now, Lpn(lpn), PageTag(number), Tag::NONE)
            .unwrap();
        let ops = cached.core_mut().flash_mut().take();
        assert_eq!(ops, resident.core_mut().flash_mut().take());
    }
    let c = cached.core().counters();
    assert!(c.victims > 100 && c.map_misses <= u64::from(exported));
    assert_eq!((c.programs_map, c.page_reads_map), (0, 0));
    assert_eq!(c.map_hits + c.map_misses, c.host_writes);
}

/// Submits at an instant at which the device is idle; answers when the operation ends.
fn ends(
    ftl: &mut PlainFtl<NandSim, CachedMap<()>>,
    at: Time,
    submit: impl Fn(&mut PlainFtl<NandSim, CachedMap<()>>) -> Completion,
) -> Time {
    ftl.advance(at).unwrap();
    ftl.core_mut().finished().clear();
    match submit(ftl) {
        Completion::At { end, .. } => end - at,
        Completion::Later(_) => {
            ftl.advance(at + 900_000_000).unwrap();
            let done = ftl.core_mut().finished().pop();
            done.expect("it is reported").end - at
        }
    }
}

/// Each kind of access takes exactly the reads and programs that it waits for, one after the other.
#[test]
fn the_host_waits_for_the_translation_pages_it_needs() {
    for shared_channel in [false, true] {
        let timing = flashlore_flash::sim::Timing {
            shared_channel,
            ..slc()
        };
        let (read, program) = (25_000 + 102_400, 200_000 + 102_400);
        let flash = common::single_plane(64, 32, timing);
        let map_cache = CachedMap::new(1024, direct(1), ());
        let mut ftl = PlainFtl::with_map_cache(flash, FtlOptions::new(1024), map_cache).unwrap();
        let second: Time = 1_000_000_000;
        let mut step = 0;
        let mut write = |lpn: Lpn, expected: Time| {
            step += 1;
            let at = step * second;
            let took = ends(&mut ftl, at, |ftl| {
                ftl.write(When::now(at), lpn, (), Tag(1)).unwrap()
            });
            assert_eq!(took, expected, "step {step}: write of {lpn}");
        };
        // Nothing of the map is on flash yet.
        write(Lpn(0), program);
        // The entry of 0 makes room: its page is programmed first, by the same die.
        write(Lpn(600), 2 * program);
        let mut read_page = |lpn: Lpn, expected: Time| {
            step += 1;
            let at = step * second;
            let took = ends(&mut ftl, at, |ftl| {
                ftl.read(at, lpn, Cause::Host, Tag(1)).unwrap().1
            });
            assert_eq!(took, expected, "step {step}: read of {lpn}");
        };
        // Written back for the first time; then the translation page; then the data.
        read_page(Lpn(0), program + 2 * read);
        read_page(Lpn(0), read);
        // The entry that makes room is as on flash.
        read_page(Lpn(600), 2 * read);
        let c = ftl.core().counters();
        assert_eq!((c.map_hits, c.map_misses), (1, 4));
        assert_eq!((c.programs_map, c.page_reads_map), (2, 2));
        let mut write = |lpn: Lpn, expected: Time| {
            step += 1;
            let at = step * second;
            let took = ends(&mut ftl, at, |ftl| {
                ftl.write(When::now(at), lpn, (), Tag(1)).unwrap()
            });
            assert_eq!(took, expected, "step {step}: write of {lpn}");
        };
        write(Lpn(0), read + program);
        // The page of a dirty entry is read, brought up to date and programmed.
        write(Lpn(600), read + program + read + program);
        ftl.check().unwrap();
    }
}
