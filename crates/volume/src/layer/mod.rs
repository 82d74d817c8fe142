//! The translation layers a volume can have, seen alike: what a write changed, and the rows of the checkpoint tables.
//!
//! | module | what it is |
//! |---|---|
//! | [`plain`] | the layer without a content policy: a page map alone |
//! | [`objects`] | the layer of objects: deduplication, delta encoding, history |
//! | [`versioned`] | what a layer with a history does beyond that |
//!
//! Everything above uses [`Layer`] and [`Versioned`]; only the code that restores a volume knows which of them it makes.

use flashlore_content::Digest;
use flashlore_content::dedup::{BoundedIndex, DedupCounters};
use flashlore_content::history::History;
use flashlore_flash::{Lpn, ObjectId, PackId, PackSlot, Ppn};
use flashlore_ftl::FtlError;
use flashlore_ftl::content::encoding::EncodingCounters;
use flashlore_ftl::core::Core;
use flashlore_ftl::mapping::tallies::Tallies;
use flashlore_ftl::policies::options::SimilarOptions;
use flashlore_metadata::StoredTables;
use rustc_hash::FxHashSet;

use crate::error::NandError;
use crate::fetch::{HeldPage, PlannedWrite};
use crate::format::{ObjectName, ObjectNote};
use crate::nand::Nand;
use crate::survey::{StoredAs, Survey};
use crate::unit::{Proof, StoredUnit};

mod objects;
mod plain;
mod versioned;

pub(crate) use objects::{Kept, OnMedium, WithObjects};
pub(crate) use plain::Plain;
pub(crate) use versioned::Versioned;

pub(crate) type LayerError = FtlError<NandError>;
/// The history, in the tables of the volume.
pub(crate) type StoredHistory = History<StoredTables<ObjectNote>>;

/// What a write changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Nothing: the address held this content already.
    Nothing,
    /// A page is stored.
    Stored,
    /// The address refers to an object that was stored already.
    Shared {
        /// The object.
        object: ObjectName,
    },
}

/// A translation layer over a medium. What only policies answer has the answer of a layer without any.
pub(crate) trait Layer: Send {
    fn core(&self) -> &Core<Nand>;
    fn core_mut(&mut self) -> &mut Core<Nand>;
    /// Writes a page whose digest is in the record. Without `room` nothing is stored unless the
    /// address gives a page up.
    fn write(&mut self, lpn: Lpn, unit: StoredUnit, room: bool) -> Result<Written, LayerError>;
    /// Whether an object may hold a page with this digest.
    fn may_hold(&self, _digest: Digest) -> bool {
        false
    }
    /// What a write of a page with this digest would be compared with, or how it would be encoded.
    fn plan_write(
        &mut self,
        _lpn: Lpn,
        _digest: Digest,
    ) -> Result<PlannedWrite<HeldPage>, LayerError> {
        Ok(PlannedWrite::default())
    }
    /// Reads a page; `None` if nothing was written there.
    fn read(&mut self, lpn: Lpn) -> Result<Option<StoredUnit>, LayerError>;
    /// Where the host is to read a page, and what proves it; `None` if nothing was written there.
    fn plan(&mut self, lpn: Lpn) -> Result<Option<(HeldPage, Proof)>, LayerError>;
    /// Forgets a page; whether there was one.
    fn trim(&mut self, lpn: Lpn) -> Result<bool, LayerError>;
    /// Erases the blocks in which nothing is needed.
    fn reclaim_empty(&mut self) -> Result<(), LayerError>;
    /// Before each write: the steps that collection owes.
    fn keep_pace(&mut self) -> Result<(), LayerError>;
    /// One step of collection; whether there was anything to do.
    fn collect_step(&mut self) -> Result<bool, LayerError>;
    /// Pages stored.
    fn stored(&self) -> u64;
    /// What is counted of the tables.
    fn tallies(&self) -> Tallies;
    /// Objects that may hold a page with this digest, whether or not they are still there. Nothing is looked up in tables.
    fn hints(&self, _digest: Digest) -> Vec<ObjectId> {
        Vec::new()
    }
    /// What deduplication counted.
    fn dedup_counters(&self) -> Option<DedupCounters> {
        None
    }
    /// The fingerprint index, where there is one.
    fn index(&self) -> Option<&BoundedIndex> {
        None
    }
    /// The same to be changed, and how many handles objects may have.
    fn index_mut(&mut self) -> Option<(&mut BoundedIndex, u32)> {
        None
    }
    /// Enters stored objects into the fingerprint index, from a handle on and of so many handles; where to go on, if any is
    /// left.
    fn fill_index(&mut self, _from: ObjectId, _most: u32) -> Option<ObjectId> {
        None
    }
    /// What encoding counted.
    fn encoding_counters(&self) -> Option<EncodingCounters> {
        None
    }
    /// Bases are chosen by similarity from now on.
    fn find_similar_bases(&mut self, _options: SimilarOptions) {}
    /// What is stored, and what for: adds at most `most` values, from an owner on, to a survey; where to go on, if any is
    /// left.
    fn survey_step(&self, from: ObjectId, most: u32, survey: &mut Survey) -> Option<ObjectId>;
    /// How an address is stored, if it holds anything.
    fn stored_as(&self, lpn: Lpn) -> Option<StoredAs>;
    /// Where an address lies.
    fn location(&self, lpn: Lpn) -> Option<Ppn>;
    /// Where what an owner holds lies.
    fn unit_of_owner(&self, owner: ObjectId) -> Option<Ppn>;
    /// How many owners there may be: addresses, or objects, those of old versions too.
    fn owners(&self) -> u32;
    /// The units that an owner needs; none if it holds nothing.
    fn places_of_owner(&self, owner: ObjectId) -> [Option<Ppn>; 2];
    /// What a unit that an owner needs must say of itself.
    fn proof_of_place(&self, owner: ObjectId, unit: Ppn) -> Proof;
    /// The objects that lie on a unit, or differ from one that does; none where owners are addresses.
    fn objects_on(&self, _unit: Ppn) -> FxHashSet<ObjectId> {
        FxHashSet::default()
    }
    /// An object, and those that differ from it.
    fn with_dependents(&self, object: ObjectId) -> FxHashSet<ObjectId> {
        std::iter::once(object).collect()
    }
    /// The object that an address refers to.
    fn object_of(&self, _lpn: Lpn) -> Option<ObjectId> {
        None
    }
    /// What an object is a delta from, if from anything.
    fn base_of(&self, _object: ObjectId) -> Option<ObjectId> {
        None
    }
    /// The slot of a packed object, and where its page lies.
    fn slot_of(&self, _object: ObjectId) -> Option<(Ppn, PackSlot)> {
        None
    }
    /// Where digests are trusted: what lies on a unit that is known to be unreadable is not, by whoever opens the volume
    /// next.
    fn distrust(&mut self, _unit: Ppn) {}
    /// Looks at so many more of the packed pages that an opening found; whether there are more.
    fn look_at_packs(&mut self, _most: u32) -> bool {
        false
    }
    /// The packed page that is looked at next.
    fn next_pack_to_look_at(&self) -> Option<PackId> {
        None
    }
    /// Programs what waits to be packed, and what a recovery found waiting.
    fn flush_packs(&mut self) -> Result<(), LayerError> {
        Ok(())
    }
    /// The units that an address needs.
    fn places(&self, lpn: Lpn) -> [Option<Ppn>; 2];
    /// Old versions, if they are kept.
    fn history(&self) -> Option<&StoredHistory> {
        None
    }
    /// Changes the history, which exists: what it gives up is released.
    fn versioned(&mut self) -> Option<&mut dyn Versioned> {
        None
    }
    /// Recounts every invariant.
    fn check(&self) -> Result<(), String>;
}

/// The volume says how much is stored and how much fits.
fn no_room() -> LayerError {
    FtlError::Full { valid: 0, units: 0 }
}
