//! Making a volume, and opening one: load, scan, replay, and the durable opening of an epoch.

use flashlore_content::history::{History, HistoryOptions};
use flashlore_content::{DedupOptions, Digest, DigestTag, Encoder, NoCensus, NoEncoder};
use flashlore_flash::{BlockId, Geometry, Ppn};
use flashlore_ftl::content::Policies;
use flashlore_ftl::content::bytes::{Restored, RestoredObject};
use flashlore_ftl::content::history::{OnPressure, VersionsOptions};
use flashlore_ftl::mapping::direct::Direct;
use flashlore_ftl::mapping::objects::NO_OBJECT;
use flashlore_ftl::options::{FtlOptions, Watermarks};
use flashlore_ftl::restore::{RestoredBlock, RestoredBlocks, RestoredState};
use flashlore_ftl::{DedupFtl, PlainFtl};
use flashlore_medium::{AlignedBuf, Medium};

use crate::dirty::DirtyPages;
use crate::error::VolumeError;
use crate::format::areas::geometry;
use crate::format::superblock::{MOST_EPOCHS, SUPERBLOCK_BYTES};
use crate::format::tables::NO_SLOT;
use crate::format::{Areas, EpochStart, HistoryRoot, Identity, Policy, Root, Superblock, Table};
use crate::layer::{KeepsWhole, Kept, Layer, ObjectRow, Plain, WithObjects};
use crate::load::{self, BlockState, Tables};
use crate::nand::{BlockLife, Found, Nand, StoredUnit};
use crate::replay::{Replayed, replay};
use crate::scan::{ActiveBlock, active_blocks, scan};
use crate::tables::TableStore;
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
}

/// Bytes a medium needs for a volume.
///
/// # Errors
/// An identity no volume can have.
pub fn bytes_needed(id: &Identity) -> Result<u64, VolumeError> {
    Ok(Areas::new(id)?.len)
}

/// The settings of the translation layer under a volume.
pub fn ftl_options(id: &Identity) -> FtlOptions {
    let mut options = FtlOptions::new(id.exported);
    options.thin = true;
    options.barriers = true;
    // One block more than collection needs: a power loss in the middle of one may cost a block.
    options.collect.watermarks = Watermarks { low: 2, high: 2 };
    options
}

/// How a deduplicating volume looks for duplicates.
pub fn dedup_options(id: &Identity) -> DedupOptions {
    let trusted = id.trusts_digests();
    let dedups = id.policy != Policy::Plain;
    DedupOptions {
        index_entries: Some(if dedups { id.index_entries } else { 0 }),
        fingerprint_bits: if trusted { 64 } else { 32 },
        verify: !trusted,
        bypass: None,
        out_of_line: false,
    }
}

/// How many old versions there may be.
pub(crate) fn history_options(id: &Identity) -> Option<HistoryOptions> {
    let history = id.history?;
    Some(HistoryOptions {
        max_entries: Some(history.entries),
        schedule: None,
    })
}

/// How old versions are kept.
fn versions_options(id: &Identity) -> Option<VersionsOptions> {
    let history = id.history?;
    Some(VersionsOptions {
        history: history_options(id)?,
        least_window: history.least_window,
        on_pressure: match history.protected {
            true => OnPressure::Refuse,
            false => OnPressure::Shrink,
        },
        reserve: 0,
    })
}

/// Makes an empty volume; what the medium held is lost.
///
/// # Errors
/// Sizes that cannot work together, or a failure of the medium.
pub fn create<M: Medium>(medium: &M, id: &Identity) -> Result<(), VolumeError> {
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
        directories: vec![NO_SLOT; areas.directories as usize],
    };
    let mut bytes = AlignedBuf::zeroed(areas.root_bytes as usize);
    root.encode(&id.key, areas.root(1), &mut bytes);
    medium.write(areas.root(1), &bytes)?;
    medium.sync()?;
    let superblock = Superblock {
        identity: id.clone(),
        write: 0,
        epoch: 0,
        epochs: Vec::new(),
    };
    write_superblock(medium, &areas, superblock)?;
    Ok(())
}

fn check_alignment<M: Medium>(medium: &M, id: &Identity) -> Result<(), VolumeError> {
    if id.alignment.is_multiple_of(medium.alignment()) {
        return Ok(());
    }
    Err(VolumeError::Alignment {
        medium: medium.alignment(),
        volume: id.alignment,
    })
}

/// Both copies, one after the other, each durable: the older one first.
fn write_superblock<M: Medium>(
    medium: &M,
    areas: &Areas,
    mut superblock: Superblock,
) -> Result<(), VolumeError> {
    for _ in 0..2 {
        superblock.write += 1;
        let mut bytes = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
        bytes.copy_from_slice(&superblock.encode());
        medium.write(areas.superblock(superblock.write % 2), &bytes)?;
        medium.sync()?;
    }
    Ok(())
}

/// Everything on a medium, without changing it.
pub(crate) struct Image {
    pub superblock: Superblock,
    pub areas: Areas,
    pub geometry: Geometry,
    pub root: Root,
    pub slots: Vec<u32>,
    pub rows: Vec<load::BlockRow>,
    pub active: std::collections::BTreeMap<u32, ActiveBlock>,
    pub state: Replayed,
    pub tail: load::JournalTail,
    pub recovery: Recovery,
}

/// Loads, scans and replays; writes nothing.
pub(crate) fn read_image<M: Medium>(medium: &M) -> Result<Image, VolumeError> {
    let superblock = load::superblock(medium)?;
    let id = &superblock.identity;
    let areas = Areas::new(id)?;
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
    let found = scan(medium, id, &areas, &geometry, &mut active);
    let Tables { slots, blocks, .. } = tables.clone();
    let state = replay(
        &superblock,
        &geometry,
        &root,
        tables,
        &tail,
        &active,
        &found,
    )?;
    let recovery = Recovery {
        events: state.events,
        blocks: active.len() as u32,
        units: found.len() as u64,
        journal_bytes: tail.position.offset,
        epoch: superblock.epoch + 1,
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

impl<M: Medium + 'static> Volume<M> {
    /// Opens a volume, after a crash as after a clean end. Opens an epoch on the medium.
    ///
    /// # Errors
    /// There is no volume, it is damaged, or the medium fails.
    pub fn open(medium: M) -> Result<(Self, Recovery), VolumeError> {
        let image = read_image(&medium)?;
        let epoch = image.superblock.epoch + 1;
        open_epoch(&medium, &image, epoch)?;
        let (slots, recovery) = (image.slots.clone(), image.recovery);
        let id = image.superblock.identity.clone();
        let mut mapped = dirty(&id, Table::Map);
        for &lpn in &image.state.changed_pages {
            mapped.mark(lpn);
        }
        let tables = TableStore::new(&image.root, &id, slots, image.areas.slots, mapped);
        let stamp = image.state.stamp;
        let crowded = image.superblock.epochs.len() > MOST_EPOCHS / 2;
        let layer = layer(medium, image, epoch)?;
        let mut volume = Volume {
            layer,
            tables,
            stamp,
            checkpoint_after: CHECKPOINT_AFTER,
            findings: Vec::new(),
            reported: std::collections::HashSet::new(),
        };
        if crowded {
            volume.checkpoint()?;
        }
        Ok((volume, recovery))
    }
}

/// Makes it durable that events go on after the last one that counts, in a new epoch.
fn open_epoch<M: Medium>(medium: &M, image: &Image, epoch: u32) -> Result<(), VolumeError> {
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
    write_superblock(medium, &image.areas, superblock)
}

fn dirty(id: &Identity, table: Table) -> DirtyPages {
    DirtyPages::new(table.pages(id), table.rows_per_page(id))
}

/// The translation layer over what was found.
fn layer<M: Medium + 'static>(
    medium: M,
    image: Image,
    epoch: u32,
) -> Result<Box<dyn Layer<M>>, VolumeError> {
    let id = image.superblock.identity.clone();
    let blocks = restored_blocks(&image);
    let mut programmed = dirty(&id, Table::Blocks);
    for &block in image.active.keys() {
        programmed.mark(block);
    }
    let (located_table, rows) = match id.has_objects() {
        false => (Table::Map, &image.state.changed_pages),
        true => (Table::Objects, &image.state.changed_objects),
    };
    let mut located = dirty(&id, located_table);
    for &row in rows {
        located.mark(row);
    }
    let births = image.state.objects.iter().map(|o| o.birth).collect();
    let found = Found {
        epoch,
        sequence: image.state.sequence,
        since: image.root.sequence,
        position: image.tail.position,
        lives: lives(&image),
        births,
        young: image.state.young,
        window: image.state.history.as_ref().map_or(0, History::oldest),
        window_noted: image.state.window,
        located,
        programmed,
    };
    let nand = Nand::new(medium, id.clone(), image.areas, image.geometry, found);
    let options = ftl_options(&id);
    let Replayed {
        map,
        objects,
        history,
        ..
    } = image.state;
    if !id.has_objects() {
        let stored = map.iter().filter(|&&ppn| ppn != Ppn::NONE.0).count() as u64;
        let map = Direct::restore(map.into_iter().map(Ppn).collect());
        let ftl = PlainFtl::restore(nand, options, map, &blocks)?;
        return Ok(Box::new(Plain { ftl, stored }));
    }
    let found = FoundObjects {
        map,
        objects,
        history,
        blocks,
    };
    let trusted = id.trusts_digests();
    Ok(match (trusted, id.history.is_some()) {
        (false, false) => with_objects::<DigestTag, _, _>(nand, &id, found, NoEncoder)?,
        (true, false) => with_objects::<Digest, _, _>(nand, &id, found, NoEncoder)?,
        (false, true) => with_objects::<DigestTag, _, _>(nand, &id, found, KeepsWhole)?,
        (true, true) => with_objects::<Digest, _, _>(nand, &id, found, KeepsWhole)?,
    })
}

/// What a recovery found of a volume with objects.
struct FoundObjects {
    map: Vec<u32>,
    objects: Vec<ObjectRow>,
    history: Option<History>,
    blocks: RestoredBlocks,
}

fn with_objects<C, M, E>(
    nand: Nand<M>,
    id: &Identity,
    found: FoundObjects,
    encoder: E,
) -> Result<Box<dyn Layer<M>>, VolumeError>
where
    C: Kept + 'static,
    M: Medium + 'static,
    E: Encoder<C, StoredUnit> + Send + 'static,
    E::Encoded: Send,
{
    let rows = &found.objects;
    let mut alive = vec![false; rows.len()];
    let kept = found.history.iter().flat_map(History::objects);
    for handle in found.map.iter().copied().chain(kept) {
        if handle != NO_OBJECT {
            alive[handle as usize] = true;
        }
    }
    let mut objects: Vec<RestoredObject<C>> = (0..rows.len())
        .filter(|&handle| alive[handle])
        .map(|handle| RestoredObject {
            handle: handle as u32,
            location: rows[handle].location,
            content: C::of(rows[handle].digest),
        })
        .collect();
    // The index keeps the youngest.
    objects.sort_by_key(|o| rows[o.handle as usize].birth);
    let policies = Policies {
        dedup: dedup_options(id),
        delta: None,
        versions: versions_options(id),
        encoder,
    };
    let restored = Restored {
        map: &found.map,
        objects: &objects,
        history: found.history,
        blocks: &found.blocks,
    };
    let ftl = DedupFtl::restore(nand, ftl_options(id), policies, NoCensus, restored)?;
    Ok(Box::new(WithObjects { ftl }))
}

/// The blocks that go on: of each stream the one opened last.
fn newest_open(active: &std::collections::BTreeMap<u32, ActiveBlock>) -> Vec<u32> {
    let mut newest: std::collections::HashMap<u8, (u64, u32)> = Default::default();
    for (&block, found) in active {
        let at = newest.entry(found.stream as u8).or_insert((0, block));
        *at = (*at).max((found.opening, block));
    }
    newest.into_values().map(|(_, block)| block).collect()
}

fn restored_blocks(image: &Image) -> RestoredBlocks {
    let open = newest_open(&image.active);
    let units = image.geometry.units_per_page();
    let state = |number: u32, row: &load::BlockRow| match image.active.get(&number) {
        Some(a) if open.contains(&number) && a.taken < image.geometry.pages_per_block() => {
            RestoredState::Open {
                stream: a.stream,
                taken: a.taken * units,
            }
        }
        Some(_) => RestoredState::Sealed,
        None if row.state == BlockState::Free => RestoredState::Free,
        None => RestoredState::Sealed,
    };
    let lives = lives(image);
    let blocks: Vec<RestoredBlock> = image
        .rows
        .iter()
        .enumerate()
        .map(|(number, row)| RestoredBlock {
            erases: lives[number].erases,
            state: state(number as u32, row),
        })
        .collect();
    let mut sealing: Vec<BlockId> = (0..blocks.len())
        .filter(|&b| blocks[b].state != RestoredState::Free)
        .map(|b| BlockId(b as u32))
        .collect();
    sealing.sort_by_key(|b| lives[b.index()].opening);
    RestoredBlocks { blocks, sealing }
}

fn lives(image: &Image) -> Vec<BlockLife> {
    let life = |(number, row): (usize, &load::BlockRow)| match image.active.get(&(number as u32)) {
        Some(a) => BlockLife {
            opening: a.opening,
            erases: a.erases,
            taken: a.taken,
        },
        None => BlockLife {
            opening: row.opening,
            erases: row.erases,
            taken: row.taken,
        },
    };
    image.rows.iter().enumerate().map(life).collect()
}
