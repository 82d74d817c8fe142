//! The rows of a volume one table after the other: those of its checkpoint, with what has become of them since.
//!
//! Invariant: each row is shown once, in order; what differs from the checkpoint is shown in place of that.

use std::ops::Range;

use flashlore_content::PURGED;
use flashlore_content::history::{History, VersionEntry};
use flashlore_flash::{Lpn, ObjectId, Owner, PackId, Ppn, Row, TableId};
use flashlore_ftl::mapping::objects::FoundPack;
use flashlore_ftl::mapping::packs::{NewPack, Pack};
use rustc_hash::FxHashMap;

use crate::error::VolumeError;
use crate::format::cursor::Reader;
use crate::format::{Identity, MapRow, ObjectRow, Root, Table};
use crate::load::Rows;
use crate::replay::Replayed;

/// Where rows come from.
#[derive(Clone, Copy)]
pub(super) enum RowSource<'a> {
    /// From a checkpoint.
    Checkpoint(&'a Rows<'a>),
    /// From memory: an older format has not all that is asked for.
    Loaded(&'a Replayed),
}

/// What has become of the rows of a checkpoint.
#[derive(Default)]
pub(super) struct ChangedSince {
    /// In their order.
    map: Vec<(u32, MapRow)>,
    objects: Vec<(u32, ObjectRow)>,
    /// How many more entries of the history name an object.
    kept: FxHashMap<ObjectId, i64>,
    gone_packs: FxHashMap<PackId, Ppn>,
    new_packs: Vec<NewPack>,
}

impl ChangedSince {
    /// What a replay found, which does not have it any more.
    pub fn of(replayed: &mut Replayed) -> Self {
        let mut since = ChangedSince {
            new_packs: replayed.placed.new_packs.clone(),
            ..ChangedSince::default()
        };
        let Some(changes) = replayed.changes.take() else {
            return since;
        };
        since.map = changes
            .map
            .rows()
            .map(|(row, becomes)| (row as u32, becomes))
            .collect();
        since.map.sort_unstable_by_key(|(row, _)| *row);
        let objects = changes.objects.rows();
        since.objects = objects
            .map(|(row, becomes)| (row as u32, becomes))
            .collect();
        since.objects.sort_unstable_by_key(|(row, _)| *row);
        let made = replayed
            .kept_made
            .iter()
            .map(|&(object, more)| (object, more.into()));
        for (object, more) in replayed.kept.iter().copied().chain(made) {
            *since.kept.entry(object).or_default() += more;
        }
        since.gone_packs = changes.gone_packs;
        since
    }

    /// Whether all is as it was.
    pub fn is_nothing(&self) -> bool {
        let rows = self.map.len() + self.objects.len() + self.kept.len();
        rows + self.gone_packs.len() + self.new_packs.len() == 0
    }

    fn objects_of(&self, range: &Range<u32>) -> &[(u32, ObjectRow)] {
        let place = |end: u32| self.objects.partition_point(|(row, _)| *row < end);
        &self.objects[place(range.start)..place(range.end)]
    }
}

/// The owner of the unit of a packed page that has no number yet.
pub(super) fn new_pack(at: u32) -> Owner {
    Owner::table(TableId(at))
}

/// The owner of the unit of a packed page, if it lies on one.
pub(super) fn pack_owner(pack: FoundPack) -> Option<Owner> {
    match pack {
        FoundPack::Numbered(pack) => (pack.0 < Owner::PACKS).then(|| Owner::pack(pack)),
        FoundPack::New(at) => Some(new_pack(at)),
        FoundPack::Waiting => None,
    }
}

/// All rows, as they are at one instant.
pub(super) struct RowView<'a> {
    pub id: &'a Identity,
    pub root: &'a Root,
    pub source: RowSource<'a>,
    pub since: &'a ChangedSince,
}

impl RowView<'_> {
    /// The logical pages that hold something.
    pub fn each_mapped(&self, mut take: impl FnMut(Lpn, MapRow)) -> Result<(), VolumeError> {
        let mut take = |lpn, row: MapRow| {
            if row.is_some() {
                take(Lpn(lpn), row);
            }
        };
        let rows = match self.source {
            RowSource::Checkpoint(rows) => rows,
            RowSource::Loaded(replayed) => {
                let rows = (0..).zip(&replayed.map);
                rows.for_each(|(lpn, &row)| take(lpn, row));
                return Ok(());
            }
        };
        let known = |take: &mut dyn FnMut(u32, MapRow)| {
            rows.each(Table::Map, |row, bytes| {
                take(row.0, MapRow::decode(&mut Reader::new(bytes)));
            })
        };
        merged(&self.since.map, known, take)
    }

    /// The objects of these handles, and what was one or never was: what nothing refers to has a row like any other.
    pub fn each_object(
        &self,
        range: Range<u32>,
        mut take: impl FnMut(ObjectId, &ObjectRow),
    ) -> Result<(), VolumeError> {
        let rows = match self.source {
            RowSource::Checkpoint(rows) => rows,
            RowSource::Loaded(replayed) => {
                let rows = (0..).map(ObjectId).zip(&replayed.placed.objects);
                let rows = rows.filter(|(handle, _)| range.contains(&handle.0));
                rows.for_each(|(handle, row)| take(handle, row));
                return Ok(());
            }
        };
        let known = |take: &mut dyn FnMut(u32, ObjectRow)| {
            rows.each_of(Table::Objects, range.clone(), |row, bytes| {
                if range.contains(&row.0) {
                    take(row.0, ObjectRow::decode(self.id, bytes));
                }
            })
        };
        let changed = self.since.objects_of(&range);
        merged(changed, known, |row, object| take(ObjectId(row), &object))
    }

    /// The packed pages that hold anything, as owners of the units on which they lie.
    pub fn each_pack(&self, mut take: impl FnMut(Owner, Ppn)) -> Result<(), VolumeError> {
        match self.source {
            RowSource::Checkpoint(rows) => {
                let used = self.root.tallies.packs.numbers.min(Owner::PACKS);
                rows.each(Table::Packs, |row, bytes| {
                    let pack = Pack::decode(bytes).on_flash().filter(|_| row.0 < used);
                    let number = PackId(row.0);
                    if let Some(pack) = pack
                        && !self.since.gone_packs.contains_key(&number)
                    {
                        take(Owner::pack(number), pack.location);
                    }
                })?;
            }
            RowSource::Loaded(replayed) => {
                let packs = (0..Owner::PACKS).map(PackId).zip(&replayed.placed.packs);
                for (number, pack) in packs {
                    if let Some(pack) = pack {
                        take(Owner::pack(number), pack.location);
                    }
                }
            }
        }
        let new = (0..).zip(&self.since.new_packs);
        new.for_each(|(at, pack)| take(new_pack(at), pack.location));
        Ok(())
    }

    /// Each reference of an old version to an object.
    pub fn each_kept(&self, take: &mut impl FnMut(ObjectId)) -> Result<(), VolumeError> {
        let rows = match self.source {
            RowSource::Checkpoint(rows) => rows,
            RowSource::Loaded(replayed) => {
                replayed
                    .history
                    .iter()
                    .flat_map(History::objects)
                    .for_each(take);
                return Ok(());
            }
        };
        let history = &self.root.history;
        for (table, at) in [
            (Table::Versions, &history.window),
            (Table::Kept, &history.kept),
        ] {
            rows.each_entry(table, at, |entry: VersionEntry| {
                if !entry.is_gap() && { entry.object } < PURGED {
                    take(entry.object);
                }
            })?;
        }
        Ok(())
    }

    /// How many more entries of the history name some objects than those of the checkpoint do.
    pub fn kept_since(&self) -> FxHashMap<ObjectId, i64> {
        self.since.kept.clone()
    }
}

/// Rows of a checkpoint, and what has become of them.
fn merged<R: Copy>(
    changed: &[(u32, R)],
    known: impl FnOnce(&mut dyn FnMut(u32, R)) -> Result<(), VolumeError>,
    mut take: impl FnMut(u32, R),
) -> Result<(), VolumeError> {
    let mut changed = changed.iter().copied().peekable();
    known(&mut |row, known| {
        while let Some((at, becomes)) = changed.next_if(|(at, _)| *at <= row) {
            take(at, becomes);
            if at == row {
                return;
            }
        }
        take(row, known);
    })?;
    changed.for_each(|(at, becomes)| take(at, becomes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_become_of_rows_is_shown_in_their_place_and_behind_them() {
        let known = |take: &mut dyn FnMut(u32, char)| {
            [(1, 'a'), (2, 'b'), (5, 'c')]
                .into_iter()
                .for_each(|(row, is)| take(row, is));
            Ok(())
        };
        let mut shown = Vec::new();
        let changed = [(0, 'x'), (2, 'y'), (3, 'z'), (9, 'w')];
        merged(&changed, known, |row, is| shown.push((row, is))).unwrap();
        let expected = [(0, 'x'), (1, 'a'), (2, 'y'), (3, 'z'), (5, 'c'), (9, 'w')];
        assert_eq!(shown, expected);
    }
}
