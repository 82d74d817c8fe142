//! What a system file says: the content policies, independent of the device.
//!
//! The meaning of each key, for users, stands in `template/system.toml`; here is its type.

use serde::{Deserialize, Serialize};

use flashlore_units::{Count, Entries, Nanos};

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
    /// The sorting write queue. Its other values are the defaults when it is not enabled.
    pub queue: QueueConfig,
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

/// A queue that sorts changes by address before they are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// Whether there is one.
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
