//! What the policies of a system did with content: deduplication, deltas, compression, old versions. All zeros
//! where a system has none.

use flashlore_ftl::policies::history::RewindCost;
use serde::{Deserialize, Serialize};

use super::device::ratio;

/// Old versions of pages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Entries at the end.
    pub entries: u64,
    /// Length of the window at the end, in simulated seconds.
    pub window_s: f64,
    /// Values that only old versions needed at the end.
    pub historical_units: u64,
    /// Units copied by collection that were live.
    pub copied_live: u64,
    /// Units copied by collection that only old versions needed.
    pub copied_historical: u64,
    /// Versions recorded.
    pub recorded: u64,
    /// Versions given up that named a value.
    pub dropped: u64,
    /// What the paper charges for the entries: 24 bytes each.
    pub paper_bytes: u64,
    /// Versions kept as parities, or compressed by themselves where nothing followed.
    pub encoded: u64,
    /// Versions that were to be kept so, and were not shorter than a page.
    pub raw: u64,
    /// Mean size of those encoded, as a share of a page.
    pub mean_rc: Option<f64>,
    /// What a rewind to the start of the window would take at the end.
    pub longest_rewind: Rewind,
    /// Bytes that old versions may take at the end, beside what the present needs.
    pub capacity_bytes: u64,
    /// The window that this would hold at the rate at which the run filled it, in simulated seconds.
    pub estimated_window_s: Option<f64>,
    /// Instants behind the window that can be rewound to as well, in simulated seconds.
    pub kept_instants_s: Vec<f64>,
    /// Flash programs of entries that RAM has no room for, in units.
    pub table_programs: u64,
    /// Units that held such entries at the end.
    pub tables_end: u64,
}

/// What a rewind to an instant takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rewind {
    /// Logical pages that changed since.
    pub pages: u64,
    /// Flash pages to be read.
    pub reads: u64,
    /// Values to be decoded.
    pub decodes: u64,
    /// Units to be programmed, without those that collection moves and those of the log.
    pub programs: u64,
}

impl From<RewindCost> for Rewind {
    fn from(cost: RewindCost) -> Self {
        Rewind {
            pages: cost.pages,
            reads: cost.reads,
            decodes: cost.decodes,
            programs: cost.programs,
        }
    }
}

/// Updates stored as deltas, and what they share with values compressed by themselves: packed pages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delta {
    /// Writes that were candidates for an encoded form.
    pub candidates: u64,
    /// Of them, those stored whole because encoding did not pay at the time.
    pub bypassed: u64,
    /// Writes stored as deltas.
    pub encoded: u64,
    /// Mean size of these as a share of a page (R_c).
    pub mean_rc: Option<f64>,
    /// Bases found by similarity; zeros where they are not looked for.
    pub similar: Similar,
    /// Host reads of encoded values.
    pub reads: u64,
    /// Of them, those that read two flash pages.
    pub double_reads: u64,
    /// Encoded values materialized, by cause.
    pub merges: Merges,
    /// Flash programs of packed units, those of garbage collection included.
    pub log_pages: u64,
    /// Encoded values packed anew by collection.
    pub repacked: u64,
    /// Encoded values at the end.
    pub values_end: u64,
    /// Packed units in use at the end.
    pub packs_end: u64,
    /// Bytes of bases that deltas alone kept alive at the end.
    pub pinned_bytes: u64,
}

/// Deltas from pages that were found by similarity.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Similar {
    /// Writes to be encoded whose page had nothing to differ from, and whose bytes were known.
    pub asked: u64,
    /// Of them, those for which a page was found.
    pub found: u64,
    /// Of them, those stored as the delta from it.
    pub taken: u64,
    /// Mean size of these as a share of a page (R_c).
    pub mean_rc: Option<f64>,
}

/// Encoded values materialized, by cause.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merges {
    /// Their page was read often.
    pub read_hot: u64,
    /// It was not written often any more.
    pub write_cold: u64,
    /// Their block, or their base's, was collected.
    pub gc: u64,
    /// To make room.
    pub room: u64,
    /// Of all, those that shared a value stored already, with deduplication.
    pub shared: u64,
}

/// Values compressed by themselves.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compress {
    /// Writes stored so.
    pub encoded: u64,
    /// Mean size of these as a share of a page.
    pub mean_ratio: Option<f64>,
}

/// Deduplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dedup {
    /// Writes whose content was in the index.
    pub hits: u64,
    /// Writes whose content was not.
    pub misses: u64,
    /// Hits on the content that the address held already.
    pub silent: u64,
    /// Entries discarded for lack of room.
    pub evictions: u64,
    /// Entries at the end.
    pub entries: u64,
    /// Bytes that the paper accounts for as many entries.
    pub paper_bytes: u64,
    /// Equal fingerprints of different content: refused with verification, wrongly shared without.
    pub collisions: u64,
    /// Writes that were not hashed because deduplication had switched itself off.
    pub bypassed: u64,
    /// Writes that were not hashed because the sample chosen for them was not found.
    pub unsampled: u64,
    /// Stored pages that were read and hashed in idle time.
    pub scanned: u64,
    /// Of them, those that were duplicates and were given up.
    pub scan_duplicates: u64,
    /// Stored pages read for their digests, to restore index entries that were discarded.
    pub looked_up: u64,
    /// Of them, those whose entry was restored.
    pub restored: u64,
}

impl Dedup {
    /// Hits over hits and misses.
    pub fn hit_rate(&self) -> Option<f64> {
        ratio(self.hits, self.hits + self.misses)
    }
}
