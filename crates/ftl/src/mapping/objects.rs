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
//! Invariants: the counts are the references there are; an object without references is on the free list
//! and maps nowhere; a base is no delta; an object that is to be hashed in idle time has one live reference.

use flashlore_content::Content;
use flashlore_content::dedup::index::Members;
use flashlore_flash::{Lpn, ObjectId, PackId, Ppn, Row, Table, Tables};

use super::counts::{Counts, DELTA, INDEXED, PACKED, ReferenceKind, Spilled, UNHASHED};

/// One stored value: 16 bytes for a tag, so that a cache line holds whole ones.
#[derive(Debug, Clone, Copy)]
struct Object<C> {
    /// Where it lies, or its packed page; of a free handle, the next free one.
    location: Ppn,
    /// References, and what the object is.
    counts: Counts,
    content: C,
    /// Of a delta its base. Of any other, which may be one, the exclusive or of the handles of the packed
    /// objects that need it: with one pin, which it is.
    link: ObjectId,
}

impl<C: Content> Row for Object<C> {
    const BYTES: usize = 12 + C::BYTES;

    fn encode(self, out: &mut [u8]) {
        self.location.encode(&mut out[..4]);
        self.counts.encode(&mut out[4..8]);
        self.link.encode(&mut out[8..12]);
        self.content.encode(&mut out[12..]);
    }

    fn decode(bytes: &[u8]) -> Self {
        Object {
            location: Ppn::decode(&bytes[..4]),
            counts: Counts::decode(&bytes[4..8]),
            link: ObjectId::decode(&bytes[8..12]),
            content: C::decode(&bytes[12..]),
        }
    }
}

/// The map and the object table, in tables of `S`.
#[derive(Debug)]
pub struct Objects<C: Content, S: Tables> {
    map: S::Of<ObjectId>,
    table: S::Of<Object<C>>,
    spilled: Spilled,
    free: ObjectId,
    live: u32,
    fingerprint_bits: u32,
}

impl<C: Content, S: Tables> Objects<C, S> {
    /// Nothing is mapped; `most` objects can exist at a time, their fingerprints are so wide.
    pub fn new(tables: &S, exported: u32, most: u32, fingerprint_bits: u32) -> Self {
        Objects {
            map: tables.filled(ObjectId::NONE, exported as usize),
            table: tables.empty(most as usize),
            spilled: Spilled::default(),
            free: ObjectId::NONE,
            live: 0,
            fingerprint_bits,
        }
    }

    /// Objects by handle, location and content, and the pages that map to them; handles in between
    /// are free. Nothing is packed yet. `kept` are the references of old versions.
    pub fn restore(
        tables: &S,
        map: &[ObjectId],
        most: u32,
        fingerprint_bits: u32,
        objects: impl Iterator<Item = (ObjectId, Ppn, C)> + Clone,
        kept: impl Iterator<Item = ObjectId>,
    ) -> Self {
        let mut restored = Objects::new(tables, map.len() as u32, most, fingerprint_bits);
        for (lpn, &object) in map.iter().enumerate() {
            restored.map.set(lpn, object);
        }
        let rows = objects.clone().map(|(handle, ..)| handle.0 + 1).max();
        let mut slots: Vec<Option<(Ppn, C)>> = vec![None; rows.unwrap_or(0) as usize];
        for (handle, ppn, content) in objects {
            slots[handle.index()] = Some((ppn, content));
        }
        let Some(filler) = slots.iter().flatten().next().map(|&(_, content)| content) else {
            return restored;
        };
        for slot in &slots {
            let (location, content) = slot.unwrap_or((Ppn::NONE, filler));
            restored.table.push(Object {
                location,
                counts: Counts::default(),
                content,
                link: ObjectId(0),
            });
        }
        for &object in map.iter().filter(|o| o.is_some()) {
            restored.add(object, ReferenceKind::Live);
        }
        kept.for_each(|object| restored.add(object, ReferenceKind::Kept));
        for handle in (0..slots.len()).rev() {
            if slots[handle].is_some() {
                restored.live += 1;
            } else {
                let handle = ObjectId(handle as u32);
                restored.place(handle, Ppn(restored.free.0));
                restored.free = handle;
            }
        }
        restored
    }

    /// The fingerprint that content has here.
    #[inline(always)]
    pub fn fingerprint(&self, content: C) -> u64 {
        content.fingerprint(self.fingerprint_bits)
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

    /// A handle for new content without references yet; it lies nowhere until placed.
    #[inline(always)]
    pub fn allocate(&mut self, content: C) -> ObjectId {
        let mut object = Object {
            location: Ppn::NONE,
            counts: Counts::default(),
            content,
            link: ObjectId(0),
        };
        self.live += 1;
        if !self.free.is_some() {
            self.table.push(object);
            return ObjectId((self.table.len() - 1) as u32);
        }
        let handle = self.free;
        let before = self.row(handle);
        self.free = ObjectId(before.location.0);
        object.counts = before.counts;
        self.table.set(handle.index(), object);
        handle
    }

    /// Gives a handle back that has no reference.
    #[inline(always)]
    pub fn free(&mut self, object: ObjectId) {
        debug_assert!(self.is_dead(object));
        let next = self.free;
        self.table.change(object.index(), |record| {
            record.counts = record.counts.of_next();
            record.location = Ppn(next.0);
        });
        self.free = object;
        self.live -= 1;
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
    fn row(&self, object: ObjectId) -> Object<C> {
        self.table.get(object.index())
    }

    #[inline(always)]
    fn add(&mut self, object: ObjectId, kind: ReferenceKind) {
        let spilled = &mut self.spilled;
        self.table.change(object.index(), |record| {
            spilled.add(object, &mut record.counts, kind);
        });
    }

    #[inline(always)]
    fn take(&mut self, object: ObjectId, kind: ReferenceKind) {
        let spilled = &mut self.spilled;
        self.table.change(object.index(), |record| {
            spilled.take(object, &mut record.counts, kind);
        });
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
        self.table
            .change(base.index(), |record| record.link.0 ^= dependent.0);
    }

    /// A packed object does not need its base any more; whether nothing refers to that now.
    #[inline(always)]
    pub fn unpin(&mut self, base: ObjectId, dependent: ObjectId) -> bool {
        self.take(base, ReferenceKind::Pins);
        self.table
            .change(base.index(), |record| record.link.0 ^= dependent.0);
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
        let record = self.row(object);
        let base = match record.counts.has(DELTA) {
            true => record.link,
            false => ObjectId::NONE,
        };
        (record.counts.has(PACKED)).then_some((PackId(record.location.0), base))
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
        let mut at = self.free;
        while at.is_some() {
            if std::mem::replace(&mut free[at.index()], true) {
                return Err(format!("free object list runs in a circle at {at}"));
            }
            at = ObjectId(self.at(at).0);
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
