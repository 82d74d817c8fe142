//! Data that was written through an array before the run (`array.loaded`), and what its SSD then holds.

use crate::common;

use common::config;
use flashlore_sim::engine::{RunOptions, simulate};
use flashlore_sim::results::RunResult;
use flashlore_synth::ProfileSource;
use flashlore_trace::{ContentModel, Workload, WorkloadOptions};

fn run(spec: &str, system: &str, more: &[&str]) -> RunResult {
    let source = ProfileSource::parse(spec).unwrap();
    let options = WorkloadOptions::new(ContentModel::FromTrace);
    let mut workload = Workload::from_readers(vec![source.open()], &options).unwrap();
    let pages = source.recipes().unwrap();
    let settings = [&["host.mode=closed"], more].concat();
    let mut config = config("ca-ssd-4g", system, &settings);
    let summary = flashlore_trace::RequestSource::summary(&workload);
    let (footprint, count) = (summary.footprint_units, summary.lpn_count);
    config.fit(footprint, count, source.image_pages()).unwrap();
    let options = RunOptions {
        pages: Some(&pages),
        ..RunOptions::default()
    };
    simulate(&config, &mut workload, options).unwrap().result
}

/// Where everything has room on the SSD, nothing is read from the disk, and every read of the SSD is one of flash.
#[test]
fn what_was_loaded_is_where_writes_go() {
    let (spec, room) = (
        "sysbench,scale=0.004",
        ["array.fast=1", "array.loaded=true"],
    );
    let settings = [&room[..], &["array.delta_ram=1", "array.log=1"]].concat();
    for (system, settings) in [
        ("lru-cache", &room[..]),
        ("dedup-cache", &room[..]),
        ("i-cash", &settings[..]),
    ] {
        let cold = run(spec, system, &settings[..1]);
        let loaded = run(spec, system, settings);
        assert!(cold.array.hdd_reads > 100, "{system}");
        assert_eq!(loaded.array.hdd_reads, 0, "{system}");
        assert!(loaded.array.ssd_reads > 100, "{system}");
        assert_eq!(loaded.flash.page_reads, loaded.array.ssd_reads, "{system}");
    }
}

/// Bases of clones are on the flash before the run.
#[test]
fn reads_of_what_clones_are_based_on_are_reads_of_flash() {
    let run = run("tpc-c-5vm,scale=0.001", "i-cash", &["array.fast=1"]);
    assert!(run.array.associates > 0);
    assert!(run.array.ssd_reads > 100);
    assert_eq!(run.flash.page_reads, run.array.ssd_reads);
}
