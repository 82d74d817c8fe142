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
//! and maps nowhere; a base is no difference; an object that is to be hashed in idle time has one live reference.

use flashlore_content::Content;
use flashlore_content::dedup::index::Members;
use flashlore_flash::Ppn;
use flashlore_flash::hints::{on_large_pages, prefetch};

use super::counts::{Counts, DIFFERENCE, INDEXED, Kind, PACKED, Spilled, UNHASHED};

/// No object.
pub const NO_OBJECT: u32 = u32::MAX;

/// One stored value: 16 bytes for a tag, so that a cache line holds whole ones.
#[derive(Debug, Clone, Copy)]
struct Object<C> {
    /// Where it lies, or its packed page; of a free handle, the next free one.
    location: Ppn,
    /// References, and what the object is.
    counts: Counts,
    content: C,
    /// Of a difference its base. Of any other, which may be one, the exclusive or of the handles of the packed
    /// objects that need it: with one pin, which it is.
    link: u32,
}

/// The map and the object table.
#[derive(Debug, Clone)]
pub struct Objects<C> {
    map: Vec<u32>,
    table: Vec<Object<C>>,
    spilled: Spilled,
    free: u32,
    live: u32,
    fingerprint_bits: u32,
}

impl<C: Content> Objects<C> {
    /// Nothing is mapped; `most` objects can exist at a time, their fingerprints are so wide.
    pub fn new(exported: u32, most: u32, fingerprint_bits: u32) -> Self {
        let mut map = on_large_pages(Vec::with_capacity(exported as usize));
        map.resize(exported as usize, NO_OBJECT);
        Objects {
            map,
            table: on_large_pages(Vec::with_capacity(most as usize)),
            spilled: Spilled::default(),
            free: NO_OBJECT,
            live: 0,
            fingerprint_bits,
        }
    }

    /// Objects by handle, location and content, and the pages that map to them; handles in between
    /// are free. Nothing is packed yet. `kept` are the references of old versions.
    pub fn restore(
        map: &[u32],
        most: u32,
        fingerprint_bits: u32,
        objects: impl Iterator<Item = (u32, Ppn, C)> + Clone,
        kept: impl Iterator<Item = u32>,
    ) -> Self {
        let mut restored = Objects::new(map.len() as u32, most, fingerprint_bits);
        restored.map.copy_from_slice(map);
        let rows = objects.clone().map(|(handle, ..)| handle + 1).max();
        let mut slots: Vec<Option<(Ppn, C)>> = vec![None; rows.unwrap_or(0) as usize];
        for (handle, ppn, content) in objects {
            slots[handle as usize] = Some((ppn, content));
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
                link: 0,
            });
        }
        for &object in map.iter().filter(|&&o| o != NO_OBJECT) {
            restored.add(object, Kind::Live);
        }
        kept.for_each(|object| restored.add(object, Kind::Kept));
        for handle in (0..slots.len()).rev() {
            if slots[handle].is_some() {
                restored.live += 1;
            } else {
                restored.table[handle].location = Ppn(restored.free);
                restored.free = handle as u32;
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

    /// The object of a logical page, or [`NO_OBJECT`].
    #[inline(always)]
    pub fn get(&self, lpn: u32) -> u32 {
        self.map[lpn as usize]
    }

    /// The content of an object.
    #[inline(always)]
    pub fn content(&self, object: u32) -> C {
        self.table[object as usize].content
    }

    /// The location of an object.
    #[inline(always)]
    pub fn at(&self, object: u32) -> Ppn {
        self.table[object as usize].location
    }

    /// A handle for new content without references yet; it lies nowhere until placed.
    #[inline(always)]
    pub fn allocate(&mut self, content: C) -> u32 {
        let mut object = Object {
            location: Ppn::NONE,
            counts: Counts::default(),
            content,
            link: 0,
        };
        self.live += 1;
        if self.free == NO_OBJECT {
            self.table.push(object);
            return (self.table.len() - 1) as u32;
        }
        let handle = self.free;
        let record = &mut self.table[handle as usize];
        self.free = record.location.0;
        object.counts = record.counts;
        *record = object;
        handle
    }

    /// Gives a handle back that has no reference.
    #[inline(always)]
    pub fn free(&mut self, object: u32) {
        debug_assert!(self.is_dead(object));
        let record = &mut self.table[object as usize];
        record.counts = record.counts.of_next();
        record.location = Ppn(self.free);
        self.free = object;
        self.live -= 1;
    }

    /// Says where new content lies.
    #[inline(always)]
    pub fn place(&mut self, object: u32, ppn: Ppn) {
        self.table[object as usize].location = ppn;
    }

    /// Maps a logical page to an object, which gains the reference; answers the one before.
    #[inline(always)]
    pub fn replace(&mut self, lpn: u32, object: u32) -> u32 {
        if object != NO_OBJECT {
            self.add(object, Kind::Live);
        }
        std::mem::replace(&mut self.map[lpn as usize], object)
    }

    #[inline(always)]
    fn add(&mut self, object: u32, kind: Kind) {
        let counts = &mut self.table[object as usize].counts;
        self.spilled.add(object, counts, kind);
    }

    #[inline(always)]
    fn take(&mut self, object: u32, kind: Kind) {
        let counts = &mut self.table[object as usize].counts;
        self.spilled.take(object, counts, kind);
    }

    #[inline(always)]
    fn counts(&self, object: u32) -> Counts {
        self.table[object as usize].counts
    }

    #[inline(always)]
    fn count(&self, object: u32, kind: Kind) -> u32 {
        self.spilled.count(object, self.counts(object), kind)
    }

    /// Whether an object is likely to die with the next live reference it loses.
    #[inline(always)]
    pub fn is_last(&self, object: u32) -> bool {
        self.counts(object).is_one(Kind::Live)
    }

    /// Takes a live reference away; whether it was the last of any kind.
    #[inline(always)]
    pub fn release(&mut self, object: u32) -> bool {
        self.take(object, Kind::Live);
        self.is_dead(object)
    }

    /// Whether nothing refers to an object.
    #[inline(always)]
    pub fn is_dead(&self, object: u32) -> bool {
        self.counts(object).is_dead()
    }

    /// A live reference becomes that of an old version.
    #[inline(always)]
    pub fn keep_instead(&mut self, object: u32) {
        self.add(object, Kind::Kept);
        self.take(object, Kind::Live);
    }

    /// An old version refers to an object that has another reference.
    pub fn keep(&mut self, object: u32) {
        self.add(object, Kind::Kept);
    }

    /// An old version that refers to an object is given up; whether nothing refers to it now.
    #[inline(always)]
    pub fn give_up(&mut self, object: u32) -> bool {
        self.take(object, Kind::Kept);
        self.is_dead(object)
    }

    /// Old versions that refer to an object.
    pub fn kept(&self, object: u32) -> u32 {
        self.count(object, Kind::Kept)
    }

    /// Handles there are, free ones too.
    pub fn handles(&self) -> u32 {
        self.table.len() as u32
    }

    /// Whether old versions, and packed objects that need it, are all that refers to an object.
    #[inline(always)]
    pub fn is_history(&self, object: u32) -> bool {
        let counts = self.counts(object);
        counts.is_none(Kind::Live) && !counts.is_none(Kind::Kept)
    }

    /// A packed object is to need a base, whoever it is.
    #[inline(always)]
    pub fn pin(&mut self, base: u32, dependent: u32) {
        self.add(base, Kind::Pins);
        self.table[base as usize].link ^= dependent;
    }

    /// A packed object does not need its base any more; whether nothing refers to that now.
    #[inline(always)]
    pub fn unpin(&mut self, base: u32, dependent: u32) -> bool {
        self.take(base, Kind::Pins);
        self.table[base as usize].link ^= dependent;
        self.is_dead(base)
    }

    /// Packed objects that need an object as base.
    pub fn pins(&self, object: u32) -> u32 {
        self.count(object, Kind::Pins)
    }

    /// The packed object that needs a base, if there is exactly one and nothing else refers to the base.
    pub fn sole_dependent(&self, base: u32) -> Option<u32> {
        let alone = self.is_pinned_alone(base) && self.pins(base) == 1;
        alone.then(|| self.table[base as usize].link)
    }

    /// Whether an object is packed.
    #[inline(always)]
    pub fn is_packed(&self, object: u32) -> bool {
        self.counts(object).has(PACKED)
    }

    /// An object lies in a packed page from now on.
    pub fn set_packed(&mut self, object: u32, pack: u32, base: u32) {
        let record = &mut self.table[object as usize];
        record.counts.mark(PACKED);
        record.location = Ppn(pack);
        if base != NO_OBJECT {
            record.counts.mark(DIFFERENCE);
            record.link = base;
        }
    }

    /// A packed object lies in another packed page from now on.
    pub fn repack(&mut self, object: u32, pack: u32) {
        self.table[object as usize].location = Ppn(pack);
    }

    /// A packed object has a unit of its own from now on.
    pub fn set_whole(&mut self, object: u32, ppn: Ppn) {
        let record = &mut self.table[object as usize];
        if record.counts.has(DIFFERENCE) {
            record.link = 0;
        }
        record.counts.unmark(PACKED | DIFFERENCE);
        record.location = ppn;
    }

    /// The packed page and the base of an object that is packed; the base may be [`NO_OBJECT`].
    #[inline(always)]
    pub fn packed(&self, object: u32) -> Option<(u32, u32)> {
        let record = &self.table[object as usize];
        let base = match record.counts.has(DIFFERENCE) {
            true => record.link,
            false => NO_OBJECT,
        };
        (record.counts.has(PACKED)).then_some((record.location.0, base))
    }

    /// The packed page of an object that is a difference.
    #[inline(always)]
    pub fn pack_of_delta(&self, object: u32) -> Option<u32> {
        let record = &self.table[object as usize];
        (record.counts.has(DIFFERENCE)).then_some(record.location.0)
    }

    /// Whether an object is a difference.
    #[inline(always)]
    pub fn is_delta(&self, object: u32) -> bool {
        self.counts(object).has(DIFFERENCE)
    }

    /// Live references of an object.
    #[inline(always)]
    pub fn references(&self, object: u32) -> u32 {
        self.count(object, Kind::Live)
    }

    /// Whether a handle names an object that is referenced.
    pub fn is_alive(&self, handle: u32) -> bool {
        (handle as usize) < self.table.len() && !self.is_dead(handle)
    }

    /// Whether the fingerprint index names the object.
    #[inline(always)]
    pub fn is_indexed(&self, object: u32) -> bool {
        self.counts(object).has(INDEXED)
    }

    /// An object that one logical page refers to and nothing else can find is to be hashed.
    pub fn leave_unhashed(&mut self, object: u32) {
        self.table[object as usize].counts.mark(UNHASHED);
    }

    /// Whether an object is to be hashed still.
    pub fn is_unhashed(&self, object: u32) -> bool {
        let counts = self.counts(object);
        counts.has(UNHASHED) && !counts.has(INDEXED | PACKED) && counts.is_one(Kind::Live)
    }

    /// An object needs not be hashed any more.
    pub fn hashed(&mut self, object: u32) {
        self.table[object as usize].counts.unmark(UNHASHED);
    }

    /// Asks for the map entry of a logical page.
    #[inline(always)]
    pub fn prefetch_map(&self, lpn: u32) {
        prefetch(&self.map, lpn as usize);
    }

    /// Asks for the record of an object.
    #[inline(always)]
    pub fn prefetch_object(&self, object: u32) {
        prefetch(&self.table, object as usize);
    }

    /// The object of a logical page that may be out of range or unmapped.
    #[inline(always)]
    pub fn object_of(&self, lpn: u32) -> Option<u32> {
        self.map
            .get(lpn as usize)
            .copied()
            .filter(|&o| o != NO_OBJECT)
    }

    /// Recounts the references; `kept` are those of old versions. Answers the handles that are alive.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self, kept: impl Iterator<Item = u32>) -> Result<Vec<u32>, String> {
        let word = |handle: u32| self.table.get(handle as usize).map(|o| o.counts);
        self.spilled.check(word)?;
        // Kept references, pins, and what the link of a base says.
        let mut others = vec![(0, 0, 0); self.table.len()];
        for object in kept.filter(|&object| object != NO_OBJECT) {
            others[object as usize].0 += 1;
        }
        let mut counted = vec![0u32; self.table.len()];
        for (lpn, &object) in self.map.iter().enumerate() {
            if object != NO_OBJECT {
                *counted.get_mut(object as usize).ok_or_else(|| {
                    format!("logical page {lpn} maps to object {object}, beyond the table")
                })? += 1;
            }
        }
        let mut free = vec![false; self.table.len()];
        let mut at = self.free;
        while at != NO_OBJECT {
            if std::mem::replace(&mut free[at as usize], true) {
                return Err(format!("free object list runs in a circle at {at}"));
            }
            at = self.table[at as usize].location.0;
        }
        let mut alive = Vec::new();
        for handle in 0..self.table.len() {
            let references = self.references(handle as u32);
            if references != counted[handle] || free[handle] != self.is_dead(handle as u32) {
                return Err(format!(
                    "object {handle} has {references} references, {} pages map to it, free: {}",
                    counted[handle], free[handle]
                ));
            }
            if !free[handle]
                && let Some((_, base)) = self.packed(handle as u32)
                && base != NO_OBJECT
            {
                if !self.is_alive(base) || self.is_delta(base) {
                    return Err(format!(
                        "object {handle} needs object {base}, which is dead or a difference"
                    ));
                }
                others[base as usize].1 += 1;
                others[base as usize].2 ^= handle as u32;
            }
            if !free[handle] {
                alive.push(handle as u32);
            }
        }
        for &object in &alive {
            let link = match self.is_delta(object) {
                true => 0,
                false => self.table[object as usize].link,
            };
            let noted = (self.kept(object), self.pins(object), link);
            let counted = others[object as usize];
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
    pub fn location(&self, object: u32) -> Option<Ppn> {
        self.is_alive(object).then(|| self.at(object))
    }

    /// Whether packed objects are all that keeps an object alive.
    #[inline(always)]
    pub fn is_pinned_alone(&self, object: u32) -> bool {
        let counts = self.counts(object);
        counts.is_none(Kind::Live) && counts.is_none(Kind::Kept) && !counts.is_none(Kind::Pins)
    }

    /// Bytes held, counting the table as far as it has been used.
    pub fn heap_bytes(&self) -> usize {
        self.map.capacity() * size_of::<u32>()
            + self.table.len() * size_of::<Object<C>>()
            + self.spilled.heap_bytes()
    }
}

impl<C: Content> Members for Objects<C> {
    #[inline(always)]
    fn tag(&self, object: u32) -> u32 {
        self.fingerprint(self.content(object)) as u32
    }

    #[inline(always)]
    fn is_indexed(&self, object: u32) -> bool {
        Objects::is_indexed(self, object)
    }

    #[inline(always)]
    fn set_indexed(&mut self, object: u32, indexed: bool) {
        let counts = &mut self.table[object as usize].counts;
        counts.unmark(INDEXED | UNHASHED);
        if indexed {
            counts.mark(INDEXED);
        }
    }

    #[inline(always)]
    fn uses(&self, object: u32) -> u32 {
        self.count(object, Kind::Uses)
    }

    #[inline(always)]
    fn add_use(&mut self, object: u32) {
        self.add(object, Kind::Uses);
    }

    #[inline(always)]
    fn drop_use(&mut self, object: u32) -> bool {
        self.take(object, Kind::Uses);
        self.counts(object).is_none(Kind::Uses)
    }

    #[inline(always)]
    fn prefetch(&self, object: u32) {
        self.prefetch_object(object);
    }
}
