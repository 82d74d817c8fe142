//! Cases by hand.

use flashlore_array::element::OperationKind::{Read, Sync, Write};
use flashlore_array::index::ArrayBlock;
use flashlore_array::rivals::CacheOptions;
use flashlore_array::{ArrayError, Element, Rival};

use crate::common::{SORTS, Sort, medium, one_machine, rival, with_map_cache};
use crate::heard::{Ear, Phase, Step};
use crate::support::page;

fn listened(sort: Sort, blocks: u32, options: &CacheOptions) -> (Rival, Ear) {
    let mut rival = rival(sort, &one_machine(blocks), options);
    let ear = Ear::default();
    rival.observe(Box::new(ear.clone()));
    (rival, ear)
}

fn read(rival: &mut Rival, block: u64, expected: u32) {
    let mut found = [1; 4096];
    rival.read(block, &mut found).unwrap();
    assert!(found == page(expected));
}

#[test]
fn a_silent_write_costs_the_dedup_cache_nothing_and_all_others_a_write() {
    for (sort, fast, slow) in [
        (Sort::PureSsd, 2, 0),
        (Sort::Raid0, 0, 2),
        (Sort::Lru, 2, 0),
        (Sort::Dedup, 1, 0),
    ] {
        let (mut rival, _) = listened(sort, 4, &with_map_cache(2, 1));
        rival.write(3, &page(7)).unwrap();
        rival.write(3, &page(7)).unwrap();
        let statistics = rival.statistics();
        let writes = (statistics.fast.writes, statistics.slow.writes);
        assert_eq!(writes, (fast, slow), "{sort:?}");
        assert_eq!(
            rival.counters().silent_writes,
            u64::from(sort == Sort::Dedup)
        );
        read(&mut rival, 3, 7);
    }
}

#[test]
fn a_silent_write_of_a_clean_block_leaves_it_clean() {
    let (mut rival, ear) = listened(Sort::Dedup, 4, &with_map_cache(2, 64));
    rival.write(0, &page(1)).unwrap();
    rival.write(1, &page(2)).unwrap();
    // This writes blocks 0 and 1 home; block 1 stays.
    rival.write(2, &page(3)).unwrap();
    rival.write(1, &page(2)).unwrap();
    rival.write(2, &page(4)).unwrap();
    ear.step();
    // This replaces block 1, the oldest.
    rival.write(3, &page(5)).unwrap();
    assert_eq!(ear.step().foreground.slow, []);
}

#[test]
fn a_cache_of_one_block_replaces_it_each_time() {
    for sort in [Sort::Lru, Sort::Dedup] {
        let (mut rival, ear) = listened(sort, 4, &with_map_cache(1, 64));
        let hashes = u64::from(sort == Sort::Dedup);
        let write_to_cache = Phase {
            fast_writes: 1,
            hashes,
            ..Phase::default()
        };
        rival.write(0, &page(1)).unwrap();
        assert_eq!(ear.step().foreground, write_to_cache);
        rival.write(0, &page(2)).unwrap();
        assert_eq!(ear.step().foreground, write_to_cache, "{sort:?}: in place");
        rival.write(1, &page(3)).unwrap();
        let replaced = |block| Phase {
            fast_reads: 1,
            slow: vec![(Write, block, 1)],
            ..write_to_cache.clone()
        };
        assert_eq!(ear.step().foreground, replaced(0));
        read(&mut rival, 0, 2);
        let expected = Step {
            foreground: Phase {
                slow: vec![(Read, 0, 1)],
                ..Phase::default()
            },
            background: replaced(1),
        };
        assert_eq!(ear.step(), expected);
        read(&mut rival, 0, 2);
        assert_eq!(ear.step().foreground.fast_reads, 1);
        rival.check().unwrap();
    }
}

#[test]
fn equal_blocks_take_one_slot_and_go_home_with_one_read() {
    let (mut rival, ear) = listened(Sort::Dedup, 400, &with_map_cache(1, 64));
    for block in 0..300 {
        rival.write(block, &page(9)).unwrap();
    }
    let statistics = rival.statistics();
    assert_eq!((statistics.fast.writes, statistics.slow.writes), (1, 0));
    assert_eq!(rival.counters().most_blocks, 300);
    for block in 0..300 {
        read(&mut rival, block, 9);
    }
    assert_eq!(rival.statistics().slow.reads, 0);
    ear.step();
    rival.write(350, &page(10)).unwrap();
    let expected = Phase {
        fast_reads: 1,
        fast_writes: 1,
        // No operation is longer than 1 MiB.
        slow: vec![(Write, 0, 256), (Write, 256, 44)],
        hashes: 1,
        ..Phase::default()
    };
    assert_eq!(ear.step().foreground, expected);
    assert_eq!(rival.counters().replaced_blocks, 300);
    read(&mut rival, 299, 9);
    read(&mut rival, 350, 10);
    rival.check().unwrap();
}

#[test]
fn a_block_that_leaves_a_shared_slot_leaves_the_others_their_content() {
    let (mut rival, _) = listened(Sort::Dedup, 4, &with_map_cache(3, 64));
    for block in 0..3 {
        rival.write(block, &page(1)).unwrap();
    }
    rival.write(1, &page(2)).unwrap();
    rival.trim(2).unwrap();
    rival.check().unwrap();
    for (block, value) in [(0, 1), (1, 2), (2, 0)] {
        read(&mut rival, block, value);
    }
    assert_eq!(rival.statistics().fast.writes, 2);
}

#[test]
fn what_is_read_and_cached_already_is_not_written_again() {
    let (mut rival, ear) = listened(Sort::Dedup, 4, &with_map_cache(1, 64));
    rival.write(0, &page(1)).unwrap();
    rival.write(1, &page(2)).unwrap();
    rival.write(2, &page(1)).unwrap();
    ear.step();
    // Block 0 is at home alone, and block 2 holds the same.
    read(&mut rival, 0, 1);
    let background = Phase {
        hashes: 1,
        ..Phase::default()
    };
    assert_eq!(ear.step().background, background);
    assert_eq!(rival.counters().shared_fills, 1);
    read(&mut rival, 0, 1);
    assert_eq!(ear.step().foreground.fast_reads, 1);
}

#[test]
fn dirty_blocks_go_home_in_the_order_of_addresses_and_neighbours_at_once() {
    let (mut rival, ear) = listened(Sort::Lru, 20, &with_map_cache(5, 4));
    for block in [9, 3, 7, 4, 8] {
        rival.write(block, &page(block as u32)).unwrap();
    }
    ear.step();
    rival.write(0, &page(1)).unwrap();
    // Block 8 was written last and is not among the oldest four.
    let home = ear.step().foreground;
    assert_eq!(home.slow, [(Write, 3, 2), (Write, 7, 1), (Write, 9, 1)]);
    assert_eq!(home.fast_reads, 4);
    // Those four are clean: the next three writes replace them at no cost.
    for block in [10, 11, 12] {
        rival.write(block, &page(1)).unwrap();
        assert_eq!(ear.step().foreground.slow, []);
    }
}

#[test]
fn cleaning_ahead_writes_home_after_the_answer() {
    let (mut rival, ear) = listened(Sort::Lru, 20, &CacheOptions::new(2));
    rival.write(0, &page(1)).unwrap();
    assert_eq!(ear.step().background, Phase::default(), "there is room");
    rival.write(1, &page(2)).unwrap();
    assert_eq!(ear.step().background.slow, [(Write, 0, 2)]);
    rival.write(5, &page(3)).unwrap();
    let step = ear.step();
    assert_eq!(
        (step.foreground.slow, step.foreground.fast_reads),
        (vec![], 0)
    );
    assert_eq!(step.background, Phase::default(), "block 1 is clean");
}

#[test]
fn a_flush_syncs_what_was_written_and_leaves_dirty_blocks_where_they_are() {
    let sync = Phase {
        fast_syncs: 1,
        ..Phase::default()
    };
    for sort in SORTS {
        let (mut rival, ear) = listened(sort, 4, &with_map_cache(2, 1));
        rival.write(0, &page(1)).unwrap();
        ear.step();
        rival.flush().unwrap();
        let flushed = ear.step().foreground;
        match sort {
            Sort::Raid0 => assert_eq!(flushed.slow, [(Sync, 0, 0)]),
            _ => assert_eq!(flushed, sync),
        }
        rival.flush().unwrap();
        assert_eq!(ear.step(), Step::default(), "nothing was written since");
    }
}

#[test]
fn blocks_that_hold_nothing_are_zeros_and_ask_no_medium() {
    for sort in SORTS {
        let (mut rival, _) = listened(sort, 4, &with_map_cache(1, 1));
        rival.write(1, &page(1)).unwrap();
        rival.write(1, &page(2)).unwrap();
        rival.trim(1).unwrap();
        let before = rival.statistics();
        read(&mut rival, 0, 0);
        read(&mut rival, 1, 0);
        let after = rival.statistics();
        assert_eq!((before.fast, before.slow), (after.fast, after.slow));
        rival.check().unwrap();
    }
}

#[test]
fn sizes_that_cannot_work_are_refused() {
    let why = |made: Result<Rival, ArrayError>| made.err().expect("it is refused").to_string();
    let machines = one_machine(10);
    let cache = |fast, slow, options| {
        why(Rival::lru_cache(
            medium(fast),
            medium(slow),
            &machines,
            &options,
        ))
    };
    assert_eq!(
        why(Rival::pure_ssd(medium(9), &machines)),
        "the fast medium has 36864 bytes, 10 blocks need 40960"
    );
    assert_eq!(
        why(Rival::raid0(medium(9), &machines)),
        "the slow medium has 36864 bytes, 10 blocks need 40960"
    );
    assert_eq!(
        cache(2, 9, with_map_cache(2, 1)),
        "the slow medium has 36864 bytes, 10 blocks need 40960"
    );
    assert_eq!(
        cache(2, 10, with_map_cache(3, 1)),
        "the fast medium has 8192 bytes, 3 blocks need 12288"
    );
    assert_eq!(
        cache(2, 10, with_map_cache(0, 1)),
        "a cache cannot have 0 slots, expected 1 to 4294967294"
    );
    assert_eq!(
        cache(2, 10, with_map_cache(2, 0)),
        "0 blocks cannot be written home at once, expected 1 or more"
    );
    assert_eq!(
        why(Rival::raid0(medium(9), &[])),
        "an array cannot have 0 virtual machines, expected 1 to 256"
    );
}

#[test]
fn what_is_laid_in_is_read_from_home_and_no_cache_knows_it() {
    for sort in SORTS {
        let (mut rival, _) = listened(sort, 6, &with_map_cache(3, 1));
        let mut pages = (0..4).map(|block| (block, page(block as u32 + 1)));
        rival.lay_in(&mut pages).unwrap();
        rival.check().unwrap();
        let before = rival.statistics();
        assert_eq!((before.reads, before.writes), (0, 0));
        for block in 0..4 {
            read(&mut rival, block, block as u32 + 1);
        }
        let after = rival.statistics();
        let home = match sort {
            Sort::PureSsd => after.fast.reads - before.fast.reads,
            Sort::Raid0 | Sort::Lru | Sort::Dedup => after.slow.reads - before.slow.reads,
        };
        assert_eq!(home, 4, "{sort:?}");
        let again = rival.lay_in(&mut [(3, page(3))].into_iter());
        assert!(matches!(
            again,
            Err(ArrayError::Occupied {
                block: ArrayBlock(3)
            })
        ));
    }
}
