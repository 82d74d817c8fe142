//! From a logical page to its location: directly, or through objects.
//!
//! * [`direct`] — no policy is on: the object *is* the logical page
//! * [`objects`] — an object is one stored value; what keeps it alive is a reference to it
//! * `counts` — the references of an object in one word
//! * [`packs`] — packed pages and their directories
//! * [`packing`] — what is packed in them, and how much may be
//! * [`tallies`] — what is counted of all of them
//!
//! [`Mapping`] is what the core asks of either.

mod counts;
pub mod direct;
pub mod objects;
pub mod packing;
pub mod packs;
pub mod tallies;

use flashlore_flash::{Lpn, ObjectId, Owner, Ppn};

/// What the core needs of a mapping when it reads a logical page or moves a unit.
pub trait Mapping {
    /// Where the content of a logical page lies, [`Ppn::NONE`] if nowhere. The page must exist.
    fn unit_of(&self, lpn: Lpn) -> Ppn;
    /// The unit of this owner lies at `to` from now on.
    fn relocate(&mut self, owner: Owner, to: Ppn);
    /// Asks for what a relocation will touch.
    fn prefetch(&self, owner: Owner);
    /// Where the unit of an owner lies, for the check; `None` if it owns nothing.
    fn location(&self, owner: Owner) -> Option<Ppn>;
    /// Bytes of a unit that nobody refers to any more, while others of it are referred to, as far as the blocks know of them.
    fn dead_bytes(&self, _owner: Owner) -> u32 {
        0
    }
    /// Whether there are any.
    fn has_dead(&self, owner: Owner) -> bool {
        self.dead_bytes(owner) > 0
    }
    /// Names the objects that are packed in the unit of an owner.
    fn each_value(&self, _owner: Owner, _name: &mut dyn FnMut(ObjectId)) {}
    /// The map entry of a logical page is not in RAM any more.
    fn entry_dropped(&mut self, _lpn: Lpn) {}
}
