//! Values that are held in fewer bytes than a page: their packed pages, and how many there are and may be.
//!
//! Invariants: `packed` objects have a slot; `pinned` are the bases that packed objects alone keep alive; every slot
//! that names an object is that object's.

use flashlore_content::Content;
use flashlore_flash::{ObjectId, Owner, PackId, Tables};

use super::objects::Objects;
use super::packs::{Packs, Slot};

/// What the layer keeps of encoded values. `V` is one in RAM.
#[derive(Debug, Clone)]
pub struct Packing<V> {
    /// Packed pages.
    pub packs: Packs<V>,
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
    /// Room for a copy of slots.
    pub(crate) scratch: Vec<Slot>,
}

impl<V: Clone> Packing<V> {
    /// Nothing is packed.
    pub fn new(most_packs: u32) -> Self {
        Packing {
            packs: Packs::default(),
            packed: 0,
            pinned: 0,
            most_packs,
            found_beyond: (0, 0),
            busy: ObjectId::NONE,
            evicting: false,
            scratch: Vec::new(),
        }
    }

    /// A copy of the slots of a packed page, to be given back.
    pub(crate) fn borrow_slots(&mut self, pack: PackId) -> Vec<Slot> {
        let mut slots = std::mem::take(&mut self.scratch);
        slots.clear();
        slots.extend_from_slice(self.packs.slots(pack));
        slots
    }

    /// The owners of the packed pages on flash.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> + '_ {
        let packs = self.packs.used().filter(|&(_, on_flash)| on_flash);
        packs.map(|(pack, _)| Owner::pack(pack))
    }

    /// Recounts what is packed; `alive` are all objects.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check<C: Content, S: Tables>(
        &self,
        objects: &Objects<C, S>,
        alive: &[ObjectId],
    ) -> Result<(), String> {
        let is_live = |o: ObjectId| objects.references(o) > 0 && objects.is_delta(o);
        self.packs
            .check(|object| object.is_some() && is_live(object))?;
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
}
