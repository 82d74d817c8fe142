//! Runs of arrays with real bytes: pages of 4 KiB a second of processor time.
//!
//! `cargo bench -p flashlore-sim --bench arrays [-- PROFILE]` (default `sysbench,scale=0.05`). Sixteen requests in
//! flight. Every array on the same requests, from memory; what the trace finds is laid in before and not counted in
//! the requests, but in the time, which begins when a run begins. Prints pages a second, the ratio to `pure-ssd`, and a
//! hash of the figures; rounds are interleaved, the best of each counts. The last row makes the bytes of all pages
//! and does nothing with them: what the workload itself costs.

use cpu_time::ThreadTime;
use flashlore_sim::config::{RunConfig, Settings, load_device, load_host, load_system};
use flashlore_sim::engine::{RunOptions, simulate};
use flashlore_sim::results::{RunResult, RunSpeed};
use flashlore_synth::{ProfileSource, Recipes};
use flashlore_trace::pages::PAGE_BYTES;
use flashlore_trace::{
    ContentModel, PageSource, RequestBlock, RequestSource, Workload, WorkloadOptions,
};

const ROUNDS: usize = 5;

/// Systems with their settings.
const CASES: &[(&str, &[&str])] = &[
    ("pure-ssd", &[]),
    ("raid0", &[]),
    ("lru-cache", &[]),
    ("dedup-cache", &[]),
    ("i-cash", &[]),
    ("i-cash", &["array.similarity=super-features"]),
    ("i-cash", &["array.compression=true"]),
    ("i-cash", &["array.algorithm=lz4"]),
    ("i-cash-compression", &[]),
];

fn main() {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let spec = asked.first().map_or("sysbench,scale=0.05", String::as_str);
    let source = ProfileSource::parse(spec).expect("a profile");
    let options = WorkloadOptions::new(ContentModel::FromTrace);
    let mut workload =
        Workload::from_readers(vec![source.open()], &options).expect("a profile can be read");
    let pages = source.recipes().expect("the profile has [similarity]");
    let machine_pages = source.image_pages();
    let mut best = vec![f64::INFINITY; CASES.len() + 1];
    let mut hashes = vec![String::new(); CASES.len()];
    let mut counted = 0;
    for _ in 0..ROUNDS {
        for (at, case) in CASES.iter().enumerate() {
            let config = configured(&workload, machine_pages, case);
            let begun = ThreadTime::now();
            let run = RunOptions {
                pages: Some(&pages),
                ..RunOptions::default()
            };
            let output = simulate(&config, &mut workload, run).expect("the run goes on");
            best[at] = best[at].min(begun.elapsed().as_secs_f64());
            counted = output.result.host.read_pages + output.result.host.write_pages;
            hashes[at] = hash_of(output.result);
        }
        let begun = ThreadTime::now();
        fill_all(&mut workload, &pages);
        best[CASES.len()] = best[CASES.len()].min(begun.elapsed().as_secs_f64());
    }
    println!("{spec}: {counted} pages of 4 KiB");
    for (at, (system, settings)) in CASES.iter().enumerate() {
        let rate = counted as f64 / best[at];
        let name = [&[*system], *settings].concat().join(" ");
        let ratio = best[0] / best[at];
        println!(
            "{name:<50} {rate:>9.0} pages/s {ratio:>6.2}  {}",
            hashes[at]
        );
    }
    let rate = counted as f64 / best[CASES.len()];
    println!(
        "{:<50} {rate:>9.0} pages/s {:>6.2}",
        "bytes of written pages alone",
        best[0] / best[CASES.len()]
    );
}

fn configured(
    workload: &Workload,
    machine_pages: Option<u32>,
    (system, settings): &(&str, &[&str]),
) -> RunConfig {
    const COMMON: [&str; 3] = [
        "host.mode=closed",
        "host.queue_depth=16",
        "device.geometry.blocks_per_plane=256",
    ];
    let all: Vec<&str> = COMMON.iter().chain(*settings).copied().collect();
    let settings = Settings::parse(&all).expect("the settings exist");
    let mut config = RunConfig {
        device: load_device("ca-ssd-4g", &settings)
            .expect("a device")
            .config,
        system: load_system(system, &settings).expect("a system").config,
        host: load_host(&settings).expect("a host").config,
    };
    let summary = workload.summary();
    config
        .fit(summary.footprint_units, summary.lpn_count, machine_pages)
        .expect("the device has a size");
    config
}

/// A hash of the figures, without how long the run took.
fn hash_of(result: RunResult) -> String {
    let run = RunSpeed {
        simulated_s: result.run.simulated_s,
        ..RunSpeed::default()
    };
    let text = format!("{:?}", RunResult { run, ..result });
    blake3::hash(text.as_bytes()).to_hex()[..12].to_owned()
}

fn fill_all(workload: &mut Workload, pages: &Recipes) {
    let mut block = RequestBlock::default();
    let mut page = [0; PAGE_BYTES];
    workload.rewind().expect("it is in memory");
    while workload.next_block(&mut block).expect("it is in memory") {
        for &value in &block.values {
            pages.fill(value, &mut page);
            std::hint::black_box(&page);
        }
    }
}
