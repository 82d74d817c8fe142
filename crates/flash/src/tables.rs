//! Tables of rows of a fixed size, wherever they lie: in memory in simulation, and where a volume keeps them as pages
//! on its medium, in a cache of those.
//!
//! The translation layer names rows by their number and never holds a reference to one: a row may be bytes of a page
//! that leaves memory. Where a table is a vector that costs nothing.
//!
//! Invariants: a row is what was last set, or what the table was filled with; rows are numbered from 0, without gaps.

use std::fmt;
use std::ops::Range;

use crate::address::{Lpn, ObjectId, Owner, PackSlot, Ppn};
use crate::hints::{on_large_pages, prefetch};
use crate::queue::{Chunks, Queue, QueueAt};

/// Bytes of the longest row.
pub const MOST_ROW_BYTES: usize = 64;

/// A row of a table: a value of so many bytes.
pub trait Row: Copy + fmt::Debug + 'static {
    /// Bytes that it takes on a medium.
    const BYTES: usize;

    /// Lays it out in [`Row::BYTES`] bytes.
    fn encode(self, out: &mut [u8]);

    /// The row that was laid out so. Any bytes are one.
    fn decode(bytes: &[u8]) -> Self;

    /// The row all bytes of which are this.
    fn of_byte(byte: u8) -> Self {
        Self::decode(&[byte; MOST_ROW_BYTES][..Self::BYTES])
    }
}

/// A table. Its rows are read and changed by value.
pub trait Table<R: Row> {
    /// Rows there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A row.
    ///
    /// # Panics
    /// If there is no such row.
    fn get(&self, at: usize) -> R;

    /// Rows one after the other, each with its number.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    fn each(&self, rows: Range<usize>, mut each: impl FnMut(usize, R)) {
        rows.for_each(|at| each(at, self.get(at)));
    }

    /// Makes a row another.
    ///
    /// # Panics
    /// If there is no such row.
    fn set(&mut self, at: usize, row: R);

    /// The same, where the row and those behind it, so many of them, hold nothing that is needed: what is read in pages
    /// need not be read then.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    fn set_first(&mut self, at: usize, row: R, _unneeded: usize) {
        self.set(at, row);
    }

    /// Changes a row; answers what the change answers.
    ///
    /// # Panics
    /// If there is no such row.
    fn change<A>(&mut self, at: usize, change: impl FnOnce(&mut R) -> A) -> A;

    /// A new row behind the others.
    fn push(&mut self, row: R);

    /// A row will be wanted soon. One that is not there is ignored.
    fn prefetch(&self, at: usize);

    /// Bytes of memory that its rows have by themselves.
    fn heap_bytes(&self) -> usize;
}

/// What a table of the translation layer holds. Where tables outlive a run this says which of them it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableName {
    /// Logical page to unit, or to object.
    Map,
    /// Objects by handle.
    Objects,
    /// Which handles are free.
    FreeHandles,
    /// Whose each unit is.
    Owners,
    /// What has no room in the counts of objects.
    Spilled,
    /// Packed pages by number.
    Packs,
    /// Entries of the history in its window.
    Versions,
    /// By logical page the number of its newest entry there.
    Heads,
    /// Entries that pinned instants keep behind the window.
    Kept,
    /// By logical page the number of its newest entry there.
    KeptHeads,
}

impl TableName {
    /// How many there are.
    pub const COUNT: usize = 10;
}

/// What a device keeps of each object beside what the translation layer does.
pub trait Note: Row + PartialEq + Default {
    /// Whether it keeps anything.
    const ON: bool = true;

    /// How many rows of a table may be remembered in memory, where they can be found again.
    const MOST_REMEMBERED: usize = usize::MAX;

    /// The value of the object lies in this slot of a packed page, in so many bytes.
    fn note_slot(&mut self, slot: PackSlot, length: u16);

    /// That slot, and its bytes; nothing where nothing is kept.
    fn slot(&self) -> Option<(PackSlot, u16)> {
        None
    }
}

/// Nothing is kept.
impl Note for () {
    const ON: bool = false;

    fn note_slot(&mut self, _slot: PackSlot, _length: u16) {}
}

impl Row for () {
    const BYTES: usize = 0;

    fn encode(self, _out: &mut [u8]) {}

    fn decode(_bytes: &[u8]) -> Self {}
}

/// Which rows of a table nobody uses. Each of them holds a number for it, the link.
pub trait FreeRows: fmt::Debug {
    /// Takes a row, near to those of this logical page if there is a choice; nothing if all are in use, or none was
    /// ever given back. `link` answers what a row holds.
    fn take(&mut self, near: Lpn, link: impl Fn(usize) -> u32) -> Option<usize>;

    /// Nobody uses a row any more; answers the link that it is to hold.
    fn give_back(&mut self, row: usize) -> u32;

    /// The free rows of a table.
    ///
    /// # Errors
    /// A sentence if links run in a circle.
    fn all(&self, rows: usize, link: impl Fn(usize) -> u32) -> Result<Vec<usize>, String>;

    /// These rows, which are free, are in use from now on; they are in ascending order.
    fn claim(&mut self, rows: &[usize], links: &mut impl Links);

    /// The free rows are these, in ascending order, of a table of so many; what differs from what there is gets its link.
    fn restore(&mut self, free: &[usize], rows: usize, links: &mut impl Links);
}

/// The links of free rows.
pub trait Links {
    /// That of a row.
    fn get(&self, row: usize) -> u32;
    /// A row gets another.
    fn set(&mut self, row: usize, link: u32);
}

/// Where tables are made.
pub trait Tables: Clone {
    /// A table of these rows.
    type Of<R: Row>: Table<R> + fmt::Debug;
    /// A queue of these rows.
    type Queue<R: Row>: Queue<R> + fmt::Debug;
    /// What is kept beside each object.
    type Note: Note;
    /// Which rows of a table are free.
    type Free: FreeRows;

    /// A table whose rows are taken one by one, made for so many; more take longer. Where tables outlive a run it has all
    /// of them from the start, and what is free of them says [`Tables::free_handles`].
    fn empty<R: Row>(&self, name: TableName, most: usize) -> Self::Of<R>;

    /// A table of so many rows, which hold this until they are set. Where tables outlive a run that may have been before.
    fn filled<R: Row>(&self, name: TableName, row: R, rows: usize) -> Self::Of<R>;

    /// A queue that stands so: where tables outlive a run with the rows that are there, otherwise empty.
    fn queue<R: Row>(&self, name: TableName, at: QueueAt) -> Self::Queue<R>;

    /// Which handles of objects are free, on a device of so many logical pages.
    fn free_handles(&self, exported: u32) -> Self::Free;
}

/// Free rows of a table in memory: the one that was given back last is taken first.
#[derive(Debug, Clone, Copy)]
pub struct LastFirst {
    first: u32,
}

/// The link of the last free row.
const NO_ROW: u32 = u32::MAX;

impl FreeRows for LastFirst {
    #[inline(always)]
    fn take(&mut self, _near: Lpn, link: impl Fn(usize) -> u32) -> Option<usize> {
        if self.first == NO_ROW {
            return None;
        }
        let row = self.first as usize;
        self.first = link(row);
        Some(row)
    }

    #[inline(always)]
    fn give_back(&mut self, row: usize) -> u32 {
        std::mem::replace(&mut self.first, row as u32)
    }

    fn all(&self, rows: usize, link: impl Fn(usize) -> u32) -> Result<Vec<usize>, String> {
        let mut free = Vec::new();
        let mut at = self.first;
        while at != NO_ROW {
            if free.len() == rows {
                return Err(format!("the list of free rows runs in a circle at {at}"));
            }
            free.push(at as usize);
            at = link(at as usize);
        }
        Ok(free)
    }

    fn claim(&mut self, rows: &[usize], links: &mut impl Links) {
        let mut before = None;
        let mut at = self.first;
        while at != NO_ROW {
            let next = links.get(at as usize);
            match (rows.binary_search(&(at as usize)), before) {
                (Err(_), _) => before = Some(at),
                (Ok(_), None) => self.first = next,
                (Ok(_), Some(before)) => links.set(before as usize, next),
            }
            at = next;
        }
    }

    fn restore(&mut self, free: &[usize], _rows: usize, links: &mut impl Links) {
        self.first = NO_ROW;
        for &row in free.iter().rev() {
            links.set(row, self.give_back(row));
        }
    }
}

/// Tables in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InMemory;

impl Tables for InMemory {
    type Of<R: Row> = Vec<R>;
    type Queue<R: Row> = Chunks<R>;
    type Note = ();
    type Free = LastFirst;

    fn empty<R: Row>(&self, _name: TableName, most: usize) -> Vec<R> {
        on_large_pages(Vec::with_capacity(most))
    }

    fn filled<R: Row>(&self, name: TableName, row: R, rows: usize) -> Vec<R> {
        let mut table = self.empty(name, rows);
        table.resize(rows, row);
        table
    }

    fn queue<R: Row>(&self, _name: TableName, at: QueueAt) -> Chunks<R> {
        Chunks::starting_at(at.first)
    }

    fn free_handles(&self, _exported: u32) -> LastFirst {
        LastFirst { first: NO_ROW }
    }
}

impl<R: Row> Table<R> for Vec<R> {
    #[inline(always)]
    fn len(&self) -> usize {
        Vec::len(self)
    }

    #[inline(always)]
    fn get(&self, at: usize) -> R {
        self[at]
    }

    #[inline(always)]
    fn set(&mut self, at: usize, row: R) {
        self[at] = row;
    }

    #[inline(always)]
    fn change<A>(&mut self, at: usize, change: impl FnOnce(&mut R) -> A) -> A {
        change(&mut self[at])
    }

    #[inline(always)]
    fn push(&mut self, row: R) {
        Vec::push(self, row);
    }

    #[inline(always)]
    fn prefetch(&self, at: usize) {
        prefetch(self, at);
    }

    fn heap_bytes(&self) -> usize {
        self.len() * size_of::<R>()
    }
}

/// Numbers are rows, their lowest byte first.
macro_rules! numbers {
    ($($number:ty)+) => {$(
        impl Row for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline(always)]
            fn encode(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn decode(bytes: &[u8]) -> Self {
                let mut number = [0; size_of::<$number>()];
                number.copy_from_slice(bytes);
                <$number>::from_le_bytes(number)
            }
        }
    )+};
}

numbers!(u8 u32 u64 u128);

/// Rows that are one number of this type in a struct.
#[macro_export]
macro_rules! number_rows {
    ($number:ty: $($name:ident)+) => {$(
        impl $crate::Row for $name {
            const BYTES: usize = <$number as $crate::Row>::BYTES;

            #[inline(always)]
            fn encode(self, out: &mut [u8]) {
                $crate::Row::encode(self.0, out);
            }

            #[inline(always)]
            fn decode(bytes: &[u8]) -> Self {
                $name($crate::Row::decode(bytes))
            }
        }
    )+};
}

number_rows!(u32: ObjectId Owner Ppn);
