//! Deltas whose base cannot be read, while they are materialized: what is given up is not taken for what is written, and
//! nothing is given up for a read that fails once. Old versions that were given up are there again after a crash.
//!
//! Packed pages are few here, so that writes materialize the oldest deltas.

use crate::support;

use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes};
use flashlore_flash::Lpn;
use flashlore_medium::{CrashMedium, Faults, FaultyMedium, MemoryMedium, ReadFault, Style, When};
use flashlore_volume::format::Areas;
use flashlore_volume::{
    Encoding, HistoryIdentity, Identity, Policy, Volume, VolumeError, bytes_needed, create,
};
use support::{POLICIES, Shape, page};

const SHAPE: Shape = Shape {
    exported: 32,
    blocks: 10,
    pages_per_block: 4,
    units_per_page: 4,
    alignment: 512,
    index_entries: 40,
    journal_bytes: 64 << 10,
};

/// Bytes of a page that a write changes: a few deltas fill a page.
const DIFFERENT: usize = 800;

/// Writes after which the first deltas have been materialized.
const WRITES: u32 = 60;

type Medium = Arc<FaultyMedium<MemoryMedium>>;

/// Pages of which each holds a delta from what it held before.
struct Deltas {
    volume: Volume,
    medium: Medium,
    /// By address how often it was written.
    times: Vec<u32>,
}

/// What the address holds after so many writes: little differs from the last.
fn version(lpn: u32, times: u32) -> PageBytes {
    let mut bytes = page(lpn + 1);
    let other = page(1 << 20 | times << 10 | lpn);
    bytes[..DIFFERENT].copy_from_slice(&other[..DIFFERENT]);
    bytes
}

impl Deltas {
    fn identity(policy: Policy) -> Identity {
        Identity {
            encoding: Encoding {
                deltas: true,
                compression: false,
            },
            ..SHAPE.identity(policy)
        }
    }

    fn new(policy: Policy) -> Deltas {
        let id = Deltas::identity(policy);
        let medium = MemoryMedium::new(bytes_needed(&id).unwrap() as usize);
        create(&medium, &id).unwrap();
        let medium = Arc::new(FaultyMedium::new(medium, Faults::default()));
        let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        let times = vec![0; SHAPE.exported as usize];
        let mut deltas = Deltas {
            volume,
            medium,
            times,
        };
        for lpn in 0..SHAPE.exported {
            deltas.write(lpn);
        }
        deltas.volume.flush().unwrap();
        deltas
    }

    fn write(&mut self, lpn: u32) {
        let times = &mut self.times[lpn as usize];
        *times += 1;
        let bytes = version(lpn, *times);
        self.volume.write(1, Lpn(lpn), &bytes).unwrap();
    }

    /// Writes one address after the other but for the first.
    fn write_others(&mut self, writes: u32) {
        for write in 0..writes {
            self.write(1 + write % (SHAPE.exported - 1));
        }
    }

    fn read(&mut self, lpn: u32) -> Result<(), VolumeError> {
        let mut bytes = [0; PAGE_BYTES];
        self.volume.read(Lpn(lpn), &mut bytes)?;
        assert_eq!(bytes, version(lpn, self.times[lpn as usize]), "page {lpn}");
        Ok(())
    }
}

/// Where digests are trusted, a value that was given up while it was materialized, and waited to be programmed, was taken
/// for the same value when that was written anew.
#[test]
fn a_value_that_was_given_up_is_written_anew() {
    let id = Deltas::identity(Policy::DedupTrusted);
    let areas = Areas::new(&id).unwrap();
    let mut seen = [false; 2];
    for writes in 0..WRITES {
        let mut deltas = Deltas::new(Policy::DedupTrusted);
        let base = deltas.volume.location(Lpn(0)).unwrap();
        deltas.write(0);
        deltas.volume.flush().unwrap();
        deltas
            .medium
            .inner()
            .flip(areas.unit(base) + 77, 3)
            .unwrap();
        deltas.read(0).unwrap_err();
        deltas.write_others(writes);
        let stored = deltas.volume.stored_as(Lpn(0)).unwrap();
        seen[usize::from(stored.is_delta)] = true;
        let bytes = version(0, deltas.times[0]);
        deltas.volume.write(1, Lpn(0), &bytes).unwrap();
        deltas.read(0).unwrap();
    }
    assert_eq!(
        seen,
        [true, true],
        "too few writes, or too many packed pages"
    );
}

/// A value was given up for good because one read of its base failed, while it was materialized.
#[test]
fn a_read_that_fails_once_gives_nothing_up() {
    for policy in POLICIES {
        for read in 1.. {
            let mut deltas = Deltas::new(policy);
            deltas.write(0);
            deltas.volume.flush().unwrap();
            deltas.medium.set_faults(Faults {
                reads: Some(ReadFault::Calls(When::Only(read))),
                ..Faults::default()
            });
            deltas.write_others(WRITES);
            let reads = deltas.medium.reads();
            deltas.medium.set_faults(Faults::default());
            for lpn in 0..SHAPE.exported {
                deltas.read(lpn).unwrap();
            }
            if reads < read {
                break;
            }
        }
    }
}

/// A volume with more old versions than there is room for, and a checkpoint after so many writes. Answers what a process
/// that is killed leaves.
fn full_of_versions(policy: Policy, checkpoint: u32) -> Vec<u8> {
    let id = Identity {
        history: Some(HistoryIdentity {
            entries: 1000,
            least_window: 0,
            protected: false,
        }),
        ..SHAPE.identity(policy)
    };
    let medium = Arc::new(CrashMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&medium, &id).unwrap();
    let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    for write in 0..4 * SHAPE.exported {
        if write == checkpoint {
            volume.checkpoint().unwrap();
        }
        let lpn = Lpn(write % SHAPE.exported);
        volume.write(1, lpn, &page(1 + write)).unwrap();
    }
    medium.survivors(0, Style::All)
}

/// What every address holds.
fn contents(volume: &mut Volume) -> Vec<PageBytes> {
    let read = |lpn| {
        let mut bytes = [0; PAGE_BYTES];
        volume.read(Lpn(lpn), &mut bytes).unwrap();
        bytes
    };
    (0..SHAPE.exported).map(read).collect()
}

/// Old versions that memory alone knew to be given up are there again after a crash, and what was stored under the handle
/// of one since then gets another. Where the medium was not told, the next opening found shares of objects that do not
/// exist.
#[test]
fn what_got_another_handle_is_shared_under_it() {
    for policy in [Policy::Dedup, Policy::DedupTrusted] {
        for checkpoint in 2 * SHAPE.exported..4 * SHAPE.exported {
            let left = full_of_versions(policy, checkpoint);
            let medium = Arc::new(CrashMedium::from_bytes(left));
            let (mut volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
            let mut expected = contents(&mut volume);
            for shared in (0..SHAPE.exported).step_by(2) {
                let bytes = expected[shared as usize];
                volume.write(1000, Lpn(shared + 1), &bytes).unwrap();
                expected[shared as usize + 1] = bytes;
            }
            volume.flush().unwrap();
            let left = medium.survivors(0, Style::Nothing);

            let (mut volume, _) = Volume::open(CrashMedium::from_bytes(left)).unwrap();
            let found = contents(&mut volume);
            assert!(found == expected, "checkpoint after {checkpoint} writes");
        }
    }
}
