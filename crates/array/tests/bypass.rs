//! Long sequential streams pass by: what is used again stays where it is, and what they write is kept like all else.

use crate::support;

use std::sync::Arc;

use flashlore_array::Element;
use flashlore_array::icash::{
    Counters, Fill, ICash, Machine, Options, Shape, TooBig, bytes_needed, create, lba,
};
use flashlore_medium::MemoryMedium;
use support::{Draw, page};

const SLOTS: u32 = 120;
/// Used again and again: they fit on the fast medium.
const WORKING_SET: u64 = 90;
/// Behind them lies what a stream goes through: ten times what the fast medium holds.
const STREAM: u64 = 10 * SLOTS as u64;
const CUTOFF: u32 = 8;

/// An array in which each block has content of its own, opened anew.
fn array(options: &Options, journal_blocks: u32) -> ICash {
    let shape = Shape {
        machines: vec![Machine {
            number: 0,
            blocks: (WORKING_SET + STREAM) as u32,
        }],
        slots: SLOTS,
        log_segments: options.least_log_segments(32, journal_blocks) + 8,
        segment_blocks: 32,
        journal_blocks,
        frozen_blocks: SLOTS,
    };
    let (fast, slow) = bytes_needed(&shape).unwrap();
    let fast = Arc::new(MemoryMedium::new(fast as usize));
    let slow = Arc::new(MemoryMedium::new(slow as usize));
    create(fast.clone(), slow.clone(), [5; 16], &shape).unwrap();
    let mut element = ICash::open(fast, slow, options.clone()).unwrap();
    let mut all = (0..WORKING_SET + STREAM).map(|block| (lba(0, block), page(content(block))));
    element.lay_in(&mut all).unwrap();
    element
}

/// Noise: no block resembles another.
fn content(block: u64) -> u32 {
    (1000 + block as u32) << 16
}

fn options(cutoff: u32) -> Options {
    Options {
        sequential_cutoff: cutoff,
        ram_blocks: 20,
        scan_every: 100,
        // Only just enough for the working set, so that what is pushed out is missed.
        ..Options::new(2 * SLOTS + 10, 400)
    }
}

fn reads(element: &mut ICash, block: u64, expected: u32) {
    let mut found = [0; 4096];
    element.read(lba(0, block), &mut found).unwrap();
    assert!(
        found == page(expected),
        "block {block} holds something else"
    );
    element.work_off();
}

/// Share of accesses to the working set that find what they want in RAM or on the fast medium.
fn hit_rate(element: &mut ICash, draw: &mut Draw) -> f64 {
    let before = *element.counters();
    for _ in 0..60 {
        // No two neighbours: they are no stream.
        let block = 2 * draw.below(WORKING_SET / 2);
        reads(element, block, content(block));
    }
    let done = element.counters().since(&before);
    let Counters {
        hits_independent,
        hits_associate,
        hits_reference,
        misses,
        ..
    } = done;
    let hits = hits_independent + hits_associate + hits_reference;
    hits as f64 / (hits + misses) as f64
}

/// Hit rates before and after a stream over everything behind the working set.
fn around(element: &mut ICash, stream: impl Fn(&mut ICash, u64)) -> (f64, f64) {
    let mut draw = Draw::new(1);
    for _ in 0..10 {
        hit_rate(element, &mut draw);
    }
    let before = hit_rate(element, &mut draw);
    for block in WORKING_SET..WORKING_SET + STREAM {
        stream(element, block);
    }
    element.check().unwrap();
    (before, hit_rate(element, &mut draw))
}

fn new_content(block: u64) -> u32 {
    content(block) | 1
}

fn rewrites(element: &mut ICash, block: u64) {
    let content = page(new_content(block));
    element.write(lba(0, block), &content).unwrap();
    element.work_off();
}

#[test]
fn a_read_of_ten_times_the_fast_medium_leaves_the_working_set_where_it_is() {
    let mut element = array(&options(CUTOFF), 0);
    let (before, after) = around(&mut element, |e, block| reads(e, block, content(block)));
    assert!(
        before == 1.0 && after >= 0.9,
        "from {before:.2} to {after:.2}"
    );
    let counters = element.counters();
    assert_eq!(counters.bypassed_reads, STREAM - u64::from(CUTOFF));
    // Without a cutoff it is gone.
    let mut element = array(&options(0), 0);
    let (before, after) = around(&mut element, |e, block| reads(e, block, content(block)));
    assert!(
        before == 1.0 && after < 0.5,
        "from {before:.2} to {after:.2}"
    );
    assert_eq!(element.counters().bypassed_reads, 0);
}

#[test]
fn a_write_of_ten_times_the_fast_medium_does_so_too_and_goes_home() {
    for (too_big, journal_blocks) in [(TooBig::Fast, 0), (TooBig::Log, 0), (TooBig::Fast, 200)] {
        let options = Options {
            too_big,
            ..options(CUTOFF)
        };
        let mut element = array(&options, journal_blocks);
        let slots_before = element.counters().slot_writes;
        let (before, after) = around(&mut element, rewrites);
        let how = format!("{too_big:?}, {journal_blocks}: from {before:.2} to {after:.2}");
        assert!(before == 1.0 && after >= 0.9, "{how}");
        let counters = *element.counters();
        let passed = STREAM - u64::from(CUTOFF);
        assert_eq!(counters.bypassed_writes, passed, "{how}");
        // The working set was copied to the fast medium, and the begin of the stream.
        let most = WORKING_SET + u64::from(CUTOFF);
        assert!(counters.slot_writes - slots_before <= most, "{how}");
        if journal_blocks == 0 {
            let left = passed - counters.bypassed_home;
            assert!(left <= 2 * options.write_back_batch as u64, "{how}");
        }
        element.flush().unwrap();
        element.verify().unwrap();
        for block in WORKING_SET..WORKING_SET + STREAM {
            reads(&mut element, block, new_content(block));
        }
    }
}

/// Several streams, one of them of small requests, and single accesses in between.
#[test]
fn streams_side_by_side_pass_by() {
    let mut element = array(&options(CUTOFF), 0);
    let third = STREAM / 3;
    for number in 0..third {
        for stream in 0..3 {
            let block = WORKING_SET + stream * third + number;
            match stream {
                1 => rewrites(&mut element, block),
                _ => reads(&mut element, block, content(block)),
            }
            if stream == 2 {
                reads(&mut element, block, content(block));
            }
        }
        reads(
            &mut element,
            number * 7 % WORKING_SET,
            content(number * 7 % WORKING_SET),
        );
    }
    element.check().unwrap();
    let counters = element.counters();
    let passed = third - u64::from(CUTOFF);
    assert_eq!(counters.bypassed_writes, passed);
    // Each block of the third stream was read twice; only the last one before the cutoff ends there.
    assert!(counters.bypassed_reads >= 3 * passed);
}

/// What a stream writes over was cached in every state; and what passes by is trimmed, written and read again.
#[test]
fn what_passes_by_takes_the_place_of_what_is_cached() {
    let mut element = array(
        &Options {
            fill: Fill::Read,
            flush_blocks: 100,
            ..options(3)
        },
        0,
    );
    let family = |version: u32| 3 << 16 | version;
    for block in 0..20 {
        element
            .write(
                lba(0, 2 * block % 20 + block / 10),
                &page(family(block as u32)),
            )
            .unwrap();
        element.work_off();
    }
    element.flush().unwrap();
    for block in 0..20 {
        rewrites(&mut element, block);
        element.check().unwrap();
    }
    assert!(element.counters().bypassed_writes >= 16);
    element.trim(lba(0, 5)).unwrap();
    element.check().unwrap();
    element.write(lba(0, 9), &page(family(77))).unwrap();
    element.check().unwrap();
    for when in ["waiting", "in the log"] {
        for block in [3, 7, 5, 9, 11] {
            let expected = match block {
                5 => 0,
                9 => family(77),
                _ => new_content(block),
            };
            let mut found = [0; 4096];
            element.read(lba(0, block), &mut found).unwrap();
            assert!(found == page(expected), "block {block} {when}");
            element.check().unwrap();
        }
        element.flush().unwrap();
        element.verify().unwrap();
    }
}
