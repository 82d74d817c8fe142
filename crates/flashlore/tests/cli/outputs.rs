//! What commands write: nothing is replaced unasked, mixed, or lost when writing fails.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::program::{Place, fiu, runs};

/// The names in a directory, sorted.
fn names(place: &Place, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(place.path(dir)).unwrap();
    let name = |entry: Result<fs::DirEntry, _>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Runs the program with files of at most 4 KiB, where longer ones cannot be written; the error it ends with.
fn cramped(place: &Place, args: &[&str]) -> String {
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_flashlore"))
        .args(args)
        .current_dir(place.path("."))
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot write "), "{message}");
    assert!(message.contains("File too large"), "{message}");
    message
}

#[test]
fn a_directory_with_results_is_refused_or_replaced_as_a_whole() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let compare = ["compare", "t.fiu", "--out", "out"];
    let timed = [&compare[..], &["--timeline", "100ms"]].concat();
    assert_eq!(place.run(&timed).code, 0);
    place.write("out/notes", "mine");
    let before = fs::read(place.path("out/results.json")).unwrap();
    let refused = place.run(&compare).fails(2);
    assert!(refused.contains("out holds results already"), "{refused}");
    assert!(refused.contains("--force"), "{refused}");
    let forced = [&compare[..], &["--force"]].concat();
    let failed = cramped(&place, &forced);
    assert!(failed.contains("results."), "{failed}");
    assert_eq!(fs::read(place.path("out/results.json")).unwrap(), before);
    assert!(place.path("out/timeline.csv").exists());
    assert_eq!(place.run(&forced).code, 0);
    // The older run's time line is not taken for one of the new run.
    let left = names(&place, "out");
    assert!(
        !left.iter().any(|name| name.starts_with("timeline")),
        "{left:?}"
    );
    assert!(left.contains(&"notes".to_string()) && !left.iter().any(|name| name.starts_with('.')));
}

#[test]
fn what_fails_leaves_no_directory_and_no_part_of_its_files() {
    let place = Place::new();
    fs::create_dir(place.path("other")).unwrap();
    place.write("t.fiu", &fiu()).write("other/notes", "mine");
    for (args, made) in [
        (&["compare", "t.fiu", "--out", "new/out"][..], "new"),
        (
            &["trace", "characterize", "t.fiu", "--out", "new/out"],
            "new",
        ),
        (&["man", "new/pages"], "new"),
    ] {
        cramped(&place, args);
        assert!(!place.path(made).exists(), "{args:?}");
        assert_eq!(place.run(args).code, 0, "{args:?}");
        fs::remove_dir_all(place.path(made)).unwrap();
    }
    cramped(&place, &["man", "other"]);
    assert_eq!(names(&place, "other"), ["notes"]);
}

#[test]
fn files_are_refused_replaced_and_kept() {
    let place = Place::new();
    place
        .write("t.fiu", &fiu())
        .write("out.parquet", "mine")
        .write("log.csv", "mine");
    let log = [
        "simulate",
        "t.fiu",
        "--system",
        "plain",
        "--request-log",
        "log.csv",
    ];
    let characterize = ["trace", "characterize", "t.fiu", "--out", "out"];
    assert_eq!(place.run(&characterize).code, 0);
    let commands: [(&[&str], &str); 4] = [
        (&["trace", "convert", "t.fiu", "out.parquet"], "out.parquet"),
        (&log, "log.csv"),
        (
            &[
                "trace",
                "synth",
                "mail",
                "--scale",
                "0.001",
                "-o",
                "out.parquet",
            ],
            "out.parquet",
        ),
        (&characterize, "out/summary.json"),
    ];
    for (command, file) in commands {
        let before = fs::read(place.path(file)).unwrap();
        let refused = place.run(command).fails(2);
        assert!(
            refused.contains("already") && refused.contains("--force"),
            "{refused}"
        );
        let forced = [command, &["--force"]].concat();
        cramped(&place, &forced);
        assert_eq!(fs::read(place.path(file)).unwrap(), before, "{command:?}");
        assert_eq!(place.run(&forced).code, 0, "{command:?}");
    }
    let left = names(&place, ".");
    assert!(
        !left.iter().any(|name| name.starts_with(".flashlore")),
        "{left:?}"
    );
}

#[test]
fn rerun_of_a_trace_is_told_what_it_expects() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    place.run(&["trace", "convert", "t.fiu", "t.parquet"]).ok();
    for trace in ["t.fiu", "t.parquet"] {
        let told = place.run(&["rerun", trace]).fails(1);
        assert!(
            told.contains(&format!("{trace} is not a results file: expected")),
            "{told}"
        );
        assert!(told.contains("flashlore compare"), "{told}");
        assert!(!told.contains("line 1 column"), "{told}");
    }
}

#[test]
fn a_device_without_room_to_collect_says_what_helps() {
    let place = Place::new();
    let compare = [
        "simulate",
        "demo:maildir",
        "--system",
        "plain",
        "--set",
        "device.part=tlc",
    ];
    let small = ["--set", "device.space.over_provisioning=7%"];
    let told = place.run(&[&compare[..], &small].concat()).fails(2);
    let (_, remedy) = told
        .split_once("--set device.space.over_provisioning=")
        .expect(&told);
    let (share, _) = remedy.split_once('%').unwrap();
    let larger = format!("device.space.over_provisioning={share}%");
    let helped = ["--set", &larger, "--set", "host.limit=100"];
    place.run(&[&compare[..], &helped].concat()).ok();
}

/// The findings of a comparison, by their names.
fn found(place: &Place, args: &[&str]) -> Vec<Value> {
    let json = place
        .run(&[&["compare"], args, &["--json"]].concat())
        .json();
    json["findings"].as_array().unwrap().clone()
}

#[test]
fn numbers_that_cannot_be_trusted_are_told_with_the_run() {
    let place = Place::new();
    let at_once: String = fiu()
        .lines()
        .map(|line| format!("0 {}\n", line.split_once(' ').unwrap().1))
        .collect();
    place.write("t.fiu", &fiu()).write("once.fiu", &at_once);
    let ids = |args: &[&str]| -> Vec<String> {
        let found = found(&place, args).into_iter();
        found
            .map(|finding| finding["id"].as_str().unwrap().to_string())
            .collect()
    };
    let has = |args: &[&str], id: &str| {
        let ids = ids(args);
        assert!(
            ids.iter().any(|known| known == id),
            "{id} in {ids:?} of {args:?}"
        );
    };
    has(&["once.fiu"], "arrives-at-once");
    has(&["t.fiu", "--set", "host.time_scale=0.01"], "saturated");
    has(&["t.fiu", "--set", "host.mode=closed"], "closed-loop");
    has(&["t.fiu", "--content", "distinct"], "content-assumed");
    has(&["t.fiu", "--systems", "plain,combined"], "ratio-drawn");
    has(&["t.fiu", "--set", "host.limit=50"], "no-erase");
    has(&["t.fiu"], "few-requests");
    has(&["t.fiu", "--seeds", "2"], "seeds-change-nothing");
    let single = ["demo:maildir", "--systems", "ca-ssd,caftl"];
    let closed = ["--set", "host.mode=closed", "--set", "host.limit=5000"];
    let single = [&single[..], &closed].concat();
    has(&single, "same-as");
    let offered = found(&place, &single);
    let sentence = |finding: &Value| finding["sentence"].to_string().contains("--coalesce joins");
    assert!(offered.iter().any(sentence), "{offered:?}");
    let joined = found(&place, &[&single[..], &["--coalesce"]].concat());
    assert!(joined.iter().all(|finding| finding["id"] != "same-as"));
    let text = place.run(&["compare", "once.fiu"]).ok();
    let line = text
        .lines()
        .find(|line| line.contains("response mean"))
        .unwrap();
    assert!(line.contains("%?"), "{text}");
    assert!(
        text.contains("Before you quote a number") && text.contains("arrive at one instant"),
        "{text}"
    );
}

#[test]
fn seeds_draw_profiles_anew_and_repeat() {
    let place = Place::new();
    let seeds = ["compare", "profile:mail,scale=0.002", "--systems", "plain"];
    let single = runs(place.run(&[&seeds[..], &["--json"]].concat()).json());
    let ran = place.run(&[&seeds[..], &["--seeds", "2", "--out", "out"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = fs::read_to_string(place.path("out/results.json")).unwrap();
    let results: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        results["seeds"].as_array().unwrap().len(),
        1,
        "one configuration"
    );
    let both = runs(results);
    // The first is the run of one seed, but for a device that holds both workloads.
    assert_eq!(both[0]["trace_files"], single[0]["trace_files"]);
    assert_eq!(both[0]["host"], single[0]["host"]);
    assert_ne!(
        both[0]["trace_files"][0]["sha256"],
        both[1]["trace_files"][0]["sha256"]
    );
    assert_eq!(both[0]["trace"], both[1]["trace"]);
    assert_ne!(both[0]["response_us"], both[1]["response_us"]);
    place.run(&["rerun", "out/results.json"]).ok();
}
