//! Media with bits that flipped, and media of arbitrary bytes: an array that is opened holds what was written or
//! says that it cannot read it, and nothing panics.

use crate::support;

use std::sync::Arc;

use flashlore_array::{ArrayError, Element};
use flashlore_medium::MemoryMedium;
use proptest::prelude::*;
use support::{Attended, Draw, Op, Setup, Value, operations, page};

type Images = (Vec<u8>, Vec<u8>);

fn open(setup: &Setup, images: &Images) -> Result<Attended, ArrayError> {
    setup.open(
        Arc::new(MemoryMedium::from_bytes(images.0.clone())),
        Arc::new(MemoryMedium::from_bytes(images.1.clone())),
    )
}

/// What is on the media after a history, and the states that may be found.
struct Written {
    setup: Setup,
    images: Images,
    states: Vec<Vec<Value>>,
}

/// A history that ends with a flush and perhaps an opening. Without one its last group may rot unnoticed, so that
/// the states since the flush before the last one are allowed.
fn written(seed: u64, is_opened_again: bool) -> Written {
    let mut draw = Draw::new(seed);
    let setup = Setup::draw(&mut draw);
    let (fast, slow) = setup.images();
    let fast = Arc::new(MemoryMedium::from_bytes(fast));
    let slow = Arc::new(MemoryMedium::from_bytes(slow));
    let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
    let mut states = vec![vec![0; setup.blocks()]];
    let mut ops = operations(&mut draw, 200, setup.blocks());
    ops.extend([
        Op::Flush,
        Op::Write(0, 7 << 16 | 9),
        Op::Write(1, 1 << 16 | 3),
        Op::Flush,
    ]);
    let count = ops.len();
    for (number, op) in ops.into_iter().enumerate() {
        let mut state = states[states.len() - 1].clone();
        setup.apply(&mut element, op, &mut state);
        if op == Op::Flush && number + 1 < count {
            states.clear();
        }
        states.push(state);
    }
    drop(element);
    if is_opened_again {
        drop(setup.open(fast.clone(), slow.clone()).unwrap());
        states.drain(..states.len() - 1);
    }
    let bytes = |medium: Arc<MemoryMedium>| Arc::into_inner(medium).unwrap().into_bytes();
    Written {
        images: (bytes(fast), bytes(slow)),
        setup,
        states,
    }
}

/// Opens damaged media; answers how many blocks cannot be read, or nothing if they are refused.
fn survives(written: &Written, images: &Images, how: &str) -> Option<usize> {
    let setup = &written.setup;
    let mut element = open(setup, images).ok()?;
    element
        .check()
        .unwrap_or_else(|error| panic!("{how}: {error}"));
    let mut unreadable = 0;
    let mut fits: Vec<&Vec<Value>> = written.states.iter().collect();
    for block in 0..setup.blocks() {
        let mut found = [1; 4096];
        match element.read(setup.lba(block), &mut found) {
            Ok(()) => fits.retain(|state| page(state[block]) == found),
            Err(_) => unreadable += 1,
        }
        assert!(
            !fits.is_empty(),
            "{how}: block {block} holds something else"
        );
    }
    Some(unreadable)
}

#[test]
fn a_flipped_bit_costs_blocks_but_never_gives_other_data() {
    let (mut refused, mut lost, mut harmless) = (0, 0, 0);
    for seed in 0..12 {
        let written = written(seed, seed % 2 == 0);
        let mut draw = Draw::new(seed);
        for device in 0..2 {
            let blocks = [&written.images.0, &written.images.1][device].len() / 4096;
            for block in 0..blocks {
                let within = draw.pick(&[64, 4096]);
                let at = block * 4096 + draw.below(within) as usize;
                let mut images = written.images.clone();
                [&mut images.0, &mut images.1][device][at] ^= 1 << draw.below(8);
                match survives(
                    &written,
                    &images,
                    &format!("seed {seed}, device {device}, byte {at}"),
                ) {
                    None => refused += 1,
                    Some(0) => harmless += 1,
                    Some(_) => lost += 1,
                }
            }
        }
    }
    println!("{refused} refused, {lost} with unreadable blocks, {harmless} harmless");
    assert!(refused >= 20 && lost >= 100 && harmless >= 100);
}

#[test]
fn blocks_of_noise_and_blocks_in_other_places_are_no_other_data() {
    let mut opened = 0;
    for seed in 20..30 {
        let written = written(seed, seed % 2 == 0);
        let mut draw = Draw::new(seed);
        for number in 0..150 {
            let (mut fast, mut slow) = written.images.clone();
            let bytes = if draw.chance(30) {
                &mut fast
            } else {
                &mut slow
            };
            let blocks = bytes.len() as u64 / 4096;
            let (from, to) = (
                draw.below(blocks) as usize * 4096,
                draw.below(blocks) as usize * 4096,
            );
            if draw.chance(50) {
                bytes.copy_within(from..from + 4096, to);
            } else {
                (0..4096).for_each(|at| bytes[to + at] = draw.number() as u8);
            }
            opened += usize::from(
                survives(&written, &(fast, slow), &format!("{seed}, {number}")).is_some(),
            );
        }
    }
    assert!(opened >= 500, "only {opened} were opened");
}

#[test]
fn media_of_two_arrays_are_refused() {
    let (a, b) = (written(1, true), written(2, true));
    let mixed = (a.images.0.clone(), b.images.1.clone());
    assert!(open(&b.setup, &mixed).is_err());
    let swapped = (a.images.1.clone(), a.images.0.clone());
    assert!(open(&a.setup, &swapped).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The superblocks hold, and all checksums of what follows are made to hold, so that arbitrary numbers are
    /// reached.
    #[test]
    fn arbitrary_numbers_behind_checksums_that_hold_are_refused_or_harmless(seed: u64) {
        let mut draw = Draw::new(seed);
        let written = written(seed % 8, draw.chance(50));
        let (mut fast, mut slow) = written.images.clone();
        let blocks = slow.len() as u64 / 4096;
        for _ in 0..draw.between(1, 6) {
            let block = draw.below(blocks.min(80)) as usize;
            let bytes = &mut slow[block * 4096..][..4096];
            for _ in 0..draw.between(1, 8) {
                let limit = draw.pick(&[64, 256, 4096]);
                bytes[8 + draw.below(limit - 8) as usize] = draw.pick(&[0, 1, 2, 4, 255, 16, 97]);
            }
            reseal(bytes, block as u64, &written.setup);
        }
        if draw.chance(20) {
            fast.fill(draw.number() as u8);
        }
        if let Ok(mut element) = open(&written.setup, &(fast, slow)) {
            element.check().map_err(TestCaseError::fail)?;
            for block in 0..written.setup.blocks() {
                let _ = element.read(written.setup.lba(block), &mut [0; 4096]);
            }
            for op in operations(&mut draw, 60, written.setup.blocks()) {
                let _ = match op {
                    Op::Write(block, value) => element.write(written.setup.lba(block), &page(value)),
                    Op::Trim(block) => element.trim(written.setup.lba(block)),
                    Op::Read(block) => element.read(written.setup.lba(block), &mut [0; 4096]),
                    Op::Flush => element.flush(),
                };
            }
        }
    }
}

/// Makes the checksum of a structure hold, wherever it lies.
fn reseal(bytes: &mut [u8], block: u64, setup: &Setup) {
    let areas = flashlore_array::icash::format::Areas::of(&setup.shape);
    let position = match &bytes[..4] {
        b"FLIC" => block,
        b"FLAL" => block - areas.log,
        _ => block * 4096,
    };
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&position.to_le_bytes());
    hasher.update(&bytes[8..]);
    let sum = hasher.finalize();
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn arbitrary_media_are_refused() {
    let mut draw = Draw::new(1);
    let setup = Setup::draw(&mut draw);
    for _ in 0..50 {
        let mut noise = |length: u64| {
            let blocks = draw.below(length) as usize;
            (0..blocks * 4096)
                .map(|_| draw.number() as u8)
                .collect::<Vec<u8>>()
        };
        let images = (noise(20), noise(60));
        assert!(open(&setup, &images).is_err());
    }
}
