//! Volumes: made, filled, checked, read, and what is said when something does not hold.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixListener;

use crate::program::{Place, quiet};

const PAGE: usize = 4096;

/// A raw image of 1 MiB: 100 pages of which every third is the same, the rest zero.
fn image() -> Vec<u8> {
    let mut image = vec![0; 1 << 20];
    for (number, page) in image.chunks_exact_mut(PAGE).take(100).enumerate() {
        let value = if number % 3 == 0 { 1 } else { number as u8 + 2 };
        page.fill(value);
    }
    image
}

/// A volume with that image in it.
fn filled(system: &str) -> Place {
    let place = Place::new();
    fs::write(place.path("image.raw"), image()).unwrap();
    let create = ["create", "disk", "--size", "1MiB", "--system", system];
    quiet(place.run(&create));
    let told = quiet(place.run(&["import", "disk", "image.raw"]));
    let stored = match system {
        "plain" | "bvssd" => 100,
        _ => 67,
    };
    assert!(
        told.contains(&format!("{stored} pages are stored")),
        "{told}"
    );
    place
}

#[test]
fn an_image_goes_in_and_comes_out() {
    for system in ["plain", "ca-ssd", "ca-ssd-trusted"] {
        let place = filled(system);
        let report = place.run(&["check", "disk"]).ok();
        assert!(report.starts_with("100 pages hold something"), "{report}");
        let json = place.run(&["check", "disk", "--json"]).json();
        assert_eq!(json["clean"], true);
        assert_eq!(json["mapped"], 100);
        quiet(place.run(&["export", "disk", "out.raw"]));
        assert_eq!(fs::read(place.path("out.raw")).unwrap(), image());
        let sectors = fs::metadata(place.path("out.raw")).unwrap().blocks();
        assert!(512 * sectors < 1 << 20, "pages of zeros are holes");
        let scrubbed = place.run(&["scrub", "disk"]).ok();
        let stored = if system == "plain" { 100 } else { 67 };
        assert_eq!(scrubbed, format!("{stored} pages read, 0 findings\n"));
        let message = place.run(&["export", "disk", "out.raw"]).fails(1);
        assert!(message.contains("out.raw"), "{message}");
    }
}

#[test]
fn superblocks_that_were_put_back_are_refused_and_derived_from_the_rest() {
    let place = filled("ca-ssd");
    let path = place.path("disk/volume.flashlore");
    let before = fs::read(&path).unwrap()[..8192].to_vec();
    quiet(place.run(&["import", "disk", "image.raw"]));
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&before, 0).unwrap();
    drop(file);
    let put_back = fs::read(&path).unwrap();
    for command in [&["check", "disk"][..], &["export", "disk", "out.raw"]] {
        let message = place.run(command).fails(1);
        assert!(message.contains("both superblocks are older"), "{message}");
    }
    assert!(fs::read(&path).unwrap() == put_back, "nothing is written");
    let told = place.run(&["check", "disk", "--rebuild-superblocks"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(
        told.stderr.contains("superblocks of session"),
        "{}",
        told.stderr
    );
    quiet(place.run(&["export", "disk", "out.raw"]));
    assert_eq!(fs::read(place.path("out.raw")).unwrap(), image());
    let message = place
        .run(&["check", "disk", "--rebuild-superblocks"])
        .fails(1);
    assert!(message.contains("nothing to derive"), "{message}");
    assert!(!message.contains("damaged"), "{message}");
}

#[test]
fn rot_is_found_and_named() {
    let place = filled("ca-ssd");
    let path = place.path("disk/volume.flashlore");
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    let file = file.unwrap();
    // The page that every third address shares lies where 4096 ones lie.
    let bytes = fs::read(place.path("disk/volume.flashlore")).unwrap();
    let at = bytes
        .chunks_exact(PAGE)
        .position(|p| p.iter().all(|&b| b == 1));
    file.write_all_at(&[0], (at.unwrap() * PAGE + 17) as u64)
        .unwrap();

    let affected = place.run(&["check", "disk", "--affected"]);
    assert_eq!(affected.code, 1);
    let expected: String = (0..100).step_by(3).map(|lpn| format!("{lpn}\n")).collect();
    assert_eq!(affected.stdout, expected);
    let report = place.run(&["check", "disk"]);
    assert_eq!(report.code, 1);
    assert!(
        report
            .stdout
            .contains("the checksum of its data does not hold; affects logical pages 0, 3,"),
        "{}",
        report.stdout
    );
    let scrubbed = place.run(&["scrub", "disk", "--json"]);
    assert_eq!(scrubbed.code, 1);
    assert!(
        scrubbed.stdout.contains("\"addresses\":[0,3,6"),
        "{}",
        scrubbed.stdout
    );
    let message = place.run(&["export", "disk", "out.raw"]).fails(1);
    assert!(
        message.contains("logical page 0 cannot be read"),
        "{message}"
    );
    assert!(
        !place.path("out.raw").exists(),
        "nothing half-written stays"
    );
    // Written again, it reads again, for all who share it.
    quiet(place.run(&["import", "disk", "image.raw"]));
    quiet(place.run(&["export", "disk", "out.raw"]));
    assert_eq!(fs::read(place.path("out.raw")).unwrap(), image());
}

#[test]
fn a_page_of_the_map_that_rotted_is_in_the_report_of_a_check() {
    let place = filled("ca-ssd");
    let path = place.path("disk/volume.flashlore");
    let mut bytes = fs::read(&path).unwrap();
    // Kind, level and index of the first page of the map follow its mark.
    let is_of_map = |sector: &[u8]| sector.starts_with(b"FLMP\0\0\0\0\0\0\0\0");
    let sectors = bytes.chunks_exact_mut(512);
    for sector in sectors.filter(|sector| is_of_map(sector)) {
        sector[100] ^= 1;
    }
    fs::write(&path, bytes).unwrap();
    let report = place.run(&["check", "disk"]);
    assert_eq!(report.code, 1);
    let expected =
        "of the map cannot be read, those of logical pages 0 to 255 (1048576 bytes at 0): ";
    assert!(report.stdout.contains(expected), "{}", report.stdout);
    let json = place.run(&["check", "disk", "--json"]);
    assert_eq!(json.code, 1);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["clean"], false);
    assert_eq!(json["mapped"], 0);
    let first = json["errors"][0].as_str().unwrap();
    assert!(first.contains(expected), "{json}");
}

#[test]
fn rot_of_an_old_version_is_found() {
    let place = filled("bvssd");
    fs::write(place.path("other.raw"), vec![200; PAGE]).unwrap();
    quiet(place.run(&["import", "disk", "other.raw"]));
    let path = place.path("disk/volume.flashlore");
    let at = fs::read(&path).unwrap();
    let mut at = at.chunks_exact(PAGE);
    // The first page held ones.
    let at = at.position(|page| page.iter().all(|&byte| byte == 1));
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0], (at.unwrap() * PAGE + 17) as u64)
        .unwrap();
    for command in ["check", "scrub"] {
        let told = place.run(&[command, "disk"]);
        assert_eq!(told.code, 1, "{command}");
        let found = "affects no present page";
        assert!(told.stdout.contains(found), "{command}: {}", told.stdout);
    }
    quiet(place.run(&["export", "disk", "out.raw"]));
}

/// Collection copies packed values that cannot be read any more as lost ones: each address is named still.
#[test]
fn packed_values_that_cannot_be_read_are_named_and_stay_where_they_are() {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "1MiB"]));
    let image = |first: u8| -> Vec<u8> {
        let mut seed = u32::from(first);
        let mut page = |number: u8| {
            let mut page = [number; PAGE];
            page[..300].fill_with(|| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            });
            page
        };
        (0..20).flat_map(|number| page(first + number)).collect()
    };
    let (old, mut new) = (image(1), image(100));
    fs::write(place.path("old.raw"), &old).unwrap();
    quiet(place.run(&["import", "disk", "old.raw"]));
    // Every second page stays.
    for number in (1..20).step_by(2).map(|number| number * PAGE) {
        new[number..number + PAGE].copy_from_slice(&old[number..number + PAGE]);
    }
    fs::write(place.path("new.raw"), &new).unwrap();
    quiet(place.run(&["import", "disk", "new.raw"]));
    let path = place.path("disk/volume.flashlore");
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    let file = file.unwrap();
    // Somewhere on the first unit, which lies behind the superblocks.
    let mut byte = [0];
    file.read_exact_at(&mut byte, 8392).unwrap();
    file.write_all_at(&[!byte[0]], 8392).unwrap();
    let affected = place.run(&["check", "disk", "--affected"]);
    assert_eq!(affected.code, 1);
    assert!(
        affected.stdout.starts_with("1\n3\n5\n"),
        "{}",
        affected.stdout
    );
    // Old values lie beside what cannot be read: nobody may believe that they are gone.
    let purge = ["purge", "disk", "--all", "--erase"];
    let told = place.run(&purge);
    assert_eq!((told.code, told.stdout.as_str()), (1, ""));
    for said in [
        "not all of it is erased",
        "1 block was left",
        "may still hold",
    ] {
        assert!(told.stderr.contains(said), "{}", told.stderr);
    }
    assert!(!told.stderr.contains("forgotten and erased"));
    let again = place.run(&["check", "disk", "--affected"]);
    assert_eq!((again.code, &again.stdout), (1, &affected.stdout));
    // What cannot be read is left where it is: it may be readable later.
    let scrubbed = place.run(&["scrub", "disk"]);
    assert_eq!(scrubbed.code, 1);
    let lpns: Vec<&str> = affected.stdout.lines().collect();
    let named = format!("does not hold; affects logical pages {}\n", lpns.join(", "));
    assert!(scrubbed.stdout.contains(&named), "{}", scrubbed.stdout);
    // Written again, nothing is in the way.
    quiet(place.run(&["import", "disk", "new.raw"]));
    let told = quiet(place.run(&purge));
    assert!(told.contains("forgotten and erased"), "{told}");
}

#[test]
fn pages_are_skipped_because_of_the_pages_alone() {
    let place = filled("ca-ssd");
    let info = place.run(&["info", "disk", "--json"]).ok();
    // A server that goes away once it was asked for the size.
    let listener = UnixListener::bind(place.path("disk/control.sock")).unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut asked = String::new();
        BufReader::new(&stream).read_line(&mut asked).unwrap();
        (&stream).write_all(info.as_bytes()).unwrap();
        asked
    });
    let message = place
        .run(&["export", "disk", "out.raw", "--skip-bad"])
        .fails(1);
    assert!(server.join().unwrap().contains("info"));
    assert!(message.contains("cannot talk to the server"), "{message}");
    assert!(!place.path("out.raw").exists());
}

#[test]
fn a_dump_shows_every_part() {
    let place = filled("ca-ssd");
    let parts = "heads,tables,journal,records";
    let dump = place.run(&["dump", "disk", "--part", parts]).ok();
    for words in [
        "superblock 0: write",
        "policy Dedup",
        "root 0: checkpoint",
        "map: page 99 object",
        "object 0: unit",
        "block 0: ",
        "batch 0: segment",
        "data of page 1 write sequence number",
    ] {
        assert!(dump.contains(words), "{words:?} is missing in: {dump}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let place = filled("ca-ssd");
    let refused = |args: &[&str], code: i32, parts: &[&str]| {
        let message = place.run(args).fails(code);
        for part in parts {
            assert!(message.contains(part), "{part:?} is missing in: {message}");
        }
    };
    refused(
        &["create", "disk", "--size", "1MiB"],
        1,
        &["volume.flashlore"],
    );
    refused(
        &["create", "new", "--size", "5000"],
        2,
        &["multiple of 4096"],
    );
    refused(&["create", "new", "--size", "1PiB"], 2, &["size"]);
    refused(&["check", "nowhere"], 1, &["nowhere"]);
    refused(&["import", "disk", "missing.raw"], 1, &["missing.raw"]);
    fs::create_dir(place.path("other")).unwrap();
    place.write("other/volume.flashlore", &"x".repeat(1 << 16));
    refused(&["check", "other"], 1, &["no Flashlore volume"]);
    let dump = place.run(&["dump", "other"]);
    assert_eq!(dump.code, 1);
    assert!(dump.stdout.contains("superblock 1: not usable, NotAVolume"));
    assert!(
        dump.stderr.contains("no Flashlore volume"),
        "{}",
        dump.stderr
    );
    fs::write(place.path("large.raw"), vec![0; (1 << 20) + PAGE]).unwrap();
    refused(
        &["import", "disk", "large.raw"],
        2,
        &["large.raw", "1048576"],
    );
    // What does not say how long it is.
    refused(
        &["import", "disk", "/dev/zero"],
        1,
        &["/dev/zero has more than the 1048576 bytes"],
    );
    // A file where a socket is wanted stays as it is.
    place.write("precious", "the only copy");
    for path in ["precious", "disk/volume.flashlore"] {
        refused(
            &["serve", "disk", "--listen", path],
            1,
            &[path, "no socket"],
        );
    }
    refused(&["serve", "disk", "--listen", ""], 2, &["found \"\""]);
    refused(&["serve", "disk", "--connections", "0"], 2, &["zero"]);
    let precious = fs::read_to_string(place.path("precious")).unwrap();
    assert_eq!(precious, "the only copy");
    place.write("disk/control.sock", "");
    refused(
        &["serve", "disk"],
        1,
        &["there is something that is no socket, and it is not replaced"],
    );
    place.run(&["check", "disk"]).ok();
}

#[test]
fn a_full_volume_says_so_and_stays_whole() {
    let place = Place::new();
    let different: Vec<u8> = (0..8 << 20)
        .map(|i| ((i / PAGE) * 31 + i % 251) as u8)
        .collect();
    let numbered: Vec<u8> = different
        .chunks_exact(PAGE)
        .zip(0u32..)
        .flat_map(|(page, n)| [&n.to_le_bytes()[..], &page[4..]].concat())
        .collect();
    fs::write(place.path("image.raw"), &numbered).unwrap();
    let create = ["create", "disk", "--size", "8MiB", "--capacity", "2MiB"];
    quiet(place.run(&create));
    let ran = place.run(&["import", "disk", "image.raw"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("no space"), "{}", ran.stderr);
    place.run(&["check", "disk"]).ok();
    // It says how much of the image is in the volume.
    let told = ran
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("the first "));
    let told = told.and_then(|told| told.split_once(" bytes of image.raw are in the volume;"));
    let bytes: usize = told.expect(&ran.stderr).0.parse().unwrap();
    assert!(bytes >= 1 << 20, "{bytes}");
    place.run(&["export", "disk", "out.raw"]).ok();
    let held = fs::read(place.path("out.raw")).unwrap();
    assert!(held[..bytes] == numbered[..bytes]);
    assert!(held[bytes..].iter().all(|&byte| byte == 0));
}
