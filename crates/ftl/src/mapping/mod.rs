//! From a logical page to its location: directly, or through objects.
//!
//! * [`direct`] — no policy is on: the object *is* the logical page
//! * [`objects`] — an object is one stored value; what keeps it alive is a reference to it
//! * `counts` — the references of an object in one word
//!
//! [`Mapping`] is what the core asks of either, [`Relocate`] what collection asks in addition.

mod counts;
pub mod direct;
pub mod objects;

use flashlore_flash::{BlockId, Flash, Owner, Ppn, Time};

use crate::core::Core;
use crate::error::FtlError;
use crate::gc::collect::Relocation;

/// What the core needs of a mapping when it reads a logical page or moves a unit.
pub trait Mapping {
    /// Where the content of a logical page lies, [`Ppn::NONE`] if nowhere. The page must exist.
    fn unit_of(&self, lpn: u32) -> Ppn;
    /// The unit of this owner lies at `to` from now on.
    fn relocate(&mut self, owner: Owner, to: Ppn);
    /// Asks for what a relocation will touch.
    fn prefetch(&self, owner: Owner);
    /// Where the unit of an owner lies, for the check; `None` if it owns nothing.
    fn location(&self, owner: Owner) -> Option<Ppn>;
    /// Bytes of a unit that nobody refers to any more, while others of it are referred to.
    fn dead_bytes(&self, _owner: Owner) -> u32 {
        0
    }
    /// Names the objects that are packed in the unit of an owner.
    fn each_value(&self, _owner: Owner, _name: &mut dyn FnMut(u32)) {}
    /// The map entry of a logical page is not in RAM any more.
    fn entry_dropped(&mut self, _lpn: u32) {}
}

/// Who may give a unit another form when its block is collected. Without a method of its own every unit
/// moves as it is.
pub trait Relocate<F: Flash, K>: Mapping {
    /// A unit of a victim has been read: writes what is needed of it anew, in whatever form, so that
    /// nothing lies in it any more. False, and nothing done, if it is to be moved as it is.
    ///
    /// # Errors
    /// What writing meets.
    #[inline(always)]
    fn rewrite(
        &mut self,
        _core: &mut Core<F, K>,
        _unit: Relocation,
    ) -> Result<bool, FtlError<F::Error>> {
        Ok(false)
    }

    /// A victim is empty and about to be erased: programs what left it in another form and waits in RAM. Otherwise a
    /// power loss, which takes the RAM away, would find it in the victim alone and bring that back.
    ///
    /// # Errors
    /// A failure of the device.
    #[inline(always)]
    fn settle_victim(
        &mut self,
        _core: &mut Core<F, K>,
        _at: Time,
        _victim: BlockId,
    ) -> Result<(), FtlError<F::Error>> {
        Ok(())
    }
}
