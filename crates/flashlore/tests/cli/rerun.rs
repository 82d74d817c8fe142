//! `flashlore rerun`.

use std::fs;

use crate::program::{Place, fiu, msr};

/// A place with a trace and the results of many options.
fn place() -> Place {
    let place = Place::new();
    place
        .write("t.fiu", &fiu())
        .write("m.csv", &format!("{}nonsense\n", msr()));
    let json = place
        .run(&[
            "compare",
            "t.fiu",
            "m.csv",
            "--content",
            "distinct",
            "--lenient",
            "--seeds",
            "2",
            "--set",
            "host.warmup=0.2",
            "--set",
            "host.seed=7",
            "--set",
            "device.gc.policy=d-choices",
            "--json",
        ])
        .ok();
    place.write("results.json", &json);
    place
}

#[test]
fn a_repetition_is_equal() {
    let place = place();
    let text = place.run(&["rerun", "results.json"]).ok();
    assert_eq!(text.matches("equal  ").count(), 8, "{text}");
    assert!(
        text.contains("m.csv with system ca-ssd on device auto, seed 8"),
        "{text}"
    );

    fs::create_dir(place.path("moved")).unwrap();
    for name in ["t.fiu", "m.csv"] {
        fs::rename(place.path(name), place.path(&format!("moved/{name}"))).unwrap();
    }
    let message = place.run(&["rerun", "results.json"]).fails(1);
    assert!(message.contains("t.fiu: cannot open"), "{message}");
    place
        .run(&["rerun", "results.json", "--trace-dir", "moved"])
        .ok();
}

#[test]
fn joined_filtered_and_bundled_traces_are_repeated() {
    let place = place();
    let joined = place
        .run(&[
            "compare",
            "t.fiu",
            "t.fiu",
            "--join=timeline",
            "--device-filter",
            "8,0",
            "--device",
            "ca-ssd-4g",
            "--compact",
            "--json",
        ])
        .ok();
    place.write("joined.json", &joined);
    assert_eq!(place.run(&["rerun", "joined.json"]).ok().lines().count(), 2);
    let bundled = place
        .run(&[
            "simulate",
            "demo:sqlite-bytes",
            "--system",
            "ca-ssd",
            "--json",
        ])
        .ok();
    place.write("bundled.json", &bundled);
    place
        .run(&["rerun", "bundled.json", "--trace-dir", "anywhere"])
        .ok();
}

#[test]
fn assumed_content_is_drawn_again() {
    let place = Place::new();
    place.write("m.csv", &msr());
    place.run(&["trace", "convert", "m.csv", "m.parquet"]).ok();
    let compare = |trace: &str, content: &str| {
        let args = ["compare", trace, "--content", content, "--json"];
        place.run(&args).ok()
    };
    let zipf = compare("m.csv", "zipf:a=0.8,n=50,seed=3");
    place.write("zipf.json", &zipf);
    let text = place.run(&["rerun", "zipf.json"]).ok();
    assert_eq!(text.matches("equal  ").count(), 2, "{text}");
    let parsed: serde_json::Value = serde_json::from_str(&zipf).unwrap();
    let wanted = serde_json::json!({"zipf": {"exponent": 0.8, "values": 50, "seed": 3}});
    assert_eq!(parsed["runs"][1]["workload"]["content"], wanted);
    let dedup = |json: &str| {
        let results: serde_json::Value = serde_json::from_str(json).unwrap();
        results["runs"][1]["dedup"].clone()
    };
    assert_eq!(
        dedup(&compare("m.parquet", "zipf:a=0.8,n=50,seed=3")),
        dedup(&zipf)
    );
    assert_ne!(
        dedup(&compare("m.csv", "zipf:a=0.8,n=50,seed=4")),
        dedup(&zipf)
    );
    assert_eq!(
        dedup(&compare("m.csv", "zipf:a=0")),
        dedup(&compare("m.csv", "distinct"))
    );
    let text = place
        .run(&["compare", "m.csv", "--content", "uniform:n=9"])
        .ok();
    assert!(
        text.contains("Content is assumed: drawn for each page write (uniform:n=9,seed=0)."),
        "{text}"
    );
    let message = place
        .run(&["compare", "m.csv", "--content", "zipf:a=0.8"])
        .fails(2);
    assert!(message.contains("lacks n"), "{message}");
}

#[test]
fn a_changed_trace_is_noticed() {
    let place = place();
    place.write("t.fiu", &fiu().replacen(" 8 W ", " 8 R ", 1));
    let message = place.run(&["rerun", "results.json"]).fails(1);
    assert!(
        message.contains("t.fiu") && message.contains("SHA-256"),
        "{message}"
    );
}

#[test]
fn a_changed_result_is_named() {
    let place = place();
    let mut results: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.path("results.json")).unwrap()).unwrap();
    results["runs"][3]["gc"]["victims"] = 1.into();
    place.write("results.json", &results.to_string());
    let ran = place.run(&["rerun", "results.json"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains("DIFFERENT") && ran.stdout.contains("    gc.victims: 1 against "),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("1 of 8 runs differ"), "{}", ran.stderr);
}

#[test]
fn unknown_keys_are_refused() {
    let place = place();
    let text = fs::read_to_string(place.path("results.json")).unwrap();
    for pointer in [
        "",
        "/runs/0",
        "/runs/0/gc",
        "/runs/0/workload/read",
        "/runs/0/configuration/host",
    ] {
        let mut results: serde_json::Value = serde_json::from_str(&text).unwrap();
        results.pointer_mut(pointer).unwrap()["surprise"] = 1.into();
        place.write("more.json", &results.to_string());
        let message = place.run(&["rerun", "more.json"]).fails(1);
        assert!(
            message.contains("unknown field `surprise`"),
            "{pointer}: {message}"
        );
    }
}

#[test]
fn files_that_are_no_results_are_refused() {
    let place = Place::new();
    place
        .write("a.json", "{\"version\": \"0\"")
        .write("b.json", "{\"version\": \"0\", \"runs\": []}");
    assert!(
        place
            .run(&["rerun", "absent.json"])
            .fails(1)
            .contains("cannot read absent.json")
    );
    assert!(
        place
            .run(&["rerun", "a.json"])
            .fails(1)
            .contains("a.json is not a results file")
    );
    assert!(place.run(&["rerun", "b.json"]).fails(2).contains("no runs"));
}
