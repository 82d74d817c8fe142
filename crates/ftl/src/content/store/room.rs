//! Room: what values may take of the device, and what gives way before that runs out.
//!
//! *Stored* are the values to which logical pages refer. Whoever writes keeps them at or below
//! [`Core::most_live`](crate::core::Core::most_live): so many units may be valid while collection still finds a victim
//! that gains a flash page. What is left of the device are the open blocks, the blocks kept free, and what padding
//! may waste in each block. Then every write finds room, however small its pieces are:
//!
//! 1. Besides packed pages with live deltas a stored value takes one unit at most. Held whole it is its own. Of a delta
//!    it is a base that deltas alone keep, and there are no more of these than deltas. Compressed by itself it is a
//!    packed page in which nothing else is needed, however many dead slots that has.
//! 2. Packed pages with live deltas are `most_live` - stored - 1 at most (`most_packs`), where stored values may be
//!    as many as `most_live`. Beyond that the deltas of the page filled longest ago are materialized: each takes a
//!    unit, which 1 counts already, and the page goes with the last of them.
//! 3. So without old versions units in use are below `most_live`, but for packed pages that wait in RAM with their
//!    units reserved: the host's, collection's, one that either began meanwhile, and what a recovery found.
//! 4. Old versions take what is left. They are forgotten first, before anything is materialized. If snapshots or a
//!    protected window hold them, the write is refused and the error names these.
//!
//! Where all exported pages may be live at once (`FtlOptions::thin` is off), 2 says: exported instead of stored.
//! `check_room` recounts this.

use flashlore_flash::{Time, When};

use super::Store;
use crate::content::encoding::Why;
use crate::content::parts::{CoreOf, Failure, PackingOf, Parts};
use crate::error::FtlError;
use crate::mapping::packs::Slot;
use crate::policies::history::Versions;

impl<T: Parts> Store<T> {
    /// Packed pages with live deltas that there may be.
    pub fn most_packs(&self, core: &CoreOf<T>, packing: &PackingOf<T>) -> u32 {
        match core.options().thin {
            // One more page may be written.
            true => packing.most_packs.saturating_sub(self.referenced + 1),
            false => packing.most_packs,
        }
    }

    /// Merges the oldest packed values until one more packed page may be programmed.
    pub fn limit_packs(&mut self, core: &mut CoreOf<T>, at: Time) -> Result<(), Failure<T>> {
        let beyond = |store: &Self, core: &CoreOf<T>| {
            let too_many = |p: &PackingOf<T>| p.packs.live() >= store.most_packs(core, p);
            store.packing.as_ref().is_some_and(too_many)
        };
        self.pack_densely(core, at)?;
        while beyond(self, core) {
            if !self.merge_oldest(core, at)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Materializes the live deltas of the packed page that was filled longest ago; whether there were any. There seem to be
    /// none where their objects stand in a page of the tables that cannot be read, and asking again would not help.
    fn merge_oldest(&mut self, core: &mut CoreOf<T>, at: Time) -> Result<bool, Failure<T>> {
        let evicting = |packing: &PackingOf<T>| packing.evicting;
        if self.packing.as_ref().is_none_or(evicting) {
            return Ok(false);
        }
        let Some(pack) = self.oldest_live_pack(core) else {
            return Ok(false);
        };
        let slots = self.borrow_slots(core, pack, None)?;
        if let Some(packing) = &mut self.packing {
            packing.evicting = true;
        }
        let mut merged = Ok(false);
        for &Slot { object, lpn, .. } in &slots {
            // What one merge does to the objects of others may have changed this one.
            let live = object.is_some() && self.objects.references(object) > 0;
            let here = live && self.objects.pack_of_delta(object) == Some(pack);
            if here {
                let done = self.merge(core, When::now(at), object, lpn, Why::Room);
                merged = done.map(|()| true);
            }
            if merged.is_err() {
                break;
            }
        }
        if let Some(packing) = &mut self.packing {
            packing.evicting = false;
        }
        self.give_back_slots(slots);
        merged
    }

    /// The write frontier of a write has no room, though the device may have: one old version or one packed page gives
    /// way. Whether one did.
    pub fn give_way(&mut self, core: &mut CoreOf<T>, at: Time) -> Result<bool, Failure<T>> {
        if self
            .policies
            .versions
            .as_mut()
            .is_some_and(Versions::shrink)
        {
            self.release_dropped(core);
            return Ok(true);
        }
        let evicting = self
            .packing
            .as_ref()
            .is_some_and(|packing| packing.evicting);
        if !evicting && self.merge_oldest(core, at)? {
            return Ok(true);
        }
        match self.protected(core) {
            Some(error) => Err(error),
            None => Ok(false),
        }
    }

    /// The error of a write that finds no room while old versions are left that may not go: those of
    /// snapshots, or of a window that is protected.
    fn protected(&self, core: &CoreOf<T>) -> Option<Failure<T>> {
        let versions = self.policies.versions.as_ref()?;
        (!versions.history.is_empty()).then(|| FtlError::Protected {
            units: self.units(core),
            most: core.most_live(),
            holders: versions.history.holders(),
        })
    }

    /// Makes room for one more unit.
    pub fn make_room(&mut self, core: &mut CoreOf<T>, at: Time) -> Result<(), Failure<T>> {
        self.make_room_of_history(core);
        let evicting = self
            .packing
            .as_ref()
            .is_some_and(|packing| packing.evicting);
        let lacking = |store: &Self, core: &CoreOf<T>| {
            let too_many = |p: &PackingOf<T>| p.packs.live() > store.most_packs(core, p);
            let packs = store.packing.as_ref().filter(|_| core.options().thin);
            store.units(core) >= core.most_live() || packs.is_some_and(too_many)
        };
        while !evicting && lacking(self, core) {
            if !self.merge_oldest(core, at)? {
                break;
            }
        }
        match self.units(core) >= core.most_live() {
            true => self.protected(core).map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    /// A recovery is done: notes how far it went beyond what there may be. It goes back to an instant after which
    /// values were materialized for room, and their copies may be lost: then they are packed again, and those that came
    /// after them, too. The next write materializes them again first.
    pub fn note_beyond(&mut self, core: &CoreOf<T>) {
        let units = self.units(core).saturating_sub(core.most_live());
        if let Some(packing) = &self.packing {
            let packs = packing
                .packs
                .live()
                .saturating_sub(self.most_packs(core, packing));
            let found = (units, packs);
            if let Some(packing) = &mut self.packing {
                packing.found_beyond = found;
            }
        }
    }

    /// Recounts what values take: see the head of this file.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check_room(&self, core: &CoreOf<T>, packing: &PackingOf<T>) -> Result<(), String> {
        if packing.pinned > packing.packed {
            return Err(format!(
                "deltas alone keep {} bases, and there are {} packed values",
                packing.pinned, packing.packed
            ));
        }
        let (units, most) = (self.units(core), core.most_live());
        let (packs, most_packs) = (packing.packs.live(), self.most_packs(core, packing));
        // One page may be in the making, and where a flush leaves pages to be filled in RAM three: the host's,
        // collection's, and one that a write of either began. A recovery may find more.
        let usual = if core.options().thin { 3 } else { 1 };
        let (found_units, found_packs) = packing.found_beyond;
        // A rewind gives pages that held old versions live values, and packing anew spreads live values between
        // old versions: where these are kept, there may be more until the next packed page is programmed.
        let too_many_packs = packs > most_packs.saturating_add(found_packs.max(usual));
        // A write stores its value before the version that it supersedes can be given up: that is an old one then.
        let versions = self.policies.versions.as_ref();
        let superseded = u64::from(versions.is_some_and(|v| !v.history.is_empty()));
        let most_units = most + found_units.max(u64::from(usual) + superseded);
        // What a recovery brings back of a protected window stays.
        let protects = core.options().thin && versions.is_some_and(Versions::protects);
        if units > most_units && !protects || too_many_packs && !self.records() {
            return Err(format!(
                "{units} units hold something, at most {most} may; {packs} packed pages hold live values, \
                 at most {most_packs} may"
            ));
        }
        Ok(())
    }
}
