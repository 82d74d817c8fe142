//! The slots of a packed page: those that are in memory, or the directory in front of the page.
//!
//! A page that cannot be read has no directory, and one that an older program filled names no objects: then the objects tell
//! in which page they are.
//!
//! Invariant: the slots that are answered name the objects that are packed in the page, each in its own.

use flashlore_content::Encoder;
use flashlore_flash::{Flash, Lpn, Note, ObjectId, PackId, PackSlot};

use super::Store;
use crate::content::parts::{CoreOf, Failure, PackingOf, PageOf, Parts};
use crate::error::FtlError;
use crate::mapping::packs::{SLOT_BYTES, Slot};

/// Packed pages that are looked at at once to find one.
const LOOKS: u32 = 1 << 12;

impl<T: Parts> Store<T> {
    /// The slots of a packed page, to be given back ([`Store::give_back_slots`]). `read` is its page, if that was read, or that
    /// it cannot be.
    ///
    /// # Errors
    /// A failure of the device, but not that the page is lost.
    pub fn borrow_slots(
        &mut self,
        core: &mut CoreOf<T>,
        pack: PackId,
        read: Option<Option<&PageOf<T>>>,
    ) -> Result<Vec<Slot>, Failure<T>> {
        let Some(packing) = &mut self.packing else {
            return Ok(Vec::new());
        };
        let mut slots = std::mem::take(&mut packing.scratch);
        slots.clear();
        if let Some(kept) = packing.packs.slots(pack) {
            slots.extend_from_slice(kept);
            return Ok(slots);
        }
        let own;
        let page = match read {
            Some(page) => page,
            None => match core.content(packing.packs.at(pack)) {
                Err(FtlError::Device(error)) if T::Flash::is_loss(&error) => None,
                page => {
                    own = page?;
                    Some(&own)
                }
            },
        };
        if let Some(page) = page {
            let mut take = |object, lpn, length| {
                slots.push(Slot {
                    object,
                    lpn,
                    length,
                });
            };
            self.encoder.each_slot(page, &mut take);
        }
        let is_nameless = slots.iter().any(|slot| !slot.object.is_some());
        let mut named = 0;
        for (at, slot) in (0..).map(PackSlot).zip(&mut slots) {
            match self.noted_length(slot.object, pack, at) {
                Some(length) => named += u32::from(length) + SLOT_BYTES,
                None => slot.object = ObjectId::NONE,
            }
        }
        if self.named_bytes(pack) != named {
            let objects = match is_nameless {
                true => self.nameless_in(pack),
                false => self
                    .all_in(|at| at == pack)
                    .map(|(_, object)| object)
                    .collect(),
            };
            self.put_into(pack, objects, &mut slots);
        }
        Ok(slots)
    }

    /// Looks at so many more of the packed pages that a recovery brought back; whether there are more.
    pub fn look_at_packs(&mut self, core: &mut CoreOf<T>, most: u32) -> bool {
        let Some(packing) = &mut self.packing else {
            return false;
        };
        let dead = |ppn, dead| core.blocks.set_dead(ppn, 0, dead);
        packing.packs.look_at(most, dead)
    }

    /// The packed page on flash with live slots that was filled longest ago, if there is one.
    pub fn oldest_live_pack(&mut self, core: &mut CoreOf<T>) -> Option<PackId> {
        loop {
            let found = self.packing.as_mut()?.packs.oldest_live();
            if found.is_some() || !self.look_at_packs(core, LOOKS) {
                return found;
            }
        }
    }

    /// Slots that were borrowed are needed no more.
    pub fn give_back_slots(&mut self, slots: Vec<Slot>) {
        if let Some(packing) = &mut self.packing {
            packing.scratch = slots;
        }
    }

    fn named_bytes(&self, pack: PackId) -> u32 {
        let packing = self.packing.as_ref();
        packing.map_or(0, |packing| packing.packs.named_bytes(pack))
    }

    /// The bytes that the device noted of the slot of an object, if it lies in this one. Where an older program packed it, the
    /// directory may say more: what it takes if it is packed anew.
    fn noted_length(&self, object: ObjectId, pack: PackId, at: PackSlot) -> Option<u16> {
        let is_there = object.is_some() && object.0 < self.objects.handles();
        if !is_there || !self.is_here(pack, object) {
            return None;
        }
        let (slot, length) = self.objects.note(object).slot()?;
        (slot == at).then_some(length)
    }

    /// The packed objects in pages of which this holds: all objects are looked at.
    fn all_in(
        &self,
        is_wanted: impl Fn(PackId) -> bool,
    ) -> impl Iterator<Item = (PackId, ObjectId)> {
        let objects = (0..self.objects.handles()).map(ObjectId);
        objects.filter_map(move |object| {
            let (pack, _) = self.objects.packed(object)?;
            (is_wanted(pack) && self.objects.is_alive(object)).then_some((pack, object))
        })
    }

    /// The objects of a page that an older program filled, the directory of which names none. What is in such pages is looked
    /// for once: nothing comes into one.
    fn nameless_in(&mut self, pack: PackId) -> Vec<ObjectId> {
        let is_known = |packing: &PackingOf<T>| !packing.nameless.is_empty();
        if !self.packing.as_ref().is_some_and(is_known) {
            let mut all: Vec<_> = self.all_in(|_| true).collect();
            all.sort_unstable();
            if let Some(packing) = &mut self.packing {
                packing.nameless = all;
            }
        }
        let all = self
            .packing
            .as_ref()
            .map_or(&[][..], |packing| &packing.nameless);
        let first = all.partition_point(|&(at, _)| at < pack);
        let own = all[first..].iter().take_while(|&&(at, _)| at == pack);
        own.map(|&(_, object)| object).collect()
    }

    /// Puts objects into the slots that they are noted for, as far as they are still in that page.
    fn put_into(&self, pack: PackId, objects: Vec<ObjectId>, slots: &mut Vec<Slot>) {
        for object in objects {
            let noted = self.objects.note(object).slot();
            let Some((at, length)) = noted.filter(|_| self.is_here(pack, object)) else {
                continue;
            };
            let nobodys = Slot {
                object: ObjectId::NONE,
                lpn: Lpn(0),
                length: 0,
            };
            if slots.len() <= at.index() {
                slots.resize(at.index() + 1, nobodys);
            }
            let slot = &mut slots[at.index()];
            slot.object = object;
            slot.length = slot.length.max(length);
        }
    }
}
