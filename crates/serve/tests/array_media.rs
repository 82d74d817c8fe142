//! Media of an array in its directory: what write-through acknowledges, a fast medium that is lost and replaced, new
//! media and sizes, and looks that write nothing.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use flashlore_array::icash::{self, Image, Loss};
use flashlore_array::index::Address;
use flashlore_medium::{Access, Mode};
use flashlore_serve::array::check::check;
use flashlore_serve::array::rebuild::{Rebuild, Rebuilt};
use flashlore_serve::array::replace::{ReplaceFast, Replaced};
use flashlore_serve::array::{ArrayService, CreateArray};
use flashlore_serve::{Answer, Home, Request, ServeError, Served};
use flashlore_volume::disk::BlockDevice;
use tempfile::TempDir;

const PAGE: usize = 4096;
const SIZE: u64 = 1 << 20;

/// An array in a directory of its own, with its media beside it.
struct Place {
    directory: TempDir,
    home: Home,
}

impl Place {
    /// An array that was made so and holds [`image`] in its first machine.
    fn filled(change: impl Fn(&mut CreateArray)) -> Place {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("disk"));
        let place = Place { directory, home };
        let mut asked = CreateArray {
            fast: place.path("ssd"),
            slow: place.path("hdd"),
            size: SIZE,
            machines: 1,
            fast_size: Some(SIZE),
            delta_ram: None,
            ordered: false,
            mode: icash::Mode::WriteBack,
            strict: false,
            overwrite: false,
            identity: [7; 16],
        };
        change(&mut asked);
        place.home.create_array(&asked).unwrap();
        let service = place.open(Access::Change).unwrap();
        disk(&service, 0).write(0, &image()).unwrap();
        service.close().unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn open(&self, access: Access) -> Result<ArrayService, ServeError> {
        ArrayService::open(self.home.clone(), Mode::Buffered, Arc::new(|| 0), access)
    }

    /// What a machine holds, read to look at it.
    fn holds(&self, machine: u8) -> Vec<u8> {
        let service = self.open(Access::Look).unwrap();
        let disk = &service.lives()[usize::from(machine)].device;
        let mut bytes = vec![1; disk.size() as usize];
        disk.read(0, &mut bytes).unwrap();
        bytes
    }

    fn replace(&self, new: &str, accept_loss: bool) -> Result<Replaced, ServeError> {
        let new = self.path(new);
        let asked = ReplaceFast {
            new: &new,
            accept_loss,
            overwrite: false,
        };
        self.home.replace_fast(asked, Mode::Buffered)
    }

    fn rebuild(&self, change: impl Fn(&mut Rebuild)) -> Result<Rebuilt, ServeError> {
        let mut asked = Rebuild {
            fast: self.path("ssd2"),
            slow: self.path("hdd2"),
            size: None,
            machines: None,
            fast_size: Some(SIZE),
            delta_ram: None,
            accept_loss: false,
            overwrite: false,
            identity: [9; 16],
        };
        change(&mut asked);
        self.home.rebuild_array(&asked, Mode::Buffered)
    }

    fn bytes(&self, names: &[&str]) -> Vec<Vec<u8>> {
        let read = |name: &&str| fs::read(self.path(name)).unwrap();
        names.iter().map(read).collect()
    }

    fn files(&self) -> usize {
        fs::read_dir(self.directory.path()).unwrap().count()
    }
}

fn disk(service: &ArrayService, machine: usize) -> Arc<dyn BlockDevice> {
    service.lives()[machine].device.clone()
}

/// 1 MiB: 100 pages of noise, each stored whole, and zeros.
fn image() -> Vec<u8> {
    let mut image = vec![0; SIZE as usize];
    let mut state = 7_u64;
    for word in image[..100 * PAGE].chunks_exact_mut(8) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        word.copy_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
    image
}

#[test]
fn in_write_through_what_was_acknowledged_outlives_the_fast_medium() {
    let place = Place::filled(|asked| asked.mode = icash::Mode::WriteThrough);
    let mut expected = image();
    let service = place.open(Access::Change).unwrap();
    let disk = disk(&service, 0);
    for number in 0..30 {
        let at = number * 3 * PAGE + number * 17;
        let bytes = vec![number as u8 + 1; 3000];
        disk.write(at as u64, &bytes).unwrap();
        expected[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    disk.trim(5 * PAGE as u64, 2 * PAGE as u64).unwrap();
    expected[5 * PAGE..7 * PAGE].fill(0);
    disk.write_zeroes(9 * PAGE as u64 + 9, 9000, true).unwrap();
    expected[9 * PAGE + 9..9 * PAGE + 9009].fill(0);
    // Killed, and never flushed.
    drop((disk, service));
    fs::remove_file(place.path("ssd")).unwrap();
    let refused = place.open(Access::Look).err().unwrap().to_string();
    assert!(
        refused.contains("flashlore array replace-fast"),
        "{refused}"
    );
    let replaced = place.replace("new", false).unwrap();
    assert_eq!(
        (replaced.loss, replaced.fast),
        (Loss::Nothing, place.path("new"))
    );
    assert!(place.holds(0) == expected);
    let service = place.open(Access::Change).unwrap();
    service.close().unwrap();
    assert!(place.holds(0) == expected);
    assert!(check(&place.home, Mode::Buffered, true).unwrap().is_clean());
}

#[test]
fn what_needed_the_lost_medium_is_named_and_an_error_until_it_is_written() {
    let place = Place::filled(|_| {});
    fs::remove_file(place.path("ssd")).unwrap();
    let Loss::Blocks(lost) = place.home.loss_without_fast(Mode::Buffered).unwrap() else {
        panic!("nothing needs the fast medium");
    };
    assert!(lost.len() >= 50, "{lost:?}");
    let before = place.bytes(&["hdd", "disk/array.json"]);
    let refused = place.replace("new", false).unwrap_err();
    assert!(
        refused.is_usage() && refused.to_string().contains("--accept-loss"),
        "{refused}"
    );
    assert!(!place.path("new").exists());
    assert!(place.bytes(&["hdd", "disk/array.json"]) == before);
    place.replace("new", true).unwrap();
    let found = check(&place.home, Mode::Buffered, true).unwrap().findings;
    let found: Vec<(u8, Address)> = found
        .iter()
        .map(|f| (f.machine, Address(f.block)))
        .collect();
    assert_eq!(found, lost);
    assert!(place.bytes(&["hdd"])[0] == before[0], "a look wrote");

    let service = place.open(Access::Change).unwrap();
    let disk = disk(&service, 0);
    let mut now = image();
    for number in 0..256_u32 {
        let at = number as usize * PAGE;
        let mut page = vec![1; PAGE];
        let read = disk.read(at as u64, &mut page);
        assert_eq!(
            read.is_err(),
            lost.contains(&(0, Address(number))),
            "block {number}"
        );
        if read.is_ok() {
            assert!(page == now[at..at + PAGE]);
            continue;
        }
        disk.write(at as u64 + 5, b"part").unwrap_err();
        match number % 2 {
            0 => disk.write(at as u64, &[number as u8; PAGE]).unwrap(),
            _ => disk.trim(at as u64, PAGE as u64).unwrap(),
        }
        now[at..at + PAGE].fill(if number % 2 == 0 { number as u8 } else { 0 });
    }
    service.close().unwrap();
    assert!(place.holds(0) == now);
    assert!(check(&place.home, Mode::Buffered, true).unwrap().is_clean());
}

#[test]
fn in_order_the_array_goes_back_to_its_last_batch_and_knows_of_when_that_is() {
    let place = Place::filled(|asked| asked.ordered = true);
    let service = place.open(Access::Change).unwrap();
    for number in 0..20 {
        let changed: Vec<u8> = image()[..PAGE].iter().map(|b| b ^ (number + 1)).collect();
        let at = u64::from(number) * PAGE as u64;
        disk(&service, 0).write(at, &changed).unwrap();
    }
    disk(&service, 0).flush().unwrap();
    drop(service);
    let refused = place.replace("new", false).unwrap_err().to_string();
    assert!(
        refused.contains("20 blocks go back") && refused.contains("ssd is there"),
        "{refused}"
    );
    let Loss::SinceBatch { blocks, taken } = place.replace("new", true).unwrap().loss else {
        panic!("it is in order");
    };
    assert!({ blocks.into_iter() }.eq(Address::first(20).map(|block| (0, block))));
    // 2026 and later.
    assert!(
        taken.is_some_and(|taken| taken > 1_767_225_600),
        "{taken:?}"
    );
    assert!(place.holds(0) == image());
    place.open(Access::Change).unwrap().close().unwrap();
    assert!(place.holds(0) == image());
}

#[test]
fn a_medium_that_cannot_be_the_new_one_is_refused_and_the_array_is_as_it_was() {
    let place = Place::filled(|asked| asked.mode = icash::Mode::WriteThrough);
    let other = Place::filled(|asked| asked.identity = [8; 16]);
    fs::copy(other.path("ssd"), place.path("other")).unwrap();
    fs::write(place.path("short"), vec![0; PAGE]).unwrap();
    fs::write(place.path("used"), vec![9; SIZE as usize]).unwrap();
    let before = place.bytes(&["hdd", "disk/array.json", "ssd", "other", "used"]);
    for (new, why) in [
        ("short", "the array needs"),
        ("used", "used holds something: say --overwrite"),
        ("other", "other holds an array"),
        ("ssd", "ssd holds an array"),
        ("hdd", "is the slow medium of this array"),
    ] {
        let refused = place.replace(new, true).unwrap_err();
        assert!(
            refused.is_usage() && refused.to_string().contains(why),
            "{refused}"
        );
    }
    assert!(place.replace("nowhere/new", true).is_err());
    let service = place.open(Access::Change).unwrap();
    let refused = place.replace("new", true).unwrap_err().to_string();
    assert!(refused.contains("in use"), "{refused}");
    assert!(!place.path("new").exists());
    drop(service);
    assert!(
        place.bytes(&["disk/array.json", "other", "used"])[..]
            == [&before[1..2], &before[3..]].concat()[..]
    );
    assert!(place.holds(0) == image());
}

/// A replacement that ended before `array.json` was written: the old medium goes on, and it can be done again.
#[test]
fn an_interrupted_replacement_is_done_again() {
    let place = Place::filled(|asked| asked.mode = icash::Mode::WriteThrough);
    let json = fs::read(place.path("disk/array.json")).unwrap();
    let mut expected = image();
    for byte in [7, 8] {
        place.replace("new", false).unwrap();
        fs::write(place.path("disk/array.json"), &json).unwrap();
        let service = place.open(Access::Change).unwrap();
        disk(&service, 0).write(0, &[byte; PAGE]).unwrap();
        service.close().unwrap();
        expected[..PAGE].fill(byte);
        assert!(place.holds(0) == expected);
    }
    place.replace("new", false).unwrap();
    assert!(place.holds(0) == expected);
    place.open(Access::Change).unwrap().close().unwrap();
    // The new one is the array's now, and the old one an older copy.
    let refused = place.replace("new", false).unwrap_err().to_string();
    assert!(refused.contains("new holds an array"), "{refused}");
    fs::write(place.path("disk/array.json"), &json).unwrap();
    let refused = place.open(Access::Change).err().unwrap().to_string();
    assert!(
        refused.contains("ssd is an older copy of itself"),
        "{refused}"
    );
}

/// Writes and syncs of both media so far.
fn changes(service: &ArrayService) -> Vec<(u64, u64)> {
    let Answer::Array(info) = service.carry_out(&Request::Info).unwrap() else {
        panic!("it is an array");
    };
    let traffic = info.element.unwrap().traffic;
    traffic
        .iter()
        .map(|medium| (medium.writes, medium.syncs))
        .collect()
}

fn look(service: &ArrayService) {
    for offset in (0..SIZE).step_by(PAGE) {
        let read = Request::Read {
            at: None,
            machine: None,
            offset,
            length: PAGE as u64,
            allow_missing: false,
        };
        service.carry_out(&read).unwrap();
    }
    for request in [Request::Scrub { from: 0 }, Request::Info] {
        service.carry_out(&request).unwrap();
    }
}

#[test]
fn looks_write_nothing_whether_the_array_is_served_or_not() {
    for mode in [icash::Mode::WriteBack, icash::Mode::WriteThrough] {
        let place = Place::filled(|asked| asked.mode = mode);
        let before = place.bytes(&["ssd", "hdd"]);
        let service = place.open(Access::Look).unwrap();
        look(&service);
        drop(service);
        check(&place.home, Mode::Buffered, true).unwrap();
        assert!(
            place.bytes(&["ssd", "hdd"]) == before,
            "{mode:?}: a look wrote"
        );

        let service = place.open(Access::Change).unwrap();
        let before = changes(&service);
        look(&service);
        assert_eq!(changes(&service), before, "{mode:?}: a look wrote");
        // What clients read comes to the fast medium where it is not there.
        disk(&service, 0)
            .read(0, &mut vec![0; SIZE as usize])
            .unwrap();
        assert!(changes(&service) != before, "{mode:?}: it was not used");
        service.close().unwrap();
    }
}

/// An array with two clones of its first machine.
fn cloned() -> Place {
    let place = Place::filled(|asked| asked.machines = 3);
    let service = place.open(Access::Change).unwrap();
    for machine in [1, 2] {
        let clone = Request::Clone {
            native: 0,
            machine,
            image: None,
            overwrite: false,
        };
        service.carry_out(&clone).unwrap();
    }
    service.close().unwrap();
    place
}

#[test]
fn an_array_on_new_media_has_other_sizes_and_what_it_held() {
    for mode in [icash::Mode::WriteBack, icash::Mode::WriteThrough] {
        let place = cloned();
        let json = fs::read_to_string(place.path("disk/array.json")).unwrap();
        if mode == icash::Mode::WriteThrough {
            let json = json.replace("write-back", "write-through");
            let json = json.replace("\"too_big\": \"fast\"", "\"too_big\": \"log\"");
            fs::write(place.path("disk/array.json"), json).unwrap();
            place.open(Access::Change).unwrap().close().unwrap();
        }
        let before = place.bytes(&["ssd", "hdd"]);
        let rebuilt =
            place.rebuild(|asked| (asked.size, asked.machines) = (Some(2 * SIZE), Some(4)));
        let machines = rebuilt.unwrap().machines;
        let stored = |image: &Image| (image.deltas, image.whole);
        assert_eq!(stored(&machines[0]), (0, 100));
        assert_eq!(
            machines[1..3].iter().map(stored).collect::<Vec<_>>(),
            [(100, 0); 2]
        );
        assert_eq!(machines[3].zeros, 512);
        for machine in 0..4 {
            let mut expected = image();
            if machine == 3 {
                expected.fill(0);
            }
            expected.resize(2 * SIZE as usize, 0);
            assert!(place.holds(machine) == expected, "machine {machine}");
        }
        assert!(check(&place.home, Mode::Buffered, true).unwrap().is_clean());
        assert!(
            place.bytes(&["ssd", "hdd"]) == before,
            "the old array changed"
        );
        let text = fs::read_to_string(place.path("disk/array.json")).unwrap();
        assert_eq!(
            text.contains("write-through"),
            mode == icash::Mode::WriteThrough
        );
    }
}

#[test]
fn a_rebuild_that_cannot_be_leaves_the_array_as_it_was_and_nothing_behind() {
    let place = cloned();
    fs::write(place.path("part"), vec![0; SIZE as usize]).unwrap();
    let (before, files) = (
        place.bytes(&["ssd", "hdd", "disk/array.json"]),
        place.files(),
    );
    let (part, ssd) = (place.path("part"), place.path("ssd"));
    let refusals: [(bool, &str, Result<Rebuilt, ServeError>); 5] = [
        (
            true,
            "100 blocks of machine 2 have no place",
            place.rebuild(|asked| asked.machines = Some(2)),
        ),
        (
            true,
            "0 virtual machines",
            place.rebuild(|asked| asked.machines = Some(0)),
        ),
        (
            true,
            "--fast-size is 4KiB, expected at least 24KiB",
            place.rebuild(|asked| asked.fast_size = Some(PAGE as u64)),
        ),
        (
            true,
            "the array needs",
            place.rebuild(|asked| asked.slow = part.clone()),
        ),
        (
            false,
            "in use",
            place.rebuild(|asked| asked.fast = ssd.clone()),
        ),
    ];
    for (is_usage, why, refused) in refusals {
        let refused = refused.unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
        assert_eq!(refused.is_usage(), is_usage, "{refused}");
    }
    assert!(place.bytes(&["ssd", "hdd", "disk/array.json"]) == before && place.files() == files);
    place
        .rebuild(|asked| (asked.machines, asked.accept_loss) = (Some(2), true))
        .unwrap();
    assert!(place.holds(1) == image());
    assert_eq!(place.open(Access::Look).unwrap().lives().len(), 2);
    // A block that was lost ends a rebuild.
    fs::remove_file(place.path("ssd2")).unwrap();
    place.replace("new", true).unwrap();
    let again = |asked: &mut Rebuild| {
        (asked.fast, asked.slow) = (part.with_file_name("ssd3"), part.with_file_name("hdd3"));
    };
    let refused = place.rebuild(again).unwrap_err().to_string();
    assert!(
        refused.contains("it was lost with a fast medium"),
        "{refused}"
    );
    assert!(!place.path("ssd3").exists() && !place.path("hdd3").exists());
}
