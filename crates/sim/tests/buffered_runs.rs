//! Runs with a write buffer or a write queue, from the configuration to the results.

use crate::common;

use common::{Uniform, config};
use flashlore_sim::config::RunConfig;
use flashlore_sim::engine::{RunOptions, simulate};
use flashlore_sim::results::{CacheTraffic, RunResult};

const PAGES: u32 = 16_384;
/// So slow that the device keeps up.
const DEVICE: [&str; 6] = [
    "host.time_scale=10",
    "device.geometry.channels=4",
    "device.geometry.blocks_per_plane=96",
    "device.space.capacity=64MiB",
    "host.warmup=0.3",
    "dedup.oracle=false",
];

fn configured(system: &str, more: &[&str]) -> RunConfig {
    let settings = [&DEVICE[..], more].concat();
    config("ca-ssd-4g", system, &settings)
}

fn run(system: &str, values: u32, more: &[&str]) -> RunResult {
    let mut source = Uniform::new(60_000, PAGES, 4, values);
    let config = configured(system, more);
    simulate(&config, &mut source, RunOptions::default())
        .unwrap()
        .result
}

#[test]
fn what_the_host_asked_is_counted_at_the_host_and_adds_up() {
    for (system, values) in [("plain", 0), ("ca-ssd", 4000)] {
        let none = run(system, values, &[]);
        for policy in ["fifo", "slru"] {
            let policy = format!("device.buffer.policy={policy}");
            let small = run(system, values, &[&policy, "device.buffer.size=4MiB"]);
            let large = run(system, values, &[&policy, "device.buffer.size=16MiB"]);
            for run in [&small, &large] {
                assert_eq!(run.host.bytes, none.host.bytes, "{system}, {policy}");
                // What had arrived but was not hashed when counting began counts without a buffer.
                let writes = run.host.write_pages.abs_diff(none.host.write_pages);
                assert!(writes < 3, "{system}, {policy}");
                let b = run.buffer;
                let (came, went) = (
                    run.host.write_pages + b.pages_begin,
                    b.write_hits + b.evictions + b.trimmed + b.pages_end,
                );
                assert_eq!(came, went, "{system}, {policy}");
                if values == 0 {
                    assert!(run.waf_total < none.waf_total, "{policy}");
                }
            }
            // A quarter of the device is held: a quarter of the uniform writes and reads are of it.
            let share = |part: u64, all: u64| part as f64 / all as f64;
            let hits = share(large.buffer.write_hits, large.host.write_pages);
            let reads = share(large.buffer.read_hits, large.host.read_pages);
            assert!((hits - 0.25).abs() < 0.02, "{system}, {policy}: {hits}");
            assert!((reads - 0.25).abs() < 0.02, "{system}, {policy}: {reads}");
            assert!(small.buffer.write_hits < large.buffer.write_hits);
        }
    }
}

#[test]
fn hashed_and_shared_is_what_reaches_the_translation_layer() {
    let run = run(
        "ca-ssd",
        4000,
        &["device.buffer.policy=fifo", "device.buffer.size=4MiB"],
    );
    let reached = run.dedup.hits + run.dedup.misses;
    // But for what was under way when counting began and ended.
    assert!(reached.abs_diff(run.buffer.evictions) < 10, "{reached}");
    assert_eq!(run.queue.flushed, 0);
}

#[test]
fn a_queue_changes_neither_what_is_asked_nor_what_is_programmed_for_it() {
    let none = run("plain", 0, &[]);
    for ack in ["queue.ack=enqueue", "queue.ack=program"] {
        let queued = run("plain", 0, &["queue.enabled=true", "queue.bucket=512", ack]);
        assert_eq!(queued.host.write_pages, none.host.write_pages);
        let q = queued.queue;
        let came = queued.host.write_pages + q.changes_begin;
        assert_eq!(came, q.flushed + q.changes_end);
        assert!(q.requests_per_flush.unwrap() > 4.0, "{:?}", q);
        assert!(queued.programs.host.abs_diff(q.flushed) < 10);
        let (with, without) = (queued.response_us.write.mean, none.response_us.write.mean);
        match ack {
            "queue.ack=enqueue" => assert!(with < without),
            _ => assert!(with > without),
        }
    }
}

#[test]
fn a_read_cache_holds_its_share_of_addresses_or_of_values() {
    const SIZE: &str = "device.read_cache.size=4MiB";
    let share = |run: &RunResult| run.read_cache.hits as f64 / run.host.read_pages as f64;
    for buffered in [false, true] {
        let (policy, size) = ("device.buffer.policy=fifo", "device.buffer.size=4MiB");
        let before: &[&str] = if buffered { &[policy, size] } else { &[] };
        let cached = |key| run("ca-ssd", 4000, &[before, &[key, SIZE]].concat());
        let none = run("ca-ssd", 4000, before);
        assert_eq!(none.read_cache, CacheTraffic::default());
        let lpn = cached("device.read_cache.key=lpn");
        let value = cached("device.read_cache.key=value");
        for run in [&lpn, &value] {
            let CacheTraffic { hits, misses } = run.read_cache;
            assert_eq!(hits + misses + run.buffer.read_hits, run.host.read_pages);
            assert_eq!(run.host.read_pages, none.host.read_pages);
            assert_eq!(run.flash.page_programs, none.flash.page_programs);
            let saved = none.flash.page_reads - run.flash.page_reads;
            assert!(
                saved.abs_diff(hits) < 10,
                "{saved} reads saved by {hits} hits"
            );
            assert!(run.response_us.read.mean < none.response_us.read.mean);
        }
        // 1,024 of 16,384 pages; of the values there are 4,000, each on about four pages.
        assert!((share(&lpn) - 1.0 / 16.0).abs() < 0.01, "{}", share(&lpn));
        assert!(share(&value) > 2.0 * share(&lpn), "{}", share(&value));
    }
    // A device whose reads wait for shared channels keeps what it has read all the same.
    let shared = [
        "device.timing.channel=shared",
        "device.read_cache.key=lpn",
        SIZE,
    ];
    let shared = run("plain", 0, &shared);
    assert!((share(&shared) - 1.0 / 16.0).abs() < 0.01);
}

/// What cannot be is refused with the key that says so.
#[test]
fn impossible_settings_name_their_key() {
    let refused = |system: &str, values: u32, settings: &[&str]| {
        let config = configured(system, settings);
        let mut source = Uniform::new(100, PAGES, 4, values);
        let error = simulate(&config, &mut source, RunOptions::default());
        error.expect_err("it is refused").to_string()
    };
    let both = ["queue.enabled=true", "device.buffer.policy=fifo"];
    let error = refused("plain", 0, &both);
    assert!(error.contains("queue.enabled"), "{error}");
    assert!(error.contains("device.buffer.policy = \"none\""), "{error}");
    let valued = ["device.read_cache.key=value"];
    let error = refused("plain", 0, &valued);
    assert!(error.contains("device.read_cache.key"), "{error}");
    assert!(error.contains("dedup.enabled"), "{error}");
    let sampled = ["dedup.sampling=request", "device.buffer.policy=slru"];
    let error = refused("ca-ssd", 4, &sampled);
    assert!(error.contains("dedup.sampling"), "{error}");
    // The sampling of a system that does not deduplicate is none.
    let settings = ["device.buffer.policy=slru", "dedup.sampling=request"];
    assert!(
        simulate(
            &configured("plain", &settings),
            &mut Uniform::new(100, PAGES, 4, 0),
            RunOptions::default()
        )
        .is_ok()
    );
}
