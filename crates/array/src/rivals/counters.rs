//! What a cache did, in numbers.

/// Counts since a cache was made. Reads of blocks that hold nothing ask no medium and are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RivalCounters {
    pub read_hits: u64,
    /// Reads of blocks from the slow medium.
    pub read_misses: u64,
    pub write_hits: u64,
    pub write_misses: u64,
    /// Slots written because their content was read from the slow medium.
    pub fills: u64,
    /// Blocks read from the slow medium whose content lay in a slot already.
    pub shared_fills: u64,
    /// Writes of content that lay in a slot, but not for this block.
    pub shared_writes: u64,
    /// Writes of what the block held already, seen as such.
    pub silent_writes: u64,
    /// Slots that were given up for other content.
    pub replaced: u64,
    /// Blocks that left the cache with them.
    pub replaced_blocks: u64,
    pub written_home: u64,
    pub batches: u64,
    /// Most blocks that were cached at once.
    pub most_blocks: u64,
    pub background_failures: u64,
}
