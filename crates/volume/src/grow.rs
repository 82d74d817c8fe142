//! A volume that grows, or gets the present format: more pages shown, more blocks, more entries of index and history, a longer journal.
//!
//! The flash pages stay where they are, the metadata do not: the volume is opened as it is, and its next checkpoint goes to
//! a store of tables with the new sizes, in a part of the medium where neither flash pages nor the present metadata lie
//! ([`Areas::grown`]). Once that is durable the superblock says where it is, and how large the volume is. Until then the
//! volume is as it was, with its journal, and everything is there then: a power loss leaves the old size or the
//! new one. The space of the old metadata goes to the flash pages, or to metadata again.
//!
//! Invariants: what happens before both superblocks name the new place is in the old journal; a root or a batch of a
//! journal that an earlier growth left in the new place is gone before the superblock names it.

use std::sync::Arc;

use flashlore_medium::{AlignedBuf, Medium};

use crate::error::VolumeError;
use crate::format::superblock::{SUPERBLOCK_BYTES, VERSION};
use crate::format::{Areas, Identity, Naming, Root, Superblock};
use crate::image::{Recovery, read_image};
use crate::memory::MemoryShares;
use crate::open::create_store;
use crate::superblocks::write_superblock;
use crate::tables::TableStore;
use crate::volume::Volume;

/// A growth that was found possible.
#[derive(Debug, Clone)]
pub struct Growth {
    identity: Identity,
    areas: Areas,
}

impl Growth {
    /// How the volume with this superblock becomes the one with this identity.
    ///
    /// # Errors
    /// Something would become less, anything but sizes would change, or no volume can have this identity.
    pub fn plan(superblock: &Superblock, identity: Identity) -> Result<Growth, VolumeError> {
        let from = &superblock.identity;
        refuse_less(from, &identity)?;
        let identity = Identity {
            version: VERSION,
            ..identity
        };
        let before = Areas::at(from, superblock.metadata)?;
        let areas = Areas::grown(&identity, &before)?;
        Ok(Growth { identity, areas })
    }

    /// How the volume with this superblock, of an older format version, becomes one of the present version.
    ///
    /// # Errors
    /// No volume can have this identity.
    pub fn upgrade(superblock: &Superblock) -> Result<Growth, VolumeError> {
        let from = &superblock.identity;
        let before = Areas::at(from, superblock.metadata)?;
        let identity = Identity {
            version: VERSION,
            ..from.clone()
        };
        let areas = Areas::grown(&identity, &before)?;
        Ok(Growth { identity, areas })
    }

    /// Bytes the medium needs.
    pub fn bytes(&self) -> u64 {
        self.areas.len
    }

    /// Opens the volume and takes its next checkpoint in the new place. Answers what the opening found.
    ///
    /// # Errors
    /// The medium is too small or fails, or the volume is damaged. The volume has its old size then, or the new one if
    /// the medium failed at the very end.
    pub fn carry_out(self, medium: impl Medium + 'static) -> Result<Recovery, VolumeError> {
        let medium: Arc<dyn Medium> = Arc::new(medium);
        if medium.len() < self.areas.len {
            return Err(VolumeError::TooSmall {
                found: medium.len(),
                needed: self.areas.len,
            });
        }
        let mut image = read_image(&medium)?;
        if image.state.placed.is_renamed && image.superblock.identity.naming() == Naming::ByHandle {
            // What goes into the old journal from here on names objects.
            drop(Volume::open(Arc::clone(&medium))?);
            image = read_image(&medium)?;
        }
        let old = image.areas.clone();
        let last = image.root.checkpoint;
        let tables = self.new_tables(&medium, &image.root)?;
        let (mut volume, recovery) = Volume::open_image(
            Arc::clone(&medium),
            image,
            tables,
            (MemoryShares::default(), None),
        )?;
        let superblock = volume.superblock.clone();
        // What waits is programmed, and what collection has freed goes back, while all of it is in the old journal.
        volume.settle()?;
        volume.checkpoint_into(self.areas.clone())?;
        drop(volume);
        // The root that the new store began with has no rows: nobody may fall back on it.
        let nothing = AlignedBuf::zeroed(self.areas.store.root_bytes());
        medium.write(self.areas.store.root(last), &nothing)?;
        medium.sync()?;
        let superblock = Superblock {
            identity: self.identity,
            metadata: self.areas.metadata,
            in_use: false,
            ..superblock
        };
        write_superblock(&medium, &self.areas, superblock)?;
        // The volume has grown. What this cannot give back stays taken until it is used again.
        let _ = medium.discard(old.metadata, old.len - old.metadata);
        Ok(recovery)
    }

    /// A store in the new place, as large as it is to be; neither a root nor the start of a journal stays there of metadata
    /// that lay there before.
    fn new_tables(&self, medium: &Arc<dyn Medium>, last: &Root) -> Result<TableStore, VolumeError> {
        let start = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
        for either in 0..2 {
            medium.write(self.areas.journal(either), &start)?;
        }
        let (id, areas) = (&self.identity, &self.areas);
        create_store(medium, id, areas, last)?;
        let MemoryShares { tables, .. } = MemoryShares::default();
        TableStore::open(Arc::clone(medium), id, areas, last.checkpoint, tables)
    }
}

fn refuse_less(from: &Identity, to: &Identity) -> Result<(), VolumeError> {
    let entries = |id: &Identity| u64::from(id.history.map_or(0, |history| history.entries));
    let sizes = |id: &Identity| {
        [
            ("pages", u64::from(id.exported)),
            ("blocks", u64::from(id.blocks)),
            ("entries of the index", u64::from(id.index_entries)),
            ("entries of the history", entries(id)),
            ("bytes of a journal segment", id.journal_bytes),
        ]
    };
    for ((what, from), (_, to)) in sizes(from).into_iter().zip(sizes(to)) {
        if to < from {
            return Err(VolumeError::Shrinks { what, from, to });
        }
    }
    let mut same = to.clone();
    same.version = from.version;
    same.exported = from.exported;
    same.blocks = from.blocks;
    same.index_entries = from.index_entries;
    same.journal_bytes = from.journal_bytes;
    if let (Some(history), Some(from)) = (&mut same.history, from.history) {
        history.entries = from.entries;
    }
    match same == *from {
        true => Ok(()),
        false => Err(VolumeError::AnotherVolume),
    }
}
