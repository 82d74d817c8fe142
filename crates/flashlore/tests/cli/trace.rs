//! `flashlore trace info` and `flashlore trace convert`.

use crate::program::{Place, fiu, msr, run, runs};

#[test]
fn info_tells_what_a_trace_is() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let text = place.run(&["trace", "info", "t.fiu"]).ok();
    assert!(
        text.contains("fiu, compression none") && text.contains("400 pages"),
        "{text}"
    );
    let json = place.run(&["trace", "info", "t.fiu", "--json"]).json();
    assert_eq!(json["input"]["read"]["records"], 4000);
    assert_eq!(json["footprint_units"], 400);
    let json = run(&["trace", "info", "demo:maildir", "--json"]).json();
    assert_eq!(json["counts"]["writes"]["pages"], 68_297);
}

#[test]
fn a_converted_trace_gives_the_same_runs() {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let text = place.run(&["trace", "convert", "t.fiu", "t.parquet"]).ok();
    assert_eq!(text, "4000 records from fiu to native in t.parquet\n");
    place
        .run(&["trace", "convert", "t.parquet", "back", "--to", "fiu"])
        .ok();
    let results = |trace: &str| runs(place.run(&["compare", trace, "--json"]).json());
    let (text, native, back) = (results("t.fiu"), results("t.parquet"), results("back"));
    for (text, others) in text.iter().zip(native.iter().zip(&back)) {
        for name in [
            "host",
            "flash",
            "programs",
            "dedup",
            "gc",
            "response_us",
            "config_hash",
        ] {
            assert_eq!(text[name], others.0[name], "{name}");
            assert_eq!(text[name], others.1[name], "{name}");
        }
    }
}

#[test]
fn records_of_one_request_are_joined_when_asked() {
    let place = Place::new();
    let whole = run(&["trace", "info", "demo:maildir", "--json"]).json();
    let info = run(&["trace", "info", "demo:maildir", "--coalesce", "--json"]).json();
    let read = &info["input"]["read"];
    assert_eq!(read["records"], 19_080);
    assert_eq!(read["coalesced"], 68_297 - 19_080);
    for same in ["content", "footprint_units"] {
        assert_eq!(info[same], whole[same], "{same}");
    }
    assert_eq!(info["counts"]["writes"]["pages"], 68_297);

    // Joined while it is read, or before: the same requests, from text and from a native file that is read twice.
    for name in ["joined.fiu", "joined.parquet"] {
        let to = [
            "--to",
            if name.ends_with("fiu") {
                "fiu"
            } else {
                "native"
            },
        ];
        let convert = ["trace", "convert", "demo:maildir", name, "--coalesce"];
        let text = place.run(&[&convert[..], &to].concat()).ok();
        assert!(text.contains("joined with the one before: 49217"), "{text}");
    }
    place
        .run(&["trace", "convert", "demo:maildir", "single.parquet"])
        .ok();
    let closed = ["--set", "host.mode=closed", "--systems", "caftl", "--json"];
    let results = |args: &[&str]| {
        let json = place
            .run(&[&["compare"], args, &closed[..]].concat())
            .json();
        let run = &runs(json)[0];
        ["host", "flash", "programs", "dedup", "response_us"].map(|name| run[name].clone())
    };
    let joined = results(&["demo:maildir", "--coalesce"]);
    assert_eq!(results(&["joined.fiu"]), joined);
    assert_eq!(results(&["joined.parquet"]), joined);
    assert_eq!(results(&["single.parquet", "--coalesce"]), joined);
    assert_ne!(results(&["single.parquet"]), joined);

    let compared = [
        "compare",
        "single.parquet",
        "--coalesce=1us",
        "--systems",
        "plain",
    ];
    let text = place.run(&compared).ok();
    assert!(
        text.contains("adjacent addresses within 1us are joined"),
        "{text}"
    );
    let json = place.run(&[&compared[..], &["--json"]].concat()).ok();
    place.write("results.json", &json);
    place.run(&["rerun", "results.json"]).ok();
}

#[test]
fn conversion_refuses_what_it_cannot_do() {
    let place = Place::new();
    place.write("t.fiu", &fiu()).write("m.csv", &msr());
    let convert = |args: &[&str]| place.run(&[&["trace", "convert"], args].concat());
    let message = convert(&["t.fiu", "out.txt"]).fails(2);
    assert!(
        message.contains("out.txt") && message.contains("--to"),
        "{message}"
    );
    let message = convert(&["t.fiu", "out.vscsi"]).fails(2);
    assert!(
        message.contains("traces are not written as vscsi; expected one of fiu"),
        "{message}"
    );
    let message = convert(&["t.fiu", "out.fiu.xz"]).fails(2);
    assert!(message.contains("uncompressed"), "{message}");
    let message = convert(&["t.fiu", "./t.fiu"]).fails(2);
    assert!(message.contains("both input and output"), "{message}");
    let message = convert(&["t.fiu", "out.ssdsim"]).fails(1);
    assert!(
        message.contains("record 1") && message.contains("content"),
        "{message}"
    );
    let text = convert(&["t.fiu", "out.ssdsim", "--drop-content"]).ok();
    assert!(
        text.contains("records that lost their content: 4000"),
        "{text}"
    );
    let message = convert(&["m.csv", "out.fiu"]).fails(1);
    assert!(
        message.contains("record 1 cannot be written as fiu"),
        "{message}"
    );
    assert!(!place.path("out.fiu").exists());
    assert_eq!(convert(&["t.fiu", "x.fiu", "--format", "nonsense"]).code, 2);
}

#[test]
fn missing_and_damaged_traces_are_named() {
    let place = Place::new();
    let message = place.run(&["trace", "info", "absent.fiu"]).fails(1);
    assert!(message.starts_with("absent.fiu: cannot open"), "{message}");
    place
        .write("empty", "")
        .write("noise", "\u{1}\u{2} what is this\n");
    assert!(
        place
            .run(&["trace", "info", "empty"])
            .fails(1)
            .contains("empty")
    );
    assert!(
        place
            .run(&["trace", "info", "noise"])
            .fails(1)
            .contains("no known trace format")
    );
    let message = place.run(&["trace", "info", "demo:maidlir"]).fails(2);
    assert!(message.contains("demo:maildir"), "{message}");
}
