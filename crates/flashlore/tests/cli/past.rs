//! Volumes that go back in time, served and not.

use std::fs;
use std::process::Command;

use flashlore_testkit::{is_root, skip};

use crate::nbd_client::Client;
use crate::program::{Place, quiet};
use crate::served::Server;

const PAGE: usize = 4096;

/// An image of 1 MiB whose first pages hold these letters.
fn image(place: &Place, name: &str, letters: &str) -> Vec<u8> {
    let mut image = vec![0; 1 << 20];
    for (page, letter) in image.chunks_exact_mut(PAGE).zip(letters.bytes()) {
        page.fill(letter);
    }
    fs::write(place.path(name), &image).unwrap();
    image
}

/// The letters of the first eight pages.
fn letters(place: &Place, at: Option<&str>) -> String {
    let mut args = vec!["read", "disk", "--length", "32KiB"];
    args.extend(at.iter().flat_map(|at| ["--at", at]));
    letters_of(&place.run(&args).ok())
}

/// The same of what was read.
fn letters_of(read: &str) -> String {
    let first = read.as_bytes().chunks_exact(PAGE).map(|page| {
        assert!(page.iter().all(|&b| b == page[0]));
        if page[0] == 0 {
            '-'
        } else {
            char::from(page[0])
        }
    });
    first.collect()
}

/// A volume that held three images, one after the other, with a snapshot of the first and a mark at the second.
fn with_a_past() -> Place {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "1MiB"]));
    for (name, content) in [("a", "aaaaaaaa"), ("b", "bbaaaaaa"), ("c", "bbccaaaa")] {
        image(&place, name, content);
        quiet(place.run(&["import", "disk", name]));
        match name {
            "a" => drop(quiet(place.run(&["snapshot", "create", "disk", "first"]))),
            "b" => drop(quiet(place.run(&["mark", "disk", "second"]))),
            _ => {}
        }
    }
    place
}

#[test]
fn a_volume_goes_back_and_forth() {
    let place = with_a_past();
    assert_eq!(letters(&place, None), "bbccaaaa");
    assert_eq!(letters(&place, Some("first")), "aaaaaaaa");
    assert_eq!(letters(&place, Some("second")), "bbaaaaaa");
    assert_eq!(letters(&place, Some("now")), "bbccaaaa");
    let differ = place.run(&["diff", "disk", "first"]).ok();
    assert_eq!(differ, format!("0 {}\n", 4 * PAGE));
    let json = place
        .run(&["diff", "disk", "first", "now", "--json"])
        .json();
    assert_eq!(json["ranges"], serde_json::json!([[0, 4 * PAGE]]));

    let dry = quiet(place.run(&["recover", "disk", "--to", "first", "--dry-run"]));
    assert!(dry.starts_with("4 pages hold something else"), "{dry}");
    assert_eq!(letters(&place, None), "bbccaaaa");
    let done = quiet(place.run(&["recover", "disk", "--to", "first"]));
    assert_eq!(letters(&place, None), "aaaaaaaa");
    let undo = done.lines().last().unwrap();
    let undo = undo.strip_prefix("to undo it: flashlore ").expect(undo);
    quiet(place.run(&undo.split(' ').collect::<Vec<_>>()));
    assert_eq!(letters(&place, None), "bbccaaaa");
    quiet(place.run(&["recover", "disk", "--to", "now", "--to-mark"]));
    assert_eq!(letters(&place, None), "bbaaaaaa");

    quiet(place.run(&["export", "disk", "old.raw", "--at", "first"]));
    let first = fs::read(place.path("a")).unwrap();
    assert_eq!(fs::read(place.path("old.raw")).unwrap(), first);
    let list = place.run(&["snapshot", "list", "disk"]).ok();
    assert!(list.ends_with("  first\n"), "{list}");
    let log = place.run(&["log", "disk"]).ok();
    for part in [
        "the history begins",
        "snapshot first",
        "mark second",
        "changed",
    ] {
        assert!(log.contains(part), "{log}");
    }
    quiet(place.run(&["snapshot", "create", "disk", "santiago"]));
    assert_eq!(letters(&place, Some("santiago")), "bbaaaaaa");
    quiet(place.run(&["snapshot", "delete", "disk", "santiago"]));
    quiet(place.run(&["snapshot", "delete", "disk", "first"]));
    assert_eq!(place.run(&["snapshot", "list", "disk"]).ok(), "");
    assert!(place.run(&["check", "disk"]).ok().contains("pages hold"));
}

/// What was purged of an instant is never shown as something else: who reads it is refused with the range, by every
/// command and over NBD, unless it goes on without it.
#[test]
fn a_purge_of_a_part_leaves_instants_that_know_what_they_lack() {
    let place = with_a_past();
    let refused = |args: &[&str], code: i32, part: &str| {
        let message = place.run(args).fails(code);
        assert!(message.contains(part), "{args:?}: {message}");
    };
    for (offset, length) in [("1", "4096"), ("0", "4097"), ("4096", "10")] {
        let odd = ["purge", "disk", "--offset", offset, "--length", length];
        refused(&odd, 2, "whole pages of 4096 bytes are purged");
    }
    assert_eq!(letters(&place, Some("first")), "aaaaaaaa");
    let range = ["--offset", "0", "--length", "4KiB"];
    quiet(place.run(&[&["purge", "disk", "--erase"][..], &range].concat()));
    let lacks = "was purged, 4096 bytes from 0 on; --allow-missing";
    refused(&["read", "disk", "--at", "first"], 1, lacks);
    refused(&["export", "disk", "old.raw", "--at", "first"], 1, lacks);
    assert!(!place.path("old.raw").exists());
    refused(&["diff", "disk", "first"], 1, lacks);
    refused(&["recover", "disk", "--to", "first"], 1, lacks);
    refused(&["recover", "disk", "--to", "first", "--dry-run"], 1, lacks);
    // The rest of the instant, and the instant of the last change of the page, are whole.
    let rest = [
        "read", "disk", "--at", "first", "--offset", "4096", "--length", "4096",
    ];
    assert_eq!(place.run(&rest).ok(), "a".repeat(PAGE));
    assert_eq!(letters(&place, Some("second")), "bbaaaaaa");

    let server = Server::start(&place, &[]);
    let mut first = server.open("disk@first");
    assert_eq!(first.read(0, 4096).unwrap(), Err(5), "EIO");
    assert_eq!(first.read(4096, 4096).unwrap().unwrap(), [b'a'; 4096]);
    drop(first);
    refused(&["read", "disk", "--at", "first"], 1, lacks);
    server.stop();

    let anyway = [
        "export",
        "disk",
        "old.raw",
        "--at",
        "first",
        "--allow-missing",
    ];
    let told = quiet(place.run(&anyway));
    assert!(told.contains("4096 bytes from 0 on were purged"), "{told}");
    let mut expected = fs::read(place.path("a")).unwrap();
    expected[..PAGE].fill(0);
    assert_eq!(fs::read(place.path("old.raw")).unwrap(), expected);
    let json = ["diff", "disk", "first", "--allow-missing", "--json"];
    let json = place.run(&json).json();
    assert_eq!(json["missing"], serde_json::json!([[0, PAGE]]));
    assert_eq!(json["ranges"], serde_json::json!([[PAGE, 3 * PAGE]]));
    let log = place.run(&["log", "disk"]).ok();
    assert!(log.contains("purge of 4096 bytes from 0 on"), "{log}");
    let info = place.run(&["info", "disk"]).ok();
    assert!(info.contains("that were purged, see log"), "{info}");
    let back = ["recover", "disk", "--to", "first", "--allow-missing"];
    quiet(place.run(&back));
    assert_eq!(letters(&place, None), "-aaaaaaa");
}

/// A trimmed page that was purged is not left out of a delta as if it had always been empty.
#[test]
fn a_delta_knows_trimmed_pages_that_were_purged() {
    let place = with_a_past();
    image(&place, "d", "-bccaaaa");
    quiet(place.run(&["import", "disk", "d"]));
    let range = ["--offset", "0", "--length", "4KiB"];
    quiet(place.run(&[&["purge", "disk"][..], &range].concat()));
    let message = place.run(&["diff", "disk", "first"]).fails(1);
    assert!(message.contains("4096 bytes from 0 on"), "{message}");
}

#[test]
fn a_purge_of_everything_moves_the_start_of_the_history_and_ends_snapshots() {
    let place = with_a_past();
    let before = place.run(&["info", "disk", "--json"]).json();
    quiet(place.run(&["snapshot", "create", "disk", "last"]));
    let told = quiet(place.run(&["purge", "disk", "--all", "--erase"]));
    assert!(told.contains("the snapshot first of"), "{told}");
    assert!(!told.contains("the snapshot last of"), "{told}");
    assert!(told.contains("the history begins at"), "{told}");
    let list = place.run(&["snapshot", "list", "disk"]).ok();
    assert!(
        list.ends_with("  last\n") && !list.contains("first"),
        "{list}"
    );
    assert_eq!(letters(&place, Some("last")), "bbccaaaa");
    let message = place.run(&["recover", "disk", "--to", "first"]).fails(2);
    assert!(message.contains("no snapshot and no mark"), "{message}");
    let message = place.run(&["read", "disk", "--at", "second"]).fails(1);
    assert!(message.contains("is not remembered"), "{message}");
    let after = place.run(&["info", "disk", "--json"]).json();
    let oldest = |info: &serde_json::Value| info["history"]["oldest"].as_u64().unwrap();
    assert!(oldest(&after) > oldest(&before));
    let log = place.run(&["log", "disk"]).ok();
    assert!(log.contains("purge of everything"), "{log}");
    assert!(!log.contains("mark second"), "{log}");
    let before = format!("ns:{}", oldest(&after) - 1);
    let message = place.run(&["recover", "disk", "--to", &before]).fails(1);
    assert!(message.contains("is not remembered"), "{message}");
    assert_eq!(letters(&place, None), "bbccaaaa");
    let message = place.run(&["purge", "disk"]).fails(2);
    assert!(message.contains("--all"), "{message}");
}

#[test]
fn a_purge_of_no_byte_is_refused() {
    let place = with_a_past();
    let nothing = ["purge", "disk", "--offset", "0", "--length", "0"];
    let message = place.run(&nothing).fails(2);
    assert!(
        message.contains("0 bytes are nothing to purge"),
        "{message}"
    );
    assert!(!place.run(&["log", "disk"]).ok().contains("purge"));
}

/// A purge of a part is told also where the history begins later.
#[test]
fn the_log_is_in_the_order_of_time() {
    let place = with_a_past();
    let part = ["purge", "disk", "--offset", "0", "--length", "4KiB"];
    quiet(place.run(&part));
    image(&place, "image", "ddddaaaa");
    quiet(place.run(&["import", "disk", "image"]));
    quiet(place.run(&["purge", "disk", "--all"]));
    let log = place.run(&["log", "disk"]).ok();
    let at = |what: &str| log.find(what).expect(what);
    assert!(
        at("purge of 4096 bytes") < at("the history begins"),
        "{log}"
    );
    assert!(
        at("the history begins") < at("purge of everything"),
        "{log}"
    );
    let instants: Vec<&str> = log
        .lines()
        .map(|line| &line[.."2026-11-25T00:00:00".len()])
        .collect();
    assert!(instants.is_sorted(), "{log}");
}

#[test]
fn a_protected_window_refuses_a_purge() {
    let place = Place::new();
    let create = ["create", "disk", "--size", "1MiB", "--min-window", "1h"];
    quiet(place.run(&[&create[..], &["--on-pressure", "enospc"]].concat()));
    for (name, content) in [("a", "aaaa"), ("b", "bbbb")] {
        image(&place, name, content);
        quiet(place.run(&["import", "disk", name]));
        if name == "a" {
            quiet(place.run(&["snapshot", "create", "disk", "keep"]));
        }
    }
    for what in [
        &["--all"][..],
        &["--before", "now"],
        &["--offset", "0", "--length", "4KiB"],
    ] {
        let message = place.run(&[&["purge", "disk"], what].concat()).fails(1);
        assert!(
            message.contains("it will have passed all of it at 2"),
            "{message}"
        );
    }
    assert_eq!(letters(&place, Some("keep")), "aaaa----");
    // What has not changed since is not in the window.
    quiet(place.run(&["purge", "disk", "--offset", "512KiB", "--length", "4KiB"]));
}

#[test]
fn a_name_stands_for_one_thing() {
    let place = with_a_past();
    let message = place.run(&["mark", "disk", "first"]).fails(2);
    assert!(
        message.contains("there is a snapshot with the name"),
        "{message}"
    );
    let message = place
        .run(&["snapshot", "create", "disk", "second"])
        .fails(2);
    assert!(
        message.contains("there is a mark with the name"),
        "{message}"
    );
    assert_eq!(letters(&place, Some("mark:second")), "bbaaaaaa");
    assert_eq!(letters(&place, Some("snapshot:first")), "aaaaaaaa");
    let message = place.run(&["read", "disk", "--at", "mark:first"]).fails(2);
    assert!(
        message.contains("there is no mark with the name"),
        "{message}"
    );
}

/// Volumes of older formats had their names in a file, in which a mark could have the name of a snapshot.
#[test]
fn names_of_a_file_are_taken_over_once_and_a_damaged_file_blocks_nothing() {
    let place = with_a_past();
    let first = place.run(&["snapshot", "list", "disk", "--json"]).json();
    let first = first["snapshots"][0]["instant"].clone();
    let names = place.path("disk/names.json");
    fs::write(&names, "{").unwrap();
    assert_eq!(letters(&place, Some("first")), "aaaaaaaa");
    let info = place.run(&["info", "disk"]).ok();
    assert!(info.contains("names.json: expected names"), "{info}");
    assert!(names.exists());
    let now = place.run(&["info", "disk", "--json"]).json()["history"]["newest"].clone();
    let stored = serde_json::json!({
        "snapshots": [{"name": "other", "instant": first}],
        "marks": [{"name": "first", "instant": now}, {"name": "third", "instant": now}],
    });
    fs::write(&names, stored.to_string()).unwrap();
    assert_eq!(letters(&place, Some("third")), "bbccaaaa");
    // Who only looks removes nothing.
    assert!(names.exists());
    quiet(place.run(&["mark", "disk", "fourth"]));
    assert!(!names.exists());
    assert_eq!(letters(&place, Some("third")), "bbccaaaa");
    // The snapshot has a name already.
    let list = place.run(&["snapshot", "list", "disk"]).ok();
    assert!(list.ends_with("  first\n"), "{list}");
    let message = place.run(&["read", "disk", "--at", "first"]).fails(2);
    assert!(
        message.contains("say snapshot:first or mark:first"),
        "{message}"
    );
    assert_eq!(letters(&place, Some("snapshot:first")), "aaaaaaaa");
    assert_eq!(letters(&place, Some("mark:first")), "bbccaaaa");
}

#[test]
fn instants_and_names_that_cannot_be_are_refused() {
    let place = with_a_past();
    let refused = |args: &[&str], code: i32, part: &str| {
        let message = place.run(args).fails(code);
        assert!(message.contains(part), "{message}");
    };
    refused(&["recover", "disk", "--to", "10 minutes"], 2, "10min ago");
    refused(&["recover", "disk", "--to", "nobody"], 2, "no snapshot");
    refused(
        &["recover", "disk", "--to", "2500-01-01T00:00:00Z"],
        2,
        "has not come",
    );
    refused(
        &["recover", "disk", "--to", "1h ago"],
        1,
        "the history begins at",
    );
    refused(&["snapshot", "create", "disk", "first"], 2, "already");
    refused(
        &["snapshot", "delete", "disk", "second"],
        2,
        "no snapshot of",
    );
    let first_again = ["snapshot", "create", "disk", "other", "--at", "first"];
    refused(&first_again, 2, "is kept already, as \"first\"");
    refused(
        &["snapshot", "create", "disk", "now"],
        2,
        "cannot be a name",
    );
    refused(
        &["read", "disk", "--offset", "2MiB"],
        2,
        "do not lie within",
    );
    let far = ["purge", "disk", "--offset", "1MiB", "--length", "1"];
    refused(&far, 2, "do not lie within");
    quiet(place.run(&["create", "flat", "--size", "1MiB", "--system", "ca-ssd"]));
    for command in [
        &["log", "flat"][..],
        &["snapshot", "list", "flat"],
        &["mark", "flat", "m"],
    ] {
        refused(command, 1, "keeps no history");
    }
    refused(
        &[
            "create",
            "x",
            "--size",
            "1MiB",
            "--system",
            "plain",
            "--min-window",
            "1h",
        ],
        2,
        "needs a system with a history",
    );
}

#[test]
fn a_served_volume_is_steered_and_shows_its_past() {
    let place = with_a_past();
    let server = Server::start(&place, &[]);
    let mut client = server.open("disk");
    assert_eq!(client.size, 1 << 20);
    assert_eq!(client.read(0, 3).unwrap().unwrap(), b"bbb");
    assert_eq!(client.write(PAGE as u64 - 1, b"zz").unwrap(), 0);
    assert_eq!(client.flush().unwrap(), 0);
    let json = place.run(&["info", "disk", "--json"]).json();
    assert_eq!(json["clients"], serde_json::json!([1, 0]));
    assert_eq!(json["durable"], json["sequence"]);

    let mut first = server.open("disk@first");
    assert_eq!(first.read(0, 4096).unwrap().unwrap(), [b'a'; 4096]);
    assert_eq!(first.write(0, b"x").unwrap(), 1, "EPERM");
    assert!(Client::open(&server.socket, "disk@nobody").is_err());
    assert!(Client::open(&server.socket, "another").is_err());

    let message = place.run(&["recover", "disk", "--to", "first"]).fails(1);
    for part in ["1 client may write", "--disconnect", "disk@"] {
        assert!(message.contains(part), "{message}");
    }
    quiet(place.run(&["recover", "disk", "--to", "first", "--disconnect"]));
    assert!(client.read(0, 1).is_err(), "it was dropped");
    assert_eq!(letters(&place, None), "aaaaaaaa");
    let mut again = server.open("");
    assert_eq!(again.read(0, 1).unwrap().unwrap(), b"a");
    quiet(place.run(&["export", "disk", "now.raw"]));
    assert_eq!(
        fs::read(place.path("now.raw")).unwrap(),
        fs::read(place.path("a")).unwrap()
    );
    assert!(place.run(&["scrub", "disk"]).ok().contains("0 findings"));

    let message = place.run(&["import", "disk", "a"]).fails(1);
    assert!(message.contains("is served"), "{message}");
    for command in ["check", "serve", "dump"] {
        let message = place.run(&[command, "disk"]).fails(1);
        assert!(message.contains("in use"), "{message}");
    }
    assert_eq!(server.stop(), "draining\n");
    assert!(!place.path("disk/control.sock").exists());
    let report = place.run(&["check", "disk"]).ok();
    assert!(report.contains("; 0 events to replay"), "{report}");
}

#[test]
fn what_was_flushed_outlives_a_killed_server() {
    let place = with_a_past();
    for round in 0..3u8 {
        let server = Server::start(&place, &[]);
        let mut client = server.open("disk");
        assert_eq!(client.write(0, &[b'0' + round; 2 * PAGE]).unwrap(), 0);
        assert_eq!(client.flush().unwrap(), 0);
        server.signal("-KILL");
        assert!(client.read(0, 1).is_err());
        drop(server);
        // The next opener comes in at once, and finds no server behind the sockets.
        let expected = char::from(b'0' + round).to_string().repeat(2) + "ccaaaa";
        let read = place.run(&["read", "disk", "--length", "32KiB"]);
        assert_eq!(letters_of(&read.ok_unclosed()), expected);
    }
}

#[test]
fn nobody_writes_to_a_volume_that_is_served_read_only_or_fails() {
    let place = with_a_past();
    let server = Server::start(&place, &["--read-only"]);
    assert_eq!(server.open("").write(0, b"x").unwrap(), 1, "EPERM");
    // Nobody can write, so nobody is in the way.
    let _reader = server.open("");
    quiet(place.run(&["recover", "disk", "--to", "first"]));
    server.stop();
    let faults = ["--fail-writes", "100%", "--delay-flushes", "1ms"];
    let server = Server::start(&place, &faults);
    let mut client = server.open("");
    assert_eq!(client.write(0, b"x").unwrap(), 5, "EIO");
    assert_eq!(client.flush().unwrap(), 0);
    server.stop();
    let message = place
        .run(&["serve", "disk", "--listen", "0.0.0.0:0"])
        .fails(2);
    assert!(message.contains("insecure"), "{message}");
    let message = place
        .run(&["serve", "disk", "--listen", "nohost:port"])
        .fails(2);
    assert!(message.contains("HOST:PORT"), "{message}");
    for digits in ["9100", "99999"] {
        let message = place.run(&["serve", "disk", "--listen", digits]).fails(2);
        assert!(message.contains("127.0.0.1:10809"), "{message}");
        assert!(!place.path(digits).exists());
    }
}

#[test]
fn names_of_a_volume_that_is_gone_do_not_come_to_a_new_one() {
    let place = with_a_past();
    fs::remove_file(place.path("disk/volume.flashlore")).unwrap();
    fs::write(place.path("disk/names.json"), "{}").unwrap();
    let create = ["create", "disk", "--size", "1MiB"];
    let message = place.run(&create).fails(1);
    assert!(message.contains("names.json has the names"), "{message}");
    fs::remove_file(place.path("disk/names.json")).unwrap();
    quiet(place.run(&create));
}

/// A time namespace has a clock of its own since the start of the machine, which proves nothing.
#[test]
fn another_time_namespace_shortens_no_protected_window() {
    if !is_root() {
        skip("not-root", "another time namespace takes root");
        return;
    }
    let place = Place::new();
    let create = ["create", "disk", "--size", "1MiB", "--min-window", "1h"];
    quiet(place.run(&[&create[..], &["--on-pressure", "enospc"]].concat()));
    for letters in ["abcd", "efgh"] {
        image(&place, "image.raw", letters);
        place.run(&["import", "disk", "image.raw"]);
    }
    let purge = ["purge", "disk", "--all"];
    place.run(&purge).fails(1);
    let later = Command::new("unshare")
        .args(["--time", "--boottime", "7200", "--fork"])
        .arg(env!("CARGO_BIN_EXE_flashlore"))
        .args(purge)
        .current_dir(place.path(""))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&later.stderr);
    assert_eq!(later.status.code(), Some(1), "{told}");
    assert!(told.contains("protected"), "{told}");
}
