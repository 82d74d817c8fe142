//! Reading the pages programmed since the checkpoint.
//!
//! Which blocks these are the checkpoint and the journal say: blocks that were open, from the page
//! where they stood, and blocks opened since. A page counts only if its records name the block's
//! present opening.

use std::collections::BTreeMap;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::{BlockId, Geometry, PageId, Ppn};
use flashlore_ftl::alloc::Stream;
use flashlore_medium::{AlignedBuf, Medium};

use crate::format::{Areas, Entry, Identity, Kind, Record, Slot};
use crate::load::{BlockRow, BlockState};
use crate::unit::{Units, read_slot};

/// How well a unit was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quality {
    /// The record holds, the data do not.
    Broken,
    /// The record says that the data were lost.
    Lost,
    /// Both hold.
    Good,
}

/// A unit with a record that holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundUnit {
    pub ppn: Ppn,
    pub record: Record,
    pub quality: Quality,
    /// The opening of its block.
    pub opening: u64,
}

impl FoundUnit {
    /// Which of two copies of a birth counts: the better one, then the one that was made later. So
    /// blocks that had been collected stay empty.
    pub fn rank(&self) -> (Quality, u64, Ppn) {
        (self.quality, self.opening, self.ppn)
    }
}

/// A block that was programmed since the checkpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActiveBlock {
    pub stream: Stream,
    pub opening: u64,
    pub erases: u32,
    /// Pages that are known from the checkpoint.
    pub known: u32,
    /// Pages taken, those known and those found.
    pub taken: u32,
}

/// The blocks that have been programmed since the checkpoint.
pub(crate) fn active_blocks(
    rows: &[BlockRow],
    entries: impl Iterator<Item = Entry>,
) -> BTreeMap<u32, ActiveBlock> {
    let mut active = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        if let BlockState::Open(stream) = row.state {
            let block = ActiveBlock {
                stream,
                opening: row.opening,
                erases: row.erases,
                known: row.taken,
                taken: row.taken,
            };
            active.insert(number as u32, block);
        }
    }
    for entry in entries {
        if let Entry::Open {
            block,
            stream,
            opening,
            erases,
        } = entry
        {
            let opened = ActiveBlock {
                stream,
                opening,
                erases,
                known: 0,
                taken: 0,
            };
            active.insert(block, opened);
        }
    }
    active
}

/// Reads the pages of the active blocks that the checkpoint does not know, and notes how far each
/// block is taken. A unit that cannot be read counts as broken, a record as missing.
pub(crate) fn scan<M: Medium>(
    medium: &M,
    id: &Identity,
    areas: &Areas,
    geometry: &Geometry,
    active: &mut BTreeMap<u32, ActiveBlock>,
) -> Vec<FoundUnit> {
    let units = Units { medium, areas, id };
    let mut found = Vec::new();
    let mut bytes = AlignedBuf::zeroed(areas.page_stride as usize);
    for (&number, block) in active {
        let first = geometry.first_page(BlockId(number)).0;
        for index in block.known..geometry.pages_per_block() {
            let page = PageId(first + index);
            units.read_page(page, &mut bytes);
            let before = found.len();
            scan_page(&bytes, id, areas, geometry, page, block.opening, &mut found);
            if found.len() > before {
                block.taken = index + 1;
            }
        }
    }
    found
}

fn scan_page(
    bytes: &[u8],
    id: &Identity,
    areas: &Areas,
    geometry: &Geometry,
    page: PageId,
    opening: u64,
    found: &mut Vec<FoundUnit>,
) {
    let first = geometry.first_unit_of_page(page).0;
    for slot in 0..geometry.units_per_page() {
        let ppn = Ppn(first + slot);
        let Slot::Record(placed) = read_slot(bytes, areas, slot as usize, id, ppn) else {
            continue;
        };
        if placed.opening != opening {
            continue;
        }
        let data = &bytes[slot as usize * PAGE_BYTES..];
        let intact = data
            .first_chunk::<PAGE_BYTES>()
            .is_some_and(|d| id.key.digest(d) == placed.record.digest);
        let quality = match placed.record.kind {
            Kind::Lost => Quality::Lost,
            Kind::Data if intact => Quality::Good,
            Kind::Data => Quality::Broken,
        };
        found.push(FoundUnit {
            ppn,
            record: placed.record,
            quality,
            opening,
        });
    }
}
