//! Runs with a part of the map in RAM.

mod common;

use common::{Uniform, config};
use flashlore_sim::engine::{RunOptions, simulate};
use flashlore_sim::results::RunResult;

/// Pages the host writes to, all that are exported.
const PAGES: u32 = 16_384;

fn run(system: &str, cache: &str, values: u32) -> RunResult {
    let cache = format!("device.map.cache_bytes={cache}");
    let settings = [
        "device.geometry.channels=4",
        "device.geometry.blocks_per_plane=96",
        "device.space.capacity=64MiB",
        "dedup.oracle=false",
        &cache,
    ];
    let config = config("ca-ssd-4g", system, &settings);
    let mut source = Uniform::new(100_000, PAGES, 4, values);
    simulate(&config, &mut source, RunOptions::default())
        .unwrap()
        .result
}

#[test]
fn uniform_accesses_hit_the_share_of_the_map_that_is_in_ram() {
    let result = run("plain", "16KiB", 0);
    let accesses = result.map.hits + result.map.misses;
    assert_eq!(accesses, result.host.write_pages + result.host.read_pages);
    let (hit_rate, share) = (result.map.hits as f64 / accesses as f64, 2048.0 / 16_384.0);
    assert!(
        (hit_rate - share).abs() < 0.005,
        "{hit_rate} against {share}"
    );
    // Each miss reads a page. Of the 2,048 entries in RAM 4 in 32 pages are dirty together, so that few
    // write-backs are saved by batches: most dirty entries that make room cost a read and a program.
    assert!(result.map.reads > result.map.misses);
    assert!(result.map.programs > 0 && result.map.programs < result.map.reads);
}

#[test]
fn programs_add_up_and_a_smaller_cache_costs_more() {
    for (system, values) in [("plain", 0), ("ca-ssd", 4_000)] {
        let runs = ["unlimited", "1MiB", "64KiB", "8KiB"].map(|cache| run(system, cache, values));
        for run in &runs {
            assert_eq!(run.flash.page_programs, run.programs.total(), "{system}");
            assert_eq!(run.programs.map, run.map.programs);
            let host = run.flash.page_reads - run.map.reads - run.programs.gc;
            assert_eq!(host, run.host.read_pages, "{system}");
        }
        let [none, all, some, few] = &runs;
        assert_eq!(
            (none.map.hits, none.map.programs, none.map.reads),
            (0, 0, 0)
        );
        // A cache of the whole map differs from none only in what it counts.
        assert_eq!((all.map.reads, all.map.programs), (0, 0));
        assert_eq!(all.response_us, none.response_us);
        assert!(few.map.misses > some.map.misses);
        assert!(few.waf_total > some.waf_total && some.waf_total > none.waf_total);
        let mean = |run: &RunResult| run.response_us.all.mean;
        assert!(
            mean(few) > mean(some) && mean(some) > mean(none),
            "{system}"
        );
    }
}
