//! What a layer with a history does beyond [`Layer`](super::Layer): reads of earlier instants, rewinds, snapshots, purges.
//!
//! Only a layer of objects can: its old versions are objects to which no address refers.

use std::ops::Range;

use flashlore_content::history::{TooOld, Version};
use flashlore_flash::{Lpn, ObjectId, Ppn};
use flashlore_ftl::FtlError;
use flashlore_ftl::core::erase_stale::Erased;

use super::objects::{InRam, Kept, OnMedium, WithObjects};
use super::{Layer, LayerError};
use crate::error::NandError;
use crate::fetch::HeldPage;
use crate::format::UnitKind;
use crate::format::rows::known_half;
use crate::unit::{LOST, Proof, StoredUnit};

/// A translation layer that keeps old versions.
pub(crate) trait Versioned {
    /// What happens next happens at this instant.
    fn set_instant(&mut self, stamp: u64);
    /// Until it is called with `None`: no pressure takes away this instant of the window.
    fn guard_instant(&mut self, instant: Option<u64>);
    /// Gives up the oldest entries while there are as many as may be, as far as they may go.
    fn limit(&mut self);
    /// Every address holds again what it held at an instant; answers how many changed.
    fn rewind_to(&mut self, instant: u64) -> Result<u64, TooOld>;
    /// Keeps an instant.
    fn snapshot(&mut self, instant: u64) -> Result<(), TooOld>;
    /// Ends that; whether it was kept.
    fn delete_snapshot(&mut self, instant: u64) -> bool;
    /// Forgets old versions of addresses.
    fn purge(&mut self, pages: Range<Lpn>);
    /// Materializes what addresses hold, where it is a delta from something older.
    fn materialize_pages(&mut self, pages: Range<Lpn>) -> Result<(), LayerError>;
    /// Erases every block that holds something to which nobody refers.
    fn erase_stale(&mut self) -> Result<Erased, LayerError>;
    /// Moves the start of the window on.
    fn advance(&mut self, to: u64);
    /// Forgets every instant before this one; answers the snapshots that ended.
    fn forget_before(&mut self, to: u64) -> Vec<u64>;
    /// Times that do not count towards the least window: their last stamps, and how long they were.
    fn set_unproven(&mut self, unproven: Vec<(u64, u64)>);
    /// What an address held at an instant, with the present resolved.
    fn version_at(&self, lpn: Lpn, instant: u64) -> Result<Version, TooOld>;
    /// Reads what an object holds.
    fn read_object(&mut self, object: ObjectId) -> Result<StoredUnit, LayerError>;
    /// Where what an object holds is to be read, and what proves it.
    fn plan_object(&mut self, object: ObjectId) -> Result<(HeldPage, Proof), LayerError>;
}

impl<T: OnMedium> Versioned for WithObjects<T> {
    fn set_instant(&mut self, stamp: u64) {
        self.ftl.set_instant(stamp);
    }

    fn guard_instant(&mut self, instant: Option<u64>) {
        self.ftl.guard_instant(instant);
    }

    fn limit(&mut self) {
        self.ftl.limit_history();
    }

    fn rewind_to(&mut self, instant: u64) -> Result<u64, TooOld> {
        self.ftl.rewind_to(instant)
    }

    fn snapshot(&mut self, instant: u64) -> Result<(), TooOld> {
        self.ftl.snapshot(instant)
    }

    fn delete_snapshot(&mut self, instant: u64) -> bool {
        self.ftl.delete_snapshot(instant)
    }

    fn purge(&mut self, pages: Range<Lpn>) {
        self.ftl.purge(pages);
    }

    fn materialize_pages(&mut self, pages: Range<Lpn>) -> Result<(), LayerError> {
        self.ftl.materialize_pages(0, pages)
    }

    fn erase_stale(&mut self) -> Result<Erased, LayerError> {
        self.ftl.erase_stale(0)
    }

    fn advance(&mut self, to: u64) {
        self.ftl.advance_window(to);
    }

    fn forget_before(&mut self, to: u64) -> Vec<u64> {
        self.ftl.forget_before(to)
    }

    fn set_unproven(&mut self, unproven: Vec<(u64, u64)>) {
        self.ftl.set_unproven(unproven);
    }

    fn version_at(&self, lpn: Lpn, instant: u64) -> Result<Version, TooOld> {
        self.ftl.version_at(lpn, instant)
    }

    fn plan_object(&mut self, object: ObjectId) -> Result<(HeldPage, Proof), LayerError> {
        let held = self.ftl.held(object)?.map(&InRam::into_value);
        let digest = self.ftl.objects().content(object).into();
        let check = known_half(digest, !T::Content::VERIFY);
        let by_record = || Proof::WriteSeq(self.write_seq(object));
        Ok((held, check.map_or_else(by_record, Proof::Content)))
    }

    fn read_object(&mut self, object: ObjectId) -> Result<StoredUnit, LayerError> {
        let unit = self.ftl.read_version(object)?;
        if unit.record.kind == UnitKind::Lost {
            let unit = self.unit_of_owner(object);
            return Err(FtlError::Device(NandError::Rot {
                ppn: unit.unwrap_or(Ppn::NONE),
                why: LOST,
            }));
        }
        Ok(unit)
    }
}
