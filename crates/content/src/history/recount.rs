//! What the entries of a history say of each other, where they are not in memory: they are looked at in their order, as often
//! as there are ranges of pages, and of each page of a range only its newest entry so far is remembered.
//!
//! Invariant: what holds here holds in [`super::History::check`], where entries are in order of their stamps.

use std::ops::Range;

use flashlore_flash::{EntryNumber, Lpn};

use super::chains::are_too_many_gaps;
use super::entry::{ChainsAt, VersionEntry};
use super::pins::PinnedInstant;

/// The chains of the pages of a range, while the entries go by.
#[derive(Debug)]
pub struct ChainRecount<'a> {
    at: ChainsAt,
    /// Pages there are.
    exported: u32,
    pages: Range<Lpn>,
    /// Of each page of the range the place of its newest entry so far, from 1; 0 for none.
    newest: &'a mut [u32],
    /// Entries that went by, and how many of them were gaps.
    places: u32,
    gaps: u32,
    last_stamp: u64,
    kept: Option<KeptRecount<'a>>,
}

/// What pinned instants keep.
#[derive(Debug)]
struct KeptRecount<'a> {
    pins: &'a [PinnedInstant],
    /// The start of the window.
    oldest: u64,
    /// Pins before the entry that went by last, and the place of the first entry with as many.
    passed: usize,
    since: u32,
}

impl<'a> ChainRecount<'a> {
    /// Of the entries that stand so, of so many pages. `newest` has a number for each page of the range.
    pub fn new(at: ChainsAt, exported: u32, pages: Range<Lpn>, newest: &'a mut [u32]) -> Self {
        newest.fill(0);
        ChainRecount {
            at,
            exported,
            pages,
            newest,
            places: 0,
            gaps: 0,
            last_stamp: 0,
            kept: None,
        }
    }

    /// They are kept by these instants, oldest first, behind a window that begins here.
    ///
    /// # Errors
    /// Nobody wants one of them.
    pub fn kept_by(self, pins: &'a [PinnedInstant], oldest: u64) -> Result<Self, String> {
        let unwanted = pins.iter().find(|pin| !pin.snapshot && !pin.scheduled);
        if let Some(PinnedInstant { instant, .. }) = unwanted {
            return Err(format!("nobody wants the pin at {instant}"));
        }
        let kept = Some(KeptRecount {
            pins,
            oldest,
            passed: 0,
            since: 0,
        });
        Ok(ChainRecount { kept, ..self })
    }

    /// The next entry. It may go on with another where this one does not hold.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    #[inline]
    pub fn entry(&mut self, entry: VersionEntry) -> Result<(), String> {
        let place = self.places;
        self.places += 1;
        if entry.stamp < self.last_stamp {
            return Err(format!("place {place}: {} is out of order", {
                entry.stamp
            }));
        }
        self.last_stamp = entry.stamp;
        if entry.is_gap() {
            self.gaps += 1;
            return match { entry.object }.is_some() {
                true => Err("a gap names an object".into()),
                false => Ok(()),
            };
        }
        self.link(place, entry)
    }

    fn link(&mut self, place: u32, entry: VersionEntry) -> Result<(), String> {
        let lpn = entry.lpn;
        let number = self.at.queue.first.plus(place);
        if lpn.0 >= self.exported {
            return Err(format!("entry {number} is of page {lpn}"));
        }
        if let Some(kept) = &mut self.kept {
            kept.pass(place, entry)?;
        }
        if !self.pages.contains(&lpn) {
            return Ok(());
        }
        let newest = &mut self.newest[(lpn.0 - self.pages.start.0) as usize];
        let before = std::mem::replace(newest, place + 1).checked_sub(1);
        let Some(before) = before else {
            return Ok(());
        };
        let linked = { entry.older }.since(self.at.queue.first);
        if linked != before {
            let before = self.at.queue.first.plus(before);
            return Err(format!(
                "entry {number} of page {lpn}: before it {before}, linked {}",
                { entry.older }
            ));
        }
        match &self.kept {
            Some(kept) if before >= kept.since => Err(format!(
                "the pin at {} keeps two entries of page {lpn}",
                kept.pins[kept.passed - 1].instant
            )),
            _ => Ok(()),
        }
    }

    /// Once all entries went by: what a head of a page of the range says.
    ///
    /// # Errors
    /// It does not name the newest entry of the page.
    pub fn head(&self, lpn: Lpn, head: EntryNumber) -> Result<(), String> {
        let first = self.at.queue.first;
        let newest = self.newest[(lpn.0 - self.pages.start.0) as usize].checked_sub(1);
        match newest {
            // Without an entry it may be any number.
            Some(place) if head.since(first) != place => Err(format!(
                "page {lpn}: head {head}, should be {}",
                first.plus(place)
            )),
            _ => Ok(()),
        }
    }

    /// Once all entries went by: whether there are as many gaps as are counted, and not too many.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn gaps(&self) -> Result<(), String> {
        if self.gaps != self.at.gaps {
            return Err(format!("{} gaps, counted {}", self.gaps, self.at.gaps));
        }
        match are_too_many_gaps(self.gaps, self.places) {
            true => Err(format!("{} of {} places are gaps", self.gaps, self.places)),
            false => Ok(()),
        }
    }
}

impl KeptRecount<'_> {
    fn pass(&mut self, place: u32, entry: VersionEntry) -> Result<(), String> {
        let (stamp, lpn) = (entry.stamp, entry.lpn);
        while self
            .pins
            .get(self.passed)
            .is_some_and(|pin| pin.instant < stamp)
        {
            self.passed += 1;
            self.since = place;
        }
        let Some(pin) = self.passed.checked_sub(1) else {
            return Err(format!("no pin keeps page {lpn} up to {stamp}"));
        };
        match stamp > self.oldest {
            true => Err(format!(
                "the pin at {} keeps what is in the window",
                self.pins[pin].instant
            )),
            false => Ok(()),
        }
    }
}
