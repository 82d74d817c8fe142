//! The map and the objects as a recovery finds them: written anew as a whole, or the rows of a checkpoint with what has
//! happened since.
//!
//! Invariants: those of the objects; a row that nothing changed is not touched.

use std::marker::PhantomData;

use flashlore_content::Content;
use flashlore_flash::{FreeRows, Lpn, Note, ObjectId, Ppn, Table, Tables};
use rustc_hash::FxHashSet;

use super::{Counts, DELTA, FreeLinks, INDEXED, Object, Objects, PACKED, ReferenceKind, Spilled};
use crate::content::bytes::Tallies;

/// An object as a recovery found it.
#[derive(Debug, Clone, Copy)]
pub struct FoundObject<C, N> {
    /// Its handle.
    pub handle: ObjectId,
    /// Where it lies, or its packed page.
    pub location: Ppn,
    /// If it is packed, what it needs to be decoded, or [`ObjectId::NONE`].
    pub packed: Option<ObjectId>,
    /// Its content.
    pub content: C,
    /// What the device keeps of it.
    pub note: N,
}

impl<C: Content, N: Note> FoundObject<C, N> {
    /// Its row, with these references and the marks of what it is.
    fn row(&self, mut counts: Counts) -> Object<C, N> {
        let mut link = ObjectId(0);
        counts.unmark(PACKED | DELTA);
        if let Some(base) = self.packed {
            counts.mark(PACKED);
            if base.is_some() {
                counts.mark(DELTA);
                link = base;
            }
        }
        Object {
            location: self.location,
            counts,
            content: self.content,
            link,
            note: self.note,
        }
    }
}

/// What has become of the objects of a checkpoint, none of which is packed.
///
/// A handle whose object died since may be that of another by now. Then it is in `made`, and where `map` names it, that one
/// is meant.
#[derive(Debug)]
pub struct ObjectChanges<C, N> {
    /// Logical pages, each once, and what they refer to now.
    pub map: Vec<(Lpn, ObjectId)>,
    /// Objects that the checkpoint does not have.
    pub made: Vec<FoundObject<C, N>>,
    /// Those that it has, and that lie elsewhere now or are known to be something else.
    pub moved: Vec<FoundObject<C, N>>,
    /// References of old versions to objects that the checkpoint has: more or fewer.
    pub kept: Vec<(ObjectId, i64)>,
    /// The same to those that it does not have.
    pub kept_made: Vec<(ObjectId, u32)>,
}

impl<C: Content, S: Tables> Objects<C, S> {
    /// The objects that something refers to, each once, and the pages that map to them; the other handles are free. `kept`
    /// are the references of old versions. Rows that are so already stay as they are, with their marks for the index, which
    /// may be those of an object that has left it.
    pub fn restore(
        tables: &S,
        map: &[ObjectId],
        most: u32,
        fingerprint_bits: u32,
        objects: &[FoundObject<C, S::Note>],
        kept: impl Iterator<Item = ObjectId>,
    ) -> Self {
        let mut restored = Objects::new(tables, map.len() as u32, most, fingerprint_bits);
        for (lpn, &object) in map.iter().enumerate() {
            if restored.map.get(lpn) != object {
                restored.map.set(lpn, object);
            }
        }
        let rows = objects.iter().map(|found| found.handle.index() + 1).max();
        while restored.table.len() < rows.unwrap_or(0) {
            restored.table.push(Object::unused());
        }
        // By handle, which of them it is.
        let mut number = vec![u32::MAX; restored.table.len()];
        for (at, found) in (0..).zip(objects) {
            number[found.handle.index()] = at;
        }
        let rows = restored.found_rows(map, objects, kept, &number);
        for (mut object, found) in rows.into_iter().zip(objects) {
            let row = found.handle.index();
            let before = restored.table.get(row);
            if before.counts.has(INDEXED) {
                object.counts.mark(INDEXED);
            }
            if before != object {
                restored.table.set(row, object);
            }
        }
        let free = (0..number.len()).filter(|&row| number[row] == u32::MAX);
        let free: Vec<usize> = free.collect();
        for &row in &free {
            let before = restored.table.get(row);
            let location = before.location;
            let unused = Object {
                location,
                ..Object::unused()
            };
            if before != unused {
                restored.table.set(row, unused);
            }
        }
        let rows = restored.table.len();
        let mut links = FreeLinks {
            table: &mut restored.table,
            row: PhantomData,
        };
        restored.free.restore(&free, rows, &mut links);
        restored.live = objects.len() as u32;
        restored
    }

    /// The rows of objects, with every reference counted; `number` says of a handle which of them it is.
    fn found_rows(
        &mut self,
        map: &[ObjectId],
        objects: &[FoundObject<C, S::Note>],
        kept: impl Iterator<Item = ObjectId>,
        number: &[u32],
    ) -> Vec<Object<C, S::Note>> {
        let row = |found: &FoundObject<C, S::Note>| found.row(Counts::default());
        let mut rows: Vec<_> = objects.iter().map(row).collect();
        let mut add = |object: ObjectId, kind: ReferenceKind, dependent: u32| {
            let at = number.get(object.index()).map(|&at| at as usize);
            if let Some(row) = at.and_then(|at| rows.get_mut(at)) {
                self.spilled.add(object, &mut row.counts, kind);
                row.link.0 ^= dependent;
            }
        };
        for &object in map.iter().filter(|o| o.is_some()) {
            add(object, ReferenceKind::Live, 0);
        }
        kept.filter(|o| o.is_some())
            .for_each(|object| add(object, ReferenceKind::Kept, 0));
        for found in objects {
            if let Some(base) = found.packed.filter(|base| base.is_some()) {
                add(base, ReferenceKind::Pins, found.handle.0);
            }
        }
        rows
    }

    /// The rows of a checkpoint, of which so much was counted.
    pub fn stored(
        tables: &S,
        exported: u32,
        most: u32,
        fingerprint_bits: u32,
        tallies: &Tallies,
    ) -> Self {
        Objects {
            spilled: Spilled::stored(tables, tallies.spilled),
            live: tallies.stored,
            ..Objects::new(tables, exported, most, fingerprint_bits)
        }
    }

    /// The same once what has happened since is brought in. Answers how many objects logical pages refer to, of which
    /// there were so many.
    pub fn apply(&mut self, changes: &ObjectChanges<C, S::Note>, referenced: u32) -> u32 {
        let mut applying = Applying {
            referenced,
            dead: FxHashSet::default(),
            objects: self,
        };
        let made: FxHashSet<ObjectId> = changes.made.iter().map(|found| found.handle).collect();
        let is_known = |object: &ObjectId| object.is_some() && !made.contains(object);
        // What moves from one page to another does not die between.
        for (_, object) in changes.map.iter().filter(|(_, object)| is_known(object)) {
            applying.add_live(*object);
        }
        for &(object, more) in &changes.kept {
            (0..more).for_each(|_| applying.objects.add(object, ReferenceKind::Kept));
        }
        for &(lpn, _) in &changes.map {
            let before = applying.objects.map.get(lpn.index());
            if before.is_some() {
                applying.take(before, ReferenceKind::Live);
            }
        }
        for &(object, more) in &changes.kept {
            (more..0).for_each(|_| applying.take(object, ReferenceKind::Kept));
        }
        applying.bury();
        applying.objects.bring_in(&changes.made, &changes.moved);
        for &(lpn, object) in &changes.map {
            if object.is_some() && !is_known(&object) {
                applying.add_live(object);
            }
            applying.objects.map.set(lpn.index(), object);
        }
        for &(object, more) in &changes.kept_made {
            (0..more).for_each(|_| applying.objects.add(object, ReferenceKind::Kept));
        }
        applying.referenced
    }

    /// Gives new objects their handles, which are free, and rows; and moved ones their rows, with the references that they
    /// have.
    fn bring_in(&mut self, made: &[FoundObject<C, S::Note>], moved: &[FoundObject<C, S::Note>]) {
        let mut handles: Vec<usize> = made.iter().map(|found| found.handle.index()).collect();
        handles.sort_unstable();
        let mut links = FreeLinks {
            table: &mut self.table,
            row: PhantomData,
        };
        self.free.claim(&handles, &mut links);
        self.live += made.len() as u32;
        for found in made {
            self.table
                .set(found.handle.index(), found.row(Counts::default()));
        }
        for found in moved {
            let row = found.handle.index();
            let Object { counts, link, .. } = self.table.get(row);
            let object = Object {
                link,
                ..found.row(counts)
            };
            self.table.set(row, object);
        }
    }
}

/// The objects while references change.
struct Applying<'a, C: Content, S: Tables> {
    objects: &'a mut Objects<C, S>,
    /// Objects to which logical pages refer.
    referenced: u32,
    /// Objects that nothing referred to at some time.
    dead: FxHashSet<ObjectId>,
}

impl<C: Content, S: Tables> Applying<'_, C, S> {
    fn add_live(&mut self, object: ObjectId) {
        let is_first = self.objects.counts(object).is_none(ReferenceKind::Live);
        self.referenced += u32::from(is_first);
        self.objects.add(object, ReferenceKind::Live);
    }

    fn take(&mut self, object: ObjectId, kind: ReferenceKind) {
        if self.objects.counts(object).is_none(kind) {
            // The tables are wrong; whoever checks them says so.
            return;
        }
        self.objects.take(object, kind);
        let counts = self.objects.counts(object);
        let is_last = kind == ReferenceKind::Live && counts.is_none(kind);
        self.referenced = self.referenced.saturating_sub(u32::from(is_last));
        if counts.is_dead() {
            self.dead.insert(object);
        }
    }

    /// Gives back the handles of what nothing refers to.
    fn bury(&mut self) {
        let mut dead: Vec<ObjectId> = self.dead.drain().collect();
        dead.sort_unstable();
        for object in dead {
            if self.objects.is_dead(object) {
                self.objects.free(object);
            }
        }
    }
}
