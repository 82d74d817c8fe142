//! The layer without a content policy: every address has a unit of its own, and owners are addresses.

use flashlore_flash::{Cause, Lpn, ObjectId, Ppn, Tag, When};
use flashlore_ftl::PlainFtl;
use flashlore_ftl::content::bytes::HeldValue;
use flashlore_ftl::core::Core;
use flashlore_ftl::mapping::tallies::Tallies;

use super::{Layer, LayerError, Written, no_room};
use crate::fetch::HeldPage;
use crate::nand::Nand;
use crate::survey::{StoredAs, Survey};
use crate::unit::{Proof, StoredUnit};

/// Without a content policy.
pub(crate) struct Plain {
    pub ftl: PlainFtl<Nand>,
    pub stored: u64,
}

impl Layer for Plain {
    fn core(&self) -> &Core<Nand> {
        self.ftl.core()
    }

    fn core_mut(&mut self) -> &mut Core<Nand> {
        self.ftl.core_mut()
    }

    fn write(&mut self, lpn: Lpn, unit: StoredUnit, room: bool) -> Result<Written, LayerError> {
        let new = self.location(lpn).is_none();
        if new && !room {
            return Err(no_room());
        }
        self.ftl.write(When::now(0), lpn, unit, Tag::NONE)?;
        self.stored += u64::from(new);
        Ok(Written::Stored)
    }

    fn read(&mut self, lpn: Lpn) -> Result<Option<StoredUnit>, LayerError> {
        Ok(self.ftl.read(0, lpn, Cause::Host, Tag::NONE)?.0)
    }

    fn plan(&mut self, lpn: Lpn) -> Result<Option<(HeldPage, Proof)>, LayerError> {
        let held = match self.location(lpn) {
            Some(ppn) if !self.ftl.core().is_buffered(ppn) => {
                self.ftl.note_read();
                Some(HeldValue::Unit(ppn))
            }
            _ => self.read(lpn)?.map(HeldValue::Here),
        };
        Ok(held.map(|held| (held, Proof::Lpn(lpn))))
    }

    fn trim(&mut self, lpn: Lpn) -> Result<bool, LayerError> {
        let held = self.location(lpn).is_some();
        self.ftl.trim(lpn)?;
        self.stored = self.stored.saturating_sub(held.into());
        Ok(held)
    }

    fn reclaim_empty(&mut self) -> Result<(), LayerError> {
        self.ftl.reclaim_empty(0)
    }

    fn keep_pace(&mut self) -> Result<(), LayerError> {
        self.ftl.keep_pace()
    }

    fn collect_step(&mut self) -> Result<bool, LayerError> {
        self.ftl.collect_step()
    }

    fn stored(&self) -> u64 {
        self.stored
    }

    fn tallies(&self) -> Tallies {
        Tallies {
            stored: self.stored as u32,
            ..Tallies::default()
        }
    }

    fn survey_step(&self, _from: ObjectId, _most: u32, survey: &mut Survey) -> Option<ObjectId> {
        // All of it is known.
        survey.pages = self.stored;
        survey.values = self.stored;
        None
    }

    fn stored_as(&self, lpn: Lpn) -> Option<StoredAs> {
        self.location(lpn).map(|_| StoredAs::default())
    }

    fn location(&self, lpn: Lpn) -> Option<Ppn> {
        let map = self.ftl.map();
        (lpn < Lpn(map.len()))
            .then(|| map.get(lpn))
            .filter(|ppn| ppn.is_some())
    }

    fn unit_of_owner(&self, owner: ObjectId) -> Option<Ppn> {
        self.location(owner.as_page())
    }

    fn owners(&self) -> u32 {
        self.ftl.map().len()
    }

    fn proof_of_place(&self, owner: ObjectId, _unit: Ppn) -> Proof {
        Proof::Lpn(owner.as_page())
    }

    fn places_of_owner(&self, owner: ObjectId) -> [Option<Ppn>; 2] {
        self.places(owner.as_page())
    }

    fn places(&self, lpn: Lpn) -> [Option<Ppn>; 2] {
        [self.location(lpn), None]
    }

    fn check(&self) -> Result<(), String> {
        self.ftl.check()
    }
}
