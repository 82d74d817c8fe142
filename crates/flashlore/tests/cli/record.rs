//! `record`: what clients do as a trace with its bytes, replayed by every system.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::nbd_client::Client;
use crate::served::{Server, place};

const SYSTEMS: &str = "plain,ca-ssd,delta-ftl,bvssd,combined";

/// Writes, some of parts of pages, with bytes that resemble what was there; flushes and reads.
fn session(client: &mut Client) -> u64 {
    let mut state = 3_u64;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99);
        (state >> 33) % below
    };
    for round in 0..300u64 {
        let page = draw(200) * 4096;
        let mut bytes: Vec<u8> = (0..4096)
            .map(|i| (i * (page / 4096 % 7) % 251) as u8)
            .collect();
        bytes[round as usize..round as usize + 8].copy_from_slice(&draw(1 << 30).to_be_bytes());
        let (offset, bytes) = match round % 5 {
            0 => (page + 512, &bytes[..1024]),
            _ => (page, &bytes[..]),
        };
        assert_eq!(client.write(offset, bytes).unwrap(), 0);
        if round % 10 == 9 {
            assert_eq!(client.flush().unwrap(), 0);
            client.read(page, 4096).unwrap().unwrap();
        }
    }
    300 + 30 + 30
}

#[test]
fn a_recorded_session_is_replayed_with_its_bytes_by_every_system() {
    let place = place();
    let content = ["--content", "session.pages.zst"];
    let record = ["record", "disk", "session.parquet"];
    let server = Server::run(&place, &[&record[..], &content].concat());
    let requests = session(&mut server.open("disk"));
    let said = server.stop();
    assert!(
        said.contains(&format!("recorded {requests} requests")),
        "{said}"
    );
    for file in ["session.parquet", "session.pages.zst"] {
        let mode = fs::metadata(place.path(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file} is its user's alone");
    }
    let info = place.run(&["trace", "info", "session.parquet"]).ok();
    assert!(info.contains("native"), "{info}");
    let compare = ["compare", "session.parquet", "--systems", SYSTEMS, "--json"];
    let bytes = ["--set", "codec.ratio=codec"];
    let results = place.run(&[&compare[..], &bytes].concat());
    assert_eq!(results.code, 0, "{}", results.stderr);
    let results: serde_json::Value = serde_json::from_str(&results.stdout).unwrap();
    let runs = results["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 5);
    // A second recording does not touch the first.
    let before = fs::read(place.path("session.parquet")).unwrap();
    let message = place.run(&record).fails(2);
    assert!(
        message.contains("session.parquet exists already"),
        "{message}"
    );
    let other = [
        "record",
        "disk",
        "other.parquet",
        "--content",
        "session.pages.zst",
    ];
    let message = place.run(&other).fails(2);
    assert!(
        message.contains("session.pages.zst exists already"),
        "{message}"
    );
    assert_eq!(fs::read(place.path("session.parquet")).unwrap(), before);
    assert!(!place.path("other.parquet").exists());
}

#[test]
fn nothing_has_the_name_of_a_trace_before_it_is_complete() {
    let place = place();
    let server = Server::run(&place, &["record", "disk", "killed.parquet"]);
    session(&mut server.open("disk"));
    assert!(!place.path("killed.parquet").exists());
    server.kill();
    assert!(!place.path("killed.parquet").exists());
    // The volume is whole, and can be recorded again.
    let server = Server::run(&place, &["record", "disk", "empty.parquet"]);
    let (code, said) = server.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("empty.parquet: no request was recorded"),
        "{said}"
    );
    assert!(!place.path("empty.parquet").exists());
    place.run(&["check", "disk"]).ok();
}

#[test]
fn a_recording_that_may_hold_no_more_pages_ends_and_the_volume_goes_on() {
    let place = place();
    let record = ["record", "disk", "short.parquet", "--most-values", "20"];
    let server = Server::run(&place, &record);
    let mut client = server.open("disk");
    session(&mut client);
    assert_eq!(client.write(0, b"still here").unwrap(), 0);
    let (code, said) = server.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("20 distinct pages, the most there may be"),
        "{said}"
    );
    assert!(said.contains("short.parquet: it ends before"), "{said}");
    place.run(&["trace", "info", "short.parquet"]).ok();
    let read = place.run(&["read", "disk", "--length", "10"]).ok();
    assert_eq!(read, "still here");
}

#[test]
fn pages_elsewhere_are_pointed_out_and_one_file_cannot_be_both() {
    let place = place();
    let record = ["record", "disk", "a.parquet", "--content", "b.pages.zst"];
    let server = Server::run(&place, &record);
    assert!(
        server.told.contains("look for the pages in a.pages.zst"),
        "{}",
        server.told
    );
    assert_eq!(server.open("disk").write(0, &[1; 4096]).unwrap(), 0);
    server.stop();
    let message = place
        .run(&["record", "disk", "c", "--content", "c"])
        .fails(2);
    assert!(message.contains("cannot both be c"), "{message}");
    let message = place.run(&["record", "disk", "nowhere/c.parquet"]).fails(1);
    assert!(message.contains("nowhere/c.parquet"), "{message}");
}

/// No file of the program may be longer than 32 MiB: the volume's is not, but the pages' would be.
#[test]
fn a_recording_that_cannot_be_written_ends_and_the_volume_goes_on() {
    let place = place();
    let record = ["record", "disk", "full.parquet"];
    let content = ["--content", "full.pages.zst"];
    let server = Server::limited(&place, 65536, &[&record[..], &content].concat());
    let mut client = server.open("disk");
    let mut state = 1_u64;
    let mut bytes = vec![0; 1 << 20];
    for _ in 0..40 {
        for byte in &mut bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
        assert_eq!(client.write(0, &bytes).unwrap(), 0);
    }
    let (code, said) = server.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot write"), "{said}");
    assert!(said.contains("full.pages.zst"), "{said}");
    let left = fs::read_dir(place.path("")).unwrap().count();
    assert_eq!(left, 1, "the volume alone");
    assert_eq!(place.run(&["export", "disk", "out.raw"]).code, 0);
    assert!(fs::read(place.path("out.raw")).unwrap() == bytes);
}
