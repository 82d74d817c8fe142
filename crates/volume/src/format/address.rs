//! Numbers of what the metadata consist of, a type for each, as those of the flash have theirs.
//!
//! Rows and pages are counted within their table.

use std::ops::Range;

use flashlore_flash::{BlockId, Lpn, ObjectId, PackId, index};

index!(
    /// A row of a table.
    RowId
    /// A page of a table, counted within it.
    PageInTable
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
