//! What collection asks of a mapping beyond where things lie: whether a unit is to take another form.

use flashlore_flash::{BlockId, Completion, Flash, Owner, Ppn, Time};

use crate::core::Core;
use crate::error::FtlError;
use crate::mapping::Mapping;

/// A unit that is to leave its block.
#[derive(Debug, Clone, Copy)]
pub struct Relocation {
    /// The present.
    pub at: Time,
    /// Where it is.
    pub from: Ppn,
    /// Whose it is.
    pub owner: Owner,
    /// When it has been read.
    pub read: Completion,
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
