//! What stands above the core on a device that looks at content: map, objects, and the policies.
//!
//! It is the core's mapping, so collection asks it about every unit. Every change of a reference goes
//! through here: a logical page refers to another object, an object dies.
//!
//! Invariants: an object that nothing refers to does not exist; a packed object's base does; a packed
//! page has a live slot for each packed object in it to which a logical page refers.

mod directory;
mod encode;
mod history;
mod merge;
mod relocate;
mod room;
mod tables;

use flashlore_content::dedup::FingerprintIndex;
use flashlore_content::{Encoder, Ledger};
use flashlore_flash::{BlockId, Lpn, Note, ObjectId, Owned, Owner, Ppn, Time};

use super::encoding::{Encoded, EncodingCounters};
use super::parts::{
    CoreOf, EncodedOf, Failure, NoteOf, ObjectsOf, PackingOf, Parts, PoliciesOf, ViewOf,
};
use crate::core::relocate::{Relocate, Relocation};
use crate::map_cache::{MapCache, MapEntry};
use crate::mapping::Mapping;
use crate::mapping::packs::Removed;
use crate::policies::history::Versions;
use crate::policies::{Policy, View, dedup};

/// Map, objects and policies.
pub(crate) struct Store<T: Parts> {
    pub objects: ObjectsOf<T>,
    /// What is packed, where values may be encoded.
    pub packing: Option<PackingOf<T>>,
    /// What all that encode share; where values may be encoded.
    pub encoded: Option<Encoded>,
    pub policies: PoliciesOf<T>,
    pub ledger: T::Ledger,
    pub encoder: T::Encoder,
    /// Objects that logical pages refer to; counted where values may be stored to which none does.
    pub referenced: u32,
    /// Pages being written whose map entry was used to find a base.
    pub located: Vec<Lpn>,
}

impl<T: Parts> Store<T> {
    /// What policies look at to answer, where values may be encoded.
    pub fn view(&self) -> Option<ViewOf<'_, T>> {
        let packing = self.packing.as_ref()?;
        Some(View {
            objects: &self.objects,
            packing,
            records: self.records(),
        })
    }

    /// The same, and the policies to be asked.
    pub fn asked(&mut self) -> Option<(ViewOf<'_, T>, &mut PoliciesOf<T>)> {
        let records = self.records();
        let packing = self.packing.as_ref()?;
        let view = View {
            objects: &self.objects,
            packing,
            records,
        };
        Some((view, &mut self.policies))
    }

    /// Counts what is done with encoded values.
    pub fn count(&mut self, count: impl FnOnce(&mut EncodingCounters)) {
        if let Some(encoded) = &mut self.encoded {
            count(&mut encoded.counters);
        }
    }

    /// The object that may hold this content.
    #[inline(always)]
    pub fn candidate(&self, content: T::Content) -> Option<ObjectId> {
        dedup::candidate(&self.policies.dedup, &self.objects, content)
    }

    /// Enters an object into the fingerprint index.
    #[inline(always)]
    pub fn index(&mut self, object: ObjectId) {
        dedup::enter(&mut self.policies.dedup, &mut self.objects, object);
    }

    /// The new reference is added before the old one is removed, so that an object cannot die between.
    #[inline(always)]
    pub fn refer(&mut self, core: &mut CoreOf<T>, lpn: Lpn, object: ObjectId) {
        let old = if T::ENCODES {
            self.watching_pins(object, |objects| objects.replace(lpn, object))
        } else {
            self.objects.replace(lpn, object)
        };
        self.tell_map_cache(core, lpn, object);
        if T::HOLDS_MORE {
            self.live_gained(object);
        }
        if T::REMEMBERS && self.records() {
            self.keep(core, lpn, old);
        } else if old.is_some() {
            self.release(core, old);
        }
    }

    /// A page whose map entry may have been used to find a base is written; whether it was.
    pub fn take_located(&mut self, lpn: Lpn) -> bool {
        let place = self.located.iter().position(|&l| l == lpn);
        place.map(|place| self.located.swap_remove(place)).is_some()
    }

    /// Tells the map cache what a logical page refers to.
    #[inline(always)]
    fn tell_map_cache(&self, core: &mut CoreOf<T>, lpn: Lpn, object: ObjectId) {
        if T::CACHED {
            core.map_cache.refers(lpn, self.entry_of(Some(object)));
        }
    }

    /// What a map entry says of an object.
    pub fn entry_of(&self, object: Option<ObjectId>) -> MapEntry {
        let packed = object.and_then(|object| self.objects.packed(object));
        let (Some((pack, base)), Some(packing)) = (packed, &self.packing) else {
            return MapEntry {
                object,
                ..MapEntry::default()
            };
        };
        MapEntry {
            object,
            base: (base.is_some()).then_some(base),
            waits: !packing.packs.at(pack).is_some(),
        }
    }

    /// A logical page refers to another object with the same content: no version ends.
    pub fn redirect(&mut self, core: &mut CoreOf<T>, lpn: Lpn, object: ObjectId) {
        let old = self.watching_pins(object, |objects| objects.replace(lpn, object));
        self.tell_map_cache(core, lpn, object);
        self.live_gained(object);
        if old.is_some() {
            self.release(core, old);
        }
    }

    /// Whether old versions are recorded.
    #[inline(always)]
    pub fn records(&self) -> bool {
        self.policies
            .versions
            .as_ref()
            .is_some_and(Versions::is_recording)
    }

    /// What a logical page referred to becomes an old version.
    fn keep(&mut self, core: &mut CoreOf<T>, lpn: Lpn, old: ObjectId) {
        if let Some(versions) = &mut self.policies.versions {
            versions.record(lpn, old);
        }
        if old.is_some() {
            self.watching_pins(old, |objects| objects.keep_instead(old));
            self.live_lost(old);
        }
        self.limit_history(core);
    }

    /// A logical page refers to nothing any more; whether it did.
    pub fn forget(&mut self, core: &mut CoreOf<T>, lpn: Lpn) -> bool {
        let old = self.objects.replace(lpn, ObjectId::NONE);
        if !old.is_some() {
            return false;
        }
        core.map_cache.refers(lpn, MapEntry::default());
        if T::REMEMBERS && self.records() {
            self.keep(core, lpn, old);
        } else {
            self.release(core, old);
        }
        true
    }

    /// Takes a live reference away; with the last one of any kind the object dies.
    #[inline(always)]
    fn release(&mut self, core: &mut CoreOf<T>, object: ObjectId) {
        let dead = if T::ENCODES {
            self.watching_pins(object, |objects| objects.release(object))
        } else {
            self.objects.release(object)
        };
        if T::HOLDS_MORE {
            self.live_lost(object);
        }
        if dead {
            self.die(core, object);
        }
    }

    /// Nothing refers to an object any more.
    #[inline(always)]
    pub fn die(&mut self, core: &mut CoreOf<T>, object: ObjectId) {
        let content = self.objects.content(object);
        self.policies.on_death(&mut self.objects, object);
        if T::ENCODES && self.objects.is_packed(object) {
            self.unpack(core, object);
        } else {
            core.invalidate(self.objects.at(object));
        }
        self.ledger.died(content);
        self.objects.free(object);
    }

    /// A packed object leaves its page and its base; no logical page counts as referring to its slot.
    #[inline(never)]
    pub fn unpack(&mut self, core: &mut CoreOf<T>, object: ObjectId) {
        let (Some((pack, base)), Some(packing)) = (self.objects.packed(object), &mut self.packing)
        else {
            return;
        };
        packing.packed = packing.packed.saturating_sub(1);
        let note = self.objects.note(object);
        let removed = packing.packs.remove(pack, object, note);
        if let Removed::FromRam(value) = &removed {
            self.encoder.give_up(value);
        }
        note_removed::<T>(core, removed);
        if base.is_some() && self.watching_pins(base, |objects| objects.unpin(base, object)) {
            self.die(core, base);
        }
    }

    /// Changes the references of an object and counts whether packed objects alone keep it alive.
    #[inline(always)]
    pub fn watching_pins<R>(
        &mut self,
        object: ObjectId,
        change: impl FnOnce(&mut ObjectsOf<T>) -> R,
    ) -> R {
        let before = object.is_some() && self.objects.is_pinned_alone(object);
        let answer = change(&mut self.objects);
        let after = object.is_some() && self.objects.is_pinned_alone(object);
        if let Some(packing) = &mut self.packing {
            packing.pinned = (packing.pinned + u32::from(after)).saturating_sub(before.into());
        }
        answer
    }

    /// A logical page has come to refer to an object: if it is the first, its slot is live now.
    #[inline(always)]
    fn live_gained(&mut self, object: ObjectId) {
        if self.objects.references(object) != 1 {
            return;
        }
        self.referenced += 1;
        if let Some(pack) = self.objects.pack_of_delta(object)
            && let Some(packing) = &mut self.packing
        {
            packing.packs.gain_live(pack);
        }
    }

    /// A logical page has ceased to refer to an object: if it was the last, its slot is not live any more.
    #[inline(always)]
    fn live_lost(&mut self, object: ObjectId) {
        if self.objects.references(object) != 0 {
            return;
        }
        self.referenced = self.referenced.saturating_sub(1);
        if let Some(pack) = self.objects.pack_of_delta(object)
            && let Some(packing) = &mut self.packing
        {
            packing.packs.lose_live(pack);
        }
    }

    /// Asks for what the death of an object will touch, once that is near: its block or packed page, its base, and
    /// its slot in the index.
    #[inline(always)]
    pub fn prefetch_death(&self, core: &CoreOf<T>, object: ObjectId) {
        if T::ENCODES
            && let Some((pack, base)) = self.objects.packed(object)
        {
            if let Some(packing) = &self.packing {
                packing.packs.prefetch(pack);
            }
            if base.is_some() {
                self.objects.prefetch_object(base);
            }
        } else {
            core.prefetch(self.objects.at(object));
        }
        if self.objects.is_indexed(object) {
            let fingerprint = self.objects.fingerprint(self.objects.content(object));
            self.policies.dedup.index.prefetch_slot(fingerprint);
        }
    }

    /// Asks for what that leads to: the neighbours of its block in the bucket, or the slots of its packed page and
    /// the block of that.
    #[inline(always)]
    pub fn prefetch_neighbours(&self, core: &CoreOf<T>, object: ObjectId) {
        if T::ENCODES
            && let (Some((pack, _)), Some(packing)) = (self.objects.packed(object), &self.packing)
        {
            packing.packs.prefetch_slots(pack);
            core.prefetch(packing.packs.at(pack));
        } else {
            core.blocks().prefetch_neighbours(self.objects.at(object));
        }
    }

    /// Recounts references, what the policies keep and what lies on flash.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self, core: &CoreOf<T>) -> Result<(), String> {
        let objects = &self.objects;
        let versions = self.policies.versions.iter();
        let alive = objects.check(versions.flat_map(|v| v.history.objects()))?;
        let referenced = alive.iter().filter(|&&o| objects.references(o) > 0).count();
        if T::HOLDS_MORE && referenced != self.referenced as usize {
            return Err(format!(
                "logical pages refer to {referenced} objects, {} are counted",
                self.referenced
            ));
        }
        self.policies.check(objects, &alive)?;
        let unhashed = alive.iter().find(|&&o| objects.is_unhashed(o));
        if let (None, Some(object)) = (&self.policies.scan, unhashed) {
            return Err(format!(
                "object {object} is to be hashed, which nobody does"
            ));
        }
        let whole = alive.iter().filter(|&&o| !objects.is_packed(o));
        let whole = whole.map(|&object| Owner::object(object));
        let packs = self.packing.iter().flat_map(PackingOf::<T>::owners);
        core.check(self, whole.chain(packs).chain(self.policies.owners()))?;
        if let Some(packing) = &self.packing {
            packing.check(objects, &alive)?;
            core.check_slack(self)?;
            self.check_room(core, packing)?;
        }
        Ok(())
    }

    /// Whether a logical page refers to an object, and that is a delta.
    pub fn is_live_delta(&self, object: ObjectId) -> bool {
        self.objects.references(object) > 0 && self.objects.is_delta(object)
    }

    /// Units on flash that hold anything. Where a power loss must not lose what was flushed, a packed page that
    /// is being filled has its unit already.
    pub fn units(&self, core: &CoreOf<T>) -> u64 {
        let live = u64::from(self.objects.live() + self.tables());
        let Some(packing) = &self.packing else {
            return live;
        };
        let reserved = match core.options().barriers {
            true => packing.packs.in_ram_count(),
            false => 0,
        };
        live.saturating_sub(packing.packed.into())
            + u64::from(packing.packs.on_flash())
            + u64::from(reserved)
    }

    /// Bytes held by map, objects and policies.
    pub fn heap_bytes(&self) -> usize {
        let packs = self.packing.as_ref().map_or(0, |p| p.packs.heap_bytes());
        self.objects.heap_bytes() + packs + self.policies.heap_bytes()
    }
}

/// What an encoded value leaves behind on flash.
fn note_removed<T: Parts>(core: &mut CoreOf<T>, removed: Removed<EncodedOf<T>>) {
    match removed {
        Removed::Nothing | Removed::FromRam(_) => {}
        Removed::Slack { ppn, before, after } => core.blocks.set_dead(ppn, before, after),
        Removed::Page { ppn, before } => {
            core.blocks.set_dead(ppn, before, 0);
            core.invalidate(ppn);
        }
    }
}

impl<T: Parts> Mapping for Store<T> {
    #[inline(always)]
    fn unit_of(&self, lpn: Lpn) -> Ppn {
        match self.objects.get(lpn) {
            ObjectId::NONE => Ppn::NONE,
            object => self.objects.at(object),
        }
    }

    #[inline(always)]
    fn relocate(&mut self, owner: Owner, to: Ppn) {
        if !T::HOLDS_MORE {
            self.objects.place(owner.as_object(), to);
            return;
        }
        let owned = owner.owned();
        match (owned, &mut self.packing) {
            (Owned::Value(object), _) => self.objects.place(object, to),
            (Owned::Pack(pack), Some(packing)) => packing.packs.relocate(pack, to),
            _ => {}
        }
        self.policies.on_relocate(&self.objects, owned, to);
    }

    #[inline(always)]
    fn prefetch(&self, owner: Owner) {
        self.objects.prefetch_object(owner.as_object());
    }

    fn location(&self, owner: Owner) -> Option<Ppn> {
        if !T::HOLDS_MORE {
            return self.objects.location(owner.as_object());
        }
        match owner.owned() {
            Owned::Value(object) => self.objects.location(object),
            Owned::Pack(pack) => Some(self.packing.as_ref()?.packs.at(pack)),
            owned => self.policies.location(owned),
        }
    }

    fn each_value(&self, owner: Owner, name: &mut dyn FnMut(ObjectId)) {
        if let (Some(packing), Owned::Pack(pack)) = (&self.packing, owner.owned()) {
            let slots = packing.packs.slots(pack).unwrap_or_default().iter();
            let named = slots.map(|slot| slot.object).filter(|o| o.is_some());
            named.for_each(name);
        }
    }

    fn entry_dropped(&mut self, lpn: Lpn) {
        self.policies.on_entry_dropped(lpn);
    }

    fn dead_bytes(&self, owner: Owner) -> u32 {
        match (&self.packing, owner.owned()) {
            (Some(packing), Owned::Pack(pack)) if T::ENCODES => packing.packs.dead_bytes(pack),
            _ => 0,
        }
    }

    fn has_dead(&self, owner: Owner) -> bool {
        match (&self.packing, owner.owned()) {
            (Some(packing), Owned::Pack(pack)) => packing.packs.has_dead(pack),
            _ => false,
        }
    }
}

impl<T: Parts> Relocate<T::Flash, T::Cache> for Store<T> {
    #[inline(always)]
    fn rewrite(&mut self, core: &mut CoreOf<T>, unit: Relocation) -> Result<bool, Failure<T>> {
        if !T::ENCODES || self.packing.is_none() {
            return Ok(false);
        }
        self.give_other_form(core, unit)
    }

    #[inline(always)]
    fn settle_victim(
        &mut self,
        core: &mut CoreOf<T>,
        at: Time,
        victim: BlockId,
    ) -> Result<(), Failure<T>> {
        if !T::ENCODES || self.packing.is_none() || !core.options().barriers {
            return Ok(());
        }
        self.program_moved(core, at, victim)
    }
}

/// Where a packed object lies that has no slot in its page: a unit that there is not, and what lies there is lost. Tables that
/// outlive a run may say so, if a program was wrong that wrote them.
pub(super) fn nowhere<T: Parts>() -> Ppn {
    assert!(NoteOf::<T>::ON, "a packed object has a slot in its page");
    Ppn::NONE
}
