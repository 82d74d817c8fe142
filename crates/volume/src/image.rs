//! Everything on a medium, as an opening finds it: loaded, scanned and replayed, with nothing written.
//!
//! Invariant: what an opening refuses is refused here.

use std::collections::BTreeMap;

use flashlore_flash::{BlockId, Geometry};
use flashlore_medium::Medium;
use flashlore_metadata::StoredTables;

use crate::error::VolumeError;
use crate::format::areas::geometry;
use crate::format::{Areas, BlockRow, Identity, ObjectNote, Root, Superblock};
use crate::load::{self, StoredRows, Tables};
use crate::replay::{Basis, Replayed, replay};
use crate::scan::{ActiveBlock, active_blocks, journal_values, scan};
use crate::unit::Units;

/// What opening a volume found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// Events replayed after the checkpoint.
    pub events: u64,
    /// Blocks that were scanned.
    pub blocks: u32,
    /// Pages found in them.
    pub units: u64,
    /// Bytes of journal read.
    pub journal_bytes: u64,
    /// The epoch that was opened.
    pub epoch: u32,
    /// Whether its last user closed it. If not, that one was killed or lost its power, or this is a copy that was made
    /// while the volume was in use.
    pub closed: bool,
    /// The instant that it shows: that of its last change, in nanoseconds since 1970.
    pub instant: u64,
}

/// Everything on a medium, without changing it.
pub(crate) struct Image {
    pub superblock: Superblock,
    pub areas: Areas,
    pub geometry: Geometry,
    pub root: Root,
    pub rows: Vec<BlockRow>,
    pub active: BTreeMap<BlockId, ActiveBlock>,
    pub state: Replayed,
    pub tail: load::JournalTail,
    pub recovery: Recovery,
}

/// Whether a volume can be opened: what an opening refuses is refused here. Writes nothing.
///
/// # Errors
/// Those of an opening.
pub fn probe(medium: &dyn Medium) -> Result<(), VolumeError> {
    read_image(medium).map(drop)
}

/// Loads, scans and replays; writes nothing.
pub(crate) fn read_image(medium: &dyn Medium) -> Result<Image, VolumeError> {
    read_with(medium, load::superblock(medium)?)
}

/// The same with a superblock that is known.
pub(crate) fn read_with(medium: &dyn Medium, superblock: Superblock) -> Result<Image, VolumeError> {
    let (areas, root) = checkpoint(medium, &superblock)?;
    let tables = load::tables(medium, &superblock.identity, &areas, &root)?;
    replayed(medium, superblock, (areas, root), tables, None)
}

/// The same, where map and objects of the [`checkpoint`] are read as they are needed.
pub(crate) fn read_rows(
    medium: &dyn Medium,
    superblock: Superblock,
    (areas, root): (Areas, Root),
    stored: StoredTables<ObjectNote>,
) -> Result<Image, VolumeError> {
    let id = &superblock.identity;
    if !root.is_possible(id) {
        return Err(VolumeError::Damaged(
            "the root tells of more than its tables have room for".to_string(),
        ));
    }
    let (tables, rows) = load::over_rows(medium, id, &areas, &root, stored)?;
    replayed(medium, superblock, (areas, root), tables, Some(&rows))
}

/// Where everything lies, and the last checkpoint.
pub(crate) fn checkpoint(
    medium: &dyn Medium,
    superblock: &Superblock,
) -> Result<(Areas, Root), VolumeError> {
    let id = &superblock.identity;
    let areas = Areas::at(id, superblock.metadata)?;
    check_alignment(medium, id)?;
    if medium.len() < areas.len {
        return Err(VolumeError::TooSmall {
            found: medium.len(),
            needed: areas.len,
        });
    }
    let root = load::root(medium, id, &areas)?;
    Ok((areas, root))
}

fn replayed(
    medium: &dyn Medium,
    superblock: Superblock,
    (areas, root): (Areas, Root),
    tables: Tables,
    rows: Option<&StoredRows>,
) -> Result<Image, VolumeError> {
    let id = &superblock.identity;
    let geometry = geometry(id).map_err(crate::format::AreasError::from)?;
    let tail = load::journal(medium, id, &areas, &root)?;
    let mut active = active_blocks(&tables.blocks, load::entries(&tail));
    let (mut found, scanned) = scan(medium, id, &areas, &geometry, &mut active)?;
    let newest = tail.epoch.max(scanned);
    if newest > superblock.epoch {
        return Err(VolumeError::OldSuperblocks {
            found: superblock.epoch,
            newest,
        });
    }
    found.extend(journal_values(&tail));
    let blocks = tables.blocks.clone();
    let on = Basis {
        units: Units {
            medium,
            areas: &areas,
            id,
        },
        superblock: &superblock,
        geometry: &geometry,
        root: &root,
    };
    let state = replay(&on, tables, rows, &tail, &active, &found)?;
    let recovery = Recovery {
        events: state.events,
        blocks: active.len() as u32,
        units: found.len() as u64,
        journal_bytes: tail.position.offset,
        epoch: superblock.epoch + 1,
        // What an older program left open has no mark.
        closed: !superblock.in_use
            && root.epoch == superblock.epoch
            && state.events == 0
            && found
                .iter()
                .all(|unit| unit.record.write_seq <= root.sequence),
        instant: state.stamp,
    };
    Ok(Image {
        areas,
        geometry,
        root,
        rows: blocks,
        active,
        state,
        tail,
        recovery,
        superblock,
    })
}

/// Refuses a medium on which the structures of a volume cannot be read and written.
pub(crate) fn check_alignment(medium: &dyn Medium, id: &Identity) -> Result<(), VolumeError> {
    if id.alignment.is_multiple_of(medium.alignment()) {
        return Ok(());
    }
    Err(VolumeError::Alignment {
        medium: medium.alignment(),
        volume: id.alignment,
    })
}
