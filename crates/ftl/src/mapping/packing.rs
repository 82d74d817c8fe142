//! Values that are held in fewer bytes than a page: their packed pages, and how many there are and may be.
//!
//! Invariants: `packed` objects have a slot; `pinned` are the bases that packed objects alone keep alive; every slot
//! that names an object is that object's.

use flashlore_content::Content;
use flashlore_flash::{ObjectId, Owner, PackId, Tables};

use super::objects::Objects;
use super::packs::{Packs, Slot};

/// What the layer keeps of encoded values. `V` is one in RAM.
#[derive(Debug)]
pub struct Packing<V, S: Tables> {
    /// Packed pages.
    pub packs: Packs<V, S>,
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
    /// Objects that were packed when a page was met first the directory of which names none, by page.
    pub(crate) nameless: Vec<(PackId, ObjectId)>,
    /// Room for a copy of slots.
    pub(crate) scratch: Vec<Slot>,
}

impl<V: Clone, S: Tables> Packing<V, S> {
    /// Nothing but what lies in these pages, of which so many may hold live values.
    pub fn new(packs: Packs<V, S>, most_packs: u32) -> Self {
        Packing {
            packs,
            packed: 0,
            pinned: 0,
            most_packs,
            found_beyond: (0, 0),
            busy: ObjectId::NONE,
            evicting: false,
            nameless: Vec::new(),
            scratch: Vec::new(),
        }
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
    pub fn check<C: Content>(
        &self,
        objects: &Objects<C, S>,
        alive: &[ObjectId],
    ) -> Result<(), String> {
        let is_live = |o: ObjectId| objects.references(o) > 0 && objects.is_delta(o);
        let packed = alive.iter().filter_map(|&object| {
            let (pack, _) = objects.packed(object)?;
            Some((pack, object, objects.note(object), is_live(object)))
        });
        self.packs.check(packed.clone())?;
        let pinned = alive.iter().filter(|&&o| objects.is_pinned_alone(o));
        let counted = (packed.count(), pinned.count());
        if counted != (self.packed as usize, self.pinned as usize) {
            return Err(format!(
                "packed objects and bases kept for them alone are {counted:?}, noted {} and {}",
                self.packed, self.pinned
            ));
        }
        Ok(())
    }
}
