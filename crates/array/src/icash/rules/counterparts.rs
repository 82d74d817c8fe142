//! Blocks with the same address in another machine.

use super::{BLOCKS, BlockState, element, options, page};
use crate::element::Element;

#[test]
fn a_block_that_is_written_first_joins_its_counterpart_if_they_are_alike() {
    let mut element = element(options());
    element.write_page(7, page(1, [1; 8]));
    // Another address, though alike.
    element.write_page(BLOCKS + 8, page(1, [1; 8]));
    assert_eq!(element.state_of(BLOCKS + 8), BlockState::Independent);
    // The same address, but too few positions in common.
    element.write_page(BLOCKS + 7, page(1, [1, 1, 1, 2, 2, 2, 2, 2]));
    assert_eq!(element.state_of(BLOCKS + 7), BlockState::Independent);
    element.write_page(2 * BLOCKS + 7, page(1, [1; 8]));
    assert_eq!(
        element.state_of(2 * BLOCKS + 7),
        BlockState::AssociateOf(Some(7))
    );
    assert_eq!(element.counters().same_address, 1);
}

#[test]
fn a_block_that_is_read_first_joins_its_counterpart() {
    let mut element = element(options());
    element.write_page(BLOCKS + 7, page(1, [1; 8]));
    element.send_home(BLOCKS + 7);
    element.write_page(7, page(1, [1; 8]));
    element.holds(BLOCKS + 7, page(1, [1; 8]));
    assert_eq!(
        element.state_of(BLOCKS + 7),
        BlockState::AssociateOf(Some(7))
    );
    element.flush().unwrap();
    element.verify().unwrap();
}

#[test]
fn of_two_counterparts_the_one_that_is_more_alike_is_joined() {
    for (near, far) in [(0, BLOCKS), (BLOCKS, 0)] {
        let mut element = element(options());
        element.write_page(far + 7, page(1, [2, 2, 2, 1, 1, 1, 1, 1]));
        element.write_page(near + 7, page(1, [1; 8]));
        let joined = match element.state_of(near + 7) {
            // It is the other one's associate already: then both have one reference.
            BlockState::AssociateOf(of) => of,
            _ => Some(near + 7),
        };
        element.write_page(2 * BLOCKS + 7, page(1, [1; 8]));
        assert_eq!(
            element.state_of(2 * BLOCKS + 7),
            BlockState::AssociateOf(joined)
        );
    }
    let mut element = element(options());
    element.write_page(7, page(1, [2, 2, 2, 2, 1, 1, 1, 1]));
    element.write_page(BLOCKS + 7, page(2, [3, 3, 3, 1, 1, 1, 1, 1]));
    assert_eq!(element.state_of(BLOCKS + 7), BlockState::Independent);
    element.write_page(2 * BLOCKS + 7, page(2, [1; 8]));
    assert_eq!(
        element.state_of(2 * BLOCKS + 7),
        BlockState::AssociateOf(Some(BLOCKS + 7))
    );
}

/// There is one level of references: the counterpart of an associate joins the associate's reference.
#[test]
fn the_counterpart_of_an_associate_joins_its_reference() {
    let mut element = element(options());
    element.write_page(7, page(1, [1; 8]));
    element.write_page(8, page(1, [1; 8]));
    element.scan_now();
    assert_eq!(element.state_of(7), BlockState::AssociateOf(Some(8)));
    element.write_page(BLOCKS + 7, page(1, [1, 1, 1, 1, 1, 1, 1, 5]));
    assert_eq!(
        element.state_of(BLOCKS + 7),
        BlockState::AssociateOf(Some(8))
    );
}
