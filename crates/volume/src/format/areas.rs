//! Where everything lies on the medium, computed from the identity of the volume and the place of its metadata.
//!
//! ```text
//! 0           superblock, copy 0
//! 4096        superblock, copy 1
//! 8192        blocks: pages_per_block pages, each its data, then its record area
//!             nothing, if the metadata were moved by growth
//! metadata    journal segment 0
//!             journal segment 1
//!             the store of the tables: two roots, counts of its slots, the slots
//! ```
//! The record area holds 64 bytes a unit, rounded up to the alignment. All parts begin at multiples
//! of 4096. A volume that grows gets metadata at another place, which do not lie where the present ones do
//! ([`Areas::grown`]); its flash pages stay where they are.

use std::ops::Range;

use flashlore_flash::{Geometry, GeometryError, PageId, Ppn, UNIT_BYTES};
use flashlore_medium::SECTOR;
use flashlore_metadata::{Area, Store};

use super::old::OldAreas;
use super::record::RECORD_BYTES;
use super::root::ROOT_BYTES;
use super::superblock::{FIRST_WITH_LIVE_ROWS, FIRST_WITH_STORE, Identity, SUPERBLOCK_BYTES};
use super::tables::Table;

/// All parts begin at multiples of so many bytes.
pub(super) const PART: u64 = 4096;
/// Where the flash pages begin.
const BLOCKS: u64 = 2 * SUPERBLOCK_BYTES as u64;
/// No metadata begin behind this byte: offsets behind it still fit in a signed number of 64 bits.
const MOST_METADATA: u64 = 1 << 60;

/// Offsets and sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Areas {
    /// Bytes of a flash page with its record area.
    pub page_stride: u64,
    /// Bytes of the data of a flash page.
    pub page_data: usize,
    /// Where the metadata begin: journal, tables.
    pub metadata: u64,
    /// The store of the tables; without slots in a volume of an older version ([`super::old`]).
    pub store: Area,
    /// The end of the metadata, and of the volume.
    pub len: u64,
    journal: u64,
    journal_bytes: u64,
    units_per_page: u32,
}

/// Why no volume can have this identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AreasError {
    /// The flash geometry is impossible.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The alignment is not usable.
    #[error("alignment is {0} bytes, expected a power of two from 512 to 4096")]
    Alignment(u32),
    /// A journal segment is too small for what one checkpoint interval may need.
    #[error(
        "a journal segment has {found} bytes, expected {least} to {most} and a multiple of 4096"
    )]
    Journal {
        /// Bytes found.
        found: u64,
        /// Bytes needed.
        least: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// The metadata lie elsewhere than behind the flash pages.
    #[error("the metadata begin at byte {found}, expected a multiple of 4096 of at least {least}")]
    Metadata {
        /// Where they begin.
        found: u64,
        /// The end of the flash pages.
        least: u64,
    },
    /// No pages are exported.
    #[error("the volume exports {0} pages, expected 1 to 2^32 - 3")]
    Exported(u32),
}

/// The least bytes of a journal segment.
pub const LEAST_JOURNAL: u64 = 64 << 10;
/// The most bytes of a journal segment: 1 TiB.
pub const MOST_JOURNAL: u64 = 1 << 40;

impl Areas {
    /// The areas of a new volume: the metadata follow the flash pages.
    ///
    /// # Errors
    /// An identity no volume can have.
    pub fn new(id: &Identity) -> Result<Areas, AreasError> {
        let geometry = geometry(id)?;
        Areas::at(id, flash_end(id, &geometry))
    }

    /// The areas of what a volume with the areas `before` grows to. The metadata lie behind the flash pages again,
    /// if those before leave them room there, and otherwise behind these.
    ///
    /// # Errors
    /// An identity no volume can have.
    pub fn grown(id: &Identity, before: &Areas) -> Result<Areas, AreasError> {
        let close = Areas::new(id)?;
        if close.len <= before.metadata {
            return Ok(close);
        }
        Areas::at(id, close.metadata.max(before.len))
    }

    /// The areas of a volume whose metadata begin at this byte.
    ///
    /// # Errors
    /// An identity no volume can have, or metadata among the flash pages.
    pub fn at(id: &Identity, metadata: u64) -> Result<Areas, AreasError> {
        let geometry = geometry(id)?;
        if !id.alignment.is_power_of_two() || !(SECTOR as u32..=4096).contains(&id.alignment) {
            return Err(AreasError::Alignment(id.alignment));
        }
        let journal = LEAST_JOURNAL..=MOST_JOURNAL;
        if !journal.contains(&id.journal_bytes) || !id.journal_bytes.is_multiple_of(PART) {
            return Err(AreasError::Journal {
                found: id.journal_bytes,
                least: LEAST_JOURNAL,
                most: MOST_JOURNAL,
            });
        }
        if id.exported == 0 || id.exported > u32::MAX - 2 {
            return Err(AreasError::Exported(id.exported));
        }
        let least = flash_end(id, &geometry);
        if metadata < least || metadata > MOST_METADATA || !metadata.is_multiple_of(PART) {
            return Err(AreasError::Metadata {
                found: metadata,
                least,
            });
        }
        let old = OldAreas::at(id, metadata);
        let is_old = id.version < FIRST_WITH_STORE;
        let journal = if is_old { old.journal() } else { metadata };
        let store = Area {
            at: journal + 2 * id.journal_bytes,
            slots: if is_old { 0 } else { slots(id) },
            tables: Table::all(id).len() as u16,
            user_bytes: ROOT_BYTES as u32,
        };
        Ok(Areas {
            page_stride: page_stride(id, &geometry),
            page_data: page_data(&geometry),
            metadata,
            len: if is_old {
                old.end()
            } else {
                store.at + store.bytes()
            },
            store,
            journal,
            journal_bytes: id.journal_bytes,
            units_per_page: geometry.units_per_page(),
        })
    }

    /// Where a copy of the superblock lies.
    pub fn superblock(&self, copy: u64) -> u64 {
        copy * SUPERBLOCK_BYTES as u64
    }

    /// Where the journal that follows a checkpoint lies.
    pub fn journal(&self, checkpoint: u64) -> u64 {
        self.journal + checkpoint % 2 * self.journal_bytes
    }

    /// Where a flash page lies.
    pub fn page(&self, page: PageId) -> u64 {
        BLOCKS + u64::from(page) * self.page_stride
    }

    /// The flash page of a unit.
    pub fn page_of(&self, ppn: Ppn) -> PageId {
        PageId(ppn.0 / self.units_per_page)
    }

    /// Where the data of a unit lie.
    pub fn unit(&self, ppn: Ppn) -> u64 {
        self.page(self.page_of(ppn)) + self.data_in_page(ppn).start as u64
    }

    /// Of the bytes of its flash page those of the data of a unit.
    pub fn data_in_page(&self, ppn: Ppn) -> Range<usize> {
        let start = (ppn.0 % self.units_per_page) as usize * UNIT_BYTES as usize;
        start..start + UNIT_BYTES as usize
    }

    /// Of the bytes of its flash page those of the record of a unit.
    pub fn record_in_page(&self, ppn: Ppn) -> Range<usize> {
        let start = self.page_data + (ppn.0 % self.units_per_page) as usize * RECORD_BYTES;
        start..start + RECORD_BYTES
    }

    /// Where the record area of a flash page lies.
    pub fn records(&self, page: PageId) -> u64 {
        self.page(page) + self.page_data as u64
    }
}

/// Slots of the store: every page twice, as a checkpoint writes anew what the one before still needs, and some that a change
/// may take before the next one.
pub(crate) fn slots(id: &Identity) -> u32 {
    let tables = Table::all(id).iter();
    let pages: u64 = tables.map(|table| table.shape(id).pages()).sum();
    let spare = match id.version < FIRST_WITH_LIVE_ROWS {
        true => 0,
        false => 2 * u64::from(Store::SPARE_SLOTS),
    };
    (2 * pages + spare).min(u32::MAX.into()) as u32
}

fn page_data(geometry: &Geometry) -> usize {
    geometry.units_per_page() as usize * UNIT_BYTES as usize
}

fn page_stride(id: &Identity, geometry: &Geometry) -> u64 {
    let records =
        (geometry.units_per_page() as usize * RECORD_BYTES).next_multiple_of(id.alignment as usize);
    (page_data(geometry) + records) as u64
}

/// The first byte behind the flash pages.
fn flash_end(id: &Identity, geometry: &Geometry) -> u64 {
    let pages = u64::from(geometry.blocks()) * u64::from(geometry.pages_per_block());
    BLOCKS + (pages * page_stride(id, geometry)).next_multiple_of(PART)
}

/// The flash geometry of a volume.
///
/// # Errors
/// One that cannot exist.
pub fn geometry(id: &Identity) -> Result<Geometry, GeometryError> {
    let page_bytes = id.units_per_page.saturating_mul(UNIT_BYTES);
    Geometry::single_plane(id.blocks, id.pages_per_block, page_bytes)
}
