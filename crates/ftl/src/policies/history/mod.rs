//! Old versions (BVSSD, SYSTOR 2012): what a logical page referred to stays until the window has passed it.
//!
//! A change of the map records what the page referred to before, and that object's live reference becomes a
//! *kept* one. Nothing else knows of history: an object that is kept is valid, is moved by collection like
//! any other, is found by the fingerprint index, and keeps its base. So a version may be whole, a delta
//! or shared, and the newer version of a page may be a delta from the older one.
//!
//! The window shrinks under pressure only: when the units in use leave no room for a write, or when the
//! history has as many entries as it may. Then what a schedule does not want any more goes; then the oldest
//! entries of the window, as few as will do, until that is no longer than the least one; then the instants that
//! only the schedule keeps, oldest first; then the least window, too. With [`OnPressure::Refuse`] that stays.
//! Where it, or snapshots, leave no room, a write is refused before anything changes.
//!
//! A rewind to an instant makes every page changed since refer to what it referred to then, and records what
//! it referred to before: so it is a change like any other, and can be undone.

pub mod tier;

use flashlore_content::Content;
use flashlore_content::history::{History, HistoryOptions};
use flashlore_flash::{Lpn, ObjectId, Owned, Owner, Ppn, Tables};

use self::tier::Tier;
use super::{Asked, Policy};
use crate::mapping::objects::Objects;

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
}

/// What a rewind to an instant takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RewindCost {
    /// Logical pages that change.
    pub pages: u64,
    /// Flash pages read.
    pub reads: u64,
    /// Values decoded.
    pub decodes: u64,
    /// Units programmed, whatever for.
    pub programs: u64,
}

/// The policy, if old versions are to be kept.
pub(super) fn room<S: Tables>(asked: &Asked<'_, S>) -> Option<Versions<S>> {
    let options = asked.versions.clone()?;
    Some(Versions::new(asked.tables, asked.exported, options))
}

/// The history of a device.
#[derive(Debug)]
pub struct Versions<S: Tables> {
    /// What every page referred to, until when.
    pub history: History<S>,
    /// Counts since the start or the end of warm-up.
    pub counters: VersionCounters,
    /// Entries on flash.
    pub tier: Option<Tier>,
    pub(crate) options: VersionsOptions,
    /// When the schedule is to be looked at again.
    next_thinning: u64,
    /// The stamp of what happens now.
    now: u64,
    /// The instant that nothing may be given up for, while one is.
    guarded: Option<u64>,
    /// Whether changes are recorded: not while a device is prepared.
    recording: bool,
    /// Objects given up that have not been released.
    pub(crate) dropped: Vec<ObjectId>,
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

impl<S: Tables> Versions<S> {
    /// Nothing is recorded until [`Versions::begin`].
    pub fn new(tables: &S, exported: u32, options: VersionsOptions) -> Self {
        let history = History::new(tables, exported, options.history.clone());
        Versions {
            recording: false,
            ..Versions::restore(history, options)
        }
    }

    /// A history that is there already; changes are recorded.
    pub fn restore(history: History<S>, options: VersionsOptions) -> Self {
        Versions {
            history,
            counters: VersionCounters::default(),
            tier: options.entries_in_ram.map(Tier::new),
            options,
            next_thinning: 0,
            now: 0,
            guarded: None,
            recording: true,
            dropped: Vec::new(),
            unproven: Vec::new(),
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
    pub(crate) fn record(&mut self, lpn: Lpn, object: ObjectId) {
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
        if let Some(to) = to.filter(|&to| to <= latest)
            && history.advance(to, &mut drop)
        {
            return true;
        }
        if guarded == u64::MAX && history.expire_oldest(&mut drop).is_some() {
            return true;
        }
        let to = to.filter(|_| all);
        to.is_some_and(|to| history.advance(to, &mut drop))
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
    pub(crate) fn shrink(&mut self) -> bool {
        self.drop_oldest(self.options.on_pressure == OnPressure::Shrink)
    }

    /// The same, for the reserve alone: the least window stays.
    pub(crate) fn spare(&mut self) -> bool {
        self.drop_oldest(false)
    }
}

impl<C: Content, V: Clone, S: Tables> Policy<C, V, S> for Versions<S> {
    #[inline(always)]
    fn prefetch(&self, lpn: Lpn) {
        self.history.prefetch(lpn);
    }

    fn on_relocate(&mut self, objects: &Objects<C, S>, owned: Owned, to: Ppn) {
        match owned {
            Owned::Value(object) if objects.is_history(object) => {
                self.counters.copied_historical += 1;
            }
            Owned::Value(_) => self.counters.copied_live += 1,
            Owned::Table(table) => {
                if let Some(tier) = &mut self.tier {
                    tier.relocate(table, to);
                }
            }
            Owned::Pack(_) | Owned::MapPage(_) => {}
        }
    }

    fn location(&self, owned: Owned) -> Option<Ppn> {
        match owned {
            Owned::Table(table) => self.tier.as_ref()?.location(table),
            _ => None,
        }
    }

    fn owners(&self) -> Vec<Owner> {
        self.tier.iter().flat_map(Tier::owners).collect()
    }

    fn check(&self, _: &Objects<C, S>, _: &[ObjectId]) -> Result<(), String> {
        self.history.check()
    }

    fn heap_bytes(&self) -> usize {
        self.history.heap_bytes()
    }

    fn restart_counters(&mut self) {
        self.counters = VersionCounters::default();
        if let Some(tier) = &mut self.tier {
            tier.programs = 0;
        }
    }
}
