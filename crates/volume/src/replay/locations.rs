//! Whether everything that is referred to can lie where it is said to.
//!
//! Invariants: each row lies on a unit of its own, in a page that was taken; in a page taken since the checkpoint lies
//! only what came to lie there since.

use std::collections::BTreeMap;

use flashlore_content::history::History;
use flashlore_flash::{BlockId, Geometry, Lpn, ObjectId, Owned, Ppn};
use rustc_hash::FxHashSet;

use super::placement::PlacedRows;
use super::reopened::Reopened;
use super::replayed::Replayed;
use crate::error::VolumeError;
use crate::format::{BlockState, Identity, ObjectPlace, RowId};
use crate::load::{StoredRows, Tables, objects_of};
use crate::place::Placed;
use crate::scan::ActiveBlock;

/// In place of the row of a packed page that the checkpoint does not have.
const NEW_PACK: RowId = RowId(u32::MAX);

/// Everything referenced lies in a page that was taken, on a unit of its own, and nothing lies where a
/// block was opened anew.
pub(super) fn check_locations(
    id: &Identity,
    geometry: &Geometry,
    tables: &Tables,
    active: &BTreeMap<BlockId, ActiveBlock>,
    replayed: &Replayed,
) -> Result<(), VolumeError> {
    let changed: FxHashSet<RowId> = match id.has_objects() {
        true => rows_of(&replayed.placed.changed),
        false => rows_of(&replayed.changed_pages),
    };
    let mut owned = vec![0u64; (geometry.units() as usize).div_ceil(64)];
    let mut check = location_check(geometry, tables, active, &changed, &mut owned);
    if !id.has_objects() {
        for (lpn, &row) in (0..).map(Lpn).zip(&replayed.map) {
            if row.is_some() {
                check(lpn.into(), row.as_unit())?;
            }
        }
        return Ok(());
    }
    let Placed {
        objects,
        packs,
        new_packs,
        ..
    } = &replayed.placed;
    let mut seen = vec![false; objects.len()];
    let kept = replayed.history.iter().flat_map(History::objects);
    for handle in objects_of(&replayed.map)
        .chain(kept)
        .filter(|handle| handle.is_some())
    {
        let base = objects[handle.index()].base();
        for handle in [Some(handle), base].into_iter().flatten() {
            let before = std::mem::replace(&mut seen[handle.index()], true);
            if let ObjectPlace::Unit(unit) = objects[handle.index()].place
                && !before
            {
                check(handle.into(), unit)?;
            }
        }
    }
    drop(check);
    let changed = FxHashSet::from_iter([NEW_PACK]);
    let mut check = location_check(geometry, tables, active, &changed, &mut owned);
    for (number, pack) in (0..).map(RowId).zip(packs) {
        if let Some(pack) = pack {
            check(number, pack.location)?;
        }
    }
    for pack in new_packs {
        check(NEW_PACK, pack.location)?;
    }
    Ok(())
}

/// The same of what has changed since the checkpoint, whose other rows lie where it has them.
pub(super) fn check_changed(
    tables: &Tables,
    reopened: &Reopened<'_>,
    rows: &StoredRows,
    differing: &PlacedRows,
    replayed: &Replayed,
) -> Result<(), VolumeError> {
    let (geometry, active) = (reopened.geometry, reopened.active);
    let gone: FxHashSet<RowId> = rows_of(&differing.gone);
    let mut changed: FxHashSet<RowId> = match rows.has_objects() {
        true => rows_of(&replayed.placed.changed),
        false => differing
            .map
            .rows()
            .map(|(lpn, _)| RowId(lpn as u32))
            .collect(),
    };
    changed.insert(NEW_PACK);
    // Whether the checkpoint has something on a unit that stays there.
    let has_neighbour = |unit: Ppn| {
        let owner = rows.owner(unit).filter(|_| !reopened.has(unit));
        match owner.map(|owner| (owner, owner.owned())) {
            None => false,
            Some((_, Owned::Pack(pack))) if rows.has_objects() => {
                !differing.gone_packs.contains_key(&pack)
            }
            Some((owner, _)) => {
                let row = RowId(owner.as_object().0);
                !gone.contains(&row) && !changed.contains(&row)
            }
        }
    };
    let mut owned = vec![0u64; (geometry.units() as usize).div_ceil(64)];
    let mut check = location_check(geometry, tables, active, &changed, &mut owned);
    let mut check = |row: RowId, unit: Ppn| match has_neighbour(unit) {
        true => damaged(row, unit, "where another row lies"),
        false => check(row, unit),
    };
    if !rows.has_objects() {
        let is_lost = |lpn: usize| {
            let lost = &replayed.lost;
            let owner = ObjectId(lpn as u32);
            lost.binary_search_by_key(&owner, |lost| lost.owner).is_ok()
        };
        for (lpn, row) in differing.map.rows() {
            if row.is_some() && !is_lost(lpn) {
                check(RowId(lpn as u32), row.as_unit())?;
            }
        }
        return Ok(());
    }
    for &object in &replayed.placed.changed {
        if replayed.placed.lost.binary_search(&object).is_ok() {
            continue;
        }
        if let Some(row) = differing.objects.get(object.index())
            && let ObjectPlace::Unit(unit) = row.place
        {
            check(object.into(), unit)?;
        }
    }
    for pack in &replayed.placed.new_packs {
        check(NEW_PACK, pack.location)?;
    }
    Ok(())
}

fn damaged<T>(row: RowId, unit: Ppn, what: &str) -> Result<T, VolumeError> {
    Err(VolumeError::Damaged(format!(
        "row {row} lies on unit {unit}, {what}"
    )))
}

fn rows_of<R: Copy + Into<RowId>>(changed: &[R]) -> FxHashSet<RowId> {
    changed.iter().map(|&row| row.into()).collect()
}

/// A check of rows and where they lie; those `changed` lie there since the checkpoint.
fn location_check<'a>(
    geometry: &'a Geometry,
    tables: &'a Tables,
    active: &'a BTreeMap<BlockId, ActiveBlock>,
    changed: &'a FxHashSet<RowId>,
    owned: &'a mut [u64],
) -> impl FnMut(RowId, Ppn) -> Result<(), VolumeError> + 'a {
    move |row: RowId, ppn: Ppn| {
        let lost = |what: &str| damaged(row, ppn, what);
        if ppn.0 >= geometry.units() {
            return lost("which does not exist");
        }
        let (word, bit) = (&mut owned[ppn.index() / 64], 1 << (ppn.0 % 64));
        if *word & bit != 0 {
            return lost("where another row lies");
        }
        *word |= bit;
        let block = geometry.block_of(ppn);
        let page = geometry.page_in_block(geometry.page_of(ppn));
        match active.get(&block) {
            Some(a) if page.0 >= a.taken => lost("which was never programmed"),
            Some(a) if page.0 >= a.known && !changed.contains(&row) => {
                lost("whose block was erased; its copy is missing")
            }
            Some(_) => Ok(()),
            None if tables.blocks[block.index()].state == BlockState::Free => {
                lost("whose block is free")
            }
            None => Ok(()),
        }
    }
}
