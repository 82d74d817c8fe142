//! Records keep their documented names, files read back, differences are found, and the table says
//! what it compares.

use std::fs;

use flashlore_sim::config::{
    RunConfig, Settings, config_hash, load_device, load_host, load_system,
};
use flashlore_sim::results::{
    Array, BufferTraffic, CacheTraffic, Compress, Dedup, Delta, EraseSpread, FindingId, Flash, Gc,
    History, Host, LatencyByKind, MapTraffic, Programs, QueueTraffic, ResponseByKind, ResultsFile,
    RunOutput, RunResult, RunSpeed, TableStyle, Timeline, TraceFile, Utilization, compare_table,
    differences, findings, write_directory,
};
use flashlore_trace::{ContentModel, Existing, Format, WorkloadOptions};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

/// A run as the simulator would report it, with figures that grow with `scale`.
fn run(system: &str, device: &str, seed: u64, scale: u64) -> RunOutput {
    let settings = Settings::parse(&[format!("host.seed={seed}")]).unwrap();
    let configuration = RunConfig {
        device: load_device(device, &settings).unwrap().config,
        system: load_system(system, &settings).unwrap().config,
        host: load_host(&settings).unwrap().config,
    };
    let mut response = LatencyByKind::default();
    (1..=100).for_each(|n| response.write.record(n * scale * 10_000));
    response.read.record(25_000);
    let mut victims = vec![0; 10 + 2 * scale as usize];
    (0..10).for_each(|n| victims[n + 2 * scale as usize] += 1);
    let dedup = system == "ca-ssd";
    let gc = Gc::of(&victims);
    let programs = Programs {
        host: 1000 * scale,
        unique: dedup.then_some(700 * scale),
        duplicate: dedup.then_some(200 * scale),
        reborn: dedup.then_some(100 * scale),
        gc: gc.valid_units_moved,
        ..Programs::default()
    };
    let mut timeline = Timeline::new(1_000_000_000);
    timeline.at(1_500_000_000).requests += 101;
    let result = RunResult {
        arrivals: None,
        drawn_from: None,
        array: Array::default(),
        system: system.to_string(),
        device: device.to_string(),
        trace: "mail".to_string(),
        seed,
        config_hash: config_hash(&configuration),
        version: "0.1.0".to_string(),
        trace_files: vec![TraceFile {
            path: "a/mail.gz".to_string(),
            sha256: "00ff".to_string(),
            format: Format::Fiu,
            records: 12_345,
            clamped: 0,
            skipped: 0,
        }],
        workload: WorkloadOptions::new(ContentModel::FromTrace),
        host: Host {
            requests: 12_345,
            read_pages: 1,
            write_pages: 2000,
            trim_pages: 0,
            bytes: 8_196_096,
        },
        flash: Flash {
            page_reads: 7,
            page_programs: programs.total(),
            block_erases: 11 * scale,
            retired_blocks: 0,
        },
        programs,
        waf_total: programs.waf_total(2000),
        waf_gc: programs.waf_gc(),
        gc,
        map: MapTraffic::default(),
        buffer: BufferTraffic::default(),
        read_cache: CacheTraffic::default(),
        queue: QueueTraffic::default(),
        history: History::default(),
        delta: Delta::default(),
        compress: Compress::default(),
        dedup: if dedup {
            Dedup {
                hits: 750,
                misses: 1250,
                silent: 160,
                ..Dedup::default()
            }
        } else {
            Dedup::default()
        },
        response_us: ResponseByKind::of(&response),
        service_us: ResponseByKind::of(&response),
        erases: EraseSpread::of([1, 2, 2, 3]),
        utilization: Utilization::of(vec![0.1], vec![0.25, 0.75]),
        energy_uj: 0.1 + scale as f64,
        run: RunSpeed {
            wall_s: 0.5,
            requests_per_s: 24_690.0,
            simulated_s: 1.5,
            peak_rss_bytes: Some(1),
        },
        configuration,
    };
    RunOutput {
        result,
        response,
        timeline: Some(timeline),
        recovered: None,
    }
}

fn result(system: &str, device: &str, seed: u64, scale: u64) -> RunResult {
    run(system, device, seed, scale).result
}

#[test]
fn documented_names_are_there() {
    let names = "system, device, trace, seed, config_hash, host.requests, host.read_pages, host.write_pages, \
        host.trim_pages, host.bytes, flash.page_reads, flash.page_programs, flash.block_erases, flash.retired_blocks, programs.unique, \
        programs.duplicate, programs.reborn, programs.packed, programs.merge, programs.gc, \
        programs.wear, programs.map, programs.padding, waf_total, waf_gc, gc.victims, gc.valid_units_moved, \
        gc.mean_valid_per_victim, map.hits, map.misses, map.reads, map.programs, buffer.read_hits, buffer.write_hits, buffer.evictions, buffer.trimmed, buffer.pages_begin, \
        buffer.pages_end, read_cache.hits, read_cache.misses, queue.read_hits, queue.flushes, queue.flushed, queue.requests_per_flush, queue.changes_begin, queue.changes_end, dedup.hits, dedup.misses, dedup.silent, dedup.evictions, dedup.entries, \
        dedup.paper_bytes, response_us.read.count, response_us.write.mean, response_us.all.std, response_us.all.p50, \
        response_us.all.p95, response_us.all.p99, response_us.all.p999, response_us.all.p9999, response_us.all.max, \
        service_us.read.count, service_us.write.max, service_us.all.p50, erases.min, erases.mean, erases.max, \
        erases.std, erases.per_block, utilization.channel, utilization.die, energy_uj, run.wall_s, run.requests_per_s, run.simulated_s, \
        run.peak_rss_bytes, delta.candidates, delta.bypassed, delta.encoded, delta.mean_rc, delta.similar.asked, delta.similar.found, delta.similar.taken, delta.similar.mean_rc, delta.reads, delta.double_reads, delta.merges.read_hot, delta.merges.write_cold, delta.merges.gc, delta.merges.room, delta.merges.shared, delta.log_pages, delta.repacked, \
        delta.values_end, delta.packs_end, delta.pinned_bytes, compress.encoded, compress.mean_ratio, history.entries, history.window_s, history.historical_units, history.copied_live, history.copied_historical, history.recorded, history.dropped, history.paper_bytes, history.capacity_bytes, history.estimated_window_s, history.kept_instants_s, history.table_programs, history.tables_end, history.longest_rewind.pages, history.longest_rewind.reads, history.longest_rewind.decodes, history.longest_rewind.programs, history.encoded, history.raw, history.mean_rc, gc.log_victims";
    let file = ResultsFile::new(vec![result("plain", "ca-ssd-4g", 1, 2)]);
    let json: Value = serde_json::from_str(&file.to_json()).unwrap();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    for name in names.split(", ").map(str::trim) {
        let pointer = format!("/runs/0/{}", name.replace('.', "/"));
        assert!(json.pointer(&pointer).is_some(), "{name}");
    }
    assert_eq!(
        json["runs"][0]["programs"]["unique"],
        Value::Null,
        "unknown without the oracle"
    );
    assert!(json.get("seeds").is_none(), "one seed has no interval");
}

#[test]
fn results_read_back_exactly() {
    let runs = vec![
        result("plain", "tlc-1t", 1, 2),
        result("ca-ssd", "tlc-1t", 1, 1),
    ];
    let file = ResultsFile::new(runs);
    assert_eq!(
        ResultsFile::from_json(&file.to_json(), "results.json").unwrap(),
        file
    );
    let error = ResultsFile::from_json("{\"version\": 3", "old.json")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("old.json is not a results file: ") && error.contains("line 1"),
        "{error}"
    );
    // A file of a version that did not write a field.
    let mut older: Value = serde_json::from_str(&file.to_json()).unwrap();
    older["runs"][0]["erases"]
        .as_object_mut()
        .unwrap()
        .remove("per_block");
    let error = ResultsFile::from_json(&older.to_string(), "old.json")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("old.json") && error.contains("missing field `per_block`"),
        "{error}"
    );
}

#[test]
fn seeds_of_one_configuration_are_summarized() {
    let mut runs: Vec<RunResult> = (1..=3)
        .map(|seed| result("plain", "ca-ssd-4g", seed, seed))
        .collect();
    runs.push(result("ca-ssd", "ca-ssd-4g", 1, 1));
    let seeds = ResultsFile::new(runs).seeds;
    assert_eq!(seeds.len(), 1);
    assert_eq!(
        (seeds[0].system.as_str(), &seeds[0].seeds[..]),
        ("plain", &[1, 2, 3][..])
    );
    let host = &seeds[0].estimates["programs"]["host"];
    assert_eq!(host["mean"], 2000.0);
    // Standard deviation 1000, t = 4.3027 for two degrees of freedom.
    assert!((host["ci95"].as_f64().unwrap() - 4.302_652_7 * 1000.0 / 3_f64.sqrt()).abs() < 1e-3);
    assert_eq!(seeds[0].estimates["programs"]["unique"], Value::Null);
    let erases = &seeds[0].estimates["erases"];
    assert_eq!(erases["mean"]["mean"], 2.0);
    assert!(erases.get("per_block").is_none(), "a distribution");
    assert!(seeds[0].estimates.get("configuration").is_none());
}

#[test]
fn a_repeated_run_differs_only_in_real_time() {
    let first = result("plain", "ca-ssd-4g", 1, 2);
    let mut again = first.clone();
    again.run = RunSpeed {
        wall_s: 9.0,
        requests_per_s: 1.0,
        peak_rss_bytes: None,
        ..again.run
    };
    again.version = "9.9.9".to_string();
    again.trace_files[0].path = "elsewhere/mail.gz".to_string();
    assert_eq!(differences(&first, &again, 10), []);

    again.gc.victims += 1;
    again.utilization.die[1] = 0.5;
    again.programs.unique = Some(3);
    again.trace_files[0].sha256 = "00fe".to_string();
    again.run.simulated_s = 1.25;
    let found = differences(&first, &again, 10);
    let paths: Vec<&str> = found
        .iter()
        .map(|difference| difference.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "gc.victims",
            "programs.unique",
            "run.simulated_s",
            "trace_files[0].sha256",
            "utilization.die[1]"
        ]
    );
    assert_eq!(found[0].to_string(), "gc.victims: 10 against 11");
    assert_eq!(differences(&first, &again, 2).len(), 2);

    again = first.clone();
    again.gc.valid_per_victim.pop();
    again.configuration.host.seed = 2;
    let found = differences(&first, &again, 10);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].path, "configuration.host.seed");
}

#[test]
fn the_directory_holds_everything_and_no_temporary_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("deep/out");
    let outputs = [
        run("plain", "ca-ssd-4g", 1, 2),
        run("ca-ssd", "ca-ssd-4g", 1, 1),
    ];
    write_directory(&out, &outputs, Existing::Refuse).unwrap();
    let refused = write_directory(&out, &outputs, Existing::Refuse).unwrap_err();
    assert!(refused.is_usage(), "{refused}");
    write_directory(&out, &outputs, Existing::Replace).unwrap();
    let mut names: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = [
        "erase_cdf.csv",
        "erase_cdf.parquet",
        "response_cdf.csv",
        "response_cdf.parquet",
        "results.json",
        "results.parquet",
        "timeline.csv",
        "timeline.parquet",
        "victim_cdf.csv",
        "victim_cdf.parquet",
    ];
    assert_eq!(names, expected);

    let text = fs::read_to_string(out.join("results.json")).unwrap();
    assert_eq!(
        ResultsFile::from_json(&text, "").unwrap().runs[1],
        outputs[1].result
    );
    let parquet =
        SerializedFileReader::new(fs::File::open(out.join("results.parquet")).unwrap()).unwrap();
    let columns = parquet
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.name().to_string());
    let columns: Vec<String> = columns.collect();
    assert!(
        columns.contains(&"response_us.all.p99".to_string()),
        "{columns:?}"
    );
    assert!(!columns.iter().any(|name| name.starts_with("configuration")));
    assert_eq!(parquet.metadata().file_metadata().num_rows(), 2);

    let victims = fs::read_to_string(out.join("victim_cdf.csv")).unwrap();
    let mut lines = victims.lines();
    assert_eq!(
        lines.next(),
        Some("system,device,trace,seed,share,valid_units,victims")
    );
    assert_eq!(lines.next(), Some("plain,ca-ssd-4g,mail,1,0.1,4,1"));
    assert_eq!(victims.lines().count(), 21);
    let erases = fs::read_to_string(out.join("erase_cdf.csv")).unwrap();
    let lines: Vec<&str> = erases.lines().collect();
    assert_eq!(lines[0], "system,device,trace,seed,blocks,erases,share");
    assert_eq!(lines[2], "plain,ca-ssd-4g,mail,1,2,2,0.75");
    assert_eq!(lines.len(), 7);
    let responses = fs::read_to_string(out.join("response_cdf.csv")).unwrap();
    assert!(
        responses
            .lines()
            .any(|line| line == "plain,ca-ssd-4g,mail,1,read,25,1"),
        "{responses}"
    );
    assert_eq!(
        fs::read_to_string(out.join("timeline.csv"))
            .unwrap()
            .lines()
            .count(),
        5
    );
}

#[test]
fn results_of_another_run_leave_nothing_of_the_older_ones() {
    let dir = tempfile::tempdir().unwrap();
    let mut output = run("plain", "ca-ssd-4g", 1, 2);
    write_directory(dir.path(), &[output.clone()], Existing::Refuse).unwrap();
    assert!(dir.path().join("timeline.csv").exists());
    output.timeline = None;
    write_directory(dir.path(), &[output], Existing::Replace).unwrap();
    assert!(!dir.path().join("timeline.csv").exists());
    assert!(!dir.path().join("timeline.parquet").exists());
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = write_directory::<RunOutput>(&file.join("out"), &[], Existing::Refuse)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot write ") && error.contains("file/out"),
        "{error}"
    );
    let taken = dir.path().join("taken");
    fs::create_dir_all(taken.join("results.json/x")).unwrap();
    let error = write_directory::<RunOutput>(&taken, &[], Existing::Refuse).unwrap_err();
    assert!(error.to_string().contains("results.json"), "{error}");
    assert_eq!(
        fs::read_dir(&taken).unwrap().count(),
        1,
        "the temporary file is gone"
    );
}

#[test]
fn the_table_sets_systems_against_the_plain_one() {
    let runs = [
        result("ca-ssd", "ca-ssd-4g", 1, 1),
        result("plain", "ca-ssd-4g", 1, 2),
    ];
    let table = compare_table(&runs, TableStyle { color: false });
    let line = |label: &str| {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(label));
        line.unwrap_or_else(|| panic!("no {label:?} in\n{table}"))
            .to_string()
    };
    assert!(table.starts_with("Trace mail, 12,345 requests, change against plain\nDevice ca-ssd-4g: 3,481 MiB exported of 4,096 MiB raw\n"), "{table}");
    assert!(
        line("units programmed").split_whitespace().eq([
            "units",
            "programmed",
            "1,065",
            "-48.9",
            "%",
            "2,085"
        ]),
        "{table}"
    );
    assert!(
        line("block erases")
            .split_whitespace()
            .eq(["block", "erases", "11", "-50.0", "%", "22"])
    );
    assert!(line("duplicates found").contains("37.5 %"));
    assert!(line("response mean").contains("-50.0 %"));
    assert!(!table.contains('\u{1b}'), "no colour was asked for");
    assert!(compare_table(&runs, TableStyle { color: true }).contains('\u{1b}'));
}

/// Programs say what a history costs, these rows what it is worth.
#[test]
fn the_table_says_what_a_history_bought() {
    let mut kept = result("bvssd", "ca-ssd-4g", 1, 1);
    kept.host.write_pages = 5_000;
    kept.history.entries = 1_250;
    kept.history.window_s = 21.5;
    let runs = [result("plain", "ca-ssd-4g", 1, 2), kept];
    let table = compare_table(&runs, TableStyle { color: false });
    let row = |label: &str| -> Vec<String> {
        let mut rows = table
            .lines()
            .filter_map(|line| line.trim().strip_prefix(label));
        let row = rows
            .next()
            .unwrap_or_else(|| panic!("no {label:?} in\n{table}"));
        row.split_whitespace().map(str::to_string).collect()
    };
    assert_eq!(row("window of old versions (s)"), ["-", "21.500"]);
    assert_eq!(row("versions kept"), ["-", "1,250"]);
    assert_eq!(row("share of host writes"), ["-", "25.0", "%"]);
}

#[test]
fn the_table_says_loudly_that_devices_differ() {
    let mut other = result("ca-ssd", "ca-ssd-4g", 1, 1);
    let runs = [result("plain", "ca-ssd-4g", 1, 2), other.clone()];
    assert!(!compare_table(&runs, TableStyle { color: false }).contains("DIFFERENT"));
    // The same name does not make it the same device.
    other.configuration.device.timing.erase.0 += 1;
    let runs = [
        result("plain", "ca-ssd-4g", 1, 2),
        other,
        result("ca-ssd", "tlc-1t", 1, 1),
    ];
    let table = compare_table(&runs, TableStyle { color: false });
    assert!(table.contains("!!! DIFFERENT DEVICES"), "{table}");
    assert!(
        table.contains("  ca-ssd on device tlc-1t: 953,869 MiB exported"),
        "{table}"
    );
}

/// What reports once told by themselves is in the one list.
#[test]
fn what_happened_to_a_run_is_found() {
    let plain = result("plain", "ca-ssd-4g", 1, 2);
    let mut other = result("bvssd", "ca-ssd-4g", 1, 1);
    let ids = |runs: &[RunResult]| -> Vec<(FindingId, Vec<String>)> {
        let found = findings(runs).into_iter();
        found.map(|f| (f.id, f.systems)).collect()
    };
    let both = [plain.clone(), other.clone()];
    assert!(ids(&both).contains(&(FindingId::AnswersEarly, vec!["bvssd".to_string()])));
    let known = |id| ids(&both).iter().any(|(known, _)| *known == id);
    other.trace_files[0].skipped = 3;
    other.trace_files[0].clamped = 4;
    other.buffer.pages_end = 101;
    other.flash.retired_blocks = 1;
    other.configuration.device.timing.erase.0 += 1;
    let after = ids(&[plain, other.clone()]);
    for id in [
        FindingId::RecordsSkipped,
        FindingId::TimesRaised,
        FindingId::LeftInBuffer,
        FindingId::WornOut,
        FindingId::DevicesDiffer,
    ] {
        assert!(!known(id), "{id:?}");
        assert!(
            after.contains(&(id, vec!["bvssd".to_string()])),
            "{id:?} in {after:?}"
        );
    }
    other.buffer.pages_end = 100;
    let alone = ids(&[other]);
    let gone = [
        FindingId::LeftInBuffer,
        FindingId::DevicesDiffer,
        FindingId::AnswersEarly,
    ];
    assert!(alone.iter().all(|(id, _)| !gone.contains(id)), "{alone:?}");
}

#[test]
fn the_table_joins_seeds_and_separates_traces() {
    let mut runs: Vec<RunResult> = (1..=2)
        .map(|seed| result("plain", "ca-ssd-4g", seed, seed))
        .collect();
    let mut web = result("plain", "ca-ssd-4g", 1, 1);
    web.trace = "web".to_string();
    runs.push(web);
    let table = compare_table(&runs, TableStyle { color: false });
    assert!(
        table.contains("Trace mail, 12,345 requests, mean of 2 seeds with 95 % interval\n"),
        "{table}"
    );
    assert!(
        table.contains("16 ± 70") || table.contains("17 ± 70"),
        "{table}"
    );
    assert!(table.contains("Trace web, 12,345 requests\n"), "{table}");
    assert_eq!(compare_table(&[], TableStyle { color: false }), "");
}
