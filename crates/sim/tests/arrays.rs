//! Runs of arrays: against runs of the SSD alone, against disks served by hand, and by what must add up.

use crate::common;

use common::config;
use flashlore_array::hdd::{DiskOptions, Hdd, Request as DiskRequest, Scheduler, drives};
use flashlore_sim::config::RunConfig;
use flashlore_sim::engine::{RunError, RunOptions, check, simulate};
use flashlore_sim::results::{RunResult, RunSpeed};
use flashlore_synth::{ProfileSource, Recipes};
use flashlore_trace::pages::PAGE_BYTES;
use flashlore_trace::{
    ContentModel, Op, PageSource, RequestBlock, RequestSource, Workload, WorkloadOptions,
};

const ARRAYS: [&str; 6] = [
    "pure-ssd",
    "raid0",
    "lru-cache",
    "dedup-cache",
    "i-cash",
    "i-cash-compression",
];

/// Eight dies with room for what is small.
const SSD: [&str; 5] = [
    "device.geometry.channels=8",
    "device.geometry.packages_per_channel=1",
    "device.geometry.dies_per_package=1",
    "device.geometry.planes_per_die=1",
    "device.geometry.blocks_per_plane=64",
];

/// A profile's requests, and what tells its bytes.
struct Made {
    workload: Workload,
    pages: Recipes,
    machine_pages: Option<u32>,
}

fn made(spec: &str) -> Made {
    let source = ProfileSource::parse(spec).unwrap();
    let options = WorkloadOptions::new(ContentModel::FromTrace);
    Made {
        workload: Workload::from_readers(vec![source.open()], &options).unwrap(),
        pages: source.recipes().unwrap(),
        machine_pages: source.image_pages(),
    }
}

fn configured(made: &Made, system: &str, settings: &[&str]) -> RunConfig {
    let all: Vec<&str> = SSD.iter().chain(settings).copied().collect();
    let mut config = config("ca-ssd-4g", system, &all);
    let summary = made.workload.summary();
    let (footprint, pages) = (summary.footprint_units, summary.lpn_count);
    config.fit(footprint, pages, made.machine_pages).unwrap();
    config
}

fn simulated(made: &mut Made, config: &RunConfig) -> Result<RunResult, RunError> {
    let options = RunOptions {
        pages: Some(&made.pages),
        ..RunOptions::default()
    };
    let output = simulate(config, &mut made.workload, options)?;
    // How long the run took is another each time.
    let simulated_s = output.result.run.simulated_s;
    let run = RunSpeed {
        simulated_s,
        ..RunSpeed::default()
    };
    Ok(RunResult {
        run,
        ..output.result
    })
}

fn run(made: &mut Made, system: &str, settings: &[&str]) -> RunResult {
    let config = configured(made, system, settings);
    simulated(made, &config).unwrap()
}

const DEEP: [&str; 3] = [
    "host.mode=closed",
    "host.queue_depth=16",
    "host.warmup=0.25",
];

#[test]
fn an_array_of_an_ssd_alone_is_that_ssd() {
    for load in [
        vec!["host.mode=open", "host.warmup=0.25"],
        vec!["host.mode=closed", "host.queue_depth=1"],
        DEEP.to_vec(),
        [&DEEP[..2], &["host.think_time=2ms"]].concat(),
    ] {
        let mut made = made("sysbench,scale=0.004");
        let alone = run(&mut made, "plain", &load);
        let array = run(&mut made, "pure-ssd", &load);
        assert!(alone.host.requests > 100);
        assert_eq!(array.host, alone.host);
        assert_eq!(array.programs, alone.programs);
        assert_eq!(array.flash, alone.flash);
        assert_eq!(array.response_us, alone.response_us, "{load:?}");
        // What is measured begins with the last answer before it, which an array may have heard a page read later.
        let apart = array.run.simulated_s - alone.run.simulated_s;
        assert!(apart.abs() < 26e-6, "{load:?}: {apart}");
        assert_eq!(array.array.ssd_writes, array.host.write_pages);
        assert_eq!(array.array.hdd_ops, 0);
    }
}

#[test]
fn an_array_with_a_deduplicating_ssd_programs_as_often_as_that_ssd() {
    let mut made = made("specsfs,scale=0.0005");
    let load = ["host.mode=closed", "dedup.index_entries=unlimited"];
    let alone = run(&mut made, "ca-ssd", &load);
    let settings = [&load[..], &["dedup.enabled=true"]].concat();
    let array = run(&mut made, "pure-ssd", &settings);
    assert!(alone.dedup.hits > 20);
    assert_eq!(array.programs.host, alone.programs.host);
    assert_eq!(array.dedup, alone.dedup);
}

/// One request at a time on one disk: the responses are those of the disk, request by request.
#[test]
fn requests_to_one_disk_take_what_the_disk_takes() {
    let mut made = made("tpc-c,scale=0.0005");
    let settings = ["host.mode=closed", "array.disks=1"];
    let found = run(&mut made, "raid0", &settings);
    let drive = drives::named("barracuda-7200.7-160g").unwrap();
    let options = DiskOptions {
        scheduler: Scheduler::Look,
        write_back: true,
    };
    let mut disk = Hdd::new(&drive, options).unwrap();
    let held: Vec<(u32, Option<u32>)> = made.workload.summary().prefill_units().collect();
    let mut written: std::collections::HashSet<u32> = held.iter().map(|&(lpn, _)| lpn).collect();
    let mut block = RequestBlock::default();
    let (mut now, mut ends, mut sums, mut counts) = (0, 0, [0_u64; 2], [0_u64; 2]);
    made.workload.rewind().unwrap();
    while made.workload.next_block(&mut block).unwrap() {
        for request in &block.requests {
            let (lba, sectors) = (u64::from(request.lpn) * 8, request.units * 8);
            let here = request.lpn..request.lpn + request.units;
            let (at, asked) = match request.op {
                Op::Read => {
                    assert!(here.clone().all(|lpn| written.contains(&lpn)));
                    (0, DiskRequest::read(lba, sectors))
                }
                Op::Write => {
                    written.extend(here);
                    (1, DiskRequest::write(lba, sectors))
                }
                Op::Trim | Op::Flush => panic!("the profile has neither"),
            };
            let end = disk.serve(now, asked).unwrap();
            sums[at] += end - now;
            counts[at] += 1;
            (now, ends) = (end, end);
        }
    }
    assert!(counts[0] > 50 && counts[1] > 50);
    assert_eq!(found.run.simulated_s, ends as f64 / 1e9);
    for (stats, at) in [(found.response_us.read, 0), (found.response_us.write, 1)] {
        let mean = sums[at] as f64 / counts[at] as f64 / 1e3;
        assert!((stats.mean.unwrap() / mean - 1.0).abs() < 1e-9);
        assert_eq!(stats.count, counts[at]);
    }
}

#[test]
fn what_is_counted_adds_up_on_every_array() {
    let mut made = made("sysbench,scale=0.02");
    let whole = made.workload.summary().counts;
    for system in ARRAYS {
        let found = run(
            &mut made,
            system,
            &["host.mode=closed", "host.queue_depth=16"],
        );
        let array = &found.array;
        assert_eq!(found.host.read_pages, whole.reads.pages, "{system}");
        assert_eq!(found.host.write_pages, whole.writes.pages, "{system}");
        assert_eq!(found.host.requests, made.workload.summary().requests);
        assert_eq!(found.response_us.all.count, found.host.requests);
        assert_eq!(array.verified, found.host.read_pages.div_ceil(64));
        assert!(array.delta_ram_peak <= array.delta_ram);
        assert_eq!(array.hdd_ops, array.hdd_reads + array.hdd_writes);
        assert!(array.hdd_busy <= 1.2, "{system}: {}", array.hdd_busy);
        // The SSD was asked for what the element asked of it, in as many operations or fewer.
        assert!(array.ssd_ops <= array.ssd_reads + array.ssd_writes);
        assert_eq!(
            (array.ssd_writes > 0, array.hdd_ops > 0),
            // The control keeps what it compresses in the log, and copies nothing that is read.
            (
                !["raid0", "i-cash-compression"].contains(&system),
                system != "pure-ssd"
            ),
            "{system}"
        );
        let uj = 9.5 * array.ssd_reads as f64 + 76.1 * array.ssd_writes as f64;
        assert!((array.ssd_energy_j * 1e6 - uj).abs() < 1e-6 * uj.max(1.0));
        let joules = match system {
            "pure-ssd" => 0.0,
            "raid0" => 60.0 * found.run.simulated_s,
            _ => 15.0 * found.run.simulated_s,
        };
        assert!((array.hdd_energy_j - joules).abs() <= 1e-9 * joules);
        if system.starts_with("i-cash") {
            assert_eq!(
                array.hits + array.misses,
                whole.reads.pages + whole.writes.pages
            );
            assert!(array.scans > 0);
        }
        assert_eq!(array.associates > 0, system == "i-cash", "{system}");
        assert_eq!(array.alone > 0, system == "i-cash-compression", "{system}");
    }
}

#[test]
fn the_same_run_gives_the_same_figures() {
    let mut made = made("rubis-5vm,scale=0.001");
    for system in ARRAYS {
        let once = run(&mut made, system, &DEEP);
        assert_eq!(once, run(&mut made, system, &DEEP), "{system}");
    }
}

#[test]
fn what_comes_before_the_end_of_the_warm_up_is_not_counted() {
    let mut made = made("sysbench,scale=0.01");
    let requests = made.workload.summary().requests;
    for system in ARRAYS {
        let found = run(&mut made, system, &DEEP);
        let warm = (requests as f64 * 0.25).round() as u64;
        assert_eq!(found.host.requests, requests - warm);
        assert_eq!(found.response_us.all.count, requests - warm);
        let all = run(&mut made, system, &DEEP[..2]);
        assert!(found.run.simulated_s < all.run.simulated_s);
        assert!(found.array.ssd_writes <= all.array.ssd_writes);
        assert!(found.array.hdd_ops <= all.array.hdd_ops);
    }
}

/// The machines of a profile are those of the array: blocks find the same address in other machines.
#[test]
fn images_of_several_machines_are_stored_as_deltas() {
    let mut made = made("tpc-c-5vm,scale=0.002");
    assert!(made.machine_pages.is_some());
    let peak = |found: &RunResult| (found.array.associates, found.array.same_address);
    let filled = [&DEEP[..], &["array.fill=read"]].concat();
    let clones = run(&mut made, "i-cash", &filled);
    let apart = run(
        &mut made,
        "i-cash",
        &[&filled[..], &["array.clones=false"]].concat(),
    );
    let one = [&filled[..], &["array.machine_pages=unlimited"]].concat();
    let one = run(&mut made, "i-cash", &one);
    assert!(peak(&clones).0 > 0);
    assert!(peak(&apart).1 > 0, "{:?}", apart.array);
    assert_eq!(peak(&one).1, 0);
    // Where they are clones before the run, fewer of its blocks have to become deltas.
    assert!(clones.array.deltas != apart.array.deltas);
}

/// A source of bytes that changes its mind: what is read is not what was written.
struct Fickle<'a> {
    pages: &'a Recipes,
    asked: std::cell::Cell<u64>,
}

impl PageSource for Fickle<'_> {
    fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool {
        let known = self.pages.fill(value, into);
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() > 3000 {
            into[4000] ^= 1;
        }
        known
    }
}

#[test]
fn reads_are_compared_with_what_was_written() {
    let mut made = made("sysbench,scale=0.01");
    for system in ["i-cash", "lru-cache", "raid0"] {
        let config = configured(&made, system, &DEEP);
        let fickle = Fickle {
            pages: &made.pages,
            asked: 0.into(),
        };
        let options = RunOptions {
            pages: Some(&fickle),
            ..RunOptions::default()
        };
        let failed = simulate(&config, &mut made.workload, options).unwrap_err();
        let text = failed.to_string();
        assert!(text.contains("does not hold what was written"), "{text}");
    }
}

#[test]
fn a_run_that_cannot_be_is_refused_before_it_begins() {
    let made = made("sysbench,scale=0.01");
    let refused = |system: &str, settings: &[&str], pages: bool| {
        let config = configured(&made, system, settings);
        let pages = pages.then_some(&made.pages as &dyn PageSource);
        let summary = made.workload.summary();
        check(&config, summary, pages).map_err(|error| error.to_string())
    };
    let why = refused("i-cash", &[], false).unwrap_err();
    assert!(why.contains("needs the bytes of pages"), "{why}");
    refused("lru-cache", &[], false).unwrap();
    let pause = ["host.mode=closed", "host.think_time=1ms"];
    refused("raid0", &pause, true).unwrap();
    let mut made = made;
    let mut config = configured(&made, "pure-ssd", &["device.capacity=1MiB"]);
    config.host.warmup = flashlore_sim::config::Share::new(0.0).unwrap();
    let why = simulated(&mut made, &config).unwrap_err().to_string();
    assert!(
        why.contains("exports") && why.contains("the array's SSD holds"),
        "{why}"
    );
    let pages = made.workload.summary().lpn_count;
    let wide = configured(&made, "pure-ssd", &["array.machine_pages=4000000"]);
    assert_eq!(wide.system.array.ssd_units(pages, pages), pages);
    let config = configured(&made, "i-cash", &["array.machine_pages=2"]);
    let why = simulated(&mut made, &config).err().unwrap().to_string();
    assert!(why.contains("machines, expected at most 256"), "{why}");
}
