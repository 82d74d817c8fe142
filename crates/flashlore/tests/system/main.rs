//! A served volume under real software: file systems on a loop device, and NBD clients. What is not installed, or
//! not allowed, is said and passed over. `FLASHLORE_KILL_ROUNDS` says how often servers are killed (2).

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flashlore_testkit::{installed, may_mount};
use tempfile::TempDir;

/// Whether all programs are there, and the user may mount.
fn can_run(programs: &[&str], mounts: bool) -> bool {
    installed(programs) && (!mounts || may_mount())
}

/// Runs a script in a directory; what it printed.
fn shell(directory: &Path, script: &str) -> String {
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(directory)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{script}\nended with {}: {said} {complained}",
        output.status
    );
    said
}

/// Makes an array instead of a volume.
const ARRAY: &str = "--system i-cash --fast ssd --slow hdd";

/// A volume or an array in a directory, and its server.
struct Disk {
    directory: TempDir,
    server: Option<Child>,
}

impl Disk {
    fn create(options: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = env!("CARGO_BIN_EXE_flashlore");
        shell(
            directory.path(),
            &format!("{program} create disk {options}"),
        );
        fs::create_dir(directory.path().join("mnt")).unwrap();
        fs::create_dir(directory.path().join("fuse")).unwrap();
        Disk {
            directory,
            server: None,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().to_path_buf()
    }

    fn serve(&mut self) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_flashlore"))
            .args(["serve", "disk"])
            .current_dir(self.directory.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("serving")));
        // What it says later is of no interest, and must not stop it.
        std::thread::spawn(move || lines.for_each(drop));
        self.server = Some(child);
    }

    fn shell(&self, script: &str) -> String {
        shell(&self.path(), script)
    }

    /// Runs the program under test.
    fn flashlore(&self, arguments: &str) -> String {
        let program = env!("CARGO_BIN_EXE_flashlore");
        self.shell(&format!("{program} {arguments}"))
    }

    /// The volume as a loop device; its name.
    fn attach(&self) -> String {
        self.shell(
            "nbdfuse fuse 'nbd+unix:///disk?socket=disk/nbd.sock' >/dev/null 2>&1 </dev/null &
             for _ in $(seq 1200); do [ -e fuse/nbd ] && break; sleep .05; done
             losetup -f --show fuse/nbd",
        )
        .trim()
        .to_owned()
    }

    /// Whoever looks at a new device, such as udev, keeps it for a moment: the file below is busy until then.
    fn detach(&self, device: &str) {
        self.shell(&format!("losetup -d {device}"));
        self.insist("fusermount3 -u fuse");
        // What was mounted is gone before its process, and with it its connection, has ended.
        let clients = || {
            let info = self.flashlore("info disk --json");
            let info: serde_json::Value = serde_json::from_str(&info).unwrap();
            info["clients"] != serde_json::json!([0, 0])
        };
        while clients() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn mount(&self) -> String {
        let device = self.attach();
        self.shell(&format!("mount {device} mnt"));
        device
    }

    /// A program that another test has just started may hold, for a moment, what is open here: the file system is busy
    /// until then.
    fn leave(&self) {
        self.insist("umount mnt");
    }

    /// Repeats a command until it succeeds, for a minute at most.
    fn insist(&self, command: &str) {
        self.shell(&format!(
            "for _ in $(seq 1200); do {command} 2>/dev/null && exit; sleep .05; done
             {command}"
        ));
    }

    fn unmount(&self, device: &str) {
        self.leave();
        self.detach(device);
    }

    fn end(&mut self, signal: &str) {
        let mut server = self.server.take().unwrap();
        self.shell(&format!("kill -{signal} {}", server.id()));
        let status = server.wait().unwrap();
        assert!(signal != "TERM" || status.success(), "{status}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
        // Whatever a failed test left mounted.
        let _ = Command::new("bash")
            .args([
                "-c",
                "umount -l mnt; losetup -nO NAME -j fuse/nbd | xargs -r losetup -d; fusermount3 -uz fuse",
            ])
            .current_dir(self.directory.path())
            .stderr(Stdio::null())
            .status();
    }
}

/// Writes files one after the other, each followed by an fsync, and notes each that was acknowledged; until writing
/// fails.
fn write_files(directory: PathBuf, first: u32) -> Vec<(String, Vec<u8>)> {
    let mut acknowledged = Vec::new();
    for number in first.. {
        let content: Vec<u8> = (0..2000 + number % 7 * 3000)
            .map(|byte| (byte.wrapping_mul(number) >> 3) as u8)
            .collect();
        let name = format!("file{number}");
        let write = || -> std::io::Result<()> {
            let mut file = fs::File::create(directory.join(&name))?;
            std::io::Write::write_all(&mut file, &content)?;
            file.sync_all()?;
            fs::File::open(&directory)?.sync_all()
        };
        if write().is_err() {
            break;
        }
        acknowledged.push((name, content));
    }
    acknowledged
}

#[test]
fn acknowledged_files_survive_killed_servers() {
    files_survive("--size 256MiB");
}

#[test]
fn acknowledged_files_survive_killed_servers_of_arrays() {
    files_survive(&format!("--size 256MiB {ARRAY} --fast-size 24MiB"));
}

fn files_survive(options: &str) {
    let programs = ["nbdfuse", "mkfs.ext4", "e2fsck", "losetup", "fusermount3"];
    if !can_run(&programs, true) {
        return;
    }
    let rounds = std::env::var("FLASHLORE_KILL_ROUNDS").map_or(2, |text| text.parse().unwrap());
    let mut disk = Disk::create(options);
    disk.serve();
    let device = disk.attach();
    disk.shell(&format!("mkfs.ext4 -q {device}"));
    disk.detach(&device);
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for round in 0..rounds {
        let device = disk.mount();
        let (mnt, first) = (disk.path().join("mnt"), files.len() as u32 % 1000);
        let writer = std::thread::spawn(move || write_files(mnt, first));
        std::thread::sleep(Duration::from_millis(300 + 150 * (round % 7)));
        disk.end("KILL");
        let written = writer.join().unwrap();
        assert!(!written.is_empty(), "nothing was written");
        // A file that is written again holds either what it held or what was not acknowledged: not compared.
        let next = format!("file{}", first as usize + written.len());
        files.retain(|(name, _)| *name != next && written.iter().all(|(other, _)| other != name));
        files.extend(written);
        // The file system has gone read-only; it comes back from its journal.
        let _ = disk.shell(&format!(
            "umount -l mnt; losetup -d {device}; fusermount3 -uz fuse"
        ));
        wait_until(|| !disk.path().join("fuse/nbd").exists());
        disk.serve();
        let device = disk.mount();
        for (name, content) in &files {
            let found = fs::read(disk.path().join("mnt").join(name));
            let found = found.unwrap_or_else(|error| panic!("round {round}: {name}: {error}"));
            assert!(found == *content, "round {round}: {name} differs");
        }
        disk.leave();
        disk.shell(&format!("e2fsck -fn {device} 2>&1"));
        disk.detach(&device);
    }
    disk.end("TERM");
    disk.flashlore("check disk");
}

fn wait_until(done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Makes a file system, fills it, deletes, trims, mounts it anew, compares, and has it checked.
fn file_system(make: &str, check: &str, programs: &[&str], options: &str) {
    let mut needed = vec!["nbdfuse", "losetup", "fusermount3", "fstrim"];
    needed.extend(programs);
    if !can_run(&needed, true) {
        return;
    }
    let mut disk = Disk::create(&format!("--size 512MiB {options}"));
    if options.starts_with(ARRAY) {
        // A file system sends few requests, of many blocks each.
        disk.flashlore("tune disk scan-every=100");
    }
    disk.serve();
    let device = disk.attach();
    disk.shell(&format!("{make} {device} 2>&1; mount {device} mnt"));
    disk.shell(
        "mkdir data
         head -c 20000000 /dev/urandom > data/random
         for n in $(seq 200); do head -c $((n * 137)) data/random > data/$n; done
         cp -r data mnt/one; cp -r data mnt/two; rm mnt/one/1*; sync
         fstrim mnt; rm -r mnt/two; cp -r data mnt/three",
    );
    disk.unmount(&device);
    disk.end("TERM");
    disk.serve();
    let device = disk.mount();
    disk.shell("diff -r data mnt/three; [ ! -e mnt/two ]; cmp data/77 mnt/one/77");
    disk.unmount(&device);
    let device = disk.attach();
    disk.shell(&format!("{check} {device} 2>&1"));
    disk.detach(&device);
    let info: serde_json::Value =
        serde_json::from_str(&disk.flashlore("info disk --json")).unwrap();
    match info["answer"].as_str() {
        Some("info") => assert!(info["saved"]["dedup"].as_u64() > Some(10_000_000), "{info}"),
        // How many depends on which requests a busy kernel merges before a scan.
        _ => assert!(info["element"]["associates"].as_u64() > Some(0), "{info}"),
    }
    disk.end("TERM");
    disk.flashlore("check disk");
}

fn ext4(options: &str) {
    file_system(
        "mkfs.ext4 -q",
        "e2fsck -fn",
        &["mkfs.ext4", "e2fsck"],
        options,
    );
}

fn xfs(options: &str) {
    let programs = ["mkfs.xfs", "xfs_repair"];
    file_system(
        "mkfs.xfs -q -m reflink=0",
        "xfs_repair -n",
        &programs,
        options,
    );
}

fn btrfs(options: &str) {
    file_system(
        "mkfs.btrfs -q",
        "btrfs check",
        &["mkfs.btrfs", "btrfs"],
        options,
    );
}

#[test]
fn ext4_lives_on_a_volume() {
    ext4("");
}

#[test]
fn ext4_lives_on_an_array() {
    ext4(ARRAY);
}

#[test]
fn xfs_lives_on_a_volume() {
    xfs("");
}

#[test]
fn xfs_lives_on_an_array() {
    xfs(&format!("{ARRAY} --strict"));
}

#[test]
fn btrfs_lives_on_a_volume() {
    btrfs("");
}

#[test]
fn btrfs_lives_on_an_array() {
    btrfs(&format!("{ARRAY} --ordered"));
}

#[test]
fn files_that_were_deleted_are_seen_again() {
    let programs = ["nbdfuse", "mkfs.ext4", "losetup", "fusermount3"];
    if !can_run(&programs, true) {
        return;
    }
    let mut disk = Disk::create("--size 256MiB");
    disk.serve();
    let device = disk.attach();
    disk.shell(&format!("mkfs.ext4 -q {device}; mount {device} mnt"));
    disk.shell("echo precious > mnt/kept; head -c 5000000 /dev/urandom > mnt/big; sync");
    let sum = disk.shell("sha256sum < mnt/big");
    disk.flashlore("mark disk all-is-well");
    disk.shell("sleep .2; rm mnt/kept mnt/big; head -c 9000000 /dev/urandom > mnt/other; sync");
    let program = env!("CARGO_BIN_EXE_flashlore");
    let refused = format!("! {program} recover disk --to now --to-mark 2>&1");
    assert!(disk.shell(&refused).contains("may write"));
    // First at that instant beside the live one, then back to it.
    disk.shell("head -c 1000000 mnt/other | cmp - <(head -c 1000000 mnt/other)");
    disk.unmount(&device);
    disk.flashlore("recover disk --to now --to-mark");
    let device = disk.mount();
    assert_eq!(disk.shell("cat mnt/kept"), "precious\n");
    assert_eq!(disk.shell("sha256sum < mnt/big"), sum);
    disk.shell("[ ! -e mnt/other ]");
    disk.unmount(&device);
    disk.end("TERM");
}

#[test]
fn a_store_that_was_full_is_written_again_once_it_has_room() {
    if !can_run(&["mount"], true) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_flashlore");
    let said = shell(
        directory.path(),
        &format!(
            "trap 'umount -l small' EXIT
             mkdir small; mount -t tmpfs -o size=12M tmpfs small
             {program} create small/disk --size 16MiB --system plain
             head -c 16M /dev/urandom > image
             {program} import small/disk image 2>&1 && exit 1
             {program} info small/disk | grep -q 'size *16.0 MiB'
             {program} read small/disk --length 4096 > page
             {program} check small/disk
             mount -o remount,size=64M small
             {program} import small/disk image
             {program} export small/disk copy
             cmp image copy
             {program} check small/disk"
        ),
    );
    assert!(said.contains("No space left on device"), "{said}");
}

#[test]
fn the_walk_through_of_the_readme_brings_a_file_back() {
    let programs = ["mkfs.ext4", "losetup", "fusermount3"];
    if !can_run(&programs, true) {
        return;
    }
    let readme = include_str!("../../../../README.md");
    let from = readme.find("flashlore create disk --size 1GiB").unwrap();
    let walk = &readme[from..from + readme[from..].find("```").unwrap()];
    assert!(walk.contains("sleep 70") && walk.contains("1min ago"));
    // In a test a minute is shorter. How long ago the file was there is computed where it is needed: a busy machine may
    // take long over the steps.
    let walk = walk.replace("sleep 70", "sleep 1; was=$(date +%s); sleep 10");
    let walk = walk.replace("1min ago", "$(($(date +%s) - was))s ago");
    // A user is slower than whoever still looks at the loop device.
    let walk = walk.replace(
        "umount mnt\n",
        "until umount mnt 2>/dev/null; do sleep .1; done\n",
    );
    let directory = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_flashlore"));
    let programs = program.parent().unwrap().display();
    // Also if it fails: what serves in the background must not keep the test waiting, as it does while a loop device
    // has its file, which has no name any more once `mnt` is gone.
    let tidy = "umount -l old files; losetup -nO NAME -j mnt/disk | xargs -r losetup -d; umount -l mnt; kill $(jobs -p)";
    let said = shell(
        directory.path(),
        &format!("PATH={programs}:$PATH; trap '{{ {tidy}; }} 2>/dev/null || true' EXIT\n{walk}"),
    );
    assert_eq!(said.matches("the only copy").count(), 2, "{said}");
}

/// What a file system does at random, from a seed.
const SOME_FILES: &str = r#"
RANDOM=SEED
for _ in $(seq 40); do
  file=mnt/d$((RANDOM % 4))/f$((RANDOM % 12)); other=mnt/d$((RANDOM % 4))/f$((RANDOM % 12))
  mkdir -p ${file%/*} ${other%/*}
  case $((RANDOM % 7)) in
    0) rm -f $file;;
    1) head -c $((RANDOM * 3)) /dev/urandom > $file;;
    2) [ ! -e $other ] || cp $other $file 2>/dev/null || true;;
    3) echo $RANDOM >> $file;;
    4) [ ! -e $file ] || printf %s $RANDOM | dd of=$file conv=notrunc bs=1 seek=$((RANDOM % 9000)) status=none;;
    5) [ ! -e $other ] || mv $other $file 2>/dev/null || true;;
    6) yes $RANDOM | head -c $((RANDOM * 2)) > $file || true;;
  esac
done
sync -f mnt"#;

/// The pages in which two images differ, as ranges: the first page and the one behind the last.
fn differing(a: &[u8], b: &[u8]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (number, (a, b)) in (0..).zip(a.chunks(4096).zip(b.chunks(4096))) {
        if a == b {
            continue;
        }
        match ranges.last_mut() {
            Some((_, end)) if *end == number => *end = number + 1,
            _ => ranges.push((number, number + 1)),
        }
    }
    ranges
}

#[test]
fn instants_of_a_random_file_system_are_exact_while_it_is_used() {
    const INSTANTS: u32 = 8;
    let programs = [
        "nbdfuse",
        "mkfs.ext4",
        "e2fsck",
        "losetup",
        "fusermount3",
        "fsfreeze",
        "nbdcopy",
    ];
    if !can_run(&programs, true) {
        return;
    }
    let mut disk = Disk::create("--size 48MiB --capacity 256MiB");
    disk.serve();
    let device = disk.attach();
    disk.shell(&format!("mkfs.ext4 -q {device}; mount {device} mnt"));
    let uri = "'nbd+unix:///disk?socket=disk/nbd.sock'";
    let mut moments = Vec::new();
    for round in 0..INSTANTS {
        disk.shell(&SOME_FILES.replace("SEED", &(round + 1).to_string()));
        let moment = disk.shell(&format!(
            "fsfreeze -f mnt; nbdcopy {uri} truth{round}; sleep .02; date -u +%FT%T.%NZ; sleep .02; fsfreeze -u mnt"
        ));
        moments.push(moment.trim().to_owned());
    }
    let mut writer = Command::new("bash")
        .args([
            "-c",
            // No more than a slow machine can do without the window passing over an instant.
            "for _ in $(seq 200); do [ ! -e stop ] || break; head -c 300000 /dev/urandom > mnt/busy; sync -f mnt; sleep .05; done",
        ])
        .current_dir(disk.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let truth = |round: usize| fs::read(disk.path().join(format!("truth{round}"))).unwrap();
    for (round, moment) in moments.iter().enumerate() {
        disk.flashlore(&format!("export disk at.raw --at {moment}"));
        disk.shell(&format!(
            "cmp at.raw truth{round}; e2fsck -fn at.raw; rm at.raw"
        ));
        let Some(next) = moments.get(round + 1) else {
            break;
        };
        let told = disk.flashlore(&format!("diff disk {moment} {next} --json"));
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let ranges = told["ranges"].as_array().unwrap().iter();
        let range = |range: &serde_json::Value| {
            let (first, bytes) = (range[0].as_u64()?, range[1].as_u64()?);
            Some((first / 4096, (first + bytes) / 4096))
        };
        let told: Option<Vec<(u64, u64)>> = ranges.map(range).collect();
        let expected = differing(&truth(round), &truth(round + 1));
        assert_eq!(told.unwrap(), expected, "{moment} and {next}");
    }
    disk.shell("touch stop");
    writer.wait().unwrap();
    disk.unmount(&device);
    for round in [5, 2, 7] {
        disk.flashlore(&format!("recover disk --to {}", moments[round]));
        disk.shell(&format!("nbdcopy {uri} now; cmp now truth{round}; rm now"));
    }
    disk.end("TERM");
    disk.flashlore("check disk");
}

const URI: &str = "'nbd+unix:///disk?socket=disk/nbd.sock'";
const FIO: &str = "fio --name=v --ioengine=nbd --rw=randwrite --bsrange=512-64k --ba=512 --iodepth=16 --size=32m \
                   --verify=crc32c --verify_fatal=1 --randseed=7 --output=/dev/null";

/// A disk that clients have filled, and compared with what they wrote.
fn filled_by_clients(options: &str) -> Option<Disk> {
    if !can_run(&["nbdcopy", "qemu-img", "fio"], false) {
        return None;
    }
    let mut disk = Disk::create(options);
    disk.serve();
    disk.shell("head -c 33554432 /dev/urandom > a; head -c 33554432 /dev/zero >> a");
    disk.shell(&format!(
        "nbdcopy --flush a {URI}; nbdcopy --connections=4 {URI} b; cmp a b"
    ));
    disk.shell(&format!("qemu-img compare -f raw -F raw a {URI}"));
    Some(disk)
}

#[test]
fn clients_copy_compare_and_verify_an_array() {
    for options in ["", "--strict", "--ordered"] {
        let options = format!("--size 64MiB {ARRAY} {options}");
        let Some(mut disk) = filled_by_clients(&options) else {
            return;
        };
        disk.shell(&format!("{FIO} --uri={URI}"));
        let map = disk.shell(&format!(
            "nbdinfo --map --totals {URI}; nbdinfo --map=flashlore:stored {URI}"
        ));
        assert!(map.contains("hole,zero"), "{map}");
        disk.shell(&format!("nbdcopy {URI} c"));
        disk.end("TERM");
        disk.flashlore("export disk d.raw");
        disk.shell("cmp c d.raw");
        disk.flashlore("check disk");
        if options.contains("--ordered") {
            disk.shell("rm ssd");
            disk.flashlore("export disk e.raw --slow-alone");
            disk.shell("cmp c e.raw");
        }
    }
}

#[test]
fn clients_copy_compare_and_verify() {
    let Some(mut disk) = filled_by_clients("--size 64MiB") else {
        return;
    };
    disk.flashlore("snapshot create disk before");
    disk.shell(&format!("{FIO} --uri={URI}"));
    disk.shell(
        "nbdcopy 'nbd+unix:///disk@before?socket=disk/nbd.sock' c; cmp a c
         nbdinfo --map --totals 'nbd+unix:///disk@before?socket=disk/nbd.sock'",
    );
    // What changed since is what an incremental copy needs: everything else is as it was.
    disk.shell(&format!("nbdcopy {URI} d"));
    let differ = disk.flashlore("diff disk before");
    let (mut old, new) = (
        fs::read(disk.path().join("a")).unwrap(),
        fs::read(disk.path().join("d")).unwrap(),
    );
    assert!(old != new);
    for line in differ.lines() {
        let (first, length) = line.split_once(' ').unwrap();
        let first: usize = first.parse().unwrap();
        let range = first..first + length.parse::<usize>().unwrap();
        assert!(old[range.clone()] != new[range.clone()]);
        old[range.clone()].copy_from_slice(&new[range]);
    }
    assert!(old == new);
    disk.end("TERM");
}
