//! The corpus of the fuzzer and simple mutations of it, the same ones at every run.

use crate::exercise;

use std::io::Cursor;
use std::path::Path;

use exercise::exercise;
use flashlore_trace::formats::native::NativeWriter;
use flashlore_trace::{Batch, Op, ReadOptions, Record, TraceReader};

/// Mutations of each file of the corpus.
const ROUNDS: usize = 40;

/// Forgeries of a native trace.
const FORGERIES: usize = 4000;

/// Where the checksum of a native trace stands and what it covers begins.
const SUM_AT: usize = 12;
const SEALED_AT: usize = 44;

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

/// A native trace whose value ids and ratios do not compress: their pages hold them bare, where a mutation
/// reaches the decoder.
fn native(random: &mut Generator) -> Vec<u8> {
    let mut writer = NativeWriter::new(Cursor::new(Vec::new())).unwrap();
    for number in 0..300u64 {
        let content: Vec<u32> = (0..1 + number % 3)
            .map(|_| random.below(1 << 31) as u32)
            .collect();
        let op = [Op::Read, Op::Write][random.below(2)];
        let ratios: Vec<u16> = content.iter().map(|&value| value as u16 | 1).collect();
        let record = Record {
            time_ns: number * 1000 + random.below(1000) as u64,
            device: random.below(3) as u32,
            op,
            offset: random.below(1 << 40) as u64 * 512,
            length: content.len() as u64 * 4096,
            content: (number % 5 > 0).then_some(&content),
            delta_ratios: (op == Op::Write && number % 4 > 0).then_some(&ratios),
        };
        writer.push(&record).unwrap();
    }
    let names = flashlore_trace::DeviceNames::new(flashlore_trace::devices::NameStyle::Number);
    writer.finish(&names, 0).unwrap().into_inner()
}

fn read_all(bytes: Vec<u8>) -> Result<u64, String> {
    let mut reader = TraceReader::from_bytes("forged", bytes, &ReadOptions::default())
        .map_err(|error| error.to_string())?;
    let mut batch = Batch::default();
    while reader
        .next_batch(&mut batch)
        .map_err(|error| error.to_string())?
    {}
    Ok(reader.stats().records)
}

#[test]
fn a_forged_native_trace_is_an_error_and_no_panic() {
    let mut random = Generator(0x9e37_79b9_7f4a_7c15);
    let sound = native(&mut random);
    assert_eq!(read_all(sound.clone()), Ok(300));
    let (mut refused, mut panics) = (0, 0);
    for _ in 0..FORGERIES {
        let mut bytes = sound.clone();
        for _ in 0..1 + random.below(3) {
            let at = SEALED_AT + random.below(bytes.len() - SEALED_AT);
            match random.below(3) {
                0 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                1 => bytes[at] = bytes[SEALED_AT + random.below(bytes.len() - SEALED_AT)],
                _ => bytes[at] ^= 1 << random.below(8),
            }
        }
        let sum = blake3::hash(&bytes[SEALED_AT..]);
        bytes[SUM_AT..SEALED_AT].copy_from_slice(sum.as_bytes());
        if let Err(message) = read_all(bytes) {
            assert!(message.starts_with("forged"), "{message}");
            refused += 1;
            panics += usize::from(message.contains("it is damaged: the Parquet decoder failed"));
        }
    }
    assert!(refused > FORGERIES / 4, "{refused} of {FORGERIES} refused");
    assert!(panics > 0, "no forgery made the decoder panic");
}
