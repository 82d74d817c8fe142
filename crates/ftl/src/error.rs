//! What can go wrong in the translation layer.

use flashlore_content::history::Holders;
use flashlore_flash::Lpn;

/// A failed operation, or settings that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum FtlError<E: std::error::Error + 'static> {
    /// No page can be freed: every block in reach is full of valid units.
    #[error(
        "device full: no free block for a host write and nothing to collect \
         ({valid} valid units on {units} data units)"
    )]
    Full {
        /// Valid units of the device.
        valid: u64,
        /// Units that can hold data.
        units: u64,
    },
    /// So many blocks are retired that no page can be freed: what is stored can only be read.
    #[error(
        "device worn out: {retired} of {blocks} blocks are retired and the rest have no room for \
         one more collection; it can only be read ({valid} valid units)"
    )]
    WornOut {
        /// Retired blocks.
        retired: u32,
        /// Blocks of the device.
        blocks: u32,
        /// Valid units of the device.
        valid: u64,
    },
    /// An address beyond the exported capacity.
    #[error("logical page {lpn} does not exist, the device exports {exported} pages")]
    OutOfRange {
        /// The address.
        lpn: Lpn,
        /// Exported pages.
        exported: u32,
    },
    /// A write needs room that only old versions could give, and these are protected.
    #[error(
        "device full of old versions: {units} units are in use, at most {most} may be in all and fewer where \
         each die has its own pages; old versions that may not go are held by {holders}"
    )]
    Protected {
        /// Units in use.
        units: u64,
        /// The most that may be.
        most: u64,
        /// Who holds old versions.
        holders: Holders,
    },
    /// A write would have an old version remembered, there are as many as may be, and these are protected.
    #[error(
        "the history has {entries} entries and room for no more; those it has are held by {holders}"
    )]
    ProtectedEntries {
        /// Entries there are.
        entries: u64,
        /// Who holds them.
        holders: Holders,
    },
    /// The flash device failed. Outside of a collection everything is as it was before; inside one the
    /// translation layer cannot be used further.
    #[error(transparent)]
    Device(#[from] E),
}

/// Settings that cannot work together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// More is exported than can be written while collection keeps its reserve.
    #[error(
        "capacity: {exported} pages exported, at most {most} can be kept writable on {units} data \
         units (each pool needs its open blocks, its low watermark and one block to collect)"
    )]
    NoSpare {
        /// Exported pages.
        exported: u32,
        /// The most that could be exported.
        most: u64,
        /// Units that can hold data.
        units: u64,
    },
    /// The watermarks are out of order.
    #[error("watermarks: low is {low} blocks and high {high}, expected 1 <= low <= high")]
    Watermarks {
        /// Free blocks of a pool at or below which collection starts.
        low: u32,
        /// Free blocks of a pool above which it stops.
        high: u32,
    },
    /// What names the units of translation pages, packed pages and tables leaves too few names for values.
    #[error(
        "capacity: the device has {units} mapping units, at most {most} where values are encoded, entries of the \
         history lie on flash or the map does"
    )]
    TooLarge {
        /// Mapping units of the device.
        units: u32,
        /// The most of such a device.
        most: u32,
    },
    /// An address is bound to a die whose blocks are not watched by a pool of their own.
    #[error(
        "layout: static placement binds an address to a die, but a pool spans several dies; \
         expected pool plane or die"
    )]
    WidePool,
    /// More pools than a block record can name.
    #[error("layout: {found} pools, at most 65535 are supported; use a wider pool")]
    TooManyPools {
        /// Pools the scope makes.
        found: usize,
    },
    /// Pages hashed in idle time are shared without comparing them.
    #[error(
        "deduplication: out of line duplicates are shared by their fingerprints alone, which \
         excludes verification"
    )]
    OutOfLineVerify,
    /// The stripe is not a permutation.
    #[error("stripe: expected channel, package, die and plane, each once")]
    Stripe,
}
