//! `bench`: what it prints, what it leaves alone.

use std::fs;

use crate::program::Place;

#[test]
fn a_volume_made_for_it_is_measured_and_gone() {
    let place = Place::new();
    for (pattern, reads, writes) in [
        ("randwrite", 0, 200),
        ("write", 0, 200),
        ("randread", 200, 0),
        ("read", 200, 0),
    ] {
        let size = [
            "bench",
            ".",
            "--size",
            "1MiB",
            "--operations",
            "200",
            "--depth",
            "2",
        ];
        let more = ["--pattern", pattern, "--json"];
        let ran = place.run(&[&size[..], &more].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(result["pattern"], pattern);
        let requests = |kind: &str| {
            let kinds = result["kinds"].as_array().unwrap();
            let found = kinds.iter().find(|k| k["kind"] == kind);
            found.map_or(0, |k| k["requests"].as_u64().unwrap())
        };
        assert_eq!((requests("read"), requests("write")), (reads, writes));
        assert_eq!(requests("flush"), u64::from(writes > 0));
        for kind in result["kinds"].as_array().unwrap() {
            assert!(kind["p50_ns"].as_u64() <= kind["p99_ns"].as_u64());
            assert!(kind["p999_ns"].as_u64() <= kind["max_ns"].as_u64());
        }
    }
    let left: Vec<_> = fs::read_dir(place.path("")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_volume_that_holds_something_is_overwritten_on_demand_alone() {
    let place = Place::new();
    fs::write(place.path("image.raw"), vec![7; 1 << 20]).unwrap();
    assert_eq!(place.run(&["create", "disk", "--size", "1MiB"]).code, 0);
    assert_eq!(place.run(&["import", "disk", "image.raw"]).code, 0);
    let bench = ["bench", "disk", "--operations", "50"];
    let message = place.run(&bench).fails(2);
    assert!(
        message.contains("would be overwritten: say --overwrite"),
        "{message}"
    );
    let read = [&bench[..], &["--pattern", "read"]].concat();
    let table = place.run(&read).ok();
    assert!(
        table.contains("requests/s") && table.contains("\nread "),
        "{table}"
    );
    let export = |name| {
        assert_eq!(place.run(&["export", "disk", name]).code, 0);
        fs::read(place.path(name)).unwrap()
    };
    assert!(export("before.raw") == vec![7; 1 << 20]);
    let mixed = ["--pattern", "mixed", "--overwrite", "--flush-every", "10"];
    let paced = ["--trims", "20%", "--rate", "5000"];
    let table = place.run(&[&bench[..], &mixed, &paced].concat()).ok();
    for said in ["\nwrite ", "\ntrim ", "\nflush ", "after its turn"] {
        assert!(table.contains(said), "{said}: {table}");
    }
    assert!(export("after.raw") != vec![7; 1 << 20]);
    place.run(&["check", "disk"]).ok();
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = Place::new();
    assert_eq!(place.run(&["create", "disk", "--size", "1MiB"]).code, 0);
    for (more, expected) in [
        (
            &["disk", "--size", "1MiB"][..],
            "disk holds a volume; --size and --system",
        ),
        (&["disk", "--block-size", "2MiB"], "the volume has 1048576"),
        (&["disk", "--block-size", "33MiB"], "expected 1 to 33554432"),
        (&["disk", "--depth", "1025"], "expected at most 1024"),
        (
            &["disk", "--depth", "64", "--block-size", "32MiB"],
            "1073741824 bytes in all",
        ),
        (
            &["disk", "--reads", "10%"],
            "--reads and --trims are for --pattern mixed alone",
        ),
        (
            &["disk", "--pattern", "mixed", "--trims", "60%"],
            "--reads and --trims are 0.5 and 0.6, expected at most 1 together",
        ),
        (&[".", "--size", "5000"], "expected a multiple of 4096"),
    ] {
        let message = place.run(&[&["bench"], more].concat()).fails(2);
        assert!(message.contains(expected), "{message}");
    }
    let message = place.run(&["bench", "nowhere"]).fails(1);
    assert!(
        message.contains("cannot make a directory in nowhere"),
        "{message}"
    );
    assert_eq!(place.run(&["bench", "disk", "--depth", "0"]).code, 2);
}
