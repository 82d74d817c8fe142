//! Which blocks become references and which their associates.

use super::{BlockState, element, options, page};
use crate::element::Element;
use crate::icash::blocks::Content;
use crate::icash::parameters::{SUB_BLOCK_BYTES, TooBig};
use crate::icash::state::ICash;
use crate::icash::{Compression, Options};

/// A block of table 2: each half is one of four contents, which differ in 600 bytes.
fn halves(first: u8, second: u8) -> flashlore_delta::Page {
    let mut content = page(1, [9; 8]);
    for (number, half) in [first, second].into_iter().enumerate() {
        let own = page(1000 + u32::from(half), [0; 8]);
        for at in (2048 * number..2048 * (number + 1)).step_by(SUB_BLOCK_BYTES) {
            content[at] = half;
            content[at + 100..at + 250].copy_from_slice(&own[at + 100..at + 250]);
        }
    }
    content
}

/// Table 2 on the element: the reference is AD, and each other block is stored as the half that is not its.
#[test]
fn vector_b_the_reference_is_ad_and_halves_are_stored() {
    let (a, b, c, d) = (1, 2, 3, 4);
    let blocks = [(a, b), (c, d), (a, d), (b, d)];
    let mut element = element(options());
    for (block, (first, second)) in blocks.into_iter().enumerate() {
        element.write_page(block as u32, halves(first, second));
    }
    element.scan_now();
    assert_eq!(element.state_of(2), BlockState::Reference);
    for block in [0, 1, 3] {
        assert_eq!(element.state_of(block), BlockState::AssociateOf(Some(2)));
        let content = element.blocks.get(element.id(block)).content;
        let Content::Held(_, chain) = content else {
            panic!("an associate without a delta");
        };
        // Four parts of 150 bytes and of one byte, and little besides.
        assert!(
            (604..680).contains(&chain.bytes()),
            "{} bytes",
            chain.bytes()
        );
    }
    for (block, (first, second)) in blocks.into_iter().enumerate() {
        element.holds(block as u32, halves(first, second));
    }
}

#[test]
fn a_scan_looks_at_so_many_blocks_at_the_head() {
    let mut element = element(Options {
        scan_blocks: 4,
        ..options()
    });
    for block in 0..6 {
        element.write_page(block, page(1, [1; 8]));
    }
    element.scan_now();
    let states: Vec<BlockState> = (0..6).map(|block| element.state_of(block)).collect();
    let of_last = || BlockState::AssociateOf(Some(5));
    let outside = || BlockState::Independent;
    assert_eq!(
        states,
        [
            outside(),
            outside(),
            of_last(),
            of_last(),
            of_last(),
            BlockState::Reference
        ]
    );
}

#[test]
fn the_most_popular_block_becomes_the_reference() {
    let mut element = element(options());
    for block in 0..4 {
        element.write_page(block, page(1, [1, 1, 1, 1, 1, 1, 1, block as u8]));
    }
    for _ in 0..3 {
        element.holds(1, page(1, [1, 1, 1, 1, 1, 1, 1, 1]));
    }
    element.holds(3, page(1, [1, 1, 1, 1, 1, 1, 1, 3]));
    element.scan_now();
    assert_eq!(element.state_of(1), BlockState::Reference);
    assert_eq!(element.counters().scan_references, 1);
    assert_eq!(element.counters().scan_associates, 3);
}

#[test]
fn blocks_that_share_too_few_positions_are_not_compared() {
    let mut element = element(options());
    element.write_page(0, page(1, [2, 2, 2, 2, 2, 1, 1, 1]));
    element.write_page(1, page(1, [3, 3, 3, 3, 1, 1, 1, 1]));
    element.write_page(2, page(1, [1; 8]));
    element.scan_now();
    // Three positions are not enough, however short the delta; four are.
    assert_eq!(element.state_of(0), BlockState::Independent);
    assert_eq!(element.state_of(1), BlockState::AssociateOf(Some(2)));
}

/// Two references: blocks 1 and 3 of different families, of which the first one is more popular.
fn two_references() -> ICash {
    let mut element = element(options());
    let contents = [
        (0, page(1, [1; 8])),
        (1, page(1, [1; 8])),
        (2, page(2, [1, 1, 1, 1, 2, 2, 2, 2])),
        (3, page(2, [1, 1, 1, 1, 2, 2, 2, 2])),
    ];
    for (block, content) in contents {
        element.write_page(block, content);
    }
    for _ in 0..5 {
        element.holds(1, page(1, [1; 8]));
    }
    element.scan_now();
    assert_eq!(element.state_of(1), BlockState::Reference);
    assert_eq!(element.state_of(3), BlockState::Reference);
    element
}

#[test]
fn a_block_joins_the_reference_it_resembles_most() {
    let mut element = two_references();
    // Four positions in common with the more popular one, six with the other.
    element.write_page(5, page(2, [1, 1, 1, 1, 2, 2, 9, 9]));
    element.scan_now();
    assert_eq!(element.state_of(5), BlockState::AssociateOf(Some(3)));
}

/// Six positions in common with a reference of another family, four with one of its own: the delta decides.
#[test]
fn of_the_references_that_are_tried_the_shortest_delta_wins() {
    let content = page(1, [1, 1, 1, 1, 2, 2, 9, 9]);
    for (tried, expected) in [
        (1, BlockState::Independent),
        (2, BlockState::AssociateOf(Some(1))),
    ] {
        let mut element = two_references();
        element.options.tried = tried;
        element.write_page(5, content);
        element.scan_now();
        assert_eq!(element.state_of(5), expected);
        element.holds(5, content);
    }
}

/// A page of family 1 with so many bytes from another family, and this signature.
fn changed(bytes: usize, signature: [u8; 8]) -> flashlore_delta::Page {
    let (mut content, other) = (page(1, signature), page(9, signature));
    let free = (0..4096).filter(|at| at % SUB_BLOCK_BYTES > 64);
    for at in free.take(bytes) {
        content[at] = other[at];
    }
    content
}

/// Block 0 is far from its reference and near to block 3, which is too far from the reference to join it.
#[test]
fn an_associate_goes_over_to_a_new_reference_that_is_nearer() {
    let near = [1, 1, 1, 1, 2, 2, 2, 2];
    let contents = [changed(1700, [1, 1, 1, 1, 1, 2, 2, 2]), changed(0, [1; 8])];
    let mut element = element(options());
    for _ in 0..3 {
        element.write_page(0, contents[0]);
        element.write_page(1, contents[1]);
        element.write_page(2, contents[1]);
    }
    element.holds(1, contents[1]);
    element.scan_now();
    let BlockState::AssociateOf(Some(first @ (1 | 2))) = element.state_of(0) else {
        panic!("{:?}", element.state_of(0));
    };
    let length = |element: &ICash| match element.blocks.get(element.id(0)).content {
        Content::Held(_, chain) => chain.bytes(),
        _ => 0,
    };
    let before = length(&element);
    for block in [3, 4] {
        element.write_page(block, changed(2600, near));
    }
    element.scan_now();
    let now = element.state_of(0);
    assert!(
        matches!(now, BlockState::AssociateOf(Some(3 | 4))),
        "{now:?} instead of block {first}"
    );
    assert!(length(&element) < before);
    assert_eq!(element.counters().relinked, 1);
    element.holds(0, contents[0]);
    element.flush().unwrap();
    element.verify().unwrap();
}

#[test]
fn of_references_that_are_equally_like_it_a_block_joins_the_more_popular_one() {
    let mut element = two_references();
    element.write_page(5, page(1, [1, 1, 1, 1, 9, 9, 9, 9]));
    element.scan_now();
    assert_eq!(element.state_of(5), BlockState::AssociateOf(Some(1)));
}

#[test]
fn references_take_part_in_later_scans_and_associates_stay() {
    let mut element = two_references();
    for block in 10..14 {
        element.write_page(block, page(1, [1; 8]));
        // More like an associate, and more popular, than anything else.
        element.holds(block, page(1, [1; 8]));
    }
    let chosen = element.counters().scan_references;
    element.scan_now();
    for block in [0, 10, 11, 12, 13] {
        assert_eq!(element.state_of(block), BlockState::AssociateOf(Some(1)));
    }
    assert_eq!(element.state_of(2), BlockState::AssociateOf(Some(3)));
    assert_eq!(element.counters().scan_references, chosen);
}

/// Two blocks with one signature and nothing else in common. The first one to have its turn gets a data block, for
/// the other resembles it; the second one does not, for nothing is left that could join it.
#[test]
fn only_a_block_that_a_later_one_resembles_becomes_a_reference() {
    let mut element = element(Options {
        too_big: TooBig::Log,
        ..options()
    });
    element.write_page(0, page(1, [1; 8]));
    element.write_page(1, page(2, [1; 8]));
    element.write_page(2, page(3, [7; 8]));
    let before = element.counters().slot_writes;
    element.scan_now();
    assert_eq!(element.counters().slot_writes - before, 1);
    assert!(element.blocks.get(element.id(1)).data.is_some());
    assert_eq!(element.state_of(1), BlockState::Independent);
    assert_eq!(element.counters().scan_references, 0);
}

#[test]
fn an_associate_is_made_only_with_a_short_delta() {
    let mut element = element(options());
    element.write_page(0, page(1, [1; 8]));
    element.write_page(1, page(2, [1; 8]));
    element.scan_now();
    assert_eq!(element.state_of(0), BlockState::Independent);
    assert_eq!(element.state_of(1), BlockState::Independent);
}

#[test]
fn a_block_is_compressed_only_where_that_is_shorter_than_its_delta() {
    let mut element = element(Options {
        compression: Compression::IfShorter,
        ..options()
    });
    let compressible = |value| {
        let mut content = page(1, [value; 8]);
        content[600..4096].fill(3);
        content
    };
    element.write_page(0, compressible(1));
    assert_eq!(element.counters().alone, 1);
    element.write_page(1, compressible(1));
    element.scan_now();
    assert_eq!(element.state_of(0), BlockState::AssociateOf(Some(1)));
    let alone = element.counters().alone;
    element.write_page(0, compressible(2));
    assert_eq!(element.counters().alone, alone);
    assert_eq!(element.state_of(0), BlockState::AssociateOf(Some(1)));
    element.holds(0, compressible(2));
}

/// A reference that was written loses its last associate: it is none any more, and the next scan gives it a data
/// block with its content.
#[test]
fn a_reference_is_demoted_with_its_last_associate_and_no_earlier() {
    let mut element = element(options());
    for block in 0..3 {
        element.write_page(block, page(1, [1; 8]));
    }
    element.scan_now();
    element.flush().unwrap();
    assert_eq!(element.state_of(2), BlockState::Reference);
    element.write_page(2, page(1, [8; 8]));
    element.write_page(0, page(4, [4; 8]));
    // Its delta is gone from RAM, not from the log.
    element.forget(1);
    assert_eq!(element.state_of(2), BlockState::Reference);
    element.flush().unwrap();
    assert_eq!(
        (element.state_of(2), element.counters().demotions),
        (BlockState::Reference, 0)
    );
    element.trim(1).unwrap();
    element.work_off();
    assert_eq!(element.state_of(2), BlockState::Reference);
    element.flush().unwrap();
    assert_eq!(
        (element.state_of(2), element.counters().demotions),
        (BlockState::Independent, 1)
    );
    assert!(matches!(
        element.blocks.get(element.id(2)).content,
        Content::Held(..)
    ));
    element.scan_now();
    assert_eq!(element.blocks.get(element.id(2)).content, Content::Slot);
    element.holds(2, page(1, [8; 8]));
}
