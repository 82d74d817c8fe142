//! What I-CASH did, in numbers.

use crate::counts::counts;

counts! {
    /// Counts since the element was opened.
    pub struct Counters {
        /// Accesses to a block that was an independent in RAM.
        pub hits_independent: u64,
        /// Of an associate.
        pub hits_associate: u64,
        /// Of a reference.
        pub hits_reference: u64,
        /// Accesses to blocks without a virtual block.
        pub misses: u64,
        /// Contents stored as deltas from a reference.
        pub deltas: u64,
        /// Their bytes.
        pub delta_bytes: u64,
        /// Contents of references stored as deltas from their own frozen content.
        pub own_deltas: u64,
        /// Contents compressed by themselves.
        pub alone: u64,
        /// Their bytes.
        pub alone_bytes: u64,
        /// Writes that had a reference and no short delta from it.
        pub too_big: u64,
        /// Contents of references that went elsewhere: a reference keeps its frozen content and loses its address.
        pub detached: u64,
        /// Contents written whole to the fast medium.
        pub slot_writes: u64,
        /// Contents kept whole for the log.
        pub whole: u64,
        /// Reads that found the content in a data block in RAM.
        pub ram_hits: u64,
        /// Contents copied to the fast medium because they were read from the slow one.
        pub fills: u64,
        /// Blocks of long sequential streams that were read and passed by.
        pub bypassed_reads: u64,
        /// Blocks of such streams that were written.
        pub bypassed_writes: u64,
        /// Of these, blocks that went home from the log as a batch.
        pub bypassed_home: u64,
        /// Deltas unpacked because another one of their log block was read.
        pub unpacked: u64,
        /// Blocks that became associates of a block with the same address in another machine.
        pub same_address: u64,
        /// Scans for similar blocks.
        pub scans: u64,
        /// References a scan chose that found an associate.
        pub scan_references: u64,
        /// Blocks a scan made associates.
        pub scan_associates: u64,
        /// Associates that went over to a new reference at the end of a scan.
        pub relinked: u64,
        /// References that lost their last associate.
        pub demotions: u64,
        /// Virtual blocks replaced (replacement 1).
        pub virtual_replaced: u64,
        /// Data blocks replaced (replacement 2).
        pub data_replaced: u64,
        /// References whose associates were all written home so that their data block could be replaced.
        pub references_released: u64,
        /// References whose data block was written to a frozen place.
        pub references_frozen: u64,
        /// Data blocks that left the fast medium because they are frozen; nothing was written.
        pub frozen_replaced: u64,
        /// Frozen data blocks that were read on the slow medium.
        pub frozen_reads: u64,
        /// Frozen data blocks copied to the fast medium because they were read.
        pub brought_back: u64,
        /// Deltas replaced with their virtual block (replacement 3).
        pub deltas_replaced: u64,
        /// Deltas of references that left RAM because there was no other.
        pub own_deltas_dropped: u64,
        /// Blocks written to their native places.
        pub written_home: u64,
        /// Of these, blocks that nothing had to go home for yet.
        pub written_ahead: u64,
        /// Homes, slots and frozen places that held nothing and were given back to what is below the media.
        pub given_back: u64,
        /// Groups of the log, each made durable at once.
        pub groups: u64,
        /// Of these, groups because enough was not durable.
        pub own_flushes: u64,
        /// Contents and facts in the log.
        pub records: u64,
        /// Of these, deltas and compressed contents.
        pub encoded_records: u64,
        /// Blocks of the log they took.
        pub log_blocks: u64,
        /// Checkpoints.
        pub checkpoints: u64,
        /// Segments of the log that were cleaned.
        pub cleaned: u64,
        /// Records that cleaning moved to the head of the log.
        pub moved: u64,
        /// Blocks that cleaning wrote home instead.
        pub cleaned_home: u64,
        /// Batches of ordered write-back.
        pub batches: u64,
        /// Work in the background that failed. What it was for is tried again.
        pub background_failures: u64,
    }
}

/// How many virtual blocks are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    pub references: u64,
    /// Of these, those without an address.
    pub detached: u64,
    /// Of the references those whose data block is on the slow medium alone.
    pub frozen: u64,
    pub associates: u64,
    /// All others.
    pub independents: u64,
}

/// Memory an element holds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Deltas, as far as they ever were.
    pub segments: usize,
    pub virtual_blocks: usize,
    /// Contents of blocks that were accessed last.
    pub data_blocks: usize,
    pub heatmap: usize,
    pub table: usize,
    /// Who uses which data block, without the sets of dependents.
    pub pool: usize,
}

impl Memory {
    /// All of it.
    pub fn all(&self) -> usize {
        let Memory {
            segments,
            virtual_blocks,
            data_blocks,
            heatmap,
            table,
            pool,
        } = self;
        segments + virtual_blocks + data_blocks + heatmap + table + pool
    }
}

/// How far an element is, and what room it has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Blocks whose present content no group records yet.
    pub unrecorded: u64,
    /// Places for data blocks on the fast medium that hold nothing.
    pub free_slots: u32,
    /// Frozen places that hold nothing in use.
    pub free_frozen: u32,
    /// Blocks whose durable content is not at home.
    pub dirty: u64,
    /// Segments of the log that can be written.
    pub free_log_segments: u32,
    /// Blocks that are not at home; counted with ordered write-back alone.
    pub away: u64,
    /// How often it was opened.
    pub epoch: u32,
    pub checkpoint: u64,
    /// Why nothing is changed any more, if a medium failed.
    pub stopped: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_every_counter() {
        let document = include_str!("../../../../docs/array.md");
        let mut rows = document.lines().filter(|line| line.starts_with("| `"));
        for (name, _) in Counters::default().named() {
            let row = format!("| `{name}` |");
            assert!(
                rows.any(|line| line.starts_with(&row)),
                "{name}, in this order"
            );
        }
    }
}
