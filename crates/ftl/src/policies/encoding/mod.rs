//! Values in fewer bytes than a page, whoever offers them: what is set, counted and compared for all that encode.
//!
//! * [`forms`] — what a write can be stored as, and what that costs
//! * [`viability`] — whether encoding pays at all

pub mod forms;
pub mod viability;

use flashlore_content::Content;

use self::viability::{Viability, ViabilityOptions};
use super::Policy;
use super::delta::heat::HeatOptions;
use super::delta::similar::{SimilarCounters, SimilarOptions};

/// What is encoded, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodingOptions {
    /// Whether updates are stored as deltas.
    pub deltas: bool,
    /// Whether values are compressed by themselves.
    pub compress: bool,
    /// Writes since the last scan from which on a page is write-hot: a delta is stored for such a
    /// page alone. [`NEVER`](super::delta::NEVER) for no page.
    pub hot_writes: u8,
    /// Reads from which on it is read-hot: no delta is stored for it.
    pub hot_reads: u8,
    /// The longest encoded value that is stored, in bytes.
    pub most_bytes: u16,
    /// When encoding is bypassed altogether.
    pub viability: ViabilityOptions,
    /// How many pages' counts are kept.
    pub heat: HeatOptions,
    /// What a byte that a delta alone keeps alive costs, in thousandths of a byte programmed.
    pub lambda: u32,
    /// The quota: with so many bases that deltas alone keep alive, no delta is taken from any other.
    pub most_pinned: u32,
    /// Where bases are looked for when a page has none of its own; `None` for nowhere.
    pub similar: Option<SimilarOptions>,
}

/// What happened to writes and encoded values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EncodingCounters {
    /// Writes that were encoded to see how long that is, or would have been outside baseline mode.
    pub candidates: u64,
    /// Of them, those not encoded in baseline mode.
    pub bypassed: u64,
    /// Writes stored as deltas.
    pub deltas: u64,
    /// Their bytes, without directory entries.
    pub delta_bytes: u64,
    /// Writes compressed by themselves.
    pub compressed: u64,
    /// Their bytes.
    pub compressed_bytes: u64,
    /// Host reads of packed values.
    pub reads: u64,
    /// Those of them that needed a second flash page, or one besides what is in RAM.
    pub double_reads: u64,
    /// Values materialized because they are read often.
    pub merges_read_hot: u64,
    /// Because they are not written often any more.
    pub merges_write_cold: u64,
    /// While their block, or their base's, was collected.
    pub merges_gc: u64,
    /// To make room.
    pub merges_room: u64,
    /// Merged values that turned out to be stored already.
    pub merges_shared: u64,
    /// Encoded values packed anew by collection.
    pub repacked: u64,
    /// Packed pages programmed by collection.
    pub repack_programs: u64,
    /// Bases chosen by similarity.
    pub similar: SimilarCounters,
}

/// Why a value is materialized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is read often.
    ReadHot,
    /// It is not written often any more.
    WriteCold,
    /// Its block, or its base's, is collected.
    Gc,
    /// Space is needed.
    Room,
}

impl EncodingCounters {
    /// A value has been materialized.
    pub(crate) fn count_merge(&mut self, why: Why) {
        let count = match why {
            Why::ReadHot => &mut self.merges_read_hot,
            Why::WriteCold => &mut self.merges_write_cold,
            Why::Gc => &mut self.merges_gc,
            Why::Room => &mut self.merges_room,
        };
        *count += 1;
    }
}

/// What all that encode share: whether it pays, and what came of it.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// The longest encoded value that is stored, in bytes.
    pub most_bytes: u16,
    /// The controller that bypasses encoding.
    pub viability: Viability,
    /// Counts since the start or the end of warm-up, but for those that each policy keeps.
    pub counters: EncodingCounters,
}

impl Encoded {
    /// Nothing is encoded yet.
    pub(crate) fn new(options: &EncodingOptions) -> Self {
        Encoded {
            most_bytes: options.most_bytes,
            viability: Viability::new(options.viability),
            counters: EncodingCounters::default(),
        }
    }
}

impl<C: Content, V: Clone> Policy<C, V> for Encoded {
    fn restart_counters(&mut self) {
        self.counters = EncodingCounters::default();
        self.viability.bypassed = 0;
    }
}
