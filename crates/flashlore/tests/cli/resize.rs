//! A volume becomes larger, and keeps what it holds and held.

use std::fs;

use flashlore_medium::{FileMedium, Mode};

use crate::program::{Place, quiet};

const PAGE: usize = 4096;

/// An image of so many pages that all differ.
fn image(place: &Place, name: &str, pages: u32) -> Vec<u8> {
    let mut state = 1u64;
    let mut image = vec![0; pages as usize * PAGE];
    for word in image.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    fs::write(place.path(name), &image).unwrap();
    image
}

fn export(place: &Place, name: &str, at: Option<&str>) -> Vec<u8> {
    let mut args = vec!["export", "disk", name];
    args.extend(at.iter().flat_map(|at| ["--at", at]));
    quiet(place.run(&args));
    fs::read(place.path(name)).unwrap()
}

#[test]
fn a_full_volume_takes_writes_again_after_growth() {
    for system in ["plain", "ca-ssd-trusted", "combined"] {
        let place = Place::new();
        let create = ["create", "disk", "--size", "8MiB", "--capacity", "2MiB"];
        quiet(place.run(&[&create[..], &["--system", system]].concat()));
        let image = image(&place, "image.raw", 2048);
        let full = place.run(&["import", "disk", "image.raw"]);
        assert_eq!(full.code, 1);
        assert!(
            full.stderr.contains("no space"),
            "{system}: {}",
            full.stderr
        );
        let told = quiet(place.run(&["resize", "disk", "--capacity", "9MiB"]));
        assert!(
            told.contains("size from 8.0 MiB to 8.0 MiB, capacity from 2.0 MiB to 9.0 MiB"),
            "{told}"
        );
        quiet(place.run(&["import", "disk", "image.raw"]));
        assert!(export(&place, "out.raw", None) == image, "{system}");
        place.run(&["check", "disk"]).ok();
    }
}

#[test]
fn a_larger_volume_shows_more_and_remembers_the_same() {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "1MiB"]));
    let first = image(&place, "first.raw", 256);
    quiet(place.run(&["import", "disk", "first.raw"]));
    quiet(place.run(&["snapshot", "create", "disk", "first"]));
    fs::write(place.path("zeros.raw"), vec![0; 1 << 20]).unwrap();
    quiet(place.run(&["import", "disk", "zeros.raw"]));
    quiet(place.run(&["resize", "disk", "--grow", "3MiB"]));
    let info = place.run(&["info", "disk", "--json"]).json();
    assert_eq!(info["size"], 3 << 20);
    let entries = info["history"]["most_entries"].as_u64();
    assert_eq!(entries, Some((3 << 20) * 3 / 2 / PAGE as u64));
    assert!(export(&place, "now.raw", None) == vec![0; 3 << 20]);
    let mut was = first;
    was.resize(3 << 20, 0);
    assert!(export(&place, "was.raw", Some("first")) == was);
    quiet(place.run(&["import", "disk", "was.raw"]));
    quiet(place.run(&["resize", "disk", "--grow", "4MiB", "--capacity", "7MiB"]));
    assert!(export(&place, "again.raw", None)[..3 << 20] == was);
    place.run(&["check", "disk"]).ok();
}

#[test]
fn what_cannot_grow_so_is_refused() {
    let place = Place::new();
    let create = ["create", "disk", "--size", "2MiB", "--capacity", "3MiB"];
    quiet(place.run(&create));
    let refused = |args: &[&str], code: i32, part: &str| {
        let message = place.run(args).fails(code);
        assert!(message.contains(part), "{part:?} is missing in: {message}");
    };
    refused(&["resize", "disk"], 2, "--grow");
    refused(&["resize", "disk", "--grow", "1MiB"], 2, "can only grow");
    refused(
        &["resize", "disk", "--capacity", "1MiB"],
        2,
        "can only grow",
    );
    refused(&["resize", "disk", "--grow", "2MiB"], 2, "already");
    refused(
        &["resize", "disk", "--grow", "2500000"],
        2,
        "multiple of 4096",
    );
    refused(&["resize", "disk", "--grow", "16TiB"], 2, "15 TiB");
    refused(&["resize", "nowhere", "--grow", "3MiB"], 1, "nowhere");
    let file = place.path("disk/volume.flashlore");
    let open = FileMedium::open(&file, Mode::Buffered).unwrap();
    refused(&["resize", "disk", "--grow", "3MiB"], 1, "it is open");
    drop(open);
    quiet(place.run(&["resize", "disk", "--grow", "3MiB"]));
}

/// What an opening would refuse is refused before the file is made longer.
#[test]
fn a_volume_with_older_superblocks_keeps_its_length() {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "4MiB"]));
    let path = place.path("disk/volume.flashlore");
    let before = fs::read(&path).unwrap()[..8192].to_vec();
    image(&place, "image.raw", 16);
    for _ in 0..2 {
        place.run(&["import", "disk", "image.raw"]);
    }
    let mut volume = fs::read(&path).unwrap();
    volume[..8192].copy_from_slice(&before);
    fs::write(&path, &volume).unwrap();
    let message = place.run(&["resize", "disk", "--grow", "16MiB"]).fails(1);
    assert!(message.contains("older than the rest"), "{message}");
    assert!(fs::read(&path).unwrap() == volume);
}
