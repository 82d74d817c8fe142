//! The parameters of I-CASH, each with where it comes from.
//!
//! "Paper" is Ren and Yang, "I-CASH: Intelligently Coupled Array of SSD and HDD", HPCA 2011. What the paper leaves
//! open is marked as chosen here; `docs/array.md` says why.

use flashlore_delta::{Codec, PAGE_BYTES};
use serde::{Deserialize, Serialize};

use crate::error::ArrayError;

/// Bytes of a block (paper: 4 KB cache blocks).
pub const BLOCK_BYTES: usize = PAGE_BYTES;

/// Sub-blocks of a block, each with a sub-signature (paper).
pub const SUB_BLOCKS: usize = 8;

/// Bytes of a sub-block (paper: 512 B).
pub const SUB_BLOCK_BYTES: usize = BLOCK_BYTES / SUB_BLOCKS;

/// Offsets in a sub-block of the bytes whose sum is its sub-signature (paper).
pub const SAMPLED_OFFSETS: [usize; 4] = [0, 16, 32, 64];

/// Values of a sub-signature: columns of the heatmap (paper: one byte).
pub const SIGNATURE_VALUES: usize = 256;

/// Bytes of a segment of a delta in RAM (paper).
pub const SEGMENT_BYTES: usize = 64;

pub const BLOCK_SEGMENTS: u32 = (BLOCK_BYTES / SEGMENT_BYTES) as u32;

/// The most that may be tried: each costs a read of the fast medium and an encoding.
pub const MOST_TRIED: usize = 64;

/// Longest delta (paper: 2048 B).
pub const DELTA_LIMIT: usize = 2048;

/// Requests between two scans (paper: 2,000 I/Os).
pub const SCAN_EVERY: u64 = 2000;

/// Virtual blocks a scan looks at, from the head of the LRU list (paper).
pub const SCAN_BLOCKS: usize = 4000;

/// Sub-signatures at equal positions that make two blocks worth comparing (chosen here: half of them; the paper prints
/// no such limit).
pub const SIMILAR_POSITIONS: u32 = 4;

/// References whose delta is tried for a block, those that share the most first (chosen here).
pub const TRIED: usize = 1;

/// Full log blocks of what is not durable yet that make the element flush by itself (paper: tunable; value chosen
/// here: 256 KiB of log).
pub const FLUSH_BLOCKS: u32 = 64;

/// Blocks written home at once when data blocks are replaced, at least (chosen here).
pub const WRITE_BACK_BATCH: usize = 64;

/// The most of them that [`write_back_batch`] gives (chosen here): 4 MiB.
const LONGEST_BATCH: usize = 1024;

/// Blocks that go home at once for so many data blocks: a sixteenth of them, within limits. Each batch waits for
/// syncs of both media, and the more of a reference's dependents go together, the fewer seeks they take.
pub fn write_back_batch(slots: u32) -> usize {
    (slots as usize / 16).clamp(WRITE_BACK_BATCH, LONGEST_BATCH)
}

/// Frozen places for so many slots: as many (chosen here). docs/array.md says why.
pub fn frozen_blocks(slots: u32) -> u32 {
    slots.min((u32::MAX - 1).saturating_sub(slots))
}

/// Blocks next to each other that are written at once when they go home, at most (chosen here: 1 MiB).
pub const LONGEST_RUN: usize = 256;

/// Blocks of a sequential stream behind which real arrays let it pass by (chosen here: 4 MiB, as bcache does).
pub const SEQUENTIAL_CUTOFF: u32 = 1024;

/// Pages of the place table in memory, at most, of real arrays (chosen here): 256 MiB, all pages of 64 GiB, about.
pub const TABLE_PAGES: u32 = 1 << 16;

/// Data blocks kept free, so that new content never overwrites old (chosen here).
pub const SPARE_SLOTS: u32 = 2;

/// Virtual blocks kept free for the next request: one for its block, one for a reference that loses its address
/// (chosen here).
pub const SPARE_VIRTUAL_BLOCKS: u32 = 2;

/// Frozen places kept free in write-through, for the references that the next scan chooses (chosen here).
pub const SPARE_FROZEN: u32 = 2;

/// Segments kept free for the next request: enough for a whole block (chosen here).
pub const SPARE_SEGMENTS: u32 = BLOCK_SEGMENTS;

pub const LEAST_SLOTS: u32 = 4;

/// Fewest images of a journal.
pub const LEAST_JOURNAL: u32 = 8;

/// Where new content goes that has no short delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TooBig {
    /// To the fast medium, as the paper's prototype does.
    #[default]
    Fast,
    /// To the log, as the paper's abstract says: no write of the host is a write of the fast medium.
    Log,
}

/// What a durable state may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// On both media (paper): content and bases of deltas may be durable on the fast one alone.
    #[default]
    WriteBack,
    /// On the slow medium alone: what the fast one holds is a copy, and may be lost at any time.
    WriteThrough,
}

/// When a block that only the slow medium has is copied to the fast one. The paper says nothing of it, and that the
/// fast medium is seldom written (5.1): a scan copies there what others are to be based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// When it is read.
    #[default]
    Read,
    /// When it is read again while it is remembered.
    SecondRead,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Similarity {
    /// Signatures and heatmap (paper).
    #[default]
    Signatures,
    /// Super-features of the whole block (`flashlore_delta::sketch`); the heatmap still says what is popular.
    SuperFeatures,
    /// Not at all: the control, in which compression has to do alone.
    #[serde(rename = "none")]
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Never (paper).
    #[default]
    Never,
    /// Where that is shorter than the delta from the reference, or there is none.
    IfShorter,
}

/// How an element behaves while it is open. Nothing of it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Virtual blocks, at most. More than the data blocks, frozen ones too, by [`Options::LEAST_MORE_VIRTUAL`] at least.
    pub virtual_blocks: u32,
    /// Segments of 64 bytes for deltas in RAM, at most.
    pub segments: u32,
    /// Requests between two scans.
    pub scan_every: u64,
    pub scan_blocks: usize,
    /// Sub-signatures at equal positions (or, with super-features, one) that make blocks worth comparing.
    pub similar_positions: u32,
    /// References that a scan tries for a block; the shortest delta wins. One with super-features.
    pub tried: usize,
    /// Longest delta in bytes, at most [`DELTA_LIMIT`].
    pub delta_limit: usize,
    /// Log blocks' worth of changes that are not durable which make the element flush by itself.
    pub flush_blocks: u32,
    pub write_back_batch: usize,
    /// Whether a write is answered when its data are in RAM, before they are encoded (paper, section 5.1). A group of
    /// the log waits for what was answered.
    pub answers_early: bool,
    pub mode: Mode,
    /// With [`Mode::WriteThrough`] it must be [`TooBig::Log`].
    pub too_big: TooBig,
    pub similarity: Similarity,
    pub compression: Compression,
    /// Whether each scan halves the heatmap, so that it forgets. The paper's never does.
    pub halve_heatmap: bool,
    pub fill: Fill,
    /// Data blocks in RAM, at most.
    pub ram_blocks: u32,
    /// Blocks of a sequential stream behind which it passes by; none passes by if it is 0.
    pub sequential_cutoff: u32,
    /// Pages of the place table in memory, at most, but for those that wait for a checkpoint.
    pub table_pages: u32,
    /// Whether the other deltas of a log block that is read come to RAM too (paper).
    pub unpack_all: bool,
    pub codec: Codec,
}

impl Options {
    /// How many virtual blocks there must be at least besides one for each data block.
    pub const LEAST_MORE_VIRTUAL: u32 = SPARE_VIRTUAL_BLOCKS + 2;

    /// The paper's way, with so much RAM for virtual blocks and deltas.
    pub fn new(virtual_blocks: u32, segments: u32) -> Self {
        Options {
            virtual_blocks,
            segments,
            scan_every: SCAN_EVERY,
            scan_blocks: SCAN_BLOCKS,
            similar_positions: SIMILAR_POSITIONS,
            tried: TRIED,
            delta_limit: DELTA_LIMIT,
            flush_blocks: FLUSH_BLOCKS,
            write_back_batch: WRITE_BACK_BATCH,
            answers_early: false,
            mode: Mode::default(),
            too_big: TooBig::default(),
            similarity: Similarity::default(),
            compression: Compression::default(),
            halve_heatmap: false,
            fill: Fill::default(),
            ram_blocks: 0,
            sequential_cutoff: 0,
            table_pages: u32::MAX,
            unpack_all: true,
            codec: Codec::default(),
        }
    }

    /// Compression alone, without similarity: what the paper's way is to be compared with.
    pub fn compression_only(virtual_blocks: u32, segments: u32) -> Self {
        Options {
            similarity: Similarity::Nothing,
            compression: Compression::IfShorter,
            ..Self::new(virtual_blocks, segments)
        }
    }

    /// Refuses what cannot work on an element of so many data blocks, frozen ones too.
    pub fn validate(&self, data_blocks: u64) -> Result<(), ArrayError> {
        let least_virtual = data_blocks + u64::from(Self::LEAST_MORE_VIRTUAL);
        let least_segments = 2 * u64::from(SPARE_SEGMENTS);
        let (longest, positions) = (DELTA_LIMIT as u64, SUB_BLOCKS as u64);
        let most = u64::from(u32::MAX);
        let rules = [
            (
                "virtual_blocks",
                self.virtual_blocks.into(),
                least_virtual,
                most - 1,
            ),
            ("segments", self.segments.into(), least_segments, most - 1),
            ("scan_every", self.scan_every, 1, u64::MAX),
            ("scan_blocks", self.scan_blocks as u64, 1, u64::MAX),
            ("delta_limit", self.delta_limit as u64, 1, longest),
            (
                "similar_positions",
                self.similar_positions.into(),
                1,
                positions,
            ),
            ("tried", self.tried as u64, 1, MOST_TRIED as u64),
            ("flush_blocks", self.flush_blocks.into(), 1, most),
            ("write_back_batch", self.write_back_batch as u64, 1, most),
            ("table_pages", self.table_pages.into(), 1, most),
        ];
        for (what, found, least, most) in rules {
            if !(least..=most).contains(&found) {
                return Err(ArrayError::Shape(format!(
                    "{what} = {found} cannot work with {data_blocks} data blocks, expected {least} to {most}"
                )));
            }
        }
        match (self.mode, self.too_big) {
            (Mode::WriteThrough, TooBig::Fast) => Err(ArrayError::Shape(
                "write-through leaves nothing on the fast medium alone: what is too big for a delta (too_big) must go \
                 to the log, not to the fast medium"
                    .into(),
            )),
            _ => Ok(()),
        }
    }
}
