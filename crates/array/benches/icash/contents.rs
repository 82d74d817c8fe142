//! Contents for the benchmark: families of blocks that resemble each other, and blocks that resemble none.

use flashlore_delta::Page;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Families of blocks.
const FAMILIES: u64 = 150;

/// Of so many blocks one resembles no other.
const LONERS: u64 = 7;

/// Words of eight bytes that the compressible part of a block is made of, four of one at a time.
const WORDS: u64 = 32;

/// A seeded stream of numbers.
pub fn numbers(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A number below a limit.
pub fn below(numbers: &mut Xoshiro256PlusPlus, limit: u64) -> u64 {
    ((u128::from(numbers.next_u64()) * u128::from(limit)) >> 64) as u64
}

/// Three quarters compress, as records with few words do; one quarter does not.
pub fn compressible(seed: u64) -> Page {
    let mut numbers = numbers(seed);
    let words: Vec<u64> = (0..WORDS).map(|_| numbers.next_u64()).collect();
    let mut page = [0; 4096];
    for (number, bytes) in page.chunks_exact_mut(32).enumerate() {
        let word = words[below(&mut numbers, WORDS) as usize].to_le_bytes();
        match number % 4 {
            0 => numbers.fill_bytes(bytes),
            _ => bytes.copy_from_slice(&word.repeat(4)),
        }
    }
    page
}

/// What a block holds after so many writes: the content of its family with three short parts of its own and one of
/// this version, or something else altogether.
pub fn content(block: u64, version: u64) -> Page {
    let key = block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    if key.is_multiple_of(LONERS) {
        return compressible(1 << 40 | block << 16 | version);
    }
    let mut page = compressible(key % FAMILIES);
    patch(&mut page, block << 20, 3, 24);
    patch(&mut page, block << 20 | (version + 1), 1, 40);
    page
}

/// Overwrites so many parts of so many bytes.
fn patch(page: &mut Page, seed: u64, parts: u64, bytes: usize) {
    let mut numbers = numbers(seed);
    for _ in 0..parts {
        let at = below(&mut numbers, 4096 - bytes as u64) as usize;
        numbers.fill_bytes(&mut page[at..at + bytes]);
    }
}
