//! A full volume, whatever it is full of: writes are refused, nothing is lost, and what docs/volume.md says helps does.

use std::collections::BTreeMap;

use crate::nbd_client::Client;
use crate::program::Place;
use crate::served::Server;

const PAGE: u64 = 4096;
const NO_SPACE: u32 = 28;
/// Pages of the volumes.
const PAGES: u64 = 512;

/// A page that nothing else resembles.
fn page(number: u64) -> Vec<u8> {
    let mut state = number + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..PAGE).map(|_| next()).collect()
}

/// A served volume of 2 MiB, and what it must hold.
struct Full {
    place: Place,
    server: Server,
    client: Client,
    pages: BTreeMap<u64, u64>,
    written: u64,
}

impl Full {
    fn serve(create: &[&str]) -> Full {
        let place = Place::new();
        let size = ["create", "disk", "--size", "2MiB"];
        assert_eq!(place.run(&[&size[..], create].concat()).code, 0);
        let server = Server::start(&place, &[]);
        let client = server.open("disk");
        Full {
            place,
            server,
            client,
            pages: BTreeMap::new(),
            written: 0,
        }
    }

    /// Writes a page with a value.
    fn write(&mut self, lpn: u64, value: u64) -> u32 {
        let error = self.client.write(lpn * PAGE, &page(value)).unwrap();
        if error == 0 {
            self.pages.insert(lpn, value);
        }
        error
    }

    /// Writes new content to one page after the other, round and round, until it is refused; for lack of space.
    fn fill(&mut self) {
        let refused = (0..100_000).any(|_| {
            let value = self.written;
            self.written += 1;
            match self.write(value % PAGES, value) {
                0 => false,
                error => {
                    assert_eq!(error, NO_SPACE);
                    true
                }
            }
        });
        assert!(refused, "it never became full");
    }

    /// Nothing is lost, and flushes go on.
    fn is_whole(&mut self) {
        assert_eq!(self.client.flush().unwrap(), 0);
        for (lpn, value) in &self.pages {
            let found = self.client.read(lpn * PAGE, PAGE as u32).unwrap();
            assert!(found == Ok(page(*value)), "page {lpn}");
        }
    }

    /// So many pages with new content can be written.
    fn takes(&mut self, pages: u64) {
        for _ in 0..pages {
            let value = self.written;
            self.written += 1;
            assert_eq!(self.write(value % PAGES, value), 0, "write {value}");
        }
    }

    fn run(&self, args: &[&str]) {
        let ran = self.place.run(args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }

    /// A purge that reaches into the protected window is refused and changes nothing.
    fn refuses_a_purge(&mut self) {
        self.is_whole();
        let message = self.place.run(&["purge", "disk", "--all"]).fails(1);
        assert!(message.contains("it will have passed"), "{message}");
        let value = self.written + 1;
        assert_eq!(self.write(7, 1_000_000 + value), NO_SPACE);
        self.is_whole();
    }

    /// The volume gets room for as much again.
    fn with_more_capacity(self) -> Full {
        let (pages, written) = (self.pages.clone(), self.written);
        let place = self.end();
        let grow = place.run(&["resize", "disk", "--capacity", "6MiB"]);
        assert_eq!(grow.code, 0, "{}", grow.stderr);
        let server = Server::start(&place, &[]);
        let client = server.open("disk");
        Full {
            place,
            server,
            client,
            pages,
            written,
        }
    }

    /// Ends the server; the volume is found sound.
    fn end(self) -> Place {
        drop(self.client);
        self.server.stop();
        self.place.run(&["check", "disk"]).ok();
        self.place
    }
}

#[test]
fn a_volume_full_of_content_takes_writes_again_after_trims() {
    for system in ["plain", "ca-ssd", "compress", "delta-ftl"] {
        let mut full = Full::serve(&["--capacity", "1MiB", "--system", system]);
        full.fill();
        full.is_whole();
        assert_eq!(full.client.trim(0, 64 * PAGE as u32).unwrap(), 0);
        full.pages.retain(|&lpn, _| lpn >= 64);
        full.written = 0;
        full.takes(64);
        full.is_whole();
        full.end();
    }
}

#[test]
fn old_versions_that_a_snapshot_holds_make_room_when_it_is_deleted() {
    for system in ["bvssd", "combined"] {
        let mut full = Full::serve(&["--capacity", "3MiB", "--system", system]);
        full.takes(PAGES);
        full.run(&["snapshot", "create", "disk", "kept"]);
        full.fill();
        full.is_whole();
        full.run(&["snapshot", "delete", "disk", "kept"]);
        full.takes(2 * PAGES);
        full.is_whole();
        full.end();
    }
}

#[test]
fn old_versions_of_a_protected_window_are_not_purged_and_leave_room_after_growth() {
    let protect = ["--min-window", "1h", "--on-pressure", "enospc"];
    let mut full = Full::serve(&[&["--capacity", "3MiB"], &protect[..]].concat());
    full.fill();
    full.refuses_a_purge();
    let mut full = full.with_more_capacity();
    full.takes(PAGES / 2);
    full.is_whole();
    full.end();
}

#[test]
fn a_history_without_room_for_another_entry_takes_changes_again_after_growth() {
    let protect = ["--min-window", "1h", "--on-pressure", "enospc"];
    let mut full = Full::serve(&[&["--capacity", "3MiB"], &protect[..]].concat());
    // Two values, so that there is room for content all the time.
    let entries = 3 << 20 >> 12;
    let refused = (0..2 * entries).find(|&n| full.write(n % PAGES, n / PAGES % 2) != 0);
    let refused = refused.expect("the history never became full");
    assert!(refused >= entries - 1, "{refused} of {entries}");
    assert_eq!(full.write(7, 9), NO_SPACE);
    let info = full.place.run(&["info", "disk", "--json"]).json();
    assert_eq!(info["history"]["entries"], info["history"]["most_entries"]);
    full.refuses_a_purge();
    let mut full = full.with_more_capacity();
    assert_eq!(full.write(7, 9), 0);
    full.is_whole();
    full.end();
}

#[test]
fn what_lies_behind_the_end_is_there_after_growth() {
    let mut full = Full::serve(&["--system", "plain"]);
    full.takes(PAGES);
    assert_eq!(full.write(PAGES, 1), NO_SPACE);
    full.is_whole();
    let pages = full.pages.clone();
    let place = full.end();
    let grow = place.run(&["resize", "disk", "--grow", "4MiB"]);
    assert_eq!(grow.code, 0, "{}", grow.stderr);
    let server = Server::start(&place, &[]);
    let client = server.open("disk");
    let mut grown = Full {
        place,
        server,
        client,
        pages,
        written: 0,
    };
    assert_eq!(grown.write(PAGES, 1), 0);
    grown.is_whole();
    grown.end();
}
