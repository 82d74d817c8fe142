//! Instants that stay readable behind the window, and the entries they need.
//!
//! An entry that leaves the window, superseded at `s`, is needed by a pinned instant `S` iff `S < s`
//! and the page has no other entry with a stamp in `(S, s]`. It is enough to ask this of the largest
//! pinned `S < s`, so every pin has a map of its own: for each page the entry with the smallest stamp
//! between this pin and the next. What a page referred to at a pinned instant is in the first map
//! from that pin on that has the page. When a pin goes, its map is merged into that of the pin
//! before, where an entry of the same page is older and wins.
//!
//! Invariant: every pin is wanted by somebody.

use crate::history::{PURGED, names_object};
use flashlore_flash::{Lpn, ObjectId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

/// By page the object of a kept entry. Its order is the same in every run.
type Kept = FxHashMap<Lpn, ObjectId>;

/// Who wants an instant to stay, and what it needs.
#[derive(Debug, Clone, Default)]
struct Pin {
    snapshot: bool,
    scheduled: bool,
    /// The entries with the smallest stamps between this pin and the next.
    kept: Kept,
}

/// A pinned instant and what is kept for it behind the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedInstant {
    pub instant: u64,
    /// Whether somebody made a snapshot of it.
    pub snapshot: bool,
    /// Whether the schedule wants it.
    pub scheduled: bool,
    /// What pages referred to that changed between this pin and the next: page and object.
    pub kept: Vec<(Lpn, ObjectId)>,
}

/// The pinned instants.
#[derive(Debug, Clone, Default)]
pub(super) struct Pins {
    pins: BTreeMap<u64, Pin>,
    /// Entries in all maps.
    kept: usize,
}

impl Pins {
    /// These pins, each with whether it is a snapshot and what it keeps, by page.
    pub fn restore(pins: impl Iterator<Item = PinnedInstant>) -> Self {
        let mut restored = Pins::default();
        for pinned in pins {
            let kept: Kept = pinned.kept.into_iter().collect();
            restored.kept += kept.len();
            let pin = Pin {
                snapshot: pinned.snapshot,
                scheduled: pinned.scheduled,
                kept,
            };
            restored.pins.insert(pinned.instant, pin);
        }
        restored
    }

    /// Names the objects of all kept entries anew.
    pub fn rename(&mut self, name: impl Fn(ObjectId) -> ObjectId) {
        let kept = self.pins.values_mut().flat_map(|pin| pin.kept.values_mut());
        for object in kept.filter(|object| names_object(**object)) {
            *object = name(*object);
        }
    }

    /// All pins, oldest first, with what they keep in order of the pages.
    pub fn stored(&self) -> impl Iterator<Item = PinnedInstant> {
        self.pins.iter().map(|(&instant, pin)| {
            let mut kept: Vec<(Lpn, ObjectId)> = pin.kept.iter().map(|(&l, &o)| (l, o)).collect();
            kept.sort_unstable();
            PinnedInstant {
                instant,
                snapshot: pin.snapshot,
                scheduled: pin.scheduled,
                kept,
            }
        })
    }

    /// Whether an instant is pinned.
    pub fn contains(&self, instant: u64) -> bool {
        self.pins.contains_key(&instant)
    }

    /// Entries kept.
    pub fn len(&self) -> usize {
        self.kept
    }

    /// Bytes held, as far as that can be told of tables of others.
    pub fn heap_bytes(&self) -> usize {
        // A slot takes a pair and a byte; of eight slots seven are used at most.
        let slots = |pin: &Pin| pin.kept.capacity().div_ceil(7) * 8;
        let kept: usize = self.pins.values().map(slots).sum();
        kept * (size_of::<(Lpn, ObjectId)>() + 1) + self.pins.len() * size_of::<(u64, Pin)>()
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

    /// Ends a snapshot; whether there was one. Gives the objects nobody needs any more.
    pub fn remove_snapshot(&mut self, instant: u64, lost: &mut impl FnMut(ObjectId)) -> bool {
        match self.pins.get_mut(&instant) {
            Some(pin) if pin.snapshot => pin.snapshot = false,
            _ => return false,
        }
        self.unpin_unwanted(instant, lost);
        true
    }

    /// The schedule does not want an instant any more. Gives the objects nobody needs any more.
    pub fn remove_scheduled(&mut self, instant: u64, lost: &mut impl FnMut(ObjectId)) {
        if let Some(pin) = self.pins.get_mut(&instant) {
            pin.scheduled = false;
            self.unpin_unwanted(instant, lost);
        }
    }

    fn unpin_unwanted(&mut self, instant: u64, lost: &mut impl FnMut(ObjectId)) {
        let wanted = |pin: &Pin| pin.snapshot || pin.scheduled;
        if self.pins.get(&instant).is_none_or(wanted) {
            return;
        }
        let newer = self.pins.remove(&instant).unwrap_or_default().kept;
        let before = newer.len();
        match self.pins.range_mut(..instant).next_back() {
            None => {
                newer.into_values().for_each(lost);
                self.kept -= before;
            }
            Some((_, pin)) => {
                let both = before + pin.kept.len();
                merge(&mut pin.kept, newer, lost);
                self.kept -= both - pin.kept.len();
            }
        }
    }

    /// An entry leaves the window, after all those of its page before it. Whether it is kept.
    #[inline(always)]
    pub fn keep(&mut self, lpn: Lpn, object: ObjectId, stamp: u64) -> bool {
        if self.pins.is_empty() {
            return false;
        }
        let Some((_, pin)) = self.pins.range_mut(..stamp).next_back() else {
            return false;
        };
        let Entry::Vacant(vacant) = pin.kept.entry(lpn) else {
            return false;
        };
        vacant.insert(object);
        self.kept += 1;
        true
    }

    /// The last pinned instant before this one, and whether it has an entry of a page.
    pub fn last_before(&self, stamp: u64, lpn: Lpn) -> Option<(u64, bool)> {
        let (&instant, pin) = self.pins.range(..stamp).next_back()?;
        Some((instant, pin.kept.contains_key(&lpn)))
    }

    /// What the kept entries say a page referred to at a pinned instant.
    pub fn at(&self, lpn: Lpn, instant: u64) -> Option<ObjectId> {
        let mut maps = self.pins.range(instant..).map(|(_, pin)| &pin.kept);
        maps.find_map(|kept| kept.get(&lpn).copied())
    }

    /// The kept entries with stamps above a pinned instant, by page and object; those of a page in
    /// order of their stamps.
    pub fn after(&self, instant: u64) -> impl Iterator<Item = (Lpn, ObjectId)> {
        let pins = self.pins.range(instant..);
        pins.flat_map(|(_, pin)| pin.kept.iter().map(|(&lpn, &object)| (lpn, object)))
    }

    /// All kept objects.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> {
        let pins = self.pins.values();
        pins.flat_map(|pin| pin.kept.values().copied())
    }

    /// Of the entries of these pages leaves the newest of each, which says that they were
    /// purged, and not even that if the window `covers` the page. Gives the objects that were named.
    pub fn purge(
        &mut self,
        pages: Range<Lpn>,
        covers: impl Fn(Lpn) -> bool,
        lost: &mut impl FnMut(ObjectId),
    ) {
        let mut seen = FxHashSet::default();
        for pin in self.pins.values_mut().rev() {
            for lpn in pages_in(&pin.kept, &pages) {
                let object = if covers(lpn) || !seen.insert(lpn) {
                    self.kept -= 1;
                    pin.kept.remove(&lpn)
                } else {
                    pin.kept.insert(lpn, PURGED)
                };
                object.into_iter().for_each(&mut *lost);
            }
        }
    }

    /// Recounts; entries are kept by pins before the start of the window only, of so many pages.
    pub fn check(&self, oldest: u64, pages: u32) -> Result<(), String> {
        let kept: usize = self.pins.values().map(|pin| pin.kept.len()).sum();
        if kept != self.kept {
            return Err(format!("{kept} entries kept, counted {}", self.kept));
        }
        for (&instant, pin) in &self.pins {
            if !pin.snapshot && !pin.scheduled {
                return Err(format!("nobody wants the pin at {instant}"));
            }
            if instant >= oldest && !pin.kept.is_empty() {
                return Err(format!("the pin at {instant} keeps what is in the window"));
            }
            if pin.kept.keys().any(|&lpn| lpn.0 >= pages) {
                return Err(format!("the pin at {instant} keeps a page beyond {pages}"));
            }
        }
        Ok(())
    }
}

/// The pages of a range that have an entry.
fn pages_in(kept: &Kept, pages: &Range<Lpn>) -> Vec<Lpn> {
    let range = Lpn::each(pages.clone());
    if range.len() < kept.len() {
        return range.filter(|lpn| kept.contains_key(lpn)).collect();
    }
    let all = kept.keys().copied();
    all.filter(|lpn| pages.contains(lpn)).collect()
}

/// Adds a map to the one before it, entry by entry of the smaller.
fn merge(older: &mut Kept, mut newer: Kept, lost: &mut impl FnMut(ObjectId)) {
    if newer.len() <= older.len() {
        for (lpn, object) in newer {
            match older.entry(lpn) {
                Entry::Occupied(_) => lost(object),
                Entry::Vacant(vacant) => _ = vacant.insert(object),
            }
        }
    } else {
        for (lpn, object) in std::mem::take(older) {
            newer.insert(lpn, object).into_iter().for_each(&mut *lost);
        }
        *older = newer;
    }
}
