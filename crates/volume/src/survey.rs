//! What is stored, and what for: in sum, and of one page.

/// How a page is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredAs {
    /// Other pages refer to it too.
    pub shared: bool,
    /// As the delta from another page.
    pub is_delta: bool,
    /// Compressed by itself.
    pub is_compressed: bool,
}

/// What is stored, and what for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survey {
    /// Pages that hold something.
    pub pages: u64,
    /// Distinct values that pages hold.
    pub values: u64,
    /// Values that old versions alone need.
    pub kept: u64,
    /// Values stored as deltas, and their bytes.
    pub deltas: (u64, u64),
    /// Values stored compressed by themselves, and their bytes.
    pub compressed: (u64, u64),
}

/// What the fingerprint index knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexState {
    /// Entries held.
    pub entries: u64,
    /// Most entries that there is room for.
    pub capacity: u64,
    /// Bytes held.
    pub memory: u64,
    /// Writes since the volume was opened whose content was not found.
    pub misses: u64,
    /// Of them, those that a larger index might have found.
    pub doubtful_misses: u64,
}

/// What is in memory of the tables that are read and changed a page at a time: map, objects, owners of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableState {
    /// Bytes that their pages take.
    pub memory: u64,
    /// The most that they may take.
    pub most_memory: u64,
    /// Rows that were in memory when they were asked for, since the volume was opened.
    pub hits: u64,
    /// Pages that had to be read for others.
    pub misses: u64,
    /// Those of them that were read while the volume was held: nobody had said before that they would be needed.
    pub read_while_held: u64,
    /// Pages that had changed and were written to make room for others.
    pub written_for_room: u64,
}
