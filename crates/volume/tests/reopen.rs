//! What was written is there again, after a clean end and after a plain stop.

use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes, VolumeKey};
use flashlore_flash::{Lpn, ObjectId};
use flashlore_medium::MemoryMedium;
use flashlore_volume::{
    Encoding, HistoryIdentity, Identity, Policy, Survey, Volume, VolumeError, bytes_needed, create,
};

fn identity(policy: Policy) -> Identity {
    Identity {
        version: flashlore_volume::format::superblock::VERSION,
        policy,
        history: None,
        encoding: Encoding::default(),
        uuid: [1; 16],
        key: VolumeKey([9; 32]),
        created: 5,
        exported: 64,
        blocks: 24,
        pages_per_block: 4,
        units_per_page: 2,
        alignment: 512,
        index_entries: 16,
        journal_bytes: 64 << 10,
    }
}

fn versioned(policy: Policy) -> Identity {
    Identity {
        history: Some(HistoryIdentity {
            entries: 100,
            least_window: 0,
            protected: false,
        }),
        ..identity(policy)
    }
}

fn page(value: u32) -> PageBytes {
    let mut page = [0; PAGE_BYTES];
    for (word, i) in page.as_chunks_mut().0.iter_mut().zip(0..) {
        *word = (value.wrapping_mul(31) ^ i).to_le_bytes();
    }
    page
}

#[test]
fn contents_survive_many_openings() {
    for policy in [Policy::Plain, Policy::Dedup, Policy::DedupTrusted] {
        let id = identity(policy);
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&medium, &id).unwrap();
        let mut model = vec![None; 64];
        let mut x = 12345u32;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            x
        };
        for round in 0..40 {
            let (mut volume, recovery) = Volume::open(Arc::clone(&medium)).unwrap();
            assert_eq!(recovery.epoch, round + 1);
            volume.check().unwrap();
            for lpn in 0..64 {
                let mut got = [1; PAGE_BYTES];
                volume.read(Lpn(lpn), &mut got).unwrap();
                let expected = model[lpn as usize].map_or([0; PAGE_BYTES], page);
                assert_eq!(got, expected, "{policy:?} round {round} page {lpn}");
            }
            for _ in 0..100 {
                let (lpn, value) = (next() % 64, next() % 40);
                if next() % 8 == 0 {
                    volume.trim(0, Lpn(lpn)).unwrap();
                    model[lpn as usize] = None;
                } else {
                    volume
                        .write(u64::from(round), Lpn(lpn), &page(value))
                        .unwrap();
                    model[lpn as usize] = Some(value);
                }
            }
            if round % 3 == 0 {
                volume.close().unwrap();
            } else {
                volume.flush().unwrap();
            }
        }
    }
}

/// The history of a volume, and what it should be.
struct Past {
    volume: Volume,
    /// What every address held from an instant on.
    states: Vec<(u64, Vec<u32>)>,
    snapshots: Vec<u64>,
}

impl Past {
    fn write(&mut self, lpn: Lpn, value: u32) {
        self.volume.write(0, lpn, &page(value)).unwrap();
        let mut next = self.states[self.states.len() - 1].1.clone();
        next[lpn.index()] = value;
        let stamp = self.volume.history_status().unwrap().newest;
        self.states.push((stamp, next));
    }

    /// Keeps the present; of five snapshots the second goes.
    fn snapshot(&mut self) {
        self.snapshots.push(self.volume.snapshot(0).unwrap());
        if self.snapshots.len() == 5 {
            let gone = self.snapshots.remove(1);
            assert!(self.volume.delete_snapshot(0, gone).unwrap());
        }
    }

    /// The snapshots and some instants of the window are as they were; answers how many.
    fn compare(&mut self, name: &str) -> usize {
        let status = self.volume.history_status().unwrap();
        assert_eq!(status.snapshots, self.snapshots, "{name}");
        let stamps = self.states.iter().map(|(stamp, _)| *stamp);
        let window = stamps.filter(|&stamp| stamp >= status.oldest).step_by(37);
        let mut instants = self.snapshots.clone();
        instants.extend(window.chain([status.oldest, status.newest]));
        for &instant in &instants {
            let after = self.states.partition_point(|(stamp, _)| *stamp <= instant);
            for (lpn, &value) in (0..).zip(&self.states[after - 1].1) {
                let mut got = [1; PAGE_BYTES];
                self.volume.read_at(instant, Lpn(lpn), &mut got).unwrap();
                let expected = if value == 0 {
                    [0; PAGE_BYTES]
                } else {
                    page(value)
                };
                assert_eq!(got, expected, "{name}: page {lpn} at {instant}");
            }
        }
        instants.len()
    }
}

/// The rows of the history fill several table pages, and go round more than once.
#[test]
fn old_versions_survive_many_checkpoints() {
    for policy in [Policy::Plain, Policy::Dedup, Policy::DedupTrusted] {
        let id = Identity {
            history: Some(HistoryIdentity {
                entries: 600,
                least_window: 0,
                protected: false,
            }),
            blocks: 100,
            ..identity(policy)
        };
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&medium, &id).unwrap();
        let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        let mut past = Past {
            volume,
            states: vec![(id.created, vec![0; 64])],
            snapshots: Vec::new(),
        };
        let (mut x, mut compared) = (7u32, 0);
        let mut most_entries = 0;
        for round in 0..40 {
            for step in 0..50 {
                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                past.write(Lpn(x >> 26), 1 + (x >> 16) % 40);
                if step % 16 == 15 {
                    past.volume.checkpoint().unwrap();
                }
            }
            if round % 3 == 0 {
                past.snapshot();
            }
            most_entries = most_entries.max(past.volume.history_status().unwrap().entries);
            past.volume.close().unwrap();
            (past.volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            past.volume.check().unwrap();
            compared += past.compare(&format!("{policy:?} round {round}"));
        }
        println!("{policy:?}: {compared} instants compared, {most_entries} entries at most");
        assert!(most_entries > 300, "they fit one page: {most_entries}");
    }
}

/// Whoever asks for it has the clock, or the instant, wrong.
#[test]
fn an_instant_that_has_not_come_is_refused() {
    let id = versioned(Policy::Dedup);
    let medium = MemoryMedium::new(bytes_needed(&id).unwrap() as usize);
    create(&medium, &id).unwrap();
    let (mut volume, _) = Volume::open(medium).unwrap();
    volume.write(50, Lpn(3), &page(1)).unwrap();
    let sequence = volume.status().sequence;
    let ahead = |refused: VolumeError| matches!(refused, VolumeError::Ahead { newest: 60, .. });
    assert!(ahead(volume.rewind_to(60, 61).unwrap_err()));
    assert!(ahead(volume.snapshot_of(60, 61).unwrap_err()));
    assert!(ahead(volume.forget_before(60, 61).unwrap_err()));
    assert!(volume.knows_instant(51).is_err());
    // Nothing has changed; and where the clock went back, the last change is the present.
    assert_eq!(volume.status().sequence, sequence);
    assert_eq!(volume.rewind_to(40, 50).unwrap(), 0);
    assert_eq!(volume.rewind_to(60, 60).unwrap(), 0);
}

#[test]
fn a_clock_that_is_set_back_reorders_nothing() {
    let id = versioned(Policy::Dedup);
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&medium, &id).unwrap();
    let mut stamps = Vec::new();
    let mut written = 0;
    // The clock goes back while the volume is open, and while it is not.
    for clocks in [[100, 200, 50, 40, 300], [20, 10, 310, 305, 400]] {
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        for now in clocks {
            written += 1;
            volume.write(now, Lpn(3), &page(written)).unwrap();
            stamps.push(volume.history_status().unwrap().newest);
        }
        volume.close().unwrap();
    }
    assert_eq!(
        stamps,
        [100, 200, 201, 202, 300, 301, 302, 310, 311, 400],
        "a moment after what was before, or the clock"
    );
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    let mut got = [1; PAGE_BYTES];
    for (value, &stamp) in (1..).zip(&stamps) {
        volume.read_at(stamp, Lpn(3), &mut got).unwrap();
        assert_eq!(got, page(value), "at {stamp}");
    }
}

/// The entries of a protected window were given up for new ones.
#[test]
fn a_protected_window_refuses_changes_rather_than_forget() {
    let mut id = versioned(Policy::Dedup);
    id.history = id.history.map(|history| HistoryIdentity {
        least_window: 1000,
        protected: true,
        ..history
    });
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&medium, &id).unwrap();
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    let value = |n: u64| page(1 + n as u32 % 7);
    // It was made at 5. Each page had nothing before its first write: that is an entry, too.
    let refused = (11..).find(|&n| volume.write(n, Lpn(n as u32 % 50), &value(n)).is_err());
    assert_eq!(refused, Some(111));
    let full = volume.write(111, Lpn(3), &page(9)).unwrap_err();
    assert!(matches!(
        full,
        VolumeError::HistoryFull { entries: 100, .. }
    ));
    assert!(volume.rewind_to(112, 50).is_err(), "it has no room either");
    volume.flush().unwrap();
    drop(volume);
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    let mut got = [1; PAGE_BYTES];
    for n in 11..=110 {
        volume.read_at(n, Lpn(n as u32 % 50), &mut got).unwrap();
        assert_eq!(got, value(n), "at {n}");
    }
    assert!(volume.write(900, Lpn(3), &page(9)).is_err());
    // Entries that have become older than the window make room, and no others.
    volume.write(1015, Lpn(3), &page(9)).unwrap();
    assert!(volume.read_at(17, Lpn(17), &mut got).is_ok());
    volume.check().unwrap();
}

/// Between two checkpoints there was nothing but a rewind.
#[test]
fn a_return_survives_a_checkpoint() {
    for policy in [Policy::Plain, Policy::Dedup, Policy::DedupTrusted] {
        let id = versioned(policy);
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&medium, &id).unwrap();
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        volume.write(10, Lpn(3), &page(1)).unwrap();
        volume.write(20, Lpn(3), &page(2)).unwrap();
        volume.write(30, Lpn(5), &page(3)).unwrap();
        volume.checkpoint().unwrap();
        assert_eq!(volume.rewind_to(40, 15).unwrap(), 2);
        volume.close().unwrap();
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        volume.check().unwrap();
        let mut got = [1; PAGE_BYTES];
        for (lpn, present, before) in [(3, page(1), page(2)), (5, [0; PAGE_BYTES], page(3))] {
            volume.read(Lpn(lpn), &mut got).unwrap();
            assert_eq!(got, present, "{policy:?}: page {lpn}");
            volume.read_at(30, Lpn(lpn), &mut got).unwrap();
            assert_eq!(got, before, "{policy:?}: page {lpn} before the rewind");
        }
    }
}

#[test]
fn what_is_not_durable_is_counted_from_the_opening_on() {
    let id = identity(Policy::Plain);
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&medium, &id).unwrap();
    for _ in 0..3 {
        let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        assert_eq!(volume.status().waiting, 0);
        volume.write(1, Lpn(0), &page(1)).unwrap();
        volume.trim(1, Lpn(0)).unwrap();
        assert_eq!(volume.status().waiting, 2);
        volume.flush().unwrap();
        assert_eq!(volume.status().waiting, 0);
        volume.write(2, Lpn(1), &page(2)).unwrap();
        assert_eq!(volume.status().waiting, 1);
    }
}

#[test]
fn old_versions_leave_a_twentieth_free_as_far_as_the_least_window_allows() {
    for (least_window, left) in [(0, 9), (1 << 40, 0)] {
        let id = Identity {
            history: Some(HistoryIdentity {
                entries: 500,
                least_window,
                protected: false,
            }),
            ..identity(Policy::Plain)
        };
        // A twentieth of 24 blocks of 8 units.
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&medium, &id).unwrap();
        let (mut volume, _) = Volume::open(medium).unwrap();
        for write in 0..1000 {
            let now = 10 + u64::from(write);
            volume.write(now, Lpn(write % 64), &page(write)).unwrap();
        }
        let mut survey = Survey::default();
        assert_eq!(volume.survey_step(ObjectId(0), u32::MAX, &mut survey), None);
        let free = volume.status().most - survey.values - survey.kept;
        assert_eq!(free, left, "{least_window}: {survey:?}");
    }
}
