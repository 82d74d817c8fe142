//! Speed of the bounded fingerprint index, beside the LRU index of simulation.
//!
//! `cargo bench -p flashlore-content --bench index` prints the best of interleaved rounds in millions of operations a
//! second of this thread's wall time, one operation at a time, and a hash of what was found. Fingerprints are drawn;
//! objects are a vector of fingerprints, looked at for each candidate as a disk would. Without `--bench` it runs small
//! and checks the hash.

use std::hint::black_box;
use std::time::Instant;

use flashlore_content::VolumeKey;
use flashlore_content::dedup::index::Members;
use flashlore_content::dedup::{BoundedIndex, LruIndex};
use flashlore_flash::ObjectId;

const ROUNDS: usize = 3;

/// Objects, and in the small run.
const OBJECTS: u32 = 4_000_000;
const SMALL_OBJECTS: u32 = 20_000;

/// Bytes of a page of the medium.
const PAGE_BYTES: usize = 4096;

/// Of what is found in the small run.
const EXPECTED: &str = "2dbc47dbda32fb18";

/// The fingerprint of a content.
fn fingerprint(content: u32) -> u64 {
    let mixed = (u64::from(content) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// A content, in an order without runs.
fn shuffled(step: u32, objects: u32) -> u32 {
    (u64::from(step) * 0x9E37_79B1 % u64::from(objects)) as u32
}

/// Objects, as the LRU index needs them.
struct Objects {
    fingerprints: Vec<u64>,
    indexed: Vec<bool>,
    uses: Vec<u32>,
}

impl Members for Objects {
    fn tag(&self, object: ObjectId) -> u32 {
        self.fingerprints[object.index()] as u32
    }
    fn is_indexed(&self, object: ObjectId) -> bool {
        self.indexed[object.index()]
    }
    fn set_indexed(&mut self, object: ObjectId, indexed: bool) {
        self.indexed[object.index()] = indexed;
    }
    fn uses(&self, object: ObjectId) -> u32 {
        self.uses[object.index()]
    }
    fn add_use(&mut self, object: ObjectId) {
        self.uses[object.index()] += 1;
    }
    fn drop_use(&mut self, object: ObjectId) -> bool {
        self.uses[object.index()] -= 1;
        self.uses[object.index()] == 0
    }
    fn prefetch(&self, _: ObjectId) {}
    fn handles(&self) -> u32 {
        self.fingerprints.len() as u32
    }
}

/// What is measured, and the best rates.
struct Measured {
    rows: Vec<(&'static str, f64)>,
    hasher: blake3::Hasher,
}

impl Measured {
    /// Does something for so many operations; it answers a number that stands for what it found.
    fn measure(&mut self, name: &'static str, operations: u32, work: impl FnOnce() -> u64) {
        let begin = Instant::now();
        let found = black_box(work());
        let rate = f64::from(operations) / begin.elapsed().as_secs_f64() / 1e6;
        self.hasher.update(&found.to_le_bytes());
        match self.rows.iter_mut().find(|(row, _)| *row == name) {
            Some((_, best)) => *best = best.max(rate),
            None => self.rows.push((name, rate)),
        }
    }
}

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let (objects, rounds) = match full {
        true => (OBJECTS, ROUNDS),
        false => (SMALL_OBJECTS, 1),
    };
    let mut measured = Measured {
        rows: Vec::new(),
        hasher: blake3::Hasher::new(),
    };
    let fingerprints: Vec<u64> = (0..objects).map(fingerprint).collect();
    // A byte for each KiB of content, and room for all.
    for _ in 0..rounds {
        bounded(&mut measured, &fingerprints);
        lru(&mut measured, &fingerprints);
    }
    for (name, rate) in &measured.rows {
        println!("{name:56} {rate:8.2} M/s");
    }
    let hash = &measured.hasher.finalize().to_hex()[..16];
    println!("hash {hash}");
    assert!(
        full || hash == EXPECTED,
        "what the same operations find changed: {hash}"
    );
}

/// The bounded index, with a byte of memory for each KiB of the objects.
fn bounded(measured: &mut Measured, fingerprints: &[u64]) {
    let objects = fingerprints.len() as u32;
    let is = |object: ObjectId, wanted: u64| fingerprints.get(object.index()) == Some(&wanted);
    let mut index = BoundedIndex::new(u64::from(objects) * 4);
    measured.measure("bounded: nothing found, and inserted", objects, || {
        let mut found = 0;
        for (handle, &wanted) in (0..).zip(fingerprints) {
            // The object is new, so that nothing has the fingerprint yet.
            found += u64::from(index.find(wanted, |_| false).is_some());
            index.missed(wanted);
            index.insert(wanted, ObjectId(handle));
        }
        found + index.counters().evictions
    });
    measured.measure("bounded: looked for at random", objects, || {
        let asked = (0..objects).map(|step| fingerprint(shuffled(step, objects)));
        let found =
            asked.filter(|&wanted| index.find(wanted, |object| is(object, wanted)).is_some());
        found.count() as u64
    });
    measured.measure("bounded: the same, sets asked for 8 ahead", objects, || {
        let mut found = 0;
        for step in 0..objects {
            index.prefetch(fingerprint(shuffled(step + 8, objects)));
            let wanted = fingerprint(shuffled(step, objects));
            found += u64::from(index.find(wanted, |object| is(object, wanted)).is_some());
        }
        found
    });
    measured.measure("bounded: a copy in the order of storing", objects, || {
        let mut found = 0;
        for &wanted in fingerprints {
            let Some(object) = index.find(wanted, |object| is(object, wanted)) else {
                index.missed(wanted);
                continue;
            };
            found += 1;
            if index.touch(wanted, object) {
                let next = object.index() + 1..fingerprints.len();
                let next = next.map(|next| (fingerprints[next], ObjectId(next as u32)));
                index.follow(wanted, object, next);
            }
        }
        found
    });
    let pages = index.pages(PAGE_BYTES) as u32;
    let mut written = vec![[0; PAGE_BYTES]; pages as usize];
    let key = VolumeKey([1; 32]);
    measured.measure("bounded: pages of 4 KiB written", pages, || {
        for (number, page) in (0..).zip(&mut written) {
            index.write_page(&key, number, page);
        }
        pages.into()
    });
    let mut read = BoundedIndex::new(index.budget());
    measured.measure("bounded: pages of 4 KiB read", pages, || {
        let pages = (0..).zip(&written);
        for (number, page) in pages {
            read.read_page(&key, number, page, objects);
        }
        read.len()
    });
    measured.measure("bounded: removed at random", objects, || {
        let removed = (0..objects).map(|step| shuffled(step, objects));
        let removed = removed.filter(|&handle| {
            let known = fingerprints[handle as usize];
            index.remove(known, ObjectId(handle))
        });
        removed.count() as u64
    });
}

/// The LRU index, with three quarters as many entries as objects: as the bounded one has.
fn lru(measured: &mut Measured, fingerprints: &[u64]) {
    let objects = fingerprints.len() as u32;
    let mut members = Objects {
        fingerprints: fingerprints.to_vec(),
        indexed: vec![false; fingerprints.len()],
        uses: vec![0; fingerprints.len()],
    };
    let mut index = LruIndex::new(Some(objects / 4 * 3));
    measured.measure("LRU: nothing found, and inserted", objects, || {
        let mut found = 0;
        for (handle, &wanted) in (0..).zip(fingerprints) {
            found += u64::from(index.find(wanted, |_| false).is_some());
            index.insert(&mut members, ObjectId(handle));
        }
        found
    });
    measured.measure("LRU: looked for at random", objects, || {
        let asked = (0..objects).map(|step| fingerprint(shuffled(step, objects)));
        let is = |object: ObjectId, wanted| fingerprints[object.index()] == wanted;
        let found =
            asked.filter(|&wanted| index.find(wanted, |object| is(object, wanted)).is_some());
        found.count() as u64
    });
}
