//! What was stored after objects that were found: where a sequence of duplicates goes on.
//!
//! Duplicates come in runs: a copy of a file or of a disk is written in the order in which the first one was. So what
//! follows a hit in the order of storing is probably written next, and one entry of the index stands for a whole run.
//! A *run* here is a window of [`WINDOW`] neighbours with their tags; there are [`RUNS`] windows, for copies that are
//! made at the same time. When the second half of a window is reached it moves on; a hit outside of all takes the
//! window that was of no use for the longest time.
//!
//! Nearly all writes are in none of the windows: a filter of each says so without a look at its tags.
//!
//! Invariants: the order of use names each window once; a place without a neighbour has no object; the filter of a window
//! has all its tags.

use flashlore_flash::ObjectId;

/// Windows.
pub const RUNS: usize = 8;

/// Neighbours in a window.
pub const WINDOW: usize = 32;

/// The place within a window from which on the window moves.
const MOVES_AT: usize = WINDOW / 2;

/// The windows. A tag is 32 bits of a fingerprint.
#[derive(Debug, Clone)]
pub struct Runs {
    tags: [[u32; WINDOW]; RUNS],
    objects: [[ObjectId; WINDOW]; RUNS],
    filters: [TagFilter; RUNS],
    /// Windows by last use, the newest first.
    order: [u8; RUNS],
}

/// Where an object stands.
#[derive(Debug, Clone, Copy)]
struct InRun {
    /// The place of its window in the order of use.
    rank: usize,
    at: usize,
}

impl Runs {
    /// Windows without neighbours.
    pub fn new() -> Runs {
        Runs {
            tags: [[0; WINDOW]; RUNS],
            objects: [[ObjectId::NONE; WINDOW]; RUNS],
            filters: [TagFilter::default(); RUNS],
            order: std::array::from_fn(|run| run as u8),
        }
    }

    /// The first neighbour with a tag that is accepted.
    #[inline]
    pub fn find(&self, tag: u32, mut accepts: impl FnMut(ObjectId) -> bool) -> Option<ObjectId> {
        for &run in &self.order {
            let run = usize::from(run);
            let mut equal = self.places_of(run, tag);
            while equal != 0 {
                let object = self.objects[run][equal.trailing_zeros() as usize];
                if object.is_some() && accepts(object) {
                    return Some(object);
                }
                equal &= equal - 1;
            }
        }
        None
    }

    /// An object was found again: its window is the newest. Whether it stands in one; if so, whether that moves on.
    pub fn touch(&mut self, tag: u32, object: ObjectId) -> Option<bool> {
        let place = self.position(tag, object)?;
        self.order[..=place.rank].rotate_right(1);
        Some(place.at >= MOVES_AT)
    }

    /// A window begins after an object: the one in which the object stands moves on, or else the oldest begins anew.
    pub fn follow(
        &mut self,
        tag: u32,
        object: ObjectId,
        neighbours: impl Iterator<Item = (u32, ObjectId)>,
    ) {
        let place = self.position(tag, object);
        let rank = place.map_or(RUNS - 1, |place| place.rank);
        self.order[..=rank].rotate_right(1);
        let run = usize::from(self.order[0]);
        self.tags[run] = [0; WINDOW];
        self.objects[run] = [ObjectId::NONE; WINDOW];
        self.filters[run] = TagFilter::default();
        for (at, (tag, object)) in neighbours.take(WINDOW).enumerate() {
            (self.tags[run][at], self.objects[run][at]) = (tag, object);
            self.filters[run].add(tag);
        }
    }

    /// Looks at every invariant.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        for run in 0..RUNS {
            let named = self
                .order
                .iter()
                .filter(|&&found| usize::from(found) == run);
            let named = named.count();
            if named != 1 {
                return Err(format!(
                    "the order of use names window {run} {named} times, expected once"
                ));
            }
            let objects = self.objects[run].iter().zip(&self.tags[run]);
            let mut tags = objects.filter(|(object, _)| object.is_some());
            if let Some((_, tag)) = tags.find(|(_, tag)| !self.filters[run].may_have(**tag)) {
                return Err(format!("the filter of window {run} lacks tag {tag}"));
            }
        }
        Ok(())
    }

    /// The places of a window with a tag, a bit each.
    #[inline]
    fn places_of(&self, run: usize, tag: u32) -> u32 {
        let mut equal = 0;
        if self.filters[run].may_have(tag) {
            for (at, &found) in self.tags[run].iter().enumerate() {
                equal |= u32::from(found == tag) << at;
            }
        }
        equal
    }

    fn position(&self, tag: u32, object: ObjectId) -> Option<InRun> {
        self.order.iter().enumerate().find_map(|(rank, &run)| {
            let run = usize::from(run);
            let equal = self.places_of(run, tag);
            let mut places = (0..WINDOW).filter(|at| equal >> at & 1 == 1);
            let at = places.find(|&at| self.objects[run][at] == object)?;
            Some(InRun { rank, at })
        })
    }
}

/// A bit for all tags that have the same lowest byte.
#[derive(Debug, Clone, Copy, Default)]
struct TagFilter([u64; 4]);

impl TagFilter {
    fn add(&mut self, tag: u32) {
        self.0[tag as usize / 64 % 4] |= 1 << (tag % 64);
    }

    #[inline]
    fn may_have(&self, tag: u32) -> bool {
        self.0[tag as usize / 64 % 4] >> (tag % 64) & 1 == 1
    }
}
