//! From a logical page to its location: directly, or through objects.
//!
//! * [`direct`] — no policy is on: the object *is* the logical page
//! * [`objects`] — an object is one stored value; what keeps it alive is a reference to it

pub mod direct;
pub mod objects;

use flashlore_flash::Ppn;

/// What the core needs of a mapping when it reads a logical page or moves a unit.
pub trait Mapping {
    /// Where the content of a logical page lies, [`Ppn::NONE`] if nowhere. The page must exist.
    fn unit_of(&self, lpn: u32) -> Ppn;
    /// The unit of this owner lies at `to` from now on.
    fn relocate(&mut self, owner: u32, to: Ppn);
    /// Asks for what a relocation will touch.
    fn prefetch(&self, owner: u32);
    /// Where the unit of an owner lies, for the check; `None` if it owns nothing.
    fn location(&self, owner: u32) -> Option<Ppn>;
}
