//! The map and the objects as a recovery finds them: written anew as a whole, or the rows of a checkpoint with what has
//! happened since.
//!
//! Invariants: those of the objects; a row that nothing changed is not touched.

use std::marker::PhantomData;

use flashlore_content::Content;
use flashlore_flash::{FreeRows, Lpn, Note, ObjectId, PackId, Ppn, Table, Tables};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Counts, DELTA, FreeLinks, INDEXED, Object, Objects, PACKED, ReferenceKind, Spilled};
use crate::mapping::packs::{NewPack, Packs};
use crate::mapping::tallies::Tallies;

/// An object as a recovery found it.
#[derive(Debug, Clone, Copy)]
pub struct FoundObject<C, N> {
    /// Its handle.
    pub handle: ObjectId,
    /// Where it lies.
    pub place: FoundPlace,
    /// Its content.
    pub content: C,
    /// What the device keeps of it.
    pub note: N,
}

/// Where a recovery found an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundPlace {
    /// In a unit of its own.
    Unit(Ppn),
    /// Encoded.
    Packed {
        /// Its packed page.
        pack: FoundPack,
        /// What it needs to be decoded, or [`ObjectId::NONE`].
        base: ObjectId,
    },
}

/// Which packed page a recovery means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundPack {
    /// The one with this number.
    Numbered(PackId),
    /// One that has no number yet: which of those that were found.
    New(u32),
    /// None: the value waits in RAM.
    Waiting,
}

impl FoundPack {
    /// Its number, if those that were found have these.
    fn number(self, numbers: &[PackId]) -> PackId {
        match self {
            FoundPack::Numbered(pack) => pack,
            FoundPack::New(at) => numbers.get(at as usize).copied().unwrap_or(PackId::NONE),
            FoundPack::Waiting => PackId::NONE,
        }
    }
}

impl<C: Content, N: Note> FoundObject<C, N> {
    /// What it needs to be decoded, if it is a delta.
    pub fn base(&self) -> Option<ObjectId> {
        match self.place {
            FoundPlace::Packed { base, .. } => Some(base).filter(|base| base.is_some()),
            FoundPlace::Unit(_) => None,
        }
    }

    /// Its packed page, if it is packed.
    pub fn pack(&self) -> Option<FoundPack> {
        match self.place {
            FoundPlace::Packed { pack, .. } => Some(pack),
            FoundPlace::Unit(_) => None,
        }
    }

    /// Its row, with these references and the marks of what it is, and of an object that is no delta this link; packed pages
    /// that were found have these numbers.
    fn row(&self, mut counts: Counts, mut link: ObjectId, numbers: &[PackId]) -> Object<C, N> {
        counts.unmark(PACKED | DELTA);
        let location = match self.place {
            FoundPlace::Unit(unit) => unit,
            FoundPlace::Packed { pack, .. } => {
                counts.mark(PACKED);
                Ppn(pack.number(numbers).0)
            }
        };
        if let Some(base) = self.base() {
            counts.mark(DELTA);
            link = base;
        }
        Object {
            location,
            counts,
            content: self.content,
            link,
            note: self.note,
        }
    }
}

/// What has become of the objects of a checkpoint.
///
/// A handle whose object died since may be that of another by now. Then it is in `made`, and where `map` names it, or a
/// base, that one is meant.
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
    /// Packed pages that the checkpoint does not have: where they lie, and the bytes of all their slots.
    pub packs: Vec<NewPack>,
}

impl<C, N> ObjectChanges<C, N> {
    /// The objects that are new, and those that moved.
    fn all(&self) -> impl Iterator<Item = &FoundObject<C, N>> {
        self.made.iter().chain(&self.moved)
    }
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
        let row = |found: &FoundObject<C, S::Note>| found.row(Counts::default(), ObjectId(0), &[]);
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
            if let Some(base) = found.base() {
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

    /// The same, and the packed pages, once what has happened since is brought in. Answers what is counted then, of what was
    /// counted in the checkpoint, and the numbers of the packed pages that were found.
    pub fn apply<E: Clone>(
        &mut self,
        packs: &mut Packs<E, S>,
        changes: &ObjectChanges<C, S::Note>,
        tallies: &Tallies,
    ) -> (Tallies, Vec<PackId>) {
        let made = changes.made.iter().map(|found| found.handle);
        let mut applying = Applying {
            objects: self,
            packs,
            made: made.collect(),
            before: FxHashMap::default(),
            dead: Vec::new(),
            packed: i64::from(tallies.packed),
        };
        applying.add_to_known(changes);
        applying.take_from_known(changes);
        applying.bury();
        let numbers = applying.packs.number_found(&changes.packs);
        applying.bring_in(changes, &numbers);
        applying.add_to_made(changes);
        applying.count_slots(changes, &numbers);
        (applying.tallies(tallies), numbers)
    }
}

/// Objects and packed pages while references change.
struct Applying<'a, C: Content, S: Tables, E> {
    objects: &'a mut Objects<C, S>,
    packs: &'a mut Packs<E, S>,
    /// Handles of objects that the checkpoint does not have.
    made: FxHashSet<ObjectId>,
    /// What the objects of the checkpoint were before anything of them changed.
    before: FxHashMap<ObjectId, Standing>,
    /// Objects that nothing referred to at some time.
    dead: Vec<ObjectId>,
    /// Objects that are packed.
    packed: i64,
}

/// What keeps an object alive, and where it lies.
#[derive(Debug, Clone, Copy)]
struct Standing {
    /// Whether logical pages refer to it.
    is_live: bool,
    /// Whether deltas alone need it.
    is_pinned_alone: bool,
    /// The packed page that it is in.
    pack: Option<PackId>,
}

impl<C: Content, S: Tables, E: Clone> Applying<'_, C, S, E> {
    /// Whether a name means an object of the checkpoint.
    fn is_known(&self, object: ObjectId) -> bool {
        object.is_some() && !self.made.contains(&object)
    }

    /// Notes what an object of the checkpoint is before it changes.
    fn touch(&mut self, object: ObjectId) {
        let objects = &self.objects;
        self.before.entry(object).or_insert_with(|| Standing {
            is_live: objects.references(object) > 0,
            is_pinned_alone: objects.is_pinned_alone(object),
            pack: objects.packed(object).map(|(pack, _)| pack),
        });
    }

    /// What moves from one reference to another does not die between: all new ones come first.
    fn add_to_known(&mut self, changes: &ObjectChanges<C, S::Note>) {
        for &(_, object) in &changes.map {
            self.add_if_known(object, ReferenceKind::Live);
        }
        for &(object, more) in &changes.kept {
            (0..more).for_each(|_| self.add_if_known(object, ReferenceKind::Kept));
        }
        for found in changes.all() {
            if let Some(base) = found.base() {
                self.add_if_known(base, ReferenceKind::Pins);
            }
        }
    }

    fn add_if_known(&mut self, object: ObjectId, kind: ReferenceKind) {
        if self.is_known(object) {
            self.touch(object);
            self.objects.add(object, kind);
        }
    }

    fn take_from_known(&mut self, changes: &ObjectChanges<C, S::Note>) {
        for &(lpn, _) in &changes.map {
            let before = self.objects.map.get(lpn.index());
            if before.is_some() {
                self.take(before, ReferenceKind::Live);
            }
        }
        for &(object, more) in &changes.kept {
            (more..0).for_each(|_| self.take(object, ReferenceKind::Kept));
        }
        for found in &changes.moved {
            self.touch(found.handle);
            self.leave(found.handle);
        }
    }

    fn take(&mut self, object: ObjectId, kind: ReferenceKind) {
        self.touch(object);
        if self.objects.counts(object).is_none(kind) {
            // The tables are wrong; whoever checks them says so.
            return;
        }
        self.objects.take(object, kind);
        if self.objects.is_dead(object) {
            self.dead.push(object);
        }
    }

    /// An object leaves its packed page and its base, if it has them.
    fn leave(&mut self, object: ObjectId) {
        let Some((pack, base)) = self.objects.packed(object) else {
            return;
        };
        let was_live = self
            .before
            .get(&object)
            .is_some_and(|before| before.is_live);
        let length = self
            .objects
            .note(object)
            .slot()
            .map_or(0, |(_, length)| length);
        self.packs.leave(pack, length, was_live && base.is_some());
        self.packed -= 1;
        if base.is_some() {
            self.take(base, ReferenceKind::Pins);
            self.objects.link_to(base, object);
        }
    }

    /// Gives back the handles of what nothing refers to.
    fn bury(&mut self) {
        let mut buried = FxHashSet::default();
        while let Some(object) = self.dead.pop() {
            if self.objects.is_dead(object) && buried.insert(object) {
                self.leave(object);
            }
        }
        let mut buried: Vec<ObjectId> = buried.into_iter().collect();
        buried.sort_unstable();
        buried
            .into_iter()
            .for_each(|object| self.objects.free(object));
    }

    /// Gives new objects their handles, which are free, and rows; and moved ones their rows, with the references that they
    /// have.
    fn bring_in(&mut self, changes: &ObjectChanges<C, S::Note>, numbers: &[PackId]) {
        let Objects {
            table, free, live, ..
        } = &mut *self.objects;
        let mut handles: Vec<usize> = changes.made.iter().map(|m| m.handle.index()).collect();
        handles.sort_unstable();
        let mut links = FreeLinks {
            table,
            row: PhantomData,
        };
        free.claim(&handles, &mut links);
        *live += changes.made.len() as u32;
        for found in &changes.made {
            let row = found.row(Counts::default(), ObjectId(0), numbers);
            table.set(found.handle.index(), row);
        }
        for found in &changes.moved {
            let row = found.handle.index();
            let Object { counts, link, .. } = table.get(row);
            let link = match counts.has(DELTA) {
                true => ObjectId(0),
                false => link,
            };
            table.set(row, found.row(counts, link, numbers));
        }
    }

    /// New objects get their references, and bases know who needs them.
    fn add_to_made(&mut self, changes: &ObjectChanges<C, S::Note>) {
        for &(lpn, object) in &changes.map {
            if object.is_some() && !self.is_known(object) {
                self.objects.add(object, ReferenceKind::Live);
            }
            self.objects.map.set(lpn.index(), object);
        }
        for &(object, more) in &changes.kept_made {
            (0..more).for_each(|_| self.objects.add(object, ReferenceKind::Kept));
        }
        for found in changes.all() {
            let Some(base) = found.base() else {
                continue;
            };
            if !self.is_known(base) {
                self.objects.add(base, ReferenceKind::Pins);
            }
            self.objects.link_to(base, found.handle);
        }
    }

    /// Packed pages have the slots of what came into them, and of what stays in them as many live ones as there are.
    fn count_slots(&mut self, changes: &ObjectChanges<C, S::Note>, numbers: &[PackId]) {
        for found in changes.all() {
            let Some(pack) = found.pack() else {
                continue;
            };
            self.packed += 1;
            let length = found.note.slot().map_or(0, |(_, length)| length);
            let is_live = found.base().is_some() && self.objects.references(found.handle) > 0;
            let pack = pack.number(numbers);
            if pack != PackId::NONE {
                self.packs.join(pack, length, is_live);
            }
        }
        let moved: FxHashSet<ObjectId> = changes.moved.iter().map(|found| found.handle).collect();
        for (&object, before) in &self.before {
            let stays = self.objects.is_alive(object) && !moved.contains(&object);
            let Some(pack) = before
                .pack
                .filter(|_| stays && !self.made.contains(&object))
            else {
                continue;
            };
            let is_live = self.objects.references(object) > 0;
            match self.objects.is_delta(object) {
                true if is_live && !before.is_live => self.packs.gain_live(pack),
                true if before.is_live && !is_live => self.packs.lose_live(pack),
                _ => {}
            }
        }
    }

    /// What is counted now, of what was counted in the checkpoint.
    fn tallies(&self, before: &Tallies) -> Tallies {
        let (mut referenced, mut pinned) = (i64::from(before.referenced), i64::from(before.pinned));
        for standing in self.before.values() {
            referenced -= i64::from(standing.is_live);
            pinned -= i64::from(standing.is_pinned_alone);
        }
        let known = self
            .before
            .keys()
            .filter(|object| !self.made.contains(object));
        for &object in known.chain(&self.made) {
            referenced += i64::from(self.objects.references(object) > 0);
            pinned += i64::from(self.objects.is_pinned_alone(object));
        }
        let count = |count: i64| u32::try_from(count).unwrap_or(0);
        Tallies {
            stored: self.objects.live(),
            referenced: count(referenced),
            packed: count(self.packed),
            pinned: count(pinned),
            spilled: self.objects.spilled(),
            packs: self.packs.tallies(),
        }
    }
}
