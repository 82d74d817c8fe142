//! Arrays of older formats are opened as what they are; those of formats to come are refused.

use std::sync::Arc;

use flashlore_array::Element;
use flashlore_array::icash::find;
use flashlore_medium::MemoryMedium;

use crate::support::{Draw, Op, Setup, Value, operations, page};

type Images = (Vec<u8>, Vec<u8>);

/// Lets all superblocks say another version, and something where version 3 has the number of frozen places.
fn of_version(images: &Images, version: u32) -> Images {
    let mut images = images.clone();
    for medium in [&mut images.0, &mut images.1] {
        for (copy, block) in medium.chunks_mut(4096).take(2).enumerate() {
            assert_eq!(block[8..12], 4u32.to_le_bytes(), "what is written now");
            block[8..12].copy_from_slice(&version.to_le_bytes());
            block[60..64].copy_from_slice(&77u32.to_le_bytes());
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(&(copy as u64).to_le_bytes());
            hasher.update(&block[8..]);
            block[4..8].copy_from_slice(&hasher.finalize().to_le_bytes());
        }
    }
    images
}

/// Runs a history, and reads everything.
fn run(setup: &Setup, images: &Images, ops: &[Op], state: &mut [Value]) -> Images {
    let fast = Arc::new(MemoryMedium::from_bytes(images.0.clone()));
    let slow = Arc::new(MemoryMedium::from_bytes(images.1.clone()));
    let mut element = setup.open(fast.clone(), slow.clone()).unwrap();
    for &op in ops {
        setup.apply(&mut element, op, state);
        element.check().unwrap();
    }
    element.verify().unwrap();
    for (block, &value) in state.iter().enumerate() {
        let mut found = [1; 4096];
        element.read(setup.lba(block), &mut found).unwrap();
        assert!(found == page(value), "block {block} holds something else");
    }
    assert_eq!(element.counters().references_frozen, 0);
    element.flush().unwrap();
    drop(element);
    let bytes = |medium: Arc<MemoryMedium>| Arc::into_inner(medium).unwrap().into_bytes();
    (bytes(fast), bytes(slow))
}

#[test]
fn an_array_without_frozen_places_in_its_format_has_none() {
    let mut arrays = 0;
    for seed in 0..40 {
        let mut draw = Draw::new(seed);
        let setup = Setup::draw(&mut draw);
        if setup.shape.frozen_blocks > 0 {
            continue;
        }
        arrays += 1;
        let mut state = vec![0; setup.blocks()];
        let ops = operations(&mut draw, 200, setup.blocks());
        let images = run(&setup, &setup.images(), &ops, &mut state);
        let old = of_version(&images, 2);
        let found = find(&MemoryMedium::from_bytes(old.1.clone())).expect("an array");
        assert_eq!(found.shape, setup.shape);
        let ops = operations(&mut draw, 200, setup.blocks());
        let images = run(&setup, &old, &ops, &mut state);
        run(&setup, &images, &[], &mut state);
    }
    assert!(arrays >= 5, "only {arrays} arrays");
}

#[test]
fn a_format_to_come_is_refused() {
    let setup = Setup::draw(&mut Draw::new(1));
    let (fast, slow) = of_version(&setup.images(), 5);
    let media = [fast, slow].map(|bytes| Arc::new(MemoryMedium::from_bytes(bytes)));
    let opened = setup.open(media[0].clone(), media[1].clone());
    let error = opened.err().expect("a version to come").to_string();
    assert!(
        error.contains("format version 5, expected 1 to 4"),
        "{error}"
    );
}
