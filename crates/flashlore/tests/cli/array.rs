//! Arrays: made, filled, cloned, served, and what is said when a medium does not hold or is not there.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use crate::program::{Place, quiet};
use crate::served::Server;

const PAGE: usize = 4096;
const CREATE: [&str; 9] = [
    "create", "disk", "--size", "1MiB", "--system", "i-cash", "--fast", "ssd", "--slow",
];

/// A raw image of 1 MiB: 100 pages that resemble each other, the rest zero.
fn image() -> Vec<u8> {
    let mut image = vec![0; 1 << 20];
    for (number, page) in image.chunks_exact_mut(PAGE).take(100).enumerate() {
        let mut state = 7_u32;
        for byte in page.iter_mut() {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            *byte = (state >> 16) as u8;
        }
        page[40..44].copy_from_slice(&(number as u32).to_le_bytes());
    }
    image
}

/// An array `disk` on the files `ssd` and `hdd`, with that image in its first machine.
fn filled(more: &[&str]) -> Place {
    let place = Place::new();
    quiet(place.run(&[&CREATE[..], &["hdd"], more].concat()));
    fs::write(place.path("image"), image()).unwrap();
    let told = quiet(place.run(&["import", "disk", "image"]));
    assert!(told.contains("100 blocks are stored"), "{told}");
    place
}

#[test]
fn an_image_goes_in_is_cloned_and_comes_out() {
    let place = filled(&["--machines", "3", "--fast-size", "1MiB"]);
    let mut changed = image();
    changed[9 * PAGE + 17] ^= 1;
    fs::write(place.path("changed"), &changed).unwrap();
    let told = quiet(place.run(&["clone", "disk", "0", "1"]));
    let expected = "machine 1: 100 blocks are deltas, ";
    assert!(
        told.contains(expected) && told.contains("0 are whole, 156 are zeros"),
        "{told}"
    );
    let json = ["clone", "disk", "0", "2", "--image", "changed", "--json"];
    let json = place.run(&json).json();
    assert_eq!((&json["deltas"], &json["whole"]), (&100.into(), &0.into()));
    for (machine, expected) in [("0", &image()), ("1", &image()), ("2", &changed)] {
        quiet(place.run(&["export", "disk", "out", "--machine", machine]));
        assert!(
            fs::read(place.path("out")).unwrap() == *expected,
            "{machine}"
        );
        fs::remove_file(place.path("out")).unwrap();
    }
    let read = [
        "read",
        "disk",
        "--machine",
        "2",
        "--offset",
        "36904",
        "--length",
        "4",
    ];
    assert_eq!(place.run(&read).ok().as_bytes(), [9, 0, 0, 0]);
    let info = place.run(&["info", "disk", "--json"]).json();
    assert_eq!(info["answer"], "array");
    assert_eq!(info["machines"][2]["logical"], 100 * PAGE);
    assert_eq!(info["element"]["waiting"], 0);
    let text = place.run(&["info", "disk"]).ok();
    for line in [
        "\nfrozen places 0 B of 1016 KiB",
        "\ndirty        ",
        "\npassed by    0 B read and",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert!(
        text.contains("machine 2    1.0 MiB, 400 KiB in use, served as disk.2"),
        "{text}"
    );
    assert_eq!(
        place.run(&["check", "disk"]).ok(),
        "300 blocks hold something\n"
    );
    assert_eq!(
        place.run(&["scrub", "disk"]).ok(),
        "300 blocks read, 0 findings\n"
    );

    let message = place.run(&["clone", "disk", "0", "1"]).fails(2);
    assert!(message.contains("machine 1 holds 100 blocks"), "{message}");
    quiet(place.run(&["clone", "disk", "2", "1", "--overwrite"]));
    quiet(place.run(&["export", "disk", "out", "--machine", "1"]));
    assert!(fs::read(place.path("out")).unwrap() == changed);
}

#[test]
fn what_is_no_array_or_no_machine_is_said() {
    let place = filled(&[]);
    for args in [
        &["log", "disk"][..],
        &["snapshot", "create", "disk", "a"],
        &["snapshot", "list", "disk"],
        &["mark", "disk", "a"],
        &["recover", "disk", "--to", "now"],
        &["diff", "disk", "now", "now"],
        &["purge", "disk", "--all"],
        &["read", "disk", "--at", "now"],
        &["export", "disk", "out", "--at", "now"],
    ] {
        let message = place.run(args).fails(2);
        assert!(message.contains("keeps no history"), "{message}");
    }
    for (args, why) in [
        (
            &["resize", "disk", "--capacity", "2MiB"][..],
            "--capacity is for volumes",
        ),
        (&["dump", "disk"], "has two media"),
        (&["clone", "disk", "0", "0"], "clone of itself"),
        (
            &["clone", "disk", "0", "1"],
            "no machine 1, the last one is 0",
        ),
        (&["read", "disk", "--machine", "1"], "no machine 1"),
        (&["serve", "disk", "--memory", "1GiB"], "array.json"),
        (&["check", "disk", "--memory", "1GiB"], "array.json"),
    ] {
        let message = place.run(args).fails(2);
        assert!(message.contains(why), "{message}");
    }
    for args in [
        &["export", "disk", "out", "--slow-alone"][..],
        &["serve", "disk", "--slow-alone"],
    ] {
        let message = place.run(args).fails(1);
        assert!(message.contains("without ordered write-back"), "{message}");
    }
    quiet(place.run(&["create", "volume", "--size", "1MiB"]));
    for (args, why) in [
        (&["clone", "volume", "0", "1"][..], "this is a volume"),
        (&["read", "volume", "--machine", "0"], "this is a volume"),
        (
            &["export", "volume", "out", "--slow-alone"],
            "it is no array",
        ),
    ] {
        let message = place.run(args).fails(2);
        assert!(message.contains(why), "{message}");
    }
    assert!(!place.path("out").exists());
}

#[test]
fn what_cannot_be_made_leaves_nothing_behind() {
    let place = filled(&[]);
    let before = fs::read_dir(place.path("")).unwrap().count();
    fs::write(place.path("short"), vec![0; 4096]).unwrap();
    fs::write(place.path("used"), vec![9; 16 << 20]).unwrap();
    quiet(place.run(&["create", "volume", "--size", "1MiB"]));
    let array = |fast: &'static str, slow: &'static str| {
        vec![
            "create", "new", "--size", "1MiB", "--system", "i-cash", "--fast", fast, "--slow", slow,
        ]
    };
    for (code, args, why) in [
        (2, array("ssd", "new-hdd"), "ssd holds an array"),
        (
            2,
            array("new-ssd", "short"),
            "short has 4096 bytes, the array needs",
        ),
        (
            2,
            array("new-ssd", "used"),
            "used holds something: say --overwrite",
        ),
        (
            2,
            array("new-ssd", "volume/volume.flashlore"),
            "holds a volume",
        ),
        (
            2,
            array("same", "./same"),
            "cannot be the fast medium and the slow one",
        ),
        (1, array("new-ssd", "nowhere/hdd"), "No such file"),
        (
            1,
            array("new-ssd", "volume"),
            "neither a regular file nor a block device",
        ),
    ] {
        let message = place.run(&args).fails(code);
        assert!(message.contains(why), "{message}");
        assert!(
            !place.path("new").exists() && !place.path("new-ssd").exists(),
            "{args:?}"
        );
    }
    assert_eq!(fs::read_dir(place.path("")).unwrap().count(), before + 3);
    assert!(fs::read(place.path("used")).unwrap() == vec![9; 16 << 20]);
    for (more, why) in [
        (&["--machines", "0"][..], "0 virtual machines"),
        (&["--machines", "257"], "257 virtual machines"),
        (
            &["--fast-size", "8KiB"],
            "--fast-size is 8KiB, expected at least 24KiB",
        ),
        (
            &["--delta-ram", "1KiB"],
            "--delta-ram is 1KiB, expected at least 8KiB",
        ),
        (&["--capacity", "1MiB"], "for volumes"),
        (&["--min-window", "1h"], "for volumes"),
    ] {
        let message = place
            .run(&[array("a", "b"), more.to_vec()].concat())
            .fails(2);
        assert!(message.contains(why), "{message}");
    }
    for (args, why) in [
        (
            &["create", "new", "--size", "1MiB", "--system", "i-cash"][..],
            "needs --fast FILE",
        ),
        (
            &["create", "new", "--size", "1MiB", "--ordered"],
            "for --system i-cash",
        ),
        (
            &[
                "create", "new", "--size", "1000", "--system", "i-cash", "--fast", "a", "--slow",
                "b",
            ],
            "4096",
        ),
    ] {
        let message = place.run(args).fails(2);
        assert!(message.contains(why), "{message}");
    }
    for system in ["plain", "i-cash"] {
        let media: &[&str] = if system == "plain" {
            &[]
        } else {
            &["--fast", "a", "--slow", "b"]
        };
        let args = ["create", "disk", "--size", "1MiB", "--system", system];
        let message = place.run(&[&args[..], media].concat()).fails(1);
        assert!(message.contains("is there already"), "{message}");
    }
    assert!(!place.path("new").exists() && !place.path("a").exists() && !place.path("b").exists());
    quiet(place.run(&[array("new-ssd", "used"), vec!["--overwrite"]].concat()));
    assert_eq!(
        place.run(&["check", "new"]).ok(),
        "0 blocks hold something\n"
    );
    assert_eq!(
        place.run(&["check", "disk"]).ok(),
        "100 blocks hold something\n"
    );
}

#[test]
fn served_machines_are_exports_and_outlive_a_killed_server() {
    let place = filled(&["--machines", "2"]);
    let server = Server::start(&place, &[]);
    for (export, size) in [("", 1 << 20), ("disk", 1 << 20), ("disk.1", 1 << 20)] {
        assert_eq!(server.open(export).size, size);
    }
    for unknown in ["disk.2", "disk@now", "other"] {
        assert!(
            crate::nbd_client::Client::open(&server.socket, unknown).is_err(),
            "{unknown}"
        );
    }
    let message = place.run(&["check", "disk"]).fails(1);
    assert!(message.contains("in use"), "{message}");
    let message = place.run(&["import", "disk", "image"]).fails(1);
    assert!(message.contains("is served"), "{message}");
    // Cloned while it is served, by its clients' side.
    quiet(place.run(&["clone", "disk", "0", "1"]));
    let mut client = server.open("disk.1");
    assert_eq!(
        client.read(0, 2 * PAGE as u32).unwrap(),
        Ok(image()[..2 * PAGE].to_vec())
    );
    assert_eq!(client.write(5, b"flushed").unwrap(), 0);
    assert_eq!(client.trim(PAGE as u64, PAGE as u32).unwrap(), 0);
    assert_eq!(client.flush().unwrap(), 0);
    assert_eq!(client.write(100, b"perhaps").unwrap(), 0);
    assert_eq!(
        client.write((1 << 20) - 1, b"12").unwrap(),
        28,
        "behind the end there is no space"
    );
    let info = place.run(&["info", "disk", "--json"]).json();
    assert_eq!(info["clients"][0], 1);
    server.kill();

    assert_eq!(
        place.run(&["check", "disk"]).ok_unclosed(),
        "199 blocks hold something\n"
    );
    let server = Server::start(&place, &["--read-only"]);
    let mut client = server.open("disk.1");
    let mut expected = image()[..3 * PAGE].to_vec();
    expected[5..12].copy_from_slice(b"flushed");
    expected[PAGE..2 * PAGE].fill(0);
    let mut found = client.read(0, 3 * PAGE as u32).unwrap().unwrap();
    if found[100..107] == *b"perhaps" {
        expected[100..107].copy_from_slice(b"perhaps");
    }
    assert!(found == expected);
    assert_eq!(client.write(0, b"x").unwrap(), 1, "EPERM");
    found = server.open("disk").read(0, PAGE as u32).unwrap().unwrap();
    assert!(found == image()[..PAGE]);
    server.stop();
}

#[test]
fn rot_is_an_error_for_the_blocks_that_need_it_and_is_written_over() {
    let place = filled(&["--machines", "2", "--fast-size", "1MiB"]);
    quiet(place.run(&["clone", "disk", "0", "1"]));
    let bytes = fs::read(place.path("ssd")).unwrap();
    // The copy of page 9, and what is a delta from it.
    let at = bytes
        .chunks_exact(PAGE)
        .position(|page| *page == image()[9 * PAGE..10 * PAGE]);
    let at = (at.expect("it is on the fast medium") * PAGE + 2000) as u64;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(place.path("ssd"))
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[!byte[0]], at).unwrap();

    let affected = place.run(&["check", "disk", "--affected"]);
    assert_eq!((affected.code, affected.stdout.as_str()), (1, "0 9\n1 9\n"));
    let report = place.run(&["check", "disk", "--json"]);
    assert!(
        report.stdout.contains("\"clean\":false"),
        "{}",
        report.stdout
    );
    let scrubbed = place.run(&["scrub", "disk"]);
    let expected = "200 blocks read, 2 findings\n";
    assert_eq!(
        (scrubbed.code, scrubbed.stdout.contains(expected)),
        (1, true)
    );
    let message = place.run(&["export", "disk", "out"]).fails(1);
    assert!(
        message.contains("block 9 of virtual machine 0 cannot be read"),
        "{message}"
    );
    let skipped = quiet(place.run(&["export", "disk", "out", "--skip-bad"]));
    assert!(skipped.contains("1 pages could not be read"), "{skipped}");

    let server = Server::start(&place, &[]);
    for (export, machine) in [("disk", 0), ("disk.1", 1)] {
        let mut client = server.open(export);
        for number in 0..100_u64 {
            let read = client.read(number * PAGE as u64, PAGE as u32).unwrap();
            let at = number as usize * PAGE;
            match number {
                9 => assert_eq!(read, Err(5), "EIO of machine {machine}"),
                _ => assert!(read == Ok(image()[at..at + PAGE].to_vec()), "{number}"),
            }
        }
        assert_eq!(client.write(9 * PAGE as u64 + 7, b"part").unwrap(), 5);
        assert_eq!(client.write(9 * PAGE as u64, &[8; PAGE]).unwrap(), 0);
        assert_eq!(client.flush().unwrap(), 0);
        assert_eq!(
            client.read(9 * PAGE as u64, PAGE as u32).unwrap(),
            Ok(vec![8; PAGE])
        );
    }
    server.stop();
    assert_eq!(
        place.run(&["check", "disk"]).ok(),
        "200 blocks hold something\n"
    );
}

#[test]
fn a_lost_fast_medium_leaves_an_older_state_if_that_was_wanted() {
    let place = filled(&["--ordered"]);
    fs::remove_file(place.path("ssd")).unwrap();
    let message = place.run(&["serve", "disk"]).fails(1);
    assert!(
        message.contains("No such file") && message.contains("--slow-alone"),
        "{message}"
    );
    // The import ended by itself, so that everything is at home.
    quiet(place.run(&["export", "disk", "out", "--slow-alone"]));
    assert!(fs::read(place.path("out")).unwrap() == image());
    let server = Server::start(&place, &["--slow-alone"]);
    let mut client = server.open("disk");
    assert_eq!(
        client.read(0, PAGE as u32).unwrap(),
        Ok(image()[..PAGE].to_vec())
    );
    assert_eq!(client.write(0, b"x").unwrap(), 1, "EPERM");
    let info = place.run(&["info", "disk"]).ok();
    assert!(info.contains("as the slow medium holds it alone"), "{info}");
    let message = place.run(&["clone", "disk", "0", "0"]).fails(2);
    assert!(message.contains("clone of itself"), "{message}");
    server.stop();
    // Another array's medium is not taken for the one that was lost.
    let place = filled(&[]);
    let other = filled(&[]);
    fs::copy(other.path("ssd"), place.path("ssd")).unwrap();
    let message = place.run(&["info", "disk"]).fails(1);
    assert!(message.contains("a part of another array"), "{message}");
    fs::write(place.path("ssd"), vec![0; 1 << 20]).unwrap();
    let message = place.run(&["info", "disk"]).fails(1);
    assert!(message.contains("holds no part of an array"), "{message}");
}

#[test]
fn a_load_is_put_on_an_array() {
    let place = filled(&["--strict"]);
    let bench = [
        "bench",
        "disk",
        "--operations",
        "50",
        "--flush-every",
        "7",
        "--json",
    ];
    let message = place.run(&bench).fails(2);
    assert!(message.contains("--overwrite"), "{message}");
    let json = place.run(&[&bench[..], &["--overwrite"]].concat()).json();
    assert_eq!(json["kinds"][0]["requests"], 50);
    let made = [
        "bench",
        ".",
        "--system",
        "i-cash",
        "--size",
        "1MiB",
        "--operations",
        "20",
        "--json",
    ];
    assert_eq!(place.run(&made).json()["kinds"][0]["requests"], 20);
    assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 4);
    place.run(&["check", "disk"]).ok();
}

/// Changed while it is served, and found when it is opened again; what cannot be is refused with a sentence.
#[test]
fn an_array_is_tuned_while_it_runs_and_stays_so() {
    let place = filled(&[]);
    let shown = place.run(&["tune", "disk"]).ok();
    assert!(
        shown.starts_with("sequential-cutoff=4MiB       bytes behind which"),
        "{shown}"
    );
    let server = Server::start(&place, &[]);
    let mut client = server.open("disk");
    let changed = place
        .run(&["tune", "disk", "dirty-target=5%", "fill=never"])
        .ok();
    assert!(
        changed.contains("\ndirty-target=5% ") && changed.contains("\nfill=never "),
        "{changed}"
    );
    assert_eq!(
        client.read(0, PAGE as u32).unwrap(),
        Ok(image()[..PAGE].to_vec())
    );
    for (value, why) in [
        (
            "dirty-target=many",
            "dirty-target is \"many\", expected a number of percent",
        ),
        (
            "scan-every=0",
            "scan-every is \"0\", expected a number from 1 on",
        ),
        (
            "speed=9",
            "found speed, expected one of sequential-cutoff, dirty-target, ",
        ),
        ("fill", "found \"fill\", expected a key, = and a value"),
    ] {
        let message = place.run(&["tune", "disk", "scan-every=7", value]).fails(2);
        assert!(message.contains(why), "{message}");
    }
    server.stop();
    assert_eq!(place.run(&["tune", "disk"]).ok(), changed);
    let json = place
        .run(&["tune", "disk", "write-back-rate=unlimited", "--json"])
        .json();
    assert_eq!(json["answer"], "tuned");
    assert_eq!(json["values"][2]["value"], "unlimited");
    quiet(place.run(&["create", "volume", "--size", "1MiB"]));
    let message = place.run(&["tune", "volume", "fill=read"]).fails(2);
    assert!(
        message.contains("this is a volume: only an array can be tuned"),
        "{message}"
    );
}

fn metrics(server: &Server) -> String {
    let address = server.told.strip_prefix("metrics at http://").unwrap();
    crate::metrics::get(address.split('/').next().unwrap(), "/metrics")
}

#[test]
fn figures_are_scraped() {
    let place = filled(&["--machines", "2"]);
    // Nothing goes home ahead.
    place.run(&["tune", "disk", "dirty-target=1000%"]).ok();
    let server = Server::start(&place, &["--metrics", "127.0.0.1:0"]);
    let page = metrics(&server);
    for line in [
        "flashlore_logical_bytes{machine=\"0\"} 409600",
        "flashlore_size_bytes 2097152",
        "flashlore_failed 0",
        "flashlore_array_events_total{event=\"groups\"} 0",
        "flashlore_array_away_blocks_limit 0",
        "flashlore_array_frozen_bytes 0",
        "flashlore_array_dirty_bytes ",
        "flashlore_array_dirty_bytes_target ",
        "flashlore_array_bypassed_bytes_total{kind=\"read\"} 0",
        "flashlore_array_tuned_info{key=\"fill\",value=\"read\"} 1",
        "flashlore_info{kind=\"array\",name=\"disk\",system=\"i-cash\",",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    server.open("disk.1").write(0, &[1; PAGE]).unwrap();
    let page = metrics(&server);
    assert!(
        page.contains("flashlore_requests_total{kind=\"write\"} 1"),
        "{page}"
    );
    assert!(
        page.contains("flashlore_logical_bytes{machine=\"1\"} 4096"),
        "{page}"
    );
    server.stop();
    let record = place.run(&["record", "disk", "trace"]).fails(2);
    assert!(record.contains("this array has 2 machines"), "{record}");
}
