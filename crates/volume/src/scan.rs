//! Reading the pages programmed since the checkpoint.
//!
//! Which blocks these are the checkpoint and the journal say: blocks that were open, from the page
//! where they stood, and blocks opened since. A page counts only if its records name the block's
//! present generation.

use std::collections::BTreeMap;

use flashlore_content::PAGE_BYTES;
use flashlore_flash::{BlockId, Geometry, ObjectId, PageId, Ppn, Stream, index};
use flashlore_medium::{AlignedBuf, Medium};

use crate::error::VolumeError;
use crate::format::journal::JournalValue;
use crate::format::packed::{self, Head};
use crate::format::{
    Areas, BlockRow, BlockState, Identity, JournalEntry, ObjectName, PackSlot, Record, Slot,
    UnitKind,
};
use crate::load::JournalTail;
use crate::unit::read_slot;

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
    /// The generation of its block.
    pub generation: u64,
    /// Whether collection fills its block.
    pub collected: bool,
    /// The object whose value it is; none where that was not written down.
    pub object: ObjectId,
    /// Of a value in a packed unit, which it is.
    pub slot: Option<FoundSlot>,
}

index!(
    /// Which value of a packed unit; of the journal, counted through all batches.
    ValueIndex
);

impl ValueIndex {
    /// Its slot in a packed unit.
    pub fn slot(self) -> PackSlot {
        PackSlot(self.0 as u16)
    }
}

/// An encoded value in a packed unit, or in the journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundSlot {
    pub index: ValueIndex,
    /// Bytes of its slot, as the translation layer counts them.
    pub length: u16,
    /// What it is a delta from.
    pub base: Option<ObjectName>,
    /// Whether it stands in the journal; then it has no unit.
    pub in_journal: bool,
}

impl FoundUnit {
    /// Which of two copies of a write counts: the better one; a whole one, which needs no base and so was made
    /// last; one in a unit; then the one that was made later. So blocks that had been collected stay empty. A block
    /// that collection fills may have been opened long before its victim; among such blocks copies are made in the
    /// order in which the blocks were opened, as a victim is full and only one of them is filled at a time.
    pub fn rank(&self) -> (Quality, bool, bool, bool, u64, Ppn) {
        let in_journal = self.slot.is_some_and(|slot| slot.in_journal);
        (
            self.quality,
            self.slot.is_none(),
            !in_journal,
            self.collected,
            self.generation,
            self.ppn,
        )
    }
}

/// The encoded values of the journal: each was whole when its batch was written.
pub(crate) fn journal_values(tail: &JournalTail) -> Vec<FoundUnit> {
    let values = tail.batches.iter().flat_map(|batch| &batch.values);
    let found = values
        .enumerate()
        .map(|(index, JournalValue { head, .. })| FoundUnit {
            ppn: Ppn::NONE,
            record: record_of(head),
            quality: if head.lost {
                Quality::Lost
            } else {
                Quality::Good
            },
            generation: 0,
            collected: false,
            object: head.object,
            slot: Some(FoundSlot {
                index: ValueIndex(index as u32),
                length: head.slot_length(),
                base: head.base,
                in_journal: true,
            }),
        });
    found.collect()
}

/// What is known of an encoded value, as of a whole one.
fn record_of(head: &Head) -> Record {
    Record {
        kind: if head.lost {
            UnitKind::Lost
        } else {
            UnitKind::Data
        },
        lpn: head.lpn,
        write_seq: head.write_seq,
        stamp: head.stamp,
        digest: head.digest,
    }
}

/// A block that was programmed since the checkpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActiveBlock {
    pub stream: Stream,
    pub generation: u64,
    pub erases: u32,
    /// Pages that are known from the checkpoint.
    pub known: u32,
    /// Pages taken, those known and those found.
    pub taken: u32,
}

/// The blocks that have been programmed since the checkpoint.
pub(crate) fn active_blocks(
    rows: &[BlockRow],
    entries: impl Iterator<Item = JournalEntry>,
) -> BTreeMap<BlockId, ActiveBlock> {
    let mut active = BTreeMap::new();
    for (number, row) in (0..).map(BlockId).zip(rows) {
        if let BlockState::Open(stream) = row.state {
            let block = ActiveBlock {
                stream,
                generation: row.generation,
                erases: row.erases,
                known: row.taken,
                taken: row.taken,
            };
            active.insert(number, block);
        }
    }
    for entry in entries {
        if let JournalEntry::Open {
            block,
            stream,
            generation,
            erases,
        } = entry
        {
            let opened = ActiveBlock {
                stream,
                generation,
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
/// block is taken. Answers the newest epoch in which one was programmed, too.
///
/// # Errors
/// The medium failed. What it would have read is not known, so nothing may be concluded from it.
pub(crate) fn scan(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    geometry: &Geometry,
    active: &mut BTreeMap<BlockId, ActiveBlock>,
) -> Result<(Vec<FoundUnit>, u32), VolumeError> {
    let (mut found, mut epoch) = (Vec::new(), 0);
    let mut bytes = AlignedBuf::zeroed(areas.page_stride as usize);
    for (&number, block) in active {
        let first = geometry.first_page(number).0;
        for index in block.known..geometry.pages_per_block() {
            let page = PageId(first + index);
            medium.read(areas.page(page), &mut bytes)?;
            let last = scan_page(&bytes, id, areas, geometry, page, block, &mut found);
            if let Some(last) = last {
                block.taken = index + 1;
                epoch = epoch.max(last);
            }
        }
    }
    Ok((found, epoch))
}

/// Notes what a page holds; the epoch it was programmed in, if it has a record that holds.
fn scan_page(
    bytes: &[u8],
    id: &Identity,
    areas: &Areas,
    geometry: &Geometry,
    page: PageId,
    block: &ActiveBlock,
    found: &mut Vec<FoundUnit>,
) -> Option<u32> {
    let generation = block.generation;
    let collected = matches!(block.stream, Stream::Gc | Stream::LogGc);
    let mut epoch = None;
    let first = geometry.first_unit_of_page(page).0;
    for ppn in (first..first + geometry.units_per_page()).map(Ppn) {
        let Slot::Record(placed) = read_slot(bytes, areas, id, ppn) else {
            continue;
        };
        if placed.generation != generation {
            continue;
        }
        epoch = epoch.max(Some(placed.epoch));
        let data = &bytes[areas.data_in_page(ppn)];
        let intact = data
            .first_chunk::<PAGE_BYTES>()
            .is_some_and(|d| id.key.digest(d) == placed.record.digest);
        let quality = match placed.record.kind {
            UnitKind::Lost => Quality::Lost,
            _ if intact => Quality::Good,
            _ => Quality::Broken,
        };
        if placed.record.kind != UnitKind::Packed {
            found.push(FoundUnit {
                ppn,
                record: placed.record,
                quality,
                generation,
                collected,
                object: placed.owner.as_object(),
                slot: None,
            });
            continue;
        }
        // Whoever wrote values that hold wrote their heads.
        let heads = packed::heads(&id.key, data, placed.record.write_seq);
        for (index, head) in heads.unwrap_or_default().iter().enumerate() {
            let lost = if head.lost {
                Quality::Lost
            } else {
                Quality::Good
            };
            found.push(FoundUnit {
                ppn,
                record: record_of(head),
                quality: quality.min(lost),
                generation,
                collected,
                object: head.object,
                slot: Some(FoundSlot {
                    index: ValueIndex(index as u32),
                    length: head.slot_length(),
                    base: head.base,
                    in_journal: false,
                }),
            });
        }
    }
    epoch
}
