//! Checking a volume that is not open: superblocks, roots, tables, journal, references, checksums.
//! Writes nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use flashlore_content::history::History;
use flashlore_flash::{Lpn, ObjectId, Ppn};
use flashlore_medium::{AlignedBuf, Medium};

use crate::error::{NandError, VolumeError};
use crate::findings::Finding;
use crate::format::rows::known_half;
use crate::format::superblock::SUPERBLOCK_BYTES;
use crate::format::{MapRow, ObjectPlace, PackSlot, Superblock, UnitKind, packed};
use crate::image::{Image, Recovery, read_image};
use crate::load;
use crate::replay::{Lost, NOWHERE};
use crate::unit::{ELSEWHERE, LOST, Proof, Units};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// What an opening would replay.
    pub recovery: Recovery,
    /// Addresses that hold something.
    pub mapped: u64,
    /// Values stored for them and for old versions.
    pub stored: u64,
    /// Copies of the superblock that hold, of two.
    pub superblocks: u32,
    /// Stored pages that cannot be read.
    pub findings: Vec<Finding>,
    /// Things that must not be, each a sentence.
    pub errors: Vec<String>,
}

impl CheckReport {
    /// Whether everything holds.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.errors.is_empty() && self.superblocks == 2
    }
}

/// Checks the volume on a medium; `data` also reads every stored page.
///
/// # Errors
/// There is no volume, or it could not be opened either.
pub fn check(medium: &dyn Medium, data: bool) -> Result<CheckReport, VolumeError> {
    let image = read_image(medium)?;
    let mut report = CheckReport {
        recovery: image.recovery,
        mapped: 0,
        stored: 0,
        superblocks: intact_superblocks(medium),
        findings: Vec::new(),
        errors: Vec::new(),
    };
    let superblock = &image.superblock;
    if let Err(error) = load::recount(medium, &superblock.identity, &image.areas) {
        report.errors.push(error.to_string());
    }
    let owners = recount(&image, &mut report);
    for &Lost { unit, .. } in &image.state.lost {
        let addresses = owners.get(&unit).map(|owned| owned.addresses.clone());
        report.findings.push(Finding {
            unit,
            why: NOWHERE.to_owned(),
            addresses: addresses.unwrap_or_default(),
        });
    }
    if data {
        let lost = read_all(medium, &image, &owners, &mut report);
        report.findings.extend(lost_values(&image, &lost));
    }
    Ok(report)
}

/// What needs a unit.
struct Owned {
    addresses: Vec<Lpn>,
    /// What its record must say.
    proof: Proof,
    /// Half of the digest that the object has, if it is known: reads go by that.
    check: Option<(ObjectId, u64)>,
}

impl Owned {
    fn new(proof: Proof) -> Self {
        Owned {
            addresses: Vec::new(),
            proof,
            check: None,
        }
    }
}

/// Packed units that can be read, with the slots whose values were lost before.
type LostSlots = BTreeMap<Ppn, Vec<PackSlot>>;

/// Copies of the superblock that hold and are of this volume.
fn intact_superblocks(medium: &dyn Medium) -> u32 {
    let own = load::superblock(medium).map(|own| own.identity.uuid);
    let intact = |copy: u64| {
        let mut bytes = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
        medium
            .read(copy * SUPERBLOCK_BYTES as u64, &mut bytes)
            .is_ok()
            && bytes
                .first_chunk()
                .and_then(|bytes| Superblock::decode(bytes).ok())
                .is_some_and(|copy| own.as_ref().is_ok_and(|own| *own == copy.identity.uuid))
    };
    (0..2).map(|copy| u32::from(intact(copy))).sum()
}

/// Counts addresses and units; a unit must belong to one object alone. Answers who needs each unit.
fn recount(image: &Image, report: &mut CheckReport) -> BTreeMap<Ppn, Owned> {
    let plain = !image.superblock.identity.has_objects();
    let mut owners: BTreeMap<Ppn, Owned> = BTreeMap::new();
    let mut object_at: HashMap<Ppn, ObjectId> = HashMap::new();
    let mut objects = HashSet::new();
    let mut add = |row: MapRow, lpn: Option<Lpn>| {
        if let Some(lpn) = lpn.filter(|_| plain) {
            let unit = row.as_unit();
            let all = owners.entry(unit);
            let all = all.or_insert_with(|| Owned::new(Proof::Lpn(lpn)));
            if let [first, ..] = all.addresses[..] {
                let what = format!("unit {unit} is owned by both {first} and {lpn}");
                report.errors.push(what);
            }
            all.addresses.push(lpn);
            return;
        }
        objects.insert(row);
        for (unit, owner) in units_of(image, row.as_object()) {
            let first = owner.map(|owner| *object_at.entry(unit).or_insert(owner));
            if first != owner {
                report.errors.push(format!(
                    "unit {unit} is owned by object {owner:?} and another, {first:?}"
                ));
            }
            let write_seq = |owner: ObjectId| image.state.placed.objects[owner.index()].write_seq;
            let proof = owner.map_or(Proof::Packed, |owner| Proof::WriteSeq(write_seq(owner)));
            let owned = owners.entry(unit).or_insert_with(|| Owned::new(proof));
            owned.addresses.extend(lpn);
            owned.check = owner.and_then(|owner| {
                let row = &image.state.placed.objects[owner.index()];
                let check = known_half(row.digest, image.superblock.identity.trusts_digests());
                Some((owner, check?))
            });
        }
    };
    for (lpn, &row) in (0..).map(Lpn).zip(&image.state.map) {
        if row.is_some() {
            report.mapped += 1;
            add(row, Some(lpn));
        }
    }
    for object in image.state.history.iter().flat_map(History::objects) {
        add(MapRow::of_object(object), None);
    }
    report.stored = if plain { owners.len() } else { objects.len() } as u64;
    owners
}

/// The units that an object needs, and the object itself for one it has alone.
fn units_of(image: &Image, object: ObjectId) -> Vec<(Ppn, Option<ObjectId>)> {
    let placed = &image.state.placed;
    let packed = match placed.objects[object.index()].place {
        ObjectPlace::Packed(packed) => packed,
        ObjectPlace::Unit(unit) => return vec![(unit, Some(object))],
    };
    let unit = placed.unit_of(packed.pack).map(|unit| (unit, None));
    let mut units: Vec<_> = unit.into_iter().collect();
    if packed.base.is_some() {
        units.extend(units_of(image, packed.base));
    }
    units
}

/// The packed values that an object needs: unit and slot of each.
fn slots_of(image: &Image, object: ObjectId) -> Vec<(Ppn, PackSlot)> {
    let placed = &image.state.placed;
    let Some(packed) = placed.objects[object.index()].packed() else {
        return Vec::new();
    };
    let own = placed.unit_of(packed.pack);
    let mut slots: Vec<_> = own.map(|unit| (unit, packed.slot)).into_iter().collect();
    if packed.base.is_some() {
        slots.extend(slots_of(image, packed.base));
    }
    slots
}

/// The values that were lost, with the addresses that need them.
fn lost_values(image: &Image, lost: &LostSlots) -> Vec<Finding> {
    if lost.is_empty() {
        return Vec::new();
    }
    let is_lost = |(unit, slot): &(Ppn, PackSlot)| lost.get(unit).is_some_and(|s| s.contains(slot));
    let mut found: BTreeMap<(Ppn, PackSlot), Vec<Lpn>> = BTreeMap::new();
    let mut add = |object: ObjectId, lpn: Option<Lpn>| {
        for slot in slots_of(image, object).into_iter().filter(is_lost) {
            found.entry(slot).or_default().extend(lpn);
        }
    };
    for (lpn, &row) in (0..).map(Lpn).zip(&image.state.map) {
        if row.is_some() {
            add(row.as_object(), Some(lpn));
        }
    }
    for object in image.state.history.iter().flat_map(History::objects) {
        add(object, None);
    }
    let finding = |((unit, _), addresses)| Finding {
        unit,
        why: LOST.to_owned(),
        addresses,
    };
    found.into_iter().map(finding).collect()
}

/// Reads every unit that is needed.
fn read_all(
    medium: &dyn Medium,
    image: &Image,
    owners: &BTreeMap<Ppn, Owned>,
    report: &mut CheckReport,
) -> LostSlots {
    let mut lost = LostSlots::new();
    let units = Units {
        medium,
        areas: &image.areas,
        id: &image.superblock.identity,
    };
    let known_lost = image.state.lost.iter().map(|lost| lost.unit);
    let known_lost: HashSet<Ppn> = known_lost.collect();
    for (&ppn, owned) in owners {
        let Owned {
            addresses,
            proof,
            check,
        } = owned;
        if known_lost.contains(&ppn) {
            continue;
        }
        let block = image.geometry.block_of(ppn);
        let generation = match image.active.get(&block) {
            Some(active) => active.generation,
            None => image.rows[block.index()].generation,
        };
        let why = match units.read(ppn, generation) {
            Ok(stored) if !proof.holds(&stored.record) => ELSEWHERE.to_owned(),
            Ok(stored) => {
                let digest = stored.record.digest.0 as u64;
                if let Some((object, check)) = check.filter(|&(_, check)| check != digest) {
                    report.errors.push(format!(
                        "object {object} has {check:016x} of a digest, what lies in unit {ppn} has {digest:016x}"
                    ));
                }
                if stored.record.kind == UnitKind::Packed {
                    let slots = packed::lost_slots(&*stored.bytes);
                    lost.extend((!slots.is_empty()).then_some((ppn, slots)));
                }
                continue;
            }
            Err(NandError::Rot { why, .. }) => why.to_string(),
            Err(error) => error.to_string(),
        };
        report.findings.push(Finding {
            unit: ppn,
            why,
            addresses: addresses.clone(),
        });
    }
    lost
}
