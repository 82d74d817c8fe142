//! How a write is served: decided in one place, carried out in one place, for simulation and for volumes.
//!
//! A write has three phases. The caller *plans*: whether it is to be encoded ([`ContentFtl::begin_write`]), which
//! stored value may be equal ([`ContentFtl::candidate`]) and from which it would differ. It *fetches* what that takes,
//! in simulated time ([`ContentFtl::fetch_candidate`], [`ContentFtl::fetch_base`]) or without the volume's lock. Then
//! it *commits* ([`ContentFtl::commit`]): the commit looks at the map again, as that went on meanwhile, decides, and
//! carries the decision out.
//!
//! The order of forms: a value that the address holds already, one that is stored elsewhere, then the form that costs
//! least (`Store::cheapest`).

use flashlore_content::Ledger;
use flashlore_content::Sketch;
use flashlore_content::delta::Value;
use flashlore_flash::{Completion, Ppn, Ready, Tag, When};

use super::delta::write::{Encoding, Forms};
use super::parts::{EncodedOf, Failure, PageOf, Parts};
use super::store::Store;
use super::{ContentDevice, Outcome, Unhashed};
use crate::error::FtlError;

/// What a write brings to its commit.
#[derive(Debug, Clone)]
pub struct Write<C, P> {
    /// The logical page.
    pub lpn: u32,
    /// What the policies know of the value.
    pub content: C,
    /// What is stored of it.
    pub page: P,
    /// Whether it is to be encoded unless it is a duplicate: what [`ContentFtl::begin_write`] said.
    pub encode: bool,
    /// Why it was not hashed, if it was not: then no duplicate is looked for.
    pub unhashed: Option<Unhashed>,
    /// Whether more may be stored for the host than is. Otherwise a write is refused unless its address gives up what
    /// nobody else needs.
    pub may_grow: bool,
}

impl<C: Copy, P> Write<C, P> {
    /// A hashed write of content that is its own page, not to be encoded.
    pub fn new(lpn: u32, content: C) -> Self
    where
        C: Into<P>,
    {
        Write {
            lpn,
            content,
            page: content.into(),
            encode: false,
            unhashed: None,
            may_grow: true,
        }
    }
}

/// What a commit did.
#[derive(Debug, Clone, Copy)]
pub struct Committed {
    /// The object that the address refers to now.
    pub object: u32,
    /// How the write was served.
    pub outcome: Outcome,
    /// When it is done.
    pub done: Completion,
}

/// What becomes of a write.
pub(crate) enum Decision<V> {
    /// The address refers to this object already.
    Unchanged(u32),
    /// The address comes to refer to this object.
    Share(u32),
    /// The value is stored as its difference from another one.
    Delta(Encoding<V>),
    /// The value is stored compressed by itself.
    Compressed(Encoding<V>),
    /// The value is stored as it is.
    Whole,
}

impl<T: Parts> Store<T> {
    /// What becomes of a write whose value is that of an object, or that can take one of these forms.
    #[inline(always)]
    fn decide(
        &self,
        lpn: u32,
        same: Option<u32>,
        forms: Option<Forms<EncodedOf<T>>>,
    ) -> Decision<EncodedOf<T>> {
        match (same, forms) {
            (Some(object), _) if self.objects.get(lpn) == object => Decision::Unchanged(object),
            (Some(object), _) => Decision::Share(object),
            (None, Some(forms)) if T::ENCODES => self.cheapest(lpn, forms),
            (None, _) => Decision::Whole,
        }
    }

    /// Whether more is stored for the host once a write is served so: what only old versions and differences need
    /// does not count, for it gives way.
    fn grows(&self, lpn: u32, decision: &Decision<EncodedOf<T>>) -> bool {
        let is_new = match decision {
            Decision::Unchanged(_) => false,
            Decision::Share(object) => self.objects.references(*object) == 0,
            Decision::Delta(_) | Decision::Compressed(_) | Decision::Whole => true,
        };
        let held = self.objects.object_of(lpn);
        is_new && held.is_none_or(|object| self.objects.references(object) != 1)
    }
}

impl<T: Parts> ContentDevice<T> {
    /// Commits a write. `judge` says whether the object that may hold its value does; what has to be read for that has
    /// been fetched, or is read by it.
    ///
    /// # Errors
    /// An address out of range, a full device, protected versions that hold the room, or a failure of the device.
    #[inline(always)]
    pub fn commit(
        &mut self,
        when: When,
        write: Write<T::Content, PageOf<T>>,
        judge: impl FnOnce(&mut Self, u32, &Write<T::Content, PageOf<T>>) -> Result<bool, Failure<T>>,
        tag: Tag,
    ) -> Result<Committed, Failure<T>> {
        let lpn = write.lpn;
        self.core.check_range(lpn)?;
        if T::REMEMBERS {
            self.store.room_for_entry(&mut self.core)?;
            self.store
                .limit_entries_in_ram(&mut self.core, when.at, lpn)?;
        }
        let found = match write.unhashed {
            None => self.candidate(write.content),
            Some(_) => None,
        };
        let same = match found {
            Some(object) if judge(self, object, &write)? => Some(object),
            _ => None,
        };
        // What programs nothing is done with the read of its map entry; what does waits for that.
        let waits = if same.is_some() { tag } else { Tag::NONE };
        let entry = self.entry_to_change(when.at, lpn, waits)?;
        let forms = match same {
            None if T::ENCODES && write.encode => Some(self.forms(&write)?),
            _ => None,
        };
        let sketch = forms.as_ref().and_then(|forms| forms.sketch);
        let decision = self.store.decide(lpn, same, forms);
        if !write.may_grow && self.store.grows(lpn, &decision) {
            // Whoever limits it says how much is stored and how much may be.
            return Err(FtlError::Full { valid: 0, units: 0 });
        }
        match decision {
            Decision::Unchanged(object) => {
                self.count_hit(when, object)?;
                self.store.dedup.counters.silent += 1;
                Ok(self.shared(
                    lpn,
                    object,
                    Outcome::Silent,
                    entry.unwrap_or(Completion::instant(when.at)),
                ))
            }
            Decision::Share(object) => {
                self.count_hit(when, object)?;
                self.store.refer(&mut self.core, lpn, object);
                Ok(self.shared(
                    lpn,
                    object,
                    Outcome::Shared,
                    entry.unwrap_or(Completion::instant(when.at)),
                ))
            }
            Decision::Delta(encoding) | Decision::Compressed(encoding) => {
                let when = after(when, entry);
                let (core, content) = (&mut self.core, write.content);
                let packed = self
                    .store
                    .store_packed(core, when, lpn, content, encoding, tag)?;
                match packed {
                    Some(stored) => self.stored(&write, found, stored, Outcome::Packed),
                    None => self.store_whole(when, write, found, sketch, tag),
                }
            }
            Decision::Whole => self.store_whole(after(when, entry), write, found, sketch, tag),
        }
    }

    /// The forms that a write can take in fewer bytes than a page.
    #[inline(never)]
    fn forms(
        &mut self,
        write: &Write<T::Content, PageOf<T>>,
    ) -> Result<Forms<EncodedOf<T>>, Failure<T>> {
        let new = Value {
            content: write.content,
            page: &write.page,
        };
        self.store.forms(&mut self.core, write.lpn, new)
    }

    /// A hashed write is found: its entry moves to the head, and entries behind it are restored.
    #[inline(always)]
    fn count_hit(&mut self, when: When, object: u32) -> Result<(), Failure<T>> {
        self.core.counters.host_writes += 1;
        let dedup = &mut self.store.dedup;
        dedup.counters.hits += 1;
        dedup.hashed(true);
        dedup.index.touch(&mut self.store.objects, object);
        match self.store.prefetch {
            Some(_) => self.prefetch_behind(when.at, object),
            None => Ok(()),
        }
    }

    /// An address refers to an object that was stored already.
    #[inline(always)]
    fn shared(&mut self, lpn: u32, object: u32, outcome: Outcome, done: Completion) -> Committed {
        if let Some(prefetch) = &mut self.store.prefetch {
            prefetch.shared(&self.store.objects, object, lpn);
        }
        Committed {
            object,
            outcome,
            done,
        }
    }

    /// Stores a write as it is.
    #[inline(always)]
    fn store_whole(
        &mut self,
        when: When,
        write: Write<T::Content, PageOf<T>>,
        taken: Option<u32>,
        sketch: Option<Sketch>,
        tag: Tag,
    ) -> Result<Committed, Failure<T>> {
        if T::HOLDS_MORE {
            self.store.make_room(&mut self.core, when.at)?;
        }
        let object = self.store.objects.allocate(write.content);
        let (ppn, done) = match self.append_new(when, object, &write, tag) {
            Ok(appended) => appended,
            Err(error) => {
                self.store.objects.free(object);
                return Err(error);
            }
        };
        self.store.objects.place(object, ppn);
        if T::ENCODES {
            self.store.enter_similar(object, sketch);
        }
        self.store.ledger.born(write.content);
        self.stored(&write, taken, (object, done), Outcome::Programmed)
    }

    /// Appends new content; where its write frontier has no room, what only old versions and differences need
    /// gives way.
    #[inline(always)]
    fn append_new(
        &mut self,
        when: When,
        object: u32,
        write: &Write<T::Content, PageOf<T>>,
        tag: Tag,
    ) -> Result<(Ppn, Completion), Failure<T>> {
        let (core, store) = (&mut self.core, &mut self.store);
        loop {
            let page = write.page.clone();
            match core.append_host(store, when, write.lpn, object, page, tag) {
                Err(FtlError::Full { .. }) if T::HOLDS_MORE && store.give_way(core, when.at)? => {}
                other => return other,
            }
        }
    }

    /// New content is stored: a hashed one enters the index, and takes the entry of `taken` over, another object with
    /// its fingerprint; one that was not hashed may be looked at in idle time.
    #[inline(always)]
    fn stored(
        &mut self,
        write: &Write<T::Content, PageOf<T>>,
        taken: Option<u32>,
        (object, done): (u32, Completion),
        outcome: Outcome,
    ) -> Result<Committed, Failure<T>> {
        let lpn = write.lpn;
        self.core.counters.host_writes += 1;
        let counters = &mut self.store.dedup.counters;
        match write.unhashed {
            None => {
                counters.misses += 1;
                self.store.dedup.hashed(false);
                self.enter_index(write.content, object, taken);
            }
            Some(Unhashed::Off | Unhashed::Foreign) => counters.unhashed += 1,
            Some(Unhashed::Unsampled) => counters.unsampled += 1,
        }
        if let Some(prefetch) = &mut self.store.prefetch {
            prefetch.stored(object, lpn, write.unhashed.is_none());
        }
        self.store.refer(&mut self.core, lpn, object);
        if let Some(scan) = &mut self.store.scan
            && matches!(write.unhashed, Some(Unhashed::Off | Unhashed::Unsampled))
            && !self.store.objects.is_packed(object)
        {
            self.store.objects.leave_unhashed(object);
            scan.push(object, lpn);
        }
        Ok(Committed {
            object,
            outcome,
            done,
        })
    }

    #[inline(always)]
    fn enter_index(&mut self, content: T::Content, object: u32, taken: Option<u32>) {
        // Making room for it may have ended the object with its fingerprint, or entered one.
        let taken = if T::HOLDS_MORE {
            self.candidate(content)
        } else {
            taken
        };
        match taken {
            Some(before) => {
                self.store.dedup.counters.collisions += 1;
                let index = &mut self.store.dedup.index;
                index.take_over(&mut self.store.objects, before, object);
            }
            None => self.store.index(object),
        }
    }
}

/// What is programmed waits for the read of a map entry.
#[inline(always)]
fn after(when: When, entry: Option<Completion>) -> When {
    let ready = entry.map_or(when.ready, |read| when.ready.and(Ready::from(read)));
    When { ready, ..when }
}
