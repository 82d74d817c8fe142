//! Entries in a row, appended at one end and taken from the other, each under a number that stays
//! its own until it is taken.
//!
//! Numbers count up and wrap around; a number that is out of range names nothing. The entries lie in
//! chunks, so the memory follows the length: it never holds more than two chunks beyond what is in use.

use std::collections::VecDeque;
use std::fmt;

use flashlore_flash::{Lpn, ObjectId};

/// Entries of a chunk: a power of two. Few in tests, so that they cross the borders of chunks.
const CHUNK: u32 = if cfg!(test) { 8 } else { 4096 };

/// Most entries at a time: numbers of more could not be told apart.
pub(super) const MAX_ENTRIES: u32 = u32::MAX - 2 * CHUNK;

/// The number of an entry. Numbers count up and wrap around.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EntryNumber(pub(super) u32);

impl EntryNumber {
    /// The number so many entries on.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, entries: u32) -> EntryNumber {
        EntryNumber(self.0.wrapping_add(entries))
    }

    /// The number of the entry before.
    #[inline(always)]
    #[must_use]
    pub(super) fn before(self) -> EntryNumber {
        EntryNumber(self.0.wrapping_sub(1))
    }

    /// How many entries on from another number it is.
    #[inline(always)]
    #[must_use]
    pub fn since(self, first: EntryNumber) -> u32 {
        self.0.wrapping_sub(first.0)
    }
}

impl fmt::Display for EntryNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One superseded reference, 20 bytes.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, packed(4))]
pub(super) struct VersionEntry {
    /// When the page stopped to refer to the object.
    pub stamp: u64,
    /// The page.
    pub lpn: Lpn,
    /// What it referred to.
    pub object: ObjectId,
    /// The number of the entry of the page before this one, or of anything else.
    pub older: EntryNumber,
}

/// The entries.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    /// The first holds the entry `first`, at its number modulo the size of a chunk.
    chunks: VecDeque<Box<[VersionEntry]>>,
    /// A chunk that became free, for the next to be needed.
    spare: Option<Box<[VersionEntry]>>,
    first: EntryNumber,
    end: EntryNumber,
}

impl Log {
    /// Nothing; the first entry will have this number.
    #[cfg(test)]
    pub fn starting_at(number: EntryNumber) -> Self {
        Log {
            first: number,
            end: number,
            ..Log::default()
        }
    }

    /// The number of the oldest entry.
    pub fn first(&self) -> EntryNumber {
        self.first
    }

    /// The number the next entry will have.
    pub fn end(&self) -> EntryNumber {
        self.end
    }

    /// Entries held.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.end.since(self.first)
    }

    /// Whether an entry has this number.
    #[inline(always)]
    pub fn contains(&self, number: EntryNumber) -> bool {
        number.since(self.first) < self.len()
    }

    /// Chunk and position of a number.
    #[inline(always)]
    fn place(&self, number: EntryNumber) -> (usize, usize) {
        let begin = EntryNumber(self.first.0 - self.first.0 % CHUNK);
        let chunk = number.since(begin) / CHUNK;
        (chunk as usize, (number.0 % CHUNK) as usize)
    }

    /// The entry of a number in range.
    #[inline(always)]
    pub fn get(&self, number: EntryNumber) -> &VersionEntry {
        debug_assert!(self.contains(number));
        let (chunk, at) = self.place(number);
        &self.chunks[chunk][at]
    }

    /// The entry of a number in range.
    #[inline(always)]
    pub fn get_mut(&mut self, number: EntryNumber) -> &mut VersionEntry {
        debug_assert!(self.contains(number));
        let (chunk, at) = self.place(number);
        &mut self.chunks[chunk][at]
    }

    /// Appends an entry.
    ///
    /// # Panics
    /// If there are 2^32 entries, less two chunks, already: 80 GiB.
    #[inline(always)]
    pub fn push(&mut self, entry: VersionEntry) {
        let (chunk, at) = self.place(self.end);
        if chunk == self.chunks.len() {
            self.add_chunk();
        }
        self.chunks[chunk][at] = entry;
        self.end = self.end.plus(1);
    }

    #[cold]
    #[inline(never)]
    fn add_chunk(&mut self) {
        assert!(
            self.len() <= MAX_ENTRIES,
            "the history has more than {MAX_ENTRIES} entries"
        );
        let new = || vec![VersionEntry::default(); CHUNK as usize].into_boxed_slice();
        self.chunks.push_back(self.spare.take().unwrap_or_else(new));
    }

    /// Takes the oldest entry away.
    #[inline(always)]
    pub fn pop(&mut self) {
        debug_assert!(self.len() > 0);
        self.first = self.first.plus(1);
        if self.first.0.is_multiple_of(CHUNK) {
            self.spare = self.chunks.pop_front();
        }
    }

    /// Takes the entries from this number on away, it being in range or the end.
    pub fn truncate(&mut self, end: EntryNumber) {
        debug_assert!(self.contains(end) || end == self.end);
        self.end = end;
        while self.chunks.len() > self.place(end).0 + 1 {
            self.spare = self.chunks.pop_back();
        }
    }

    /// Bytes held.
    pub fn heap_bytes(&self) -> usize {
        let chunks = self.chunks.len() + usize::from(self.spare.is_some());
        chunks * CHUNK as usize * size_of::<VersionEntry>()
            + self.chunks.capacity() * size_of::<Box<[VersionEntry]>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum QueueStep {
        Push(u32),
        Pop(u32),
        Truncate(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<QueueStep>> {
        let step = prop_oneof![
            4 => (0..20u32).prop_map(QueueStep::Push),
            3 => (0..20u32).prop_map(QueueStep::Pop),
            1 => (0..20u32).prop_map(QueueStep::Truncate),
        ];
        prop::collection::vec(step, 1..60)
    }

    fn entry(stamp: u64) -> VersionEntry {
        VersionEntry {
            stamp,
            ..VersionEntry::default()
        }
    }

    proptest! {
            #[test]
            fn it_is_a_queue_with_numbers(steps in steps(), start in 0..40u32) {
                // The numbers run over in the middle of the test.
                let mut log = Log::starting_at(EntryNumber(start.wrapping_sub(20)));
                let mut model: VecDeque<(EntryNumber, u64)> = VecDeque::new();
                let mut stamp = 0;
                for step in steps {
                    match step {
                        QueueStep::Push(times) => for _ in 0..times {
                            model.push_back((log.end(), stamp));
                            log.push(entry(stamp));
                            stamp += 1;
                        },
                        QueueStep::Pop(times) => for _ in 0..times.min(log.len()) {
                            log.pop();
                            model.pop_front();
                        },
                        QueueStep::Truncate(fewer) => {
                            let fewer = fewer.min(log.len());
                            log.truncate(EntryNumber(log.end().0.wrapping_sub(fewer)));
                            model.truncate(model.len() - fewer as usize);
                        }
                    }
                    prop_assert_eq!(log.len() as usize, model.len());
                    for &(number, stamp) in &model {
                        prop_assert!(log.contains(number));
                        prop_assert_eq!({ log.get(number).stamp }, stamp);
                    }
                    prop_assert!(!log.contains(log.end()));
                    prop_assert!(!log.contains(log.first().before()));
    let chunks = log.chunks.len() + usize::from(log.spare.is_some());
                    prop_assert!(chunks <= model.len() / CHUNK as usize + 3, "{chunks} chunks");
                }
            }
        }

    #[test]
    fn an_entry_takes_twenty_bytes() {
        assert_eq!(size_of::<VersionEntry>(), 20);
    }
}
