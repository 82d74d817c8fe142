//! Sampling and out-of-line deduplication under the host model: who is hashed and when, against a
//! model without flash or time, and against CA-SSD where neither is on.

use crate::common;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;

use common::{Uniform, config};
use flashlore_content::dedup::DedupCounters;
use flashlore_content::dedup::sampling::sample_of;
use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Geometry, Lpn};
use flashlore_ftl::{FtlOptions, Mode, Watermarks};
use flashlore_sim::config::{Load, ReadOrder};
use flashlore_sim::engine::driver::{CodecTimes, Driver, HostOptions};
use flashlore_sim::engine::system::{Deduplicating, Simulated, System};
use flashlore_sim::engine::{Measured, RunOptions, simulate};
use flashlore_sim::results::LatencyByKind;
use flashlore_trace::{NO_CONTENT, Op, Request, RequestBlock};
use proptest::prelude::*;

const PAGES: u32 = 24;
const HASH: u64 = 32;
const READ: u64 = 25;
const TRANSFER: u64 = 40;
const PROGRAM: u64 = 200;

#[derive(Debug, Clone, Copy)]
struct Setup {
    dies: u32,
    shared: bool,
    units: u32,
    sampling: Option<u32>,
    out_of_line: bool,
    index_entries: Option<u32>,
    hash: u64,
    /// Closed loop: requests in flight, pause after each.
    closed: Option<(u32, u64)>,
}

const SAMPLED: Setup = Setup {
    dies: 4,
    shared: false,
    units: 1,
    sampling: Some(32),
    out_of_line: false,
    index_entries: None,
    hash: HASH,
    closed: None,
};

/// A small device that collects in idle gaps.
fn device(setup: Setup) -> Deduplicating<Simulated<NoCensus>> {
    let geometry = Geometry::new(Counts {
        channels: 1,
        packages_per_channel: 1,
        dies_per_package: setup.dies,
        planes_per_die: 1,
        blocks_per_plane: 16,
        pages_per_block: 8,
        page_bytes: setup.units * 4096,
    })
    .unwrap();
    let timing = Timing {
        read: READ,
        program: vec![PROGRAM],
        erase: 1500,
        transfer: TRANSFER,
        shared_channel: setup.shared,
        concurrency: Concurrency::Die,
        erase_suspend: true,
    };
    let dedup = DedupOptions {
        index_entries: setup.index_entries,
        fingerprint_bits: 128,
        verify: false,
        bypass: None,
        out_of_line: setup.out_of_line,
    };
    let mut options = FtlOptions::new(PAGES);
    options.collect.mode = Mode::Background;
    options.collect.watermarks = Watermarks { low: 2, high: 4 };
    let flash = NandSim::new(geometry, timing);
    Deduplicating::new(flash, options, dedup, NoCensus).unwrap()
}

fn host(setup: Setup) -> HostOptions {
    HostOptions {
        load: match setup.closed {
            Some((queue_depth, think_time_ns)) => Load::Closed {
                queue_depth,
                think_time_ns,
            },
            None => Load::Open { time_scale: 1.0 },
        },
        link_request: 0,
        link_sector: 0,
        hash: setup.hash,
        sampling: setup.sampling.and_then(NonZeroU32::new),
        out_of_line: setup.out_of_line,
        flush_after: 1000,
        buffering: None,
        read_cache: None,
        read_order: ReadOrder::SamePage,
        needs_content: true,
        codec: CodecTimes::default(),
        record: 0,
    }
}

/// Replays a trace to its end; answers the response times by kind, and the longest.
fn replay_all(
    system: &mut Deduplicating<Simulated<NoCensus>>,
    setup: Setup,
    block: &RequestBlock,
) -> (LatencyByKind, f64) {
    let count = block.requests.len();
    let mut driver = Driver::new(system, host(setup), Measured::default());
    driver.begin_measuring();
    driver.replay(block, 0, count).unwrap();
    driver.drain().unwrap();
    let all = driver.measured.response.all();
    assert_eq!(all.count(), count as u64);
    (driver.measured.response, all.stats().max.unwrap())
}

/// The longest response time of a trace.
fn replay(
    system: &mut Deduplicating<Simulated<NoCensus>>,
    setup: Setup,
    block: &RequestBlock,
) -> f64 {
    replay_all(system, setup, block).1
}

fn push(block: &mut RequestBlock, time_ns: u64, op: Op, lpn: u32, units: u32, values: &[u32]) {
    let mut first_value = NO_CONTENT;
    if op == Op::Write {
        first_value = block.values.len() as u32;
        block.values.extend(values);
    }
    block.requests.push(Request {
        time_ns,
        lpn,
        units,
        first_value,
        op,
        head_partial: false,
        tail_partial: false,
    });
}

fn write(block: &mut RequestBlock, time_ns: u64, lpn: u32, values: &[u32]) {
    push(block, time_ns, Op::Write, lpn, values.len() as u32, values);
}

/// The one response time of a trace that ends with the request measured.
fn last_response(
    setup: Setup,
    before: &[(u32, &[u32])],
    last: (u32, &[u32]),
) -> (f64, DedupCounters) {
    let mut system = device(setup);
    let mut block = RequestBlock::default();
    for (i, &(lpn, values)) in before.iter().enumerate() {
        write(&mut block, 100_000 * i as u64, lpn, values);
    }
    if !before.is_empty() {
        replay(&mut system, setup, &block);
    }
    system.core_mut().flash_mut().restart();
    system.restart_counters();
    let mut block = RequestBlock::default();
    write(&mut block, 0, last.0, last.1);
    let response = replay(&mut system, setup, &block);
    (response, system.dedup().unwrap().0)
}

#[test]
fn an_unknown_sample_costs_one_hash_and_a_known_one_is_hashed_first() {
    let us = |ns: u64| ns as f64 / 1e3;
    let pages = [1, 2, 3, 4];
    // Four pages on four dies of their own.
    let (response, counts) = last_response(SAMPLED, &[], (0, &pages));
    assert_eq!(response, us(HASH + TRANSFER + PROGRAM));
    assert_eq!((counts.hits, counts.misses, counts.unsampled), (0, 1, 3));
    let all = Setup {
        sampling: None,
        ..SAMPLED
    };
    let (response, counts) = last_response(all, &[], (0, &pages));
    assert_eq!(response, us(4 * HASH + TRANSFER + PROGRAM));
    assert_eq!((counts.misses, counts.unsampled), (4, 0));

    // Written again elsewhere: the sample is found, of the others none is indexed.
    let (response, counts) = last_response(SAMPLED, &[(0, &pages)], (8, &pages));
    assert_eq!(response, us(4 * HASH + TRANSFER + PROGRAM));
    assert_eq!((counts.hits, counts.misses, counts.unsampled), (1, 3, 0));
    // The third time all are.
    let twice: [(u32, &[u32]); 2] = [(0, &pages), (8, &pages)];
    let (response, counts) = last_response(SAMPLED, &twice, (16, &pages));
    assert_eq!(response, us(4 * HASH));
    assert_eq!((counts.hits, counts.misses, counts.unsampled), (4, 0, 0));

    // What is not hashed does not wait for the hash of the next request.
    let mut block = RequestBlock::default();
    write(&mut block, 0, 0, &pages[..3]);
    write(&mut block, 0, 8, &[9]);
    let (response, _) = replay_all(&mut device(SAMPLED), SAMPLED, &block);
    let both = HASH + TRANSFER + PROGRAM + 2 * HASH + TRANSFER + PROGRAM;
    assert_eq!(response.write.stats().mean, Some(us(both / 2)));

    // In units of two pages there are two samples.
    let halves = Setup {
        sampling: Some(2),
        ..SAMPLED
    };
    let (_, counts) = last_response(halves, &[], (0, &pages));
    assert_eq!((counts.misses, counts.unsampled), (2, 2));
}

#[test]
fn idle_time_finds_what_sampling_missed_and_a_started_step_finishes() {
    let setup = Setup {
        dies: 1,
        out_of_line: true,
        ..SAMPLED
    };
    let pages = [1, 2, 3, 4];
    let mut block = RequestBlock::default();
    write(&mut block, 0, 0, &pages);
    write(&mut block, 10_000, 8, &pages);
    // A read long after: three pages were not hashed, and are now, one after the other.
    push(&mut block, 20_000, Op::Read, 0, 1, &[]);
    let mut system = device(setup);
    replay(&mut system, setup, &block);
    let counts = system.dedup().unwrap().0;
    // When the pages came again they were all indexed.
    assert_eq!((counts.hits, counts.misses, counts.unsampled), (4, 1, 3));
    assert_eq!((counts.scanned, counts.scan_duplicates), (3, 0));
    assert_eq!(system.core().counters().page_reads_scan, 3);

    // A request that comes in the middle of a read of 65 ns waits for its end; one that comes before it, or
    // while that page is hashed, does not.
    let (programmed, read) = (HASH + TRANSFER + PROGRAM, READ + TRANSFER);
    let waits = [
        (0, 0),
        (1, read - 1),
        (read - 1, 1),
        (read, 0),
        (read + 5, 0),
    ];
    for (after, wait) in waits {
        let mut block = RequestBlock::default();
        write(&mut block, 0, 0, &[1, 2]);
        let idle = programmed + TRANSFER + PROGRAM;
        push(&mut block, idle + after, Op::Read, 0, 1, &[]);
        let (response, _) = replay_all(&mut device(setup), setup, &block);
        let found = response.read.stats().max;
        assert_eq!(found, Some((wait + read) as f64 / 1e3), "after {after} ns");
    }

    // While the hash unit works no page is read for it, though the die is idle.
    let slow = Setup {
        hash: 1000,
        ..setup
    };
    let mut block = RequestBlock::default();
    write(&mut block, 0, 0, &[1, 2]);
    let idle = slow.hash + 2 * (TRANSFER + PROGRAM);
    write(&mut block, idle, 2, &[3]);
    push(&mut block, idle + 20, Op::Read, 0, 1, &[]);
    let (response, _) = replay_all(&mut device(slow), slow, &block);
    assert_eq!(response.read.stats().max, Some(read as f64 / 1e3));

    // In a closed loop a die may be idle while the host waits for another.
    for shared in [false, true] {
        let closed = Setup {
            closed: Some((1, 0)),
            dies: 2,
            shared,
            ..setup
        };
        let mut block = RequestBlock::default();
        write(&mut block, 0, 0, &[1, 2]);
        write(&mut block, 0, 2, &[3]);
        push(&mut block, 0, Op::Read, 9, 1, &[]);
        let mut system = device(closed);
        replay(&mut system, closed, &block);
        assert_eq!(system.dedup().unwrap().0.scanned, 1, "shared: {shared}");
    }

    // A write waits for the hash that has begun.
    let mut block = RequestBlock::default();
    write(&mut block, 0, 0, &[1, 2]);
    let idle = programmed + TRANSFER + PROGRAM;
    write(&mut block, idle + read + 5, 1, &[1]);
    let mut system = device(setup);
    let mut driver = Driver::new(&mut system, host(setup), Measured::default());
    driver.replay(&block, 0, 1).unwrap();
    driver.begin_measuring();
    driver.replay(&block, 1, 2).unwrap();
    driver.drain().unwrap();
    let response = driver.measured.response.write.stats().max;
    assert_eq!(response, Some((HASH - 5 + HASH) as f64 / 1e3));
    // The page that was hashed was overwritten meanwhile, by a duplicate.
    let counts = system.dedup().unwrap().0;
    assert_eq!((counts.scanned, counts.hits), (1, 1));
    system.ftl().check().unwrap();
}

/// What a device without time and flash does with requests, one after the other.
#[derive(Default)]
struct Model {
    /// Value of each page, and whether its object is indexed.
    pages: BTreeMap<Lpn, (u32, bool)>,
    /// Pages that share an indexed value.
    indexed: HashMap<u32, u32>,
    counts: DedupCounters,
}

impl Model {
    fn forget(&mut self, lpn: Lpn) {
        let Some((value, true)) = self.pages.remove(&lpn) else {
            return;
        };
        let references = self.indexed.get_mut(&value).unwrap();
        *references -= 1;
        if *references == 0 {
            self.indexed.remove(&value);
        }
    }

    fn hashed(&mut self, lpn: Lpn, value: u32) {
        match self.indexed.get_mut(&value) {
            Some(references) => {
                *references += 1;
                self.counts.hits += 1;
            }
            None => {
                self.indexed.insert(value, 1);
                self.counts.misses += 1;
            }
        }
        if self.pages.get(&lpn) == Some(&(value, true)) {
            self.counts.silent += 1;
        }
        self.forget(lpn);
        self.pages.insert(lpn, (value, true));
    }

    fn write(&mut self, lpn: Lpn, values: &[u32], unit: usize) {
        for (nth, pages) in values.chunks(unit).enumerate() {
            let first = lpn + (nth * unit) as u32;
            let chosen = sample_of(pages).unwrap();
            let found = self.indexed.contains_key(&pages[chosen]);
            self.hashed(first + chosen as u32, pages[chosen]);
            for (i, &value) in pages.iter().enumerate().filter(|&(i, _)| i != chosen) {
                let lpn = first + i as u32;
                if found {
                    self.hashed(lpn, value);
                } else {
                    self.counts.unsampled += 1;
                    self.forget(lpn);
                    self.pages.insert(lpn, (value, false));
                }
            }
        }
    }
}

/// A request: the gap before it, its kind, its first page, the values of its pages (of a write).
type Asked = (u64, u8, u32, Vec<u32>, u8);

fn requests() -> impl Strategy<Value = Vec<Asked>> {
    let gap = prop_oneof![4 => 0u64..100, 2 => 0u64..2000, 1 => 0u64..50_000];
    // Whole runs of values are written again.
    let values = (0u32..30, 1usize..7)
        .prop_map(|(first, count)| (0..count as u32).map(|i| (first + i) % 30).collect());
    prop::collection::vec((gap, 0u8..14, 0..PAGES, values, 0u8..8), 1..200)
}

/// The requests as a trace, and what each page holds at the end.
fn block(asked: &[Asked], partial: bool) -> (RequestBlock, BTreeMap<u32, u32>) {
    let (mut block, mut held) = (RequestBlock::default(), BTreeMap::new());
    let mut now = 0;
    for (gap, kind, lpn, values, edges) in asked {
        now += gap;
        let units = (values.len() as u32).min(PAGES - lpn);
        let op = match kind {
            0 => Op::Trim,
            1 | 2 => Op::Read,
            3 => Op::Flush,
            _ => Op::Write,
        };
        let units = if op == Op::Flush { 0 } else { units };
        push(&mut block, now, op, *lpn, units, &values[..units as usize]);
        for i in 0..units {
            match op {
                Op::Write => drop(held.insert(lpn + i, values[i as usize])),
                Op::Trim => drop(held.remove(&(lpn + i))),
                _ => {}
            }
        }
        if let Some(last) = block.requests.last_mut()
            && partial
            && op == Op::Write
        {
            last.head_partial = *edges == 0 || *edges == 2;
            last.tail_partial = *edges == 1 || *edges == 2;
        }
    }
    (block, held)
}

fn values_of(system: &Deduplicating<Simulated<NoCensus>>) -> BTreeMap<u32, u32> {
    let objects = system.ftl().objects();
    let of = |lpn| Some((lpn, objects.content(objects.object_of(Lpn(lpn))?).0));
    (0..PAGES).filter_map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// With a hash unit that takes no time requests do not overlap in front of the map.
    #[test]
    fn samples_decide_as_in_a_model_without_time(
        asked in requests(),
        unit in prop::sample::select(vec![2usize, 3, 32]),
    ) {
        let setup = Setup { sampling: Some(unit as u32), hash: 0, ..SAMPLED };
        let (block, held) = block(&asked, false);
        let mut model = Model::default();
        for request in &block.requests {
            match (request.op, block.content(request)) {
                (Op::Write, Some(values)) => model.write(Lpn(request.lpn), values, unit),
                (Op::Trim, _) => (0..request.units).for_each(|i| model.forget(Lpn(request.lpn + i))),
                _ => {}
            }
        }
        let mut system = device(setup);
        replay(&mut system, setup, &block);
        system.ftl().check().map_err(TestCaseError::fail)?;
        prop_assert_eq!(system.dedup().unwrap().0, model.counts);
        prop_assert_eq!(values_of(&system), held);
    }

    /// However requests overlap, the last write to arrive is the one that stays; and when the device has
    /// been left alone every value is stored once.
    #[test]
    fn nothing_is_lost_and_idle_time_leaves_one_page_for_each_value(
        asked in requests(),
        partial in any::<bool>(),
        (dies, shared) in (1u32..4, any::<bool>()),
        closed in prop::sample::select(vec![None, Some((3, 300))]),
        units in prop::sample::select(vec![1u32, 4]),
        sampling in prop::sample::select(vec![None, Some(2), Some(3), Some(32)]),
        out_of_line in any::<bool>(),
        index_entries in prop::sample::select(vec![None, Some(4)]),
        hash in prop::sample::select(vec![0, HASH, 900]),
    ) {
        let setup = Setup { dies, shared, units, sampling, out_of_line, index_entries, hash, closed };
        let (mut block, held) = block(&asked, partial);
        let end = block.requests.last().map_or(0, |r| r.time_ns);
        let mut system = device(setup);
        if closed.is_none() {
            push(&mut block, end + 10_000_000, Op::Read, 0, 1, &[]);
        }
        replay(&mut system, setup, &block);
        system.ftl().check().map_err(TestCaseError::fail)?;
        prop_assert_eq!(values_of(&system), held);
        let counts = system.dedup().unwrap().0;
        let writes = counts.hits + counts.misses + counts.unsampled;
        prop_assert_eq!(writes, system.core().counters().host_writes);
        prop_assert_eq!(counts.corrupted + counts.unhashed, 0);
        if !out_of_line {
            prop_assert_eq!(counts.scanned, 0);
        } else if closed.is_none() && index_entries.is_none() {
            let distinct: BTreeSet<u32> = values_of(&system).into_values().collect();
            prop_assert_eq!(system.ftl().objects().live() as usize, distinct.len());
        }
    }
}

#[test]
fn without_sampling_and_idle_time_the_preset_is_ca_ssd() {
    let off = [
        "dedup.sampling=off",
        "dedup.out_of_line=false",
        "dedup.digest=md5",
    ];
    let run = |system, settings: &[&str]| {
        let config = config("auto", system, settings);
        let device = flashlore_sim::config::auto_device(&config.device, 10_000).unwrap();
        let config = flashlore_sim::config::RunConfig { device, ..config };
        let mut source = Uniform::new(60_000, 10_000, 3, 9_000);
        let output = simulate(&config, &mut source, RunOptions::default());
        let mut result = output.unwrap().result;
        result.run = Default::default();
        result
    };
    let caftl = run("caftl", &off);
    let mut ca_ssd = run("ca-ssd", &[]);
    assert_eq!(caftl.config_hash, ca_ssd.config_hash);
    ca_ssd.system = caftl.system.clone();
    ca_ssd.configuration.system = caftl.configuration.system.clone();
    assert_eq!(caftl, ca_ssd);
    assert!(caftl.dedup.hits > 1000 && caftl.flash.block_erases > 0);
}
