//! Logical page to object to location.
//!
//! An object is one stored value. It lives while it is referenced; relocation patches its one
//! location and nothing else, so any number of logical pages may share it. A handle is reused after
//! the object's death.
//!
//! Objects are held whole, in a unit of their own, or *packed*: encoded, in a slot of a packed page. A
//! packed object may need a *base* to be decoded, which it pins; a base has none itself. Where
//! there are packed objects or old versions, references are of three kinds, counted apart: live ones of
//! logical pages, *kept* ones of old versions, and *pins*.
//!
//! Invariants: the counts are the references there are; an object without references is on the free list
//! and maps nowhere; a base is no difference; an object that is to be hashed in idle time has one reference, of
//! the logical page that it names.

use flashlore_content::Content;
use flashlore_content::dedup::index::Members;
use flashlore_flash::Ppn;
use flashlore_flash::hints::{on_large_pages, prefetch};

/// No object.
pub const NO_OBJECT: u32 = u32::MAX;

const INDEXED: u32 = 1 << 31;
const PACKED: u32 = 1 << 30;
const FLAGS: u32 = INDEXED | PACKED;
const NO_PLACE: u32 = u32::MAX;

/// One stored value: 16 bytes for a tag, so that a cache line holds whole ones.
#[derive(Debug, Clone, Copy)]
struct Object<C> {
    /// Where it lies, or its packed page; of a free handle, the next free one.
    location: Ppn,
    /// Live references, whether the fingerprint index names the object, and whether it is packed.
    references: u32,
    content: C,
    /// Its last use in the fingerprint index, while that names it. Of an object that is to be hashed
    /// in idle time the one logical page that refers to it. [`NO_PLACE`] otherwise.
    place: u32,
}

/// What an object has where there are packed objects or old versions: references that are not live, and
/// its base.
#[derive(Debug, Clone, Copy)]
struct Others {
    /// Of old versions.
    kept: u32,
    /// Of packed objects that need it as base.
    pins: u32,
    /// The exclusive or of the handles of these: with one pin, which it is.
    dependents: u32,
    /// What it needs to be decoded if it is packed, or [`NO_OBJECT`].
    base: u32,
}

impl Default for Others {
    fn default() -> Self {
        Others {
            kept: 0,
            pins: 0,
            dependents: 0,
            base: NO_OBJECT,
        }
    }
}

/// The map and the object table.
#[derive(Debug, Clone)]
pub struct Objects<C> {
    map: Vec<u32>,
    table: Vec<Object<C>>,
    /// By handle; empty where all references are live.
    others: Vec<Others>,
    has_others: bool,
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
            others: Vec::new(),
            has_others: false,
            free: NO_OBJECT,
            live: 0,
            fingerprint_bits,
        }
    }

    /// From now on references need not be live ones; before anything is stored.
    pub fn count_others(&mut self) {
        self.has_others = true;
    }

    /// Objects by handle, location and content, and the pages that map to them; handles in between
    /// are free. Nothing is packed yet. `kept` are the references of old versions, if there may be `others`
    /// than live ones.
    pub fn restore(
        map: &[u32],
        most: u32,
        fingerprint_bits: u32,
        objects: impl Iterator<Item = (u32, Ppn, C)> + Clone,
        kept: impl Iterator<Item = u32>,
        others: bool,
    ) -> Self {
        let mut restored = Objects::new(map.len() as u32, most, fingerprint_bits);
        restored.has_others = others;
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
                references: 0,
                content,
                place: NO_PLACE,
            });
        }
        for &object in restored.map.iter().filter(|&&o| o != NO_OBJECT) {
            restored.table[object as usize].references += 1;
        }
        if others {
            let none = Others::default();
            restored.others.resize(slots.len(), none);
            kept.for_each(|object| restored.others[object as usize].kept += 1);
        }
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
        let object = Object {
            location: Ppn::NONE,
            references: 0,
            content,
            place: NO_PLACE,
        };
        self.live += 1;
        if self.free == NO_OBJECT {
            self.table.push(object);
            if self.has_others {
                self.others.push(Others::default());
            }
            return (self.table.len() - 1) as u32;
        }
        let handle = self.free;
        self.free = self.table[handle as usize].location.0;
        self.table[handle as usize] = object;
        handle
    }

    /// Gives a handle back that has no reference.
    #[inline(always)]
    pub fn free(&mut self, object: u32) {
        debug_assert!(self.is_dead(object));
        let record = &mut self.table[object as usize];
        record.references = 0;
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
            self.table[object as usize].references += 1;
        }
        std::mem::replace(&mut self.map[lpn as usize], object)
    }

    /// Whether an object is likely to die with the next live reference it loses.
    #[inline(always)]
    pub fn is_last(&self, object: u32) -> bool {
        self.table[object as usize].references & !FLAGS == 1
    }

    /// Takes a live reference away; whether it was the last of any kind.
    #[inline(always)]
    pub fn release(&mut self, object: u32) -> bool {
        self.table[object as usize].references -= 1;
        self.is_dead(object)
    }

    /// Whether nothing refers to an object.
    #[inline(always)]
    pub fn is_dead(&self, object: u32) -> bool {
        if self.table[object as usize].references & !FLAGS > 0 {
            return false;
        }
        match self.others.get(object as usize) {
            None => true,
            Some(others) => others.kept == 0 && others.pins == 0,
        }
    }

    /// A live reference becomes that of an old version.
    #[inline(always)]
    pub fn keep_instead(&mut self, object: u32) {
        self.others[object as usize].kept += 1;
        self.table[object as usize].references -= 1;
    }

    /// An old version refers to an object that has another reference.
    pub fn keep(&mut self, object: u32) {
        self.others[object as usize].kept += 1;
    }

    /// An old version that refers to an object is given up; whether nothing refers to it now.
    pub fn give_up(&mut self, object: u32) -> bool {
        self.others[object as usize].kept -= 1;
        self.is_dead(object)
    }

    /// Old versions that refer to an object.
    pub fn kept(&self, object: u32) -> u32 {
        self.others.get(object as usize).map_or(0, |o| o.kept)
    }

    /// Handles there are, free ones too.
    pub fn handles(&self) -> u32 {
        self.table.len() as u32
    }

    /// Whether old versions, and packed objects that need it, are all that refers to an object.
    #[inline(always)]
    pub fn is_history(&self, object: u32) -> bool {
        self.table[object as usize].references & !FLAGS == 0 && self.kept(object) > 0
    }

    /// A packed object is to need a base, whoever it is.
    pub fn pin(&mut self, base: u32, dependent: u32) {
        let others = &mut self.others[base as usize];
        others.pins += 1;
        others.dependents ^= dependent;
    }

    /// A packed object does not need its base any more; whether nothing refers to that now.
    pub fn unpin(&mut self, base: u32, dependent: u32) -> bool {
        let others = &mut self.others[base as usize];
        others.pins -= 1;
        others.dependents ^= dependent;
        self.is_dead(base)
    }

    /// Packed objects that need an object as base.
    pub fn pins(&self, object: u32) -> u32 {
        self.others.get(object as usize).map_or(0, |o| o.pins)
    }

    /// The packed object that needs a base, if there is exactly one and nothing else refers to the base.
    pub fn sole_dependent(&self, base: u32) -> Option<u32> {
        let others = self.others.get(base as usize)?;
        let live = self.table[base as usize].references & !FLAGS;
        (live == 0 && others.kept == 0 && others.pins == 1).then_some(others.dependents)
    }

    /// Whether an object is packed.
    #[inline(always)]
    pub fn is_packed(&self, object: u32) -> bool {
        self.table[object as usize].references & PACKED != 0
    }

    /// An object lies in a packed page from now on.
    pub fn set_packed(&mut self, object: u32, pack: u32, base: u32) {
        let record = &mut self.table[object as usize];
        record.references |= PACKED;
        record.location = Ppn(pack);
        self.others[object as usize].base = base;
    }

    /// A packed object lies in another packed page from now on.
    pub fn repack(&mut self, object: u32, pack: u32) {
        self.table[object as usize].location = Ppn(pack);
    }

    /// A packed object has a unit of its own from now on.
    pub fn set_whole(&mut self, object: u32, ppn: Ppn) {
        let record = &mut self.table[object as usize];
        record.references &= !PACKED;
        record.location = ppn;
    }

    /// The packed page and the base of an object that is packed; the base may be [`NO_OBJECT`].
    #[inline(always)]
    pub fn packed(&self, object: u32) -> Option<(u32, u32)> {
        let record = &self.table[object as usize];
        (record.references & PACKED != 0)
            .then(|| (record.location.0, self.others[object as usize].base))
    }

    /// The packed page of an object that is a difference.
    #[inline(always)]
    pub fn pack_of_difference(&self, object: u32) -> Option<u32> {
        let (pack, base) = self.packed(object)?;
        (base != NO_OBJECT).then_some(pack)
    }

    /// Whether an object is a difference.
    pub fn is_difference(&self, object: u32) -> bool {
        self.pack_of_difference(object).is_some()
    }

    /// Live references of an object.
    pub fn references(&self, object: u32) -> u32 {
        self.table[object as usize].references & !FLAGS
    }

    /// Whether a handle names an object that is referenced.
    pub fn is_alive(&self, handle: u32) -> bool {
        (handle as usize) < self.table.len() && !self.is_dead(handle)
    }

    /// Whether the fingerprint index names the object.
    #[inline(always)]
    pub fn is_indexed(&self, object: u32) -> bool {
        self.table[object as usize].references & INDEXED != 0
    }

    /// An object that one logical page refers to and nothing else can find is to be hashed.
    pub fn leave_unhashed(&mut self, object: u32, lpn: u32) {
        self.table[object as usize].place = lpn;
    }

    /// The logical page of an object that is to be hashed still.
    pub fn unhashed(&self, object: u32) -> Option<u32> {
        let record = &self.table[object as usize];
        // One reference, and the index does not name it.
        (record.references == 1 && record.place != NO_PLACE).then_some(record.place)
    }

    /// An object needs not be hashed any more.
    pub fn hashed(&mut self, object: u32) {
        self.table[object as usize].place = NO_PLACE;
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
        let mut others = vec![Others::default(); self.table.len()];
        for object in kept.filter(|&object| object != NO_OBJECT) {
            others[object as usize].kept += 1;
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
        for (handle, object) in self.table.iter().enumerate() {
            let references = object.references & !FLAGS;
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
                if !self.is_alive(base) || self.is_difference(base) {
                    return Err(format!(
                        "object {handle} needs object {base}, which is dead or a difference"
                    ));
                }
                others[base as usize].pins += 1;
                others[base as usize].dependents ^= handle as u32;
            }
            if !free[handle] {
                alive.push(handle as u32);
            }
        }
        for (handle, (counted, noted)) in others.iter().zip(&self.others).enumerate() {
            let of = |o: &Others| (o.kept, o.pins, o.dependents);
            if of(counted) != of(noted) {
                return Err(format!(
                    "object {handle} notes {noted:?}, counted are {counted:?}"
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
        let live = self.table[object as usize].references & !FLAGS;
        let others = self.others.get(object as usize);
        live == 0 && others.is_some_and(|o| o.kept == 0 && o.pins > 0)
    }

    /// Bytes held, counting the table as far as it has been used.
    pub fn heap_bytes(&self) -> usize {
        self.map.capacity() * size_of::<u32>()
            + self.table.len() * size_of::<Object<C>>()
            + self.others.len() * size_of::<Others>()
    }
}

impl<C: Content> Members for Objects<C> {
    #[inline(always)]
    fn tag(&self, object: u32) -> u32 {
        self.fingerprint(self.content(object)) as u32
    }

    #[inline(always)]
    fn place(&self, object: u32) -> Option<u32> {
        let record = &self.table[object as usize];
        (record.references & INDEXED != 0).then_some(record.place)
    }

    #[inline(always)]
    fn set_place(&mut self, object: u32, place: Option<u32>) {
        let record = &mut self.table[object as usize];
        match place {
            Some(place) => {
                record.place = place;
                record.references |= INDEXED;
            }
            None => {
                record.references &= !INDEXED;
                record.place = NO_PLACE;
            }
        }
    }

    #[inline(always)]
    fn prefetch(&self, object: u32) {
        self.prefetch_object(object);
    }
}
