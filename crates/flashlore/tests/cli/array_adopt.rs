//! Arrays around disk images, which are adopted where they are and left again, and arrays that grow in place.

use std::fs;
use std::time::Duration;

use crate::program::{Place, quiet};
use crate::served::Server;

const PAGE: usize = 4096;
const SIZE: usize = 1 << 20;
const ADOPT: [&str; 8] = [
    "create", "disk", "--system", "i-cash", "--fast", "ssd", "--adopt", "image",
];

/// An image of noise with a hole.
fn image() -> Vec<u8> {
    let mut image: Vec<u8> = { 0..SIZE as u64 / 8 }
        .flat_map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ n << 7).to_le_bytes())
        .collect();
    image[20 * PAGE..60 * PAGE].fill(0);
    image
}

/// A directory with the image.
fn with_image() -> Place {
    let place = Place::new();
    fs::write(place.path("image"), image()).unwrap();
    place
}

/// Changes parts of the first machine through NBD; answers what it holds then.
fn used(place: &Place) -> Vec<u8> {
    let mut expected = image();
    let server = Server::start(place, &[]);
    let mut client = server.open("disk");
    for number in 0..40_usize {
        let at = number * 6 * PAGE + number * 17;
        let bytes = vec![number as u8 + 1; 3000];
        assert_eq!(client.write(at as u64, &bytes).unwrap(), 0);
        expected[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    let hole = 100 * PAGE..110 * PAGE;
    assert_eq!(
        client.trim(hole.start as u64, hole.len() as u32).unwrap(),
        0
    );
    expected[hole].fill(0);
    drop(client);
    server.stop();
    expected
}

fn bytes(place: &Place, name: &str) -> Vec<u8> {
    fs::read(place.path(name)).unwrap()
}

#[test]
fn an_image_is_adopted_used_and_left() {
    for more in [&[][..], &["--ordered"], &["--mode", "write-through"]] {
        let place = with_image();
        let told = quiet(place.run(&[&ADOPT[..], more].concat()));
        assert!(told.contains("image is what machine 0 holds"), "{told}");
        let adopted = bytes(&place, "image");
        assert!(adopted.len() > SIZE && adopted[..SIZE] == image());
        assert_eq!(
            place.run(&["check", "disk"]).ok(),
            "216 blocks hold something\n"
        );
        let expected = used(&place);
        quiet(place.run(&["export", "disk", "out"]));
        assert!(bytes(&place, "out") == expected);
        let told = quiet(place.run(&["array", "leave", "disk"]));
        assert!(told.contains("it is an image of 1.0 MiB again"), "{told}");
        assert!(bytes(&place, "image") == expected, "{more:?}");
        assert!(!place.path("disk").exists());
        // Both are free for another array.
        fs::remove_file(place.path("out")).unwrap();
        quiet(place.run(&[&ADOPT[..], &["--overwrite"]].concat()));
        quiet(place.run(&["export", "disk", "out"]));
        assert!(bytes(&place, "out") == expected);
    }
}

#[test]
fn what_cannot_be_adopted_is_refused_and_as_it_was() {
    let place = with_image();
    let refused = |more: &[&str], why: &str| {
        let text = place.run(&[&ADOPT[..], more].concat()).fails(2);
        assert!(text.contains(why), "{text}: expected {why}");
        assert!(bytes(&place, "image") == image());
        assert!(!place.path("disk").exists() && !place.path("ssd").exists());
    };
    refused(&["--size", "2MiB"], "all of a file is the image");
    refused(&["--slow", "hdd"], "cannot be used with");
    refused(&["--fast-size", "8KiB"], "data blocks");
    let same = [
        "create", "disk", "--system", "i-cash", "--fast", "image", "--adopt", "image",
    ];
    let text = place.run(&same).fails(2);
    assert!(
        text.contains("cannot be the fast medium and the slow one"),
        "{text}"
    );
    let volume = ["create", "disk", "--adopt", "image"];
    let text = place.run(&volume).fails(2);
    assert!(text.contains("are for --system i-cash"), "{text}");
    fs::write(place.path("image"), &image()[..SIZE - 512]).unwrap();
    let text = place.run(&ADOPT).fails(2);
    assert!(text.contains("1048064"), "{text}");
    fs::remove_file(place.path("image")).unwrap();
    let text = place.run(&ADOPT).fails(1);
    assert!(text.contains("No such file"), "{text}");
}

/// Whatever of adopting and leaving was interrupted: nobody opens the array, and leaving gives the image back.
#[test]
fn what_was_interrupted_is_given_back() {
    for state in ["adopting", "leaving"] {
        let place = with_image();
        quiet(place.run(&ADOPT));
        let path = place.path("disk/array.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"state\": \"used\""), "{text}");
        fs::write(&path, text.replace("used", state)).unwrap();
        for command in [
            &["check", "disk"][..],
            &["export", "disk", "out"],
            &["info", "disk"],
        ] {
            let text = place.run(command).fails(1);
            assert!(
                text.contains("flashlore array leave gives it back"),
                "{text}"
            );
        }
        quiet(place.run(&["array", "leave", "disk"]));
        assert!(bytes(&place, "image") == image());
        assert!(!path.exists());
    }
}

#[test]
fn other_machines_of_an_image_that_is_left_must_be_given_up() {
    let place = with_image();
    quiet(place.run(&[&ADOPT[..], &["--machines", "2", "--fast-size", "1MiB"]].concat()));
    quiet(place.run(&["clone", "disk", "0", "1"]));
    let expected = used(&place);
    quiet(place.run(&["export", "disk", "out", "--machine", "1"]));
    assert!(bytes(&place, "out") == image());
    let text = place.run(&["array", "leave", "disk"]).fails(2);
    assert!(
        text.contains("216 blocks of machine 1 are not in the image"),
        "{text}"
    );
    quiet(place.run(&["array", "leave", "disk", "--accept-loss"]));
    assert!(bytes(&place, "image") == expected);
}

#[test]
fn an_array_of_no_image_is_not_left() {
    let place = Place::new();
    quiet(place.run(&[
        "create", "disk", "--size", "1MiB", "--system", "i-cash", "--fast", "ssd", "--slow", "hdd",
    ]));
    let text = place.run(&["array", "leave", "disk"]).fails(2);
    assert!(text.contains("was not made around a disk image"), "{text}");
    // Pieces that somebody wrote by hand.
    let path = place.path("disk/array.json");
    let text = fs::read_to_string(&path).unwrap();
    let pieces = "\"slow_pieces\": [{\"at\": 100, \"bytes\": 4096}], \"options\"";
    fs::write(&path, text.replace("\"options\"", pieces)).unwrap();
    let text = place.run(&["check", "disk"]).fails(1);
    assert!(
        text.contains("slow_pieces in array.json do not fit") && text.contains("at byte 100"),
        "{text}"
    );
}

#[test]
fn an_array_grows_where_it_is() {
    for more in [&[][..], &["--ordered"], &["--mode", "write-through"]] {
        let place = with_image();
        let create = [
            "create", "disk", "--size", "1MiB", "--system", "i-cash", "--fast", "ssd", "--slow",
            "hdd",
        ];
        quiet(place.run(&[&create[..], more].concat()));
        quiet(place.run(&["import", "disk", "image"]));
        let expected = used(&place);
        let told = quiet(place.run(&["resize", "disk", "--grow", "3MiB", "--machines", "2"]));
        assert!(
            told.contains("machines from 1 x 1.0 MiB to 2 x 3.0 MiB"),
            "{told}"
        );
        let told = quiet(place.run(&["resize", "disk", "--grow", "200MiB"]));
        assert!(
            told.contains("machines from 2 x 3.0 MiB to 2 x 200 MiB"),
            "{told}"
        );
        quiet(place.run(&["clone", "disk", "0", "1"]));
        let server = Server::start(&place, &[]);
        let mut client = server.open("disk");
        assert_eq!(client.write(199 << 20, &[7; 3 * PAGE]).unwrap(), 0);
        drop(client);
        server.stop();
        for (machine, end) in [("0", 7), ("1", 0)] {
            quiet(place.run(&["export", "disk", "out", "--machine", machine]));
            let found = bytes(&place, "out");
            assert!(
                found.len() == 200 << 20 && found[..SIZE] == expected,
                "{more:?} {machine}"
            );
            assert!(found[SIZE..199 << 20].iter().all(|&byte| byte == 0));
            assert!(
                found[199 << 20..][..3 * PAGE]
                    .iter()
                    .all(|&byte| byte == end)
            );
            fs::remove_file(place.path("out")).unwrap();
        }
        place.run(&["check", "disk"]).ok();
        if more == ["--mode", "write-through"] {
            fs::remove_file(place.path("ssd")).unwrap();
            quiet(place.run(&["array", "replace-fast", "disk", "ssd2"]));
            quiet(place.run(&["export", "disk", "out"]));
            assert!(bytes(&place, "out")[..SIZE] == expected);
        }
    }
}

#[test]
fn what_does_not_grow_is_refused_and_as_it_was() {
    let place = with_image();
    quiet(place.run(&[&ADOPT[..], &["--machines", "2"]].concat()));
    let before = (bytes(&place, "image"), bytes(&place, "disk/array.json"));
    for (arguments, why) in [
        (&["--grow", "2MiB"][..], "a disk image, which does not grow"),
        (&["--grow", "512KiB"], "are fewer or smaller"),
        (&["--machines", "1"], "are fewer or smaller"),
        (&["--machines", "2"], "already"),
        (&["--machines", "300"], "300 virtual machines"),
        (&["--capacity", "2MiB"], "--capacity is for volumes"),
    ] {
        let text = place
            .run(&[&["resize", "disk"], arguments].concat())
            .fails(2);
        assert!(text.contains(why), "{text}: expected {why}");
    }
    assert!((bytes(&place, "image"), bytes(&place, "disk/array.json")) == before);
    quiet(place.run(&["resize", "disk", "--machines", "3"]));
    quiet(place.run(&["clone", "disk", "0", "2"]));
    quiet(place.run(&["array", "leave", "disk", "--accept-loss"]));
    assert!(bytes(&place, "image") == image());
    quiet(place.run(&["create", "volume", "--size", "1MiB", "--system", "plain"]));
    let text = place.run(&["resize", "volume", "--machines", "2"]).fails(2);
    assert!(text.contains("--machines is for arrays"), "{text}");
}

/// Runs a command on the array of `make` again and again and kills it, a little later each time, until it ends by itself.
/// After each the array, or the image, holds what it held.
fn killed_everywhere(make: &dyn Fn() -> Place, args: &[&str], holds: &dyn Fn(&Place)) {
    for step in 0.. {
        let place = make();
        let ended = place.run_killed(args, Duration::from_millis(3 * step));
        holds(&place);
        if ended {
            break;
        }
    }
}

/// The array holds the image, whether it is the old one or the new one.
fn exports_the_image(place: &Place) {
    fs::remove_file(place.path("out")).ok();
    quiet(place.run(&["export", "disk", "out"]));
    assert!(bytes(place, "out")[..SIZE] == image());
    let checked = place.run(&["check", "disk"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
}

#[test]
fn a_rebuild_and_a_growth_that_are_killed_leave_an_array_that_holds_the_same() {
    let make = || {
        let place = with_image();
        quiet(place.run(&[
            "create", "disk", "--size", "1MiB", "--system", "i-cash", "--fast", "ssd", "--slow",
            "hdd",
        ]));
        quiet(place.run(&["import", "disk", "image"]));
        place
    };
    let rebuild = [
        "array", "rebuild", "disk", "--fast", "ssd2", "--slow", "hdd2",
    ];
    killed_everywhere(&make, &rebuild, &exports_the_image);
    let grow = ["resize", "disk", "--grow", "40MiB"];
    killed_everywhere(&make, &grow, &|place| {
        exports_the_image(place);
        // What was left half-written is no obstacle.
        let size = bytes(place, "out").len();
        if size == SIZE {
            quiet(place.run(&grow));
            exports_the_image(place);
        }
    });
}

#[test]
fn adopting_and_leaving_that_are_killed_leave_the_image_or_the_array() {
    killed_everywhere(&with_image, &ADOPT, &|place| {
        assert!(bytes(place, "image")[..SIZE] == image());
        if place.path("disk/array.json").exists() {
            quiet(place.run(&["array", "leave", "disk"]));
        }
        assert!(bytes(place, "image") == image());
    });
    let make = || {
        let place = with_image();
        quiet(place.run(&ADOPT));
        let expected = used(&place);
        fs::write(place.path("expected"), expected).unwrap();
        place
    };
    let leave = ["array", "leave", "disk"];
    killed_everywhere(&make, &leave, &|place| {
        if place.path("disk/array.json").exists() {
            place.run(&leave);
        }
        assert!(bytes(place, "image") == bytes(place, "expected"));
        assert!(!place.path("disk").exists());
    });
}
