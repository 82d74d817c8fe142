//! Queues of rows: appended at one end, taken from the other, each row under a number that stays its own until it is
//! taken.
//!
//! Numbers count up and wrap around; a number that is out of range names nothing. In memory rows lie in chunks, so that
//! the memory follows the length; in tables that outlive a run, in a ring ([`Ring`]).

use std::collections::VecDeque;
use std::fmt;

use crate::tables::{Row, Table};

/// Rows of a chunk in memory: a power of two. Few in tests, so that they cross the borders of chunks.
const CHUNK: u32 = if cfg!(test) { 8 } else { 4096 };

/// Most rows at a time: numbers of more could not be told apart.
pub const MOST_QUEUED: u32 = u32::MAX - 2 * CHUNK;

/// The number of a row. Numbers count up and wrap around.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct EntryNumber(pub u32);

impl EntryNumber {
    /// The number so many rows on.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, rows: u32) -> EntryNumber {
        EntryNumber(self.0.wrapping_add(rows))
    }

    /// The number of the row before.
    #[inline(always)]
    #[must_use]
    pub fn before(self) -> EntryNumber {
        EntryNumber(self.0.wrapping_sub(1))
    }

    /// How many rows on from another number it is.
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

/// Where a queue stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueAt {
    /// The number of its first row.
    pub first: EntryNumber,
    /// Rows in it.
    pub len: u32,
    /// Where the first lies in the table of a ring; 0 in memory.
    pub row: u32,
}

/// A queue. Its rows are read and changed by value.
pub trait Queue<R: Row> {
    /// Where it stands.
    fn at(&self) -> QueueAt;

    /// The number of the first row, if there is one.
    #[inline(always)]
    fn first(&self) -> EntryNumber {
        self.at().first
    }

    /// The number the next row will have.
    #[inline(always)]
    fn end(&self) -> EntryNumber {
        self.at().end()
    }

    /// Rows in it.
    #[inline(always)]
    fn len(&self) -> u32 {
        self.at().len
    }

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a row has this number.
    #[inline(always)]
    fn contains(&self, number: EntryNumber) -> bool {
        let at = self.at();
        number.since(at.first) < at.len
    }

    /// The row of a number in range.
    fn get(&self, number: EntryNumber) -> R;

    /// Makes the row of a number in range another.
    fn set(&mut self, number: EntryNumber, row: R);

    /// Appends a row.
    ///
    /// # Panics
    /// In memory, if there are [`MOST_QUEUED`] already.
    fn push(&mut self, row: R);

    /// Takes the first row away: there must be one.
    fn pop(&mut self);

    /// Takes the rows from this number on away, it being in range or the end.
    fn truncate(&mut self, end: EntryNumber);

    /// The row of a number in range, to ask in time for what it names; nothing where looking costs more than that gains.
    fn glance(&self, number: EntryNumber) -> Option<R>;

    /// Bytes of memory that its rows have by themselves.
    fn heap_bytes(&self) -> usize;
}

/// A queue in memory: it never holds more than two chunks beyond what is in use.
#[derive(Debug, Clone)]
pub struct Chunks<R> {
    /// The first holds the row `first`, at its number modulo the size of a chunk.
    chunks: VecDeque<Box<[R]>>,
    /// A chunk that became free, for the next to be needed.
    spare: Option<Box<[R]>>,
    first: EntryNumber,
    end: EntryNumber,
}

impl<R: Row> Chunks<R> {
    /// Nothing; the first row will have this number.
    pub fn starting_at(number: EntryNumber) -> Self {
        Chunks {
            chunks: VecDeque::new(),
            spare: None,
            first: number,
            end: number,
        }
    }

    /// Chunk and position of a number.
    #[inline(always)]
    fn place(&self, number: EntryNumber) -> (usize, usize) {
        let begin = EntryNumber(self.first.0 - self.first.0 % CHUNK);
        let chunk = number.since(begin) / CHUNK;
        (chunk as usize, (number.0 % CHUNK) as usize)
    }

    #[cold]
    #[inline(never)]
    fn add_chunk(&mut self) {
        assert!(
            self.len() <= MOST_QUEUED,
            "a queue has more than {MOST_QUEUED} rows"
        );
        let new = || vec![R::of_byte(0); CHUNK as usize].into_boxed_slice();
        self.chunks.push_back(self.spare.take().unwrap_or_else(new));
    }
}

impl<R: Row> Queue<R> for Chunks<R> {
    #[inline(always)]
    fn at(&self) -> QueueAt {
        QueueAt {
            first: self.first,
            len: self.end.since(self.first),
            row: 0,
        }
    }

    #[inline(always)]
    fn get(&self, number: EntryNumber) -> R {
        debug_assert!(self.contains(number));
        let (chunk, at) = self.place(number);
        self.chunks[chunk][at]
    }

    #[inline(always)]
    fn set(&mut self, number: EntryNumber, row: R) {
        debug_assert!(self.contains(number));
        let (chunk, at) = self.place(number);
        self.chunks[chunk][at] = row;
    }

    #[inline(always)]
    fn push(&mut self, row: R) {
        let (chunk, at) = self.place(self.end);
        if chunk == self.chunks.len() {
            self.add_chunk();
        }
        self.chunks[chunk][at] = row;
        self.end = self.end.plus(1);
    }

    #[inline(always)]
    fn pop(&mut self) {
        debug_assert!(!self.is_empty());
        self.first = self.first.plus(1);
        if self.first.0.is_multiple_of(CHUNK) {
            self.spare = self.chunks.pop_front();
        }
    }

    fn truncate(&mut self, end: EntryNumber) {
        debug_assert!(self.contains(end) || end == self.end);
        self.end = end;
        while self.chunks.len() > self.place(end).0 + 1 {
            self.spare = self.chunks.pop_back();
        }
    }

    #[inline(always)]
    fn glance(&self, number: EntryNumber) -> Option<R> {
        self.contains(number).then(|| self.get(number))
    }

    fn heap_bytes(&self) -> usize {
        let chunks = self.chunks.len() + usize::from(self.spare.is_some());
        chunks * CHUNK as usize * size_of::<R>() + self.chunks.capacity() * size_of::<Box<[R]>>()
    }
}

/// A queue in a table: after its last row comes the first again.
///
/// Invariant: no two rows of the queue lie on one of the table. A row for which there is none left is told to the table
/// ([`Table::push`]), and is not appended.
#[derive(Debug)]
pub struct Ring<T> {
    table: T,
    at: QueueAt,
}

impl<T> Ring<T> {
    /// The queue that stands so in a table.
    pub fn new(table: T, at: QueueAt) -> Self {
        Ring { table, at }
    }
}

impl QueueAt {
    /// The number the next row will have.
    #[inline(always)]
    pub fn end(&self) -> EntryNumber {
        self.first.plus(self.len)
    }

    /// The row of a number in range, in a table of so many.
    #[inline(always)]
    pub fn row_of(&self, number: EntryNumber, rows: u32) -> u32 {
        let at = u64::from(self.row) + u64::from(number.since(self.first));
        match at < u64::from(rows) {
            true => at as u32,
            false => (at - u64::from(rows)) as u32,
        }
    }

    /// The first row is taken away, of a queue in a table of so many.
    pub fn pop(&mut self, rows: u32) {
        self.row = self.row_of(self.first.plus(1), rows);
        self.first = self.first.plus(1);
        self.len = self.len.saturating_sub(1);
    }
}

impl<R: Row, T: Table<R>> Queue<R> for Ring<T> {
    #[inline(always)]
    fn at(&self) -> QueueAt {
        self.at
    }

    fn get(&self, number: EntryNumber) -> R {
        debug_assert!(Queue::<R>::contains(self, number));
        let row = self.at.row_of(number, self.table.len() as u32);
        self.table.get(row as usize)
    }

    fn set(&mut self, number: EntryNumber, row: R) {
        debug_assert!(Queue::<R>::contains(self, number));
        let at = self.at.row_of(number, self.table.len() as u32);
        self.table.set(at as usize, row);
    }

    fn push(&mut self, row: R) {
        let rows = self.table.len() as u32;
        if self.at.len >= rows {
            self.table.push(row);
            return;
        }
        let at = self.at.row_of(self.at.end(), rows);
        let unneeded = (rows - self.at.len).min(rows - at);
        self.table.set_first(at as usize, row, unneeded as usize);
        self.at.len += 1;
    }

    fn pop(&mut self) {
        self.at.pop(self.table.len() as u32);
    }

    fn truncate(&mut self, end: EntryNumber) {
        debug_assert!(Queue::<R>::contains(self, end) || end == Queue::<R>::end(self));
        self.at.len = end.since(self.at.first);
    }

    fn glance(&self, _: EntryNumber) -> Option<R> {
        None
    }

    fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
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
        Set(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<QueueStep>> {
        let step = prop_oneof![
            4 => (0..20u32).prop_map(QueueStep::Push),
            3 => (0..20u32).prop_map(QueueStep::Pop),
            1 => (0..20u32).prop_map(QueueStep::Truncate),
            1 => any::<u32>().prop_map(QueueStep::Set),
        ];
        prop::collection::vec(step, 1..60)
    }

    /// Does the same with a queue that has room for so many rows and with a list.
    fn as_a_list<Q: Queue<u64>>(
        mut queue: Q,
        room: usize,
        steps: &[QueueStep],
        check: impl Fn(&Q, usize) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        let mut model: VecDeque<(EntryNumber, u64)> = VecDeque::new();
        let mut row = 0;
        for step in steps {
            match *step {
                QueueStep::Push(times) => {
                    for _ in 0..(times as usize).min(room - model.len()) {
                        model.push_back((queue.end(), row));
                        queue.push(row);
                        row += 1;
                    }
                }
                QueueStep::Pop(times) => {
                    for _ in 0..times.min(queue.len()) {
                        queue.pop();
                        model.pop_front();
                    }
                }
                QueueStep::Truncate(fewer) => {
                    let fewer = fewer.min(queue.len());
                    queue.truncate(EntryNumber(queue.end().0.wrapping_sub(fewer)));
                    model.truncate(model.len() - fewer as usize);
                }
                QueueStep::Set(which) if !model.is_empty() => {
                    let which = which as usize % model.len();
                    queue.set(model[which].0, row);
                    model[which].1 = row;
                    row += 1;
                }
                QueueStep::Set(_) => {}
            }
            prop_assert_eq!(queue.len() as usize, model.len());
            for &(number, row) in &model {
                prop_assert!(queue.contains(number));
                prop_assert_eq!(queue.get(number), row);
            }
            prop_assert!(!queue.contains(queue.end()));
            prop_assert!(!queue.contains(queue.first().before()));
            check(&queue, model.len())?;
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn it_is_a_queue_with_numbers(steps in steps(), start in 0..40u32) {
            // The numbers run over in the middle of the test.
            let first = EntryNumber(start.wrapping_sub(20));
            as_a_list(Chunks::starting_at(first), usize::MAX, &steps, |queue, rows| {
                let chunks = queue.chunks.len() + usize::from(queue.spare.is_some());
                prop_assert!(chunks <= rows / CHUNK as usize + 3, "{chunks} chunks");
                Ok(())
            })?;
        }

        #[test]
        fn a_ring_is_the_same_queue(steps in steps(), start in 0..40u32, row in 0..30u32) {
            let at = QueueAt { first: EntryNumber(start.wrapping_sub(20)), row, len: 0 };
            as_a_list(Ring::new(vec![0u64; 30], at), 30, &steps, |_, _| Ok(()))?;
        }
    }

    /// A table that counts what it has no room for.
    #[derive(Default)]
    struct Refusing {
        rows: Vec<u64>,
        refused: Vec<u64>,
    }

    impl Table<u64> for Refusing {
        fn len(&self) -> usize {
            self.rows.len()
        }
        fn get(&self, at: usize) -> u64 {
            self.rows[at]
        }
        fn set(&mut self, at: usize, row: u64) {
            self.rows[at] = row;
        }
        fn change<A>(&mut self, at: usize, change: impl FnOnce(&mut u64) -> A) -> A {
            change(&mut self.rows[at])
        }
        fn push(&mut self, row: u64) {
            self.refused.push(row);
        }
        fn prefetch(&self, _: usize) {}
        fn heap_bytes(&self) -> usize {
            0
        }
    }

    #[test]
    fn a_full_ring_overwrites_nothing() {
        let table = Refusing {
            rows: vec![0; 3],
            ..Refusing::default()
        };
        let mut ring = Ring::new(table, QueueAt::default());
        (1..=5).for_each(|row| ring.push(row));
        assert_eq!(ring.table.rows, [1, 2, 3]);
        assert_eq!(ring.table.refused, [4, 5]);
        assert_eq!(Queue::<u64>::len(&ring), 3);
    }
}
