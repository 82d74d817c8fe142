//! Media that fail. A rival promises nothing about what it wrote when a medium failed, but all else holds.

use std::sync::Arc;

use flashlore_array::{ArrayError, Element, Rival};
use flashlore_medium::{Failure, Faults, FaultyMedium, Medium, MemoryMedium, When, WriteFault};

use crate::common::{Sort, content, draw_options, medium, one_machine, rival_on};
use crate::support::{Draw, Op, Value, operations, page};

const BLOCKS: usize = 12;

fn failing_write(medium: Arc<MemoryMedium>, number: u64) -> Arc<dyn Medium> {
    let write = WriteFault {
        when: When::Only(number),
        failure: Failure::Eio,
    };
    Arc::new(FaultyMedium::new(
        medium,
        Faults {
            writes: Some(write),
            ..Faults::default()
        },
    ))
}

/// Does a request; false if it failed.
fn run(rival: &mut Rival, op: Op, model: &mut [Value]) -> bool {
    let done = match op {
        Op::Write(block, value) => {
            let done = rival.write(block as u64, &page(value));
            if done.is_ok() {
                model[block] = value;
            }
            done
        }
        Op::Trim(block) => {
            model[block] = 0;
            rival.trim(block as u64)
        }
        Op::Flush => rival.flush(),
        Op::Read(block) => {
            let mut found = [1; 4096];
            let done = rival.read(block as u64, &mut found);
            assert!(done.is_err() || found == page(model[block]));
            done
        }
    };
    if let Err(error) = rival.check() {
        panic!("after {op:?}: {error}");
    }
    done.is_ok()
}

/// The write that fails never reaches its medium: then its block holds what it held before.
#[test]
fn a_write_to_a_medium_that_fails_once_changes_no_content() {
    let (mut refused, mut in_background) = (0, 0);
    for seed in 0..200 {
        let mut draw = Draw::new(seed);
        let sort = draw.pick(&[Sort::Lru, Sort::Dedup]);
        let options = draw_options(&mut draw);
        let number = draw.between(1, 20);
        let (mut cache, mut home): (Arc<dyn Medium>, Arc<dyn Medium>) =
            (medium(options.slots.into()), medium(BLOCKS as u64));
        if draw.chance(50) {
            cache = failing_write(medium(options.slots.into()), number);
        } else {
            home = failing_write(medium(BLOCKS as u64), number);
        }
        let mut rival = rival_on(sort, cache, home, &one_machine(BLOCKS as u32), &options);
        let mut model = vec![0; BLOCKS];
        for mut op in operations(&mut draw, 150, BLOCKS) {
            if let Op::Write(_, value) = &mut op {
                *value = content(draw.below(8));
            }
            refused += u64::from(!run(&mut rival, op, &mut model));
        }
        for block in 0..BLOCKS {
            assert!(run(&mut rival, Op::Read(block), &mut model));
        }
        in_background += rival.counters().background_failures;
    }
    assert!(
        refused > 20 && in_background > 20,
        "{refused}, {in_background}"
    );
}

#[test]
fn a_block_that_cannot_be_read_is_named() {
    let mut unreadable = Faults::default();
    unreadable.unreadable.push(2 * 4096..3 * 4096);
    let slow = Arc::new(FaultyMedium::new(medium(4), unreadable));
    let mut rival = Rival::raid0(slow, &one_machine(4)).unwrap();
    rival.write(1, &page(5)).unwrap();
    rival.write(2, &page(6)).unwrap();
    let mut found = [0; 4096];
    rival.read(1, &mut found).unwrap();
    let error = rival.read(2, &mut found).unwrap_err();
    assert!(
        matches!(error, ArrayError::Unreadable { address: 2, .. }),
        "{error}"
    );
}
