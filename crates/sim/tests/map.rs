//! Runs with a part of the map in RAM.

use crate::common;

use common::{Uniform, config};
use flashlore_sim::engine::{RunOptions, simulate};
use flashlore_sim::results::RunResult;

/// Pages the host writes to, all that are exported.
const PAGES: u32 = 16_384;

fn run(system: &str, cache: &str, values: u32) -> RunResult {
    run_with(system, cache, values, &[])
}

fn run_with(system: &str, cache: &str, values: u32, more: &[&str]) -> RunResult {
    let cache = format!("device.map.cache_bytes={cache}");
    let settings = [
        "device.geometry.channels=4",
        "device.geometry.blocks_per_plane=96",
        "device.space.capacity=64MiB",
        "dedup.oracle=false",
        "queue.enabled=false",
        "delta.scan_period=0s",
        &cache,
    ];
    let mut settings = settings.to_vec();
    settings.extend(more);
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

/// Under deltas an entry is used once by a read and once by a write, even if its base is read first.
#[test]
fn entries_of_deltas_cost_more_with_less_ram() {
    for system in ["delta-ftl-letter", "compress", "combined"] {
        // Room enough for old versions and packed pages not to depend on what the map takes.
        let more = [
            "device.space.capacity=64MiB",
            "device.geometry.blocks_per_plane=192",
            "history.entries=2000",
        ];
        let runs =
            ["unlimited", "1MiB", "64KiB", "8KiB"].map(|c| run_with(system, c, 4_000, &more));
        for run in &runs {
            assert_eq!(run.flash.page_programs, run.programs.total(), "{system}");
            assert_eq!(run.programs.map, run.map.programs, "{system}");
        }
        let [none, all, some, few] = &runs;
        assert_eq!((none.map.hits, none.map.misses), (0, 0));
        assert_eq!((all.map.reads, all.map.programs), (0, 0), "{system}");
        // A cache of the whole map differs from none only in what it counts.
        assert_eq!(all.response_us, none.response_us, "{system}");
        assert_eq!(
            (&all.programs, &all.delta),
            (&none.programs, &none.delta),
            "{system}"
        );
        let accesses = |run: &RunResult| run.map.hits + run.map.misses;
        assert_eq!(
            accesses(all),
            all.host.write_pages + all.host.read_pages,
            "{system}"
        );
        assert!(
            few.map.misses > some.map.misses && some.map.misses > 0,
            "{system}"
        );
        assert!(few.programs.total() > none.programs.total(), "{system}");
        let mean = |run: &RunResult| run.response_us.all.mean;
        assert!(
            mean(few) > mean(some) && mean(some) > mean(none),
            "{system}"
        );
    }
}

/// Counts of reads and writes are lost with the entry: with few entries fewer pages are write-hot.
#[test]
fn what_leaves_the_cache_is_cold() {
    let more = ["device.geometry.blocks_per_plane=192"];
    let [all, some, few] =
        ["1MiB", "64KiB", "8KiB"].map(|c| run_with("delta-ftl-letter", c, 0, &more).delta.encoded);
    assert!(all > 2 * some && some > 2 * few, "{all} {some} {few}");
}

/// Entries used again stay longer in a segmented list: where some pages are used often, it misses less.
#[test]
fn a_protected_segment_keeps_what_is_used_again() {
    let misses = |protected: &str| {
        let protected = format!("device.map.protected={protected}");
        let plain = run_with("plain", "16KiB", 0, &[&protected]);
        plain.map.misses
    };
    // Uniform accesses do not repeat: no order helps, and both miss alike.
    let (plain, segmented) = (misses("0"), misses("0.5"));
    assert!(
        plain.abs_diff(segmented) < plain / 50,
        "{plain} {segmented}"
    );
}

#[test]
fn what_the_cache_does_not_model_is_refused() {
    let refused = |system: &str, more: &[&str]| {
        let mut settings = vec!["device.map.cache_bytes=64KiB"];
        settings.extend(more);
        let config = config("ca-ssd-4g", system, &settings);
        let mut source = Uniform::new(10, 10, 4, 0);
        let run = simulate(&config, &mut source, RunOptions::default());
        run.map(drop).unwrap_err().to_string()
    };
    let trap = refused("trap", &[]);
    assert!(
        trap.contains("map.cache_bytes") && trap.contains("parities"),
        "{trap}"
    );
    let counts = refused("delta-ftl-letter", &["delta.counted_pages=100"]);
    assert!(counts.contains("delta.counted_pages"), "{counts}");
}

/// Journals of a map that is all in RAM: a page for 512 changes, and a fold for so many pages writes pages of
/// the table at most as many as it has.
#[test]
fn journals_cost_a_page_for_512_changes_and_a_table_a_fold() {
    let settings = ["device.map.journal_pages=8"];
    for (system, values) in [("plain", 0), ("ca-ssd", 4_000), ("delta-ftl-letter", 0)] {
        let result = run_with(system, "unlimited", values, &settings);
        let map = result.map;
        assert_eq!(
            result.flash.page_programs,
            result.programs.total(),
            "{system}"
        );
        assert_eq!(
            (map.programs, map.reads > 0),
            (result.programs.map, true),
            "{system}"
        );
        // Every program changes an entry, of the host or moved; of packed pages several.
        let p = &result.programs;
        let changes = p.host + p.gc + result.dedup.hits - result.dedup.silent;
        if system != "delta-ftl-letter" {
            // Moved units may be pages of tables and journals, which change no entry.
            let least = (p.host + result.dedup.hits - result.dedup.silent) / 512;
            let pages = map.journal_programs;
            assert!(
                pages >= least - 1 && pages <= changes / 512 + 1,
                "{system}: {pages} for {changes}"
            );
        }
        let table_pages = u64::from(PAGES / 512) * if system == "delta-ftl-letter" { 2 } else { 1 };
        assert!(
            map.folds.abs_diff(map.journal_programs / 8) <= 2,
            "{system}"
        );
        let folded = map.programs - map.journal_programs;
        assert!(
            folded > 0 && folded <= map.folds * table_pages,
            "{system}: {folded} pages"
        );
    }
}
