//! Looking for stored pages that cannot be read, and telling of those that were found.
//!
//! Invariants: a unit is told of once for as long as it lies where it does, with every address that needs it; a page of
//! the tables that cannot be read is nobody's failure here but that of the addresses of which it does not tell.

use std::ops::Range;

use flashlore_flash::{Flash, Lpn, ObjectId, Ppn};
use rustc_hash::FxHashSet;

use crate::error::NandError;
use crate::findings::{Finding, ScrubProgress};
use crate::format::{UnitKind, packed};
use crate::unit::{ELSEWHERE, LOST, StoredUnit};
use crate::volume::Volume;

/// Objects that could not be looked up: the first, the one behind the last, and why.
#[derive(Debug)]
pub(crate) struct Hidden {
    objects: Range<ObjectId>,
    why: String,
}

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
            if let (Err(error), None) = self.forgiving(|volume| volume.read_unit_of(unit)) {
                self.note_finding(unit, &error);
            }
        }
        let lost = std::mem::take(&mut self.layer.core_mut().flash_mut().lost);
        for owner in lost {
            let (unit, _) = self.forgiving(|volume| volume.layer.unit_of_owner(owner));
            if let Some(unit) = unit {
                let (ppn, why) = (unit, LOST);
                self.note_finding(unit, &NandError::Rot { ppn, why });
            }
        }
        std::mem::take(&mut self.findings)
    }

    /// A finding as it is now: nothing if nobody needs the unit any more or it can be read again, else with those of
    /// its addresses that still need it. A unit that can be read again and then not is a new finding. Where a page of the
    /// tables does not let anybody know, it stays.
    pub fn still_found(&mut self, finding: &Finding) -> Option<Finding> {
        if !finding.unit.is_some() {
            return self.still_hidden(finding);
        }
        match self.forgiving(|volume| volume.still_unreadable(finding)) {
            (now, None) => now,
            (_, Some(_)) => Some(finding.clone()),
        }
    }

    /// The addresses of a finding that cannot be looked up still.
    fn still_hidden(&mut self, finding: &Finding) -> Option<Finding> {
        let mut addresses = finding.addresses.clone();
        addresses.retain(|&lpn| {
            self.forgiving(|volume| volume.layer.places(lpn))
                .1
                .is_some()
        });
        (!addresses.is_empty()).then(|| Finding {
            addresses,
            ..finding.clone()
        })
    }

    fn still_unreadable(&mut self, finding: &Finding) -> Option<Finding> {
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

    /// The same of a unit that an owner needs.
    fn read_place(&self, owner: ObjectId, ppn: Ppn) -> Result<StoredUnit, NandError> {
        let unit = self.layer.core().flash().read_unit(ppn)?;
        match self.layer.proof_of_place(owner, ppn).holds(&unit.record) {
            true => Ok(unit),
            false => Err(NandError::Rot {
                ppn,
                why: ELSEWHERE,
            }),
        }
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
        if !self.reported.contains(&nand.place_of(unit)) {
            let finding = self.finding(unit, error);
            self.keep_finding(finding);
        }
    }

    /// Keeps a finding to be told, if its unit is not known yet.
    fn keep_finding(&mut self, finding: Finding) {
        let nand = self.layer.core_mut().flash_mut();
        nand.note_bad(finding.unit);
        if self.reported.insert(nand.place_of(finding.unit)) {
            self.findings.push(finding);
        }
    }

    fn finding(&mut self, unit: Ppn, error: &NandError) -> Finding {
        Finding {
            unit,
            why: match error {
                NandError::Rot { why, .. } => (*why).to_string(),
                other => other.to_string(),
            },
            addresses: self.forgiving(|volume| volume.addresses_of_unit(unit)).0,
        }
    }

    /// The addresses that need a unit.
    fn addresses_of_unit(&self, unit: Ppn) -> Vec<Lpn> {
        // A row that is forged may name a unit that there is not.
        if unit.0 >= self.layer.core().flash().geometry().units() {
            return Vec::new();
        }
        match self.identity().has_objects() {
            true => self.addresses_of(&self.layer.objects_on(unit)),
            false => {
                let page = self.layer.core().owner_of(unit).as_page();
                let needs = |lpn: &Lpn| self.layer.location(*lpn) == Some(unit);
                Some(page).filter(needs).into_iter().collect()
            }
        }
    }

    /// The addresses that refer to one of these objects: the map is read in order.
    fn addresses_of(&self, objects: &FxHashSet<ObjectId>) -> Vec<Lpn> {
        let refers = |lpn: &Lpn| {
            let held = self.layer.object_of(*lpn);
            held.is_some_and(|held| objects.contains(&held))
        };
        (0..self.exported()).map(Lpn).filter(refers).collect()
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
        Finding {
            unit,
            why: LOST.to_owned(),
            addresses: self.addresses_of(&self.layer.with_dependents(object)),
        }
    }

    /// Reads what is stored for the next `count` owners from `from` on, addresses or objects, those of old versions too,
    /// and compares it with its checksums; what fails is among the findings too, once. The owners begin at 0. Behind them
    /// come the addresses of a volume with objects: those of which a page of the tables does not tell where they lie.
    pub fn scrub(&mut self, from: ObjectId, count: u32) -> ScrubProgress {
        if from.0 == 0 {
            self.hidden.clear();
        }
        let owners = self.layer.owners();
        let addresses = match self.identity().has_objects() {
            true => self.exported(),
            false => 0,
        };
        let end = from.0.saturating_add(count).min(owners + addresses);
        let (mut read, mut unreadable) = (0, Vec::<Finding>::new());
        for owner in (from.0..end.min(owners)).map(ObjectId) {
            read += self.scrub_owner(owner, &mut unreadable);
        }
        for lpn in (from.0.max(owners)..end).map(|place| Lpn(place - owners)) {
            if let Some(why) = self.hides(lpn) {
                note_hidden(&mut unreadable, lpn, why);
            }
        }
        ScrubProgress {
            next: (end < owners + addresses).then_some(ObjectId(end)),
            read,
            unreadable,
        }
    }

    /// Reads what is stored for one owner. How many units that were.
    fn scrub_owner(&mut self, owner: ObjectId, unreadable: &mut Vec<Finding>) -> u32 {
        let (places, hidden) = self.forgiving(|volume| volume.layer.places_of_owner(owner));
        if let Some(why) = hidden {
            self.hide(owner, why.to_string(), unreadable);
            return 0;
        }
        let mut read = 0;
        for ppn in places.into_iter().flatten() {
            if self.layer.core().is_buffered(ppn) {
                continue;
            }
            read += 1;
            let (found, hidden) = self.forgiving(|volume| volume.scrub_place(owner, ppn));
            match (found, hidden) {
                (_, Some(why)) => self.hide(owner, why.to_string(), unreadable),
                (Ok(Some(lost)), None) if !unreadable.contains(&lost) => unreadable.push(lost),
                (Ok(_), None) => {}
                (Err(error), None) => {
                    let known = |known: &Finding| known.unit == ppn && known.why != LOST;
                    if !unreadable.iter().any(known) {
                        let finding = self.finding(ppn, &error);
                        self.keep_finding(finding.clone());
                        unreadable.push(finding);
                    }
                }
            }
        }
        read
    }

    /// Reads a unit that an owner needs. The value of that owner, if it was lost before it was copied there.
    fn scrub_place(&self, owner: ObjectId, ppn: Ppn) -> Result<Option<Finding>, NandError> {
        let unit = self.read_place(owner, ppn)?;
        let lost = self.lies_lost(owner, ppn, &unit);
        Ok(lost.then(|| self.lost_value(owner, ppn)))
    }

    /// An owner could not be looked up.
    fn hide(&mut self, owner: ObjectId, why: String, unreadable: &mut Vec<Finding>) {
        if !self.identity().has_objects() {
            note_hidden(unreadable, Lpn(owner.0), why);
            return;
        }
        let behind = ObjectId(owner.0 + 1);
        match self.hidden.last_mut() {
            Some(last) if last.objects.end == owner && last.why == why => last.objects.end = behind,
            Some(last) if last.objects.end == behind => {}
            _ => self.hidden.push(Hidden {
                objects: owner..behind,
                why,
            }),
        }
    }

    /// Why nobody knows where an address lies, if so.
    fn hides(&mut self, lpn: Lpn) -> Option<String> {
        let (object, hidden) = self.forgiving(|volume| volume.layer.object_of(lpn));
        if let Some(why) = hidden {
            return Some(why.to_string());
        }
        let object = object?;
        let hidden = self.hidden.iter();
        let mut hidden = hidden.filter(|hidden| hidden.objects.contains(&object));
        hidden.next().map(|hidden| hidden.why.clone())
    }
}

/// One more address of which nobody knows where it lies.
fn note_hidden(unreadable: &mut Vec<Finding>, lpn: Lpn, why: String) {
    match unreadable.last_mut() {
        Some(last) if !last.unit.is_some() && last.why == why => last.addresses.push(lpn),
        _ => unreadable.push(Finding {
            unit: Ppn::NONE,
            why,
            addresses: vec![lpn],
        }),
    }
}
