//! Which units hold something that is needed, once everything has its place.
//!
//! What is lost has no unit yet: one of the others is to stand for it ([`super::lost`]).

use std::ops::Range;

use flashlore_content::history::History;
use flashlore_flash::{BlockId, Geometry, Lpn, ObjectId, Ppn};

use super::placement::PlacedRows;
use super::reopened::Reopened;
use super::replayed::Replayed;
use crate::error::VolumeError;
use crate::format::{BlockRow, BlockState, ObjectPlace};
use crate::load::{Known, StoredRows, objects_of};

/// A bit for each unit.
struct UnitBits(Vec<u64>);

impl UnitBits {
    fn set(&mut self, ppn: Ppn) {
        if let Some(word) = self.0.get_mut(ppn.index() / 64) {
            *word |= 1 << (ppn.0 % 64);
        }
    }

    fn clear(&mut self, ppn: Ppn) {
        if let Some(word) = self.0.get_mut(ppn.index() / 64) {
            *word &= !(1 << (ppn.0 % 64));
        }
    }
}

/// Refuses valid units where a checkpoint has programmed nothing.
///
/// # Errors
/// There is such a unit.
pub(crate) fn refuse_impossible(
    valid: &[u64],
    geometry: &Geometry,
    blocks: &[BlockRow],
) -> Result<(), VolumeError> {
    for (block, row) in (0..).map(BlockId).zip(blocks) {
        let taken = match row.state {
            BlockState::Free => 0,
            _ => row.taken * geometry.units_per_page(),
        };
        let first = geometry.first_unit(block).0;
        let unused = first + taken..first + geometry.units_per_block();
        if let Some(unit) = first_of(valid, unused) {
            return Err(VolumeError::Damaged(format!(
                "unit {unit} is noted as valid, and was never programmed"
            )));
        }
    }
    Ok(())
}

/// The first unit of a range that is one of these.
fn first_of(valid: &[u64], range: Range<u32>) -> Option<Ppn> {
    let mut from = range.start;
    while from < range.end {
        let rest = valid.get(from as usize / 64)? >> (from % 64);
        if rest != 0 {
            let found = from + rest.trailing_zeros();
            return (found < range.end).then_some(Ppn(found));
        }
        from = (from / 64 + 1) * 64;
    }
    None
}

/// Whether a unit is one of these.
pub(super) fn has(valid: &[u64], ppn: Ppn) -> bool {
    let word = valid.get(ppn.index() / 64);
    word.is_some_and(|word| word >> (ppn.0 % 64) & 1 == 1)
}

/// Those of a checkpoint, with what has become of them.
pub(super) fn changed(
    rows: &StoredRows,
    reopened: &Reopened<'_>,
    differing: &PlacedRows,
    replayed: &Replayed,
) -> Vec<u64> {
    let known = Known::Stored(rows);
    let mut valid = UnitBits(rows.valid().to_vec());
    reopened.units().for_each(|unit| valid.clear(unit));
    let before = |object: ObjectId| match known.object(object)?.place {
        ObjectPlace::Unit(unit) => Some(unit),
        ObjectPlace::Packed(_) => None,
    };
    for &unit in differing.gone_packs.values() {
        valid.clear(unit);
    }
    let placed = &replayed.placed;
    if !rows.has_objects() {
        for (lpn, _) in differing.map.rows() {
            valid.clear(known.map_row(Lpn(lpn as u32)).as_unit());
        }
        differing
            .map
            .rows()
            .for_each(|(_, row)| valid.set(row.as_unit()));
    }
    let moved = placed.changed.iter().copied();
    let is_known = |object: &ObjectId| rows.references(*object) > 0;
    for object in moved.chain(differing.gone.iter().copied()).filter(is_known) {
        before(object)
            .into_iter()
            .for_each(|unit| valid.clear(unit));
    }
    for &object in &placed.changed {
        if let Some(row) = differing.objects.get(object.index())
            && let ObjectPlace::Unit(unit) = row.place
        {
            valid.set(unit);
        }
    }
    for pack in &placed.new_packs {
        valid.set(pack.location);
    }
    valid.0
}

/// Those of everything that was placed.
pub(super) fn all(geometry: &Geometry, plain: bool, replayed: &Replayed) -> Vec<u64> {
    let mut valid = UnitBits(vec![0u64; (geometry.units() as usize).div_ceil(64)]);
    let is_lost = |owner: ObjectId| {
        let lost = &replayed.lost;
        lost.binary_search_by_key(&owner, |lost| lost.owner).is_ok()
    };
    if plain {
        let pages = (0..).map(ObjectId).zip(&replayed.map);
        pages
            .filter(|&(lpn, _)| !is_lost(lpn))
            .for_each(|(_, row)| valid.set(row.as_unit()));
        return valid.0;
    }
    let placed = &replayed.placed;
    for pack in placed.packs.iter().flatten() {
        valid.set(pack.location);
    }
    for pack in &placed.new_packs {
        valid.set(pack.location);
    }
    let kept = replayed.history.iter().flat_map(History::objects);
    for handle in objects_of(&replayed.map).chain(kept) {
        let Some(row) = placed.objects.get(handle.index()) else {
            continue;
        };
        let base = row.base().and_then(|base| placed.objects.get(base.index()));
        for row in [Some(row), base].into_iter().flatten() {
            if let ObjectPlace::Unit(unit) = row.place {
                valid.set(unit);
            }
        }
    }
    valid.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_unit_of_a_range_is_that_of_looking_at_each(
            valid in prop::collection::vec(prop_oneof![Just(0), Just(1 << 63), any::<u64>()], 0..4),
            start in 0..300u32,
            length in 0..300u32,
        ) {
            let expected = (start..start + length).map(Ppn).find(|&unit| has(&valid, unit));
            prop_assert_eq!(first_of(&valid, start..start + length), expected);
        }
    }
}
