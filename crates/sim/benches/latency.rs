//! What recording a latency costs: nanoseconds per record, for latencies spread over four decades.
//!
//! As a test (`cargo test --benches`) it runs briefly and checks the count; with `cargo bench` it
//! runs five rounds of ten million records and prints the median.

use std::hint::black_box;
use std::time::Instant;

use flashlore_sim::results::Latency;

fn main() {
    let measuring = std::env::args().any(|arg| arg == "--bench");
    let records: u64 = if measuring { 10_000_000 } else { 10_000 };
    let values = latencies(1 << 16);
    let mut rounds: Vec<f64> = (0..5).map(|_| round(&values, records)).collect();
    rounds.sort_by(f64::total_cmp);
    println!(
        "Latency::record: {:.1} ns a record, median of 5 rounds of {records}",
        rounds[2]
    );
}

/// Latencies from 25 us to 250 ms, equally many in each factor, from a fixed generator.
fn latencies(count: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        25_000.0 * 10_f64.powf(4.0 * (state >> 11) as f64 / (1_u64 << 53) as f64)
    };
    (0..count).map(|_| next() as u64).collect()
}

fn round(values: &[u64], records: u64) -> f64 {
    let mut latency = Latency::new();
    let start = Instant::now();
    for ns in values.iter().cycle().take(records as usize) {
        latency.record(black_box(*ns));
    }
    let elapsed = start.elapsed().as_nanos() as f64;
    assert_eq!(black_box(&latency).count(), records);
    elapsed / records as f64
}
