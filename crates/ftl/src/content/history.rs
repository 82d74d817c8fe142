//! Old versions (BVSSD, SYSTOR 2012): what a logical page referred to stays until the window has passed it.
//!
//! A change of the map records what the page referred to before, and that object's live reference becomes a
//! *kept* one. Nothing else knows of history: an object that is kept is valid, is moved by collection like
//! any other, is found by the fingerprint index, and keeps its base. So a version may be whole, a difference
//! or shared, and the newer version of a page may be a difference from the older one.
//!
//! The window shrinks under pressure only: when the units in use leave no room for a write, or when the
//! history has as many entries as it may. Then what a schedule does not want any more goes; then the oldest
//! entries of the window, as few as will do, until that is no longer than the least one; then the instants that
//! only the schedule keeps, oldest first; then the least window, too. With [`OnPressure::Refuse`] that stays.
//! Where it, or snapshots, leave no room, a write is refused before anything changes.
//!
//! A return to an instant makes every page changed since refer to what it referred to then, and records what
//! it referred to before: so it is a change like any other, and can be undone.

use std::ops::Range;

use flashlore_content::history::{History, HistoryOptions, TooOld, Version};
use flashlore_flash::Flash;

use super::parts::{CoreOf, Failure, Parts};
use super::store::Store;
use super::tier::Tier;
use crate::error::FtlError;
use crate::mapping::objects::NO_OBJECT;

/// How many entries before its own is dropped an object is asked for, what its death touches, and what that
/// leads to.
const OBJECT_AHEAD: u32 = 12;
const DEATH_AHEAD: u32 = 8;
const NEIGHBOURS_AHEAD: u32 = 4;

/// What happens when room is needed and the window is no longer than the least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnPressure {
    /// The window shrinks all the same.
    Shrink,
    /// The write is refused.
    Refuse,
}

/// How old versions are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionsOptions {
    /// Entries and schedule.
    pub history: HistoryOptions,
    /// The window that is kept if possible, in the unit of stamps.
    pub least_window: u64,
    /// What happens if it is not.
    pub on_pressure: OnPressure,
    /// Units that old versions leave free, of those that can hold data, as far as the least window allows.
    pub reserve: u64,
    /// Entries that RAM has room for; `None` for all. Used on simulated devices alone.
    pub entries_in_ram: Option<u32>,
}

/// What happened to old versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VersionCounters {
    /// Entries recorded.
    pub recorded: u64,
    /// Object references that entries gave up.
    pub dropped: u64,
    /// Units copied by collection that only old versions need.
    pub copied_historical: u64,
    /// Other units it copied.
    pub copied_live: u64,
    /// Logical pages changed by returns to an instant.
    pub returned: u64,
}

/// What a return to an instant takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReturnCost {
    /// Logical pages that change.
    pub pages: u64,
    /// Flash pages read.
    pub reads: u64,
    /// Values decoded.
    pub decodes: u64,
    /// Units programmed, whatever for.
    pub programs: u64,
}

/// The history of a device.
#[derive(Debug)]
pub struct Versions {
    /// What every page referred to, until when.
    pub history: History,
    /// Counts since the start or the end of warm-up.
    pub counters: VersionCounters,
    /// Entries on flash.
    pub tier: Option<Tier>,
    options: VersionsOptions,
    /// When the schedule is to be looked at again.
    next_thinning: u64,
    /// The stamp of what happens now.
    now: u64,
    /// The instant that nothing may be given up for, while one is.
    guarded: Option<u64>,
    /// Whether changes are recorded: not while a device is prepared.
    recording: bool,
    /// Objects given up that have not been released.
    dropped: Vec<u32>,
    /// Times that do not count towards the least window: their last stamps, and how long they were; oldest first.
    unproven: Vec<(u64, u64)>,
}

/// The latest instant that lies at least so long before another, times that do not count left out.
pub fn instant_before(now: u64, span: u64, unproven: &[(u64, u64)]) -> u64 {
    let (mut at, mut left) = (now, span);
    for &(stamp, length) in unproven.iter().rev().filter(|(stamp, _)| *stamp <= now) {
        let since = at.saturating_sub(stamp);
        if since >= left {
            break;
        }
        left -= since;
        at = at.min(stamp).saturating_sub(length);
    }
    at.saturating_sub(left)
}

impl Versions {
    /// Nothing is recorded until [`Versions::begin`].
    pub fn new(exported: u32, options: VersionsOptions) -> Self {
        Versions {
            history: History::new(exported, options.history.clone()),
            counters: VersionCounters::default(),
            tier: options.entries_in_ram.map(Tier::new),
            options,
            next_thinning: 0,
            now: 0,
            guarded: None,
            recording: false,
            dropped: Vec::new(),
            unproven: Vec::new(),
        }
    }

    /// A history that is there already; changes are recorded.
    pub fn restore(history: History, options: VersionsOptions) -> Self {
        Versions {
            history,
            recording: true,
            ..Versions::new(0, options)
        }
    }

    /// From now on changes are recorded.
    pub fn begin(&mut self) {
        self.recording = true;
    }

    /// What happens next happens at this instant.
    #[inline(always)]
    pub fn set_now(&mut self, stamp: u64) {
        self.now = stamp;
    }

    /// Until it is called with `None`: no pressure takes away this instant of the window.
    pub fn guard(&mut self, instant: Option<u64>) {
        self.guarded = instant;
    }

    /// Times that do not count towards the least window: their last stamps, and how long they were; oldest first.
    pub fn set_unproven(&mut self, unproven: Vec<(u64, u64)>) {
        self.unproven = unproven;
    }

    /// Whether writes are refused rather than that the window becomes too short.
    pub fn protects(&self) -> bool {
        self.options.on_pressure == OnPressure::Refuse
    }

    /// Whether changes are recorded.
    #[inline(always)]
    pub fn is_recording(&self) -> bool {
        self.recording
    }

    /// A page does not refer to an object, or to none, any more.
    #[inline(always)]
    pub(super) fn record(&mut self, lpn: u32, object: u32) {
        self.counters.recorded += 1;
        self.history.record(lpn, object, self.now);
    }

    /// Gives something up: see the head of the module. `all` if the least window may go too. Whether anything
    /// was done.
    fn drop_oldest(&mut self, all: bool) -> bool {
        let guarded = self.guarded.unwrap_or(u64::MAX);
        let all = all && guarded == u64::MAX;
        if guarded == u64::MAX && self.thin() {
            return true;
        }
        let latest = instant_before(self.now, self.options.least_window, &self.unproven);
        let latest = latest.min(guarded);
        let Versions {
            history, dropped, ..
        } = self;
        let mut drop = |object| dropped.push(object);
        let to = history.stamp_to_drop(1);
        if let Some(to) = to.filter(|&to| to <= latest) {
            history.advance(to, &mut drop);
            return true;
        }
        if guarded == u64::MAX && history.expire_oldest(&mut drop).is_some() {
            return true;
        }
        let to = to.filter(|_| all);
        to.map(|to| history.advance(to, &mut drop)).is_some()
    }

    /// Gives up what the schedule does not want any more, looked at once in its smallest spacing; whether there
    /// was anything.
    fn thin(&mut self) -> bool {
        let Some(schedule) = &self.options.history.schedule else {
            return false;
        };
        if self.now < self.next_thinning {
            return false;
        }
        let spacing = schedule.spacing().unwrap_or(schedule.exact());
        self.next_thinning = self.now.saturating_add(spacing);
        let before = self.dropped.len();
        let Versions {
            history, dropped, ..
        } = self;
        history.apply_schedule(self.now, &mut |object| dropped.push(object));
        self.dropped.len() > before
    }

    /// The same, as far as the window may be shortened where there is no other room.
    pub(super) fn shrink(&mut self) -> bool {
        self.drop_oldest(self.options.on_pressure == OnPressure::Shrink)
    }

    /// The same, for the reserve alone: the least window stays.
    fn spare(&mut self) -> bool {
        self.drop_oldest(false)
    }
}

impl<T: Parts> Store<T> {
    /// Gives up the oldest versions until there is room for one more unit, as far as they may go, and the reserve is
    /// free of them, as far as the least window allows.
    pub fn make_room_of_history(&mut self, core: &mut CoreOf<T>) {
        let most = core.most_live();
        while let Some(versions) = &self.versions
            && let units = self.units(core)
            && units >= most.saturating_sub(versions.options.reserve)
            && self
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
        let full = |v: &Versions| v.recording && v.protects() && v.history.is_full();
        if !self.versions.as_ref().is_some_and(full) {
            return Ok(());
        }
        self.limit_history(core);
        match self.versions.as_ref().filter(|v| full(v)) {
            Some(versions) => Err(FtlError::ProtectedEntries {
                entries: versions.history.len() as u64,
                holders: versions.history.holders(),
            }),
            None => Ok(()),
        }
    }

    /// Gives up the oldest versions while the history has more entries than it may, as far as they may go.
    pub fn limit_history(&mut self, core: &mut CoreOf<T>) {
        while let Some(versions) = &mut self.versions
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
        let Some(versions) = &self.versions else {
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
        if let Some(versions) = &mut self.versions {
            let oldest = versions.history.oldest();
            core.flash.window_begins(oldest);
            if let Some(times) = &mut core.seal_times {
                times.window_begins(oldest);
            }
            while let Some(table) = versions.tier.as_mut().and_then(|tier| tier.pass(oldest)) {
                core.invalidate(table);
            }
        }
        while let Some(versions) = &mut self.versions
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
        self.on_history(core, |history, mut drop| history.advance(to, &mut drop));
    }

    /// Changes the history and releases what it gives up.
    pub fn on_history<R>(
        &mut self,
        core: &mut CoreOf<T>,
        change: impl FnOnce(&mut History, &mut dyn FnMut(u32)) -> R,
    ) -> Option<R> {
        let Versions {
            history, dropped, ..
        } = self.versions.as_mut()?;
        let answer = change(history, &mut |object| dropped.push(object));
        self.release_dropped(core);
        Some(answer)
    }

    /// Forgets every version of these pages but the present one.
    pub fn purge(&mut self, core: &mut CoreOf<T>, pages: Range<u32>) {
        self.on_history(core, |history, mut drop| history.purge(pages, &mut drop));
    }

    /// Forgets every instant before this one, and the snapshots among them after which anything changed; answers
    /// those.
    pub fn forget_before(&mut self, core: &mut CoreOf<T>, to: u64) -> Vec<u64> {
        let ended = self.on_history(core, |history, mut drop| {
            history.forget_before(to, &mut drop)
        });
        ended.unwrap_or_default()
    }

    /// What a page referred to at an instant, with the present resolved: an object, none, or what was purged.
    ///
    /// # Errors
    /// If the instant is not remembered.
    pub fn version_at(&self, lpn: u32, instant: u64) -> Result<Version, TooOld> {
        let version = match &self.versions {
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
    pub fn return_to(&mut self, core: &mut CoreOf<T>, instant: u64) -> Result<u64, TooOld> {
        let Some(versions) = &mut self.versions else {
            return Ok(0);
        };
        // Pinned meanwhile: what is recorded may shorten the window.
        let had = versions.history.snapshots().any(|pinned| pinned == instant);
        versions.history.snapshot(instant)?;
        let mut changed = Vec::new();
        versions
            .history
            .changed_since(instant, |lpn, version| changed.push((lpn, version)))?;
        let mut count = 0;
        for (lpn, version) in changed {
            let target = match version {
                Version::Object(object) => object,
                Version::Nothing | Version::Purged => NO_OBJECT,
                Version::Current => continue,
            };
            if self.objects.get(lpn) == target {
                continue;
            }
            count += 1;
            match target {
                NO_OBJECT => {
                    self.forget(core, lpn);
                }
                object => self.refer(core, lpn, object),
            }
        }
        if !had {
            self.on_history(core, |history, mut drop| {
                history.delete_snapshot(instant, &mut drop)
            });
            // What it kept could not go before.
            self.limit_history(core);
        }
        if let Some(versions) = &mut self.versions {
            versions.counters.returned += count;
        }
        Ok(count)
    }

    /// Counts a unit that collection copies.
    #[inline(always)]
    pub fn count_copy(&mut self, owner: u32) {
        if let Some(versions) = &mut self.versions {
            if self.objects.is_history(owner) {
                versions.counters.copied_historical += 1;
            } else {
                versions.counters.copied_live += 1;
            }
        }
    }

    /// Units that old versions may take beside what the present needs now. Packed units count as the present's.
    pub fn room_of_history(&self, core: &CoreOf<T>) -> u64 {
        let whole = |&o: &u32| self.objects.is_history(o) && !self.objects.is_packed(o);
        let old = (0..self.objects.handles()).filter(whole).count() as u64;
        let live = self.units(core) - old - u64::from(self.tables());
        let reserve = self.versions.as_ref().map_or(0, |v| v.options.reserve);
        core.most_live().saturating_sub(reserve + live)
    }

    /// Units with entries of the history.
    pub fn tables(&self) -> u32 {
        let tier = self.versions.as_ref().and_then(|v| v.tier.as_ref());
        tier.map_or(0, Tier::len)
    }

    /// Objects that old versions alone keep alive.
    pub fn historical_objects(&self) -> u64 {
        let alive = (0..self.objects.handles()).filter(|&o| self.objects.is_history(o));
        alive.count() as u64
    }
}
