//! Changes to one page are committed in order of arrival, however long each fetches: with partial
//! writes, verified duplicates, trims, a busy hash unit and page buffers, private and shared channels.
//! A candidate that changes while it is read is read again.

use std::collections::BTreeMap;

use flashlore_content::{Content, DedupOptions, NoCensus, PageTag};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Geometry, Lpn, ObjectId};
use flashlore_ftl::FtlOptions;
use flashlore_sim::config::{Load, ReadOrder};
use flashlore_sim::engine::Measured;
use flashlore_sim::engine::driver::{CodecTimes, Driver, HostOptions};
use flashlore_sim::engine::system::{Deduplicating, Plain, Simulated, System};
use flashlore_sim::results::ResponseByKind;
use flashlore_trace::{NO_CONTENT, Op, Request, RequestBlock};
use proptest::prelude::*;

const PAGES: u32 = 6;

fn flash(shared: bool, units: u32) -> NandSim {
    let geometry = Geometry::new(Counts {
        channels: 1,
        packages_per_channel: 1,
        dies_per_package: 2,
        planes_per_die: 1,
        blocks_per_plane: 8,
        pages_per_block: 8,
        page_bytes: units * 4096,
    })
    .unwrap();
    let timing = Timing {
        read: 25,
        program: vec![200],
        erase: 1500,
        transfer: 40,
        shared_channel: shared,
        concurrency: Concurrency::Die,
        erase_suspend: false,
    };
    NandSim::new(geometry, timing)
}

fn device(shared: bool, units: u32, verify: bool, bits: u32) -> Deduplicating<Simulated<NoCensus>> {
    let dedup = DedupOptions {
        index_entries: None,
        fingerprint_bits: bits,
        verify,
        bypass: None,
        out_of_line: false,
    };
    let options = FtlOptions::new(PAGES);
    Deduplicating::new(flash(shared, units), options, dedup, NoCensus).unwrap()
}

const HOST: HostOptions = HostOptions {
    load: Load::Open { time_scale: 1.0 },
    link_request: 0,
    link_sector: 0,
    hash: 32,
    sampling: None,
    out_of_line: false,
    flush_after: 1000,
    buffering: None,
    read_cache: None,
    read_order: ReadOrder::SamePage,
    needs_content: true,
    codec: CodecTimes {
        encode: 0,
        decode: 0,
        sketch: 0,
        scan_period: 0,
    },
    record: 0,
};

/// Replays a trace to its end; every request is answered.
fn replay<S: System>(system: &mut S, block: &RequestBlock) {
    let count = block.requests.len();
    let mut driver = Driver::new(system, HOST, Measured::default());
    driver.begin_measuring();
    driver.replay(block, 0, count).unwrap();
    driver.drain().unwrap();
    assert_eq!(driver.measured.response.all().count(), count as u64);
}

fn requests() -> impl Strategy<Value = Vec<(u64, u32, u32, u8, bool)>> {
    prop::collection::vec(
        (0u64..80, 0..PAGES, 0u32..4, 0u8..12, any::<bool>()),
        1..300,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_last_change_to_arrive_is_the_one_that_stays(
        requests in requests(),
        shared in any::<bool>(),
        units in prop::sample::select(vec![1u32, 4]),
        (verify, bits) in prop::sample::select(vec![(false, 128), (true, 128), (true, 1)]),
    ) {
        let mut system = device(shared, units, verify, bits);
        let mut block = RequestBlock::default();
        let mut expected: BTreeMap<u32, u32> = BTreeMap::new();
        let mut now = 0;
        for (gap, lpn, value, kind, partial) in requests {
            now += gap;
            let op = match kind {
                0 => Op::Trim,
                1 | 2 => Op::Read,
                _ => Op::Write,
            };
            let units = if op == Op::Trim { (PAGES - lpn).min(2) } else { 1 };
            let mut first_value = NO_CONTENT;
            match op {
                Op::Write => {
                    first_value = block.values.len() as u32;
                    block.values.push(value);
                    expected.insert(lpn, value);
                }
                Op::Trim => expected.retain(|l, _| !(lpn..lpn + units).contains(l)),
                _ => {}
            }
            block.requests.push(Request {
                time_ns: now,
                lpn,
                units,
                first_value,
                op,
                head_partial: partial && op == Op::Write,
                tail_partial: false,
            });
        }
        replay(&mut system, &block);
        let ftl = system.ftl();
        ftl.check().map_err(TestCaseError::fail)?;
        for lpn in 0..PAGES {
            let object = ftl.objects().get(Lpn(lpn));
            let found = (object != ObjectId(u32::MAX)).then(|| ftl.objects().content(object).0);
            prop_assert_eq!(found, expected.get(&lpn).copied(), "page {}", lpn);
        }
    }
}

/// How long the reads of two pages take, 10 after a write of the first that is hashed for 32.
fn reads_behind_a_write(read_order: ReadOrder) -> [u64; 2] {
    [0, 1].map(|lpn| {
        let mut block = RequestBlock::default();
        write(&mut block, 0, 0, &[1]);
        block.requests.push(Request {
            time_ns: 10,
            lpn,
            op: Op::Read,
            first_value: NO_CONTENT,
            ..block.requests[0]
        });
        let mut system = device(false, 1, false, 128);
        system.fill(Lpn(0)).unwrap();
        system.fill(Lpn(1)).unwrap();
        system.core_mut().flash_mut().restart();
        let host = HostOptions { read_order, ..HOST };
        let mut driver = Driver::new(&mut system, host, Measured::default());
        driver.begin_measuring();
        driver.replay(&block, 0, 2).unwrap();
        driver.drain().unwrap();
        let response = ResponseByKind::of(&driver.measured.response);
        (response.read.mean.unwrap() * 1000.0).round() as u64
    })
}

#[test]
fn a_read_waits_for_the_hash_of_a_write_of_its_page_or_of_any() {
    let (read, program) = (25 + 40, 40 + 200);
    assert_eq!(reads_behind_a_write(ReadOrder::Bypass), [read, read]);
    // The page lies where the write puts it, behind whose program it is read.
    let waits = 32 - 10;
    let same_page = [waits + program + read, read];
    assert_eq!(reads_behind_a_write(ReadOrder::SamePage), same_page);
    let fifo = [waits + program + read, waits + read];
    assert_eq!(reads_behind_a_write(ReadOrder::Fifo), fifo);
}

fn write(block: &mut RequestBlock, time_ns: u64, lpn: u32, values: &[u32]) {
    let first_value = block.values.len() as u32;
    block.values.extend(values);
    block.requests.push(Request {
        time_ns,
        lpn,
        units: values.len() as u32,
        first_value,
        op: Op::Write,
        head_partial: false,
        tail_partial: false,
    });
}

#[test]
fn requests_that_fill_flash_pages_are_answered() {
    let mut block = RequestBlock::default();
    for (time, lpn, units) in [
        (0, 0, 4),
        (10, 0, 6),
        (20, 1, 3),
        (5000, 0, 5),
        (9000, 2, 1),
    ] {
        write(&mut block, time, lpn, &[1, 2, 3, 4, 5, 6][..units]);
    }
    for shared in [false, true] {
        replay(&mut device(shared, 4, false, 128), &block);
        let mut plain = Plain::new(flash(shared, 4), FtlOptions::new(PAGES)).unwrap();
        replay(&mut plain, &block);
        assert_eq!(plain.core().counters().programs_host, 19);
    }
}

/// A write reads the page that may hold its value. Meanwhile another value of the same fingerprint
/// takes the index entry over: the page that it names now is read too, and differs.
#[test]
fn a_candidate_that_is_replaced_while_it_is_read_is_read_again() {
    let two = two_values_of_one_fingerprint();
    for shared in [false, true] {
        let mut block = RequestBlock::default();
        write(&mut block, 0, 0, &[two[0]]);
        // The hash of the other value takes the entry over while the third write reads its candidate.
        write(&mut block, 10_000, 1, &[two[1]]);
        write(&mut block, 10_000, 2, &[two[0]]);
        let mut system = device(shared, 1, true, 1);
        replay(&mut system, &block);
        let counters = system.core().counters();
        assert_eq!(counters.page_reads_verify, 3);
        let (dedup, _) = system.dedup().unwrap();
        // What was read for the third write is no longer indexed, what is indexed differs.
        assert_eq!((dedup.hits, dedup.misses, dedup.collisions), (0, 3, 2));
        assert_eq!(dedup.corrupted, 0);
    }
}

/// With fingerprints of one bit, two of three values agree.
fn two_values_of_one_fingerprint() -> [u32; 2] {
    let bit = |value| PageTag(value).fingerprint(1);
    let other = if bit(1) == bit(2) { 2 } else { 3 };
    if bit(1) == bit(other) {
        [1, other]
    } else {
        [2, 3]
    }
}
