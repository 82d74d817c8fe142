//! The element under requests with locality: half of them writes, four of five to a fifth of the blocks.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;
use flashlore_array::Element;
use flashlore_array::icash::{
    Compression, ICash, Machine, Options, Shape, Similarity, bytes_needed, create, lba,
};
use flashlore_delta::Page;
use flashlore_medium::MemoryMedium;

use crate::contents::{below, content, numbers};
use crate::{Row, Table};

const SEGMENT_BLOCKS: u32 = 256;

/// A write of content, or a read.
struct Request {
    block: u64,
    content: Option<Box<Page>>,
}

/// Compression without similarity, which is the control; the paper's way, super-features, both with compression,
/// and neither.
pub fn ways(virtual_blocks: u32, segments: u32) -> Vec<(&'static str, Options)> {
    let paper = Options::new(virtual_blocks, segments);
    let features = Options {
        similarity: Similarity::SuperFeatures,
        ..paper.clone()
    };
    let compressed = |options: &Options| Options {
        compression: Compression::IfShorter,
        ..options.clone()
    };
    let neither = Options {
        similarity: Similarity::Nothing,
        ..paper.clone()
    };
    vec![
        (
            "compression only",
            Options::compression_only(virtual_blocks, segments),
        ),
        ("signatures (the paper's way)", paper.clone()),
        ("super-features", features.clone()),
        ("signatures and compression", compressed(&paper)),
        ("super-features and compression", compressed(&features)),
        ("neither similarity nor compression", neither),
    ]
}

/// A new array of one machine, opened.
pub fn array(blocks: u32, slots: u32, options: &Options) -> ICash {
    let shape = Shape {
        machines: vec![Machine { number: 0, blocks }],
        slots,
        log_segments: options.least_log_segments(SEGMENT_BLOCKS, 0) + blocks / SEGMENT_BLOCKS,
        segment_blocks: SEGMENT_BLOCKS,
        journal_blocks: 0,
        frozen_blocks: 0,
    };
    let (fast, slow) = bytes_needed(&shape).expect("a shape that can be");
    let fast = Arc::new(MemoryMedium::new(fast as usize));
    let slow = Arc::new(MemoryMedium::new(slow as usize));
    create(fast.clone(), slow.clone(), [1; 16], &shape).expect("an array");
    ICash::open(fast, slow, options.clone()).expect("options that fit")
}

/// All blocks are written once; then so many requests follow, which are measured. RAM for deltas is an
/// eighth of the data, the pool of data blocks a tenth.
pub fn table(full: bool) -> Table {
    let (blocks, count) = if full {
        (20_000, 150_000)
    } else {
        (600, 3_000)
    };
    let requests = Rc::new(requests(blocks, count));
    let fill: Rc<Vec<Page>> = Rc::new((0..blocks).map(|block| content(block, 0)).collect());
    let ways = ways(blocks as u32 / 2, blocks as u32 * 8).into_iter();
    let rows = ways
        .map(|(name, mut options)| {
            if !full {
                (options.scan_every, options.flush_blocks) = (200, 4);
            }
            let (requests, fill) = (requests.clone(), fill.clone());
            Row {
                name: name.into(),
                run: Box::new(move |hasher| {
                    let mut element = array(blocks as u32, blocks as u32 / 10, &options);
                    run(&mut element, &fill, &requests, hasher)
                }),
            }
        })
        .collect();
    Table {
        what: "requests of the element",
        rows,
        control: 0,
    }
}

fn requests(blocks: u64, count: usize) -> Vec<Request> {
    let mut numbers = numbers(1);
    let mut versions = vec![0; blocks as usize];
    let mut draw = || {
        let hot = below(&mut numbers, 5) > 0;
        let limit = if hot { blocks / 5 } else { blocks };
        // Neighbours in the order of popularity are none in that of addresses.
        let block = below(&mut numbers, limit) * 7919 % blocks;
        let is_write = below(&mut numbers, 2) == 0;
        let content = is_write.then(|| {
            versions[block as usize] += 1;
            Box::new(content(block, versions[block as usize]))
        });
        Request { block, content }
    };
    (0..count).map(|_| draw()).collect()
}

fn run(
    element: &mut ICash,
    fill: &[Page],
    requests: &[Request],
    hasher: &mut blake3::Hasher,
) -> (Duration, u64) {
    for (block, content) in fill.iter().enumerate() {
        element
            .write(lba(0, block as u64), content)
            .expect("a write");
        element.work_off();
    }
    let mut page = [0; 4096];
    let mut sum = 0u64;
    let begin = ThreadTime::now();
    for request in requests {
        let address = lba(0, request.block);
        match &request.content {
            Some(content) => element.write(address, content).expect("a write"),
            None => {
                element.read(address, &mut page).expect("a read");
                sum = sum.rotate_left(7) ^ u64::from_le_bytes(std::array::from_fn(|n| page[n]));
            }
        }
        element.work_off();
    }
    let time = begin.elapsed();
    hasher.update(&sum.to_le_bytes());
    hasher.update(format!("{:?}", element.counters()).as_bytes());
    (time, requests.len() as u64)
}
