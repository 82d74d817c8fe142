//! What a replay ends with.
//!
//! Invariants: everything that map and history name has a row; what is lost is in the order of its owners, each once.

use flashlore_flash::{BlockId, Lpn, ObjectId, Ppn};
use rustc_hash::FxHashMap;

use super::history::ReplayedHistory;
use super::placement::PlacedRows;
use crate::format::MapRow;
use crate::notes::Notes;
use crate::place::Placed;
use crate::young::Young;

/// The state after the last event that counts.
pub(crate) struct Replayed {
    /// The last event.
    pub sequence: u64,
    /// Its stamp, or a later one seen before it.
    pub stamp: u64,
    /// Plain: unit of every page. Otherwise its object.
    pub map: Vec<MapRow>,
    /// Objects and packed pages.
    pub placed: Placed,
    /// What differs from the rows of the checkpoint, where map and objects are not there as a whole.
    pub changes: Option<PlacedRows>,
    /// Entries of the history that name an object of the checkpoint: more or fewer.
    pub kept: Vec<(ObjectId, i64)>,
    /// The same of those that it does not have.
    pub kept_made: Vec<(ObjectId, u32)>,
    /// A bit for each unit on which something lies that is needed.
    pub valid: Vec<u64>,
    /// The same as the checkpoint has it, where it tells.
    pub valid_before: Vec<u64>,
    /// Rows of the map that changed since the checkpoint.
    pub changed_pages: Vec<Lpn>,
    /// Old versions, where they are kept.
    pub history: Option<ReplayedHistory>,
    /// What is said about them.
    pub notes: Notes,
    /// The start of the window as far as it is durable.
    pub window: u64,
    /// Writes newer than the checkpoint, by block.
    pub young: FxHashMap<BlockId, Vec<Young>>,
    /// Events applied.
    pub events: u64,
    /// Whether there were any among them that may change many rows at once.
    pub has_bulk: bool,
    /// What is nowhere any more, by owner.
    pub lost: Vec<Lost>,
}

/// Something that is nowhere any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    /// The object, of a plain volume the address.
    pub owner: ObjectId,
    /// Number of the write; 0 for one of a plain volume that the checkpoint knows.
    pub write_seq: u64,
    /// The unit that stands for it.
    pub unit: Ppn,
}

impl Lost {
    /// No unit stands for it yet.
    pub fn new(owner: ObjectId, write_seq: u64) -> Self {
        let unit = Ppn::NONE;
        Lost {
            owner,
            write_seq,
            unit,
        }
    }
}
