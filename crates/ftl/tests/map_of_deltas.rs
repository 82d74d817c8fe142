//! The map partly in RAM under deltas, compression, deduplication and old versions: fused entries
//! against a naive model; what lies elsewhere has changed its entry; counts are those of cached entries.

use crate::common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use common::maps::{Both, Device, Notes, devices};
use common::policies::{self, VERSIONS};
use common::values::{Lengths, Page, V};
use common::{Medium, Random, medium};
use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::geometry::Counts;
use flashlore_flash::record::Op;
use flashlore_flash::{Cause, Geometry, Lpn, ObjectId, Owned, Ppn, Tag, When};
use flashlore_ftl::content::decision::Write;
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::{CacheOptions, CachedMap, EntryKind, MapCache, Resident};
use flashlore_ftl::policies::options::{EncodingOptions, ViabilityOptions};
use flashlore_ftl::{ContentFtl, FtlOptions, Policies, Unhashed};
use proptest::prelude::*;
use proptest::sample::select;

type Ftl<K> = ContentFtl<V, Medium<Page>, NoCensus, K, Lengths, Past>;

/// What is on.
#[derive(Debug, Clone, Copy)]
struct On {
    dedup: bool,
    compress: bool,
    history: bool,
    hot_writes: u8,
    hot_reads: u8,
}

fn what_is_on() -> impl Strategy<Value = On> {
    (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        0u8..3,
        select(vec![2u8, 16]),
    )
        .prop_map(|(dedup, compress, history, hot_writes, hot_reads)| On {
            dedup,
            compress,
            history,
            hot_writes,
            hot_reads,
        })
}

const LENGTHS: Lengths = Lengths {
    least: 200,
    most: 1800,
    alone: 40,
};

fn policies(on: On) -> Policies<Lengths> {
    let delta = EncodingOptions {
        compress: on.compress,
        hot_writes: on.hot_writes,
        hot_reads: on.hot_reads,
        viability: ViabilityOptions {
            most_bytes: 4084,
            window: 100,
            probe: 10,
        },
        ..policies::DELTAS
    };
    Policies {
        dedup: DedupOptions {
            index_entries: if on.dedup { Some(300) } else { Some(0) },
            fingerprint_bits: 64,
            verify: false,
            bypass: None,
            out_of_line: false,
        },
        encoding: Some(delta),
        versions: on.history.then_some(VERSIONS),
        encoder: LENGTHS,
    }
}

/// A device of which so many hundredths are exported of what one with packed pages and two tables can.
fn device(drawn: &Device, on: On, fill: u32) -> (Ftl<Both<Page>>, u32, Rc<RefCell<Notes>>) {
    let build = |exported: u32| {
        let mut device = drawn.clone();
        device.options.exported = exported;
        let mut map_cache = Both::new(&device, EntryKind::Fused, Page::Packed(Vec::new()));
        // What finds no room waits.
        map_cache.mortal = true;
        let (medium, options) = (medium(&device.geometry), device.options);
        ContentFtl::with_policies(medium, options, policies(on), NoCensus, map_cache).unwrap()
    };
    let most = build(1).core().most_live() as u32;
    // Two pages of tables for 512 logical ones.
    let exported = (most - most / 200 - 4) * fill / 100;
    let mut ftl = build(exported);
    ftl.begin_history();
    let notes = ftl.core().map_cache().notes.clone();
    (ftl, exported, notes)
}

/// What the two tables have to say of a logical page; nothing where nobody would look.
type Parts = [Option<(Ppn, bool)>; 2];

fn parts<K: MapCache<Page>>(ftl: &Ftl<K>, lpn: Lpn) -> Parts {
    let Some(object) = ftl.objects().object_of(lpn) else {
        return [Some((Ppn::NONE, false)), None];
    };
    let place = |object: ObjectId| match (ftl.objects().packed(object), ftl.packing()) {
        (Some((pack, _)), Some(delta)) => delta.packs.at(pack),
        _ => ftl.objects().at(object),
    };
    let known = |ppn: Ppn, flag| ppn.is_some().then_some((ppn, flag));
    match ftl.objects().packed(object) {
        Some((_, base)) if base.is_some() => {
            [known(place(base), true), known(place(object), false)]
        }
        _ => [known(place(object), false), None],
    }
}

/// Entries as they were when they were last looked at, and counts of reads and writes.
struct Seen {
    parts: Vec<Parts>,
    counts: BTreeMap<Lpn, [u8; 2]>,
    notes: Rc<RefCell<Notes>>,
    /// Blocks moved because they are cold.
    moved: u64,
}

impl Seen {
    fn new(exported: u32, notes: Rc<RefCell<Notes>>) -> Self {
        Seen {
            notes,
            moved: 0,
            parts: vec![[Some((Ppn::NONE, false)), None]; exported as usize],
            counts: BTreeMap::new(),
        }
    }

    /// Everything that says something else than before was reported; answers how many parts.
    fn look(&mut self, ftl: &Ftl<Both<Page>>) -> Result<usize, TestCaseError> {
        let mut changed = 0;
        for lpn in 0..self.parts.len() as u32 {
            for (table, now) in parts(ftl, Lpn(lpn)).into_iter().enumerate() {
                let before = &mut self.parts[lpn as usize][table];
                if now.is_some() && now != *before {
                    changed += 1;
                    let reported = &self.notes.borrow().changed;
                    prop_assert!(
                        reported.contains(&(u64::from(lpn), table)),
                        "the entry of {lpn} said {before:?}, says {now:?} in table {table} unnoticed"
                    );
                    *before = now;
                }
            }
        }
        Ok(changed)
    }

    /// An operation counted one access and dropped entries.
    fn count(&mut self, access: Option<(Lpn, usize)>) {
        if let Some((lpn, kind)) = access {
            let count = &mut self.counts.entry(lpn).or_default()[kind];
            *count = (*count + 1).min(15);
        }
        for lpn in self.notes.borrow_mut().dropped.drain(..) {
            self.counts.remove(&lpn);
        }
    }

    fn compare_counts(&self, ftl: &Ftl<Both<Page>>) -> Result<(), TestCaseError> {
        let heat = &ftl.delta().unwrap().heat;
        for lpn in (0..self.parts.len() as u32).map(Lpn) {
            let expected = self.counts.get(&lpn).copied().unwrap_or_default();
            prop_assert_eq!(
                [heat.writes(lpn), heat.reads(lpn)],
                expected,
                "page {}",
                lpn
            );
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 18, ..ProptestConfig::default() })]

    #[test]
    fn fused_entries_are_read_and_written_as_in_a_naive_model(
        drawn in devices(),
        on in what_is_on(),
        fill in 60u32..101,
        seed in any::<u64>(),
        values in select(vec![40u32, 1_000_000]),
    ) {
        let mut drawn = drawn;
        drawn.options.wear.endurance = 0;
        // Cold blocks are moved as they are, packed pages too.
        drawn.options.wear.static_gap = drawn.options.wear.static_gap.min(1);
        let (mut ftl, exported, notes) = device(&drawn, on, fill);
        let mut random = Random::new(seed);
        let mut stored: BTreeMap<Lpn, V> = BTreeMap::new();
        let mut seen = Seen::new(exported, notes);
        let (mut reads, mut new, mut others) = (0, 0, 0);
        for number in 0..exported * 2 {
            let now = u64::from(number) + 1;
            let lpn = Lpn(match random.below(4) {
                0 => random.below(exported),
                _ => random.below(exported / 6),
            });
            ftl.advance(now).unwrap();
            ftl.set_instant(now);
            let mut access = None;
            match random.below(40) {
                0 => {
                    ftl.trim(lpn).unwrap();
                    stored.remove(&lpn);
                    seen.counts.remove(&lpn);
                }
                1..6 => {
                    let (found, _) = ftl.read(now, lpn, Cause::Host, Tag::NONE).unwrap();
                    prop_assert_eq!(found.map(|page| page.value()), stored.get(&lpn).copied());
                    access = found_access(&stored, lpn);
                    ftl.merge_if_read_hot(When::now(now), lpn).unwrap();
                }
                6 if number % 7 == 0 => {
                    ftl.begin_cold_scan();
                    seen.counts.clear();
                }
                7 => {
                    ftl.merge_cold(now).unwrap();
                }
                8 if number % 5 == 0 => ftl.flush_packs(now).unwrap(),
                9 if number % 3 == 0 && on.history => {
                    let back = now - u64::from(random.below(40)).min(now - 1);
                    if ftl.rewind_to(back).is_ok() {
                        for lpn in (0..exported).map(Lpn) {
                            let object = ftl.objects().object_of(lpn);
                            match object {
                                Some(object) => stored.insert(lpn, ftl.objects().content(object)),
                                None => stored.remove(&lpn),
                            };
                        }
                    }
                }
                _ => {
                    let value = V(random.below(values));
                    write(&mut ftl, on.dedup, now, lpn, value)?;
                    stored.insert(lpn, value);
                    access = Some((lpn, 0));
                }
            }
            seen.count(access);
            for op in ftl.core_mut().flash_mut().take() {
                match op {
                    Op::Read { cause, .. } => reads += u64::from(cause == Cause::Map),
                    Op::Program { owner: Some(owner), from: None, .. } => {
                        let of_map = matches!(owner.owned(), Owned::MapPage(_));
                        new += u64::from(of_map);
                        others += u64::from(!of_map);
                    }
                    _ => {}
                }
            }
            let moved = ftl.core().counters().wear_victims;
            if number % 61 == 0 || std::mem::replace(&mut seen.moved, moved) != moved {
                seen.look(&ftl)?;
                seen.notes.borrow_mut().changed.clear();
            }
            if number % 997 == 0 {
                ftl.check().map_err(TestCaseError::fail)?;
                seen.compare_counts(&ftl)?;
            }
        }
        ftl.check().map_err(TestCaseError::fail)?;
        seen.compare_counts(&ftl)?;
        let c = ftl.core().counters();
        let model = &ftl.core().map_cache().model;
        prop_assert_eq!((c.map_hits, c.map_misses), (model.hits, model.misses));
        let writes = model.writes + model.journal_writes;
        prop_assert_eq!((c.programs_map, c.page_reads_map), (writes, reads));
        prop_assert_eq!((c.programs_journal, c.map_folds), (model.journal_writes, model.folds));
        if drawn.geometry.units_per_page() == 1 {
            prop_assert_eq!(new, c.programs_map);
            prop_assert!(reads <= model.reads);
        }
        prop_assert!(others > 0);
    }
}

/// A read of a page that holds something is counted.
fn found_access(stored: &BTreeMap<Lpn, V>, lpn: Lpn) -> Option<(Lpn, usize)> {
    stored.contains_key(&lpn).then_some((lpn, 1))
}

/// Writes as a host does: the base is read before.
fn write<K: MapCache<Page>>(
    ftl: &mut Ftl<K>,
    hashes: bool,
    now: u64,
    lpn: Lpn,
    value: V,
) -> Result<(), TestCaseError> {
    let when = When::now(now);
    let encode = ftl.begin_write(lpn);
    if encode {
        ftl.fetch_base(now, lpn, value, None, Tag::NONE).unwrap();
    }
    let done = match hashes {
        true => ftl
            .commit(
                when,
                Write {
                    encode,
                    ..Write::new(lpn, value)
                },
                ContentFtl::is_same,
                Tag::NONE,
            )
            .map(drop),
        false => ftl
            .commit(
                when,
                Write {
                    encode,
                    unhashed: Some(Unhashed::Off),
                    ..Write::new(lpn, value)
                },
                ContentFtl::is_same,
                Tag::NONE,
            )
            .map(drop),
    };
    done.map_err(|error| TestCaseError::fail(error.to_string()))
}

/// A device that is never collected.
fn large(entries: u32) -> Device {
    let geometry = Geometry::new(Counts {
        channels: 1,
        packages_per_channel: 1,
        dies_per_package: 1,
        planes_per_die: 1,
        blocks_per_plane: 300,
        pages_per_block: 64,
        page_bytes: 4096,
    })
    .unwrap();
    Device {
        options: FtlOptions::new(1200),
        geometry,
        cache: CacheOptions {
            entries,
            protected: entries / 2,
            kind: EntryKind::Fused,
            journal_pages: 0,
        },
    }
}

const DELTAS: On = On {
    dedup: false,
    compress: false,
    history: false,
    hot_writes: 2,
    hot_reads: 3,
};

/// Without collection nothing is reported but what has changed: a base that moved once, a delta when
/// it is programmed and not before.
#[test]
fn nothing_is_reported_but_what_changed() {
    let drawn = large(40);
    let map_cache = Both::new(&drawn, EntryKind::Fused, Page::Packed(Vec::new()));
    let notes = map_cache.notes.clone();
    let (medium, options) = (medium(&drawn.geometry), drawn.options);
    let mut ftl =
        ContentFtl::with_policies(medium, options, policies(DELTAS), NoCensus, map_cache).unwrap();
    let mut seen = Seen::new(1200, notes);
    let mut random = Random::new(9);
    let (mut merged, mut total) = (0, 0);
    for number in 0..6000 {
        let lpn = random.below(60);
        ftl.advance(number).unwrap();
        match random.below(12) {
            0 => ftl.trim(Lpn(lpn)).unwrap(),
            1..3 => {
                ftl.read(number, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                merged += u32::from(ftl.merge_if_read_hot(When::now(number), Lpn(lpn)).unwrap());
            }
            _ => write(&mut ftl, false, number, Lpn(lpn), V(number as u32)).unwrap(),
        }
        let changed = seen.look(&ftl).unwrap();
        let mut reported = std::mem::take(&mut seen.notes.borrow_mut().changed);
        if parts(&ftl, Lpn(lpn))[1].is_none() {
            // Its older delta got a place and was replaced in the same step.
            reported.remove(&(u64::from(lpn), 1));
        }
        assert_eq!(changed, reported.len(), "step {number}: {reported:?}");
        total += changed;
    }
    let c = ftl.encoding_counters().unwrap();
    assert!(c.deltas > 300 && merged > 20 && total > 3000);
    assert_eq!(ftl.core().counters().victims, 0);
}

/// With every entry in RAM nothing is read or written for the map, and the device does exactly what one
/// without a cache does, collection included.
#[test]
fn a_cache_of_everything_costs_nothing() {
    for on in [
        DELTAS,
        On {
            compress: true,
            history: true,
            dedup: true,
            ..DELTAS
        },
    ] {
        let geometry = Geometry::single_plane(60, 64, 4096).unwrap();
        let options = FtlOptions::new(30 * 64);
        let exported = options.exported;
        let cache = CacheOptions {
            entries: exported,
            protected: exported / 2,
            kind: EntryKind::Fused,
            journal_pages: 0,
        };
        let map_cache = CachedMap::new(exported, cache, Page::Packed(Vec::new()));
        let mut most_pinned = policies(on);
        // Translation pages take room that packed pages have otherwise: the limit of these may not bind.
        most_pinned.encoding.as_mut().unwrap().most_pinned = exported / 8;
        let (options_too, policies_too) = (options.clone(), most_pinned.clone());
        let mut cached =
            ContentFtl::with_policies(medium(&geometry), options, most_pinned, NoCensus, map_cache)
                .unwrap();
        let mut resident = ContentFtl::with_policies(
            medium(&geometry),
            options_too,
            policies_too,
            NoCensus,
            Resident,
        )
        .unwrap();
        let mut random = Random::new(2);
        for number in 0..u64::from(exported) * 12 {
            let lpn = random.below(exported / 2);
            let value = V(random.below(100_000));
            write(&mut cached, on.dedup, number, Lpn(lpn), value).unwrap();
            write(&mut resident, on.dedup, number, Lpn(lpn), value).unwrap();
            let ops = cached.core_mut().flash_mut().take();
            assert_eq!(
                ops,
                resident.core_mut().flash_mut().take(),
                "write {number}"
            );
        }
        assert_eq!(cached.encoding_counters(), resident.encoding_counters());
        let c = cached.core().counters();
        assert!(c.victims > 20, "{} victims", c.victims);
        assert!(c.map_misses <= u64::from(exported));
        assert_eq!((c.programs_map, c.page_reads_map), (0, 0));
        assert_eq!(c.map_hits + c.map_misses, c.host_writes);
        cached.check().unwrap();
    }
}

/// The read of a delta whose entry is not in RAM reads a page of either table, then base and delta;
/// that of a whole page reads one table.
#[test]
fn a_delta_is_found_through_both_tables() {
    let drawn = large(1);
    let map_cache = CachedMap::new(1200, drawn.cache, Page::Packed(Vec::new()));
    let medium = medium(&drawn.geometry);
    let on = On {
        hot_writes: 0,
        hot_reads: 16,
        ..DELTAS
    };
    let mut ftl =
        ContentFtl::with_policies(medium, drawn.options, policies(on), NoCensus, map_cache)
            .unwrap();
    write(&mut ftl, false, 0, Lpn(3), V(1)).unwrap();
    write(&mut ftl, false, 0, Lpn(3), V(2)).unwrap();
    ftl.flush_packs(0).unwrap();
    // Its entry makes room, newer than both tables.
    write(&mut ftl, false, 0, Lpn(700), V(3)).unwrap();
    assert_eq!(ftl.core().counters().programs_map, 2);
    let reads = |ftl: &mut Ftl<CachedMap<Page>>, lpn| {
        let (map, host) = {
            let c = ftl.core().counters();
            (c.page_reads_map, c.page_reads_host)
        };
        ftl.read(0, lpn, Cause::Host, Tag::NONE).unwrap();
        let c = ftl.core().counters();
        (c.page_reads_map - map, c.page_reads_host - host)
    };
    assert_eq!(reads(&mut ftl, Lpn(3)), (2, 2));
    assert_eq!(reads(&mut ftl, Lpn(3)), (0, 2));
    // The entry of 700 was written back for the other.
    assert_eq!(reads(&mut ftl, Lpn(700)), (1, 1));
    // A third version stands on the same base: while it waits in RAM no table changes.
    write(&mut ftl, false, 0, Lpn(3), V(4)).unwrap();
    let before = ftl.core().counters().programs_map;
    assert_eq!(reads(&mut ftl, Lpn(700)), (1, 1));
    assert_eq!(ftl.core().counters().programs_map, before);
    assert_eq!(reads(&mut ftl, Lpn(3)), (1, 1));
    // It gets its place while its entry is not in RAM: the second table alone is rewritten.
    assert_eq!(reads(&mut ftl, Lpn(700)), (1, 1));
    ftl.flush_packs(0).unwrap();
    assert_eq!(reads(&mut ftl, Lpn(700)), (1, 1));
    assert_eq!(ftl.core().counters().programs_map, before + 1);
    ftl.check().unwrap();
}

/// A table of which every entry is in RAM is written by folds alone, each page of it at most once a fold.
#[test]
fn journals_are_programmed_page_by_page_and_folded_when_they_are_full() {
    let mut drawn = large(1200);
    drawn.cache.journal_pages = 2;
    let map_cache = Both::new(&drawn, EntryKind::Fused, Page::Packed(Vec::new()));
    let (medium, options) = (medium(&drawn.geometry), drawn.options);
    // Never write-hot: every write changes the first table alone.
    let on = On {
        hot_writes: 16,
        ..DELTAS
    };
    let mut ftl =
        ContentFtl::with_policies(medium, options, policies(on), NoCensus, map_cache).unwrap();
    let write_all = |ftl: &mut Ftl<Both<Page>>, pages: std::ops::Range<u64>| {
        for number in pages {
            write(
                ftl,
                false,
                number,
                Lpn(number as u32 % 400),
                V(number as u32),
            )
            .unwrap();
        }
        let c = ftl.core().counters();
        (
            c.programs_journal,
            c.map_folds,
            c.programs_map - c.programs_journal,
        )
    };
    // A page is programmed with the access after the record that fills it.
    assert_eq!(write_all(&mut ftl, 0..512), (0, 0, 0));
    assert_eq!(write_all(&mut ftl, 512..513), (1, 0, 0));
    assert_eq!(write_all(&mut ftl, 513..1024), (1, 0, 0));
    // The second is the last of the journal: the one page of the table with entries is written.
    assert_eq!(write_all(&mut ftl, 1024..1025), (2, 1, 1));
    assert_eq!(ftl.core().map_cache().model.journal_pages(), 0);
    assert_eq!(write_all(&mut ftl, 1025..2049), (4, 2, 2));
    ftl.check().unwrap();
}

/// A journal that is being folded is needed until the last page of its table is written.
#[test]
fn a_journal_stays_until_its_table_is_written() {
    let cache = CacheOptions {
        entries: 1200,
        protected: 0,
        kind: EntryKind::Direct,
        journal_pages: 1,
    };
    let mut map: CachedMap<u32> = CachedMap::new(1200, cache, 0);
    for lpn in [0, 600] {
        map.access(Lpn(lpn));
        (0..256).for_each(|_| map.changed(Lpn(lpn)));
    }
    let page = map.due().expect("512 changes are a page");
    map.journalled();
    assert!(map.begin_fold() && map.due().is_none());
    for table_page in [0, 1] {
        assert_eq!(
            (
                map.is_stale(flashlore_flash::MapPageId(table_page)),
                map.take_folded()
            ),
            (true, None)
        );
        map.written(flashlore_flash::MapPageId(table_page));
    }
    assert_eq!((map.take_folded(), map.take_folded()), (Some(page), None));
}

/// A base in RAM is not read, and its write asks for it again when it has been encoded: the entry is used once.
#[test]
fn a_write_that_asks_twice_for_its_base_uses_its_entry_once() {
    let drawn = large(100);
    let map_cache = CachedMap::new(1200, drawn.cache, Page::Packed(Vec::new()));
    let on = On {
        compress: true,
        hot_writes: 0,
        ..DELTAS
    };
    let (medium, options) = (medium(&drawn.geometry), drawn.options);
    let mut ftl =
        ContentFtl::with_policies(medium, options, policies(on), NoCensus, map_cache).unwrap();
    write(&mut ftl, false, 0, Lpn(3), V(1)).unwrap();
    assert!(
        ftl.objects()
            .is_packed(ftl.objects().object_of(Lpn(3)).unwrap())
    );
    assert!(ftl.begin_write(Lpn(3)));
    for _ in 0..2 {
        let read = ftl.fetch_base(0, Lpn(3), V(2), None, Tag::NONE).unwrap();
        assert!(read.is_none(), "its base is in RAM");
    }
    let when = When::now(0);
    ftl.commit(
        when,
        Write {
            encode: true,
            unhashed: Some(Unhashed::Off),
            ..Write::new(Lpn(3), V(2))
        },
        ContentFtl::is_same,
        Tag::NONE,
    )
    .unwrap();
    let c = ftl.core().counters();
    assert_eq!((c.map_hits, c.map_misses), (1, 1));
    // A write without a base does not find the entry used already.
    ftl.commit(
        when,
        Write {
            encode: false,
            unhashed: Some(Unhashed::Off),
            ..Write::new(Lpn(3), V(3))
        },
        ContentFtl::is_same,
        Tag::NONE,
    )
    .unwrap();
    assert_eq!(ftl.core().counters().map_hits, 2);
}

/// A cold block of packed pages is moved as it is: the second table says where they lie now.
#[test]
fn deltas_that_wear_levelling_moves_change_their_entries() {
    let mut drawn = large(40);
    drawn.geometry = Geometry::single_plane(60, 16, 4096).unwrap();
    drawn.options = FtlOptions::new(300);
    drawn.options.wear.static_gap = 1;
    let map_cache = Both::new(&drawn, EntryKind::Fused, Page::Packed(Vec::new()));
    let notes = map_cache.notes.clone();
    let on = On {
        hot_writes: 0,
        hot_reads: 16,
        ..DELTAS
    };
    let (medium, options) = (medium(&drawn.geometry), drawn.options);
    let mut ftl =
        ContentFtl::with_policies(medium, options, policies(on), NoCensus, map_cache).unwrap();
    let mut seen = Seen::new(300, notes);
    // Packed pages that nobody writes again, in more than a block.
    for number in 0..240 {
        write(&mut ftl, false, 0, Lpn(number % 120), V(number)).unwrap();
    }
    ftl.flush_packs(0).unwrap();
    seen.look(&ftl).unwrap();
    let places = |ftl: &Ftl<Both<Page>>| -> Vec<_> {
        (0..120).filter_map(|lpn| parts(ftl, Lpn(lpn))[1]).collect()
    };
    let first = places(&ftl);
    let mut number = 0;
    while places(&ftl) == first {
        assert!(number < 20_000, "no packed page was moved");
        seen.notes.borrow_mut().changed.clear();
        let (lpn, value) = (150 + number % 100, V(1000 + number));
        let when = When::now(0);
        ftl.commit(
            when,
            Write {
                encode: false,
                unhashed: Some(Unhashed::Off),
                ..Write::new(Lpn(lpn), value)
            },
            ContentFtl::is_same,
            Tag::NONE,
        )
        .unwrap();
        seen.look(&ftl).unwrap();
        number += 1;
    }
    let c = ftl.core().counters();
    assert!(c.wear_victims > 0 && ftl.encoding_counters().unwrap().repacked == 0);
    ftl.check().unwrap();
}
