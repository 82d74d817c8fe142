//! Reading what lies on the units of a range, in the order of the medium: whether it can be read, is what its record says, and
//! what the map means.

use std::collections::BTreeMap;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::{BlockId, Geometry, Owned, Owner, PackSlot, PageId, Ppn};
use flashlore_medium::AlignedBuf;
use rustc_hash::FxHashSet;

use super::subject::{Effort, Sentences};
use super::units::{Claims, UnitProof, called};
use crate::error::NandError;
use crate::format::{BlockRow, Record, UnitKind, packed};
use crate::scan::ActiveBlock;
use crate::unit::{ELSEWHERE, Proof, Units};

/// Units, and values of packed pages, that are remembered as unreadable: of more is said how many there were.
pub(super) const MOST_DAMAGED: usize = 1 << 16;

/// What cannot be read.
#[derive(Default)]
pub(super) struct Damage {
    /// Units in their order, whose they are and why.
    pub units: Vec<(Ppn, Owner, String)>,
    /// Values of packed pages that hold, which were lost before.
    pub values: Vec<(Ppn, Owner, PackSlot)>,
    /// How many more there were.
    pub more: u64,
}

impl Damage {
    fn has_room(&mut self) -> bool {
        let has_room = self.units.len() + self.values.len() < MOST_DAMAGED;
        self.more += u64::from(!has_room);
        has_room
    }
}

/// Where units lie, and in which generation of their blocks.
pub(super) struct UnitReader<'a> {
    pub units: Units<'a>,
    pub geometry: &'a Geometry,
    pub active: &'a BTreeMap<BlockId, ActiveBlock>,
    pub blocks: &'a [BlockRow],
    /// What stands for content that is nowhere, and is not read.
    pub lost: FxHashSet<Ppn>,
    pub effort: &'a Effort<'a>,
}

/// The flash page that was read last.
struct PageRead {
    page: Option<PageId>,
    is_read: bool,
    bytes: AlignedBuf,
}

impl UnitReader<'_> {
    /// Reads all units that are owned.
    pub fn read(&self, claims: &Claims, damage: &mut Damage, told: &mut Sentences) {
        let mut last = PageRead {
            page: None,
            is_read: false,
            bytes: AlignedBuf::zeroed(self.units.areas.page_stride as usize),
        };
        for (unit, owner, proof) in claims.owned() {
            if self.lost.contains(&unit) {
                continue;
            }
            let record = self.record(unit, &mut last);
            self.effort.advance(PAGE_BYTES as u64);
            let is_meant = |record: &Record| self.proof(owner, proof).holds(record);
            match record {
                Ok((record, values)) if is_meant(&record) => {
                    self.compare(unit, owner, proof, &record, told);
                    for slot in values {
                        if damage.has_room() {
                            damage.values.push((unit, owner, slot));
                        }
                    }
                }
                other => {
                    let why = other.map_or_else(|why| why, |_| ELSEWHERE.to_owned());
                    if damage.has_room() {
                        damage.units.push((unit, owner, why));
                    }
                }
            }
        }
    }

    /// The record of a unit that holds, and which values of it were lost; otherwise what does not hold.
    fn record(&self, unit: Ppn, last: &mut PageRead) -> Result<(Record, Vec<PackSlot>), String> {
        let page = self.units.areas.page_of(unit);
        if last.page != Some(page) {
            last.page = Some(page);
            let at = self.units.areas.page(page);
            last.is_read = self.units.medium.read(at, &mut last.bytes).is_ok();
        }
        let generation = self.generation(unit);
        let lost = |record: &Record, bytes: &[u8]| match record.kind {
            UnitKind::Packed => packed::lost_slots(bytes),
            _ => Vec::new(),
        };
        if last.is_read {
            let record = self.units.held_in(&last.bytes, unit, generation)?;
            let bytes = &last.bytes[self.units.areas.data_in_page(unit)];
            return Ok((record, lost(&record, bytes)));
        }
        // Of a page that cannot be read whole each unit is tried.
        match self.units.read(unit, generation) {
            Ok(stored) => Ok((stored.record, lost(&stored.record, &*stored.bytes))),
            Err(NandError::Rot { why, .. }) => Err(why.to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn generation(&self, unit: Ppn) -> u64 {
        let block = self.geometry.block_of(unit);
        let active = self.active.get(&block).map(|active| active.generation);
        active.unwrap_or_else(|| self.blocks[block.index()].generation)
    }

    /// What the record of a unit must say.
    fn proof(&self, owner: Owner, proof: UnitProof) -> Proof {
        match owner.owned() {
            _ if !self.units.id.has_objects() => Proof::Lpn(owner.as_page()),
            Owned::Value(_) => Proof::WriteSeq(proof.write_seq),
            _ => Proof::Packed,
        }
    }

    /// An object has the digest of what lies on its unit.
    fn compare(
        &self,
        unit: Ppn,
        owner: Owner,
        proof: UnitProof,
        record: &Record,
        told: &mut Sentences,
    ) {
        let digest = record.digest.0 as u64;
        if proof.check != 0 && proof.check != digest {
            told.push(format!(
                "{} has {:016x} of a digest, what lies in unit {unit} has {digest:016x}",
                called(owner, true),
                proof.check
            ));
        }
    }
}
