//! Whether the rows of packed pages count what lies in them, and whether the free numbers are listed.
//!
//! What is named is counted for a range of packed pages at a time. The list of free numbers is walked with all links in memory:
//! it may lead from anywhere to anywhere.

use std::ops::Range;

use flashlore_flash::{ObjectId, PackId, Row};
use flashlore_ftl::mapping::objects::FoundPack;
use flashlore_ftl::mapping::packs::{MOST_BYTES, Pack, slot_bytes};

use super::bits::HandleBits;
use super::named::NamedObjects;
use super::references::scan_bytes;
use super::subject::{Sentences, Subject, ranges};
use super::view::RowView;
use crate::error::VolumeError;
use crate::format::{PackedRow, Table};

/// What is counted of a packed page.
#[derive(Clone, Copy, Default)]
struct NamedSlots {
    /// What the slots take whose objects something refers to, and how many of those are deltas that pages need.
    bytes: u16,
    live: u16,
    /// A bit for each of them. There are no more, since a head takes 52 bytes.
    slots: [u64; 2],
}

/// Bytes that are taken for a packed page.
pub(super) const PACK_BYTES: u64 = size_of::<NamedSlots>() as u64;
/// The least packed pages that are counted at a time.
pub(super) const LEAST: u32 = 64;

/// What is counted of all packed pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PackCounts {
    pub on_flash: u32,
    pub live: u32,
}

/// Compares the rows of all packed pages.
///
/// # Errors
/// A page of the tables cannot be read.
pub(super) fn check_packs(
    on: &Subject<'_>,
    view: &RowView<'_>,
    named: &NamedObjects,
    told: &mut Sentences,
) -> Result<PackCounts, VolumeError> {
    let numbers = on.root.tallies.packs.numbers.min(Table::Packs.rows(on.id));
    let mut counts = PackCounts::default();
    let mut counted = Vec::new();
    for range in ranges(numbers, PACK_BYTES, on.room, LEAST) {
        count(on, view, named, &range, &mut counted, told)?;
        on.rows.each_row(Table::Packs, range.clone(), |row, bytes| {
            let page = Pack::decode(bytes);
            let NamedSlots { bytes, live, .. } = counted[(row.0 - range.start) as usize];
            let (_, named, live_slots) = page.counted();
            counts.live += u32::from(live_slots > 0);
            counts.on_flash += u32::from(page.on_flash().is_some());
            if (bytes, live) != (named, live_slots) && on.knows_all() {
                told.push(format!(
                    "packed page {row} is stored as {page:?}, its objects take {bytes} bytes, {live} are live"
                ));
            }
        })?;
    }
    if !on.rows.lacks(&[Table::Packs]) {
        check_free(on, numbers, told)?;
    }
    Ok(counts)
}

/// Counts what lies in the packed pages of a range.
fn count(
    on: &Subject<'_>,
    view: &RowView<'_>,
    named: &NamedObjects,
    range: &Range<u32>,
    counted: &mut Vec<NamedSlots>,
    told: &mut Sentences,
) -> Result<(), VolumeError> {
    counted.clear();
    counted.resize(range.len(), NamedSlots::default());
    view.each_object(0..Table::Objects.rows(on.id), |object, row| {
        let Some(packed) = row.packed().filter(|_| named.alive.has(object)) else {
            return;
        };
        let FoundPack::Numbered(PackId(pack)) = packed.pack else {
            return;
        };
        if range.contains(&pack) {
            let page = &mut counted[(pack - range.start) as usize];
            let is_live = named.mapped.has(object) && packed.base.is_some();
            page.add(object, &packed, is_live, told);
        }
    })?;
    on.effort.advance(scan_bytes(on.id, on.root));
    Ok(())
}

impl NamedSlots {
    fn add(&mut self, object: ObjectId, packed: &PackedRow, is_live: bool, told: &mut Sentences) {
        let slot = u32::from(packed.slot.0);
        if u32::from(packed.length) > MOST_BYTES {
            told.push(format!(
                "object {object} takes {} bytes of a packed page, at most {MOST_BYTES} fit",
                packed.length
            ));
        }
        self.bytes = self.bytes.saturating_add(slot_bytes(packed.length));
        self.live = self.live.saturating_add(is_live.into());
        let word = self.slots.get_mut((slot / 64) as usize);
        let is_other = word.is_none_or(|word| {
            let bit = 1 << (slot % 64);
            let is_taken = *word & bit != 0;
            *word |= bit;
            is_taken
        });
        if is_other {
            told.push(format!(
                "object {object} has slot {slot} of its packed page, which is that of another object or does not exist"
            ));
        }
    }
}

/// The numbers without a page are in one list, each once.
fn check_free(on: &Subject<'_>, numbers: u32, told: &mut Sentences) -> Result<(), VolumeError> {
    let mut links = vec![0; numbers as usize];
    let mut unlisted = HandleBits::none_of(numbers);
    let mut free = 0u32;
    on.rows.each_row(Table::Packs, 0..numbers, |row, bytes| {
        let page = Pack::decode(bytes);
        if page.on_flash().is_none() {
            links[row.index()] = page.next_free().0;
            unlisted.set(ObjectId(row.0));
            free += 1;
        }
    })?;
    let mut at = on.root.tallies.packs.free;
    while unlisted.has(ObjectId(at.0)) {
        unlisted.clear(ObjectId(at.0));
        at = PackId(links[at.index()]);
    }
    match unlisted.count() {
        0 if at == PackId::NONE => {}
        lost => told.push(format!(
            "{lost} free numbers of packed pages of {free} are not listed, the list ends with {at}"
        )),
    }
    Ok(())
}
