//! What characterising costs: records a second, memory, and a hash of the result.
//!
//! Records of one page each, three quarters writes. In the first two runs pages and values are drawn
//! zipf-like (each power of two of ranks equally often, as at exponent 1), sampled and exact; in the
//! third no page and no value occurs twice, which takes the most memory. As a test
//! (`cargo test --benches`) it is small and checks the hashes; with `cargo bench` it takes ten million
//! records, or as many as the environment variable `RECORDS` says. Times are processor time.
//!
//! The peak of memory is that of the process so far, which is why the largest run comes last.

use cpu_time::ProcessTime;
use flashlore_characterize::{Characteristics, Characterizer, Options};
use flashlore_sim::results::peak_rss_bytes;
use flashlore_trace::{Access, Op};

/// What pages and values are accessed.
#[derive(Debug, Clone, Copy)]
enum Pattern {
    Zipf,
    Distinct,
}

/// The runs, and the share that each follows.
const RUNS: [(Pattern, f64); 3] = [
    (Pattern::Zipf, 0.01),
    (Pattern::Zipf, 1.0),
    (Pattern::Distinct, 1.0),
];

/// Hashes of the results of small runs.
const EXPECTED: [u64; 3] = [
    0xca53_eec9_6d0d_8c64,
    0xd794_2011_95b6_b258,
    0xbf20_1473_c1b5_a492,
];

fn main() {
    let measuring = std::env::args().any(|arg| arg == "--bench");
    let records = std::env::var("RECORDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let records = match measuring {
        true => records.unwrap_or(10_000_000),
        false => 50_000,
    };
    let hashes = RUNS.map(|(pattern, rate)| run(records, pattern, rate));
    if !measuring {
        assert_eq!(
            hashes, EXPECTED,
            "the statistics of the same accesses changed"
        );
    }
}

fn run(records: u64, pattern: Pattern, sample_rate: f64) -> u64 {
    let options = Options {
        sample_rate,
        capacities: vec![1 << 30],
        ..Options::default()
    };
    let mut characterizer = Characterizer::new(options).expect("options in bounds");
    let start = ProcessTime::now();
    generate(records, pattern, |access| {
        characterizer.observe(access).expect("few pages and values");
    });
    let seen = start.elapsed().as_secs_f64();
    let found = characterizer.finish();
    let elapsed = start.elapsed().as_secs_f64();
    let hash = hash(&found);
    println!(
        "characterize, {pattern:?}, following {sample_rate}: {records} records of one page, {} distinct pages, \
         {} distinct values written: {:.2} million records/s ({seen:.1} s and {:.1} s to finish), \
         tables {} MiB, peak of the process {} MiB, hash {hash:016x}",
        found.whole.footprint.pages,
        found.whole.popularity.writes.distinct,
        records as f64 / elapsed / 1e6,
        elapsed - seen,
        found.table_bytes >> 20,
        peak_rss_bytes().map_or(0, |bytes| bytes >> 20),
    );
    hash
}

/// Accesses from a fixed generator.
fn generate(records: u64, pattern: Pattern, mut each: impl FnMut(&Access<'_>)) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    };
    let mut time_ns = 0;
    for number in 0..records {
        let mut zipf = |bits: u64| {
            let power = next() % bits;
            (1 << power) + next() % (1 << power)
        };
        let (unit, value) = match pattern {
            Pattern::Zipf => (zipf(22), zipf(24) as u32),
            // An odd factor permutes the pages, so that they come in no order.
            Pattern::Distinct => (
                number.wrapping_mul(0x9e37_79b1) & 0xffff_ffff,
                number as u32,
            ),
        };
        let draw = next();
        time_ns += draw % 200_000;
        each(&Access {
            time_ns,
            op: if draw >> 20 & 3 == 0 {
                Op::Read
            } else {
                Op::Write
            },
            device: 0,
            offset: unit * 4096,
            length: 4096,
            unit,
            units: 1,
            values: Some(&[value]),
            delta_ratios: None,
        });
    }
}

/// FNV-1a over the JSON, without the version.
fn hash(found: &Characteristics) -> u64 {
    let json = serde_json::to_vec(&found.whole).expect("plain data");
    json.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
