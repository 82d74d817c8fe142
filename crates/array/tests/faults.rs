//! Media that fail: writes, syncs and ranges that cannot be read. What was written is read back, or is an error;
//! it is never anything else, and what has failed once works again.

use crate::support;

use std::sync::Arc;

use flashlore_array::{ArrayError, Element};
use flashlore_medium::{Failure, Faults, FaultyMedium, Medium, MemoryMedium, When, WriteFault};
use support::{Attended, Draw, Op, PAGE_MISSED, Setup, Value, operations, page};

type Faulty = Arc<FaultyMedium<MemoryMedium>>;

struct Life {
    setup: Setup,
    fast: Faulty,
    slow: Faulty,
    element: Attended,
    model: Vec<Value>,
    /// What may be found after an opening: states since the last flush.
    since_flush: Vec<Vec<Value>>,
    failures: u64,
}

impl Life {
    fn new(setup: Setup) -> Life {
        let (fast, slow) = setup.images();
        let faulty = |bytes| {
            Arc::new(FaultyMedium::new(
                MemoryMedium::from_bytes(bytes),
                Faults::default(),
            ))
        };
        let (fast, slow): (Faulty, Faulty) = (faulty(fast), faulty(slow));
        let element = setup.open(fast.clone(), slow.clone()).unwrap();
        let model = vec![0; setup.blocks()];
        Life {
            since_flush: vec![model.clone()],
            model,
            setup,
            fast,
            slow,
            element,
            failures: 0,
        }
    }

    /// Runs an operation. One that fails changes nothing.
    fn run(&mut self, op: Op) {
        let change = match op {
            Op::Write(block, value) => {
                let lba = self.setup.lba(block);
                self.element
                    .write(lba, &page(value))
                    .map(|()| Some((block, value)))
            }
            Op::Trim(block) => self
                .element
                .trim(self.setup.lba(block))
                .map(|()| Some((block, 0))),
            Op::Read(block) => self.read(block).map(|_| None),
            Op::Flush => self.element.flush().map(|()| {
                self.since_flush = vec![self.model.clone()];
                None
            }),
        };
        match change {
            Ok(Some((block, value))) => {
                self.model[block] = value;
                self.since_flush.push(self.model.clone());
            }
            Ok(None) => {}
            Err(_) => self.failures += 1,
        }
        if let Err(error) = self.element.check()
            && !error.contains(PAGE_MISSED)
        {
            panic!("after {op:?}: {error}");
        }
    }

    /// Reads a block: what was written, or an error that names it.
    fn read(&mut self, block: usize) -> Result<(), ArrayError> {
        let mut found = [1; 4096];
        let lba = self.setup.lba(block);
        self.element.read(lba, &mut found)?;
        assert!(
            found == page(self.model[block]),
            "block {block} holds something else"
        );
        Ok(())
    }

    fn unreadable(&mut self) -> Vec<usize> {
        let blocks = 0..self.setup.blocks();
        blocks.filter(|&block| self.read(block).is_err()).collect()
    }

    /// Without faults everything works: at once, or after the array was opened again.
    fn works_again(mut self, must_work_at_once: bool) {
        self.fast.set_faults(Faults::default());
        self.slow.set_faults(Faults::default());
        if self.element.flush().is_err() {
            let has_missed = self
                .element
                .check()
                .is_err_and(|error| error.contains(PAGE_MISSED));
            assert!(!must_work_at_once || has_missed, "it does not work again");
            let reads = self.unreadable();
            assert_eq!(reads, [], "reads go on");
        } else {
            self.since_flush = vec![self.model.clone()];
        }
        self.element = self
            .setup
            .open(self.fast.clone(), self.slow.clone())
            .unwrap();
        self.element.verify().unwrap();
        let mut fits = self.since_flush.clone();
        for block in 0..self.setup.blocks() {
            let mut found = [1; 4096];
            self.element
                .read(self.setup.lba(block), &mut found)
                .unwrap();
            fits.retain(|state| page(state[block]) == found);
        }
        self.model = fits.pop().expect("a state since the last flush");
        let mut draw = Draw::new(3);
        let before = self.failures;
        for op in operations(&mut draw, 40, self.setup.blocks()) {
            self.run(op);
        }
        assert_eq!(self.failures, before);
        assert_eq!(self.unreadable(), []);
    }
}

fn history(seed: u64) -> (Life, Vec<Op>) {
    let mut draw = Draw::new(seed);
    let setup = Setup::draw(&mut draw);
    let ops = operations(&mut draw, 150, setup.blocks());
    (Life::new(setup), ops)
}

/// Runs a history in which calls of one medium fail from some point on; answers how many operations failed.
fn with_faults(
    seed: u64,
    is_fast: bool,
    at_once: bool,
    faults: impl Fn(u64, u64) -> Faults,
) -> u64 {
    let (mut life, ops) = history(seed);
    let medium = if is_fast {
        life.fast.clone()
    } else {
        life.slow.clone()
    };
    for &op in &ops[..70] {
        life.run(op);
    }
    medium.set_faults(faults(medium.writes(), medium.syncs()));
    for &op in &ops[70..] {
        life.run(op);
    }
    let failures = life.failures;
    life.works_again(at_once);
    failures
}

fn writes(when: When, failure: Failure) -> Faults {
    Faults {
        writes: Some(WriteFault { when, failure }),
        ..Faults::default()
    }
}

#[test]
fn a_write_that_fails_changes_nothing_and_the_element_goes_on() {
    let mut failures = 0;
    for seed in 0..8 {
        for number in 1..40 {
            for is_fast in [false, true] {
                let failure = if number % 2 == 0 {
                    Failure::Eio
                } else {
                    Failure::NoSpace
                };
                failures += with_faults(seed, is_fast, true, |writes_so_far, _| {
                    writes(When::Only(writes_so_far + number), failure)
                });
            }
        }
    }
    println!("{failures} operations failed");
    assert!(failures >= 100, "only {failures} operations failed");
}

#[test]
fn when_all_writes_fail_reads_go_on() {
    let mut failures = 0;
    for seed in 0..30 {
        for is_fast in [false, true] {
            // Void groups cannot be written either: then it has to be opened again.
            failures += with_faults(seed, is_fast, is_fast, |writes_so_far, _| {
                writes(When::From(writes_so_far + 1), Failure::Eio)
            });
        }
    }
    assert!(failures >= 100, "only {failures} operations failed");
}

#[test]
fn after_a_sync_that_failed_nothing_is_changed_until_it_is_opened_again() {
    let mut failures = 0;
    for seed in 0..10 {
        for number in 1..10 {
            for is_fast in [false, true] {
                failures += with_faults(seed, is_fast, false, |_, syncs| Faults {
                    syncs: Some(When::Only(syncs + number)),
                    ..Faults::default()
                });
            }
        }
    }
    assert!(failures >= 100, "only {failures} operations failed");
}

/// Each block of each medium cannot be read in turn: reads of what it holds fail, all others go on, and a block
/// that is written again is whole again.
#[test]
fn what_cannot_be_read_is_an_error_for_those_who_need_it_alone() {
    let mut unreadable = 0;
    let mut most = 0;
    for seed in 0..12 {
        let sizes = history(seed).0.setup.sizes();
        for (is_fast, size) in [(true, sizes.0), (false, sizes.1)] {
            // Other blocks with each seed.
            for at in (seed % 4 * 4096..size as u64).step_by(4 * 4096) {
                let (mut life, ops) = history(seed);
                for &op in &ops[..100] {
                    life.run(op);
                }
                let medium = if is_fast {
                    life.fast.clone()
                } else {
                    life.slow.clone()
                };
                medium.set_faults(Faults {
                    unreadable: std::iter::once(at..at + 4096).collect(),
                    ..Faults::default()
                });
                let lost = life.unreadable();
                unreadable += lost.len();
                most = most.max(lost.len());
                for &block in &lost {
                    life.run(Op::Write(block, 9 << 16 | 5));
                }
                for &op in &ops[100..] {
                    life.run(op);
                }
                life.works_again(true);
            }
        }
    }
    println!("{unreadable} blocks could not be read, at most {most} at once");
    assert!(
        unreadable >= 50,
        "only {unreadable} blocks could not be read"
    );
}

/// What was read from the slow medium has a copy on the fast one, or became a delta from what is there.
#[test]
fn what_is_at_home_is_read_there_when_its_copy_cannot_be() {
    let mut arrays = 0;
    for seed in 0..40 {
        let (mut life, ops) = history(seed);
        if life.setup.shape.journal_blocks == 0 {
            continue;
        }
        arrays += 1;
        for &op in &ops {
            life.run(op);
        }
        life.element.close().unwrap();
        life.element = life
            .setup
            .open(life.fast.clone(), life.slow.clone())
            .unwrap();
        assert_eq!(life.unreadable(), []);
        life.fast.set_faults(Faults {
            unreadable: std::iter::once(0..life.fast.len()).collect(),
            ..Faults::default()
        });
        assert_eq!(life.unreadable(), []);
    }
    assert!(arrays >= 5, "only {arrays} arrays write home in order");
}

/// A medium that says another length than the one the array was made for is refused, not written.
#[test]
fn media_that_are_too_short_are_refused() {
    let setup = history(1).0.setup;
    let (fast, slow) = setup.images();
    let short = |bytes: &Vec<u8>| -> Arc<dyn Medium> {
        Arc::new(MemoryMedium::from_bytes(
            bytes[..bytes.len() - 4096].to_vec(),
        ))
    };
    let whole =
        |bytes: &Vec<u8>| -> Arc<dyn Medium> { Arc::new(MemoryMedium::from_bytes(bytes.clone())) };
    assert!(setup.open(short(&fast), whole(&slow)).is_err());
    assert!(setup.open(whole(&fast), short(&slow)).is_err());
    assert!(setup.open(whole(&slow), whole(&fast)).is_err());
    assert!(setup.open(whole(&fast), whole(&slow)).is_ok());
}
