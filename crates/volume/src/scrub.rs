//! Looking for stored pages that cannot be read, and telling of those that were found.
//!
//! Invariant: a unit is told of once for as long as it lies where it does, with every address that needs it.

use flashlore_flash::{Flash, Lpn, ObjectId, Ppn};

use crate::error::NandError;
use crate::findings::{Finding, ScrubProgress};
use crate::format::{UnitKind, packed};
use crate::unit::{LOST, StoredUnit};
use crate::volume::Volume;

impl Volume {
    /// Findings since the last call: pages that could not be read by the host, by collection or by a
    /// scrub. Each is reported once for as long as it lies where it does.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        let unreadable = std::mem::take(&mut self.layer.core_mut().flash_mut().unreadable);
        for unit in unreadable {
            let core = self.layer.core();
            if !core.blocks().is_valid(unit) || core.is_buffered(unit) {
                continue;
            }
            if let Err(error) = self.read_unit_of(unit) {
                self.note_finding(unit, &error);
            }
        }
        let lost = std::mem::take(&mut self.layer.core_mut().flash_mut().lost);
        for owner in lost {
            if let Some(unit) = self.layer.unit_of_owner(owner) {
                let (ppn, why) = (unit, LOST);
                self.note_finding(unit, &NandError::Rot { ppn, why });
            }
        }
        std::mem::take(&mut self.findings)
    }

    /// A finding as it is now: nothing if nobody needs the unit any more or it can be read again, else with those of
    /// its addresses that still need it. A unit that can be read again and then not is a new finding.
    pub fn still_found(&mut self, finding: &Finding) -> Option<Finding> {
        let unit = finding.unit;
        let core = self.layer.core();
        if !core.blocks().is_valid(unit) || core.is_buffered(unit) {
            return None;
        }
        let read = self.read_unit_of(unit);
        // A packed page can be read though a value in it was lost.
        let holds_lost = |read: &StoredUnit| {
            read.record.kind == UnitKind::Packed && !packed::lost_slots(&*read.bytes).is_empty()
        };
        if read.as_ref().is_ok_and(|read| !holds_lost(read)) {
            let place = self.layer.core().flash().place_of(unit);
            self.reported.remove(&place);
            return None;
        }
        let needs = |&lpn: &Lpn| {
            self.layer.places(lpn).contains(&Some(unit))
                && read
                    .as_ref()
                    .map_or(true, |read| self.needs_lost(lpn, unit, read))
        };
        Some(Finding {
            addresses: finding.addresses.iter().copied().filter(needs).collect(),
            ..finding.clone()
        })
    }

    /// Reads a unit that is needed, and proves that it is what the map means.
    fn read_unit_of(&self, ppn: Ppn) -> Result<StoredUnit, NandError> {
        let core = self.layer.core();
        let unit = core.flash().read_unit(ppn)?;
        core.flash().prove(ppn, core.owner_of(ppn), &unit)?;
        Ok(unit)
    }

    /// Whether an address holds a value that was lost, or one that differs from it.
    fn needs_lost(&self, lpn: Lpn, ppn: Ppn, unit: &StoredUnit) -> bool {
        let held = self.layer.object_of(lpn);
        let base = held.and_then(|held| self.layer.base_of(held));
        let mut objects = [held, base].into_iter().flatten();
        objects.any(|object| self.lies_lost(object, ppn, unit))
    }

    /// Notes the unit that an error names.
    pub(crate) fn note_unreadable(&mut self, error: &NandError) {
        if let NandError::Rot { ppn, .. } = error
            && ppn.is_some()
        {
            self.note_finding(*ppn, error);
        }
    }

    /// Notes an unreadable unit with all its addresses, if it is not known yet.
    pub(crate) fn note_finding(&mut self, unit: Ppn, error: &NandError) {
        let nand = self.layer.core_mut().flash_mut();
        nand.note_bad(unit);
        if self.reported.insert(nand.place_of(unit)) {
            let finding = self.finding(unit, error);
            self.findings.push(finding);
        }
    }

    fn finding(&self, unit: Ppn, error: &NandError) -> Finding {
        let needs = |lpn: &Lpn| self.layer.places(*lpn).contains(&Some(unit));
        Finding {
            unit,
            why: match error {
                NandError::Rot { why, .. } => (*why).to_string(),
                other => other.to_string(),
            },
            addresses: (0..self.exported()).map(Lpn).filter(needs).collect(),
        }
    }

    /// Whether an object lies packed on a unit, and what lies there says that it was lost before.
    fn lies_lost(&self, owner: ObjectId, ppn: Ppn, unit: &StoredUnit) -> bool {
        if unit.record.kind != UnitKind::Packed {
            return false;
        }
        self.layer.slot_of(owner).is_some_and(|(at, slot)| {
            at == ppn && packed::value(&*unit.bytes, slot).is_some_and(|(head, _)| head.lost)
        })
    }

    /// A lost value, with the addresses that hold it or differ from it.
    fn lost_value(&self, object: ObjectId, unit: Ppn) -> Finding {
        let needs = |&lpn: &Lpn| {
            let held = self.layer.object_of(lpn);
            let differs = || held.and_then(|held| self.layer.base_of(held));
            held == Some(object) || differs() == Some(object)
        };
        Finding {
            unit,
            why: LOST.to_owned(),
            addresses: (0..self.exported()).map(Lpn).filter(needs).collect(),
        }
    }

    /// Reads what is stored for the next `count` owners from `from` on, addresses or objects, those of old versions too,
    /// and compares it with its checksums; what fails is among the findings too, once. The owners begin at 0.
    pub fn scrub(&mut self, from: ObjectId, count: u32) -> ScrubProgress {
        let owners = self.layer.owners();
        let end = from.0.saturating_add(count).min(owners);
        let (mut read, mut unreadable) = (0, Vec::<Finding>::new());
        for owner in (from.0..end).map(ObjectId) {
            for ppn in self.layer.places_of_owner(owner).into_iter().flatten() {
                if self.layer.core().is_buffered(ppn) {
                    continue;
                }
                read += 1;
                match self.read_unit_of(ppn) {
                    Ok(unit) if self.lies_lost(owner, ppn, &unit) => {
                        let finding = self.lost_value(owner, ppn);
                        if !unreadable.contains(&finding) {
                            unreadable.push(finding);
                        }
                    }
                    Ok(_) => {}
                    Err(error) => {
                        self.note_finding(ppn, &error);
                        let known = |known: &Finding| known.unit == ppn && known.why != LOST;
                        if !unreadable.iter().any(known) {
                            unreadable.push(self.finding(ppn, &error));
                        }
                    }
                }
            }
        }
        ScrubProgress {
            next: (end < owners).then_some(ObjectId(end)),
            read,
            unreadable,
        }
    }
}
