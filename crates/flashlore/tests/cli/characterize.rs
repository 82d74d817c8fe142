//! `flashlore trace characterize`.

use flashlore_testkit::data;
use serde_json::Value;

use crate::program::{Place, fiu, fiu_of, msr, run};

#[test]
fn tables_and_json_tell_the_same() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let command = [
        "trace",
        "characterize",
        "t.fiu",
        "--capacity",
        "1MiB,4KiB",
        "--slice",
        "400ms",
    ];
    let text = place.run(&command).ok();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
    let json = place.run(&[&command[..], &["--json"]].concat()).json();
    let found = &json[0];
    assert_eq!(found["sources"][0]["records"], 4000);
    assert_eq!(found["workload"]["content"], "from_trace");
    assert_eq!(found["slices"].as_array().unwrap().len(), 4);
    assert_eq!(found["whole"]["footprint"]["pages"], 400);
    assert_eq!(found["whole"]["rate"]["windows"][1]["shortest_ns"], 0);
    let writes = &found["whole"]["popularity"]["writes"];
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
    let values: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "Values")
        .find(|line| line.starts_with("  writes"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(values[1], writes["accesses"].to_string());
    assert_eq!(values[2], writes["distinct"].to_string());
    assert!(
        line("trace ").contains("t.fiu (fiu, 4000 records)"),
        "{text}"
    );
    assert!(line("Slices of").contains("400.00 ms"), "{text}");
}

#[test]
fn counts_are_those_of_trace_info() {
    let json = run(&["trace", "characterize", "demo:sqlite-bytes", "--json"]).json();
    let info = run(&["trace", "info", "demo:sqlite-bytes", "--json"]).json();
    let whole = &json[0]["whole"];
    assert_eq!(
        whole["mix"]["writes"]["pages"],
        info["counts"]["writes"]["pages"]
    );
    assert_eq!(whole["footprint"]["pages"], info["footprint_units"]);
    assert_eq!(
        whole["kinds"]["silent"],
        info["content"]["counts"]["silent"]
    );
    let distinct = &info["content"]["counts"]["distinct_written"];
    assert_eq!(&whole["popularity"]["writes"]["distinct"], distinct);
}

#[test]
fn several_traces_are_one_only_when_joined() {
    let place = Place::new();
    place
        .write("a.fiu", &fiu_of(300, 0))
        .write("b.fiu", &fiu_of(200, 1000));
    let characterize = |flags: &[&str]| {
        let command = ["trace", "characterize", "a.fiu", "b.fiu", "--json"];
        place.run(&[&command[..], flags].concat())
    };
    let requests = |json: &Value| json["whole"]["arrivals"]["requests"].as_u64().unwrap();
    let apart = characterize(&[]).json();
    assert_eq!((requests(&apart[0]), requests(&apart[1])), (300, 200));
    let joined = characterize(&["--join"]).json();
    assert_eq!(joined.as_array().unwrap().len(), 1);
    assert_eq!(requests(&joined[0]), 500);
    let message = characterize(&["--out", "dir"]).fails(2);
    assert!(message.contains("--join"), "{message}");
    assert!(!place.path("dir").exists());
}

#[test]
fn devices_sampling_and_content_models_are_obeyed() {
    let place = Place::new();
    place.write("m.csv", &msr());
    let characterize = |flags: &[&str]| {
        place
            .run(&[&["trace", "characterize", "m.csv", "--json"], flags].concat())
            .json()
    };
    let all = characterize(&[]);
    assert_eq!(all[0]["devices"].as_array().unwrap().len(), 2);
    assert_eq!(
        all[0]["whole"]["popularity"]["writes"]["accesses"], 0,
        "no content"
    );
    let device = all[0]["devices"][0].as_str().unwrap();
    let one = characterize(&["--device", device]);
    assert_eq!(one[0]["records_left_out"], 250);
    assert_eq!(one[0]["whole"]["arrivals"]["requests"], 250);
    let sampled = characterize(&["--sample", "10%", "--content", "zipf:a=1,n=50"]);
    assert_eq!(sampled[0]["options"]["sample_rate"], 0.1);
    assert_eq!(
        sampled[0]["whole"]["popularity"]["writes"]["accesses"],
        1000
    );
    let delta = characterize(&["--delta", "gaussian:mean=0.35,std=0.1"]);
    let given = &delta[0]["whole"]["compressibility"]["given"];
    assert_eq!(given["count"], 1000);
    assert!(
        (given["mean"].as_f64().unwrap() - 0.35).abs() < 0.02,
        "{given}"
    );
}

#[test]
fn out_writes_tables() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    place
        .run(&["trace", "characterize", "t.fiu", "--out", "made/here"])
        .ok();
    let json = std::fs::read_to_string(place.path("made/here/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(summary["whole"]["arrivals"]["requests"], 4000);
    assert!(place.path("made/here/stack_distance.parquet").exists());
    place.write("file", "");
    let message = place
        .run(&["trace", "characterize", "t.fiu", "--out", "file"])
        .fails(1);
    assert!(message.contains("cannot write file"), "{message}");
}

#[test]
fn flags_that_mean_nothing_are_refused() {
    let place = Place::new();
    place.write("t.fiu", &fiu()).write("pages", "");
    let fails = |flags: &[&str]| {
        let ran = place.run(&[&["trace", "characterize", "t.fiu"], flags].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
        ran.stderr
    };
    assert!(fails(&["--sample", "0"]).contains("a share above 0"));
    assert!(fails(&["--sample", "2"]).contains("a share from 0 to 1"));
    assert!(fails(&["--slice", "0"]).contains("a duration above 0"));
    assert!(fails(&["--slice", "1w"]).contains("expected a duration"));
    assert!(fails(&["--capacity", "0"]).contains("a size above 0"));
    assert!(fails(&["--pages", "pages", "--content", "distinct"]).contains("--content"));
    let message = place
        .run(&["trace", "characterize", "t.fiu", "--pages", "pages"])
        .fails(1);
    assert!(
        message.contains("pages") && message.contains("expected"),
        "{message}"
    );
}

#[test]
fn pages_are_compressed_and_verified() {
    let Some((trace, pages)) = capture("sqlite-bytes") else {
        return;
    };
    let command = ["trace", "characterize", &trace, "--pages", &pages, "--json"];
    let json = run(&command).json();
    let found = &json[0]["whole"]["compressibility"];
    assert_eq!(found["pages"], 27_835, "every page write has bytes");
    let mean = |name: &str| found[name]["mean"].as_f64().unwrap();
    // Pages of a database are overwritten in place with little changed.
    assert!(mean("delta") < mean("alone"), "{found}");
    let message = run(&["trace", "characterize", "demo:maildir", "--pages", &pages]).fails(1);
    assert!(message.contains("MD5"), "{message}");
}

/// Trace and pages of a capture, if they are there.
fn capture(name: &str) -> Option<(String, String)> {
    let file = |ending: &str| {
        let path = data(&format!("captures/{name}.{ending}"))?;
        Some(path.display().to_string())
    };
    file("fiu.xz").zip(file("pages.zst"))
}

#[test]
fn a_profile_puts_its_values_on_a_trace_as_in_compare() {
    let place = Place::new();
    place.write("t.msr", &msr());
    let command = ["trace", "characterize", "t.msr", "--json", "--content"];
    let json = place
        .run(&[&command[..], &["profile:mail"]].concat())
        .json();
    let content = &json[0]["workload"]["content"];
    assert_eq!(content["named"]["name"], "profile:mail");
    let message = place
        .run(&[&command[..], &["profile:male"]].concat())
        .fails(2);
    assert!(message.contains("there is no profile 'male'"), "{message}");
}
