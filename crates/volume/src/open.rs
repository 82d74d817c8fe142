//! Making a volume, and opening one: load, scan, replay, and the durable opening of an epoch.

use std::collections::HashSet;
use std::sync::Arc;

use flashlore_medium::{AlignedBuf, Medium};

use crate::dirty::DirtyPages;
use crate::error::{NandError, VolumeError};
use crate::format::superblock::{MOST_EPOCHS, SUPERBLOCK_BYTES, VERSION};
use crate::format::{Areas, HistoryRoot, Identity, Root, Superblock, Table, TableSlot};
use crate::image::{Recovery, check_alignment, read_image};
use crate::load;
use crate::replay::{Lost, NOWHERE};
use crate::restore::layer;
use crate::superblocks::{open_epoch, write_superblock};
use crate::tables::TableStore;
use crate::volume::Volume;

pub use crate::superblocks::rebuild_superblocks;

/// How long a recovery may take, against how often checkpoints are taken: events that program a page
/// between two checkpoints. 2^18 pages are 1 GiB to scan.
pub const CHECKPOINT_AFTER: u64 = 1 << 18;

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
