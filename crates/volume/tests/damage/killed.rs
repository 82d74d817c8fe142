//! Killed volumes: what lies on the medium, what it held earlier, and what every address must read as.

use std::sync::Arc;

use flashlore_content::VolumeKey;
use flashlore_medium::{Medium, MemoryMedium};
use flashlore_volume::format::mark::MARK_BYTES;
use flashlore_volume::format::{Areas, Batch, BlockState, JournalEntry};
use flashlore_volume::{
    Encoding, HistoryIdentity, Identity, Policy, Volume, bytes_needed, create, load,
};

use crate::support::loaded::Loaded;
use crate::support::{Contents, Draw, Mix, Shape, Step, after, page, step};

pub const SHAPE: Shape = Shape {
    exported: 60,
    blocks: 26,
    pages_per_block: 4,
    units_per_page: 2,
    alignment: 512,
    index_entries: 60,
    journal_bytes: 256 << 10,
};

/// The systems that a volume can be made as, and all policies at once with digests that are trusted.
pub const SYSTEMS: [&str; 7] = [
    "plain",
    "ca-ssd",
    "ca-ssd-trusted",
    "delta-ftl",
    "compress",
    "bvssd",
    "combined",
];

pub fn identity(system: &str) -> Identity {
    let policy = match system {
        "ca-ssd" | "combined" => Policy::Dedup,
        "ca-ssd-trusted" => Policy::DedupTrusted,
        _ => Policy::Plain,
    };
    Identity {
        history: matches!(system, "bvssd" | "combined").then_some(HistoryIdentity {
            entries: 400,
            least_window: 0,
            protected: false,
        }),
        encoding: Encoding {
            deltas: matches!(system, "delta-ftl" | "combined"),
            compression: matches!(system, "compress" | "combined"),
        },
        ..SHAPE.identity(policy)
    }
}

/// A volume that was killed right after a flush.
pub struct Killed {
    pub name: String,
    pub areas: Areas,
    /// Metadata in use besides the superblocks: places and lengths.
    pub metadata: Vec<(usize, usize)>,
    pub image: Arc<Vec<u8>>,
    /// The medium at earlier flushes.
    pub older: Vec<Vec<u8>>,
    pub contents: Contents,
    /// Some instants of the past, and what was there.
    pub past: Vec<(u64, Contents)>,
}

const MIX: Mix = Mix {
    trims: 8,
    flushes: 3,
    checkpoints: 0,
    values: 400,
};

struct Life {
    volume: Volume,
    contents: Contents,
    past: Vec<(u64, Contents)>,
    now: u64,
}

impl Life {
    fn step(&mut self, step: Step) {
        self.now += 10;
        match step {
            Step::Write { lpn, value } => self.volume.write(self.now, lpn, &page(value)),
            Step::Trim { lpn } => self.volume.trim(self.now, lpn),
            Step::Flush | Step::Checkpoint => step.run(&mut self.volume),
        }
        .expect("the medium is sound");
        self.contents = after(&self.contents, step);
    }

    fn steps(&mut self, draw: &mut Draw, count: u32) {
        for n in 0..count {
            let step = step(draw, SHAPE.exported, MIX);
            self.step(step);
            if n % 16 == 0 {
                while self.volume.collect_step().expect("the medium is sound") {}
            }
            if n % 40 == 0 {
                self.past.push((self.now, self.contents.clone()));
            }
        }
    }
}

impl Killed {
    /// A life with a checkpoint in it, another that begins with a recovery in half of the cases, and a flush at the end.
    pub fn new(system: &str, seed: u64) -> Killed {
        Killed::of(system, identity(system), seed)
    }

    /// Another volume: its key is its own.
    pub fn foreign() -> Killed {
        let key = VolumeKey([5; 32]);
        let id = Identity {
            key,
            ..identity("plain")
        };
        Killed::of("foreign", id, 99)
    }

    fn of(system: &str, id: Identity, seed: u64) -> Killed {
        let mut draw = Draw::new(seed);
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&*medium, &id).unwrap();
        let bytes = || {
            let mut bytes = vec![0; medium.len() as usize];
            medium.read(0, &mut bytes).unwrap();
            bytes
        };
        let open = || Volume::open(Arc::clone(&medium)).unwrap().0;
        let mut older = Vec::new();
        let mut life = Life {
            volume: open(),
            contents: vec![0; SHAPE.exported as usize],
            past: Vec::new(),
            now: 1000,
        };
        for part in 0..6 {
            let count = 150 + draw.below(150);
            life.steps(&mut draw, count);
            life.step(Step::Flush);
            older.push(bytes());
            match part {
                0 | 1 => life.step(Step::Checkpoint),
                3 if seed.is_multiple_of(2) => life.volume = open(),
                _ => {}
            }
        }
        let mut more = 0;
        while !has_reopened_blocks(&medium) {
            more += 1;
            assert!(more < 100, "{system}: nothing is collected");
            life.steps(&mut draw, 40);
            life.step(Step::Flush);
        }
        Killed {
            name: format!("{system}, seed {seed}"),
            areas: Areas::new(&id).unwrap(),
            metadata: metadata(&medium),
            image: Arc::new(bytes()),
            older,
            contents: life.contents,
            past: life.past,
        }
    }
}

/// Whether a block that the last checkpoint knows as full was opened again since.
fn has_reopened_blocks(medium: &MemoryMedium) -> bool {
    let Loaded { tables, tail, .. } = Loaded::of(medium).unwrap();
    load::entries(&tail).any(|entry| match entry {
        JournalEntry::Open { block, .. } => tables.blocks[block.index()].state != BlockState::Free,
        _ => false,
    })
}

/// Roots, the journal in use with its mark, and the slots of tables.
fn metadata(medium: &MemoryMedium) -> Vec<(usize, usize)> {
    let Loaded {
        superblock,
        areas,
        root,
        tail,
        mark_at,
        table_pages,
        count_pages,
        ..
    } = Loaded::of(medium).unwrap();
    let id = &superblock.identity;
    let lengths = tail.batches.iter().map(|batch| {
        let (entries, values) = (batch.entries.len(), batch.value_bytes());
        Batch::bytes(entries, values, id.alignment as usize)
    });
    let journal = areas.journal(root.checkpoint);
    let pages = table_pages.into_iter().chain(count_pages);
    let mut parts: Vec<(u64, usize)> = pages
        .map(|at| (at, flashlore_metadata::PAGE_BYTES))
        .collect();
    let store = areas.store;
    parts.extend((0..2).map(|parity| (store.root(parity), store.root_bytes())));
    // The journal counts as much as the tables.
    let journal = (journal, lengths.sum());
    parts.extend(std::iter::repeat_n(journal, parts.len()));
    parts.push((mark_at, MARK_BYTES as usize));
    parts
        .into_iter()
        .map(|(at, len)| (at as usize, len))
        .collect()
}
