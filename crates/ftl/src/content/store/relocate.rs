//! Collection of packed pages, and of bases (DeltaFTL, EuroSys 2012, section 3.6).
//!
//! Of a packed page each value that is needed is merged, if its page is read often or not written often any
//! more, or else packed anew into a page that collection fills. A base that one delta alone needs is
//! merged with it on the same conditions; otherwise it moves like any page.
//!
//! A merge of a packed value costs a page and frees its base elsewhere, so collection merges only while its
//! pool has a block to spare.

use flashlore_content::Encoder;
use flashlore_flash::{
    BlockId, Cause, Completion, Flash, Lpn, ObjectId, Owned, Owner, PackId, PackSlot, PlaneId, Ppn,
    Ready, Route, Stream, Tag, Time, Unit, When,
};

use super::{Store, note_removed};
use crate::content::encoding::Why;
use crate::content::parts::{CoreOf, EncodedOf, Failure, PackingOf, Parts};
use crate::content::read::later;
use crate::core::relocate::Relocation;
use crate::error::FtlError;
use crate::map_cache::MapCache;
use crate::mapping::packs::{Filler, Packs, Slot};
use crate::policies::Policy;

impl<T: Parts> Store<T> {
    /// A unit of a victim: whether it was written anew in another form.
    pub fn give_other_form(
        &mut self,
        core: &mut CoreOf<T>,
        unit: Relocation,
    ) -> Result<bool, Failure<T>> {
        let object = match unit.owner.owned() {
            Owned::Value(object) => object,
            Owned::Pack(pack) => {
                self.pack_anew(core, unit, pack)?;
                // What nobody could be found for moves as it is.
                return Ok(!core.blocks.is_valid(unit.from));
            }
            Owned::Table(_) | Owned::MapPage(_) => return Ok(false),
        };
        let Some(dependent) = self.objects.sole_dependent(object) else {
            return Ok(false);
        };
        let Some((pack, _)) = self.objects.packed(dependent) else {
            return Ok(false);
        };
        if !self.may_merge(core, unit, dependent) {
            return Ok(false);
        }
        let slots = self.borrow_slots(core, pack, None)?;
        let slot = slots.iter().find(|slot| slot.object == dependent).copied();
        self.give_back_slots(slots);
        let Some(Slot { lpn, .. }) = slot.filter(|slot| self.is_to_merge(slot)) else {
            return Ok(false);
        };
        // The base dies with the merge, and nothing is left here, unless an old version needs the value.
        let merged = self.merge_in_collection(core, unit, dependent, lpn)?;
        Ok(merged && !core.blocks.is_valid(unit.from))
    }

    /// Writes every needed value of a packed page elsewhere.
    fn pack_anew(
        &mut self,
        core: &mut CoreOf<T>,
        unit: Relocation,
        pack: PackId,
    ) -> Result<(), Failure<T>> {
        let page = match core.content(unit.from) {
            Err(FtlError::Device(error)) if T::Flash::is_loss(&error) => {
                Err(FtlError::Device(error))
            }
            content => Ok(content?),
        };
        let slots = self.borrow_slots(core, pack, Some(page.as_ref().ok()))?;
        for (i, &slot) in (0..).map(PackSlot).zip(&slots) {
            if !slot.object.is_some() || !self.is_here(pack, slot.object) {
                continue;
            }
            let merges = self.is_to_merge(&slot);
            let merged = merges
                && page.is_ok()
                && self.objects.is_delta(slot.object)
                && self.merge_in_collection(core, unit, slot.object, slot.lpn)?;
            if merged && !self.is_here(pack, slot.object) {
                continue;
            }
            let value = match &page {
                Ok(page) => self.encoder.unpack(page, i),
                Err(_) => match self.encoder.lost(slot.object, slot.lpn, slot.length) {
                    Some(value) => value,
                    None => return page.map(drop),
                },
            };
            self.move_value(core, unit, pack, slot, value)?;
        }
        self.give_back_slots(slots);
        Ok(())
    }

    /// Where bases are chosen by similarity most values are deltas, and there are as many packed pages as there
    /// may be while many of them are nearly empty: packs the values of such pages anew, rather than that those
    /// filled longest ago are materialized. Where packed pages have their units reserved, nothing is done.
    pub fn pack_densely(&mut self, core: &mut CoreOf<T>, at: Time) -> Result<(), Failure<T>> {
        // One page is programmed before the values of the next have left it, and one is the host's. What is programmed
        // may hold live deltas that came into RAM long ago, and what is emptied none: it needs room of its own.
        let has_room = |store: &Self, core: &CoreOf<T>, pack: PackId| {
            let fits = |p: &PackingOf<T>| {
                p.packs.fits_into(Filler::Gc, pack) || p.packs.live() < store.most_packs(core, p)
            };
            store.packing.as_ref().is_some_and(fits)
        };
        let near = |store: &Self, core: &CoreOf<T>| {
            let at_most = |p: &PackingOf<T>| p.packs.live() + 2 >= store.most_packs(core, p);
            let packing = store.packing.as_ref();
            let packing = packing.filter(|_| store.policies.packs_densely());
            packing.is_some_and(at_most) && !core.options().barriers
        };
        while near(self, core) {
            let Some(packing) = &mut self.packing else {
                return Ok(());
            };
            let Some(pack) = packing.packs.emptiest().filter(|_| !packing.evicting) else {
                return Ok(());
            };
            if !has_room(self, core, pack) {
                return Ok(());
            }
            let Some(packing) = &mut self.packing else {
                return Ok(());
            };
            packing.evicting = true;
            let packed = self.empty_pack(core, at, pack);
            if let Some(packing) = &mut self.packing {
                packing.evicting = false;
            }
            packed?;
        }
        Ok(())
    }

    /// Moves the values of a packed page into the page that collection fills.
    fn empty_pack(
        &mut self,
        core: &mut CoreOf<T>,
        at: Time,
        pack: PackId,
    ) -> Result<(), Failure<T>> {
        let Some(packing) = &self.packing else {
            return Ok(());
        };
        let from = packing.packs.at(pack);
        core.read(Ready::At(at), from, Cause::Merge, Tag::NONE)?;
        let page = core.content(from)?;
        let slots = self.borrow_slots(core, pack, Some(Some(&page)))?;
        for (i, &slot) in (0..).map(PackSlot).zip(&slots) {
            let fits = |p: &PackingOf<T>| p.packs.fits(Filler::Gc, slot.length, None);
            if self.packing.as_ref().is_some_and(|packing| !fits(packing)) {
                self.program_pack(core, Filler::Gc, When::now(at), slot.lpn, |_| Tag::NONE)?;
            }
            // Programming may have collected, and taken values out of the page.
            let stays = self
                .packing
                .as_ref()
                .is_some_and(|p| p.packs.at(pack) == from);
            if stays && slot.object.is_some() && self.is_here(pack, slot.object) {
                let value = self.encoder.unpack(&page, i);
                self.move_packed(core, pack, slot, value);
            }
        }
        self.give_back_slots(slots);
        Ok(())
    }

    /// Whether a packed value is to be materialized rather than packed anew.
    fn is_to_merge(&self, slot: &Slot) -> bool {
        self.view()
            .is_some_and(|view| self.policies.is_to_merge(&view, slot))
    }

    /// Whether an object still lies in a packed page.
    pub(super) fn is_here(&self, pack: PackId, object: ObjectId) -> bool {
        let packed = self.objects.packed(object);
        self.objects.is_alive(object) && packed.is_some_and(|(at, _)| at == pack)
    }

    /// Moves one value into the page that collection fills.
    fn move_value(
        &mut self,
        core: &mut CoreOf<T>,
        unit: Relocation,
        from: PackId,
        slot: Slot,
        value: EncodedOf<T>,
    ) -> Result<(), Failure<T>> {
        let fits = |packs: &Packs<_, _>| packs.fits(Filler::Gc, slot.length, None);
        if self.packing.as_ref().is_some_and(|p| !fits(&p.packs)) {
            let own = core.geometry.plane_of_unit(unit.from);
            let when = When {
                ready: Ready::from(unit.read),
                at: unit.at,
            };
            self.program_repacked(core, own, when)?;
        }
        self.move_packed(core, from, slot, value);
        Ok(())
    }

    /// Moves one value into the page that collection fills, where it fits.
    fn move_packed(&mut self, core: &mut CoreOf<T>, from: PackId, slot: Slot, value: EncodedOf<T>) {
        let live = self.is_live_delta(slot.object);
        let Some(packing) = &mut self.packing else {
            return;
        };
        if live {
            packing.packs.lose_live(from);
        }
        let note = self.objects.note(slot.object);
        let removed = packing.packs.remove(from, slot.object, note);
        let base = self.objects.packed(slot.object).map(|(_, base)| base);
        self.encoder
            .hold(slot.object, base.unwrap_or(ObjectId::NONE), &value);
        let pack = packing.packs.push(Filler::Gc, slot, live, value);
        self.objects.repack(slot.object, pack);
        core.map_cache.waits(slot.object);
        note_removed::<T>(core, removed);
        self.count(|counters| counters.repacked += 1);
    }

    /// Programs the page that collection fills, if it holds anything: a victim is erased next. Without room it waits
    /// on: then a power loss may bring the victim back.
    pub fn program_moved(
        &mut self,
        core: &mut CoreOf<T>,
        at: Time,
        victim: BlockId,
    ) -> Result<(), Failure<T>> {
        let own = core.geometry.plane_of(victim);
        match self.program_repacked(core, own, When::now(at)) {
            Err(FtlError::Full { .. }) => Ok(()),
            programmed => programmed,
        }
    }

    /// Programs the page that collection fills, which holds something, in the pool of a plane.
    fn program_repacked(
        &mut self,
        core: &mut CoreOf<T>,
        own: PlaneId,
        when: When,
    ) -> Result<(), Failure<T>> {
        let Some(packing) = &mut self.packing else {
            return Ok(());
        };
        let Some((pack, values)) = packing.packs.full(Filler::Gc) else {
            return Ok(());
        };
        let owner = Owner::pack(pack);
        let page = self.encoder.pack(values);
        let unit = Unit::New { owner, page };
        let plane = core.destination(own, Stream::LogGc, when.at)?;
        let (ppn, _) = core.append(plane, Stream::LogGc, unit, when, Route::Channel, Tag::NONE)?;
        core.counters.programs_gc += 1;
        self.pack_placed(core, Filler::Gc, ppn);
        self.count(|counters| counters.repack_programs += 1);
        Ok(())
    }

    /// Whether collection may materialize a value that it met.
    fn may_merge(&self, core: &CoreOf<T>, unit: Relocation, object: ObjectId) -> bool {
        let own = core.geometry.plane_of_unit(unit.from);
        let target = core.target_stream(Stream::Gc);
        let busy = self.packing.as_ref().is_some_and(|p| p.busy == object);
        // An old version stays as it is: nobody reads or writes it.
        let live = self.objects.references(object) > 0;
        // A base that an old version keeps is not freed by the merge.
        let has_room = !self.records() || self.units(core) < core.most_live();
        !core.erasing_stale && !busy && live && has_room && core.has_block_to_spare(own, target)
    }

    /// Materializes a value that collection met, if there is room; whether it was done.
    fn merge_in_collection(
        &mut self,
        core: &mut CoreOf<T>,
        unit: Relocation,
        object: ObjectId,
        lpn: Lpn,
    ) -> Result<bool, Failure<T>> {
        if !self.may_merge(core, unit, object) {
            return Ok(false);
        }
        let own = core.geometry.plane_of_unit(unit.from);
        let target = core.target_stream(Stream::Gc);
        if self.share_instead(core, object, lpn, Why::Gc) {
            return Ok(true);
        }
        let read = self.read_other(core, unit, object)?;
        let page = match self.decode(core, object) {
            // It stays encoded: what cannot be read now may be readable later.
            Err(FtlError::Device(error)) if T::Flash::is_loss(&error) => return Ok(false),
            Ok(page) if self.encoder.is_lost(&page) => return Ok(false),
            decoded => decoded?,
        };
        let new = Unit::New {
            owner: Owner::object(object),
            page,
        };
        let plane = core.destination(own, target, unit.at)?;
        let when = When {
            ready: Ready::from(read),
            at: unit.at,
        };
        let (ppn, _) = core.append(plane, target, new, when, Route::Channel, Tag::NONE)?;
        self.merged(core, object, ppn, Why::Gc);
        Ok(true)
    }

    /// Reads the page that decodes a value together with the unit being collected; answers the end of both.
    fn read_other(
        &mut self,
        core: &mut CoreOf<T>,
        unit: Relocation,
        object: ObjectId,
    ) -> Result<Completion, Failure<T>> {
        let other = |ppn: &Ppn| *ppn != unit.from;
        let Some(ppn) = self.places(object).into_iter().flatten().find(other) else {
            return Ok(unit.read);
        };
        let ready = Ready::At(unit.at);
        let done = core.read(ready, ppn, Cause::Merge, Tag::NONE)?;
        Ok(later(unit.read, done))
    }
}
