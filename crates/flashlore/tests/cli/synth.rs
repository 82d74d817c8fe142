//! Profiles: as traces, written to files, listed, and as content of other traces.

use std::fs;

use crate::program::{Place, fiu, msr, run, runs};

#[test]
fn a_profile_stands_where_a_trace_does() {
    let place = Place::new();
    let trace = "profile:mail,requests=3000,scale=0.01";
    let json = place.run(&["trace", "info", trace, "--json"]).json();
    assert_eq!(json["input"]["read"]["records"], 3000);
    let direct = place.run(&["compare", trace, "--json"]).ok();
    place.write("direct.json", &direct);
    let text = place.run(&["rerun", "direct.json"]).ok();
    assert_eq!(text.matches("equal  ").count(), 2, "{text}");

    let text = place
        .run(&[
            "trace",
            "synth",
            "mail",
            "--requests",
            "3000",
            "--scale",
            "0.01",
            "-o",
            "m.parquet",
        ])
        .ok();
    assert!(
        text.starts_with("profile mail, hash ")
            && text.ends_with(", scale 0.01, seed 1\n3000 records as native in m.parquet\n"),
        "{text}"
    );
    let written = runs(place.run(&["compare", "m.parquet", "--json"]).json());
    let direct = runs(serde_json::from_str(&direct).unwrap());
    for (direct, written) in direct.iter().zip(&written) {
        for name in ["host", "flash", "programs", "dedup", "gc", "response_us"] {
            assert_eq!(direct[name], written[name], "{name}");
        }
    }
}

#[test]
fn a_profile_of_ones_own_is_a_file() {
    let place = Place::new();
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../synth/profiles/homes-1d.toml"
    ))
    .unwrap();
    let spec = "profile:own.toml,requests=2000,scale=0.01";
    place.write("own.toml", &text);
    let json = place
        .run(&["simulate", spec, "--system", "ca-ssd", "--json"])
        .ok();
    place.write("own.json", &json);
    fs::create_dir(place.path("moved")).unwrap();
    fs::rename(place.path("own.toml"), place.path("moved/own.toml")).unwrap();
    let message = place.run(&["rerun", "own.json"]).fails(1);
    assert!(
        message.contains("cannot read the profile own.toml"),
        "{message}"
    );
    fs::rename(place.path("moved/own.toml"), place.path("own.toml")).unwrap();
    place
        .run(&["rerun", "own.json", "--trace-dir", "moved"])
        .ok();
    place.write("own.toml", &format!("{text}\n# another text\n"));
    let message = place.run(&["rerun", "own.json"]).fails(1);
    assert!(message.contains("is not the one"), "{message}");

    let message = place
        .run(&[
            "trace",
            "synth",
            "own.toml",
            "-o",
            "./own.toml",
            "--to",
            "fiu",
        ])
        .fails(2);
    assert!(message.contains("both profile and output"), "{message}");
    place.write("own.toml", &text.replace("writes = 0.9676", "writes = 1.9"));
    let message = place.run(&["trace", "info", "profile:own.toml"]).fails(2);
    assert!(
        message.contains("own.toml: requests.writes: found 1.9, expected a share"),
        "{message}"
    );
}

#[test]
fn the_values_of_a_profile_are_laid_over_a_trace() {
    let place = Place::new();
    place.write("m.csv", &msr()).write("t.fiu", &fiu());
    let compare = |content: &str| {
        place
            .run(&["compare", "m.csv", "t.fiu", "--content", content, "--json"])
            .ok()
    };
    let recorded = compare("profile:mail");
    place.write("overlay.json", &recorded);
    let text = place.run(&["rerun", "overlay.json"]).ok();
    assert_eq!(text.matches("equal  ").count(), 4, "{text}");
    let parsed: serde_json::Value = serde_json::from_str(&recorded).unwrap();
    let content = &parsed["runs"][0]["workload"]["content"]["named"];
    assert_eq!(content["name"], "profile:mail", "{content}");
    assert_eq!(content["parameters"]["seed"], "1");
    let of = |text: &str| runs(serde_json::from_str(text).unwrap());
    let (base, other) = (of(&recorded), of(&compare("profile:mail,seed=2")));
    assert_ne!(base[1]["dedup"], other[1]["dedup"]);
    assert_ne!(
        base[1]["dedup"],
        of(&compare("profile:homes-1d"))[1]["dedup"]
    );

    let hash = content["parameters"]["hash"].as_str().unwrap();
    place.write("changed.json", &recorded.replace(hash, "0123456789abcdef"));
    let message = place.run(&["rerun", "changed.json"]).fails(2);
    assert!(
        message.contains("is not the one that was used"),
        "{message}"
    );
}

#[test]
fn profiles_are_listed() {
    let text = run(&["trace", "profiles"]).ok();
    let json = run(&["trace", "profiles", "--json"]).json();
    let list = json.as_array().unwrap();
    assert_eq!(text.lines().count(), list.len());
    for (line, entry) in text.lines().zip(list) {
        for key in ["name", "hash", "description", "source"] {
            assert!(line.contains(entry[key].as_str().unwrap()), "{line} {key}");
        }
    }
    assert!(list.iter().any(|entry| entry["name"] == "mail"));
}

#[test]
fn mistakes_with_profiles_are_explained() {
    let place = Place::new();
    for (args, code, wanted) in [
        (
            &["trace", "info", "profile:male"][..],
            2,
            "or one of mail web",
        ),
        (
            &["compare", "profile:mail,speed=2"],
            2,
            "'speed=2' is no setting",
        ),
        (&["compare", "profile:absent.toml"], 1, "absent.toml"),
        (
            &["trace", "info", "profile:mail", "--format", "fiu"],
            2,
            "is no file",
        ),
        (
            &[
                "trace",
                "synth",
                "mail",
                "--requests",
                "9",
                "-o",
                "m.ssdsim",
            ],
            1,
            "content, which the format has no place for",
        ),
        (
            &["trace", "synth", "mail", "-o", "m.vscsi"],
            2,
            "not written as vscsi",
        ),
        (
            &["trace", "synth", "mail", "--scale", "0", "-o", "m.fiu"],
            2,
            "scale=0",
        ),
        (
            &["compare", "x", "--content", "profile:male"],
            2,
            "or one of mail web",
        ),
        (
            &["compare", "x", "--content", "zipfian"],
            2,
            "or profile:NAME[,seed=SEED]",
        ),
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{args:?}: {}", ran.stderr);
    }
    assert!(!place.path("m.ssdsim").exists());
    let args = [
        "trace",
        "synth",
        "mail",
        "--requests",
        "9",
        "-o",
        "m.ssdsim",
        "--drop-content",
    ];
    let text = place.run(&args).ok();
    assert!(
        text.contains("records that lost their content: 9"),
        "{text}"
    );
}

#[test]
fn a_workload_has_bytes() {
    let place = Place::new();
    let synth = |profile, more: &[&str]| {
        let mut args = vec!["trace", "synth", profile, "--scale", "0.005"];
        args.extend(more);
        place.run(&args)
    };
    let both = ["-o", "s.parquet", "--pages", "s.pages.zst"];
    let text = synth("sysbench", &both).ok();
    assert!(text.ends_with(" pages in s.pages.zst\n"), "{text}");
    let args = [
        "trace",
        "characterize",
        "s.parquet",
        "--pages",
        "s.pages.zst",
        "--json",
    ];
    let json = place.run(&args).json();
    let ratios = &json[0]["whole"]["compressibility"];
    let mean = |name: &str| ratios[name]["mean"].as_f64().unwrap();
    let (delta, alone) = (mean("delta"), mean("alone"));
    assert!((0.02..0.11).contains(&delta), "{delta}");
    assert!(alone > 1.8 * delta, "{alone} alone, {delta} as a delta");

    // Of two files that belong together none is there if one cannot be written.
    let message = synth("sysbench", &["-o", "t.parquet", "--pages", "/dev/full"]).fails(1);
    assert!(message.contains("/dev/full"), "{message}");
    assert!(!place.path("t.parquet").exists());

    for (profile, more, wanted) in [
        ("mail", both, "has no [similarity]"),
        (
            "sysbench",
            ["-o", "s.fiu", "--pages", "s.pages.zst"],
            "native output",
        ),
        (
            "sysbench",
            ["-o", "t.parquet", "--pages", "t.parquet"],
            "name another file",
        ),
    ] {
        let message = synth(profile, &more).fails(2);
        assert!(message.contains(wanted), "{message}");
    }
    assert!(!place.path("s.fiu").exists() && !place.path("t.parquet").exists());
}
