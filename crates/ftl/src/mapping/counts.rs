//! What refers to an object, counted by kind in one word.
//!
//! Most counts are small, so each has few bits. One that outgrows them leaves a part in a side table, and
//! takes it back before it would seem to be 0. So whether an object is referred to at all is seen in its word.
//!
//! Invariants: the bits of a count are 0 iff the count is; a word is marked as spilled iff the side table has a
//! part of one of its counts; a part is never 0 and a multiple of half of what the bits of its count hold.

use flashlore_flash::{ObjectId, Row, Table, TableName, Tables, number_rows};
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

    /// Counts one more; whether there was room for it.
    #[inline(always)]
    pub fn add(&mut self, kind: ReferenceKind) -> bool {
        let has_room = self.0 & kind.mask() != kind.mask();
        if has_room {
            self.0 += kind.one();
        }
        has_room
    }

    /// Counts one more, once a part has been spilled.
    pub fn add_spilled(&mut self, kind: ReferenceKind) {
        self.0 -= kind.half() * kind.one();
        self.0 += kind.one();
        self.mark(SPILLED);
    }

    /// Counts one less; the count is not 0. Whether it is by what is left here, and may not be by what is spilled.
    #[inline(always)]
    pub fn take(&mut self, kind: ReferenceKind) -> bool {
        debug_assert!(!self.is_none(kind));
        self.0 -= kind.one();
        self.is_none(kind) && self.has(SPILLED)
    }

    /// A part that was spilled is here again; `is_last` says that nothing else is spilled.
    pub fn take_back(&mut self, kind: ReferenceKind, is_last: bool) {
        self.0 += kind.half() * kind.one();
        if is_last {
            self.unmark(SPILLED);
        }
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

    /// References that are counted in the word.
    pub fn held(self) -> u32 {
        let kinds = [
            ReferenceKind::Live,
            ReferenceKind::Kept,
            ReferenceKind::Pins,
        ];
        let held = kinds.map(|kind| (self.0 & kind.mask()) >> kind.place().0);
        held.iter().sum()
    }

    /// Whether these are the counts of so many references, of which so much is spilled: live ones, those of old versions, and
    /// pins.
    pub fn are(self, references: &References, spilled: [u32; 3]) -> bool {
        let References {
            live, kept, pins, ..
        } = *references;
        let kinds = [
            ReferenceKind::Live,
            ReferenceKind::Kept,
            ReferenceKind::Pins,
        ];
        let counted = kinds.into_iter().zip([live, kept, pins]).zip(spilled);
        let is_so = |((kind, count), part): ((ReferenceKind, u32), u32)| {
            let held = (self.0 & kind.mask()) >> kind.place().0;
            held.checked_add(part) == Some(count)
                && part % kind.half() == 0
                && (held > 0 || part == 0)
        };
        { counted }.all(is_so) && self.has(SPILLED) == (spilled != [0; 3])
    }

    /// Those of a dead object, as a new one under its handle begins with.
    #[inline(always)]
    pub fn of_next(self) -> Counts {
        debug_assert!(self.is_dead());
        Counts(self.0 & (SPILLED | ReferenceKind::Uses.mask()))
    }
}

number_rows!(u32: Counts);

/// A part of a count that has no room in its word; a row that holds none is all zeros.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpilledPart {
    /// Whose count it is.
    pub object: ObjectId,
    /// What is counted: 0 live references, 1 those of old versions, 2 pins.
    pub kind: u32,
    /// How much of it; 0 if the row holds nothing.
    pub part: u32,
}

impl SpilledPart {
    /// Whether it may be so much of what it counts.
    pub fn is_possible(&self) -> bool {
        let kind = ReferenceKind::ALL.get(self.kind as usize);
        kind.is_some_and(|kind| self.part > 0 && self.part.is_multiple_of(kind.half()))
    }
}

impl Row for SpilledPart {
    const BYTES: usize = 12;

    fn encode(self, out: &mut [u8]) {
        self.object.encode(&mut out[..4]);
        self.kind.encode(&mut out[4..8]);
        self.part.encode(&mut out[8..12]);
    }

    fn decode(bytes: &[u8]) -> Self {
        SpilledPart {
            object: ObjectId::decode(&bytes[..4]),
            kind: u32::decode(&bytes[4..8]),
            part: u32::decode(&bytes[8..12]),
        }
    }
}

/// The most rows that parts of so many references take, of logical pages, of old versions, and of packed objects that need
/// a base.
pub fn most_spilled([live, kept, pins]: [u32; 3]) -> u32 {
    let rows = [
        (ReferenceKind::Live, live),
        (ReferenceKind::Kept, kept),
        (ReferenceKind::Pins, pins),
    ];
    // While an operation moves a reference there is one more of it.
    let rows = rows.map(|(kind, references)| references / kind.half() + 1);
    rows.iter().sum()
}

/// Parts of counts that have no room in their words, in a table of `S`.
#[derive(Debug)]
pub(super) struct Spilled<S: Tables> {
    /// The row of a part, by handle and kind.
    rows: FxHashMap<(ObjectId, u8), u32>,
    parts: S::Of<SpilledPart>,
    /// Rows that hold nothing any more.
    free: Vec<u32>,
    /// Rows that were ever used.
    used: u32,
}

impl<S: Tables> Spilled<S> {
    /// Nothing is spilled.
    pub fn new(tables: &S) -> Self {
        Spilled {
            rows: FxHashMap::default(),
            parts: tables.empty(TableName::Spilled, 0),
            free: Vec::new(),
            used: 0,
        }
    }

    /// What the table says, of which so many rows were ever used.
    pub fn stored(tables: &S, used: u32) -> Self {
        let mut spilled = Spilled::new(tables);
        spilled.used = used.min(spilled.parts.len() as u32);
        for row in 0..spilled.used {
            let SpilledPart { object, kind, part } = spilled.parts.get(row as usize);
            match part {
                0 => spilled.free.push(row),
                _ => _ = spilled.rows.insert((object, kind as u8), row),
            }
        }
        spilled
    }

    /// Rows that were ever used.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// A count of the object of a handle.
    #[inline(always)]
    pub fn count(&self, handle: ObjectId, counts: Counts, kind: ReferenceKind) -> u32 {
        let held = (counts.0 & kind.mask()) >> kind.place().0;
        if counts.has(SPILLED) {
            return held.saturating_add(self.part(handle, kind));
        }
        held
    }

    #[cold]
    fn part(&self, handle: ObjectId, kind: ReferenceKind) -> u32 {
        let row = self.rows.get(&(handle, kind as u8));
        row.map_or(0, |&row| self.parts.get(row as usize).part)
    }

    /// Counts one more.
    pub fn add(&mut self, handle: ObjectId, counts: &mut Counts, kind: ReferenceKind) {
        if !counts.add(kind) {
            self.spill(handle, kind);
            counts.add_spilled(kind);
        }
    }

    /// A part of a full count has a row; its word is to know that ([`Counts::add_spilled`]).
    pub fn spill(&mut self, handle: ObjectId, kind: ReferenceKind) {
        let row = match self.rows.get(&(handle, kind as u8)) {
            Some(&row) => row as usize,
            None => self.new_row(handle, kind),
        };
        self.parts.change(row, |spilled| {
            spilled.part = spilled.part.saturating_add(kind.half())
        });
    }

    /// A row for a part of a count, of which nothing is in it yet.
    fn new_row(&mut self, object: ObjectId, kind: ReferenceKind) -> usize {
        let row = self.free.pop().unwrap_or(self.used);
        self.used = self.used.max(row + 1);
        self.rows.insert((object, kind as u8), row);
        let spilled = SpilledPart {
            object,
            kind: kind as u32,
            part: 0,
        };
        match row as usize == self.parts.len() {
            true => self.parts.push(spilled),
            false => self.parts.set(row as usize, spilled),
        }
        row as usize
    }

    /// What a word takes back whose count would seem to be 0; whether nothing of its object is spilled any more. None if
    /// nothing of this count is.
    pub fn take_back(&mut self, handle: ObjectId, kind: ReferenceKind) -> Option<bool> {
        let row = *self.rows.get(&(handle, kind as u8))?;
        let left = self.parts.change(row as usize, |spilled| {
            // A row that cannot be read holds nothing.
            spilled.part = spilled.part.saturating_sub(kind.half());
            spilled.part
        });
        if left > 0 {
            return Some(false);
        }
        self.parts.set(row as usize, SpilledPart::default());
        self.rows.remove(&(handle, kind as u8));
        self.free.push(row);
        let mut kinds = ReferenceKind::ALL.iter();
        Some(!kinds.any(|&kind| self.rows.contains_key(&(handle, kind as u8))))
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<((ObjectId, u8), u32)>()
            + self.parts.heap_bytes()
            + self.free.capacity() * size_of::<u32>()
    }

    /// Looks at what the side table says of the words of all handles.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self, word: impl Fn(ObjectId) -> Option<Counts>) -> Result<(), String> {
        for (&(handle, kind), &row) in &self.rows {
            let kind = ReferenceKind::ALL[usize::from(kind)];
            let counts = word(handle).filter(|counts| counts.has(SPILLED) && !counts.is_none(kind));
            let SpilledPart {
                object,
                kind: noted,
                part,
            } = self.parts.get(row as usize);
            let is_its = (object, noted) == (handle, kind as u32);
            if counts.is_none() || !is_its || part == 0 || part % kind.half() != 0 {
                return Err(format!(
                    "the side table has {part} of {kind:?} for object {handle}, which notes {counts:?}"
                ));
            }
        }
        let held = self.rows.len() + self.free.len();
        let is_empty = |&row: &u32| self.parts.get(row as usize) == SpilledPart::default();
        match held == self.used as usize && self.free.iter().all(is_empty) {
            true => Ok(()),
            false => Err(format!(
                "of {} rows of the side table {} hold a part and {} are free",
                self.used,
                self.rows.len(),
                self.free.len()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashlore_flash::InMemory;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_counts_are_those_of_plain_numbers(
            steps in prop::collection::vec((0u32..2, 0usize..4, any::<bool>(), 1u32..700), 1..60),
        ) {
            let mut spilled = Spilled::new(&InMemory);
            let mut words = [Counts::default(); 2];
            let mut model = [[0u32; 4]; 2];
            for (handle, kind, more, times) in steps {
                let (word, count) = (&mut words[handle as usize], &mut model[handle as usize]);
                for _ in 0..times {
                    if more {
                        spilled.add(ObjectId(handle), word, ReferenceKind::ALL[kind]);
                        count[kind] += 1;
                    } else if count[kind] > 0 {
                        let taken = ReferenceKind::ALL[kind];
                        if word.take(taken)
                            && let Some(is_last) = spilled.take_back(ObjectId(handle), taken)
                        {
                            word.take_back(taken, is_last);
                        }
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
            let parts = spilled.rows.len();
            prop_assert_eq!(words.iter().any(|word| word.has(SPILLED)), parts > 0);
        }
    }
}
