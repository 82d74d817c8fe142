//! References leave the fast medium, are read where they are frozen, and come back.

use flashlore_medium::Medium;

use super::{BLOCKS, BlockState, Media, element, media, open, options, page};
use crate::element::{Element, Statistics};
use crate::icash::blocks::Content;
use crate::icash::format::Areas;
use crate::icash::place::{BlockEntry, BlockPlace, DataBlock};
use crate::icash::state::ICash;

/// So many families of a reference, `2 * family + 1`, and its associate before it, the oldest first. All is durable.
fn families(count: u32, frozen_blocks: u32) -> (ICash, Media) {
    let media = media(&options(), frozen_blocks);
    let mut element = open(&media, options());
    for family in 0..count {
        for block in [2 * family, 2 * family + 1] {
            element.write_page(block, content(block));
        }
    }
    element.scan_now();
    for family in 0..count {
        element.holds(2 * family, content(2 * family));
        assert_eq!(
            element.state_of(2 * family),
            BlockState::AssociateOf(Some(2 * family + 1))
        );
    }
    element.flush().unwrap();
    (element, media)
}

fn content(block: u32) -> flashlore_delta::Page {
    let family = block / 2;
    let mut content = page(family, [family as u8 * 20; 8]);
    content[77] = block as u8;
    content
}

/// What is known of an associate: its durable place, and the delta in RAM.
fn known(element: &ICash, block: u32) -> (BlockEntry, Content) {
    let id = element.id(block);
    (element.entry_of(block), element.blocks.get(id).content)
}

impl ICash {
    fn data_of(&self, block: u32) -> DataBlock {
        self.blocks.get(self.id(block)).data.expect("a data block")
    }

    fn is_on_ssd(&self, block: u32) -> bool {
        self.pool.is_resident(self.data_of(block))
    }

    /// Replaces data blocks until so many left the fast medium because they are frozen.
    fn evict(&mut self, count: u64) {
        let wanted = self.counters.frozen_replaced + count;
        while self.counters.frozen_replaced < wanted {
            assert!(self.replace_data_block().unwrap());
            self.check().unwrap();
        }
        self.verify().unwrap();
    }

    /// The writes and syncs of both media during something.
    fn costs(&mut self, what: impl FnOnce(&mut ICash)) -> [u64; 4] {
        let of = |s: Statistics| [s.slow.writes, s.slow.syncs, s.fast.writes, s.slow.reads];
        let before = of(self.statistics());
        what(self);
        let after = of(self.statistics());
        std::array::from_fn(|n| after[n] - before[n])
    }
}

#[test]
fn an_evicted_reference_is_written_once_and_its_associate_stays_as_it_is() {
    let (mut element, _) = families(3, 10);
    let before = known(&element, 0);
    let mut evicted = [0; 4];
    for _ in 0..2 {
        let costs = element.costs(|element| {
            assert!(element.replace_data_block().unwrap());
        });
        (0..4).for_each(|n| evicted[n] += costs[n]);
        element.check().unwrap();
    }
    // All three, which are neighbours, in one write, and one group; each with a sync. One leaves its slot.
    assert_eq!(evicted, [2, 2, 0, 0]);
    assert_eq!(element.counters().references_frozen, 3);
    assert_eq!(element.counters().frozen_replaced, 1);
    assert_eq!((element.is_on_ssd(1), element.is_on_ssd(3)), (false, true));
    assert_eq!(element.status().free_slots, 58);
    assert_eq!(element.status().free_frozen, 7);
    assert_eq!(element.states().frozen, 1);
    assert_eq!(known(&element, 0), before);
    assert_eq!(element.state_of(0), BlockState::AssociateOf(Some(1)));
    assert_eq!(element.state_of(1), BlockState::Reference);
    assert_eq!(element.counters().written_home, 0);
    assert_eq!(element.counters().references_released, 0);
    element.verify().unwrap();
}

#[test]
fn a_read_of_an_associate_brings_its_reference_back_and_the_next_eviction_writes_nothing() {
    let (mut element, _) = families(3, 10);
    element.evict(1);
    let before = *element.counters();
    let costs = element.costs(|element| element.holds(0, content(0)));
    // One read of the disk, one write to the SSD.
    assert_eq!(costs, [0, 0, 1, 1]);
    assert!(element.is_on_ssd(1));
    let done = element.counters().since(&before);
    assert_eq!((done.frozen_reads, done.brought_back), (1, 1));
    let costs = element.costs(|element| element.holds(0, content(0)));
    assert_eq!(costs, [0; 4]);
    for block in [3, 5] {
        element.holds(block, content(block));
    }
    let costs = element.costs(|element| element.evict(1));
    // The check reads the disk.
    assert_eq!(costs[..3], [0; 3]);
    assert!(!element.is_on_ssd(1));
    assert_eq!(element.counters().references_frozen, 3);
}

/// The reference itself too, and one that was written since.
#[test]
fn a_frozen_reference_is_read_and_written_as_before() {
    let (mut element, _) = families(2, 10);
    element.evict(2);
    element.holds(1, content(1));
    assert!(element.is_on_ssd(1));
    let mut changed = content(3);
    changed[99] ^= 1;
    element.write_page(3, changed);
    assert_eq!(element.counters().own_deltas, 1);
    assert!(element.is_on_ssd(3));
    assert_eq!(element.state_of(3), BlockState::Reference);
    element.flush().unwrap();
    element.evict(2);
    element.holds(2, content(2));
    element.holds(3, changed);
}

#[test]
fn a_write_of_an_associate_brings_its_reference_back() {
    let (mut element, _) = families(2, 10);
    element.evict(2);
    let mut changed = content(0);
    changed[99] ^= 1;
    element.write_page(0, changed);
    assert_eq!(element.state_of(0), BlockState::AssociateOf(Some(1)));
    assert!(element.is_on_ssd(1) && !element.is_on_ssd(3));
    element.holds(0, changed);
}

/// A delta that is in the log alone is found, and so is what it is based on.
#[test]
fn an_associate_that_only_the_log_has_finds_its_frozen_reference() {
    let (mut element, _) = families(2, 10);
    element.evict(2);
    element.forget(0);
    assert_eq!(element.state_of(1), BlockState::Reference);
    element.holds(0, content(0));
    assert_eq!(element.state_of(0), BlockState::AssociateOf(Some(1)));
    assert!(element.is_on_ssd(1));
}

#[test]
fn references_that_are_old_are_frozen_together() {
    let (mut element, _) = families(8, 20);
    let costs = element.costs(|element| element.evict(8));
    assert_eq!(costs[..3], [2, 2, 0]);
    assert_eq!(element.counters().references_frozen, 8);
}

/// One frozen place for two references: the associates of the other go home, as they do where there is none.
#[test]
fn without_a_free_place_the_associates_go_home() {
    let (mut element, _) = families(2, 1);
    element.evict(1);
    assert_eq!(element.status().free_frozen, 0);
    while element.counters().references_released == 0 {
        assert!(element.replace_data_block().unwrap());
        element.check().unwrap();
    }
    assert_eq!(element.counters().references_frozen, 1);
    assert_eq!(element.entry_of(2).place, BlockPlace::Home);
    assert_eq!(element.state_of(0), BlockState::AssociateOf(Some(1)));
    element.verify().unwrap();
    for block in 0..4 {
        element.holds(block, content(block));
    }
}

/// The slot that a frozen data block left holds another one, and both are found after a crash. What was brought back
/// elsewhere is frozen again then.
#[test]
fn a_slot_that_was_left_is_used_again_and_a_crash_confuses_nothing() {
    let (mut element, media) = families(2, 10);
    let (name, slot) = (element.data_of(1), element.data_of(1).first_slot(60));
    element.evict(2);
    let mut written = 20;
    while element.pool.users(name).slot().is_none() {
        element.write_page(written, page(30 + written, [written as u8; 8]));
        if element.data_of(written).first_slot(60) == slot {
            assert_ne!(element.data_of(written), name);
            element.holds(0, content(0));
        }
        written += 1;
    }
    element.flush().unwrap();
    drop(element);
    for _ in 0..2 {
        let mut element = open(&media, options());
        element.check().unwrap();
        element.verify().unwrap();
        assert!(!element.is_on_ssd(1));
        assert_eq!(element.states().frozen, 2);
        for block in 0..4 {
            element.holds(block, content(block));
        }
        for block in 20..written {
            element.holds(block, page(30 + block, [block as u8; 8]));
        }
    }
}

/// With the last dependent its data block is no base any more; that of a reference without an address ends, and its
/// place is free. The name is not given to another one as long as the place is said to hold it.
#[test]
fn a_frozen_place_is_free_when_nobody_needs_it() {
    let (mut element, media) = families(1, 1);
    let name = element.data_of(1);
    element.evict(1);
    element.trim(1).unwrap();
    element.work_off();
    assert_eq!(element.state_of(0), BlockState::AssociateOf(None));
    element.holds(0, content(0));
    element.flush().unwrap();
    assert_eq!(element.status().free_frozen, 0);
    element.trim(0).unwrap();
    element.work_off();
    element.flush().unwrap();
    element.check().unwrap();
    assert_eq!((element.status().free_frozen, element.pool.free()), (1, 60));
    drop(element);
    let mut element = open(&media, options());
    for block in 10..80 {
        element.write_page(block, page(block, [block as u8; 8]));
        let found = element.find(block);
        let data = found.and_then(|id| element.blocks.get(id).data);
        assert_ne!(data, Some(name));
    }
    element.verify().unwrap();
}

/// A reference that was one is no base: when its virtual block is replaced its content goes home and the place is free.
#[test]
fn a_former_reference_that_is_frozen_goes_home_with_its_virtual_block() {
    let (mut element, _) = families(1, 1);
    element.evict(1);
    element.trim(0).unwrap();
    element.work_off();
    element.flush().unwrap();
    assert_eq!(element.state_of(1), BlockState::Independent);
    assert!(!element.is_on_ssd(1));
    for _ in 0..2 {
        element.replace_virtual_block().unwrap();
        element.check().unwrap();
    }
    assert_eq!(element.state_of(1), BlockState::Absent);
    assert_eq!(element.entry_of(1).place, BlockPlace::Home);
    assert_eq!(element.status().free_frozen, 1);
    element.holds(1, content(1));
}

/// For the mere chance of a short delta the disk is not read.
#[test]
fn frozen_references_are_left_alone_by_scans_and_counterparts() {
    let (mut element, _) = families(1, 1);
    element.evict(1);
    let costs = element.costs(|element| {
        element.write_page(40, content(0));
        element.write_page(BLOCKS + 1, content(0));
        element.scan().unwrap();
    });
    assert_eq!(costs[3], 0);
    assert_eq!(
        element.state_of(40),
        BlockState::AssociateOf(Some(BLOCKS + 1))
    );
    element.holds(0, content(0));
    element.write_page(2 * BLOCKS + 1, content(0));
    assert_eq!(
        element.state_of(2 * BLOCKS + 1),
        BlockState::AssociateOf(Some(1))
    );
}

/// What came back is read where it is frozen if its slot holds something else or cannot be read.
#[test]
fn a_copy_that_came_back_is_not_trusted_where_it_rots() {
    let (mut element, media) = families(1, 1);
    element.evict(1);
    element.holds(0, content(0));
    let slot = element.pool.users(element.data_of(1)).slot().unwrap();
    media.0.write(Areas::slot(slot), &[9; 4096]).unwrap();
    let before = *element.counters();
    element.holds(0, content(0));
    element.holds(1, content(1));
    assert_eq!(element.counters().since(&before).frozen_reads, 2);
}

#[test]
fn a_frozen_place_that_rots_is_an_error_for_those_who_need_it() {
    let (mut element, media) = families(2, 4);
    element.evict(2);
    let place = element.pool.users(element.data_of(1)).frozen().unwrap();
    let offset = element.areas.frozen_place(place);
    let mut rotten = [0; 4096];
    media.1.read(offset, &mut rotten).unwrap();
    rotten[99] ^= 1;
    media.1.write(offset, &rotten).unwrap();
    for block in 0..4u32 {
        let found = element.read(block.into(), &mut [0; 4096]);
        assert_eq!(found.is_err(), block < 2, "block {block}");
    }
    let error = element.verify().unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    // Nothing new is based on it.
    element.write_page(0, content(0));
    assert_eq!(element.state_of(0), BlockState::Independent);
    element.holds(0, content(0));
}

/// The old way, which arrays without frozen places keep.
#[test]
fn without_frozen_places_nothing_is_frozen() {
    let mut element = element(options());
    for block in 0..2 {
        element.write_page(block, content(block));
    }
    element.scan_now();
    element.flush().unwrap();
    while element.counters().references_released == 0 {
        assert!(element.replace_data_block().unwrap());
    }
    assert_eq!(element.counters().references_frozen, 0);
    assert_eq!(element.entry_of(0).place, BlockPlace::Home);
}
