//! Content that a recovery finds nowhere: what the checkpoint knows was moved since, its old block holds something
//! else by now, and the record of the copy does not hold.
//!
//! Such an address or object stays what it is, and cannot be read. It needs a unit, as everything that is stored: one
//! that nothing needs stands for it. Its record does not say what the map means, so that each read of it fails, and
//! collection writes down that the content is lost.
//!
//! Invariant: a unit that stands in was taken and is nobody else's; its record does not prove that it is what is lost.

use std::collections::BTreeMap;

use flashlore_flash::{BlockId, Geometry, Ppn};

use super::replayed::{Lost, Replayed};
use super::valid::has;
use crate::error::VolumeError;
use crate::format::{BlockState, MapRow, ObjectPlace, ObjectRow, Record, Slot, UnitKind};
use crate::load::Tables;
use crate::scan::ActiveBlock;
use crate::unit::Units;

/// Why what is lost cannot be read.
pub(crate) const NOWHERE: &str = "its content was moved, and the copy is damaged";

/// Finds a unit for everything that is lost.
///
/// # Errors
/// There are not enough units, or the medium fails.
pub(super) fn stand_in(
    units: &Units<'_>,
    geometry: &Geometry,
    tables: &Tables,
    active: &BTreeMap<BlockId, ActiveBlock>,
    replayed: &mut Replayed,
) -> Result<(), VolumeError> {
    if replayed.lost.is_empty() {
        return Ok(());
    }
    let plain = !units.id.has_objects();
    let valid = replayed.valid.clone();
    let is_free = |&ppn: &Ppn| !has(&valid, ppn);
    let taken = (0..geometry.blocks()).map(BlockId).flat_map(|block| {
        let (generation, pages) = life(tables, active, block);
        let first = geometry.first_unit(block).0;
        let end = first + pages.min(geometry.pages_per_block()) * geometry.units_per_page();
        (first..end).map(move |unit| (Ppn(unit), generation))
    });
    let mut free = taken.filter(|(ppn, _)| is_free(ppn));
    // Units whose own record tells that they are something else come first; the others are for those that get none.
    let mut nameless = Vec::new();
    let mut waiting = Vec::new();
    for at in 0..replayed.lost.len() {
        let Lost {
            owner, write_seq, ..
        } = replayed.lost[at];
        let proves = |record: &Record| match plain {
            true => record.lpn == owner.as_page(),
            false => record.write_seq == write_seq,
        };
        let unit = loop {
            let Some((ppn, generation)) = free.next() else {
                break None;
            };
            match units.record(ppn, generation)? {
                Slot::Record(placed) if placed.record.kind == UnitKind::Lost => {}
                Slot::Record(placed) if proves(&placed.record) => {}
                Slot::Record(_) => break Some(ppn),
                Slot::Empty | Slot::Broken => nameless.push(ppn),
            }
        };
        match unit {
            Some(ppn) => place(plain, replayed, at, ppn),
            None => waiting.push(at),
        }
    }
    for at in waiting {
        let Some(ppn) = nameless.pop() else {
            return Err(VolumeError::Damaged(format!(
                "the content of {} pages is lost, and no unit is left to stand for them",
                replayed.lost.len()
            )));
        };
        place(plain, replayed, at, ppn);
    }
    Ok(())
}

fn place(plain: bool, replayed: &mut Replayed, at: usize, ppn: Ppn) {
    let lost = &mut replayed.lost[at];
    lost.unit = ppn;
    let owner = lost.owner.index();
    replayed.valid[ppn.index() / 64] |= 1 << (ppn.0 % 64);
    match (&mut replayed.changes, plain) {
        (Some(changes), true) => changes.map.set(owner, MapRow::of_unit(ppn)),
        (Some(changes), false) => {
            if let Some(row) = changes.objects.get(owner) {
                let place = ObjectPlace::Unit(ppn);
                changes.objects.set(owner, ObjectRow { place, ..row });
            }
        }
        (None, true) => replayed.map[owner] = MapRow::of_unit(ppn),
        (None, false) => replayed.placed.objects[owner].place = ObjectPlace::Unit(ppn),
    }
}

/// The generation of a block and the pages that were taken in it.
fn life(tables: &Tables, active: &BTreeMap<BlockId, ActiveBlock>, block: BlockId) -> (u64, u32) {
    let row = &tables.blocks[block.index()];
    match active.get(&block) {
        Some(active) => (active.generation, active.taken),
        None if row.state == BlockState::Free => (row.generation, 0),
        None => (row.generation, row.taken),
    }
}
