//! The memory of volumes: what is too little is refused, and what is given is divided.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::nbd_client::Client;
use crate::program::{Place, quiet};

/// Serves the volume `disk` with flags, until it says that it does.
fn served(place: &Place, flags: &[&str]) -> Child {
    let mut process = Command::new(env!("CARGO_BIN_EXE_flashlore"))
        .args(["serve", "disk"])
        .args(flags)
        .current_dir(place.path("."))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    while !lines
        .next()
        .expect("it serves")
        .unwrap()
        .contains("serving")
    {}
    process
}

fn end(mut process: Child) {
    let pid = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(process.wait().unwrap().success());
}

/// The figure in a sentence such as "which takes 71 MiB at least".
fn least(message: &str) -> u64 {
    let (_, told) = message.split_once("takes ").expect(message);
    told.split(' ').next().unwrap().parse().expect(message)
}

#[test]
fn memory_that_is_too_little_is_refused() {
    let place = Place::new();
    // To look at all of it takes more than a hundred gibibytes of memory.
    let create = ["create", "disk", "--size", "8TiB"];
    quiet(place.run(&create));
    let message = place.run(&["resize", "disk", "--grow", "9TiB"]).fails(1);
    assert!(message.contains("are available"), "{message}");
    quiet(place.run(&["create", "small", "--size", "1GiB"]));
    for (command, disk) in [("serve", "disk"), ("scrub", "disk"), ("check", "small")] {
        let little = [command, disk, "--memory", "1MiB"];
        let message = place.run(&little).fails(2);
        assert!(
            message.contains("1 MiB of memory are too little"),
            "{message}"
        );
    }
    place.run(&["dump", "disk", "--part", "heads"]).ok();
}

#[test]
fn what_is_given_is_divided_between_tables_and_index() {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "64GiB"]));
    // MiB of both.
    let told = |flags: &[&str]| {
        let process = served(&place, flags);
        let info = place.run(&["info", "disk", "--json"]).ok();
        end(process);
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        let number = |what: &serde_json::Value| what.as_u64().unwrap() >> 20;
        (
            number(&info["tables"]["most_memory"]),
            number(&info["index"]["memory"]),
        )
    };
    let message = place.run(&["serve", "disk", "--memory", "1MiB"]).fails(2);
    let least = least(&message);
    // Once it is open, what a recovery may need is for both: more than half of it here, and of the tables not all.
    let (tables, index) = told(&["--memory", &format!("{least}MiB")]);
    let both = tables + index;
    assert!(
        (least / 2..least).contains(&both) && index > 64,
        "{tables} {index}"
    );
    // Half of what is more for each, but for what is left to the kernel; of the index there is no more than all.
    let given = 64 - (least + 64) / 32;
    let more = format!("{}MiB", least + 64);
    let (more_tables, more_index) = told(&["--memory", &more]);
    let grown = (more_tables + more_index).saturating_sub(both);
    let about = given - 4..given + 4;
    assert!(about.contains(&grown), "{more_tables} {more_index}");
    assert!(more_tables > tables + 8, "{more_tables} {more_index}");
    let (tables, index) = told(&["--memory", &more, "--index", "6MiB"]);
    assert!((4..8).contains(&index), "{tables} {index}");
    assert!(
        (both + given - 16..both + given + 4).contains(&(tables + index)),
        "{tables} {index}"
    );
}

/// Serves with as little memory as can be, writes, ends, and looks at what is there.
#[test]
fn a_bounded_volume_holds_what_was_written() {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "256MiB"]));
    let message = place.run(&["serve", "disk", "--memory", "1MiB"]).fails(2);
    let least = format!("{}MiB", least(&message));
    let page = |number: u64| {
        let mut page = vec![number as u8; 4096];
        page[..8].copy_from_slice(&number.to_le_bytes());
        page
    };
    for (round, memory) in [(0, &*least), (1, &*least), (2, "1GiB")] {
        let process = served(&place, &["--memory", memory]);
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
        end(process);
    }
    let message = place.run(&["check", "disk", "--memory", "1MiB"]).fails(2);
    let to_check = format!("{}MiB", self::least(&message));
    place.run(&["check", "disk", "--memory", &to_check]).ok();
    let image = place.path("image");
    let image = image.to_str().unwrap();
    for command in [
        &["export", "disk", image][..],
        &["import", "disk", image],
        &["scrub", "disk"],
    ] {
        let bounded = [command, &["--memory", &least]].concat();
        let ran = place.run(&bounded);
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.stderr);
    }
}

/// The fingerprint index beside a volume: who changes the volume keeps it, who looks does not, and nothing needs it.
#[test]
fn the_index_beside_a_volume_is_kept_and_not_needed() {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "64MiB"]));
    let content: Vec<u8> = (0..1u32 << 18).flat_map(u32::to_le_bytes).collect();
    std::fs::write(place.path("image"), &content).unwrap();
    let index = place.path("disk/index.flashlore");
    let bytes = || std::fs::read(&index).unwrap();
    let holds_all = || {
        quiet(place.run(&["export", "disk", "copy"]));
        assert!(
            std::fs::read(place.path("copy"))
                .unwrap()
                .starts_with(&content)
        );
        std::fs::remove_file(place.path("copy")).unwrap();
        place.run(&["check", "disk"]).ok();
    };
    quiet(place.run(&["import", "disk", "image"]));
    let kept = bytes();
    assert!(kept.iter().any(|&byte| byte != 0));
    place.run(&["info", "disk"]).ok();
    holds_all();
    assert!(bytes() == kept, "nothing was to be changed");
    // With an index of another size, and without any.
    quiet(place.run(&["import", "disk", "image", "--index", "32KiB"]));
    assert!(bytes().len() != kept.len());
    std::fs::remove_file(&index).unwrap();
    quiet(place.run(&["import", "disk", "image"]));
    assert_eq!(bytes().len(), kept.len());
    // Something else has its name.
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    quiet(place.run(&["import", "disk", "image"]));
    holds_all();
    place.run(&["scrub", "disk"]).ok();
}
