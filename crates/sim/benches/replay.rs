//! Timed replay from memory through the whole host model, and the memory a device takes.
//!
//! `cargo bench -p flashlore-sim --bench replay [-- GIB [CASES]]` (default 8 GiB raw; `CASES` is a list of
//! numbers such as `0,2`, counted from 0, for profiles of one of them). Uniform random 4 KiB
//! writes on a full device, 64-page blocks, greedy collection in the foreground, response and service
//! times recorded. Prints page requests a second of processor time of the one thread, what was
//! switched on, amplification, hit rate, bytes a logical page, and a hash of the counters. Rounds of the
//! systems are interleaved; the best of each counts.

use cpu_time::ThreadTime;
use flashlore_content::{DedupOptions, NoCensus, PageTag};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Geometry, Tag, When};
use flashlore_ftl::FtlOptions;
use flashlore_ftl::buffer::Policy;
use flashlore_sim::config::Load;
use flashlore_sim::engine::Measured;
use flashlore_sim::engine::driver::{CodecTimes, Driver, Host};
use flashlore_sim::engine::front::FrontOptions;
use flashlore_sim::engine::system::{Deduplicating, Plain, System};
use flashlore_trace::{NO_CONTENT, Op, Request, RequestBlock};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const ROUNDS: usize = 5;
const BLOCK: usize = 1 << 16;
const BLOCKS_A_ROUND: usize = 16;

/// Geometry and spare space of a case.
#[derive(Clone, Copy)]
struct Shape {
    gib: u32,
    /// Per cent of raw space that is not exported.
    spare: u32,
    shared: bool,
}

impl Shape {
    fn build(self) -> (NandSim, FtlOptions) {
        let (channels, dies) = if self.shared { (4, 4) } else { (8, 1) };
        let geometry = Geometry::new(Counts {
            channels,
            packages_per_channel: 1,
            dies_per_package: dies,
            planes_per_die: 1,
            blocks_per_plane: self.gib * 4096 / (channels * dies),
            pages_per_block: 64,
            page_bytes: 4096,
        })
        .expect("the geometry is valid");
        let exported = u64::from(geometry.units()) * u64::from(100 - self.spare) / 100;
        let timing = Timing {
            read: 25_000,
            program: vec![200_000],
            erase: 1_500_000,
            transfer: if self.shared { 10_000 } else { 0 },
            shared_channel: self.shared,
            concurrency: Concurrency::Die,
            erase_suspend: false,
        };
        let options = FtlOptions::new(exported as u32);
        (NandSim::new(geometry, timing), options)
    }

    fn name(self) -> &'static str {
        if self.shared {
            "4 shared channels x 4 dies"
        } else {
            "8 private channels"
        }
    }
}

/// Draws requests: uniform addresses; so many in 100 writes repeat a recent value.
struct Source {
    random: Xoshiro256PlusPlus,
    exported: u32,
    repeats: u32,
    window: u32,
    content: bool,
    next_value: u32,
    now: u64,
}

impl Source {
    fn new(exported: u32, repeats: u32, content: bool) -> Self {
        Source {
            random: Xoshiro256PlusPlus::seed_from_u64(7),
            exported,
            repeats,
            window: exported / 32,
            content,
            next_value: 0,
            now: 0,
        }
    }

    fn below(&mut self, n: u32) -> u32 {
        ((u128::from(self.random.next_u64()) * u128::from(n)) >> 64) as u32
    }

    fn block(&mut self, out: &mut RequestBlock) {
        out.clear();
        for _ in 0..BLOCK {
            self.now += 200_000;
            let lpn = self.below(self.exported);
            let mut first_value = NO_CONTENT;
            if self.content {
                first_value = out.values.len() as u32;
                let repeat = self.next_value > self.window && self.below(100) < self.repeats;
                let value = if repeat {
                    self.next_value - 1 - self.below(self.window)
                } else {
                    self.next_value += 1;
                    self.next_value - 1
                };
                out.values.push(value);
            }
            out.requests.push(Request {
                time_ns: self.now,
                lpn,
                units: 1,
                first_value,
                op: Op::Write,
                head_partial: false,
                tail_partial: false,
            });
        }
    }
}

fn host(front: Option<FrontOptions>) -> Host {
    Host {
        load: Load::Open { time_scale: 1.0 },
        link_request: 0,
        link_sector: 0,
        hash: 32_000,
        sampling: None,
        out_of_line: false,
        flush_after: 1_000_000,
        front,
        needs_content: true,
        codec: CodecTimes::default(),
        record: 0,
    }
}

/// A case under measurement.
trait Case {
    fn round(&mut self);
    fn report(&self);
}

struct Replay<S> {
    name: &'static str,
    shape: Shape,
    system: S,
    front: Option<FrontOptions>,
    source: Source,
    best: f64,
    last: (u64, u64, u64),
    hits: (u64, u64),
    block: RequestBlock,
}

impl<S: System> Replay<S> {
    fn new(name: &'static str, shape: Shape, mut system: S, repeats: u32) -> Self {
        let exported = system.core().options().exported;
        for lpn in 0..exported {
            system.fill(lpn).expect("the device has room");
        }
        let source = Source::new(exported, repeats, S::HASHES);
        let mut case = Replay {
            name,
            shape,
            system,
            front: None,
            source,
            best: f64::INFINITY,
            last: (0, 0, 0),
            hits: (0, 0),
            block: RequestBlock::default(),
        };
        // Overwritten three times, a device of uniform writes is in its steady state.
        for _ in 0..3 * exported as usize / BLOCK {
            case.replay();
        }
        case
    }

    fn replay(&mut self) -> f64 {
        self.source.block(&mut self.block);
        let mut driver = Driver::new(&mut self.system, host(self.front), Measured::default());
        driver.begin_measuring();
        let begin = ThreadTime::now();
        driver
            .replay(&self.block, 0, BLOCK)
            .expect("the device has room");
        driver.drain().expect("the device has room");
        begin.elapsed().as_secs_f64()
    }
}

impl<S: System> Case for Replay<S> {
    fn round(&mut self) {
        let before = self.system.core().counters().clone();
        let dedup = self
            .system
            .dedup()
            .map_or((0, 0), |(d, _)| (d.hits, d.misses));
        let seconds: f64 = (0..BLOCKS_A_ROUND).map(|_| self.replay()).sum();
        self.best = self.best.min(seconds);
        let after = self.system.core().counters();
        self.last = (
            after.host_writes - before.host_writes,
            after.programs() - before.programs(),
            after.erases - before.erases,
        );
        let now = self
            .system
            .dedup()
            .map_or((0, 0), |(d, _)| (d.hits, d.misses));
        self.hits = (now.0 - dedup.0, now.1 - dedup.1);
    }

    fn report(&self) {
        let (writes, programs, erases) = self.last;
        let c = self.system.core().counters();
        let hash = [
            c.programs_host,
            c.programs_gc,
            c.erases,
            self.hits.0,
            erases,
        ]
        .iter()
        .fold(0u64, |h, &x| {
            (h ^ x).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(17)
        });
        let pages = f64::from(self.system.core().options().exported);
        let rate = self.hits.0 as f64 / (self.hits.0 + self.hits.1).max(1) as f64 * 100.0;
        println!(
            "{:<22} {:>6.2} M page requests/s {:>6.2} M programs/s  waf_total {:.3}  hits {rate:>4.1} %  \
             {:>5.1} B/page  {} GiB, {} % spare of raw, {}  hash {hash:016x}",
            self.name,
            writes as f64 / self.best / 1e6,
            programs as f64 / self.best / 1e6,
            programs as f64 / writes as f64,
            self.system.heap_bytes() as f64 / pages,
            self.shape.gib,
            self.shape.spare,
            self.shape.name(),
        );
    }
}

fn plain(name: &'static str, shape: Shape) -> Box<dyn Case> {
    let (flash, options) = shape.build();
    let system = Plain::new(flash, options).expect("the options are valid");
    Box::new(Replay::new(name, shape, system, 0))
}

/// With a front whose places are few against a block of requests, so that it is full nearly always.
fn fronted(name: &'static str, shape: Shape, front: FrontOptions) -> Box<dyn Case> {
    let (flash, options) = shape.build();
    let system = Plain::new(flash, options).expect("the options are valid");
    let mut replay = Replay::new(name, shape, system, 0);
    replay.front = Some(front);
    Box::new(replay)
}

/// An index of a quarter of the exported pages.
fn policy(options: &FtlOptions) -> DedupOptions {
    DedupOptions {
        index_entries: Some(options.exported / 4),
        fingerprint_bits: 128,
        verify: false,
        bypass: None,
        out_of_line: false,
    }
}

fn ca_ssd(name: &'static str, shape: Shape, repeats: u32) -> Box<dyn Case> {
    let (flash, options) = shape.build();
    let policy = policy(&options);
    let system = Deduplicating::new(flash, options, policy, NoCensus).expect("valid options");
    Box::new(Replay::new(name, shape, system, repeats))
}

/// What an exported TiB takes, and that it does not grow with requests.
fn memory() {
    let shape = Shape {
        gib: 1024,
        spare: 7,
        shared: false,
    };
    let (flash, options) = shape.build();
    let exported = f64::from(options.exported);
    let mut system = Plain::new(flash, options).expect("the options are valid");
    let empty = system.heap_bytes() as f64 / exported;
    for lpn in 0..1 << 20 {
        system.fill(lpn).expect("the device has room");
    }
    let used = system.heap_bytes() as f64 / exported;
    println!("memory, 1 TiB raw: plain {empty:.2} B/page, after a million writes {used:.2}");
    drop(system);
    let (flash, options) = shape.build();
    let policy = policy(&options);
    let exported_pages = options.exported;
    let mut system = Deduplicating::new(flash, options, policy, NoCensus).expect("valid options");
    for lpn in 0..1 << 20 {
        system
            .write(When::now(0), lpn, PageTag(lpn), None, false, Tag::NONE)
            .expect("the device has room");
    }
    let tables = system.heap_bytes() as f64 - 16.0 * f64::from(1 << 20);
    let full = tables / exported + 16.0;
    println!(
        "memory, 1 TiB raw: ca-ssd with an index of 25 % of {exported_pages} pages {full:.2} B/page \
         when every page has an object"
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let gib = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(8);
    let chosen: Option<Vec<usize>> = arguments
        .next()
        .map(|list| list.split(',').filter_map(|n| n.parse().ok()).collect());
    let private = Shape {
        gib,
        spare: 33,
        shared: false,
    };
    let shared = Shape {
        shared: true,
        ..private
    };
    let tight = Shape {
        gib: gib * 4,
        spare: 7,
        shared: false,
    };
    let buffer = FrontOptions::Buffer {
        places: 2048,
        policy: Policy::Slru { protected: 1024 },
    };
    let queue = FrontOptions::Queue {
        places: 256,
        bucket_pages: 64,
        early_ack: true,
        period: 1_000_000_000,
    };
    let all: [&dyn Fn() -> Box<dyn Case>; 8] = [
        &|| plain("plain", private),
        &|| ca_ssd("ca-ssd, 40 % repeated", private, 41),
        &|| ca_ssd("ca-ssd, all distinct", private, 0),
        &|| plain("plain", shared),
        &|| ca_ssd("ca-ssd, 40 % repeated", shared, 41),
        &|| plain("plain, tight", tight),
        &|| fronted("plain, write buffer", private, buffer),
        &|| fronted("plain, write queue", private, queue),
    ];
    let wanted = |number| chosen.as_ref().is_none_or(|c| c.contains(&number));
    let mut cases: Vec<_> = (0..all.len())
        .filter(|&number| wanted(number))
        .map(|number| all[number]())
        .collect();
    for _ in 0..ROUNDS {
        for case in &mut cases {
            case.round();
        }
    }
    for case in &cases {
        case.report();
    }
    if chosen.is_none() {
        memory();
    }
}
