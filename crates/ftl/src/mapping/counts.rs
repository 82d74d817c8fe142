//! What refers to an object, counted by kind in one word.
//!
//! Most counts are small, so each has few bits. One that outgrows them leaves a part in a side table, and
//! takes it back before it would seem to be 0. So whether an object is referred to at all is seen in its word.
//!
//! Invariants: the bits of a count are 0 iff the count is; a word is marked as spilled iff the side table has a
//! part of one of its counts; a part is never 0 and a multiple of half of what the bits of its count hold.

use flashlore_flash::{ObjectId, number_rows};
use rustc_hash::FxHashMap;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReferenceKind {
    /// References of logical pages.
    Live = 0,
    /// References of old versions.
    Kept = 1,
    /// References of packed objects that need it as base.
    Pins = 2,
    /// Uses of its handle in the queue of the fingerprint index; they outlive the object.
    Uses = 3,
}

impl ReferenceKind {
    const ALL: [ReferenceKind; 4] = [
        ReferenceKind::Live,
        ReferenceKind::Kept,
        ReferenceKind::Pins,
        ReferenceKind::Uses,
    ];

    /// The lowest bit of the count, and how many it has.
    const fn place(self) -> (u32, u32) {
        match self {
            ReferenceKind::Live => (0, 9),
            ReferenceKind::Kept => (9, 6),
            ReferenceKind::Pins => (15, 6),
            ReferenceKind::Uses => (21, 6),
        }
    }

    const fn one(self) -> u32 {
        1 << self.place().0
    }

    const fn mask(self) -> u32 {
        ((1 << self.place().1) - 1) << self.place().0
    }

    /// What moves to the side table and back at once.
    const fn half(self) -> u32 {
        1 << (self.place().1 - 1)
    }
}

/// What refers to an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct References {
    /// Logical pages.
    pub live: u32,
    /// Old versions.
    pub kept: u32,
    /// Packed objects that need it as base.
    pub pins: u32,
    /// The exclusive or of the handles of those.
    pub dependents: u32,
}

impl References {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        (self.live, self.kept, self.pins) == (0, 0, 0)
    }
}

/// The fingerprint index names the object.
pub(super) const INDEXED: u32 = 1 << 31;
/// It lies in a packed page.
pub(super) const PACKED: u32 = 1 << 30;
/// It needs a base to be decoded.
pub(super) const DELTA: u32 = 1 << 29;
/// It is to be hashed in idle time.
pub(super) const UNHASHED: u32 = 1 << 28;
/// The side table has a part of a count.
const SPILLED: u32 = 1 << 27;

/// Counts that keep an object alive.
const REFERENCES: u32 =
    ReferenceKind::Live.mask() | ReferenceKind::Kept.mask() | ReferenceKind::Pins.mask();

/// The counts and marks of one object.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Counts(u32);

impl Counts {
    #[inline(always)]
    pub fn has(self, mark: u32) -> bool {
        self.0 & mark != 0
    }

    #[inline(always)]
    pub fn mark(&mut self, mark: u32) {
        self.0 |= mark;
    }

    #[inline(always)]
    pub fn unmark(&mut self, mark: u32) {
        self.0 &= !mark;
    }

    /// Whether nothing refers to the object.
    #[inline(always)]
    pub fn is_dead(self) -> bool {
        self.0 & REFERENCES == 0
    }

    /// Whether a count is 0.
    #[inline(always)]
    pub fn is_none(self, kind: ReferenceKind) -> bool {
        self.0 & kind.mask() == 0
    }

    /// Whether a count is probably 1.
    #[inline(always)]
    pub fn is_one(self, kind: ReferenceKind) -> bool {
        self.0 & kind.mask() == kind.one()
    }

    /// Whether these may be the counts of so many references. What has no room in the word is not known.
    pub fn may_be(self, references: &References) -> bool {
        let References {
            live, kept, pins, ..
        } = *references;
        let kinds = [
            ReferenceKind::Live,
            ReferenceKind::Kept,
            ReferenceKind::Pins,
        ];
        kinds
            .into_iter()
            .zip([live, kept, pins])
            .all(|(kind, count)| {
                let held = (self.0 & kind.mask()) >> kind.place().0;
                match count.checked_sub(held) {
                    Some(0) => true,
                    Some(spilled) => self.has(SPILLED) && held > 0 && spilled % kind.half() == 0,
                    None => false,
                }
            })
    }

    /// Those of a dead object, as a new one under its handle begins with.
    #[inline(always)]
    pub fn of_next(self) -> Counts {
        debug_assert!(self.is_dead());
        Counts(self.0 & (SPILLED | ReferenceKind::Uses.mask()))
    }
}

number_rows!(u32: Counts);

/// Parts of counts that have no room in their words, by handle and kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Spilled(FxHashMap<(ObjectId, u8), u32>);

impl Spilled {
    /// A count of the object of a handle.
    #[inline(always)]
    pub fn count(&self, handle: ObjectId, counts: Counts, kind: ReferenceKind) -> u32 {
        let held = (counts.0 & kind.mask()) >> kind.place().0;
        if counts.has(SPILLED) {
            return held + self.part(handle, kind);
        }
        held
    }

    #[cold]
    fn part(&self, handle: ObjectId, kind: ReferenceKind) -> u32 {
        self.0.get(&(handle, kind as u8)).copied().unwrap_or(0)
    }

    /// Counts one more.
    #[inline(always)]
    pub fn add(&mut self, handle: ObjectId, counts: &mut Counts, kind: ReferenceKind) {
        if counts.0 & kind.mask() == kind.mask() {
            self.spill(handle, counts, kind);
        }
        counts.0 += kind.one();
    }

    #[cold]
    fn spill(&mut self, handle: ObjectId, counts: &mut Counts, kind: ReferenceKind) {
        *self.0.entry((handle, kind as u8)).or_insert(0) += kind.half();
        counts.0 -= kind.half() * kind.one();
        counts.mark(SPILLED);
    }

    /// Counts one less; the count is not 0.
    #[inline(always)]
    pub fn take(&mut self, handle: ObjectId, counts: &mut Counts, kind: ReferenceKind) {
        debug_assert!(!counts.is_none(kind));
        counts.0 -= kind.one();
        if counts.is_none(kind) && counts.has(SPILLED) {
            self.take_back(handle, counts, kind);
        }
    }

    #[cold]
    fn take_back(&mut self, handle: ObjectId, counts: &mut Counts, kind: ReferenceKind) {
        let Some(part) = self.0.get_mut(&(handle, kind as u8)) else {
            return;
        };
        *part -= kind.half();
        counts.0 += kind.half() * kind.one();
        if *part > 0 {
            return;
        }
        self.0.remove(&(handle, kind as u8));
        if !ReferenceKind::ALL.iter().any(|&k| self.part(handle, k) > 0) {
            counts.unmark(SPILLED);
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<((ObjectId, u8), u32)>()
    }

    /// Looks at what the side table says of the words of all handles.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self, word: impl Fn(ObjectId) -> Option<Counts>) -> Result<(), String> {
        for (&(handle, kind), &part) in &self.0 {
            let kind = ReferenceKind::ALL[usize::from(kind)];
            let counts = word(handle).filter(|counts| counts.has(SPILLED) && !counts.is_none(kind));
            if counts.is_none() || part == 0 || part % kind.half() != 0 {
                return Err(format!(
                    "the side table has {part} of {kind:?} for object {handle}, which notes {counts:?}"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_counts_are_those_of_plain_numbers(
            steps in prop::collection::vec((0u32..2, 0usize..4, any::<bool>(), 1u32..700), 1..60),
        ) {
            let mut spilled = Spilled::default();
            let mut words = [Counts::default(); 2];
            let mut model = [[0u32; 4]; 2];
            for (handle, kind, more, times) in steps {
                let (word, count) = (&mut words[handle as usize], &mut model[handle as usize]);
                for _ in 0..times {
                    if more {
                        spilled.add(ObjectId(handle), word, ReferenceKind::ALL[kind]);
                        count[kind] += 1;
                    } else if count[kind] > 0 {
                        spilled.take(ObjectId(handle), word, ReferenceKind::ALL[kind]);
                        count[kind] -= 1;
                    }
                    prop_assert_eq!(word.is_none(ReferenceKind::ALL[kind]), count[kind] == 0);
                }
                for (handle, (word, count)) in words.iter().zip(&model).enumerate() {
                    let counted = ReferenceKind::ALL.map(|kind| spilled.count(ObjectId(handle as u32), *word, kind));
                    prop_assert_eq!(counted, *count);
                    prop_assert_eq!(word.is_dead(), count[..3] == [0; 3]);
                }
                spilled.check(|handle| words.get(handle.index()).copied()).map_err(TestCaseError::fail)?;
            }
            let parts = spilled.0.len();
            prop_assert_eq!(words.iter().any(|word| word.has(SPILLED)), parts > 0);
        }
    }
}
