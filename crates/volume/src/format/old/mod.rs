//! What versions 3 and 4 have in place of a store of tables. It is read, to bring a volume to the present version, and never
//! written.
//!
//! ```text
//! metadata    root 0
//!             root 1
//!             journal segment 0
//!             journal segment 1
//!             table slots of 4096 bytes
//! ```

use super::areas::PART;
use super::superblock::Identity;
use super::tables::Table;

pub mod root;
pub mod tables;

use tables::{OldTable, SLOTS_PER_DIRECTORY, TABLE_PAGE_BYTES, TableSlot};

/// Offsets and sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldAreas {
    pub root_bytes: u64,
    /// Table slots.
    pub slots: u32,
    /// Table pages of all tables together.
    pub table_pages: u32,
    /// Directory pages.
    pub directories: u32,
    /// Where the metadata begin.
    metadata: u64,
    tables: u64,
}

impl OldAreas {
    /// The areas of a volume of these versions whose metadata begin at this byte.
    pub fn at(id: &Identity, metadata: u64) -> OldAreas {
        let table_pages: u32 = Table::all(id)
            .iter()
            .map(|&table| OldTable(table).pages(id))
            .sum();
        let directories = table_pages.div_ceil(SLOTS_PER_DIRECTORY);
        let root_bytes =
            (root::FIXED_BYTES as u64 + 4 * u64::from(directories)).next_multiple_of(PART);
        OldAreas {
            root_bytes,
            // Every page twice: a checkpoint writes anew what the one before still needs.
            slots: 2 * (table_pages + directories),
            table_pages,
            directories,
            metadata,
            tables: metadata + 2 * root_bytes + 2 * id.journal_bytes,
        }
    }

    /// Where the root of a checkpoint lies.
    pub fn root(&self, checkpoint: u64) -> u64 {
        self.metadata + checkpoint % 2 * self.root_bytes
    }

    /// Where the journal begins.
    pub fn journal(&self) -> u64 {
        self.metadata + 2 * self.root_bytes
    }

    /// Where a table slot lies.
    pub fn slot(&self, slot: TableSlot) -> u64 {
        self.tables + u64::from(slot) * TABLE_PAGE_BYTES as u64
    }

    /// The end of the metadata.
    pub fn end(&self) -> u64 {
        self.tables + u64::from(self.slots) * TABLE_PAGE_BYTES as u64
    }
}
