//! The forward map partly in RAM (A. Gupta, Y. Kim, B. Urgaonkar, "DFTL: a flash translation layer
//! employing demand-based selective caching of page-level address mappings", ASPLOS 2009).
//!
//! * [`MapCache`] — what the core and the devices tell and ask the map cache
//! * [`Resident`] — all of it is in RAM: nothing is asked, nothing costs
//! * [`cached`] — a cache of entries, and translation pages on flash
//! * [`entries`] — the cached entries, as a segmented LRU list
//! * [`journal`] — what makes changes durable before their translation pages are
//! * [`referrers`] — the logical pages that share an object
//!
//! The reads and programs that follow stand with the core.
//!
//! It is a model of cost over the exact map, which is in the simulator's memory all the same: the
//! cache decides only which translation pages are read and written, and when.

pub mod cached;
pub mod entries;
pub mod journal;
pub mod referrers;

use flashlore_flash::{Lpn, MapPageId, ObjectId, Ppn};

pub use cached::CachedMap;

/// Bytes of a map entry: logical and physical page number, four each (`spec/ca-ssd.md` section 2). Those of
/// a fused one are [`EntryKind::entry_bytes`].
pub const ENTRY_BYTES: u32 = 8;

/// Entries of a translation page, which is one mapping unit.
pub const ENTRIES_PER_PAGE: u32 = flashlore_flash::geometry::UNIT_BYTES / ENTRY_BYTES;

/// A table behind the entries. Where these are not fused of two there is the first alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapTable {
    /// Of where values, or their bases, lie.
    Pages = 0,
    /// Of where deltas lie.
    Deltas = 1,
}

impl MapTable {
    /// All of them, in order.
    pub const ALL: [MapTable; 2] = [MapTable::Pages, MapTable::Deltas];
    /// How many there are at most.
    pub const COUNT: usize = MapTable::ALL.len();
}

/// What map entries name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A unit that is the logical page's own.
    Direct,
    /// An object, which others may share.
    Shared,
    /// An object, and if that is a delta its base.
    Fused,
}

impl EntryKind {
    /// Tables on flash.
    pub fn tables(self) -> usize {
        match self {
            EntryKind::Direct | EntryKind::Shared => 1,
            EntryKind::Fused => 2,
        }
    }

    /// Bytes of an entry in RAM. A fused one has the locations of base and delta, and a byte of two
    /// counts (`spec/delta-ftl.md` section 2).
    pub fn entry_bytes(self) -> u32 {
        match self {
            EntryKind::Direct | EntryKind::Shared => ENTRY_BYTES,
            EntryKind::Fused => ENTRY_BYTES + 5,
        }
    }
}

/// How a part of the map is kept in RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// Entries that RAM has room for; at least one is kept.
    pub entries: u32,
    /// Of them those that were used again and stay longer; 0 for plain LRU.
    pub protected: u32,
    /// What they name.
    pub kind: EntryKind,
    /// Pages at which the journal of a table is folded into it; 0 for no journals.
    pub journal_pages: u32,
}

/// What a logical page refers to, where that is an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MapEntry {
    /// The object, if there is one.
    pub object: Option<ObjectId>,
    /// What it is a delta from.
    pub base: Option<ObjectId>,
    /// Whether it waits in RAM to be packed.
    pub waits: bool,
}

impl MapEntry {
    /// What the table of pages says: whose location, and whether there is a delta.
    fn lies(&self) -> (Option<ObjectId>, bool) {
        (self.base.or(self.object), self.base.is_some())
    }
}

/// What an access to a map entry found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is in RAM.
    Hit,
    /// Its translation pages have to be read.
    Miss {
        /// The entry that made room.
        dropped: Option<Lpn>,
        /// Before, these have to be written, if they are stale still: that entry was newer than flash.
        write_back: [Option<MapPageId>; 2],
    },
}

/// Who keeps the forward map. `P` is what a mapping unit holds.
///
/// The methods without effect here are those of a map in RAM.
pub trait MapCache<P> {
    /// Whether entries may be missing in RAM.
    const CACHED: bool = false;

    /// The entry of a logical page is needed.
    fn access(&mut self, _lpn: Lpn) -> Access {
        Access::Hit
    }

    /// The translation pages that an entry is read from now: the second where its value is a delta.
    fn pages_of(&mut self, _lpn: Lpn) -> [Option<MapPageId>; 2] {
        [None; 2]
    }

    /// Whether an entry is in RAM.
    fn holds(&self, _lpn: Lpn) -> bool {
        true
    }

    /// The entry of a logical page, whose unit is its own, has a new value.
    fn changed(&mut self, _lpn: Lpn) {}

    /// A logical page refers to another object: from now on its entry changes with that.
    fn refers(&mut self, _lpn: Lpn, _entry: MapEntry) {}

    /// The unit of an owner has moved: every entry that names it has a new value.
    fn moved(&mut self, _object: ObjectId) {}

    /// An object has left its packed page and waits in RAM for another.
    fn waits(&mut self, _object: ObjectId) {}

    /// A packed object lies in a unit of its own from now on.
    fn materialized(&mut self, _object: ObjectId) {}

    /// What the unit of a translation page is said to hold.
    fn content_of(&self, _page: MapPageId) -> Option<P> {
        None
    }

    /// The journal page that is to be programmed next.
    fn due(&mut self) -> Option<MapPageId> {
        None
    }

    /// It has been programmed.
    fn journalled(&mut self) {}

    /// Whether a journal is full and is folded into its table from now on: pages of that become stale.
    fn begin_fold(&mut self) -> bool {
        false
    }

    /// A journal page that is not needed any more, because its table has been written.
    fn take_folded(&mut self) -> Option<MapPageId> {
        None
    }

    /// Translation pages, and pages of journals, that there can be.
    fn pages(&self) -> u32 {
        0
    }

    /// Where a translation page lies, [`Ppn::NONE`] if it was never written.
    fn location(&self, _page: MapPageId) -> Ppn {
        Ppn::NONE
    }

    /// A translation page lies elsewhere from now on.
    fn place(&mut self, _page: MapPageId, _to: Ppn) {}

    /// A translation page has been written with all that is known of it.
    fn written(&mut self, _page: MapPageId) {}

    /// Translation pages that are stale: older than what is known of entries that are not in RAM.
    fn stale(&self) -> u32 {
        0
    }

    /// Whether one of them is.
    fn is_stale(&self, _page: MapPageId) -> bool {
        false
    }

    /// The one of them that has been so for the longest.
    fn first_stale(&mut self) -> Option<MapPageId> {
        None
    }

    /// Whether this is known of a logical page here, too.
    fn agrees(&self, _lpn: Lpn, _entry: MapEntry) -> bool {
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

impl<P> MapCache<P> for Resident {}
