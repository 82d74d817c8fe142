//! What I-CASH did, in numbers.

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Counts since the element was opened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Counters {
            #[must_use]
            pub fn since(&self, earlier: &Counters) -> Counters {
                Counters {
                    $($field: self.$field - earlier.$field,)*
                }
            }

            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field)),*]
            }
        }
    };
}

counters! {
    /// Accesses to a block that was an independent in RAM.
    hits_independent,
    /// Accesses to an associate in RAM.
    hits_associate,
    /// Accesses to a reference in RAM.
    hits_reference,
    /// Accesses to blocks without a virtual block.
    misses,
    /// Contents stored as differences from a reference.
    deltas,
    /// Bytes of them.
    delta_bytes,
    /// Contents of references stored as differences from their own frozen content.
    own_deltas,
    /// Contents compressed by themselves.
    alone,
    /// Bytes of them.
    alone_bytes,
    /// Writes that had a reference and no short difference from it.
    too_big,
    /// Contents of references that went elsewhere: a reference keeps its frozen content and loses its address.
    detached,
    /// Contents written whole to the fast medium.
    slot_writes,
    /// Contents kept whole for the log.
    whole,
    /// Contents copied to the fast medium because they were read from the slow one.
    fills,
    /// Differences unpacked because another one of their log block was read.
    unpacked,
    /// Blocks that became associates of a block with the same address in another machine.
    same_address,
    scans,
    /// References a scan chose that found an associate.
    scan_references,
    /// Associates a scan made.
    scan_associates,
    /// References that lost their last associate.
    demotions,
    /// Virtual blocks replaced (replacement 1).
    virtual_replaced,
    /// Data blocks replaced (replacement 2).
    data_replaced,
    /// References whose associates were all written home so that their data block could be replaced.
    references_released,
    /// Differences replaced with their virtual block (replacement 3).
    deltas_replaced,
    /// Differences of references that left RAM because there was no other.
    own_deltas_dropped,
    written_home,
    groups,
    /// Of these, groups because enough was not durable.
    own_flushes,
    /// Records in them.
    records,
    /// Of these, differences and compressed contents.
    encoded_records,
    /// Blocks of the log they took.
    log_blocks,
    checkpoints,
    /// Segments of the log that were cleaned.
    cleaned,
    /// Records that cleaning moved to the head of the log.
    moved,
    /// Blocks that cleaning wrote home.
    cleaned_home,
    /// Batches of ordered write-back.
    batches,
    /// Work in the background that failed. What it was for is tried again.
    background_failures,
}

/// How many virtual blocks are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    pub references: u64,
    /// Of these, those without an address.
    pub detached: u64,
    pub associates: u64,
    /// All others.
    pub independents: u64,
}

/// Memory an element holds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Differences, as far as they ever were.
    pub segments: usize,
    pub virtual_blocks: usize,
    pub heatmap: usize,
    pub table: usize,
    /// Who uses which data block, without the sets of dependents.
    pub pool: usize,
}

/// How far an element is, and what room it has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Blocks whose present content no group records yet.
    pub unrecorded: u64,
    /// Data blocks that hold nothing.
    pub free_slots: u32,
    /// Segments of the log that can be written.
    pub free_log_segments: u32,
    /// Blocks that are not at home; counted with ordered write-back alone.
    pub away: u64,
    /// How often it was opened.
    pub epoch: u32,
    /// Number of the last checkpoint.
    pub checkpoint: u64,
    /// Why nothing is changed any more, if a medium failed.
    pub stopped: Option<String>,
}
