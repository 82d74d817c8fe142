//! Back to whole pages: reading an encoded value, and merging it with its base for good.
//!
//! A merge changes what an object is held in and leaves its handle, so whoever refers to it needs not be
//! told. With deduplication the value is looked up first: if it is stored already, the logical page shares
//! that and nothing is programmed.

use crate::map_cache::MapCache;
use flashlore_content::Encoder;
use flashlore_content::dedup::FingerprintIndex;
use flashlore_flash::{
    Cause, Completion, Flash, Lpn, ObjectId, Owner, Ppn, Ready, Stream, Tag, Unit, When,
};

use super::{Store, nowhere};
use crate::content::encoding::Why;
use crate::content::parts::{CoreOf, Failure, PageOf, Parts};
use crate::error::FtlError;
use crate::policies::Policy;

impl<T: Parts> Store<T> {
    /// The flash pages that hold an object: that of its base, if it has one, and its own; without those in
    /// RAM, and one page once.
    pub fn places(&self, object: ObjectId) -> [Option<Ppn>; 2] {
        let own = self.place(object);
        let base = match self.objects.packed(object) {
            Some((_, base)) if base.is_some() => self.place(base),
            _ => None,
        };
        [base, own.filter(|_| own != base)]
    }

    /// The flash page that holds an object, unless that is in RAM.
    fn place(&self, object: ObjectId) -> Option<Ppn> {
        let ppn = match (self.objects.packed(object), &self.packing) {
            (Some((pack, _)), Some(packing)) => packing.packs.at(pack),
            _ => self.objects.at(object),
        };
        ppn.is_some().then_some(ppn)
    }

    /// What a packed object holds; nothing is counted.
    pub fn decode(
        &mut self,
        core: &mut CoreOf<T>,
        object: ObjectId,
    ) -> Result<PageOf<T>, Failure<T>> {
        let (Some((pack, base)), Some(packing)) = (self.objects.packed(object), &self.packing)
        else {
            return core.content(self.objects.at(object));
        };
        let note = self.objects.note(object);
        let Some((slot, _)) = packing.packs.slot_of(pack, object, note) else {
            return core.content(nowhere::<T>());
        };
        let encoded = match packing.packs.in_ram(pack, slot) {
            Some(value) => value.clone(),
            None => {
                let page = core.content(packing.packs.at(pack))?;
                self.encoder.unpack(&page, slot)
            }
        };
        let base = match base {
            ObjectId::NONE => None,
            // One step: a base has none itself.
            base => Some(self.decode(core, base)?),
        };
        let page = self.encoder.decode(base.as_ref(), &encoded);
        let at = self.place(object).unwrap_or(Ppn::NONE);
        core.flash.prove(at, Owner::object(object), &page)?;
        Ok(page)
    }

    /// The same for a value that is to be stored anew: if it cannot be read any more, what stands for that. A medium that
    /// fails one call may answer the next, so what would be given up for good is read twice.
    pub fn decode_or_lose(
        &mut self,
        core: &mut CoreOf<T>,
        object: ObjectId,
    ) -> Result<PageOf<T>, Failure<T>> {
        let is_lost = |decoded: &Result<_, Failure<T>>| matches!(decoded, Err(FtlError::Device(error)) if T::Flash::is_loss(error));
        let mut decoded = self.decode(core, object);
        if is_lost(&decoded) {
            decoded = self.decode(core, object);
        }
        if is_lost(&decoded)
            && let Some(lost) = self.encoder.lost_page()
        {
            return Ok(lost);
        }
        decoded
    }

    /// Makes a packed object whole, or the logical page share what is stored already.
    pub fn merge(
        &mut self,
        core: &mut CoreOf<T>,
        when: When,
        object: ObjectId,
        lpn: Lpn,
        why: Why,
    ) -> Result<(), Failure<T>> {
        if self.share_instead(core, object, lpn, why) {
            return Ok(());
        }
        loop {
            self.make_room(core, when.at)?;
            // Making room may have merged it.
            if !self.objects.is_alive(object) || !self.objects.is_packed(object) {
                return Ok(());
            }
            match self.append_merged(core, when, object, lpn) {
                Err(FtlError::Full { .. }) if self.give_way(core, when.at)? => {}
                Err(other) => return Err(other),
                Ok(ppn) => {
                    self.merged(core, object, ppn, why);
                    return Ok(());
                }
            }
        }
    }

    /// Programs the value of a packed object as a whole page.
    fn append_merged(
        &mut self,
        core: &mut CoreOf<T>,
        when: When,
        object: ObjectId,
        lpn: Lpn,
    ) -> Result<Ppn, Failure<T>> {
        let page = self.decode_or_lose(core, object)?;
        let unit = Unit::New {
            owner: Owner::object(object),
            page,
        };
        let before = self.set_busy(object);
        let appended = core.append_to_next(self, Stream::Host, when, lpn, unit, Tag::NONE);
        self.set_busy(before);
        Ok(appended?.0)
    }

    /// Notes the object that is being merged, or none; answers the one noted before.
    fn set_busy(&mut self, object: ObjectId) -> ObjectId {
        let packing = self.packing.as_mut();
        packing.map_or(ObjectId::NONE, |p| std::mem::replace(&mut p.busy, object))
    }

    /// With deduplication: if the value of a packed object is stored already, its logical page shares that.
    pub fn share_instead(
        &mut self,
        core: &mut CoreOf<T>,
        object: ObjectId,
        lpn: Lpn,
        why: Why,
    ) -> bool {
        if core.options().barriers {
            // A device that survives would have to remember it, and its contents here name values but roughly.
            return false;
        }
        let content = self.objects.content(object);
        let found = self.candidate(content);
        let same = found.is_some_and(|o| self.objects.content(o) == content);
        let found = found.filter(|&o| o != object && !self.objects.is_packed(o));
        let found = found.filter(|_| same || !self.policies.dedup.verify);
        let Some(found) = found.filter(|_| self.objects.get(lpn) == object) else {
            return false;
        };
        self.share_found(core, lpn, content, found);
        self.count(|counters| {
            counters.count_merge(why);
            counters.merges_shared += 1;
        });
        true
    }

    /// A logical page, which has this value already, shares an object that the index named for it: the entry moves to the
    /// head. Where duplicates are not verified it may have another value.
    pub fn share_found(
        &mut self,
        core: &mut CoreOf<T>,
        lpn: Lpn,
        content: T::Content,
        found: ObjectId,
    ) {
        let is_other = self.objects.content(found) != content;
        self.policies.dedup.counters.corrupted += u64::from(is_other);
        self.policies.dedup.index.touch(&mut self.objects, found);
        self.redirect(core, lpn, found);
    }

    /// A packed object has been programmed as a whole page.
    pub fn merged(&mut self, core: &mut CoreOf<T>, object: ObjectId, ppn: Ppn, why: Why) {
        core.counters.programs_merge += 1;
        self.count(|counters| counters.count_merge(why));
        self.materialized(core, object, ppn);
        let known = self.candidate(self.objects.content(object)).is_some();
        if self.policies.dedup.is_on() && !known {
            self.index(object);
        }
    }

    /// A packed object lies in a unit of its own from now on.
    pub fn materialized(&mut self, core: &mut CoreOf<T>, object: ObjectId, ppn: Ppn) {
        let pack = self.objects.pack_of_delta(object);
        if let Some(packing) = &mut self.packing
            && let Some(pack) = pack.filter(|_| self.objects.references(object) > 0)
        {
            packing.packs.lose_live(pack);
        }
        self.unpack(core, object);
        self.objects.set_whole(object, ppn);
        core.map_cache.materialized(object);
    }

    /// Reads the flash pages of an object, without those in RAM; answers when each is there.
    pub fn read_places(
        &mut self,
        core: &mut CoreOf<T>,
        ready: Ready,
        object: ObjectId,
        cause: Cause,
        tag: Tag,
    ) -> Result<[Option<Completion>; 2], Failure<T>> {
        let mut done = [None, None];
        for (ppn, done) in self.places(object).into_iter().zip(&mut done) {
            if let Some(ppn) = ppn {
                *done = Some(core.read(ready, ppn, cause, tag)?);
            }
        }
        Ok(done)
    }

    /// Notes what is to be materialized in idle time; whether another scan would note anything else.
    pub fn begin_cold_scan(&mut self) -> bool {
        self.asked()
            .is_some_and(|(view, policies)| policies.begin_cold_scan(&view))
    }

    /// The next page that the scan noted and that is stored as a delta still, and its object.
    pub fn next_cold(&mut self) -> Option<(ObjectId, Lpn)> {
        self.policies.next_cold(&self.objects)
    }
}
