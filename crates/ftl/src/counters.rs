//! What the core counts. Units are mapping units of 4 KiB unless a name says otherwise.

/// Totals since the start or the last restart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Units the host read.
    pub host_reads: u64,
    /// Units the host wrote, shared ones included.
    pub host_writes: u64,
    /// Units the host trimmed that were mapped.
    pub host_trims: u64,
    /// Units programmed for the host.
    pub programs_host: u64,
    /// Units copied by garbage collection.
    pub programs_gc: u64,
    /// Units copied by static wear levelling.
    pub programs_wear: u64,
    /// Translation pages, and pages of their journals, programmed, without those copied by garbage collection.
    pub programs_map: u64,
    /// Those of them that are pages of journals.
    pub programs_journal: u64,
    /// Journals folded into their tables.
    pub map_folds: u64,
    /// Packed pages programmed because host writes filled them.
    pub programs_log: u64,
    /// Encoded values programmed as whole pages again.
    pub programs_merge: u64,
    /// Slots programmed empty because a page was not full.
    pub programs_padding: u64,
    /// Slots of summary pages.
    pub programs_summary: u64,
    /// Flash pages programmed.
    pub page_programs: u64,
    /// Flash pages read for the host.
    pub page_reads_host: u64,
    /// Flash pages read by garbage collection and wear levelling.
    pub page_reads_gc: u64,
    /// Flash pages read to verify duplicates.
    pub page_reads_verify: u64,
    /// Flash pages read to hash stored pages in idle time.
    pub page_reads_scan: u64,
    /// Flash pages read to restore index entries.
    pub page_reads_prefetch: u64,
    /// Flash pages read to complete partly written units.
    pub page_reads_modify: u64,
    /// Flash pages read for translation pages.
    pub page_reads_map: u64,
    /// Flash pages read to encode writes against them.
    pub page_reads_delta: u64,
    /// Flash pages read to decode values that become whole pages.
    pub page_reads_merge: u64,
    /// Accesses to a map entry in RAM; all of them without a cache of the map are, and not counted.
    pub map_hits: u64,
    /// Accesses to a map entry that was not in RAM.
    pub map_misses: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Blocks collected for their invalid units.
    pub victims: u64,
    /// Those of them that held packed pages.
    pub log_victims: u64,
    /// Blocks collected to move cold data.
    pub wear_victims: u64,
    /// Blocks retired: worn out, or not to be erased any more.
    pub retired: u64,
    /// How many victims had so many valid units, by number of valid units; of packed pages the bytes that
    /// nobody refers to are taken off, rounded down to whole units a block.
    pub valid_per_victim: Vec<u64>,
}

impl Counters {
    /// Zeroes for blocks of so many data units.
    pub fn new(data_units_per_block: u32) -> Self {
        Counters {
            valid_per_victim: vec![0; data_units_per_block as usize + 1],
            ..Counters::default()
        }
    }

    /// Units programmed for whatever reason.
    pub fn programs(&self) -> u64 {
        self.programs_host
            + self.programs_gc
            + self.programs_wear
            + self.programs_map
            + self.programs_log
            + self.programs_merge
            + self.programs_padding
            + self.programs_summary
    }

    /// Units that collection writes: copies, packed pages and merged values.
    pub(crate) fn programs_by_collection(&self) -> u64 {
        self.programs_gc + self.programs_wear + self.programs_merge
    }

    /// Flash pages read for whatever reason.
    pub fn page_reads(&self) -> u64 {
        self.page_reads_host
            + self.page_reads_gc
            + self.page_reads_verify
            + self.page_reads_scan
            + self.page_reads_prefetch
            + self.page_reads_modify
            + self.page_reads_map
            + self.page_reads_delta
            + self.page_reads_merge
    }
}
