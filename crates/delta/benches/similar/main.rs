//! Sketches: how short the deltas are from the pages that they find, and how long they take.
//!
//! `cargo bench -p flashlore-delta --bench similar` goes through the values of the captures with content (left out
//! where absent, see the other benchmark) and of profiles, in the order in which they were written first. Each is
//! looked up among those before it that are no deltas; it becomes the delta from what is most alike, if
//! that is shorter than the value by itself. Times are those of this thread. Without `--bench` it runs small on
//! profiles alone and checks a hash of the sketches of the crate.

mod sketches;
#[path = "../delta/versions.rs"]
mod versions;

use std::collections::HashMap;
use std::time::Duration;

use cpu_time::ThreadTime;
use flashlore_delta::{Codec, Encoder, PAGE_BYTES, Page, sketch};
use sketches::Way;
use versions::{Versions, Written};

/// Values of a workload: the first of them.
const VALUES: usize = 20_000;
const SMALL: usize = 300;

/// Of a super-feature those written last are known.
const LATEST: usize = 4;

const CAPTURES: [&str; 2] = ["sqlite-bytes", "upgrade-bytes"];
const PROFILES: [&str; 2] = ["tpc-c", "hadoop"];

/// Of the sketches of the crate when it runs small.
const EXPECTED: &str = "e87f77217085543c";

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let most = if full { VALUES } else { SMALL };
    let captures = CAPTURES.iter().filter(|_| full);
    let captures = captures.filter_map(|name| Versions::captured(name));
    let profiles = PROFILES.iter().map(|name| Versions::synthesised(name));
    let mut hasher = blake3::Hasher::new();
    for versions in captures.chain(profiles) {
        let written = versions.written(most);
        let sketched = written.iter().flat_map(|w| sketch(w.page));
        for super_feature in sketched {
            hasher.update(&super_feature.to_le_bytes());
        }
        let mut encoder = Encoder::new();
        let alone = |w: &Written<'_>| length(encoder.alone(Codec::Copy, w.page, PAGE_BYTES));
        let alone: Vec<usize> = written.iter().map(alone).collect();
        let (all, first) = means(&written, &alone);
        println!(
            "{}, {} values, by themselves {all:.4}, first writes of a page {first:.4}:",
            versions.name,
            written.len()
        );
        for way in sketches::all() {
            measure(&way, &written, &alone);
        }
    }
    let hash = &hasher.finalize().to_hex()[..16];
    println!("hash {hash}");
    assert!(
        full || hash == EXPECTED,
        "what the same pages are sketched as changed: {hash}"
    );
}

fn length(encoded: Option<&[u8]>) -> usize {
    encoded.map_or(PAGE_BYTES, <[u8]>::len)
}

/// Mean lengths as shares of a page: of all values, and of those that were the first of their page.
fn means(written: &[Written<'_>], lengths: &[usize]) -> (f64, f64) {
    let mean = |only_first: bool| {
        let pairs = written.iter().zip(lengths);
        let counted = pairs.filter(|(w, _)| w.is_first || !only_first);
        let (sum, count) = counted.fold((0, 0), |(sum, count), (_, l)| (sum + l, count + 1));
        sum as f64 / f64::from(count.max(1)) / PAGE_BYTES as f64
    };
    (mean(false), mean(true))
}

/// Looks every value up among those before it.
fn measure(way: &Way, written: &[Written<'_>], alone: &[usize]) {
    let begin = ThreadTime::now();
    let sketches: Vec<Vec<u32>> = written.iter().map(|w| (way.sketch)(w.page)).collect();
    let took: Duration = begin.elapsed();
    let mut index = Index::default();
    let mut encoder = Encoder::new();
    let mut lengths = alone.to_vec();
    let (mut found, mut bytes) = (0u32, 0);
    for (i, sketch) in sketches.iter().enumerate() {
        if let Some(base) = index.most_alike(sketch) {
            let pages: (&Page, &Page) = (written[base].page, written[i].page);
            let delta = length(encoder.delta(Codec::Copy, pages.0, pages.1, PAGE_BYTES));
            if delta < alone[i] {
                lengths[i] = delta;
                found += 1;
                bytes += delta;
                continue;
            }
        }
        index.enter(sketch, i);
    }
    let count = written.len() as f64;
    let (all, first) = means(written, &lengths);
    println!(
        "  {:<20}{:>6.1} us, deltas {:>5.1} % of {:.4}, all {all:.4}, first writes {first:.4}",
        way.name,
        took.as_secs_f64() * 1e6 / count,
        f64::from(found) * 100.0 / count,
        bytes as f64 / f64::from(found.max(1)) / PAGE_BYTES as f64,
    );
}

/// By number of the super-feature and itself the values that have it, the latest at the end.
#[derive(Default)]
struct Index(HashMap<(usize, u32), Vec<usize>>);

impl Index {
    fn most_alike(&self, sketch: &[u32]) -> Option<usize> {
        let mut shared: HashMap<usize, usize> = HashMap::new();
        for feature in sketch.iter().copied().enumerate() {
            for &value in self.0.get(&feature).into_iter().flatten() {
                *shared.entry(value).or_default() += 1;
            }
        }
        let best = shared
            .into_iter()
            .max_by_key(|&(value, shared)| (shared, value));
        best.map(|(value, _)| value)
    }

    fn enter(&mut self, sketch: &[u32], value: usize) {
        for feature in sketch.iter().copied().enumerate() {
            let values = self.0.entry(feature).or_default();
            values.push(value);
            if values.len() > LATEST {
                values.remove(0);
            }
        }
    }
}
