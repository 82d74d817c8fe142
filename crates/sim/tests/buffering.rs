//! The write buffer and the write queue in front of a device: times computed by hand, and random traces
//! of which every page holds in the end what was written last.

use std::collections::BTreeMap;

use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Cause, Geometry, Lpn, ObjectId, Tag};
use flashlore_ftl::FtlOptions;
use flashlore_ftl::buffer::Replacement;
use flashlore_sim::config::{Load, ReadOrder};
use flashlore_sim::engine::buffering::{BufferingOptions, Traffic};
use flashlore_sim::engine::driver::{CodecTimes, Driver, HostOptions};
use flashlore_sim::engine::system::{Deduplicating, Plain, Simulated, System};
use flashlore_sim::engine::{MeasureOptions, Measured};
use flashlore_sim::results::{BufferTraffic, QueueTraffic};
use flashlore_trace::{NO_CONTENT, Op, Request, RequestBlock};
use proptest::prelude::*;

use crate::common::Log;

/// A read of a page with its transfer, and a program with its.
const READ: u64 = 25 + 40;
const PROGRAM: u64 = 200 + 40;
const HASH: u64 = 32;
const EXPORTED: u32 = 32;

fn flash(dies: u32, shared: bool, units: u32) -> NandSim {
    let geometry = Geometry::new(Counts {
        channels: 1,
        packages_per_channel: 1,
        dies_per_package: dies,
        planes_per_die: 1,
        blocks_per_plane: 12,
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

/// A device of one die that has the first `written` pages.
fn plain(written: u32) -> Plain {
    let mut system = Plain::new(flash(1, false, 1), FtlOptions::new(EXPORTED)).unwrap();
    for lpn in 0..written {
        system.fill(Lpn(lpn)).unwrap();
    }
    system.restart_counters();
    system.core_mut().flash_mut().restart();
    system
}

fn deduplicating(flash: NandSim, verify: bool, bits: u32) -> Deduplicating<Simulated<NoCensus>> {
    let dedup = DedupOptions {
        index_entries: None,
        fingerprint_bits: bits,
        verify,
        bypass: None,
        out_of_line: false,
    };
    Deduplicating::new(flash, FtlOptions::new(EXPORTED), dedup, NoCensus).unwrap()
}

fn host(buffering: BufferingOptions) -> HostOptions {
    HostOptions {
        load: Load::Open { time_scale: 1.0 },
        link_request: 0,
        link_sector: 0,
        hash: HASH,
        sampling: None,
        out_of_line: false,
        flush_after: 1000,
        buffering: Some(buffering),
        read_cache: None,
        read_order: ReadOrder::SamePage,
        needs_content: true,
        codec: CodecTimes::default(),
        record: 0,
    }
}

fn fifo(places: u32) -> HostOptions {
    let policy = Replacement::Fifo;
    host(BufferingOptions::Buffer { places, policy })
}

fn queue(places: u32, bucket_pages: u32, early_ack: bool) -> HostOptions {
    host(BufferingOptions::Queue {
        places,
        bucket_pages,
        early_ack,
        period: 100_000,
    })
}

/// A trace in the making.
#[derive(Default)]
struct Trace(RequestBlock);

impl Trace {
    fn ask(&mut self, time_ns: u64, op: Op, lpn: u32, values: &[u32], units: u32, partial: bool) {
        let mut first_value = NO_CONTENT;
        if op == Op::Write {
            first_value = self.0.values.len() as u32;
            self.0.values.extend(values);
        }
        self.0.requests.push(Request {
            time_ns,
            lpn,
            units,
            first_value,
            op,
            head_partial: partial,
            tail_partial: false,
        });
    }

    /// A request of one page: `W`, `P` for a part of it, `R`, `T`, `F`.
    fn of(requests: &[(u64, char, u32)]) -> Trace {
        let mut trace = Trace::default();
        for &(time, what, lpn) in requests {
            let op = match what {
                'W' | 'P' => Op::Write,
                'R' => Op::Read,
                'T' => Op::Trim,
                _ => Op::Flush,
            };
            let units = u32::from(op != Op::Flush);
            trace.ask(time, op, lpn, &[lpn], units, what == 'P');
        }
        trace
    }
}

/// What a replay to its end gives: the response of every request, and what the buffer counted.
struct Replayed {
    responses: Vec<u64>,
    /// From the begin of service on.
    services: Vec<u64>,
    writes: u64,
    reads: u64,
    traffic: Traffic,
}

impl Replayed {
    fn buffer(&self) -> BufferTraffic {
        match self.traffic {
            Traffic::Buffer(counted) => counted,
            Traffic::Queue(_) => panic!("a buffer was asked for"),
        }
    }

    fn queue(&self) -> QueueTraffic {
        match self.traffic {
            Traffic::Queue(counted) => counted,
            Traffic::Buffer(_) => panic!("a queue was asked for"),
        }
    }
}

fn replay<S: System>(system: &mut S, host: HostOptions, trace: &Trace) -> Replayed {
    let log = Log::default();
    let measured = Measured::new(MeasureOptions {
        timeline_ns: None,
        request_log: Some(Box::new(log.clone())),
    });
    let mut driver = Driver::new(system, host, measured);
    driver.begin_measuring();
    let count = trace.0.requests.len();
    driver.replay(&trace.0, 0, count).unwrap();
    driver.drain().unwrap();
    driver.measured.finish().unwrap();
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    let mut responses = vec![u64::MAX; count];
    let mut services = responses.clone();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<u64>().unwrap();
        assert!(number(2) <= number(3) && number(3) <= number(4), "{line}");
        let response = &mut responses[number(0) as usize];
        assert_eq!(*response, u64::MAX, "{line}: answered twice");
        *response = number(4) - number(2);
        services[number(0) as usize] = number(4) - number(3);
    }
    assert!(!responses.contains(&u64::MAX), "every request is answered");
    Replayed {
        responses,
        services,
        writes: driver.host_writes(),
        reads: driver.host_reads(),
        traffic: driver.traffic().unwrap(),
    }
}

#[test]
fn a_write_takes_no_time_until_the_buffer_is_full_and_then_that_of_an_eviction() {
    let mut system = plain(0);
    let trace = Trace::of(&[
        (0, 'W', 0),
        (10, 'W', 1),
        // In place; the buffer stays as it is.
        (20, 'W', 0),
        (30, 'R', 1),
        // Page 0 goes: 100 to 340. Page 1 behind it on the die: to 580.
        (100, 'W', 2),
        (110, 'W', 3),
        // Page 0 can be read until its program is over.
        (120, 'R', 0),
        (1000, 'R', 0),
        (1000, 'F', 0),
        (2000, 'W', 3),
        (2010, 'W', 1),
    ]);
    let run = replay(&mut system, fifo(2), &trace);
    let expected = [0, 0, 0, 0, 240, 470, 0, READ, 0, 0, PROGRAM];
    assert_eq!(run.responses, expected);
    // A write is served when it has its place.
    assert_eq!(run.services, [0, 0, 0, 0, 0, 0, 0, READ, 0, 0, 0]);
    assert_eq!(
        run.buffer(),
        BufferTraffic {
            read_hits: 2,
            write_hits: 2,
            evictions: 3,
            trimmed: 0,
            pages_begin: 0,
            pages_end: 2
        }
    );
    assert_eq!((run.writes, run.reads), (7, 3));
    let counters = system.core().counters();
    assert_eq!((counters.host_writes, counters.programs_host), (3, 3));
}

#[test]
fn a_request_of_several_pages_waits_for_the_last_place() {
    let mut system = Plain::new(flash(2, false, 1), FtlOptions::new(EXPORTED)).unwrap();
    let mut trace = Trace::default();
    trace.ask(0, Op::Write, 0, &[0; 4], 4, false);
    // Pages 0 to 2 make room, on two dies: 1000 to 1240, the third behind the first.
    trace.ask(1000, Op::Write, 3, &[0; 4], 4, false);
    let run = replay(&mut system, fifo(4), &trace);
    assert_eq!(run.responses, [0, 2 * PROGRAM]);
    let counted = run.buffer();
    assert_eq!((counted.write_hits, counted.evictions), (1, 3));
}

#[test]
fn what_is_written_again_stays_under_slru() {
    let policy = Replacement::Slru { protected: 1 };
    let places = 3;
    let writes = [0, 1, 0, 2, 3, 4].map(|lpn| (u64::from(lpn) * 1000, 'W', lpn));
    let mut requests = Vec::from(writes);
    requests[2].0 = 1500;
    // Pages 1 and 2 went; under FIFO it would be 0 and 1.
    requests.extend((0..5).map(|lpn| (10_000, 'R', lpn)));
    let trace = Trace::of(&requests);
    let slru = host(BufferingOptions::Buffer { places, policy });
    let responses = replay(&mut plain(0), slru, &trace).responses;
    assert_eq!(responses[..6], [0, 0, 0, 0, PROGRAM, PROGRAM]);
    assert_eq!(responses[6..], [0, READ, 2 * READ, 0, 0]);
    let responses = replay(&mut plain(0), fifo(places), &trace).responses;
    assert_eq!(responses[6..], [READ, 2 * READ, 0, 0, 0]);
}

#[test]
fn writes_of_one_page_are_one_program() {
    let mut system = plain(0);
    let trace = Trace::of(&[
        (0, 'W', 0),
        // The place is free at 250, and all that wait for it are answered.
        (10, 'W', 1),
        (20, 'W', 1),
        (30, 'W', 1),
        (300, 'W', 1),
        (400, 'W', 2),
    ]);
    let run = replay(&mut system, fifo(1), &trace);
    assert_eq!(run.responses, [0, 240, 230, 220, 0, 240]);
    assert_eq!((run.buffer().write_hits, run.buffer().evictions), (3, 2));
    assert_eq!(system.core().counters().programs_host, 2);
}

#[test]
fn a_page_that_leaves_and_is_written_again_takes_another_place() {
    let mut system = plain(0);
    let trace = Trace::of(&[
        (0, 'W', 0),
        (10, 'W', 1),
        // Page 0 leaves since 10 and is free at 250. Page 1 then has its place, and leaves.
        (20, 'W', 0),
        (600, 'R', 0),
        (600, 'R', 1),
    ]);
    let run = replay(&mut system, fifo(1), &trace);
    assert_eq!(run.responses, [0, 240, 470, 0, READ]);
}

#[test]
fn the_rest_of_a_page_is_read_when_it_leaves() {
    let mut system = plain(4);
    let trace = Trace::of(&[
        (0, 'P', 0),
        // The rest is on flash.
        (10, 'R', 0),
        (1000, 'W', 1),
        // Nothing more is needed of page 1.
        (2000, 'P', 1),
        (2010, 'R', 1),
        (3000, 'P', 2),
        // A whole version is needed no more than itself.
        (3500, 'W', 2),
        (4000, 'W', 3),
    ]);
    let run = replay(&mut system, fifo(1), &trace);
    let late = READ + PROGRAM;
    assert_eq!(run.responses, [0, READ, late, 0, 0, PROGRAM, 0, PROGRAM]);
    let counters = system.core().counters();
    assert_eq!(counters.page_reads_modify, 1);
    assert_eq!(run.buffer().read_hits, 1);
}

#[test]
fn two_parts_make_no_whole() {
    let mut system = plain(2);
    let trace = Trace::of(&[(0, 'P', 0), (10, 'P', 0), (1000, 'W', 1)]);
    let run = replay(&mut system, fifo(1), &trace);
    assert_eq!(run.responses, [0, 0, READ + PROGRAM]);
    // In a queue each of them is a version, and reads the one before.
    let mut system = plain(1);
    let trace = Trace::of(&[(0, 'P', 0), (10, 'P', 0), (200_000, 'R', 5)]);
    replay(&mut system, queue(8, 1, true), &trace);
    assert_eq!(system.core().counters().page_reads_modify, 2);
}

#[test]
fn half_of_the_places_stay_where_the_host_asks_for_more_than_flash_can_do() {
    let mut requests: Vec<_> = (0..4).map(|lpn| (0, 'W', lpn)).collect();
    // Pages 0 and 1 leave; 2 and 3 stay.
    requests.extend((4..10).map(|lpn| (1000, 'W', lpn)));
    requests.extend([(1010, 'W', 2), (1010, 'W', 3)]);
    let run = replay(&mut plain(0), fifo(4), &Trace::of(&requests));
    let waits: Vec<u64> = (1..7).map(|n| n * PROGRAM).collect();
    assert_eq!(run.responses[4..10], waits);
    assert_eq!(run.responses[10..], [0, 0]);
    // Of a queue too: the two oldest leave, and the next when one of them is done.
    let run = replay(
        &mut plain(0),
        queue(4, 1, true),
        &Trace::of(&requests[..10]),
    );
    assert_eq!(run.responses[4..], waits);
    assert_eq!(run.queue().flushes, 6);
    for buffering in [fifo(4), queue(4, 1, true)] {
        let trace = Trace::of(&requests);
        let mut system = plain(0);
        let mut driver = Driver::new(&mut system, buffering, Measured::default());
        driver.replay(&trace.0, 0, 10).unwrap();
        let gone = match driver.traffic().unwrap() {
            Traffic::Buffer(counted) => counted.evictions,
            Traffic::Queue(counted) => counted.flushed,
        };
        assert_eq!(gone, 2);
    }
}

#[test]
fn a_trim_drops_the_page_and_goes_on() {
    let mut system = plain(3);
    let trace = Trace::of(&[
        (0, 'W', 0),
        (10, 'T', 0),
        (20, 'R', 0),
        (30, 'W', 1),
        // Page 2 waits for 1 to leave; forgotten, it needs no place.
        (40, 'W', 2),
        (50, 'T', 2),
        (60, 'T', 1),
        (70, 'R', 1),
        (80, 'R', 2),
    ]);
    let run = replay(&mut system, fifo(1), &trace);
    assert_eq!(run.responses, [0, 0, 0, 0, 10, 0, 0, 0, 0]);
    let counted = run.buffer();
    assert_eq!(
        (counted.trimmed, counted.evictions, counted.pages_end),
        (2, 1, 0)
    );
    // Page 1 was written before it was forgotten.
    let counters = system.core().counters();
    assert_eq!((counters.programs_host, counters.host_trims), (1, 3));
    for lpn in 0..3 {
        assert_eq!(
            system.read(9999, Lpn(lpn), Cause::Host, Tag::NONE).unwrap(),
            None
        );
    }
}

#[test]
fn what_leaves_is_hashed_and_a_duplicate_frees_its_place_at_once() {
    let mut system = deduplicating(flash(1, false, 1), false, 128);
    let mut trace = Trace::default();
    for (time, lpn) in [(0, 0), (10, 1), (1000, 2)] {
        trace.ask(time, Op::Write, lpn, &[7], 1, false);
    }
    let run = replay(&mut system, fifo(1), &trace);
    assert_eq!(run.responses, [0, HASH + PROGRAM, HASH]);
    let (dedup, _) = system.dedup().unwrap();
    assert_eq!((dedup.hits, dedup.misses), (1, 1));
}

/// On flash pages of four units as many leave as fill one, so that nothing is padded.
#[test]
fn evictions_fill_flash_pages() {
    let mut system = Plain::new(flash(1, false, 4), FtlOptions::new(EXPORTED)).unwrap();
    let mut requests: Vec<_> = (0..8).map(|lpn| (0, 'W', lpn)).collect();
    requests.extend([(1000, 'W', 8), (3000, 'W', 9), (3000, 'W', 10)]);
    let run = replay(&mut system, fifo(8), &Trace::of(&requests));
    let program = 200 + 4 * 40;
    assert_eq!(run.responses[8..], [program, 0, 0]);
    let counters = system.core().counters();
    assert_eq!((counters.page_programs, counters.programs_padding), (1, 0));
}

#[test]
fn a_full_queue_flushes_the_bucket_of_the_address_or_the_largest() {
    let mut system = plain(0);
    let trace = Trace::of(&[
        (0, 'W', 0),
        (10, 'W', 1),
        // No bucket of its own: of equal ones the oldest, page 0, goes until 260.
        (20, 'W', 2),
        (30, 'R', 0),
        // The older version of the page itself goes, from 300.
        (300, 'W', 1),
        // The newer one waits for its place until 540, and the read for that.
        (310, 'R', 1),
    ]);
    let run = replay(&mut system, queue(2, 1, true), &trace);
    assert_eq!(run.responses, [0, 0, PROGRAM, 0, PROGRAM, 230]);
    let counted = run.queue();
    assert_eq!((counted.flushes, counted.flushed), (2, 2));
    assert_eq!((counted.read_hits, counted.changes_end), (2, 2));
    assert_eq!(counted.requests_per_flush, Some(1.0));
}

#[test]
fn no_version_is_left_out_and_neighbours_go_together() {
    let mut system = plain(0);
    let trace = Trace::of(&[
        (0, 'W', 0),
        (0, 'W', 0),
        (0, 'W', 1),
        (0, 'W', 2),
        // The bucket of pages 2 and 3 is not empty. Then pages 0 and 1 are the largest.
        (1000, 'W', 3),
        (2000, 'W', 5),
    ]);
    let run = replay(&mut system, queue(4, 2, true), &trace);
    assert_eq!(run.responses[4..], [PROGRAM, PROGRAM]);
    let counted = run.queue();
    assert_eq!((counted.flushes, counted.flushed), (2, 4));
    assert_eq!(system.core().counters().programs_host, 4);
}

#[test]
fn a_queue_may_acknowledge_when_a_page_is_programmed() {
    // Nothing else comes: all goes when the period is over.
    let trace = Trace::of(&[(50, 'W', 0), (60, 'W', 1)]);
    let run = replay(&mut plain(0), queue(8, 1, false), &trace);
    assert_eq!(run.responses, [100_000 + PROGRAM, 99_990 + 2 * PROGRAM]);
    assert_eq!(run.services, [PROGRAM; 2]);
    // More requests than the queue holds have come since.
    let trace = Trace::of(&[(0, 'W', 0), (10, 'R', 9), (20, 'R', 9)]);
    let run = replay(&mut plain(0), queue(2, 1, false), &trace);
    assert_eq!(run.responses, [20 + PROGRAM, 0, 0]);
    // An early answer waits for neither, and what is queued at the end stays there.
    let trace = Trace::of(&[(0, 'W', 0), (10, 'T', 1)]);
    let mut system = plain(0);
    let run = replay(&mut system, queue(8, 1, true), &trace);
    assert_eq!(run.responses, [0, 0]);
    assert_eq!(run.queue().changes_end, 2);
    assert_eq!(system.core().counters().programs_host, 0);
}

#[test]
fn a_trim_keeps_its_turn_in_the_queue() {
    let mut system = plain(1);
    let trace = Trace::of(&[
        (0, 'W', 0),
        (10, 'T', 0),
        (20, 'R', 0),
        (30, 'P', 0),
        (40, 'R', 0),
        (200_000, 'R', 5),
        (201_000, 'R', 0),
    ]);
    let run = replay(&mut system, queue(8, 1, true), &trace);
    assert_eq!(run.responses, [0, 0, 0, 0, 0, 0, READ]);
    let counters = system.core().counters();
    assert_eq!((counters.programs_host, counters.host_trims), (2, 1));
    assert_eq!(counters.page_reads_modify, 0);
}

/// Pages that random requests go to.
const PAGES: u32 = 6;

/// Gap before, first page, value, what, whether partly.
type Asked = (u64, u32, u32, u8, bool);

fn bufferings() -> impl Strategy<Value = BufferingOptions> {
    let policy = prop_oneof![
        Just(Replacement::Fifo),
        (0u32..5).prop_map(|protected| Replacement::Slru { protected })
    ];
    let buffer =
        (1u32..6, policy).prop_map(|(places, policy)| BufferingOptions::Buffer { places, policy });
    let queue = (1u32..8, 1u32..4, any::<bool>(), 1u64..4000).prop_map(
        |(places, bucket_pages, early_ack, period)| BufferingOptions::Queue {
            places,
            bucket_pages,
            early_ack,
            period,
        },
    );
    prop_oneof![buffer, queue]
}

/// The trace, and what each page holds in the end. It ends with writes of other pages, each twice, that
/// drive all the others out of any buffer, and with reads that outlast the period of any queue.
fn trace(asked: Vec<Asked>) -> (Trace, BTreeMap<u32, u32>) {
    let mut trace = Trace::default();
    let mut expected = BTreeMap::new();
    let mut now = 0;
    for (gap, lpn, value, kind, partial) in asked {
        now += gap;
        let units = (PAGES - lpn).min(1 + value % 2);
        match kind {
            0 | 1 => {
                expected.retain(|l, _| !(lpn..lpn + units).contains(l));
                trace.ask(now, Op::Trim, lpn, &[], units, false);
            }
            2 | 3 => trace.ask(now, Op::Read, lpn, &[], units, false),
            4 => trace.ask(now, Op::Flush, 0, &[], 0, false),
            _ => {
                let values = [value, value + 1];
                expected.extend((lpn..lpn + units).zip(values));
                trace.ask(
                    now,
                    Op::Write,
                    lpn,
                    &values[..units as usize],
                    units,
                    partial,
                );
            }
        }
    }
    for lpn in (PAGES..PAGES + 12).flat_map(|lpn| [lpn, lpn]) {
        now += 10_000;
        trace.ask(now, Op::Write, lpn, &[0], 1, false);
    }
    for _ in 0..3 {
        now += 10_000;
        trace.ask(now, Op::Read, 0, &[], 1, false);
    }
    (trace, expected)
}

fn loads() -> impl Strategy<Value = Load> {
    prop_oneof![
        Just(Load::Open { time_scale: 1.0 }),
        (1u32..9, 0u64..300).prop_map(|(queue_depth, think_time_ns)| Load::Closed {
            queue_depth,
            think_time_ns
        }),
    ]
}

/// Units written and trimmed by a trace.
fn changed(trace: &Trace) -> (u64, u64) {
    let units = |op: Op| {
        let requests = trace.0.requests.iter().filter(|r| r.op == op);
        requests.map(|r| u64::from(r.units)).sum()
    };
    (units(Op::Write), units(Op::Trim))
}

/// What came in has gone out or is still there.
fn conserved(
    run: &Replayed,
    trace: &Trace,
    reached: u64,
) -> std::result::Result<(), TestCaseError> {
    let (written, trimmed) = changed(trace);
    prop_assert_eq!(run.writes, written);
    match run.traffic {
        Traffic::Buffer(b) => {
            prop_assert_eq!(
                written,
                b.write_hits + b.evictions + b.trimmed + b.pages_end
            );
            prop_assert_eq!(reached, b.evictions);
        }
        Traffic::Queue(q) => {
            prop_assert_eq!(written + trimmed, q.flushed + q.changes_end);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_page_holds_in_the_end_what_was_written_last(
        asked in prop::collection::vec(
            (0u64..300, 0..PAGES, 0u32..4, 0u8..14, any::<bool>()), 1..200,
        ),
        buffering in bufferings(),
        load in loads(),
        shared in any::<bool>(),
        units in prop::sample::select(vec![1u32, 4]),
        kind in prop::sample::select(vec![None, Some((false, 128)), Some((true, 128)), Some((true, 1))]),
    ) {
        let (trace, mut expected) = trace(asked);
        let host = HostOptions { load, ..host(buffering) };
        // In a closed loop nothing outlasts the period of a queue, and two writes of a page may be one.
        let fifo = matches!(buffering, BufferingOptions::Buffer { policy: Replacement::Fifo, .. });
        let empties = fifo || matches!(load, Load::Open { .. });
        let flash = flash(2, shared, units);
        let Some((verify, bits)) = kind else {
            let mut system = Plain::new(flash, FtlOptions::new(EXPORTED)).unwrap();
            let run = replay(&mut system, host, &trace);
            conserved(&run, &trace, system.core().counters().host_writes)?;
            for lpn in (0..PAGES).filter(|_| empties) {
                let found = system.read(1 << 50, Lpn(lpn), Cause::Host, Tag::NONE).unwrap();
                prop_assert_eq!(found.is_some(), expected.contains_key(&lpn), "page {}", lpn);
            }
            return Ok(());
        };
        let mut system = deduplicating(flash, verify, bits);
        let run = replay(&mut system, host, &trace);
        conserved(&run, &trace, system.core().counters().host_writes)?;
        let ftl = system.ftl();
        ftl.check().map_err(TestCaseError::fail)?;
        for lpn in (0..PAGES).filter(|_| empties) {
            let object = ftl.objects().get(Lpn(lpn));
            let found = (object != ObjectId(u32::MAX)).then(|| ftl.objects().content(object).0);
            prop_assert_eq!(found, expected.remove(&lpn), "page {}", lpn);
        }
    }
}
