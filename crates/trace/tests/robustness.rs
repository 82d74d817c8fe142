//! The corpus of the fuzzer and simple mutations of it, the same ones at every run.

mod exercise;

use std::path::Path;

use exercise::exercise;

/// Mutations of each file of the corpus.
const ROUNDS: usize = 40;

/// A xorshift generator: mutations need variety, not quality.
struct Generator(u64);

impl Generator {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

fn corpus() -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/detect");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Generator) {
    let at = random.below(bytes.len());
    match random.below(6) {
        0 => bytes.truncate(at),
        1 => bytes.insert(
            at,
            [b'0', b' ', b',', b'.', b'\n', 0, 0xff][random.below(7)],
        ),
        2 => drop(
            bytes.splice(
                at..at,
                other
                    .iter()
                    .skip(random.below(other.len()))
                    .take(80)
                    .copied(),
            ),
        ),
        3 => drop(bytes.drain(at..(at + random.below(40)).min(bytes.len()))),
        4 => drop(
            bytes.splice(
                at..at,
                b"99999999999999999999"
                    .iter()
                    .copied()
                    .take(random.below(20)),
            ),
        ),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

#[test]
fn every_seed_is_a_trace() {
    for (name, bytes) in corpus() {
        assert!(exercise(&bytes) > 0, "{name} is not a trace in any format");
    }
}

#[test]
fn mutated_seeds_break_nothing() {
    let corpus = corpus();
    let mut random = Generator(0x9e37_79b9_7f4a_7c15);
    let mut accepted = 0;
    for (_, seed) in &corpus {
        for _ in 0..ROUNDS {
            let mut bytes = seed.clone();
            for _ in 0..1 + random.below(4) {
                let other = &corpus[random.below(corpus.len())].1;
                mutate(&mut bytes, other, &mut random);
            }
            accepted += usize::from(exercise(&bytes) > 0);
        }
    }
    let tried = corpus.len() * ROUNDS;
    assert!(
        accepted * 20 > tried,
        "mutations spoil nearly everything: {accepted} of {tried}"
    );
    assert!(accepted < tried, "mutations spoil nothing");
}
