//! Old versions in whole runs: what is kept when room is needed, what a run says of it, and that every instant
//! it promises is what the host had written.

use crate::common;

use common::{Uniform, config};
use flashlore_sim::config::RunConfig;
use flashlore_sim::engine::{RunError, RunOptions, simulate};
use flashlore_sim::results::{RunOutput, RunResult};

/// Twenty seconds of writes, 4 ms apart, over 2,000 pages of a device that exports 8 MiB of 12.
const REQUESTS: u64 = 5_000;
const PAGES: u32 = 2_000;

/// Pages that are written so often that few of their versions stay at a schedule.
const HOT: u32 = 100;

const SECONDS: f64 = 20.0;

const DEVICE: [&str; 8] = [
    "host.time_scale=40",
    "device.geometry.channels=1",
    "device.geometry.packages_per_channel=1",
    "device.geometry.dies_per_package=2",
    "device.geometry.planes_per_die=1",
    "device.geometry.blocks_per_plane=24",
    "device.capacity=8MiB",
    "queue.enabled=false",
];

fn configured(system: &str, settings: &[&str]) -> RunConfig {
    let all = [&DEVICE[..], settings].concat();
    config("bvssd-60g", system, &all)
}

fn run(config: &RunConfig, pages: u32, check: Option<u32>) -> Result<RunOutput, RunError> {
    let options = RunOptions {
        recovery_check: check,
        ..RunOptions::default()
    };
    let mut trace = Uniform::new(REQUESTS, pages, 0, 300);
    simulate(config, &mut trace, options)
}

fn checked(system: &str, settings: &[&str], instants: u32) -> RunResult {
    checked_on(PAGES, system, settings, instants)
}

fn checked_on(pages: u32, system: &str, settings: &[&str], instants: u32) -> RunResult {
    let output = run(&configured(system, settings), pages, Some(instants)).unwrap();
    let recovered = output.recovered.unwrap();
    assert_eq!(recovered.instants, instants);
    assert!(recovered.rewinds > 0);
    output.result
}

#[test]
fn the_window_shrinks_before_a_write_is_refused_and_the_least_one_does_not() {
    let shrunk = checked("bvssd", &["history.min_window=16s"], 3);
    assert!(shrunk.history.window_s < 16.0, "{:?}", shrunk.history);
    assert!(shrunk.history.dropped > 0);
    let protected = ["history.min_window=16s", "history.on_pressure=enospc"];
    for system in ["bvssd", "trap"] {
        let refused = run(&configured(system, &protected), PAGES, None).unwrap_err();
        let RunError::Request { request, .. } = &refused else {
            panic!("{refused}")
        };
        assert!(*request > 500 && *request < REQUESTS, "{refused}");
        let told = refused.to_string();
        assert!(told.contains("full of old versions"), "{told}");
        assert!(told.contains("protected window"), "{told}");
    }
    // For a window of two seconds there is room.
    let short = ["history.min_window=2s", "history.on_pressure=enospc"];
    let kept = checked("bvssd", &short, 3);
    assert!(kept.history.window_s >= 2.0, "{:?}", kept.history);
}

#[test]
fn parities_keep_more_versions_and_their_return_decodes_and_programs() {
    let pages = checked("bvssd", &[], 5).history;
    let settings = ["history.mean=0.2", "history.deviation=0"];
    let trap = checked("trap", &settings, 5);
    let parities = trap.history;
    assert!(parities.entries > 2 * pages.entries, "{parities:?}");
    assert!(parities.window_s > 2.0 * pages.window_s);
    // 819 bytes and a head of 8: four of them fill a page, with the heads of first writes.
    assert_eq!(parities.raw, 0);
    assert!((parities.mean_rc.unwrap() - 819.0 / 4096.0).abs() < 1e-9);
    let packed = trap.programs.packed as f64;
    let per_page = parities.encoded as f64 / packed;
    assert!((3.8..4.1).contains(&per_page), "{per_page}");
    assert_eq!(trap.programs.host, trap.host.write_pages);
    let (of_pages, of_parities) = (pages.longest_rewind, parities.longest_rewind);
    assert_eq!(
        (of_pages.reads, of_pages.decodes, of_pages.programs),
        (0, 0, 0)
    );
    assert!(of_parities.decodes >= of_parities.programs && of_parities.programs > 0);
    assert!(of_parities.reads >= of_parities.pages, "{of_parities:?}");
}

#[test]
fn what_a_schedule_promises_outlives_the_window_and_is_exact() {
    let plain = checked_on(HOT, "bvssd", &[], 3).history;
    assert!(plain.kept_instants_s.is_empty());
    let schedule = "history.schedule=400ms:all,800ms:400ms,16s:2s";
    let kept = checked_on(HOT, "bvssd", &[schedule], 20).history;
    let instants = kept.kept_instants_s;
    assert!(!instants.is_empty());
    let end = SECONDS;
    let begin = end - kept.window_s;
    for &instant in &instants {
        let age = end - instant;
        let spacing = if age <= 1.3 { 0.4 } else { 2.0 };
        let places = instant / spacing;
        assert!(
            (places - places.round()).abs() < 1e-6,
            "{instant} at age {age}"
        );
        assert!(
            instant < begin + 0.1 && age < 18.0,
            "{instant} at age {age}"
        );
    }
    // The oldest is far older than the whole window without a schedule, for fewer exact instants.
    assert!(
        end - instants[0] > 2.0 * plain.window_s,
        "{instants:?}, {plain:?}"
    );
    assert!(kept.window_s < plain.window_s);
}

#[test]
fn an_estimate_of_the_window_is_near_the_window_of_a_full_device() {
    for system in ["bvssd", "trap"] {
        let history = checked(system, &[], 2).history;
        let estimated = history.estimated_window_s.unwrap();
        let ratio = estimated / history.window_s;
        assert!((0.8..1.25).contains(&ratio), "{system}: {history:?}");
        assert!(history.capacity_bytes > 0);
    }
}

#[test]
fn entries_that_ram_has_no_room_for_are_programmed_and_read_by_a_return() {
    let all = checked("bvssd", &[], 2);
    let tiered = checked("bvssd", &["history.tier_bytes=2400"], 5);
    assert_eq!(all.history.table_programs, 0);
    let (history, programs) = (&tiered.history, &tiered.programs);
    assert_eq!(programs.map, history.table_programs);
    // All but the last hundred entries, 170 to a table; the first pages end no version of a value.
    let expected = (history.recorded - 100) / 170;
    assert!(
        (expected - 1..=expected + 1).contains(&history.table_programs),
        "{history:?}"
    );
    assert!(history.tables_end > 0 && history.longest_rewind.reads == history.tables_end);
    // Tables take the room of versions, and so do the open blocks of two more streams on two dies.
    assert!(history.entries < all.history.entries, "{history:?}");
    let less = all.history.entries - history.entries;
    assert!(less <= history.tables_end + 2 * 2 * 64 + 4, "{less}");
}

#[test]
fn parities_and_other_forms_of_pages_exclude_each_other() {
    use flashlore_sim::config::{Settings, load_system};
    let error = |sets: &[&str]| {
        let settings = Settings::parse(sets).unwrap();
        load_system("trap", &settings).unwrap_err().to_string()
    };
    assert!(error(&["dedup.enabled=true"]).contains("parities"));
    assert!(error(&["delta.enabled=true"]).contains("parities"));
    let settings = Settings::parse(&["history.schedule=1h:all,1d:1min"]).unwrap();
    let unused = load_system("trap", &settings).unwrap().unused;
    assert_eq!(
        unused,
        ["history.schedule"],
        "a version needs all newer ones"
    );
    let settings = Settings::parse(&["history.schedule=1h:all", "history.min_window=2h"]).unwrap();
    let error = load_system("bvssd", &settings).unwrap_err().to_string();
    assert!(error.contains("history.min_window"), "{error}");
}
