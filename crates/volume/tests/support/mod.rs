//! What the tests of the volume share: small identities, pages by number, a generator of draws, and
//! histories with the states a recovery from them may answer; damage (`strike.rs`), what a damaged volume must say
//! (`verdict.rs`), and what lies on a medium (`loaded.rs`).
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod loaded;
pub mod strike;
pub mod verdict;
pub mod with_tables;

use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes, VolumeKey};
use flashlore_flash::Lpn;
use flashlore_medium::{Faults, FaultyMedium, MemoryMedium};
use flashlore_volume::{
    Encoding, Identity, MemoryShares, Policy, Volume, VolumeError, bytes_needed, create,
};

/// All policies.
pub const POLICIES: [Policy; 3] = [Policy::Plain, Policy::Dedup, Policy::DedupTrusted];

/// What tests vary of an identity.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub exported: u32,
    pub blocks: u32,
    pub pages_per_block: u32,
    pub units_per_page: u32,
    pub alignment: u32,
    pub index_entries: u32,
    pub journal_bytes: u64,
}

impl Shape {
    pub fn identity(self, policy: Policy) -> Identity {
        Identity {
            version: flashlore_volume::format::superblock::VERSION,
            policy,
            history: None,
            encoding: Encoding::default(),
            uuid: [1; 16],
            key: VolumeKey([9; 32]),
            created: 5,
            exported: self.exported,
            blocks: self.blocks,
            pages_per_block: self.pages_per_block,
            units_per_page: self.units_per_page,
            alignment: self.alignment,
            index_entries: self.index_entries,
            journal_bytes: self.journal_bytes,
        }
    }
}

const SPREAD: u32 = 0x9E37_79B1;
/// Its inverse modulo 2^32.
const GATHER: u32 = 0x0E8B_2F51;

/// A medium that counts what is done to it.
pub type Counted = Arc<FaultyMedium<MemoryMedium>>;

/// A new volume on such a medium.
pub fn counted(id: &Identity) -> (Counted, Volume) {
    let medium = MemoryMedium::new(bytes_needed(id).unwrap() as usize);
    let medium = Arc::new(FaultyMedium::new(medium, Faults::default()));
    create(&*medium, id).unwrap();
    let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
    (medium, volume)
}

/// The page with this number; number 0 is all zeros.
pub fn page(value: u32) -> PageBytes {
    let mut page = [0; PAGE_BYTES];
    if value != 0 {
        for (word, i) in page.as_chunks_mut().0.iter_mut().zip(0..) {
            *word = (value.wrapping_mul(SPREAD) ^ i).to_le_bytes();
        }
    }
    page
}

/// The number of a page, `None` if [`page`] never made it.
pub fn value_of(bytes: &PageBytes) -> Option<u32> {
    let first = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let value = first.wrapping_mul(GATHER);
    (page(value) == *bytes).then_some(value)
}

/// Draws that repeat for a seed.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) % u64::from(limit)) as u32
    }
}

/// One call of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Write { lpn: Lpn, value: u32 },
    Trim { lpn: Lpn },
    Flush,
    Checkpoint,
}

impl Step {
    pub fn run(self, volume: &mut Volume) -> Result<(), VolumeError> {
        match self {
            Step::Write { lpn, value } => volume.write(100, lpn, &page(value)),
            Step::Trim { lpn } => volume.trim(100, lpn),
            Step::Flush => volume.flush(),
            Step::Checkpoint => volume.checkpoint(),
        }
    }

    /// Whether everything before it is durable once it is acknowledged.
    pub fn is_durable(self) -> bool {
        matches!(self, Step::Flush | Step::Checkpoint)
    }
}

/// What every address holds, by the number of the page; 0 where nothing was written.
pub type Contents = Vec<u32>;

/// The contents after a step.
pub fn after(contents: &Contents, step: Step) -> Contents {
    let mut next = contents.clone();
    match step {
        Step::Write { lpn, value } => next[lpn.index()] = value,
        Step::Trim { lpn } => next[lpn.index()] = 0,
        Step::Flush | Step::Checkpoint => {}
    }
    next
}

/// How often a drawn history does what, in per cent; the rest are writes.
#[derive(Debug, Clone, Copy)]
pub struct Mix {
    pub trims: u32,
    pub flushes: u32,
    pub checkpoints: u32,
    /// Different values that are written.
    pub values: u32,
}

/// A drawn history over addresses below `exported`.
pub fn history(seed: u64, steps: u32, exported: u32, mix: Mix) -> Vec<Step> {
    let mut draw = Draw::new(seed);
    (0..steps).map(|_| step(&mut draw, exported, mix)).collect()
}

/// One drawn step.
pub fn step(draw: &mut Draw, exported: u32, mix: Mix) -> Step {
    let (kind, lpn) = (draw.below(100), draw.below(exported));
    if kind < mix.trims {
        Step::Trim { lpn: Lpn(lpn) }
    } else if kind < mix.trims + mix.flushes {
        Step::Flush
    } else if kind < mix.trims + mix.flushes + mix.checkpoints {
        Step::Checkpoint
    } else {
        let value = 1 + draw.below(mix.values);
        Step::Write {
            lpn: Lpn(lpn),
            value,
        }
    }
}

/// Reads an address: the number of its page, or the error.
pub fn read(volume: &mut Volume, lpn: Lpn) -> Result<u32, VolumeError> {
    let mut bytes = [0xEE; PAGE_BYTES];
    volume.read(lpn, &mut bytes)?;
    Ok(value_of(&bytes).unwrap_or_else(|| panic!("page {lpn} holds what nobody wrote")))
}

/// Reads every address; each must be readable.
pub fn contents(volume: &mut Volume) -> Contents {
    let exported = volume.exported();
    (0..exported)
        .map(|lpn| read(volume, Lpn(lpn)).unwrap_or_else(|e| panic!("page {lpn}: {e}")))
        .collect()
}

/// As few pages of tables in memory as can be.
pub const FEW_PAGES: MemoryShares = MemoryShares {
    tables_at_opening: 0,
    tables: 0,
    index_entries: u32::MAX,
};
