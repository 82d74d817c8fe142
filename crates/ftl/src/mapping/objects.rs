//! Logical page to object to location.
//!
//! An object is one stored value. It lives while it is referenced; relocation patches its one
//! location and nothing else, so any number of logical pages may share it. A handle is reused after
//! the object's death.
//!
//! Objects are held whole, in a unit of their own, or *packed*: encoded, in a slot of a packed page. A
//! packed object may need a *base* to be decoded, which it pins; a base has none itself.
//! References are of three kinds, counted apart (`counts`): live ones of logical pages, *kept* ones of
//! old versions, and *pins*.
//!
//! Invariants: the counts are the references there are; an object without references has a free row
//! and maps nowhere; a base is no delta; an object that is to be hashed in idle time has one live reference.

mod restore;

use std::marker::PhantomData;
use std::ops::Range;

use flashlore_content::Content;
use flashlore_content::dedup::index::Members;
use flashlore_flash::{
    FreeRows, Links, Lpn, Note, ObjectId, PackId, PackSlot, Ppn, Row, Table, TableName, Tables,
};

use super::counts::{Counts, DELTA, INDEXED, PACKED, ReferenceKind, Spilled, UNHASHED};

pub use super::counts::{References, SpilledPart, most_spilled};
pub use restore::{FoundObject, FoundPack, FoundPlace, ObjectChanges};

/// One stored value: 16 bytes for a tag, so that a cache line holds whole ones. Where it is laid out in bytes these are
/// location, counts and link, 4 bytes each, note and content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Object<C, N> {
    /// Where it lies, or its packed page; of a free handle, the link of that.
    location: Ppn,
    /// References, and what the object is.
    counts: Counts,
    content: C,
    /// Of a delta its base. Of any other, which may be one, the exclusive or of the handles of the packed
    /// objects that need it: with one pin, which it is.
    link: ObjectId,
    /// What the device keeps of it.
    note: N,
}

/// Where the note lies in the bytes of an object.
const NOTE_AT: usize = 12;

impl<C: Content, N: Note> Row for Object<C, N> {
    const BYTES: usize = NOTE_AT + N::BYTES + C::BYTES;

    fn encode(self, out: &mut [u8]) {
        self.location.encode(&mut out[..4]);
        self.counts.encode(&mut out[4..8]);
        self.link.encode(&mut out[8..12]);
        self.note.encode(&mut out[NOTE_AT..][..N::BYTES]);
        self.content.encode(&mut out[NOTE_AT + N::BYTES..]);
    }

    fn decode(bytes: &[u8]) -> Self {
        Object {
            location: Ppn::decode(&bytes[..4]),
            counts: Counts::decode(&bytes[4..8]),
            link: ObjectId::decode(&bytes[8..12]),
            note: N::decode(&bytes[NOTE_AT..][..N::BYTES]),
            content: C::decode(&bytes[NOTE_AT + N::BYTES..]),
        }
    }
}

impl<C: Content, N: Note> Object<C, N> {
    /// A row of nobody.
    fn unused() -> Self {
        Self::of_byte(0)
    }

    /// Its packed page and its base, if it is packed.
    #[inline(always)]
    pub fn packed(&self) -> Option<(PackId, ObjectId)> {
        let base = match self.counts.has(DELTA) {
            true => self.link,
            false => ObjectId::NONE,
        };
        (self.counts.has(PACKED)).then_some((PackId(self.location.0), base))
    }

    /// Where it lies, or its packed page; of a free handle, the link of that.
    pub fn location(&self) -> Ppn {
        self.location
    }

    /// Whether it is an object to which this refers, or a free handle if nothing does. Of its counts so much is spilled: of
    /// live references, of those of old versions, and of pins.
    pub fn has(&self, references: &References, spilled: [u32; 3]) -> bool {
        if references.is_none() {
            let location = self.location;
            let unused = Object {
                location,
                ..Object::unused()
            };
            return *self == unused && spilled == [0; 3];
        }
        let is_linked = self.counts.has(DELTA) || self.link.0 == references.dependents;
        is_linked && self.counts.are(references, spilled)
    }

    /// Whether it may be on a device of so many units, packed pages and handles.
    pub fn is_possible(&self, units: u32, packs: u32, handles: u32) -> bool {
        let location = self.location.0;
        let lies = match self.counts.has(PACKED) {
            // It may wait in RAM.
            true => location < packs || !self.location.is_some(),
            // That of a free one is a link.
            false => location < units || self.counts.is_dead(),
        };
        lies && (!self.counts.has(DELTA) || self.link.0 < handles)
    }

    /// References that are counted here: what is spilled of them comes on top.
    pub fn held(&self) -> u32 {
        self.counts.held()
    }

    /// Its content.
    pub fn content(&self) -> C {
        self.content
    }

    /// What the device keeps of it.
    pub fn note(&self) -> N {
        self.note
    }
}

/// What the device keeps of the object with these bytes.
pub fn note_of<N: Note>(row: &[u8]) -> N {
    N::decode(&row[NOTE_AT..][..N::BYTES])
}

/// The map and the object table, in tables of `S`.
#[derive(Debug)]
pub struct Objects<C: Content, S: Tables> {
    map: S::Of<ObjectId>,
    table: S::Of<Object<C, S::Note>>,
    spilled: Spilled<S>,
    free: S::Free,
    live: u32,
    fingerprint_bits: u32,
}

/// The links of free rows: where an object would say where it lies.
struct FreeLinks<'a, C, N, T> {
    table: &'a mut T,
    row: PhantomData<(C, N)>,
}

impl<C: Content, N: Note, T: Table<Object<C, N>>> Links for FreeLinks<'_, C, N, T> {
    fn get(&self, row: usize) -> u32 {
        self.table.get(row).location.0
    }

    fn set(&mut self, row: usize, link: u32) {
        let location = Ppn(link);
        self.table.set(
            row,
            Object {
                location,
                ..Object::unused()
            },
        );
    }
}

impl<C: Content, S: Tables> Objects<C, S> {
    /// Nothing is mapped; `most` objects can exist at a time, their fingerprints are so wide.
    pub fn new(tables: &S, exported: u32, most: u32, fingerprint_bits: u32) -> Self {
        Objects {
            map: tables.filled(TableName::Map, ObjectId::NONE, exported as usize),
            table: tables.empty(TableName::Objects, most as usize),
            spilled: Spilled::new(tables),
            free: tables.free_handles(exported),
            live: 0,
            fingerprint_bits,
        }
    }

    /// The fingerprint that content has here.
    #[inline(always)]
    pub fn fingerprint(&self, content: C) -> u64 {
        content.fingerprint(self.fingerprint_bits)
    }

    /// Whether an object may hold this content, by what is known of it.
    #[inline(always)]
    pub fn may_hold(&self, object: ObjectId, content: C) -> bool {
        self.content(object)
            .may_equal(content, self.fingerprint_bits)
    }

    /// Logical pages.
    pub fn len(&self) -> u32 {
        self.map.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Objects alive.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// The object of a logical page, or [`ObjectId::NONE`].
    #[inline(always)]
    pub fn get(&self, lpn: Lpn) -> ObjectId {
        self.map.get(lpn.index())
    }

    /// The content of an object.
    #[inline(always)]
    pub fn content(&self, object: ObjectId) -> C {
        self.row(object).content
    }

    /// The location of an object.
    #[inline(always)]
    pub fn at(&self, object: ObjectId) -> Ppn {
        self.row(object).location
    }

    /// A handle for new content of a logical page, without references yet; it lies nowhere until placed.
    #[inline(always)]
    pub fn allocate(&mut self, content: C, lpn: Lpn) -> ObjectId {
        let mut object = Object {
            location: Ppn::NONE,
            counts: Counts::default(),
            content,
            link: ObjectId(0),
            note: S::Note::default(),
        };
        self.live += 1;
        let table = &self.table;
        let Some(row) = self.free.take(lpn, |row| table.get(row).location.0) else {
            self.table.push(object);
            return ObjectId((self.table.len() - 1) as u32);
        };
        object.counts = self.table.get(row).counts;
        self.table.set(row, object);
        ObjectId(row as u32)
    }

    /// Gives a handle back that has no reference.
    #[inline(always)]
    pub fn free(&mut self, object: ObjectId) {
        debug_assert!(self.is_dead(object));
        let next = self.free.give_back(object.index());
        self.table.change(object.index(), |record| {
            let counts = record.counts.of_next();
            if S::Note::ON {
                // Where tables outlive a run nothing stays of what was there.
                *record = Object::unused();
            }
            record.counts = counts;
            record.location = Ppn(next);
        });
        self.live = self.live.saturating_sub(1);
    }

    /// What the device keeps of an object.
    pub fn note(&self, object: ObjectId) -> S::Note {
        self.row(object).note
    }

    /// Changes what the device keeps of an object.
    pub fn change_note(&mut self, object: ObjectId, change: impl FnOnce(&mut S::Note)) {
        self.table
            .change(object.index(), |record| change(&mut record.note));
    }

    /// The value of an object lies in this slot of a packed page.
    #[inline(always)]
    pub fn note_slot(&mut self, object: ObjectId, slot: PackSlot, length: u16) {
        if S::Note::ON {
            self.change_note(object, |note| note.note_slot(slot, length));
        }
    }

    /// Says where new content lies.
    #[inline(always)]
    pub fn place(&mut self, object: ObjectId, ppn: Ppn) {
        self.table
            .change(object.index(), |record| record.location = ppn);
    }

    /// Maps a logical page to an object, which gains the reference; answers the one before.
    #[inline(always)]
    pub fn replace(&mut self, lpn: Lpn, object: ObjectId) -> ObjectId {
        if object.is_some() {
            self.add(object, ReferenceKind::Live);
        }
        self.map
            .change(lpn.index(), |mapped| std::mem::replace(mapped, object))
    }

    #[inline(always)]
    fn row(&self, object: ObjectId) -> Object<C, S::Note> {
        self.table.get(object.index())
    }

    #[inline(always)]
    fn add(&mut self, object: ObjectId, kind: ReferenceKind) {
        let row = object.index();
        let has_room = self.table.change(row, |record| record.counts.add(kind));
        if !has_room {
            self.spill(object, kind);
        }
    }

    // A row is changed while nobody else may look at the tables.
    #[cold]
    fn spill(&mut self, object: ObjectId, kind: ReferenceKind) {
        self.spilled.spill(object, kind);
        self.table
            .change(object.index(), |record| record.counts.add_spilled(kind));
    }

    #[inline(always)]
    fn take(&mut self, object: ObjectId, kind: ReferenceKind) {
        let row = object.index();
        let is_less = self.table.change(row, |record| {
            // Tables that outlive a run may have been written by a program that was wrong.
            let is_wrong = S::Note::ON && record.counts.is_none(kind);
            !is_wrong && record.counts.take(kind)
        });
        if is_less {
            self.take_back(object, kind);
        }
    }

    #[cold]
    fn take_back(&mut self, object: ObjectId, kind: ReferenceKind) {
        if let Some(is_last) = self.spilled.take_back(object, kind) {
            self.table.change(object.index(), |record| {
                record.counts.take_back(kind, is_last);
            });
        }
    }

    #[inline(always)]
    fn counts(&self, object: ObjectId) -> Counts {
        self.row(object).counts
    }

    #[inline(always)]
    fn count(&self, object: ObjectId, kind: ReferenceKind) -> u32 {
        self.spilled.count(object, self.counts(object), kind)
    }

    /// Whether an object is likely to die with the next live reference it loses.
    #[inline(always)]
    pub fn is_last(&self, object: ObjectId) -> bool {
        self.counts(object).is_one(ReferenceKind::Live)
    }

    /// Takes a live reference away; whether it was the last of any kind.
    #[inline(always)]
    pub fn release(&mut self, object: ObjectId) -> bool {
        self.take(object, ReferenceKind::Live);
        self.is_dead(object)
    }

    /// Whether nothing refers to an object.
    #[inline(always)]
    pub fn is_dead(&self, object: ObjectId) -> bool {
        self.counts(object).is_dead()
    }

    /// A live reference becomes that of an old version.
    #[inline(always)]
    pub fn keep_instead(&mut self, object: ObjectId) {
        self.add(object, ReferenceKind::Kept);
        self.take(object, ReferenceKind::Live);
    }

    /// An old version refers to an object that has another reference.
    pub fn keep(&mut self, object: ObjectId) {
        self.add(object, ReferenceKind::Kept);
    }

    /// An old version that refers to an object is given up; whether nothing refers to it now.
    #[inline(always)]
    pub fn give_up(&mut self, object: ObjectId) -> bool {
        self.take(object, ReferenceKind::Kept);
        self.is_dead(object)
    }

    /// Old versions that refer to an object.
    pub fn kept(&self, object: ObjectId) -> u32 {
        self.count(object, ReferenceKind::Kept)
    }

    /// Rows of the table of spilled counts that were ever used.
    pub fn spilled(&self) -> u32 {
        self.spilled.used()
    }

    /// Handles there are, free ones too.
    pub fn handles(&self) -> u32 {
        self.table.len() as u32
    }

    /// Whether old versions, and packed objects that need it, are all that refers to an object.
    #[inline(always)]
    pub fn is_history(&self, object: ObjectId) -> bool {
        let counts = self.counts(object);
        counts.is_none(ReferenceKind::Live) && !counts.is_none(ReferenceKind::Kept)
    }

    /// A packed object is to need a base, whoever it is.
    #[inline(always)]
    pub fn pin(&mut self, base: ObjectId, dependent: ObjectId) {
        self.add(base, ReferenceKind::Pins);
        self.link_to(base, dependent);
    }

    /// One more packed object needs a base, or one less.
    #[inline(always)]
    fn link_to(&mut self, base: ObjectId, dependent: ObjectId) {
        self.table
            .change(base.index(), |record| record.link.0 ^= dependent.0);
    }

    /// A packed object does not need its base any more; whether nothing refers to that now.
    #[inline(always)]
    pub fn unpin(&mut self, base: ObjectId, dependent: ObjectId) -> bool {
        self.take(base, ReferenceKind::Pins);
        self.link_to(base, dependent);
        self.is_dead(base)
    }

    /// Packed objects that need an object as base.
    pub fn pins(&self, object: ObjectId) -> u32 {
        self.count(object, ReferenceKind::Pins)
    }

    /// The packed object that needs a base, if there is exactly one and nothing else refers to the base.
    pub fn sole_dependent(&self, base: ObjectId) -> Option<ObjectId> {
        let alone = self.is_pinned_alone(base) && self.pins(base) == 1;
        alone.then(|| self.row(base).link)
    }

    /// Whether an object is packed.
    #[inline(always)]
    pub fn is_packed(&self, object: ObjectId) -> bool {
        self.counts(object).has(PACKED)
    }

    /// An object lies in a packed page from now on.
    pub fn set_packed(&mut self, object: ObjectId, pack: PackId, base: ObjectId) {
        self.table.change(object.index(), |record| {
            record.counts.mark(PACKED);
            record.location = Ppn(pack.0);
            if base.is_some() {
                record.counts.mark(DELTA);
                record.link = base;
            }
        });
    }

    /// A packed object lies in another packed page from now on.
    pub fn repack(&mut self, object: ObjectId, pack: PackId) {
        self.place(object, Ppn(pack.0));
    }

    /// A packed object has a unit of its own from now on.
    pub fn set_whole(&mut self, object: ObjectId, ppn: Ppn) {
        self.table.change(object.index(), |record| {
            if record.counts.has(DELTA) {
                record.link = ObjectId(0);
            }
            record.counts.unmark(PACKED | DELTA);
            record.location = ppn;
        });
    }

    /// The packed page and the base of an object that is packed; the base may be [`ObjectId::NONE`].
    #[inline(always)]
    pub fn packed(&self, object: ObjectId) -> Option<(PackId, ObjectId)> {
        self.row(object).packed()
    }

    /// The packed page of an object that is a delta.
    #[inline(always)]
    pub fn pack_of_delta(&self, object: ObjectId) -> Option<PackId> {
        let record = self.row(object);
        (record.counts.has(DELTA)).then_some(PackId(record.location.0))
    }

    /// Whether an object is a delta.
    #[inline(always)]
    pub fn is_delta(&self, object: ObjectId) -> bool {
        self.counts(object).has(DELTA)
    }

    /// Live references of an object.
    #[inline(always)]
    pub fn references(&self, object: ObjectId) -> u32 {
        self.count(object, ReferenceKind::Live)
    }

    /// Whether a handle names an object that is referenced.
    pub fn is_alive(&self, handle: ObjectId) -> bool {
        handle.index() < self.table.len() && !self.is_dead(handle)
    }

    /// Whether the fingerprint index names the object.
    #[inline(always)]
    pub fn is_indexed(&self, object: ObjectId) -> bool {
        self.counts(object).has(INDEXED)
    }

    /// An object that one logical page refers to and nothing else can find is to be hashed.
    pub fn leave_unhashed(&mut self, object: ObjectId) {
        self.table
            .change(object.index(), |record| record.counts.mark(UNHASHED));
    }

    /// Whether an object is to be hashed still.
    pub fn is_unhashed(&self, object: ObjectId) -> bool {
        let counts = self.counts(object);
        counts.has(UNHASHED) && !counts.has(INDEXED | PACKED) && counts.is_one(ReferenceKind::Live)
    }

    /// An object needs not be hashed any more.
    pub fn hashed(&mut self, object: ObjectId) {
        self.table
            .change(object.index(), |record| record.counts.unmark(UNHASHED));
    }

    /// Asks for the map entry of a logical page.
    #[inline(always)]
    pub fn prefetch_map(&self, lpn: Lpn) {
        self.map.prefetch(lpn.index());
    }

    /// Asks for the record of an object.
    #[inline(always)]
    pub fn prefetch_object(&self, object: ObjectId) {
        self.table.prefetch(object.index());
    }

    /// The object of a logical page that may be out of range or unmapped.
    #[inline(always)]
    pub fn object_of(&self, lpn: Lpn) -> Option<ObjectId> {
        let mapped = (lpn.index() < self.map.len()).then(|| self.get(lpn));
        mapped.filter(|o| o.is_some())
    }

    /// Recounts the references; `kept` are those of old versions. Answers the handles that are alive.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self, kept: impl Iterator<Item = ObjectId>) -> Result<Vec<ObjectId>, String> {
        let word = |handle: ObjectId| {
            let is_there = handle.index() < self.table.len();
            is_there.then(|| self.counts(handle))
        };
        self.spilled.check(word)?;
        // Kept references, pins, and what the link of a base says.
        let mut others = vec![(0, 0, 0); self.table.len()];
        for object in kept.filter(|object| object.is_some()) {
            others[object.index()].0 += 1;
        }
        let mut counted = vec![0u32; self.table.len()];
        for lpn in (0..self.len()).map(Lpn) {
            let object = self.get(lpn);
            if object.is_some() {
                *counted.get_mut(object.index()).ok_or_else(|| {
                    format!("logical page {lpn} maps to object {object}, beyond the table")
                })? += 1;
            }
        }
        let mut free = vec![false; self.table.len()];
        let link = |row| self.table.get(row).location.0;
        for row in self.free.all(self.table.len(), link)? {
            if std::mem::replace(&mut free[row], true) {
                return Err(format!("free object {row} is listed twice"));
            }
        }
        let mut alive = Vec::new();
        for (at, handle) in (0..self.handles()).map(|at| (at as usize, ObjectId(at))) {
            let references = self.references(handle);
            if references != counted[at] || free[at] != self.is_dead(handle) {
                return Err(format!(
                    "object {handle} has {references} references, {} pages map to it, free: {}",
                    counted[at], free[at]
                ));
            }
            if !free[at]
                && let Some((_, base)) = self.packed(handle)
                && base.is_some()
            {
                if !self.is_alive(base) || self.is_delta(base) {
                    return Err(format!(
                        "object {handle} needs object {base}, which is dead or a delta"
                    ));
                }
                others[base.index()].1 += 1;
                others[base.index()].2 ^= handle.0;
            }
            if !free[at] {
                alive.push(handle);
            }
        }
        for &object in &alive {
            let link = match self.is_delta(object) {
                true => 0,
                false => self.row(object).link.0,
            };
            let noted = (self.kept(object), self.pins(object), link);
            let counted = others[object.index()];
            if counted != noted {
                return Err(format!(
                    "object {object} notes kept references, pins and dependents {noted:?}, counted are \
                     {counted:?}"
                ));
            }
        }
        if alive.len() != self.live as usize {
            return Err(format!(
                "{} objects alive, {} counted",
                alive.len(),
                self.live
            ));
        }
        Ok(alive)
    }

    /// Where the content of an object lies, or its packed page; `None` if the handle names nothing alive.
    pub fn location(&self, object: ObjectId) -> Option<Ppn> {
        self.is_alive(object).then(|| self.at(object))
    }

    /// Whether packed objects are all that keeps an object alive.
    #[inline(always)]
    pub fn is_pinned_alone(&self, object: ObjectId) -> bool {
        let counts = self.counts(object);
        counts.is_none(ReferenceKind::Live)
            && counts.is_none(ReferenceKind::Kept)
            && !counts.is_none(ReferenceKind::Pins)
    }

    /// Bytes held, counting the table as far as it has been used.
    pub fn heap_bytes(&self) -> usize {
        self.map.heap_bytes() + self.table.heap_bytes() + self.spilled.heap_bytes()
    }
}

impl<C: Content, S: Tables> Members for Objects<C, S> {
    #[inline(always)]
    fn tag(&self, object: ObjectId) -> u32 {
        self.fingerprint(self.content(object)) as u32
    }

    fn each_tag(&self, objects: Range<u32>, mut each: impl FnMut(ObjectId, u32)) {
        let rows = objects.start as usize..objects.end as usize;
        self.table.each(rows, |at, row| {
            let tag = self.fingerprint(row.content) as u32;
            each(ObjectId(at as u32), tag);
        });
    }

    #[inline(always)]
    fn is_indexed(&self, object: ObjectId) -> bool {
        Objects::is_indexed(self, object)
    }

    #[inline(always)]
    fn set_indexed(&mut self, object: ObjectId, indexed: bool) {
        self.table.change(object.index(), |record| {
            record.counts.unmark(INDEXED | UNHASHED);
            if indexed {
                record.counts.mark(INDEXED);
            }
        });
    }

    #[inline(always)]
    fn uses(&self, object: ObjectId) -> u32 {
        self.count(object, ReferenceKind::Uses)
    }

    #[inline(always)]
    fn add_use(&mut self, object: ObjectId) {
        self.add(object, ReferenceKind::Uses);
    }

    #[inline(always)]
    fn drop_use(&mut self, object: ObjectId) -> bool {
        self.take(object, ReferenceKind::Uses);
        self.counts(object).is_none(ReferenceKind::Uses)
    }

    #[inline(always)]
    fn prefetch(&self, object: ObjectId) {
        self.prefetch_object(object);
    }

    fn handles(&self) -> u32 {
        Objects::handles(self)
    }
}
