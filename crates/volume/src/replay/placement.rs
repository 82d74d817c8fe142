//! Where everything lies that something refers to once all events have been applied.
//!
//! Invariants: an address of a plain volume maps to the best copy found of its write, or of what the checkpoint held
//! there; what lay in a block that was opened again since and has no copy is lost.

use std::collections::BTreeSet;

use flashlore_content::history::History;
use flashlore_flash::{Lpn, ObjectId, PackId, Ppn};
use rustc_hash::FxHashMap;

use super::difference::Difference;
use super::evidence::Evidence;
use super::history::ReplayedHistory;
use super::overlay::{RowChanges, RowOverlay};
use super::reopened::Reopened;
use super::replayed::{Lost, Replayed};
use super::state::ReplayState;
use crate::error::VolumeError;
use crate::format::{Identity, MapRow, ObjectRow, Table};
use crate::load::Known;
use crate::place::{Copies, Name, Placed, place};
use crate::scan::{FoundUnit, Quality};

/// What has become of the rows of the checkpoint.
#[derive(Debug)]
pub(crate) struct PlacedRows {
    pub map: RowChanges<MapRow>,
    pub objects: RowChanges<ObjectRow>,
    /// Objects of the checkpoint to which nothing refers any more, where not all objects were gone through.
    pub gone: Vec<ObjectId>,
    /// Packed pages of the checkpoint that hold nothing any more, and where they lay, likewise.
    pub gone_packs: FxHashMap<PackId, Ppn>,
}

/// Refuses more packed pages than can have numbers.
fn refuse_too_many(known: Known<'_>, placed: &Placed, gone: usize) -> Result<(), VolumeError> {
    let old = match known {
        Known::Loaded(_) => placed.packs.iter().flatten().count(),
        Known::Stored(rows) => (rows.packs_on_flash() as usize).saturating_sub(gone),
    };
    match old + placed.new_packs.len() > known.packs() {
        true => Err(VolumeError::Damaged(
            "more packed pages than the table holds".to_string(),
        )),
        false => Ok(()),
    }
}

impl ReplayState<'_> {
    /// Places everything that is referenced in the end.
    pub fn finish(
        mut self,
        id: &Identity,
        evidence: &Evidence<'_>,
        found: &[FoundUnit],
        reopened: &Reopened<'_>,
    ) -> Result<(Replayed, PlacedRows), VolumeError> {
        self.changed.sort_unstable();
        self.changed.dedup();
        let mut replayed = Replayed {
            sequence: self.since,
            stamp: self.stamp,
            map: Vec::new(),
            placed: Placed::default(),
            changed_pages: std::mem::take(&mut self.changed),
            history: self.history.take(),
            notes: std::mem::take(&mut self.notes),
            window: evidence.window,
            kept: Vec::new(),
            kept_made: Vec::new(),
            changes: None,
            valid: Vec::new(),
            valid_before: Vec::new(),
            young: FxHashMap::default(),
            events: 0,
            has_bulk: self.has_bulk,
            lost: Vec::new(),
        };
        let rows = if id.has_objects() {
            self.place_objects(id, evidence, found, reopened, &mut replayed)?
        } else {
            self.place_pages(evidence, reopened, &mut replayed)
        };
        Ok((replayed, rows))
    }

    fn place_pages(
        self,
        evidence: &Evidence<'_>,
        reopened: &Reopened<'_>,
        out: &mut Replayed,
    ) -> PlacedRows {
        let mut map = self.old;
        let pages: Vec<Lpn> = match self.known {
            Known::Loaded(_) => (0..map.len() as u32).map(Lpn).collect(),
            Known::Stored(rows) => Difference::overwritten_pages(rows, reopened),
        };
        // What lay in a block that was opened again lies elsewhere now, or is lost.
        let is_gone = |lpn: &Lpn| {
            let row = map.get(lpn.index()).filter(|row| row.is_some());
            row.is_some_and(|row| reopened.has(row.as_unit()))
        };
        let mut lost: BTreeSet<Lpn> = pages.into_iter().filter(is_gone).collect();
        // A copy of an older write is a copy of what the checkpoint holds there.
        for unit in evidence.best.units().chain(&evidence.nameless) {
            let (lpn, write_seq) = (unit.record.lpn, unit.record.write_seq);
            let is_mapped = map.get(lpn.index()).is_some_and(MapRow::is_some);
            if write_seq <= self.since && is_mapped && unit.quality > Quality::Broken {
                map.set(lpn.index(), MapRow::of_unit(unit.ppn));
                lost.remove(&lpn);
                out.changed_pages.push(lpn);
            }
        }
        for (&lpn, &write_seq) in &self.new {
            match evidence.best.get(write_seq) {
                Some(unit) => map.set(lpn.index(), MapRow::of_unit(unit.ppn)),
                None => _ = lost.insert(lpn),
            }
        }
        out.changed_pages.extend(&lost);
        let write_seq = |lpn: &Lpn| self.new.get(lpn).copied().unwrap_or(0);
        out.lost = lost
            .iter()
            .map(|lpn| Lost::new(ObjectId::of_page(*lpn), write_seq(lpn)))
            .collect();
        PlacedRows {
            map: map.into_changes(),
            objects: RowOverlay::new(0, |_| None).into_changes(),
            gone: Vec::new(),
            gone_packs: FxHashMap::default(),
        }
    }

    fn place_objects(
        self,
        id: &Identity,
        evidence: &Evidence<'_>,
        found: &[FoundUnit],
        reopened: &Reopened<'_>,
        out: &mut Replayed,
    ) -> Result<PlacedRows, VolumeError> {
        let copies = Copies {
            known: self.known,
            names: self.names,
            best: &evidence.best,
            found,
            trusted: id.trusts_digests(),
            encodes: id.encoding.is_on(),
            most: Table::handles(id),
            reopened,
        };
        let difference = match self.known {
            Known::Loaded(_) => None,
            Known::Stored(rows) => {
                let changed = &out.changed_pages;
                Some(Difference::of(rows, &self, changed, &copies)?)
            }
        };
        let stays = difference
            .as_ref()
            .map(|difference| |handle: ObjectId| difference.stays(handle));
        let stays = stays
            .as_ref()
            .map(|stays| stays as &dyn Fn(ObjectId) -> bool);
        let named: Vec<Name> = match &difference {
            Some(difference) => difference.moved().map(Name::Old).collect(),
            None => self.all_of_the_checkpoint(&out.history),
        };
        let new = self.write_seqs().map(Name::New);
        let (placed, objects) = place(&copies, named.into_iter().chain(new), stays)?;
        let gone = difference.iter().flat_map(Difference::gone).collect();
        let gone_packs = difference
            .as_ref()
            .map(|difference| difference.gone_packs(&placed.changed))
            .unwrap_or_default();
        refuse_too_many(self.known, &placed, gone_packs.len())?;
        let objects = objects.into_changes();
        let rows = self.known.handles();
        let name = |number: ObjectId| match self.born.get(number.index().wrapping_sub(rows)) {
            Some(write_seq) => placed.made[write_seq],
            None => number,
        };
        if !self.born.is_empty() {
            let history = out.history.take();
            out.history = history.map(|history| self.rename(id, history, name));
        }
        let kept = self.kept.iter().filter(|(_, more)| **more != 0);
        for (&number, &more) in kept {
            match number.index() < rows {
                true => out.kept.push((number, more)),
                false => out.kept_made.push((name(number), more as u32)),
            }
        }
        let mut map = self.old;
        for (lpn, write_seq) in self.new {
            map.set(lpn.index(), MapRow::of_object(placed.made[&write_seq]));
        }
        let lost = placed.lost.iter();
        let lost = lost.filter_map(|&lost| Some((lost, objects.get(lost.index())?)));
        out.lost = lost
            .map(|(lost, row)| Lost::new(lost, row.write_seq))
            .collect();
        out.placed = placed;
        Ok(PlacedRows {
            map: map.into_changes(),
            objects,
            gone,
            gone_packs,
        })
    }

    /// All objects of the checkpoint that something refers to.
    fn all_of_the_checkpoint(&self, history: &Option<ReplayedHistory>) -> Vec<Name> {
        let rows = self.known.handles();
        let kept = history.iter().flat_map(History::objects);
        let kept = kept.filter(|number| number.index() < rows);
        let mapped = self.old.all().map(MapRow::as_object);
        let named = mapped.filter(|handle| handle.is_some()).chain(kept);
        named.map(Name::Old).collect()
    }
}
