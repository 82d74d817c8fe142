//! What `compare` and `simulate` refuse, and how they say it.

use crate::program::{Place, fiu, fiu_of, msr};

/// A place with traces of each kind.
fn place() -> Place {
    let place = Place::new();
    place
        .write("t.fiu", &fiu())
        .write("m.csv", &msr())
        .write("far.fiu", &fiu_of(100, 1 << 30))
        .write("bad.fiu", &format!("{}1 2 3 four\n", fiu_of(10, 0)));
    place
}

#[track_caller]
fn refused(args: &[&str], code: i32, parts: &[&str]) {
    let message = place().run(args).fails(code);
    for part in parts {
        assert!(message.contains(part), "{part:?} is missing in: {message}");
    }
}

#[test]
fn unknown_names_and_keys() {
    refused(
        &["compare", "t.fiu", "--systems", "plain,ca-sd"],
        2,
        &["ca-sd", "did you mean \"ca-ssd\"?"],
    );
    refused(
        &["compare", "t.fiu", "--device", "ca-ssd-5g"],
        2,
        &["no device", "did you mean"],
    );
    refused(
        &["compare", "t.fiu", "--set", "dedup.index_entry=3"],
        2,
        &["did you mean \"dedup.index_entries\"?"],
    );
    refused(
        &["compare", "t.fiu", "--set", "dedup.index_entries"],
        2,
        &["expected KEY=VALUE"],
    );
    refused(
        &["compare", "t.fiu", "--set", "device.gc.choices=3"],
        2,
        &["device.gc.choices"],
    );
    refused(
        &[
            "compare",
            "t.fiu",
            "--set",
            "device.gc.policy=d-choices",
            "--set",
            "device.gc.choices=4294967295",
        ],
        2,
        &["device.gc.choices", "expected 1 to 65536"],
    );
    refused(
        &[
            "compare",
            "t.fiu",
            "--set",
            "host.mode=closed",
            "--set",
            "host.queue_depth=4294967295",
        ],
        2,
        &["host.queue_depth", "expected at most 1048576"],
    );
    refused(
        &["compare", "t.fiu", "--set", "dedup.hash_time=61min"],
        2,
        &["dedup.hash_time", "expected at most one hour"],
    );
    refused(
        &["compare", "t.fiu", "--set", "host.time_scale=1e300"],
        1,
        &["simulated time has reached", "host.time_scale"],
    );
    refused(
        &["compare", "t.fiu", "--systems", "absent.toml"],
        1,
        &["cannot read absent.toml"],
    );
    refused(
        &[
            "simulate",
            "t.fiu",
            "--system",
            "plain",
            "--set",
            "dedup.index_entries=3",
        ],
        2,
        &["dedup.index_entries", "nothing that runs uses"],
    );
    refused(
        &["compare", "t.fiu", "--set", "host.think_time=1ms"],
        2,
        &["host.think_time"],
    );
}

#[test]
fn a_worn_out_device_ends_the_run_with_what_it_took() {
    // Each page of a small disk is written over and over.
    let place = place();
    let lines: String = (0..40_000u64)
        .map(|i| {
            format!(
                "{},h,0,Write,{},4096,0\n",
                128166372000000000 + i * 1000,
                i % 100 * 4096
            )
        })
        .collect();
    place.write("worn.csv", &lines);
    let run = [
        "simulate",
        "worn.csv",
        "--system",
        "plain",
        "--set",
        "device.geometry.endurance=3",
    ];
    let message = place.run(&run).fails(1);
    for part in [
        "request ",
        "is worn out after",
        "of host writes",
        "blocks are retired",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn keys_that_one_system_uses_are_fine() {
    place()
        .run(&["compare", "t.fiu", "--set", "dedup.index_entries=3"])
        .ok();
}

#[test]
fn contradictions() {
    refused(
        &["compare", "t.fiu", "--systems", "plain,plain"],
        2,
        &["two systems are called plain"],
    );
    refused(
        &["compare", "t.fiu", "--request-log", "log"],
        2,
        &["--request-log", "found 2"],
    );
    refused(
        &["compare", "t.fiu", "--timeline", "0s", "--out", "o"],
        2,
        &["--timeline 0"],
    );
    refused(&["compare", "-", "-"], 2, &["standard input"]);
    refused(
        &[
            "compare",
            "t.fiu",
            "--set",
            "host.seed=18446744073709551615",
            "--seeds",
            "2",
        ],
        2,
        &["64 bits"],
    );
    refused(
        &["compare", "t.fiu", "--seeds", "18446744073709551615"],
        2,
        &["--seeds", "expected at most 10000"],
    );
    refused(
        &["compare", "t.fiu", "--device-filter", "9,9"],
        2,
        &["'9,9'", "8,0"],
    );
    let usage = |args: &[&str]| {
        let ran = place().run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        ran.stderr
    };
    assert!(usage(&["compare", "t.fiu", "--timeline", "1s"]).contains("--out"));
    assert!(usage(&["compare", "t.fiu", "--timeline", "soon", "--out", "o"]).contains("soon"));
    assert!(usage(&["compare", "t.fiu", "--seeds", "0"]).contains("--seeds"));
    assert!(usage(&["compare", "t.fiu", "--format", "msrc"]).contains("unknown trace format"));
    assert!(usage(&["compare"]).contains("TRACE"));
    assert!(usage(&["simulate", "t.fiu"]).contains("--system"));
    assert!(usage(&["compair"]).contains("compare"));
}

#[test]
fn a_warm_up_of_everything() {
    // Ten requests, of which 99 % are ten.
    let place = place();
    place.write("short.fiu", &fiu_of(10, 0));
    let args = ["compare", "short.fiu", "--set", "host.warmup=0.99"];
    let message = place.run(&args).fails(2);
    assert!(
        message.contains("a warm-up of 0.99 leaves none of the 10 requests"),
        "{message}"
    );
    place
        .run(&["compare", "short.fiu", "--set", "host.warmup=0.9"])
        .ok();
    refused(
        &[
            "compare",
            "t.fiu",
            "--set",
            "host.limit=1",
            "--set",
            "host.warmup=50%",
        ],
        2,
        &["none of the 1 requests"],
    );
}

#[test]
fn names_that_name_nothing() {
    let place = place();
    place
        .write("s.toml", "base = \"ca-ssd\"\nname = \" \"\n")
        .write("d.toml", "base = \"ca-ssd-4g\"\nname = \"\"\n")
        .write("lines.toml", "base = \"plain\"\nname = \"a\\nb\"\n");
    for (args, file) in [
        (["--systems", "s.toml"], "s.toml:2"),
        (["--device", "d.toml"], "d.toml:2"),
    ] {
        let message = place.run(&["compare", "t.fiu", args[0], args[1]]).fails(2);
        assert!(
            message.contains(file) && message.contains("expected a name"),
            "{message}"
        );
    }
    let message = place
        .run(&["compare", "t.fiu", "--systems", "lines.toml"])
        .fails(2);
    assert!(message.contains("printable characters"), "{message}");
}

#[test]
fn every_seed_of_64_bits_runs() {
    let seed = u64::MAX.to_string();
    let set = format!("host.seed={seed}");
    let args = [
        "simulate", "t.fiu", "--system", "plain", "--set", &set, "--out", "o",
    ];
    let place = place();
    assert_eq!(place.run(&args).code, 0);
    let results = std::fs::read_to_string(place.path("o/results.json")).unwrap();
    assert!(results.contains(&format!("\"seed\": {seed}")), "{results}");
    place.run(&["rerun", "o/results.json"]).ok();
    refused(
        &[
            "compare",
            "t.fiu",
            "--set",
            "host.seed=18446744073709551616",
        ],
        2,
        &["host.seed", "a whole number from 0 to 2^64 - 1"],
    );
}

#[test]
fn traces_that_cannot_be_read() {
    refused(
        &["compare", "bad.fiu"],
        1,
        &["bad.fiu, line 11", "expected"],
    );
    refused(
        &["compare", "absent.fiu"],
        1,
        &["absent.fiu", "cannot open"],
    );
    refused(
        &["compare", "t.fiu", "--format", "msr"],
        1,
        &["t.fiu, line 1"],
    );
    let text = place().run(&["compare", "bad.fiu", "--lenient"]).ok();
    assert!(
        text.contains("1 malformed records of the trace were left out"),
        "{text}"
    );
}

#[test]
fn traces_that_do_not_fit() {
    refused(
        &["compare", "far.fiu", "--device", "ca-ssd-4g"],
        2,
        &[
            "far.fiu on system plain",
            "ca-ssd-4g",
            "--compact",
            "--device auto",
        ],
    );
    place()
        .run(&["compare", "far.fiu", "--device", "ca-ssd-4g", "--compact"])
        .ok();
    place().run(&["compare", "far.fiu"]).ok();
    refused(
        &["compare", "m.csv"],
        2,
        &["m.csv on system ca-ssd", "--content distinct"],
    );
    refused(
        &["compare", "t.fiu", "--set", "device.capacity=1MiB"],
        2,
        &["device auto exports 256 pages"],
    );
}

#[test]
fn places_that_cannot_be_written() {
    refused(&["compare", "t.fiu", "--out", "t.fiu/x"], 1, &["t.fiu/x"]);
    refused(
        &[
            "simulate",
            "t.fiu",
            "--system",
            "plain",
            "--request-log",
            "no/log",
        ],
        1,
        &["no/log"],
    );
    let place = place();
    let args = ["simulate", "t.fiu", "--system", "plain", "--request-log"];
    let message = place.run(&[&args[..], &["./t.fiu"]].concat()).fails(2);
    assert!(message.contains("this is the trace t.fiu"), "{message}");
    assert_eq!(std::fs::read_to_string(place.path("t.fiu")).unwrap(), fiu());
}
