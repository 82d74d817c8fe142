//! What is replaced first.

use super::{BlockState, element, options, page};
use crate::element::Element;
use crate::icash::Kept;
use crate::icash::blocks::Content;
use crate::icash::place::BlockPlace;
use crate::icash::state::ICash;

/// From the oldest on: reference 1 with associate 0, independents 2 to 5, reference 7 with associate 6. Nothing is
/// unrecorded.
fn several() -> ICash {
    let mut element = element(options());
    for block in [0, 1] {
        element.write_page(block, page(1, [1; 8]));
    }
    for block in [6, 7] {
        element.write_page(block, page(2, [2; 8]));
    }
    element.scan_now();
    element.holds(0, page(1, [1; 8]));
    for block in 2..6 {
        element.write_page(block, page(10 + block, [10 + block as u8; 8]));
    }
    element.holds(6, page(2, [2; 8]));
    element.flush_all();
    assert_eq!(element.state_of(1), BlockState::Reference);
    assert_eq!(element.state_of(7), BlockState::Reference);
    let expected = [7, 6, 5, 4, 3, 2, 1, 0].map(Some);
    assert_eq!(element.newest_blocks(8), expected);
    element
}

impl ICash {
    fn flush_all(&mut self) {
        self.flush().unwrap();
        self.check().unwrap();
    }

    /// Replaces with steps of `replace` until something of those `is_gone`.
    fn replace_until(
        &mut self,
        mut replace: impl FnMut(&mut ICash),
        is_gone: impl Fn(&ICash) -> bool,
    ) {
        for _ in 0..10 {
            replace(self);
            self.check().unwrap();
            if is_gone(self) {
                return;
            }
        }
        panic!("nothing was replaced");
    }

    fn present_blocks(&self) -> Vec<u32> {
        (0..8).filter(|&b| self.find(b).is_some()).collect()
    }

    fn all_hold(&mut self) {
        self.verify().unwrap();
        for block in [0, 1] {
            self.holds(block, page(1, [1; 8]));
        }
        for block in 2..6 {
            self.holds(block, page(10 + block, [10 + block as u8; 8]));
        }
        for block in [6, 7] {
            self.holds(block, page(2, [2; 8]));
        }
    }
}

#[test]
fn replacement_1_takes_the_oldest_virtual_block_that_is_no_reference() {
    let mut element = several();
    let mut expected = vec![0, 1, 2, 3, 4, 5, 6, 7];
    for victim in [0, 2, 3] {
        expected.retain(|&block| block != victim);
        let count = expected.len();
        element.replace_until(
            |element| element.replace_virtual_block().unwrap(),
            |element| element.present_blocks().len() <= count,
        );
        assert_eq!(element.present_blocks(), expected);
    }
    element.all_hold();
}

#[test]
fn replacement_2_takes_the_oldest_data_block_even_a_references() {
    let mut element = several();
    let with_slots = |element: &ICash| -> Vec<u32> {
        let has_slot = |&block: &u32| {
            let id = element.find(block);
            id.is_some_and(|id| element.blocks.get(id).data.is_some())
        };
        (0..8).filter(has_slot).collect()
    };
    let mut expected = vec![1, 2, 3, 4, 5, 7];
    for victim in [1, 2, 3] {
        expected.retain(|&block| block != victim);
        let count = expected.len();
        element.replace_until(
            |element| assert!(element.replace_data_block().unwrap()),
            |element| with_slots(element).len() <= count,
        );
        assert_eq!(with_slots(&element), expected);
    }
    // The data are replaced, the blocks are not forgotten; the associate of a reference is.
    assert_eq!(element.present_blocks(), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(element.counters().references_released, 1);
    element.all_hold();
}

#[test]
fn replacement_3_takes_the_oldest_delta_that_is_no_references() {
    let mut element = several();
    // The reference has a delta now, and is the oldest of all with one.
    element.write_page(1, page(1, [4; 8]));
    for block in [0, 2, 3, 4, 5, 6] {
        let id = element.id(block);
        element.blocks.touch(id);
        element.touch_reference(id);
    }
    let reference = element.id(1);
    assert!(element.blocks.oldest_first().next().is_some());
    for (victim, left) in [(0, 7), (6, 6)] {
        element.replace_until(
            |element| element.replace_delta().unwrap(),
            |element| element.present_blocks().len() <= left,
        );
        assert_eq!(element.state_of(victim), BlockState::Absent);
        assert!(matches!(
            element.blocks.get(reference).content,
            Content::Held(..)
        ));
    }
    assert_eq!(element.counters().deltas_replaced, 2);
    // There is no other left: the reference's own leaves RAM, and the reference stays.
    element.replace_until(
        |element| element.replace_delta().unwrap(),
        |element| element.blocks.get(reference).content == Content::Stored,
    );
    assert_eq!(element.state_of(1), BlockState::Reference);
    element.holds(1, page(1, [4; 8]));
    element.holds(0, page(1, [1; 8]));
    element.holds(6, page(2, [2; 8]));
    element.verify().unwrap();
}

/// Eight references with an associate each are the oldest. Each of their data blocks needs the associate home; all
/// of them go with the first, in one group or two.
#[test]
fn what_old_references_need_to_go_goes_home_together() {
    let mut element = element(options());
    for family in 0..8 {
        for block in [2 * family, 2 * family + 1] {
            element.write_page(block, page(family, [family as u8 * 20; 8]));
        }
    }
    element.scan_now();
    element.flush_all();
    let associates = (0..16).filter(|&b| matches!(element.state_of(b), BlockState::AssociateOf(_)));
    assert_eq!(associates.count(), 8);
    let before = element.counters;
    while element.counters().references_released < 8 {
        assert!(element.replace_data_block().unwrap());
        element.check().unwrap();
    }
    let done = element.counters().since(&before);
    assert!(done.written_home >= 8);
    assert!(done.groups <= 2, "{} groups", done.groups);
    element.verify().unwrap();
    for family in 0..8 {
        for block in [2 * family, 2 * family + 1] {
            element.holds(block, page(family, [family as u8 * 20; 8]));
        }
    }
}

/// A reference has to go. The durable delta of block 0, which was given up since, needs it, and so does the next
/// record of block 1, whose home is not to be overwritten before that is written elsewhere. The group that does it
/// records that block 0 is given up, too; what follows must not write it home as zeros.
#[test]
fn what_was_given_up_stays_a_hole_when_its_reference_goes() {
    let mut element = element(options());
    for block in [0, 1, 2] {
        element.write_page(block, page(1, [1; 8]));
    }
    element.scan_now();
    element.flush_all();
    element.send_home(1);
    element.write_page(1, page(1, [2, 1, 1, 1, 1, 1, 1, 1]));
    element.scan_now();
    assert_eq!(element.state_of(1), BlockState::AssociateOf(Some(2)));
    element.trim(0).unwrap();
    element.work_off();
    let (given_up, at_home) = (element.entry_of(0).place, element.entry_of(1).place);
    assert!(matches!(given_up, BlockPlace::Delta { .. }) && at_home == BlockPlace::Home);
    while element.counters().references_released == 0 {
        assert!(element.replace_data_block().unwrap());
        element.check().unwrap();
    }
    assert_eq!(element.kept(0).unwrap(), Kept::Nothing);
    assert_eq!(element.entry_of(0).place, BlockPlace::Zero);
    element.holds(0, [0; 4096]);
    element.holds(1, page(1, [2, 1, 1, 1, 1, 1, 1, 1]));
    element.holds(2, page(1, [1; 8]));
}
