//! Back in time: reading and returning to instants, snapshots, purges.
//!
//! An instant is a stamp, in nanoseconds since 1970. Stamps strictly increase, whatever the clock does, and a
//! write at exactly an instant is part of it. A return, a snapshot, the end of one and a purge are events like a
//! write: durable after the next flush, and there or not there after a crash.

use flashlore_content::PAGE_BYTES;
use flashlore_content::PageBytes;
use flashlore_content::history::{History, TooOld};
use flashlore_flash::{BlockId, Flash};
use flashlore_ftl::FtlError;
use flashlore_ftl::blocks::State;
use flashlore_ftl::gc::erase_stale::Erased;

use crate::error::VolumeError;
use crate::fetch::ReadPlan;
use crate::format::Change;
use crate::format::tables::MOST_PINS;
use crate::layer::Versioned;
use crate::nand::NandError;
use crate::volume::Volume;

/// The history in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryStatus {
    /// The oldest instant that can be returned to.
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

impl Volume {
    fn history(&self) -> Result<&History, VolumeError> {
        self.layer.history().ok_or(VolumeError::NoHistory)
    }

    fn versioned(&mut self) -> Result<&mut dyn Versioned, VolumeError> {
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
            Some(history) if history.is_full() => Err(VolumeError::HistoryFull {
                entries: history.len() as u64,
                needed: 1,
                holders: history.holders(),
            }),
            _ => Ok(()),
        }
    }

    /// Reads what a page held at an instant; zeros if nothing.
    ///
    /// # Errors
    /// Out of range, an instant that is not remembered, no history, or the stored page cannot be read any
    /// more.
    pub fn read_at(
        &mut self,
        instant: u64,
        lpn: u32,
        page: &mut PageBytes,
    ) -> Result<(), VolumeError> {
        self.check_range(lpn)?;
        let versioned = self.versioned()?;
        let Some(object) = versioned.object_at(lpn, instant)? else {
            *page = [0; PAGE_BYTES];
            return Ok(());
        };
        match versioned.read_object(object) {
            Ok(unit) => *page = *unit.bytes,
            Err(FtlError::Device(source @ (NandError::Rot { .. } | NandError::Medium(_)))) => {
                self.note_unreadable(&source);
                return Err(VolumeError::Unreadable { lpn, source });
            }
            Err(error) => return Err(VolumeError::of(error, lpn)),
        }
        Ok(())
    }

    /// The instants of the changes in the window, in no order: one for each change of a page.
    ///
    /// # Errors
    /// It keeps no history.
    pub fn change_stamps(&self) -> Result<Vec<u64>, VolumeError> {
        Ok(self.history()?.stamps().collect())
    }

    /// Whether an instant can be read and returned to.
    ///
    /// # Errors
    /// Why not: it is not remembered, has not come, or there is no history.
    pub fn knows_instant(&mut self, instant: u64) -> Result<(), VolumeError> {
        self.refuse_ahead(self.stamp, instant)?;
        self.held_at(instant, 0).map(drop)
    }

    /// Refuses an instant that has not come by `now`, nor by the last change if the clock went back.
    fn refuse_ahead(&self, now: u64, instant: u64) -> Result<(), VolumeError> {
        self.history()?;
        let newest = self.stamp.max(now);
        if instant > newest {
            return Err(VolumeError::Ahead { instant, newest });
        }
        Ok(())
    }

    /// Whether a page held anything at an instant.
    ///
    /// # Errors
    /// Out of range, an instant that is not remembered, or no history.
    pub fn held_at(&mut self, instant: u64, lpn: u32) -> Result<bool, VolumeError> {
        self.check_range(lpn)?;
        Ok(self.versioned()?.object_at(lpn, instant)?.is_some())
    }

    /// Where what a page held at an instant is to be read, as [`Volume::plan_read`].
    ///
    /// # Errors
    /// As [`Volume::read_at`].
    pub fn plan_read_at(&mut self, instant: u64, lpn: u32) -> Result<ReadPlan, VolumeError> {
        self.check_range(lpn)?;
        let versioned = self.versioned()?;
        let object = versioned.object_at(lpn, instant)?;
        let held = object.map(|object| versioned.plan_object(object));
        let held = held.transpose();
        let held = held.map_err(|error| VolumeError::of(error, lpn))?;
        let nand = self.layer.core().flash();
        Ok(ReadPlan::new(held, |ppn| nand.place_of(ppn)))
    }

    /// The pages that differ between two instants, in ascending order: what they hold, not what was written. It
    /// takes as long as there were changes since the earlier one.
    ///
    /// # Errors
    /// As [`Volume::read_at`].
    pub fn differences(&mut self, one: u64, other: u64) -> Result<Vec<u32>, VolumeError> {
        let mut differing = Vec::new();
        for lpn in self.changed_since(one.min(other))? {
            let versioned = self.versioned()?;
            let objects = (
                versioned.object_at(lpn, one)?,
                versioned.object_at(lpn, other)?,
            );
            if objects.0 == objects.1 {
                continue;
            }
            let (mut a, mut b) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
            self.read_at(one, lpn, &mut a)?;
            self.read_at(other, lpn, &mut b)?;
            if a != b {
                differing.push(lpn);
            }
        }
        Ok(differing)
    }

    /// The pages that have changed since an instant, in ascending order; some may hold the same again. It takes
    /// as long as there were changes.
    ///
    /// # Errors
    /// An instant that is not remembered, or no history.
    pub fn changed_since(&self, instant: u64) -> Result<Vec<u32>, VolumeError> {
        let mut changed = Vec::new();
        self.history()?
            .changed_since(instant, |lpn, _| changed.push(lpn))?;
        changed.sort_unstable();
        Ok(changed)
    }

    /// Every page holds again what it held at an instant; answers how many have changed. A return to an instant
    /// before this one undoes it.
    ///
    /// # Errors
    /// An instant that is not remembered or has not come, no history, no room in it for what this changes, or
    /// the store failed. Nothing has changed then.
    pub fn return_to(&mut self, now: u64, instant: u64) -> Result<u64, VolumeError> {
        self.refuse_ahead(now, instant)?;
        let changed = self.changed_since(instant)?;
        let history = self.history()?;
        // What the pages refer to now is kept, and what they referred to then stays.
        let needed = 2 * changed.len();
        let latest = match self.identity().history {
            Some(kept) if kept.protected => now.saturating_sub(kept.least_window),
            _ => u64::MAX,
        };
        if !changed.is_empty() && !history.has_room_for(needed, latest) {
            return Err(VolumeError::HistoryFull {
                entries: history.len() as u64,
                needed: needed as u64,
                holders: history.holders(),
            });
        }
        self.begin_change_about(now, instant)?;
        let count = self.versioned()?.return_to(instant)?;
        for lpn in changed {
            self.tables.mapped.mark(lpn);
        }
        self.take_event(Some(Change::Return { instant }))?;
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
        self.keep(instant)?;
        Ok(instant)
    }

    /// Keeps an instant of the window.
    ///
    /// # Errors
    /// An instant that is not remembered or has not come, no history, too many snapshots, or the store failed.
    pub fn snapshot_of(&mut self, now: u64, instant: u64) -> Result<(), VolumeError> {
        self.refuse_ahead(now, instant)?;
        self.begin_change_about(now, instant)?;
        self.keep(instant)
    }

    /// As [`Volume::begin_change`]; what that needs room for does not take the instant away, if it is known.
    fn begin_change_about(&mut self, now: u64, instant: u64) -> Result<(), VolumeError> {
        let in_window = instant >= self.history()?.oldest();
        self.versioned()?
            .guard_instant(in_window.then_some(instant));
        let begun = self.begin_change(now);
        self.versioned()?.guard_instant(None);
        begun
    }

    fn keep(&mut self, instant: u64) -> Result<(), VolumeError> {
        if self.history()?.pinned().count() >= MOST_PINS as usize {
            return Err(VolumeError::TooManySnapshots { most: MOST_PINS });
        }
        self.versioned()?.snapshot(instant)?;
        Ok(self.take_event(Some(Change::Snapshot { instant }))?)
    }

    /// Deletes a snapshot; whether there was one.
    ///
    /// # Errors
    /// No history, or the store failed.
    pub fn delete_snapshot(&mut self, now: u64, instant: u64) -> Result<bool, VolumeError> {
        self.history()?;
        self.begin_release(now)?;
        if !self.versioned()?.delete_snapshot(instant) {
            return Ok(false);
        }
        self.take_event(Some(Change::DeleteSnapshot { instant }))?;
        Ok(true)
    }

    /// Forgets all old versions of pages: at instants before their present one they read as never written. What
    /// nothing else refers to is erased by collection in time.
    ///
    /// # Errors
    /// No history, or the store failed.
    pub fn purge(&mut self, now: u64, pages: std::ops::Range<u32>) -> Result<(), VolumeError> {
        self.history()?;
        self.begin_release(now)?;
        let (first, end) = (pages.start, pages.end.min(self.exported()));
        if first >= end {
            return Ok(());
        }
        self.versioned()?.purge(first..end);
        Ok(self.take_event(Some(Change::Purge { first, end }))?)
    }

    /// The same, and nothing that was forgotten, of these pages or of others, is on the medium afterwards, unless
    /// another page, or an old version of one, needs it too. The present versions of these pages are made whole,
    /// so that they need no older one. Every
    /// block that holds anything without referrer is emptied and erased, and so is the journal. It may copy
    /// most of what is stored. A medium that is a file loses the bytes; one that is a device, what its
    /// discard takes away.
    ///
    /// # Errors
    /// As [`Volume::purge`], or no room for the copies: then the versions are forgotten, and not all of them
    /// erased.
    pub fn purge_and_erase(
        &mut self,
        now: u64,
        pages: std::ops::Range<u32>,
    ) -> Result<Erased, VolumeError> {
        self.purge(now, pages.clone())?;
        let whole = self.versioned()?.make_whole(pages);
        whole.map_err(|error| VolumeError::of(error, 0))?;
        // What waits in RAM to be packed would go to the journal.
        self.checkpoint()?;
        let erased = self.versioned()?.erase_stale();
        let erased = erased.map_err(|error| VolumeError::of(error, 0))?;
        self.flush()?;
        let core = self.layer.core_mut();
        let blocks = (0..core.flash().geometry().blocks()).map(BlockId);
        let free = |&b: &BlockId| core.blocks().record(b).state == State::Free;
        let free: Vec<BlockId> = blocks.filter(free).collect();
        for block in free {
            core.flash_mut().discard(block)?;
        }
        // Each checkpoint leaves one of the two journal segments.
        for _ in 0..2 {
            self.checkpoint()?;
            self.layer.core_mut().flash_mut().discard_old_journal()?;
        }
        self.flush()?;
        Ok(erased)
    }

    /// Forgets everything before an instant, but for snapshots.
    ///
    /// # Errors
    /// No history, an instant that has not come, or the store failed.
    pub fn forget_before(&mut self, now: u64, instant: u64) -> Result<(), VolumeError> {
        self.refuse_ahead(now, instant)?;
        self.begin_release(now)?;
        self.versioned()?.advance(instant);
        Ok(())
    }
}

impl From<TooOld> for VolumeError {
    fn from(error: TooOld) -> Self {
        VolumeError::TooOld(error)
    }
}
