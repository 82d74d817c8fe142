//! Traces small enough to compute by hand: requests, pages and times (definitions 1 to 5, 9, 12
//! and 14).

use std::collections::BTreeMap;

use super::samples::{PAGE, at, blind_read, blind_write, bytes, flush, on, trim, write};
use super::*;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;

fn share(part: u64, whole: u64) -> Share {
    Share { part, whole }
}

#[test]
fn page_accesses_ascend_within_a_request_and_leave_out_trims_and_flushes() {
    let trace = [
        at(5, on(1, write(7, &[3, 4]))),
        trim(0, 9),
        flush(),
        blind_read(2, 1),
    ];
    let page = |device, unit| Page { device, unit };
    let expected = [
        PageAccess {
            time_ns: 5,
            op: AccessOp::Write,
            page: page(1, 7),
            value: Some(3),
        },
        PageAccess {
            time_ns: 5,
            op: AccessOp::Write,
            page: page(1, 8),
            value: Some(4),
        },
        PageAccess {
            time_ns: 0,
            op: AccessOp::Read,
            page: page(0, 2),
            value: None,
        },
    ];
    assert_eq!(page_accesses(&trace), expected);
}

#[test]
#[should_panic(expected = "one value id a unit")]
fn values_that_do_not_match_the_units_are_refused() {
    let mut access = write(0, &[1, 2]);
    access.units = 3;
    page_accesses(&[access]);
}

#[test]
fn slices_begin_anew_and_empty_ones_are_left_out() {
    // T = 10: times 0 and 9 are in slice 0, 10 in slice 1, 35 in slice 3.
    let trace = [0, 9, 10, 35].map(|time| at(time, flush()));
    let cut = slices(&trace, 10);
    let times = |k: u64| -> Vec<u64> { cut[&k].iter().map(|access| access.time_ns).collect() };
    assert_eq!(cut.keys().copied().collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(times(0), [0, 9]);
    assert_eq!(times(1), [0]);
    assert_eq!(times(3), [5]);
}

#[test]
fn percentiles_are_numbers_that_occur() {
    // Sorted: 1 2 2 9. At most 1: 25 %; at most 2: 75 %; at most 9: 100 %.
    let numbers = [2, 9, 1, 2];
    assert_eq!(percentile(&numbers, 25), Some(1));
    assert_eq!(percentile(&numbers, 26), Some(2));
    assert_eq!(percentile(&numbers, 50), Some(2));
    assert_eq!(percentile(&numbers, 75), Some(2));
    assert_eq!(percentile(&numbers, 76), Some(9));
    assert_eq!(percentile(&numbers, 100), Some(9));
    assert_eq!(percentile(&[], 50), None);
}

#[test]
fn mean_and_deviation() {
    // (2 + 4 + 4 + 4 + 5 + 5 + 7 + 9) / 8 = 40 / 8 = 5; squares 9+1+1+1+0+0+4+16 = 32; 32 / 8 = 4.
    let numbers = [2, 4, 4, 4, 5, 5, 7, 9];
    assert_eq!(mean(&numbers), Some(5.0));
    assert_eq!(standard_deviation(&numbers), Some(2.0));
    assert_eq!(coefficient_of_variation(&numbers), Some(0.4));
    assert_eq!(coefficient_of_variation(&[0, 0]), None);
    assert_eq!(mean(&[]), None);
    assert_eq!(standard_deviation(&[]), None);
}

#[test]
fn classes_of_powers_of_two() {
    // 0 | 1 | 2 3 | 4 7 | 8 | 2^63 and above.
    let histogram = powers_of_two(&[0, 1, 2, 3, 4, 7, 8, 1 << 63, u64::MAX]);
    let expected = [(0, 1), (1, 1), (2, 2), (4, 2), (8, 1), (1 << 63, 2)];
    assert_eq!(histogram, BTreeMap::from(expected));
}

#[test]
fn mix_counts_requests_pages_and_bytes() {
    let trace = [
        blind_write(0, 3),
        bytes(AccessOp::Write, 1, 100, 512),
        blind_read(0, 1),
        trim(0, 5),
        flush(),
    ];
    let count = |requests, pages, bytes| OpCount {
        requests,
        pages,
        bytes,
    };
    let expected = Mix {
        reads: count(1, 1, 4096),
        // 3 * 4096 + 512 = 12800 bytes in 3 + 1 pages.
        writes: count(2, 4, 12800),
        trims: count(1, 5, 20480),
        flushes: count(1, 0, 0),
        write_requests: share(2, 3),
        write_pages: share(4, 5),
        write_bytes: share(12800, 16896),
    };
    assert_eq!(mix(&trace), expected);
    assert_eq!(mix(&[]).write_requests.value(), None);
    assert_eq!(share(1, 4).value(), Some(0.25));
}

#[test]
fn sizes_are_exact_up_to_64_of_them() {
    let trace = [
        bytes(AccessOp::Write, 0, 0, 512),
        bytes(AccessOp::Read, 0, 0, 1000),
        bytes(AccessOp::Write, 1, 0, 512),
        bytes(AccessOp::Write, 0, 0, 4096),
    ];
    let written = sizes(&trace, AccessOp::Write);
    assert_eq!(written, [512, 512, 4096]);
    assert_eq!(sizes(&trace, AccessOp::Read), [1000]);
    assert_eq!(
        size_histogram(&written),
        SizeHistogram::Exact(BTreeMap::from([(512, 2), (4096, 1)]))
    );

    let mut many: Vec<u64> = (1..=64).collect();
    assert!(matches!(size_histogram(&many), SizeHistogram::Exact(_)));
    many.push(65);
    // 1 | 2-3 | 4-7 | 8-15 | 16-31 | 32-63 | 64 65.
    let classes = [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (64, 2)];
    assert_eq!(
        size_histogram(&many),
        SizeHistogram::PowersOfTwo(BTreeMap::from(classes))
    );
}

#[test]
fn sequential_requests_follow_the_last_one_on_their_device() {
    let trace = [
        bytes(AccessOp::Write, 0, 0, 100),  // begins run A
        bytes(AccessOp::Read, 1, 100, 50),  // another device: begins run B
        bytes(AccessOp::Read, 0, 100, 100), // A ends at 100: sequential, whatever op
        bytes(AccessOp::Trim, 0, 900, 100), // neither read nor write: not in the way
        flush(),                            // nor this
        bytes(AccessOp::Write, 0, 200, 24), // A ends at 200: sequential
        bytes(AccessOp::Write, 1, 150, 10), // B ends at 150: sequential
        bytes(AccessOp::Write, 0, 200, 24), // A ends at 224: begins run C
        bytes(AccessOp::Write, 0, 1000, 8), // after the trim's end, but that does not count: run D
    ];
    let found = sequential(&trace);
    assert_eq!(found.reads, share(1, 2));
    assert_eq!(found.writes, share(2, 5));
    assert_eq!(found.all, share(3, 7));
    let run = |requests, bytes| Run { requests, bytes };
    // A: 100 + 100 + 24 bytes; B: 50 + 10.
    assert_eq!(found.runs, [run(3, 224), run(2, 60), run(1, 24), run(1, 8)]);
}

#[test]
fn footprint_splits_pages_by_use() {
    let trace = [
        blind_read(0, 2),         // 0 and 1, first access a read
        blind_write(1, 2),        // 1 now both, 2 written
        trim(0, 9),               // touches no page
        blind_read(2, 1),         // 2 now both, first access a write
        on(1, blind_write(0, 1)), // page 0 of another device: written only
        blind_write(2, 1),
    ];
    let expected = Footprint {
        pages: 4,
        only_read: 1,
        only_written: 1,
        both: 2,
        first_read: 2,
    };
    assert_eq!(footprint(&trace), expected);
}

#[test]
fn gaps_are_of_all_requests_and_may_be_zero() {
    let trace = [
        at(5, flush()),
        at(5, on(1, blind_write(0, 1))),
        at(9, trim(0, 1)),
    ];
    assert_eq!(gaps_ns(&trace), [0, 4]);
    assert_eq!(gaps_ns(&trace[..1]), Vec::<u64>::new());
    assert_eq!(gaps_ns(&[]), Vec::<u64>::new());
}

#[test]
fn dispersion_counts_complete_windows() {
    // Windows of 10: [0, 10) has 3, [10, 20) has 0, [20, 30) has 1; the one of 30 is incomplete.
    let trace = [0, 0, 9, 20, 30].map(|time| at(time, flush()));
    // Mean 4/3; squared differences 25/9 + 16/9 + 1/9 = 42/9; variance 14/9; 14/9 : 4/3 = 7/6.
    let found = index_of_dispersion(&trace, 10).unwrap();
    assert!((found - 7.0 / 6.0).abs() < 1e-12, "{found}");
    // Without the last request the time ends at 20: windows with 3 and 0, mean 1.5, variance 2.25.
    assert_eq!(index_of_dispersion(&trace[..4], 10), Some(1.5));
    // One complete window of 20, two of 15 with 3 and 1: mean 2, variance 1.
    assert_eq!(index_of_dispersion(&trace, 20), None);
    assert_eq!(index_of_dispersion(&trace, 15), Some(0.5));
    // Two complete windows without a request: the mean is 0.
    assert_eq!(index_of_dispersion(&trace[4..], 15), None);
    assert_eq!(index_of_dispersion(&[], 10), None);
}

#[test]
fn the_fullest_second_may_be_the_last() {
    // [0 s, 1 s) has 2, [1 s, 2 s) has 1, [2 s, 3 s) has 3 though it is incomplete.
    let times = [
        0,
        SECOND - 1,
        SECOND,
        2 * SECOND,
        2 * SECOND,
        2 * SECOND + 5,
    ];
    let trace = times.map(|time| at(time, flush()));
    assert_eq!(most_in_a_second(&trace), 3);
    assert_eq!(most_in_a_second(&trace[..3]), 2);
    assert_eq!(most_in_a_second(&[]), 0);
}

#[test]
fn a_gap_of_100_ms_is_within_a_burst() {
    let ms = SECOND / 1000;
    // 0, 0, 100 ms | one nanosecond more than 100 ms later | half a second later.
    let times = [0, 0, 100 * ms, 200 * ms + 1, 700 * ms + 1];
    let trace = times.map(|time| at(time, flush()));
    let expected = Bursts {
        requests: vec![3, 1, 1],
        gaps_ns: vec![100 * ms + 1, 500 * ms],
    };
    assert_eq!(bursts(&trace), expected);
    assert_eq!(bursts(&[]), Bursts::default());
}

#[test]
fn page_distances_need_no_values_and_tell_devices_apart() {
    let trace = [
        blind_write(0, 2),        // 0 and 1: first accesses
        write(1, &[7]),           // since the last write of 1: itself alone, 1
        trim(0, 1),               // no access
        blind_read(0, 1),         // of the reads the first
        on(1, blind_write(0, 1)), // another page: first access
        blind_write(0, 1),        // since the last write of 0: 0, 1, 1, 1:0 are 3 pages
        blind_read(0, 1),         // immediately again: 1
    ];
    assert_eq!(
        page_distances(&trace, AccessOp::Write),
        [None, None, Some(1), None, Some(3)]
    );
    assert_eq!(page_distances(&trace, AccessOp::Read), [None, Some(1)]);
}

#[test]
fn overwrites_count_page_writes_and_time_back() {
    let trace = [
        at(0, blind_write(0, 3)),         // 0 1 2
        at(10, write(2, &[5])),           // 2 again: the next page write, after 10 ns
        at(10, blind_read(0, 1)),         // no write
        at(10, on(1, blind_write(0, 1))), // another page
        at(25, trim(1, 1)),               // 1 is written no more
        at(25, blind_write(0, 2)),        // 0: back over 1:0, 2, 2, 1, 0 are 5, 25 ns; 1: trimmed
        at(25, blind_write(1, 1)),        // 1: written since the trim, 1 back at the same time
    ];
    let overwrite = |page_writes, time_ns| Overwrite {
        page_writes,
        time_ns,
    };
    assert_eq!(
        overwrites(&trace),
        [overwrite(1, 10), overwrite(5, 25), overwrite(1, 0)]
    );
    // Page writes: 3 + 1 + 1 + 2 + 1.
    assert_eq!(overwrite_share(&trace), share(3, 8));
}

#[test]
fn a_trim_of_another_device_or_page_leaves_an_overwrite_one() {
    let trace = [
        blind_write(5, 1),
        on(1, trim(0, 9)),
        trim(0, 5), // 0 to 4
        trim(6, 1),
        blind_write(5, 1),
    ];
    assert_eq!(overwrite_share(&trace), share(1, 2));
}

#[test]
fn the_rate_is_over_the_span_of_all_requests() {
    // From half an hour to two and a half: 3 pages in 2 hours.
    let trace = [
        at(HOUR / 2, flush()),
        at(HOUR, blind_write(0, 2)),
        at(HOUR, blind_read(0, 7)),
        at(2 * HOUR + HOUR / 2, blind_write(0, 1)),
    ];
    assert_eq!(bytes_per_hour(&trace), Some(6144.0));
    // 6144 bytes an hour: 3072 bytes last half an hour.
    assert_eq!(mean_window_ns(&trace, 3072), Some(HOUR as f64 / 2.0));
    assert_eq!(bytes_per_hour(&trace[1..3]), None, "no time passes");
    assert_eq!(mean_window_ns(&trace[..1], 1), None);
    let nothing_written = [at(0, flush()), at(HOUR, flush())];
    assert_eq!(bytes_per_hour(&nothing_written), Some(0.0));
    assert_eq!(mean_window_ns(&nothing_written, 1), None);
    assert_eq!(bytes_per_hour(&[]), None);
}

#[test]
fn the_shortest_window_is_between_two_writes() {
    // Pages at times: 1 at 0, 2 at 100, 1 at 130, 1 at 130.
    let trace = [
        at(0, blind_write(0, 1)),
        at(100, on(1, blind_write(0, 2))),
        at(120, blind_read(0, 9)),
        at(130, blind_write(9, 1)),
        at(130, blind_write(3, 1)),
        at(500, flush()),
    ];
    // One write has 2 pages.
    assert_eq!(shortest_window_ns(&trace, 2 * PAGE), Some(0));
    // 3 pages: 100 to 130.
    assert_eq!(shortest_window_ns(&trace, 2 * PAGE + 1), Some(30));
    assert_eq!(shortest_window_ns(&trace, 4 * PAGE), Some(30));
    // All 5: 0 to 130.
    assert_eq!(shortest_window_ns(&trace, 5 * PAGE), Some(130));
    assert_eq!(shortest_window_ns(&trace, 5 * PAGE + 1), None);
    assert_eq!(shortest_window_ns(&[], 1), None);
}
