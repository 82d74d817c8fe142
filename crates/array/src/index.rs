//! Indices: a newtype for each, so that none is taken for another.
//!
//! All are dense numbers from 0. Where one lies on its medium stands in one place: `icash/format/areas.rs`, for the
//! rivals `rivals/cache.rs`. How many there are of something is no index: counts stay plain numbers.

use std::fmt::{Debug, Display};
use std::ops::Add;

/// What tables and lists of the crate need of an index that they are made for.
pub trait Index: Copy + Ord + Debug + Display + Add<u32, Output = Self> {
    /// The index of this number.
    fn numbered(number: u32) -> Self;

    fn number(self) -> u32;
}

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The row of a table.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// Those of a range, in order.
            pub fn each(
                range: std::ops::Range<$name>,
            ) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                (range.start.0..range.end.0).map($name)
            }

            /// The first so many, in order.
            pub fn first(
                count: u32,
            ) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                $name::each($name(0)..$name(count))
            }
        }

        impl $crate::index::Index for $name {
            #[inline(always)]
            fn numbered(number: u32) -> Self {
                $name(number)
            }

            #[inline(always)]
            fn number(self) -> u32 {
                self.0
            }
        }

        impl std::ops::Add<u32> for $name {
            type Output = $name;

            /// The one so many behind this one.
            #[inline(always)]
            fn add(self, count: u32) -> $name {
                $name(self.0 + count)
            }
        }

        impl std::ops::AddAssign<u32> for $name {
            #[inline(always)]
            fn add_assign(&mut self, count: u32) {
                self.0 += count;
            }
        }

        impl std::ops::Sub for $name {
            type Output = u32;

            /// How many lie from another one on before this one.
            #[inline(always)]
            fn sub(self, first: $name) -> u32 {
                self.0 - first.0
            }
        }

        impl From<$name> for u64 {
            #[inline(always)]
            fn from(index: $name) -> u64 {
                index.0.into()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

pub(crate) use index;

index!(
    /// A block of the array, counted through all virtual machines in the order in which they are named.
    ArrayBlock
);
index!(
    /// A block of one virtual machine, counted in it.
    Address
);
index!(
    /// A place for a data block on the fast medium.
    Slot
);
index!(
    /// A place for a data block on the slow medium, where what deltas are based on stays.
    FrozenPlace
);
index!(
    /// A block of the log.
    LogBlock
);
index!(
    /// A segment of the log.
    LogSegment
);
index!(
    /// A page of the place table.
    TablePage
);
index!(
    /// A place for an image in the journal of ordered write-back.
    JournalPlace
);

impl LogSegment {
    /// The block at a position in it, if segments have so many blocks.
    #[inline]
    pub fn block(self, position: u32, segment_blocks: u32) -> LogBlock {
        LogBlock(self.0 * segment_blocks + position)
    }
}

impl LogBlock {
    /// The segment it lies in, if segments have so many blocks.
    #[inline]
    pub fn segment(self, segment_blocks: u32) -> LogSegment {
        LogSegment(self.0 / segment_blocks)
    }
}
