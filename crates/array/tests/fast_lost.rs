//! A fast medium that is lost under load, that errs before, and a new one in its place: cut at every call, on disks that
//! fail, too short. What is there then is exactly what each kind of array promises.

use std::sync::Arc;

use flashlore_array::Element;
use flashlore_array::icash::{ICash, Loss, Mode, TooBig, loss_without_fast, make_fresh};
use flashlore_medium::{Failure, Faults, FaultyMedium, Medium, MemoryMedium, When, WriteFault};

use crate::support::without_fast::{bytes, demand, expected, fresh, memory};
use crate::support::{Draw, Op, Power, Setup, Trouble, Value, operations, page};

type Images = (Vec<u8>, Vec<u8>);

/// Arrays of all kinds in one mode.
fn setups(mode: Mode, is_ordered: bool) -> impl Iterator<Item = (u64, Setup)> {
    (0..400).filter_map(move |seed| {
        let mut setup = Setup::draw(&mut Draw::new(seed));
        if mode == Mode::WriteThrough {
            (setup.options.mode, setup.options.too_big) = (mode, TooBig::Log);
        }
        let fits = setup.options.mode == mode && (setup.shape.journal_blocks > 0) == is_ordered;
        fits.then_some((seed, setup))
    })
}

fn run(setup: &Setup, element: &mut ICash, op: Op, state: &mut [Value]) -> bool {
    let done = match op {
        Op::Write(block, value) => element.write(setup.lba(block), &page(value)),
        Op::Trim(block) => element.trim(setup.lba(block)),
        Op::Read(block) => element.read(setup.lba(block), &mut [0; 4096]),
        Op::Flush => element.flush(),
    };
    match (op, done.is_ok()) {
        (Op::Write(block, value), true) => state[block] = value,
        (Op::Trim(block), true) => state[block] = 0,
        _ => {}
    }
    done.is_ok()
}

/// An array after a history that ended with a flush: its media while it is open, and what it holds.
fn used(setup: &Setup, seed: u64, count: usize) -> (Images, Vec<Value>) {
    let (fast, slow) = setup.images();
    let (fast, slow) = (memory(&fast), memory(&slow));
    let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
    let mut state = vec![0; setup.blocks()];
    for op in operations(&mut Draw::new(seed ^ 0xFA57), count, setup.blocks()) {
        assert!(run(setup, &mut element, op, &mut state));
    }
    element.flush().unwrap();
    ((bytes(&*fast), bytes(&*slow)), state)
}

/// Every change is flushed before it is acknowledged, as machines in write-through do it. At some point the fast medium
/// begins to err, whatever is asked of it, and then it is gone.
#[test]
fn in_write_through_nothing_acknowledged_is_lost_with_a_fast_medium_that_errs() {
    let (mut arrays, mut went_on) = (0, 0);
    for (seed, setup) in setups(Mode::WriteThrough, false).take(30) {
        let (fast, slow) = setup.images();
        let fast = Arc::new(FaultyMedium::new(
            MemoryMedium::from_bytes(fast),
            Faults::default(),
        ));
        let slow = memory(&slow);
        let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
        let mut state = vec![0; setup.blocks()];
        for (number, op) in operations(&mut Draw::new(seed), 160, setup.blocks())
            .into_iter()
            .enumerate()
        {
            if number == 100 {
                let (failure, when) = (Failure::Eio, When::From(1));
                fast.set_faults(Faults {
                    unreadable: std::iter::once(0..fast.len()).collect(),
                    writes: Some(WriteFault { when, failure }),
                    syncs: Some(When::From(1)),
                    ..Faults::default()
                });
            }
            // Nothing that was acknowledged needs the fast medium, so nothing fails without it.
            assert!(run(&setup, &mut element, op, &mut state), "{op:?}");
            element.flush().unwrap();
            element.check().unwrap();
            went_on += u64::from(number >= 100);
            if number % 13 == 0 {
                assert_eq!(loss_without_fast(slow.clone()).unwrap(), Loss::Nothing);
            }
        }
        drop(element);
        let slow = bytes(&*slow);
        let fast = fresh(&setup, &slow);
        let mut element = setup.open(memory(&fast), memory(&slow)).unwrap();
        let all = state.iter().map(|&value| Some(page(value))).collect();
        demand(&setup, &mut element, &all, &format!("seed {seed}"));
        element.verify().unwrap();
        arrays += 1;
    }
    assert!(arrays >= 25 && went_on >= 1000, "{arrays} {went_on}");
}

/// An array in write-back that is opened in write-through brings everything to the slow medium first, and an older one
/// without frozen places brings it home.
#[test]
fn an_array_becomes_one_in_write_through_when_it_is_opened() {
    let mut needed = 0;
    for is_ordered in [false, true] {
        for (seed, mut setup) in setups(Mode::WriteBack, is_ordered).take(20) {
            let (images, state) = used(&setup, seed, 150);
            needed += u64::from(loss_without_fast(memory(&images.1)).unwrap() != Loss::Nothing);
            (setup.options.mode, setup.options.too_big) = (Mode::WriteThrough, TooBig::Log);
            let slow = memory(&images.1);
            let mut element = setup.open(memory(&images.0), slow.clone()).unwrap();
            element.check().unwrap();
            assert_eq!(loss_without_fast(slow.clone()).unwrap(), Loss::Nothing);
            let all = state.iter().map(|&value| Some(page(value))).collect();
            demand(&setup, &mut element, &all, &format!("seed {seed}"));
            drop(element);
            let slow = bytes(&*slow);
            let fast = fresh(&setup, &slow);
            let mut element = setup.open(memory(&fast), memory(&slow)).unwrap();
            demand(&setup, &mut element, &all, &format!("seed {seed}, lost"));
        }
    }
    assert!(
        needed >= 20,
        "only {needed} arrays needed their fast medium"
    );
}

/// The new fast medium, the opening with it, the first use: cut at every call, it is always the same state, and the
/// slow medium is not written before the opening.
#[test]
fn a_cut_at_any_call_leaves_the_old_array_or_the_new_one() {
    let kinds = [
        (Mode::WriteBack, false),
        (Mode::WriteBack, true),
        (Mode::WriteThrough, false),
    ];
    let (mut cuts, mut lost, mut back) = (0, 0, 0);
    for (mode, is_ordered) in kinds {
        for (seed, setup) in setups(mode, is_ordered).take(10) {
            let (images, state) = used(&setup, seed, 120);
            let (loss, expected) = expected(&setup, &images.1, &state);
            lost += u64::from(matches!(loss, Loss::Blocks(_)));
            back += u64::from(matches!(loss, Loss::SinceBatch { .. }));
            let mut draw = Draw::new(seed);
            let empty = (vec![0xE5; setup.sizes().0], images.1.clone());
            for cut in 1.. {
                let how = format!("{mode:?}, seed {seed}, cut at call {cut}");
                let power = Power::new(empty.clone(), Trouble::CutBoth(cut));
                let (fast, slow) = power.media();
                let is_made = make_fresh(fast.clone(), slow.clone()).is_ok();
                let ended = is_made && setup.open(fast, slow).is_ok();
                let left = power.survivors(&mut draw);
                cuts += 1;
                if !is_made {
                    assert!(left.1 == images.1, "{how}: the slow medium was written");
                    // The old medium goes on, if it is there after all.
                    let mut old = setup.open(memory(&images.0), memory(&left.1)).unwrap();
                    let all = state.iter().map(|&value| Some(page(value))).collect();
                    demand(&setup, &mut old, &all, &how);
                    continue;
                }
                let mut element = setup.open(memory(&left.0), memory(&left.1)).unwrap();
                demand(&setup, &mut element, &expected, &how);
                if ended {
                    break;
                }
            }
        }
    }
    assert!(
        cuts >= 100 && lost >= 3 && back >= 3,
        "{cuts} {lost} {back}"
    );
}

/// A write or a sync of either medium fails while the new one is made, or while the array is opened with it.
#[test]
fn disks_that_fail_meanwhile_do_no_harm() {
    let mut failures = 0;
    for (mode, is_ordered) in [(Mode::WriteBack, false), (Mode::WriteBack, true)] {
        for (seed, setup) in setups(mode, is_ordered).take(4) {
            let (images, state) = used(&setup, seed, 120);
            let (_, expected) = expected(&setup, &images.1, &state);
            for number in 1..24 {
                let faulty = |bytes: Vec<u8>| {
                    let medium = MemoryMedium::from_bytes(bytes);
                    Arc::new(FaultyMedium::new(medium, Faults::default()))
                };
                let (fast, slow) = (
                    faulty(vec![0xE5; setup.sizes().0]),
                    faulty(images.1.clone()),
                );
                let medium = if number % 2 == 0 { &fast } else { &slow };
                let when = When::Only(number / 4 + 1);
                medium.set_faults(match number % 4 / 2 {
                    0 => Faults {
                        writes: Some(WriteFault {
                            when,
                            failure: Failure::Eio,
                        }),
                        ..Faults::default()
                    },
                    _ => Faults {
                        syncs: Some(when),
                        ..Faults::default()
                    },
                });
                let made = make_fresh(fast.clone(), slow.clone());
                let opened = made.and_then(|()| setup.open(fast.clone(), slow.clone()));
                failures += u64::from(opened.is_err());
                drop(opened);
                fast.set_faults(Faults::default());
                slow.set_faults(Faults::default());
                // Whoever did not get that far begins again.
                let is_ours = flashlore_array::icash::find(&*fast).is_some();
                if !is_ours {
                    make_fresh(fast.clone(), slow.clone()).unwrap();
                }
                let mut element = setup.open(fast, slow).unwrap();
                let how = format!("{mode:?}, seed {seed}, number {number}");
                demand(&setup, &mut element, &expected, &how);
            }
        }
    }
    assert!(failures >= 40, "only {failures} failed");
}

/// Once the array was opened with the new medium the old one is an older copy, and the new one is not fresh any more,
/// whichever copy of its superblock rots.
#[test]
fn the_old_medium_is_refused_afterwards_and_the_new_one_is_the_arrays() {
    for (seed, setup) in setups(Mode::WriteBack, false).take(8) {
        let (images, state) = used(&setup, seed, 100);
        let (_, mut expected) = expected(&setup, &images.1, &state);
        let (fast, slow) = (memory(&fresh(&setup, &images.1)), memory(&images.1));
        let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
        for (block, content) in expected.iter_mut().enumerate() {
            let value = (200 + block as Value) << 16;
            element.write(setup.lba(block), &page(value)).unwrap();
            *content = Some(page(value));
        }
        element.flush().unwrap();
        drop(element);
        let slow = bytes(&*slow);
        let refused = setup.open(memory(&images.0), memory(&slow)).err();
        let refused = refused.expect("an older copy").to_string();
        assert!(refused.contains("older copy"), "{refused}");
        for copy in 0..2 {
            let mut fast = bytes(&*fast);
            fast[copy * 4096..(copy + 1) * 4096].fill(0);
            let mut element = setup.open(memory(&fast), memory(&slow)).unwrap();
            demand(&setup, &mut element, &expected, &format!("seed {seed}"));
        }
    }
}

#[test]
fn a_new_medium_that_is_too_short_is_refused_and_not_written() {
    let (_, setup) = setups(Mode::WriteBack, false).next().unwrap();
    let (images, _) = used(&setup, 1, 40);
    let short = memory(&vec![7; setup.sizes().0 - 4096]);
    let error = make_fresh(short.clone(), memory(&images.1)).unwrap_err();
    assert!(error.to_string().contains("the array needs"), "{error}");
    assert!(bytes(&*short).iter().all(|&byte| byte == 7));
    assert!(make_fresh(memory(&images.0), memory(&vec![0; images.1.len()])).is_err());
}
