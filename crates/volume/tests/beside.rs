//! Nobody waits for what another reads of the medium.

use std::sync::Arc;
use std::time::Duration;

use flashlore_content::PAGE_BYTES;
use flashlore_medium::{Medium, MediumError, MemoryMedium};
use flashlore_volume::disk::{BlockDevice, Disk};
use flashlore_volume::{Encoding, Identity, Policy, Volume, bytes_needed, create};
use parking_lot::{Condvar, Mutex};

use crate::support::{Shape, page};

const PAGE: u64 = PAGE_BYTES as u64;

/// How long a reader is kept before whoever waits for it is taken to wait for ever.
const FOR_EVER: Duration = Duration::from_secs(60);

const SHAPE: Shape = Shape {
    exported: 64,
    blocks: 24,
    pages_per_block: 4,
    units_per_page: 4,
    alignment: 512,
    index_entries: 64,
    journal_bytes: 64 << 10,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    /// Who reads next is kept.
    Shut,
    Keeps,
    /// Nobody opened it for the one it kept.
    GaveUp,
}

/// Memory that keeps one reader until it is told to let it go.
#[derive(Debug)]
struct Gated {
    inner: MemoryMedium,
    gate: Mutex<Gate>,
    changed: Condvar,
}

impl Gated {
    fn turn(&self, to: Gate) -> Gate {
        let before = std::mem::replace(&mut *self.gate.lock(), to);
        self.changed.notify_all();
        before
    }

    fn wait_until_it_keeps(&self) {
        let mut gate = self.gate.lock();
        let waited = self
            .changed
            .wait_while_for(&mut gate, |gate| *gate == Gate::Shut, FOR_EVER);
        assert!(!waited.timed_out(), "nobody reads");
    }
}

impl Medium for Gated {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        let mut gate = self.gate.lock();
        if *gate == Gate::Shut {
            *gate = Gate::Keeps;
            self.changed.notify_all();
            let is_kept = |gate: &mut Gate| *gate == Gate::Keeps;
            if self
                .changed
                .wait_while_for(&mut gate, is_kept, FOR_EVER)
                .timed_out()
            {
                *gate = Gate::GaveUp;
            }
        }
        drop(gate);
        self.inner.read(offset, buf)
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<(), MediumError> {
        self.inner.write(offset, buf)
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.inner.discard(offset, len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.inner.sync()
    }
}

/// Somebody does what reads the medium, and is kept there while another reads and writes.
fn others_go_on_beside(encoding: Encoding, what: &str, job: impl FnOnce(&Disk) + Send) {
    let id = Identity {
        encoding,
        ..SHAPE.identity(Policy::Dedup)
    };
    let medium = Arc::new(Gated {
        inner: MemoryMedium::new(bytes_needed(&id).unwrap() as usize),
        gate: Mutex::new(Gate::Open),
        changed: Condvar::new(),
    });
    create(&medium, &id).unwrap();
    let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    let disk = Disk::new(volume, Arc::new(|| 1));
    for lpn in 0..4 {
        disk.write(lpn * PAGE, &page(lpn as u32 + 1)).unwrap();
    }
    disk.checkpoint().unwrap();
    medium.turn(Gate::Shut);
    std::thread::scope(|scope| {
        scope.spawn(|| job(&disk));
        medium.wait_until_it_keeps();
        disk.write(10 * PAGE, &page(100)).unwrap();
        let mut bytes = [0; PAGE_BYTES];
        disk.read(3 * PAGE, &mut bytes).unwrap();
        assert_eq!(bytes, page(4));
        let gate = medium.turn(Gate::Open);
        assert_eq!(gate, Gate::Keeps, "{what} made others wait, {encoding:?}");
    });
    disk.with(|volume| volume.check()).unwrap().unwrap();
}

fn encodings() -> [Encoding; 2] {
    [false, true].map(|on| Encoding {
        deltas: on,
        compression: on,
    })
}

#[test]
fn a_page_is_read_while_others_use_the_volume() {
    for encoding in encodings() {
        others_go_on_beside(encoding, "a read", |disk| {
            let mut bytes = [0; PAGE_BYTES];
            disk.read(PAGE, &mut bytes).unwrap();
            assert_eq!(bytes, page(2));
        });
    }
}

#[test]
fn a_duplicate_is_compared_while_others_use_the_volume() {
    for encoding in encodings() {
        others_go_on_beside(encoding, "a duplicate", |disk| {
            disk.write(20 * PAGE, &page(2)).unwrap();
        });
    }
}
