//! A mounted volume against a plain array of bytes. Where nothing can be mounted these tests say so and end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashlore_fuse::{MountError, MountPoint, Mounted, mount};
use flashlore_medium::{Access, Mode};
use flashlore_serve::{Answer, Home, Request, Served, Service};
use flashlore_testkit::skip;
use flashlore_volume::disk::BlockDevice;
use flashlore_volume::{CreateOptions, Encoding, HistoryIdentity, Policy};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::unistd::{Whence, lseek};
use tempfile::TempDir;

const SIZE: u64 = 4 << 20;
const PUNCH: FallocateFlags =
    FallocateFlags::FALLOC_FL_PUNCH_HOLE.union(FallocateFlags::FALLOC_FL_KEEP_SIZE);
const ZERO: FallocateFlags = FallocateFlags::FALLOC_FL_ZERO_RANGE;

/// A small volume with a history, mounted.
struct Place {
    mounted: Mounted,
    service: Arc<Service>,
    directory: TempDir,
}

fn create(directory: &TempDir, history: bool) -> Arc<Service> {
    let home = Home::new(directory.path().join("vol"));
    let options = CreateOptions {
        policy: Policy::Dedup,
        history: history.then_some(HistoryIdentity {
            entries: 0,
            least_window: 0,
            protected: false,
        }),
        encoding: Encoding {
            deltas: true,
            compression: true,
        },
        size: SIZE,
        capacity: 6 * SIZE,
        now: 1,
        seed: [7; 48],
    };
    home.create(&options).unwrap();
    let opened = home.open(Mode::Buffered, Access::Change).unwrap();
    // A second passes between two looks at the clock.
    let seconds = AtomicU64::new(1);
    let clock = move || seconds.fetch_add(1, Ordering::SeqCst) * 1_000_000_000;
    Arc::new(Service::new(home, opened, Arc::new(clock)).unwrap())
}

impl Place {
    /// Nothing, and a word about it, where nothing can be mounted.
    fn new(history: bool, read_only: bool) -> Option<Place> {
        let directory = tempfile::tempdir().unwrap();
        let service = create(&directory, history);
        let served = service.clone() as Arc<dyn Served>;
        let at = directory.path().join("mnt");
        fs::create_dir(&at).unwrap();
        let mounted =
            MountPoint::new(&at).and_then(|point| mount(&served, read_only, point, || {}));
        match mounted {
            Ok(mounted) => Some(Place {
                mounted,
                service,
                directory,
            }),
            Err(error @ MountError::NoDevice) => {
                skip("no-fuse", error);
                None
            }
            Err(error @ MountError::Refused { .. }) => {
                skip("mount-refused", error);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("mnt").join(name)
    }

    fn open(&self) -> File {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.open(self.path("vol")).unwrap()
    }

    fn ask(&self, request: &Request) -> Answer {
        self.service.carry_out(request).unwrap()
    }

    fn snapshot(&self, name: &str) {
        self.ask(&Request::SnapshotCreate {
            name: name.to_owned(),
            at: None,
        });
    }

    /// Unmounts, closes, and opens again what is on the medium.
    fn reopened(mut self) -> Vec<u8> {
        self.mounted.unmount().unwrap();
        self.mounted.join().unwrap();
        self.service.close().unwrap();
        let home = self.service.home().clone();
        drop(self.service);
        let opened = home.open(Mode::Buffered, Access::Change).unwrap();
        assert!(opened.1.closed && opened.1.events == 0);
        let again = Service::new(home, opened, Arc::new(|| u64::MAX / 2)).unwrap();
        let mut bytes = vec![0; SIZE as usize];
        again.disk().read(0, &mut bytes).unwrap();
        bytes
    }
}

fn errno<T>(result: io::Result<T>) -> Option<Errno> {
    let code = result.err().and_then(|error| error.raw_os_error());
    code.map(Errno::from_raw)
}

/// Whether something was refused for this reason. The kernel asks first who wants it: root may try what modes forbid,
/// others may not.
fn refused<T>(result: io::Result<T>, why: Errno) -> bool {
    let found = errno(result);
    println!("{found:?}, expected {why}");
    found == Some(why) || (!nix::unistd::geteuid().is_root() && found == Some(Errno::EACCES))
}

#[test]
fn a_mount_that_has_ended_takes_no_other_one_away() {
    let Some(mut first) = Place::new(true, false) else {
        return;
    };
    first.mounted.unmount().unwrap();
    // The kernel gives the numbers of the first one to one of these.
    let others = [(); 4].map(|()| Place::new(true, false).unwrap());
    first.mounted.unmount().unwrap();
    for other in &others {
        assert_eq!(fs::metadata(other.path("vol")).unwrap().len(), SIZE);
    }
}

/// A sequence of numbers that look random.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A range that is often unaligned and sometimes long.
    fn range(&mut self) -> (u64, u64) {
        let most = [100, 5000, 20_000, 300_000][self.below(4) as usize];
        let (mut offset, mut length) = (self.below(SIZE), 1 + self.below(most));
        if self.below(2) == 0 {
            (offset, length) = (offset / 4096 * 4096, length.next_multiple_of(4096));
        }
        (offset, length.min(SIZE - offset))
    }
}

#[test]
fn a_mounted_file_is_an_array_of_bytes() {
    let Some(place) = Place::new(true, false) else {
        return;
    };
    let file = place.open();
    assert_eq!(file.metadata().unwrap().len(), SIZE);
    let mut model = vec![0; SIZE as usize];
    let mut draw = Draw(1);
    let mut snapshots = Vec::new();
    for step in 0..1500 {
        let (offset, length) = draw.range();
        let range = offset as usize..(offset + length) as usize;
        match draw.below(8) {
            0..3 => {
                let value = draw.below(40) as u8;
                let data: Vec<u8> = (0..length).map(|b| value ^ (b >> 9) as u8).collect();
                file.write_all_at(&data, offset).unwrap();
                model[range].copy_from_slice(&data);
            }
            3..6 => {
                let mut bytes = vec![1; length as usize];
                file.read_exact_at(&mut bytes, offset).unwrap();
                assert!(bytes == model[range], "step {step}: {length} at {offset}");
            }
            6 => {
                let mode = [PUNCH, ZERO][draw.below(2) as usize];
                fallocate(&file, mode, offset as i64, length as i64).unwrap();
                model[range].fill(0);
            }
            _ => file.sync_data().unwrap(),
        }
        if step % 500 == 250 {
            let name = format!("step{step}");
            place.snapshot(&name);
            snapshots.push((name, model.clone()));
        }
    }
    file.sync_all().unwrap();
    drop(file);
    let listed = fs::read_dir(place.path("at")).unwrap();
    let listed: Vec<_> = listed
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    let names: Vec<_> = snapshots.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(listed, names);
    for (name, expected) in snapshots {
        let bytes = fs::read(place.path("at").join(&name)).unwrap();
        assert!(bytes == expected, "{name}");
    }
    assert!(fs::read(place.path("vol")).unwrap() == model);
    assert!(place.reopened() == model);
}

#[test]
fn holes_are_found_and_punched_ranges_are_holes_that_read_zero_at_their_edges() {
    let Some(place) = Place::new(true, false) else {
        return;
    };
    let file = place.open();
    let seek = |offset: i64, whence| lseek(&file, offset, whence);
    assert_eq!(seek(0, Whence::SeekData), Err(Errno::ENXIO));
    assert_eq!(seek(0, Whence::SeekHole), Ok(0));
    file.write_all_at(&[7; 5 * 4096], 3 * 4096).unwrap();
    assert_eq!(seek(0, Whence::SeekData), Ok(3 * 4096));
    assert_eq!(seek(3 * 4096 + 5, Whence::SeekData), Ok(3 * 4096 + 5));
    assert_eq!(seek(3 * 4096, Whence::SeekHole), Ok(8 * 4096));
    // From the middle of the page 3 into page 6.
    fallocate(&file, PUNCH, 3 * 4096 + 100, 3 * 4096).unwrap();
    assert_eq!(seek(3 * 4096, Whence::SeekHole), Ok(4 * 4096));
    assert_eq!(seek(4 * 4096, Whence::SeekData), Ok(6 * 4096));
    let mut bytes = vec![1; 5 * 4096];
    file.read_exact_at(&mut bytes, 3 * 4096).unwrap();
    let expected = [vec![7; 100], vec![0; 3 * 4096], vec![7; 2 * 4096 - 100]].concat();
    assert!(bytes == expected);
    // Zeros that are written are no hole.
    fallocate(&file, ZERO, 3 * 4096, 5 * 4096).unwrap();
    assert_eq!(seek(3 * 4096, Whence::SeekHole), Ok(8 * 4096));
    assert_eq!(seek(SIZE as i64, Whence::SeekHole), Err(Errno::ENXIO));
    // Programs that copy look for holes only where the file says that it has some.
    assert!(file.metadata().unwrap().blocks() * 512 < SIZE);
    place.snapshot("s");
    let old = File::open(place.path("at/s")).unwrap();
    assert_eq!(lseek(&old, 0, Whence::SeekData), Ok(3 * 4096));
    assert_eq!(lseek(&old, 3 * 4096, Whence::SeekHole), Ok(8 * 4096));
}

#[test]
fn a_file_of_fixed_size_refuses_what_would_change_it() {
    let Some(place) = Place::new(true, false) else {
        return;
    };
    let file = place.open();
    for size in [0, SIZE - 1, SIZE + 1] {
        assert_eq!(errno(file.set_len(size)), Some(Errno::EPERM));
    }
    file.set_len(SIZE).unwrap();
    let truncated = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(place.path("vol"));
    assert_eq!(errno(truncated), Some(Errno::EPERM));
    // As a block device: cut at the end, no space behind it, nothing to read there.
    assert_eq!(file.write_at(&[1; 300], SIZE - 100).unwrap(), 100);
    assert_eq!(errno(file.write_at(&[1], SIZE)), Some(Errno::ENOSPC));
    assert_eq!(file.read_at(&mut [0; 300], SIZE - 100).unwrap(), 100);
    assert_eq!(file.read_at(&mut [0; 300], SIZE).unwrap(), 0);
    let end = SIZE as i64 - 100;
    assert_eq!(fallocate(&file, ZERO, end, 200), Err(Errno::ENOSPC));
    assert_eq!(fallocate(&file, PUNCH, end, 200), Ok(()));
    let set_aside = FallocateFlags::empty();
    assert_eq!(fallocate(&file, set_aside, 0, 4096), Err(Errno::EOPNOTSUPP));
    assert_eq!(fs::metadata(place.path("vol")).unwrap().len(), SIZE);

    let (file, new) = (place.path("vol"), place.path("new"));
    assert!(refused(File::create_new(&new), Errno::EPERM));
    assert!(refused(fs::create_dir(&new), Errno::EPERM));
    assert!(refused(fs::remove_file(&file), Errno::EPERM));
    assert!(refused(fs::remove_dir(place.path("at")), Errno::EPERM));
    assert!(refused(fs::rename(&file, &new), Errno::EPERM));
}

#[test]
fn instants_have_names_and_stay_what_they_are() {
    let Some(place) = Place::new(true, false) else {
        return;
    };
    let file = place.open();
    file.write_all_at(b"old", 10).unwrap();
    place.snapshot("first");
    let Answer::Instant { instant } = place.ask(&Request::Resolve {
        moment: "first".to_owned(),
    }) else {
        panic!("no instant");
    };
    file.write_all_at(b"new", 10).unwrap();
    let time = flashlore_serve::moment::Time(instant).to_string();
    for name in ["first", &format!("ns:{instant}"), &time] {
        let at = place.path("at").join(name);
        let mut bytes = [0; 3];
        let old = File::open(&at).unwrap();
        old.read_exact_at(&mut bytes, 10).unwrap();
        assert_eq!(&bytes, b"old", "{name}");
        let written = OpenOptions::new().write(true).open(&at);
        assert!(refused(written, Errno::EROFS), "{name}");
    }
    let open = File::open(place.path("at/first")).unwrap();
    place.ask(&Request::SnapshotDelete {
        snapshot: "first".to_owned(),
    });
    assert_eq!(fs::read_dir(place.path("at")).unwrap().count(), 0);
    for name in ["first", "nobody", "10 years", "2300-01-01T00:00:00Z"] {
        let missing = File::open(place.path("at").join(name));
        assert_eq!(missing.err().unwrap().kind(), ErrorKind::NotFound, "{name}");
    }
    // The window of the history still has it.
    let mut bytes = [0; 3];
    open.read_exact_at(&mut bytes, 10).unwrap();
    assert_eq!(&bytes, b"old");
}

#[test]
fn a_volume_goes_back_only_while_nobody_may_write_and_readers_see_it() {
    let Some(place) = Place::new(true, false) else {
        return;
    };
    let file = place.open();
    file.write_all_at(&[1; 8192], 0).unwrap();
    place.snapshot("one");
    file.write_all_at(&[2; 8192], 0).unwrap();
    let reader = File::open(place.path("vol")).unwrap();
    let look = || {
        let mut bytes = [0; 8192];
        reader.read_exact_at(&mut bytes, 0).unwrap();
        bytes[4096]
    };
    assert_eq!(look(), 2);
    assert_eq!(place.service.clients().count(), (1, 1).into());
    let recover = |disconnect| {
        place.service.carry_out(&Request::Recover {
            to: "one".to_owned(),
            mark: false,
            dry_run: false,
            disconnect,
            allow_missing: false,
        })
    };
    for disconnect in [false, true] {
        let error = recover(disconnect).err().unwrap().to_string();
        for part in ["1 client may write", "cannot drop", "mnt/at/"] {
            assert!(error.contains(part), "{error}");
        }
    }
    drop(file);
    // The kernel tells of the last close a little later.
    while place.service.clients().count().writers > 0 {
        std::thread::yield_now();
    }
    recover(false).unwrap();
    assert_eq!(look(), 1, "no stale bytes");
}

#[test]
fn nobody_writes_to_a_read_only_mount() {
    let Some(place) = Place::new(false, true) else {
        return;
    };
    let path = place.path("vol");
    let written = OpenOptions::new().write(true).open(&path);
    assert_eq!(written.err().unwrap().kind(), ErrorKind::ReadOnlyFilesystem);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o400);
    assert_eq!(fs::read(&path).unwrap(), vec![0; SIZE as usize]);
    // It keeps no history.
    assert_eq!(fs::read_dir(place.path("at")).unwrap().count(), 0);
    let missing = File::open(place.path("at/now"));
    assert_eq!(missing.err().unwrap().kind(), ErrorKind::NotFound);
}

#[test]
fn many_threads_write_and_flush_at_once() {
    let Some(place) = Place::new(true, false) else {
        return;
    };
    let share = SIZE / 4;
    let write = |writer: u64, file: File| {
        let (mut draw, mut model) = (Draw(writer), vec![0; share as usize]);
        for round in 0..60 {
            let offset = draw.below(share - 5000);
            let range = offset as usize..offset as usize + 5000;
            model[range.clone()].fill(round as u8 ^ writer as u8);
            file.write_all_at(&model[range.clone()], writer * share + offset)
                .unwrap();
            file.sync_data().unwrap();
            let mut bytes = vec![0; 5000];
            file.read_exact_at(&mut bytes, writer * share + offset)
                .unwrap();
            assert!(bytes == model[range]);
        }
        model
    };
    let expected: Vec<u8> = std::thread::scope(|scope| {
        let started = |writer| {
            let file = place.open();
            scope.spawn(move || write(writer, file))
        };
        let threads: Vec<_> = (0..4).map(started).collect();
        let models = threads.into_iter().map(|thread| thread.join().unwrap());
        models.collect::<Vec<_>>().concat()
    });
    assert!(place.reopened() == expected);
}

#[test]
fn a_mount_that_is_used_ends_when_its_last_user_leaves() {
    let Some(mut place) = Place::new(true, false) else {
        return;
    };
    let file = place.open();
    assert!(place.mounted.unmount().unwrap(), "somebody uses it");
    assert!(!place.path("vol").exists(), "nobody finds it any more");
    assert_eq!(place.mounted.open_files(), 1);
    file.write_all_at(b"still", 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    assert_eq!(&place.reopened()[..5], b"still");
}

#[test]
fn places_that_cannot_be_mounted_on_are_told() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    for (name, why) in [("missing", "No such file"), ("file", "not a directory")] {
        let error = MountPoint::new(&directory.path().join(name))
            .unwrap_err()
            .to_string();
        assert!(error.contains(why) && error.contains(name), "{error}");
    }
    let error = MountPoint::new(std::path::Path::new("/proc"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("something is mounted there already"),
        "{error}"
    );
}
