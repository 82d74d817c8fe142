//! What images of clones cost: identical blocks a few bytes, images with another layout everything, and what plain
//! compression makes of the same images.

use crate::support;

use std::sync::Arc;

use flashlore_array::Element;
use flashlore_array::icash::{
    Compression, ICash, Image, Machine, Options, Shape, Similarity, bytes_needed, create, lba,
};
use flashlore_medium::MemoryMedium;
use support::page;

const BLOCKS: u32 = 300;

/// Native content, incompressible.
fn native(address: u32) -> [u8; 4096] {
    page((1000 + address) << 16)
}

/// The same, with a record changed in one block of ten.
fn clone(address: u32) -> [u8; 4096] {
    let mut content = native(address);
    if address % 10 == 5 {
        content[1000..1040].fill(7);
    }
    content
}

/// Content that compresses and resembles nothing.
fn text(address: u32) -> [u8; 4096] {
    let mut content = page((7000 + address) << 16);
    content[500..].fill(b' ');
    content
}

/// An array of a native machine, laid in, and another one.
fn array(slots: u32, similarity: Similarity, compression: Compression) -> ICash {
    let mut options = Options::new(slots + BLOCKS, 80_000);
    (options.similarity, options.compression) = (similarity, compression);
    let machine = |number| Machine {
        number,
        blocks: BLOCKS,
    };
    let shape = Shape {
        machines: vec![machine(0), machine(1)],
        slots,
        log_segments: options.least_log_segments(64, 0) + 20,
        segment_blocks: 64,
        journal_blocks: 0,
        frozen_blocks: 0,
    };
    let (fast, slow) = bytes_needed(&shape).unwrap();
    let fast = Arc::new(MemoryMedium::new(fast as usize));
    let slow = Arc::new(MemoryMedium::new(slow as usize));
    create(fast.clone(), slow.clone(), [3; 16], &shape).unwrap();
    let mut element = ICash::open(fast, slow, options).unwrap();
    let mut pages = (0..BLOCKS).map(|address| (lba(0, address.into()), native(address)));
    element.lay_in(&mut pages).unwrap();
    element.flush().unwrap();
    element
}

fn make(element: &mut ICash, content: impl Fn(u32) -> [u8; 4096]) -> Image {
    let mut read = |address: u64, page: &mut [u8; 4096]| {
        *page = content(address as u32);
        Ok(())
    };
    let image = element.create_image(0, 1, &mut read).unwrap();
    element.flush().unwrap();
    element.check().unwrap();
    for address in 0..BLOCKS {
        let mut found = [1; 4096];
        element.read(lba(1, address.into()), &mut found).unwrap();
        element.work_off();
        assert!(found == content(address), "address {address}");
    }
    image
}

const PLAIN: (Similarity, Compression) = (Similarity::Signatures, Compression::Never);
const CONTROL: (Similarity, Compression) = (Similarity::Nothing, Compression::IfShorter);

#[test]
fn identical_blocks_cost_a_few_bytes_and_share_blocks_of_the_log() {
    let mut element = array(BLOCKS + 10, PLAIN.0, PLAIN.1);
    let before = element.statistics().slow;
    let image = element.clone_machine(0, 1).unwrap();
    element.flush().unwrap();
    assert_eq!(image.deltas, u64::from(BLOCKS));
    assert!(image.delta_bytes <= u64::from(BLOCKS) * 10, "{image:?}");
    // 20 bytes of a record and at most 10 of delta: 130 of them in a block.
    let written = element.statistics().slow.since(&before).written_bytes / 4096;
    assert!(written <= 300_u64.div_ceil(130), "{written} blocks");
    let stored = element.how_stored(1).unwrap();
    assert_eq!(stored.delta_bytes, image.delta_bytes);
    assert_eq!(stored.deltas, image.deltas);
}

#[test]
fn similarity_pays_at_equal_addresses_and_compression_does_not() {
    let stored = |way: (Similarity, Compression)| {
        let mut element = array(BLOCKS + 10, way.0, way.1);
        make(&mut element, clone);
        element.how_stored(1).unwrap()
    };
    let similar = stored(PLAIN);
    assert_eq!((similar.deltas, similar.home), (300, 0));
    assert!(similar.delta_bytes < 300 * 20, "{similar:?}");
    let control = stored(CONTROL);
    assert_eq!((control.compressed, control.home), (0, 300));
}

#[test]
fn at_other_addresses_compression_does_what_similarity_cannot() {
    let moved = |address: u32| match address % 2 {
        0 => native((address + 40) % BLOCKS),
        _ => text(address),
    };
    let bytes = |way: (Similarity, Compression)| {
        let mut element = array(BLOCKS + 10, way.0, way.1);
        let image = make(&mut element, moved);
        assert_eq!(image.deltas + image.compressed, 150, "{way:?}");
        assert_eq!(image.whole, 150, "{way:?}");
        image.delta_bytes + image.compressed_bytes
    };
    let control = bytes(CONTROL);
    assert!(control < 150 * 700, "{control} bytes");
    // The delta from a block that is not alike is the block compressed by itself.
    assert!(bytes(PLAIN) >= control - 150);
    let both = bytes((Similarity::Signatures, Compression::IfShorter));
    assert!(both <= control);
}

/// Without similarity nothing of the native machine is read or cached for an image.
#[test]
fn the_control_asks_for_nothing_of_the_native_machine() {
    let mut element = array(BLOCKS, CONTROL.0, CONTROL.1);
    let before = element.statistics();
    element.clone_machine(0, 1).unwrap();
    let after = element.statistics();
    // The clone's content is the native machine's: read once as that, and not again as a base.
    assert_eq!(after.slow.reads - before.slow.reads, u64::from(BLOCKS));
    assert_eq!(after.fast.writes, before.fast.writes);
    assert_eq!(element.counters().fills, 0);
}

/// Blocks that differ altogether come first: their native blocks do not stay in the pool, which the later ones need.
#[test]
fn native_blocks_that_are_no_base_leave_the_pool_for_those_that_are() {
    let slots = 100;
    let mut element = array(slots, PLAIN.0, PLAIN.1);
    let image = make(&mut element, |address| match address % 3 {
        0 => clone(address),
        _ => page((9000 + address) << 16),
    });
    // A third of 300 blocks have a base; all but the spare data blocks hold one.
    assert!((96..=100).contains(&image.deltas), "{image:?}");
}
