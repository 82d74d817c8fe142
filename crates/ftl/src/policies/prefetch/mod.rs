//! Spatial value locality: index entries that were discarded, restored from flash before they are missed.
//!
//! CA-SSD (FAST 2011, section 3.3) observes that values written together are written together again, and
//! leaves the use of it open. Here: a write that hits an object names a place, the logical page that the
//! object was stored for (its *home*, from the way back from physical to logical pages). The values of the
//! next pages behind it are likely to be written next. For each of so many of them that lies whole in a unit
//! of its own and has no entry, the unit is read: its out-of-band area has the digest that it was written with,
//! and the entry is entered at the head of the index, where another may have to go. No other table is kept,
//! so only what is still stored comes back, and each costs a read of a flash page.
//!
//! The host waits for none of this, and an entry can be found at once, though its read takes time: the
//! benefit is at most what is measured. What was written without being hashed has no digest there. Where the
//! map is partly in RAM only pages are looked at whose entries are in RAM.
//!
//! Invariant: a home is that of the object which has the handle now; it counts while the page refers to it.

use flashlore_content::Content;
use flashlore_flash::{Lpn, ObjectId, Tables};

use super::{Asked, How, Policy, Served};
use crate::mapping::objects::Objects;

/// What prefetching did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrefetchCounters {
    /// Units looked at whose digest had to be read.
    pub looked_up: u64,
    /// Of them, those whose entry was restored; of the others another object has an entry.
    pub restored: u64,
}

/// The policy: a device has it once it is asked for how many entries ([`ContentDevice::with_prefetch`]).
///
/// [`ContentDevice::with_prefetch`]: crate::ContentDevice::with_prefetch
pub(super) fn room<S>(_: &Asked<'_, S>) -> Option<Prefetch> {
    None
}

/// The policy's state.
#[derive(Debug, Clone)]
pub struct Prefetch {
    /// Pages behind a hit that are looked at.
    pub(crate) degree: u32,
    /// By object: the logical page it was stored for, if it was hashed.
    homes: Vec<Lpn>,
    /// Counts since the start or the end of warm-up.
    pub counters: PrefetchCounters,
}

impl Prefetch {
    /// Looks at so many pages behind each hit.
    pub fn new(degree: u32) -> Self {
        Prefetch {
            degree,
            homes: Vec::new(),
            counters: PrefetchCounters::default(),
        }
    }

    /// A new object is stored for a page, with its digest if it was hashed.
    fn stored(&mut self, object: ObjectId, lpn: Lpn, hashed: bool) {
        if object.index() >= self.homes.len() {
            self.homes.resize(object.index() + 1, Lpn::NONE);
        }
        self.homes[object.index()] = if hashed { lpn } else { Lpn::NONE };
    }

    /// A page has come to share an object: it is its home, if the one before refers to something else now.
    fn shared<C: Content, S: Tables>(
        &mut self,
        objects: &Objects<C, S>,
        object: ObjectId,
        lpn: Lpn,
    ) {
        if let Some(home) = self.homes.get_mut(object.index())
            && *home != Lpn::NONE
            && objects.object_of(*home) != Some(object)
        {
            *home = lpn;
        }
    }

    /// The page an object was stored for, if it was hashed and the page refers to it still.
    pub(crate) fn home<C: Content, S: Tables>(
        &self,
        objects: &Objects<C, S>,
        object: ObjectId,
    ) -> Option<Lpn> {
        let home = *self.homes.get(object.index())?;
        (objects.object_of(home) == Some(object)).then_some(home)
    }

    /// Whether an object was stored with its digest.
    pub(crate) fn has_digest(&self, object: ObjectId) -> bool {
        let home = self.homes.get(object.index());
        home.is_some_and(|&home| home != Lpn::NONE)
    }
}

impl<C: Content, V: Clone, S: Tables> Policy<C, V, S> for Prefetch {
    #[inline(always)]
    fn on_write(&mut self, objects: &mut Objects<C, S>, served: &Served) {
        match served.how {
            How::Found => self.shared(objects, served.object, served.lpn),
            How::New { unhashed, .. } => {
                self.stored(served.object, served.lpn, unhashed.is_none());
            }
        }
    }

    fn heap_bytes(&self) -> usize {
        self.homes.capacity() * size_of::<u32>()
    }

    fn restart_counters(&mut self) {
        self.counters = PrefetchCounters::default();
    }
}
