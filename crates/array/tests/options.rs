//! What each option changes, and what an observer hears.

use crate::support;

use std::sync::Arc;

use flashlore_array::Element;
use flashlore_array::element::{Device, DeviceOperation, Observer, OperationKind, Traffic, Work};
use flashlore_array::icash::{
    Compression, Fill, ICash, Machine, Options, Shape, Similarity, TooBig, bytes_needed, create,
    lba,
};
use flashlore_delta::Codec;
use flashlore_medium::MemoryMedium;
use parking_lot::Mutex;
use support::{Draw, page};

type Page = [u8; 4096];

/// Two media with an array on them.
fn media(shape: &Shape) -> (Arc<MemoryMedium>, Arc<MemoryMedium>) {
    let (fast, slow) = bytes_needed(shape).unwrap();
    let fast = Arc::new(MemoryMedium::new(fast as usize));
    let slow = Arc::new(MemoryMedium::new(slow as usize));
    create(fast.clone(), slow.clone(), [7; 16], shape).unwrap();
    (fast, slow)
}

fn open(options: Options) -> ICash {
    let machine = |number, blocks| Machine { number, blocks };
    let shape = Shape {
        machines: vec![machine(0, 200), machine(1, 200)],
        slots: 100,
        log_segments: options.least_log_segments(32, 0) + 8,
        segment_blocks: 32,
        journal_blocks: 0,
        frozen_blocks: 0,
    };
    let (fast, slow) = media(&shape);
    ICash::open(fast, slow, options).unwrap()
}

fn options() -> Options {
    Options {
        scan_every: 64,
        ..Options::new(300, 4000)
    }
}

fn write(element: &mut ICash, address: u64, content: &Page) {
    element.write(lba(0, address), content).unwrap();
    element.work_off();
}

fn holds(element: &mut ICash, address: u64, content: &Page) {
    let mut found = [1; 4096];
    element.read(lba(0, address), &mut found).unwrap();
    element.work_off();
    assert!(found == *content, "block {address}");
    element.check().unwrap();
}

#[test]
fn in_strict_mode_no_write_of_the_host_is_a_write_of_the_fast_medium() {
    let fast_writes = |too_big| {
        let mut options = options();
        options.too_big = too_big;
        options.scan_every = u64::MAX;
        let mut element = open(options);
        let before = element.statistics().fast.writes;
        for address in 0..80 {
            write(&mut element, address, &page((100 + address as u32) << 16));
            write(&mut element, address, &page((300 + address as u32) << 16));
        }
        element.flush().unwrap();
        let written = element.statistics().fast.writes - before;
        for address in 0..80 {
            holds(&mut element, address, &page((300 + address as u32) << 16));
        }
        element.verify().unwrap();
        written
    };
    assert_eq!(fast_writes(TooBig::Log), 0);
    assert_eq!(fast_writes(TooBig::Fast), 160);
}

/// Text whose compressed form is short, another one for each number.
fn text(number: u64) -> Page {
    let mut content = [b' '; 4096];
    let mut draw = Draw::new(number);
    for word in content.chunks_mut(16) {
        word[..6].copy_from_slice(&[b'a' + draw.below(4) as u8; 6]);
    }
    content
}

#[test]
fn compression_alone_finds_no_similar_blocks() {
    let mut element = open(Options {
        scan_every: 20,
        ..Options::compression_only(300, 4000)
    });
    for address in 0..100 {
        write(&mut element, address, &text(address % 7));
        element.write(lba(1, address), &text(address % 7)).unwrap();
        element.work_off();
    }
    for address in 0..100 {
        holds(&mut element, address, &text(address % 7));
    }
    let counters = element.counters();
    assert_eq!((counters.deltas, element.states().references), (0, 0));
    assert_eq!(counters.alone, 200);
    assert!(counters.scans >= 10);
}

#[test]
fn a_block_is_compressed_by_itself_where_that_is_shorter() {
    let alone = |compression| {
        let mut options = options();
        options.compression = compression;
        // The exclusive or with noise is noise.
        options.codec = Codec::Lz4;
        let mut element = open(options);
        // Blocks that resemble each other; then each becomes what compresses better than it differs from them.
        for round in 0..4 {
            for address in 0..40 {
                write(
                    &mut element,
                    address,
                    &page((1 << 16) | ((round * 40 + address) as u32 * 8 % 64 + 1)),
                );
            }
        }
        assert!(element.states().associates >= 20);
        for address in 0..40 {
            write(&mut element, address, &[address as u8 + 1; 4096]);
            holds(&mut element, address, &[address as u8 + 1; 4096]);
        }
        element.counters().alone
    };
    assert_eq!(alone(Compression::Never), 0);
    assert!(alone(Compression::IfShorter) >= 20);
}

/// Blocks of which each is the one before, shifted by some bytes: no sub-signature stays, all strings do.
#[test]
fn super_features_find_what_moved() {
    let associates = |similarity| {
        let mut options = options();
        options.similarity = similarity;
        let mut element = open(options);
        let shifted = |address: u64| {
            let mut content = page(1 << 16);
            content.rotate_right(52 * address as usize);
            content
        };
        for address in 0..64 {
            write(&mut element, address % 32, &shifted(address % 32));
        }
        for address in 0..32 {
            holds(&mut element, address, &shifted(address));
        }
        element.states().associates
    };
    assert_eq!(associates(Similarity::Signatures), 0);
    assert!(associates(Similarity::SuperFeatures) >= 20);
    assert_eq!(associates(Similarity::Nothing), 0);
}

/// A thousand accesses to one kind of block long ago weigh less than fewer ones since.
#[test]
fn a_halved_heatmap_lets_the_popular_block_of_today_be_the_reference() {
    let old_is_reference = |halve_heatmap| {
        let mut options = options();
        options.halve_heatmap = halve_heatmap;
        let mut element = open(options);
        // Resemble each other: half of each is the same, the rest is the block's own.
        let mut old = page(1 << 16);
        let mut new = old;
        old[..512].copy_from_slice(&page(2 << 16)[..512]);
        new[..512].copy_from_slice(&page(3 << 16)[..512]);
        let other = page(900 << 16);
        write(&mut element, 0, &old);
        for _ in 0..320 {
            holds(&mut element, 0, &old);
        }
        write(&mut element, 2, &other);
        for _ in 0..192 {
            holds(&mut element, 2, &other);
        }
        write(&mut element, 1, &new);
        // A scan every 64 accesses: the next one sees both, 321 accesses to the old one and fewer to the new one.
        while element.states().references == 0 {
            holds(&mut element, 1, &new);
        }
        // The reference's own content is in its data block: writing it again is a delta from itself.
        let before = element.counters().own_deltas;
        write(&mut element, 0, &old);
        element.counters().own_deltas > before
    };
    assert!(old_is_reference(false));
    assert!(!old_is_reference(true));
}

/// What an observer heard.
#[derive(Debug, Default)]
struct Heard {
    fast: Traffic,
    slow: Traffic,
    encodes: u64,
    decodes: u64,
    signatures: u64,
    backgrounds: u64,
}

struct Ear(Arc<Mutex<Heard>>);

impl Observer for Ear {
    fn device(&mut self, operation: DeviceOperation) {
        let mut heard = self.0.lock();
        assert_eq!(operation.kind == OperationKind::Sync, operation.bytes == 0);
        match operation.device {
            Device::Fast => heard.fast.add(&operation),
            Device::Slow => heard.slow.add(&operation),
        }
    }

    fn work(&mut self, work: Work, bytes: usize) {
        assert_eq!(bytes, 4096);
        let mut heard = self.0.lock();
        match work {
            Work::Encode => heard.encodes += 1,
            Work::Decode => heard.decodes += 1,
            Work::Signature => heard.signatures += 1,
            Work::Fingerprint => panic!("I-CASH computes no strong hash"),
        }
    }

    fn begin_background(&mut self) {
        self.0.lock().backgrounds += 1;
    }
}

#[test]
fn an_observer_hears_every_operation_and_where_the_background_begins() {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let mut element = open(options());
    let before = element.statistics();
    element.observe(Box::new(Ear(heard.clone())));
    for address in 0..150 {
        write(
            &mut element,
            address,
            &page((1 + address as u32 % 5) << 16 | address as u32),
        );
    }
    let mut found = [0; 4096];
    for address in 0..150 {
        element.read(lba(0, address), &mut found).unwrap();
        element.work_off();
    }
    element.flush().unwrap();
    let after = element.statistics();
    let heard = heard.lock();
    assert_eq!(heard.fast.reads, after.fast.reads - before.fast.reads);
    assert_eq!(
        heard.fast.written_bytes,
        after.fast.written_bytes - before.fast.written_bytes
    );
    assert_eq!(heard.slow.writes, after.slow.writes - before.slow.writes);
    assert_eq!(heard.slow.syncs, after.slow.syncs - before.slow.syncs);
    assert!(heard.encodes > 0 && heard.decodes > 0 && heard.signatures >= 150);
    assert!(heard.backgrounds >= 300);
    assert_eq!((after.reads, after.writes, after.flushes), (150, 150, 1));
}

/// The block at the same address elsewhere is an associate: its reference serves, and there is no second level.
#[test]
fn a_block_joins_the_reference_of_its_counterpart() {
    let mut element = open(options());
    write(&mut element, 5, &page((1 << 16) | 1));
    write(&mut element, 6, &page((1 << 16) | 2));
    while element.states().associates == 0 {
        holds(&mut element, 5, &page((1 << 16) | 1));
    }
    // The one accessed later is the reference.
    let (reference, associate) = (5, 6);
    let before = element.counters().own_deltas;
    write(&mut element, reference, &page((1 << 16) | 3));
    assert_eq!(element.counters().own_deltas, before + 1);
    element
        .write(lba(1, associate), &page((1 << 16) | 4))
        .unwrap();
    let states = element.states();
    assert_eq!((states.references, states.associates), (1, 2));
    assert_eq!(element.counters().same_address, 1);
    element.check().unwrap();
}

#[test]
fn an_element_may_move_to_another_thread() {
    let mut element = open(options());
    let moved = std::thread::spawn(move || {
        write(&mut element, 3, &page(1 << 16));
        element
    });
    holds(&mut moved.join().unwrap(), 3, &page(1 << 16));
}

#[test]
fn budgets_are_kept_and_told() {
    let mut element = open(Options::new(104, 128));
    for address in 0..200 {
        write(
            &mut element,
            address,
            &page((1 + address as u32 % 5) << 16 | address as u32),
        );
        let states = element.states();
        assert!(states.references + states.associates + states.independents <= 104);
        assert!(element.segments_used().0 <= 128);
    }
    let (used, most) = element.segments_used();
    assert!(used <= most && most <= 128);
    assert_eq!(element.memory().heatmap, 8 * 256 * 4);
    assert!(element.memory().segments <= 128 * 68 * 2);
}

#[test]
fn options_that_cannot_work_are_refused_with_what_would() {
    let refused = |change: fn(&mut Options)| {
        let good = options();
        let shape = Shape {
            machines: vec![Machine {
                number: 0,
                blocks: 9,
            }],
            slots: 100,
            log_segments: good.least_log_segments(32, 0),
            segment_blocks: 32,
            journal_blocks: 0,
            frozen_blocks: 0,
        };
        let (fast, slow) = media(&shape);
        let mut bad = good.clone();
        change(&mut bad);
        let error = ICash::open(fast.clone(), slow.clone(), bad)
            .err()
            .expect("it is refused");
        assert!(ICash::open(fast, slow, good).is_ok());
        error.to_string()
    };
    assert!(refused(|o| o.virtual_blocks = 103).contains("expected 104"));
    assert!(refused(|o| o.segments = 127).contains("expected 128"));
    assert!(refused(|o| o.delta_limit = 2049).contains("expected 1 to 2048"));
    assert!(refused(|o| o.flush_blocks = 1000).contains("expected"));
    assert!(refused(|o| o.scan_every = 0).contains("scan_every = 0"));
}

#[test]
fn a_lazy_fill_waits_for_the_second_read() {
    for (fill, first) in [(Fill::Read, 1), (Fill::SecondRead, 0)] {
        let mut options = options();
        options.fill = fill;
        let mut element = open(options);
        let content = page(900 << 16);
        element
            .lay_in(&mut [(lba(0, 5), content)].into_iter())
            .unwrap();
        let mut fills = Vec::new();
        for _ in 0..3 {
            holds(&mut element, 5, &content);
            fills.push(element.counters().fills);
        }
        assert_eq!(fills, [first, 1, 1]);
    }
}
