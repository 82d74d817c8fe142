//! Profiles: a workload's models and their parameters, as commented TOML.
//!
//! A profile is frozen by the hash of its text: whoever uses one prints the hash. What a paper
//! published about the workload stands beside the parameters under `[published]`, with the tolerance
//! within which the generated workload must show it.

use std::collections::BTreeMap;

use flashlore_trace::UNIT_BYTES;
use flashlore_units::{Nanos, Size};
use serde::{Deserialize, Serialize};

use crate::error::ProfileError;
use crate::similarity::Similarity;

/// A workload's models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    /// One line for lists.
    pub description: String,
    /// Where the figures come from.
    pub source: String,
    pub requests: Requests,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// Where they go.
    pub address: Address,
    /// What is written; absent for a workload without content.
    pub values: Option<Values>,
    /// What the bytes of its pages have in common; absent when nobody asks for bytes.
    pub similarity: Option<Similarity>,
    /// What the workload must show, by statistic.
    #[serde(default)]
    pub published: BTreeMap<Statistic, Published>,
}

/// How many requests, their mix and sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    pub count: u64,
    /// Share of the requests that write; the others read.
    pub writes: f64,
    /// Mean bytes of a read, at least 4 KiB: whole pages, geometrically distributed.
    #[serde(default = "one_page")]
    pub read_size: Size,
    /// The same for writes.
    #[serde(default = "one_page")]
    pub write_size: Size,
}

fn one_page() -> Size {
    Size(UNIT_BYTES)
}

/// An open arrival process: bursts of requests with pauses between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// From the first request to the last, on average.
    pub duration: Nanos,
    /// Mean number of requests of a burst, geometrically distributed; 1 is a Poisson process.
    pub burst: f64,
    /// Mean time between the requests of a burst, exponentially distributed.
    pub within: Nanos,
}

/// Where requests go. The pages are divided into extents, each written or read as a whole by a run of
/// sequential requests. A run is on a new extent or on one used before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// All pages of 4 KiB that are read or written.
    pub footprint: u64,
    /// Share of the requests that begin where the request before ended.
    pub sequential: f64,
    /// Share of the footprint that is only read.
    pub read_only: f64,
    /// Exponent of the growth of the footprint over the requests (Heaps' law): 1 is steady, smaller
    /// is faster at first.
    pub growth: f64,
    /// Share of the pages that are ever written which is hot.
    pub hot: f64,
    /// Share of the runs of writes that go to hot extents.
    pub hot_writes: f64,
    /// Which extent of its kind a run of writes goes back to.
    pub rewrite: Reach,
    /// Which extent that is only read a run of reads goes back to.
    pub reread: Reach,
    /// Share of the read requests that go to extents that are only read.
    pub cold_reads: f64,
    /// Which written extent a run of reads goes to.
    pub read_written: Reach,
}

/// How far a model reaches back for something used before: the on/off pattern of reuse.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// Share of the choices that are near: what was used a gap ago. The others take any with equal
    /// probability.
    pub near: f64,
    /// Mean gap of a near choice, exponentially distributed: in runs for extents, in page writes for
    /// values. Scaled with the workload.
    pub gap: f64,
}

/// What is written. Each page write is silent, new, or takes a value written before, which is a heavy
/// or a light one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// Distinct values over page writes.
    pub unique: f64,
    /// Share of the page writes that repeat what the page holds.
    pub silent: f64,
    /// Share of the page writes whose value was written before and is held by no page.
    pub reborn: f64,
    /// How many times likelier than others the write of a hot page is new.
    pub hot_new: f64,
    /// Share of the new values of hot pages that may be written again.
    pub hot_reuse: f64,
    /// Exponent of the growth of the distinct values over the page writes (Heaps' law).
    pub growth: f64,
    /// Share of the values that are heavy.
    pub heavy: f64,
    /// Share of the writes of values written before that takes heavy ones.
    pub heavy_reuse: f64,
    /// A light value is written at most so often, silent writes aside.
    pub light_writes: u32,
    /// Which heavy value is taken.
    pub heavy_reach: Reach,
    /// Which light value is taken.
    pub light_reach: Reach,
}

/// A statistic that a profile can promise. docs/workloads.md defines each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    Requests,
    /// Share of the requests that write.
    Writes,
    /// Distinct pages, in bytes.
    FootprintBytes,
    /// Share of sequential requests.
    Sequential,
    /// Distinct values over page writes.
    UniqueWrites,
    /// Distinct values over page reads.
    UniqueReads,
    /// Smallest share of the written values that makes half of the writes.
    X50,
    /// LRU positions that hold 90 % of the re-references among writes.
    ValueDepth90,
    /// Share of silent page writes.
    Silent,
    MeanSize,
    MeanReadSize,
    MeanWriteSize,
    BytesWritten,
    /// First to last request, in seconds.
    Seconds,
    /// Mean R_c of the versions of pages of records: LZ4 of the exclusive or of a version and the one
    /// before, over 4,096.
    DeltaRatio,
    /// Share of the pages, as they are in the end, that others are variants of.
    References,
    /// Share of the pages that are variants of a reference.
    Associates,
    /// Mean bytes of the delta of a variant from its reference.
    DeltaBytes,
}

/// What a paper published of a statistic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    pub value: f64,
    /// How far from it the workload may be, in the figure's own unit.
    pub tolerance: f64,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// Text that is no profile, a parameter out of range, or figures that contradict one another.
    pub fn parse(origin: &str, text: &str) -> Result<Profile, ProfileError> {
        let profile: Profile =
            toml_edit::de::from_str(text).map_err(|source| ProfileError::Syntax {
                origin: origin.to_owned(),
                source: Box::new(source),
            })?;
        profile
            .check()
            .map_err(|(key, message)| ProfileError::Invalid {
                origin: origin.to_owned(),
                key,
                message,
            })?;
        Ok(profile)
    }
}

/// The hash that freezes a profile: 16 hexadecimal digits of the BLAKE3 of its text.
pub fn profile_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}
