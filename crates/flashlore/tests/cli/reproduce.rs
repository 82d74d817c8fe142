//! `flashlore reproduce`, at a scale that takes seconds: that it runs and how its report is built.

use serde_json::Value;

use crate::program::run;

/// The checks that a report of everything has.
const CHECKS: usize = 19;

#[test]
fn a_report_has_every_check_with_a_verdict() {
    let report = run(&["reproduce", "ca-ssd", "--scale", "0.02", "--json"]).json();
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(checks.len(), CHECKS);
    for check in checks {
        assert!(!check["claim"].as_str().unwrap().is_empty());
        for item in check["items"].as_array().unwrap() {
            let verdict = item["verdict"].as_str().unwrap();
            let kind = item["kind"].as_str().unwrap();
            let possible: &[&str] = match kind {
                "exact" => &["holds", "differs"],
                // Nothing that runs is judged at this scale.
                "shape" | "fitted" => &["scaled-inside", "scaled-outside"],
                "contradictory" => &["contradictory"],
                "not-reproducible" => &["not-reproducible"],
                other => panic!("{other}"),
            };
            assert!(possible.contains(&verdict), "{item}");
            assert!(!item["measured"].as_array().unwrap().is_empty());
        }
    }
    let exact = checks[7]["items"][0].clone();
    assert_eq!(
        (&checks[7]["id"], &exact["verdict"]),
        (&"C8".into(), &"holds".into())
    );
    assert!(report["profiles"]["web"].as_str().unwrap().len() == 16);
    let reserve = report["calibration"]["value"].as_f64().unwrap();
    assert!((0.15..=0.22).contains(&reserve));
    // Every run on a device has its figures and the hash of its configuration.
    let runs = report["runs"].as_object().unwrap();
    for (name, hash) in report["configurations"].as_object().unwrap() {
        assert!(runs[name]["programs"].as_f64().unwrap() > 0.0, "{name}");
        assert!(!hash.as_str().unwrap().is_empty());
    }
    let variants = report["sensitivity"]["rows"].as_array().unwrap();
    assert_eq!(variants[0][0], "as calibrated");
    assert!(variants.len() > 4);
}

#[test]
fn one_figure_is_repeated_alone_and_alike_on_any_number_of_threads() {
    let figure = ["reproduce", "ca-ssd", "--figure", "6", "--scale", "0.02"];
    let alone = run(&[&figure[..], &["--jobs", "1"]].concat()).ok();
    let together = run(&[&figure[..], &["--jobs", "3"]].concat()).ok();
    assert_eq!(alone, together);
    for wanted in [
        "Calibrated: device.space.over_provisioning",
        "C8  ",
        "75.27 %",
        "D1  ",
    ] {
        assert!(alone.contains(wanted), "{alone}");
    }
    assert!(!alone.contains("C1  ") && !alone.contains("With other settings"));
    let other = run(&[&figure[..], &["--seed", "2"]].concat()).ok();
    assert_ne!(alone, other);
}

#[test]
fn statistics_need_no_calibration() {
    let text = run(&["reproduce", "ca-ssd", "--figure", "2", "--scale", "0.02"]).ok();
    assert!(
        text.contains("C12  ") && !text.contains("Calibrated"),
        "{text}"
    );
}

#[test]
fn strict_fails_when_something_differs_but_not_for_what_is_too_small_to_be_judged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    let file = file.to_str().unwrap();
    let wrong = SMALL.replace("within = [0, 1.03]", "within = [7, 8]");
    std::fs::write(file, wrong).unwrap();
    let command = ["reproduce", file, "--figure", "2"];
    let told = run(&command).ok();
    assert!(
        told.contains("Of all numbers: 0 holds, 0 fitted, 1 differs"),
        "{told}"
    );
    let strict = run(&[&command[..], &["--strict"]].concat());
    assert_eq!(strict.code, 1);
    assert_eq!(
        strict.stderr,
        "error: numbers that differ from what is accepted: 1\n"
    );
    let small = run(&[&command[..], &["--strict", "--scale", "0.01"]].concat()).ok();
    assert!(small.contains("1 out of range, scaled"), "{small}");
    assert!(small.contains("reproduces nothing"), "{small}");
}

#[test]
fn a_quick_look_is_what_the_definition_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    let path = file.to_str().unwrap();
    std::fs::write(&file, SMALL).unwrap();
    let quick = ["reproduce", path, "--quick", "--json"];
    let refused = run(&quick).fails(2);
    assert_eq!(
        refused,
        "small has no section [quick]: expected --scale and --figure instead of --quick"
    );
    let section = "quick = { scale = 0.01, figures = [\"2\"] }\n";
    std::fs::write(&file, format!("{section}{SMALL}")).unwrap();
    let report = run(&quick).json();
    assert_eq!(
        (&report["scale"], &report["figures"]),
        (&0.01.into(), &["2"].into())
    );
    assert_eq!(report["checks"].as_array().unwrap().len(), 1);
    assert!(report["sensitivity"].is_null());
    let both = run(&[&quick[..], &["--scale", "0.5"]].concat()).fails(2);
    assert!(
        both.contains("'--quick' cannot be used with '--scale"),
        "{both}"
    );
}

#[test]
fn all_runs_the_papers_that_have_a_figure() {
    let text = run(&["reproduce", "all", "--figure", "4.1"]).ok();
    assert!(
        text.contains("DeltaFTL") && !text.contains("CA-SSD"),
        "{text}"
    );
    assert!(text.contains("numbers of"), "{text}");
    let unknown = run(&["reproduce", "all", "--figure", "4.2"]).fails(2);
    assert!(
        unknown.starts_with("no check belongs to figure '4.2'; expected one of 2, 3, ")
            && unknown.contains("table2 of ca-ssd; "),
        "{unknown}"
    );
}

#[test]
fn all_leaves_out_what_needs_captures_that_there_are_not() {
    let all = ["reproduce", "all", "--figure", "captures"];
    let document = run(&[&all[..], &["--json"]].concat()).json();
    let papers = document["papers"].as_array().unwrap();
    let names: Vec<&str> = papers
        .iter()
        .map(|p| p["paper"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["combined", "i-cash-control"]);
    for paper in papers {
        assert_eq!(paper["checks"], serde_json::json!([]));
        assert!(paper["left_out"].as_array().unwrap().len() > 5);
    }
    assert_eq!(document["failed"], serde_json::json!([]));
    let text = run(&all).ok();
    assert!(
        text.contains("Left out without --captures: 45 numbers, of C1, C2, C3, C4, C5, C6, C7"),
        "{text}"
    );
}

#[test]
fn the_failure_of_one_is_told_and_does_not_lose_the_others() {
    let all = ["reproduce", "all", "--figure", "table6", "--scale", "0.005"];
    let ran = run(&[&all[..], &["--captures", "nowhere", "--json"]].concat());
    assert_eq!(ran.code, 1);
    let first = "error: 1 of 2 experiments failed\ni-cash-control: ";
    assert!(ran.stderr.starts_with(first), "{}", ran.stderr);
    assert!(ran.stderr.contains(".fiu.xz"), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["papers"][0]["paper"], "i-cash");
    assert_eq!(document["failed"][0]["paper"], "i-cash-control");
    assert!(document["papers"][0]["checks"].as_array().unwrap().len() > 1);
}

#[test]
fn a_page_is_refused_before_anything_runs() {
    let refused = run(&["reproduce", "all", "--report", "page.html"]).fails(1);
    assert!(
        refused.starts_with("reproduce --report needs the Python package"),
        "{refused}"
    );
}

/// The verdicts of a check, by the names of its numbers.
fn verdicts(report: &Value, id: &str) -> Vec<(String, String)> {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["id"] == id).unwrap();
    let items = check["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            let text = |key: &str| item[key].as_str().unwrap().to_owned();
            (text("name"), text("verdict"))
        })
        .collect()
}

#[test]
fn what_deltaftl_computes_holds_without_a_trace() {
    let report = |figure| run(&["reproduce", "delta-ftl", "--figure", figure, "--json"]).json();
    for (figure, id, numbers) in [("4.1", "D10", 6), ("table1", "D11", 6), ("5", "D14", 2)] {
        let found = verdicts(&report(figure), id);
        assert_eq!(found.len(), numbers);
        for (name, verdict) in found {
            assert_eq!(verdict, "holds", "{id}: {name}");
        }
    }
}

#[test]
fn collections_fall_as_far_as_content_is_local_on_a_small_device() {
    let small = [
        "reproduce",
        "delta-ftl",
        "--scale",
        "0.1",
        "--json",
        "--figure",
    ];
    let report = run(&[&small[..], &["6"]].concat()).json();
    assert!(report["calibration"].is_null());
    let runs = report["runs"].as_object().unwrap();
    for trace in ["f1", "c3"] {
        let victims = ["plain", "rc50", "rc20"].map(|system| {
            runs[&format!("{trace}/{system}")]["victims"]
                .as_f64()
                .unwrap()
        });
        assert!(victims.is_sorted_by(|a, b| a > b), "{trace}: {victims:?}");
    }
    assert!(report["sensitivity"].is_null());
}

#[test]
fn bvssds_example_returns_to_before_and_after() {
    let report = run(&[
        "reproduce",
        "bvssd",
        "--scale",
        "0.1",
        "--figure",
        "1",
        "--json",
    ])
    .json();
    for (name, verdict) in verdicts(&report, "B11") {
        assert_eq!(verdict, "holds", "{name}");
    }
}

#[test]
fn a_search_answers_the_setting_that_reaches_its_target() {
    let text = include_str!("../../../../papers/bvssd/experiment.toml");
    let begin = text.find("[[search]]").unwrap();
    let head = text[..begin].replace("0.0625", "0.01");
    let search = r#"
[[search]]
name = "cost"
run = "bvssd-cello99/direct"
setting = "history.field_time"
unit = "ns"
from = 1
to = 1000000
measure = "100 * (write_mean_us@cost / write_mean_us@bvssd-cello99/plain - 1)"
target = 20
tolerance = 1

[[check]]
id = "X"
figures = ["x"]
claim = "A search"
source = "none"
kind = "exact"
item = [
    { name = "reached", measure = "100 * (write_mean_us@cost / write_mean_us@bvssd-cello99/plain - 1)", within = [19, 21] },
    { name = "setting", measure = "setting@cost", within = [1, 999999] },
]
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search.toml");
    std::fs::write(&path, format!("{head}{search}")).unwrap();
    let report = run(&["reproduce", path.to_str().unwrap(), "--json"]).json();
    for (name, verdict) in verdicts(&report, "X") {
        assert_eq!(verdict, "holds", "{name}: {}", report["runs"]["cost"]);
    }
    let missing = run(&["reproduce", "missing.toml"]).fails(1);
    assert!(missing.starts_with("missing.toml: "), "{missing}");
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    let paper = run(&["reproduce", "i-cache"]).fails(2);
    assert_eq!(
        paper,
        "there is no experiment 'i-cache'; expected one of ca-ssd, delta-ftl, bvssd, combined, i-cash, \
         i-cash-control"
    );
    let figure = run(&["reproduce", "ca-ssd", "--figure", "9"]).fails(2);
    assert!(
        figure.contains("belongs to figure '9'; expected one of 2, 3, 4, 6, 7a"),
        "{figure}"
    );
    let scale = run(&["reproduce", "ca-ssd", "--scale", "0"]).fails(2);
    assert_eq!(scale, "scale 0: expected a number above 0 and at most 1");
}

/// A capture and a profile on a device sized from each, as in `papers/combined`.
const SMALL: &str = r#"
name = "small"
title = "t"
source = "s"
traces = ["sqlite-bytes", "tpc-c-5vm"]
system.ca-ssd = { preset = "ca-ssd" }
system.delta-ftl = { preset = "delta-ftl" }
system.compress = { preset = "compress" }
system.combined = { preset = "combined", set = ["history.enabled=false"] }
system.window = { preset = "combined", set = ["history.reserve=99%", "history.on_pressure=enospc"] }
workload = [
    { id = "{capture}", captures = ["sqlite-bytes"], device = "auto", systems = ["ca-ssd", "delta-ftl", "compress", "combined"] },
    { id = "{profile}", profiles = ["tpc-c-5vm"], scale = 0.02, device = "auto", set = ["codec.ratio=codec"], systems = ["ca-ssd", "delta-ftl", "compress", "combined"] },
    { id = "window", profiles = ["tpc-c-5vm"], scale = 0.02, device = "auto", set = ["codec.ratio=codec", "device.space.over_provisioning=50%", "history.min_window=100s"], systems = ["window"] },
]
[[check]]
id = "C1"
figures = ["1"]
claim = "c"
source = "s"
kind = "shape"
item = [
    { name = "{trace}", measure = "programs@{trace}/combined / min(programs@{trace}/ca-ssd, programs@{trace}/delta-ftl, programs@{trace}/compress)", within = [0, 1.03] },
    { name = "window", measure = "window_h@window/window * 3600", within = [2, 3] },
]
[[check]]
id = "C2"
figures = ["2"]
claim = "c"
source = "s"
kind = "shape"
item = [{ name = "small", measure = "programs@tpc-c-5vm/combined / programs@tpc-c-5vm/ca-ssd", within = [0, 1.03] }]
"#;

#[test]
fn the_combined_system_programs_no_more_than_the_best_of_its_parts() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("small.toml");
    std::fs::write(&file, SMALL).unwrap();
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
    let file = file.to_str().unwrap();
    let report = run(&["reproduce", file, "--captures", captures, "--json"]).json();
    let found = verdicts(&report, "C1");
    assert_eq!(found.len(), 3);
    for (name, verdict) in found {
        assert_eq!(verdict, "holds", "{name}: {report}");
    }
}

#[test]
fn i_cash_finds_sysbenchs_shares_and_writes_least_on_a_small_array() {
    let exact = run(&["reproduce", "i-cash", "--figure", "tables", "--json"]).json();
    let found = verdicts(&exact, "I12");
    assert_eq!(found.len(), 8);
    assert!(found.iter().all(|(_, verdict)| verdict == "holds"));
    let small = [
        "reproduce",
        "i-cash",
        "--scale",
        "0.01",
        "--json",
        "--figure",
    ];
    let report = run(&[&small[..], &["sysbench"]].concat()).json();
    let figure = |system: &str, name: &str| {
        report["runs"][format!("sysbench/{system}")][name]
            .as_f64()
            .unwrap()
    };
    assert!((75.0..90.0).contains(&figure("i-cash", "associates_percent")));
    let writes = ["lru-cache", "dedup-cache", "pure-ssd", "i-cash"];
    let writes = writes.map(|system| figure(system, "ssd_writes"));
    assert!(writes.is_sorted_by(|a, b| a > b), "{writes:?}");
    assert!(figure("i-cash", "iops") > figure("lru-cache", "iops"));
    assert_eq!(figure("raid0", "ssd_writes"), 0.0);
}

#[test]
fn captures_are_asked_for_where_they_are_missing() {
    let figure = ["reproduce", "combined", "--figure", "captures"];
    let refused = run(&figure);
    assert_eq!(refused.code, 1);
    assert!(
        refused
            .stderr
            .contains("expected --captures with the directory of"),
        "{}",
        refused.stderr
    );
    let elsewhere = run(&[&figure[..], &["--captures", "nowhere"]].concat());
    assert_eq!(elsewhere.code, 1);
    assert!(elsewhere.stderr.contains(".fiu.xz"), "{}", elsewhere.stderr);
}
