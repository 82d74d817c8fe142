//! Making a volume, and opening one: load, scan, replay, and the durable opening of an epoch.

use std::sync::Arc;

use flashlore_content::delta::Never;
use flashlore_content::history::{History, HistoryOptions};
use flashlore_content::{DedupOptions, Digest, DigestTag, Encoder, NoCensus, NoEncoder};
use flashlore_flash::{BlockId, Geometry, Ppn};
use flashlore_ftl::content::Policies;
use flashlore_ftl::content::bytes::{Restored, RestoredObject, RestoredPacked, RestoredPlace};
use flashlore_ftl::content::delta::heat::HeatOptions;
use flashlore_ftl::content::delta::packs::Slot;
use flashlore_ftl::content::delta::viability::ViabilityOptions;
use flashlore_ftl::content::delta::{DeltaOptions, NEVER};
use flashlore_ftl::content::history::{OnPressure, VersionsOptions};
use flashlore_ftl::mapping::direct::Direct;
use flashlore_ftl::mapping::objects::NO_OBJECT;
use flashlore_ftl::options::{FtlOptions, Watermarks};
use flashlore_ftl::restore::{RestoredBlock, RestoredBlocks, RestoredState};
use flashlore_ftl::{DedupFtl, PlainFtl};
use flashlore_medium::{AlignedBuf, Medium};

use crate::dirty::DirtyPages;
use crate::encoder::{Bytes, PackedValue, SharedWaiting};
use crate::error::VolumeError;
use crate::format::areas::geometry;
use crate::format::journal::JournalValue;
use crate::format::superblock::{MOST_EPOCHS, SUPERBLOCK_BYTES};
use crate::format::tables::NO_SLOT;
use crate::format::{
    Areas, Encoding, EpochStart, HistoryRoot, Identity, Policy, Root, Superblock, Table,
};
use crate::layer::{Kept, Layer, ObjectRow, Plain, WithObjects};
use crate::load::{self, BlockState, Tables};
use crate::nand::{BlockLife, Found, Nand, StoredUnit};
use crate::place::Placed;
use crate::replay::{Replayed, replay};
use crate::scan::{ActiveBlock, active_blocks, journal_values, scan};
use crate::tables::TableStore;
use crate::volume::Volume;

/// How long a recovery may take, against how often checkpoints are taken: events that program a page
/// between two checkpoints. 2^18 pages are 1 GiB to scan.
pub const CHECKPOINT_AFTER: u64 = 1 << 18;

/// The longest encoded value that is stored, with its head: what is longer is read faster whole.
const MOST_ENCODED: u16 = 3 << 10;

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

/// What is encoded, and when.
fn delta_options(id: &Identity) -> Option<DeltaOptions> {
    let Encoding {
        differences,
        compression,
    } = id.encoding;
    (differences || compression).then_some(DeltaOptions {
        differences,
        compress: compression,
        hot_writes: 2,
        hot_reads: NEVER,
        most_bytes: MOST_ENCODED,
        viability: ViabilityOptions {
            most_bytes: MOST_ENCODED,
            window: 1024,
            probe: 16,
        },
        heat: HeatOptions {
            entries: None,
            protected: 0,
        },
        lambda: 0,
        most_pinned: u32::MAX,
    })
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
    let mut found = scan(medium, id, &areas, &geometry, &mut active);
    found.extend(journal_values(&tail));
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
        true => (Table::Objects, &image.state.placed.changed),
    };
    let mut located = dirty(&id, located_table);
    for &row in rows {
        located.mark(row);
    }
    let mut packed = dirty(&id, Table::Packs);
    for &pack in &image.state.placed.changed_packs {
        packed.mark(pack);
    }
    let births = image.state.placed.objects.iter().map(|o| o.birth).collect();
    let waiting = SharedWaiting::default();
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
        packed,
        waiting: waiting.clone(),
        programmed,
    };
    let nand = Nand::new(medium, id.clone(), image.areas, image.geometry, found);
    let Replayed {
        map,
        placed,
        history,
        ..
    } = image.state;
    if !id.has_objects() {
        let options = ftl_options(&id);
        let stored = map.iter().filter(|&&ppn| ppn != Ppn::NONE.0).count() as u64;
        let map = Direct::restore(map.into_iter().map(Ppn).collect());
        let ftl = PlainFtl::restore(nand, options, map, &blocks)?;
        return Ok(Box::new(Plain { ftl, stored }));
    }
    let found = FoundObjects {
        map,
        placed,
        values: image
            .tail
            .batches
            .into_iter()
            .flat_map(|b| b.values)
            .collect(),
        history,
        blocks,
    };
    let in_bytes = || Bytes::new(id.key, waiting);
    let encodes = id.history.is_some() || id.encoding.is_on();
    Ok(match (id.trusts_digests(), encodes) {
        (false, false) => with_objects::<DigestTag, _, _>(nand, &id, found, NoEncoder, never)?,
        (true, false) => with_objects::<Digest, _, _>(nand, &id, found, NoEncoder, never)?,
        (false, true) => with_objects::<DigestTag, _, _>(nand, &id, found, in_bytes(), safe)?,
        (true, true) => with_objects::<Digest, _, _>(nand, &id, found, in_bytes(), safe)?,
    })
}

/// What a recovery found of a volume with objects.
struct FoundObjects {
    map: Vec<u32>,
    placed: Placed,
    /// The encoded values in the journal.
    values: Vec<JournalValue>,
    history: Option<History>,
    blocks: RestoredBlocks,
}

fn never(_: &JournalValue) -> Never {
    unreachable!("nothing is encoded on this volume")
}

/// A value that stands in the journal.
fn safe(value: &JournalValue) -> Arc<PackedValue> {
    let value = PackedValue::stored(value.head, &value.bytes);
    value.note_safe();
    Arc::new(value)
}

fn with_objects<C, M, E>(
    nand: Nand<M>,
    id: &Identity,
    found: FoundObjects,
    encoder: E,
    value: impl Fn(&JournalValue) -> E::Encoded,
) -> Result<Box<dyn Layer<M>>, VolumeError>
where
    C: Kept + 'static,
    M: Medium + 'static,
    E: Encoder<C, StoredUnit> + Send + 'static,
    E::Encoded: Send,
{
    let Placed {
        objects: rows,
        packs,
        in_journal,
        ..
    } = found.placed;
    let alive = alive(&found.map, &found.history, &rows);
    let named = |handle: &u32| alive[*handle as usize];
    let handles = (0..rows.len() as u32).filter(named);
    let mut objects: Vec<RestoredObject<C>> = handles
        .clone()
        .map(|handle| {
            let row = &rows[handle as usize];
            RestoredObject {
                handle,
                location: match row.packed {
                    Some(_) => Ppn::NONE,
                    None => row.location,
                },
                content: C::of(row.digest),
            }
        })
        .collect();
    let packed = handles.filter_map(|handle| {
        let row = &rows[handle as usize];
        let packed = row.packed?;
        let journal = in_journal.get(&handle).map(|&n| &found.values[n as usize]);
        let slots = packs.get(row.location.index()).and_then(Option::as_ref);
        let slot = slots.and_then(|p| p.slots.get(usize::from(packed.slot)).copied());
        Some(RestoredPacked {
            slot: slot.unwrap_or(Slot {
                object: handle,
                lpn: journal.map_or(0, |value| value.head.lpn),
                length: packed.length,
            }),
            base: packed.base,
            place: match journal {
                Some(journal) => RestoredPlace::Ram(value(journal)),
                None => RestoredPlace::Page(row.location.0),
            },
        })
    });
    let packed = packed.collect();
    // The index keeps the youngest.
    objects.sort_by_key(|o| rows[o.handle as usize].birth);
    let policies = Policies {
        dedup: dedup_options(id),
        delta: delta_options(id),
        versions: versions_options(id),
        encoder,
    };
    let restored = Restored {
        map: &found.map,
        objects: &objects,
        packed,
        packs,
        history: found.history,
        blocks: &found.blocks,
    };
    let ftl = DedupFtl::restore(nand, ftl_options(id), policies, NoCensus, restored)?;
    Ok(Box::new(WithObjects { ftl }))
}

/// By handle, whether something refers to an object.
fn alive(map: &[u32], history: &Option<History>, rows: &[ObjectRow]) -> Vec<bool> {
    let mut alive = vec![false; rows.len()];
    let kept = history.iter().flat_map(History::objects);
    for handle in map.iter().copied().chain(kept) {
        let Some(row) = rows.get(handle as usize) else {
            continue;
        };
        alive[handle as usize] = true;
        if let Some(packed) = row.packed
            && packed.base != NO_OBJECT
        {
            alive[packed.base as usize] = true;
        }
    }
    alive
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
