//! Loading what the last checkpoint holds: superblock, root, tables, and the journal that follows.
//!
//! | module | what it is |
//! |---|---|
//! | `stored` | the tables in their store |
//! | `old` | root and tables of versions 3 and 4 |
//! | `known` | the rows that a replay asks for, of either |
//! | `counts` | what its tables say of each other, counted anew |
//! | `journal` | the journal after the checkpoint |

use flashlore_content::PURGED;
use flashlore_content::history::PinnedInstant;
use flashlore_flash::{Lpn, ObjectId};
use flashlore_ftl::mapping::packs::RestoredPack;
use flashlore_medium::{AlignedBuf, Medium};
use flashlore_metadata::{MetadataError, Stored, StoredTables};

use crate::error::VolumeError;
use crate::format::superblock::{
    EPOCH_SHIFT, FIRST_WITH_STORE, SUPERBLOCK_BYTES, Unusable, VERSION,
};
use crate::format::{
    Areas, BlockRow, Identity, MapRow, Note, ObjectNote, ObjectRow, Root, Superblock, Table,
};

mod counts;
mod journal;
mod known;
mod old;
mod stored;

pub use journal::{JournalTail, entries, journal};
pub(crate) use known::{Known, StoredRows};

/// Numbers beyond this are not reached by counting.
const MOST_NUMBER: u64 = 1 << 63;
/// The last epoch whose events can be numbered.
const MOST_EPOCH: u32 = (1 << (64 - EPOCH_SHIFT - 1)) - 1;

/// The tables of a checkpoint.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// Unit or object of every exported page.
    pub map: Vec<MapRow>,
    /// Objects by handle, up to the last page that was ever written; rows of free handles mean nothing.
    pub objects: Vec<ObjectRow>,
    /// Packed pages by number, those that hold something.
    pub packs: Vec<Option<RestoredPack>>,
    pub blocks: Vec<BlockRow>,
    /// Old versions, oldest first: page, object and stamp.
    pub versions: Vec<(Lpn, ObjectId, u64)>,
    /// Instants that are kept behind the window.
    pub pins: Vec<PinnedInstant>,
    /// Names, marks, purges, clocks.
    pub notes: Vec<Note>,
    /// A bit for each unit that is valid, the lowest first; nothing in versions that do not say it.
    pub valid: Vec<u64>,
}

/// Reads the superblock with the highest valid write number; where one copy is of another volume, the one that has a
/// root here.
///
/// # Errors
/// There is no volume, or not one this program can read.
pub fn superblock(medium: &dyn Medium) -> Result<Superblock, VolumeError> {
    if medium.len() < 2 * SUPERBLOCK_BYTES as u64 {
        return Err(VolumeError::NotAVolume);
    }
    let mut copies = Vec::new();
    let mut why = Vec::new();
    for copy in 0..2 {
        let mut bytes = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
        medium.read(copy * SUPERBLOCK_BYTES as u64, &mut bytes)?;
        let Some(bytes) = bytes.first_chunk() else {
            continue;
        };
        match Superblock::decode(bytes) {
            Ok(found) => copies.push(found),
            Err(reason) => why.push(reason),
        }
    }
    if let [first, second] = &copies[..]
        && first.identity.uuid != second.identity.uuid
    {
        // One of them is of another volume: there are no roots for it here.
        let own: Vec<Superblock> = copies
            .iter()
            .filter(|c| has_root(medium, c))
            .cloned()
            .collect();
        if !own.is_empty() {
            copies = own;
        }
    }
    let best = copies.into_iter().max_by_key(|copy| copy.write);
    if let Some(found) = &best
        && (found.write >= MOST_NUMBER || found.epoch >= MOST_EPOCH)
    {
        return Err(VolumeError::Damaged(
            "it has been opened more often than epochs can be numbered".to_string(),
        ));
    }
    best.ok_or_else(|| match why.as_slice() {
        [.., Unusable::Version(found)] | [Unusable::Version(found), ..] => VolumeError::Version {
            found: *found,
            known: VERSION,
        },
        [.., Unusable::Features(bits)] | [Unusable::Features(bits), ..] => {
            VolumeError::Features(*bits)
        }
        [.., Unusable::Broken] | [Unusable::Broken, ..] => {
            VolumeError::Damaged("no copy of the superblock is intact".to_string())
        }
        _ => VolumeError::NotAVolume,
    })
}

/// Whether a root holds of the volume that a superblock names.
fn has_root(medium: &dyn Medium, superblock: &Superblock) -> bool {
    let id = &superblock.identity;
    let areas = Areas::at(id, superblock.metadata);
    areas.is_ok_and(|areas| root(medium, id, &areas).is_ok())
}

/// Either root, if it holds: that of the even checkpoints first.
///
/// # Errors
/// The medium failed.
pub fn roots(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
) -> Result<[Option<Root>; 2], VolumeError> {
    match id.version < FIRST_WITH_STORE {
        true => old::roots(medium, id, areas),
        false => stored::roots(medium, id, areas),
    }
}

/// The newest root that holds.
///
/// # Errors
/// No root holds, or the medium failed.
pub fn root(medium: &dyn Medium, id: &Identity, areas: &Areas) -> Result<Root, VolumeError> {
    let possible = |root: &Root| root.checkpoint.max(root.sequence) < MOST_NUMBER;
    let roots = roots(medium, id, areas)?.into_iter().flatten();
    let newest = roots.filter(possible).max_by_key(|root| root.checkpoint);
    newest.ok_or_else(|| VolumeError::Damaged("no root of a checkpoint is intact".to_string()))
}

/// Reads the tables of a checkpoint.
///
/// # Errors
/// A page of them is broken, or what they hold cannot be.
pub fn tables(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<Tables, VolumeError> {
    let loaded = match id.version < FIRST_WITH_STORE {
        true => old::tables(medium, id, areas, root)?,
        false => stored::tables(medium, id, areas, root)?,
    };
    loaded.refuse_impossible(id, loaded.objects.len())?;
    Ok(loaded)
}

/// The same but for map, objects and packed pages, whose rows are read where they are asked for.
///
/// # Errors
/// As [`tables`].
pub(crate) fn over_rows(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
    live: StoredTables<ObjectNote>,
) -> Result<(Tables, StoredRows), VolumeError> {
    let (mut loaded, spilled) = stored::beside_rows(medium, id, areas, root)?;
    loaded.refuse_impossible(id, Table::Objects.rows(id) as usize)?;
    let valid = std::mem::take(&mut loaded.valid);
    let rows = StoredRows::new(id, root, live, spilled, valid);
    Ok((loaded, rows))
}

/// Counts anew how many pages and roots lead to each page of the tables, and what they say of each other.
///
/// # Errors
/// A count is not what it should be, or a page of counts does not hold.
pub(crate) fn recount(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
) -> Result<(), VolumeError> {
    if id.version < FIRST_WITH_STORE {
        return Ok(());
    }
    let stored = Stored::open(medium, areas.store, id.key).map_err(of_store)?;
    stored.recount().map_err(of_store)?;
    if id.version < VERSION {
        return Ok(());
    }
    let root = root(medium, id, areas)?;
    let tables = tables(medium, id, areas, &root)?;
    counts::check(medium, id, areas, &root, &tables)
}

/// What a store of tables says is what a volume says: its medium failed, or it is damaged.
pub(crate) fn of_store(error: MetadataError) -> VolumeError {
    match error {
        MetadataError::Medium(error) => error.into(),
        other => VolumeError::Damaged(other.to_string()),
    }
}

/// The rows of a map as objects, where they are those.
pub(crate) fn objects_of(map: &[MapRow]) -> impl Iterator<Item = ObjectId> + '_ {
    map.iter().map(|row| row.as_object())
}

/// Refuses what is out of order, and instants that are.
fn refuse_disorder(
    versions: &[(Lpn, ObjectId, u64)],
    pins: &[(u64, u32, u32)],
) -> Result<(), VolumeError> {
    let why = if versions.windows(2).any(|pair| pair[0].2 > pair[1].2) {
        "the history is out of order"
    } else if pins.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        "the pinned instants are out of order"
    } else {
        return Ok(());
    };
    Err(VolumeError::Damaged(why.to_string()))
}

impl Tables {
    /// What old versions refer to; all ones for no object.
    pub fn kept(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let window = self.versions.iter().map(|&(_, object, _)| object);
        let pinned = self.pins.iter().flat_map(|pin| &pin.kept);
        window.chain(pinned.map(|&(_, object)| object))
    }

    /// Checksums hold, so only a program that is wrong can have written such rows.
    fn refuse_impossible(&self, id: &Identity, objects: usize) -> Result<(), VolumeError> {
        let is_there = |object: &ObjectId| object.index() < objects;
        // Of what a page held before it may be said that it was purged.
        let mapped = objects_of(&self.map).filter(|object| object.is_some());
        let kept = self.kept().filter(|&object| object < PURGED);
        if id.has_objects()
            && let Some(object) = mapped.chain(kept).find(|object| !is_there(object))
        {
            return Err(VolumeError::Damaged(format!(
                "the map or the history names object {object}, there are {objects}"
            )));
        }
        let pages = self.versions.iter().map(|&(lpn, ..)| lpn);
        let pinned = self.pins.iter().flat_map(|pin| &pin.kept);
        let mut pages = pages.chain(pinned.map(|&(lpn, _)| lpn));
        if let Some(lpn) = pages.find(|&lpn| lpn >= Lpn(id.exported)) {
            return Err(VolumeError::Damaged(format!(
                "the history names page {lpn}, the volume has {}",
                id.exported
            )));
        }
        let long = |b: &BlockRow| b.taken > id.pages_per_block;
        if let Some(number) = self.blocks.iter().position(long) {
            return Err(VolumeError::Damaged(format!(
                "block {number} has more pages taken than the {} it has",
                id.pages_per_block
            )));
        }
        Ok(())
    }
}
