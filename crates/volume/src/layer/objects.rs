//! The layer of objects: addresses refer to objects, which deduplication shares, delta encoding packs, and history keeps
//! when no address refers to them any more. Owners are objects.
//!
//! A page is shared only if its bytes are the same, or if the policy trusts the whole digest and the stored copy is not
//! known to be unreadable. What a policy cannot answer (nothing is packed, nothing is kept) is answered as "none".

use std::sync::Arc;

use flashlore_content::dedup::{BoundedIndex, DedupCounters};
use flashlore_content::delta::Never;
use flashlore_content::{Content, Digest, DigestTag, Encoder, NoCensus};
use flashlore_flash::{Lpn, ObjectId, Owned, PackId, PackSlot, Ppn, Tag, When};
use flashlore_ftl::content::decision::{Committed, Write};
use flashlore_ftl::content::encoding::EncodingCounters;
use flashlore_ftl::content::parts::{Memory, Of, Parts};
use flashlore_ftl::core::Core;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::mapping::tallies::Tallies;
use flashlore_ftl::policies::options::SimilarOptions;
use flashlore_ftl::{ContentDevice, FtlError, Outcome};
use rustc_hash::FxHashSet;

use super::{Layer, LayerError, StoredHistory, Versioned, Written};
use crate::error::NandError;
use crate::fetch::{HeldPage, PlannedRead, PlannedWrite};
use crate::format::{ObjectName, Slot, UnitKind};
use crate::nand::Nand;
use crate::survey::{StoredAs, Survey};
use crate::unit::{LOST, Proof, StoredUnit};
use crate::values::{Ahead, Delta, Holding, PackedValue};

/// As much of a digest as a policy keeps of every object.
pub(crate) trait Kept: Content<Index = BoundedIndex> + Into<Digest> + Send {
    /// Whether bytes are compared before a page is shared.
    const VERIFY: bool;
    fn of(digest: Digest) -> Self;
}

impl Kept for DigestTag {
    const VERIFY: bool = true;
    fn of(digest: Digest) -> Self {
        digest.tag()
    }
}

impl Kept for Digest {
    const VERIFY: bool = false;
    fn of(digest: Digest) -> Self {
        digest
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
    pub(super) fn write_seq(&self, object: ObjectId) -> u64 {
        self.ftl.objects().note(object).write_seq
    }

    /// Notes the write sequence number of an object that a write has made.
    fn note_write_seq(&mut self, done: &Committed, write_seq: u64) {
        if matches!(done.outcome, Outcome::Silent | Outcome::Shared) {
            return;
        }
        self.ftl
            .change_note(done.object, |note| note.write_seq = write_seq);
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
            Ok(_) => self
                .ftl
                .change_note(object, |note| note.set_unreadable(false)),
            Err(FtlError::Full { .. }) => {}
            Err(other) => return Err(other),
        }
        Ok(())
    }

    /// What an object holds, and where; nothing if it holds nothing.
    fn holding(&self, object: ObjectId) -> Option<Holding> {
        let is_alive = self.ftl.objects().is_alive(object);
        is_alive.then(|| Holding {
            object,
            write_seq: self.write_seq(object),
            place: self
                .unit_of_owner(object)
                .map(|ppn| self.core().flash().place_of(ppn)),
        })
    }

    /// Whether what was found before the write began holds still: what an object was compared with is where it was, and a
    /// delta is one from what its base holds, wherever that is now.
    fn still_holds(&self, ahead: &Ahead) -> bool {
        let same = ahead.same.as_ref();
        let delta = ahead.delta.as_ref();
        same.is_none_or(|same| self.holding(same.object).as_ref() == Some(same))
            && delta.is_none_or(|Delta { base, .. }| {
                let now = self.holding(base.object);
                now.is_some_and(|now| now.write_seq == base.write_seq)
            })
    }

    /// Where to read what an object holds.
    fn plan_holding(
        &mut self,
        object: ObjectId,
    ) -> Result<Option<PlannedRead<HeldPage>>, LayerError> {
        let Some(of) = self.holding(object) else {
            return Ok(None);
        };
        let (source, proof) = self.plan_object(object)?;
        Ok(Some(PlannedRead { of, source, proof }))
    }

    /// Where an object lies, or its packed page does.
    fn own_place(&self, object: ObjectId) -> Ppn {
        let objects = self.ftl.objects();
        if !objects.is_alive(object) {
            return Ppn::NONE;
        }
        match (objects.packed(object), self.ftl.packing()) {
            (Some((pack, _)), Some(packing)) => packing.packs.at(pack),
            _ => objects.at(object),
        }
    }

    /// All objects of which something holds: their rows are read in order.
    fn objects_of(&self, is_wanted: impl Fn(ObjectId) -> bool) -> FxHashSet<ObjectId> {
        let objects = self.ftl.objects();
        let handles = (0..objects.handles()).map(ObjectId);
        handles
            .filter(|&object| objects.is_alive(object) && is_wanted(object))
            .collect()
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
    // Its digest is the one that was looked up, all of it.
    if !T::Content::VERIFY && !is_known_bad(ftl, object) {
        return Ok(true);
    }
    if unit
        .ahead
        .as_ref()
        .is_some_and(|ahead| ahead.is_same(object))
    {
        note_readable(ftl, object);
        return Ok(true);
    }
    match ftl.read_object(object) {
        Ok(stored) if stored.record.kind == UnitKind::Lost => Ok(false),
        Ok(stored) => {
            let same = stored.bytes == unit.bytes;
            if same {
                note_readable(ftl, object);
            }
            Ok(same)
        }
        // Which of the values of a packed page it was is not known.
        Err(_) if ftl.objects().is_packed(object) => Ok(false),
        Err(FtlError::Device(NandError::Rot { .. } | NandError::Medium(_))) => {
            *rotten = held_before(ftl, object, write).map(|unit| (object, unit));
            Ok(false)
        }
        Err(other) => Err(other),
    }
}

/// An object was read: the tables need not say any more that it cannot be.
fn note_readable<T: OnMedium>(ftl: &mut ContentDevice<T>, object: ObjectId) {
    if is_unreadable(ftl, object) {
        ftl.change_note(object, |note| note.set_unreadable(false));
    }
}

/// Whether it is known that an object, or its base, cannot be read: where it lies, in a page buffer or in the tables.
fn is_known_bad<T: OnMedium>(ftl: &ContentDevice<T>, object: ObjectId) -> bool {
    let is_lost = |page: &StoredUnit| page.record.kind == UnitKind::Lost;
    let is_bad = |ppn| ftl.core().flash().is_bad(ppn) || ftl.waiting(ppn).is_some_and(is_lost);
    let mut places = ftl.places(object).into_iter().flatten();
    places.any(is_bad) || is_unreadable(ftl, object)
}

/// Whether the tables say that an object, or its base, cannot be read.
fn is_unreadable<T: OnMedium>(ftl: &ContentDevice<T>, object: ObjectId) -> bool {
    let objects = ftl.objects();
    let base = objects.packed(object).map(|(_, base)| base);
    let base = base.filter(|base| base.is_some());
    let mut needed = [Some(object), base].into_iter().flatten();
    needed.any(|object| objects.note(object).is_unreadable())
}

/// What an object held that cannot be read any more, under its old write sequence number, if its record says that it is
/// what a write brings.
fn held_before<T: OnMedium>(
    ftl: &ContentDevice<T>,
    object: ObjectId,
    write: &Write<T::Content, StoredUnit>,
) -> Option<StoredUnit> {
    let nand = ftl.core().flash();
    let write_seq = ftl.objects().note(object).write_seq;
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
                object: ObjectName::of(
                    done.object,
                    self.write_seq(done.object),
                    self.core().flash().id.naming(),
                ),
            }),
            Outcome::Programmed | Outcome::Packed => Ok(Written::Stored),
        }
    }

    fn may_hold(&self, digest: Digest) -> bool {
        self.ftl.candidate(T::Content::of(digest)).is_some()
    }

    fn plan_write(
        &mut self,
        lpn: Lpn,
        digest: Digest,
    ) -> Result<PlannedWrite<HeldPage>, LayerError> {
        let mut planned = PlannedWrite::default();
        match self.ftl.candidate(T::Content::of(digest)) {
            // All of its unit must hold, its record too, as where the write reads it: else what has rotted would not become
            // whole by being written again.
            Some(object) if T::Content::VERIFY => {
                let same = self.plan_holding(object)?;
                planned.same = same.map(|same| PlannedRead {
                    proof: Proof::WriteSeq(same.of.write_seq),
                    ..same
                });
            }
            // A duplicate is not encoded.
            Some(_) => {}
            None => {
                let (base, alone) = self.ftl.encoding_of(lpn);
                planned.alone = alone;
                if let Some(base) = base {
                    planned.base = self.plan_holding(base)?;
                }
            }
        }
        Ok(planned)
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

    fn tallies(&self) -> Tallies {
        self.ftl.tallies()
    }

    fn fill_index(&mut self, from: ObjectId, most: u32) -> Option<ObjectId> {
        self.ftl.fill_index(from, most)
    }

    fn hints(&self, digest: Digest) -> Vec<ObjectId> {
        self.ftl.hints(T::Content::of(digest))
    }

    fn dedup_counters(&self) -> Option<DedupCounters> {
        Some(self.ftl.dedup_counters())
    }

    fn index(&self) -> Option<&BoundedIndex> {
        Some(&self.ftl.dedup().index).filter(|index| index.capacity() > 0)
    }

    fn index_mut(&mut self) -> Option<(&mut BoundedIndex, u32)> {
        Some(self.ftl.index_mut()).filter(|(index, _)| index.capacity() > 0)
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
            let note = objects.note(handle);
            let slot = packs.and_then(|packs| packs.slot_of(pack, handle, note));
            let bytes = slot.map_or(0, |(_, length)| u64::from(length));
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

    fn proof_of_place(&self, owner: ObjectId, unit: Ppn) -> Proof {
        let lies_there = |object: &ObjectId| self.own_place(*object) == unit;
        let mut needed = [Some(owner), self.base_of(owner)].into_iter().flatten();
        match needed.find(lies_there) {
            Some(object) if !self.ftl.objects().is_packed(object) => {
                Proof::WriteSeq(self.write_seq(object))
            }
            _ => Proof::Packed,
        }
    }

    fn objects_on(&self, unit: Ppn) -> FxHashSet<ObjectId> {
        let owner = self.core().owner_of(unit);
        let value = match self.core().flash().owned(owner) {
            Owned::Value(object) => Some(object),
            _ => None,
        };
        // Most are a value by themselves, as the owners say if they can be read.
        if let Some(value) = value.filter(|&value| self.own_place(value) == unit) {
            return self.with_dependents(value);
        }
        self.objects_of(|object| self.ftl.places(object).contains(&Some(unit)))
    }

    fn with_dependents(&self, object: ObjectId) -> FxHashSet<ObjectId> {
        let mut all = match self.ftl.objects().pins(object) {
            0 => FxHashSet::default(),
            _ => self.objects_of(|other| self.base_of(other) == Some(object)),
        };
        all.insert(object);
        all
    }

    fn object_of(&self, lpn: Lpn) -> Option<ObjectId> {
        self.ftl.objects().object_of(lpn)
    }

    fn base_of(&self, object: ObjectId) -> Option<ObjectId> {
        let (_, base) = self.ftl.objects().packed(object)?;
        base.is_some().then_some(base)
    }

    fn slot_of(&self, object: ObjectId) -> Option<(Ppn, PackSlot)> {
        let (pack, _) = self.ftl.objects().packed(object)?;
        let packs = &self.ftl.packing()?.packs;
        let note = self.ftl.objects().note(object);
        let (slot, _) = packs.slot_of(pack, object, note)?;
        Some((packs.at(pack), slot))
    }

    fn distrust(&mut self, unit: Ppn) {
        let core = self.ftl.core();
        if T::Content::VERIFY || !core.blocks().is_valid(unit) || !core.flash().is_bad(unit) {
            return;
        }
        // What fails now fails who reads it, too.
        let Ok(objects) = self.ftl.objects_in(unit) else {
            return;
        };
        let lies_there = |object: &ObjectId| self.ftl.places(*object).contains(&Some(unit));
        let objects = objects.into_iter();
        for object in objects.filter(lies_there).collect::<Vec<_>>() {
            self.ftl
                .change_note(object, |note| note.set_unreadable(true));
        }
    }

    fn look_at_packs(&mut self, most: u32) -> bool {
        self.ftl.look_at_packs(most)
    }

    fn next_pack_to_look_at(&self) -> Option<PackId> {
        self.ftl.next_pack_to_look_at()
    }

    fn flush_packs(&mut self) -> Result<(), LayerError> {
        self.ftl.program_packs()
    }

    fn places(&self, lpn: Lpn) -> [Option<Ppn>; 2] {
        let object = self.ftl.objects().object_of(lpn);
        object.map_or([None, None], |object| self.ftl.places(object))
    }

    fn history(&self) -> Option<&StoredHistory> {
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
