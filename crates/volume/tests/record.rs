//! A device that tells what is done with it: the truth, in whole pages, in an order in which it could have happened.

use crate::support;

use std::sync::Arc;

use flashlore_content::PAGE_BYTES;
use flashlore_medium::MemoryMedium;
use flashlore_volume::disk::filters::record::{Done, Log};
use flashlore_volume::disk::filters::{Fault, Filtered, Recorded};
use flashlore_volume::disk::{BlockDevice, Disk};
use flashlore_volume::{Policy, Volume, bytes_needed, create};
use parking_lot::Mutex;
use support::{Draw, Shape};

const PAGES: u32 = 32;
const SIZE: u32 = PAGES * PAGE_BYTES as u32;

/// What was told, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    Read(u64, Vec<u8>),
    Write(u64, Vec<u8>),
    Trim(u64, u64),
    Flush,
}

/// What each request did, in the order in which they began; `None` while it runs, and of those that failed.
#[derive(Default)]
struct Kept {
    requests: Mutex<Vec<Option<Vec<Told>>>>,
    failed: Mutex<u64>,
}

impl Kept {
    fn requests(&self) -> Vec<Vec<Told>> {
        let kept = self.requests.lock();
        kept.iter().flatten().cloned().collect()
    }
}

impl Log for Kept {
    fn begin(&self) -> u64 {
        let mut kept = self.requests.lock();
        kept.push(None);
        kept.len() as u64 - 1
    }

    fn end(&self, request: u64, done: Option<&[Done<'_>]>) {
        let Some(done) = done else {
            *self.failed.lock() += 1;
            return;
        };
        let told = done.iter().map(|done| match *done {
            Done::Read(at, bytes) => Told::Read(at, bytes.to_vec()),
            Done::Write(at, bytes) => Told::Write(at, bytes.to_vec()),
            Done::Zero(at, length) => Told::Write(at, vec![0; length as usize]),
            Done::Trim(at, length) => Told::Trim(at, length),
            Done::Flush => Told::Flush,
        });
        let slot = &mut self.requests.lock()[request as usize];
        assert!(slot.replace(told.collect()).is_none(), "it ends once");
    }
}

fn disk() -> Disk {
    let shape = Shape {
        exported: PAGES,
        blocks: PAGES / 12 + 12,
        pages_per_block: 4,
        units_per_page: 4,
        alignment: 512,
        index_entries: 2 * PAGES,
        journal_bytes: 256 << 10,
    };
    let id = shape.identity(Policy::Dedup);
    let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
    create(&medium, &id).unwrap();
    let (volume, _) = Volume::open(medium).unwrap();
    Disk::new(volume, Arc::new(|| 1))
}

/// Applies what was told to a model, which must hold what reads found. In whole pages, all of it.
fn apply(told: &[Told], model: &mut [u8]) {
    let page = PAGE_BYTES as u64;
    for told in told {
        match told {
            Told::Read(at, bytes) => {
                let at = *at as usize;
                assert!(bytes.len().is_multiple_of(PAGE_BYTES) && !bytes.is_empty());
                assert!(model[at..at + bytes.len()] == bytes[..], "a read found it");
            }
            Told::Write(at, bytes) => {
                assert!(at.is_multiple_of(page) && bytes.len().is_multiple_of(PAGE_BYTES));
                assert!(!bytes.is_empty());
                model[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
            }
            Told::Trim(at, length) => {
                assert!(at.is_multiple_of(page) && length.is_multiple_of(page) && *length > 0);
                model[*at as usize..(at + length) as usize].fill(0);
            }
            Told::Flush => {}
        }
    }
}

/// Any request; whether it succeeded.
fn ask(device: &dyn BlockDevice, draw: &mut Draw) -> bool {
    let offset = match draw.below(3) {
        0 => draw.below(SIZE) / 4096 * 4096,
        1 => draw.below(SIZE) / 512 * 512,
        _ => draw.below(SIZE),
    };
    let length = (SIZE - offset).min(match draw.below(3) {
        0 => draw.below(4) * 4096,
        1 => draw.below(6) * 512,
        _ => draw.below(3 * 4096),
    });
    let (at, bytes) = (u64::from(offset), u64::from(length));
    let done = match draw.below(12) {
        0..5 => device.write(at, &vec![draw.below(256) as u8; length as usize]),
        5..8 => device.read(at, &mut vec![0; length as usize]),
        8 => device.write_zeroes(at, bytes, true),
        9 => device.write_zeroes(at, bytes, false),
        10 => device.trim(at, bytes),
        _ => device.flush(),
    };
    done.is_ok()
}

fn content(device: &dyn BlockDevice) -> Vec<u8> {
    let mut bytes = vec![0; SIZE as usize];
    device.read(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_told_is_what_the_device_holds_after_each_request() {
    let (disk, kept) = (Arc::new(disk()), Arc::new(Kept::default()));
    let device = Recorded::new(Arc::clone(&disk), Arc::clone(&kept));
    let (mut draw, mut model) = (Draw::new(5), vec![0; SIZE as usize]);
    for number in 0..1000 {
        assert!(ask(&device, &mut draw));
        let requests = kept.requests();
        assert_eq!(requests.len(), number + 1);
        apply(&requests[number], &mut model);
        assert!(content(&disk) == model, "after request {number}");
    }
}

#[test]
fn requests_beyond_the_end_are_refused_and_not_told() {
    let kept = Arc::new(Kept::default());
    let device = Recorded::new(disk(), Arc::clone(&kept));
    assert!(device.write(u64::MAX - 3, &[1; 10]).is_err());
    assert!(device.read(u64::from(SIZE) - 5, &mut [0; 6]).is_err());
    assert!(device.trim(u64::from(SIZE), 1).is_err());
    assert!(device.write_zeroes(5, u64::MAX, true).is_err());
    assert!(kept.requests().is_empty());
}

#[test]
fn requests_that_fail_are_told_as_that() {
    let kept = Arc::new(Kept::default());
    let faulty = Filtered::new(disk(), Fault::new(0.2, 0.2, 0.2, 3));
    let device = Recorded::new(faulty, Arc::clone(&kept));
    let mut draw = Draw::new(7);
    let failed = (0..500).filter(|_| !ask(&device, &mut draw)).count() as u64;
    assert!((50..250).contains(&failed), "{failed}");
    assert_eq!(*kept.failed.lock(), failed);
    assert_eq!(kept.requests().len() as u64, 500 - failed);
}

/// Threads write parts of the same pages. One by one, in the order in which they began, their requests do the same.
#[test]
fn the_order_of_many_threads_is_one_that_could_have_been() {
    for seed in 0..4 {
        let (disk, kept) = (Arc::new(disk()), Arc::new(Kept::default()));
        let device = Recorded::new(Arc::clone(&disk), Arc::clone(&kept));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let device = &device;
                scope.spawn(move || {
                    let mut draw = Draw::new(100 * seed + thread + 1);
                    (0..300).for_each(|_| assert!(ask(device, &mut draw)));
                });
            }
        });
        let mut model = vec![0; SIZE as usize];
        let requests = kept.requests();
        assert_eq!(requests.len(), 1200);
        requests.iter().for_each(|told| apply(told, &mut model));
        assert!(content(&disk) == model, "seed {seed}");
    }
}
