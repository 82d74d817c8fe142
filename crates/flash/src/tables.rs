//! Tables of rows of a fixed size, wherever they lie: in memory in simulation, and where a volume keeps them as pages
//! on its medium, in a cache of those.
//!
//! The translation layer names rows by their number and never holds a reference to one: a row may be bytes of a page
//! that leaves memory. Where a table is a vector that costs nothing.
//!
//! Invariants: a row is what was last set, or what the table was filled with; rows are numbered from 0, without gaps.

use std::fmt;

use crate::address::{ObjectId, Owner, Ppn};
use crate::hints::{on_large_pages, prefetch};

/// A row of a table: a value of so many bytes.
pub trait Row: Copy + fmt::Debug {
    /// Bytes that it takes on a medium.
    const BYTES: usize;

    /// Lays it out in [`Row::BYTES`] bytes.
    fn encode(self, out: &mut [u8]);

    /// The row that was laid out so. Any bytes are one.
    fn decode(bytes: &[u8]) -> Self;
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

    /// Makes a row another.
    ///
    /// # Panics
    /// If there is no such row.
    fn set(&mut self, at: usize, row: R);

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

/// Where tables are made.
pub trait Tables: Clone {
    /// A table of these rows.
    type Of<R: Row>: Table<R> + fmt::Debug;

    /// A table without rows, made for so many; more take longer.
    fn empty<R: Row>(&self, most: usize) -> Self::Of<R>;

    /// A table of so many rows that are all the same.
    fn filled<R: Row>(&self, row: R, rows: usize) -> Self::Of<R>;
}

/// Tables in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InMemory;

impl Tables for InMemory {
    type Of<R: Row> = Vec<R>;

    fn empty<R: Row>(&self, most: usize) -> Vec<R> {
        on_large_pages(Vec::with_capacity(most))
    }

    fn filled<R: Row>(&self, row: R, rows: usize) -> Vec<R> {
        let mut table = self.empty(rows);
        table.resize(rows, row);
        table
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

numbers!(u32 u64 u128);

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
