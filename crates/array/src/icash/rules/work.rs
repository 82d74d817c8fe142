//! What follows requests: in steps, with requests between them, and what requests do themselves.

use super::{BlockState, element, media, open, options, page};
use crate::element::Element;
use crate::icash::state::ICash;
use crate::icash::{Options, lba};

/// Requests do none of the work, and a scan has come due.
fn put_off(blocks: u32) -> ICash {
    let mut element = element(Options {
        scan_every: u64::from(blocks),
        ..options()
    });
    for block in 0..blocks {
        let content = page(1, [block as u8, 1, 1, 1, 1, 1, 1, 1]);
        element.write(lba(0, block.into()), &content).unwrap();
    }
    assert_eq!(element.counters().scans, 0);
    assert!(element.is_work_due());
    element
}

#[test]
fn a_scan_goes_on_over_many_steps_to_its_end() {
    let mut element = put_off(50);
    let mut steps = 0;
    while element.work().unwrap() {
        element.check().unwrap();
        steps += 1;
    }
    assert!(steps >= 3, "it took {steps} steps");
    assert!(!element.is_work_due());
    assert_eq!(element.counters().scans, 1);
    assert_eq!(element.states().associates, 49);
    assert_eq!(element.counters().scan_references, 1);
    element.flush().unwrap();
    element.verify().unwrap();
}

/// Between two steps what a scan looks at is written, trimmed and read.
#[test]
fn what_changes_between_the_steps_of_a_scan_is_what_counts() {
    for step in 1..8 {
        let mut element = put_off(50);
        for _ in 0..step {
            element.work().unwrap();
        }
        for block in (0..50).step_by(2) {
            element.trim(lba(0, block)).unwrap();
        }
        let other = page(9, [200; 8]);
        for block in (1..50).step_by(4) {
            element.write(lba(0, block), &other).unwrap();
        }
        element.check().unwrap();
        element.work_off();
        element.check().unwrap();
        element.flush().unwrap();
        element.verify().unwrap();
        element.holds(1, other);
        element.holds(3, page(1, [3, 1, 1, 1, 1, 1, 1, 1]));
        assert_eq!(element.state_of(2), BlockState::Absent);
    }
}

/// After an opening a scan reads what it does not know yet. Meanwhile the blocks end, and their numbers are given to
/// others.
#[test]
fn what_ends_between_the_steps_of_a_scan_is_left_alone() {
    for ends in [false, true] {
        let options = Options {
            scan_every: 1,
            ..options()
        };
        let media = media(&options, 0);
        let mut element = open(&media, options.clone());
        for block in 0..50 {
            let content = page(block, [block as u8; 8]);
            element.write(lba(0, block.into()), &content).unwrap();
        }
        element.flush().unwrap();
        drop(element);
        let mut element = open(&media, options);
        element.trim(lba(1, 0)).unwrap();
        assert!(element.work().unwrap());
        assert!(element.scanning.is_some());
        for block in 0..50 {
            match ends {
                true => element.trim(lba(0, block)).unwrap(),
                false => {
                    let content = page(100 + block as u32, [7; 8]);
                    element.write(lba(0, block), &content).unwrap();
                }
            }
        }
        element.flush().unwrap();
        // They get the numbers of data blocks that ended.
        for block in 0..30 {
            let content = page(200 + block, [9; 8]);
            element.write(lba(2, block.into()), &content).unwrap();
        }
        element.work_off();
        element.check().unwrap();
        element.verify().unwrap();
    }
}

#[test]
fn cleaning_goes_on_until_there_is_room_ahead() {
    let mut element = element(Options {
        too_big: crate::icash::TooBig::Log,
        flush_blocks: 8,
        ..options()
    });
    let mut cleanings = 0;
    for number in 0..4000_u32 {
        // Anywhere: a little of each segment lives on.
        let block = (number.wrapping_mul(2_654_435_761) >> 8) % 300;
        let content = page(number, [number as u8; 8]);
        let address = element.lba_of(block);
        element.write(address, &content).unwrap();
        let before = element.counters().cleaned;
        element.work_off();
        if element.counters().cleaned > before {
            cleanings += 1;
            assert!(element.has_log_room(2), "it stopped half way");
        }
    }
    assert!(cleanings >= 5, "it was cleaned {cleanings} times");
    element.verify().unwrap();
}

/// Somebody does the work at any moment, but has not yet: reads do nothing of it, writes only what they need.
#[test]
fn a_request_leaves_what_it_can_go_on_without() {
    let mut element = element(Options {
        virtual_blocks: 100,
        ..options()
    });
    element.leave_work();
    for block in 0..200 {
        let content = page(block, [block as u8; 8]);
        let address = element.lba_of(block);
        element.write(address, &content).unwrap();
    }
    element.flush().unwrap();
    assert!(element.is_work_due());
    let before = element.statistics().slow.writes;
    for block in 0..200 {
        let address = element.lba_of(block);
        element.read(address, &mut [0; 4096]).unwrap();
        element.check().unwrap();
    }
    assert_eq!(element.statistics().slow.writes, before);
    element.work_off();
    assert!(!element.is_work_due());
    assert!(element.status().free_slots >= 2);
    element.verify().unwrap();
}
