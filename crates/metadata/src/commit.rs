//! What changed becomes durable under a new root.
//!
//! 1. [`Store::begin_commit`] writes the pages that have changed, then the counts of slots, and answers the root.
//! 2. The user makes that durable (a barrier of the medium).
//! 3. [`Store::write_root`], and a barrier.
//! 4. [`Store::end_commit`]: what the root before this one alone reached may be written.
//!
//! Between them rows may be changed; that belongs to the next commit. A power cut at any call leaves the state of this
//! root or of the one before.

use std::sync::Arc;

use flashlore_content::VolumeKey;
use flashlore_medium::{AlignedBuf, Medium, MediumError};

use crate::address::{Pointer, Shape};
use crate::area::Area;
use crate::cache::Cache;
use crate::error::MetadataError;
use crate::page::PAGE_BYTES;
use crate::root::{Root, RootTable};
use crate::space::CountsPlace;
use crate::store::Store;
use crate::stored::Stored;

/// Pages in memory beyond those on the paths of its tables.
const MORE_FRAMES: usize = 4;

/// A root that is to be written once what it reaches is durable.
#[derive(Debug)]
pub struct PendingRoot {
    /// Its bytes.
    pub bytes: AlignedBuf,
    /// Where on the medium they belong.
    pub at: u64,
}

impl Store {
    /// Slots that changes may take before a commit that is wanted begins.
    pub const SPARE_SLOTS: u32 = 32;

    /// Makes a store whose rows were never written: its first root has this number, which is not 0, these tables by kind,
    /// and these bytes of the user. What an earlier store left in its place counts no more. Nothing is durable yet.
    ///
    /// # Errors
    /// The medium failed.
    ///
    /// # Panics
    /// If the area has no room for so many tables or bytes.
    pub fn create(
        medium: &dyn Medium,
        area: &Area,
        key: &VolumeKey,
        commit: u64,
        tables: &[(u8, Shape)],
        user: &[u8],
    ) -> Result<(), MediumError> {
        let root = Root {
            commit,
            tables: { tables.iter() }
                .map(|&(kind, shape)| RootTable {
                    kind,
                    shape,
                    top: Pointer::NONE,
                })
                .collect(),
            counts: vec![CountsPlace::default(); area.count_pages() as usize],
            user: user.to_vec(),
        };
        let mut bytes = AlignedBuf::zeroed(area.root_bytes());
        medium.write(area.root(commit + 1), &bytes)?;
        root.encode(area, key, &mut bytes);
        medium.write(area.root(commit), &bytes)
    }

    /// Opens the store at its last durable root, with nothing in memory and room there for so many pages, or as many as it
    /// needs at least: those on a path to the top of each table but for the leaf, and a few more. Answers what the user put into the root.
    ///
    /// # Errors
    /// Neither root holds, counts of slots do not, or the medium failed.
    pub fn open(
        medium: Arc<dyn Medium>,
        area: Area,
        key: VolumeKey,
        frames: usize,
    ) -> Result<(Store, Vec<u8>), MetadataError> {
        let (root, space) = Stored::open(&*medium, area, key)?.into_parts()?;
        let paths = root.tables.iter().map(|table| table.shape.top());
        let least = paths.map(usize::from).sum::<usize>() + MORE_FRAMES;
        let store = Store {
            space,
            cache: Cache::new(frames.max(least)),
            tables: root.tables,
            commit: root.commit,
            committing: false,
            failed: false,
            judge: None,
            buffer: AlignedBuf::new(),
            medium,
            area,
            key,
        };
        Ok((store, root.user))
    }

    /// Writes everything that has changed; answers the root, which has these bytes of the user.
    ///
    /// # Errors
    /// No slot is free, or the medium failed.
    ///
    /// # Panics
    /// If the commit before has not ended.
    pub fn begin_commit(&mut self, user: &[u8]) -> Result<PendingRoot, MetadataError> {
        assert!(!self.committing, "one commit at a time");
        self.write_dirty(None)?;
        let commit = self.commit + 1;
        let mut page = AlignedBuf::zeroed(PAGE_BYTES);
        for (number, copy) in self.space.begin_commit() {
            let at = self.area.counts(number, copy);
            self.space
                .encode(number, copy, at, commit, &self.key, &mut page);
            self.put(at, &page)?;
        }
        self.commit = commit;
        self.committing = true;
        let root = Root {
            commit,
            tables: self.tables.clone(),
            counts: self.space.places().to_vec(),
            user: user.to_vec(),
        };
        let mut bytes = AlignedBuf::zeroed(self.area.root_bytes());
        root.encode(&self.area, &self.key, &mut bytes);
        Ok(PendingRoot {
            bytes,
            at: self.area.root(commit),
        })
    }

    /// Writes the root. What it reaches must be durable.
    ///
    /// # Errors
    /// The medium failed.
    pub fn write_root(&mut self, root: &PendingRoot) -> Result<(), MetadataError> {
        self.put(root.at, &root.bytes)
    }

    /// The root is durable.
    pub fn end_commit(&mut self) {
        self.committing = false;
        self.space.end_commit();
    }

    /// All phases of a commit, where nobody changes rows between them.
    ///
    /// # Errors
    /// As [`Store::begin_commit`].
    ///
    /// # Panics
    /// As [`Store::begin_commit`].
    pub fn commit_at_once(&mut self, user: &[u8]) -> Result<(), MetadataError> {
        let root = self.begin_commit(user)?;
        self.medium.sync()?;
        self.write_root(&root)?;
        self.medium.sync()?;
        self.end_commit();
        Ok(())
    }

    /// The number of the last commit that began.
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// Whether that is not known to be durable yet.
    pub fn is_committing(&self) -> bool {
        self.committing
    }
}
