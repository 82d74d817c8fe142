//! The translation layer over what a recovery found.

use std::collections::BTreeMap;
use std::sync::Arc;

use flashlore_content::history::History;
use flashlore_content::{Digest, DigestTag, NoCensus, NoEncoder};
use flashlore_flash::{BlockId, Flash, Lpn, Note, ObjectId, Owner, PackId, Ppn};
use flashlore_ftl::content::Policies;
use flashlore_ftl::content::bytes::{Restored, RestoredInRam};
use flashlore_ftl::content::parts::{EncodedOf, Of, Parts, Past, Present};
use flashlore_ftl::core::restore::{RestoredBlock, RestoredBlocks, RestoredState, RestoredUnits};
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::mapping::direct::Direct;
use flashlore_ftl::mapping::objects::{FoundObject, FoundPack, FoundPlace, ObjectChanges, Objects};
use flashlore_ftl::mapping::packs::{Packs, Slot};
use flashlore_ftl::mapping::tallies::Tallies;
use flashlore_ftl::{ContentDevice, PlainFtl};
use flashlore_medium::Medium;
use flashlore_metadata::StoredTables;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dirty::DirtyPages;
use crate::encoder::Bytes;
use crate::error::VolumeError;
use crate::format::journal::JournalValue;
use crate::format::superblock::VERSION;
use crate::format::{
    BlockRow, BlockState, Identity, MapRow, ObjectNote, ObjectPlace, ObjectRow, PackedRow, RowId,
    Table,
};
use crate::image::Image;
use crate::layer::{Kept, Layer, OnMedium, Plain, WithObjects};
use crate::nand::{BlockLife, Found, Nand};
use crate::policies::{dedup_options, encoding_options, ftl_options, versions_options};
use crate::replay::{PlacedRows, Replayed, ReplayedHistory, brought_into, copied_into};
use crate::scan::ActiveBlock;
use crate::values::{PackedValue, SharedWaiting};

/// The translation layer over what was found.
pub(crate) fn layer(
    medium: Arc<dyn Medium>,
    mut image: Image,
    (epoch, index_entries): (u32, u32),
    tables: StoredTables<ObjectNote>,
) -> Result<Box<dyn Layer>, VolumeError> {
    let id = image.superblock.identity.clone();
    let blocks = restored_blocks(&image);
    let mut programmed = DirtyPages::of(Table::Blocks, &id);
    for &block in image.active.keys() {
        programmed.mark(block);
    }
    let valid = changed_words(&id, &image.state);
    let waiting = SharedWaiting::default();
    let found = Found {
        epoch,
        sequence: image.state.sequence,
        since: image.root.sequence,
        position: image.tail.position,
        lives: lives(&image),
        tables,
        young: std::mem::take(&mut image.state.young),
        programs: image.recovery.units.div_ceil(id.units_per_page.into()),
        window: image.state.history.as_ref().map_or(0, History::oldest),
        window_noted: image.state.window,
        waiting: waiting.clone(),
        programmed,
        valid,
    };
    let nand = Nand::new(medium, id.clone(), image.areas, image.geometry, found);
    let tallies = image.root.tallies;
    if !id.has_objects() {
        return plain(nand, &id, image.state, blocks, tallies);
    }
    let values = image.tail.batches.into_iter().flat_map(|b| b.values);
    let values: Vec<JournalValue> = values.collect();
    let found = Recovered {
        index_entries,
        state: image.state,
        blocks,
        tallies,
        filled: match id.version < VERSION {
            true => 0,
            false => tallies.packs.filled,
        },
        values,
    };
    if !keeps_values(&id) {
        return match id.trusts_digests() {
            false => with_objects::<Now<DigestTag>>(nand, &id, found, NoEncoder, |_| Vec::new()),
            true => with_objects::<Now<Digest>>(nand, &id, found, NoEncoder, |_| Vec::new()),
        };
    }
    let encoder = Bytes::new(&id, nand.tables(), waiting);
    match id.trusts_digests() {
        false => with_objects::<All<DigestTag>>(nand, &id, found, encoder, Recovered::in_ram),
        true => with_objects::<All<Digest>>(nand, &id, found, encoder, Recovered::in_ram),
    }
}

/// Rows of valid units that are not as the checkpoint has them: all where it is not known.
fn changed_words(id: &Identity, state: &Replayed) -> DirtyPages<RowId> {
    let mut changed = DirtyPages::of(Table::Valid, id);
    if state.valid_before.is_empty() {
        changed.mark_all(Table::Valid, id);
    }
    let words = state.valid.iter().zip(&state.valid_before);
    for (word, _) in (0..).zip(words).filter(|(_, (now, before))| now != before) {
        changed.mark(RowId(word));
    }
    changed
}

/// The layer without objects.
fn plain(
    nand: Nand,
    id: &Identity,
    state: Replayed,
    blocks: RestoredBlocks,
    tallies: Tallies,
) -> Result<Box<dyn Layer>, VolumeError> {
    let tables = nand.tables();
    let mut owners = Vec::new();
    let mut own = |lpn: u32, row: MapRow| {
        let unit = row.is_some().then(|| row.as_unit());
        owners.extend(unit.map(|unit| (unit, Owner::page(Lpn(lpn)))));
    };
    let (map, stored) = match &state.changes {
        Some(changes) => {
            let mut map = Direct::new(&tables, id.exported);
            let mut stored = i64::from(tallies.stored);
            for (lpn, row) in changes.map.rows() {
                let before = map.replace(Lpn(lpn as u32), row.as_unit());
                stored += i64::from(row.is_some()) - i64::from(before.is_some());
                own(lpn as u32, row);
            }
            (map, stored.max(0) as u64)
        }
        None => {
            let rows = state.map.iter().map(|row| row.as_unit());
            let map = Direct::restore(&tables, rows);
            for (lpn, &row) in (0..).zip(&state.map) {
                own(lpn, row);
            }
            (map, owners.len() as u64)
        }
    };
    let units = RestoredUnits {
        valid: state.valid,
        owners,
    };
    let ftl = PlainFtl::restore(nand, ftl_options(id), map, &blocks, units)?;
    Ok(Box::new(Plain { ftl, stored }))
}

/// Whether the translation layer has the parts for encoded values and old versions.
fn keeps_values(id: &Identity) -> bool {
    id.history.is_some() || id.encoding.is_on()
}

/// The parts of a volume that deduplicates and nothing else.
type Now<C> = Of<C, Nand, NoCensus, Resident, NoEncoder, Present>;
/// The parts of a volume that may encode values and keep old versions.
type All<C> = Of<C, Nand, NoCensus, Resident, Bytes, Past>;

/// Map and objects in the tables of a volume.
type ObjectsIn<C> = Objects<C, StoredTables<ObjectNote>>;
/// Packed pages in the tables of a volume.
type PacksIn<C> = Packs<EncodedOf<C>, StoredTables<ObjectNote>>;

/// An object that was found.
type FoundIn<T> = FoundObject<<T as Parts>::Content, ObjectNote>;

/// What a volume has in its tables.
struct InTables<T: OnMedium> {
    objects: ObjectsIn<T::Content>,
    packs: PacksIn<T>,
    /// What is counted of the objects.
    tallies: Tallies,
    /// Whose units are of which the tables may not know it.
    owners: Vec<(Ppn, Owner)>,
}

/// What a recovery found of a volume with objects.
struct Recovered {
    /// Most entries of the fingerprint index.
    index_entries: u32,
    state: Replayed,
    blocks: RestoredBlocks,
    /// What the checkpoint counts.
    tallies: Tallies,
    /// Packed pages that were ever filled when it was taken.
    filled: u64,
    /// Encoded values of the journal.
    values: Vec<JournalValue>,
}

impl Recovered {
    /// The values that are encoded and in no packed page, by handle.
    fn in_ram(&self) -> Vec<RestoredInRam<Arc<PackedValue>>> {
        let placed = &self.state.placed;
        let mut handles: Vec<ObjectId> = placed.in_journal.keys().copied().collect();
        handles.sort_unstable();
        let in_ram = handles.into_iter().filter_map(|handle| {
            let row = match &self.state.changes {
                Some(changes) => changes.objects.get(handle.index()),
                None => placed.objects.get(handle.index()).copied(),
            };
            let packed = row?.packed()?;
            let value = &self.values[placed.in_journal[&handle].index()];
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

    /// The rows of the checkpoint with what has become of them.
    fn changed<T: OnMedium>(
        &self,
        changes: &PlacedRows,
        mut objects: ObjectsIn<T::Content>,
        mut packs: PacksIn<T>,
    ) -> InTables<T> {
        let state = &self.state;
        let made: FxHashSet<ObjectId> = state.placed.made.values().copied().collect();
        let row = |handle: ObjectId| Some((handle, changes.objects.get(handle.index())?));
        let changed = state.placed.changed.iter().copied().filter_map(row);
        let mut owners = Vec::new();
        let (mut new, mut moved) = (Vec::new(), Vec::new());
        let mut seen = FxHashSet::default();
        for (handle, row) in changed.filter(|(handle, _)| seen.insert(*handle)) {
            let found = found_object(handle, &row);
            owners.extend(own_unit(&found));
            match made.contains(&handle) {
                true => new.push(found),
                false => moved.push(found),
            }
        }
        let map = changes.map.rows();
        let map = map.map(|(lpn, row)| (Lpn(lpn as u32), row.as_object()));
        let changes = ObjectChanges {
            map: map.collect(),
            made: new,
            moved,
            kept: state.kept.clone(),
            kept_made: state.kept_made.clone(),
            packs: state.placed.new_packs.clone(),
        };
        let (tallies, numbers) = objects.apply(&mut packs, &changes, &self.tallies);
        let packed = numbers.into_iter().zip(&state.placed.new_packs);
        owners.extend(packed.map(|(pack, found)| (found.location, Owner::pack(pack))));
        InTables {
            objects,
            packs,
            tallies,
            owners,
        }
    }

    /// Everything that was gone through: tables that are written as far as they differ, what is counted of them, and whose
    /// units are.
    fn as_a_whole<T: OnMedium>(
        &self,
        tables: &StoredTables<ObjectNote>,
        most: u32,
        bits: u32,
    ) -> InTables<T> {
        let Replayed {
            map,
            placed,
            history,
            ..
        } = &self.state;
        let map: Vec<ObjectId> = map.iter().map(|row| row.as_object()).collect();
        let filled = self.filled.max(placed.packs.len() as u64);
        let (found_packs, numbers) = placed.numbered(filled).unwrap_or_default();
        let alive = alive(&map, history, &placed.objects);
        let rows = (0..).map(ObjectId).zip(&placed.objects).zip(alive);
        let found: Vec<FoundIn<T>> = rows
            .filter(|(_, is_alive)| *is_alive)
            .map(|((handle, row), _)| with_number(found_object(handle, row), &numbers))
            .collect();
        let kept = history.iter().flat_map(History::objects);
        let objects = Objects::restore(tables, &map, most, bits, &found, kept);
        let named = found.iter().filter_map(|found| {
            let FoundPack::Numbered(pack) = found.pack()? else {
                return None;
            };
            let (_, length) = found.note.slot()?;
            let is_live = found.base().is_some() && objects.references(found.handle) > 0;
            Some((pack, length, is_live))
        });
        let filled = filled + numbers.len() as u64;
        let packs = Packs::restore(tables, &found_packs, named, filled);
        let count = |is: &dyn Fn(&FoundIn<T>) -> bool| {
            found.iter().filter(|found| is(found)).count() as u32
        };
        let tallies = Tallies {
            stored: objects.live(),
            referenced: count(&|found| objects.references(found.handle) > 0),
            packed: count(&|found| found.pack().is_some()),
            pinned: count(&|found| objects.is_pinned_alone(found.handle)),
            spilled: objects.spilled(),
            packs: packs.tallies(),
        };
        let whole = found.iter().filter_map(own_unit);
        let on_flash = (0..).map(PackId).zip(&found_packs);
        let on_flash =
            on_flash.filter_map(|(pack, at)| Some((at.as_ref()?.location, Owner::pack(pack))));
        let owners = whole.chain(on_flash).collect();
        InTables {
            objects,
            packs,
            tallies,
            owners,
        }
    }
}

/// By handle, whether something refers to an object.
fn alive(map: &[ObjectId], history: &Option<ReplayedHistory>, rows: &[ObjectRow]) -> Vec<bool> {
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

/// An object with this row.
fn found_object<C: Kept>(handle: ObjectId, row: &ObjectRow) -> FoundObject<C, ObjectNote> {
    let place = match row.place {
        ObjectPlace::Unit(unit) => FoundPlace::Unit(unit),
        ObjectPlace::Packed(PackedRow { pack, base, .. }) => FoundPlace::Packed { pack, base },
    };
    FoundObject {
        handle,
        place,
        content: C::of(row.digest),
        note: row.note(),
    }
}

/// The same, where packed pages that were found have these numbers.
fn with_number<C, N>(mut found: FoundObject<C, N>, numbers: &[PackId]) -> FoundObject<C, N> {
    if let FoundPlace::Packed { pack, .. } = &mut found.place
        && let FoundPack::New(at) = *pack
        && let Some(&number) = numbers.get(at as usize)
    {
        *pack = FoundPack::Numbered(number);
    }
    found
}

/// The unit of an object that has one alone, and whose it is.
fn own_unit<C, N>(found: &FoundObject<C, N>) -> Option<(Ppn, Owner)> {
    match found.place {
        FoundPlace::Unit(unit) => Some((unit, Owner::object(found.handle))),
        FoundPlace::Packed { .. } => None,
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
    found: Recovered,
    encoder: T::Encoder,
    in_ram: impl FnOnce(&Recovered) -> Vec<RestoredInRam<EncodedOf<T>>>,
) -> Result<Box<dyn Layer>, VolumeError>
where
    T: OnMedium + 'static,
    ContentDevice<T>: Send,
{
    let options = ftl_options(id);
    let policies = Policies {
        dedup: dedup_options(id, found.index_entries),
        encoding: encoding_options(id),
        versions: versions_options(id),
        encoder,
    };
    let (most, bits) = ContentDevice::<T>::most_and_bits(&nand, &options, &policies);
    let tables = nand.tables();
    let InTables {
        objects,
        packs,
        tallies,
        owners,
    } = match &found.state.changes {
        Some(changes) => {
            let objects = Objects::stored(&tables, id.exported, most, bits, &found.tallies);
            let packs = Packs::stored(&tables, found.tallies.packs);
            found.changed::<T>(changes, objects, packs)
        }
        None => found.as_a_whole::<T>(&tables, most, bits),
    };
    let in_ram = in_ram(&found);
    let is_whole = found.state.changes.is_none();
    let state = found.state;
    let history = match state.history {
        Some(history) if is_whole => Some(copied_into(&tables, id, &history)),
        Some(history) => Some(brought_into(&tables, id, history)?),
        None => None,
    };
    let restored = Restored {
        objects,
        tallies,
        in_ram,
        packs,
        history,
        blocks: found.blocks,
        units: RestoredUnits {
            valid: state.valid,
            owners,
        },
    };
    let ftl = ContentDevice::<T>::restore(nand, options, policies, NoCensus, restored)?;
    Ok(Box::new(WithObjects { ftl }))
}

/// The blocks that go on: of each stream the one opened last.
fn newest_open(active: &BTreeMap<BlockId, ActiveBlock>) -> Vec<BlockId> {
    let mut newest: FxHashMap<u8, (u64, BlockId)> = Default::default();
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
