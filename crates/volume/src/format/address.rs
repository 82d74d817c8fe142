//! Numbers of what the metadata consist of, a type for each, as those of the flash have theirs.
//!
//! Rows and pages are counted within their table. Beside that all table pages are numbered through, those of the first
//! table first and the directories behind the last; each lies in a slot of the table area.

use std::ops::Range;

use flashlore_flash::{BlockId, Lpn, ObjectId, PackId, index};

index!(
    /// A row of a table.
    RowId
    /// A page of a table, counted within it.
    PageInTable
    /// A table page or a directory, numbered through.
    TablePage
    /// A place of the table area, which takes one table page.
    TableSlot
);

impl RowId {
    /// The rows of a range, in order.
    pub fn each(rows: Range<RowId>) -> impl Iterator<Item = RowId> {
        (rows.start.0..rows.end.0).map(RowId)
    }
}

impl PageInTable {
    /// The page behind it.
    #[must_use]
    pub fn following(self) -> PageInTable {
        PageInTable(self.0 + 1)
    }
}

impl TableSlot {
    /// That of a page that was never written: all its rows are empty.
    pub const NONE: TableSlot = TableSlot(u32::MAX);

    /// Whether this names a slot.
    pub fn is_some(self) -> bool {
        self != TableSlot::NONE
    }
}

/// Tables have a row for each of these.
macro_rules! rows_of {
    ($($index:ident)+) => {$(
        impl From<$index> for RowId {
            fn from(index: $index) -> RowId {
                RowId(index.0)
            }
        }
    )+};
}

rows_of!(Lpn ObjectId PackId BlockId);
