//! The write cache: runs of sectors that were accepted and are not on the media yet.
//!
//! Invariants: runs are in order and neither overlap nor touch; `dirty` is the sum of their lengths; there
//! are never more sectors, what is being destaged included, nor more runs than the limits.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteCache {
    pub sectors: u32,
    /// Separate runs it holds at most.
    pub runs: u32,
    /// A run is destaged in pieces of so many sectors at most.
    pub piece: u32,
}

#[derive(Debug, Clone, Copy)]
struct Extent {
    start: u64,
    end: u64,
}

const NOTHING: Extent = Extent { start: 0, end: 0 };

#[derive(Debug, Clone)]
pub(super) struct Dirty {
    limits: WriteCache,
    extents: Vec<Extent>,
    sectors: u64,
    /// What is being destaged: its room is not free yet.
    leaving: Extent,
    /// Where the next piece is looked for.
    position: u64,
}

impl Dirty {
    pub fn new(limits: WriteCache) -> Self {
        Dirty {
            limits,
            extents: Vec::with_capacity(limits.runs as usize),
            sectors: 0,
            leaving: NOTHING,
            position: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Whether a write of so many sectors can ever be held.
    pub fn can_hold(&self, sectors: u64) -> bool {
        sectors <= u64::from(self.limits.sectors)
    }

    /// Whether all of this run is held, be it on its way to the media.
    pub fn holds(&self, start: u64, end: u64) -> bool {
        let mut from = start;
        while from < end {
            let after = self.extents.partition_point(|extent| extent.end <= from);
            let extent = self.extents.get(after).copied().unwrap_or(self.leaving);
            let here = [extent, self.leaving].into_iter();
            let here = here.filter(|extent| extent.start <= from && from < extent.end);
            match here.map(|extent| extent.end).max() {
                Some(end) => from = end,
                None => return false,
            }
        }
        true
    }

    /// The extents that overlap or touch this run.
    fn touching(&self, start: u64, end: u64) -> std::ops::Range<usize> {
        let first = self.extents.partition_point(|extent| extent.end < start);
        let last = self.extents.partition_point(|extent| extent.start <= end);
        first..last.max(first)
    }

    /// Whether there is room for this run now.
    pub fn has_room(&self, start: u64, end: u64) -> bool {
        let touching = self.touching(start, end);
        let overlap = |extent: &Extent| extent.end.min(end).saturating_sub(extent.start.max(start));
        let held: u64 = self.extents[touching.clone()].iter().map(overlap).sum();
        let leaving = self.leaving.end - self.leaving.start;
        let sectors = self.sectors + leaving + (end - start) - held;
        let fewer_runs = !touching.is_empty() || self.extents.len() < self.limits.runs as usize;
        sectors <= u64::from(self.limits.sectors) && fewer_runs
    }

    /// Takes a run in; there must be room.
    pub fn insert(&mut self, start: u64, end: u64) {
        let touching = self.touching(start, end);
        if touching.is_empty() {
            self.extents.insert(touching.start, Extent { start, end });
            self.sectors += end - start;
            return;
        }
        let (first, last) = (touching.start, touching.end - 1);
        let before: u64 = self.extents[touching.clone()]
            .iter()
            .map(|extent| extent.end - extent.start)
            .sum();
        let joined = Extent {
            start: start.min(self.extents[first].start),
            end: end.max(self.extents[last].end),
        };
        self.extents.drain(first + 1..=last);
        self.extents[first] = joined;
        self.sectors += joined.end - joined.start - before;
    }

    /// Takes out the next piece to be destaged, going upwards and round: (first sector, sectors). Its room
    /// is free after [`Dirty::left`].
    pub fn take_piece(&mut self) -> Option<(u64, u64)> {
        let position = self.position;
        let after = self
            .extents
            .partition_point(|extent| extent.start < position);
        let index = if after < self.extents.len() { after } else { 0 };
        let extent = self.extents.get_mut(index)?;
        let sectors = (extent.end - extent.start).min(u64::from(self.limits.piece));
        let start = extent.start;
        extent.start += sectors;
        if extent.start == extent.end {
            self.extents.remove(index);
        }
        self.sectors -= sectors;
        self.position = start + sectors;
        self.leaving = Extent {
            start,
            end: self.position,
        };
        Some((start, sectors))
    }

    /// What was being destaged is on the media.
    pub fn left(&mut self) {
        self.leaving = NOTHING;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn runs(sectors: &BTreeSet<u64>) -> usize {
        let begins = |lba: &&u64| **lba == 0 || !sectors.contains(&(**lba - 1));
        sectors.iter().filter(begins).count()
    }

    proptest! {
        #[test]
        fn extents_are_a_set_of_sectors(
            steps in prop::collection::vec((0u64..60, 1u64..8, any::<bool>()), 0..80),
        ) {
            let limits = WriteCache { sectors: 30, runs: 5, piece: 3 };
            let mut dirty = Dirty::new(limits);
            let mut set = BTreeSet::new();
            for (start, sectors, take) in steps {
                let end = start + sectors;
                if take {
                    let Some((from, count)) = dirty.take_piece() else {
                        prop_assert!(set.is_empty());
                        continue;
                    };
                    prop_assert!(count <= 3);
                    prop_assert!(dirty.holds(from, from + count));
                    for lba in from..from + count {
                        prop_assert!(set.remove(&lba));
                    }
                    dirty.left();
                    prop_assert!(!dirty.holds(from, from + 1));
                } else {
                    let mut after = set.clone();
                    after.extend(start..end);
                    let touches = set.iter().any(|&lba| lba + 1 >= start && lba <= end);
                    let room = after.len() <= 30 && (touches || runs(&set) < 5);
                    prop_assert_eq!(dirty.has_room(start, end), room);
                    if room {
                        dirty.insert(start, end);
                        set = after;
                    }
                }
                prop_assert_eq!(dirty.sectors, set.len() as u64);
                prop_assert_eq!(dirty.extents.len(), runs(&set));
                let held = (start..end).all(|lba| set.contains(&lba));
                prop_assert_eq!(dirty.holds(start, end), held);
            }
        }
    }
}
