//! What a device file says: geometry, timing, spare space and the translation layer's
//! policies that belong to the device rather than to a system.
//!
//! The meaning of each key, for users, stands in `template/device.toml`; here is its type.

use std::fmt;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use flashlore_flash::sim::Concurrency;
use flashlore_ftl as ftl;
use flashlore_units::{Bytes, Count, Nanos, Share, Size, Watermark};

use super::geometry::UNIT_BYTES;
use super::names;

/// A simulated SSD. Loaded values are checked: see [`super::load_device`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// Short name, as printed in results.
    #[serde(default)]
    pub name: String,
    /// One line for lists.
    #[serde(default)]
    pub description: String,
    /// Where the figures come from.
    #[serde(default)]
    pub source: String,
    /// The part set whose figures fill `geometry`, `timing` and `energy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Present on a template whose blocks per plane are computed from the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<Auto>,
    /// Numbers of channels down to pages.
    pub geometry: Geometry,
    /// Durations of flash and link operations, and what may overlap.
    pub timing: Timing,
    /// Energy per operation.
    pub energy: Energy,
    /// Exported against raw capacity.
    pub space: SpaceConfig,
    /// Where pages go.
    pub layout: Layout,
    /// Garbage collection.
    pub gc: GcConfig,
    /// The forward map.
    pub map: MapCache,
    /// RAM that takes the writes of the host.
    pub buffer: BufferConfig,
    /// RAM that keeps pages which were read.
    pub read_cache: ReadCacheConfig,
    /// Which reads wait for writes.
    pub reads: ReadsConfig,
    /// Wear levelling.
    pub wear: WearConfig,
    /// The state in which a run finds the device.
    pub precondition: Precondition,
}

/// How a template meets a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auto {
    /// Distinct mapping units of the trace over exported ones. Not used when `space.capacity` is
    /// given.
    pub utilization: Share,
}

/// Numbers of each physical part in the one above it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Channels of the device.
    pub channels: u32,
    pub packages_per_channel: u32,
    pub dies_per_package: u32,
    pub planes_per_die: u32,
    /// Blocks of a plane. Absent exactly in a template with `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_per_plane: Option<u32>,
    /// Flash pages of a block.
    pub pages_per_block: u32,
    /// Data bytes of a flash page: 4 KiB to 64 KiB, a power of two.
    pub page_size: Size,
    /// Out-of-band bytes of a flash page.
    pub oob_size: Size,
    /// Program and erase cycles of a block before it is retired; 0 for any number.
    pub endurance: u32,
}

/// Durations of operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Array read of one flash page.
    pub read: Nanos,
    /// Program of one flash page: page `i` of a block takes entry `i` modulo the length. Not empty.
    #[serde(deserialize_with = "one_or_several")]
    pub program: Vec<Nanos>,
    /// Erase of one block.
    pub erase: Nanos,
    /// One 4 KiB mapping unit over the channel.
    pub transfer: Nanos,
    /// Whether dies wait for each other's transfers.
    pub channel: ChannelMode,
    /// Whether collection inside a plane copies without crossing the channel.
    pub copyback: bool,
    /// What executes one array operation at a time.
    #[serde(with = "names::Concurrency")]
    pub concurrency: Concurrency,
    /// Whether a host request may interrupt an erase that nobody waits for.
    pub erase_suspend: bool,
    /// Fixed cost of a request on the host link.
    pub host_request: Nanos,
    /// Cost of each 512 B sector on the host link.
    pub host_sector: Nanos,
    /// A page the host does not fill is padded and programmed so long after its first unit.
    pub flush_after: Nanos,
}

/// Who shares a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelMode {
    /// Each die has its own: transfers never queue.
    Private,
    /// The dies of a channel take turns.
    Shared,
}

/// Energy in microjoules; 0 where nothing is published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// Reading 4 KiB.
    pub read_uj: f64,
    /// Programming 4 KiB.
    pub program_uj: f64,
    /// Erasing a block.
    pub erase_uj: f64,
}

/// Exported capacity: given itself, or by the share kept back. Exactly one of `capacity` and
/// `over_provisioning` is present; both only in a template with `auto`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpaceConfig {
    /// Exported size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Size>,
    /// Share kept back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_provisioning: Option<Share>,
    /// What `over_provisioning` is a share of. Absent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<SpareDefinition>,
}

/// What the spare space is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpareDefinition {
    /// (raw − exported) / exported.
    Exported,
    /// (raw − exported) / raw.
    Raw,
}

/// Where pages go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Who chooses the die of a write.
    #[serde(with = "names::Placement")]
    pub placement: ftl::Placement,
    /// The order in which consecutive writes move, fastest first: each level once.
    #[serde(with = "names::stripe")]
    pub stripe: [ftl::Level; 4],
    /// When writes move on to the next plane in striping order.
    #[serde(with = "names::Rotate")]
    pub rotate: ftl::Rotate,
    /// What blocks are allocated and collected from.
    #[serde(with = "names::PoolScope")]
    pub pool: ftl::PoolScope,
    /// Whether collection fills blocks of its own.
    #[serde(with = "names::Streams")]
    pub streams: ftl::Streams,
    /// Whether the last page of each block holds the block's summary instead of data.
    pub summary_page: bool,
}

/// Garbage collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GcConfig {
    /// How a victim is chosen.
    pub policy: GcPolicy,
    /// Blocks sealed longest ago that are compared. Used by [`GcPolicy::WindowedGreedy`] alone.
    pub window: Watermark,
    /// Blocks drawn per choice. Used by [`GcPolicy::DChoices`] alone.
    pub choices: u32,
    /// Whether the host waits for collection.
    pub mode: GcMode,
    /// When free space is looked at.
    pub check: GcCheck,
    /// Whether reads look too. Used with [`GcCheck::Dispatch`] alone.
    pub on_reads: bool,
    /// Collection starts when a pool has this many free blocks or fewer.
    pub low_watermark: Watermark,
    /// Collection stops when a pool has more free blocks than this. Not below the low one.
    pub high_watermark: Watermark,
}

/// How a victim is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcPolicy {
    /// Fewest valid units.
    Greedy,
    /// Sealed longest ago.
    Fifo,
    /// Fewest valid units of `window` blocks sealed longest ago.
    WindowedGreedy,
    /// Highest (1 − u) × age / 2u, where u is the share of valid units.
    CostBenefit,
    /// Fewest valid units of `choices` blocks drawn at random.
    DChoices,
}

/// Whether the host waits for collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcMode {
    /// It runs at once, and requests queue behind it.
    Foreground,
    /// It runs in idle gaps, at once only when no block is left.
    Background,
}

/// When free space is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcCheck {
    /// When a block is allocated.
    Allocation,
    /// When a request is sent to a die.
    Dispatch,
}

/// The forward map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapCache {
    /// RAM for entries of 8 bytes, or 13 where values may be deltas; what does not fit is on flash.
    pub cache_bytes: Bytes,
    /// The most that entries used again take of it.
    pub protected: Share,
    /// Flash pages at which the journal of a table is folded into it; 0 = no journals.
    pub journal_pages: Count,
}

/// RAM that takes the writes of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Whether there is any, and which page makes room.
    pub policy: BufferPolicy,
    /// Its size, rounded down to whole mapping units. Not used by [`BufferPolicy::None`].
    pub size: Size,
    /// The most the protected segment takes of it. Used by [`BufferPolicy::Slru`] alone.
    pub protected: Share,
}

/// Whether there is a write buffer, and which page makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BufferPolicy {
    None,
    /// The page that came first.
    Fifo,
    /// The page of the probationary segment that was written least recently.
    Slru,
}

impl BufferConfig {
    /// Mapping units it holds.
    pub fn pages(&self) -> u64 {
        pages_of(self.size)
    }
}

/// Whole mapping units of a size.
pub(super) fn pages_of(size: Size) -> u64 {
    size.0 / UNIT_BYTES
}

/// RAM that keeps pages which were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadCacheConfig {
    /// Whether there is any, and what a page is found by.
    pub key: CacheKey,
    /// Its size, rounded down to whole mapping units. Not used by [`CacheKey::None`].
    pub size: Size,
}

/// Whether there is a read cache, and what a page is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheKey {
    None,
    /// Its address.
    Lpn,
    /// Its content: equal pages take one place.
    Value,
}

impl ReadCacheConfig {
    /// Mapping units it holds.
    pub fn pages(&self) -> u64 {
        pages_of(self.size)
    }
}

/// Reads of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadsConfig {
    /// Which earlier writes a read waits for.
    pub order: ReadOrder,
}

/// Which earlier writes a read of the host waits for, while they are on their way to the map or have no place
/// in RAM yet. Trims count as writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadOrder {
    /// None: it may find an older version.
    Bypass,
    /// Those of its page.
    SamePage,
    /// All.
    Fifo,
}

/// Wear levelling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WearConfig {
    /// Whether the least worn free block is allocated first.
    pub dynamic: bool,
    /// Difference in erases between the most and the least worn block at which cold blocks are
    /// moved; 0 = never.
    pub static_gap: u64,
}

/// The state in which a run finds the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precondition {
    /// Share of the exported address space, counted from its top, of which each page is written
    /// once with unique content, outside all counters.
    pub fill: Share,
    /// What follows the fill.
    pub overwrite: Overwrite,
    /// Whether an address that the trace reads first holds that content from the start.
    pub prefill_from_trace: bool,
}

/// What follows the fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overwrite {
    /// Nothing.
    None,
    /// As many uniform random overwrites as pages are exported.
    Once,
    /// Uniform random overwrites until write amplification settles.
    Steady,
}

/// Reads a duration, or a list of durations.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Nanos>, D::Error> {
    struct Durations;

    impl<'de> Visitor<'de> for Durations {
        type Value = Vec<Nanos>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration such as \"200us\", or a list of them")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<Nanos>, E> {
            Ok(vec![text.parse().map_err(E::custom)?])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Nanos>, A::Error> {
            let mut durations = Vec::new();
            while let Some(duration) = items.next_element()? {
                durations.push(duration);
            }
            Ok(durations)
        }
    }

    deserializer.deserialize_any(Durations)
}
