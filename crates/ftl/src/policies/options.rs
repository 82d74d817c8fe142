//! What is encoded, and when: the settings of deltas, of compression and of the rule that chooses among their forms.

/// A count of writes or reads that is never reached: counts stop at 15.
pub const NEVER: u8 = 16;

/// What is encoded, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodingOptions {
    /// Whether updates are stored as deltas.
    pub deltas: bool,
    /// Whether values are compressed by themselves.
    pub compress: bool,
    /// Writes since the last scan from which on a page is write-hot: a delta is stored for such a
    /// page alone. [`NEVER`] for no page.
    pub hot_writes: u8,
    /// Reads from which on it is read-hot: no delta is stored for it.
    pub hot_reads: u8,
    /// The longest encoded value that is stored, in bytes.
    pub most_bytes: u16,
    /// When encoding is bypassed altogether.
    pub viability: ViabilityOptions,
    /// How many pages' counts are kept.
    pub heat: HeatOptions,
    /// What a byte that a delta alone keeps alive costs, in thousandths of a byte programmed.
    pub lambda: u32,
    /// The quota: with so many bases that deltas alone keep alive, no delta is taken from any other.
    pub most_pinned: u32,
    /// Where bases are looked for when a page has none of its own; `None` for nowhere.
    pub similar: Option<SimilarOptions>,
}

/// How many pages have counts of their reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeatOptions {
    /// Entries that are cached; `None` for one of every logical page.
    pub entries: Option<u32>,
    /// Of them, those of the protected segment.
    pub protected: u32,
}

/// How bases are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimilarOptions {
    /// The most entries of the signature index.
    pub entries: u32,
    /// Deltas from one base from which on it is not offered.
    pub sharers: u32,
}

/// When encoding is bypassed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViabilityOptions {
    /// The longest mean, in bytes.
    pub most_bytes: u16,
    /// Encoded writes of a window.
    pub window: u32,
    /// In baseline mode one candidate in so many is encoded.
    pub probe: u32,
}
