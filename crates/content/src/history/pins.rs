//! Instants that stay readable behind the window, and the entries they need.
//!
//! An entry that leaves the window, superseded at `s`, is needed by a pinned instant `S` iff `S < s`
//! and the page has no other entry with a stamp in `(S, s]`. It is enough to ask this of the largest
//! pinned `S < s`. What is kept stands in chains like those of the window: of each page one entry at most between a pin
//! and the next. What a page referred to at a pinned instant says its first kept entry with a stamp above that.
//!
//! When a pin goes, an entry between it and the next is not needed if its page has one between the pin before and the one
//! that goes: that is older and wins. The later entry takes over what it says, since no pin is left between them; then
//! nothing has to be looked for that stands after either.
//!
//! Invariant: every pin is wanted by somebody, but while what it kept is being removed.

use std::collections::BTreeMap;
use std::ops::Range;

use flashlore_flash::{EntryNumber, Lpn, ObjectId, TableName, Tables};

use super::chains::{ChainNames, Chains};
use super::entry::{ChainsAt, VersionEntry};
use super::removal::Unpinning;

/// The tables of what is kept.
pub(super) const KEPT: ChainNames = ChainNames {
    entries: TableName::Kept,
    heads: TableName::KeptHeads,
};

/// A pinned instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinnedInstant {
    pub instant: u64,
    /// Whether somebody made a snapshot of it.
    pub snapshot: bool,
    /// Whether the schedule wants it.
    pub scheduled: bool,
}

/// Who wants an instant to stay.
#[derive(Debug, Clone, Copy, Default)]
struct Pin {
    snapshot: bool,
    scheduled: bool,
}

/// The pinned instants.
#[derive(Debug)]
pub(super) struct Pins<S: Tables> {
    pins: BTreeMap<u64, Pin>,
    /// What they keep; not there before anything was kept.
    kept: Option<Chains<S>>,
    tables: S,
    pages: u32,
}

impl<S: Tables> Pins<S> {
    /// No pin, of so many pages.
    pub fn new(tables: &S, pages: u32) -> Self {
        Pins {
            pins: BTreeMap::new(),
            kept: None,
            tables: tables.clone(),
            pages,
        }
    }

    /// These pins, and what they keep.
    pub fn restore(tables: &S, pins: &[PinnedInstant], kept: Chains<S>) -> Self {
        let wanted = |pinned: &PinnedInstant| {
            let PinnedInstant {
                instant,
                snapshot,
                scheduled,
            } = *pinned;
            let pin = Pin {
                snapshot,
                scheduled,
            };
            (instant, pin)
        };
        Pins {
            pins: pins.iter().map(wanted).collect(),
            pages: kept.pages(),
            kept: Some(kept),
            tables: tables.clone(),
        }
    }

    /// All of them, oldest first.
    pub fn all(&self) -> impl Iterator<Item = PinnedInstant> {
        self.pins.iter().map(|(&instant, pin)| PinnedInstant {
            instant,
            snapshot: pin.snapshot,
            scheduled: pin.scheduled,
        })
    }

    /// What they keep.
    pub fn into_kept(self) -> Option<Chains<S>> {
        self.kept
    }

    /// How what they keep stands in its tables.
    pub fn at(&self) -> ChainsAt {
        self.kept.as_ref().map(Chains::at).unwrap_or_default()
    }

    /// Whether an instant is pinned.
    pub fn contains(&self, instant: u64) -> bool {
        self.pins.contains_key(&instant)
    }

    /// Entries kept.
    pub fn len(&self) -> usize {
        self.kept.as_ref().map_or(0, Chains::len) as usize
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        let kept = self.kept.as_ref().map_or(0, Chains::heap_bytes);
        kept + self.pins.len() * size_of::<(u64, Pin)>()
    }

    /// All pinned instants.
    pub fn instants(&self) -> impl Iterator<Item = u64> {
        self.pins.keys().copied()
    }

    /// The instants somebody made a snapshot of.
    pub fn snapshots(&self) -> impl Iterator<Item = u64> {
        let pins = self.pins.iter().filter(|(_, pin)| pin.snapshot);
        pins.map(|(&instant, _)| instant)
    }

    /// The instants the schedule wants.
    pub fn scheduled(&self) -> impl Iterator<Item = u64> {
        let pins = self.pins.iter().filter(|(_, pin)| pin.scheduled);
        pins.map(|(&instant, _)| instant)
    }

    /// Pins an instant of the window, or one that is pinned, as a snapshot.
    pub fn add_snapshot(&mut self, instant: u64) {
        self.pins.entry(instant).or_default().snapshot = true;
    }

    /// Pins an instant of the window for the schedule.
    pub fn add_scheduled(&mut self, instant: u64) {
        self.pins.entry(instant).or_default().scheduled = true;
    }

    /// Nobody has a snapshot of an instant any more; whether somebody had. It stays pinned until [`Pins::begin_to_unpin`].
    pub fn end_snapshot(&mut self, instant: u64) -> bool {
        let pin = self.pins.get_mut(&instant);
        pin.is_some_and(|pin| std::mem::take(&mut pin.snapshot))
    }

    /// The schedule does not want an instant any more, likewise.
    pub fn end_scheduled(&mut self, instant: u64) {
        if let Some(pin) = self.pins.get_mut(&instant) {
            pin.scheduled = false;
        }
    }

    /// An instant that nobody wants is not pinned any more: what [`Pins::unpin`] has to do then.
    pub fn begin_to_unpin(&mut self, instant: u64) -> Option<Unpinning> {
        let wanted = |pin: &Pin| pin.snapshot || pin.scheduled;
        if self.pins.get(&instant).is_none_or(wanted) {
            return None;
        }
        self.pins.remove(&instant);
        let before = self.pins.range(..instant).next_back();
        let before = before.map(|(&pin, _)| pin);
        let next = self.pins.range(instant..).next();
        let next = next.map_or(u64::MAX, |(&pin, _)| pin);
        let kept = self.kept.as_mut()?;
        kept.sort();
        let (next, left) = kept.between(instant, next);
        Some(Unpinning { before, next, left })
    }

    /// Looks at so many more of the entries that an instant kept. Gives the objects nobody needs any more. Whether any
    /// entries are left; nothing else may change until then.
    pub fn unpin(
        &mut self,
        unpinning: &mut Unpinning,
        most: u32,
        lost: &mut impl FnMut(ObjectId),
    ) -> bool {
        let Some(kept) = &mut self.kept else {
            return false;
        };
        let now = most.min(unpinning.left);
        for number in (0..now).map(|place| unpinning.next.plus(place)) {
            if let Some(entry) = kept.entry(number) {
                merge(kept, (number, entry), unpinning.before, lost);
            }
        }
        unpinning.next = unpinning.next.plus(now);
        unpinning.left -= now;
        if unpinning.left == 0 {
            kept.close_gaps();
        }
        unpinning.left > 0
    }

    /// An entry leaves the window, after all those of its page before it. Whether it is kept.
    #[inline(always)]
    pub fn keep(&mut self, entry: VersionEntry) -> bool {
        if self.pins.is_empty() {
            return false;
        }
        let VersionEntry {
            stamp, lpn, object, ..
        } = entry;
        let Some((_, has_page)) = self.last_before(stamp, lpn) else {
            return false;
        };
        if has_page {
            return false;
        }
        let (tables, pages) = (&self.tables, self.pages);
        let none = || Chains::new(tables, KEPT, pages, &ChainsAt::default());
        self.kept.get_or_insert_with(none).push(lpn, object, stamp);
        true
    }

    /// The last pinned instant before this one, and whether an entry of a page is kept between them.
    pub fn last_before(&self, stamp: u64, lpn: Lpn) -> Option<(u64, bool)> {
        let (&instant, _) = self.pins.range(..stamp).next_back()?;
        let newest = self.kept.as_ref().and_then(|kept| kept.newest_of(lpn));
        Some((instant, newest.is_some_and(|newest| newest > instant)))
    }

    /// Entries kept of a page.
    pub fn count_of(&self, lpn: Lpn) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.count_of(lpn))
    }

    /// Entries kept between a pinned instant and the next one.
    pub fn kept_for(&self, instant: u64) -> u32 {
        let next = self.pins.range(instant.saturating_add(1)..).next();
        let kept = self.kept.as_ref();
        kept.map_or(0, |kept| {
            let later = next.map_or(0, |(&next, _)| kept.count_after(next));
            kept.count_after(instant).saturating_sub(later)
        })
    }

    /// What the kept entries say a page referred to at a pinned instant.
    pub fn at_instant(&self, lpn: Lpn, instant: u64) -> Option<ObjectId> {
        let entry = self.kept.as_ref()?.first_after(lpn, instant)?;
        Some(entry.object)
    }

    /// The kept entries with stamps above a pinned instant; those of a page in order of their stamps.
    pub fn after(&self, instant: u64) -> impl Iterator<Item = VersionEntry> {
        let kept = self.kept.iter();
        kept.flat_map(move |kept| kept.after(instant).map(|(_, entry)| entry))
    }

    /// All kept entries, those of a page in order of their stamps.
    pub fn entries(&self) -> impl Iterator<Item = VersionEntry> {
        let kept = self.kept.iter();
        kept.flat_map(|kept| kept.all().map(|(_, entry)| entry))
    }

    /// Of the entries of these pages leaves the newest of each, which says that they were
    /// purged, and not even that if the window `covers` the page. Gives the objects that were named.
    pub fn purge(
        &mut self,
        pages: Range<Lpn>,
        covers: impl Fn(Lpn) -> bool,
        lost: &mut impl FnMut(ObjectId),
    ) {
        if let Some(kept) = &mut self.kept {
            kept.purge(pages, |lpn| !covers(lpn), lost);
            kept.close_gaps();
        }
    }

    /// Recounts; entries are kept by pins before the start of the window only, of a page one between two.
    pub fn check(&self, oldest: u64) -> Result<(), String> {
        let unwanted = self.all().find(|pin| !pin.snapshot && !pin.scheduled);
        if let Some(PinnedInstant { instant, .. }) = unwanted {
            return Err(format!("nobody wants the pin at {instant}"));
        }
        let Some(kept) = &self.kept else {
            return Ok(());
        };
        kept.check()?;
        for (number, entry) in kept.all() {
            let (stamp, lpn) = (entry.stamp, entry.lpn);
            let Some((&pin, _)) = self.pins.range(..stamp).next_back() else {
                return Err(format!("no pin keeps page {lpn} up to {stamp}"));
            };
            if stamp > oldest {
                return Err(format!("the pin at {pin} keeps what is in the window"));
            }
            if kept.stamp_before(number).is_some_and(|before| before > pin) {
                return Err(format!("the pin at {pin} keeps two entries of page {lpn}"));
            }
        }
        Ok(())
    }
}

/// A pin has gone, the last one before an entry: what becomes of that, where `pin` is the last one now.
fn merge<S: Tables>(
    kept: &mut Chains<S>,
    (number, entry): (EntryNumber, VersionEntry),
    pin: Option<u64>,
    lost: &mut impl FnMut(ObjectId),
) {
    let Some(pin) = pin else {
        kept.remove(number);
        return lost(entry.object);
    };
    if kept.stamp_before(number).is_some_and(|before| before > pin) {
        kept.merge_with_older(number).into_iter().for_each(lost);
    }
}
