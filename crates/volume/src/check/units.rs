//! Whose each unit is: for a range of units at a time everything that lies on one of them claims it, and each has one owner at
//! most. What the tables note of owners and of valid units is compared with that.
//!
//! Invariant: what is told of a unit is told with the range that it is in, and nothing twice.

use std::collections::BTreeMap;
use std::ops::Range;

use flashlore_flash::{BlockId, Geometry, Owned, Owner, Ppn, Row};
use rustc_hash::FxHashSet;

use super::named::NamedObjects;
use super::subject::{Sentences, Subject};
use super::view::RowView;
use crate::error::VolumeError;
use crate::format::rows::known_half;
use crate::format::tables::UNITS_PER_WORD;
use crate::format::{BlockRow, BlockState, Identity, ObjectPlace, Table};
use crate::scan::ActiveBlock;

/// Bytes that are taken for a unit, and those more if it is to be read.
pub(super) const OWNER_BYTES: u64 = size_of::<u32>() as u64;
pub(super) const PROOF_BYTES: u64 = size_of::<UnitProof>() as u64;

/// What stands for the owner where nothing lies; for any other its number and one. Memory that nobody claims stays untouched.
const NOBODY: u32 = 0;

/// The owner for which this stands.
fn owner_of(standing: u32) -> Owner {
    Owner::numbered(standing.wrapping_sub(1))
}

/// What is known of what lies on a unit, besides whose it is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnitProof {
    /// The write sequence number of an object.
    pub write_seq: u64,
    /// Half of its digest; 0 if it is not known.
    pub check: u64,
}

/// Which units can be claimed, and by whom.
pub(super) struct Places<'a> {
    pub geometry: &'a Geometry,
    pub active: &'a BTreeMap<BlockId, ActiveBlock>,
    pub blocks: &'a [BlockRow],
    /// What came to lie where it lies since the checkpoint.
    pub moved: FxHashSet<Owner>,
}

/// The owners of the units of a range.
pub(super) struct Claims {
    range: Range<u32>,
    owners: Vec<u32>,
    /// Where they are to be read.
    proofs: Vec<[u64; 2]>,
}

/// What somebody is called in a sentence.
pub(super) fn called(owner: Owner, has_objects: bool) -> String {
    match owner.owned() {
        _ if !has_objects => format!("logical page {}", owner.as_page()),
        Owned::Value(object) => format!("object {object}"),
        Owned::Pack(pack) => format!("packed page {pack}"),
        Owned::Table(_) => "a packed page that was filled since the checkpoint".to_owned(),
        Owned::MapPage(_) => format!("nobody ({})", owner.number()),
    }
}

impl Claims {
    /// Those of a range of units, of all that there is in a view.
    ///
    /// # Errors
    /// A page of the tables cannot be read.
    pub fn of(
        (view, named): (&RowView<'_>, Option<&NamedObjects>),
        places: Option<&Places<'_>>,
        (range, data): (Range<u32>, bool),
        told: &mut Sentences,
    ) -> Result<Self, VolumeError> {
        let mut claims = Claims {
            owners: vec![NOBODY; range.len()],
            proofs: vec![[0; 2]; if data { range.len() } else { 0 }],
            range,
        };
        let has_objects = view.id.has_objects();
        let units = Table::Owners.rows(view.id);
        let mut claim = |owner: Owner, unit: Ppn, proof: UnitProof| {
            claims.claim((owner, unit, proof), units, has_objects, told);
            if let Some(places) = places.filter(|_| claims.range.contains(&unit.0))
                && let Some(why) = places.refuse(view.id, owner, unit)
            {
                let owner = called(owner, has_objects);
                told.push(format!("{owner} lies on unit {unit}, {why}"));
            }
        };
        let Some(named) = named else {
            view.each_mapped(|lpn, row| {
                claim(Owner::page(lpn), row.as_unit(), UnitProof::default());
            })?;
            return Ok(claims);
        };
        let trusted = view.id.trusts_digests();
        let handles = Table::Objects.rows(view.id);
        view.each_object(0..handles, |object, row| {
            if let ObjectPlace::Unit(unit) = row.place
                && named.alive.has(object)
            {
                let proof = UnitProof {
                    write_seq: row.write_seq,
                    check: known_half(row.digest, trusted).unwrap_or(0),
                };
                claim(Owner::object(object), unit, proof);
            }
        })?;
        view.each_pack(|owner, unit| claim(owner, unit, UnitProof::default()))?;
        Ok(claims)
    }

    fn claim(
        &mut self,
        (owner, unit, proof): (Owner, Ppn, UnitProof),
        units: u32,
        has_objects: bool,
        told: &mut Sentences,
    ) {
        if !self.range.contains(&unit.0) {
            if unit.0 >= units && self.range.start == 0 {
                let owner = called(owner, has_objects);
                told.push(format!("{owner} lies on unit {unit}, which does not exist"));
            }
            return;
        }
        let at = (unit.0 - self.range.start) as usize;
        let first = std::mem::replace(&mut self.owners[at], owner.number().wrapping_add(1));
        if first != NOBODY {
            let [first, second] = [owner_of(first), owner].map(|o| called(o, has_objects));
            told.push(format!("unit {unit} is owned by both {first} and {second}"));
        }
        if let Some(known) = self.proofs.get_mut(at) {
            *known = [proof.write_seq, proof.check];
        }
    }

    /// Units that somebody owns, in their order.
    pub fn owned(&self) -> impl Iterator<Item = (Ppn, Owner, UnitProof)> + '_ {
        let units = (self.range.start..).map(Ppn).zip(&self.owners).enumerate();
        let owned = units.filter(|(_, (_, owner))| **owner != NOBODY);
        owned.map(|(at, (unit, owner))| {
            let [write_seq, check] = self.proofs.get(at).copied().unwrap_or_default();
            (unit, owner_of(*owner), UnitProof { write_seq, check })
        })
    }

    /// Compares what the tables note of owners and of valid units.
    ///
    /// # Errors
    /// A page of the tables cannot be read.
    pub fn compare(&self, on: &Subject<'_>, told: &mut Sentences) -> Result<(), VolumeError> {
        let has_objects = on.id.has_objects();
        let owners = self.range.clone();
        on.rows.each_row(Table::Owners, owners, |row, bytes| {
            let noted = Owner::decode(bytes);
            if let Some(owner) = self.owner_at(row.0).filter(|owner| *owner != noted) {
                let [noted, owner] = [noted, owner].map(|owner| called(owner, has_objects));
                told.push(format!(
                    "unit {row} is noted as that of {noted}, it is that of {owner}"
                ));
            }
        })?;
        let words = self.range.start / UNITS_PER_WORD..self.range.end.div_ceil(UNITS_PER_WORD);
        on.rows.each_row(Table::Valid, words, |row, bytes| {
            self.compare_valid(row.0, u64::decode(bytes), on, told);
        })
    }

    /// Whose a unit of the range is.
    #[inline]
    fn owner_at(&self, unit: u32) -> Option<Owner> {
        let owner = self.owners.get((unit - self.range.start) as usize)?;
        (*owner != NOBODY).then(|| owner_of(*owner))
    }

    /// Compares a word of the bits of valid units.
    fn compare_valid(&self, word: u32, noted: u64, on: &Subject<'_>, told: &mut Sentences) {
        let first = word * UNITS_PER_WORD;
        let start = (first - self.range.start) as usize;
        let owners = self.owners[start..].iter().take(UNITS_PER_WORD as usize);
        let bits = (0..).zip(owners).filter(|(_, owner)| **owner != NOBODY);
        let valid = bits.fold(0u64, |valid, (bit, _)| valid | 1 << bit);
        if valid == noted {
            return;
        }
        for unit in first..first.saturating_add(UNITS_PER_WORD) {
            let is_noted = noted >> (unit - first) & 1 == 1;
            match (self.owner_at(unit), is_noted) {
                (Some(owner), false) => told.push(format!(
                    "unit {unit} is that of {}, and noted as free",
                    called(owner, on.id.has_objects())
                )),
                (None, true) if on.knows_all() => told.push(format!(
                    "nothing lies on unit {unit}, and it is noted as valid"
                )),
                _ => {}
            }
        }
    }
}

impl Places<'_> {
    /// Why something cannot lie on a unit, if it cannot.
    fn refuse(&self, id: &Identity, owner: Owner, unit: Ppn) -> Option<&'static str> {
        let block = self.geometry.block_of(unit);
        let page = self.geometry.page_in_block(self.geometry.page_of(unit));
        match self.active.get(&block) {
            Some(a) if page.0 >= a.taken => Some("which was never programmed"),
            Some(a) if page.0 >= a.known && !self.has_moved(id, owner) => {
                Some("whose block was erased; its copy is missing")
            }
            Some(_) => None,
            None if self.blocks[block.index()].state == BlockState::Free => {
                Some("whose block is free")
            }
            None => None,
        }
    }

    fn has_moved(&self, id: &Identity, owner: Owner) -> bool {
        let is_new = id.encoding.is_on() && matches!(owner.owned(), Owned::Table(_));
        is_new || self.moved.contains(&owner)
    }
}

/// The owners with these numbers.
pub(super) fn owners_of(numbers: impl Iterator<Item = u32>) -> FxHashSet<Owner> {
    numbers.map(Owner::numbered).collect()
}
