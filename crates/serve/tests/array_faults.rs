//! Machines of an array whose media fail: EIO for what is affected and for nothing else, and the device goes on.

#[path = "../../array/tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashlore_medium::{Failure, Faults, FaultyMedium, MemoryMedium, When, WriteFault};
use flashlore_serve::array::Machines;
use flashlore_volume::disk::device::{DELTA, UNIQUE};
use flashlore_volume::disk::{About, BlockDevice, DiskError, ErrorKind};
use support::{Draw, Setup, page};

const PAGE: usize = 4096;

type Faulty = Arc<FaultyMedium<MemoryMedium>>;

struct Array {
    fast: Faulty,
    slow: Faulty,
    machines: Arc<Machines>,
    setup: Setup,
}

impl Array {
    /// One in which blocks resemble each other and everything has been replaced often, with what it holds.
    fn in_use(seed: u64) -> (Array, Vec<Vec<u8>>) {
        let mut draw = Draw::new(seed);
        let setup = Setup::draw(&mut draw);
        let (fast, slow) = setup.images();
        let faulty = |bytes| {
            let medium = MemoryMedium::from_bytes(bytes);
            Arc::new(FaultyMedium::new(medium, Faults::default()))
        };
        let (fast, slow): (Faulty, Faulty) = (faulty(fast), faulty(slow));
        let element = setup.open(fast.clone(), slow.clone()).unwrap();
        let array = Array {
            machines: Machines::whole(element.into_element()).unwrap(),
            fast,
            slow,
            setup,
        };
        let mut model: Vec<Vec<u8>> = (0..array.machines.all().len())
            .map(|machine| vec![0; array.machines.disk(machine).size() as usize])
            .collect();
        for _ in 0..250 {
            let machine = draw.below(model.len() as u64) as usize;
            let bytes = &mut model[machine];
            let at = draw.below((bytes.len() / PAGE) as u64) as usize * PAGE;
            let value = support::pages::draw_value(&mut draw);
            bytes[at..at + PAGE].copy_from_slice(&page(value));
            array
                .machines
                .disk(machine)
                .write(at as u64, &page(value))
                .unwrap();
            if draw.chance(5) {
                array.machines.disk(machine).flush().unwrap();
            }
        }
        array.machines.disk(0).flush().unwrap();
        (array, model)
    }

    fn reopened(&mut self) {
        let element = self
            .setup
            .open(self.fast.clone(), self.slow.clone())
            .unwrap();
        self.machines = Machines::whole(element.into_element()).unwrap();
    }

    /// The blocks that cannot be read, each a machine and an offset; all others are as expected.
    fn unreadable(&self, model: &[Vec<u8>]) -> Vec<(usize, usize)> {
        let mut lost = Vec::new();
        for (machine, bytes) in model.iter().enumerate() {
            let disk = self.machines.disk(machine);
            for (number, expected) in bytes.chunks(PAGE).enumerate() {
                let mut found = vec![1; PAGE];
                match disk.read((number * PAGE) as u64, &mut found) {
                    Ok(()) => assert!(found == expected, "block {number} holds something else"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Failed);
                        let named = format!("block {number} of virtual machine");
                        assert!(error.to_string().contains(&named), "{error}");
                        lost.push((machine, number * PAGE));
                    }
                }
            }
        }
        lost
    }
}

#[test]
fn what_cannot_be_read_is_eio_there_alone_and_whole_again_when_it_is_written() {
    let mut all = 0;
    for seed in 0..6 {
        let sizes = Array::in_use(seed).0.setup.sizes();
        for (is_fast, size) in [(true, sizes.0), (false, sizes.1)] {
            for at in (0..size as u64).step_by(5 * PAGE) {
                let (array, mut model) = Array::in_use(seed);
                let medium = if is_fast { &array.fast } else { &array.slow };
                medium.set_faults(Faults {
                    unreadable: std::iter::once(at..at + PAGE as u64).collect(),
                    ..Faults::default()
                });
                let lost = array.unreadable(&model);
                all += lost.len();
                for &(machine, offset) in &lost {
                    let disk = array.machines.disk(machine);
                    // A part of what cannot be read cannot be written: the rest would be made up.
                    let part = disk.write(offset as u64 + 5, &[1; 9]).unwrap_err();
                    assert_eq!(part.kind(), ErrorKind::Failed);
                    disk.write(offset as u64, &page(77)).unwrap();
                    model[machine][offset..offset + PAGE].copy_from_slice(&page(77));
                }
                // What was written may lie where nothing can be read, but nothing else is found.
                array.unreadable(&model);
                medium.set_faults(Faults::default());
                assert_eq!(array.unreadable(&model), []);
                array.machines.disk(0).flush().unwrap();
            }
        }
    }
    assert!(all >= 50, "only {all} blocks could not be read");
}

#[test]
fn after_a_failed_sync_it_is_read_only_until_it_is_opened_again() {
    let mut failed = [0; 2];
    for seed in 0..20 {
        for is_fast in [false, true] {
            let (mut array, mut model) = Array::in_use(seed);
            let disk = array.machines.disk(0);
            // Something for either medium to make durable.
            let noise: Vec<u8> = (0..PAGE as u32)
                .map(|n| (n.wrapping_mul(n) >> 3) as u8)
                .collect();
            disk.write(0, &noise).unwrap();
            disk.write_zeroes(PAGE as u64, PAGE as u64, true).unwrap();
            model[0][..PAGE].copy_from_slice(&noise);
            model[0][PAGE..2 * PAGE].fill(0);
            let medium = if is_fast { &array.fast } else { &array.slow };
            medium.set_faults(Faults {
                syncs: Some(When::From(medium.syncs() + 1)),
                ..Faults::default()
            });
            if disk.flush().is_ok() {
                // It had flushed by itself before.
                continue;
            }
            failed[usize::from(is_fast)] += 1;
            medium.set_faults(Faults::default());
            for refused in [disk.write(9, b"x"), disk.trim(0, PAGE as u64), disk.flush()] {
                let error = refused.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Failed);
                assert!(
                    error
                        .to_string()
                        .contains("until the array is opened again"),
                    "{error}"
                );
            }
            assert_eq!(array.unreadable(&model), [], "reads go on");
            array.reopened();
            let disk = array.machines.disk(0);
            disk.write(0, &noise).unwrap();
            disk.flush().unwrap();
            let mut found = vec![0; PAGE];
            disk.read(0, &mut found).unwrap();
            assert!(found == noise);
        }
    }
    assert!(
        failed.iter().all(|&count| count >= 3),
        "only {failed:?} syncs failed"
    );
}

#[test]
fn a_full_medium_is_no_space_and_changes_nothing() {
    let mut failures = 0;
    for seed in 0..6 {
        let (array, mut model) = Array::in_use(seed);
        let fault = |failure| Faults {
            writes: Some(WriteFault {
                when: When::From(1),
                failure,
            }),
            ..Faults::default()
        };
        array.fast.set_faults(fault(Failure::NoSpace));
        let mut draw = Draw::new(seed);
        for number in 0..40_u32 {
            let machine = draw.below(model.len() as u64) as usize;
            let at = draw.below((model[machine].len() / PAGE) as u64) as usize * PAGE;
            let noise: Vec<u8> = (0..PAGE as u32)
                .map(|n| ((n + number).wrapping_mul(n * n + number) >> 5) as u8)
                .collect();
            match array.machines.disk(machine).write(at as u64, &noise) {
                Ok(()) => model[machine][at..at + PAGE].copy_from_slice(&noise),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                    failures += 1;
                }
            }
        }
        assert_eq!(array.unreadable(&model), []);
        array.fast.set_faults(Faults::default());
        array.machines.disk(0).flush().unwrap();
        assert_eq!(array.unreadable(&model), []);
    }
    assert!(failures >= 20, "only {failures} writes failed");
}

#[test]
fn questions_are_answered_and_what_does_not_exist_is_refused() {
    let (array, _) = Array::in_use(3);
    let disk = array.machines.disk(0);
    let (mut told, mut deltas) = (0, 0);
    disk.trim(0, PAGE as u64).unwrap();
    let mut piece = |bytes: u64, flags: u32| {
        assert!([0, UNIQUE, UNIQUE | DELTA].contains(&(flags & (UNIQUE | DELTA))));
        assert!(told > 0 || flags == 0, "the first block was given up");
        told += bytes;
        deltas += u64::from(flags & DELTA != 0);
        true
    };
    disk.ask(About::Stored, 0, disk.size(), &mut piece).unwrap();
    assert_eq!(told, disk.size());
    let unknown = disk.ask(About::ChangedSince(1), 0, 1, &mut |_, _| true);
    assert!(matches!(unknown, Err(DiskError::NotKnown)));
    let size = disk.size();
    for refused in [
        disk.read(size, &mut [0]),
        disk.write(size - 1, &[0; 2]),
        disk.trim(u64::MAX, 2),
        disk.write_zeroes(0, size + 1, true),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
    array.machines.close().unwrap();
    assert!(matches!(disk.flush(), Err(DiskError::Closed)));
    assert!(array.machines.close().is_err());
}

/// Many threads on several machines: each byte is what it was, or what a thread of its machine wrote.
#[test]
fn threads_on_machines_do_not_mix() {
    let (array, model) = Array::in_use(9);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let disk = array.machines.disk(usize::from(thread) % model.len());
            let stop = &stop;
            scope.spawn(move || {
                for round in 0..60_u64 {
                    let at = round * 977 % (disk.size() - 3 * PAGE as u64);
                    disk.write(at, &[thread + 1; 2 * PAGE]).unwrap();
                    if round % 20 == 0 {
                        disk.flush().unwrap();
                    }
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        let disk = array.machines.disk(0);
        while !stop.load(Ordering::Relaxed) {
            let mut page = [0; PAGE];
            disk.read(0, &mut page).unwrap();
        }
    });
    for (machine, before) in model.iter().enumerate() {
        let mut found = vec![0; before.len()];
        array.machines.disk(machine).read(0, &mut found).unwrap();
        let threads = (0..4).filter(|thread| thread % model.len() == machine);
        let own: Vec<u8> = threads.map(|thread| thread as u8 + 1).collect();
        let mut both = found.iter().zip(before);
        assert!(both.all(|(now, then)| now == then || own.contains(now)));
    }
    array
        .machines
        .verify(&mut |machine, block, error| panic!("{machine} {block}: {error}"))
        .unwrap()
        .unwrap();
}
