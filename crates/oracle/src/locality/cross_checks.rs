//! Statistics of random traces against each other and against models made for other judgements.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::counts;
use crate::index::Index;
use crate::testing::Random;

/// Requests of up to 4 pages on 2 devices of 12 pages with 10 values: reads and writes with and
/// without values, trims and flushes, a third of them at the time of the one before.
fn random_trace(seed: u64) -> Vec<Access> {
    let mut random = Random(seed);
    let mut time_ns = 0;
    let mut trace = Vec::new();
    for _ in 0..300 {
        time_ns += random.below(3) * random.below(80_000_000);
        let op = match random.below(16) {
            0..8 => AccessOp::Write,
            8..13 => AccessOp::Read,
            13..15 => AccessOp::Trim,
            _ => AccessOp::Flush,
        };
        let units = if op == AccessOp::Flush {
            0
        } else {
            1 + random.below(4) as u32
        };
        let unit = random.below(9);
        let with_values = op <= AccessOp::Write && random.below(5) > 0;
        let values = (0..units).map(|_| random.below(10) as u32).collect();
        trace.push(Access {
            time_ns,
            op,
            device: random.below(2) as u32,
            offset: unit * 4096,
            length: u64::from(units) * 4096,
            unit,
            units,
            values: with_values.then_some(values),
        });
    }
    trace
}

/// The trace without reads, and with values for all writes.
fn writes_and_trims(seed: u64) -> Vec<Access> {
    let mut trace = random_trace(seed);
    trace.retain(|access| access.op == AccessOp::Trim || access.values.is_some());
    trace.retain(|access| access.op != AccessOp::Read);
    trace
}

/// The same for the counts of programs: pages numbered over the devices, trims page by page.
fn steps(trace: &[Access]) -> Vec<counts::DiskAccess<u32>> {
    let mut steps = Vec::new();
    for access in trace {
        for i in 0..access.units {
            let lpn = u64::from(access.device) * 100 + access.unit + u64::from(i);
            steps.push(match &access.values {
                Some(values) => counts::DiskAccess::Write {
                    lpn,
                    value: values[i as usize],
                },
                None => counts::DiskAccess::Trim { lpn },
            });
        }
    }
    steps
}

/// The content of a page by looking back from request `before`, and whether a write is why.
fn content_looking_back(trace: &[Access], page: Page) -> Option<(u32, bool)> {
    let mut last_read = None;
    for access in trace.iter().rev().filter(|access| access.covers(page)) {
        let of_page = access.pages().into_iter().find(|found| found.page == page);
        let value = of_page.and_then(|found| found.value);
        match access.op {
            AccessOp::Write => return value.map(|value| (value, true)),
            AccessOp::Trim => return None,
            _ => last_read = last_read.or(value),
        }
    }
    last_read.map(|value| (value, false))
}

#[test]
fn plain_misses_are_first_writes_and_long_distances() {
    for seed in 0..20 {
        let trace = random_trace(seed);
        let distances = value_distances(&trace, AccessOp::Write);
        for (size, misses) in plain_misses(&trace, &[1, 2, 3, 4, 7, 8, 16]) {
            let missed = |distance: &&Option<u64>| distance.is_none_or(|distance| distance > size);
            let expected = distances.iter().filter(missed).count() as u64;
            assert_eq!(misses, expected, "seed {seed}, size {size}");
        }
    }
}

#[test]
fn popular_misses_are_first_writes_and_long_distances_of_popular_values() {
    for seed in 0..20 {
        let trace = random_trace(seed);
        let popular = popular_values(&trace);
        let values: Vec<u32> = page_accesses(&trace)
            .iter()
            .filter(|access| access.op == AccessOp::Write)
            .filter_map(|access| access.value)
            .collect();
        let distances: Vec<Option<u64>> = value_distances(&trace, AccessOp::Write)
            .into_iter()
            .zip(values)
            .filter(|(_, value)| popular.contains(value))
            .map(|(distance, _)| distance)
            .collect();
        assert_eq!(
            x50(&popularity(&trace, AccessOp::Write)).part,
            popular.len() as u64
        );
        for size in [1, 2, 4, 8] {
            let firsts = distances
                .iter()
                .filter(|distance| distance.is_none())
                .count() as u64;
            let long = distances.iter().flatten().filter(|&&d| d > size).count() as u64;
            let expected = PopularMisses {
                writes: distances.len() as u64,
                misses: firsts + long,
                first_writes: firsts,
            };
            assert_eq!(popular_misses(&trace, size), expected, "seed {seed}");
        }
    }
}

#[test]
fn live_misses_are_at_least_the_plain_ones_and_fewer_in_a_larger_index() {
    let sizes: Vec<u64> = (1..=12).collect();
    for seed in 0..20 {
        let trace = random_trace(seed);
        let live: Vec<u64> = live_misses(&trace, &sizes).into_values().collect();
        assert!(live.is_sorted_by(|less, more| less >= more), "seed {seed}");
        let all = *plain_misses(&trace, &[100]).values().next().unwrap();
        assert!(live.iter().all(|&misses| misses >= all), "seed {seed}");
    }
}

/// Live misses with the index of the content-aware FTL; a value is its own unit address.
fn live_misses_of_index(trace: &[Access], size: u64) -> u64 {
    let mut index = Index::new(Some(size as usize));
    let mut holders: BTreeMap<u32, BTreeSet<Page>> = BTreeMap::new();
    let mut misses = 0;
    for access in trace.iter().filter(|access| access.op != AccessOp::Read) {
        for i in 0..u64::from(access.units) {
            let page = Page {
                device: access.device,
                unit: access.unit + i,
            };
            let new = access.values.as_ref().map(|values| values[i as usize]);
            if let Some(value) = new {
                misses += u64::from(index.get(u64::from(value)).is_none());
                index.insert(u64::from(value), u64::from(value));
                holders.entry(value).or_default().insert(page);
            }
            for (&value, pages) in &mut holders {
                if Some(value) != new && pages.remove(&page) && pages.is_empty() {
                    index.forget_page(u64::from(value));
                }
            }
        }
    }
    misses
}

#[test]
fn live_misses_are_those_of_the_index_of_the_ftl() {
    for seed in 0..20 {
        let trace = random_trace(seed);
        for (size, misses) in live_misses(&trace, &[1, 2, 3, 4, 5, 8, 16]) {
            let expected = live_misses_of_index(&trace, size);
            assert_eq!(misses, expected, "seed {seed}, size {size}");
        }
    }
}

#[test]
fn an_unlimited_live_index_programs_what_no_page_holds() {
    for seed in 0..20 {
        let trace = writes_and_trims(seed);
        let expected = counts::programs_unlimited(steps(&trace));
        assert_eq!(
            live_misses(&trace, &[1000]),
            BTreeMap::from([(1000, expected)]),
            "seed {seed}"
        );
    }
}

#[test]
fn kinds_of_writes_are_those_of_the_counts_of_programs() {
    for seed in 0..20 {
        let trace = writes_and_trims(seed);
        let expected = counts::classify_writes(steps(&trace));
        let found = count_write_kinds(&trace);
        let as_classes = counts::WriteClasses {
            silent: found.silent,
            duplicate: found.elsewhere,
            reborn: found.reborn,
            unique: found.new,
        };
        assert_eq!(as_classes, expected, "seed {seed}");
    }
}

#[test]
fn kinds_of_writes_agree_with_looking_back() {
    let pages: Vec<Page> = (0..2)
        .flat_map(|device| (0..12).map(move |unit| Page { device, unit }))
        .collect();
    let mut seen_silent_by_read = 0;
    for seed in 0..20 {
        // One page a request: nothing changes within one.
        let mut trace = random_trace(seed);
        for access in trace
            .iter_mut()
            .filter(|access| access.op <= AccessOp::Write)
        {
            access.units = 1;
            access
                .values
                .iter_mut()
                .for_each(|values| values.truncate(1));
        }
        let mut expected = Vec::new();
        for (i, access) in trace.iter().enumerate() {
            let Some((page, value)) = access
                .pages()
                .first()
                .filter(|write| write.op == AccessOp::Write)
                .and_then(|write| Some((write.page, write.value?)))
            else {
                continue;
            };
            let past = &trace[..i];
            let by = |op: AccessOp| {
                page_accesses(past)
                    .iter()
                    .any(|earlier| earlier.op == op && earlier.value == Some(value))
            };
            let content = content_looking_back(past, page);
            seen_silent_by_read += u64::from(content == Some((value, false)));
            expected.push(if content.is_some_and(|(held, _)| held == value) {
                WriteKind::Silent
            } else if !by(AccessOp::Write) {
                WriteKind::New {
                    read_before: by(AccessOp::Read),
                }
            } else if pages
                .iter()
                .any(|&other| content_looking_back(past, other) == Some((value, true)))
            {
                WriteKind::Elsewhere
            } else {
                WriteKind::Reborn
            });
        }
        assert_eq!(write_kinds(&trace), expected, "seed {seed}");
    }
    assert!(seen_silent_by_read > 0, "the traces must hold such writes");
}

#[test]
fn counts_that_must_add_up() {
    for seed in 0..20 {
        let trace = random_trace(seed);
        let unique = unique_share(&trace, AccessOp::Write);
        let kinds = count_write_kinds(&trace);
        let duplicates = duplicates(&trace);
        assert_eq!(
            kinds.silent + kinds.new + kinds.elsewhere + kinds.reborn,
            unique.whole
        );
        assert_eq!(
            duplicates.same_address + duplicates.other_address,
            unique.whole - unique.part
        );

        let footprint = footprint(&trace);
        assert_eq!(
            footprint.pages,
            footprint.only_read + footprint.only_written + footprint.both
        );
        let first_writes = page_distances(&trace, AccessOp::Write)
            .iter()
            .filter(|distance| distance.is_none())
            .count() as u64;
        assert_eq!(first_writes, footprint.only_written + footprint.both);

        let bursts = bursts(&trace);
        assert_eq!(bursts.requests.iter().sum::<u64>(), trace.len() as u64);
        assert_eq!(bursts.requests.len(), bursts.gaps_ns.len() + 1);

        let sequential = sequential(&trace);
        let not_sequential = sequential.all.whole - sequential.all.part;
        assert_eq!(not_sequential, sequential.runs.len() as u64);
    }
}

#[test]
fn slices_hold_every_access_once() {
    let trace = random_trace(1);
    let cut = slices(&trace, 1_000_000_000);
    let joined: Vec<Access> = cut
        .iter()
        .flat_map(|(k, accesses)| {
            accesses.iter().cloned().map(move |mut access| {
                access.time_ns += k * 1_000_000_000;
                access
            })
        })
        .collect();
    assert_eq!(joined, trace);
    let numbers: BTreeSet<u64> = cut.keys().copied().collect();
    assert!(numbers.len() > 2, "the trace is longer than two slices");
}
