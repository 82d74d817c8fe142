//! The host model against naive event simulators: requests of several units pass the hash unit, a FIFO
//! server, and then wait for their dies. Every start and end is equal to the nanosecond.
//!
//! With private channels a request's units are chains of independent stages (`des`); with a shared
//! channel the dies are simulated by `bus`, fed with the times at which units leave the hash unit.

use std::io::Write;
use std::sync::Arc;

use flashlore_content::{DedupOptions, NoCensus, PageTag};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Geometry, Lpn, Tag, When};
use flashlore_ftl::FtlOptions;
use flashlore_oracle::bus::{self, Operation, Phase};
use flashlore_oracle::des::{self, Job, Span};
use flashlore_sim::config::{Load, ReadOrder};
use flashlore_sim::engine::driver::{CodecTimes, Driver, HostOptions};
use flashlore_sim::engine::system::{Deduplicating, Simulated, System};
use flashlore_sim::engine::{MeasureOptions, Measured};
use flashlore_trace::{NO_CONTENT, Op, Request, RequestBlock};
use parking_lot::Mutex;
use proptest::prelude::*;

const READ: u64 = 25_000;
const PROGRAM: u64 = 200_000;
const TRANSFER: u64 = 102_400;
/// Pages that reads go to; writes go to the others.
const READ_PAGES: u32 = 64;

#[derive(Debug, Clone, Copy)]
struct Setup {
    channels: u32,
    dies_per_channel: u32,
    shared: bool,
    hash: u64,
}

impl Setup {
    fn dies(self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Pages are striped over channels first, then over the dies of a channel.
    fn die_of_nth(self, nth: u32) -> usize {
        let die = nth % self.dies();
        (die % self.channels * self.dies_per_channel + die / self.channels) as usize
    }
}

/// A deduplicating device large enough that nothing is collected; reads find their pages.
fn system(setup: Setup) -> Deduplicating<Simulated<NoCensus>> {
    let geometry = Geometry::new(Counts {
        channels: setup.channels,
        packages_per_channel: 1,
        dies_per_package: setup.dies_per_channel,
        planes_per_die: 1,
        blocks_per_plane: 64,
        pages_per_block: 32,
        page_bytes: 4096,
    })
    .unwrap();
    let timing = Timing {
        read: READ,
        program: vec![PROGRAM],
        erase: 1_500_000,
        transfer: TRANSFER,
        shared_channel: setup.shared,
        concurrency: Concurrency::Die,
        erase_suspend: false,
    };
    let options = FtlOptions::new(1024);
    let dedup = DedupOptions {
        index_entries: None,
        fingerprint_bits: 128,
        verify: false,
        bypass: None,
        out_of_line: false,
    };
    let flash = NandSim::new(geometry, timing);
    let mut system = Deduplicating::new(flash, options, dedup, NoCensus).unwrap();
    for lpn in 0..READ_PAGES {
        system
            .write(
                When::now(0),
                Lpn(lpn),
                PageTag(1_000_000 + lpn),
                None,
                false,
                Tag::NONE,
            )
            .unwrap();
    }
    system.restart_counters();
    system.core_mut().finished().clear();
    system.core_mut().flash_mut().restart();
    system
}

/// A request: the gap before it, whether it reads, its first page, its pages.
type Asked = (u64, bool, u32, u32);

fn requests() -> impl Strategy<Value = Vec<Asked>> {
    let gap = prop_oneof![Just(0), 0u64..200_000, 0u64..2_000_000];
    prop::collection::vec((gap, any::<bool>(), 0u32..60, 1u32..5), 1..60)
}

/// The requests as a trace gives them; every written page has content of its own.
fn block(asked: &[Asked]) -> RequestBlock {
    let mut block = RequestBlock::default();
    let mut now = 0;
    for &(gap, reads, page, units) in asked {
        now += gap;
        let first_value = if reads {
            NO_CONTENT
        } else {
            let first = block.values.len() as u32;
            block.values.extend(first..first + units);
            first
        };
        block.requests.push(Request {
            time_ns: now,
            lpn: if reads { page } else { READ_PAGES + page },
            units,
            first_value,
            op: if reads { Op::Read } else { Op::Write },
            head_partial: false,
            tail_partial: false,
        });
    }
    block
}

/// Where the request log goes.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Start and end of every request, by number.
fn replayed(setup: Setup, block: &RequestBlock) -> Vec<(u64, u64)> {
    let mut system = system(setup);
    let host = HostOptions {
        load: Load::Open { time_scale: 1.0 },
        link_request: 0,
        link_sector: 0,
        hash: setup.hash,
        sampling: None,
        out_of_line: false,
        flush_after: 1_000_000,
        buffering: None,
        read_cache: None,
        read_order: ReadOrder::SamePage,
        needs_content: true,
        codec: CodecTimes::default(),
        record: 0,
    };
    let log = Shared::default();
    let measured = Measured::new(MeasureOptions {
        timeline_ns: None,
        request_log: Some(Box::new(log.clone())),
    });
    let mut driver = Driver::new(&mut system, host, measured);
    driver.begin_measuring();
    driver.replay(block, 0, block.requests.len()).unwrap();
    driver.drain().unwrap();
    drop(driver);
    assert_eq!(system.core().counters().erases, 0);
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    let mut spans = vec![None; block.requests.len()];
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |i: usize| fields[i].parse::<u64>().unwrap();
        let before = spans[number(0) as usize].replace((number(3), number(4)));
        assert_eq!(before, None, "request {} is reported twice", number(0));
    }
    spans.into_iter().map(Option::unwrap).collect()
}

/// A unit of a request: which one, when it arrives, whether it reads, its die.
struct Part {
    request: usize,
    arrival: u64,
    reads: bool,
    die: usize,
}

/// The units in order of arrival. Writes take the dies in turn, after the pages written before.
fn parts(setup: Setup, block: &RequestBlock) -> Vec<Part> {
    let mut written = READ_PAGES;
    let mut parts = Vec::new();
    for (number, request) in block.requests.iter().enumerate() {
        for unit in 0..request.units {
            let reads = request.op == Op::Read;
            let nth = if reads { request.lpn + unit } else { written };
            written += u32::from(!reads);
            parts.push(Part {
                request: number,
                arrival: request.time_ns,
                reads,
                die: setup.die_of_nth(nth),
            });
        }
    }
    parts
}

/// Every unit's first start and last end, on dies with private channels: chains of stages.
fn by_stages(setup: Setup, parts: &[Part]) -> Vec<(u64, u64)> {
    let jobs: Vec<Job> = parts
        .iter()
        .map(|part| Job {
            arrival_ns: part.arrival,
            stages: if part.reads {
                vec![(part.die + 1, READ + TRANSFER)]
            } else {
                vec![(0, setup.hash), (part.die + 1, TRANSFER + PROGRAM)]
            },
        })
        .collect();
    let ends = |spans: &Vec<Span>| {
        let hashed = spans.len() == 2 && setup.hash > 0;
        let first = if hashed {
            spans[0]
        } else {
            spans[spans.len() - 1]
        };
        (first.start_ns, spans[spans.len() - 1].completion_ns)
    };
    des::simulate(&jobs).iter().map(ends).collect()
}

/// The same on shared channels: the hash unit alone, then the dies with their channels.
fn by_bus(setup: Setup, parts: &[Part]) -> Vec<(u64, u64)> {
    let hash: Vec<Job> = parts
        .iter()
        .map(|part| Job {
            arrival_ns: part.arrival,
            stages: if part.reads {
                vec![]
            } else {
                vec![(0, setup.hash)]
            },
        })
        .collect();
    let hashed = des::simulate(&hash);
    let ready = |i: usize| match hashed[i].last() {
        Some(span) => span.completion_ns,
        None => parts[i].arrival,
    };
    // A unit is submitted when it is ready.
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&i| (ready(i), i));
    let phase = |channel, duration_ns| Phase {
        channel,
        duration_ns,
    };
    let operations: Vec<Operation> = order
        .iter()
        .map(|&i| Operation {
            die: parts[i].die,
            ready: bus::Ready::At(ready(i)),
            phases: if parts[i].reads {
                vec![phase(false, READ), phase(true, TRANSFER)]
            } else {
                vec![phase(true, TRANSFER), phase(false, PROGRAM)]
            },
        })
        .collect();
    let channels: Vec<usize> = (0..setup.dies())
        .map(|die| (die / setup.dies_per_channel) as usize)
        .collect();
    let mut result = vec![(0, 0); parts.len()];
    for (&i, span) in order.iter().zip(bus::simulate(&channels, &operations)) {
        let start = match hashed[i].first() {
            Some(hash) if setup.hash > 0 => hash.start_ns,
            _ => span.start_ns,
        };
        result[i] = (start, span.completion_ns);
    }
    result
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn requests_pass_the_hash_unit_and_their_dies_as_in_a_naive_simulation(
        channels in 1u32..3,
        dies_per_channel in 1u32..4,
        shared in any::<bool>(),
        hash in prop_oneof![Just(0), Just(32_000), 1u64..500_000],
        asked in requests(),
    ) {
        let setup = Setup { channels, dies_per_channel, shared, hash };
        let block = block(&asked);
        let parts = parts(setup, &block);
        let units = if shared { by_bus(setup, &parts) } else { by_stages(setup, &parts) };
        let mut expected = vec![(u64::MAX, 0); block.requests.len()];
        for (part, (start, end)) in parts.iter().zip(units) {
            let request = &mut expected[part.request];
            *request = (request.0.min(start), request.1.max(end));
        }
        prop_assert_eq!(replayed(setup, &block), expected);
    }
}
