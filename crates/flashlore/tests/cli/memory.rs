//! The memory of volumes: what does not fit is refused, what is bounded lies in a scratch file.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::nbd_client::Client;
use crate::program::{Place, quiet};

#[test]
fn a_volume_that_needs_more_than_there_is_is_refused() {
    let place = Place::new();
    // It takes more than a hundred gibibytes of memory.
    let create = ["create", "disk", "--size", "8TiB"];
    quiet(place.run(&create));
    for command in ["info", "serve", "check", "scrub"] {
        let message = place.run(&[command, "disk"]).fails(1);
        assert!(message.contains("are available"), "{command}: {message}");
        assert!(message.contains("--memory"), "{command}: {message}");
    }
    let little = ["serve", "disk", "--memory", "1MiB"];
    let message = place.run(&little).fails(2);
    assert!(message.contains("if nothing is to be paged"), "{message}");
    quiet(place.run(&["create", "small", "--size", "1MiB"]));
    let message = place.run(&["serve", "small", "--memory", "1MiB"]).fails(2);
    assert!(message.contains("so small a one is not paged"), "{message}");
    place.run(&["dump", "disk", "--part", "heads"]).ok();
}

/// What the rest of a volume leaves of the bound is for pages of its tables, as long as that is enough.
#[test]
fn a_bound_is_first_one_of_the_pages_of_tables() {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "64GiB", "--system", "plain"]));
    let mut process = Command::new(env!("CARGO_BIN_EXE_flashlore"))
        .args(["serve", "disk", "--memory", "340MiB"])
        .current_dir(place.path("."))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    for line in BufReader::new(process.stderr.take().unwrap()).lines() {
        told += &line.unwrap();
        if told.contains("serving") {
            break;
        }
    }
    assert!(!told.contains("scratch file"), "{told}");
    let info = place.run(&["info", "disk", "--json"]).ok();
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    let most = info["tables"]["most_memory"].as_u64().unwrap() >> 20;
    assert!((32..100).contains(&most), "{info}");
    let pid = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(process.wait().unwrap().success());
}

/// Serves with little memory, writes, ends, and looks at what is there.
#[test]
fn a_bounded_volume_holds_what_was_written() {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "256MiB"]));
    let served = |memory: &str| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_flashlore"))
            .args(["serve", "disk", "--memory", memory])
            .current_dir(place.path("."))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut told = String::new();
        while !told.contains("serving") {
            told += &lines.next().expect("it serves").unwrap();
        }
        (process, told)
    };
    let page = |number: u64| {
        let mut page = vec![number as u8; 4096];
        page[..8].copy_from_slice(&number.to_le_bytes());
        page
    };
    for (round, memory) in [(0, "64MiB"), (1, "64MiB"), (2, "1GiB")] {
        let (mut process, told) = served(memory);
        assert_eq!(told.contains("scratch file"), round < 2, "{told}");
        let files = fs::read_dir(place.path("disk")).unwrap();
        let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        assert!(
            names
                .iter()
                .all(|name| !name.to_string_lossy().contains("scratch"))
        );
        let mut client = Client::open(&place.path("disk/nbd.sock"), "").unwrap();
        for number in 0..2000u64 {
            let at = number * 31 % 60_000 * 4096;
            if round > 0 {
                let found = client.read(at, 4096).unwrap();
                assert!(found == Ok(page(number + round - 1)));
            }
            assert_eq!(client.write(at, &page(number + round)).unwrap(), 0);
        }
        drop(client);
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(process.wait().unwrap().success());
    }
    place.run(&["check", "disk"]).ok();
}
