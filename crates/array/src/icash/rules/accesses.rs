//! What the heatmap counts, and the order of the LRU list.

use super::{BlockState, element, options, page};
use crate::icash::state::ICash;

/// A reference, block 1, with the associate 0.
fn pair() -> ICash {
    let mut element = element(options());
    element.write_page(0, page(1, [1; 8]));
    element.write_page(1, page(1, [1; 8]));
    element.scan_now();
    // Of two equally popular ones the one accessed later.
    assert_eq!(element.state_of(1), BlockState::Reference);
    assert_eq!(element.state_of(0), BlockState::AssociateOf(Some(1)));
    element
}

/// How often a sub-signature was counted at each position.
fn counted(element: &ICash, value: u8) -> u32 {
    let first = element.heatmap.row(0)[usize::from(value)];
    for row in 1..8 {
        assert_eq!(element.heatmap.row(row)[usize::from(value)], first);
    }
    first
}

#[test]
fn every_read_and_write_is_counted_once_in_each_row() {
    let mut element = element(options());
    element.write_page(0, page(1, [1; 8]));
    element.write_page(1, page(2, [2; 8]));
    element.holds(0, page(1, [1; 8]));
    element.send_home(1);
    // A miss, then a hit.
    element.holds(1, page(2, [2; 8]));
    element.holds(1, page(2, [2; 8]));
    assert_eq!((counted(&element, 1), counted(&element, 2)), (2, 3));
    assert_eq!(element.heatmap.recorded(), 5);
}

#[test]
fn writes_of_independents_count_the_new_signature() {
    let mut element = element(options());
    element.write_page(0, page(1, [3; 8]));
    element.write_page(0, page(2, [4; 8]));
    assert_eq!((counted(&element, 3), counted(&element, 4)), (1, 1));
}

#[test]
fn writes_of_associates_count_the_new_signature() {
    let mut element = pair();
    element.write_page(0, page(1, [7; 8]));
    assert_eq!(element.state_of(0), BlockState::AssociateOf(Some(1)));
    assert_eq!((counted(&element, 1), counted(&element, 7)), (2, 1));
}

#[test]
fn the_signature_of_a_reference_stays_that_of_its_frozen_content() {
    let mut element = pair();
    for value in 20..40 {
        element.write_page(1, page(1, [value; 8]));
        element.holds(0, page(1, [1; 8]));
        assert_eq!(counted(&element, value), 0);
        let signature = element.blocks.get(element.id(1)).signature;
        assert_eq!(signature.map(|s| s.0), Some([1; 8]));
    }
    assert_eq!(counted(&element, 1), 2 + 40);
    assert_eq!(element.counters().own_deltas, 20);
    element.holds(1, page(1, [39; 8]));
}

#[test]
fn a_reference_goes_ahead_of_the_associate_that_was_accessed() {
    let mut element = pair();
    element.write_page(5, page(5, [5; 8]));
    element.holds(0, page(1, [1; 8]));
    assert_eq!(element.newest_blocks(3), [Some(1), Some(0), Some(5)]);
    element.write_page(5, page(5, [5; 8]));
    element.write_page(0, page(1, [2; 8]));
    assert_eq!(element.newest_blocks(3), [Some(1), Some(0), Some(5)]);
    element.holds(1, page(1, [1; 8]));
    assert_eq!(element.newest_blocks(3), [Some(1), Some(0), Some(5)]);
}

#[test]
fn a_read_of_what_was_never_written_is_no_access() {
    let mut element = element(options());
    element.holds(3, [0; 4096]);
    assert_eq!(element.state_of(3), BlockState::Absent);
    assert_eq!(element.heatmap.recorded(), 0);
}
