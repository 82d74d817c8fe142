//! A server among others: directories that are renamed, permissions, clients that hold on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use flashlore_testkit::{installed, is_root, skip};

use crate::program::Place;
use crate::served::{Server, place};

/// The names of the snapshots of a volume.
fn snapshots(place: &Place, directory: &str) -> Vec<String> {
    let listed = place.run(&["snapshot", "list", directory, "--json"]).json();
    let named = listed["snapshots"].as_array().unwrap().iter();
    named
        .map(|snapshot| snapshot["name"].as_str().unwrap().to_owned())
        .collect()
}

fn quiet(place: &Place, args: &[&str]) {
    let ran = place.run(args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_directory_that_is_renamed_while_served_stays_the_servers() {
    let place = place();
    let first = Server::start(&place, &[]);
    fs::rename(place.path("disk"), place.path("away")).unwrap();
    quiet(&place, &["create", "disk", "--size", "1MiB"]);
    let second = Server::start(&place, &[]);
    quiet(&place, &["snapshot", "create", "disk", "of-second"]);
    // The first one is found, and goes on, where it is now.
    quiet(&place, &["snapshot", "create", "away", "of-first"]);
    quiet(&place, &["snapshot", "create", "disk", "of-second-too"]);
    assert_eq!(snapshots(&place, "away"), ["of-first"]);
    first.stop();
    for socket in ["nbd.sock", "control.sock"] {
        assert!(!place.path("away").join(socket).exists(), "{socket}");
        assert!(place.path("disk").join(socket).exists(), "{socket}");
    }
    assert_eq!(snapshots(&place, "disk"), ["of-second", "of-second-too"]);
    let mut client = second.open("disk");
    assert_eq!(client.write(0, &[7; 4096]).unwrap(), 0);
    second.stop();
    assert!(!place.path("disk/nbd.sock").exists());
    assert_eq!(snapshots(&place, "disk"), ["of-second", "of-second-too"]);
    assert_eq!(snapshots(&place, "away"), ["of-first"]);
    let read = place.run(&["read", "disk", "--length", "4KiB"]).ok();
    assert!(read.bytes().all(|byte| byte == 7));
}

#[test]
fn the_sockets_are_their_owners_alone_whatever_the_umask_is() {
    for umask in ["000", "022", "377"] {
        let place = place();
        let server = Server::under_umask(&place, umask);
        for socket in ["nbd.sock", "control.sock"] {
            let told = fs::metadata(place.path("disk").join(socket)).unwrap();
            assert_eq!(told.permissions().mode() & 0o777, 0o600, "{socket}");
        }
        server.stop();
    }
}

/// The bytes of files, to see that they are not touched.
fn bytes(place: &Place, names: &[&str]) -> Vec<Vec<u8>> {
    let read = |name: &&str| fs::read(place.path(name)).unwrap();
    names.iter().map(read).collect()
}

#[test]
fn whoever_only_looks_writes_nothing() {
    let place = place();
    place.write("image", &"a".repeat(8192));
    quiet(&place, &["import", "disk", "image"]);
    let array = ["--system", "i-cash", "--fast", "ssd", "--slow", "hdd"];
    let create = ["create", "vms", "--size", "1MiB"];
    quiet(&place, &[&create[..], &array].concat());
    quiet(&place, &["import", "vms", "image"]);
    // Killed, so that whoever opens it has something to recover.
    let server = Server::start(&place, &[]);
    assert_eq!(server.open("").write(8192, &[b'a'; 4096]).unwrap(), 0);
    assert_eq!(server.open("").flush().unwrap(), 0);
    server.kill();
    let files = ["disk/volume.flashlore", "ssd", "hdd"];
    let before = bytes(&place, &files);
    for directory in ["disk", "vms"] {
        for command in ["info", "scrub", "check", "read"] {
            let ran = place.run(&[command, directory]);
            assert_eq!(ran.code, 0, "{command} {directory}: {}", ran.stderr);
        }
        quiet(&place, &["export", directory, &format!("{directory}.raw")]);
    }
    for command in ["log", "diff"] {
        let from: &[&str] = if command == "diff" { &["now"] } else { &[] };
        quiet(&place, &[&[command, "disk"], from].concat());
    }
    quiet(&place, &["snapshot", "list", "disk"]);
    assert!(bytes(&place, &files) == before);
    let exported = fs::read(place.path("disk.raw")).unwrap();
    assert!(exported[..12288].iter().all(|&byte| byte == b'a'));
}

/// What is mounted, until it is dropped.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // Lazily: a server of a test that failed may use it.
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// The same directory where nothing can be written; none if this user may not mount.
fn read_only<'a>(from: &Path, to: &'a Path) -> Option<Mounted<'a>> {
    fs::create_dir(to).unwrap();
    let mount = |args: &[&str]| {
        let mut mount = Command::new("mount");
        let ran = mount.args(args).arg(from).arg(to).output();
        ran.is_ok_and(|output| output.status.success())
    };
    if !installed(&["mount"]) || !is_root() {
        return None;
    }
    if !mount(&["--bind"]) {
        skip("mount-refused", "root may not mount a directory");
        return None;
    }
    let mounted = Mounted(to);
    let again = ["-o", "remount,bind,ro"];
    let made = Command::new("mount").args(again).arg(to).output();
    if !made.is_ok_and(|output| output.status.success()) {
        skip("mount-refused", "no directory can be mounted read-only");
        return None;
    }
    Some(mounted)
}

#[test]
fn a_read_only_file_system_is_enough_to_look() {
    let place = place();
    place.write("image", &"a".repeat(8192));
    quiet(&place, &["import", "disk", "image"]);
    fs::create_dir(place.path("out")).unwrap();
    let at = place.path("out/disk");
    let Some(_mounted) = read_only(&place.path("disk"), &at) else {
        return;
    };
    for command in ["info", "check", "scrub", "read", "dump"] {
        let ran = place.run(&[command, "out/disk"]);
        assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    }
    quiet(&place, &["export", "out/disk", "raw"]);
    assert_eq!(fs::read(place.path("raw")).unwrap()[..8192], [b'a'; 8192]);
    let refused = place.run(&["serve", "out/disk"]).fails(1);
    assert!(refused.contains("Read-only file system"), "{refused}");
    let nowhere = place.run(&["serve", "out/disk", "--read-only"]);
    assert_eq!(nowhere.code, 1);
    assert!(
        nowhere.stderr.contains("with --listen"),
        "{}",
        nowhere.stderr
    );
    let serve = ["serve", "out/disk", "--read-only", "--listen", "./ro.sock"];
    let mut server = Server::run(&place, &serve);
    server.socket = place.path("ro.sock");
    assert!(server.told.contains("no control socket"), "{}", server.told);
    let mut client = server.open("disk");
    assert_eq!(client.read(4096, 4096).unwrap().unwrap(), [b'a'; 4096]);
    assert_eq!(client.write(0, b"x").unwrap(), 1, "EPERM");
    server.stop();
}

#[test]
fn a_medium_that_is_an_older_copy_is_named_and_refused() {
    let place = Place::new();
    let array = ["--system", "i-cash", "--fast", "ssd", "--slow", "hdd"];
    quiet(
        &place,
        &[&["create", "disk", "--size", "1MiB"], &array[..]].concat(),
    );
    place.write("image", &"a".repeat(8192));
    quiet(&place, &["import", "disk", "image"]);
    for medium in ["ssd", "hdd"] {
        let (old, new) = (format!("{medium}.old"), format!("{medium}.new"));
        fs::copy(place.path(medium), place.path(&old)).unwrap();
        quiet(&place, &["import", "disk", "image"]);
        fs::rename(place.path(medium), place.path(&new)).unwrap();
        fs::copy(place.path(&old), place.path(medium)).unwrap();
        let before = bytes(&place, &["ssd", "hdd"]);
        for command in ["check", "info", "serve"] {
            let message = place.run(&[command, "disk"]).fails(1);
            let named = format!("{medium} is an older copy of itself: it is of session ");
            assert!(message.contains(&named), "{message}");
        }
        assert!(bytes(&place, &["ssd", "hdd"]) == before);
        fs::rename(place.path(&new), place.path(medium)).unwrap();
        quiet(&place, &["check", "disk"]);
    }
}

#[test]
fn a_server_that_is_stopped_is_not_waited_for_for_ever() {
    let place = place();
    let server = Server::start(&place, &[]);
    quiet(&place, &["info", "disk"]);
    server.signal("-STOP");
    // What is given up is not carried out once the server goes on.
    let message = place
        .run(&["snapshot", "create", "disk", "given-up"])
        .fails(1);
    server.signal("-CONT");
    assert!(
        message.contains("has said nothing for 10 seconds"),
        "{message}"
    );
    quiet(&place, &["snapshot", "create", "disk", "asked-later"]);
    server.stop();
    assert_eq!(snapshots(&place, "disk"), ["asked-later"]);
}

#[test]
fn an_image_of_what_is_served_is_of_one_instant_or_says_that_it_may_not_be() {
    let place = Place::new();
    for (system, has_history) in [("bvssd", true), ("plain", false)] {
        quiet(
            &place,
            &["create", "disk", "--size", "1MiB", "--system", system],
        );
        let server = Server::start(&place, &[]);
        let copied = place.run(&["export", "disk", "image.raw"]);
        assert_eq!(copied.code, 0, "{}", copied.stderr);
        let is_told = copied.stderr.contains("keeps no history");
        assert_eq!(is_told, !has_history, "{system}: {}", copied.stderr);
        server.stop();
        // Nobody writes to what is not served.
        fs::remove_file(place.path("image.raw")).unwrap();
        let copied = place.run(&["export", "disk", "image.raw"]);
        assert_eq!((copied.code, copied.stderr.as_str()), (0, ""));
        fs::remove_file(place.path("image.raw")).unwrap();
        fs::remove_dir_all(place.path("disk")).unwrap();
    }
}

#[test]
fn the_rest_behind_a_shorter_image_is_told_and_trimmed_if_wanted() {
    let place = place();
    place.write("long", &"b".repeat(1 << 20));
    place.write("short", &"a".repeat(5000));
    let whole = place.run(&["import", "disk", "long"]);
    assert!(!whole.stderr.contains("behind"), "{}", whole.stderr);
    let short = place.run(&["import", "disk", "short"]);
    let told = "short has 5000 bytes: the 1043576 that the volume shows behind them are as they were (--trim-rest ";
    assert!(short.stderr.starts_with(told), "{}", short.stderr);
    let content = |from: u8| {
        let bytes = place.run(&["read", "disk"]).ok().into_bytes();
        bytes[..5000].iter().all(|&byte| byte == b'a') && bytes[5000..].iter().all(|&b| b == from)
    };
    assert!(content(b'b'));
    let trimmed = place.run(&["import", "disk", "short", "--trim-rest"]);
    let told = "short has 5000 bytes: the 1043576 that the volume shows behind them are zeros now\n2 pages ";
    assert!(trimmed.stderr.starts_with(told), "{}", trimmed.stderr);
    assert!(content(0));
}

#[test]
fn a_medium_that_fails_is_told_when_it_happens() {
    let place = place();
    // The volume's file has 6 MiB; the server cannot write to the second half.
    let mut server = Server::limited(&place, 6144, &["serve", "disk"]);
    let mut client = server.open("disk");
    let failed = (0..4096u64).any(|number| {
        let page: Vec<u8> = (0..4096u64)
            .map(|n| ((n * (number + 3)) >> 3) as u8)
            .collect();
        client.write(number % 256 * 4096, &page).unwrap() != 0 || client.flush().unwrap() != 0
    });
    assert!(failed);
    let told = server.next_line();
    assert!(
        told.contains("cannot write") && told.contains("volume.flashlore"),
        "{told}"
    );
    let info = place.run(&["info", "disk"]).ok();
    assert!(
        info.contains("failures") && info.contains("cannot write"),
        "{info}"
    );
    let json = place.run(&["info", "disk", "--json"]).json();
    assert!(json["failures"]["count"].as_u64().unwrap() > 0);
    assert_eq!(server.ended().0, Some(1));
}
