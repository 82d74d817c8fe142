//! Speed of generation: records per second of each profile, one thread.
//!
//! Time is what this thread spent on a processor, so that a busy machine disturbs little.
//! `cargo bench -p flashlore-synth` prints the best of interleaved rounds and a hash of the records.
//! Without `--bench` (as `cargo test --bench synth`) it runs small and once. Every round must give the
//! hash of the first.

use cpu_time::ThreadTime;
use flashlore_synth::{PRESETS, ProfileSource, SynthOptions};
use flashlore_trace::{Batch, Op};

const ROUNDS: usize = 3;
const RECORDS: u64 = 500_000;
const SMALL_RECORDS: u64 = 5_000;

struct Case {
    source: ProfileSource,
    records: u64,
    hash: String,
    best_s: f64,
}

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let (rounds, most) = if full {
        (ROUNDS, RECORDS)
    } else {
        (1, SMALL_RECORDS)
    };
    let mut cases: Vec<Case> = PRESETS.iter().map(|p| Case::new(p.name, most)).collect();
    for _ in 0..rounds {
        for case in &mut cases {
            let begin = ThreadTime::now();
            let records = generate(&case.source, |batch| {
                std::hint::black_box(batch);
            });
            case.best_s = case.best_s.min(begin.elapsed().as_secs_f64());
            assert_eq!(records, case.records);
            assert_eq!(hash_of(&case.source), case.hash, "{}", case.source.name);
        }
    }
    for case in &cases {
        println!(
            "{:<18}{:>8} records{:>8.2} million records/s  hash {}",
            case.source.name,
            case.records,
            case.records as f64 / case.best_s / 1e6,
            case.hash
        );
    }
}

impl Case {
    /// A profile scaled down to `most` records.
    fn new(name: &str, most: u64) -> Case {
        let whole = ProfileSource::new(name, SynthOptions::default()).expect("a preset");
        let options = SynthOptions {
            scale: (most as f64 / whole.definition.requests() as f64).min(1.0),
            ..SynthOptions::default()
        };
        let source = ProfileSource::new(name, options).expect("a preset");
        Case {
            records: generate(&source, |_| {}),
            hash: hash_of(&source),
            best_s: f64::INFINITY,
            source,
        }
    }
}

/// Makes all records; how many.
fn generate(source: &ProfileSource, mut see: impl FnMut(&Batch)) -> u64 {
    let mut reader = source.open();
    let mut batch = Batch::default();
    let mut records = 0;
    while reader.next_batch(&mut batch).expect("a preset") {
        records += batch.len() as u64;
        see(&batch);
    }
    records
}

/// 16 hexadecimal digits of the BLAKE3 of all records.
fn hash_of(source: &ProfileSource) -> String {
    let mut hasher = blake3::Hasher::new();
    generate(source, |batch| {
        for record in batch.iter() {
            hasher.update(&record.time_ns.to_le_bytes());
            hasher.update(&record.offset.to_le_bytes());
            hasher.update(&record.length.to_le_bytes());
            hasher.update(&[u8::from(record.op == Op::Write)]);
            for value in record.content.unwrap_or_default() {
                hasher.update(&value.to_le_bytes());
            }
        }
    });
    hasher.finalize().to_hex()[..16].to_owned()
}
