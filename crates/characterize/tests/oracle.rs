//! Every statistic against the oracle, which computes each from its definition without looking at
//! this crate: on random traces and on pieces of the captures, whole and in slices.

use crate::common;

use std::collections::BTreeMap;

use flashlore_characterize::measures::buckets::Bucket;
use flashlore_characterize::statistics::locality::LocalityCurve;
use flashlore_characterize::statistics::overwrites::Distances;
use flashlore_characterize::statistics::popularity::ClassPopularity;
use flashlore_characterize::statistics::sizes::SizeSpread;
use flashlore_characterize::{Characterizer, Options, Statistics};
use flashlore_oracle::locality as oracle;
use flashlore_oracle::locality::{Access, AccessOp, Share};
use proptest::prelude::*;

const INDEX_SIZES: [u64; 5] = [1, 3, 16, 100, 1000];
const CAPACITIES: [u64; 4] = [1, 10_000, 1 << 20, 1 << 40];

fn check(accesses: &[Access], slice_ns: u64) {
    let options = Options {
        slice_ns: Some(slice_ns),
        index_sizes: INDEX_SIZES.to_vec(),
        capacities: CAPACITIES.to_vec(),
        ..Options::default()
    };
    let mut characterizer = Characterizer::new(options).unwrap();
    for access in accesses {
        characterizer.observe(&common::from_oracle(access)).unwrap();
    }
    let found = characterizer.finish();
    check_statistics(&found.whole, accesses);
    let slices = oracle::slices(accesses, slice_ns);
    let numbers: Vec<u64> = found.slices.iter().map(|slice| slice.number).collect();
    assert_eq!(numbers, slices.keys().copied().collect::<Vec<_>>());
    for slice in &found.slices {
        check_statistics(&slice.statistics, &slices[&slice.number]);
    }
}

fn check_statistics(found: &Statistics, accesses: &[Access]) {
    check_mix(found, accesses);
    check_sizes(
        found.sizes.reads.as_ref(),
        &oracle::sizes(accesses, AccessOp::Read),
    );
    check_sizes(
        found.sizes.writes.as_ref(),
        &oracle::sizes(accesses, AccessOp::Write),
    );
    check_sequential(found, accesses);
    check_footprint(found, accesses);
    check_arrivals(found, accesses);
    check_popularity(&found.popularity.reads, accesses, AccessOp::Read);
    check_popularity(&found.popularity.writes, accesses, AccessOp::Write);
    let (values, pages) = (&found.value_locality, &found.page_locality);
    check_curve(
        &values.reads,
        &oracle::value_distances(accesses, AccessOp::Read),
    );
    check_curve(
        &values.writes,
        &oracle::value_distances(accesses, AccessOp::Write),
    );
    check_curve(
        &pages.reads,
        &oracle::page_distances(accesses, AccessOp::Read),
    );
    check_curve(
        &pages.writes,
        &oracle::page_distances(accesses, AccessOp::Write),
    );
    check_index(found, accesses);
    check_kinds(found, accesses);
    check_overwrites(found, accesses);
    check_rate(found, accesses);
}

fn check_mix(found: &Statistics, accesses: &[Access]) {
    let mix = oracle::mix(accesses);
    let pairs = [
        (found.mix.reads, mix.reads),
        (found.mix.writes, mix.writes),
        (found.mix.trims, mix.trims),
        (found.mix.flushes, mix.flushes),
    ];
    for (found, expected) in pairs {
        let expected = (expected.requests, expected.pages, expected.bytes);
        assert_eq!((found.requests, found.pages, found.bytes), expected);
    }
    close(found.mix.write_share_requests, mix.write_requests.value());
    close(found.mix.write_share_pages, mix.write_pages.value());
    close(found.mix.write_share_bytes, mix.write_bytes.value());
}

fn check_sizes(found: Option<&SizeSpread>, sizes: &[u64]) {
    assert_eq!(found.map(|f| f.p50), oracle::percentile(sizes, 50));
    assert_eq!(found.map(|f| f.p90), oracle::percentile(sizes, 90));
    assert_eq!(found.map(|f| f.p99), oracle::percentile(sizes, 99));
    assert_eq!(found.map(|f| f.max), sizes.iter().copied().max());
    close(found.map(|f| f.mean), oracle::mean(sizes));
    let Some(found) = found else { return };
    match oracle::size_histogram(sizes) {
        oracle::SizeHistogram::Exact(exact) => {
            assert_eq!(by_low(&found.histogram), exact);
            assert!(
                found
                    .histogram
                    .iter()
                    .all(|bucket| bucket.low == bucket.high)
            );
        }
        oracle::SizeHistogram::PowersOfTwo(powers) => assert_eq!(by_low(&found.histogram), powers),
    }
}

fn check_sequential(found: &Statistics, accesses: &[Access]) {
    let (found, expected) = (found.sequential, oracle::sequential(accesses));
    assert_eq!(
        (found.reads, found.writes),
        (expected.reads.part, expected.writes.part)
    );
    close(found.share, expected.all.value());
    close(found.share_of_reads, expected.reads.value());
    close(found.share_of_writes, expected.writes.value());
    let requests: Vec<u64> = expected.runs.iter().map(|run| run.requests).collect();
    let bytes: Vec<u64> = expected.runs.iter().map(|run| run.bytes).collect();
    assert_eq!(found.runs, requests.len() as u64);
    close(found.mean_run_requests, oracle::mean(&requests));
    close(found.mean_run_bytes, oracle::mean(&bytes));
}

fn check_footprint(found: &Statistics, accesses: &[Access]) {
    let (found, expected) = (found.footprint, oracle::footprint(accesses));
    assert_eq!(
        (
            found.pages,
            found.only_read,
            found.only_written,
            found.both,
            found.read_first
        ),
        (
            expected.pages,
            expected.only_read,
            expected.only_written,
            expected.both,
            expected.first_read
        )
    );
}

fn check_arrivals(found: &Statistics, accesses: &[Access]) {
    let found = &found.arrivals;
    let gaps = oracle::gaps_ns(accesses);
    assert_eq!(found.requests, accesses.len() as u64);
    assert_eq!(found.span_ns, gaps.iter().sum::<u64>());
    assert_eq!(found.gaps.map_or(0, |g| g.count), gaps.len() as u64);
    assert_eq!(found.gaps.map(|g| g.p50_ns), oracle::percentile(&gaps, 50));
    assert_eq!(found.gaps.map(|g| g.p90_ns), oracle::percentile(&gaps, 90));
    assert_eq!(found.gaps.map(|g| g.p99_ns), oracle::percentile(&gaps, 99));
    assert_eq!(found.gaps.map(|g| g.max_ns), gaps.iter().copied().max());
    close(found.gaps.map(|g| g.mean_ns), oracle::mean(&gaps));
    close(
        found.gaps.map(|g| g.std_ns),
        oracle::standard_deviation(&gaps),
    );
    let variation = found.gaps.and_then(|g| g.variation);
    close(variation, oracle::coefficient_of_variation(&gaps));
    for window_ns in oracle::DISPERSION_WINDOWS_NS {
        let of_window = found.dispersion.iter().find(|d| d.window_ns == window_ns);
        let expected = oracle::index_of_dispersion(accesses, window_ns);
        close(of_window.map(|d| d.index), expected);
    }
    assert_eq!(found.peak_second, oracle::most_in_a_second(accesses));
    let bursts = oracle::bursts(accesses);
    assert_eq!(found.bursts.count, bursts.requests.len() as u64);
    close(found.bursts.mean_requests, oracle::mean(&bursts.requests));
    close(found.bursts.mean_gap_ns, oracle::mean(&bursts.gaps_ns));
}

fn check_popularity(found: &ClassPopularity, accesses: &[Access], op: AccessOp) {
    let unique = oracle::unique_share(accesses, op);
    assert_eq!(
        (found.distinct, found.accesses),
        (unique.part, unique.whole)
    );
    close(found.unique_share, unique.value());
    let counts = oracle::popularity(accesses, op);
    let x50 = oracle::x50(&counts);
    assert_eq!(found.half_values, x50.part);
    close(found.x50, x50.value());
    let listed = found.frequencies.iter();
    let listed = listed.flat_map(|f| std::iter::repeat_n(f.accesses, f.values as usize));
    assert_eq!(listed.collect::<Vec<_>>(), counts);
    assert_eq!(by_low(&found.histogram), oracle::count_histogram(&counts));
    assert_eq!(found.cdf.is_empty(), counts.is_empty());
    for point in &found.cdf {
        let part = (point.value_share * 1e6).round() as u64;
        let whole = 1_000_000;
        let top = oracle::accesses_of_top(&counts, Share { part, whole });
        close(Some(point.access_share), top.value());
    }
}

fn check_curve(found: &LocalityCurve, distances: &[Option<u64>]) {
    // Accesses within each distance that occurs.
    let curve = oracle::reference_counts(distances);
    let within = |distance| curve.range(..=distance).next_back().map_or(0, |(_, n)| *n);
    assert_eq!(found.accesses, distances.len() as u64);
    assert_eq!(found.rereferences(), within(u64::MAX));
    for point in &found.points {
        assert_eq!(
            point.within,
            within(point.distance),
            "within {}",
            point.distance
        );
    }
    for power in (0..20).map(|bit| 1 << bit) {
        assert_eq!(found.within(power), within(power), "within {power}");
    }
    let over_references = |percent| oracle::distance_over_references(distances, percent);
    let over_all = |percent| oracle::distance_over_all(distances, percent);
    assert_eq!(
        (found.p50, found.all_p50),
        (over_references(50), over_all(50))
    );
    assert_eq!(
        (found.p90, found.all_p90),
        (over_references(90), over_all(90))
    );
    assert_eq!(
        (found.p99, found.all_p99),
        (over_references(99), over_all(99))
    );
}

fn check_index(found: &Statistics, accesses: &[Access]) {
    let sizes = oracle::index_sizes(accesses);
    let plain = oracle::plain_misses(accesses, &sizes);
    let live = oracle::live_misses(accesses, &sizes);
    let found_sizes: Vec<u64> = found
        .index
        .curve
        .iter()
        .map(|point| point.entries)
        .collect();
    assert_eq!(found_sizes, sizes);
    for point in &found.index.curve {
        let expected = (plain[&point.entries], live[&point.entries]);
        assert_eq!(
            (point.plain_misses, point.live_misses),
            expected,
            "{}",
            point.entries
        );
    }
    let popular = oracle::popular_values(accesses);
    assert_eq!(found.index.popular_values, popular.len() as u64);
    for point in &found.index.popular {
        let expected = oracle::popular_misses(accesses, point.entries);
        assert_eq!(
            (point.writes, point.first, point.first + point.again),
            (expected.writes, expected.first_writes, expected.misses)
        );
    }
}

fn check_kinds(found: &Statistics, accesses: &[Access]) {
    let (found, expected) = (found.kinds, oracle::count_write_kinds(accesses));
    assert_eq!(
        (
            found.silent,
            found.new,
            found.new_seen_in_read,
            found.elsewhere,
            found.reborn
        ),
        (
            expected.silent,
            expected.new,
            expected.new_read_before,
            expected.elsewhere,
            expected.reborn
        )
    );
    let sum = found.silent + found.new + found.elsewhere + found.reborn;
    assert_eq!(sum, found.writes, "a partition");
    let duplicates = oracle::duplicates(accesses);
    assert_eq!(
        (found.duplicate_same_address, found.duplicate_other_address),
        (duplicates.same_address, duplicates.other_address)
    );
}

fn check_overwrites(found: &Statistics, accesses: &[Access]) {
    let found = &found.overwrites;
    let share = oracle::overwrite_share(accesses);
    assert_eq!(
        (found.overwrites, found.page_writes),
        (share.part, share.whole)
    );
    close(found.share, share.value());
    let overwrites = oracle::overwrites(accesses);
    let distances: Vec<u64> = overwrites.iter().map(|o| o.page_writes).collect();
    let times_ns: Vec<u64> = overwrites.iter().map(|o| o.time_ns).collect();
    check_distances(found.distance.as_ref(), &distances);
    check_distances(found.time_ns.as_ref(), &times_ns);
}

fn check_distances(found: Option<&Distances>, numbers: &[u64]) {
    assert_eq!(found.map(|f| f.p50), oracle::percentile(numbers, 50));
    assert_eq!(found.map(|f| f.p90), oracle::percentile(numbers, 90));
    assert_eq!(found.map(|f| f.p99), oracle::percentile(numbers, 99));
    let histogram = found.map(|f| by_low(&f.histogram)).unwrap_or_default();
    assert_eq!(histogram, oracle::powers_of_two(numbers));
}

fn check_rate(found: &Statistics, accesses: &[Access]) {
    close(found.rate.bytes_per_hour, oracle::bytes_per_hour(accesses));
    for window in &found.rate.windows {
        let capacity = window.capacity_bytes;
        close(window.mean_ns, oracle::mean_window_ns(accesses, capacity));
        assert_eq!(
            window.shortest_ns,
            oracle::shortest_window_ns(accesses, capacity)
        );
    }
}

fn by_low(buckets: &[Bucket]) -> BTreeMap<u64, u64> {
    let by_low: BTreeMap<u64, u64> = buckets.iter().map(|b| (b.low, b.count)).collect();
    assert_eq!(by_low.len(), buckets.len(), "each bucket once");
    by_low
}

#[track_caller]
fn close(found: Option<f64>, expected: Option<f64>) {
    let near = |(a, b): (f64, f64)| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-9);
    let agree = match (found, expected) {
        (Some(found), Some(expected)) => near((found, expected)),
        (found, expected) => found.is_none() && expected.is_none(),
    };
    assert!(agree, "found {found:?}, expected {expected:?}");
}

/// One access of a random trace, before its place in time and space is known.
#[derive(Debug, Clone)]
struct Step {
    kind: u8,
    gap_ns: u64,
    device: u32,
    goes_on: bool,
    unit: u64,
    units: u32,
    bytes: u64,
    has_values: bool,
    values: Vec<u32>,
}

/// Random steps: reads, writes, trims and flushes on few pages of three devices, often with content.
fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let gap_ns = prop_oneof![
        3 => Just(0),
        5 => 1_u64..5_000_000,
        2 => 50_000_000_u64..400_000_000,
        1 => 1_000_000_000_u64..90_000_000_000,
    ];
    // Values of the trace count up, merged ones down from the top.
    let value = prop_oneof![6 => 0_u32..12, 3 => 0_u32..80, 1 => u32::MAX - 9..u32::MAX];
    let place = (
        0_u32..3,
        prop::bool::weighted(0.3),
        0_u64..30,
        1_u32..5,
        0_u64..4096,
    );
    let content = (prop::bool::weighted(0.85), prop::collection::vec(value, 4));
    let step = (0_u8..20, gap_ns, place, content);
    let step = step.prop_map(|(kind, gap_ns, place, (has_values, values))| Step {
        kind,
        gap_ns,
        device: place.0,
        goes_on: place.1,
        unit: place.2,
        units: place.3,
        bytes: place.4,
        has_values,
        values,
    });
    prop::collection::vec(step, 0..most)
}

/// The trace that steps make.
fn trace(steps: Vec<Step>) -> Vec<Access> {
    let (mut time_ns, mut ends) = (0, [0; 3]);
    let mut first = true;
    let make = |step: Step| {
        time_ns += if first { 0 } else { step.gap_ns };
        first = false;
        let op = match step.kind {
            0..11 => AccessOp::Write,
            11..17 => AccessOp::Read,
            17..19 => AccessOp::Trim,
            _ => AccessOp::Flush,
        };
        let end = &mut ends[step.device as usize];
        let unit = if step.goes_on { *end } else { step.unit };
        // The last unit is often touched in part.
        let bytes = match step.bytes % 3 {
            0 => u64::from(step.units - 1) * 4096 + step.bytes + 1,
            _ => u64::from(step.units) * 4096,
        };
        let is_flush = op == AccessOp::Flush;
        let transfers = matches!(op, AccessOp::Read | AccessOp::Write);
        if transfers {
            *end = unit + u64::from(step.units);
        }
        Access {
            time_ns,
            op,
            device: step.device,
            offset: if is_flush { 0 } else { unit * 4096 },
            length: if is_flush { 0 } else { bytes },
            unit: if is_flush { 0 } else { unit },
            units: if is_flush { 0 } else { step.units },
            values: (transfers && step.has_values)
                .then(|| step.values[..step.units as usize].to_vec()),
        }
    };
    steps.into_iter().map(make).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn agrees_on_random_traces(
        steps in steps(300),
        slice_ns in prop_oneof![1_000_000_u64..50_000_000, 1_000_000_000_u64..100_000_000_000],
    ) {
        check(&trace(steps), slice_ns);
    }
}

#[test]
fn agrees_on_pieces_of_the_captures() {
    for name in common::CAPTURES {
        let Some(path) = common::capture(name) else {
            continue;
        };
        for first in [0, 15_000] {
            let accesses = common::accesses(&path, first, 2_000);
            assert!(accesses.len() > 1_000, "{name} is long enough");
            check(&accesses, 500_000_000);
        }
    }
}
