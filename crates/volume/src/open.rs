//! Making a volume, and opening one: load, scan, replay, and the durable opening of an epoch.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use flashlore_flash::{BlockId, Geometry};
use flashlore_medium::{AlignedBuf, Medium};

use crate::dirty::DirtyPages;
use crate::error::VolumeError;
use crate::format::areas::geometry;
use crate::format::superblock::{MOST_EPOCHS, SUPERBLOCK_BYTES, VERSION};
use crate::format::{
    Areas, BlockRow, EpochStart, HistoryRoot, Identity, Root, Superblock, Table, TableSlot,
};
use crate::load;
use crate::lost::{Lost, NOWHERE};
use crate::nand::NandError;
use crate::replay::{Basis, Replayed, replay};
use crate::restore::layer;
use crate::scan::{ActiveBlock, active_blocks, journal_values, scan};
use crate::tables::TableStore;
use crate::unit::Units;
use crate::volume::Volume;

/// How long a recovery may take, against how often checkpoints are taken: events that program a page
/// between two checkpoints. 2^18 pages are 1 GiB to scan.
pub const CHECKPOINT_AFTER: u64 = 1 << 18;

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

/// Bytes a medium needs for a volume.
///
/// # Errors
/// An identity no volume can have.
pub fn bytes_needed(id: &Identity) -> Result<u64, VolumeError> {
    Ok(Areas::new(id)?.len)
}

/// Makes an empty volume; what the medium held is lost.
///
/// # Errors
/// Sizes that cannot work together, or a failure of the medium.
pub fn create(medium: &dyn Medium, id: &Identity) -> Result<(), VolumeError> {
    let areas = Areas::new(id)?;
    if medium.len() < areas.len {
        return Err(VolumeError::TooSmall {
            found: medium.len(),
            needed: areas.len,
        });
    }
    check_alignment(medium, id)?;
    let zeros = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
    for copy in 0..2 {
        medium.write(areas.superblock(copy), &zeros)?;
    }
    let zeros = AlignedBuf::zeroed(areas.root_bytes as usize);
    medium.write(areas.root(0), &zeros)?;
    let root = Root {
        checkpoint: 1,
        epoch: 0,
        sequence: 0,
        stamp: id.created,
        history: HistoryRoot {
            oldest: id.created,
            ..HistoryRoot::default()
        },
        sum: 0,
        directories: vec![TableSlot::NONE; areas.directories as usize],
    };
    let mut bytes = AlignedBuf::zeroed(areas.root_bytes as usize);
    root.encode(&id.key, areas.root(1), &mut bytes);
    medium.write(areas.root(1), &bytes)?;
    medium.sync()?;
    let superblock = Superblock {
        identity: id.clone(),
        metadata: areas.metadata,
        write: 0,
        epoch: 0,
        in_use: false,
        epochs: Vec::new(),
    };
    write_superblock(medium, &areas, superblock)?;
    Ok(())
}

fn check_alignment(medium: &dyn Medium, id: &Identity) -> Result<(), VolumeError> {
    if id.alignment.is_multiple_of(medium.alignment()) {
        return Ok(());
    }
    Err(VolumeError::Alignment {
        medium: medium.alignment(),
        volume: id.alignment,
    })
}

/// Both copies, one after the other, each durable: the older one first. Answers the newer one.
pub(crate) fn write_superblock(
    medium: &dyn Medium,
    areas: &Areas,
    mut superblock: Superblock,
) -> Result<Superblock, VolumeError> {
    for _ in 0..2 {
        superblock.write += 1;
        let mut bytes = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
        bytes.copy_from_slice(&superblock.encode());
        medium.write(areas.superblock(superblock.write % 2), &bytes)?;
        medium.sync()?;
    }
    Ok(superblock)
}

/// Everything on a medium, without changing it.
pub(crate) struct Image {
    pub superblock: Superblock,
    pub areas: Areas,
    pub geometry: Geometry,
    pub root: Root,
    /// Slots of the table pages, and the checks of what lies there.
    pub slots: (Vec<TableSlot>, Vec<u32>),
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
fn read_with(medium: &dyn Medium, superblock: Superblock) -> Result<Image, VolumeError> {
    let id = &superblock.identity;
    let areas = Areas::at(id, superblock.metadata)?;
    check_alignment(medium, id)?;
    if medium.len() < areas.len {
        return Err(VolumeError::TooSmall {
            found: medium.len(),
            needed: areas.len,
        });
    }
    let geometry = geometry(id).map_err(crate::format::AreasError::from)?;
    let root = load::root(medium, &areas, &id.key)?;
    let tables = load::tables(medium, id, &areas, &root)?;
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
    let slots = (tables.slots.clone(), tables.checks.clone());
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
    let state = replay(&on, tables, &tail, &active, &found)?;
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
        slots,
        rows: blocks,
        active,
        state,
        tail,
        recovery,
        superblock,
    })
}

impl Volume {
    /// Opens a volume, after a crash as after a clean end. Opens an epoch on the medium.
    ///
    /// # Errors
    /// There is no volume, it is damaged, or the medium fails.
    pub fn open(medium: impl Medium + 'static) -> Result<(Self, Recovery), VolumeError> {
        Self::open_shared(Arc::new(medium))
    }

    pub(crate) fn open_shared(medium: Arc<dyn Medium>) -> Result<(Self, Recovery), VolumeError> {
        let found = load::superblock(&medium)?.identity.version;
        match found < VERSION {
            true => Err(VolumeError::OldVersion {
                found,
                known: VERSION,
            }),
            false => Self::open_any(medium),
        }
    }

    /// Opens a volume of any format version that can be read. To one of an older version nothing may be done but a
    /// checkpoint.
    pub(crate) fn open_any(medium: Arc<dyn Medium>) -> Result<(Self, Recovery), VolumeError> {
        let mut image = read_image(&medium)?;
        let epoch = image.superblock.epoch + 1;
        let superblock = open_epoch(&medium, &image, epoch)?;
        let (slots, recovery) = (std::mem::take(&mut image.slots), image.recovery);
        let id = image.superblock.identity.clone();
        let mut mapped = DirtyPages::of(Table::Map, &id);
        for &lpn in &image.state.changed_pages {
            mapped.mark(lpn);
        }
        let tables = TableStore::new(&image.root, &id, slots, image.areas.slots, mapped);
        let stamp = image.state.stamp;
        let lost = std::mem::take(&mut image.state.lost);
        let notes = image.state.notes.clone();
        let crowded = image.superblock.epochs.len() > MOST_EPOCHS / 2;
        let layer = layer(medium, image, epoch)?;
        let mut volume = Volume {
            layer,
            tables,
            superblock,
            notes,
            clock: None,
            stamp,
            checkpoint_after: CHECKPOINT_AFTER,
            findings: Vec::new(),
            reported: HashSet::new(),
        };
        for Lost { unit, .. } in lost {
            volume.note_finding(
                unit,
                &NandError::Rot {
                    ppn: unit,
                    why: NOWHERE,
                },
            );
        }
        volume.heed_clocks();
        if crowded {
            volume.checkpoint()?;
        }
        Ok((volume, recovery))
    }
}

/// Derives both superblocks from the rest of a volume, which is newer ([`VolumeError::OldSuperblocks`]): the journal
/// says after which event each epoch goes on. Answers the newest epoch.
///
/// # Errors
/// They are not older, or the rest does not make a volume; then nothing is written.
pub fn rebuild_superblocks(medium: &dyn Medium) -> Result<u32, VolumeError> {
    let mut superblock = load::superblock(medium)?;
    let newest = match read_with(medium, superblock.clone()) {
        Err(VolumeError::OldSuperblocks { newest, .. }) => newest,
        Err(other) => return Err(other),
        Ok(_) => return Err(VolumeError::NewSuperblocks),
    };
    let id = &superblock.identity;
    let areas = Areas::at(id, superblock.metadata)?;
    let root = load::root(medium, &areas, &id.key)?;
    let tail = load::journal(medium, id, &areas, &root)?;
    for batch in &tail.batches {
        let known = superblock.epochs.iter().any(|e| e.epoch == batch.epoch);
        if batch.epoch > superblock.epoch && !known && batch.after >= root.sequence {
            // Of epochs that go on after one event the newest counts.
            superblock.epochs.retain(|e| e.after != batch.after);
            superblock.epochs.push(EpochStart {
                epoch: batch.epoch,
                after: batch.after,
            });
        }
    }
    superblock.epoch = newest;
    // How the newest session ended they do not know.
    superblock.in_use = true;
    read_with(medium, superblock.clone())?;
    write_superblock(medium, &areas, superblock)?;
    Ok(newest)
}

/// Makes it durable that the volume is in use, and that events go on after the last one that counts, in a new epoch.
fn open_epoch(medium: &dyn Medium, image: &Image, epoch: u32) -> Result<Superblock, VolumeError> {
    // What was read may lie in a cache alone: the process before may have ended without a barrier.
    medium.sync()?;
    let after = image.state.sequence;
    let mut superblock = image.superblock.clone();
    superblock
        .epochs
        .retain(|e| e.after >= image.root.sequence && e.after != after);
    superblock.epochs.push(EpochStart { epoch, after });
    if superblock.epochs.len() > MOST_EPOCHS {
        return Err(VolumeError::Damaged(format!(
            "it was opened {MOST_EPOCHS} times and written to without reaching a checkpoint"
        )));
    }
    superblock.epoch = epoch;
    superblock.in_use = true;
    write_superblock(medium, &image.areas, superblock)
}
