//! How a write is served: decided in one place, carried out in one place, for simulation and for volumes.
//!
//! A write has three phases. The caller *plans*: whether it is to be encoded ([`ContentDevice::begin_write`]), which
//! stored value may be equal ([`ContentDevice::candidate`]) and from which it would differ. It *fetches* what that
//! takes, in simulated time ([`ContentDevice::fetch_candidate`], [`ContentDevice::fetch_base`]) or without the volume's
//! lock. Then it *commits* ([`ContentDevice::commit`]): the commit looks at the map again, as that went on meanwhile,
//! decides, and carries the decision out.
//!
//! The order of forms: a value that the address holds already, one that is stored elsewhere, then the form that costs
//! least of those that policies offer (`policies/forms.rs`).

use flashlore_content::delta::Value;
use flashlore_content::{Ledger, Sketch};
use flashlore_flash::{Cause, Completion, Lpn, ObjectId, Owner, Ppn, Ready, Tag, Time, Unit, When};

use super::candidate::{Candidate, CandidateRead};
use super::device::ContentDevice;
use super::parts::{EncodedOf, Failure, PageOf, Parts};
use super::store::Store;
use crate::error::FtlError;
use crate::map_cache::MapCache;
use crate::policies::forms::{Encoding, Form, Offers};
use crate::policies::{How, Policy, Served, Unhashed};

/// How a write was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The address held this value already: nothing changes.
    Silent,
    /// The value is stored elsewhere and shared now.
    Shared,
    /// The value was programmed, in a page of its own.
    Programmed,
    /// The value was encoded and shares a page with others.
    Packed,
}

/// What becomes of a write. `V` is an encoded value.
pub(super) enum Decision<V> {
    /// The address refers to this object already.
    Unchanged(ObjectId),
    /// The address comes to refer to this object.
    Share(ObjectId),
    /// The value is stored as its delta from another one.
    Delta(Encoding<V>),
    /// The value is stored compressed by itself.
    Compressed(Encoding<V>),
    /// The value is stored as it is.
    Whole,
}

/// What a write brings to its commit.
#[derive(Debug, Clone)]
pub struct Write<C, P> {
    /// The logical page.
    pub lpn: Lpn,
    /// What the policies know of the value.
    pub content: C,
    /// What is stored of it.
    pub page: P,
    /// Whether it is to be encoded unless it is a duplicate: what [`ContentDevice::begin_write`] said.
    pub encode: bool,
    /// Why it was not hashed, if it was not: then no duplicate is looked for.
    pub unhashed: Option<Unhashed>,
    /// Whether more may be stored for the host than is. Otherwise a write is refused unless its address gives up what
    /// nobody else needs.
    pub may_grow: bool,
}

impl<C: Copy, P> Write<C, P> {
    /// A hashed write of content that is its own page, not to be encoded.
    pub fn new(lpn: Lpn, content: C) -> Self
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
    pub object: ObjectId,
    /// How the write was served.
    pub outcome: Outcome,
    /// When it is done.
    pub done: Completion,
}

impl<T: Parts> Store<T> {
    /// What becomes of a write whose value is that of an object, or that can be stored in fewer bytes than a page.
    #[inline(always)]
    fn decide(
        &self,
        lpn: Lpn,
        same: Option<ObjectId>,
        cheapest: Option<Encoding<EncodedOf<T>>>,
    ) -> Decision<EncodedOf<T>> {
        match (same, cheapest) {
            (Some(object), _) if self.objects.get(lpn) == object => Decision::Unchanged(object),
            (Some(object), _) => Decision::Share(object),
            (None, Some(encoding)) if encoding.form.base.is_some() => Decision::Delta(encoding),
            (None, Some(encoding)) => Decision::Compressed(encoding),
            (None, None) => Decision::Whole,
        }
    }

    /// Whether more is stored for the host once a write is served so: what only old versions and deltas need
    /// does not count, for it gives way.
    fn grows(&self, lpn: Lpn, decision: &Decision<EncodedOf<T>>) -> bool {
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
    /// Whether the next write is to be hashed; ask once a write.
    #[inline(always)]
    pub fn wants_hash(&mut self) -> bool {
        self.store.policies.dedup.wants_hash()
    }

    /// When duplicates are verified: reads the stored page that may hold the content, so that the
    /// write can be committed when the read is done. `None` if there is nothing to read, or nothing
    /// but what was `read` already: the write may be committed now.
    ///
    /// While a page is read the map goes on changing, so ask again, with what was read, before the
    /// commit.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn fetch_candidate(
        &mut self,
        at: Time,
        content: T::Content,
        read: Option<Candidate<T::Content>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<T::Content>>, Failure<T>> {
        if !self.store.policies.dedup.verify {
            return Ok(None);
        }
        let Some(object) = self.candidate(content) else {
            return Ok(None);
        };
        let candidate = Candidate {
            object,
            content: self.store.objects.content(object),
        };
        let ppn = self.store.objects.at(object);
        // What waits as a copy is where it was copied from.
        let is_in_ram = matches!(self.core.buffered(ppn), Some(Unit::New { .. }));
        if read == Some(candidate) || is_in_ram {
            return Ok(None);
        }
        let done = self.core.read(Ready::At(at), ppn, Cause::Verify, tag)?;
        Ok(Some((candidate, done)))
    }

    /// A page is about to be written: whether that is to be encoded unless it is a duplicate. Ask once a
    /// write.
    #[inline(always)]
    pub fn begin_write(&mut self, lpn: Lpn) -> bool {
        T::ENCODES && self.store.begin_write(lpn)
    }

    /// How a write of a page would be encoded if it came now, unless it is a duplicate: the object it would be a
    /// delta from, other than by similarity, and whether it would be compressed by itself. Nothing is counted.
    pub fn encoding_of(&self, lpn: Lpn) -> (Option<ObjectId>, bool) {
        match T::ENCODES {
            true => self.store.encoding_of(lpn),
            false => (None, false),
        }
    }

    /// Whether a write of a page that is to be encoded has to be sketched first.
    pub fn needs_sketch(&self, lpn: Lpn) -> bool {
        self.store.needs_sketch(lpn)
    }

    /// The page that a write of `new`, to be encoded, is compared with: reads it, unless it is what was `read`
    /// already. `None` if nothing is to be read: the write may be committed.
    ///
    /// While a page is read the map goes on changing, so ask again, with what was read, before the commit.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn fetch_base(
        &mut self,
        at: Time,
        lpn: Lpn,
        new: T::Content,
        read: Option<Candidate<T::Content>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<T::Content>>, Failure<T>>
    where
        T::Content: Into<PageOf<T>>,
    {
        let mut ready = Ready::At(at);
        let located = self.store.located.contains(&lpn);
        if T::CACHED && read.is_none() && !located && self.store.base_of(lpn).is_some() {
            // Its entry says where it lies, and is counted as used once by a write, however often that asks.
            let entry = self.core.access_map(&mut self.store, at, lpn, Tag::NONE)?;
            ready = entry.map_or(ready, |read| Ready::from(read).and(ready));
            self.store.located.push(lpn);
        }
        let new = Value {
            content: new,
            page: &new.into(),
        };
        let core = &mut self.core;
        self.store.fetch_base(core, ready, lpn, new, read, tag)
    }

    /// Accesses the map entry of a page that is changed, unless the read of its base did so and it is
    /// in RAM still; answers its read, reported under `tag`, if it takes one.
    #[inline(always)]
    fn entry_to_change(
        &mut self,
        at: Time,
        lpn: Lpn,
        tag: Tag,
    ) -> Result<Option<Completion>, Failure<T>> {
        if T::CACHED && T::ENCODES && self.store.take_located(lpn) && self.core.map_cache.holds(lpn)
        {
            return Ok(None);
        }
        self.core.access_map(&mut self.store, at, lpn, tag)
    }

    /// Writes a logical page that was hashed, and says of each value that it is what it says it is. When duplicates are
    /// verified, [`ContentDevice::fetch_candidate`] has just said that there is nothing left to read.
    ///
    /// # Errors
    /// As [`ContentDevice::commit`].
    pub fn write(
        &mut self,
        when: When,
        lpn: Lpn,
        content: T::Content,
        tag: Tag,
    ) -> Result<(Outcome, Completion), Failure<T>>
    where
        T::Content: Into<PageOf<T>>,
    {
        self.core.check_range(lpn)?;
        let write = Write {
            encode: self.begin_write(lpn),
            ..Write::new(lpn, content)
        };
        let done = self.commit(when, write, Self::is_same, tag)?;
        Ok((done.outcome, done.done))
    }

    /// Writes a logical page without hashing it: its object stays unknown to the index, at least until
    /// it is hashed in idle time.
    ///
    /// # Errors
    /// As [`ContentDevice::commit`].
    pub fn write_unhashed(
        &mut self,
        when: When,
        lpn: Lpn,
        content: T::Content,
        why: Unhashed,
        tag: Tag,
    ) -> Result<Completion, Failure<T>>
    where
        T::Content: Into<PageOf<T>>,
    {
        self.core.check_range(lpn)?;
        let write = Write {
            encode: why != Unhashed::Foreign && self.begin_write(lpn),
            unhashed: Some(why),
            ..Write::new(lpn, content)
        };
        Ok(self.commit(when, write, Self::is_same, tag)?.done)
    }

    /// Judges a candidate by its content. Where duplicates are not verified it passes whatever it is.
    ///
    /// # Errors
    /// None.
    #[inline(always)]
    pub fn is_same(
        &mut self,
        object: ObjectId,
        write: &Write<T::Content, PageOf<T>>,
    ) -> Result<bool, Failure<T>> {
        let same = self.store.objects.content(object) == write.content;
        if !same && !self.store.policies.dedup.verify {
            self.store.policies.dedup.counters.corrupted += 1;
            return Ok(true);
        }
        Ok(same)
    }

    /// Commits a write. `judge` says whether the object that may hold its value does, and changes nothing that is stored;
    /// what has to be read for that has been fetched, or is read by it.
    ///
    /// # Errors
    /// An address out of range, a full device, protected versions that hold the room, or a failure of the device.
    #[inline(always)]
    pub fn commit(
        &mut self,
        when: When,
        write: Write<T::Content, PageOf<T>>,
        judge: impl FnOnce(
            &mut Self,
            ObjectId,
            &Write<T::Content, PageOf<T>>,
        ) -> Result<bool, Failure<T>>,
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
        let offers = match same {
            None if T::ENCODES && write.encode => Some(self.offers(&write)?),
            _ => None,
        };
        let sketch = offers.as_ref().and_then(|offers| offers.sketch);
        let cheapest = offers.and_then(Offers::cheapest);
        let decision = self.store.decide(lpn, same, cheapest);
        if !write.may_grow && self.store.grows(lpn, &decision) {
            // Whoever limits it says how much is stored and how much may be.
            return Err(FtlError::Full { valid: 0, units: 0 });
        }
        match decision {
            Decision::Unchanged(object) => {
                self.found(when, &write, object)?;
                self.store.policies.dedup.counters.silent += 1;
                Ok(Committed {
                    object,
                    outcome: Outcome::Silent,
                    done: entry.unwrap_or(Completion::instant(when.at)),
                })
            }
            Decision::Share(object) => {
                self.found(when, &write, object)?;
                self.store.refer(&mut self.core, lpn, object);
                Ok(Committed {
                    object,
                    outcome: Outcome::Shared,
                    done: entry.unwrap_or(Completion::instant(when.at)),
                })
            }
            Decision::Delta(encoding) | Decision::Compressed(encoding) => {
                let when = after(when, entry);
                let (core, content) = (&mut self.core, write.content);
                let encoded = Some((encoding.form, encoding.length));
                let packed = self
                    .store
                    .store_packed(core, when, lpn, content, encoding, tag)?;
                match packed {
                    Some(stored) => self.stored(&write, found, stored, encoded, sketch),
                    None => self.store_whole(when, write, found, sketch, tag),
                }
            }
            Decision::Whole => self.store_whole(after(when, entry), write, found, sketch, tag),
        }
    }

    /// The forms that a write can take in fewer bytes than a page.
    #[inline(never)]
    fn offers(
        &mut self,
        write: &Write<T::Content, PageOf<T>>,
    ) -> Result<Offers<EncodedOf<T>>, Failure<T>> {
        let new = Value {
            content: write.content,
            page: &write.page,
        };
        self.store.offers(&mut self.core, write.lpn, new)
    }

    /// A hashed write is found: index entries behind it are restored.
    #[inline(always)]
    fn found(
        &mut self,
        when: When,
        write: &Write<T::Content, PageOf<T>>,
        object: ObjectId,
    ) -> Result<(), Failure<T>> {
        self.core.counters.host_writes += 1;
        let home = self.home_of(object);
        self.tell(write.lpn, object, How::Found, None, None);
        match home {
            Some(home) => self.prefetch_behind(when.at, home),
            None => Ok(()),
        }
    }

    /// Tells the policies how a write is served.
    #[inline(always)]
    fn tell(
        &mut self,
        lpn: Lpn,
        object: ObjectId,
        how: How,
        encoded: Option<(Form, u16)>,
        sketch: Option<Sketch>,
    ) {
        let served = Served {
            lpn,
            object,
            how,
            encoded,
            sketch,
        };
        self.store
            .policies
            .on_write(&mut self.store.objects, &served);
    }

    /// Stores a write as it is.
    #[inline(always)]
    fn store_whole(
        &mut self,
        when: When,
        write: Write<T::Content, PageOf<T>>,
        taken: Option<ObjectId>,
        sketch: Option<Sketch>,
        tag: Tag,
    ) -> Result<Committed, Failure<T>> {
        if T::HOLDS_MORE {
            self.store.make_room(&mut self.core, when.at)?;
        }
        let object = self.store.objects.allocate(write.content, write.lpn);
        let (ppn, done) = match self.append_new(when, object, &write, tag) {
            Ok(appended) => appended,
            Err(error) => {
                self.store.objects.free(object);
                return Err(error);
            }
        };
        self.store.objects.place(object, ppn);
        self.store.ledger.born(write.content);
        self.stored(&write, taken, (object, done), None, sketch)
    }

    /// Appends new content; where its write frontier has no room, what only old versions and deltas need
    /// gives way.
    #[inline(always)]
    fn append_new(
        &mut self,
        when: When,
        object: ObjectId,
        write: &Write<T::Content, PageOf<T>>,
        tag: Tag,
    ) -> Result<(Ppn, Completion), Failure<T>> {
        let (core, store) = (&mut self.core, &mut self.store);
        loop {
            let page = write.page.clone();
            match core.append_host(store, when, write.lpn, Owner::object(object), page, tag) {
                Err(FtlError::Full { .. }) if T::HOLDS_MORE && store.give_way(core, when.at)? => {}
                other => return other,
            }
        }
    }

    /// New content is stored. `taken` is another object with its fingerprint, if there was one.
    #[inline(always)]
    fn stored(
        &mut self,
        write: &Write<T::Content, PageOf<T>>,
        taken: Option<ObjectId>,
        (object, done): (ObjectId, Completion),
        encoded: Option<(Form, u16)>,
        sketch: Option<Sketch>,
    ) -> Result<Committed, Failure<T>> {
        self.core.counters.host_writes += 1;
        let taken = match write.unhashed {
            // Making room for it may have ended the object with its fingerprint, or entered one.
            None if T::HOLDS_MORE => self.candidate(write.content),
            _ => taken,
        };
        let unhashed = write.unhashed;
        let how = How::New { unhashed, taken };
        self.tell(write.lpn, object, how, encoded, sketch);
        self.store.refer(&mut self.core, write.lpn, object);
        let outcome = match encoded {
            Some(_) => Outcome::Packed,
            None => Outcome::Programmed,
        };
        Ok(Committed {
            object,
            outcome,
            done,
        })
    }
}

/// What is programmed waits for the read of a map entry.
#[inline(always)]
fn after(when: When, entry: Option<Completion>) -> When {
    let ready = entry.map_or(when.ready, |read| when.ready.and(Ready::from(read)));
    When { ready, ..when }
}
