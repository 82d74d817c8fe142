//! Fits of traces: made, replayed, explained.

use crate::program::{Place, fiu, msr};

#[test]
fn a_fit_is_a_profile_like_any_other() {
    let place = Place::new();
    place.write("mail.fiu", &fiu());
    let fit = "trace fit mail.fiu -o fit.toml --seeds 2 --json --jobs";
    let args = |jobs| {
        let fit: Vec<&str> = fit.split(' ').collect();
        [&fit[..], &[jobs, "--force"]].concat()
    };
    let one = place.run(&args("1")).json();
    let text = std::fs::read_to_string(place.path("fit.toml")).unwrap();
    assert_eq!(one, place.run(&args("2")).json(), "threads change nothing");
    assert_eq!(
        text,
        std::fs::read_to_string(place.path("fit.toml")).unwrap()
    );
    assert_eq!(one["name"], "mail");
    let met = one["figures"]
        .as_array()
        .unwrap()
        .iter()
        .all(|f| f["met"] == true);
    assert_eq!(one["met"], met);

    let info = place.run(&["trace", "info", "mail.fiu", "--json"]).json();
    let made = place
        .run(&["trace", "info", "profile:fit.toml", "--json"])
        .json();
    assert_eq!(info["footprint_bytes"], made["footprint_bytes"]);
    let listed = place
        .run(&["trace", "synth", "fit.toml", "-o", "again.parquet"])
        .ok();
    assert!(listed.starts_with("profile fit.toml, hash "), "{listed}");
    let hash = one["hash"].as_str().unwrap();
    assert!(listed.contains(hash), "{listed}");
}

#[test]
fn a_trace_without_content_is_fitted_on_the_plain_device() {
    let place = Place::new();
    place.write("t.csv", &msr());
    let text = place
        .run(&["trace", "fit", "t.csv", "-o", "t.toml", "--seeds", "1"])
        .ok();
    assert!(text.contains("plain    host"), "{text}");
    assert!(!text.contains("ca-ssd"), "{text}");
    let error = place
        .run(&["compare", "profile:t.toml", "--systems", "ca-ssd"])
        .fails(2);
    assert!(error.contains("content"), "{error}");
    let overlay = ["compare", "t.csv", "--content", "profile:t.toml"];
    let error = place.run(&overlay).fails(2);
    assert!(error.contains("found a fit"), "{error}");
}

#[test]
fn mistakes_are_explained() {
    let place = Place::new();
    place.write("mail.fiu", &fiu());
    for (args, wanted) in [
        ("- -o t.toml", "standard input does not allow"),
        ("mail.fiu -o mail.fiu", "is both trace and output"),
        ("mail.fiu -o t.toml --seeds 0", "number would be zero"),
        ("mail.fiu -o t.toml --tolerance 2", "tolerance"),
    ] {
        let args = format!("trace fit {args}");
        let error = place.run(&args.split(' ').collect::<Vec<_>>()).fails(2);
        assert!(error.contains(wanted), "{args}: {error}");
        assert!(!place.path("t.toml").exists(), "{args}");
    }
}
