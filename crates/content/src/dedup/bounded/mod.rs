//! A fingerprint index of bounded memory, for volumes: which stored object may hold the content of a write.
//!
//! [`LruIndex`](super::LruIndex) serves simulation: it is exactly the LRU of the paper, and keeps counts in the rows of
//! objects. This one keeps everything in a budget of bytes, whatever the volume is. What leaves it is not found any
//! more, as with the window of VDO's index and CA-SSD's LRU.
//!
//! * `set` — 12 entries in a cache line: 5⅓ bytes an entry, of which 4 are the object's handle and ten bits a tag; what
//!   leaves a full set
//! * `sets` — all sets, in memory that is taken as they fill
//! * `runs` — neighbours of objects that were found, so that one entry finds a run of duplicates (the idea of sparse
//!   indexing, FAST 2009)
//! * [`pages`] — the index as pages of a medium
//! * `changed` — which of them are to be written
//!
//! **An entry is a hint.** Its tag is short, it may be older than its object, and pages of an earlier life of the
//! volume may be read into the index. So a name that the index gives may be of another object or of none: the caller
//! compares content before it shares, and answers "no" for handles that nothing has. That is the only thing the index
//! relies on. It can be empty after a crash, be filled in any order while it serves, and lose entries at any time; each
//! costs savings, never content.
//!
//! **Life.** [`BoundedIndex::new`]; after a clean end [`BoundedIndex::read_page`] for every page that was written.
//! Afterwards, or while it serves, [`BoundedIndex::refill`] for what is stored and has no entry. For each write:
//! [`find`](BoundedIndex::find), then [`touch`](BoundedIndex::touch) for what was shared, and if that asks for them the
//! neighbours ([`follow`](BoundedIndex::follow)); or [`missed`](BoundedIndex::missed) and
//! [`insert`](BoundedIndex::insert). When an object dies, [`remove`](BoundedIndex::remove).
//!
//! Invariants: those of `set` and `runs`; the index has as many entries as it counts; its memory keeps the budget.

mod changed;
pub mod pages;
mod runs;
mod set;
mod sets;

#[cfg(test)]
mod tests;

use std::ops::Range;

use flashlore_flash::ObjectId;
use flashlore_flash::hints::prefetch;

use changed::{ChangedSets, SETS_OF_WORD, WORD_BYTES};
use runs::{Runs, WINDOW};
use set::{EntrySet, Offered, SET_BYTES, TAG_BITS, WAYS};
use sets::Sets;

/// Bytes of the windows of neighbours, a part of every budget.
const RUNS_BYTES: usize = size_of::<Runs>();

/// With what there is before the first set: sets begin with a cache line.
const BESIDE_SETS: usize = RUNS_BYTES + SET_BYTES;

/// What happened since the index was made. All are numbers of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BoundedCounters {
    /// Writes that shared an object found by its own entry.
    pub hits: u64,
    /// Writes that shared an object found as a neighbour of one found before.
    pub run_hits: u64,
    /// Writes whose content was not found.
    pub misses: u64,
    /// Of them, those that a larger index might have found: their set has evicted entries, or the index is
    /// [incomplete](BoundedIndex::set_incomplete). All others would be misses of an unbounded index too.
    pub doubtful_misses: u64,
    /// Entries that left, or were not taken, because their set was full.
    pub evictions: u64,
    /// Windows of neighbours that the caller looked up.
    pub windows: u64,
}

/// How much of what is stored the index can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    /// Entries held. Stale ones count until they are removed or leave.
    pub entries: u64,
    /// Most entries that there is room for.
    pub capacity: u64,
    /// Objects stored, as the caller counts them.
    pub objects: u64,
}

impl Coverage {
    /// The share of stored objects that have an entry, from 0 to 1; 1 if nothing is stored. Objects without one are
    /// found as neighbours all the same, where a run of duplicates leads to them.
    pub fn share(&self) -> f64 {
        match self.objects {
            0 => 1.0,
            objects => (self.entries as f64 / objects as f64).min(1.0),
        }
    }
}

/// Where a fingerprint belongs.
#[derive(Debug, Clone, Copy)]
struct Home {
    set: usize,
    /// What an entry keeps of it,
    tag: u16,
    /// and what a window keeps.
    run_tag: u32,
}

/// The index. It names objects by handle and knows fingerprints as numbers of 64 bits that say which contents may be
/// equal; all calls about one object must use the same one. A caller that keeps 32 bits of a digest passes those.
#[derive(Debug, Clone)]
pub struct BoundedIndex {
    sets: Sets,
    /// Which of them may differ from what was read of a medium.
    changed: ChangedSets,
    /// `None` in an index without sets.
    runs: Option<Box<Runs>>,
    len: u64,
    budget: u64,
    is_incomplete: bool,
    counters: BoundedCounters,
}

impl BoundedIndex {
    /// An empty index that takes at most so many bytes of memory. A budget too small for a set and the windows (about
    /// 2,400 bytes) keeps nothing. 1 byte for each KiB of content keeps at least 95 % of the savings of an unbounded
    /// index on every stream of `benches/savings`, if neighbours are given before the next write.
    pub fn new(budget: u64) -> Self {
        let sets = sets_within(budget);
        BoundedIndex {
            sets: Sets::new(sets),
            changed: ChangedSets::none(sets),
            runs: (sets > 0).then(|| Box::new(Runs::new())),
            len: 0,
            budget,
            is_incomplete: false,
            counters: BoundedCounters::default(),
        }
    }

    /// The smallest budget that keeps anything, in bytes.
    pub const fn least_budget() -> u64 {
        (BESIDE_SETS + WORD_BYTES + SET_BYTES) as u64
    }

    /// The memory that it may take, in bytes.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Bytes held, once all sets have been changed.
    pub fn heap_bytes(&self) -> usize {
        let runs = self.runs.as_ref().map_or(0, |_| RUNS_BYTES);
        self.sets.bytes() + self.changed.heap_bytes() + runs
    }

    /// Entries held.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Most entries that it has room for. As fingerprints choose their sets by chance, entries leave before all sets
    /// are full.
    pub fn capacity(&self) -> u64 {
        (self.sets.len() * WAYS) as u64
    }

    /// How much it covers of so many stored objects.
    pub fn coverage(&self, objects: u64) -> Coverage {
        Coverage {
            entries: self.len,
            capacity: self.capacity(),
            objects,
        }
    }

    /// Counts since the index was made.
    pub fn counters(&self) -> BoundedCounters {
        self.counters
    }

    /// Says whether objects are stored that the index was never told of: after a crash, after a page that was not read,
    /// after a change of the budget that did not know some fingerprints, until all is refilled. Until then every miss
    /// is doubtful. The index cannot know it by itself.
    pub fn set_incomplete(&mut self, is_incomplete: bool) {
        self.is_incomplete = is_incomplete;
    }

    /// Whether objects are stored that were never entered.
    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// Asks the processor for the set of a fingerprint.
    #[inline]
    pub fn prefetch(&self, fingerprint: u64) {
        if let Some(home) = self.home(fingerprint) {
            prefetch(&self.sets, home.set);
        }
    }

    /// An object with a fingerprint, neighbours of what was found before first. `is` says of a handle whether its
    /// object has the whole fingerprint; it is asked of handles that nothing has too, and says no. Nothing changes, so
    /// it can be asked again at the commit.
    #[inline]
    pub fn find(&self, fingerprint: u64, mut is: impl FnMut(ObjectId) -> bool) -> Option<ObjectId> {
        let home = self.home(fingerprint)?;
        // It comes while the windows are looked through.
        prefetch(&self.sets, home.set);
        let runs = self.runs.as_deref();
        let neighbour = runs.and_then(|runs| runs.find(home.run_tag, &mut is));
        neighbour.or_else(|| self.sets[home.set].find(home.tag, is))
    }

    /// A write shared an object that was found. Whether its neighbours are wanted: [`BoundedIndex::follow`] takes them.
    /// They are of most use before the next write is looked for; while they are on their way, short runs are missed.
    #[must_use]
    pub fn touch(&mut self, fingerprint: u64, object: ObjectId) -> bool {
        let Some(home) = self.home(fingerprint) else {
            return false;
        };
        let runs = self.runs.as_deref_mut();
        if let Some(moves) = runs.and_then(|runs| runs.touch(home.run_tag, object)) {
            // Its entry, if it has one, is not needed while the run goes on: those that begin runs are.
            self.counters.run_hits += 1;
            return moves;
        }
        self.counters.hits += 1;
        self.set_mut(home.set).touch(object);
        true
    }

    /// Takes neighbours of an object that was shared: what was stored after it, the next one first, by fingerprint and
    /// handle. The first [`BoundedIndex::window`] are used. They need not be alive, nor all be given: the order of
    /// handles serves if they are given out in order, and places on flash do.
    pub fn follow(
        &mut self,
        fingerprint: u64,
        object: ObjectId,
        neighbours: impl IntoIterator<Item = (u64, ObjectId)>,
    ) {
        let (Some(home), Some(runs)) = (self.home(fingerprint), self.runs.as_deref_mut()) else {
            return;
        };
        self.counters.windows += 1;
        let neighbours = neighbours.into_iter();
        let neighbours =
            neighbours.map(|(fingerprint, object)| (spread(fingerprint) as u32, object));
        runs.follow(home.run_tag, object, neighbours);
    }

    /// How many neighbours [`BoundedIndex::follow`] uses.
    pub const fn window() -> usize {
        WINDOW
    }

    /// A write found nothing.
    pub fn missed(&mut self, fingerprint: u64) {
        let set = self.home(fingerprint).map(|home| &self.sets[home.set]);
        let is_doubtful = self.is_incomplete || set.is_none_or(EntrySet::has_evicted);
        self.counters.misses += 1;
        self.counters.doubtful_misses += u64::from(is_doubtful);
    }

    /// Enters an object that a write stored, as the newest of its set.
    pub fn insert(&mut self, fingerprint: u64, object: ObjectId) {
        if let Some(home) = self.home(fingerprint).filter(|_| object.is_some()) {
            let offered = self.set_mut(home.set).insert(home.tag, object);
            self.count(offered);
        }
    }

    /// Enters an object that was stored some time ago, in any order and beside users: it is older than what its set
    /// holds, and what an object has already stays.
    pub fn refill(&mut self, fingerprint: u64, object: ObjectId) {
        if let Some(home) = self.home(fingerprint).filter(|_| object.is_some()) {
            self.changed.mark(home.set);
            self.offer_oldest(home.set, home.tag, object);
        }
    }

    /// Removes the entry of an object that died, if it has one; whether it had.
    pub fn remove(&mut self, fingerprint: u64, object: ObjectId) -> bool {
        let home = self.home(fingerprint);
        let removed = home.is_some_and(|home| self.set_mut(home.set).remove(home.tag, object));
        self.len -= u64::from(removed);
        removed
    }

    /// Changes the budget. Entries stay as far as there is room, the newest first. `fingerprint` says what an object
    /// has, as an entry knows a part of it alone; entries of which it does not know that are left out, and can be
    /// refilled. It is asked once for each entry, in no order. Until it is done both tables are in memory.
    pub fn resize(&mut self, budget: u64, mut fingerprint: impl FnMut(ObjectId) -> Option<u64>) {
        let mut resized = BoundedIndex::new(budget);
        resized.is_incomplete = self.is_incomplete;
        // Of old sets that become one, first the newest of each, then the second newest.
        for at in 0..WAYS {
            for (number, set) in self.sets.iter().enumerate() {
                let Some((tag, object)) = set.entry(at) else {
                    continue;
                };
                let known = fingerprint(object);
                let known = known.filter(|&known| {
                    let home = self.home(known);
                    home.is_some_and(|home| home.set == number && home.tag == tag)
                });
                // One that is stale has no place.
                if let Some(known) = known {
                    resized.refill(known, object);
                }
            }
        }
        // What an old set lacks, the sets that have its fingerprints now lack.
        let (old, new) = (self.sets.len(), resized.sets.len());
        for (number, set) in resized.sets.iter_mut().enumerate() {
            let first = number * old / new;
            let end = ((number + 1) * old).div_ceil(new);
            if old == 0 || self.sets[first..end].iter().any(EntrySet::has_evicted) {
                set.note_evicted();
            }
        }
        let evictions = self.counters.evictions + resized.counters.evictions;
        resized.counters = BoundedCounters {
            evictions,
            ..self.counters
        };
        *self = resized;
    }

    /// Recounts every invariant.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        for (number, set) in self.sets.iter().enumerate() {
            set.check()
                .map_err(|what| format!("set {number} of the index {what}"))?;
        }
        if let Some(runs) = &self.runs {
            runs.check()?;
        }
        let entries = self.sets.iter().map(|set| set.len() as u64).sum::<u64>();
        if entries != self.len {
            return Err(format!(
                "the index counts {} entries, its sets hold {entries}",
                self.len
            ));
        }
        if self.heap_bytes() as u64 > self.budget {
            return Err(format!(
                "the index takes {} bytes, its budget is {}",
                self.heap_bytes(),
                self.budget
            ));
        }
        Ok(())
    }

    /// Enters what is older than all of a set, which is not marked as changed for it.
    fn offer_oldest(&mut self, set: usize, tag: u16, object: ObjectId) {
        let offered = self.sets[set].insert_oldest(tag, object);
        self.count(offered);
    }

    /// A set that is about to change.
    #[inline]
    fn set_mut(&mut self, set: usize) -> &mut EntrySet {
        self.changed.mark(set);
        &mut self.sets[set]
    }

    fn mark_changed(&mut self, sets: Range<usize>) {
        sets.for_each(|set| self.changed.mark(set));
    }

    fn count(&mut self, offered: Offered) {
        match offered {
            Offered::Added => self.len += 1,
            Offered::Known => {}
            Offered::Evicted => self.counters.evictions += 1,
        }
    }

    #[inline]
    fn home(&self, fingerprint: u64) -> Option<Home> {
        let spread = spread(fingerprint);
        (!self.sets.is_empty()).then(|| Home {
            // The upper half scaled to the number of sets: any number of them will do.
            set: (((spread >> 32) * self.sets.len() as u64) >> 32) as usize,
            tag: spread as u16 & ((1 << TAG_BITS) - 1),
            run_tag: spread as u32,
        })
    }
}

/// Fingerprints may be small numbers, or digests of few bits; all bits of what this makes of one depend on all of it.
/// It is the last step of SplitMix64 (Steele et al., OOPSLA 2014).
#[inline]
fn spread(fingerprint: u64) -> u64 {
    let mixed = (fingerprint ^ fingerprint >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Sets for which there is room beside the windows, with the bits of what has changed. The upper half of a spread
/// fingerprint tells 2^32 sets apart, and pages have 32 bits for their number.
fn sets_within(budget: u64) -> usize {
    let bytes = budget.saturating_sub(BESIDE_SETS as u64);
    let words = bytes / (SETS_OF_WORD * SET_BYTES + WORD_BYTES) as u64 + 1;
    let sets = bytes.saturating_sub(words * WORD_BYTES as u64) / SET_BYTES as u64;
    sets.min(u32::MAX.into()) as usize
}
