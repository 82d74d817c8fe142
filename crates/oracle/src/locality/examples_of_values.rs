//! Traces small enough to compute by hand: values (definitions 6 to 8, 10 and 11).

use std::collections::{BTreeMap, BTreeSet};

use super::samples::{blind_read, blind_write, flush, on, read, trim, write};
use super::*;

fn share(part: u64, whole: u64) -> Share {
    Share { part, whole }
}

/// Writes of these values to pages of their own.
fn writes(values: &[u32]) -> Vec<Access> {
    vec![write(0, values)]
}

#[test]
fn unique_shares_count_accesses_with_a_value() {
    let trace = [
        write(0, &[1, 2, 1]),
        blind_write(0, 5),
        on(1, write(0, &[2])),
        read(0, &[9, 9]),
        blind_read(0, 1),
        trim(0, 1),
        flush(),
    ];
    // Written: 1 2 1 2. Read: 9 9.
    assert_eq!(unique_share(&trace, AccessOp::Write), share(2, 4));
    assert_eq!(unique_share(&trace, AccessOp::Read), share(1, 2));
}

#[test]
fn popularity_is_in_descending_order() {
    let trace = [
        write(0, &[5, 6, 6, 7, 6]),
        blind_write(3, 1),
        on(1, write(0, &[7])),
        read(0, &[5]),
    ];
    // 6 three times, 7 twice, 5 once.
    let counts = popularity(&trace, AccessOp::Write);
    assert_eq!(counts, [3, 2, 1]);
    assert_eq!(popularity(&trace, AccessOp::Read), [1]);
    // 3 of 6 accesses are half: one value of three.
    assert_eq!(x50(&counts), share(1, 3));
    // 2 of 5 are less than half, 4 are more.
    assert_eq!(x50(&[2, 2, 1]), share(2, 3));
    assert_eq!(x50(&[]), share(0, 0));
    // A third of 3 values is 1, a half 1.5, rounded up to 2.
    assert_eq!(accesses_of_top(&counts, share(1, 3)), share(3, 6));
    assert_eq!(accesses_of_top(&counts, share(1, 2)), share(5, 6));
    assert_eq!(accesses_of_top(&counts, share(1, 1)), share(6, 6));
    assert_eq!(accesses_of_top(&counts, share(0, 1)), share(0, 6));
}

#[test]
fn counts_up_to_3_have_classes_of_their_own() {
    // 1 1 | 2 | 3 | 4 7 | 8 15 | 16.
    let histogram = count_histogram(&[16, 15, 8, 7, 4, 3, 2, 1, 1]);
    let expected = [(1, 2), (2, 1), (3, 1), (4, 2), (8, 2), (16, 1)];
    assert_eq!(histogram, BTreeMap::from(expected));
}

#[test]
fn value_distances_include_the_value_itself() {
    let trace = [
        write(0, &[1, 1]),     // first, then 1
        write(5, &[2]),        // first
        blind_write(5, 3),     // no value, no access
        read(0, &[3, 1, 3]),   // of the reads: first, first, {1, 3} = 2
        trim(0, 1),            // no access
        on(1, write(0, &[3])), // first of the writes
        write(0, &[2, 1]),     // {3, 2} = 2; {2, 3, 1} = 3 since 1 was written
    ];
    let written = value_distances(&trace, AccessOp::Write);
    assert_eq!(written, [None, Some(1), None, None, Some(2), Some(3)]);
    assert_eq!(
        value_distances(&trace, AccessOp::Read),
        [None, None, Some(2)]
    );

    assert_eq!(
        reference_counts(&written),
        BTreeMap::from([(1, 1), (2, 2), (3, 3)])
    );
    // Of 3 re-references 1 is 33 %, 2 are 67 %.
    assert_eq!(distance_over_references(&written, 33), Some(1));
    assert_eq!(distance_over_references(&written, 50), Some(2));
    assert_eq!(distance_over_references(&written, 90), Some(3));
    // Of 6 accesses 3 are exactly half, and there are no more.
    assert_eq!(distance_over_all(&written, 50), Some(3));
    assert_eq!(distance_over_all(&written, 51), None);
    assert_eq!(distance_over_references(&[None], 50), None);
    assert_eq!(distance_over_all(&[None], 50), None);
    assert_eq!(distance_over_all(&[], 50), None);
}

#[test]
fn sizes_of_an_index_are_powers_of_two_up_to_the_distinct_values() {
    assert_eq!(index_sizes(&writes(&[1, 2, 3, 4, 4])), [1, 2, 4]);
    assert_eq!(index_sizes(&writes(&[1, 2, 3])), [1, 2]);
    let without_values = [blind_write(0, 4), read(0, &[1])];
    assert_eq!(index_sizes(&without_values), Vec::<u64>::new());
}

#[test]
fn the_plain_reading_knows_eviction_only() {
    // Distances: 1 - , 2 -, 1: 2, 1: 1, 3 -, 2: 3 (1, 3, 2). First writes 3.
    // Missed by 1 entry: 3 + distances 2 and 3 = 5; by 2: 3 + distance 3 = 4; by 4: 3.
    let trace = [
        write(0, &[1]),
        write(0, &[2]), // no page holds 1
        read(7, &[8]),  // uses no index
        blind_write(9, 1),
        write(0, &[1, 1]),
        trim(0, 2), // no page holds 1
        write(0, &[3]),
        on(1, write(0, &[2])),
    ];
    let expected = BTreeMap::from([(1, 5), (2, 4), (4, 3)]);
    assert_eq!(plain_misses(&trace, &[1, 2, 4]), expected);
}

#[test]
fn in_the_live_reading_values_die_by_overwrite_trim_and_unknown_content() {
    let trace = [
        write(0, &[1]),        // miss
        write(0, &[2]),        // miss; 1 dies
        write(1, &[1]),        // miss, for 1 died
        on(1, write(1, &[1])), // hit; now two pages hold 1
        trim(1, 1),            // device 1 holds it still
        write(2, &[1]),        // hit
        blind_write(2, 1),     // device 1 holds it still
        on(1, trim(0, 9)),     // 1 dies
        write(3, &[1]),        // miss
        blind_write(3, 1),     // 1 dies
        write(3, &[1]),        // miss
        write(3, &[1]),        // silent: hit, nothing dies
        write(3, &[1]),        // hit
    ];
    // Misses: 1, 2, 1, 1, 1. With one entry the write of 2 evicts 1, which makes no difference.
    assert_eq!(
        live_misses(&trace, &[1, 8]),
        BTreeMap::from([(1, 5), (8, 5)])
    );
    // The plain reading, unlimited: 2 first writes.
    assert_eq!(plain_misses(&trace, &[8]), BTreeMap::from([(8, 2)]));
}

#[test]
fn the_place_of_a_dead_value_stays_free_until_it_is_used() {
    // Two entries.            list, most recent first
    let trace = [
        write(0, &[1]), // 1          miss
        write(1, &[2]), // 2 1        miss
        trim(1, 1),     // 1          2 dies
        write(2, &[3]), // 3 1        miss, takes the free place
        write(3, &[1]), // 1 3        hit
        write(4, &[4]), // 4 1        miss, evicts 3
        write(5, &[3]), // 3 4        miss, evicts 1
    ];
    // Plain: 1 | 2 1 | 3 2 | 1 3, a miss | 4 1 | 3 4: all miss.
    assert_eq!(live_misses(&trace, &[2]), BTreeMap::from([(2, 5)]));
    assert_eq!(plain_misses(&trace, &[2]), BTreeMap::from([(2, 6)]));
}

#[test]
fn a_write_evicts_before_the_old_content_dies() {
    // Two entries.            list, most recent first
    let trace = [
        write(0, &[1]), // 1          miss
        write(1, &[2]), // 2 1        miss
        write(1, &[3]), // 3          miss: evicts 1 first, then 2 dies
        write(2, &[1]), // 1 3        miss
    ];
    // Had 2 died first, 1 would have kept its place and the last write would hit.
    assert_eq!(live_misses(&trace, &[2]), BTreeMap::from([(2, 4)]));
    // Three entries evict nothing: 1 | 2 1 | 3 1 | hit.
    assert_eq!(live_misses(&trace, &[3]), BTreeMap::from([(3, 3)]));
}

#[test]
fn what_a_read_returned_keeps_no_value_in_the_index() {
    let trace = [
        write(0, &[1]),
        read(5, &[1]), // page 5 was never written
        write(0, &[2]),
        write(1, &[1]), // a miss: no page holds 1 by a write
    ];
    assert_eq!(live_misses(&trace, &[4]), BTreeMap::from([(4, 3)]));
}

#[test]
fn popular_values_make_half_of_the_writes() {
    // 7 twice, 5 and 9 twice, 4 once: half of 7 is 3.5, so two values; of three the smaller ids.
    let trace = writes(&[9, 7, 5, 9, 7, 5, 4]);
    assert_eq!(popular_values(&trace), BTreeSet::from([5, 7]));
    // 2 of 4 are exactly half.
    assert_eq!(popular_values(&writes(&[3, 3, 1, 2])), BTreeSet::from([3]));
    assert_eq!(popular_values(&[blind_write(0, 3)]), BTreeSet::new());
}

#[test]
fn misses_of_popular_values() {
    // Written: 1 2 3 1 1 2 1. Popular: 1 alone, 4 of 7.
    // Distances of 1: first, 3, 1, 2.
    let trace = [
        write(0, &[1, 2, 3]),
        read(0, &[1]),
        blind_write(0, 1),
        write(9, &[1, 1, 2, 1]),
    ];
    let expected = |misses| PopularMisses {
        writes: 4,
        misses,
        first_writes: 1,
    };
    assert_eq!(popular_misses(&trace, 1), expected(3));
    assert_eq!(popular_misses(&trace, 2), expected(2));
    assert_eq!(popular_misses(&trace, 3), expected(1));
    assert_eq!(popular_misses(&trace, 0), expected(4));
    assert_eq!(popular_misses(&[], 1), PopularMisses::default());
}

const NEW: WriteKind = WriteKind::New { read_before: false };
const NEW_READ: WriteKind = WriteKind::New { read_before: true };

#[test]
fn every_kind_of_write_in_turn() {
    let trace = [
        write(0, &[1]),        // new
        write(0, &[1]),        // silent
        on(1, write(0, &[1])), // elsewhere: page 0 of device 0
        blind_write(0, 1),     // no kind; page 0 of device 0 unknown
        write(0, &[1]),        // elsewhere: device 1
        trim(0, 1),
        on(1, trim(0, 1)),
        write(0, &[1]),    // reborn
        write(0, &[2, 2]), // new; elsewhere within the same request
        write(5, &[1]),    // reborn: 2 took the place of 1
        flush(),
    ];
    use WriteKind::{Elsewhere, Reborn, Silent};
    let expected = [
        NEW, Silent, Elsewhere, Elsewhere, Reborn, NEW, Elsewhere, Reborn,
    ];
    assert_eq!(write_kinds(&trace), expected);
    let counts = WriteKinds {
        silent: 1,
        new: 2,
        new_read_before: 0,
        elsewhere: 3,
        reborn: 2,
    };
    assert_eq!(count_write_kinds(&trace), counts);
}

#[test]
fn a_read_makes_the_content_of_a_page_never_written_known() {
    let trace = [
        read(0, &[1, 2]),
        write(0, &[1]), // silent, though never written
        write(5, &[1]), // elsewhere: page 0 has it by a write now
        write(6, &[2]), // new, read before: page 1 has it by a read only
        read(1, &[3]),  // the last read counts
        write(1, &[2]), // not silent any more; elsewhere: page 6
    ];
    use WriteKind::{Elsewhere, Silent};
    assert_eq!(
        write_kinds(&trace),
        [Silent, Elsewhere, NEW_READ, Elsewhere]
    );
    let counts = count_write_kinds(&trace);
    assert_eq!((counts.new, counts.new_read_before), (1, 1));
}

#[test]
fn a_read_without_a_value_takes_no_knowledge_away() {
    let trace = [read(0, &[1]), blind_read(0, 1), write(0, &[1])];
    assert_eq!(write_kinds(&trace), [WriteKind::Silent]);
}

#[test]
fn a_read_changes_nothing_of_a_page_written_or_trimmed() {
    use WriteKind::{Reborn, Silent};
    let written = [
        write(0, &[1]),
        read(0, &[2]),
        write(0, &[1]), // silent: the read changed nothing
        write(0, &[2]), // new, read before
    ];
    assert_eq!(write_kinds(&written), [NEW, Silent, NEW_READ]);

    let unknown = [blind_write(0, 1), read(0, &[1]), write(0, &[1])];
    assert_eq!(write_kinds(&unknown), [NEW_READ]);

    let trimmed = [
        read(0, &[1]),
        trim(0, 1), // what the read returned is gone
        read(0, &[1]),
        write(0, &[1]), // new, read before
        trim(0, 1),
        read(0, &[1]),
        write(0, &[1]), // reborn
    ];
    assert_eq!(write_kinds(&trimmed), [NEW_READ, Reborn]);

    let trimmed_on_another_device = [on(1, trim(0, 9)), read(0, &[1]), write(0, &[1])];
    assert_eq!(write_kinds(&trimmed_on_another_device), [Silent]);
}

#[test]
fn a_value_held_by_a_read_alone_is_reborn_when_written_again() {
    let trace = [
        write(0, &[1]),
        read(5, &[1]),
        write(0, &[2]),
        write(1, &[1]), // page 5 has 1, but not by a write
        write(5, &[1]), // silent: for this page the read counts
    ];
    use WriteKind::{Reborn, Silent};
    assert_eq!(write_kinds(&trace), [NEW, NEW, Reborn, Silent]);
}

#[test]
fn duplicates_go_by_the_last_write_of_the_value() {
    let trace = [
        write(0, &[1]),        // first
        write(0, &[1]),        // same
        write(0, &[2]),        // first
        write(0, &[1]),        // same: the last write of 1 went here, whatever came between
        trim(0, 1),            // does not matter
        blind_write(0, 1),     // nor this
        read(9, &[1]),         // nor this
        write(0, &[1]),        // same
        on(1, write(0, &[1])), // other: another device
        write(0, &[1]),        // other: the last one went to device 1
        write(4, &[3, 3]),     // first, other
    ];
    let expected = Duplicates {
        same_address: 3,
        other_address: 3,
    };
    assert_eq!(duplicates(&trace), expected);
}
