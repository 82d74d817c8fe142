//! A naive history of a map: every version every page ever had, in a list.
//!
//! A version is what a page referred to from one stamp up to another, the latter excluded; the last
//! one is the present. Nothing is ever taken out of the lists. Each superseded version is marked as
//! *held* while the history keeps a reference for it, and as *passed* once the window has moved over
//! its end. The rules: a superseded version is held until it is passed, and then as long as a
//! pinned instant lies in it. The device can rewind to an instant if it lies in the window or is pinned.
//!
//! Invariant: what is held suffices for every instant that it can rewind to.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Stands for an object that was purged: nobody knows which it was.
pub const PURGED: u32 = u32::MAX - 1;

/// What a page referred to for a time.
#[derive(Debug, Clone, Copy)]
struct HeldReference {
    from: u64,
    /// When it was superseded; the present is not.
    until: Option<u64>,
    object: Option<u32>,
    passed: bool,
    held: bool,
}

impl HeldReference {
    fn named(&self) -> Option<u32> {
        self.object.filter(|&object| object != PURGED)
    }
}

/// The lists of versions, the window and the pins.
#[derive(Debug, Clone)]
pub struct HistoryModel {
    pages: Vec<Vec<HeldReference>>,
    oldest: u64,
    snapshots: BTreeSet<u64>,
    scheduled: BTreeSet<u64>,
    /// Age up to which all is exact.
    exact: u64,
    /// Pairs of the last age and the spacing.
    tiers: Vec<(u64, u64)>,
}

impl HistoryModel {
    /// So many pages that refer to nothing. With tiers, the multiples of their spacing stay up to
    /// their age.
    pub fn new(pages: usize, exact: u64, tiers: Vec<(u64, u64)>) -> Self {
        let nothing = HeldReference {
            from: 0,
            until: None,
            object: None,
            passed: false,
            held: false,
        };
        HistoryModel {
            pages: vec![vec![nothing]; pages],
            oldest: 0,
            snapshots: BTreeSet::new(),
            scheduled: BTreeSet::new(),
            exact,
            tiers,
        }
    }

    /// The page refers to another object, or to none, from a stamp on; gives what it referred to.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn write(&mut self, lpn: usize, object: Option<u32>, stamp: u64) -> Option<u32> {
        let versions = &mut self.pages[lpn];
        let present = versions.len() - 1;
        versions[present].until = Some(stamp);
        versions[present].held = true;
        let old = versions[present].object;
        versions.push(HeldReference {
            from: stamp,
            until: None,
            object,
            passed: false,
            held: false,
        });
        old
    }

    /// The stamp of the present of a page.
    pub fn written(&self, lpn: usize) -> u64 {
        self.pages[lpn].last().map_or(0, |version| version.from)
    }

    /// The start of the window.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    pub fn pinned(&self) -> BTreeSet<u64> {
        &self.snapshots | &self.scheduled
    }

    pub fn snapshots(&self) -> &BTreeSet<u64> {
        &self.snapshots
    }

    /// Whether the device can rewind to an instant.
    pub fn is_exact(&self, instant: u64) -> bool {
        let pinned = self.snapshots.contains(&instant) || self.scheduled.contains(&instant);
        pinned || instant >= self.oldest
    }

    fn wants(&self, instant: u64, now: u64) -> bool {
        let age = now.saturating_sub(instant);
        let mut tiers = self.tiers.iter();
        match tiers.find(|(up_to, _)| age <= *up_to) {
            Some((_, spacing)) => instant.is_multiple_of(*spacing),
            None => false,
        }
    }

    /// What nobody needs is not held any more; gives the objects, in order.
    fn give_up(&mut self) -> Vec<u32> {
        let pinned = self.pinned();
        let mut gone = Vec::new();
        for version in self.pages.iter_mut().flatten() {
            let Some(until) = version.until else {
                continue;
            };
            let needed = pinned.range(version.from..until).next().is_some();
            if version.held && version.passed && !needed {
                version.held = false;
                gone.extend(version.named());
            }
        }
        gone.sort_unstable();
        gone
    }

    /// Moves the start of the window; gives the objects given up, in order.
    pub fn advance(&mut self, to: u64) -> Vec<u32> {
        let to = to.max(self.oldest);
        for instant in self.oldest..to {
            if self.wants(instant, to) {
                self.scheduled.insert(instant);
            }
        }
        for version in self.pages.iter_mut().flatten() {
            version.passed |= version.until.is_some_and(|until| until <= to);
        }
        self.oldest = to;
        self.give_up()
    }

    /// Makes a snapshot; whether the device can rewind to the instant.
    pub fn snapshot(&mut self, instant: u64) -> bool {
        let exact = self.is_exact(instant);
        if exact {
            self.snapshots.insert(instant);
        }
        exact
    }

    /// Deletes a snapshot; gives the objects given up, in order, or `None` if there was none.
    pub fn delete_snapshot(&mut self, instant: u64) -> Option<Vec<u32>> {
        self.snapshots.remove(&instant).then(|| self.give_up())
    }

    /// Does what the schedule says; gives the objects given up, in order.
    pub fn apply_schedule(&mut self, now: u64) -> Vec<u32> {
        if self.tiers.is_empty() {
            return Vec::new();
        }
        let mut gone = self.advance(now.saturating_sub(self.exact));
        let all = self.scheduled.clone();
        self.scheduled = all.into_iter().filter(|&i| self.wants(i, now)).collect();
        gone.extend(self.give_up());
        gone.sort_unstable();
        gone
    }

    /// Gives up the oldest scheduled instant; that and the objects given up, in order.
    pub fn expire_oldest(&mut self) -> Option<(u64, Vec<u32>)> {
        let instant = self.scheduled.pop_first()?;
        Some((instant, self.give_up()))
    }

    /// Forgets every instant before one, and the pins among them at which any page referred to something else than
    /// now; gives the snapshots that ended and the objects given up, both in order.
    pub fn forget(&mut self, to: u64) -> (Vec<u64>, Vec<u32>) {
        let to = to.max(self.oldest);
        let pinned = self.pinned();
        let changed = |instant: &u64| self.changed_since(*instant).is_some_and(|c| !c.is_empty());
        let emptied: Vec<u64> = pinned.range(..to).copied().filter(changed).collect();
        let mut ended = Vec::new();
        for instant in emptied {
            self.scheduled.remove(&instant);
            if self.snapshots.remove(&instant) {
                ended.push(instant);
            }
        }
        let mut gone = self.give_up();
        gone.extend(self.advance(to));
        gone.sort_unstable();
        (ended, gone)
    }

    /// What these pages referred to before the present is not known any more; gives the objects given up, in order.
    pub fn purge(&mut self, pages: Range<usize>) -> Vec<u32> {
        let mut gone = Vec::new();
        for lpn in pages.start..pages.end.min(self.pages.len()) {
            let versions = &mut self.pages[lpn];
            let held = versions.iter().filter(|version| version.held);
            gone.extend(held.clone().filter_map(HeldReference::named));
            let last_held = held.max_by_key(|version| version.from).copied();
            let present = versions[versions.len() - 1];
            let was_written = versions.len() > 1;
            versions.clear();
            if was_written {
                versions.push(HeldReference {
                    from: 0,
                    until: Some(present.from),
                    object: Some(PURGED),
                    passed: last_held.is_none_or(|version| version.passed),
                    held: last_held.is_some(),
                });
            }
            versions.push(present);
        }
        gone.sort_unstable();
        gone
    }

    /// What a page referred to at an instant: the last version that had begun. `None` if the instant
    /// cannot be returned to, `Some(None)` if it is the present one.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn at(&self, lpn: usize, instant: u64) -> Option<Option<Option<u32>>> {
        if !self.is_exact(instant) {
            return None;
        }
        let begun = self.pages[lpn].iter().rfind(|v| v.from <= instant)?;
        Some(begun.until.map(|_| begun.object))
    }

    /// The pages that changed after an instant and what they referred to then; `None` if it cannot
    /// be returned to.
    pub fn changed_since(&self, instant: u64) -> Option<BTreeMap<u32, Option<u32>>> {
        let mut changed = BTreeMap::new();
        for lpn in 0..self.pages.len() {
            if let Some(object) = self.at(lpn, instant)? {
                changed.insert(lpn as u32, object);
            }
        }
        Some(changed)
    }

    /// The objects held, in order, as often as they are.
    pub fn objects(&self) -> Vec<u32> {
        let held = self.pages.iter().flatten().filter(|version| version.held);
        let mut objects: Vec<u32> = held.filter_map(HeldReference::named).collect();
        objects.sort_unstable();
        objects
    }

    pub fn len(&self) -> usize {
        let versions = self.pages.iter().flatten();
        versions.filter(|version| version.held).count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The smallest instant to advance to so that this many versions are given up, or all that can
    /// be, if every multiple of the first spacing is pinned; `None` if none can be. Tries them all.
    pub fn stamp_to_drop(&self, versions: usize) -> Option<u64> {
        let last = self.pages.iter().flatten().filter_map(|v| v.until).max()?;
        let mut pinned = self.clone();
        if let Some((_, spacing)) = self.tiers.first() {
            let multiples = (self.oldest..=last).filter(|i| i.is_multiple_of(*spacing));
            pinned.scheduled.extend(multiples);
        }
        let given_up = |to: u64| {
            let mut model = pinned.clone();
            model.advance_as_it_stands(to);
            self.len() - model.len()
        };
        let enough = versions.min(given_up(last));
        (enough > 0).then(|| (0..=last).find(|&to| given_up(to) >= enough))?
    }

    /// An advance, even one back, that pins nothing.
    fn advance_as_it_stands(&mut self, to: u64) {
        for version in self.pages.iter_mut().flatten() {
            version.passed |= version.until.is_some_and(|until| until <= to);
        }
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::HistoryModel;

    /// spec/bvssd.md section 7: A is page 0, B page 1; a1, a2, a3 are 1, 2, 3, b1 is 4.
    #[test]
    fn the_recovery_vector() {
        let mut model = HistoryModel::new(2, 0, Vec::new());
        let writes = [
            (0, Some(1), 1),
            (0, Some(2), 3),
            (1, Some(4), 5),
            (0, Some(3), 7),
            (1, None, 9),
        ];
        let old: Vec<_> = writes.map(|(lpn, o, t)| model.write(lpn, o, t)).into();
        assert_eq!(old, [None, Some(1), None, Some(2), Some(4)]);
        let state = |t| [0, 1].map(|lpn| model.at(lpn, t).unwrap());
        assert_eq!(state(0), [Some(None), Some(None)]);
        assert_eq!(state(2), [Some(Some(1)), Some(None)]);
        assert_eq!(state(4), [Some(Some(2)), Some(None)]);
        assert_eq!(state(6), [Some(Some(2)), Some(Some(4))]);
        assert_eq!(state(8), [None, Some(Some(4))]);
        assert_eq!(state(10), [None, None]);
        assert_eq!(model.advance(4), [1]);
        assert_eq!(model.advance(7), [2]);
        assert_eq!(model.objects(), [4]);
    }

    #[test]
    fn a_pinned_version_is_held_until_the_pin_goes() {
        let mut model = HistoryModel::new(1, 0, Vec::new());
        for stamp in 1..=5 {
            model.write(0, Some(stamp), u64::from(stamp) * 10);
        }
        assert!(model.snapshot(25));
        assert_eq!(model.advance(45), [1, 3]);
        assert_eq!(model.at(0, 25), Some(Some(Some(2))));
        assert_eq!(model.at(0, 24), None);
        assert_eq!(model.delete_snapshot(25), Some(vec![2]));
        assert_eq!(model.objects(), [4]);
    }
}
