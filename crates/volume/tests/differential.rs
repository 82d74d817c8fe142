//! The same histories on the simulated translation layer and on the volume: same places, same
//! programs, same collections, same answers of the index. So what a simulation says of a workload is
//! what the volume does with it.

use crate::support;

use std::sync::Arc;

use crate::support::with_tables::WithTables;
use flashlore_content::{Content, Digest, NoCensus, PageBytes};
use flashlore_flash::faults::{Faulty, Odds};
use flashlore_flash::memory::MemoryFlash;
use flashlore_flash::{Cause, Lpn, Ppn, Tag, When};
use flashlore_ftl::{ContentFtl, Counters, PlainFtl};
use flashlore_medium::MemoryMedium;
use flashlore_volume::format::areas::geometry;
use flashlore_volume::policies::{dedup_options, ftl_options};
use flashlore_volume::{Identity, Policy, Volume, VolumeError, bytes_needed, create};
use support::{Draw, Mix, POLICIES, Shape, Step, page, step};

/// A device that might fail, so that victims are read before they are emptied, and never does.
type Device = Faulty<WithTables<MemoryFlash<Digest>>>;

/// The simulated volume: content is the digest of the bytes, so the index sees the same fingerprints.
enum Simulated {
    Plain(Box<PlainFtl<Device>>),
    Dedup(Box<ContentFtl<Digest, Device, NoCensus>>),
}

impl Simulated {
    fn new(id: &Identity) -> Simulated {
        let flash = WithTables::new(MemoryFlash::new(geometry(id).unwrap()), id);
        let flash = Faulty::new(flash, Odds::default(), 0);
        let options = ftl_options(id);
        match id.policy {
            Policy::Plain => Simulated::Plain(Box::new(PlainFtl::new(flash, options).unwrap())),
            _ => {
                let ftl = ContentFtl::new(flash, options, dedup_options(id, u32::MAX), NoCensus);
                Simulated::Dedup(Box::new(ftl.unwrap()))
            }
        }
    }

    fn write(&mut self, lpn: Lpn, content: Digest) {
        match self {
            Simulated::Plain(ftl) => {
                ftl.write(When::now(0), lpn, content, Tag::NONE).unwrap();
            }
            Simulated::Dedup(ftl) => {
                let read = ftl.fetch_candidate(0, content, None, Tag::NONE).unwrap();
                if let Some((candidate, _)) = read {
                    let again = ftl.fetch_candidate(0, content, Some(candidate), Tag::NONE);
                    assert!(again.unwrap().is_none());
                }
                ftl.write(When::now(0), lpn, content, Tag::NONE).unwrap();
            }
        }
    }

    fn compare_candidate(&mut self, content: Digest) {
        if let Simulated::Dedup(ftl) = self {
            ftl.fetch_candidate(0, content, None, Tag::NONE).unwrap();
        }
    }

    fn trim(&mut self, lpn: Lpn) {
        match self {
            Simulated::Plain(ftl) => ftl.trim(lpn).unwrap(),
            Simulated::Dedup(ftl) => ftl.trim(lpn).unwrap(),
        }
    }

    fn keep_pace(&mut self) {
        match self {
            Simulated::Plain(ftl) => ftl.keep_pace().unwrap(),
            Simulated::Dedup(ftl) => ftl.keep_pace().unwrap(),
        }
    }

    fn flush(&mut self) {
        match self {
            Simulated::Plain(ftl) => {
                ftl.reclaim_empty(0).unwrap();
                ftl.core_mut().barrier(0).unwrap();
            }
            Simulated::Dedup(ftl) => {
                ftl.reclaim_empty(0).unwrap();
                ftl.core_mut().barrier(0).unwrap();
            }
        }
    }

    fn checkpoint(&mut self) {
        match self {
            Simulated::Plain(ftl) => ftl.core_mut().flush_all(0).unwrap(),
            Simulated::Dedup(ftl) => ftl.core_mut().flush_all(0).unwrap(),
        }
    }

    fn read(&mut self, lpn: Lpn) -> Option<Digest> {
        match self {
            Simulated::Plain(ftl) => ftl.read(0, lpn, Cause::Host, Tag::NONE).unwrap().0,
            Simulated::Dedup(ftl) => ftl.read(0, lpn, Cause::Host, Tag::NONE).unwrap().0,
        }
    }

    fn location(&self, lpn: Lpn) -> Option<Ppn> {
        match self {
            Simulated::Plain(ftl) => Some(ftl.map().get(lpn)).filter(|ppn| ppn.is_some()),
            Simulated::Dedup(ftl) => {
                let object = Some(ftl.objects().get(lpn)).filter(|o| o.is_some());
                object.map(|o| ftl.objects().at(o))
            }
        }
    }

    fn counters(&self) -> &Counters {
        match self {
            Simulated::Plain(ftl) => ftl.core().counters(),
            Simulated::Dedup(ftl) => ftl.core().counters(),
        }
    }

    fn check(&self) {
        match self {
            Simulated::Plain(ftl) => ftl.check().unwrap(),
            Simulated::Dedup(ftl) => ftl.check().unwrap(),
        }
    }
}

/// A volume and the simulated one.
struct Pair {
    volume: Volume,
    simulated: Simulated,
    name: String,
}

impl Pair {
    fn new(id: &Identity, name: String) -> Pair {
        let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
        create(&medium, id).unwrap();
        Pair {
            volume: Volume::open(medium).unwrap().0,
            simulated: Simulated::new(id),
            name,
        }
    }

    fn write(&mut self, lpn: Lpn, bytes: &PageBytes) {
        let content = self.volume.identity().key.digest(bytes);
        self.simulated.keep_pace();
        match self.volume.write(7, lpn, bytes) {
            Ok(()) => self.simulated.write(lpn, content),
            // Who exports more than fits says no before the translation layer is asked.
            Err(VolumeError::NoSpace { stored, most }) => {
                assert_eq!(stored, most, "{}", self.name);
                // It has looked at what might have been the same.
                self.simulated.compare_candidate(content);
            }
            Err(other) => panic!("{}: {other}", self.name),
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Write { lpn, value } => self.write(lpn, &page(value)),
            Step::Trim { lpn } => {
                self.volume.trim(0, lpn).unwrap();
                self.simulated.trim(lpn);
            }
            Step::Flush => {
                self.volume.flush().unwrap();
                self.simulated.flush();
            }
            Step::Checkpoint => {
                self.volume.checkpoint().unwrap();
                self.simulated.checkpoint();
            }
        }
    }

    fn compare(&self, at: usize) {
        let name = &self.name;
        for lpn in 0..self.volume.exported() {
            let (here, there) = (
                self.volume.location(Lpn(lpn)),
                self.simulated.location(Lpn(lpn)),
            );
            assert_eq!(here, there, "{name}, step {at}: place of page {lpn}");
        }
        let counters = self.volume.counters();
        assert_eq!(counters, self.simulated.counters(), "{name}, step {at}");
        if let Simulated::Dedup(ftl) = &self.simulated {
            let counted = self.volume.dedup_counters().unwrap();
            assert_eq!(counted, ftl.dedup_counters(), "{name}, step {at}");
        }
    }

    fn compare_contents(&mut self) {
        for lpn in 0..self.volume.exported() {
            let mut bytes = [1; 4096];
            self.volume.read(Lpn(lpn), &mut bytes).unwrap();
            let expected = match self.simulated.read(Lpn(lpn)) {
                Some(content) => content,
                None => self.volume.identity().key.digest(&page(0)),
            };
            let found = self.volume.identity().key.digest(&bytes);
            assert_eq!(found, expected, "{}: page {lpn}", self.name);
        }
        self.volume.check().unwrap();
        self.simulated.check();
    }
}

fn shapes() -> Vec<Shape> {
    let base = Shape {
        exported: 60,
        blocks: 24,
        pages_per_block: 4,
        units_per_page: 1,
        alignment: 512,
        index_entries: 20,
        journal_bytes: 4 << 20,
    };
    vec![
        base,
        Shape {
            units_per_page: 2,
            exported: 130,
            ..base
        },
        Shape {
            units_per_page: 4,
            pages_per_block: 3,
            exported: 180,
            index_entries: 7,
            ..base
        },
        Shape {
            blocks: 40,
            pages_per_block: 16,
            units_per_page: 2,
            exported: 1000,
            index_entries: 2000,
            alignment: 4096,
            ..base
        },
        // More is exported than fits.
        Shape {
            exported: 500,
            units_per_page: 2,
            index_entries: 500,
            ..base
        },
    ]
}

#[test]
fn the_volume_does_what_the_simulation_says() {
    let (mut collections, mut padding, mut evictions, mut hits, mut silent) = (0, 0, 0, 0, 0);
    for policy in POLICIES {
        for (number, shape) in shapes().into_iter().enumerate() {
            for (round, flushes) in [0, 3, 20].into_iter().enumerate() {
                let mix = Mix {
                    trims: 8,
                    flushes,
                    checkpoints: u32::from(round > 0),
                    values: [40, 400, 100_000][(number + round) % 3],
                };
                let name = format!("{policy:?}, shape {number}, round {round}");
                let mut pair = Pair::new(&shape.identity(policy), name);
                let mut draw = Draw::new(number as u64 * 10 + round as u64);
                // Space that is exported but does not exist fills late.
                let steps = if shape.exported == 1000 { 5000 } else { 1000 };
                for at in 0..steps {
                    pair.run(step(&mut draw, shape.exported, mix));
                    pair.compare(at);
                }
                pair.compare_contents();
                collections += pair.volume.counters().victims;
                padding += pair.volume.counters().programs_padding;
                if let Some(counted) = pair.volume.dedup_counters() {
                    evictions += counted.evictions;
                    hits += counted.hits;
                    silent += counted.silent;
                }
            }
        }
    }
    println!(
        "{collections} collections, {padding} padded slots, {evictions} evictions, {hits} hits, {silent} silent"
    );
    assert!(collections > 1000 && padding > 100 && evictions > 1000 && hits > 1000 && silent > 10);
}

/// Numbers of pages whose digests agree in their last 32 bits under the key of the tests.
pub const COLLIDING: [(u32, u32); 6] = [
    (149_662, 159_789),
    (183_549, 188_063),
    (180_499, 217_648),
    (211_933, 229_459),
    (19_597, 239_688),
    (186_613, 253_246),
];

#[test]
fn pages_with_equal_fingerprints_are_told_apart_by_both_without_being_compared() {
    let shape = shapes()[1];
    let id = shape.identity(Policy::Dedup);
    for (a, b) in COLLIDING {
        let (a, b) = (id.key.digest(&page(a)), id.key.digest(&page(b)));
        assert_eq!(a.fingerprint(32), b.fingerprint(32));
        assert_ne!(a, b);
    }
    let mut pair = Pair::new(&id, "colliding pages".to_string());
    let mut draw = Draw::new(5);
    for at in 0..3000 {
        let (kind, lpn) = (draw.below(100), draw.below(shape.exported));
        let (a, b) = COLLIDING[draw.below(6) as usize];
        let step = match kind {
            0..5 => Step::Trim { lpn: Lpn(lpn) },
            5..10 => Step::Flush,
            10..40 => Step::Write {
                lpn: Lpn(lpn),
                value: b,
            },
            40..80 => Step::Write {
                lpn: Lpn(lpn),
                value: a,
            },
            _ => Step::Write {
                lpn: Lpn(lpn),
                value: at,
            },
        };
        pair.run(step);
        pair.compare(at as usize);
    }
    pair.compare_contents();
    let collisions = pair.volume.dedup_counters().unwrap().collisions;
    assert_eq!(collisions, 0);
}
