//! Arrays around disk images, which are adopted where they are and left again, and arrays that grow in place.

use std::fs;
use std::thread;
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
        let info = place.run(&["info", "disk"]).ok();
        assert!(
            info.contains("image, around a disk image of 1.0 MiB\n"),
            "{info}"
        );
        let expected = used(&place);
        quiet(place.run(&["export", "disk", "out"]));
        assert!(bytes(&place, "out") == expected);
        let told = quiet(place.run(&["array", "leave", "disk"]));
        assert!(
            told.contains("it is a plain image of 1.0 MiB again and holds what machine 0 held"),
            "{told}"
        );
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
    refused(&["--fast-size", "8KiB"], "expected at least 24KiB");
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
    assert!(
        text.contains("has 1048064 bytes, an image has a multiple of 4096"),
        "{text}"
    );
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
        let told = quiet(place.run(&["resize", "disk", "--grow", "16MiB"]));
        assert!(
            told.contains("machines from 2 x 3.0 MiB to 2 x 16.0 MiB"),
            "{told}"
        );
        quiet(place.run(&["clone", "disk", "0", "1"]));
        let server = Server::start(&place, &[]);
        let mut client = server.open("disk");
        assert_eq!(client.write(15 << 20, &[7; 3 * PAGE]).unwrap(), 0);
        drop(client);
        server.stop();
        for (machine, end) in [("0", 7), ("1", 0)] {
            quiet(place.run(&["export", "disk", "out", "--machine", machine]));
            let found = bytes(&place, "out");
            assert!(
                found.len() == 16 << 20 && found[..SIZE] == expected,
                "{more:?} {machine}"
            );
            assert!(found[SIZE..15 << 20] == vec![0; (15 << 20) - SIZE]);
            assert!(found[15 << 20..][..3 * PAGE] == [end; 3 * PAGE]);
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
    assert!(
        text.contains("--machines and --overwrite are for arrays"),
        "{text}"
    );
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
        assert!(!place.path("disk/array.json").exists());
    });
}

#[test]
fn an_image_around_which_an_array_lies_is_not_adopted_again_nor_rebuilt() {
    let place = with_image();
    quiet(place.run(&ADOPT));
    let before = bytes(&place, "image");
    let again = [
        "create",
        "second",
        "--system",
        "i-cash",
        "--fast",
        "ssd2",
        "--adopt",
        "image",
        "--overwrite",
    ];
    let text = place.run(&again).fails(1);
    assert!(text.contains("leave that array first"), "{text}");
    assert!(bytes(&place, "image") == before);
    assert!(!place.path("second").exists() && !place.path("ssd2").exists());
    let rebuild = [
        "array", "rebuild", "disk", "--fast", "ssd2", "--slow", "hdd2",
    ];
    let text = place.run(&rebuild).fails(2);
    assert!(text.contains("give the image back"), "{text}");
    quiet(place.run(&["array", "leave", "disk"]));
    assert!(bytes(&place, "image") == image());
}

/// A block that rots at home is told when the image is left, and nothing is handed out in silence.
#[test]
fn what_rots_in_an_image_is_told_when_it_is_left() {
    let place = with_image();
    quiet(place.run(&ADOPT));
    let mut rotten = bytes(&place, "image");
    rotten[7 * PAGE] ^= 1;
    fs::write(place.path("image"), &rotten).unwrap();
    let text = place.run(&["array", "leave", "disk"]).fails(2);
    assert!(
        text.contains("1 blocks of the image cannot be read, block 7 is the first"),
        "{text}"
    );
    assert_eq!(place.run(&["check", "disk", "--quick"]).code, 0);
    let told = quiet(place.run(&["array", "leave", "disk", "--accept-loss"]));
    assert!(told.contains("block 7 could not be read"), "{told}");
    assert!(bytes(&place, "image") == rotten[..SIZE]);
}

/// An image that its owner made longer while `leave` was interrupted is not cut.
#[test]
fn only_what_the_array_put_behind_an_image_is_cut() {
    let place = with_image();
    quiet(place.run(&ADOPT));
    let path = place.path("disk/array.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("used", "leaving")).unwrap();
    let mut longer = image();
    longer.resize(2 * SIZE, 7);
    fs::write(place.path("image"), &longer).unwrap();
    let told = place.run(&["array", "leave", "disk"]).fails(1);
    assert!(
        told.contains("has 2097152 bytes, expected the 1048576 of the image"),
        "{told}"
    );
    assert!(bytes(&place, "image") == longer);
    // A size that was edited is none.
    let place = with_image();
    quiet(place.run(&ADOPT));
    let path = place.path("disk/array.json");
    let text = fs::read_to_string(&path).unwrap();
    let image_at = text.find("\"image\"").unwrap();
    let edited = text[image_at..].replacen("1048576", "524288", 1);
    fs::write(&path, [&text[..image_at], edited.as_str()].concat()).unwrap();
    let told = place.run(&["array", "leave", "disk"]).fails(1);
    assert!(
        told.contains("says that the image has 524288 bytes, its machine shows 1048576"),
        "{told}"
    );
    assert!(bytes(&place, "image")[..SIZE] == image());
}

#[test]
fn what_lies_behind_an_array_that_grows_is_not_written_over_unasked() {
    let place = with_image();
    quiet(place.run(&[
        "create", "disk", "--size", "1MiB", "--system", "i-cash", "--fast", "ssd", "--slow", "hdd",
    ]));
    let mut longer = bytes(&place, "hdd");
    longer.extend([9; 3 * PAGE]);
    fs::write(place.path("hdd"), &longer).unwrap();
    let text = place.run(&["resize", "disk", "--grow", "2MiB"]).fails(2);
    assert!(text.contains("holds something behind the array"), "{text}");
    assert!(bytes(&place, "hdd") == longer);
    quiet(place.run(&["resize", "disk", "--grow", "2MiB", "--overwrite"]));
    place.run(&["check", "disk"]).ok();
}

/// Somebody wants the array while its image is left: it is open to one of them at a time, and what was acknowledged is in
/// the image.
#[test]
fn nobody_opens_an_array_that_is_being_left() {
    let other: Vec<u8> = image().iter().map(|byte| byte ^ 0x55).collect();
    for _ in 0..12 {
        let place = with_image();
        fs::write(place.path("other"), &other).unwrap();
        quiet(place.run(&ADOPT));
        let (left, imported) = thread::scope(|scope| {
            let leaving = scope.spawn(|| place.run(&["array", "leave", "disk"]).code);
            let imported = place.run(&["import", "disk", "other"]).code;
            (leaving.join().unwrap(), imported)
        });
        if left != 0 {
            quiet(place.run(&["array", "leave", "disk"]));
        }
        let expected = if imported == 0 { &other } else { &image() };
        assert!(
            bytes(&place, "image") == *expected,
            "left {left}, imported {imported}"
        );
    }
}
