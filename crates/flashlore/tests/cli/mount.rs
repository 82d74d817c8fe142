//! A mounted volume, alone and with a file system on it. Where nothing can be mounted these tests say so and end.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use flashlore_testkit::{installed, may_mount, skip};

use crate::program::{Place, quiet};

/// A mount that runs.
struct Mount {
    child: Child,
    stderr: BufReader<ChildStderr>,
    point: PathBuf,
}

impl Mount {
    /// Nothing, and a word about it, where nothing can be mounted.
    fn start(place: &Place, more: &[&str]) -> Option<Mount> {
        Mount::of(place, "disk", "mnt", more)
    }

    /// The same of a volume at a directory that is made for it.
    fn of(place: &Place, volume: &str, point: &str, more: &[&str]) -> Option<Mount> {
        let at = point;
        let point = place.path(at);
        fs::create_dir_all(&point).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_flashlore"))
            .args(["mount", volume, at])
            .args(more)
            .current_dir(place.path(""))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("mounted ") {
            if stderr.read_line(&mut said).unwrap() == 0 {
                assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
                if said.contains("/dev/fuse is missing") {
                    skip("no-fuse", said);
                } else {
                    assert!(said.contains("/dev/fuse"), "{said}");
                    skip("mount-refused", said);
                }
                return None;
            }
        }
        Some(Mount {
            child,
            stderr,
            point,
        })
    }

    fn file(&self) -> PathBuf {
        self.point.join("disk")
    }

    fn signal(&self) {
        run("kill", &["-TERM", &self.child.id().to_string()]);
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// Its exit code and what it still said.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            // A test that failed leaves neither a process nor a mount behind.
            let _ = self.child.kill();
            let _ = self.child.wait();
            let _ = Command::new("umount").arg("-l").arg(&self.point).output();
        }
    }
}

fn output(program: &str, args: &[&str]) -> Output {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    Command::new(program)
        .args(args)
        .env("PATH", path)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Runs a program that has to succeed; what it printed.
fn run(program: &str, args: &[&str]) -> String {
    let output = output(program, args);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

/// The directory above a mount point is renamed, and another volume is mounted at the old path: the end of the first
/// one leaves that alone.
#[test]
fn a_mount_that_was_moved_ends_where_it_is_and_leaves_another_at_its_path() {
    let place = Place::new();
    for disk in ["one", "two"] {
        quiet(place.run(&["create", disk, "--size", "1MiB"]));
    }
    let Some(mut first) = Mount::of(&place, "one", "here/mnt", &[]) else {
        return;
    };
    fs::rename(place.path("here"), place.path("away")).unwrap();
    first.point = place.path("away/mnt");
    let second = Mount::of(&place, "two", "here/mnt", &[]).unwrap();
    first.signal();
    let patience = Instant::now() + Duration::from_secs(60);
    while first.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < patience, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(first.ended().0, Some(0));
    assert!(!place.path("away/mnt/one").exists());
    let file = OpenOptions::new()
        .write(true)
        .open(second.point.join("two"));
    file.unwrap().write_all_at(b"here", 5).unwrap();
    second.signal();
    assert_eq!(second.ended().0, Some(0));
    assert!(!place.path("here/mnt/two").exists());
    let read = place.run(&["read", "two", "--length", "9"]).ok();
    assert_eq!(&read.as_bytes()[5..], b"here");
}

#[test]
fn a_mounted_volume_is_steered_and_shows_its_past() {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "1MiB"]));
    let Some(mut mount) = Mount::start(&place, &[]) else {
        return;
    };
    let file = OpenOptions::new().read(true).write(true).open(mount.file());
    let file = file.unwrap();
    file.write_all_at(b"old", 5).unwrap();
    quiet(place.run(&["snapshot", "create", "disk", "first"]));
    file.write_all_at(b"new", 5).unwrap();
    fs::create_dir(place.path("other")).unwrap();
    let old = fs::read(mount.point.join("at/first")).unwrap();
    assert_eq!((&old[5..8], old.len()), (&b"old"[..], 1 << 20));
    let json = place.run(&["info", "disk", "--json"]).json();
    assert_eq!(json["clients"][0], 1);
    let recover = ["recover", "disk", "--to", "first", "--disconnect"];
    let message = place.run(&recover).fails(1);
    assert!(message.contains("--disconnect cannot drop"), "{message}");
    for (args, why) in [
        (
            ["mount", "disk", "mnt"],
            "something is mounted there already",
        ),
        (["mount", "disk", "other"], "in use"),
        (["mount", "disk", "nowhere"], "No such file"),
    ] {
        let message = place.run(&args).fails(1);
        assert!(message.contains(why), "{message}");
    }
    for hides in ["disk", "."] {
        let message = place.run(&["mount", "disk", hides]).fails(2);
        assert!(message.contains("would hide it"), "{message}");
    }

    mount.signal();
    assert_eq!(mount.line(), "unmounting\n");
    let waits = mount.line();
    assert!(waits.contains("still used, 1 file is open"), "{waits}");
    file.write_all_at(b"yes", 5).unwrap();
    drop(file);
    assert_eq!(mount.ended(), (Some(0), String::new()));
    assert!(!place.path("disk/control.sock").exists());
    let report = place.run(&["check", "disk"]).ok();
    assert!(report.contains("; 0 events to replay"), "{report}");
    quiet(place.run(&recover));
    let read = place.run(&["read", "disk", "--offset", "5", "--length", "3"]);
    assert_eq!(read.ok(), "old");
}

#[test]
fn a_mount_ends_when_it_is_unmounted_and_a_second_signal_cuts_it_off() {
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "1MiB"]));
    let Some(mount) = Mount::start(&place, &["--read-only"]) else {
        return;
    };
    let written = OpenOptions::new().write(true).open(mount.file());
    assert!(written.is_err());
    // Root or not, one of them does it.
    let point = mount.point.to_str().unwrap();
    if !output("umount", &[point]).status.success() {
        run("fusermount3", &["-u", point]);
    }
    assert_eq!(mount.ended(), (Some(0), String::new()));

    let mut mount = Mount::start(&place, &[]).unwrap();
    let file = OpenOptions::new().write(true).open(mount.file()).unwrap();
    file.write_all_at(b"kept", 0).unwrap();
    file.sync_all().unwrap();
    mount.signal();
    mount.line();
    mount.line();
    mount.signal();
    let (code, said) = mount.ended();
    assert_eq!(code, Some(1));
    assert!(
        said.contains("cut off; everything acknowledged is safe"),
        "{said}"
    );
    assert!(file.write_all_at(b"lost", 0).is_err());
    let report = place.run(&["check", "disk"]).ok();
    assert!(report.contains("; 0 events to replay"), "{report}");
    let read = place.run(&["read", "disk", "--length", "4"]);
    assert_eq!(read.ok(), "kept");
}

/// A loop device, detached at the end.
struct Loop(String);

impl Loop {
    /// Nothing, and a word about it, where there are none to be had.
    fn over(file: &Path, more: &[&str]) -> Option<Loop> {
        let args = [more, &["-f", "--show", file.to_str().unwrap()]].concat();
        let made = output("losetup", &args);
        if !made.status.success() {
            skip("loop-refused", String::from_utf8_lossy(&made.stderr));
            return None;
        }
        Some(Loop(
            String::from_utf8(made.stdout).unwrap().trim().to_owned(),
        ))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = output("losetup", &["-d", &self.0]);
    }
}

/// A file system that is mounted, unmounted at the end.
struct MountedFs(PathBuf);

impl MountedFs {
    fn new(device: &Loop, options: &str, at: PathBuf) -> Self {
        fs::create_dir_all(&at).unwrap();
        run("mount", &["-o", options, &device.0, at.to_str().unwrap()]);
        MountedFs(at)
    }
}

impl Drop for MountedFs {
    fn drop(&mut self) {
        run("umount", &[self.0.to_str().unwrap()]);
    }
}

/// Whether a file system can be made on a loop device here.
fn tools_are_here() -> bool {
    installed(&["losetup", "mkfs.ext4", "e2fsck", "fstrim", "mount"]) && may_mount()
}

#[test]
fn ext4_on_a_loop_device_outlives_remounts_and_its_past_can_be_mounted() {
    if !tools_are_here() {
        return;
    }
    let place = Place::new();
    quiet(place.run(&["create", "disk", "--size", "64MiB"]));
    let Some(mount) = Mount::start(&place, &[]) else {
        return;
    };
    let Some(device) = Loop::over(&mount.file(), &["--direct-io=on"]) else {
        return;
    };
    run("mkfs.ext4", &["-q", &device.0]);
    let content: Vec<u8> = (0..4_000_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    {
        let ext4 = MountedFs::new(&device, "rw", place.path("fs"));
        fs::write(ext4.0.join("a"), &content).unwrap();
        run("sync", &["-f", ext4.0.to_str().unwrap()]);
        quiet(place.run(&["snapshot", "create", "disk", "with-a"]));
        fs::remove_file(ext4.0.join("a")).unwrap();
        fs::write(ext4.0.join("b"), &content[..3_000_000]).unwrap();
        run("fstrim", &[ext4.0.to_str().unwrap()]);
    }
    run("e2fsck", &["-fn", &device.0]);
    {
        let ext4 = MountedFs::new(&device, "rw", place.path("fs"));
        assert!(!ext4.0.join("a").exists());
        assert!(fs::read(ext4.0.join("b")).unwrap() == content[..3_000_000]);
    }
    // The past, while the present goes on. Its journal is not replayed: nothing can be written there.
    let old = Loop::over(&mount.point.join("at/with-a"), &["-r"]).unwrap();
    {
        let past = MountedFs::new(&old, "ro,noload", place.path("past"));
        assert!(fs::read(past.0.join("a")).unwrap() == content);
    }
    drop((old, device));
    mount.signal();
    let (code, said) = mount.ended();
    assert_eq!(code, Some(0), "{said}");

    // Mounted anew, with a loop device that does not go around the page cache.
    let mount = Mount::start(&place, &[]).unwrap();
    let device = Loop::over(&mount.file(), &[]).unwrap();
    run("e2fsck", &["-fn", &device.0]);
    {
        let ext4 = MountedFs::new(&device, "rw", place.path("fs"));
        assert!(fs::read(ext4.0.join("b")).unwrap() == content[..3_000_000]);
        fs::write(ext4.0.join("c"), &content).unwrap();
    }
    run("e2fsck", &["-fn", &device.0]);
    drop(device);
    mount.signal();
    let (code, said) = mount.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        place
            .run(&["check", "disk"])
            .ok()
            .contains("0 events to replay")
    );
}

#[test]
fn an_array_is_a_file_for_each_machine() {
    let place = Place::new();
    let create = [
        "create",
        "disk",
        "--size",
        "16MiB",
        "--system",
        "i-cash",
        "--fast",
        "ssd",
        "--slow",
        "hdd",
        "--machines",
        "2",
        "--ordered",
    ];
    quiet(place.run(&create));
    let Some(mut mount) = Mount::start(&place, &[]) else {
        return;
    };
    assert!(mount.line().ends_with("/mnt/disk.1\n"));
    let mut names: Vec<_> = fs::read_dir(&mount.point)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["disk", "disk.1"]);
    for absent in ["at", "at/now", "disk.2"] {
        assert!(fs::metadata(mount.point.join(absent)).is_err(), "{absent}");
    }
    let second = mount.point.join("disk.1");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&second)
        .unwrap();
    file.write_all_at(b"a part of a page", 4090).unwrap();
    file.sync_all().unwrap();
    assert_eq!(file.metadata().unwrap().len(), 16 << 20);
    assert!(file.set_len(1).is_err());
    let mut found = [1; 18];
    file.read_exact_at(&mut found, 4089).unwrap();
    assert_eq!(&found, b"\0a part of a page\0");
    drop(file);
    // No loop device is needed to make a file system, nor to check it.
    let path = mount.file();
    let path = path.to_str().unwrap();
    let has_tools = installed(&["mkfs.ext4", "e2fsck"]);
    if has_tools {
        run("mkfs.ext4", &["-q", "-F", path]);
        run("e2fsck", &["-fn", path]);
    }
    quiet(place.run(&["clone", "disk", "0", "1", "--overwrite"]));
    mount.signal();
    let (code, said) = mount.ended();
    assert_eq!(code, Some(0), "{said}");
    quiet(place.run(&["export", "disk", "one", "--machine", "1"]));
    fs::remove_file(place.path("ssd")).unwrap();
    quiet(place.run(&["export", "disk", "zero", "--slow-alone"]));
    assert!(fs::read(place.path("zero")).unwrap() == fs::read(place.path("one")).unwrap());
    if has_tools {
        run("e2fsck", &["-fn", place.path("zero").to_str().unwrap()]);
    }

    let mount = Mount::start(&place, &["--slow-alone"]).unwrap();
    assert!(OpenOptions::new().write(true).open(mount.file()).is_err());
    assert!(fs::read(mount.file()).unwrap() == fs::read(place.path("zero")).unwrap());
    mount.signal();
    assert_eq!(mount.ended().0, Some(0));
}
