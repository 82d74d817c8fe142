//! Bytes laid over the media of a small valid array, which is then opened, checked, read, written, opened again and
//! read from its slow medium alone. Nothing of it may panic, and whatever is opened keeps its invariants. Shared by
//! a test and the fuzzer.
//!
//! The first byte names the array (bits 0 and 1), whether checksums are made to hold again (bit 2), whether it is
//! written after it was opened (bit 3), and whether it has few slots and frozen places (bit 4). Then follow patches: which block (1 byte), where in it (2 bytes), how many
//! bytes (1 byte; 255: the whole block is copied from the one that the next byte names), the bytes.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use flashlore_array::Element;
use flashlore_array::icash::format::Areas;
use flashlore_array::icash::{
    Compression, ICash, Machine, Options, Shape, Similarity, SlowAlone, TooBig, bytes_needed,
    create, lba,
};
use flashlore_medium::MemoryMedium;

const BLOCK: usize = 4096;
/// Blocks of the native machine; the other one has half as many.
const BLOCKS: u32 = 24;
const SEGMENT_BLOCKS: u32 = 4;

/// Arrays without frozen places.
const ORDINARY: u8 = 4;

type Page = [u8; BLOCK];

/// An array and its media after a history.
struct Image {
    options: Options,
    areas: Areas,
    fast: Vec<u8>,
    slow: Vec<u8>,
}

/// The arrays: the paper's way, ordered write-back, strict mode with compression, super-features; and these with few
/// slots and fewer frozen places.
fn setup(number: u8) -> (Shape, Options) {
    let mut options = Options::new(26, 160);
    options.scan_every = 9;
    options.scan_blocks = 12;
    options.flush_blocks = 1;
    options.write_back_batch = 3;
    match number % ORDINARY {
        2 => {
            options.too_big = TooBig::Log;
            options.compression = Compression::IfShorter;
        }
        3 => options.similarity = Similarity::SuperFeatures,
        _ => {}
    }
    let journal_blocks = if number % ORDINARY == 1 { 8 } else { 0 };
    let (slots, frozen_blocks) = match number < ORDINARY {
        true => (10, 0),
        false => (5, 3),
    };
    let machine = |number, blocks| Machine { number, blocks };
    let shape = Shape {
        machines: vec![machine(0, BLOCKS), machine(9, BLOCKS / 2)],
        slots,
        log_segments: options.least_log_segments(SEGMENT_BLOCKS, journal_blocks) + 2,
        segment_blocks: SEGMENT_BLOCKS,
        journal_blocks,
        frozen_blocks,
    };
    (shape, options)
}

/// Content of one of four families: its first half is the family's, from the second a part is its own.
fn content(number: u32) -> Page {
    let mut page = [0; BLOCK];
    fill(&mut page, number % 4 + 1);
    let own = if number % 7 == 6 { BLOCK } else { 40 };
    fill(&mut page[BLOCK - own..], number + 100);
    if number % 11 == 10 {
        page[..3000].fill(number as u8);
    }
    page
}

fn fill(bytes: &mut [u8], seed: u32) {
    let mut state = seed;
    for byte in bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
    }
}

fn address(block: u32) -> u64 {
    match block.checked_sub(BLOCKS) {
        None => lba(0, block.into()),
        Some(block) => lba(9, block.into()),
    }
}

fn all_blocks() -> Range<u32> {
    0..BLOCKS + BLOCKS / 2
}

/// Writes, reads, trims and flushes in a fixed order.
fn work(element: &mut ICash, from: u32, count: u32) {
    for n in from..from + count {
        let block = n * 7 % all_blocks().end;
        let _ = match n % 8 {
            6 => element.trim(address(block)),
            7 => element.flush(),
            3 | 5 => element.read(address(block / 2), &mut [0; BLOCK]),
            _ => element.write(address(block), &content(n)),
        };
        element.work_off();
    }
}

/// An array that was opened three times, with a checkpoint, groups behind it, and a batch on its way home.
fn image(number: u8) -> &'static Image {
    static IMAGES: [OnceLock<Image>; 8] = [const { OnceLock::new() }; 8];
    IMAGES[usize::from(number)].get_or_init(|| {
        let (shape, options) = setup(number);
        let (fast, slow) = bytes_needed(&shape).unwrap();
        let fast = Arc::new(MemoryMedium::new(fast as usize));
        let slow = Arc::new(MemoryMedium::new(slow as usize));
        create(fast.clone(), slow.clone(), [3; 16], &shape).unwrap();
        for life in 0..3 {
            let mut element = ICash::open(fast.clone(), slow.clone(), options.clone()).unwrap();
            work(&mut element, life * 61, 60 + life);
            element.flush().unwrap();
        }
        let bytes = |medium: Arc<MemoryMedium>| Arc::into_inner(medium).unwrap().into_bytes();
        Image {
            options,
            areas: Areas::of(&shape),
            fast: bytes(fast),
            slow: bytes(slow),
        }
    })
}

/// Both media, block by block: those of the slow one first, for there are the structures.
struct Media<'a> {
    areas: &'a Areas,
    slow: Vec<u8>,
    fast: Vec<u8>,
}

impl Media<'_> {
    fn block(&mut self, number: u8) -> &mut [u8] {
        let slow = self.slow.len() / BLOCK;
        let number = usize::from(number) % (slow + self.fast.len() / BLOCK);
        match number.checked_sub(slow) {
            None => &mut self.slow[number * BLOCK..][..BLOCK],
            Some(number) => &mut self.fast[number * BLOCK..][..BLOCK],
        }
    }

    /// Makes the checksum of a structure hold where it lies.
    fn seal(&mut self, number: u8) {
        let slow = self.slow.len() / BLOCK;
        let (log, journal) = (self.areas.log, self.areas.journal);
        let block = self.block(number);
        let place = match usize::from(number).checked_sub(slow) {
            Some(place) => place as u64,
            None => u64::from(number),
        };
        let position = match &block[..4] {
            b"FLIC" => place,
            b"FLAL" => place.wrapping_sub(log),
            b"FLAJ" => place.wrapping_sub(journal),
            b"FLAR" | b"FLAT" => place * BLOCK as u64,
            _ => return,
        };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&position.to_le_bytes());
        hasher.update(&block[8..]);
        block[4..8].copy_from_slice(&hasher.finalize().to_le_bytes());
    }

    /// Lays the patches over the media.
    fn patch(&mut self, mut rest: &[u8], seals: bool) {
        while let [number, low, high, count, tail @ ..] = rest {
            let copies = *count == 255;
            let count = if copies { 1 } else { usize::from(*count) };
            let (new, after) = tail.split_at(tail.len().min(count));
            if let (true, Some(&from)) = (copies, new.first()) {
                let from = self.block(from).to_vec();
                self.block(*number).copy_from_slice(&from);
            } else {
                let at = usize::from(u16::from_le_bytes([*low, *high])) % BLOCK;
                for (old, new) in self.block(*number)[at..].iter_mut().zip(new) {
                    *old = *new;
                }
            }
            if seals {
                self.seal(*number);
            }
            rest = after;
        }
    }
}

/// Opens, checks, reads and writes; answers whether it could be opened.
pub fn exercise(input: &[u8]) -> bool {
    let first = input.first().copied().unwrap_or(0);
    let image = image(first & 3 | first >> 2 & 4);
    let mut media = Media {
        areas: &image.areas,
        slow: image.slow.clone(),
        fast: image.fast.clone(),
    };
    media.patch(input.get(1..).unwrap_or(&[]), first & 4 != 0);
    let fast = Arc::new(MemoryMedium::from_bytes(media.fast));
    let slow = Arc::new(MemoryMedium::from_bytes(media.slow));
    if let Ok(mut alone) = SlowAlone::open(slow.clone()) {
        for block in all_blocks() {
            let _ = alone.read(address(block), &mut [0; BLOCK]);
        }
    }
    let open = || ICash::open(fast.clone(), slow.clone(), image.options.clone());
    let Ok(mut element) = open() else {
        return false;
    };
    holds(&element);
    for block in all_blocks() {
        let _ = element.read(address(block), &mut [0; BLOCK]);
    }
    holds(&element);
    let _ = element.verify();
    if first & 8 != 0 {
        work(&mut element, 500, 80);
        holds(&element);
        let _ = element.clone_machine(0, 9);
        holds(&element);
    }
    drop(element);
    if let Ok(element) = open() {
        holds(&element);
    }
    true
}

fn holds(element: &ICash) {
    if let Err(error) = element.check() {
        panic!("{error}");
    }
}
