//! The translation layer over what a recovery found.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use flashlore_content::history::History;
use flashlore_content::{Digest, DigestTag, NoCensus, NoEncoder};
use flashlore_flash::{BlockId, Flash, ObjectId, Ppn};
use flashlore_ftl::content::Policies;
use flashlore_ftl::content::bytes::{Restored, RestoredInRam};
use flashlore_ftl::content::parts::{EncodedOf, Of, Past, Present};
use flashlore_ftl::core::restore::{RestoredBlock, RestoredBlocks, RestoredState};
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::mapping::direct::Direct;
use flashlore_ftl::mapping::objects::FoundObject;
use flashlore_ftl::mapping::packs::Slot;
use flashlore_ftl::{ContentDevice, PlainFtl};
use flashlore_medium::Medium;
use flashlore_metadata::StoredTables;

use crate::dirty::DirtyPages;
use crate::encoder::Bytes;
use crate::error::VolumeError;
use crate::format::journal::JournalValue;
use crate::format::{
    BlockRow, BlockState, Identity, MapRow, ObjectNote, ObjectPlace, ObjectRow, Table,
};
use crate::image::Image;
use crate::layer::{Kept, Layer, OnMedium, Plain, WithObjects};
use crate::nand::{BlockLife, Found, Nand};
use crate::place::Placed;
use crate::policies::{dedup_options, encoding_options, ftl_options, versions_options};
use crate::replay::Replayed;
use crate::scan::ActiveBlock;
use crate::values::{PackedValue, SharedWaiting};

/// The translation layer over what was found.
pub(crate) fn layer(
    medium: Arc<dyn Medium>,
    image: Image,
    epoch: u32,
    tables: StoredTables<ObjectNote>,
) -> Result<Box<dyn Layer>, VolumeError> {
    let id = image.superblock.identity.clone();
    let blocks = restored_blocks(&image);
    let mut programmed = DirtyPages::of(Table::Blocks, &id);
    for &block in image.active.keys() {
        programmed.mark(block);
    }
    let mut packed = DirtyPages::of(Table::Packs, &id);
    for &pack in &image.state.placed.changed_packs {
        packed.mark(pack);
    }
    let mut valid = DirtyPages::of(Table::Valid, &id);
    valid.mark_all(Table::Valid, &id);
    let waiting = SharedWaiting::default();
    let found = Found {
        epoch,
        sequence: image.state.sequence,
        since: image.root.sequence,
        position: image.tail.position,
        lives: lives(&image),
        tables,
        young: image.state.young,
        window: image.state.history.as_ref().map_or(0, History::oldest),
        window_noted: image.state.window,
        packed,
        waiting: waiting.clone(),
        programmed,
        valid,
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
        let stored = map.iter().filter(|row| row.is_some()).count() as u64;
        let map = Direct::restore(&nand.tables(), map.into_iter().map(MapRow::as_unit));
        let ftl = PlainFtl::restore(nand, options, map, &blocks)?;
        return Ok(Box::new(Plain { ftl, stored }));
    }
    let map: Vec<ObjectId> = map.into_iter().map(MapRow::as_object).collect();
    let found = FoundObjects {
        alive: alive(&map, &history, &placed.objects),
        map,
        placed,
        history,
        blocks,
    };
    if !keeps_values(&id) {
        return match id.trusts_digests() {
            false => with_objects::<Now<DigestTag>>(nand, &id, found, NoEncoder, Vec::new()),
            true => with_objects::<Now<Digest>>(nand, &id, found, NoEncoder, Vec::new()),
        };
    }
    let values = image.tail.batches.into_iter().flat_map(|b| b.values);
    let in_ram = found.in_ram(&values.collect::<Vec<_>>());
    let encoder = Bytes::new(&id, nand.tables(), waiting);
    match id.trusts_digests() {
        false => with_objects::<All<DigestTag>>(nand, &id, found, encoder, in_ram),
        true => with_objects::<All<Digest>>(nand, &id, found, encoder, in_ram),
    }
}

/// Whether the translation layer has the parts for encoded values and old versions.
fn keeps_values(id: &Identity) -> bool {
    id.history.is_some() || id.encoding.is_on()
}

/// The parts of a volume that deduplicates and nothing else.
type Now<C> = Of<C, Nand, NoCensus, Resident, NoEncoder, Present>;
/// The parts of a volume that may encode values and keep old versions.
type All<C> = Of<C, Nand, NoCensus, Resident, Bytes, Past>;

/// What a recovery found of a volume with objects.
struct FoundObjects {
    map: Vec<ObjectId>,
    placed: Placed,
    /// By handle, whether something refers to an object.
    alive: Vec<bool>,
    history: Option<History>,
    blocks: RestoredBlocks,
}

impl FoundObjects {
    /// The objects that something refers to.
    fn handles(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let handles = (0..self.alive.len() as u32).map(ObjectId);
        handles.filter(|handle| self.alive[handle.index()])
    }

    /// Those that are encoded and in no packed page; `values` are those of the journal.
    fn in_ram(&self, values: &[JournalValue]) -> Vec<RestoredInRam<Arc<PackedValue>>> {
        let Placed {
            objects,
            in_journal,
            ..
        } = &self.placed;
        let in_ram = self.handles().filter_map(|handle| {
            let packed = objects[handle.index()].packed()?;
            let value = &values[in_journal.get(&handle)?.index()];
            Some(RestoredInRam {
                slot: Slot {
                    object: handle,
                    lpn: value.head.lpn,
                    length: packed.length,
                },
                value: safe(value),
            })
        });
        in_ram.collect()
    }
}

/// A value that stands in the journal.
fn safe(value: &JournalValue) -> Arc<PackedValue> {
    let value = PackedValue::stored(value.head, &value.bytes);
    value.note_safe();
    Arc::new(value)
}

fn with_objects<T>(
    nand: Nand,
    id: &Identity,
    found: FoundObjects,
    encoder: T::Encoder,
    in_ram: Vec<RestoredInRam<EncodedOf<T>>>,
) -> Result<Box<dyn Layer>, VolumeError>
where
    T: OnMedium + 'static,
    ContentDevice<T>: Send,
{
    let rows = &found.placed.objects;
    let restored = found.handles().map(|handle| {
        let row = &rows[handle.index()];
        let (location, packed) = match row.place {
            ObjectPlace::Packed(packed) => (Ppn(packed.pack.0), Some(packed.base)),
            ObjectPlace::Unit(unit) => (unit, None),
        };
        FoundObject {
            handle,
            location,
            packed,
            content: T::Content::of(row.digest),
            note: row.note(),
        }
    });
    let mut objects: Vec<FoundObject<T::Content, ObjectNote>> = restored.collect();
    // The index keeps the youngest.
    objects.sort_by_key(|o| rows[o.handle.index()].write_seq);
    let policies = Policies {
        dedup: dedup_options(id),
        encoding: encoding_options(id),
        versions: versions_options(id),
        encoder,
    };
    let restored = Restored {
        map: &found.map,
        objects: &objects,
        in_ram,
        packs: found.placed.packs,
        history: found.history,
        blocks: &found.blocks,
    };
    let ftl = ContentDevice::<T>::restore(nand, ftl_options(id), policies, NoCensus, restored)?;
    Ok(Box::new(WithObjects { ftl }))
}

/// By handle, whether something refers to an object.
fn alive(map: &[ObjectId], history: &Option<History>, rows: &[ObjectRow]) -> Vec<bool> {
    let mut alive = vec![false; rows.len()];
    let kept = history.iter().flat_map(History::objects);
    for handle in map.iter().copied().chain(kept) {
        let Some(row) = rows.get(handle.index()) else {
            continue;
        };
        alive[handle.index()] = true;
        if let Some(base) = row.base() {
            alive[base.index()] = true;
        }
    }
    alive
}

/// The blocks that go on: of each stream the one opened last.
fn newest_open(active: &BTreeMap<BlockId, ActiveBlock>) -> Vec<BlockId> {
    let mut newest: HashMap<u8, (u64, BlockId)> = Default::default();
    for (&block, found) in active {
        let at = newest.entry(found.stream as u8).or_insert((0, block));
        *at = (*at).max((found.generation, block));
    }
    newest.into_values().map(|(_, block)| block).collect()
}

fn restored_blocks(image: &Image) -> RestoredBlocks {
    let open = newest_open(&image.active);
    let units = image.geometry.units_per_page();
    let state = |number: BlockId, row: &BlockRow| match image.active.get(&number) {
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
    let blocks: Vec<RestoredBlock> = { numbered(&image.rows) }
        .map(|(number, row)| RestoredBlock {
            erases: lives[number.index()].erases,
            state: state(number, row),
        })
        .collect();
    let mut sealing: Vec<BlockId> = numbered(&blocks)
        .filter(|(_, block)| block.state != RestoredState::Free)
        .map(|(number, _)| number)
        .collect();
    sealing.sort_by_key(|b| lives[b.index()].generation);
    RestoredBlocks { blocks, sealing }
}

fn lives(image: &Image) -> Vec<BlockLife> {
    let life = |(number, row): (BlockId, &BlockRow)| match image.active.get(&number) {
        Some(a) => BlockLife {
            generation: a.generation,
            erases: a.erases,
            taken: a.taken,
        },
        None => BlockLife {
            generation: row.generation,
            erases: row.erases,
            taken: row.taken,
        },
    };
    numbered(&image.rows).map(life).collect()
}

/// What there is of each block, with its number.
fn numbered<T>(blocks: &[T]) -> impl Iterator<Item = (BlockId, &T)> {
    (0..).map(BlockId).zip(blocks)
}
