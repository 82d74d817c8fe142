//! The forward map partly in RAM (A. Gupta, Y. Kim, B. Urgaonkar, "DFTL: a flash translation layer
//! employing demand-based selective caching of page-level address mappings", ASPLOS 2009).
//!
//! * [`MapKeeper`] — what the core and the devices tell and ask whoever keeps the map
//! * [`Resident`] — all of it is in RAM: nothing is asked, nothing costs
//! * [`demand`] — a cache of entries, and translation pages on flash
//! * [`entries`] — the cached entries, least recently used last
//! * [`referrers`] — the logical pages that share an object
//! * [`traffic`] — the reads and programs that follow
//!
//! It is a model of cost over the exact map, which is in the simulator's memory all the same: the
//! keeper decides only which translation pages are read and written, and when.

pub mod demand;
pub mod entries;
pub mod referrers;
pub mod traffic;

use flashlore_flash::Ppn;

pub use demand::Demand;

/// Bytes of a map entry: logical and physical page number, four each (`spec/ca-ssd.md` section 2).
pub const ENTRY_BYTES: u32 = 8;

/// Entries of a translation page, which is one mapping unit.
pub const ENTRIES_PER_PAGE: u32 = flashlore_flash::geometry::UNIT_BYTES / ENTRY_BYTES;

/// What an access to a map entry found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is in RAM.
    Hit,
    /// Its translation page has to be read.
    Miss {
        /// Before, this one has to be written, if it is stale still: the entry that made room was newer
        /// than flash.
        write_back: Option<u32>,
    },
}

/// Who keeps the forward map. `P` is what a mapping unit holds.
///
/// The methods without effect here are those of a map in RAM.
pub trait MapKeeper<P> {
    /// Whether entries may be missing in RAM.
    const DEMAND: bool = false;

    /// The entry of a logical page is needed.
    fn access(&mut self, _lpn: u32) -> Access {
        Access::Hit
    }

    /// The entry of a logical page, which was accessed last, has a new value.
    fn changed(&mut self, _lpn: u32) {}

    /// A logical page refers to another object: from now on it moves with that.
    fn refers(&mut self, _lpn: u32, _object: Option<u32>) {}

    /// The unit of an owner has moved: every entry that names it has a new value.
    fn moved(&mut self, _owner: u32) {}

    /// The translation page that an owner number stands for, if it does.
    fn page_of_owner(&self, _owner: u32) -> Option<u32> {
        None
    }

    /// The owner number of a translation page, and what its unit is said to hold.
    fn unit_of_page(&self, _page: u32) -> Option<(u32, P)> {
        None
    }

    /// Translation pages there can be.
    fn pages(&self) -> u32 {
        0
    }

    /// Where a translation page lies, [`Ppn::NONE`] if it was never written.
    fn location(&self, _page: u32) -> Ppn {
        Ppn::NONE
    }

    /// A translation page lies elsewhere from now on.
    fn place(&mut self, _page: u32, _to: Ppn) {}

    /// A translation page has been written with all that is known of it.
    fn written(&mut self, _page: u32) {}

    /// Translation pages that are stale: older than what is known of entries that are not in RAM.
    fn stale(&self) -> u32 {
        0
    }

    /// Whether one of them is.
    fn is_stale(&self, _page: u32) -> bool {
        false
    }

    /// The one of them that has been so for the longest.
    fn first_stale(&mut self) -> Option<u32> {
        None
    }

    /// Whether a logical page refers to this object here, too.
    fn agrees(&self, _lpn: u32, _object: Option<u32>) -> bool {
        true
    }

    /// Recounts what is kept.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The whole map is in RAM.
#[derive(Debug, Clone, Copy, Default)]
pub struct Resident;

impl<P> MapKeeper<P> for Resident {}
