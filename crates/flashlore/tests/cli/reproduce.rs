//! `flashlore reproduce`, at a scale that takes seconds: that it runs and how its report is built.

use serde_json::Value;

use crate::program::run;

#[test]
fn a_report_has_every_claim_with_its_verdicts() {
    let report = run(&["reproduce", "ca-ssd", "--quick", "--json"]).json();
    let claims = report["claims"].as_array().unwrap();
    let definition = include_str!("../../../../papers/ca-ssd/experiment.toml");
    assert_eq!(claims.len(), definition.matches("[[claim]]").count());
    for claim in claims {
        assert!(!claim["statement"].as_str().unwrap().is_empty());
        for verdict in claim["verdicts"].as_object().unwrap().values() {
            // What is generated is too small to be judged at this scale; what is computed is not.
            let possible = [
                "scaled",
                "contradictory",
                "not-judged",
                "reproduced",
                "holds",
            ];
            assert!(possible.contains(&verdict.as_str().unwrap()), "{claim}");
        }
        for item in claim["items"].as_array().unwrap() {
            assert!(!item["measured"].as_array().unwrap().is_empty());
            let identity = item["aspect"] == "identity";
            assert!(
                !identity || (item["inside"] == true && item["scaled"] == false),
                "{item}"
            );
        }
    }
    assert!(report["profiles"]["web"].as_str().unwrap().len() == 16);
    let reserve = report["calibration"]["value"].as_f64().unwrap();
    assert!((0.15..=0.22).contains(&reserve));
    // Every run on a device has its figures and the hash of its configuration.
    let runs = report["runs"].as_object().unwrap();
    for (name, hash) in report["configurations"].as_object().unwrap() {
        assert!(runs[name]["programs"].as_f64().unwrap() > 0.0, "{name}");
        assert!(!hash.as_str().unwrap().is_empty());
    }
    // A quick look has no variants; the whole has several.
    assert!(definition.matches("[[sensitivity.variant]]").count() > 3);
    assert!(report["sensitivity"].is_null());
}

#[test]
fn several_seeds_give_means_with_intervals_whose_whole_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    std::fs::write(&file, SMALL).unwrap();
    let command = [
        "reproduce",
        file.to_str().unwrap(),
        "--figure",
        "2",
        "--json",
    ];
    let measured = |seeds: &[&str]| {
        let report = run(&[&command[..], seeds].concat()).json();
        let item = &report["claims"][0]["items"][0];
        let figure = |name: &str| item["measured"][1][name].as_f64().unwrap();
        let of = (figure("low"), figure("mean"), figure("high"));
        (of, report["seeds"].clone())
    };
    let single = |seed: &str| measured(&["--seeds", "1", "--seed", seed]).0.1;
    let (found, seeds) = measured(&["--seeds", "2", "--seed", "3"]);
    assert_eq!(seeds, serde_json::json!([3, 4]));
    let (a, b) = (single("3"), single("4"));
    assert!((found.1 - (a + b) / 2.0).abs() < 1e-12);
    // Half of the 95 % interval of two values is 12.706 times half of their distance.
    let half = 12.706_204_736 * (a - b).abs() / 2.0;
    assert!(half > 0.0 && (found.2 - found.1 - half).abs() < 1e-9);
    assert!((found.1 - found.0 - half).abs() < 1e-9);
}

#[test]
fn one_figure_is_repeated_alone_and_alike_on_any_number_of_threads() {
    let figure = [
        "reproduce",
        "ca-ssd",
        "--figure",
        "6",
        "--scale",
        "0.02",
        "--seeds",
        "2",
    ];
    let alone = run(&[&figure[..], &["--jobs", "1"]].concat()).ok();
    let together = run(&[&figure[..], &["--jobs", "3"]].concat()).ok();
    assert_eq!(alone, together);
    for wanted in [
        "Calibrated: device.space.over_provisioning",
        "seeds 1, 2; means with 95 % intervals",
        "C8  ",
        " ± ",
    ] {
        assert!(alone.contains(wanted), "{alone}");
    }
    assert!(!alone.contains("C1  ") && !alone.contains("With other settings"));
    let other = run(&[&figure[..], &["--seed", "2"]].concat()).ok();
    assert_ne!(alone, other);
}

#[test]
fn statistics_need_no_calibration() {
    let command = [
        "reproduce",
        "ca-ssd",
        "--figure",
        "2",
        "--scale",
        "0.02",
        "--seeds",
        "1",
    ];
    let text = run(&command).ok();
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
    let wrong = SMALL.replace("falling = [\"1.03\", ", "falling = [\"0.01\", ");
    std::fs::write(file, wrong).unwrap();
    let command = ["reproduce", file, "--figure", "2", "--seeds", "1"];
    let told = run(&command).ok();
    assert!(
        told.contains("order: cause unknown") && told.contains("small: 1 claim (1 ours)."),
        "{told}"
    );
    let strict = run(&[&command[..], &["--strict"]].concat());
    assert_eq!(strict.code, 1);
    assert_eq!(
        strict.stderr,
        "error: claims with a number outside what is accepted, and broken identities: 1\n"
    );
    let small = run(&[&command[..], &["--strict", "--scale", "0.01"]].concat()).ok();
    assert!(small.contains("outside, scaled"), "{small}");
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
    assert_eq!(report["claims"].as_array().unwrap().len(), 1);
    assert!(report["sensitivity"].is_null());
    assert_eq!(report["seeds"], serde_json::json!([1]));
    let both = run(&[&quick[..], &["--scale", "0.5"]].concat()).fails(2);
    assert!(
        both.contains("'--quick' cannot be used with '--scale"),
        "{both}"
    );
}

#[test]
fn all_runs_the_papers_that_have_a_figure() {
    let text = run(&["reproduce", "all", "--figure", "3.3", "--seeds", "1"]).ok();
    assert!(
        text.contains("delta-ftl: ") && !text.contains("ca-ssd: "),
        "{text}"
    );

    let unknown = run(&["reproduce", "all", "--figure", "9.9"]).fails(2);
    assert!(
        unknown.starts_with("no claim belongs to figure '9.9'; expected one of 2, 3, 4, ")
            && unknown.contains("table3 of ca-ssd; "),
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
    assert_eq!(names, ["i-cash-control"]);
    assert_eq!(papers[0]["claims"], serde_json::json!([]));
    assert!(papers[0]["left_out"].as_array().unwrap().len() > 5);
    assert_eq!(document["failed"], serde_json::json!([]));
    let text = run(&all).ok();
    assert!(
        text.contains("Left out without --captures: 14 numbers, of K11"),
        "{text}"
    );
    assert!(
        text.contains("i-cash-control: nothing was judged."),
        "{text}"
    );
}

#[test]
fn the_failure_of_one_is_told_and_does_not_lose_the_others() {
    let all = [
        "reproduce",
        "all",
        "--figure",
        "table6",
        "--scale",
        "0.005",
        "--seeds",
        "1",
    ];
    let ran = run(&[&all[..], &["--captures", "nowhere", "--json"]].concat());
    assert_eq!(ran.code, 1);
    let first = "error: 1 of 2 experiments failed\ni-cash-control: ";
    assert!(ran.stderr.starts_with(first), "{}", ran.stderr);
    assert!(ran.stderr.contains(".fiu.xz"), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["papers"][0]["paper"], "i-cash");
    assert_eq!(document["failed"][0]["paper"], "i-cash-control");
    assert!(document["papers"][0]["claims"].as_array().unwrap().len() > 1);
}

#[test]
fn a_page_is_refused_before_anything_runs() {
    let refused = run(&["reproduce", "all", "--report", "page.html"]).fails(1);
    assert!(
        refused.starts_with("reproduce --report needs the Python package"),
        "{refused}"
    );
}

/// Whether the numbers of a claim are accepted, by their names.
fn accepted(report: &Value, id: &str) -> Vec<(String, Option<bool>)> {
    let claims = report["claims"].as_array().unwrap();
    let claim = claims.iter().find(|claim| claim["id"] == id).unwrap();
    let items = claim["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            (
                item["name"].as_str().unwrap().to_owned(),
                item["inside"].as_bool(),
            )
        })
        .collect()
}

#[test]
fn what_deltaftl_computes_holds_without_a_trace() {
    let report = |figure| {
        let command = [
            "reproduce",
            "delta-ftl",
            "--figure",
            figure,
            "--seeds",
            "1",
            "--json",
        ];
        run(&command).json()
    };
    for (figure, id, numbers) in [("3.3", "D10", 6), ("table1", "D11", 6), ("3", "D14", 2)] {
        let found = accepted(&report(figure), id);
        assert_eq!(found.len(), numbers);
        for (name, inside) in found {
            assert_eq!(inside, Some(true), "{id}: {name}");
        }
    }
}

#[test]
fn collections_fall_as_far_as_content_is_local_on_a_small_device() {
    let small = [
        "reproduce",
        "delta-ftl",
        "--scale",
        "0.05",
        "--seeds",
        "1",
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
        "--seeds",
        "1",
        "--json",
    ])
    .json();
    for (name, inside) in accepted(&report, "A6") {
        assert_eq!(inside, Some(true), "{name}");
    }
}

#[test]
fn a_search_answers_the_setting_that_reaches_its_target() {
    let definition = r#"
name = "search"
title = "t"
source = "s"
traces = []
system.plain = { preset = "plain" }
system.direct = { preset = "bvssd", set = ["queue.enabled=false"] }
[[workload]]
id = "{profile}"
profiles = ["bvssd-cello99"]
scale = 0.02
device = "bvssd-60g"
set = ["device.capacity=16GiB", "device.geometry.blocks_per_plane=1205"]
systems = ["plain", "direct"]
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
[[claim]]
id = "X"
places = ["x"]
statement = "A search"
source = "none"
kind = "ours"
item = [
    { name = "reached", measure = "100 * (write_mean_us@cost / write_mean_us@bvssd-cello99/plain - 1)", within = [19, 21], unit = "%" },
    { name = "setting", falling = ["999999", "setting@cost", "1"] },
]
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search.toml");
    std::fs::write(&path, definition).unwrap();
    let report = run(&[
        "reproduce",
        path.to_str().unwrap(),
        "--seeds",
        "1",
        "--json",
    ])
    .json();
    for (name, inside) in accepted(&report, "X") {
        assert_eq!(inside, Some(true), "{name}: {}", report["runs"]["cost"]);
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
        figure.contains("belongs to figure '9'; expected one of 2, 3, 4, 4.1, 4.2, 5.3, 6, 7a"),
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
[[claim]]
id = "C1"
places = ["1"]
statement = "c"
source = "s"
kind = "ours"
item = [
    { name = "{trace}", falling = ["1.03", "programs@{trace}/combined / min(programs@{trace}/ca-ssd, programs@{trace}/delta-ftl, programs@{trace}/compress)"] },
    { name = "window", measure = "window_h@window/window * 3600", within = [2, 3] },
]
[[claim]]
id = "C2"
places = ["2"]
statement = "c"
source = "s"
kind = "ours"
item = [{ name = "small", falling = ["1.03", "programs@tpc-c-5vm/combined / programs@tpc-c-5vm/ca-ssd"] }]
[sensitivity]
workloads = ["sqlite-bytes"]
systems = ["ca-ssd", "delta-ftl", "compress", "combined"]
column = []
variant = [
    { name = "more space", set = ["device.space.over_provisioning=40%"] },
    { name = "less space", set = ["device.space.over_provisioning=15%"] },
]
"#;

#[test]
fn the_combined_system_programs_no_more_than_the_best_of_its_parts() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("small.toml");
    std::fs::write(&file, SMALL).unwrap();
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
    let file = file.to_str().unwrap();
    let command = [
        "reproduce",
        file,
        "--captures",
        captures,
        "--seeds",
        "1",
        "--json",
    ];
    let report = run(&command).json();
    let found = accepted(&report, "C1");
    assert_eq!(found.len(), 3);
    for (name, inside) in found {
        assert_eq!(inside, Some(true), "{name}: {report}");
    }
    // Which claims are inside under which setting: a row each, with a field for each claim that the settings touch.
    let sensitivity = &report["sensitivity"];
    let names = sensitivity["rows"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|row| row[0].as_str().unwrap()).collect();
    assert_eq!(names, ["as defined", "more space", "less space"]);
    assert_eq!(sensitivity["claims"].as_array().unwrap().len(), 1);
    let inside = sensitivity["inside"].as_array().unwrap();
    assert_eq!(inside.len(), names.len());
    for row in inside {
        assert_eq!(row[1].as_array().unwrap().len(), 1, "{sensitivity}");
    }
}

#[test]
fn i_cash_finds_sysbenchs_shares_and_writes_least_on_a_small_array() {
    let exact = run(&["reproduce", "i-cash", "--figure", "table1", "--json"]).json();
    let found = accepted(&exact, "I12");
    assert_eq!(found.len(), 8);
    assert!(found.iter().all(|(_, inside)| *inside == Some(true)));
    let small = [
        "reproduce",
        "i-cash",
        "--scale",
        "0.01",
        "--seeds",
        "1",
        "--json",
        "--figure",
    ];
    let report = run(&[&small[..], &["6a"]].concat()).json();
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
    let figure = ["reproduce", "i-cash-control", "--figure", "captures"];
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

/// A profile that stands for a trace, with a number that the profile was fitted to.
const WITH_ORIGINAL: &str = r#"
name = "original"
title = "t"
source = "s"
traces = ["web"]
original = { web = "hand*.spc" }
system.plain = { preset = "plain" }
workload = [{ id = "{profile}", profiles = ["web"], scale = 0.01, device = "auto", systems = ["plain"], values = true }]
[[claim]]
id = "C1"
places = ["1"]
statement = "c"
source = "s"
kind = "measured"
fitted = "the profile was"
item = [{ name = "writes", measure = "page_writes@web/values", published = 4, tolerance = 1 }]
"#;

#[test]
fn a_trace_that_the_user_has_takes_the_place_of_its_profile() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let traces = folder.path().join("traces");
    std::fs::create_dir(&traces).unwrap();
    std::fs::write(path("original.toml"), WITH_ORIGINAL).unwrap();
    let definition = path("original.toml");
    let command = ["reproduce", &definition, "--seeds", "1", "--traces"];
    let directory = traces.to_str().unwrap();
    let refused = run(&[&command[..], &[directory]].concat()).fails(2);
    assert!(
        refused.ends_with("none of the traces that are known by name; expected one of hand*.spc"),
        "{refused}"
    );
    // The second part comes behind the first, whatever its name sorts before.
    std::fs::write(traces.join("hand10.spc"), "0,0,4096,w,2\n0,8,4096,r,3\n").unwrap();
    std::fs::write(traces.join("hand9.spc"), "0,0,4096,w,0\n0,80,8192,w,1\n").unwrap();
    let report = run(&[&command[..], &[directory, "--json"]].concat()).json();
    let requests = &report["workloads"][0]["requests"]["original"];
    assert_eq!(*requests, serde_json::json!(["hand9.spc", "hand10.spc"]));
    assert_eq!(report["claims"][0]["verdicts"]["size"], "reproduced");
    assert_eq!(report["claims"][0]["items"][0]["measured"][0]["mean"], 4.0);
    let both = run(&[&command[..], &[directory, "--scale", "0.5"]].concat()).fails(2);
    assert!(both.contains("cannot be used with"), "{both}");
}
