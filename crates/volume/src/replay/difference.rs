//! Which objects of a checkpoint are still there at the end of a replay, and which of those have to be looked for, where not
//! all objects are gone through: it follows from the references that the checkpoint counts and from those that came and
//! went since.
//!
//! An object that is needed as base has a reference of each delta from it. So an object that goes takes a reference from its
//! base, as does one that was materialized since; one that was made since gives its base one.
//!
//! Invariant: an object that is not named here lies where the checkpoint says, and a packed page that is not named here holds
//! something still.

use flashlore_flash::{Lpn, ObjectId, Owned, PackId, Ppn};
use flashlore_ftl::mapping::packs::slot_bytes;
use rustc_hash::{FxHashMap, FxHashSet};

use super::reopened::Reopened;
use super::state::ReplayState;
use crate::error::VolumeError;
use crate::format::ObjectRow;
use crate::load::StoredRows;
use crate::place::{Copies, Name};

/// The references of objects that came and went.
pub(super) struct Difference<'a> {
    rows: &'a StoredRows,
    /// How many references objects of the checkpoint have left whose references came or went.
    left: FxHashMap<ObjectId, i64>,
    /// Objects that have none left.
    dead: FxHashSet<ObjectId>,
    /// What an object that stays is a delta from now, where it was one from something else.
    bases: FxHashMap<ObjectId, Option<ObjectId>>,
    /// Objects of the checkpoint of which there is a copy, or that lay where something else lies now.
    moved: FxHashSet<ObjectId>,
}

impl<'a> Difference<'a> {
    /// What differs between the rows of a checkpoint and a state, in which these pages have changed.
    ///
    /// # Errors
    /// The copy of an object that stays names a base that does not exist.
    pub fn of(
        rows: &'a StoredRows,
        state: &ReplayState<'_>,
        changed: &[Lpn],
        copies: &Copies<'_>,
    ) -> Result<Self, VolumeError> {
        let mut difference = Difference {
            rows,
            left: FxHashMap::default(),
            dead: FxHashSet::default(),
            bases: FxHashMap::default(),
            moved: FxHashSet::default(),
        };
        difference.count_changes(state, changed);
        difference.find_copied(state, copies);
        if copies.encodes {
            difference.count_bases(state, copies)?;
        }
        let fewer = difference.left.iter().filter(|(_, left)| **left <= 0);
        let fewer: Vec<ObjectId> = fewer.map(|(&object, _)| object).collect();
        fewer.into_iter().for_each(|object| difference.die(object));
        difference.find_overwritten(copies.reopened);
        Ok(difference)
    }

    /// A reference to an object of the checkpoint comes, or goes.
    fn count(&mut self, object: ObjectId, more: i64) -> i64 {
        let rows = self.rows;
        let left = self.left.entry(object);
        let left = left.or_insert_with(|| rows.references(object) as i64);
        *left += more;
        *left
    }

    /// References of logical pages, and of old versions.
    fn count_changes(&mut self, state: &ReplayState<'_>, changed: &[Lpn]) {
        for &lpn in changed {
            let before = state.known.map_row(lpn).as_object();
            let after = state.old.get(lpn.index());
            let after = after.map(|row| row.as_object());
            for (object, more) in [(Some(before), -1), (after, 1)] {
                if let Some(object) = object.filter(|object| object.is_some()) {
                    self.count(object, more);
                }
            }
        }
        for (&number, &more) in &state.kept {
            if number.index() < state.known.handles() {
                self.count(number, more);
            }
        }
    }

    /// The objects of the checkpoint of which a copy was made since.
    fn find_copied(&mut self, state: &ReplayState<'_>, copies: &Copies<'_>) {
        for unit in copies.best.units() {
            let write_seq = unit.record.write_seq;
            let is_copy = || {
                let row = self.rows.object(unit.object);
                row.is_some_and(|row| row.write_seq == write_seq)
            };
            if write_seq <= state.since && is_copy() {
                self.moved.insert(unit.object);
            }
        }
    }

    /// References of deltas that were made since, and of those that have a copy, which may need another base, or none.
    fn count_bases(
        &mut self,
        state: &ReplayState<'_>,
        copies: &Copies<'_>,
    ) -> Result<(), VolumeError> {
        let writes: FxHashSet<u64> = state.write_seqs().collect();
        for write_seq in writes {
            if let Some(Name::Old(base)) = copies.needed_base(Name::New(write_seq))? {
                self.count(base, 1);
            }
        }
        let copied: Vec<ObjectId> = self.moved().collect();
        for object in copied {
            let before = self.row(object).base();
            let now = match copies.needed_base(Name::Old(object))? {
                Some(Name::Old(base)) => Some(base),
                _ => None,
            };
            if now != before {
                for (base, more) in [(before, -1), (now, 1)] {
                    if let Some(base) = base {
                        self.count(base, more);
                    }
                }
                self.bases.insert(object, now);
            }
        }
        Ok(())
    }

    /// Objects that lay where something else lies now. Those of a packed page that have no copy are lost, and need no base any
    /// more; one that had a unit of its own needed none.
    fn find_overwritten(&mut self, reopened: &Reopened<'_>) {
        let mut packs = FxHashMap::default();
        for unit in reopened.units() {
            match self.rows.owner(unit).map(|owner| owner.owned()) {
                Some(Owned::Value(object)) => _ = self.moved.insert(object),
                Some(Owned::Pack(pack)) => _ = packs.insert(pack, self.named_bytes(pack)),
                Some(_) | None => {}
            }
        }
        for object in self.moved.union(&self.dead) {
            let row = self.row(*object);
            if let Some(bytes) = row.pack().and_then(|pack| packs.get_mut(&pack)) {
                *bytes -= bytes_of_slot(&row);
            }
        }
        // Something in them has neither gone nor a copy.
        packs.retain(|_, bytes| *bytes != 0);
        if packs.is_empty() {
            return;
        }
        for object in self.rows.packed_in(|pack| packs.contains_key(&pack)) {
            if self.stays(object) && self.moved.insert(object) {
                self.release_base(object);
            }
        }
    }

    fn named_bytes(&self, pack: PackId) -> i64 {
        let pack = self.rows.pack(pack);
        pack.map_or(0, |pack| i64::from(pack.counted().1))
    }

    fn row(&self, object: ObjectId) -> ObjectRow {
        self.rows.object(object).unwrap_or(ObjectRow::NONE)
    }

    /// Nothing refers to an object any more.
    fn die(&mut self, object: ObjectId) {
        if self.rows.references(object) > 0 && self.dead.insert(object) {
            self.release_base(object);
        }
    }

    /// An object is not a delta any more, if it was one.
    fn release_base(&mut self, object: ObjectId) {
        let base = match self.bases.get(&object) {
            Some(&base) => base,
            None => self.row(object).base(),
        };
        if let Some(base) = base
            && self.count(base, -1) <= 0
        {
            self.die(base);
        }
    }

    /// Whether something refers to an object of the checkpoint in the end.
    pub fn stays(&self, handle: ObjectId) -> bool {
        match self.left.get(&handle) {
            Some(&left) => left > 0,
            None => self.rows.references(handle) > 0,
        }
    }

    /// Objects of the checkpoint to which nothing refers any more.
    pub fn gone(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.dead.iter().copied()
    }

    /// The objects of the checkpoint that stay, and of which there is a copy, or that lay where something else lies now.
    pub fn moved(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let moved = self.moved.iter().copied();
        moved.filter(|&object| self.stays(object))
    }

    /// Packed pages of the checkpoint in which nothing is left, and where they lay, once these objects lie elsewhere.
    pub fn gone_packs(&self, elsewhere: &[ObjectId]) -> FxHashMap<PackId, Ppn> {
        let mut left: FxHashMap<PackId, i64> = FxHashMap::default();
        let elsewhere = elsewhere.iter().copied().chain(self.gone());
        for object in elsewhere.collect::<FxHashSet<_>>() {
            let row = self.row(object);
            if let Some(pack) = row.pack() {
                let left = left.entry(pack);
                *left.or_insert_with(|| self.named_bytes(pack)) -= bytes_of_slot(&row);
            }
        }
        let empty = left.into_iter().filter(|(_, left)| *left == 0);
        let empty = empty.filter_map(|(pack, _)| {
            let location = self.rows.pack(pack)?.on_flash()?.location;
            Some((pack, location))
        });
        empty.collect()
    }

    /// The pages of a plain volume that lay where something else lies now.
    pub fn overwritten_pages(rows: &StoredRows, reopened: &Reopened<'_>) -> Vec<Lpn> {
        let owners = reopened.units().filter_map(|unit| rows.owner(unit));
        owners.map(|owner| owner.as_page()).collect()
    }
}

/// What the slot of a packed object takes.
fn bytes_of_slot(row: &ObjectRow) -> i64 {
    row.packed()
        .map_or(0, |packed| slot_bytes(packed.length))
        .into()
}
