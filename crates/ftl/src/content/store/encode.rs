//! Which form a write takes, and its way into a packed page.
//!
//! A write is a *candidate* for a delta when its page is write-hot and not read-hot, and always for compression.
//! It is encoded, and takes the form that costs least: bytes programmed, and `lambda` times the bytes that it alone
//! keeps alive (the base, unless something else refers to that). A delta is always taken from the base, never from
//! another delta, so a read needs two pages at most. A base is whole or compressed by itself. A page without a
//! base of its own may get one by similarity ([`crate::policies::delta::similar`]), however seldom it is written.
//!
//! The page being filled is programmed when the next value does not fit. That may collect, and collection
//! may make the page's present value whole: then the encoded value would keep an old base alive, and the
//! write is stored whole instead.

use flashlore_content::delta::{Short, Value};
use flashlore_content::{Encoder, Ledger};
use flashlore_flash::geometry::UNIT_BYTES;
use flashlore_flash::{
    Cause, Completion, Flash, Lpn, ObjectId, Owner, Ready, Stream, Tag, Unit, When,
};

use super::Store;
use crate::content::candidate::{Candidate, CandidateRead};
use crate::content::parts::{CoreOf, EncodedOf, Failure, PageOf, Parts};
use crate::error::FtlError;
use crate::map_cache::MapCache;
use crate::mapping::Mapping;
use crate::policies::decision::Decision;
use crate::policies::delta::Delta;
use crate::policies::delta::forms::{Encoding, Forms};
use crate::policies::delta::packs::{Filler, MOST_BYTES, Packs, SLOT_BYTES, Slot};
use crate::policies::delta::similar::Base;

impl<T: Parts> Store<T> {
    /// A page is about to be written: counts that and says whether the write is to be encoded.
    pub fn begin_write(&mut self, lpn: Lpn) -> bool {
        let Some(delta) = &mut self.policies.delta else {
            return false;
        };
        delta.heat.write(lpn);
        let compress = delta.options.compress && delta.most_packs > 0;
        let similar = delta.similar.is_some() && delta.may_differ(lpn);
        if !compress && !similar && self.base_of(lpn).is_none() {
            return false;
        }
        let Some(delta) = &mut self.policies.delta else {
            return false;
        };
        delta.counters.candidates += 1;
        delta.viability.wants()
    }

    /// How a write of the page would be encoded if it came now, unless it is a duplicate: the object it would be a
    /// delta from, other than by similarity, and whether it would be compressed by itself. Nothing is counted.
    pub fn encoding_of(&self, lpn: Lpn) -> (Option<ObjectId>, bool) {
        let Some(delta) = self
            .policies
            .delta
            .as_ref()
            .filter(|d| !d.viability.is_baseline())
        else {
            return (None, false);
        };
        let compress = delta.options.compress && delta.most_packs > 0;
        let base = delta.is_write_hot_next(lpn).then(|| self.base_if_hot(lpn));
        (base.flatten(), compress)
    }

    /// The object that a write of the page would be a delta from.
    pub fn base_of(&self, lpn: Lpn) -> Option<ObjectId> {
        let is_hot = self.policies.delta.as_ref()?.is_write_hot(lpn);
        is_hot.then(|| self.base_if_hot(lpn)).flatten()
    }

    /// The same of a page that is written often.
    fn base_if_hot(&self, lpn: Lpn) -> Option<ObjectId> {
        if !self.policies.delta.as_ref()?.may_differ(lpn) {
            return None;
        }
        let old = self.objects.object_of(lpn)?;
        let base = match self.objects.packed(old) {
            None | Some((_, ObjectId::NONE)) => old,
            Some((_, base)) => base,
        };
        self.is_within_quota(base).then_some(base)
    }

    /// Encodes a write in every way that may pay.
    pub fn forms(
        &mut self,
        core: &mut CoreOf<T>,
        lpn: Lpn,
        new: Value<'_, T::Content, PageOf<T>>,
    ) -> Result<Forms<EncodedOf<T>>, Failure<T>> {
        let sketch = self.sketch(lpn, new);
        let delta = match self.base_at_commit(lpn, sketch.as_ref()) {
            Some(base) => {
                let found = match self.encoder.delta_ahead(base.object(), &new) {
                    Some(found) => found,
                    None => self.delta_from(core, base.object(), new)?,
                };
                found.map(|(length, value)| (base, length, value))
            }
            None => None,
        };
        let compress = self
            .policies
            .delta
            .as_ref()
            .is_some_and(|d| d.options.compress);
        let alone = match compress {
            true => self.encoder.alone(new, MOST_BYTES as u16),
            false => None,
        };
        let lengths = [
            delta.as_ref().map(|(_, length, _)| *length),
            alone.as_ref().map(|(length, _)| *length),
        ];
        if let Some(delta) = &mut self.policies.delta {
            delta.viability.observe(lengths.into_iter().flatten().min());
        }
        Ok(Forms {
            delta,
            alone,
            sketch,
        })
    }

    /// The form of a write that costs least: bytes programmed, and `lambda` times the bytes that it alone keeps alive.
    pub fn cheapest(&self, lpn: Lpn, forms: Forms<EncodedOf<T>>) -> Decision<EncodedOf<T>> {
        let Some(options) = self.policies.delta.as_ref().map(|delta| delta.options) else {
            return Decision::Whole;
        };
        let Forms {
            delta,
            alone,
            sketch,
        } = forms;
        let cost = |length: u16, kept: u32| {
            let programmed = (u64::from(length) + u64::from(SLOT_BYTES)) * 1000;
            programmed + u64::from(options.lambda) * u64::from(kept)
        };
        let whole = u64::from(UNIT_BYTES) * 1000;
        let pays = |length: u16, cost: u64| length <= options.most_bytes && cost < whole;
        let delta = delta.and_then(|(base, length, value)| {
            let cost = cost(length, self.bytes_kept_for(lpn, base.object()));
            let encoding = Encoding {
                length,
                base: base.object(),
                similar: matches!(base, Base::Similar(_)),
                sketch,
                value,
            };
            pays(length, cost).then_some((cost, encoding))
        });
        let alone = alone.and_then(|(length, value)| {
            let cost = cost(length, 0);
            let encoding = Encoding {
                length,
                base: ObjectId::NONE,
                similar: false,
                sketch,
                value,
            };
            pays(length, cost).then_some((cost, encoding))
        });
        match (delta, alone) {
            (Some((_, delta)), None) => Decision::Delta(delta),
            (Some((cost, delta)), Some((other, _))) if cost <= other => Decision::Delta(delta),
            (_, Some((_, alone))) => Decision::Compressed(alone),
            (None, None) => Decision::Whole,
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

    /// Bytes of a base that nothing but the next delta of a page would keep alive.
    fn bytes_kept_for(&self, lpn: Lpn, base: ObjectId) -> u32 {
        if !self.is_kept_for(lpn, base) {
            return 0;
        }
        let packed = self.objects.packed(base).zip(self.policies.delta.as_ref());
        let slot = packed.and_then(|((pack, _), delta)| delta.packs.slot_of(pack, base));
        slot.map_or(UNIT_BYTES, |(_, slot)| u32::from(slot.length) + SLOT_BYTES)
    }

    /// Whether nothing but the next delta of a page would keep its base alive.
    fn is_kept_for(&self, lpn: Lpn, base: ObjectId) -> bool {
        let objects = &self.objects;
        let Some(old) = objects.object_of(lpn) else {
            return false;
        };
        if self.records() {
            // What the page holds now becomes an old version, which needs the base, too.
            return false;
        }
        if old == base {
            return objects.references(base) == 1
                && objects.kept(base) == 0
                && objects.pins(base) == 0;
        }
        let dies = objects.references(old) == 1 && objects.kept(old) == 0;
        dies && objects.sole_dependent(base) == Some(old)
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
            length,
            base,
            similar,
            sketch,
            value,
        } = encoding;
        let object = self.objects.allocate(content);
        if base.is_some() {
            self.watching_pins(base, |objects| objects.pin(base, object));
        }
        let stands = |store: &Self| !base.is_some() || similar || store.base_of(lpn) == Some(base);
        // A write that turns out to be stored whole waits for that alone.
        let asker = |store: &Self| if stands(store) { tag } else { Tag::NONE };
        let programmed = self.make_fit(core, when, lpn, length, asker);
        let fits = programmed.is_ok() && stands(self);
        let Some(delta) = self.policies.delta.as_mut().filter(|_| fits) else {
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
        self.encoder.hold(object, &value);
        let pack = delta.packs.push(Filler::Host, slot, false, value);
        delta.packed += 1;
        let (count, bytes) = if !base.is_some() {
            let counters = &mut delta.counters;
            (&mut counters.compressed, &mut counters.compressed_bytes)
        } else {
            let counters = &mut delta.counters;
            (&mut counters.deltas, &mut counters.delta_bytes)
        };
        *count += 1;
        *bytes += u64::from(length);
        if similar {
            delta.count_similar(length);
        }
        self.objects.set_packed(object, pack, base);
        if !base.is_some() {
            self.enter_similar(object, sketch);
        }
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
        let begins = |delta: &Delta<_>| {
            let packs = &delta.packs;
            packs.full(Filler::Host).is_none() || !packs.fits(Filler::Host, length, None)
        };
        if core.options().barriers && self.policies.delta.as_ref().is_some_and(begins) {
            self.make_room(core, when.at)?;
        }
        let fits = |packs: &Packs<_>| {
            packs.fits(Filler::Host, length, None) || packs.fits(Filler::Host, length, leaving)
        };
        if self
            .policies
            .delta
            .as_ref()
            .is_none_or(|delta| fits(&delta.packs))
        {
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
        let packs = self.policies.delta.as_ref().map(|delta| &delta.packs);
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
        let Some(delta) = &mut self.policies.delta else {
            return Ok(None);
        };
        let Some((pack, values)) = delta.packs.full(filler) else {
            return Ok(None);
        };
        let owner = Owner::pack(pack);
        let page = self.encoder.pack(values);
        let unit = Unit::New { owner, page };
        let (ppn, done) = core.append_to_frontier(plane, Stream::Log, when, unit, tag)?;
        core.counters.programs_log += 1;
        delta.packs.placed(filler, ppn);
        self.tell_of_pack(core, owner);
        Ok(Some(done))
    }

    /// Values that waited in RAM lie in a packed page now: tells the map cache.
    pub fn tell_of_pack(&self, core: &mut CoreOf<T>, owner: Owner) {
        if T::CACHED {
            self.each_value(owner, &mut |object| core.map_cache.moved(object));
        }
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
        let kept = read.filter(is_same).map(|candidate| candidate.object);
        let sketch = self.sketch(lpn, new);
        let Some(base) = self.base_for(lpn, sketch.as_ref(), kept) else {
            return Ok(None);
        };
        let object = base.object();
        self.remember_base(lpn, object);
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
