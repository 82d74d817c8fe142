//! The translation layer alone, in simulated time, without host model and measurement.
//!
//! `cargo bench -p flashlore-ftl [-- GIB [SPARE]]`: uniform random overwrites of a full device (by
//! default 8 GiB raw, 30 % of raw spare, greedy, 8 private channels) on the plain device, and on the
//! deduplicating one with all-distinct content and with 40 % duplicates. Prints rates in processor time of the one thread, amplification and a hash of the
//! resulting counters; rounds of the systems are interleaved and the best of each is reported.

use std::hint::black_box;

use cpu_time::ThreadTime;
use flashlore_content::{DedupOptions, NoCensus, PageTag};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Geometry, Tag, When};
use flashlore_ftl::{
    Collect, Counters, DedupFtl, FtlOptions, LayoutOptions, Mode, PlainFtl, Streams, Trigger,
    VictimChoice, Watermarks, Wear,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const AHEAD: usize = 16;
const ROUNDS: usize = 3;
const BATCH: usize = 1 << 20;

fn device(gib: u32, spare: u32) -> (NandSim, FtlOptions) {
    let blocks = gib * 4096 / 8;
    let geometry = Geometry::new(Counts {
        channels: 8,
        packages_per_channel: 1,
        dies_per_package: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks,
        pages_per_block: 64,
        page_bytes: 4096,
    })
    .expect("the geometry is valid");
    let exported = (u64::from(geometry.units()) * u64::from(100 - spare) / 100) as u32;
    let timing = Timing {
        read: 25_000,
        program: vec![200_000],
        erase: 1_500_000,
        transfer: 0,
        shared_channel: false,
        concurrency: Concurrency::Die,
        erase_suspend: false,
    };
    let options = FtlOptions {
        exported,
        layout: LayoutOptions::default(),
        streams: Streams::Separate,
        summary_page: false,
        collect: Collect {
            victims: VictimChoice::Greedy,
            mode: Mode::Foreground,
            trigger: Trigger::Allocation,
            watermarks: Watermarks { low: 2, high: 2 },
            copyback: false,
        },
        wear: Wear {
            dynamic: false,
            static_gap: 0,
        },
        seed: 1,
    };
    (NandSim::new(geometry, timing), options)
}

fn random(rng: &mut Xoshiro256PlusPlus, below: u32) -> u32 {
    ((u128::from(rng.next_u64()) * u128::from(below)) >> 64) as u32
}

struct Load {
    rng: Xoshiro256PlusPlus,
    lpns: Vec<u32>,
    values: Vec<u32>,
    next_value: u32,
    time: u64,
}

impl Load {
    fn new() -> Self {
        Load {
            rng: Xoshiro256PlusPlus::seed_from_u64(7),
            lpns: Vec::new(),
            values: Vec::new(),
            next_value: 0,
            time: 0,
        }
    }

    /// A batch of uniform overwrites; `duplicates` in 100 repeat a recent value.
    fn draw(&mut self, exported: u32, duplicates: u32) {
        self.lpns.clear();
        self.values.clear();
        for _ in 0..BATCH {
            self.lpns.push(random(&mut self.rng, exported));
            let repeat = self.next_value > 0 && random(&mut self.rng, 100) < duplicates;
            let value = if repeat {
                let window = self.next_value.min(1 << 20);
                self.next_value - 1 - random(&mut self.rng, window)
            } else {
                self.next_value += 1;
                self.next_value - 1
            };
            self.values.push(value);
        }
    }
}

fn plain_batch(ftl: &mut PlainFtl<NandSim>, load: &mut Load) -> f64 {
    let lpns = &load.lpns;
    let begin = ThreadTime::now();
    for i in 0..lpns.len() {
        if let Some(&lpn) = lpns.get(i + AHEAD) {
            ftl.prefetch_map(lpn);
        }
        if let Some(&lpn) = lpns.get(i + AHEAD / 2) {
            ftl.prefetch_unit(lpn);
        }
        load.time += 100;
        ftl.advance(load.time).expect("no failure");
        black_box(
            ftl.write(When::now(load.time), lpns[i], (), Tag::NONE)
                .expect("no failure"),
        );
    }
    begin.elapsed().as_secs_f64()
}

type Dedup = DedupFtl<PageTag, NandSim, NoCensus>;

fn dedup_batch(ftl: &mut Dedup, load: &mut Load) -> f64 {
    let (lpns, values) = (&load.lpns, &load.values);
    let begin = ThreadTime::now();
    for i in 0..lpns.len() {
        let later = |ahead| {
            lpns.get(i + ahead)
                .map(|&lpn| (lpn, PageTag(values[i + ahead])))
        };
        if let Some((lpn, value)) = later(20) {
            ftl.prefetch_slot(lpn, value);
        }
        if let Some((lpn, value)) = later(16) {
            ftl.prefetch_entry(lpn, value);
        }
        if let Some((lpn, value)) = later(12) {
            ftl.prefetch_neighbours(lpn, value);
        }
        if let Some((lpn, _)) = later(8) {
            ftl.prefetch_old_entry(lpn);
        }
        if let Some((lpn, _)) = later(4) {
            ftl.prefetch_old_neighbours(lpn);
        }
        load.time += 100;
        ftl.advance(load.time).expect("no failure");
        let when = When::now(load.time);
        black_box(
            ftl.write(when, lpns[i], PageTag(values[i]), Tag::NONE)
                .expect("no failure"),
        );
    }
    begin.elapsed().as_secs_f64()
}

fn report(name: &str, seconds: f64, before: &Counters, after: &Counters, extra: &str) {
    let writes = after.host_writes - before.host_writes;
    let programs = after.programs() - before.programs();
    let waf = programs as f64 / writes as f64;
    let hash = [
        after.programs_host,
        after.programs_gc,
        after.erases,
        after.victims,
    ]
    .iter()
    .fold(0u64, |h, &x| {
        (h ^ x).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(17)
    });
    println!(
        "{name:<22} {:>6.2} M writes/s {:>6.2} M programs/s  waf_total {waf:.3}{extra}  hash {hash:016x}",
        writes as f64 / seconds / 1e6,
        programs as f64 / seconds / 1e6,
    );
}

fn main() {
    let mut numbers = std::env::args().filter_map(|a| a.parse().ok());
    let gib = numbers.next().unwrap_or(8);
    let spare = numbers.next().unwrap_or(30);
    println!(
        "geometry: {gib} GiB raw, 8 private channels, 64 x 4 KiB pages, {spare} % of raw spare, greedy"
    );
    let mut plain_load = Load::new();
    let (flash, options) = device(gib, spare);
    let mut plain = PlainFtl::new(flash, options).expect("the options are valid");
    let mut loads = [Load::new(), Load::new()];
    let duplicates = [0, 40];
    let mut dedups = [(); 2].map(|()| {
        let (flash, options) = device(gib, spare);
        let entries = options.exported / 4;
        let dedup = DedupOptions {
            index_entries: Some(entries),
            fingerprint_bits: 128,
            verify: false,
            bypass: None,
        };
        Dedup::new(flash, options, dedup, NoCensus).expect("the options are valid")
    });
    let exported = plain.map().len();
    for lpn in 0..exported {
        plain
            .write(When::now(0), lpn, (), Tag::NONE)
            .expect("no failure");
        for ftl in &mut dedups {
            let foreign = PageTag(u32::MAX);
            ftl.write_unhashed(When::now(0), lpn, foreign, Tag::NONE)
                .expect("no failure");
        }
    }
    let warm_batches = 3 * exported as usize / BATCH;
    for _ in 0..warm_batches {
        plain_load.draw(exported, 0);
        plain_batch(&mut plain, &mut plain_load);
        for i in 0..2 {
            loads[i].draw(exported, duplicates[i]);
            dedup_batch(&mut dedups[i], &mut loads[i]);
        }
    }
    let mut best = [f64::INFINITY; 3];
    let mut marks: Vec<(Counters, Counters)> = vec![];
    for _ in 0..ROUNDS {
        marks.clear();
        let before = plain.core().counters().clone();
        plain_load.draw(exported, 0);
        best[0] = best[0].min(plain_batch(&mut plain, &mut plain_load));
        marks.push((before, plain.core().counters().clone()));
        for i in 0..2 {
            let before = dedups[i].core().counters().clone();
            loads[i].draw(exported, duplicates[i]);
            best[i + 1] = best[i + 1].min(dedup_batch(&mut dedups[i], &mut loads[i]));
            marks.push((before, dedups[i].core().counters().clone()));
        }
    }
    report("plain", best[0], &marks[0].0, &marks[0].1, "");
    for (i, ftl) in dedups.iter().enumerate() {
        let c = ftl.dedup_counters();
        let rate = c.hits as f64 / (c.hits + c.misses) as f64;
        let extra = format!(
            "  hits {:.1} %, index {} entries",
            rate * 100.0,
            ftl.dedup().index.len()
        );
        let name = ["ca-ssd all distinct", "ca-ssd duplicates"][i];
        report(name, best[i + 1], &marks[i + 1].0, &marks[i + 1].1, &extra);
    }
}
