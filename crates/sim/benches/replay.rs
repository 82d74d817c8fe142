//! Timed replay from memory through the whole host model, and the memory a device takes.
//!
//! `cargo bench -p flashlore-sim --bench replay [-- GIB [CASES]]` (default 8 GiB raw; `CASES` is a list of
//! numbers such as `0,2`, counted from 0, for profiles of one of them). Random 4 KiB writes, 5,000 a second,
//! on a full device, 64-page blocks, greedy collection in the foreground, response and service
//! times recorded. Prints page requests a second of processor time of the one thread, amplification, what was
//! switched on and what it did, bytes a logical page, and a hash of the counters. Rounds of the
//! systems are interleaved; the best of each counts.
//!
//! Addresses are uniform, but where there are deltas: then half of the writes go to a 64th of the pages,
//! which are write-hot. Old versions fill what the reserve leaves, so the window shrinks with nearly every
//! write.

use cpu_time::ThreadTime;
use flashlore_content::delta::{Drawn, Ratio};
use flashlore_content::history::HistoryOptions;
use flashlore_content::{DedupOptions, NoCensus, PageTag};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Geometry, Lpn, Tag, When};
use flashlore_ftl::buffer::Replacement;
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::mapping::packs::MOST_BYTES;
use flashlore_ftl::policies::history::{OnPressure, VersionsOptions};
use flashlore_ftl::policies::options::{EncodingOptions, HeatOptions, NEVER, ViabilityOptions};
use flashlore_ftl::{FtlOptions, Policies};
use flashlore_sim::config::{Load, ReadOrder};
use flashlore_sim::engine::Measured;
use flashlore_sim::engine::buffering::BufferingOptions;
use flashlore_sim::engine::driver::{CodecTimes, Driver, HostOptions};
use flashlore_sim::engine::lengths::Lengths;
use flashlore_sim::engine::system::{Deduplicating, Plain, Simulated, System};
use flashlore_trace::{NO_CONTENT, Op, Request, RequestBlock};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const ROUNDS: usize = 5;
const BLOCK: usize = 1 << 16;
const BLOCKS_A_ROUND: usize = 16;
/// Time between two requests.
const GAP_NS: u64 = 200_000;
/// Of the pages so many are hot, where some are: one in this number.
const COLD_FOR_HOT: u32 = 64;

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

/// What is written.
#[derive(Clone, Copy, Default)]
struct Writes {
    /// So many in 100 repeat a recent value.
    repeats: u32,
    /// So many in 100 go to hot pages.
    hot: u32,
}

/// Draws requests.
struct Source {
    random: Xoshiro256PlusPlus,
    exported: u32,
    writes: Writes,
    window: u32,
    content: bool,
    next_value: u32,
    now: u64,
}

impl Source {
    fn new(exported: u32, writes: Writes, content: bool) -> Self {
        Source {
            random: Xoshiro256PlusPlus::seed_from_u64(7),
            exported,
            writes,
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
            self.now += GAP_NS;
            let hot = self.writes.hot > 0 && self.below(100) < self.writes.hot;
            let pages = if hot {
                self.exported / COLD_FOR_HOT
            } else {
                self.exported
            };
            let lpn = self.below(pages);
            let mut first_value = NO_CONTENT;
            if self.content {
                first_value = out.values.len() as u32;
                let repeat = self.next_value > self.window && self.below(100) < self.writes.repeats;
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

/// A host whose writes are hashed, not encoded, and end no version.
fn host() -> HostOptions {
    HostOptions {
        load: Load::Open { time_scale: 1.0 },
        link_request: 0,
        link_sector: 0,
        hash: 32_000,
        sampling: None,
        out_of_line: false,
        flush_after: 1_000_000,
        buffering: None,
        read_cache: None,
        read_order: ReadOrder::SamePage,
        needs_content: false,
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
    host: HostOptions,
    source: Source,
    best: f64,
    last: [u64; COUNTS],
    block: RequestBlock,
}

impl<S: System> Replay<S> {
    fn new(
        name: &'static str,
        shape: Shape,
        mut system: S,
        mut host: HostOptions,
        writes: Writes,
    ) -> Self {
        host.needs_content = S::HASHES;
        let exported = system.core().options().exported;
        for lpn in 0..exported {
            system.fill(Lpn(lpn)).expect("the device has room");
        }
        system.begin_history();
        let source = Source::new(exported, writes, S::HASHES);
        let mut case = Replay {
            name,
            shape,
            system,
            host,
            source,
            best: f64::INFINITY,
            last: [0; COUNTS],
            block: RequestBlock::default(),
        };
        // Overwritten three times, a device of uniform writes is in its steady state.
        case.replay(3 * exported as usize / BLOCK);
        case
    }

    /// Replays so many blocks of requests; answers the seconds that took.
    fn replay(&mut self, blocks: usize) -> f64 {
        let mut driver = Driver::new(&mut self.system, self.host, Measured::default());
        driver.begin_measuring();
        let mut seconds = 0.0;
        for _ in 0..blocks {
            self.source.block(&mut self.block);
            let begin = ThreadTime::now();
            driver
                .replay(&self.block, 0, BLOCK)
                .expect("the device has room");
            seconds += begin.elapsed().as_secs_f64();
        }
        let begin = ThreadTime::now();
        driver.drain().expect("the device has room");
        seconds + begin.elapsed().as_secs_f64()
    }

    /// Host writes, programs and erases; hits and misses; deltas stored; old versions recorded.
    fn counts(&self) -> [u64; COUNTS] {
        let core = self.system.core().counters();
        let dedup = self.system.dedup().map(|(d, _)| d).unwrap_or_default();
        let delta = self.system.delta().map_or(0, |d| d.counters.deltas);
        let history = self.system.history().map_or(0, |h| h.counters.recorded);
        [
            core.host_writes,
            core.programs(),
            core.erases,
            dedup.hits,
            dedup.misses,
            delta,
            history,
        ]
    }

    /// Length of the window and its entries, for the report.
    fn window(&self) -> String {
        let Some(history) = self.system.history() else {
            return String::new();
        };
        let seconds = (self.source.now - history.oldest) as f64 / 1e9;
        let entries = history.entries as f64 / f64::from(self.source.exported);
        format!("window {seconds:.0} s, {entries:.2} entries/page  ")
    }
}

/// What [`Replay::counts`] counts.
const COUNTS: usize = 7;

impl<S: System> Case for Replay<S> {
    fn round(&mut self) {
        let before = self.counts();
        self.best = self.best.min(self.replay(BLOCKS_A_ROUND));
        let after = self.counts();
        self.last = std::array::from_fn(|i| after[i] - before[i]);
    }

    fn report(&self) {
        let [writes, programs, _, hits, misses, deltas, _] = self.last;
        let hash = self.counts().iter().fold(0u64, |h, &x| {
            (h ^ x).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(17)
        });
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64 * 100.0;
        println!(
            "{:<28} {:>6.2} M page requests/s {:>6.2} M programs/s  waf_total {:.3}  hits {:>4.1} %  \
             deltas {:>4.1} %  {}{:>5.1} B/page  {} GiB, {} % spare of raw, {}  hash {hash:016x}",
            self.name,
            writes as f64 / self.best / 1e6,
            programs as f64 / self.best / 1e6,
            programs as f64 / writes as f64,
            share(hits, hits + misses),
            share(deltas, writes),
            self.window(),
            self.system.heap_bytes() as f64 / f64::from(self.source.exported),
            self.shape.gib,
            self.shape.spare,
            self.shape.name(),
        );
    }
}

fn plain(name: &'static str, shape: Shape) -> Box<dyn Case> {
    fronted(name, shape, None)
}

/// With a buffer whose places are few against a block of requests, so that it is full nearly always.
fn fronted(name: &'static str, shape: Shape, buffering: Option<BufferingOptions>) -> Box<dyn Case> {
    let (flash, options) = shape.build();
    let system = Plain::new(flash, options).expect("the options are valid");
    let host = HostOptions {
        buffering,
        ..host()
    };
    Box::new(Replay::new(name, shape, system, host, Writes::default()))
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
    let writes = Writes { repeats, hot: 0 };
    Box::new(Replay::new(name, shape, system, host(), writes))
}

/// A device with any of the policies.
type Combined = Deduplicating<Simulated<NoCensus, Resident, Lengths<'static>, Past>>;

/// No index.
fn no_dedup() -> DedupOptions {
    DedupOptions {
        index_entries: Some(0),
        fingerprint_bits: 128,
        verify: false,
        bypass: None,
        out_of_line: false,
    }
}

/// Lengths of deltas and of values alone as shares of a page, with this deviation.
fn drawn(delta: f64, alone: f64) -> Lengths<'static> {
    let ratio = |mean| Ratio {
        mean,
        deviation: 0.05,
    };
    Lengths::Drawn(Drawn::new(ratio(delta), ratio(alone), 7))
}

/// DeltaFTL's deltas of pages written twice between two scans, always worth their while.
fn deltas(options: &FtlOptions) -> EncodingOptions {
    EncodingOptions {
        deltas: true,
        compress: false,
        hot_writes: 2,
        hot_reads: 2,
        most_bytes: MOST_BYTES as u16,
        viability: ViabilityOptions {
            most_bytes: MOST_BYTES as u16,
            window: 1024,
            probe: 64,
        },
        heat: HeatOptions {
            entries: None,
            protected: 0,
        },
        lambda: 0,
        most_pinned: options.exported,
        similar: None,
    }
}

/// LZF at 619 MHz, and a scan for cold pages so often.
fn lzf(scan_period: u64) -> CodecTimes {
    CodecTimes {
        encode: 43_961,
        decode: 10_884,
        sketch: 0,
        scan_period,
    }
}

/// History, all entries in RAM, that leaves so many per cent of the raw space free.
fn versions(shape: Shape, reserve: u32) -> VersionsOptions {
    let units = u64::from(shape.gib) << 18;
    VersionsOptions {
        history: HistoryOptions {
            max_entries: None,
            schedule: None,
        },
        least_window: 0,
        on_pressure: OnPressure::Shrink,
        entries_in_ram: None,
        reserve: units * u64::from(reserve) / 100,
    }
}

/// Fields of an entry, 25 ns each.
const RECORD_NS: u64 = 125;

fn delta_ftl(name: &'static str, shape: Shape) -> Box<dyn Case> {
    let (flash, options) = shape.build();
    let policies = Policies {
        dedup: no_dedup(),
        encoding: Some(deltas(&options)),
        versions: None,
        encoder: drawn(0.35, 1.0),
    };
    let system = Combined::with_policies(flash, options, policies, NoCensus);
    let host = HostOptions {
        hash: 0,
        codec: lzf(60_000_000_000),
        ..host()
    };
    let writes = Writes {
        repeats: 0,
        hot: 50,
    };
    let system = system.expect("valid options");
    Box::new(Replay::new(name, shape, system, host, writes))
}

fn bvssd(
    name: &'static str,
    shape: Shape,
    reserve: u32,
    buffering: Option<BufferingOptions>,
) -> Box<dyn Case> {
    let (flash, options) = shape.build();
    let policies = Policies {
        dedup: no_dedup(),
        encoding: None,
        versions: Some(versions(shape, reserve)),
        encoder: drawn(1.0, 1.0),
    };
    let system = Combined::with_policies(flash, options, policies, NoCensus);
    let host = HostOptions {
        hash: 0,
        record: RECORD_NS,
        buffering,
        ..host()
    };
    let system = system.expect("valid options");
    Box::new(Replay::new(name, shape, system, host, Writes::default()))
}

fn combined_device(shape: Shape, reserve: u32, flash: NandSim, options: FtlOptions) -> Combined {
    let delta = EncodingOptions {
        compress: true,
        hot_reads: NEVER,
        lambda: 250,
        ..deltas(&options)
    };
    let policies = Policies {
        dedup: policy(&options),
        encoding: Some(delta),
        versions: Some(versions(shape, reserve)),
        encoder: drawn(0.35, 0.75),
    };
    Combined::with_policies(flash, options, policies, NoCensus).expect("valid options")
}

fn combined(name: &'static str, shape: Shape, reserve: u32) -> Box<dyn Case> {
    let (flash, options) = shape.build();
    let system = combined_device(shape, reserve, flash, options);
    let host = HostOptions {
        codec: lzf(0),
        record: RECORD_NS,
        ..host()
    };
    let writes = Writes {
        repeats: 41,
        hot: 50,
    };
    Box::new(Replay::new(name, shape, system, host, writes))
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
        system.fill(Lpn(lpn)).expect("the device has room");
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
            .write(When::now(0), Lpn(lpn), PageTag(lpn), None, false, Tag::NONE)
            .expect("the device has room");
    }
    let tables = system.heap_bytes() as f64 - 16.0 * f64::from(1 << 20);
    let full = tables / exported + 16.0;
    println!(
        "memory, 1 TiB raw: ca-ssd with an index of 25 % of {exported_pages} pages {full:.2} B/page \
         when every page has an object"
    );
    drop(system);
    let (flash, options) = shape.build();
    let system = combined_device(shape, 0, flash, options);
    let fixed = system.heap_bytes() as f64 / exported;
    println!(
        "memory, 1 TiB raw: combined {fixed:.2} B/page before anything is stored; with 1.1 objects and a third \
         of an entry {:.2} B/page, and what packed pages take",
        fixed + 1.1 * 16.0 + 20.0 / 3.0
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
    let buffer = BufferingOptions::Buffer {
        places: 2048,
        policy: Replacement::Slru { protected: 1024 },
    };
    let queue = BufferingOptions::Queue {
        places: 256,
        bucket_pages: 64,
        early_ack: true,
        period: 1_000_000_000,
    };
    let all: [&dyn Fn() -> Box<dyn Case>; 15] = [
        &|| plain("plain", private),
        &|| ca_ssd("ca-ssd, 40 % repeated", private, 41),
        &|| ca_ssd("ca-ssd, all distinct", private, 0),
        &|| plain("plain", shared),
        &|| ca_ssd("ca-ssd, 40 % repeated", shared, 41),
        &|| plain("plain, tight", tight),
        &|| fronted("plain, write buffer", private, Some(buffer)),
        &|| fronted("plain, write queue", private, Some(queue)),
        &|| delta_ftl("delta-ftl, half hot", private),
        &|| bvssd("bvssd, no queue", private, 22, None),
        &|| combined("combined, 40 % repeated", private, 15),
        &|| delta_ftl("delta-ftl, half hot", shared),
        &|| bvssd("bvssd, no queue", shared, 22, None),
        &|| combined("combined, 40 % repeated", shared, 15),
        &|| bvssd("bvssd, write queue", private, 22, Some(queue)),
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
