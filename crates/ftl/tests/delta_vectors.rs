//! The vectors and invariants of DeltaFTL's specification (spec/delta-ftl.md), one by one, and what
//! deltas and deduplication do to each other (the conflicts of spec/matrix.md).

use crate::common;

use common::policies::DELTAS;
use common::values::{Lengths, Page, V};
use common::{Medium, Random, medium};
use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::{Cause, Geometry, Lpn, ObjectId, Ppn, Tag, When};
use flashlore_ftl::content::encoding::EncodingCounters;
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::policies::options::{EncodingOptions, NEVER};
use flashlore_ftl::{ContentFtl, FtlOptions, Outcome, Policies};

type Device = ContentFtl<V, Medium<Page>, NoCensus, Resident, Lengths, Past>;

fn fixed(bytes: u16) -> Lengths {
    Lengths {
        least: bytes,
        most: bytes,
        alone: 0,
    }
}

/// A device with one plane of blocks of 16 pages and an index of so many entries; 0 for no deduplication.
fn device(
    blocks: u32,
    pages: u32,
    delta: EncodingOptions,
    entries: u32,
    encoder: Lengths,
) -> Device {
    let dedup = DedupOptions {
        index_entries: Some(entries),
        fingerprint_bits: 64,
        verify: false,
        bypass: None,
        out_of_line: false,
    };
    device_with(blocks, pages, delta, dedup, encoder)
}

fn device_with(
    blocks: u32,
    pages: u32,
    delta: EncodingOptions,
    dedup: DedupOptions,
    encoder: Lengths,
) -> Device {
    let policies = Policies {
        dedup,
        encoding: Some(delta),
        versions: None,
        encoder,
    };
    let geometry = Geometry::single_plane(blocks, 16, 4096).unwrap();
    let medium = medium(&geometry);
    let options = FtlOptions::new(pages);
    ContentFtl::with_policies(medium, options, policies, NoCensus, Resident).unwrap()
}

fn write(ftl: &mut Device, lpn: Lpn, value: u32) -> Outcome {
    let done = ftl.write(When::now(0), lpn, V(value), Tag::NONE);
    done.unwrap().0
}

fn read(ftl: &mut Device, lpn: Lpn) -> Option<u32> {
    let (page, _) = ftl.read(0, lpn, Cause::Host, Tag::NONE).unwrap();
    page.map(|page| page.value().0)
}

fn counters(ftl: &Device) -> EncodingCounters {
    ftl.encoding_counters().unwrap()
}

/// Flash pages programmed for what the host wrote.
fn foreground(ftl: &Device) -> u64 {
    ftl.core().counters().programs_host + ftl.core().counters().programs_log
}

/// Where the two parts of a page in delta form lie: its base, and its packed page.
fn parts(ftl: &Device, lpn: Lpn) -> (Ppn, Ppn) {
    let object = ftl.objects().object_of(lpn).unwrap();
    let (pack, base) = ftl.objects().packed(object).unwrap();
    (
        ftl.objects().at(base),
        ftl.packing().unwrap().packs.at(pack),
    )
}

fn is_delta(ftl: &Device, lpn: Lpn) -> bool {
    let object = ftl.objects().object_of(lpn);
    object.is_some_and(|o| ftl.objects().packed(o).is_some())
}

fn is_valid(ftl: &Device, ppn: Ppn) -> bool {
    ftl.core().blocks().is_valid(ppn)
}

/// A page in delta form, its delta on flash.
fn one_delta(encoder: Lengths, delta: EncodingOptions) -> (Device, Ppn, Ppn) {
    let mut ftl = device(30, 40, delta, 0, encoder);
    assert_eq!(write(&mut ftl, Lpn(7), 1), Outcome::Programmed);
    assert_eq!(write(&mut ftl, Lpn(7), 2), Outcome::Packed);
    ftl.flush_packs(0).unwrap();
    let (base, pack) = parts(&ftl, Lpn(7));
    assert!(is_valid(&ftl, base) && is_valid(&ftl, pack) && base != pack);
    (ftl, base, pack)
}

#[test]
fn the_first_write_is_whole_the_second_a_delta_and_two_reads_end_that() {
    let (mut ftl, base, pack) = one_delta(fixed(500), DELTAS);
    assert_eq!(read(&mut ftl, Lpn(7)), Some(2));
    assert!(!ftl.merge_if_read_hot(When::now(0), Lpn(7)).unwrap());
    assert_eq!(read(&mut ftl, Lpn(7)), Some(2));
    assert_eq!(ftl.core().counters().page_reads_host, 4);
    assert!(ftl.merge_if_read_hot(When::now(0), Lpn(7)).unwrap());
    // (c): a merge ends delta and base.
    assert!(!is_valid(&ftl, base) && !is_valid(&ftl, pack) && !is_delta(&ftl, Lpn(7)));
    assert_eq!(write(&mut ftl, Lpn(7), 3), Outcome::Programmed);
    ftl.begin_cold_scan();
    assert_eq!(write(&mut ftl, Lpn(7), 4), Outcome::Programmed);
    assert_eq!(write(&mut ftl, Lpn(7), 5), Outcome::Packed);
    ftl.check().unwrap();
}

#[test]
fn a_write_that_does_not_compress_ends_delta_and_base() {
    let lengths = Lengths {
        least: 100,
        most: 4000,
        alone: 0,
    };
    let short = |value: u32| lengths.of(Some(V(1)), V(value)) <= 1000;
    assert!(short(2), "the second value's delta fits");
    let most_bytes = EncodingOptions {
        most_bytes: 1000,
        ..DELTAS
    };
    let (mut ftl, base, pack) = one_delta(lengths, most_bytes);
    let long = (3..).find(|&value| !short(value)).unwrap();
    assert_eq!(write(&mut ftl, Lpn(7), long), Outcome::Programmed);
    assert!(!is_valid(&ftl, base) && !is_valid(&ftl, pack));
    ftl.check().unwrap();
}

#[test]
fn a_newer_delta_ends_the_older_and_keeps_the_base() {
    let (mut ftl, base, pack) = one_delta(fixed(500), DELTAS);
    assert_eq!(write(&mut ftl, Lpn(7), 3), Outcome::Packed);
    assert!(is_valid(&ftl, base) && !is_valid(&ftl, pack));
    assert_eq!(parts(&ftl, Lpn(7)), (base, Ppn::NONE));
    ftl.flush_packs(0).unwrap();
    assert_eq!(
        (read(&mut ftl, Lpn(7)), parts(&ftl, Lpn(7)).0),
        (Some(3), base)
    );
    ftl.check().unwrap();
}

#[test]
fn a_trim_ends_delta_and_base_and_forgets_the_counts() {
    let (mut ftl, base, pack) = one_delta(fixed(500), DELTAS);
    ftl.trim(Lpn(7)).unwrap();
    assert!(!is_valid(&ftl, base) && !is_valid(&ftl, pack));
    assert_eq!((read(&mut ftl, Lpn(7)), ftl.objects().live()), (None, 0));
    // Reads of nothing are not counted either: the page is as new.
    assert_eq!(read(&mut ftl, Lpn(7)), None);
    assert_eq!(write(&mut ftl, Lpn(7), 3), Outcome::Programmed);
    assert_eq!(write(&mut ftl, Lpn(7), 4), Outcome::Packed);
    ftl.trim(Lpn(7)).unwrap(); // in RAM still
    ftl.flush_packs(0).unwrap();
    assert_eq!(ftl.core().counters().programs_log, 1);
    ftl.check().unwrap();
}

#[test]
fn overwriting_once_saves_three_quarters_of_a_page_and_four_times_three_pages() {
    // D12: with their slots, four deltas of 1014 bytes fill a page but for four bytes.
    let once = EncodingOptions {
        hot_reads: NEVER,
        ..DELTAS
    };
    for (pages, updates) in [(4, 1), (8, 4)] {
        let mut ftl = device(30, 40, once, 0, fixed(1014));
        for value in 0..=updates {
            for lpn in 0..pages {
                write(&mut ftl, Lpn(lpn), 100 * lpn + value);
            }
        }
        ftl.flush_packs(0).unwrap();
        let whole = u64::from(pages * (updates + 1));
        let saved = whole - foreground(&ftl);
        assert_eq!(
            4 * saved,
            u64::from(pages * updates * 3),
            "{updates} updates"
        );
    }
}

#[test]
fn foreground_pages_follow_the_share_and_the_size_of_what_is_compressible() {
    // D13 and invariant 7: of 100 pages written in turn some are read-hot, and so stored whole.
    for whole_pages in [50, 20] {
        for (bytes, fit) in [
            (2048, 1),
            (2038, 2),
            (1434, 2),
            (1356, 3),
            (819, 4),
            (810, 5),
        ] {
            let mut ftl = device(300, 100, DELTAS, 0, fixed(bytes));
            for lpn in 0..100 {
                write(&mut ftl, Lpn(lpn), lpn);
                if lpn < whole_pages {
                    read(&mut ftl, Lpn(lpn));
                    read(&mut ftl, Lpn(lpn));
                }
            }
            ftl.core_mut().restart_counters();
            let requests = 3000;
            for number in 0..requests {
                write(&mut ftl, Lpn(number % 100), 1000 + number);
            }
            ftl.flush_packs(0).unwrap();
            let n = f64::from(requests);
            let deltas = counters(&ftl).deltas;
            let pc = deltas as f64 / n;
            let rc = counters(&ftl).delta_bytes as f64 / deltas as f64 / 4096.0;
            assert_eq!(
                (pc, rc),
                (
                    1.0 - f64::from(whole_pages) / 100.0,
                    f64::from(bytes) / 4096.0
                )
            );
            let written = foreground(&ftl);
            assert_eq!(written, (requests as u64 - deltas) + deltas.div_ceil(fit));
            // A page is flushed when the next delta does not fit: less than one of them is lost.
            let payload = 4096.0 - 4.0 - f64::from(bytes + 8);
            let slotted = f64::from(bytes + 8) * deltas as f64;
            let least = (1.0 - pc + pc * rc) * n;
            let most = (1.0 - pc) * n + (slotted / payload).ceil() + 1.0;
            assert!(
                (least..=most).contains(&(written as f64)),
                "{least} {written} {most}"
            );
        }
    }
}

#[test]
fn a_base_that_collection_moves_goes_on_decoding() {
    let mut ftl = device(13, 108, DELTAS, 0, fixed(500));
    let mut random = Random::new(1);
    for lpn in 0..108 {
        write(&mut ftl, Lpn(lpn), lpn);
        if lpn != 6 && lpn != 7 {
            // Read-hot: never a delta.
            read(&mut ftl, Lpn(lpn));
            read(&mut ftl, Lpn(lpn));
        }
    }
    write(&mut ftl, Lpn(7), 1000);
    ftl.flush_packs(0).unwrap();
    let mut last = parts(&ftl, Lpn(7));
    let mut moves = (0, 0);
    for number in 0..5000 {
        write(&mut ftl, Lpn(8 + random.below(100)), 2000 + number);
        if number % 5 == 0 {
            // Blocks of packed pages fill, too.
            write(&mut ftl, Lpn(6), 10_000 + number);
            ftl.flush_packs(0).unwrap();
        }
        let now = parts(&ftl, Lpn(7));
        moves.0 += u32::from(now.0 != last.0);
        moves.1 += u32::from(now.1 != last.1);
        last = now;
        let (page, _) = ftl.read(0, Lpn(7), Cause::Scan, Tag::NONE).unwrap();
        assert_eq!(page.map(|page| page.value()), Some(V(1000)));
        assert_eq!(
            ftl.objects()
                .packed(ftl.objects().get(Lpn(7)))
                .map(|(_, b)| ftl.objects().content(b)),
            Some(V(7))
        );
    }
    assert!(moves.0 > 20 && moves.1 > 20, "{moves:?}");
    assert_eq!(ftl.core().counters().programs_merge, 0);
    ftl.check().unwrap();
}

#[test]
fn every_page_in_delta_form_on_little_spare_space_does_not_livelock() {
    for most_pinned in [u32::MAX, 100] {
        for bytes in [205, 1229, 2867] {
            let options = EncodingOptions {
                hot_reads: NEVER,
                most_pinned,
                ..DELTAS
            };
            let blocks = 128;
            let pages = blocks * 16 * 100 / 107;
            let mut ftl = device(blocks, pages, options, 0, fixed(bytes));
            for round in 0..2 {
                for lpn in 0..pages {
                    write(&mut ftl, Lpn(lpn), 10_000 * round + lpn);
                }
            }
            ftl.check().unwrap();
            let erases = ftl.core().counters().erases;
            let mut random = Random::new(u64::from(bytes));
            let mut last = vec![None; pages as usize];
            for number in 0..8 * pages {
                let lpn = random.below(pages);
                write(&mut ftl, Lpn(lpn), 100_000 + number);
                last[lpn as usize] = Some(100_000 + number);
            }
            ftl.check().unwrap();
            let erases = ftl.core().counters().erases - erases;
            let of_a_write = erases as f64 * 16.0 / f64::from(8 * pages);
            println!("{bytes} bytes, {most_pinned} pinned: {of_a_write:.2} pages erased a write");
            assert!(
                of_a_write < 20.0,
                "{bytes} bytes: {of_a_write:.1} pages erased a write"
            );
            for (lpn, value) in (0..).zip(&last) {
                let found = read(&mut ftl, Lpn(lpn));
                assert!(value.is_none_or(|value| found == Some(value)));
            }
        }
    }
}

/// Pages 0 and 1 share value 1; every write from there on is a delta, if it is not a duplicate.
fn shared_base(entries: u32) -> Device {
    let options = EncodingOptions {
        hot_writes: 1,
        ..DELTAS
    };
    let mut ftl = device(30, 40, options, entries, fixed(1000));
    assert_eq!(write(&mut ftl, Lpn(0), 1), Outcome::Programmed);
    assert_eq!(write(&mut ftl, Lpn(1), 1), Outcome::Shared);
    ftl
}

/// Overwrites pages from 10 on until everything was collected.
fn collect_all(ftl: &mut Device) {
    let before = ftl.core().counters().erases;
    for number in 0.. {
        write(ftl, Lpn(10 + number % 30), 1_000_000 + number);
        if number % 30 == 0 {
            ftl.begin_cold_scan();
        }
        if ftl.core().counters().erases > before + 200 {
            break;
        }
    }
    ftl.check().unwrap();
}

#[test]
fn a_shared_base_outlives_the_pages_that_held_it() {
    let mut ftl = shared_base(100);
    assert_eq!(write(&mut ftl, Lpn(0), 2), Outcome::Packed);
    ftl.flush_packs(0).unwrap();
    assert_eq!(ftl.packing().unwrap().pinned, 0);
    let (base, _) = parts(&ftl, Lpn(0));
    ftl.trim(Lpn(1)).unwrap();
    assert!(is_valid(&ftl, base));
    assert_eq!(ftl.packing().unwrap().pinned, 1);
    assert_eq!(read(&mut ftl, Lpn(0)), Some(2));
    // The base is in the index still: a page that is written with its value shares it.
    assert_eq!(write(&mut ftl, Lpn(2), 1), Outcome::Shared);
    assert_eq!(ftl.packing().unwrap().pinned, 0);
    ftl.check().unwrap();
    ftl.trim(Lpn(2)).unwrap();
    ftl.trim(Lpn(0)).unwrap();
    assert!(!is_valid(&ftl, base));
    assert_eq!(
        (ftl.objects().live(), ftl.packing().unwrap().packed),
        (0, 0)
    );
    ftl.check().unwrap();
}

#[test]
fn two_pages_have_different_deltas_on_one_base() {
    let mut ftl = shared_base(100);
    assert_eq!(write(&mut ftl, Lpn(0), 2), Outcome::Packed);
    assert_eq!(write(&mut ftl, Lpn(1), 3), Outcome::Packed);
    ftl.flush_packs(0).unwrap();
    assert_eq!(parts(&ftl, Lpn(0)).0, parts(&ftl, Lpn(1)).0);
    assert_eq!(
        (read(&mut ftl, Lpn(0)), read(&mut ftl, Lpn(1))),
        (Some(2), Some(3))
    );
    ftl.check().unwrap();
    // One of them leaves: the base stays for the other.
    let (base, _) = parts(&ftl, Lpn(0));
    ftl.trim(Lpn(0)).unwrap();
    assert!(is_valid(&ftl, base));
    assert_eq!(read(&mut ftl, Lpn(1)), Some(3));
    ftl.check().unwrap();
    collect_all(&mut ftl);
    let (page, _) = ftl.read(0, Lpn(1), Cause::Scan, Tag::NONE).unwrap();
    assert_eq!(page.map(|p| p.value()), Some(V(3)));
}

#[test]
fn both_of_two_deltas_on_one_base_survive_collection() {
    let mut ftl = shared_base(100);
    write(&mut ftl, Lpn(0), 2);
    write(&mut ftl, Lpn(1), 3);
    collect_all(&mut ftl);
    for (lpn, value) in [(0, 2), (1, 3)] {
        let (page, _) = ftl.read(0, Lpn(lpn), Cause::Scan, Tag::NONE).unwrap();
        assert_eq!(page.map(|p| p.value()), Some(V(value)));
    }
}

#[test]
fn a_base_may_have_left_the_index() {
    let mut ftl = shared_base(1);
    assert_eq!(write(&mut ftl, Lpn(5), 9), Outcome::Programmed); // takes the entry
    assert_eq!(write(&mut ftl, Lpn(0), 2), Outcome::Packed);
    assert_eq!(write(&mut ftl, Lpn(1), 3), Outcome::Packed);
    assert_eq!(write(&mut ftl, Lpn(6), 1), Outcome::Programmed); // a second copy of the base's value
    ftl.check().unwrap();
    ftl.trim(Lpn(0)).unwrap();
    ftl.trim(Lpn(1)).unwrap();
    assert_eq!(write(&mut ftl, Lpn(7), 1), Outcome::Shared);
    assert_eq!(ftl.objects().live(), 2);
    ftl.check().unwrap();
}

#[test]
fn a_merge_shares_what_is_stored_already() {
    let mut ftl = shared_base(1);
    assert_eq!(write(&mut ftl, Lpn(0), 2), Outcome::Packed);
    ftl.flush_packs(0).unwrap();
    assert_eq!(write(&mut ftl, Lpn(5), 9), Outcome::Programmed); // takes the entry
    assert_eq!(write(&mut ftl, Lpn(3), 2), Outcome::Programmed); // a second copy, and it is indexed
    ftl.trim(Lpn(1)).unwrap();
    let (base, pack) = parts(&ftl, Lpn(0));
    read(&mut ftl, Lpn(0));
    read(&mut ftl, Lpn(0));
    assert!(ftl.merge_if_read_hot(When::now(0), Lpn(0)).unwrap());
    assert_eq!(ftl.objects().get(Lpn(0)), ftl.objects().get(Lpn(3)));
    assert!(!is_valid(&ftl, base) && !is_valid(&ftl, pack));
    assert_eq!(counters(&ftl).merges_shared, 1);
    assert_eq!(ftl.core().counters().programs_merge, 0);
    ftl.check().unwrap();
}

#[test]
fn a_packed_value_is_shared_by_its_duplicates_and_a_merge_serves_them_all() {
    let mut ftl = shared_base(100);
    assert_eq!(write(&mut ftl, Lpn(0), 2), Outcome::Packed);
    assert_eq!(write(&mut ftl, Lpn(3), 2), Outcome::Shared);
    assert_eq!(ftl.objects().get(Lpn(0)), ftl.objects().get(Lpn(3)));
    ftl.check().unwrap();
    read(&mut ftl, Lpn(0));
    read(&mut ftl, Lpn(0));
    assert!(ftl.merge_if_read_hot(When::now(0), Lpn(0)).unwrap());
    assert!(!ftl.objects().is_packed(ftl.objects().get(Lpn(3))));
    for lpn in [0, 3] {
        let (page, _) = ftl.read(0, Lpn(lpn), Cause::Scan, Tag::NONE).unwrap();
        assert_eq!(page.map(|p| p.value()), Some(V(2)));
    }
    ftl.check().unwrap();
}

#[test]
fn a_merge_of_a_new_value_enters_the_index() {
    let mut ftl = shared_base(100);
    write(&mut ftl, Lpn(0), 2);
    read(&mut ftl, Lpn(0));
    read(&mut ftl, Lpn(0));
    assert!(ftl.merge_if_read_hot(When::now(0), Lpn(0)).unwrap());
    assert_eq!(write(&mut ftl, Lpn(3), 2), Outcome::Shared);
    ftl.check().unwrap();
}

#[test]
fn a_page_in_delta_form_may_go_back_to_its_base() {
    let mut ftl = shared_base(100);
    write(&mut ftl, Lpn(0), 2);
    assert_eq!(write(&mut ftl, Lpn(0), 1), Outcome::Shared);
    assert_eq!(ftl.objects().get(Lpn(0)), ftl.objects().get(Lpn(1)));
    assert!(!is_delta(&ftl, Lpn(0)));
    assert_eq!(
        (ftl.objects().live(), ftl.packing().unwrap().packed),
        (1, 0)
    );
    ftl.flush_packs(0).unwrap();
    assert_eq!(ftl.core().counters().programs_log, 0);
    ftl.check().unwrap();
}

#[test]
fn a_verified_merge_leaves_the_entry_of_the_stored_copy() {
    let dedup = DedupOptions {
        index_entries: None,
        fingerprint_bits: 64,
        verify: true,
        bypass: None,
        out_of_line: false,
    };
    let mut ftl = device_with(30, 40, DELTAS, dedup, fixed(1000));
    write(&mut ftl, Lpn(0), 1);
    write(&mut ftl, Lpn(0), 2);
    write(&mut ftl, Lpn(3), 2);
    read(&mut ftl, Lpn(0));
    read(&mut ftl, Lpn(0));
    // Nobody compares the two: the merge programs.
    assert!(ftl.merge_if_read_hot(When::now(0), Lpn(0)).unwrap());
    assert_eq!(ftl.core().counters().programs_merge, 1);
    assert_eq!(write(&mut ftl, Lpn(4), 2), Outcome::Shared);
    assert_eq!(ftl.objects().get(Lpn(4)), ftl.objects().get(Lpn(3)));
    ftl.check().unwrap();
}

#[test]
fn a_base_that_a_delta_alone_keeps_costs_what_lambda_says() {
    let hot = |lambda: u32| EncodingOptions {
        hot_writes: 1,
        lambda,
        ..DELTAS
    };
    // 508 bytes programmed and 4096 kept, against 4096: as much at a weight of 3588 / 4096.
    for (lambda, outcome) in [
        (0, Outcome::Packed),
        (875, Outcome::Packed),
        (876, Outcome::Programmed),
    ] {
        let mut ftl = device(30, 40, hot(lambda), 0, fixed(500));
        write(&mut ftl, Lpn(0), 1);
        assert_eq!(write(&mut ftl, Lpn(0), 2), outcome, "{lambda} thousandths");
    }
    let mut ftl = device(30, 40, hot(1000), 100, fixed(500));
    write(&mut ftl, Lpn(0), 1);
    write(&mut ftl, Lpn(1), 1);
    assert_eq!(
        write(&mut ftl, Lpn(0), 2),
        Outcome::Packed,
        "page 1 keeps the base anyway"
    );
    assert_eq!(write(&mut ftl, Lpn(0), 3), Outcome::Packed);
    ftl.trim(Lpn(1)).unwrap();
    assert_eq!(
        write(&mut ftl, Lpn(0), 4),
        Outcome::Programmed,
        "page 0 alone keeps it"
    );
    write(&mut ftl, Lpn(5), 9);
    write(&mut ftl, Lpn(6), 9);
    write(&mut ftl, Lpn(7), 9);
    assert_eq!(write(&mut ftl, Lpn(5), 10), Outcome::Packed);
    assert_eq!(write(&mut ftl, Lpn(6), 11), Outcome::Packed);
    ftl.trim(Lpn(7)).unwrap();
    assert_eq!(
        write(&mut ftl, Lpn(5), 12),
        Outcome::Packed,
        "page 6 keeps it, too"
    );
    ftl.check().unwrap();
}

#[test]
fn beyond_the_quota_of_bases_an_update_is_stored_whole() {
    let quota = EncodingOptions {
        most_pinned: 2,
        ..DELTAS
    };
    let mut ftl = device(30, 40, quota, 0, fixed(500));
    for lpn in 0..5 {
        write(&mut ftl, Lpn(lpn), 10 * lpn);
        write(&mut ftl, Lpn(lpn), 10 * lpn + 1);
        ftl.flush_packs(0).unwrap();
        assert!(ftl.packing().unwrap().pinned <= 2);
    }
    let deltas = |ftl: &Device| -> Vec<u32> {
        let all = (0..5).filter(|&lpn| is_delta(ftl, Lpn(lpn)));
        all.collect()
    };
    assert_eq!(deltas(&ftl), [0, 1]);
    // Whose base is kept already goes on; a base that is given up leaves its place to another.
    assert_eq!(write(&mut ftl, Lpn(0), 2), Outcome::Packed);
    ftl.trim(Lpn(1)).unwrap();
    assert_eq!(write(&mut ftl, Lpn(3), 32), Outcome::Packed);
    assert_eq!(write(&mut ftl, Lpn(4), 42), Outcome::Programmed);
    assert_eq!(deltas(&ftl), [0, 3]);
    assert_eq!(counters(&ftl).merges_room, 0);
    ftl.check().unwrap();
}

#[test]
fn a_quota_of_no_base_makes_no_delta() {
    let none = EncodingOptions {
        most_pinned: 0,
        ..DELTAS
    };
    let mut ftl = device(30, 40, none, 0, fixed(500));
    for value in 0..5 {
        assert_eq!(write(&mut ftl, Lpn(0), value), Outcome::Programmed);
    }
    assert_eq!(counters(&ftl).candidates, 0, "nothing is read or encoded");
}

/// The exported pages with which 30 blocks have room for one packed page with live deltas.
fn pages_with_room_for_one_pack() -> u32 {
    let room = |pages| device(30, pages, DELTAS, 0, fixed(3000));
    let most = room(300).packing().unwrap().most_packs;
    300 + most - 1
}

#[test]
fn a_page_merged_while_room_is_made_for_its_next_delta_is_stored_whole() {
    let mut ftl = device(30, pages_with_room_for_one_pack(), DELTAS, 0, fixed(3000));
    for lpn in [0, 1] {
        write(&mut ftl, Lpn(lpn), 10 * lpn);
        assert_eq!(write(&mut ftl, Lpn(lpn), 10 * lpn + 1), Outcome::Packed);
    }
    let (base, _) = parts(&ftl, Lpn(0));
    // The page in RAM must be programmed, before which the delta of page 0 is merged.
    assert_eq!(write(&mut ftl, Lpn(0), 2), Outcome::Programmed);
    assert_eq!(counters(&ftl).merges_room, 1);
    assert!(!is_valid(&ftl, base));
    assert_eq!(read(&mut ftl, Lpn(0)), Some(2));
    ftl.check().unwrap();
}

#[test]
fn collection_merges_what_is_not_written_often_while_it_has_room() {
    for bytes in [205, 1229, 2867] {
        let (blocks, pages) = (128, 128 * 16 * 100 / 107);
        let mut ftl = device(blocks, pages, DELTAS, 0, fixed(bytes));
        let mut random = Random::new(3);
        let mut values = vec![0; pages as usize];
        for number in 0..8 * pages {
            let lpn = if number < 2 * pages {
                number % pages
            } else {
                random.below(pages)
            };
            write(&mut ftl, Lpn(lpn), number);
            values[lpn as usize] = number;
            if number > 2 * pages && number % 500 == 0 {
                ftl.begin_cold_scan();
            }
        }
        assert!(counters(&ftl).merges_gc > 100, "{:?}", counters(&ftl));
        ftl.check().unwrap();
        for (lpn, value) in (0..).zip(values) {
            assert_eq!(read(&mut ftl, Lpn(lpn)), Some(value));
        }
    }
}

#[test]
fn a_delta_may_stand_on_a_value_compressed_by_itself() {
    let delta = EncodingOptions {
        compress: true,
        ..DELTAS
    };
    let lengths = Lengths {
        least: 400,
        most: 400,
        alone: 100,
    };
    let mut ftl = device(16, 100, delta, 0, lengths);
    assert_eq!(write(&mut ftl, Lpn(0), 1), Outcome::Packed);
    assert_eq!(write(&mut ftl, Lpn(0), 2), Outcome::Packed);
    let (counted, object) = (counters(&ftl), ftl.objects().get(Lpn(0)));
    assert_eq!((counted.compressed, counted.deltas), (1, 1));
    let (pack, base) = ftl.objects().packed(object).unwrap();
    assert_eq!(ftl.objects().packed(base), Some((pack, ObjectId::NONE)));
    ftl.flush_packs(0).unwrap();
    ftl.check().unwrap();
    // Both lie in one flash page.
    let parts = ftl.read_parts(0, Lpn(0), Cause::Scan, Tag::NONE).unwrap();
    assert_eq!(parts.done.iter().flatten().count(), 1);
    let (page, _) = ftl.read(0, Lpn(0), Cause::Scan, Tag::NONE).unwrap();
    assert_eq!(page.map(|p| p.value()), Some(V(2)));
    ftl.trim(Lpn(0)).unwrap();
    assert_eq!(
        (ftl.objects().live(), ftl.core().blocks().valid_units()),
        (0, 0)
    );
    ftl.check().unwrap();
}
