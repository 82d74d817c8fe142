//! Loading what the last checkpoint holds: superblock, root, tables, and the journal that follows.
//!
//! | module | what it is |
//! |---|---|
//! | `stored` | the tables in their store |
//! | `missing` | pages of them that a check passes over |
//! | `old` | root and tables of versions 3 and 4 |
//! | `known` | the rows that a replay asks for, of either |
//! | `spilled` | counts of references that have no room in the rows of their objects |
//! | `journal` | the journal after the checkpoint |

use flashlore_content::PURGED;
use flashlore_content::history::{PinnedInstant, VersionEntry};
use flashlore_flash::{EntryNumber, Lpn, ObjectId};
use flashlore_ftl::mapping::packs::RestoredPack;
use flashlore_medium::{AlignedBuf, Medium};
use flashlore_metadata::{MetadataError, StoredTables};

use crate::error::VolumeError;
use crate::format::cursor::Reader;
use crate::format::superblock::{
    EPOCH_SHIFT, FIRST_WITH_STORE, SUPERBLOCK_BYTES, Unusable, VERSION,
};
use crate::format::{
    Areas, BlockRow, Identity, MapRow, Note, ObjectNote, ObjectRow, Root, Superblock, Table,
};

mod journal;
mod known;
mod missing;
mod old;
mod spilled;
mod stored;

pub use journal::{JournalTail, entries, journal};
pub(crate) use known::{Known, StoredRows};
pub(crate) use missing::MissingPages;
pub(crate) use spilled::{SpilledCounts, spilled};
pub(crate) use stored::{Rows, Stretch, of_checkpoint};

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
    /// Old versions in the window, oldest first, where they are gone through.
    pub versions: Vec<VersionEntry>,
    /// Those that are kept behind it, likewise.
    pub kept: Vec<VersionEntry>,
    /// The instants that they are kept for.
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

/// The same but for map, objects, packed pages and history, whose rows are read where they are asked for.
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
fn refuse_disorder(versions: &[VersionEntry], pins: &[PinnedInstant]) -> Result<(), VolumeError> {
    let falls = |pair: &[VersionEntry]| pair[0].stamp > pair[1].stamp;
    let why = if versions.windows(2).any(falls) {
        "the history is out of order"
    } else if pins
        .windows(2)
        .any(|pair| pair[0].instant >= pair[1].instant)
    {
        "the pinned instants are out of order"
    } else {
        return Ok(());
    };
    Err(VolumeError::Damaged(why.to_string()))
}

/// An entry of the history as it stood up to version 8.
fn old_version(row: &mut Reader<'_>) -> VersionEntry {
    VersionEntry {
        lpn: Lpn(row.u32()),
        object: ObjectId(row.u32()),
        stamp: row.u64(),
        older: EntryNumber::default(),
    }
}

/// One that is kept behind the window, likewise.
fn old_kept(row: &mut Reader<'_>) -> (Lpn, ObjectId) {
    (Lpn(row.u32()), ObjectId(row.u32()))
}

/// A pinned instant, and the rows that it had among those kept up to version 8.
fn pin(row: &mut Reader<'_>) -> (PinnedInstant, u32) {
    let (instant, flags) = (row.u64(), row.u32());
    let pinned = PinnedInstant {
        instant,
        snapshot: flags & 1 != 0,
        scheduled: flags & 2 != 0,
    };
    (pinned, row.u32())
}

/// What pinned instants keep, so many entries each, as entries of the history: anything between an instant and the next will
/// do for when they ended.
fn stamped(
    pins: &[PinnedInstant],
    counts: &[u32],
    kept: impl IntoIterator<Item = (Lpn, ObjectId)>,
) -> Vec<VersionEntry> {
    let mut kept = kept.into_iter();
    let entries = pins.iter().zip(counts).flat_map(|(pin, &count)| {
        let of_pin: Vec<(Lpn, ObjectId)> = kept.by_ref().take(count as usize).collect();
        of_pin.into_iter().map(|(lpn, object)| VersionEntry {
            stamp: pin.instant.saturating_add(1),
            lpn,
            object,
            older: EntryNumber::default(),
        })
    });
    entries.collect()
}

impl Tables {
    /// All old versions that were gone through.
    fn entries(&self) -> impl Iterator<Item = &VersionEntry> {
        self.versions.iter().chain(&self.kept)
    }

    /// What old versions refer to; all ones for no object.
    pub fn kept_objects(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.entries().map(|entry| entry.object)
    }

    /// Checksums hold, so only a program that is wrong can have written such rows.
    fn refuse_impossible(&self, id: &Identity, objects: usize) -> Result<(), VolumeError> {
        let is_there = |object: &ObjectId| object.index() < objects;
        // Of what a page held before it may be said that it was purged.
        let mapped = objects_of(&self.map).filter(|object| object.is_some());
        let kept = self.kept_objects().filter(|&object| object < PURGED);
        if id.has_objects()
            && let Some(object) = mapped.chain(kept).find(|object| !is_there(object))
        {
            return Err(VolumeError::Damaged(format!(
                "the map or the history names object {object}, there are {objects}"
            )));
        }
        let mut pages = self.entries().map(|entry| entry.lpn);
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

#[cfg(test)]
mod tests {
    use super::*;
    use flashlore_content::history::{History, HistoryOptions, Version};
    use flashlore_flash::InMemory;

    /// What two instants kept up to version 8 is what they keep.
    #[test]
    fn what_older_versions_kept_is_found_at_its_instant_alone() {
        let pin = |instant| PinnedInstant {
            instant,
            snapshot: true,
            scheduled: false,
        };
        let pins = [pin(10), pin(11)];
        let rows = [
            (Lpn(0), ObjectId(7)),
            (Lpn(1), ObjectId(8)),
            (Lpn(0), ObjectId(9)),
        ];
        let kept = stamped(&pins, &[2, 1], rows);
        let options = HistoryOptions::default();
        let none = std::iter::empty();
        let stands = (20, &pins[..]);
        let history = History::restore(&InMemory, 2, options, stands, none, kept.into_iter());
        history.check().unwrap();
        let at = |lpn, instant| history.at(Lpn(lpn), instant).unwrap();
        assert_eq!(at(0, 10), Version::Object(ObjectId(7)));
        assert_eq!(at(1, 10), Version::Object(ObjectId(8)));
        assert_eq!(at(0, 11), Version::Object(ObjectId(9)));
        assert_eq!(at(1, 11), Version::Current);
        assert_eq!(at(0, 20), Version::Current);
    }
}
