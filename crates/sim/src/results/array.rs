//! What an array of an SSD and disks did.

use serde::{Deserialize, Serialize};

/// An array; zeros on a system that is none. Counts are of what was measured, unless they are said to be of the end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// Virtual blocks that are references, at the end.
    pub references: u64,
    /// Of these, those that have lost their address, at the end.
    pub detached: u64,
    /// Virtual blocks that are associates, at the end.
    pub associates: u64,
    /// Virtual blocks that are independent, at the end.
    pub independents: u64,
    /// Reads and writes that the disks were asked for; neighbours are one, and so are the parts of a stripe.
    pub hdd_ops: u64,
    /// Of these, reads.
    pub hdd_reads: u64,
    /// Of these, writes.
    pub hdd_writes: u64,
    /// Bytes read from the disks.
    pub hdd_read_bytes: u64,
    /// Bytes written to the disks.
    pub hdd_written_bytes: u64,
    /// Pages of 4 KiB that the host read and wrote, for each operation of the disks.
    pub ios_per_hdd_op: Option<f64>,
    /// Pages of 4 KiB read from the SSD.
    pub ssd_reads: u64,
    /// Pages of 4 KiB written to the SSD.
    pub ssd_writes: u64,
    /// Reads and writes that the SSD was asked for; neighbours are one.
    pub ssd_ops: u64,
    /// Most bytes of RAM that deltas took, in segments of 64 bytes, preparing included.
    pub delta_ram_peak: u64,
    /// RAM that they may take, in bytes.
    pub delta_ram: u64,
    /// Contents stored as deltas, of references from themselves too.
    pub deltas: u64,
    /// Of these, those of references from themselves.
    pub own_deltas: u64,
    /// Contents compressed by themselves.
    pub alone: u64,
    /// Mean size of a delta, in bytes.
    pub mean_delta_bytes: Option<f64>,
    /// Mean size of a content compressed by itself, in bytes.
    pub mean_alone_bytes: Option<f64>,
    /// Writes that had a reference and no short delta from it.
    pub too_big: u64,
    /// Contents copied to the SSD because they were read from the disks.
    pub fills: u64,
    /// Accesses to blocks that RAM knew of, or that a cache held.
    pub hits: u64,
    /// Other accesses, those of blocks that hold nothing aside.
    pub misses: u64,
    /// Scans for similar blocks.
    pub scans: u64,
    /// Associates that scans made.
    pub scan_associates: u64,
    /// Associates of blocks with the same address in another machine.
    pub same_address: u64,
    /// References that lost their last associate.
    pub demotions: u64,
    /// Groups of the log written.
    pub groups: u64,
    /// Records of each, on average.
    pub records_per_group: Option<f64>,
    /// Blocks of the log written.
    pub log_blocks: u64,
    /// Encoded contents in each, on average.
    pub deltas_per_log_block: Option<f64>,
    /// Segments of the log cleaned.
    pub cleaned: u64,
    /// Blocks that went home.
    pub written_home: u64,
    /// Writes and fills of the SSD saved because it held equal content.
    pub shared: u64,
    /// Share of simulated time in which the processor worked for the array.
    pub processor_busy: f64,
    /// Share of simulated time in which a disk worked, the mean over the disks.
    pub hdd_busy: f64,
    /// Energy of the SSD's reads and writes, in joules, by the constants of the configuration.
    pub ssd_energy_j: f64,
    /// Energy of the disks, in joules, by the constant power of the configuration.
    pub hdd_energy_j: f64,
    /// Energy of the disks by their data sheet, in joules, where that is known.
    pub hdd_model_j: Option<f64>,
    /// Pages read by the host that were compared with what they should hold.
    pub verified: u64,
}

impl Array {
    /// Energy of SSD and disks, in joules, by the constants of the configuration.
    pub fn energy_j(&self) -> f64 {
        self.ssd_energy_j + self.hdd_energy_j
    }
}
