//! An array while it runs: what its thread does between requests, what passes by, what is given back, and what can be
//! changed meanwhile.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flashlore_array::icash;
use flashlore_medium::{Access, Mode};
use flashlore_serve::array::{ArrayService, CreateArray};
use flashlore_serve::request::{ArrayInfo, ElementInfo, Tuned};
use flashlore_serve::{Answer, Home, Request, ServeError, Served};
use flashlore_volume::disk::BlockDevice;
use tempfile::TempDir;

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
/// How long something may take that the thread is to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// An array of 16 MiB on files, open.
struct Running {
    directory: TempDir,
    service: Option<ArrayService>,
}

impl Running {
    fn new(fast_size: u64, ordered: bool) -> Running {
        let directory = tempfile::tempdir().unwrap();
        let asked = CreateArray {
            fast: directory.path().join("ssd"),
            slow: directory.path().join("hdd"),
            size: 16 * MIB,
            machines: 1,
            fast_size: Some(fast_size),
            delta_ram: None,
            ordered,
            strict: false,
            mode: icash::Mode::WriteBack,
            overwrite: false,
            identity: [4; 16],
        };
        let mut running = Running {
            directory,
            service: None,
        };
        running.home().create_array(&asked).unwrap();
        running.open();
        running
    }

    fn home(&self) -> Home {
        Home::new(self.directory.path().join("disk"))
    }

    fn open(&mut self) {
        let clock = Arc::new(|| 1);
        let opened = ArrayService::open(self.home(), Mode::Buffered, clock, Access::Change);
        self.service = Some(opened.unwrap());
    }

    fn reopen(&mut self) {
        self.service().close().unwrap();
        self.service = None;
        self.open();
    }

    fn service(&self) -> &ArrayService {
        self.service.as_ref().expect("it is open")
    }

    fn disk(&self) -> Arc<dyn BlockDevice> {
        Arc::clone(&self.service().lives()[0].device)
    }

    fn info(&self) -> ArrayInfo {
        match self.service().carry_out(&Request::Info).unwrap() {
            Answer::Array(info) => *info,
            other => panic!("{other:?}"),
        }
    }

    fn element(&self) -> ElementInfo {
        self.info().element.expect("both media are open")
    }

    fn count(&self, name: &str) -> u64 {
        self.element().counters[name]
    }

    fn tune(&self, pairs: &[(&str, &str)]) -> Result<Vec<Tuned>, ServeError> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let pairs = pairs.iter().map(owned).collect();
        match self.service().carry_out(&Request::Tune { pairs })? {
            Answer::Tuned { values } => Ok(values),
            other => panic!("{other:?}"),
        }
    }

    /// Waits until something is so.
    fn until(&self, what: &str, is_so: impl Fn(&ElementInfo) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.element()) {
            assert!(begun.elapsed() < PATIENCE, "{what}: {:#?}", self.element());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Bytes that a medium takes of the file system.
    fn taken(&self, medium: &str) -> u64 {
        let path: PathBuf = self.directory.path().join(medium);
        path.metadata().unwrap().blocks() * 512
    }
}

/// Noise that no other block resembles.
fn noise(seed: u64, bytes: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let number = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(number).collect()
}

fn value_of(values: &[Tuned], key: &str) -> String {
    let found = values.iter().find(|tuned| tuned.key == key);
    found.expect("there is such a key").value.clone()
}

#[test]
fn a_request_of_many_pages_is_one_and_its_scan_runs_when_nobody_asks_for_anything() {
    let running = Running::new(2 * MIB, false);
    running.tune(&[("scan-every", "10")]).unwrap();
    let disk = running.disk();
    for request in 0..9 {
        match request % 3 {
            // Parts of pages in front and behind, each of which is read first.
            0 => disk
                .write(request * 64 * PAGE + 7, &noise(request, 8 * PAGE))
                .unwrap(),
            1 => disk
                .write_zeroes(request * 64 * PAGE + 7, 8 * PAGE, true)
                .unwrap(),
            _ => disk.read(PAGE / 2, &mut [0; 9 * PAGE as usize]).unwrap(),
        }
    }
    disk.flush().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(running.count("scans"), 0);
    disk.write(0, &noise(9, 4 * PAGE)).unwrap();
    running.until("a scan", |element| element.counters["scans"] == 1);
    running.service().close().unwrap();
}

/// Reads of the slow medium so far, once nothing goes on in the background.
fn slow_reads(running: &Running) -> u64 {
    let reads = || running.element().traffic[1].reads;
    let mut before = reads();
    loop {
        std::thread::sleep(Duration::from_millis(100));
        match reads() {
            after if after == before => return after,
            after => before = after,
        }
    }
}

/// Share of reads of a working set, two pages apart, that the slow medium is not asked for.
fn hit_rate(running: &Running) -> f64 {
    let before = slow_reads(running);
    for number in 0..75_u64 {
        let mut page = [0; PAGE as usize];
        let at = number * 31 % 75 * 2;
        running.disk().read(at * PAGE, &mut page).unwrap();
        assert!(page == *noise(at, PAGE));
    }
    1.0 - (slow_reads(running) - before) as f64 / 75.0
}

#[test]
fn a_copy_of_ten_times_the_fast_medium_leaves_the_working_set_where_it_is() {
    for (cutoff, stays) in [("64KiB", true), ("0", false)] {
        let running = Running::new(MIB, false);
        let disk = running.disk();
        for page in 0..150 {
            disk.write(page * PAGE, &noise(page, PAGE)).unwrap();
        }
        // Nothing goes home ahead, which would read as well.
        let set = [("sequential-cutoff", cutoff), ("dirty-target", "1000%")];
        running.tune(&set).unwrap();
        for _ in 0..3 {
            hit_rate(&running);
        }
        let before = hit_rate(&running);
        // Written, and read again, in requests of 128 KiB.
        let chunk = 128 << 10;
        for at in (MIB..11 * MIB).step_by(chunk) {
            disk.write(at, &noise(at, chunk as u64)).unwrap();
        }
        for at in (MIB..11 * MIB).step_by(chunk) {
            let mut found = vec![0; chunk];
            disk.read(at, &mut found).unwrap();
            assert!(found == noise(at, chunk as u64), "at {at}");
        }
        let after = hit_rate(&running);
        assert_eq!(before, 1.0);
        assert_eq!(after >= 0.9, stays, "with a cutoff of {cutoff}: {after:.2}");
        let element = running.element();
        assert_eq!(element.counters["bypassed_writes"] > 2000, stays);
        assert_eq!(element.counters["bypassed_reads"] > 2000, stays);
        running.service().close().unwrap();
    }
}

#[test]
fn what_is_dirty_goes_home_at_a_rate_when_nobody_asks_for_anything() {
    let running = Running::new(4 * MIB, false);
    let set = [
        ("dirty-target", "10%"),
        ("write-back-rate", "512KiB"),
        ("sequential-cutoff", "0"),
    ];
    running.tune(&set).unwrap();
    let disk = running.disk();
    for page in 0..600 {
        disk.write(page * 5 % 3000 * PAGE, &noise(page, PAGE))
            .unwrap();
    }
    disk.flush().unwrap();
    let begun = Instant::now();
    let dirty = running.element().dirty;
    assert!(dirty > 2 * MIB, "{dirty}");
    running.until("less is dirty", |element| {
        element.dirty <= element.dirty_target
    });
    let element = running.element();
    assert!(element.dirty_target <= 4 * MIB / 10);
    // Not all at once: what went home took its time.
    let least = Duration::from_secs_f64((dirty - element.dirty_target) as f64 / 600e3);
    assert!(begun.elapsed() >= least, "{:?}, {least:?}", begun.elapsed());
    assert!(element.counters["written_ahead"] * PAGE >= dirty - element.dirty_target);
    // No further than the target, and what went home is still found on the fast medium.
    assert!(element.dirty + 64 * PAGE >= element.dirty_target);
    let misses = element.counters["misses"];
    for page in 0..600 {
        let mut found = [0; PAGE as usize];
        disk.read(page * 5 % 3000 * PAGE, &mut found).unwrap();
        assert!(found == *noise(page, PAGE));
    }
    assert_eq!(running.count("misses"), misses);
    running.service().close().unwrap();
}

/// The rate is slower than anybody writes: requests make the room themselves.
#[test]
fn clients_that_are_faster_than_the_rate_are_slowed_and_not_stuck() {
    let running = Running::new(MIB, false);
    running
        .tune(&[("write-back-rate", "4KiB"), ("dirty-target", "0%")])
        .unwrap();
    let disk = running.disk();
    for page in 0..3000 {
        disk.write(page * 7 % 4000 * PAGE, &noise(page, PAGE))
            .unwrap();
    }
    disk.flush().unwrap();
    for page in 0..3000 {
        let mut found = [0; PAGE as usize];
        disk.read(page * 7 % 4000 * PAGE, &mut found).unwrap();
        assert!(found == *noise(page, PAGE), "{page}");
    }
    running.service().close().unwrap();
    assert_eq!(running.info_failures(), None);
}

impl Running {
    fn info_failures(&self) -> Option<String> {
        let failures = self.service().home().troubles().failures();
        failures.map(|failures| failures.last)
    }
}

#[test]
fn a_trim_gives_space_back_once_it_is_durable() {
    let running = Running::new(MIB, false);
    let disk = running.disk();
    let chunk = MIB;
    for at in (0..14 * MIB).step_by(chunk as usize) {
        disk.write(at, &noise(at, chunk)).unwrap();
    }
    disk.flush().unwrap();
    running.until("most is at home", |element| element.dirty < 2 * MIB);
    let before = running.taken("hdd");
    disk.trim(0, 14 * MIB).unwrap();
    disk.flush().unwrap();
    running.until("it is given back", |element| {
        element.counters["given_back"] * PAGE >= 12 * MIB
    });
    let after = running.taken("hdd");
    assert!(before >= after + 12 * MIB, "from {before} to {after}");
    // It can be written again.
    disk.write(5 * MIB, &noise(1, MIB)).unwrap();
    disk.flush().unwrap();
    let mut found = vec![1; 2 * MIB as usize];
    disk.read(4 * MIB, &mut found).unwrap();
    assert!(found[..MIB as usize] == vec![0; MIB as usize]);
    assert!(found[MIB as usize..] == noise(1, MIB));
    running.service().close().unwrap();
}

#[test]
fn what_is_changed_counts_at_once_and_stays() {
    let mut running = Running::new(MIB, false);
    let defaults = running.tune(&[]).unwrap();
    for (key, value) in [
        ("sequential-cutoff", "4MiB"),
        ("dirty-target", "50%"),
        ("write-back-rate", "4MiB"),
        ("write-back-batch", "64"),
        ("scan-every", "2000"),
        ("fill", "read"),
    ] {
        assert_eq!(value_of(&defaults, key), value);
    }
    let json = || std::fs::read(running.directory.path().join("disk/array.json")).unwrap();
    let stored = json();
    for (pairs, why) in [
        (
            &[("fill", "never"), ("fil", "never")][..],
            "found fil, expected one of sequential-cutoff",
        ),
        (
            &[("scan-every", "5"), ("dirty-target", "5000")],
            "dirty-target is \"5000\", expected a number of percent",
        ),
        (
            // No group of so many homes fits into the log.
            &[("write-back-batch", "65536"), ("fill", "never")],
            "write-back-batch is \"65536\", expected a number from 1 to ",
        ),
    ] {
        let refused = running.tune(pairs).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
        assert_eq!(running.tune(&[]).unwrap(), defaults);
        assert_eq!(json(), stored);
    }
    // The most that is named is taken.
    let refused = running.tune(&[("write-back-batch", "65536")]);
    let refused = refused.unwrap_err().to_string();
    let most = refused.split_once(" to ").unwrap().1;
    let most = most.split_once(':').unwrap().0;
    let tuned = running.tune(&[("write-back-batch", most)]).unwrap();
    assert_eq!(value_of(&tuned, "write-back-batch"), most);
    let more = (most.parse::<usize>().unwrap() + 1).to_string();
    assert!(running.tune(&[("write-back-batch", &more)]).is_err());
    running.tune(&[("write-back-batch", "64")]).unwrap();
    let changed = running
        .tune(&[("fill", "never"), ("dirty-target", "20%")])
        .unwrap();
    assert_eq!(value_of(&changed, "fill"), "never");
    assert_ne!(json(), stored);
    running.reopen();
    assert_eq!(running.tune(&[]).unwrap(), changed);
    // At once: what is read is not copied to the fast medium.
    let disk = running.disk();
    for page in 0..1000 {
        disk.write(page * PAGE, &noise(page, PAGE)).unwrap();
    }
    let fills = running.count("fills");
    for page in 0..1000 {
        disk.read(page * PAGE, &mut [0; PAGE as usize]).unwrap();
    }
    assert_eq!(running.count("fills"), fills);
    let files = std::fs::read_dir(running.directory.path().join("disk")).unwrap();
    assert_eq!(files.count(), 1, "nothing is left beside array.json");
    running.service().close().unwrap();
}

/// Ordered write-back: everything goes home as one state, ahead too.
#[test]
fn with_ordered_write_back_all_goes_home_ahead() {
    let running = Running::new(MIB, true);
    running
        .tune(&[("dirty-target", "0%"), ("write-back-rate", "unlimited")])
        .unwrap();
    let disk = running.disk();
    for page in 0..200 {
        disk.write(page * 3 * PAGE, &noise(page, PAGE)).unwrap();
    }
    disk.flush().unwrap();
    running.until("all is at home", |element| {
        element.dirty == 0 && element.away == 0
    });
    running.service().close().unwrap();
}
