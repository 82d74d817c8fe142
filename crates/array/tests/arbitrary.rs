//! Arbitrary bytes over the media of a valid array never make anything panic; what the fuzzer does for hours, for a
//! moment.

use crate::exercise;
use crate::support;

use exercise::exercise;
use support::Draw;

/// One to four patches, often of few bytes, of extreme ones and of structures that say where the rest is.
fn input(draw: &mut Draw) -> Vec<u8> {
    let mut bytes = vec![draw.below(32) as u8];
    for _ in 0..draw.between(1, 4) {
        let limit = draw.pick(&[14, 64, 256]);
        let block = draw.below(limit);
        let limit = draw.pick(&[64, 256, 4096]);
        let at = draw.below(limit);
        bytes.extend([block as u8, at as u8, (at >> 8) as u8]);
        if draw.chance(10) {
            bytes.extend([255, draw.below(64) as u8]);
            continue;
        }
        let count = draw.between(1, 9);
        bytes.push(count as u8);
        let extreme = draw.pick(&[0, 255]);
        let is_extreme = draw.chance(50);
        bytes.extend((0..count).map(|_| match is_extreme {
            true => extreme,
            false => draw.below(256) as u8,
        }));
    }
    bytes
}

#[test]
fn patched_media_are_refused_or_harmless() {
    let mut draw = Draw::new(1);
    let opened = (0..1500).filter(|_| exercise(&input(&mut draw))).count();
    assert!((300..1200).contains(&opened), "{opened} were opened");
}

/// The next checkpoint has the number after it.
#[test]
fn a_root_with_the_last_number_there_is_counts_for_nothing() {
    let mut input = vec![4];
    for block in 2..6 {
        input.extend([block, 16, 0, 8]);
        input.extend([255; 8]);
    }
    assert!(!exercise(&input));
}

/// Both copies of the page of frozen places say that the first two hold the same data block.
#[test]
fn a_data_block_that_is_said_to_be_frozen_twice_is_refused() {
    for array in 16..20 {
        let mut input = vec![4 | array];
        for (page, entry) in [(8, 32), (8, 48), (9, 32), (9, 48)] {
            input.extend([page, entry, 0, 8, 7, 0, 0, 0, 99, 0, 0, 0]);
        }
        assert!(!exercise(&input), "array {array}");
    }
}

#[test]
fn the_seeds_of_the_fuzzer_are_refused_or_harmless() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/array");
    let mut count = 0;
    for seed in std::fs::read_dir(corpus).expect("the corpus is there") {
        let path = seed.expect("an entry of the corpus").path();
        exercise(&std::fs::read(path).expect("a seed"));
        count += 1;
    }
    assert!(count >= 8, "only {count} seeds");
}

#[test]
fn every_array_can_be_opened_as_it_is() {
    for number in 0..32 {
        assert!(exercise(&[number]));
    }
}
