//! What similarity costs I-CASH: requests a second, one search of the scan, one encoding and one decoding.
//!
//! `cargo bench -p flashlore-array --bench icash` prints the best of interleaved rounds in time of this thread on a
//! processor, each beside the same without similarity, and a hash of all contents read and of all counters. The
//! media are memory: neither SSD nor disk takes time. Without `--bench` (as `cargo test --bench icash`) it runs small
//! and checks the hash. Either way all rounds must end the same.

mod codecs;
mod contents;
mod replacements;
mod requests;
mod searches;

use std::time::Duration;

const SMALL_HASH: &str = "c51593ad23694e1c";

/// Something to be measured: it runs once, answers the time and how many units of work were done in it, and adds to
/// the hash what came out.
struct Row {
    name: String,
    run: Box<Run>,
}

type Run = dyn Fn(&mut blake3::Hasher) -> (Duration, u64);

/// Rows that are compared with one of them.
struct Table {
    what: &'static str,
    rows: Vec<Row>,
    control: usize,
}

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let rounds = if full { 5 } else { 1 };
    let mut hasher = blake3::Hasher::new();
    for table in [
        requests::table(full),
        codecs::table(full),
        searches::table(full),
        replacements::table(full),
    ] {
        measure(&table, rounds, &mut hasher);
    }
    let hash = &hasher.finalize().to_hex()[..16];
    println!("hash {hash}");
    assert!(
        full || hash == SMALL_HASH,
        "the small run ended otherwise: {hash}"
    );
}

/// Runs all rows in turn, so that what disturbs disturbs all, and prints the best of each beside the control's.
fn measure(table: &Table, rounds: usize, hasher: &mut blake3::Hasher) {
    let rows = &table.rows;
    let mut best = vec![Duration::MAX; rows.len()];
    let mut outcomes: Vec<Option<(u64, blake3::Hash)>> = vec![None; rows.len()];
    for _ in 0..rounds {
        for (index, row) in rows.iter().enumerate() {
            let mut own = blake3::Hasher::new();
            let (time, units) = (row.run)(&mut own);
            best[index] = best[index].min(time);
            let outcome = (units, own.finalize());
            let first = *outcomes[index].get_or_insert(outcome);
            assert!(first == outcome, "{}: two rounds differ", row.name);
        }
    }
    let micros = |index: usize| {
        let units = outcomes[index].map_or(1, |(units, _)| units.max(1));
        best[index].as_secs_f64() * 1e6 / units as f64
    };
    println!(
        "{}, and compared with: {}",
        table.what, rows[table.control].name
    );
    for (index, (row, outcome)) in rows.iter().zip(&outcomes).enumerate() {
        let (own, control) = (micros(index), micros(table.control));
        let rate = 1e6 / own;
        println!(
            "  {:44} {own:8.3} us {rate:11.0} a second, {:6.2}",
            row.name,
            own / control
        );
        if let Some((units, hash)) = outcome {
            hasher.update(&units.to_le_bytes()).update(hash.as_bytes());
        }
    }
}
