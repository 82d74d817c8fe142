//! Packing in sequence, unpacking, trims.

use super::{BlockState, element, options, page};
use crate::element::Element;
use crate::icash::Options;
use crate::icash::state::ICash;

fn content(block: u32) -> flashlore_delta::Page {
    page(1, [1, 1, 1, 1, 1, 1, block as u8, block as u8])
}

/// Associates 1 to 40 of reference 50, written in an order that is not that of their addresses, in the log and not
/// in RAM.
fn run(options: Options) -> ICash {
    let mut element = element(options);
    for number in 0..40 {
        let block = 1 + number * 17 % 40;
        element.write_page(block, content(block));
    }
    for _ in 0..2 {
        element.write_page(50, content(50));
    }
    element.scan_now();
    element.flush().unwrap();
    assert_eq!(element.states().associates, 40);
    for block in 1..=40 {
        assert_eq!(element.state_of(block), BlockState::AssociateOf(Some(50)));
        element.forget(block);
    }
    element
}

#[test]
fn a_run_is_packed_in_sequence_and_one_read_of_the_disk_serves_it() {
    let mut element = run(options());
    let before = element.statistics().slow.reads;
    for block in 1..=40 {
        element.holds(block, content(block));
    }
    assert_eq!(element.statistics().slow.reads - before, 1);
    assert_eq!(element.counters().unpacked, 39);
    let places = (1..=40).map(|block| element.entry_of(block).place.at().unwrap());
    let places: Vec<_> = places.collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn without_unpacking_each_delta_is_read_by_itself() {
    let mut element = run(Options {
        unpack_all: false,
        ..options()
    });
    let before = element.statistics().slow.reads;
    for block in 1..=40 {
        element.holds(block, content(block));
    }
    assert_eq!(element.statistics().slow.reads - before, 40);
    assert_eq!(element.counters().unpacked, 0);
}

/// What a block of the log says of a block that was written or trimmed since is not unpacked.
#[test]
fn old_deltas_are_not_unpacked() {
    let mut element = run(options());
    element.write_page(3, content(77));
    element.trim(4).unwrap();
    element.work_off();
    element.flush().unwrap();
    element.forget(3);
    element.holds(5, content(5));
    assert_eq!(element.state_of(3), BlockState::Absent);
    assert_eq!(element.state_of(4), BlockState::Absent);
    assert_eq!(element.counters().unpacked, 37);
    element.holds(3, content(77));
    element.holds(4, [0; 4096]);
}

/// A reference that is trimmed holds zeros; its associates still have what they are deltas from.
#[test]
fn a_trimmed_reference_loses_its_address_and_not_its_frozen_content() {
    let mut element = run(options());
    element.trim(50).unwrap();
    element.work_off();
    let states = element.states();
    assert_eq!((states.references, states.detached), (1, 1));
    element.holds(50, [0; 4096]);
    for block in 1..=40 {
        element.holds(block, content(block));
        assert_eq!(element.state_of(block), BlockState::AssociateOf(None));
    }
    element.flush().unwrap();
    element.verify().unwrap();
    // With the last associate it ends.
    for block in 1..=40 {
        element.trim(block).unwrap();
        element.work_off();
    }
    element.flush().unwrap();
    element.check().unwrap();
    assert_eq!(element.states().references, 0);
    assert_eq!(element.pool.free(), 60);
}

/// A trimmed block has no reference: new content is compared with nothing.
#[test]
fn a_block_written_after_a_trim_is_independent() {
    let mut element = run(options());
    element.trim(4).unwrap();
    element.work_off();
    element.write_page(4, content(4));
    assert_eq!(element.state_of(4), BlockState::Independent);
    // Without a trim it would be an associate, though only the log has its delta.
    element.write_page(5, content(5));
    assert_eq!(element.state_of(5), BlockState::AssociateOf(Some(50)));
}

/// What is too big goes whole to a data block of its own; a reference leaves its frozen content behind.
#[test]
fn too_big_makes_associates_independent_and_references_leave_their_frozen_content() {
    let mut element = run(options());
    element.holds(1, content(1));
    let (writes, too_big) = (element.counters().slot_writes, element.counters().too_big);
    element.write_page(1, page(9, [9; 8]));
    assert_eq!(element.state_of(1), BlockState::Independent);
    element.write_page(50, page(8, [8; 8]));
    assert_eq!(element.state_of(50), BlockState::Independent);
    assert_eq!(element.counters().slot_writes - writes, 2);
    assert_eq!(element.counters().too_big - too_big, 2);
    assert_eq!(element.counters().detached, 1);
    for block in 2..=40 {
        element.holds(block, content(block));
    }
    element.holds(1, page(9, [9; 8]));
    element.holds(50, page(8, [8; 8]));
}
