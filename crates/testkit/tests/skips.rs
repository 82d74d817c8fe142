//! Continuous integration accepts listed skips alone, and the list is of skips that exist.

use std::ffi::OsString;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use flashlore_testkit::Skips;

const LIST: &str = "# A comment.\n\nno-moon: It is not always there.\n";

fn in_ci(variable: &str) -> Option<OsString> {
    (variable == "CI").then(|| "true".into())
}

fn nowhere(_: &str) -> Option<OsString> {
    None
}

/// Whether a skip is accepted; the complaint if not.
fn judged(skips: &Skips, name: &str) -> Result<(), String> {
    let skip = || skips.skip(name, "the telescope is not installed");
    catch_unwind(AssertUnwindSafe(skip)).map_err(|told| *told.downcast::<String>().unwrap())
}

#[test]
fn in_continuous_integration_a_skip_must_be_listed() {
    let skips = Skips::with_list(in_ci, LIST);
    assert_eq!(judged(&skips, "no-moon"), Ok(()));
    let complaint = judged(&skips, "no-telescope").unwrap_err();
    for part in [
        "the telescope is not installed",
        ".ci/run",
        "\"no-telescope\"",
        ".ci/skips.txt",
    ] {
        assert!(complaint.contains(part), "{part}: {complaint}");
    }
    // Part of a name is another name.
    assert!(judged(&skips, "no").is_err());
}

#[test]
fn elsewhere_every_skip_is_accepted() {
    for ci in [None, Some("false"), Some("")] {
        let environment = |variable: &str| ci.filter(|_| variable == "CI").map(OsString::from);
        let skips = Skips::with_list(environment, LIST);
        assert_eq!(judged(&skips, "no-telescope"), Ok(()), "{ci:?}");
    }
}

#[test]
fn accepted_skips_are_told_to_the_log() {
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skips");
    let _ = fs::remove_file(&log);
    let environment = |variable: &str| match variable {
        "FLASHLORE_SKIPS" => Some(log.clone().into_os_string()),
        other => in_ci(other),
    };
    let skips = Skips::with_list(environment, LIST);
    skips.skip("no-moon", "new\nmoon\n");
    skips.skip("no-moon", "clouds");
    assert!(judged(&skips, "no-telescope").is_err());
    let told = fs::read_to_string(&log).unwrap();
    assert_eq!(told, "no-moon: new moon\nno-moon: clouds\n");
}

#[test]
fn a_line_without_a_reason_is_refused() {
    for list in ["no-moon\n", "no-moon: \n"] {
        assert!(catch_unwind(|| Skips::with_list(nowhere, list)).is_err());
    }
}

/// Sources of the repository: a path from its root, and the text.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = ["crates", "python"].map(|part| root.join(part)).into();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(path).unwrap().map(|e| e.unwrap().path()));
        } else if path.extension().is_some_and(|e| e == "rs" || e == "py") {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            found.push((name, fs::read_to_string(path).unwrap()));
        }
    }
    assert!(found.len() > 100, "{} sources", found.len());
    found
}

#[test]
fn each_name_on_the_list_is_that_of_a_skip() {
    let own = [
        "crates/testkit/tests/skips.rs",
        "python/tests/test_skips.py",
    ];
    let mut sources = sources();
    sources.retain(|(name, _)| !own.contains(&name.as_str()));
    let skips = Skips::new(nowhere);
    let names: Vec<&str> = skips.names().collect();
    assert!(
        names.is_sorted_by(|a, b| a < b),
        "each name once, in order: {names:?}"
    );
    for name in names {
        // What calls for a skip, or in Python what makes one to call for.
        let named = |(_, text): &(String, String)| {
            ["skip(", "Skip("].iter().any(|call| {
                let mut calls = text.split(call).skip(1);
                calls.any(|rest| rest.trim_start().starts_with(&format!("\"{name}\"")))
            })
        };
        assert!(
            sources.iter().any(named),
            ".ci/skips.txt: no test skips because of {name}: remove the line"
        );
    }
}

#[test]
fn tests_skip_in_one_way_alone() {
    let may = [
        "crates/testkit/tests/skips.rs",
        "crates/testkit/src/skips.rs",
        "python/tests/skips.py",
        "python/tests/test_skips.py",
    ];
    for (name, text) in sources() {
        if may.contains(&name.as_str()) {
            continue;
        }
        for way in ["\"skipped: ", "pytest.skip("] {
            assert!(
                !text.contains(way),
                "{name}: {way:?}: call skip() of crates/testkit or of python/tests/skips.py, which judge by \
                 .ci/skips.txt"
            );
        }
    }
}
