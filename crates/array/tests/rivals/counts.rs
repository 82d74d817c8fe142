//! Every operation on a medium against a slow oracle, on random histories.

use flashlore_array::element::{OperationKind, Traffic};
use flashlore_array::rivals::RivalCounters;
use flashlore_array::{Element, Rival};
use proptest::prelude::*;

use crate::common::{SORTS, Sort, content, draw_options, one_machine, rival};
use crate::heard::{Ear, Phase, Step};
use crate::oracle::Oracle;
use crate::support::{Draw, Op, Value, operations, page};

fn do_it(rival: &mut Rival, op: Op, expected: Value) {
    match op {
        Op::Read(block) => {
            let mut found = [1; 4096];
            rival.read(block as u64, &mut found).unwrap();
            assert!(
                found == page(expected),
                "block {block} holds something else"
            );
        }
        Op::Write(block, value) => rival.write(block as u64, &page(value)).unwrap(),
        Op::Trim(block) => rival.trim(block as u64).unwrap(),
        Op::Flush => rival.flush().unwrap(),
    }
    if let Err(error) = rival.check() {
        panic!("after {op:?}: {error}");
    }
}

/// Histories in which contents come again.
fn history(draw: &mut Draw, count: usize, blocks: usize) -> Vec<Op> {
    let contents = draw.pick(&[1, 4, 20, 1000]);
    let mut ops = operations(draw, count, blocks);
    for op in &mut ops {
        if let Op::Write(_, value) = op {
            *value = content(draw.below(contents));
        }
    }
    ops
}

fn add(fast: &mut Traffic, slow: &mut Traffic, phase: &Phase) {
    fast.reads += phase.fast_reads;
    fast.read_bytes += 4096 * phase.fast_reads;
    fast.writes += phase.fast_writes;
    fast.written_bytes += 4096 * phase.fast_writes;
    fast.syncs += phase.fast_syncs;
    for &(kind, _, blocks) in &phase.slow {
        match kind {
            OperationKind::Read => {
                slow.reads += 1;
                slow.read_bytes += 4096 * blocks;
            }
            OperationKind::Write => {
                slow.writes += 1;
                slow.written_bytes += 4096 * blocks;
            }
            OperationKind::Sync => slow.syncs += 1,
        }
    }
}

fn run(sort: Sort, seed: u64, count: usize) -> RivalCounters {
    let mut draw = Draw::new(seed);
    let options = draw_options(&mut draw);
    let blocks = draw.between(1, 60) as usize;
    let ops = history(&mut draw, count, blocks);
    let mut rival = rival(sort, &one_machine(blocks as u32), &options);
    let mut oracle = Oracle::new(sort, options.clone(), blocks);
    let ear = Ear::default();
    rival.observe(Box::new(ear.clone()));
    let (mut fast, mut slow) = (Traffic::default(), Traffic::default());
    for (number, &op) in ops.iter().enumerate() {
        let expected = oracle.run(op);
        let value = match op {
            Op::Read(block) => oracle.value(block),
            _ => 0,
        };
        do_it(&mut rival, op, value);
        assert_eq!(ear.step(), expected, "{sort:?} at {number}: {op:?}");
        never_waits_for_home(sort, options.clean_ahead, &expected);
        add(&mut fast, &mut slow, &expected.foreground);
        add(&mut fast, &mut slow, &expected.background);
    }
    let statistics = rival.statistics();
    assert_eq!((statistics.fast, statistics.slow), (fast, slow));
    let number = |wanted: fn(&Op) -> bool| ops.iter().filter(|op| wanted(op)).count() as u64;
    assert_eq!(statistics.reads, number(|op| matches!(op, Op::Read(_))));
    assert_eq!(statistics.writes, number(|op| matches!(op, Op::Write(..))));
    assert_eq!(statistics.trims, number(|op| matches!(op, Op::Trim(_))));
    assert_eq!(statistics.flushes, number(|op| matches!(op, Op::Flush)));
    assert_eq!(rival.counters().background_failures, 0);
    rival.counters()
}

fn never_waits_for_home(sort: Sort, clean_ahead: bool, step: &Step) {
    if clean_ahead && matches!(sort, Sort::Lru | Sort::Dedup) {
        let mut slow = step.foreground.slow.iter();
        assert!(!slow.any(|(kind, ..)| *kind == OperationKind::Write));
    }
}

proptest! {
    // A history is its seed and its length: a shorter one with the same seed is the same at first.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_operation_is_as_described(seed: u64, count in 1usize..400) {
        for sort in SORTS {
            run(sort, seed, count);
        }
    }
}

fn total(sort: Sort) -> RivalCounters {
    let mut all = RivalCounters::default();
    for seed in 0..60 {
        let one = run(sort, seed, 600);
        all.read_hits += one.read_hits;
        all.read_misses += one.read_misses;
        all.write_hits += one.write_hits;
        all.write_misses += one.write_misses;
        all.fills += one.fills;
        all.shared_fills += one.shared_fills;
        all.shared_writes += one.shared_writes;
        all.silent_writes += one.silent_writes;
        all.replaced += one.replaced;
        all.replaced_blocks += one.replaced_blocks;
        all.written_home += one.written_home;
        all.batches += one.batches;
    }
    all
}

#[test]
fn long_histories_reach_everything_many_times() {
    let (lru, dedup) = (total(Sort::Lru), total(Sort::Dedup));
    for all in [lru, dedup] {
        let reached = [
            all.read_hits,
            all.read_misses,
            all.write_hits,
            all.write_misses,
            all.fills,
            all.replaced,
            all.written_home - all.batches,
        ];
        assert!(reached.iter().all(|&count| count >= 300), "{all:?}");
    }
    assert_eq!(lru.replaced, lru.replaced_blocks);
    assert_eq!(lru.fills, lru.read_misses);
    assert_eq!(lru.shared_fills + lru.shared_writes + lru.silent_writes, 0);
    assert_eq!(dedup.fills + dedup.shared_fills, dedup.read_misses);
    let shared = [
        dedup.shared_fills,
        dedup.shared_writes,
        dedup.silent_writes,
        dedup.replaced_blocks - dedup.replaced,
    ];
    assert!(shared.iter().all(|&count| count >= 300), "{dedup:?}");
}
