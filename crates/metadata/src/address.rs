//! What the pages of tables are called: rows of a table, pages of its tree, slots of the medium.

use std::fmt;
use std::ops::Range;

use flashlore_flash::index;

use crate::page::{FANOUT, PAYLOAD};

index!(
    /// A table of a store.
    TableId
    /// A row of a table.
    Row
    /// A place on the medium that takes one page.
    Slot
);

/// What a row holds that was never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    /// Bytes of 0.
    Zeros,
    /// Bytes of 255.
    Ones,
}

impl Empty {
    /// The byte.
    pub fn byte(self) -> u8 {
        match self {
            Empty::Zeros => 0,
            Empty::Ones => 0xff,
        }
    }
}

/// How many rows a table has, and of what size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows there may be.
    pub rows: u32,
    /// Bytes of a row: 1 to a page without its head.
    pub row_bytes: u16,
    /// What a row holds that was never written.
    pub empty: Empty,
}

impl Shape {
    /// Rows of a leaf. A row never straddles pages.
    #[inline(always)]
    pub fn rows_per_page(&self) -> u32 {
        PAYLOAD as u32 / u32::from(self.row_bytes)
    }

    /// Leaves there may be.
    pub fn leaves(&self) -> u32 {
        self.rows.div_ceil(self.rows_per_page())
    }

    /// The level of the top page: 0 where one leaf has all rows.
    pub fn top(&self) -> u8 {
        let (mut level, mut covers) = (0, 1u64);
        while covers < u64::from(self.leaves()) {
            covers *= u64::from(FANOUT);
            level += 1;
        }
        level
    }

    /// Pages of all levels there may be.
    pub fn pages(&self) -> u64 {
        let mut pages = u64::from(self.leaves());
        let mut all = pages;
        while pages > 1 {
            pages = pages.div_ceil(u64::from(FANOUT));
            all += pages;
        }
        all
    }
}

/// A page of the tree of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// The table.
    pub table: TableId,
    /// 0 for a leaf.
    pub level: u8,
    /// Counted in its level.
    pub index: u32,
}

impl Node {
    /// The leaf of a row, and where in its rows that lies.
    #[inline(always)]
    pub(crate) fn of_row(table: TableId, row: Row, shape: &Shape) -> (Node, usize) {
        let per_page = shape.rows_per_page();
        let leaf = Node {
            table,
            level: 0,
            index: row.0 / per_page,
        };
        (
            leaf,
            (row.0 % per_page) as usize * usize::from(shape.row_bytes),
        )
    }

    /// The rows that it has, or that are below it, as if the table had as many as its pages could have.
    pub fn rows(self, shape: &Shape) -> Range<u64> {
        let pages = u64::from(FANOUT).saturating_pow(self.level.into());
        let rows = pages.saturating_mul(shape.rows_per_page().into());
        let first = rows.saturating_mul(self.index.into());
        first..first.saturating_add(rows)
    }

    /// One number for it: there are at most 2^16 tables.
    #[inline(always)]
    pub(crate) fn key(self) -> u64 {
        u64::from(self.index) | u64::from(self.level) << 32 | u64::from(self.table) << 48
    }

    /// The page that has the pointer to this one, and which of its pointers that is.
    pub(crate) fn parent(self) -> (Node, usize) {
        let parent = Node {
            level: self.level + 1,
            index: self.index / FANOUT,
            ..self
        };
        (parent, (self.index % FANOUT) as usize)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Node {
            table,
            level,
            index,
        } = self;
        write!(f, "page {index} of level {level} of table {table}")
    }
}

/// Where a page lies, and what it must hold to be the one that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub slot: Slot,
    /// The low half of the page's checksum: an older page in the slot has another one.
    pub check: u32,
}

impl Pointer {
    /// To a page that was never written.
    pub const NONE: Pointer = Pointer {
        slot: Slot(u32::MAX),
        check: u32::MAX,
    };

    pub fn is_some(self) -> bool {
        self.slot != Pointer::NONE.slot
    }

    pub fn read(bytes: &[u8; 8]) -> Pointer {
        let word = u64::from_le_bytes(*bytes);
        Pointer {
            slot: Slot(word as u32),
            check: (word >> 32) as u32,
        }
    }

    pub fn bytes(self) -> [u8; 8] {
        (u64::from(self.slot) | u64::from(self.check) << 32).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_as_high_as_its_rows_ask() {
        let shape = |rows, row_bytes| Shape {
            rows,
            row_bytes,
            empty: Empty::Zeros,
        };
        assert_eq!(shape(1, 4064).top(), 0);
        assert_eq!(shape(254, 16).top(), 0);
        assert_eq!(shape(255, 16).top(), 1);
        assert_eq!(shape(508, 4064).top(), 1);
        assert_eq!(shape(509, 4064).top(), 2);
        assert_eq!(shape(509, 4064).pages(), 509 + 2 + 1);
        // A tebibyte of pages at 32 bytes a row.
        let large = shape(1 << 28, 32);
        assert_eq!((large.rows_per_page(), large.top()), (127, 3));
    }

    #[test]
    fn a_pointer_is_its_bytes() {
        let pointer = Pointer {
            slot: Slot(7),
            check: 0x0102_0304,
        };
        assert_eq!(pointer.bytes(), [7, 0, 0, 0, 4, 3, 2, 1]);
        assert_eq!(Pointer::read(&pointer.bytes()), pointer);
        assert_eq!(Pointer::NONE.bytes(), [0xff; 8]);
    }
}
