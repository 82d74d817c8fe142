//! What is counted of map, objects and packed pages, and kept with them where tables outlive a run.

use super::packs::PackTallies;

/// What a device counts of its tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Objects; on a plain device mapped pages.
    pub stored: u32,
    /// Those to which logical pages refer.
    pub referenced: u32,
    /// Those that are packed.
    pub packed: u32,
    /// Bases that deltas alone keep.
    pub pinned: u32,
    /// Rows of spilled counts that were ever used.
    pub spilled: u32,
    /// Packed pages.
    pub packs: PackTallies,
}
