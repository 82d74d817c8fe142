//! Volumes that go back in time, served and not.

use std::fs;

use crate::nbd_client::Client;
use crate::program::{Place, Ran};
use crate::served::Server;

const PAGE: usize = 4096;

/// Standard error of a success without output.
fn quiet(ran: Ran) -> String {
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    ran.stderr
}

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
    let bytes = place.run(&args).ok().into_bytes();
    let first = bytes.chunks_exact(PAGE).map(|page| {
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

#[test]
fn what_is_purged_cannot_be_seen_again() {
    let place = with_a_past();
    quiet(place.run(&["purge", "disk", "--offset", "1", "--length", "0"]));
    assert_eq!(letters(&place, Some("first")), "aaaaaaaa");
    quiet(place.run(&[
        "purge", "disk", "--offset", "0", "--length", "4KiB", "--erase",
    ]));
    assert_eq!(letters(&place, Some("first")), "-aaaaaaa");
    quiet(place.run(&["purge", "disk", "--before", "now"]));
    let oldest = place.run(&["info", "disk", "--json"]).json()["history"]["oldest"].clone();
    let before = format!("ns:{}", oldest.as_u64().unwrap() - 1);
    let message = place.run(&["recover", "disk", "--to", &before]).fails(1);
    assert!(message.contains("is not remembered"), "{message}");
    quiet(place.run(&["purge", "disk", "--all", "--erase"]));
    assert_eq!(letters(&place, None), "bbccaaaa");
    let message = place.run(&["purge", "disk"]).fails(2);
    assert!(message.contains("--all"), "{message}");
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
    fs::write(place.path("disk/names.json"), "{}").unwrap();
    refused(&["info", "disk"], 1, "names.json: expected names");
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
        assert_eq!(letters(&place, None), expected);
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
    let create = ["create", "disk", "--size", "1MiB"];
    let message = place.run(&create).fails(1);
    assert!(message.contains("names.json has the names"), "{message}");
    fs::remove_file(place.path("disk/names.json")).unwrap();
    quiet(place.run(&create));
}
