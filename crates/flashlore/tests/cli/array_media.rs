//! Media of arrays: write-through, a fast medium that is lost and replaced, and looks that write nothing.

use std::fs;

use crate::program::{Place, quiet};
use crate::served::Server;

const PAGE: usize = 4096;
const CREATE: [&str; 10] = [
    "create", "disk", "--size", "1MiB", "--system", "i-cash", "--fast", "ssd", "--slow", "hdd",
];

/// Pages of noise, so that each is stored whole.
fn image() -> Vec<u8> {
    let mut state = 7_u64;
    let mut image = vec![0; 1 << 20];
    for word in image[..100 * PAGE].chunks_exact_mut(8) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        word.copy_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
    image
}

/// An array `disk` on the files `ssd` and `hdd` that was made so and holds the image.
fn filled(more: &[&str]) -> Place {
    let place = Place::new();
    quiet(place.run(&[&CREATE[..], more].concat()));
    // Nothing goes home ahead of need, so what needs the fast medium does not depend on time.
    place.run(&["tune", "disk", "dirty-target=1000%"]).ok();
    fs::write(place.path("image"), image()).unwrap();
    quiet(place.run(&["import", "disk", "image"]));
    place
}

/// Exports the array; what it wrote.
fn exported(place: &Place, more: &[&str]) -> Vec<u8> {
    let ran = place.run(&[&["export", "disk", "out"], more].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let bytes = fs::read(place.path("out")).unwrap();
    fs::remove_file(place.path("out")).unwrap();
    bytes
}

#[test]
fn in_write_through_what_was_acknowledged_outlives_the_fast_medium() {
    let place = filled(&["--mode", "write-through"]);
    let json = fs::read_to_string(place.path("disk/array.json")).unwrap();
    assert!(json.contains("\"mode\": \"write-through\"") && json.contains("\"too_big\": \"log\""));
    let mut expected = image();
    let server = Server::start(&place, &[]);
    let mut client = server.open("disk");
    for number in 0..30_usize {
        let at = number * 3 * PAGE + number * 17;
        let bytes = vec![number as u8 + 1; 3000];
        assert_eq!(client.write(at as u64, &bytes).unwrap(), 0);
        expected[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    assert_eq!(client.trim(5 * PAGE as u64, 2 * PAGE as u32).unwrap(), 0);
    expected[5 * PAGE..7 * PAGE].fill(0);
    // Never flushed.
    server.kill();
    fs::remove_file(place.path("ssd")).unwrap();
    let message = place.run(&["info", "disk"]).fails(1);
    assert!(
        message.contains("flashlore array replace-fast"),
        "{message}"
    );
    assert_eq!(
        place
            .run(&["array", "replace-fast", "disk", "--affected"])
            .ok(),
        ""
    );
    let told = quiet(place.run(&["array", "replace-fast", "disk", "new"]));
    assert!(told.contains("nothing is lost"), "{told}");
    assert!(exported(&place, &[]) == expected);
    let server = Server::start(&place, &[]);
    assert_eq!(server.open("disk").write(0, &[9; PAGE]).unwrap(), 0);
    server.stop();
    assert!(
        place
            .run(&["check", "disk"])
            .ok()
            .contains("blocks hold something")
    );
}

#[test]
fn what_needed_the_lost_medium_is_named_and_an_error_until_it_is_written() {
    let place = filled(&[]);
    fs::remove_file(place.path("ssd")).unwrap();
    let listed = place
        .run(&["array", "replace-fast", "disk", "--affected"])
        .ok();
    let lost: Vec<usize> = listed
        .lines()
        .map(|line| line.strip_prefix("0 ").unwrap().parse().unwrap())
        .collect();
    assert!(lost.len() >= 5, "{listed}");
    let slow = fs::read(place.path("hdd")).unwrap();
    let message = place
        .run(&["array", "replace-fast", "disk", "new"])
        .fails(2);
    let expected = format!("{} blocks need the fast medium and are lost", lost.len());
    assert!(
        message.contains(&expected) && message.contains("--accept-loss"),
        "{message}"
    );
    assert!(!place.path("new").exists());
    let replace = ["array", "replace-fast", "disk", "new", "--accept-loss"];
    let told = quiet(place.run(&replace));
    assert!(
        told.contains(&format!("{} blocks are lost", lost.len())),
        "{told}"
    );
    assert!(
        fs::read(place.path("hdd")).unwrap() == slow,
        "nothing was written there"
    );
    let affected = place.run(&["check", "disk", "--affected"]);
    assert_eq!((affected.code, affected.stdout.as_str()), (1, &*listed));
    assert!(
        fs::read(place.path("hdd")).unwrap() == slow,
        "nor by a look"
    );

    let server = Server::start(&place, &[]);
    let mut client = server.open("disk");
    let image = image();
    for number in 0..256 {
        let at = number * PAGE;
        let read = client.read(at as u64, PAGE as u32).unwrap();
        match lost.contains(&number) {
            true => assert_eq!(read, Err(5), "EIO of block {number}"),
            false => assert!(read == Ok(image[at..at + PAGE].to_vec()), "block {number}"),
        }
    }
    let mut now = image;
    for (n, &number) in lost.iter().enumerate() {
        let at = (number * PAGE) as u64;
        assert_eq!(client.write(at + 5, b"part").unwrap(), 5);
        let bytes = vec![n as u8 + 1; PAGE];
        let done = match n % 2 {
            0 => client.write(at, &bytes).unwrap(),
            _ => client.trim(at, PAGE as u32).unwrap(),
        };
        assert_eq!(done, 0);
        now[number * PAGE..][..PAGE].copy_from_slice(&if n % 2 == 0 {
            bytes
        } else {
            vec![0; PAGE]
        });
    }
    server.stop();
    assert!(exported(&place, &[]) == now);
    place.run(&["check", "disk"]).ok();
}

#[test]
fn in_order_the_array_goes_back_to_its_last_batch_and_says_of_when_that_is() {
    let place = filled(&["--ordered"]);
    let server = Server::start(&place, &[]);
    let mut client = server.open("disk");
    for number in 0..20_u64 {
        let bytes: Vec<u8> = image()[..PAGE]
            .iter()
            .map(|b| b ^ (number as u8 + 1))
            .collect();
        assert_eq!(client.write(number * PAGE as u64, &bytes).unwrap(), 0);
    }
    assert_eq!(client.flush().unwrap(), 0);
    server.kill();
    let slow_alone = exported(&place, &["--slow-alone"]);
    assert!(slow_alone == image(), "nothing of it is home yet");
    let told = place
        .run(&["export", "disk", "alone", "--slow-alone"])
        .stderr;
    assert!(
        told.contains("this is the last batch that went home"),
        "{told}"
    );
    let message = place
        .run(&["array", "replace-fast", "disk", "new"])
        .fails(2);
    assert!(
        message.contains("20 blocks go back") && message.contains("ssd is there"),
        "{message}"
    );
    let told = quiet(place.run(&["array", "replace-fast", "disk", "new", "--accept-loss"]));
    assert!(
        told.contains("20 blocks went back to what they held in the last batch, of 20")
            && told.contains(" s ago)"),
        "{told}"
    );
    assert!(exported(&place, &[]) == slow_alone);
    let told = place.run(&["check", "disk"]).stderr;
    assert!(
        told.contains("not closed before its fast medium was replaced"),
        "{told}"
    );
    let server = Server::start(&place, &[]);
    assert!(server.open("disk").read(0, 1 << 20).unwrap() == Ok(slow_alone));
    server.stop();
}

#[test]
fn a_medium_that_cannot_be_the_new_one_is_refused_and_the_array_is_as_it_was() {
    let place = filled(&["--mode", "write-through"]);
    let other = filled(&[]);
    fs::copy(other.path("ssd"), place.path("other")).unwrap();
    fs::write(place.path("short"), vec![0; 4096]).unwrap();
    fs::write(place.path("used"), vec![9; 16 << 20]).unwrap();
    quiet(place.run(&["create", "volume", "--size", "1MiB"]));
    let json = fs::read(place.path("disk/array.json")).unwrap();
    let slow = fs::read(place.path("hdd")).unwrap();
    for (new, why) in [
        ("short", "short has 4096 bytes, the array needs"),
        ("used", "used holds something: say --overwrite"),
        ("other", "other holds an array"),
        ("ssd", "ssd holds an array"),
        ("hdd", "is the slow medium of this array"),
        ("volume/volume.flashlore", "holds a volume"),
    ] {
        let args = ["array", "replace-fast", "disk", new, "--accept-loss"];
        let message = place.run(&args).fails(2);
        assert!(message.contains(why), "{message}");
    }
    let args = ["array", "replace-fast", "volume", "new"];
    assert!(place.run(&args).fails(2).contains("it is no array"));
    let server = Server::start(&place, &[]);
    let args = ["array", "replace-fast", "disk", "new"];
    assert!(place.run(&args).fails(1).contains("in use"));
    server.stop();
    assert!(!place.path("new").exists());
    assert!(fs::read(place.path("disk/array.json")).unwrap() == json);
    assert!(exported(&place, &[]) == image());
    let args = ["array", "replace-fast", "disk", "used", "--overwrite"];
    quiet(place.run(&args));
    assert!(exported(&place, &[]) == image());
    drop(slow);
}

/// A replacement is interrupted before `array.json` is written: the old fast medium goes on if it is there, and what was
/// prepared on the new one is used when it is done again.
#[test]
fn an_interrupted_replacement_is_done_again() {
    let place = filled(&["--mode", "write-through"]);
    let json = fs::read(place.path("disk/array.json")).unwrap();
    let args = ["array", "replace-fast", "disk", "new"];
    quiet(place.run(&args));
    fs::write(place.path("disk/array.json"), &json).unwrap();
    let server = Server::start(&place, &[]);
    assert_eq!(server.open("disk").write(0, &[7; PAGE]).unwrap(), 0);
    server.stop();
    let mut expected = image();
    expected[..PAGE].fill(7);
    assert!(exported(&place, &[]) == expected);
    quiet(place.run(&args));
    assert!(exported(&place, &[]) == expected);
    let server = Server::start(&place, &[]);
    assert_eq!(
        server.open("disk").write(PAGE as u64, &[8; PAGE]).unwrap(),
        0
    );
    server.stop();
    expected[PAGE..2 * PAGE].fill(8);
    assert!(exported(&place, &[]) == expected);
    // The new one is the array's now, and the old one an older copy.
    let message = place.run(&args).fails(2);
    assert!(message.contains("new holds an array"), "{message}");
    fs::write(place.path("disk/array.json"), &json).unwrap();
    let message = place.run(&["info", "disk"]).fails(1);
    assert!(
        message.contains("ssd is an older copy of itself"),
        "{message}"
    );
}

/// Writes and syncs of both media so far, as a server counts them.
fn changes(place: &Place) -> Vec<u64> {
    let info = place.run(&["info", "disk", "--json"]).json();
    let traffic = info["element"]["traffic"].as_array().unwrap().clone();
    let of = |medium: &serde_json::Value| {
        [&medium["writes"], &medium["syncs"]].map(|n| n.as_u64().unwrap())
    };
    traffic.iter().flat_map(of).collect()
}

#[test]
fn looks_write_nothing_whether_the_array_is_served_or_not() {
    for mode in ["write-back", "write-through"] {
        let place = filled(&["--mode", mode]);
        let media = || ["ssd", "hdd"].map(|name| fs::read(place.path(name)).unwrap());
        let look = || {
            assert!(exported(&place, &[]) == image());
            place.run(&["scrub", "disk"]).ok();
            place.run(&["info", "disk"]).ok();
            place.run(&["read", "disk", "--offset", "409600", "--length", "8192"]);
        };
        let before = media();
        look();
        place.run(&["check", "disk"]).ok();
        assert!(media() == before, "{mode}: a look wrote");
        let server = Server::start(&place, &[]);
        let before = changes(&place);
        look();
        assert_eq!(changes(&place), before, "{mode}: a look at a server wrote");
        // Clients use it: what they read may come to the fast medium.
        assert!(server.open("disk").read(0, 1 << 20).unwrap() == Ok(image()));
        server.stop();
    }
}

/// An array with two clones of its first machine.
fn cloned() -> Place {
    let place = filled(&["--machines", "3", "--fast-size", "1MiB"]);
    for machine in ["1", "2"] {
        quiet(place.run(&["clone", "disk", "0", machine]));
    }
    place
}

#[test]
fn an_array_on_new_media_has_other_sizes_and_what_it_held() {
    let place = cloned();
    let tune = ["tune", "disk", "dirty-target=20%", "fill=never"];
    place.run(&tune).ok();
    let media = ["ssd", "hdd"].map(|name| fs::read(place.path(name)).unwrap());
    let rebuild = [
        "array", "rebuild", "disk", "--fast", "ssd2", "--slow", "hdd2",
    ];
    let more = ["--size", "2MiB", "--machines", "4", "--fast-size", "1MiB"];
    let told = quiet(place.run(&[&rebuild[..], &more].concat()));
    assert!(
        told.contains("machine 0: 0 blocks are deltas, 0 compressed, 100 whole"),
        "{told}"
    );
    assert!(told.contains("machine 2: 100 blocks are deltas"), "{told}");
    for machine in ["0", "1", "2", "3"] {
        let mut expected = image();
        if machine == "3" {
            expected.fill(0);
        }
        expected.resize(2 << 20, 0);
        assert!(
            exported(&place, &["--machine", machine]) == expected,
            "{machine}"
        );
    }
    assert_eq!(
        place.run(&["check", "disk"]).ok(),
        "300 blocks hold something\n"
    );
    let told = place.run(&["tune", "disk"]).ok();
    assert!(told.contains("20%") && told.contains("never"), "{told}");
    // The old array is there as it was.
    assert!(["ssd", "hdd"].map(|name| fs::read(place.path(name)).unwrap()) == media);
}

#[test]
fn what_has_no_place_in_a_rebuilt_array_must_be_given_up() {
    let place = cloned();
    let json = fs::read(place.path("disk/array.json")).unwrap();
    let files = fs::read_dir(place.path("")).unwrap().count();
    let rebuild = |more: &[&'static str]| {
        let media = [
            "array", "rebuild", "disk", "--fast", "ssd2", "--slow", "hdd2",
        ];
        place.run(&[&media[..], more].concat())
    };
    fs::write(place.path("part"), vec![1; 2 << 20]).unwrap();
    for (code, more, why) in [
        (
            2,
            &["--machines", "2"][..],
            "100 blocks of machine 2 have no place",
        ),
        (2, &["--fast-size", "4KiB"], "expected at least 24KiB"),
        (2, &["--machines", "0"], "0 virtual machines"),
    ] {
        let message = rebuild(more).fails(code);
        assert!(message.contains(why), "{message}");
    }
    let same = [
        "array", "rebuild", "disk", "--fast", "ssd", "--slow", "hdd2",
    ];
    assert!(place.run(&same).fails(1).contains("in use"));
    let used = [
        "array", "rebuild", "disk", "--fast", "ssd2", "--slow", "part",
    ];
    assert!(place.run(&used).fails(2).contains("the array needs"));
    assert_eq!(
        fs::read_dir(place.path("")).unwrap().count(),
        files + 1,
        "nothing is left behind"
    );
    assert!(fs::read(place.path("disk/array.json")).unwrap() == json);
    quiet(rebuild(&["--machines", "2", "--accept-loss"]));
    assert!(exported(&place, &["--machine", "1"]) == image());
    assert!(
        place
            .run(&["read", "disk", "--machine", "2"])
            .fails(2)
            .contains("no machine 2")
    );
    let message = place
        .run(&["array", "rebuild", "volume", "--fast", "a", "--slow", "b"])
        .fails(2);
    assert!(message.contains("it is no array"), "{message}");
}

/// A block that cannot be read ends a rebuild, which leaves nothing behind.
#[test]
fn an_array_that_cannot_be_read_is_not_rebuilt() {
    let place = filled(&[]);
    fs::remove_file(place.path("ssd")).unwrap();
    quiet(place.run(&["array", "replace-fast", "disk", "new", "--accept-loss"]));
    let json = fs::read(place.path("disk/array.json")).unwrap();
    let rebuild = [
        "array", "rebuild", "disk", "--fast", "ssd2", "--slow", "hdd2",
    ];
    let message = place.run(&rebuild).fails(1);
    assert!(
        message.contains("it was lost with a fast medium"),
        "{message}"
    );
    assert!(!place.path("ssd2").exists() && !place.path("hdd2").exists());
    assert!(fs::read(place.path("disk/array.json")).unwrap() == json);
}
