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
