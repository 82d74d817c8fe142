//! The forms that policies offer for a write are encoded here, and the one that was decided finds its way into a packed
//! page.
//!
//! The page being filled is programmed when the next value does not fit. That may collect, and collection
//! may materialize the page's present value: then the encoded value would keep an old base alive, and the
//! write is stored whole instead.

use flashlore_content::delta::{Short, Value};
use flashlore_content::{Encoder, Ledger, Sketch};
use flashlore_flash::{
    Cause, Completion, Flash, Lpn, ObjectId, Owner, Ppn, Ready, Stream, Tag, Unit, When,
};

use super::Store;
use crate::content::candidate::{Candidate, CandidateRead};
use crate::content::parts::{CoreOf, EncodedOf, Failure, PackingOf, PageOf, Parts};
use crate::error::FtlError;
use crate::map_cache::MapCache;
use crate::mapping::packs::{Filler, MOST_BYTES, Packs, Slot};
use crate::policies::Policy;
use crate::policies::forms::{Encoding, Form, Offers};

impl<T: Parts> Store<T> {
    /// A page is about to be written: tells the policies and says whether the write is to be encoded.
    pub fn begin_write(&mut self, lpn: Lpn) -> bool {
        self.policies.on_write_begun(lpn);
        let may = |view| self.policies.may_encode(&view, lpn);
        if !self.view().is_some_and(may) {
            return false;
        }
        let Some(encoded) = &mut self.encoded else {
            return false;
        };
        encoded.counters.candidates += 1;
        encoded.viability.wants()
    }

    /// How a write of the page would be encoded if it came now, unless it is a duplicate: the object it would be a
    /// delta from, other than by similarity, and whether it would be compressed by itself. Nothing is counted.
    pub fn encoding_of(&self, lpn: Lpn) -> (Option<ObjectId>, bool) {
        let encoded = self.encoded.as_ref();
        let view = self.view();
        let Some(view) = view.filter(|_| encoded.is_some_and(|e| !e.viability.is_baseline()))
        else {
            return (None, false);
        };
        let forms = self.policies.next_forms(&view, lpn);
        let mut forms = forms.into_iter().map_while(|form| form);
        let base = forms.clone().find_map(|form| form.base);
        (base, forms.any(|form| form.base.is_none()))
    }

    /// The object that a write of the page being written would be a delta from, other than by similarity.
    pub fn base_of(&self, lpn: Lpn) -> Option<ObjectId> {
        self.policies.base_of(&self.view()?, lpn)
    }

    /// Whether a write of a page, to be encoded, is sketched: bases are chosen by that, and it has none of its own.
    pub fn needs_sketch(&self, lpn: Lpn) -> bool {
        self.view()
            .is_some_and(|view| self.policies.needs_sketch(&view, lpn))
    }

    /// The sketch of a write, if it needs one and its bytes are known.
    fn sketch(&mut self, lpn: Lpn, new: Value<'_, T::Content, PageOf<T>>) -> Option<Sketch> {
        if !self.needs_sketch(lpn) {
            return None;
        }
        self.encoder.sketch(new)
    }

    /// Encodes a write in every form that a policy offers.
    pub fn offers(
        &mut self,
        core: &mut CoreOf<T>,
        lpn: Lpn,
        new: Value<'_, T::Content, PageOf<T>>,
    ) -> Result<Offers<EncodedOf<T>>, Failure<T>> {
        let sketch = self.sketch(lpn, new);
        let mut offers = Offers::new(sketch);
        let Some((view, policies)) = self.asked() else {
            return Ok(offers);
        };
        let forms = policies.forms(&view, lpn, sketch.as_ref());
        let most = self.encoded.as_ref().map_or(0, |e| e.most_bytes);
        for form in forms.into_iter().map_while(|form| form) {
            if let Some((length, value)) = self.encode(core, form, new)? {
                let encoding = Encoding {
                    form,
                    length,
                    value,
                };
                offers.add(encoding, most);
            }
        }
        if let Some(encoded) = &mut self.encoded {
            encoded.viability.observe(offers.shortest);
        }
        Ok(offers)
    }

    /// A value in a form; nothing if it cannot be, or is longer than a packed page takes.
    fn encode(
        &mut self,
        core: &mut CoreOf<T>,
        form: Form,
        new: Value<'_, T::Content, PageOf<T>>,
    ) -> Result<Short<EncodedOf<T>>, Failure<T>> {
        let Some(base) = form.base else {
            return Ok(self.encoder.alone(new, MOST_BYTES as u16));
        };
        match self.encoder.delta_ahead(base, &new) {
            Some(found) => Ok(found),
            None => self.delta_from(core, base, new),
        }
    }

    /// A value as its delta from that of an object, which is read; nothing if it cannot be.
    fn delta_from(
        &mut self,
        core: &mut CoreOf<T>,
        base: ObjectId,
        new: Value<'_, T::Content, PageOf<T>>,
    ) -> Result<Short<EncodedOf<T>>, Failure<T>> {
        let old = match self.decode(core, base) {
            Err(FtlError::Device(error)) if T::Flash::is_loss(&error) => return Ok(None),
            decoded => decoded?,
        };
        let content = self.objects.content(base);
        let old = Value {
            content,
            page: &old,
        };
        Ok(self.encoder.delta(old, new, MOST_BYTES as u16))
    }

    /// Stores an encoded write; `None` if it must be stored whole after all.
    pub fn store_packed(
        &mut self,
        core: &mut CoreOf<T>,
        when: When,
        lpn: Lpn,
        content: T::Content,
        encoding: Encoding<EncodedOf<T>>,
        tag: Tag,
    ) -> Result<Option<(ObjectId, Completion)>, Failure<T>> {
        let Encoding {
            form,
            length,
            value,
        } = encoding;
        let object = self.objects.allocate(content, lpn);
        let base = form.base_object();
        if base.is_some() {
            self.watching_pins(base, |objects| objects.pin(base, object));
        }
        let stands = |store: &Self| {
            let view = store.view();
            view.is_some_and(|view| store.policies.still_offers(&view, lpn, &form))
        };
        // A write that turns out to be stored whole waits for that alone.
        let asker = |store: &Self| if stands(store) { tag } else { Tag::NONE };
        let programmed = self.make_fit(core, when, lpn, length, asker);
        let fits = programmed.is_ok() && stands(self);
        let Some(packing) = self.packing.as_mut().filter(|_| fits) else {
            if base.is_some() && self.watching_pins(base, |o| o.unpin(base, object)) {
                self.die(core, base);
            }
            self.objects.free(object);
            return programmed.map(|_| None);
        };
        let slot = Slot {
            object,
            lpn,
            length,
        };
        self.encoder.hold(object, base, &value);
        let pack = packing.packs.push(Filler::Host, slot, false, value);
        packing.packed += 1;
        self.objects.set_packed(object, pack, base);
        self.ledger.stored(content);
        let done = programmed?.unwrap_or(Completion::instant(when.at));
        Ok(Some((object, done)))
    }

    /// Programs the page being filled if a value does not fit; answers when that is done.
    fn make_fit(
        &mut self,
        core: &mut CoreOf<T>,
        when: When,
        lpn: Lpn,
        length: u16,
        asker: impl FnOnce(&Self) -> Tag,
    ) -> Result<Option<Completion>, Failure<T>> {
        // The value that the page has now makes room if nobody else needs it.
        let old = self.objects.object_of(lpn).filter(|_| !self.records());
        let objects = &self.objects;
        let dies = |&o: &ObjectId| {
            objects.references(o) == 1 && objects.kept(o) == 0 && objects.pins(o) == 0
        };
        let leaving = old.filter(dies);
        // Another page begins to be filled, now or once this one is programmed.
        let begins = |packing: &PackingOf<T>| {
            let packs = &packing.packs;
            packs.full(Filler::Host).is_none() || !packs.fits(Filler::Host, length, None)
        };
        if core.options().barriers && self.packing.as_ref().is_some_and(begins) {
            self.make_room(core, when.at)?;
        }
        let fits = |packs: &Packs<_, _>| {
            packs.fits(Filler::Host, length, None) || packs.fits(Filler::Host, length, leaving)
        };
        if self.packing.as_ref().is_none_or(|p| fits(&p.packs)) {
            return Ok(None);
        }
        self.program_pack(core, Filler::Host, when, lpn, asker)
    }

    /// Programs a page being filled, if it holds anything, in the host's way. `asker` says who waits for
    /// that, when nothing will be collected any more before it is programmed.
    pub fn program_pack(
        &mut self,
        core: &mut CoreOf<T>,
        filler: Filler,
        when: When,
        lpn: Lpn,
        asker: impl FnOnce(&Self) -> Tag,
    ) -> Result<Option<Completion>, Failure<T>> {
        let packs = self.packing.as_ref().map(|packing| &packing.packs);
        if packs.is_none_or(|packs| packs.full(filler).is_none()) {
            return Ok(None);
        }
        match self.limit_packs(core, when.at) {
            // It has its unit; what would have to be merged first waits until there is room.
            Err(FtlError::Protected { .. }) if core.options().barriers => {}
            limited => limited?,
        }
        if !core.options().barriers {
            self.make_room(core, when.at)?;
        }
        // The way to a write frontier may collect, and take values out of the page; from there on nothing does.
        let plane = loop {
            match core.next_frontier(self, Stream::Log, when.at, lpn) {
                Err(FtlError::Full { .. }) if self.give_way(core, when.at)? => {}
                other => break other?,
            }
        };
        let tag = asker(self);
        let Some(packing) = &mut self.packing else {
            return Ok(None);
        };
        let Some((pack, values)) = packing.packs.full(filler) else {
            return Ok(None);
        };
        let owner = Owner::pack(pack);
        let page = self.encoder.pack(values);
        let unit = Unit::New { owner, page };
        let (ppn, done) = core.append_to_frontier(plane, Stream::Log, when, unit, tag)?;
        core.counters.programs_log += 1;
        self.pack_placed(core, filler, ppn);
        Ok(Some(done))
    }

    /// Values that waited in RAM lie in a packed page now: tells the map cache and the device.
    pub fn pack_placed(&mut self, core: &mut CoreOf<T>, filler: Filler, ppn: Ppn) {
        let Some(packing) = &mut self.packing else {
            return;
        };
        let objects = &mut self.objects;
        packing.packs.placed(filler, ppn, |at, slot| {
            if T::CACHED {
                core.map_cache.moved(slot.object);
            }
            objects.note_slot(slot.object, at, slot.length);
        });
    }

    /// Reads the page that a write is to be a delta from, unless it is what was `read` already or
    /// nothing is to be read.
    pub fn fetch_base(
        &mut self,
        core: &mut CoreOf<T>,
        ready: Ready,
        lpn: Lpn,
        new: Value<'_, T::Content, PageOf<T>>,
        read: Option<Candidate<T::Content>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<T::Content>>, Failure<T>> {
        let is_same = |c: &Candidate<T::Content>| {
            self.objects.is_alive(c.object) && self.objects.content(c.object) == c.content
        };
        let read_object = read.filter(is_same).map(|candidate| candidate.object);
        let sketch = self.sketch(lpn, new);
        let Some((view, policies)) = self.asked() else {
            return Ok(None);
        };
        let Some(object) = policies.base_to_read(&view, lpn, sketch.as_ref(), read_object) else {
            return Ok(None);
        };
        let content = self.objects.content(object);
        let candidate = Candidate { object, content };
        // Whole or compressed by itself, it lies in one page, if not in RAM.
        let place = self.places(object).into_iter().flatten().next();
        let Some(ppn) = place.filter(|&ppn| core.buffered(ppn).is_none()) else {
            return Ok(None);
        };
        if read == Some(candidate) {
            return Ok(None);
        }
        let done = core.read(ready, ppn, Cause::Delta, tag)?;
        Ok(Some((candidate, done)))
    }
}
