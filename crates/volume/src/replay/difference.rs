//! Which objects of a checkpoint are still there at the end of a replay, and which of those have to be looked for, where not
//! all objects are gone through: it follows from the references that the checkpoint counts and from those that came and
//! went since.
//!
//! Only volumes whose objects are whole are replayed so: no object needs another.
//!
//! Invariant: an object that is not named here lies where the checkpoint says.

use std::collections::HashMap;

use flashlore_flash::{Lpn, ObjectId};

use super::reopened::Reopened;
use super::state::ReplayState;
use crate::best::Best;
use crate::load::StoredRows;

/// The references of objects that came and went.
pub(super) struct Difference<'a> {
    rows: &'a StoredRows,
    /// By object of the checkpoint, how many more references it has.
    more: HashMap<ObjectId, i64>,
}

impl<'a> Difference<'a> {
    /// What differs between the rows of a checkpoint and a state, in which these pages have changed.
    pub fn of(rows: &'a StoredRows, state: &ReplayState<'_>, changed: &[Lpn]) -> Self {
        let mut more: HashMap<ObjectId, i64> = HashMap::new();
        for &lpn in changed {
            let before = state.known.map_row(lpn).as_object();
            let after = state.old.get(lpn.index());
            let after = after.map(|row| row.as_object());
            for (object, difference) in [(Some(before), -1), (after, 1)] {
                if let Some(object) = object.filter(|object| object.is_some()) {
                    *more.entry(object).or_default() += difference;
                }
            }
        }
        for (&number, &difference) in &state.kept {
            if number.index() < state.known.handles() {
                *more.entry(number).or_default() += difference;
            }
        }
        Difference { rows, more }
    }

    /// Whether something refers to an object of the checkpoint in the end.
    pub fn stays(&self, handle: ObjectId) -> bool {
        let more = self.more.get(&handle).copied().unwrap_or(0);
        self.rows.references(handle) as i64 + more > 0
    }

    /// Objects of the checkpoint to which nothing refers any more.
    pub fn gone(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let fewer = self.more.iter().filter(|(_, more)| **more < 0);
        let objects = fewer.map(|(&object, _)| object);
        objects.filter(|&object| !self.stays(object) && self.rows.references(object) > 0)
    }

    /// The objects of the checkpoint that stay, and of which there is a copy, or that lay where something else lies now.
    pub fn moved(
        &self,
        state: &ReplayState<'_>,
        best: &Best<'_>,
        reopened: &Reopened<'_>,
    ) -> Vec<ObjectId> {
        let copied = best.units().filter(|unit| {
            let row = state.known.object(unit.object);
            let write_seq = unit.record.write_seq;
            write_seq <= state.since && row.is_some_and(|row| row.write_seq == write_seq)
        });
        let overwritten = reopened.units().filter_map(|unit| self.rows.owner(unit));
        let overwritten = overwritten.map(|owner| owner.as_object());
        let moved = copied.map(|unit| unit.object).chain(overwritten);
        moved.filter(|&object| self.stays(object)).collect()
    }

    /// The pages of a plain volume that lay where something else lies now.
    pub fn overwritten_pages(rows: &StoredRows, reopened: &Reopened<'_>) -> Vec<Lpn> {
        let owners = reopened.units().filter_map(|unit| rows.owner(unit));
        owners.map(|owner| owner.as_page()).collect()
    }
}
