//! From a checkpoint, the journal and the pages found after it to the state at one instant.
//!
//! | module | what it is |
//! |---|---|
//! | `evidence` | the events that journal and pages tell of, and which of them count |
//! | `names` | which objects they mean |
//! | `state` | the state while events are applied |
//! | `overlay` | rows of a checkpoint, and what has become of them |
//! | `history` | the history over its tables, likewise |
//! | `reopened` | units where something else lies than the checkpoint says |
//! | `difference` | which objects of the checkpoint stay, told by their references alone |
//! | `placement` | where everything lies that something refers to in the end |
//! | `valid` | which units hold something in the end |
//! | `lost` | units that stand for content that is nowhere |
//! | `locations` | no two rows lie on one unit, and none where nothing was programmed |
//! | `replayed` | what a replay ends with |
//!
//! Events are applied in order of their sequence numbers and stop at the first one that is missing.
//! Within an epoch numbers follow one another; an epoch ends where the superblock says the next one
//! goes on after it, so that what an earlier life left beyond its cut never counts.
//!
//! Invariants: the state is that after event `sequence`; an event that was durable once is never missing without an
//! error; every address maps to content with that write sequence number, in the best copy found, or is lost; nothing
//! that the checkpoint placed is looked for in a block that was opened again since.

use std::collections::BTreeMap;

use flashlore_flash::{BlockId, Geometry};
use rustc_hash::FxHashMap;

use crate::error::VolumeError;
use crate::format::{MapRow, ObjectRow, Root, Superblock};
use crate::load::{JournalTail, Known, StoredRows, Tables};
use crate::scan::{ActiveBlock, FoundUnit};
use crate::unit::Units;
use crate::young::Young;

mod difference;
mod evidence;
mod history;
mod locations;
mod lost;
mod names;
mod overlay;
mod placement;
mod reopened;
mod replayed;
mod state;
mod valid;

pub(crate) use history::{ReplayedHistory, brought_into, copied_into};
pub(crate) use lost::NOWHERE;
pub(crate) use names::ObjectNames;
pub(crate) use overlay::RowOverlay;
pub(crate) use placement::PlacedRows;
pub(crate) use reopened::Reopened;
pub(crate) use replayed::{Lost, Replayed};
pub(crate) use valid::refuse_impossible;

use evidence::{Evidence, ReplayEvent, ReplayEventKind};
use locations::{check_changed, check_locations};
use lost::stand_in;
use state::ReplayState;

/// What a replay stands on.
pub(crate) struct Basis<'a> {
    pub units: Units<'a>,
    pub superblock: &'a Superblock,
    pub geometry: &'a Geometry,
    pub root: &'a Root,
}

/// Replays. With `rows` map and objects of the checkpoint are read there as they are needed, and what differs is answered;
/// otherwise `tables` has them, and all of them are gone through.
///
/// # Errors
/// Something that was durable once is missing, or the medium fails.
pub(crate) fn replay(
    on: &Basis<'_>,
    mut tables: Tables,
    rows: Option<&StoredRows>,
    tail: &JournalTail,
    active: &BTreeMap<BlockId, ActiveBlock>,
    found: &[FoundUnit],
) -> Result<Replayed, VolumeError> {
    let (geometry, root) = (on.geometry, on.root);
    let reopened = Reopened { geometry, active };
    let evidence = Evidence::gather(root, tail, found);
    let placed = placed(on, (&tables, rows), &evidence, found, &reopened);
    // What follows from a page that could not be read is nothing.
    rows.map_or(Ok(()), StoredRows::heed)?;
    let (order, mut replayed, differing) = placed?;
    match rows {
        Some(rows) => {
            replayed.valid = valid::changed(rows, &reopened, &differing, &replayed);
            check_changed(&tables, &reopened, rows, &differing, &replayed)?;
            rows.heed()?;
            replayed.changes = Some(differing);
            replayed.valid_before = rows.valid().to_vec();
        }
        None => {
            let map = std::mem::take(&mut tables.map);
            replayed.map = differing.map.applied_to(map, MapRow::NONE);
            let objects = std::mem::take(&mut tables.objects);
            replayed.placed.objects = differing.objects.applied_to(objects, ObjectRow::NONE);
            replayed.valid = valid::all(geometry, !on.units.id.has_objects(), &replayed);
            replayed.valid_before = std::mem::take(&mut tables.valid);
        }
    }
    stand_in(&on.units, geometry, &tables, active, &mut replayed)?;
    replayed.young = young(root, geometry, &order, found);
    for lost in replayed
        .lost
        .iter()
        .filter(|lost| lost.write_seq > root.sequence)
    {
        // Its event is known: it may not be forgotten with the unit that stands for it.
        let ReplayEvent { stamp, what } = evidence.events[&lost.write_seq];
        if let ReplayEventKind::Page { lpn } = what {
            let block = geometry.block_of(lost.unit);
            let young = replayed.young.entry(block).or_default();
            young.push(Young {
                write_seq: lost.write_seq,
                lpn,
                stamp,
                object: lost.owner,
            });
        }
    }
    if rows.is_none() {
        check_locations(on.units.id, geometry, &tables, active, &replayed)?;
    }
    Ok(replayed)
}

/// Applies the events and places what they leave; answers those that count, too.
fn placed(
    on: &Basis<'_>,
    (tables, rows): (&Tables, Option<&StoredRows>),
    evidence: &Evidence<'_>,
    found: &[FoundUnit],
    reopened: &Reopened<'_>,
) -> Result<(Vec<u64>, Replayed, PlacedRows), VolumeError> {
    let Basis {
        superblock, root, ..
    } = on;
    let id = &superblock.identity;
    let known = rows.map_or(Known::Loaded(tables), Known::Stored);
    let tables = (tables, known);
    let mut order = evidence.order(root.sequence, &superblock.epochs)?;
    let names = ObjectNames::new(tables, root.sequence, id.naming(), evidence, &order);
    let state = loop {
        let mut state = ReplayState::new(id, root, tables, &names);
        for &event in &order {
            state.apply(event, evidence)?;
        }
        state.advance(evidence);
        let Some(write_seq) = state.without_content(evidence) else {
            break state;
        };
        order.truncate(order.partition_point(|&event| event < write_seq));
    };
    let sequence = order.last().copied().unwrap_or(root.sequence);
    if superblock.epochs.iter().any(|e| e.after > sequence) {
        return Err(VolumeError::Damaged(format!(
            "the content of an event after {sequence} was durable once and is missing"
        )));
    }
    let (mut replayed, differing) = state.finish(id, evidence, found, reopened)?;
    replayed.sequence = sequence;
    replayed.events = order.len() as u64;
    Ok((order, replayed, differing))
}

/// Writes since the checkpoint that count, in the blocks they lie in.
fn young(
    root: &Root,
    geometry: &Geometry,
    order: &[u64],
    found: &[FoundUnit],
) -> FxHashMap<BlockId, Vec<Young>> {
    let mut young: FxHashMap<BlockId, Vec<Young>> = FxHashMap::default();
    for unit in found {
        let write_seq = unit.record.write_seq;
        let in_journal = unit.slot.is_some_and(|slot| slot.in_journal);
        if write_seq > root.sequence && !in_journal && order.binary_search(&write_seq).is_ok() {
            let block = geometry.block_of(unit.ppn);
            young.entry(block).or_default().push(Young {
                write_seq,
                lpn: unit.record.lpn,
                stamp: unit.record.stamp,
                object: unit.object,
            });
        }
    }
    young
}
