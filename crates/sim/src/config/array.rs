//! An array of an SSD and disks, where the device is a part of one.
//!
//! The meaning of each key, for users, stands in `template/system.toml`; here is its type, and how large an array is
//! for a data set.

use flashlore_array::hdd::{Scheduler, drives};
use flashlore_array::icash::parameters::{
    DELTA_LIMIT, MOST_TRIED, frozen_blocks, write_back_batch,
};
use flashlore_array::icash::{Compression, Fill, Options, Similarity, TooBig};
use flashlore_array::timed::Costs;
use flashlore_delta::Codec;
use flashlore_units::{Count, Entries, Nanos, Share};
use serde::{Deserialize, Serialize};

use super::load::{Fault, check_durations};
use super::names;

/// Blocks of the fast medium of I-CASH before its data blocks.
const SUPERBLOCKS: u64 = 2;

/// An array around the device. Its other values are the defaults when there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayConfig {
    pub kind: ArrayKind,
    /// Data blocks of the SSD, as a share of the data set.
    pub fast: Share,
    /// Frozen places on the disk, as a share of the SSD's data blocks.
    pub frozen: Share,
    /// Pages of a virtual machine; 0 = as the workload says, unlimited = one machine has all.
    pub machine_pages: Entries,
    /// Whether the images of all machines but the first are stored as its clones before the run.
    pub clones: bool,
    /// Whether what the workload finds was written through the array before the run.
    pub loaded: bool,
    /// RAM for deltas, as a share of the data set.
    pub delta_ram: Share,
    /// RAM for data blocks, as a share of the data set.
    pub data_ram: Share,
    /// Virtual blocks; unlimited = one for each block there is.
    pub virtual_blocks: Entries,
    /// The log of deltas, as a share of the data set.
    pub log: Share,
    /// Requests between two scans.
    pub scan_every: Count,
    /// Virtual blocks a scan looks at.
    pub scan_blocks: Count,
    /// Equal sub-signatures that make two blocks worth comparing.
    pub positions: u32,
    /// References that a scan tries for a block.
    pub tried: u32,
    /// Longest delta, in bytes.
    pub delta_limit: Count,
    /// Blocks of the log that are written at once.
    pub flush_blocks: u32,
    /// Blocks that go home at once; 0 = by the number of data blocks.
    pub write_back: Count,
    /// Whether a write is answered before it is encoded.
    pub early_answer: bool,
    /// Where content goes that has no short delta.
    pub too_big: TooBig,
    /// How similar blocks are found.
    pub similarity: Similarity,
    /// Whether blocks are compressed by themselves where that is shorter.
    pub compression: bool,
    /// Whether each scan halves the heatmap.
    pub halve_heatmap: bool,
    /// When a block that only the disk has is copied to the SSD.
    pub fill: Fill,
    /// Whether the other deltas of a log block that is read come to RAM.
    pub unpack_all: bool,
    /// Whether blocks go home in batches that are one state.
    pub ordered: bool,
    /// How deltas are encoded.
    pub algorithm: Codec,
    /// Time to encode a block.
    pub encode_time: Nanos,
    pub decode_time: Nanos,
    /// Time to compute a signature.
    pub signature_time: Nanos,
    /// Time to compute a fingerprint.
    pub fingerprint_time: Nanos,
    /// Whether dirty blocks of a cache go home before their slots are needed.
    pub clean_ahead: bool,
    /// Chains of work behind answers at which requests wait.
    pub background: u32,
    /// The disks.
    pub drive: String,
    pub disks: u32,
    /// Bytes of a stripe on a disk.
    pub stripe: Count,
    /// The order of their waiting requests.
    #[serde(with = "names::Scheduler")]
    pub scheduler: Scheduler,
    /// Whether their write caches are on.
    pub write_cache: bool,
    /// Energy of a read of 4 KiB on the SSD, in microjoules.
    pub read_uj: f64,
    /// Energy of a write of 4 KiB on the SSD, in microjoules.
    pub write_uj: f64,
    /// Power of a disk, in watts.
    pub disk_watts: f64,
}

/// What an array is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrayKind {
    /// None: the device is used alone.
    None,
    /// I-CASH.
    ICash,
    /// All blocks on the SSD.
    PureSsd,
    /// All blocks on the disks.
    Raid0,
    /// The SSD is a cache of blocks.
    LruCache,
    /// The SSD is a cache with one copy of each content.
    DedupCache,
}

impl ArrayKind {
    pub fn has_disks(self) -> bool {
        !matches!(self, Self::None | Self::PureSsd)
    }

    /// Whether it asks which contents are equal.
    pub fn needs_content(self) -> bool {
        matches!(self, Self::ICash | Self::DedupCache)
    }
}

impl ArrayConfig {
    /// Whether there is an array.
    pub fn is_some(&self) -> bool {
        self.kind != ArrayKind::None
    }

    /// Data blocks of the SSD for a data set of so many pages.
    pub fn slots(&self, data_set: u64) -> u32 {
        share_of(self.fast, data_set, 64)
    }

    /// Places on the disk for references that leave an SSD of so many data blocks.
    pub fn frozen_blocks(&self, slots: u32) -> u32 {
        share_of(self.frozen, slots.into(), 0).min(frozen_blocks(slots))
    }

    /// Pages of 4 KiB that the SSD needs for a data set of so many pages below `pages`.
    pub fn ssd_units(&self, data_set: u64, pages: u64) -> u64 {
        match self.kind {
            ArrayKind::None | ArrayKind::Raid0 => 1,
            // The last machine may have more pages than the trace touches.
            ArrayKind::PureSsd => match self.machine_pages {
                Entries::Limited(machine) if machine > 0 => {
                    pages.next_multiple_of(machine.min(pages.max(1)))
                }
                Entries::Limited(_) | Entries::Unlimited => pages,
            },
            ArrayKind::ICash | ArrayKind::LruCache | ArrayKind::DedupCache => {
                u64::from(self.slots(data_set)) + SUPERBLOCKS
            }
        }
    }

    /// The options of I-CASH for a data set of so many pages, of which the machines have `blocks`.
    pub fn options(&self, data_set: u64, blocks: u64) -> Options {
        let slots = self.slots(data_set);
        let data_blocks = u64::from(slots) + u64::from(self.frozen_blocks(slots));
        let least = data_blocks + u64::from(Options::LEAST_MORE_VIRTUAL);
        let most = blocks.saturating_add(least);
        let asked = match self.virtual_blocks {
            Entries::Limited(count) => count.min(most),
            Entries::Unlimited => most,
        };
        let virtual_blocks = asked.max(least).min(u64::from(u32::MAX - 1)) as u32;
        // 64 segments of 64 bytes make a page.
        let segments = share_of(self.delta_ram, data_set.saturating_mul(64), 256);
        Options {
            scan_every: self.scan_every.0,
            scan_blocks: self.scan_blocks.0 as usize,
            similar_positions: self.positions,
            tried: self.tried as usize,
            delta_limit: self.delta_limit.0 as usize,
            flush_blocks: self.flush_blocks,
            write_back_batch: self.write_back_batch(slots),
            too_big: self.too_big,
            similarity: self.similarity,
            compression: match self.compression {
                true => Compression::IfShorter,
                false => Compression::Never,
            },
            halve_heatmap: self.halve_heatmap,
            fill: self.fill,
            ram_blocks: share_of(self.data_ram, data_set, 0),
            answers_early: self.early_answer,
            unpack_all: self.unpack_all,
            codec: self.algorithm,
            ..Options::new(virtual_blocks, segments)
        }
    }

    /// Blocks that go home at once, of an SSD with so many data blocks.
    pub fn write_back_batch(&self, slots: u32) -> usize {
        match self.write_back.0 {
            0 => write_back_batch(slots),
            blocks => blocks as usize,
        }
    }

    /// What the processor's work takes.
    pub fn costs(&self) -> Costs {
        Costs {
            encode: self.encode_time.0,
            decode: self.decode_time.0,
            signature: self.signature_time.0,
            fingerprint: self.fingerprint_time.0,
        }
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        check_durations([
            ("array.encode_time", self.encode_time),
            ("array.decode_time", self.decode_time),
            ("array.signature_time", self.signature_time),
            ("array.fingerprint_time", self.fingerprint_time),
        ])?;
        let whole = u64::from(u32::MAX);
        let ranges = [
            ("array.scan_every", self.scan_every.0, 1, u64::MAX),
            ("array.scan_blocks", self.scan_blocks.0, 1, whole),
            ("array.positions", self.positions.into(), 1, 8),
            ("array.tried", self.tried.into(), 1, MOST_TRIED as u64),
            (
                "array.delta_limit",
                self.delta_limit.0,
                1,
                DELTA_LIMIT as u64,
            ),
            ("array.flush_blocks", self.flush_blocks.into(), 1, 1 << 16),
            ("array.write_back", self.write_back.0, 0, 1 << 16),
            ("array.background", self.background.into(), 1, 1 << 20),
            ("array.disks", self.disks.into(), 1, 256),
        ];
        for (key, found, least, most) in ranges {
            if !(least..=most).contains(&found) {
                let message = format!("expected {least} to {most}, found {found}");
                return Err(Fault::new(key, message));
            }
        }
        if !self.stripe.0.is_multiple_of(4096) || !(4096..=1 << 30).contains(&self.stripe.0) {
            let message = format!(
                "expected a multiple of 4096 bytes up to 1 GiB, found {}",
                self.stripe.0
            );
            return Err(Fault::new("array.stripe", message));
        }
        if drives::named(&self.drive).is_none() {
            let message = format!(
                "there is no drive {:?}; expected one of {}",
                self.drive,
                drives::NAMES.join(", ")
            );
            return Err(Fault::new("array.drive", message));
        }
        let energies = [
            ("array.read_uj", self.read_uj),
            ("array.write_uj", self.write_uj),
            ("array.disk_watts", self.disk_watts),
        ];
        match energies.into_iter().find(|(_, x)| !(0.0..=1e6).contains(x)) {
            Some((key, x)) => Err(Fault::new(key, format!("expected 0 to 1e6, found {x}"))),
            None => Ok(()),
        }
    }
}

/// So much of a whole, rounded, at least `least`.
fn share_of(share: Share, whole: u64, least: u32) -> u32 {
    let part = (share.get() * whole as f64).round();
    part.clamp(f64::from(least), f64::from(u32::MAX / 2)) as u32
}
