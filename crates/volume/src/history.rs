//! Back in time: reading and returning to instants, snapshots, marks.
//!
//! An instant is a stamp, in nanoseconds since 1970. Stamps strictly increase, whatever the clock does, and a
//! write at exactly an instant is part of it. A rewind, a snapshot with its name, the end of one and a mark are
//! events like a write: durable after the next flush (one that changes much, at once), and there or not
//! there after a crash.
//!
//! Invariant: what is shown of an instant is what was there, or an error. What a purge took is [`VolumeError::Purged`].

use flashlore_content::history::{ChangedPages, TooOld, Version};
use flashlore_content::{PAGE_BYTES, PageBytes};
use flashlore_flash::{Lpn, ObjectId};
use flashlore_ftl::FtlError;
use flashlore_ftl::policies::history::instant_before;

use crate::error::{NandError, VolumeError};
use crate::fetch::ReadPlan;
use crate::format::notes::{ClockNote, MOST_PAYLOAD, NoteKind, Payload, name_payload};
use crate::format::tables::MOST_PINS;
use crate::format::{Change, Note};
use crate::layer::{StoredHistory, Versioned};
use crate::notes::Notes;
use crate::volume::Volume;

/// The history in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryStatus {
    /// The oldest instant that can be rewound to.
    pub oldest: u64,
    /// The stamp of the last change.
    pub newest: u64,
    /// Changes of pages that are remembered.
    pub entries: u64,
    /// The most of them.
    pub most_entries: u64,
    /// The snapshots, oldest first.
    pub snapshots: Vec<u64>,
}

/// What is known of how two instants differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// The pages that hold something else, in ascending order.
    pub pages: Vec<Lpn>,
    /// The pages of which nobody knows, because what they held at one of the instants was purged; in ascending order.
    pub missing: Vec<Lpn>,
}

impl Volume {
    pub(crate) fn history(&self) -> Result<&StoredHistory, VolumeError> {
        self.layer.history().ok_or(VolumeError::NoHistory)
    }

    pub(crate) fn versioned(&mut self) -> Result<&mut dyn Versioned, VolumeError> {
        self.layer.versioned().ok_or(VolumeError::NoHistory)
    }

    /// How far back the volume can go.
    ///
    /// # Errors
    /// It keeps no history.
    pub fn history_status(&self) -> Result<HistoryStatus, VolumeError> {
        let history = self.history()?;
        Ok(HistoryStatus {
            oldest: history.oldest(),
            newest: self.stamp,
            entries: history.len() as u64,
            most_entries: self.most_entries(),
            snapshots: history.snapshots().collect(),
        })
    }

    fn most_entries(&self) -> u64 {
        self.identity().history.map_or(0, |h| u64::from(h.entries))
    }

    /// Without a single entry that could go there is no room for another.
    pub(crate) fn refuse_full_history(&mut self) -> Result<(), VolumeError> {
        if let Some(versioned) = self.layer.versioned() {
            // The window may be longer than the least one by now.
            versioned.limit();
        }
        match self.layer.history() {
            Some(history) if history.is_full() => Err(self.history_full(history, 1)),
            _ => Ok(()),
        }
    }

    /// The history has no room for so many entries.
    fn history_full(&self, history: &StoredHistory, needed: u64) -> VolumeError {
        let holders = self.look_over(|_| history.holders());
        holders.map_or_else(
            |error| error,
            |holders| VolumeError::HistoryFull {
                entries: history.len() as u64,
                needed,
                holders,
            },
        )
    }

    /// Reads what a page held at an instant; zeros if nothing.
    ///
    /// # Errors
    /// Out of range, an instant that is not remembered, no history, or the page was purged or cannot be read any
    /// more.
    pub fn read_at(
        &mut self,
        instant: u64,
        lpn: Lpn,
        page: &mut PageBytes,
    ) -> Result<(), VolumeError> {
        self.check_range(lpn)?;
        let Some(object) = self.object_at(lpn, instant)? else {
            *page = [0; PAGE_BYTES];
            return Ok(());
        };
        let read =
            |volume: &mut Volume| Ok::<_, VolumeError>(volume.versioned()?.read_object(object));
        match self.look(lpn, read)?? {
            Ok(unit) => *page = *unit.bytes,
            Err(FtlError::Device(source @ (NandError::Rot { .. } | NandError::Medium(_)))) => {
                self.note_unreadable(&source);
                return Err(VolumeError::Unreadable { lpn, source });
            }
            Err(error) => return Err(VolumeError::of(error, lpn)),
        }
        Ok(())
    }

    /// What a page referred to at an instant, with the present resolved.
    fn version_at(&mut self, lpn: Lpn, instant: u64) -> Result<Version, VolumeError> {
        let version = |volume: &mut Volume| {
            Ok::<_, VolumeError>(volume.versioned()?.version_at(lpn, instant)?)
        };
        self.look(lpn, version)?
    }

    /// The object that a page referred to at an instant, if to any.
    fn object_at(&mut self, lpn: Lpn, instant: u64) -> Result<Option<ObjectId>, VolumeError> {
        match self.version_at(lpn, instant)? {
            Version::Object(object) => Ok(Some(object)),
            Version::Nothing | Version::Current => Ok(None),
            Version::Purged => Err(VolumeError::Purged { lpn, instant }),
        }
    }

    /// The pages that lack what they held at an instant, because it was purged; in ascending order. It takes as long
    /// as there were changes since.
    ///
    /// # Errors
    /// An instant that is not remembered, or no history.
    pub fn missing_at(&self, instant: u64) -> Result<Vec<Lpn>, VolumeError> {
        let history = self.history()?;
        let missing = self.look_over(|_| history.purged_since(instant))??;
        Ok(missing.iter().collect())
    }

    /// The instants of the changes in the window, in no order: one for each change of a page.
    ///
    /// # Errors
    /// It keeps no history.
    pub fn change_stamps(&self) -> Result<Vec<u64>, VolumeError> {
        let history = self.history()?;
        self.look_over(|_| history.stamps().collect())
    }

    /// Whether an instant can be read and rewound to.
    ///
    /// # Errors
    /// Why not: it is not remembered, has not come, or there is no history.
    pub fn knows_instant(&self, instant: u64) -> Result<(), VolumeError> {
        self.refuse_ahead(self.stamp, instant)?;
        Ok(self.history()?.knows(instant)?)
    }

    /// Refuses an instant that has not come by `now`, nor by the last change if the clock went back.
    pub(crate) fn refuse_ahead(&self, now: u64, instant: u64) -> Result<(), VolumeError> {
        self.history()?;
        let newest = self.stamp.max(now);
        if instant > newest {
            return Err(VolumeError::Ahead { instant, newest });
        }
        Ok(())
    }

    /// Whether a page held anything at an instant; what was purged counts as something.
    ///
    /// # Errors
    /// Out of range, an instant that is not remembered, or no history.
    pub fn held_at(&mut self, instant: u64, lpn: Lpn) -> Result<bool, VolumeError> {
        self.check_range(lpn)?;
        Ok(self.version_at(lpn, instant)? != Version::Nothing)
    }

    /// Where what a page held at an instant is to be read, as [`Volume::plan_read`].
    ///
    /// # Errors
    /// As [`Volume::read_at`].
    pub fn plan_read_at(&mut self, instant: u64, lpn: Lpn) -> Result<ReadPlan, VolumeError> {
        self.check_range(lpn)?;
        let object = self.object_at(lpn, instant)?;
        let plan = |volume: &mut Volume| {
            let versioned = volume.versioned()?;
            Ok::<_, VolumeError>(object.map(|object| versioned.plan_object(object)))
        };
        let held = self.look(lpn, plan)??.transpose();
        let held = held.map_err(|error| VolumeError::of(error, lpn))?;
        let nand = self.layer.core().flash();
        Ok(ReadPlan::new(held, |ppn| nand.place_of(ppn)))
    }

    /// The pages that differ between two instants: what they hold, not what was written. It takes as long as there
    /// were changes since the earlier one.
    ///
    /// # Errors
    /// As [`Volume::read_at`]; pages that were purged are told of.
    pub fn differences(&mut self, one: u64, other: u64) -> Result<Differences, VolumeError> {
        let mut found = Differences::default();
        if one == other {
            return Ok(found);
        }
        for lpn in self.changed_since(one.min(other))?.iter() {
            let versions = (self.version_at(lpn, one)?, self.version_at(lpn, other)?);
            if versions.0 == Version::Purged || versions.1 == Version::Purged {
                found.missing.push(lpn);
                continue;
            }
            if versions.0 == versions.1 {
                continue;
            }
            let (mut a, mut b) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
            self.read_at(one, lpn, &mut a)?;
            self.read_at(other, lpn, &mut b)?;
            if a != b {
                found.pages.push(lpn);
            }
        }
        Ok(found)
    }

    /// The pages that have changed since an instant; some may hold the same again. It takes as long as there were changes.
    ///
    /// # Errors
    /// An instant that is not remembered, or no history.
    pub fn changed_since(&self, instant: u64) -> Result<ChangedPages, VolumeError> {
        let history = self.history()?;
        Ok(self.look_over(|_| history.changed_since(instant))??)
    }

    /// Every page holds again what it held at an instant; answers how many have changed. A rewind to an instant
    /// before this one undoes it.
    ///
    /// # Errors
    /// An instant that is not remembered, has not come or lacks what was purged, no history, no room in it for what
    /// this changes, or the store failed. Nothing has changed then.
    pub fn rewind_to(&mut self, now: u64, instant: u64) -> Result<u64, VolumeError> {
        let missing = self.missing_at(instant)?;
        match missing.is_empty() {
            true => self.rewind_to_what_is_left(now, instant),
            false => Err(VolumeError::Missing { instant, missing }),
        }
    }

    /// The same, and pages of which it was purged what they held then hold nothing.
    ///
    /// # Errors
    /// As [`Volume::rewind_to`], but for what was purged.
    pub fn rewind_to_what_is_left(&mut self, now: u64, instant: u64) -> Result<u64, VolumeError> {
        self.refuse_ahead(now, instant)?;
        let changed = self.changed_since(instant)?;
        let history = self.history()?;
        // What the pages refer to now is kept, and what they referred to then stays.
        let needed = 2 * changed.len() as usize;
        let latest = match self.identity().history {
            Some(kept) if kept.protected => {
                let now = now.max(self.stamp);
                instant_before(now, kept.least_window, &self.unproven())
            }
            _ => u64::MAX,
        };
        let has_room = || history.has_room_for(needed, latest);
        if !changed.is_empty() && !self.look_over(|_| has_room())? {
            return Err(self.history_full(history, needed as u64));
        }
        let event = self.begin_about(instant, |volume| {
            volume.begin_change(now)?;
            volume.begin_bulk(needed as u64)
        })?;
        let count = self.versioned()?.rewind_to(instant)?;
        self.note_bulk(event, Change::Rewind { instant }, &[])?;
        Ok(count)
    }

    /// Keeps the present instant, whatever happens later, until the snapshot is deleted; answers it.
    ///
    /// # Errors
    /// As [`Volume::snapshot_of`].
    pub fn snapshot(&mut self, now: u64) -> Result<u64, VolumeError> {
        self.history()?;
        self.begin_change(now)?;
        let instant = self.stamp;
        self.keep(instant, "")?;
        Ok(instant)
    }

    /// Keeps an instant of the window, or the present, under a name; answers it.
    ///
    /// # Errors
    /// As [`Volume::snapshot_of`], or a name that is taken, or another one that this instant has.
    pub fn snapshot_as(
        &mut self,
        now: u64,
        instant: Option<u64>,
        name: &str,
    ) -> Result<u64, VolumeError> {
        self.history()?;
        self.refuse_taken(name, true)?;
        if let Some(instant) = instant {
            if let Some(name) = self.notes.name_of(instant) {
                let name = name.to_owned();
                return Err(VolumeError::Named { name, instant });
            }
            self.refuse_ahead(now, instant)?;
            self.begin_about(instant, |volume| volume.begin_change(now))?;
        } else {
            self.begin_change(now)?;
        }
        let instant = instant.unwrap_or(self.stamp);
        self.keep(instant, name)?;
        Ok(instant)
    }

    /// Refuses a name that is taken: no snapshot has that of another snapshot or of a mark, and no mark that of a
    /// snapshot.
    fn refuse_taken(&self, name: &str, by_marks_too: bool) -> Result<(), VolumeError> {
        let taken = |what, instant| VolumeError::NameTaken {
            what,
            name: name.to_owned(),
            instant,
        };
        if let Some(instant) = self.notes.snapshot(name) {
            return Err(taken("snapshot", instant));
        }
        match self.notes.mark(name).filter(|_| by_marks_too) {
            Some(instant) => Err(taken("mark", instant)),
            None => Ok(()),
        }
    }

    /// Remembers the instant of the last change under a name, without keeping it; answers it.
    ///
    /// # Errors
    /// No history, the name of a snapshot, or the store failed.
    pub fn mark(&mut self, now: u64, name: &str) -> Result<u64, VolumeError> {
        self.history()?;
        self.refuse_taken(name, false)?;
        let instant = self.stamp;
        self.mark_of(now, instant, name)?;
        Ok(instant)
    }

    fn mark_of(&mut self, now: u64, instant: u64, name: &str) -> Result<(), VolumeError> {
        let (payload, bytes) = payload_of(name)?;
        self.begin_release(now)?;
        let kind = NoteKind::Mark;
        let change = Change::Note {
            kind,
            bytes,
            instant,
        };
        self.take_noted(change, &payload[..usize::from(bytes)], &[])
    }

    /// What the clocks show now. It is noted with the next change, durable with that, and counts at once. Without a
    /// history nothing happens.
    pub fn clock_shows(&mut self, clock: ClockNote) {
        if self.history().is_ok() {
            let before = self.clock.map_or(0, |clock| clock.unproven);
            let unproven = clock.unproven.saturating_add(before);
            self.clock = Some(ClockNote { unproven, ..clock });
            self.heed_clocks();
        }
    }

    pub(crate) fn note_clock(&mut self, clock: ClockNote) -> Result<(), VolumeError> {
        let (payload, bytes) = clock.payload();
        let change = Change::Note {
            kind: NoteKind::Clock,
            bytes,
            instant: clock.time,
        };
        self.take_noted(change, &payload[..usize::from(bytes)], &[])?;
        self.heed_clocks();
        Ok(())
    }

    /// The least window counts no time for which only a wall clock vouches.
    pub(crate) fn heed_clocks(&mut self) {
        let unproven = self.unproven();
        if let Some(versioned) = self.layer.versioned() {
            versioned.set_unproven(unproven);
        }
    }

    /// By their ends, the times for which only a wall clock vouches.
    pub(crate) fn unproven(&self) -> Vec<(u64, u64)> {
        let mut all = self.notes.unproven();
        let waiting = self.clock.filter(|clock| clock.unproven > 0);
        all.extend(waiting.map(|clock| (clock.time, clock.unproven)));
        all
    }

    /// Takes over names that were kept elsewhere, as far as there are such snapshots without a name, and no marks that
    /// are known already. A mark may have the name of a snapshot here.
    ///
    /// # Errors
    /// No history, a name that does not fit, or the store failed.
    pub fn take_over(&mut self, now: u64, notes: &[Note]) -> Result<(), VolumeError> {
        for note in notes {
            match note {
                Note::Snapshot { instant, name } => {
                    let is_kept = self.history()?.snapshots().any(|kept| kept == *instant);
                    let has_name = self.notes.name_of(*instant).is_some();
                    if is_kept && !has_name && self.notes.snapshot(name).is_none() {
                        self.begin_release(now)?;
                        self.keep(*instant, name)?;
                    }
                }
                Note::Mark { instant, name } => {
                    let known =
                        |mark: &crate::notes::Mark| (mark.instant, &mark.name) == (*instant, name);
                    if !self.notes.marks().iter().any(known) {
                        self.mark_of(now, *instant, name)?;
                    }
                }
                Note::Purge(_) | Note::Clock(_) => {}
            }
        }
        Ok(())
    }

    /// What is said about the past: names, marks, purges, clocks.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// An event of which the notes are to know.
    pub(crate) fn take_noted(
        &mut self,
        change: Change,
        payload: &[u8],
        ended: &[u64],
    ) -> Result<(), VolumeError> {
        let stamp = self.stamp;
        let nand = self.layer.core_mut().flash_mut();
        nand.take_event_with(stamp, change, payload)?;
        self.notes.apply(stamp, change, payload, ended);
        Ok(())
    }

    /// Keeps an instant of the window.
    ///
    /// # Errors
    /// An instant that is not remembered or has not come, no history, too many snapshots, or the store failed.
    pub fn snapshot_of(&mut self, now: u64, instant: u64) -> Result<(), VolumeError> {
        self.refuse_ahead(now, instant)?;
        self.begin_about(instant, |volume| volume.begin_change(now))?;
        self.keep(instant, "")
    }

    /// Begins something about an instant; what that needs room for does not take the instant away, if it is known.
    fn begin_about<A>(
        &mut self,
        instant: u64,
        begin: impl FnOnce(&mut Self) -> Result<A, VolumeError>,
    ) -> Result<A, VolumeError> {
        let in_window = instant >= self.history()?.oldest();
        self.versioned()?
            .guard_instant(in_window.then_some(instant));
        let begun = begin(self);
        self.versioned()?.guard_instant(None);
        begun
    }

    /// Keeps an instant, under a name unless that is empty.
    fn keep(&mut self, instant: u64, name: &str) -> Result<(), VolumeError> {
        let (payload, bytes) = match name {
            "" => ([0; MOST_PAYLOAD], 0),
            name => payload_of(name)?,
        };
        let history = self.history()?;
        let is_new = history.pinned().all(|pinned| pinned != instant);
        if is_new && history.pinned().count() >= MOST_PINS as usize {
            return Err(VolumeError::TooManySnapshots { most: MOST_PINS });
        }
        self.versioned()?.snapshot(instant)?;
        let change = Change::Snapshot {
            instant,
            name: bytes,
        };
        self.take_noted(change, &payload[..usize::from(bytes)], &[])
    }

    /// Deletes a snapshot; whether there was one.
    ///
    /// # Errors
    /// No history, or the store failed.
    pub fn delete_snapshot(&mut self, now: u64, instant: u64) -> Result<bool, VolumeError> {
        if !self.history()?.snapshots().any(|there| there == instant) {
            return Ok(false);
        }
        self.begin_release(now)?;
        let history = self.history()?;
        let kept = self.look_over(|_| history.entries_kept_for(instant))?;
        let event = self.begin_bulk(kept)?;
        self.versioned()?.delete_snapshot(instant);
        self.note_bulk(event, Change::DeleteSnapshot { instant }, &[])?;
        Ok(true)
    }
}

fn payload_of(name: &str) -> Result<(Payload, u8), VolumeError> {
    let fits = name_payload(name).filter(|&(_, bytes)| bytes > 0);
    fits.ok_or(VolumeError::NameLength { found: name.len() })
}

impl From<TooOld> for VolumeError {
    fn from(error: TooOld) -> Self {
        VolumeError::TooOld(error)
    }
}
