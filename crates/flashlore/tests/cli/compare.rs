//! `flashlore compare` and `flashlore simulate`.

use std::fs;
use std::process::{Command, Stdio};

use flashlore_sim::config::system_presets;

use crate::program::{Place, fiu, fiu_of, msr, runs};

/// The names that are documented and stay.
const NAMES: &str = "system device trace seed config_hash host.requests host.read_pages \
    host.write_pages host.trim_pages host.bytes flash.page_reads flash.page_programs \
    flash.block_erases flash.retired_blocks programs.unique programs.duplicate programs.reborn programs.packed \
    programs.merge programs.gc programs.wear programs.map \
    programs.padding waf_total waf_gc gc.victims gc.valid_units_moved gc.mean_valid_per_victim \
    map.hits map.misses map.reads map.programs buffer.read_hits buffer.write_hits buffer.evictions buffer.trimmed \
    buffer.pages_begin buffer.pages_end read_cache.hits read_cache.misses queue.read_hits queue.flushes queue.flushed queue.requests_per_flush \
    queue.changes_begin queue.changes_end dedup.hits dedup.misses dedup.silent dedup.evictions dedup.entries dedup.paper_bytes \
    dedup.bypassed dedup.unsampled dedup.scanned dedup.scan_duplicates \
    response_us.read.count response_us.write.mean response_us.all.std response_us.all.p50 \
    response_us.all.p95 response_us.all.p99 response_us.all.p999 response_us.all.p9999 \
    response_us.all.max service_us.read.mean service_us.write.p99 service_us.all.count erases.min \
    erases.mean erases.max erases.std erases.per_block utilization.die energy_uj run.wall_s run.requests_per_s \
    run.simulated_s run.peak_rss_bytes workload.compact workload.content workload.read.lenient \
    delta.candidates delta.bypassed delta.encoded delta.mean_rc delta.similar.asked delta.similar.found delta.similar.taken delta.similar.mean_rc delta.reads delta.double_reads delta.merges.read_hot delta.merges.write_cold delta.merges.gc delta.merges.room delta.merges.shared delta.log_pages delta.repacked \
    delta.values_end delta.packs_end delta.pinned_bytes compress.encoded compress.mean_ratio history.entries history.window_s history.historical_units history.copied_live history.copied_historical history.recorded history.dropped history.paper_bytes history.capacity_bytes history.estimated_window_s history.kept_instants_s history.table_programs history.tables_end history.longest_rewind.pages history.longest_rewind.reads history.longest_rewind.decodes history.longest_rewind.programs history.encoded history.raw history.mean_rc gc.log_victims \
    array.references array.associates array.independents array.hdd_ops array.ios_per_hdd_op array.ssd_writes \
    array.delta_ram_peak array.mean_delta_bytes array.too_big array.ssd_energy_j array.hdd_energy_j array.verified";

#[test]
fn json_has_the_promised_names() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let results = place.run(&["compare", "t.fiu", "--json"]).json();
    assert_eq!(results["version"], env!("CARGO_PKG_VERSION"));
    let runs = results["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        for name in NAMES.split_whitespace() {
            let pointer = format!("/{}", name.replace('.', "/"));
            assert!(run.pointer(&pointer).is_some(), "{name} is missing");
        }
    }
    assert_eq!(runs[0]["host"]["requests"], 4000);
    assert!(runs[1]["dedup"]["hits"].as_u64().unwrap() > 0);
    assert!(runs[1]["programs"]["unique"].as_u64().unwrap() > 0);
}

#[test]
fn the_same_command_gives_the_same_bits_on_any_number_of_threads() {
    let place = Place::new();
    place
        .write("t.fiu", &fiu())
        .write("u.fiu", &fiu_of(3000, 1000));
    let results = |jobs: &str| {
        let args = [
            "compare",
            "t.fiu",
            "u.fiu",
            "--seeds",
            "3",
            "--json",
            "--jobs",
            jobs,
            "--set",
            "device.gc.policy=d-choices",
            "--set",
            "device.precondition.overwrite=steady",
        ];
        runs(place.run(&args).json())
    };
    let first = results("1");
    assert_eq!(first.len(), 12);
    assert_eq!(first, results("4"));
    let seeds: Vec<u64> = first
        .iter()
        .map(|run| run["seed"].as_u64().unwrap())
        .collect();
    let seed = seeds[0];
    assert_eq!(
        seeds[..6],
        [seed, seed + 1, seed + 2, seed, seed + 1, seed + 2]
    );
    assert_ne!(first[0]["flash"], first[1]["flash"], "seeds matter");
}

#[test]
fn the_table_says_what_was_done_to_the_trace() {
    let place = Place::new();
    place.write("t.fiu", &fiu()).write("m.csv", &msr());
    let text = place
        .run(&[
            "compare",
            "t.fiu",
            "m.csv",
            "--content",
            "distinct",
            "--seeds",
            "2",
        ])
        .ok();
    for part in [
        "Trace t.fiu, 4,000 requests, mean of 2 seeds with 95 % interval, change against plain",
        "Trace m.csv, 500 requests",
        "Addresses are compact",
        "Content is assumed",
        "Device auto: ",
        "response p99",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let text = place
        .run(&[
            "simulate",
            "m.csv",
            "--system",
            "plain",
            "--device",
            "ca-ssd-4g",
            "--device-filter",
            "host.1",
            "--set",
            "host.warmup=0.1",
            "--set",
            "host.mode=closed",
        ])
        .ok();
    assert!(
        !text.contains("compact") && text.contains("Trace m.csv, 225 requests"),
        "{text}"
    );
    assert!(
        text.contains("Only requests to device host.1") && text.contains("warm-up"),
        "{text}"
    );
    assert!(text.contains("Closed loop"), "{text}");
}

#[test]
fn traces_are_joined_only_when_asked() {
    let place = Place::new();
    place
        .write("t.fiu", &fiu())
        .write("u.fiu", &fiu_of(1000, 5000));
    let joined = place
        .run(&["compare", "t.fiu", "u.fiu", "--join", "--json"])
        .json();
    let joined = joined["runs"].as_array().unwrap();
    assert_eq!(joined.len(), 2);
    assert_eq!(joined[0]["host"]["requests"], 5000);
    assert_eq!(joined[0]["trace"], "t.fiu + u.fiu");
    let merged = place
        .run(&["compare", "t.fiu", "u.fiu", "--join=timeline"])
        .ok();
    assert!(merged.contains("merged by their times"), "{merged}");
    assert!(
        place
            .run(&["compare", "t.fiu", "t.fiu"])
            .fails(2)
            .contains("named twice")
    );
    assert!(
        place
            .run(&["compare", "t.fiu", "--join"])
            .fails(2)
            .contains("--join")
    );
}

#[test]
fn files_are_written_where_asked() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let ran = place.run(&["compare", "t.fiu", "--out", "a/b", "--timeline", "100ms"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("flashlore rerun a/b/results.json"),
        "{}",
        ran.stderr
    );
    for name in [
        "results.json",
        "results.parquet",
        "response_cdf.csv",
        "erase_cdf.csv",
        "timeline.csv",
    ] {
        assert!(place.path(&format!("a/b/{name}")).exists(), "{name}");
    }
    let timeline = fs::read_to_string(place.path("a/b/timeline.csv")).unwrap();
    assert!(timeline.lines().count() > 2 * 15, "{timeline}");

    place
        .run(&[
            "simulate",
            "t.fiu",
            "--system",
            "ca-ssd",
            "--request-log",
            "log.csv",
        ])
        .ok();
    let log = fs::read_to_string(place.path("log.csv")).unwrap();
    assert_eq!(log.lines().count(), 4001);
    assert!(log.starts_with("number,op,arrival_ns,start_ns,end_ns,units\n"));
}

/// The sum of a column of a CSV file of numbers over the rows of one system.
fn sum(csv: &str, system: &str, column: &str) -> u64 {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|&n| n == name).unwrap();
    let (system_at, column_at) = (at("system"), at(column));
    lines
        .filter(|fields| fields[system_at] == system)
        .map(|fields| fields[column_at].parse::<u64>().unwrap())
        .sum()
}

/// Most of the work of this trace is done after its last arrival: a hash takes a second.
#[test]
fn the_time_line_accounts_for_the_whole_run() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let ran = place.run(&[
        "compare",
        "t.fiu",
        "--set",
        "dedup.hash_time=1s",
        "--timeline",
        "1s",
        "--out",
        "o",
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let results: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let timeline = fs::read_to_string(place.path("o/timeline.csv")).unwrap();
    for run in results["runs"].as_array().unwrap() {
        let system = run["system"].as_str().unwrap();
        let total = |column| sum(&timeline, system, column);
        assert_eq!(Some(total("requests")), run["host"]["requests"].as_u64());
        let programs = &run["programs"];
        assert_eq!(Some(total("host_programs")), programs["host"].as_u64());
        assert_eq!(Some(total("gc_programs")), programs["gc"].as_u64());
        assert_eq!(Some(total("erases")), run["flash"]["block_erases"].as_u64());
    }
}

/// Requests of four pages, the same four again and again.
#[test]
fn caftl_hashes_a_sample_and_the_rest_in_idle_time() {
    let place = Place::new();
    let line = |i: u32| {
        let digest = |page: u32| format!("{:032x}", i % 7 * 4 + page + 1);
        let digests: String = (0..4).map(digest).collect();
        let (time, sector) = (u64::from(i) * 10_000_000, i % 50 * 32);
        format!("{time} 1 p {sector} 32 W 7 0 {digests}\n")
    };
    place.write("t.fiu", &(0..400).map(line).collect::<String>());
    let arguments = ["compare", "t.fiu", "--systems", "plain,ca-ssd,caftl"];
    let text = place.run(&arguments).ok();
    assert!(text.contains("writes not hashed") && text.contains("hashed in idle time"));
    let all = runs(place.run(&[&arguments[..], &["--json"]].concat()).json());
    let dedup = |run: usize, name: &str| all[run]["dedup"][name].as_u64().unwrap();
    for run in 0..2 {
        for name in ["unsampled", "scanned", "scan_duplicates"] {
            assert_eq!(dedup(run, name), 0, "{name}");
        }
    }
    // Each of the 28 values is programmed once: sampled, or found in idle time before it comes again.
    assert_eq!((dedup(2, "misses"), dedup(2, "unsampled")), (7, 21));
    assert_eq!((dedup(2, "scanned"), dedup(2, "scan_duplicates")), (21, 0));
    assert_eq!(dedup(2, "hits"), dedup(1, "hits"));
    // Neither option means anything to a plain system.
    for set in ["dedup.out_of_line=true", "dedup.sampling=request"] {
        let plain = ["compare", "t.fiu", "--systems", "plain", "--set", set];
        let message = place.run(&plain).fails(2);
        assert!(
            message.contains(set.split('=').next().unwrap()),
            "{message}"
        );
    }
}

#[test]
fn systems_may_have_devices_of_their_own_when_that_is_said() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let systems = "plain@ca-ssd-4g,ca-ssd@ca-ssd-6g";
    let message = place
        .run(&["compare", "t.fiu", "--systems", systems])
        .fails(2);
    assert!(
        message.contains("ca-ssd-6g") && message.contains("--allow-different-devices"),
        "{message}"
    );
    let text = place
        .run(&[
            "compare",
            "t.fiu",
            "--systems",
            systems,
            "--allow-different-devices",
        ])
        .ok();
    assert!(
        text.contains("DIFFERENT DEVICES") && text.contains("ca-ssd on device ca-ssd-6g"),
        "{text}"
    );
    // The same device twice is no difference.
    place
        .run(&[
            "compare",
            "t.fiu",
            "--systems",
            "plain@ca-ssd-4g,ca-ssd",
            "--device",
            "ca-ssd-4g",
        ])
        .ok();
}

#[test]
fn a_file_is_a_system_and_settings_reach_it() {
    let place = Place::new();
    place.write("t.fiu", &fiu()).write(
        "tiny.toml",
        "base = \"ca-ssd\"\n[dedup]\nindex_entries = 16\n",
    );
    let results = place
        .run(&[
            "compare",
            "t.fiu",
            "--systems",
            "plain,ca-ssd,tiny.toml",
            "--json",
            "--set",
            "dedup.hash_time=0",
        ])
        .json();
    assert_eq!(results["runs"][2]["system"], "tiny");
    assert_eq!(results["runs"][2]["dedup"]["entries"], 16);
    assert_eq!(
        results["runs"][1]["configuration"]["system"]["dedup"]["hash_time"],
        "0ns"
    );
    assert_eq!(results["runs"][1]["dedup"]["evictions"], 0);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let mut child = Command::new(env!("CARGO_BIN_EXE_flashlore"))
        .args(["compare", "t.fiu", "--json"])
        .current_dir(place.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_run_with_history_is_compared_with_what_was_written() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    for system in ["bvssd", "trap", "combined"] {
        let run = place.run(&[
            "simulate",
            "t.fiu",
            "--system",
            system,
            "--recovery-check",
            "10",
            "--device",
            "ca-ssd-4g",
        ]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let told = run.stderr;
        assert!(told.contains("compared at 10 instants"), "{told}");
    }
    let refused = place.run(&["simulate", "t.fiu", "--system", "plain", "--recovery-check"]);
    let told = refused.fails(2);
    assert!(told.contains("history.enabled"), "{told}");
}

/// A first trace is often a small one.
#[test]
fn every_preset_takes_a_trace_of_one_write() {
    let place = Place::new();
    place.write(
        "t.fiu",
        "0 1 p 0 8 W 8 1 00000000000000000000000000000007\n",
    );
    let names = system_presets().iter().map(|preset| preset.name);
    let (with_bytes, names): (Vec<&str>, Vec<&str>) =
        names.partition(|name| ["i-cash", "i-cash-compression"].contains(name));
    for name in with_bytes {
        place.run(&["simulate", "t.fiu", "--system", name]).fails(2);
    }
    let results = place.run(&["compare", "t.fiu", "--json", "--systems", &names.join(",")]);
    for run in results.json()["runs"].as_array().unwrap() {
        assert_eq!(run["host"]["write_pages"], 1, "{}", run["system"]);
    }
}

#[test]
fn arrays_stand_beside_other_systems() {
    let place = Place::new();
    let systems = "plain,pure-ssd,raid0,lru-cache,dedup-cache,i-cash,i-cash-compression";
    let common = ["--device", "ca-ssd-4g", "--set", "host.mode=closed"];
    // A fiftieth of the requests: with 2,000 between two scans there would be eight of them.
    let scans = ["--set", "array.scan_every=1000"];
    let args = |rest: &[&'static str]| {
        let compare = ["compare", "profile:sysbench,scale=0.02", "--systems"];
        [&compare[..], &[systems], &common, &scans, rest].concat()
    };
    let results = place.run(&args(&["--json"])).json();
    let runs = results["runs"].as_array().unwrap();
    let count = |at: usize, name: &str| runs[at]["array"][name].as_u64().unwrap();
    assert_eq!(runs.len(), 7);
    // The SSD alone is the same with an array around it.
    assert_eq!(runs[0]["response_us"], runs[1]["response_us"]);
    assert_eq!(
        count(1, "ssd_writes"),
        runs[1]["host"]["write_pages"].as_u64().unwrap()
    );
    assert_eq!((count(2, "ssd_writes"), count(1, "hdd_ops")), (0, 0));
    assert!(count(5, "associates") > 0 && count(5, "ssd_writes") < count(1, "ssd_writes"));
    let table = place.run(&args(&[])).ok();
    for row in [
        "pages a second",
        "written to the SSD",
        "associates",
        "bytes of a delta",
    ] {
        assert!(table.contains(row), "{row} is missing:\n{table}");
    }
}

/// Its media are as large as its address space, so holes in that are closed.
#[test]
fn an_array_takes_a_trace_with_high_addresses() {
    let place = Place::new();
    place.write("hi.spc", "0,134217728,4096,w,0.0\n0,0,4096,r,0.1\n");
    for system in ["raid0", "lru-cache", "pure-ssd"] {
        place.run(&["simulate", "hi.spc", "--system", system]).ok();
    }
}

#[test]
fn an_array_that_needs_bytes_refuses_a_trace_without_them() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let refused = place
        .run(&["simulate", "--system", "i-cash", "t.fiu"])
        .fails(2);
    assert!(refused.contains("needs the bytes of pages"), "{refused}");
    place.run(&["simulate", "--system", "raid0", "t.fiu"]).ok();
}
