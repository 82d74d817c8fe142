//! Restored index entries in whole runs.

use crate::common;

use common::{Uniform, config};
use flashlore_sim::engine::{RunOptions, simulate};
use flashlore_sim::results::RunResult;

fn run(settings: &[&str]) -> RunResult {
    let device = [
        "device.geometry.channels=4",
        "device.geometry.blocks_per_plane=96",
        "device.space.capacity=64MiB",
    ];
    let settings = [&device[..], settings].concat();
    let config = config("ca-ssd-4g", "ca-ssd", &settings);
    let mut source = Uniform::new(60_000, 16_384, 4, 4_000);
    simulate(&config, &mut source, RunOptions::default())
        .unwrap()
        .result
}

#[test]
fn every_entry_that_is_looked_up_is_a_read_of_flash() {
    let ahead = run(&["dedup.index_entries=500", "dedup.prefetch=2"]);
    let dedup = &ahead.dedup;
    assert!(dedup.restored > 0 && dedup.looked_up > dedup.restored);
    let of_others = ahead.host.read_pages + ahead.programs.gc;
    assert_eq!(ahead.flash.page_reads, of_others + dedup.looked_up);
    assert_eq!(dedup.hits + dedup.misses, ahead.host.write_pages);
}

#[test]
fn an_index_that_discards_nothing_has_nothing_to_restore() {
    let plain = run(&["dedup.index_entries=unlimited"]);
    let ahead = run(&["dedup.index_entries=unlimited", "dedup.prefetch=4"]);
    assert_eq!((ahead.dedup.looked_up, ahead.dedup.restored), (0, 0));
    assert_eq!(ahead.response_us, plain.response_us);
}
