//! Codecs for deltas of pages: how short, and how fast.
//!
//! `cargo bench -p flashlore-delta` encodes and decodes overwritten pages of the captures with content
//! (in the directory that `FLASHLORE_DATA` names, left out where absent) and of profiles, with the
//! codecs of this crate and with others to compare. Times are those of this thread on a processor, the
//! best of interleaved rounds; sizes are of bodies, at most a page. Without `--bench` (as
//! `cargo test --bench delta`) it runs small on profiles alone and checks the hashes of what this crate
//! makes. Everything encoded is decoded and compared once.

mod candidates;
mod report;
mod versions;

use candidates::Candidate;
use cpu_time::ThreadTime;
use flashlore_delta::PAGE_BYTES;
use report::Row;
use versions::{Pair, Versions};

const ROUNDS: usize = 3;

/// Most pairs of a workload, spread evenly over it.
const PAIRS: usize = 20_000;
const SMALL_PAIRS: usize = 300;

const CAPTURES: [&str; 2] = ["sqlite-bytes", "upgrade-bytes"];
const PROFILES: [&str; 5] = ["sysbench", "tpc-c", "loadsim", "hadoop", "specsfs"];

/// Of the deltas and the pages that this crate encodes when it runs small.
const EXPECTED: &str = "efdcf2e839550c64";

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let (rounds, most) = if full {
        (ROUNDS, PAIRS)
    } else {
        (1, SMALL_PAIRS)
    };
    let mut hasher = blake3::Hasher::new();
    let captures = CAPTURES.iter().filter(|_| full);
    let captures = captures.filter_map(|name| Versions::captured(name));
    let profiles = PROFILES.iter().map(|name| Versions::synthesised(name));
    for versions in captures.chain(profiles) {
        let pairs = versions.pairs(most);
        for (what, candidates) in [
            ("delta", candidates::of_deltas()),
            ("alone", candidates::of_pages()),
        ] {
            let rows = measure(candidates, &pairs, rounds, &mut hasher);
            report::print(&versions.name, what, pairs.len(), &rows);
        }
    }
    let hash = &hasher.finalize().to_hex()[..16];
    println!("hash {hash}");
    assert!(
        full || hash == EXPECTED,
        "what the same pages are encoded to changed: {hash}"
    );
}

/// Runs all candidates over all pairs, in turn.
fn measure<'a>(
    mut candidates: Vec<Box<dyn Candidate<'a> + 'a>>,
    pairs: &[Pair<'a>],
    rounds: usize,
    hasher: &mut blake3::Hasher,
) -> Vec<Row> {
    let mut rows: Vec<Row> = candidates.iter().map(|c| Row::new(c.name())).collect();
    let mut page = [0; PAGE_BYTES];
    for round in 0..rounds {
        for (candidate, row) in candidates.iter_mut().zip(&mut rows) {
            let mut bodies = Bodies::with_capacity(pairs.len());
            let begin = ThreadTime::now();
            for pair in pairs {
                candidate.encode(pair, &mut bodies.bytes);
                bodies.ends.push(bodies.bytes.len());
            }
            row.encoded(begin.elapsed());
            let begin = ThreadTime::now();
            for (pair, body) in pairs.iter().zip(bodies.iter()) {
                candidate.decode(pair, body, &mut page);
                std::hint::black_box(&page);
            }
            row.decoded(begin.elapsed());
            if round == 0 {
                for (pair, body) in pairs.iter().zip(bodies.iter()) {
                    candidate.decode(pair, body, &mut page);
                    assert_eq!(page, *pair.new, "{}", candidate.name());
                }
                let header = candidate.header_bytes();
                row.sizes(bodies.iter().map(|body| match body.len() {
                    PAGE_BYTES => PAGE_BYTES,
                    encoded => encoded - header,
                }));
                if candidate.is_ours() {
                    hasher.update(&bodies.bytes);
                }
            }
        }
    }
    rows
}

/// Bodies, one behind the other.
struct Bodies {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Bodies {
    /// Room for so many, touched, so that the first round does not pay for it.
    fn with_capacity(pairs: usize) -> Bodies {
        let mut bytes = vec![1; pairs * 2 * PAGE_BYTES];
        bytes.clear();
        Bodies {
            bytes,
            ends: Vec::with_capacity(pairs),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .map(|(begin, end)| &self.bytes[begin..*end])
    }
}
