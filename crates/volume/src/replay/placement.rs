//! Where everything lies that something refers to once all events have been applied.
//!
//! Invariants: an address of a plain volume maps to the best copy found of its write, or of what the checkpoint held
//! there; what lay in a block that was opened again since and has no copy is lost.

use std::collections::{BTreeSet, HashMap};

use flashlore_content::history::History;
use flashlore_flash::{Lpn, ObjectId, Ppn};

use super::evidence::Evidence;
use super::overlay::{RowChanges, RowOverlay};
use super::replayed::{Lost, Replayed};
use super::state::ReplayState;
use crate::error::VolumeError;
use crate::format::{Identity, MapRow, ObjectRow, Table};
use crate::place::{Copies, Name, Placed, place};
use crate::scan::{FoundUnit, Quality};

/// What has become of the rows of the checkpoint.
pub(super) struct PlacedRows {
    pub map: RowChanges<MapRow>,
    pub objects: RowChanges<ObjectRow>,
}

impl ReplayState<'_> {
    /// Places everything that is referenced in the end.
    pub fn finish(
        mut self,
        id: &Identity,
        evidence: &Evidence<'_>,
        found: &[FoundUnit],
        was_reopened: &dyn Fn(Ppn) -> bool,
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
            young: HashMap::new(),
            events: 0,
            lost: Vec::new(),
        };
        let rows = if id.has_objects() {
            self.place_objects(id, evidence, found, was_reopened, &mut replayed)?
        } else {
            self.place_pages(evidence, was_reopened, &mut replayed)
        };
        Ok((replayed, rows))
    }

    fn place_pages(
        self,
        evidence: &Evidence<'_>,
        was_reopened: &dyn Fn(Ppn) -> bool,
        out: &mut Replayed,
    ) -> PlacedRows {
        let mut map = self.old;
        // What lay in a block that was opened again lies elsewhere now, or is lost.
        let mut lost: BTreeSet<Lpn> = BTreeSet::new();
        for (lpn, row) in (0..).map(Lpn).zip(map.all()) {
            if row.is_some() && was_reopened(row.as_unit()) {
                lost.insert(lpn);
            }
        }
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
            objects: RowOverlay::new(&[]).into_changes(),
        }
    }

    fn place_objects(
        self,
        id: &Identity,
        evidence: &Evidence<'_>,
        found: &[FoundUnit],
        was_reopened: &dyn Fn(Ppn) -> bool,
        out: &mut Replayed,
    ) -> Result<PlacedRows, VolumeError> {
        let mut map = self.old;
        let rows = self.tables.objects.len();
        let born = &self.born;
        let name = |number: ObjectId| match born.get(number.index().wrapping_sub(rows)) {
            Some(&write_seq) => Name::New(write_seq),
            None => Name::Old(number),
        };
        let kept = out.history.iter().flat_map(History::objects).map(name);
        let old = map.all().map(MapRow::as_object);
        let old = old.filter(|handle| handle.is_some());
        let named = old.map(Name::Old);
        let named = named.chain(self.new.values().map(|&write_seq| Name::New(write_seq)));
        let copies = Copies {
            tables: self.tables,
            names: self.names,
            best: &evidence.best,
            found,
            trusted: id.trusts_digests(),
            encodes: id.encoding.is_on(),
            most: Table::handles(id),
            was_reopened,
        };
        // Of packed values alone it is asked.
        let is_packed = |handle: &ObjectId| {
            let row = self.tables.objects.get(handle.index());
            row.is_some_and(|row| row.packed().is_some())
        };
        let page_of = (map.all().map(MapRow::as_object))
            .zip((0..).map(Lpn))
            .filter(|(handle, _)| handle.is_some() && is_packed(handle))
            .collect();
        let (placed, objects) = place(&copies, named.chain(kept), &page_of)?;
        for (lpn, write_seq) in self.new {
            map.set(lpn.index(), MapRow::of_object(placed.made[&write_seq]));
        }
        if let Some(history) = &mut out.history {
            history.rename(|number| match name(number) {
                Name::New(write_seq) => placed.made[&write_seq],
                Name::Old(handle) => handle,
            });
        }
        let lost = placed.lost.iter();
        let lost = lost.filter_map(|&lost| Some((lost, objects.get(lost.index())?)));
        out.lost = lost
            .map(|(lost, row)| Lost::new(lost, row.write_seq))
            .collect();
        out.placed = placed;
        Ok(PlacedRows {
            map: map.into_changes(),
            objects: objects.into_changes(),
        })
    }
}
