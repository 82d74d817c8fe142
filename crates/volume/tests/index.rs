//! The fingerprint index of a volume: what it says of itself, also when it is opened anew, and that what it forgets is
//! stored apart and read as it was.

use std::sync::Arc;

use flashlore_flash::Lpn;
use flashlore_medium::MemoryMedium;
use flashlore_volume::{Identity, Policy, Volume, bytes_needed, create};

use crate::support::{POLICIES, Shape, contents, page};

const SHAPE: Shape = Shape {
    exported: 400,
    blocks: 60,
    pages_per_block: 8,
    units_per_page: 2,
    alignment: 512,
    index_entries: 400,
    journal_bytes: 64 << 10,
};

fn new(id: &Identity) -> (Arc<MemoryMedium>, Volume) {
    let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
    create(&*medium, id).unwrap();
    let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    (medium, volume)
}

/// Writes 180 pages, and the same once more elsewhere, each this far behind the one before; how many of those were shared.
fn shared(volume: &mut Volume, stride: u32) -> u64 {
    for lpn in 0..180 {
        volume.write(1, Lpn(lpn), &page(lpn + 1)).unwrap();
    }
    let before = volume.dedup_counters().unwrap().hits;
    for lpn in (0..180).map(|n| n * stride % 180) {
        volume.write(1, Lpn(200 + lpn), &page(lpn + 1)).unwrap();
    }
    volume.dedup_counters().unwrap().hits - before
}

#[test]
fn an_index_that_is_large_enough_finds_what_there_is_before_and_after_an_opening() {
    for policy in POLICIES
        .into_iter()
        .filter(|&policy| policy != Policy::Plain)
    {
        let (medium, mut volume) = new(&SHAPE.identity(policy));
        assert_eq!(shared(&mut volume, 77), 180, "{policy:?}");
        let state = volume.index_state().unwrap();
        assert_eq!((state.entries, state.misses), (180, 180), "{policy:?}");
        assert_eq!(state.doubtful_misses, 0, "{policy:?}");
        assert!(
            state.capacity > 400 && state.memory < 400 * 8 + 4096,
            "{state:?}"
        );
        volume.flush().unwrap();
        let (mut volume, _) = Volume::open(medium).unwrap();
        assert_eq!(volume.index_state().unwrap().entries, 180, "{policy:?}");
        let before = volume.dedup_counters().unwrap();
        volume.write(1, Lpn(399), &page(77)).unwrap();
        let after = volume.dedup_counters().unwrap();
        assert_eq!(after.hits, before.hits + 1, "{policy:?}");
        volume.check().unwrap();
    }
}

#[test]
fn one_that_is_too_small_says_what_that_may_have_cost_and_costs_nothing_else() {
    let id = Identity {
        index_entries: 20,
        ..SHAPE.identity(Policy::Dedup)
    };
    // What is written in the order in which it was stored is found behind the few that are known.
    assert_eq!(shared(&mut new(&id).1, 1), 180);
    let (_, mut volume) = new(&id);
    let shared = shared(&mut volume, 77);
    let state = volume.index_state().unwrap();
    assert!(
        shared < 180 && state.doubtful_misses >= 180 - shared,
        "{shared}, {state:?}"
    );
    assert!(
        state.entries <= state.capacity && state.capacity < 60,
        "{state:?}"
    );
    let expected = (0..400).map(|lpn| match lpn {
        0..180 => lpn + 1,
        200..380 => lpn - 199,
        _ => 0,
    });
    assert_eq!(contents(&mut volume), expected.collect::<Vec<u32>>());
    volume.check().unwrap();
}

#[test]
fn a_volume_that_does_not_deduplicate_has_none() {
    let (_, volume) = new(&SHAPE.identity(Policy::Plain));
    assert_eq!(volume.index_state(), None);
}
