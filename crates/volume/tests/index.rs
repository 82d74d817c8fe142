//! The fingerprint index of a volume: what it says of itself, also when it is opened anew, and that what it forgets is
//! stored apart and read as it was.

use std::ops::Range;
use std::sync::Arc;

use flashlore_flash::Lpn;
use flashlore_medium::{
    Failure, Faults, FaultyMedium, Medium, MemoryMedium, Overlay, When, WriteFault,
};
use flashlore_volume::format::Table;
use flashlore_volume::{
    HistoryIdentity, Identity, MemoryShares, Policy, Volume, bytes_needed, create,
    stored_index_bytes,
};

use crate::differential::COLLIDING;
use crate::rows::{resealed, row_at};
use crate::support::{POLICIES, Shape, contents, counted, page};

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

/// Room for a volume of [`SHAPE`] that keeps its index, and for the index.
struct Kept {
    medium: Arc<MemoryMedium>,
    index: Arc<dyn Medium>,
}

impl Kept {
    fn new(id: &Identity) -> Kept {
        let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
        create(&*medium, id).unwrap();
        let bytes = stored_index_bytes(id, &MemoryShares::default());
        Kept {
            medium,
            index: Arc::new(MemoryMedium::new(bytes as usize)),
        }
    }

    fn open(&self) -> Volume {
        let medium = Arc::clone(&self.medium);
        let index = Some(Arc::clone(&self.index));
        let opened = Volume::open_keeping_index(medium, MemoryShares::default(), index);
        opened.unwrap().0
    }

    /// What the medium of the index holds.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.index.len() as usize];
        self.index.read(0, &mut bytes).unwrap();
        bytes
    }
}

/// Looks at what an opening left, to the end.
fn at_rest(volume: &mut Volume) {
    while volume.look_at_rest(1 << 10) {}
}

/// Whether a page is found as a duplicate, when it is written to this address.
fn is_found(volume: &mut Volume, lpn: u32, value: u32) -> bool {
    let before = volume.dedup_counters().unwrap().hits;
    volume.write(1, Lpn(lpn), &page(value)).unwrap();
    volume.dedup_counters().unwrap().hits > before
}

/// The identity of a volume whose index has more pages than an opening reads.
fn large() -> Identity {
    let shape = Shape {
        exported: 400_000,
        blocks: 900,
        pages_per_block: 256,
        index_entries: 400_000,
        journal_bytes: 32 << 20,
        ..SHAPE
    };
    shape.identity(Policy::Dedup)
}

#[test]
fn after_a_clean_end_the_index_is_there_and_no_row_was_looked_at() {
    for policy in [Policy::Dedup, Policy::DedupTrusted] {
        let kept = Kept::new(&SHAPE.identity(policy));
        let mut volume = kept.open();
        shared(&mut volume, 77);
        volume.close().unwrap();
        let misses = |volume: &Volume| volume.table_state().misses;
        let (without, _) = Volume::open(Overlay::new(Arc::clone(&kept.medium))).unwrap();
        let mut with = kept.open();
        assert!(!with.chores().rest);
        assert!(misses(&with) < misses(&without), "{policy:?}");
        assert_eq!(with.index_state().unwrap().entries, 180, "{policy:?}");
        assert!(is_found(&mut with, 399, 77), "{policy:?}");
        // What is not found was never stored: nothing is doubtful.
        assert!(!is_found(&mut with, 398, 1_000));
        assert_eq!(with.index_state().unwrap().doubtful_misses, 0, "{policy:?}");
        with.check().unwrap();
    }
}

#[test]
fn a_large_index_is_read_step_by_step_and_kept_whole_by_whoever_closes_before_the_end() {
    let kept = Kept::new(&large());
    let mut volume = kept.open();
    at_rest(&mut volume);
    for value in 1..=1_000 {
        volume.write(1, Lpn(value), &page(value)).unwrap();
    }
    volume.close().unwrap();
    let volume = kept.open();
    let read = volume.index_state().unwrap().entries;
    assert!(volume.chores().rest && read < 1_000, "{read}");
    // What nobody has read yet is not written over.
    volume.close().unwrap();
    let mut volume = kept.open();
    assert!(!is_found(&mut volume, 2_000, 5_000));
    assert_eq!(volume.index_state().unwrap().doubtful_misses, 1);
    let misses = volume.table_state().misses;
    at_rest(&mut volume);
    assert_eq!(volume.table_state().misses, misses, "no row is looked at");
    assert_eq!(volume.index_state().unwrap().entries, 1_001);
    for value in (1..=1_000).chain([5_000]) {
        assert!(is_found(&mut volume, 300_000 + value, value), "{value}");
    }
    assert!(!is_found(&mut volume, 2_001, 5_001));
    assert_eq!(volume.index_state().unwrap().doubtful_misses, 1);
    volume.check().unwrap();
}

#[test]
fn what_has_not_changed_is_not_written_again() {
    let kept = Kept::new(&large());
    let mut volume = kept.open();
    at_rest(&mut volume);
    for value in 1..=1_000 {
        volume.write(1, Lpn(value), &page(value)).unwrap();
    }
    volume.close().unwrap();
    // The head can be written, and nothing else.
    let faults = Faults {
        writes: Some(WriteFault {
            when: When::From(2),
            failure: Failure::NoSpace,
        }),
        ..Faults::default()
    };
    let one_write = Kept {
        medium: Arc::clone(&kept.medium),
        index: Arc::new(FaultyMedium::new(Arc::clone(&kept.index), faults)),
    };
    let mut volume = one_write.open();
    at_rest(&mut volume);
    volume.close().unwrap();
    let mut volume = kept.open();
    let misses = volume.table_state().misses;
    at_rest(&mut volume);
    assert_eq!(volume.table_state().misses, misses, "no row is looked at");
    assert_eq!(volume.index_state().unwrap().entries, 1_000);
}

/// Rows that an opening has not come to are entered by the next ones, which go on where it was.
#[test]
fn whoever_closes_before_all_rows_are_entered_tells_where_to_go_on() {
    let kept = Kept::new(&large());
    let mut volume = kept.open();
    for value in 1..=300_000 {
        volume.write(1, Lpn(value), &page(value)).unwrap();
    }
    volume.flush().unwrap();
    // The process is killed: nothing of the index is kept.
    drop(volume);
    let before = kept.open();
    assert!(before.chores().rest);
    // A few leave sets that are full.
    let most = 299_000..=300_000;
    let entries = |volume: &Volume| volume.index_state().unwrap().entries;
    assert!(!most.contains(&entries(&before)));
    before.close().unwrap();
    let mut after = kept.open();
    at_rest(&mut after);
    assert!(most.contains(&entries(&after)));
    let misses = after.table_state().misses;
    after.close().unwrap();
    let mut whole = kept.open();
    at_rest(&mut whole);
    assert!(most.contains(&entries(&whole)));
    // The one before read the rows from there on, this one none.
    assert!(whole.table_state().misses < misses);
    whole.check().unwrap();
}

#[test]
fn after_a_crash_what_was_kept_is_read_and_what_was_stored_since_is_found_too() {
    let kept = Kept::new(&SHAPE.identity(Policy::Dedup));
    let mut volume = kept.open();
    for value in 1..=100 {
        volume.write(1, Lpn(value), &page(value)).unwrap();
    }
    volume.close().unwrap();
    let mut volume = kept.open();
    for value in 101..=200 {
        volume.write(1, Lpn(value), &page(value)).unwrap();
    }
    // Half of what was kept goes, and others get their handles.
    for value in 1..=50 {
        volume.write(1, Lpn(value), &page(1_000 + value)).unwrap();
    }
    volume.flush().unwrap();
    drop(volume);
    let mut volume = kept.open();
    at_rest(&mut volume);
    for value in (51..=200).chain(1_001..=1_050) {
        assert!(is_found(&mut volume, 300, value), "{value}");
    }
    for value in 1..=50 {
        assert!(!is_found(&mut volume, 300, value), "{value}");
    }
    volume.check().unwrap();
}

/// An older file put back, one of another volume, damaged pages, one too short, and a store that fails: everything stored
/// is found all the same.
#[test]
fn whatever_the_kept_index_holds_what_is_stored_is_found() {
    // An index of four pages.
    let shape = Shape {
        exported: 2_000,
        blocks: 200,
        index_entries: 2_000,
        ..SHAPE
    };
    let kept = Kept::new(&shape.identity(Policy::Dedup));
    let mut volume = kept.open();
    volume.write(1, Lpn(1), &page(1)).unwrap();
    volume.close().unwrap();
    let older = kept.bytes();
    let mut volume = kept.open();
    for value in 2..=200 {
        volume.write(1, Lpn(value), &page(value)).unwrap();
    }
    volume.close().unwrap();
    let newest = kept.bytes();
    let damaged = |at: usize| {
        let mut bytes = newest.clone();
        bytes[at] ^= 1;
        bytes
    };
    let mixed = [&older[..4096], &newest[4096..]].concat();
    let len = newest.len();
    let memory = |bytes: &[u8]| -> Arc<dyn Medium> {
        let medium = MemoryMedium::new(bytes.len());
        medium.write(0, bytes).unwrap();
        Arc::new(medium)
    };
    let faulty = |unreadable: Range<u64>, writes: Option<WriteFault>| -> Arc<dyn Medium> {
        let faults = Faults {
            unreadable: vec![unreadable],
            writes,
            ..Faults::default()
        };
        Arc::new(FaultyMedium::new(memory(&newest), faults))
    };
    assert!(len > 4096, "more than one page");
    let full = WriteFault {
        when: When::From(0),
        failure: Failure::NoSpace,
    };
    let all = len as u64;
    for (what, index) in [
        ("older", memory(&older)),
        ("mixed", memory(&mixed)),
        ("damaged head", memory(&damaged(17))),
        ("damaged state", memory(&damaged(4096 + 24))),
        ("damaged entry", memory(&damaged(len - 4000))),
        ("short", memory(&newest[..4096])),
        ("none", memory(&[])),
        ("noise", memory(&vec![0xA5; len])),
        ("unreadable head", faulty(0..4096, None)),
        ("unreadable", faulty(2 * 4096..3 * 4096, None)),
        ("all unreadable", faulty(0..all, None)),
        ("unwritable", faulty(0..0, Some(full))),
    ] {
        let medium = Arc::new(Overlay::new(Arc::clone(&kept.medium)));
        for round in 0..2 {
            let index = Some(Arc::clone(&index));
            let memory = MemoryShares::default();
            let opened = Volume::open_keeping_index(Arc::clone(&medium), memory, index);
            let mut volume = opened.unwrap().0;
            at_rest(&mut volume);
            // In no order in which one leads to another.
            for value in (0..200).map(|n| n * 77 % 200 + 1) {
                let is_found = is_found(&mut volume, 300, value);
                assert!(is_found, "{what}, round {round}: {value}");
            }
            volume.check().unwrap();
            volume.close().unwrap();
        }
    }
}

#[test]
fn nothing_of_what_was_purged_stays_in_the_kept_index() {
    let kept = Kept::new(&Identity {
        history: Some(HistoryIdentity {
            entries: 400,
            least_window: 0,
            protected: false,
        }),
        ..SHAPE.identity(Policy::Dedup)
    });
    let mut volume = kept.open();
    for value in 1..=100 {
        volume.write(1, Lpn(value), &page(value)).unwrap();
    }
    volume.close().unwrap();
    assert!(kept.bytes().iter().any(|&byte| byte != 0));
    let mut volume = kept.open();
    volume.trim(2, Lpn(1)).unwrap();
    volume.purge_and_erase(3, Lpn(0)..Lpn(400)).unwrap();
    assert!(kept.bytes().iter().all(|&byte| byte == 0));
    drop(volume);
    let mut volume = kept.open();
    at_rest(&mut volume);
    assert!(is_found(&mut volume, 300, 2));
    volume.check().unwrap();
}

/// What pads a flash page at a flush is zeros, and nothing of what lay in the page buffer before.
#[test]
fn nothing_of_one_flash_page_is_left_in_the_next() {
    let kept = Kept::new(&SHAPE.identity(Policy::Dedup));
    let mut volume = kept.open();
    for value in 1..=3 {
        volume.write(1, Lpn(value), &page(value)).unwrap();
    }
    volume.flush().unwrap();
    let mut medium = vec![0; kept.medium.len() as usize];
    kept.medium.read(0, &mut medium).unwrap();
    for value in 1..=3 {
        let sectors = medium.chunks(512);
        let copies = sectors.filter(|sector| **sector == page(value)[..512]);
        assert_eq!(copies.count(), 1, "page {value}");
    }
}

/// Of digests the fingerprint is 32 bits; objects have 64.
#[test]
fn a_page_with_the_fingerprint_of_another_is_told_from_it_without_a_read() {
    let id = SHAPE.identity(Policy::Dedup);
    let (medium, mut volume) = counted(&id);
    for (lpn, (value, _)) in (0..).zip(COLLIDING) {
        volume.write(1, Lpn(lpn), &page(value)).unwrap();
    }
    // They wait in no page buffer any more.
    for lpn in 10..30 {
        volume.write(1, Lpn(lpn), &page(lpn)).unwrap();
    }
    volume.flush().unwrap();
    let before = medium.reads();
    for (lpn, (_, value)) in (30..).zip(COLLIDING) {
        volume.write(1, Lpn(lpn), &page(value)).unwrap();
    }
    assert_eq!(medium.reads(), before);
    // Each is found behind the other.
    let both = COLLIDING.into_iter().flat_map(|(one, other)| [one, other]);
    for (lpn, value) in (50..).zip(both) {
        volume.write(1, Lpn(lpn), &page(value)).unwrap();
    }
    assert_eq!(volume.dedup_counters().unwrap().hits, 12);
}

/// Up to version 4 objects had 32 bits of their digests, and an upgrade knows no more of them.
#[test]
fn pages_of_which_32_bits_of_the_digest_are_known_are_compared_before_they_are_shared() {
    let id = SHAPE.identity(Policy::Dedup);
    let (medium, mut volume) = new(&id);
    for (lpn, (value, _)) in (0..).zip(COLLIDING) {
        volume.write(1, Lpn(lpn), &page(value)).unwrap();
    }
    volume.close().unwrap();
    let row_bytes = usize::from(Table::Objects.row_bytes(&id));
    let bytes = Arc::into_inner(medium).unwrap().into_bytes();
    let places = (0..6).map(|row| row_at(&bytes, &id, Table::Objects, row).unwrap() + row_bytes);
    let places: Vec<_> = places.collect();
    let bytes = resealed(&id, bytes, |bytes| {
        places
            .into_iter()
            .for_each(|end| bytes[end - 4..end].fill(0));
    });
    let (mut volume, _) = Volume::open(MemoryMedium::from_bytes(bytes)).unwrap();
    at_rest(&mut volume);
    for (lpn, (_, value)) in (30..).zip(COLLIDING) {
        volume.write(1, Lpn(lpn), &page(value)).unwrap();
    }
    let counted = volume.dedup_counters().unwrap();
    assert_eq!((counted.hits, counted.collisions), (0, 6));
    for (lpn, (value, _)) in (40..).zip(COLLIDING) {
        volume.write(1, Lpn(lpn), &page(value)).unwrap();
    }
    let found = contents(&mut volume);
    for (at, (one, other)) in COLLIDING.into_iter().enumerate() {
        assert_eq!(
            [found[at], found[30 + at], found[40 + at]],
            [one, other, one]
        );
    }
    volume.check().unwrap();
}
