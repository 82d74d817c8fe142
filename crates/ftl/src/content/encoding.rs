//! Values in fewer bytes than a page, whoever offered the form: how long they may be, whether encoding pays, and what is
//! counted.

use super::viability::Viability;
use crate::policies::delta::similar::SimilarCounters;
use crate::policies::options::EncodingOptions;

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

    /// Counts begin anew.
    pub(crate) fn restart_counters(&mut self) {
        self.counters = EncodingCounters::default();
        self.viability.bypassed = 0;
    }
}
