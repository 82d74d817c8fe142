//! Data blocks in RAM, and when the fast medium is written.

use super::{BlockState, element, options, page};
use crate::element::Element;
use crate::icash::parameters::Fill;
use crate::icash::state::ICash;
use crate::icash::{Options, lba};
use crate::index::ArrayBlock;

/// An element with so many data blocks in RAM that never copies to the fast medium what it reads; contents lie at
/// home.
fn with_ram(ram_blocks: u32, contents: &[flashlore_delta::Page]) -> ICash {
    let mut element = element(Options {
        ram_blocks,
        fill: Fill::Never,
        ..options()
    });
    let laid = contents
        .iter()
        .zip(0..)
        .map(|(page, at)| (lba(0, at), *page));
    element.lay_in(&mut laid.into_iter()).unwrap();
    element
}

#[test]
fn what_was_read_is_read_again_without_a_medium() {
    let content = page(1, [1; 8]);
    let mut element = with_ram(2, &[content; 3]);
    element.holds(0, content);
    let before = element.statistics();
    element.holds(0, content);
    assert_eq!(element.statistics().slow.reads, before.slow.reads);
    assert_eq!(element.statistics().fast, before.fast);
    assert_eq!(element.counters().ram_hits, 1);
    // Two others take its place.
    element.holds(1, content);
    element.holds(2, content);
    element.holds(0, content);
    assert_eq!(element.counters().ram_hits, 1);
    assert_eq!(element.counters().fills, 0);
}

#[test]
fn new_content_takes_the_place_of_the_old_and_a_trim_forgets_it() {
    let mut element = with_ram(4, &[page(1, [1; 8])]);
    element.holds(0, page(1, [1; 8]));
    element.write_page(0, page(2, [2; 8]));
    element.holds(0, page(2, [2; 8]));
    assert_eq!(element.counters().ram_hits, 1);
    element.trim(lba(0, 0)).unwrap();
    element.work_off();
    element.check().unwrap();
    element.holds(0, [0; 4096]);
}

/// Content that only the disk has takes part in a scan where RAM has it too.
#[test]
fn a_scan_finds_references_and_associates_among_what_was_read() {
    let contents: Vec<_> = (0..4)
        .map(|last| page(1, [1, 1, 1, 1, 1, 1, 1, last]))
        .collect();
    for (ram_blocks, associates) in [(0, 0), (8, 3)] {
        let mut element = with_ram(ram_blocks, &contents);
        for (block, &content) in contents.iter().enumerate() {
            element.holds(block as u32, content);
        }
        assert_eq!(element.counters().slot_writes, 0);
        element.scan_now();
        assert_eq!(element.states().associates, associates);
        // One block is written: what the others are based on.
        assert_eq!(element.counters().slot_writes, u64::from(associates > 0));
        for (block, &content) in contents.iter().enumerate() {
            element.holds(block as u32, content);
        }
        element.flush().unwrap();
        element.verify().unwrap();
    }
}

#[test]
fn a_block_that_is_forgotten_leaves_ram() {
    let mut element = with_ram(4, &[page(1, [1; 8])]);
    element.holds(0, page(1, [1; 8]));
    let id = element.id(0);
    element.drop_virtual(id);
    element.check().unwrap();
    assert_eq!(element.state_of(0), BlockState::Absent);
    assert!(element.ram.get(ArrayBlock(0)).is_none());
}
