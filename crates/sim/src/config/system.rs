//! What a system file says: the content policies, independent of the device.
//!
//! The meaning of each key, for users, stands in `template/system.toml`; here is its type.

use flashlore_delta::Codec;
use flashlore_ftl::policies::history::OnPressure;
use flashlore_units::{Bytes, Count, Entries, Nanos, Share};
use serde::{Deserialize, Serialize};

use super::array::{ArrayConfig, ArrayKind};
use super::names;
use super::retention::Retention;

/// A set of content policies. Loaded values are checked: see [`super::load_system`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemConfig {
    /// Short name, as printed in results.
    #[serde(default)]
    pub name: String,
    /// One line for lists.
    #[serde(default)]
    pub description: String,
    /// Where the figures come from.
    #[serde(default)]
    pub source: String,
    /// Deduplication. Its other values are the defaults when it is not enabled, except
    /// `oracle`.
    pub dedup: DedupConfig,
    /// Updates as deltas. Its other values are the defaults when it is not enabled.
    pub delta: DeltaConfig,
    /// Values compressed by themselves.
    pub compress: CompressConfig,
    /// The engine that encodes and decodes, where anything is.
    pub codec: CodecConfig,
    /// Old versions. Its other values are the defaults when it is not enabled.
    pub history: HistoryConfig,
    /// The sorting write queue. Its other values are the defaults when it is not enabled.
    pub queue: QueueConfig,
    /// An array of which the device is a part: the rest of the system is that of its SSD.
    pub array: ArrayConfig,
}

/// Deduplication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DedupConfig {
    /// Whether writes are deduplicated at all.
    pub enabled: bool,
    /// Whether programs are split into unique, duplicate and reborn.
    pub oracle: bool,
    /// Entries of the fingerprint index.
    pub index_entries: Entries,
    /// Time of the hash unit per mapping unit; 0 = none.
    pub hash_time: Nanos,
    /// The digest whose size is accounted.
    pub digest: Digest,
    /// Whether a hit is compared with the stored page before it is shared.
    pub verify: bool,
    /// Bits of the fingerprint that are compared, 1 to 128.
    pub fingerprint_bits: u32,
    /// Whether pages found by pre-conditioning are entered into the index.
    pub prefill_in_index: bool,
    /// Whether all pages of a write are hashed when they come, or a sample.
    pub sampling: Sampling,
    /// Of so many pages of a write one is the sample. Used by [`Sampling::Request`] alone.
    pub sampling_unit: Count,
    /// Whether stored pages that were not hashed are hashed in idle time.
    pub out_of_line: bool,
    /// Pages behind a hit whose discarded index entries are restored from flash; 0 = none.
    pub prefetch: u32,
    /// Switching itself off where content does not repeat.
    pub switch_off: SwitchOff,
}

/// Which pages of a write are hashed when they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// All.
    Off,
    /// One for several of a request, and the others if it is found.
    Request,
}

/// A digest of the papers: it decides accounted sizes only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Digest {
    /// 16 bytes.
    Md5,
    /// 20 bytes.
    Sha1,
}

/// Switching deduplication off where content does not repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchOff {
    /// Whether it does.
    pub enabled: bool,
    /// Page writes over which the hit rate is measured.
    pub window: Count,
    /// Windows in a row that must not pay before hashing stops.
    pub windows: u32,
    /// While off, one write in this many is hashed to notice a return.
    pub sample: Count,
}

impl Digest {
    /// Bytes of a digest.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
        }
    }
}

/// Old versions of pages, for rewinds to earlier instants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryConfig {
    /// Whether they are kept.
    pub enabled: bool,
    /// What is kept of a version.
    pub form: Form,
    /// The window that is kept if possible.
    pub min_window: Nanos,
    /// What happens when room is needed and the window is no longer than that.
    #[serde(with = "names::OnPressure")]
    pub on_pressure: OnPressure,
    /// The part of the flash that old versions leave free.
    pub reserve: Share,
    /// Whether blocks sealed before the window begins are collected rather than others. Used by
    /// [`Form::Pages`] alone.
    pub sealed_before_window: bool,
    /// Instants that outlive the window.
    pub schedule: Retention,
    /// The most entries of the history.
    pub entries: Entries,
    /// RAM for entries; the oldest of the others lie on flash.
    pub tier_bytes: Bytes,
    /// Recording a version takes so long for each of its five fields.
    pub field_time: Nanos,
    /// Mean of R_c of a parity where it is drawn. Used by [`Form::Parities`] alone.
    pub mean: f64,
    /// Standard deviation of R_c where it is drawn. Used by [`Form::Parities`] alone.
    pub deviation: f64,
}

/// What is kept of a superseded version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The page that holds it (BVSSD).
    Pages,
    /// Its exclusive or with the version that follows it, compressed, in a log (TRAP).
    Parities,
}

/// Updates stored as deltas from the pages they replace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeltaConfig {
    /// Whether they are.
    pub enabled: bool,
    /// Writes since the last scan from which on a page is write-hot; 16 is never reached.
    pub hot_writes: u8,
    /// Reads since then from which on it is read-hot.
    pub hot_reads: u8,
    /// How often pages that are not write-hot any more are looked for; 0 = never.
    pub scan_period: Nanos,
    /// Pages whose reads and writes are counted.
    pub counted_pages: Entries,
    /// The most that pages used again take of them.
    pub protected: Share,
    /// What a byte kept alive by a delta alone costs, in bytes programmed.
    pub lambda: f64,
    /// The most pages, as a share of the exported ones, that deltas alone may keep alive.
    pub pinned: Share,
    /// What deltas are taken from.
    pub base: Base,
    /// Entries of the signature index. Used by [`Base::Similar`] alone.
    pub base_entries: Entries,
    /// Deltas from one page from which on it is not found any more. Used by [`Base::Similar`] alone.
    pub base_sharers: Count,
    /// Mean of R_c where it is drawn.
    pub mean: f64,
    /// Standard deviation of R_c where it is drawn.
    pub deviation: f64,
}

/// What deltas are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// What the page held (DeltaFTL).
    Address,
    /// That, or for a page without it whatever page resembles it (I-CASH).
    Similar,
}

/// Values compressed by themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompressConfig {
    /// Whether they are.
    pub enabled: bool,
    /// Mean of the compressed size, as a share of a page, where it is drawn.
    pub mean: f64,
    /// Its standard deviation.
    pub deviation: f64,
}

/// The engine that encodes and decodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodecConfig {
    /// Where the lengths of encoded values come from.
    pub ratio: RatioFrom,
    /// How bytes are encoded. Used by [`RatioFrom::Codec`] alone.
    pub algorithm: Codec,
    /// Clock of its processor in MHz; 0 = it takes no time.
    pub mhz: u32,
    /// Cycles to encode a mapping unit.
    pub encode_cycles: Count,
    pub decode_cycles: Count,
    /// Cycles to sketch one. Used by [`Base::Similar`] alone.
    pub sketch_cycles: Count,
    /// Whether encoding is bypassed while it would make writes slower.
    pub viability: bool,
    /// Encoded writes over which the mean of R_c is taken.
    pub window: Count,
    /// While bypassed, one candidate in so many is encoded to notice a return.
    pub probe: Count,
}

/// Where the lengths of encoded values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RatioFrom {
    /// They are drawn.
    Drawn,
    /// Those of deltas are the R_c of the trace's page writes; those of values by themselves are
    /// drawn.
    Trace,
    /// They are those of the pages' bytes, encoded.
    Codec,
}

impl CodecConfig {
    /// Time to encode a unit.
    pub fn encode_time(&self) -> Nanos {
        self.time(self.encode_cycles)
    }

    pub fn decode_time(&self) -> Nanos {
        self.time(self.decode_cycles)
    }

    pub fn sketch_time(&self) -> Nanos {
        self.time(self.sketch_cycles)
    }

    fn time(&self, cycles: Count) -> Nanos {
        let nanos = u128::from(cycles.0) * 1000;
        let time = (nanos + u128::from(self.mhz) / 2).checked_div(u128::from(self.mhz));
        Nanos(time.map_or(0, |time| u64::try_from(time).unwrap_or(u64::MAX)))
    }
}

impl SystemConfig {
    /// Whether pages are stored in fewer bytes than a page.
    pub fn encodes(&self) -> bool {
        self.delta.enabled || self.compress.enabled
    }

    /// Whether pages that resemble each other are looked for.
    pub fn looks_for_similar(&self) -> bool {
        self.delta.enabled && self.delta.base == Base::Similar
    }

    /// Whether old versions are kept as parities.
    pub fn keeps_parities(&self) -> bool {
        self.history.enabled && self.history.form == Form::Parities
    }

    /// Whether the bytes of pages have to be known.
    pub fn needs_bytes(&self) -> bool {
        self.array.kind == ArrayKind::ICash || self.encodes_bytes()
    }

    /// Whether its translation layer encodes the bytes of pages.
    pub fn encodes_bytes(&self) -> bool {
        let encodes = self.encodes() || self.keeps_parities();
        encodes && self.codec.ratio == RatioFrom::Codec
    }

    /// Whether it takes R_c of page writes from the trace.
    pub fn needs_ratios(&self) -> bool {
        let differs = self.delta.enabled || self.keeps_parities();
        differs && self.codec.ratio == RatioFrom::Trace
    }
}

/// A queue that sorts changes by address before they are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    pub enabled: bool,
    /// Changes of one page that it holds.
    pub requests: Count,
    /// Mapping units of the address range of a bucket.
    pub bucket: Count,
    /// When a change is acknowledged.
    pub ack: Acknowledge,
    /// So long after the first change since the last time all of it is flushed.
    pub period: Nanos,
}

/// When a change that passes the write queue is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledge {
    /// When it has a place in the queue.
    Enqueue,
    /// When it is done: a write when it is programmed.
    Program,
}
