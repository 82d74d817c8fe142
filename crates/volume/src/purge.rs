//! Forgetting old versions.
//!
//! A purge of pages takes what they held before their present version; instants before that know it and answer with
//! an error there. A purge of everything moves the start of the window to the last change, and ends the snapshots that
//! lack anything then. Either is an event like a write: durable after the next flush, or at once if it changes much
//! (`bulk`), there or not there after a crash.
//!
//! Invariant: where the least window is protected, nothing in it is taken.

use std::ops::Range;

use flashlore_flash::{BlockId, Flash, Lpn};
use flashlore_ftl::blocks::BlockPhase;
use flashlore_ftl::core::erase_stale::Erased;
use flashlore_ftl::policies::history::instant_before;

use crate::error::VolumeError;
use crate::format::{Change, NoteKind};
use crate::volume::Volume;

/// Pages of which a purge counts what it takes, and between which it may take a checkpoint.
const FEW_PAGES: u32 = 1 << 12;

/// What a purge ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purged {
    /// The snapshots, oldest first.
    pub ended: Vec<u64>,
    /// What was erased from the medium at once.
    pub erased: Option<Erased>,
}

impl Volume {
    /// Forgets all old versions of pages. Of a part of the pages: reading them at instants before their present
    /// version is an error from then on. Of all: the window begins with the last change, and snapshots before it end.
    /// What nothing else refers to is erased by collection in time.
    ///
    /// # Errors
    /// No history, a protected window that holds what would go, or the store failed.
    pub fn purge(&mut self, now: u64, pages: Range<Lpn>) -> Result<Purged, VolumeError> {
        let history = self.history()?;
        let (first, end) = (pages.start, pages.end.min(Lpn(self.exported())));
        if first >= end {
            return Ok(Purged::default());
        }
        let everything = first == Lpn(0) && end == Lpn(self.exported());
        let last = self.look_over(|_| match everything {
            true => history.newest_change(),
            false => history.last_change(first..end),
        })?;
        if let Some(last) = last {
            self.refuse_protected(now, last)?;
        }
        let before = last.unwrap_or(self.history()?.oldest());
        self.begin_release(now)?;
        let rows = self.look_over(|volume| volume.rows_to_purge(first..end))?;
        let event = self.begin_bulk(rows)?;
        let (change, ended) = match everything {
            true => {
                let ended = self.versioned()?.forget_before(before);
                (Change::Forget { before }, ended)
            }
            false => {
                self.versioned()?.purge(first..end);
                (Change::Purge { first, end }, Vec::new())
            }
        };
        self.note_bulk(event, change, &ended)?;
        Ok(Purged {
            ended,
            erased: None,
        })
    }

    /// The same, and nothing that was forgotten, of these pages or of others, is on the medium afterwards, unless
    /// another page, or an old version of one, needs it too. The present versions of these pages are materialized,
    /// so that they need no older one. Every
    /// block that holds anything without referrer is emptied and erased, and so is the journal. It may copy
    /// most of what is stored. A medium that is a file loses the bytes; one that is a device, what its
    /// discard takes away.
    ///
    /// # Errors
    /// As [`Volume::purge`], or no room for the copies: then the versions are forgotten, and not all of them
    /// erased.
    pub fn purge_and_erase(&mut self, now: u64, pages: Range<Lpn>) -> Result<Purged, VolumeError> {
        let purged = self.purge(now, pages.clone())?;
        let end = pages.end.min(Lpn(self.exported()));
        for first in (pages.start.0..end.0).step_by(FEW_PAGES as usize).map(Lpn) {
            let piece = first..Lpn(first.0.saturating_add(FEW_PAGES)).min(end);
            let whole = self.versioned()?.materialize_pages(piece);
            whole.map_err(|error| VolumeError::of(error, Lpn(0)))?;
            self.checkpoint_if_due()?;
        }
        // What waits in RAM to be packed would go to the journal.
        self.checkpoint()?;
        let erased = self.versioned()?.erase_stale();
        let erased = erased.map_err(|error| VolumeError::of(error, Lpn(0)))?;
        self.flush()?;
        let core = self.layer.core_mut();
        let blocks = (0..core.flash().geometry().blocks()).map(BlockId);
        let free = |&b: &BlockId| core.blocks().record(b).state == BlockPhase::Free;
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
        self.forget_stored_index();
        Ok(Purged {
            erased: Some(erased),
            ..purged
        })
    }

    /// Rows that a purge of these pages changes at most.
    fn rows_to_purge(&self, pages: Range<Lpn>) -> u64 {
        let Some(history) = self.layer.history() else {
            return 0;
        };
        match pages.end.0 - pages.start.0 <= FEW_PAGES {
            true => history.entries_of(pages),
            false => history.len() as u64,
        }
    }

    /// Forgets everything before an instant, but for snapshots.
    ///
    /// # Errors
    /// No history, an instant that has not come, a protected window that it reaches into, or the store failed.
    pub fn forget_before(&mut self, now: u64, instant: u64) -> Result<(), VolumeError> {
        self.refuse_ahead(now, instant)?;
        if instant > self.history()?.oldest() {
            self.refuse_protected(now, instant)?;
        }
        self.begin_release(now)?;
        let history = self.history()?;
        let (entries, stay) = (history.len() as u64, history.entries_after(instant));
        // Of the places that stay some may be gaps.
        let rows = (entries + entries / 8).saturating_sub(stay.into());
        let event = self.begin_bulk(rows)?;
        self.versioned()?.advance(instant);
        // An event, so that a recovery misses it where the journal is damaged.
        let kind = NoteKind::Window;
        let noted = Change::Note {
            kind,
            bytes: 0,
            instant,
        };
        self.note_bulk(event, noted, &[])
    }

    /// Refuses what takes away anything that was there before an instant, if the protected window holds that.
    fn refuse_protected(&self, now: u64, before: u64) -> Result<(), VolumeError> {
        let Some(kept) = self.identity().history.filter(|kept| kept.protected) else {
            return Ok(());
        };
        let now = now.max(self.stamp);
        let unproven = self.unproven();
        if before <= instant_before(now, kept.least_window, &unproven) {
            return Ok(());
        }
        let since = unproven.iter().filter(|(stamp, _)| *stamp > before);
        let not_counted: u64 = since.map(|&(_, length)| length).sum();
        Err(VolumeError::Protected {
            until: before
                .saturating_add(kept.least_window)
                .saturating_add(not_counted),
        })
    }
}
