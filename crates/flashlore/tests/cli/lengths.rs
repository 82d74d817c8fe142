//! Where the lengths of encoded values come from: bytes beside a trace, of a profile, and R_c.

use serde_json::Value;

use crate::program::{Place, Ran, fiu, runs};

const PROFILE: &str = "profile:sysbench,scale=0.02";

/// A place with a trace of digests, and the workload of a profile with its pages.
fn place() -> Place {
    let place = Place::new();
    place.write("t.fiu", &fiu());
    let made = ["trace", "synth", "sysbench", "--scale", "0.02"];
    let files = ["-o", "s.parquet", "--pages", "s.pages.zst"];
    place.run(&[&made[..], &files].concat()).ok();
    place
}

fn compare(place: &Place, trace: &str, more: &[&str]) -> Ran {
    let args = [
        "compare",
        trace,
        "--systems",
        "compress,delta-ftl,combined",
        "--set",
        "history.enabled=false",
    ];
    place.run(&[&args[..], more].concat())
}

#[test]
fn pages_beside_a_trace_and_those_of_its_profile_give_the_same_lengths() {
    let place = place();
    let codec = ["--set", "codec.ratio=codec", "--json"];
    let direct = compare(&place, PROFILE, &codec).ok();
    let beside = compare(&place, "s.parquet", &codec).ok();
    let lz4 = [&codec[..], &["--set", "codec.algorithm=lz4"]].concat();
    let lz4 = runs(compare(&place, "s.parquet", &lz4).json());
    place.write("results.json", &beside);
    let (direct, beside) = (parsed(&direct), parsed(&beside));
    for (direct, beside) in direct.iter().zip(&beside) {
        for name in ["programs", "delta", "compress", "gc", "response_us"] {
            assert_eq!(direct[name], beside[name], "{name}");
        }
    }
    // Versions of a page of records differ little: nothing like what is drawn.
    let mean = |runs: &[Value]| runs[1]["delta"]["mean_rc"].as_f64().unwrap();
    assert!(mean(&beside) < 0.1, "{}", mean(&beside));
    assert!(mean(&lz4) > mean(&beside), "{}", mean(&lz4));
    let text = place.run(&["rerun", "results.json"]).ok();
    assert_eq!(text.matches("equal  ").count(), 3, "{text}");
}

fn parsed(json: &str) -> Vec<Value> {
    runs(serde_json::from_str(json).unwrap())
}

#[test]
fn ratios_of_a_trace_are_laid_over_it_and_repeat() {
    let place = place();
    let drawn = [
        "--set",
        "codec.ratio=trace",
        "--delta",
        "gaussian:mean=0.2,std=0.02",
        "--json",
    ];
    let json = compare(&place, "s.parquet", &drawn).ok();
    let run = &parsed(&json)[1];
    let mean = run["delta"]["mean_rc"].as_f64().unwrap();
    assert!((mean - 0.2).abs() < 0.002, "{mean}");
    place.write("results.json", &json);
    let text = place.run(&["rerun", "results.json"]).ok();
    assert_eq!(text.matches("equal  ").count(), 3, "{text}");
}

#[test]
fn ratios_frozen_into_a_trace_do_what_drawn_ones_do() {
    let place = place();
    let model = "gaussian:mean=0.3,std=0.1,seed=5";
    let convert = ["trace", "convert", "s.parquet", "f.parquet", "--delta"];
    let text = place.run(&[&convert[..], &[model]].concat()).ok();
    assert!(text.contains("pages written with R_c: "), "{text}");
    // A copy of the copy has them too.
    place
        .run(&["trace", "convert", "f.parquet", "g.parquet"])
        .ok();
    let ratio = ["--set", "codec.ratio=trace", "--json"];
    let with = |flags: &[&str], trace: &str| {
        let text = compare(&place, trace, &[&ratio[..], flags].concat()).ok();
        place.write("results.json", &text);
        parsed(&text)
    };
    let drawn = with(&["--delta", model], "s.parquet");
    let frozen = with(&[], "g.parquet");
    let rerun = place.run(&["rerun", "results.json"]).ok();
    assert_eq!(rerun.matches("equal  ").count(), 3, "{rerun}");
    let asked = with(&["--delta", "trace"], "f.parquet");
    for ((drawn, frozen), asked) in drawn.iter().zip(&frozen).zip(&asked) {
        for name in ["host", "programs", "delta", "gc", "response_us"] {
            assert_eq!(drawn[name], frozen[name], "{name}");
            assert_eq!(drawn[name], asked[name], "{name}");
        }
        assert_eq!(frozen["workload"]["delta"], "from_trace");
    }
    assert!(frozen[1]["delta"]["encoded"].as_u64().unwrap() > 100);
    // What a model draws is laid over what the trace has.
    let other = with(&["--delta", "gaussian:mean=0.1,std=0"], "f.parquet");
    assert_ne!(other[1]["delta"]["mean_rc"], frozen[1]["delta"]["mean_rc"]);
    let table = compare(&place, "f.parquet", &ratio[..2]).ok();
    assert!(!table.contains("Delta ratios are assumed"), "{table}");
}

#[test]
fn ratios_of_bytes_are_those_that_the_codec_gives() {
    let place = place();
    let convert = ["trace", "convert", "s.parquet", "c.parquet", "--delta"];
    place.run(&[&convert[..], &["codec"]].concat()).ok();
    let characterize = |flags: &[&str]| {
        let args = [&["trace", "characterize", "c.parquet", "--json"], flags].concat();
        place.run(&args).json()[0]["whole"]["compressibility"].clone()
    };
    let found = characterize(&["--pages", "s.pages.zst"]);
    let info = place.run(&["trace", "info", "c.parquet", "--json"]).json();
    let ratios = &info["delta_ratios"];
    assert_eq!(ratios["pages"], info["counts"]["writes"]["pages"]);
    assert_eq!(ratios["pages_without"], 0);
    assert_eq!(found["given"]["count"], ratios["pages"]);
    for name in ["p10", "p50", "p90"] {
        assert_eq!(found["given"][name], ratios[name], "{name}");
    }
    // First writes have R_c 1, silent ones next to none, and the others what characterize measures.
    let number = |of: &serde_json::Value, name: &str| of[name].as_f64().unwrap();
    let changed = number(&found["delta"], "count") * number(&found["delta"], "mean");
    let all = number(ratios, "pages") * number(ratios, "mean");
    assert!(all > changed, "{all} is not above {changed}");
    let none = place.run(&["trace", "info", "s.parquet", "--json"]).json();
    assert!(none["delta_ratios"].is_null());
    let cases: [(&[&str], &str); 4] = [
        (
            &["trace", "characterize", "s.parquet", "--delta", "trace"],
            "s.parquet has no R_c",
        ),
        (
            &["trace", "convert", "t.fiu", "x.fiu", "--delta", "codec"],
            "fiu has no place for; expected native output",
        ),
        (
            &["trace", "convert", "t.fiu", "x.parquet", "--delta", "codec"],
            "there is no file of pages t.pages.zst beside it",
        ),
        (
            &["trace", "convert", "t.fiu", "x.parquet", "--delta", "code"],
            "R_c 'code' is not known; expected trace or gaussian:mean=",
        ),
    ];
    for (args, wanted) in cases {
        let message = place.run(args).fails(2);
        assert!(message.contains(wanted), "{args:?}: {message}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let place = place();
    let codec = ["--set", "codec.ratio=codec"];
    let content = [&codec[..], &["--content", "distinct"]].concat();
    let copy = std::fs::read(place.path("s.pages.zst")).unwrap();
    std::fs::write(place.path("u.pages.zst"), copy).unwrap();
    place.write("u.fiu", &fiu());
    let cases: [(&str, &[&str], &str); 8] = [
        (
            "t.fiu",
            &codec,
            "there is no file of pages t.pages.zst beside it",
        ),
        ("u.fiu", &codec, "u.pages.zst"),
        (
            "s.parquet",
            &content,
            "the content that --content assumes has no bytes",
        ),
        ("demo:sqlite-bytes", &codec, "come without their pages"),
        (
            "profile:mail,scale=0.001",
            &codec,
            "the profile has no [similarity]",
        ),
        (
            "t.fiu",
            &["--set", "codec.ratio=trace"],
            "page writes have no R_c; lay one over them with `--delta gaussian:",
        ),
        (
            "t.fiu",
            &["--delta", "gaussian:mean=0.2,std=0.1"],
            "--delta gives page writes an R_c, which no system here reads",
        ),
        ("t.fiu", &["--set", "codec.ratio=gzip"], "codec.ratio"),
    ];
    for (trace, flags, wanted) in cases {
        let ran = compare(&place, trace, flags);
        let code = if trace == "u.fiu" { 1 } else { 2 };
        let message = ran.fails(code);
        assert!(message.contains(wanted), "{trace} {flags:?}: {message}");
    }
    let joined = ["t.fiu", "--join", "--set", "codec.ratio=codec"];
    let message = compare(&place, "u.fiu", &joined).fails(2);
    assert!(message.contains("several are joined"), "{message}");
    // A system that encodes nothing needs no bytes.
    let plain = ["compare", "t.fiu", "--systems", "plain,ca-ssd"];
    place.run(&[&plain[..], &codec].concat()).ok();
}
