//! `flashlore reproduce`, at a scale that takes seconds: that it runs and how its report is built.

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
                "exact" | "shape" => &["holds", "differs"],
                "fitted" => &["fitted", "differs"],
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
fn strict_fails_when_something_differs() {
    let figure = ["reproduce", "ca-ssd", "--figure", "3", "--scale", "0.001"];
    run(&figure).ok();
    let strict = run(&[&figure[..], &["--strict"]].concat());
    assert_eq!(strict.code, 1);
    assert!(
        strict.stderr.contains("numbers that differ"),
        "{}",
        strict.stderr
    );
    assert!(strict.stdout.contains("differs"));
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    let paper = run(&["reproduce", "i-cash"]).fails(2);
    assert_eq!(
        paper,
        "there is no experiment 'i-cash'; expected one of ca-ssd, delta-ftl, bvssd"
    );
    let figure = run(&["reproduce", "ca-ssd", "--figure", "9"]).fails(2);
    assert!(
        figure.contains("belongs to figure '9'; expected one of 2, 3, 4, 6, 7a"),
        "{figure}"
    );
    let scale = run(&["reproduce", "ca-ssd", "--scale", "0"]).fails(2);
    assert_eq!(scale, "scale 0: expected a number above 0 and at most 1");
}
