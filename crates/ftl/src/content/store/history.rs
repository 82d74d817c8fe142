//! What is done with old versions: room is made of them, a rewind to an instant, a purge.
//!
//! The history answers what goes; here what it gives up loses its references.

use crate::policies::history::tier::Tier;
use std::ops::Range;

use flashlore_content::history::{Removal, TooOld, Version};
use flashlore_flash::{Flash, Lpn, ObjectId};

use super::Store;
use crate::content::parts::{CoreOf, Failure, Parts, TablesOf};
use crate::error::FtlError;
use crate::policies::history::Versions;

/// How many entries before its own is dropped an object is asked for, what its death touches, and what that
/// leads to.
const OBJECT_AHEAD: u32 = 12;
const DEATH_AHEAD: u32 = 8;
const NEIGHBOURS_AHEAD: u32 = 4;

/// Entries that are taken out of the history before what they gave up is released.
const REMOVED_AT_ONCE: u32 = 1 << 16;

impl<T: Parts> Store<T> {
    /// Gives up the oldest versions until there is room for one more unit, as far as they may go, and the reserve is
    /// free of them, as far as the least window allows.
    pub fn make_room_of_history(&mut self, core: &mut CoreOf<T>) {
        let most = core.most_live();
        while let Some(versions) = &self.policies.versions
            && let units = self.units(core)
            && units >= most.saturating_sub(versions.options.reserve)
            && self
                .policies
                .versions
                .as_mut()
                .is_some_and(|versions| match units >= most {
                    true => versions.shrink(),
                    false => versions.spare(),
                })
        {
            self.prefetch_dropped(core);
            self.release_dropped(core);
        }
    }

    /// Refuses a write that would be remembered where there is no room for that and versions are protected; the window
    /// may be longer than the least one by now, and then it is shortened.
    ///
    /// # Errors
    /// [`FtlError::ProtectedEntries`].
    #[inline(always)]
    pub fn room_for_entry(&mut self, core: &mut CoreOf<T>) -> Result<(), Failure<T>> {
        let full =
            |v: &Versions<TablesOf<T>>| v.is_recording() && v.protects() && v.history.is_full();
        if !self.policies.versions.as_ref().is_some_and(full) {
            return Ok(());
        }
        self.limit_history(core);
        match self.policies.versions.as_ref().filter(|v| full(v)) {
            Some(versions) => Err(FtlError::ProtectedEntries {
                entries: versions.history.len() as u64,
                holders: versions.history.holders(),
            }),
            None => Ok(()),
        }
    }

    /// Gives up the oldest versions while the history has more entries than it may, as far as they may go.
    pub fn limit_history(&mut self, core: &mut CoreOf<T>) {
        while let Some(versions) = &mut self.policies.versions
            && versions.history.is_full()
            && versions.shrink()
        {
            self.prefetch_dropped(core);
            self.release_dropped(core);
        }
    }

    /// Asks for what the entries that will be dropped next lead to.
    #[inline(always)]
    fn prefetch_dropped(&self, core: &CoreOf<T>) {
        let Some(versions) = &self.policies.versions else {
            return;
        };
        if let Some(object) = versions.history.upcoming(OBJECT_AHEAD) {
            self.objects.prefetch_object(object);
        }
        if let Some(object) = versions.history.upcoming(DEATH_AHEAD) {
            self.prefetch_death(core, object);
        }
        if let Some(object) = versions.history.upcoming(NEIGHBOURS_AHEAD) {
            self.prefetch_neighbours(core, object);
        }
    }

    /// Objects that entries gave up lose their references.
    pub fn release_dropped(&mut self, core: &mut CoreOf<T>) {
        if let Some(versions) = &mut self.policies.versions {
            let oldest = versions.history.oldest();
            core.flash.window_begins(oldest);
            if let Some(times) = &mut core.seal_times {
                times.window_begins(oldest);
            }
            while let Some(table) = versions.tier.as_mut().and_then(|tier| tier.pass(oldest)) {
                core.invalidate(table);
            }
        }
        while let Some(versions) = &mut self.policies.versions
            && let Some(object) = versions.dropped.pop()
        {
            versions.counters.dropped += 1;
            if self.watching_pins(object, |objects| objects.give_up(object)) {
                self.die(core, object);
            }
        }
    }

    /// Moves the start of the window on.
    pub fn advance_window(&mut self, core: &mut CoreOf<T>, to: u64) {
        self.remove(core, Removal::advance(to));
    }

    /// Takes something out of the history, and releases what it gives up.
    fn remove(&mut self, core: &mut CoreOf<T>, mut removal: Removal) {
        let mut more = true;
        while more && let Some(versions) = &mut self.policies.versions {
            let Versions {
                history, dropped, ..
            } = versions;
            more = history.remove(&mut removal, REMOVED_AT_ONCE, &mut |object| {
                dropped.push(object);
            });
            self.release_dropped(core);
        }
    }

    /// Forgets every version of these pages but the present one.
    pub fn purge(&mut self, core: &mut CoreOf<T>, pages: Range<Lpn>) {
        self.remove(core, Removal::purge(pages));
    }

    /// Deletes a snapshot; whether there was one.
    pub fn delete_snapshot(&mut self, core: &mut CoreOf<T>, instant: u64) -> bool {
        let Some(versions) = &mut self.policies.versions else {
            return false;
        };
        let Some(removal) = versions.history.begin_to_delete_snapshot(instant) else {
            return false;
        };
        self.remove(core, removal);
        true
    }

    /// Forgets every instant before this one, and the snapshots among them after which anything changed; answers
    /// those.
    pub fn forget_before(&mut self, core: &mut CoreOf<T>, to: u64) -> Vec<u64> {
        let Some(versions) = &mut self.policies.versions else {
            return Vec::new();
        };
        let (removal, ended) = versions.history.begin_to_forget(to);
        self.remove(core, removal);
        ended
    }

    /// What a page referred to at an instant, with the present resolved: an object, none, or what was purged.
    ///
    /// # Errors
    /// If the instant is not remembered.
    pub fn version_at(&self, lpn: Lpn, instant: u64) -> Result<Version, TooOld> {
        let version = match &self.policies.versions {
            Some(versions) => versions.history.at(lpn, instant)?,
            None => Version::Current,
        };
        Ok(match version {
            Version::Current => match self.objects.object_of(lpn) {
                Some(object) => Version::Object(object),
                None => Version::Nothing,
            },
            known => known,
        })
    }

    /// Every page refers again to what it referred to at an instant, and to nothing where that was purged: who must
    /// not lose it asks before. Answers how many changed.
    ///
    /// # Errors
    /// If the instant is not remembered; then nothing has changed.
    pub fn rewind_to(&mut self, core: &mut CoreOf<T>, instant: u64) -> Result<u64, TooOld> {
        let Some(versions) = &mut self.policies.versions else {
            return Ok(0);
        };
        // Pinned meanwhile: what is recorded may shorten the window.
        let had = versions.history.snapshots().any(|pinned| pinned == instant);
        versions.history.snapshot(instant)?;
        let changed = versions.history.changed_since(instant)?;
        let mut count = 0;
        for lpn in changed.iter() {
            let target = match self.version_at(lpn, instant)? {
                Version::Object(object) => object,
                Version::Nothing | Version::Purged | Version::Current => ObjectId::NONE,
            };
            if self.objects.get(lpn) == target {
                continue;
            }
            count += 1;
            match target {
                ObjectId::NONE => {
                    self.forget(core, lpn);
                }
                object => self.refer(core, lpn, object),
            }
        }
        if !had {
            self.delete_snapshot(core, instant);
            // What it kept could not go before.
            self.limit_history(core);
        }
        Ok(count)
    }

    /// Units that old versions may take beside what the present needs now. Packed units count as the present's.
    pub fn room_of_history(&self, core: &CoreOf<T>) -> u64 {
        let whole = |&o: &ObjectId| self.objects.is_history(o) && !self.objects.is_packed(o);
        let old = (0..self.objects.handles())
            .map(ObjectId)
            .filter(whole)
            .count() as u64;
        let live = self.units(core) - old - u64::from(self.tables());
        let reserve = self
            .policies
            .versions
            .as_ref()
            .map_or(0, |v| v.options.reserve);
        core.most_live().saturating_sub(reserve + live)
    }

    /// Units with entries of the history.
    pub fn tables(&self) -> u32 {
        let tier = self
            .policies
            .versions
            .as_ref()
            .and_then(|v| v.tier.as_ref());
        tier.map_or(0, Tier::len)
    }

    /// Objects that old versions alone keep alive.
    pub fn historical_objects(&self) -> u64 {
        let alive = (0..self.objects.handles())
            .map(ObjectId)
            .filter(|&o| self.objects.is_history(o));
        alive.count() as u64
    }
}
