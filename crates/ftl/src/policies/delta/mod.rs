//! Values in fewer bytes than a page (DeltaFTL, EuroSys 2012): updates as deltas from the page they
//! replace, any value compressed by itself, and several of either in one flash page.
//!
//! * [`packs`] — packed pages and their directories
//! * [`heat`] — how often pages were written and read of late
//! * [`similar`] — bases chosen by similarity, from any page
//! * [`viability`] — whether encoding pays at all
//! * [`forms`] — what a write can be encoded as
//!
//! Nothing here knows whether an object is shared or old: what keeps a value or a base alive is a
//! reference to it.

pub mod forms;
pub mod heat;
pub mod packs;
pub mod similar;
pub mod viability;

use std::collections::VecDeque;

use flashlore_content::Content;
use flashlore_flash::{Lpn, ObjectId, Owned, Owner, PackId, Ppn};

use self::heat::{Heat, HeatOptions};
use self::packs::{Packs, Slot};
use self::similar::{Similar, SimilarCounters, SimilarOptions};
use self::viability::{Viability, ViabilityOptions};
use super::Policy;
use crate::mapping::objects::Objects;

/// A count of writes or reads that is never reached: counts stop at 15.
pub const NEVER: u8 = 16;

/// What is encoded, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaOptions {
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

/// What happened to writes and encoded values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeltaCounters {
    /// Writes that were encoded to see how long that is, or would have been outside baseline mode.
    pub candidates: u64,
    /// Of them, those not encoded in baseline mode.
    pub bypassed: u64,
    /// Writes stored as deltas.
    pub deltas: u64,
    /// Their bytes, without directory entries.
    pub delta_bytes: u64,
    /// Writes compressed by themselves.
    pub compressed: u64,
    /// Their bytes.
    pub compressed_bytes: u64,
    /// Host reads of packed values.
    pub reads: u64,
    /// Those of them that needed a second flash page, or one besides what is in RAM.
    pub double_reads: u64,
    /// Values materialized because they are read often.
    pub merges_read_hot: u64,
    /// Because they are not written often any more.
    pub merges_write_cold: u64,
    /// While their block, or their base's, was collected.
    pub merges_gc: u64,
    /// To make room.
    pub merges_room: u64,
    /// Merged values that turned out to be stored already.
    pub merges_shared: u64,
    /// Encoded values packed anew by collection.
    pub repacked: u64,
    /// Packed pages programmed by collection.
    pub repack_programs: u64,
    /// Bases chosen by similarity.
    pub similar: SimilarCounters,
}

/// Why a value is materialized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is read often.
    ReadHot,
    /// It is not written often any more.
    WriteCold,
    /// Its block, or its base's, is collected.
    Gc,
    /// Space is needed.
    Room,
}

/// The policy's state. `V` is an encoded value in RAM.
#[derive(Debug, Clone)]
pub struct Delta<V> {
    /// Settings.
    pub options: DeltaOptions,
    /// Counts by page.
    pub heat: Heat,
    /// Packed pages.
    pub packs: Packs<V>,
    /// The controller that bypasses encoding.
    pub viability: Viability,
    /// Counts since the start or the end of warm-up.
    pub counters: DeltaCounters,
    /// Packed objects.
    pub packed: u32,
    /// Bases that packed objects alone keep alive.
    pub pinned: u32,
    /// Packed pages with live values that there may be.
    pub most_packs: u32,
    /// Units, and packed pages with live values, that a recovery found beyond what there may be.
    pub found_beyond: (u64, u32),
    /// An object that is being merged: nobody else may.
    pub(crate) busy: ObjectId,
    /// Whether space is being made.
    pub(crate) evicting: bool,
    /// Pages that the last scan found cold.
    pub(crate) cold: VecDeque<Lpn>,
    /// Room for a copy of slots.
    pub(crate) scratch: Vec<Slot>,
    /// Who finds bases that resemble a page.
    pub similar: Option<Box<Similar>>,
}

impl<V: Clone> Delta<V> {
    /// A copy of the slots of a packed page, to be given back.
    pub(crate) fn borrow_slots(&mut self, pack: PackId) -> Vec<Slot> {
        let mut slots = std::mem::take(&mut self.scratch);
        slots.clear();
        slots.extend_from_slice(self.packs.slots(pack));
        slots
    }

    /// Nothing is packed.
    pub fn new(options: DeltaOptions, exported: u32, most_packs: u32, most_objects: u32) -> Self {
        let mut delta = Delta {
            options,
            heat: Heat::new(exported, options.heat),
            packs: Packs::default(),
            viability: Viability::new(options.viability),
            counters: DeltaCounters::default(),
            packed: 0,
            pinned: 0,
            most_packs,
            found_beyond: (0, 0),
            busy: ObjectId::NONE,
            evicting: false,
            cold: VecDeque::new(),
            scratch: Vec::new(),
            similar: None,
        };
        if let Some(options) = options.similar {
            delta.find_similar_bases(options, most_objects);
        }
        delta
    }

    /// Whether a page is written often.
    #[inline(always)]
    pub fn is_write_hot(&self, lpn: Lpn) -> bool {
        self.heat.writes(lpn) >= self.options.hot_writes
    }

    /// Whether it will be once it has been written once more.
    pub(crate) fn is_write_hot_next(&self, lpn: Lpn) -> bool {
        let writes = self.heat.writes(lpn) + 1;
        writes.min(NEVER - 1) >= self.options.hot_writes
    }

    /// Whether a page is read often.
    #[inline(always)]
    pub fn is_read_hot(&self, lpn: Lpn) -> bool {
        self.heat.reads(lpn) >= self.options.hot_reads
    }

    /// Whether a page may be stored as a delta, if there is anything to differ from.
    pub(crate) fn may_differ(&self, lpn: Lpn) -> bool {
        self.options.deltas && self.most_packs > 0 && !self.is_read_hot(lpn)
    }

    /// Whether a delta is to be materialized when collection meets it. `alone` says that it alone keeps its
    /// base: where bases are chosen by similarity, a page that is not written often has a delta all the same,
    /// and materializing it gains nothing unless the base goes with it.
    pub(crate) fn is_to_merge(&self, lpn: Lpn, alone: impl FnOnce() -> bool) -> bool {
        let is_cold = || !self.is_write_hot(lpn) && (self.similar.is_none() || alone());
        self.is_read_hot(lpn) || is_cold()
    }

    pub(crate) fn count_merge(&mut self, why: Why) {
        let count = match why {
            Why::ReadHot => &mut self.counters.merges_read_hot,
            Why::WriteCold => &mut self.counters.merges_write_cold,
            Why::Gc => &mut self.counters.merges_gc,
            Why::Room => &mut self.counters.merges_room,
        };
        *count += 1;
    }
}

impl<C: Content, V: Clone> Policy<C> for Delta<V> {
    #[inline(always)]
    fn on_read(&mut self, lpn: Lpn) {
        self.heat.read(lpn);
    }

    #[inline(always)]
    fn on_relocate(&mut self, _: &Objects<C>, owned: Owned, to: Ppn) {
        if let Owned::Pack(pack) = owned {
            self.packs.relocate(pack, to);
        }
    }

    fn on_trim(&mut self, lpn: Lpn) {
        self.heat.forget(lpn);
    }

    #[inline(always)]
    fn on_death(&mut self, _: &mut Objects<C>, object: ObjectId) {
        if let Some(similar) = &mut self.similar {
            similar.index.remove(object);
        }
    }

    fn location(&self, owned: Owned) -> Option<Ppn> {
        match owned {
            Owned::Pack(pack) => Some(self.packs.at(pack)),
            _ => None,
        }
    }

    fn owners(&self) -> Vec<Owner> {
        let packs = self.packs.used().filter(|&(_, on_flash)| on_flash);
        packs.map(|(pack, _)| Owner::pack(pack)).collect()
    }

    fn check(&self, objects: &Objects<C>, alive: &[ObjectId]) -> Result<(), String> {
        let is_live = |o: ObjectId| objects.references(o) > 0 && objects.is_delta(o);
        self.packs
            .check(|object| object.is_some() && is_live(object))?;
        if let Some(similar) = &self.similar {
            let is_base = |o: ObjectId| objects.is_alive(o) && !objects.is_delta(o);
            similar.index.check(is_base)?;
        }
        let packed = alive.iter().filter(|&&o| objects.is_packed(o));
        for &object in packed.clone() {
            let found = objects.packed(object);
            let slot = found.and_then(|(pack, _)| self.packs.slot_of(pack, object));
            if slot.is_none() {
                return Err(format!("packed object {object} has no slot in {found:?}"));
            }
        }
        let pinned = alive.iter().filter(|&&o| objects.is_pinned_alone(o));
        let counted = (packed.count(), pinned.count());
        if counted != (self.packed as usize, self.pinned as usize) {
            return Err(format!(
                "packed objects and bases kept for them alone are {counted:?}, noted {} and {}",
                self.packed, self.pinned
            ));
        }
        let slots = self.packs.used();
        let slots = slots.flat_map(|(pack, _)| self.packs.slots(pack));
        let named = slots.filter(|slot| slot.object.is_some()).count();
        match named == self.packed as usize {
            true => Ok(()),
            false => Err(format!(
                "{named} slots name an object, {} objects are packed",
                self.packed
            )),
        }
    }

    fn heap_bytes(&self) -> usize {
        let similar = self.similar.as_ref().map_or(0, |s| s.index.heap_bytes());
        self.heat.heap_bytes() + self.packs.heap_bytes() + similar
    }

    fn restart_counters(&mut self) {
        self.counters = DeltaCounters::default();
        self.viability.bypassed = 0;
        if let Some(similar) = &mut self.similar {
            similar.counters = SimilarCounters::default();
        }
    }
}
