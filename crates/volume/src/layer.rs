//! The translation layers a volume can have, seen alike: what a write changed, and the rows of the
//! checkpoint tables.

use std::ops::Range;
use std::sync::Arc;

use flashlore_content::dedup::DedupCounters;
use flashlore_content::delta::Never;
use flashlore_content::history::{History, TooOld, Version};
use flashlore_content::{Content, Digest, DigestTag, Encoder, NoCensus};
use flashlore_flash::{Cause, Lpn, ObjectId, PackId, Ppn, Tag, When};
use flashlore_ftl::content::bytes::HeldValue;
use flashlore_ftl::content::decision::{Committed, Write};
use flashlore_ftl::content::encoding::EncodingCounters;
use flashlore_ftl::content::parts::{Memory, Of, Parts};
use flashlore_ftl::core::Core;
use flashlore_ftl::core::erase_stale::Erased;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::policies::options::SimilarOptions;
use flashlore_ftl::{ContentDevice, FtlError, Outcome, PlainFtl};

use crate::error::NandError;
use crate::fetch::{HeldPage, PlannedEncoding};
use crate::format::rows::UNSHAREABLE;
use crate::format::{MapRow, ObjectPlace, ObjectRow, PackRow, PackedRow, Slot, UnitKind};
use crate::nand::Nand;
use crate::survey::{StoredAs, Survey};
use crate::unit::{LOST, Proof, StoredUnit};
use crate::values::{Ahead, PackedValue};

pub(crate) type LayerError = FtlError<NandError>;

/// What a write changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Nothing: the address held this content already.
    Nothing,
    /// A page is stored.
    Stored,
    /// The address refers to an object that was stored already.
    Shared {
        /// The object's write sequence number.
        write_seq: u64,
    },
}

/// A translation layer over a medium. What only policies answer has the answer of a layer without any.
pub(crate) trait Layer: Send {
    fn core(&self) -> &Core<Nand>;
    fn core_mut(&mut self) -> &mut Core<Nand>;
    /// Writes a page whose digest is in the record. Without `room` nothing is stored unless the
    /// address gives a page up.
    fn write(&mut self, lpn: Lpn, unit: StoredUnit, room: bool) -> Result<Written, LayerError>;
    /// How a write of a page with this digest would be encoded.
    fn plan_encoding(&mut self, _lpn: Lpn, _digest: Digest) -> Result<PlannedEncoding, LayerError> {
        Ok(PlannedEncoding::default())
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
    /// What deduplication counted.
    fn dedup_counters(&self) -> Option<DedupCounters> {
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
    /// A row of the map table.
    fn map_row(&self, lpn: Lpn) -> MapRow;
    /// A row of the object table.
    fn object_row(&self, _handle: ObjectId) -> ObjectRow {
        ObjectRow::NONE
    }
    /// A row of the table of packed pages.
    fn pack_row(&self, _pack: PackId) -> PackRow {
        PackRow::NONE
    }
    /// Programs what waits to be packed, and what a recovery found waiting.
    fn flush_packs(&mut self) -> Result<(), LayerError> {
        Ok(())
    }
    /// The units that an address needs.
    fn places(&self, lpn: Lpn) -> [Option<Ppn>; 2];
    /// Old versions, if they are kept.
    fn history(&self) -> Option<&History> {
        None
    }
    /// Changes the history, which exists: what it gives up is released.
    fn versioned(&mut self) -> Option<&mut dyn Versioned> {
        None
    }
    /// Recounts every invariant.
    fn check(&self) -> Result<(), String>;
}

/// A translation layer that keeps old versions.
pub(crate) trait Versioned {
    /// What happens next happens at this instant.
    fn set_instant(&mut self, stamp: u64);
    /// Until it is called with `None`: no pressure takes away this instant of the window.
    fn guard_instant(&mut self, instant: Option<u64>);
    /// Gives up the oldest entries while there are as many as may be, as far as they may go.
    fn limit(&mut self);
    /// Every address holds again what it held at an instant; answers how many changed.
    fn rewind_to(&mut self, instant: u64) -> Result<u64, TooOld>;
    /// Keeps an instant.
    fn snapshot(&mut self, instant: u64) -> Result<(), TooOld>;
    /// Ends that; whether it was kept.
    fn delete_snapshot(&mut self, instant: u64) -> bool;
    /// Forgets old versions of addresses.
    fn purge(&mut self, pages: Range<Lpn>);
    /// Materializes what addresses hold, where it is a delta from something older.
    fn materialize_pages(&mut self, pages: Range<Lpn>) -> Result<(), LayerError>;
    /// Erases every block that holds something to which nobody refers.
    fn erase_stale(&mut self) -> Result<Erased, LayerError>;
    /// Moves the start of the window on.
    fn advance(&mut self, to: u64);
    /// Forgets every instant before this one; answers the snapshots that ended.
    fn forget_before(&mut self, to: u64) -> Vec<u64>;
    /// Times that do not count towards the least window: their last stamps, and how long they were.
    fn set_unproven(&mut self, unproven: Vec<(u64, u64)>);
    /// What an address held at an instant, with the present resolved.
    fn version_at(&self, lpn: Lpn, instant: u64) -> Result<Version, TooOld>;
    /// Reads what an object holds.
    fn read_object(&mut self, object: ObjectId) -> Result<StoredUnit, LayerError>;
    /// Where what an object holds is to be read, and what proves it.
    fn plan_object(&mut self, object: ObjectId) -> Result<(HeldPage, Proof), LayerError>;
    /// Gets the history ready to be stored.
    fn tidy(&mut self);
    /// It has been stored.
    fn note_stored(&mut self);
}

/// The volume says how much is stored and how much fits.
fn no_room() -> LayerError {
    FtlError::Full { valid: 0, units: 0 }
}

/// Without a content policy.
pub(crate) struct Plain {
    pub ftl: PlainFtl<Nand>,
    pub stored: u64,
}

impl Layer for Plain {
    fn core(&self) -> &Core<Nand> {
        self.ftl.core()
    }

    fn core_mut(&mut self) -> &mut Core<Nand> {
        self.ftl.core_mut()
    }

    fn write(&mut self, lpn: Lpn, unit: StoredUnit, room: bool) -> Result<Written, LayerError> {
        let new = self.location(lpn).is_none();
        if new && !room {
            return Err(no_room());
        }
        self.ftl.write(When::now(0), lpn, unit, Tag::NONE)?;
        self.stored += u64::from(new);
        Ok(Written::Stored)
    }

    fn read(&mut self, lpn: Lpn) -> Result<Option<StoredUnit>, LayerError> {
        Ok(self.ftl.read(0, lpn, Cause::Host, Tag::NONE)?.0)
    }

    fn plan(&mut self, lpn: Lpn) -> Result<Option<(HeldPage, Proof)>, LayerError> {
        let held = match self.location(lpn) {
            Some(ppn) if !self.ftl.core().is_buffered(ppn) => {
                self.ftl.note_read();
                Some(HeldValue::Unit(ppn))
            }
            _ => self.read(lpn)?.map(HeldValue::Here),
        };
        Ok(held.map(|held| (held, Proof::Lpn(lpn))))
    }

    fn trim(&mut self, lpn: Lpn) -> Result<bool, LayerError> {
        let held = self.location(lpn).is_some();
        self.ftl.trim(lpn)?;
        self.stored -= u64::from(held);
        Ok(held)
    }

    fn reclaim_empty(&mut self) -> Result<(), LayerError> {
        self.ftl.reclaim_empty(0)
    }

    fn keep_pace(&mut self) -> Result<(), LayerError> {
        self.ftl.keep_pace()
    }

    fn collect_step(&mut self) -> Result<bool, LayerError> {
        self.ftl.collect_step()
    }

    fn stored(&self) -> u64 {
        self.stored
    }

    fn survey_step(&self, _from: ObjectId, _most: u32, survey: &mut Survey) -> Option<ObjectId> {
        // All of it is known.
        survey.pages = self.stored;
        survey.values = self.stored;
        None
    }

    fn stored_as(&self, lpn: Lpn) -> Option<StoredAs> {
        self.location(lpn).map(|_| StoredAs::default())
    }

    fn location(&self, lpn: Lpn) -> Option<Ppn> {
        let map = self.ftl.map();
        (lpn < Lpn(map.len()))
            .then(|| map.get(lpn))
            .filter(|ppn| ppn.is_some())
    }

    fn unit_of_owner(&self, owner: ObjectId) -> Option<Ppn> {
        self.location(owner.as_page())
    }

    fn owners(&self) -> u32 {
        self.ftl.map().len()
    }

    fn places_of_owner(&self, owner: ObjectId) -> [Option<Ppn>; 2] {
        self.places(owner.as_page())
    }

    fn map_row(&self, lpn: Lpn) -> MapRow {
        MapRow::of_unit(self.ftl.map().get(lpn))
    }

    fn places(&self, lpn: Lpn) -> [Option<Ppn>; 2] {
        [self.location(lpn), None]
    }

    fn check(&self) -> Result<(), String> {
        self.ftl.check()
    }
}

/// As much of a digest as a policy keeps of every object.
pub(crate) trait Kept: Content + Send {
    /// Whether bytes are compared before a page is shared.
    const VERIFY: bool;
    fn of(digest: Digest) -> Self;
    fn digest(self) -> Digest;
}

impl Kept for DigestTag {
    const VERIFY: bool = true;
    fn of(digest: Digest) -> Self {
        digest.tag()
    }
    fn digest(self) -> Digest {
        Digest(u128::from(self.0))
    }
}

impl Kept for Digest {
    const VERIFY: bool = false;
    fn of(digest: Digest) -> Self {
        digest
    }
    fn digest(self) -> Digest {
        self
    }
}

/// An encoded value in RAM, on volumes that encode and on those that do not.
pub(crate) trait InRam: Send {
    fn into_value(self) -> Arc<PackedValue>;
}

impl InRam for Arc<PackedValue> {
    fn into_value(self) -> Arc<PackedValue> {
        self
    }
}

impl InRam for Never {
    fn into_value(self) -> Arc<PackedValue> {
        match self {}
    }
}

/// The parts of a translation layer of values over a medium.
pub(crate) trait OnMedium:
    Parts<
        Content: Kept,
        Flash = Nand,
        Ledger = NoCensus,
        Cache = Resident,
        Encoder: Encoder<<Self as Parts>::Content, StoredUnit, Encoded: InRam> + Send,
    >
{
}

impl<C: Kept, E, M: Memory> OnMedium for Of<C, Nand, NoCensus, Resident, E, M> where
    E: Encoder<C, StoredUnit, Encoded: InRam> + Send
{
}

/// With objects: deduplication, old versions, or both.
pub(crate) struct WithObjects<T: OnMedium> {
    pub ftl: ContentDevice<T>,
}

impl<T: OnMedium> WithObjects<T> {
    fn write_seq(&self, object: ObjectId) -> u64 {
        let write_seqs = &self.ftl.core().flash().write_seqs;
        write_seqs.get(object.index()).copied().unwrap_or(0)
    }

    /// Notes the write sequence number of an object that a write has made.
    fn note_write_seq(&mut self, done: &Committed, write_seq: u64) {
        if matches!(done.outcome, Outcome::Silent | Outcome::Shared) {
            return;
        }
        let (object, flash) = (done.object, self.ftl.core_mut().flash_mut());
        if flash.write_seqs.len() <= object.index() {
            flash.write_seqs.resize(object.index() + 1, 0);
        }
        flash.write_seqs[object.index()] = write_seq;
    }

    /// Writes anew what an object held that could not be read, for those who share it still: the write that brought it
    /// may have taken the last reference. Without room it stays as it was, and the write is done all the same.
    fn write_anew(
        &mut self,
        lpn: Lpn,
        object: ObjectId,
        unit: StoredUnit,
    ) -> Result<(), LayerError> {
        let objects = self.ftl.objects();
        let is_it = objects.is_alive(object) && self.write_seq(object) == unit.record.write_seq;
        if !is_it || objects.is_packed(object) {
            return Ok(());
        }
        match self.ftl.rewrite(When::now(0), lpn, object, unit) {
            Ok(_) | Err(FtlError::Full { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Whether what was encoded before the write began is a delta from what the object holds still.
    fn still_holds(&self, ahead: &Ahead) -> bool {
        ahead.delta.as_ref().is_none_or(|delta| {
            self.ftl.objects().is_alive(delta.base) && self.write_seq(delta.base) == delta.write_seq
        })
    }

    /// Whether there may be objects to which no address refers: old versions, and bases of deltas. These do not count
    /// as stored, for they give way: old versions are forgotten, and what is a delta from such a base is materialized.
    fn gives_way(&self) -> bool {
        self.ftl.versions().is_some() || self.ftl.packing().is_some()
    }

    /// The error of an address whose content is lost.
    fn lost(&self, lpn: Lpn) -> LayerError {
        let ppn = self.location(lpn);
        FtlError::Device(NandError::Rot {
            ppn: ppn.unwrap_or(Ppn::NONE),
            why: LOST,
        })
    }
}

/// Compares the stored bytes of an object with a page. A unit that waits in a page buffer is compared there. What is
/// known to be unreadable is not trusted. An object that held this page and cannot be read any more is `rotten`, with
/// what it is to get anew; the write itself is stored apart, as nothing tells a recovery whether that copy is there yet.
fn is_same<T: OnMedium>(
    ftl: &mut ContentDevice<T>,
    object: ObjectId,
    write: &Write<T::Content, StoredUnit>,
    rotten: &mut Option<(ObjectId, StoredUnit)>,
) -> Result<bool, LayerError> {
    let unit = &write.page;
    let mut places = ftl.places(object).into_iter().flatten();
    let known_bad = places.any(|ppn| ftl.core().flash().is_bad(ppn));
    if !T::Content::VERIFY && !known_bad {
        return Ok(true);
    }
    match ftl.read_object(object) {
        Ok(stored) if stored.record.kind == UnitKind::Lost => Ok(false),
        Ok(stored) => Ok(stored.bytes == unit.bytes),
        // Which of the values of a packed page it was is not known.
        Err(_) if ftl.objects().is_packed(object) => Ok(false),
        Err(FtlError::Device(NandError::Rot { .. } | NandError::Medium(_))) => {
            *rotten = held_before(ftl, object, write).map(|unit| (object, unit));
            Ok(false)
        }
        Err(other) => Err(other),
    }
}

/// What an object held that cannot be read any more, under its old write sequence number, if its record says that it is
/// what a write brings.
fn held_before<T: OnMedium>(
    ftl: &ContentDevice<T>,
    object: ObjectId,
    write: &Write<T::Content, StoredUnit>,
) -> Option<StoredUnit> {
    let nand = ftl.core().flash();
    let write_seq = nand.write_seqs.get(object.index()).copied().unwrap_or(0);
    let record = match nand.read_record(ftl.objects().at(object)) {
        Ok(Slot::Record(placed)) => placed.record,
        _ => return None,
    };
    let same = record.digest == write.page.record.digest
        && record.write_seq == write_seq
        && record.kind == UnitKind::Data;
    same.then(|| StoredUnit::new(record, Arc::clone(&write.page.bytes)))
}

impl<T: OnMedium> Layer for WithObjects<T> {
    fn core(&self) -> &Core<Nand> {
        self.ftl.core()
    }

    fn core_mut(&mut self) -> &mut Core<Nand> {
        self.ftl.core_mut()
    }

    fn write(&mut self, lpn: Lpn, mut unit: StoredUnit, room: bool) -> Result<Written, LayerError> {
        // Nothing is moved or stored between this and the choice of its form.
        unit.ahead = unit.ahead.filter(|ahead| self.still_holds(ahead));
        let write_seq = unit.record.write_seq;
        let write = Write {
            lpn,
            content: T::Content::of(unit.record.digest),
            page: unit,
            encode: self.ftl.begin_write(lpn),
            unhashed: None,
            may_grow: room,
        };
        let mut rotten = None;
        let judge = |ftl: &mut ContentDevice<T>, object: ObjectId, write: &Write<_, _>| {
            is_same(ftl, object, write, &mut rotten)
        };
        let done = self.ftl.commit(When::now(0), write, judge, Tag::NONE)?;
        self.note_write_seq(&done, write_seq);
        if let Some((object, unit)) = rotten {
            self.write_anew(lpn, object, unit)?;
        }
        match done.outcome {
            Outcome::Silent => Ok(Written::Nothing),
            Outcome::Shared => Ok(Written::Shared {
                write_seq: self.write_seq(done.object),
            }),
            Outcome::Programmed | Outcome::Packed => Ok(Written::Stored),
        }
    }

    fn plan_encoding(&mut self, lpn: Lpn, digest: Digest) -> Result<PlannedEncoding, LayerError> {
        // A duplicate is not encoded.
        if self.ftl.candidate(T::Content::of(digest)).is_some() {
            return Ok(PlannedEncoding::default());
        }
        let (base, alone) = self.ftl.encoding_of(lpn);
        let base = match base {
            Some(object) => {
                let (held, _) = self.plan_object(object)?;
                Some((object, self.write_seq(object), held))
            }
            None => None,
        };
        Ok(PlannedEncoding { base, alone })
    }

    fn read(&mut self, lpn: Lpn) -> Result<Option<StoredUnit>, LayerError> {
        let Some(object) = self.ftl.begin_read(lpn) else {
            return Ok(None);
        };
        match self.ftl.read_version(object)? {
            unit if unit.record.kind == UnitKind::Lost => Err(self.lost(lpn)),
            unit => Ok(Some(unit)),
        }
    }

    fn plan(&mut self, lpn: Lpn) -> Result<Option<(HeldPage, Proof)>, LayerError> {
        let object = self.ftl.begin_read(lpn);
        object.map(|object| self.plan_object(object)).transpose()
    }

    fn trim(&mut self, lpn: Lpn) -> Result<bool, LayerError> {
        let held = self.ftl.objects().object_of(lpn).is_some();
        self.ftl.trim(lpn)?;
        Ok(held)
    }

    fn reclaim_empty(&mut self) -> Result<(), LayerError> {
        self.ftl.reclaim_empty(0)
    }

    fn keep_pace(&mut self) -> Result<(), LayerError> {
        self.ftl.keep_pace()
    }

    fn collect_step(&mut self) -> Result<bool, LayerError> {
        self.ftl.collect_step()
    }

    fn stored(&self) -> u64 {
        u64::from(match self.gives_way() {
            true => self.ftl.referenced_objects(),
            false => self.ftl.objects().live(),
        })
    }

    fn dedup_counters(&self) -> Option<DedupCounters> {
        Some(self.ftl.dedup_counters())
    }

    fn encoding_counters(&self) -> Option<EncodingCounters> {
        self.ftl.encoding_counters()
    }

    fn find_similar_bases(&mut self, options: SimilarOptions) {
        self.ftl.find_similar_bases(options);
    }

    fn survey_step(&self, from: ObjectId, most: u32, survey: &mut Survey) -> Option<ObjectId> {
        let objects = self.ftl.objects();
        let end = from.0.saturating_add(most).min(objects.handles());
        let handles = (from.0..end).map(ObjectId);
        for handle in handles.filter(|&handle| objects.is_alive(handle)) {
            let references = objects.references(handle);
            survey.pages += u64::from(references);
            survey.values += u64::from(references > 0);
            survey.kept += u64::from(references == 0);
            let Some((pack, base)) = objects.packed(handle) else {
                continue;
            };
            let packs = self.ftl.packing().map(|packing| &packing.packs);
            let slot = packs.and_then(|packs| packs.slot_of(pack, handle));
            let bytes = slot.map_or(0, |(_, slot)| u64::from(slot.length));
            let kind = match base {
                ObjectId::NONE => &mut survey.compressed,
                _ => &mut survey.deltas,
            };
            *kind = (kind.0 + 1, kind.1 + bytes);
        }
        (end < objects.handles()).then_some(ObjectId(end))
    }

    fn stored_as(&self, lpn: Lpn) -> Option<StoredAs> {
        let objects = self.ftl.objects();
        if lpn >= Lpn(self.ftl.core().options().exported) {
            return None;
        }
        let object = objects.object_of(lpn)?;
        let base = objects.packed(object).map(|(_, base)| base);
        Some(StoredAs {
            shared: objects.references(object) > 1,
            is_delta: base.is_some_and(|base| base.is_some()),
            is_compressed: base == Some(ObjectId::NONE),
        })
    }

    fn location(&self, lpn: Lpn) -> Option<Ppn> {
        let object = self.ftl.objects().object_of(lpn)?;
        self.unit_of_owner(object)
    }

    fn unit_of_owner(&self, owner: ObjectId) -> Option<Ppn> {
        let [base, own] = self.places_of_owner(owner);
        own.or(base)
    }

    fn owners(&self) -> u32 {
        self.ftl.objects().handles()
    }

    fn places_of_owner(&self, owner: ObjectId) -> [Option<Ppn>; 2] {
        match self.ftl.objects().is_alive(owner) {
            true => self.ftl.places(owner),
            false => [None, None],
        }
    }

    fn map_row(&self, lpn: Lpn) -> MapRow {
        MapRow::of_object(self.ftl.objects().get(lpn))
    }

    fn object_row(&self, handle: ObjectId) -> ObjectRow {
        let objects = self.ftl.objects();
        if !objects.is_alive(handle) {
            return ObjectRow::NONE;
        }
        let mut places = self.ftl.places(handle).into_iter().flatten();
        let is_bad = places.any(|ppn| self.core().flash().is_bad(ppn));
        let shareable = T::Content::VERIFY || !is_bad;
        let packed = objects.packed(handle).and_then(|(pack, base)| {
            let (slot, found) = self.ftl.packing()?.packs.slot_of(pack, handle)?;
            Some(PackedRow {
                pack,
                base,
                length: found.length,
                slot,
            })
        });
        let whole = || ObjectPlace::Unit(objects.at(handle));
        ObjectRow {
            place: packed.map_or_else(whole, ObjectPlace::Packed),
            write_seq: self.write_seq(handle),
            digest: match shareable {
                true => objects.content(handle).digest(),
                false => UNSHAREABLE,
            },
        }
    }

    fn pack_row(&self, pack: PackId) -> PackRow {
        let packs = self.ftl.packing().map(|packing| &packing.packs);
        packs
            .filter(|packs| pack < PackId(packs.numbers()))
            .map_or(PackRow::NONE, |packs| PackRow {
                unit: packs.at(pack),
                bytes: packs.written_bytes(pack),
                slots: packs.slots(pack).len() as u16,
            })
    }

    fn flush_packs(&mut self) -> Result<(), LayerError> {
        self.ftl.program_packs()
    }

    fn places(&self, lpn: Lpn) -> [Option<Ppn>; 2] {
        let object = self.ftl.objects().object_of(lpn);
        object.map_or([None, None], |object| self.ftl.places(object))
    }

    fn history(&self) -> Option<&History> {
        Some(&self.ftl.versions()?.history)
    }

    fn versioned(&mut self) -> Option<&mut dyn Versioned> {
        self.ftl.versions()?;
        Some(self)
    }

    fn check(&self) -> Result<(), String> {
        self.ftl.check()
    }
}

impl<T: OnMedium> Versioned for WithObjects<T> {
    fn set_instant(&mut self, stamp: u64) {
        self.ftl.set_instant(stamp);
    }

    fn guard_instant(&mut self, instant: Option<u64>) {
        self.ftl.guard_instant(instant);
    }

    fn limit(&mut self) {
        self.ftl.limit_history();
    }

    fn rewind_to(&mut self, instant: u64) -> Result<u64, TooOld> {
        self.ftl.rewind_to(instant)
    }

    fn snapshot(&mut self, instant: u64) -> Result<(), TooOld> {
        self.ftl.snapshot(instant)
    }

    fn delete_snapshot(&mut self, instant: u64) -> bool {
        self.ftl.delete_snapshot(instant)
    }

    fn purge(&mut self, pages: Range<Lpn>) {
        self.ftl.purge(pages);
    }

    fn materialize_pages(&mut self, pages: Range<Lpn>) -> Result<(), LayerError> {
        self.ftl.materialize_pages(0, pages)
    }

    fn erase_stale(&mut self) -> Result<Erased, LayerError> {
        self.ftl.erase_stale(0)
    }

    fn advance(&mut self, to: u64) {
        self.ftl.advance_window(to);
    }

    fn forget_before(&mut self, to: u64) -> Vec<u64> {
        self.ftl.forget_before(to)
    }

    fn set_unproven(&mut self, unproven: Vec<(u64, u64)>) {
        self.ftl.set_unproven(unproven);
    }

    fn version_at(&self, lpn: Lpn, instant: u64) -> Result<Version, TooOld> {
        self.ftl.version_at(lpn, instant)
    }

    fn plan_object(&mut self, object: ObjectId) -> Result<(HeldPage, Proof), LayerError> {
        let held = self.ftl.held(object)?.map(&InRam::into_value);
        Ok((held, Proof::WriteSeq(self.write_seq(object))))
    }

    fn read_object(&mut self, object: ObjectId) -> Result<StoredUnit, LayerError> {
        let unit = self.ftl.read_version(object)?;
        if unit.record.kind == UnitKind::Lost {
            let unit = self.unit_of_owner(object);
            return Err(FtlError::Device(NandError::Rot {
                ppn: unit.unwrap_or(Ppn::NONE),
                why: LOST,
            }));
        }
        Ok(unit)
    }

    fn tidy(&mut self) {
        self.ftl.on_checkpoint();
    }

    fn note_stored(&mut self) {
        self.ftl.on_stored();
    }
}
