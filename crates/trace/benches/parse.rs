//! Parsing speed: records per second of FIU text, MSR CSV, their native columns and these with an R_c
//! drawn for each page write, one core, from memory.
//!
//! Time is what this thread spent on a processor, so that a busy machine disturbs little; where the
//! system does not tell, it is wall time.
//!
//! `cargo bench -p flashlore-trace` prints the best of interleaved rounds and a hash of the records.
//! Without `--bench` (as `cargo test --bench parse`) it runs small. Either way the records of a native trace must
//! hash as those of the text it was made from, and the small run must give the hashes written below.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Cursor;
use std::time::Instant;

use bytes::Bytes;
use flashlore_trace::formats::native::NativeWriter;
use flashlore_trace::{
    Batch, ContentModel, DeltaModel, Op, ReadOptions, RequestSource, TraceReader, Workload,
    WorkloadOptions,
};

const ROUNDS: usize = 5;
const RECORDS: u64 = 2_000_000;
const SMALL_RECORDS: u64 = 20_000;

/// Hashes of the small run: FIU and MSR.
const SMALL_HASHES: [&str; 2] = ["d8b3ac4bb1a93c90", "a99810381439b97d"];

struct Case {
    name: &'static str,
    bytes: Bytes,
    best_s: f64,
}

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let records = if full { RECORDS } else { SMALL_RECORDS };
    let texts = [("FIU text", fiu(records)), ("MSR CSV", msr(records))];
    let mut cases = Vec::new();
    for ((name, text), small_hash) in texts.into_iter().zip(SMALL_HASHES) {
        let text = Bytes::from(text);
        let rated = Bytes::from(native(&text, true));
        let native = Bytes::from(native(&text, false));
        let hash = hash_of(&text);
        assert_eq!(hash, hash_of(&native), "native columns of {name}");
        assert_eq!(hash, hash_of(&rated), "native columns of {name} with R_c");
        assert!(
            full || hash == small_hash,
            "{name}: hash {hash}, expected {small_hash}"
        );
        let per_record = |bytes: &Bytes| bytes.len() as f64 / records as f64;
        println!(
            "{name}: {records} records, {:.1} bytes each, native {:.2}, with R_c {:.2}; hash {hash}",
            per_record(&text),
            per_record(&native),
            per_record(&rated)
        );
        cases.push(Case {
            name,
            bytes: text,
            best_s: f64::INFINITY,
        });
        cases.push(Case {
            name: "  its native columns",
            bytes: native,
            best_s: f64::INFINITY,
        });
        cases.push(Case {
            name: "  these with R_c",
            bytes: rated,
            best_s: f64::INFINITY,
        });
    }
    if full {
        measure(&mut cases, records);
    }
}

/// Prints the speeds.
fn measure(cases: &mut [Case], records: u64) {
    for _ in 0..ROUNDS {
        for case in cases.iter_mut() {
            let begin = Clock::now();
            assert_eq!(parse(&case.bytes), records);
            case.best_s = case.best_s.min(begin.elapsed_s());
        }
    }
    for case in cases.iter() {
        println!(
            "{:<22}{:>8.2} million records/s",
            case.name,
            records as f64 / case.best_s / 1e6
        );
    }
    for case in cases.iter() {
        let begin = Clock::now();
        let options = WorkloadOptions::new(ContentModel::FromTrace);
        let workload = Workload::from_readers(vec![open(&case.bytes)], &options).expect("readable");
        let seconds = begin.elapsed_s();
        assert_eq!(workload.summary().requests, records);
        let speed = records as f64 / seconds / 1e6;
        println!(
            "{:<22}{speed:>8.2} million records/s into a workload",
            case.name
        );
    }
}

/// A moment, by the processor and by the wall.
struct Clock {
    on_processor_ns: Option<u64>,
    wall: Instant,
}

impl Clock {
    fn now() -> Clock {
        Clock {
            on_processor_ns: on_processor_ns(),
            wall: Instant::now(),
        }
    }

    fn elapsed_s(&self) -> f64 {
        match (self.on_processor_ns, on_processor_ns()) {
            (Some(begin), Some(end)) => (end - begin) as f64 / 1e9,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// Nanoseconds this thread has run.
fn on_processor_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn open(bytes: &Bytes) -> TraceReader {
    TraceReader::from_bytes("memory", bytes.clone(), &ReadOptions::default()).expect("readable")
}

fn parse(bytes: &Bytes) -> u64 {
    let mut reader = open(bytes);
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch).expect("well formed") {
        black_box(&batch);
    }
    reader.stats().records
}

fn hash_of(bytes: &Bytes) -> String {
    let mut reader = open(bytes);
    let mut batch = Batch::default();
    let mut hasher = blake3::Hasher::new();
    while reader.next_batch(&mut batch).expect("well formed") {
        for record in batch.iter() {
            let numbers = [
                record.time_ns,
                record.device.into(),
                record.op as u64,
                record.offset,
            ];
            numbers.iter().for_each(|n| {
                hasher.update(&n.to_le_bytes());
            });
            hasher.update(&record.length.to_le_bytes());
            for value in record.content.unwrap_or_default() {
                hasher.update(&value.to_le_bytes());
            }
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

fn native(text: &Bytes, rated: bool) -> Vec<u8> {
    let model = DeltaModel::Gaussian {
        mean: 0.35,
        std: 0.05,
        seed: 0,
    };
    let mut rater = model.rater().expect("in bounds").filter(|_| rated);
    let mut ratios = Vec::new();
    let mut reader = open(text);
    let mut writer = NativeWriter::new(Cursor::new(Vec::new())).expect("memory");
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch).expect("well formed") {
        for mut record in batch.iter() {
            if let Some(rater) = &mut rater {
                ratios.clear();
                rater.rate(&record, &mut ratios).expect("drawn");
                record.delta_ratios = (record.op == Op::Write).then_some(&ratios);
            }
            writer.push(&record).expect("memory");
        }
    }
    let out = writer
        .finish(reader.device_names(), reader.origin_ns())
        .expect("memory");
    out.into_inner()
}

/// A multiplicative hash, as a source of varied but fixed numbers.
fn mix(i: u64) -> u64 {
    let x = (i ^ (i >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 7
}

/// Page writes and reads, one in two with a digest seen before; sequential runs of eight pages.
fn fiu(records: u64) -> String {
    let mut text = String::new();
    let mut time_ns = 1_000_000_000u64;
    for i in 0..records {
        time_ns += mix(i) % 100_000;
        let lba = (mix(i / 8) % 1_000_000 * 8 + i % 8) * 8;
        let value = if mix(i + 1).is_multiple_of(2) {
            i
        } else {
            mix(i) % (i + 1)
        };
        let op = if mix(i + 2).is_multiple_of(4) {
            Op::Read
        } else {
            Op::Write
        };
        let op = if op == Op::Read { 'R' } else { 'W' };
        let (high, low) = (mix(value), mix(value + 7));
        let _ = writeln!(
            text,
            "{time_ns} 4892 syslogd {lba} 8 {op} 6 0 {high:016x}{low:016x}"
        );
    }
    text
}

/// Requests of 512 bytes to 64 KiB at any sector.
fn msr(records: u64) -> String {
    let mut text = String::new();
    let mut ticks = 128_166_372_003_061_629u64;
    for i in 0..records {
        ticks += mix(i) % 20_000;
        let op = if mix(i + 2).is_multiple_of(3) {
            "Read"
        } else {
            "Write"
        };
        let offset = mix(i / 4) % (1 << 36) / 512 * 512 + i % 4 * 65536;
        let size = match mix(i + 3) % 4 {
            0 => 65536,
            1 => 512 * (1 + mix(i + 4) % 64),
            _ => 4096,
        };
        let response = mix(i + 5) % 100_000;
        let _ = writeln!(
            text,
            "{ticks},prxy,{},{op},{offset},{size},{response}",
            i % 2
        );
    }
    text
}
