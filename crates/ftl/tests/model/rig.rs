//! A device, what stands before it, and what both should hold.
//!
//! Three lists of versions are kept beside them. `model` has what was handed on to the device, stamped with the
//! instant at which the host asked for it: that is what the device must answer, now and at every instant it
//! remembers. `truth` has what the host asked for, queued changes too; behind a queue it says what a loss of
//! power may take. `host` is the newest of it: what a read must answer, wherever it is answered from.
//!
//! Without power a queue is lost, unless a capacitor hands it on (`queue.ack = "enqueue"`). What is checked
//! then: of each page a suffix of its changes is lost, and every instant before the oldest lost change reads
//! as if nothing had been. What was handed on is not lost, so nothing that `queue.ack = "program"` acknowledged
//! is. Changes of different pages that were not acknowledged may be lost in any order.

use flashlore_content::NoCensus;
use flashlore_content::history::Version;
use flashlore_flash::memory::MemoryFlash;
use flashlore_flash::rules::Checked;
use flashlore_flash::{Cause, Flash, Lpn, ObjectId, Ppn, Tag, When};
use flashlore_ftl::buffer::BufferPlace;
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::core::Core;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::{ContentFtl, FtlError, FtlOptions, Outcome, Policies, Unhashed};

use crate::buffering::{Buffering, BufferingKind, Change, Leaving};
use crate::common::values::{Lengths, Page, V};
use crate::draw::{Case, Combination, Step};
use crate::events::{Event, Tally, Watch};
use crate::versions::{Origin, Versions};

type Medium = Checked<MemoryFlash<Page>>;
pub type Device = ContentFtl<V, Medium, NoCensus, Resident, Lengths, Past>;

/// How far back instants are compared at the end.
const BACK: [u64; 9] = [0, 1, 2, 5, 11, 31, 77, 160, 333];

pub struct Rig {
    ftl: Device,
    buffering: Buffering,
    model: Versions,
    truth: Versions,
    /// By page: when the host last changed it, and to what.
    host: Vec<(u64, Option<u32>)>,
    snapshots: Vec<u64>,
    watch: Watch,
    dedups: bool,
    keeps: bool,
    /// The smallest distance of instants that a schedule keeps.
    spacing: Option<u64>,
    kind: BufferingKind,
    places: u32,
    range: u32,
    values: u32,
    now: u64,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A write for which protected versions left no room has not happened.
fn unless_protected<T, E: std::error::Error>(
    done: Result<T, FtlError<E>>,
) -> Result<Option<T>, String> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(FtlError::Protected { .. } | FtlError::ProtectedEntries { .. }) => Ok(None),
        Err(other) => Err(text(other)),
    }
}

impl Rig {
    pub fn new(combination: &Combination, case: &Case) -> Self {
        let geometry = case.drawn.geometry();
        let mut options = case.drawn.options();
        let in_ram = case.versions.as_ref().and_then(|v| v.entries_in_ram);
        let least = FtlOptions {
            exported: 1,
            log: case.delta.is_some() || in_ram.is_some(),
            ..options.clone()
        };
        let medium = || -> Medium { Checked::new(MemoryFlash::new(geometry.clone())) };
        let core = Core::new(medium(), least).expect("one page fits");
        options.exported = (core.most_live() as u32 * case.fill / 100).max(4);
        let exported = options.exported;
        let policies = Policies {
            dedup: case.dedup,
            encoding: case.delta,
            versions: case.versions.clone(),
            encoder: case.lengths,
        };
        let mut ftl = ContentFtl::with_policies(medium(), options, policies, NoCensus, Resident)
            .expect("what is drawn fits together");
        ftl.begin_history();
        Rig {
            ftl,
            buffering: Buffering::new(combination.buffering, case.places, case.range),
            model: Versions::default(),
            truth: Versions::default(),
            host: vec![(0, None); exported as usize],
            snapshots: Vec::new(),
            watch: Watch::new(),
            dedups: combination.dedup,
            keeps: combination.history,
            spacing: case
                .versions
                .as_ref()
                .and_then(|v| v.history.schedule.as_ref()?.spacing()),
            kind: combination.buffering,
            places: case.places,
            range: case.range,
            values: case.values,
            now: 0,
        }
    }

    /// Every unit of the medium is referred to, or padding; and every value in a packed one.
    fn nothing_stale(&mut self) -> Result<(), String> {
        self.watch.tally.erased += 1;
        let medium = self.ftl.core().flash().inner();
        for unit in (0..medium.geometry().units()).map(Ppn) {
            let Some(stored) = medium.stored(unit) else {
                continue;
            };
            let valid = self.ftl.core().blocks().is_valid(unit);
            let named = match (&stored.page, &self.ftl.packing()) {
                _ if !valid => false,
                (Page::Packed(values), Some(packing)) if !values.is_empty() => {
                    let used = packing
                        .packs
                        .used()
                        .find(|&(pack, _)| packing.packs.at(pack) == unit);
                    used.is_some_and(|(pack, _)| {
                        let slots = packing.packs.slots(pack).unwrap();
                        slots.iter().all(|slot| slot.object.is_some())
                    })
                }
                _ => true,
            };
            if !named {
                return Err(format!("unit {} holds {:?} still", unit.0, stored.page));
            }
        }
        Ok(())
    }

    pub fn into_tally(mut self) -> Tally {
        self.watch.tally.operations = self.now;
        self.watch.tally.victims = self.ftl.core().counters().victims;
        self.watch.tally
    }

    fn exported(&self) -> u32 {
        self.host.len() as u32
    }

    /// A page; three quarters of the numbers name the first quarter.
    fn page(&self, raw: u32) -> u32 {
        if raw.is_multiple_of(4) {
            raw / 4 % self.exported()
        } else {
            raw / 4 % (self.exported() / 4).max(1)
        }
    }

    /// A value; a quarter of the numbers name one of a few.
    fn value(&self, raw: u32) -> u32 {
        if raw.is_multiple_of(4) {
            raw / 4 % self.values.min(20)
        } else {
            raw / 4 % self.values
        }
    }

    /// The value of an old version.
    fn old_value(&self, raw: u32) -> Option<u32> {
        let history = &self.ftl.versions()?.history;
        let count = history.objects().count().max(1);
        let object = history.objects().nth(raw as usize % count)?;
        Some(self.ftl.objects().content(object).0)
    }

    /// An instant up to the present, more often a late one.
    fn instant(&self, raw: u32) -> u64 {
        let back = u64::from(raw >> 8) % (1 << (raw % 12));
        self.now.saturating_sub(back)
    }

    pub fn step(&mut self, step: Step) -> Result<(), String> {
        self.now += 1;
        let now = self.now;
        self.ftl.advance(now).map_err(text)?;
        self.ftl.set_instant(now);
        match step {
            Step::Write(raw, value) => {
                self.change(Lpn(self.page(raw)), Some(self.value(value)), self.dedups)?;
            }
            Step::WriteUnhashed(raw, value) => {
                self.change(Lpn(self.page(raw)), Some(self.value(value)), false)?;
            }
            Step::WriteOld(raw, version) => {
                if let Some(value) = self.old_value(version) {
                    self.change(Lpn(self.page(raw)), Some(value), self.dedups)?;
                }
            }
            Step::Trim(raw) => self.change(Lpn(self.page(raw)), None, false)?,
            Step::Read(raw) => {
                let lpn = self.page(raw);
                self.read(Lpn(lpn))?;
                let merged = self.ftl.merge_if_read_hot(When::now(now), Lpn(lpn));
                unless_protected(merged)?;
            }
            Step::ReadAt(raw, time) => self.compare(Lpn(self.page(raw)), self.instant(time))?,
            Step::Scan => {
                self.ftl.begin_cold_scan();
            }
            Step::MergeCold => {
                let merged = self.ftl.merge_cold(now);
                unless_protected(merged)?;
            }
            Step::Flush => {
                let flushed = self.ftl.flush_packs(now);
                unless_protected(flushed)?;
                self.ftl.core_mut().flush(now).map_err(text)?;
            }
            Step::Snapshot(raw) => {
                let instant = self.instant(raw);
                if self.ftl.snapshot(instant).is_ok() {
                    self.snapshots.push(instant);
                }
            }
            Step::DeleteSnapshot(raw) => self.delete_snapshot(raw)?,
            Step::RewindTo(raw) => self.rewind_to(self.instant(raw))?,
            Step::Advance(raw) => self.ftl.advance_window(self.instant(raw)),
            Step::Purge(raw, count) => {
                self.hand_all_on()?;
                let first = self.page(raw);
                let end = (first + count % 4).min(self.exported());
                if raw.is_multiple_of(3) {
                    match self.ftl.purge_and_erase(now, Lpn(first)..Lpn(end)) {
                        Ok(_) => self.nothing_stale()?,
                        Err(FtlError::Full { .. } | FtlError::Protected { .. }) => {
                            self.watch.tally.unerased += 1;
                        }
                        Err(other) => return Err(text(other)),
                    }
                } else {
                    self.ftl.purge(Lpn(first)..Lpn(end));
                }
                (first..end).for_each(|lpn| self.model.purge(Lpn(lpn)));
                self.truth = self.model.clone();
            }
            Step::HandOn(raw) => {
                let mut on = Vec::new();
                self.buffering.hand_on(Lpn(self.page(raw)), &mut on);
                self.take_all(&on)?;
            }
            Step::HandAllOn => self.hand_all_on()?,
            Step::Left => self.buffering.all_leave(),
            Step::PowerFails => self.power_fails()?,
        }
        self.watch.look(&self.ftl);
        Ok(())
    }

    pub fn check(&self) -> Result<(), String> {
        self.ftl.check()?;
        self.buffering.check()
    }

    /// The host writes or trims a page.
    fn change(&mut self, lpn: Lpn, value: Option<u32>, hashed: bool) -> Result<(), String> {
        let change = Change {
            value,
            arrival: self.now,
            hashed,
        };
        self.host[lpn.index()] = (self.now, value);
        if self.buffering.is_queue() {
            self.truth.change(lpn, self.now, value, Origin::Written);
        }
        let mut on = Vec::new();
        self.buffering.arrive(lpn, change, &mut on);
        self.take_all(&on)
    }

    fn hand_all_on(&mut self) -> Result<(), String> {
        let mut on = Vec::new();
        while self.buffering.hand_on(Lpn(0), &mut on) {}
        self.take_all(&on)
    }

    /// The device takes what was handed on.
    fn take_all(&mut self, on: &[Leaving]) -> Result<(), String> {
        for leaving in on {
            self.take(leaving)?;
            self.watch.look(&self.ftl);
        }
        self.ftl.set_instant(self.now);
        Ok(())
    }

    fn take(&mut self, leaving: &Leaving) -> Result<(), String> {
        let Leaving { lpn, change, place } = *leaving;
        self.ftl.set_instant(change.arrival);
        let Some(value) = change.value else {
            self.ftl.trim(lpn).map_err(text)?;
            if self.model.present(lpn).is_some() {
                let stamp = change.arrival;
                self.model.change(lpn, stamp, None, Origin::Trimmed);
            }
            return Ok(());
        };
        let candidate = self.ftl.candidate(V(value));
        let kept = candidate.and_then(|object| self.watch.kept_alone(object));
        let oldest = self.ftl.versions().map(|v| v.history.oldest());
        match self.write(lpn, value, change.hashed)? {
            None => self.refused(lpn, change, place),
            Some(Outcome::Silent) => {}
            Some(outcome) => {
                let objects = self.ftl.objects();
                let object = objects.object_of(lpn);
                let is_delta = object.is_some_and(|o| objects.is_delta(o));
                let origin = if is_delta {
                    Origin::Delta
                } else {
                    Origin::Written
                };
                if outcome == Outcome::Packed {
                    self.watch.packed(&self.ftl, lpn);
                }
                let advanced = self.ftl.versions().map(|v| v.history.oldest()) > oldest;
                if let (Outcome::Shared, Some(kept), Some(object)) = (outcome, kept, object)
                    && advanced
                    && candidate == Some(object)
                    && objects.kept(object) < kept
                {
                    self.watch.tally.count(Event::HistoricalHitAndAdvance, 1);
                }
                self.model.change(lpn, change.arrival, Some(value), origin);
            }
        }
        Ok(())
    }

    /// A write; `None` if it was refused.
    fn write(&mut self, lpn: Lpn, value: u32, hashed: bool) -> Result<Option<Outcome>, String> {
        let when = When::now(self.now);
        if hashed {
            let written = self.ftl.write(when, lpn, V(value), Tag::NONE);
            return unless_protected(written.map(|(outcome, _)| outcome));
        }
        let off = Unhashed::Off;
        let written = self.ftl.write_unhashed(when, lpn, V(value), off, Tag::NONE);
        let written = unless_protected(written)?;
        let object = self.ftl.objects().object_of(lpn);
        let is_packed = object.is_some_and(|o| self.ftl.objects().is_packed(o));
        Ok(written.map(|_| match is_packed {
            true => Outcome::Packed,
            false => Outcome::Programmed,
        }))
    }

    /// A change has not happened: nobody is told of it any more.
    fn refused(&mut self, lpn: Lpn, change: Change, place: Option<BufferPlace>) {
        self.watch.tally.refused += 1;
        self.truth.withdraw(lpn, change.arrival);
        if let Some(place) = place {
            self.buffering.refused(place);
        }
        let host = &mut self.host[lpn.index()];
        if host.0 == change.arrival {
            host.1 = self.model.present(lpn);
        }
    }

    fn read(&mut self, lpn: Lpn) -> Result<(), String> {
        let found = match self.buffering.get(lpn) {
            Some(change) => change.value,
            None => self.read_device(lpn)?,
        };
        let (_, expected) = self.host[lpn.index()];
        (found == expected)
            .then_some(())
            .ok_or(format!("page {lpn}: {found:?}, expected {expected:?}"))
    }

    fn read_device(&mut self, lpn: Lpn) -> Result<Option<u32>, String> {
        let read = self.ftl.read(self.now, lpn, Cause::Host, Tag::NONE);
        let (page, _) = read.map_err(text)?;
        Ok(page.map(|page| page.value().0))
    }

    /// Whether a schedule may have kept an instant; under pressure it needs not.
    fn may_be_scheduled(&self, instant: u64) -> bool {
        self.spacing
            .is_some_and(|spacing| instant.is_multiple_of(spacing))
    }

    /// Whether the device holds at an instant what was handed on to it by then.
    fn compare(&mut self, lpn: Lpn, instant: u64) -> Result<(), String> {
        let Some(versions) = self.ftl.versions() else {
            return Ok(());
        };
        let remembered = instant >= versions.history.oldest() || self.snapshots.contains(&instant);
        let object = match (self.ftl.version_at(lpn, instant), remembered) {
            (Ok(object), true) => object,
            (Err(_), false) => return Ok(()),
            (Ok(object), false) if self.may_be_scheduled(instant) => object,
            (Ok(_), false) => return Err(format!("{instant} is remembered for no reason")),
            (Err(error), true) => return Err(text(error)),
        };
        let is_purged = self.model.is_purged(lpn, instant);
        if (object == Version::Purged) != is_purged {
            return Err(format!(
                "page {lpn} at {instant}: {object:?}, expected it purged: {is_purged}"
            ));
        }
        let found = match object {
            Version::Object(object) => Some(self.ftl.read_version(object).map_err(text)?.value().0),
            Version::Purged => return Ok(()),
            Version::Nothing | Version::Current => None,
        };
        let expected = self.model.at(lpn, instant);
        if found != expected {
            return Err(format!(
                "page {lpn} at {instant} (now {}): {found:?}, expected {expected:?}",
                self.now
            ));
        }
        Ok(())
    }

    fn delete_snapshot(&mut self, raw: u32) -> Result<(), String> {
        if self.snapshots.is_empty() {
            return Ok(());
        }
        let at = raw as usize % self.snapshots.len();
        let instant = self.snapshots.swap_remove(at);
        self.snapshots.retain(|&other| other != instant);
        match self.ftl.delete_snapshot(instant) {
            true => Ok(()),
            false => Err(format!("there is no snapshot of {instant}")),
        }
    }

    fn rewind_to(&mut self, instant: u64) -> Result<(), String> {
        self.hand_all_on()?;
        self.buffering.all_leave();
        let pages = (0..self.exported()).map(Lpn);
        let before: Vec<Option<ObjectId>> = pages
            .clone()
            .map(|lpn| self.ftl.objects().object_of(lpn))
            .collect();
        let trimmed: Vec<bool> = pages
            .clone()
            .map(|lpn| self.model.present_origin(lpn) == Some(Origin::Trimmed))
            .collect();
        if self.ftl.rewind_to(instant).is_err() {
            return Ok(());
        }
        for lpn in pages.clone() {
            let objects = self.ftl.objects();
            let Some(object) = objects.object_of(lpn) else {
                continue;
            };
            if before[lpn.index()] == Some(object) {
                continue;
            }
            let was_delta = self.model.origin_at(lpn, instant) == Some(Origin::Delta);
            let merged = was_delta && !objects.is_delta(object);
            let tally = &mut self.watch.tally;
            tally.count(Event::RewoundToMerged, u64::from(merged));
            tally.count(Event::RewoundTrimmed, u64::from(trimmed[lpn.index()]));
        }
        let objects = self.ftl.objects();
        let began = |lpn: Lpn| objects.object_of(lpn) != before[lpn.index()];
        self.model.rewind_to(instant, self.now, began);
        self.truth = self.model.clone();
        for lpn in pages {
            self.host[lpn.index()] = (self.now, self.model.present(lpn));
            self.read_device_of(lpn)?;
        }
        Ok(())
    }

    /// Whether a page of the device holds what was handed on last.
    fn read_device_of(&mut self, lpn: Lpn) -> Result<(), String> {
        let found = self.ftl.objects().object_of(lpn);
        let found = found.map(|object| self.ftl.objects().content(object).0);
        let expected = self.model.present(lpn);
        (found == expected)
            .then_some(())
            .ok_or(format!("page {lpn}: {found:?}, {expected:?} was handed on"))
    }

    /// The queue is lost.
    fn power_fails(&mut self) -> Result<(), String> {
        self.watch
            .power_failed(self.buffering.held.iter().map(|held| held.0));
        let oldest_lost = self
            .buffering
            .held
            .iter()
            .map(|(_, change)| change.arrival)
            .min();
        for &(lpn, change) in &self.buffering.held {
            // What was handed on of a page came before what was not.
            let last = self.model.last_stamp(lpn);
            if last.is_some_and(|last| last > change.arrival) {
                return Err(format!(
                    "page {lpn}: {last:?} went on before {}",
                    change.arrival
                ));
            }
        }
        let before = oldest_lost.unwrap_or(self.now + 1) - 1;
        for lpn in 0..self.exported() {
            self.read_device_of(Lpn(lpn))?;
            for back in BACK {
                let instant = before.saturating_sub(back);
                let (kept, was) = (
                    self.model.at(Lpn(lpn), instant),
                    self.truth.at(Lpn(lpn), instant),
                );
                if kept != was {
                    return Err(format!(
                        "page {lpn} at {instant}, before anything was lost: {kept:?}, was {was:?}"
                    ));
                }
            }
            self.compare(Lpn(lpn), before)?;
            self.host[lpn as usize] = (self.now, self.model.present(Lpn(lpn)));
        }
        self.buffering = Buffering::new(self.kind, self.places, self.range);
        self.truth = self.model.clone();
        Ok(())
    }

    /// Every page, now and at a few instants.
    pub fn compare_all(&mut self) -> Result<(), String> {
        for lpn in 0..self.exported() {
            self.read(Lpn(lpn))?;
            self.read_device_of(Lpn(lpn))?;
            if !self.keeps {
                continue;
            }
            for back in BACK {
                self.compare(Lpn(lpn), self.now.saturating_sub(back))?;
            }
            let history = self.ftl.versions().map(|v| &v.history);
            let pinned: Vec<u64> = history.into_iter().flat_map(|h| h.pinned()).collect();
            for instant in pinned {
                self.compare(Lpn(lpn), instant)?;
            }
            for i in 0..self.snapshots.len() {
                self.compare(Lpn(lpn), self.snapshots[i])?;
            }
        }
        Ok(())
    }
}
