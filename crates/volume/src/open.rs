//! Making a volume, and opening one: load, scan, replay, and the durable opening of an epoch.

use std::sync::Arc;

use flashlore_flash::ObjectId;
use flashlore_ftl::mapping::tallies::Tallies;
use flashlore_medium::{AlignedBuf, Medium, MediumError};
use flashlore_metadata::{MetadataError, Store};
use rustc_hash::FxHashSet;

use crate::bounds::RecoveryBounds;
use crate::error::{NandError, VolumeError};
use crate::format::superblock::{MOST_EPOCHS, SUPERBLOCK_BYTES, VERSION};
use crate::format::{Areas, HistoryRoot, Identity, Root, Superblock, Table};
use crate::image::{Image, Recovery, check_alignment, checkpoint, read_rows};
use crate::load;
use crate::memory::MemoryShares;
use crate::replay::{Lost, NOWHERE, refuse_impossible};
use crate::restore::layer;
use crate::stored_index::StoredIndex;
use crate::superblocks::{next_epoch, write_superblock};
use crate::tables::TableStore;
use crate::volume::Volume;

pub use crate::superblocks::rebuild_superblocks;

/// Objects that are entered into the fingerprint index, and packed pages that are looked at, before a volume is open: a few
/// hundredths of a second. The others are while it serves.
const SEEN_AT_OPENING: u32 = 1 << 18;
/// The same of the index as it was kept: reads of sixteen pages, which have about as many entries.
const READS_AT_OPENING: u32 = 20;

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
    let root = Root {
        checkpoint: 1,
        epoch: 0,
        sequence: 0,
        stamp: id.created,
        history: HistoryRoot {
            oldest: id.created,
            ..HistoryRoot::default()
        },
        tallies: Tallies::default(),
    };
    create_store(medium, id, &areas, &root)?;
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

/// Makes the store of the tables, of which nothing is written yet, with a root.
pub(crate) fn create_store(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<(), MediumError> {
    let (commit, tables) = (root.checkpoint, Table::shapes(id));
    Store::create(
        medium,
        &areas.store,
        &id.key,
        commit,
        &tables,
        &root.encode(),
    )
}

impl Volume {
    /// Opens a volume, after a crash as after a clean end. Opens an epoch on the medium.
    ///
    /// # Errors
    /// There is no volume, it is damaged, or the medium fails.
    pub fn open(medium: impl Medium + 'static) -> Result<(Self, Recovery), VolumeError> {
        Self::open_within(medium, MemoryShares::default())
    }

    /// The same with so much of its tables and of its index in memory, or as much as it needs at least.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open_within(
        medium: impl Medium + 'static,
        memory: MemoryShares,
    ) -> Result<(Self, Recovery), VolumeError> {
        Self::open_keeping_index(medium, memory, None)
    }

    /// The same, and its fingerprint index is kept on a second medium while it is closed. That has
    /// [`stored_index_bytes`](crate::stored_index_bytes) and may hold anything: without what it should hold, the index is
    /// filled from the tables.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open_keeping_index(
        medium: impl Medium + 'static,
        memory: MemoryShares,
        index: Option<Arc<dyn Medium>>,
    ) -> Result<(Self, Recovery), VolumeError> {
        let medium: Arc<dyn Medium> = Arc::new(medium);
        let superblock = load::superblock(&medium)?;
        let id = superblock.identity.clone();
        if id.version < VERSION {
            return Err(VolumeError::OldVersion {
                found: id.version,
                known: VERSION,
            });
        }
        let (areas, root) = checkpoint(&medium, &superblock)?;
        let last = root.checkpoint;
        let room = memory.tables_at_opening;
        let tables = TableStore::open(Arc::clone(&medium), &id, &areas, last, room)?;
        let image = read_rows(&medium, superblock, (areas, root), tables.stored())?;
        refuse_impossible(&image.state.valid_before, &image.geometry, &image.rows)?;
        let crowded = image.superblock.epochs.len() > MOST_EPOCHS / 2;
        let is_renamed = image.state.placed.is_renamed;
        let (mut volume, recovery) = Self::open_image(medium, image, tables, (memory, index))?;
        if crowded || is_renamed {
            volume.checkpoint()?;
        }
        Ok((volume, recovery))
    }

    /// The volume of an image, with these tables, so much memory and where its index is kept. Opens an epoch of it.
    pub(crate) fn open_image(
        medium: Arc<dyn Medium>,
        mut image: Image,
        tables: TableStore,
        (memory, index): (MemoryShares, Option<Arc<dyn Medium>>),
    ) -> Result<(Self, Recovery), VolumeError> {
        let closed = image.recovery.closed.then_some(image.superblock.epoch);
        let (superblock, recovery) = (next_epoch(&image)?, image.recovery);
        let areas = image.areas.clone();
        // What was read may lie in a cache alone: the process before may have ended without a barrier.
        medium.sync()?;
        let stamp = image.state.stamp;
        let lost = std::mem::take(&mut image.state.lost);
        let notes = image.state.notes.clone();
        let bounds = RecoveryBounds::default();
        // How many rows such events changed is not counted again: one more begins with a checkpoint.
        let bulk_rows = if image.state.has_bulk { bounds.rows } else { 0 };
        let layer = layer(
            Arc::clone(&medium),
            image,
            (superblock.epoch, memory.index_entries),
            tables.stored(),
        )?;
        if let Some(error) = tables.stored().take_error() {
            return Err(load::of_store(error));
        }
        // What was needed to recover has gone.
        tables.grow(memory.tables);
        let stored_index = index.zip(layer.index()).and_then(|(medium, index)| {
            let key = superblock.identity.key;
            StoredIndex::new(medium, key, index, closed.map(u64::from))
        });
        let unindexed = layer.index().map(|_| ObjectId(0));
        let mut volume = Volume {
            layer,
            tables,
            superblock: superblock.clone(),
            notes,
            clock: None,
            stamp,
            bounds,
            bulk_rows,
            findings: Vec::new(),
            reported: FxHashSet::default(),
            stored_index,
            unindexed,
            has_unseen_packs: true,
            hidden: Vec::new(),
        };
        volume.look_around()?;
        // Nothing but pages of tables, to where nothing lies, is written before all that an opening reads has been read.
        volume.superblock = write_superblock(&medium, &areas, superblock)?;
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
        Ok((volume, recovery))
    }

    /// Looks at what is stored, as much as an opening has time for ([`Volume::look_at_rest`]). A page of the tables that does
    /// not hold hides what is in it from this, and does nothing else.
    fn look_around(&mut self) -> Result<(), VolumeError> {
        let before = self.table_failures();
        for _ in 0..READS_AT_OPENING {
            if let Some(pages) = self.index_pages_to_read() {
                self.take_index_pages(&pages.read());
            }
        }
        self.look_further(SEEN_AT_OPENING);
        if let Some(MetadataError::Medium(error)) = self.tables.stored().take_error() {
            return Err(error.into());
        }
        self.layer.core().flash().forgive_tables(before);
        Ok(())
    }
}
