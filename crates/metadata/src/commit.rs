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
use flashlore_medium::{AlignedBuf, Medium};

use crate::area::Area;
use crate::cache::Cache;
use crate::error::MetadataError;
use crate::page::PAGE_BYTES;
use crate::root::Root;
use crate::space::Space;
use crate::store::Store;

/// A root that is to be written once what it reaches is durable.
#[derive(Debug)]
pub struct PendingRoot {
    bytes: AlignedBuf,
    at: u64,
}

impl Store {
    /// Pages that the cache has at least: several paths from a leaf to the top, while one is changed.
    pub const LEAST_FRAMES: usize = 32;

    /// Without tables, and nothing in memory.
    fn new(
        medium: Arc<dyn Medium>,
        area: Area,
        key: VolumeKey,
        frames: usize,
        space: Space,
    ) -> Store {
        Store {
            space,
            cache: Cache::new(frames.max(Store::LEAST_FRAMES)),
            tables: Vec::new(),
            commit: 0,
            committing: false,
            failed: false,
            buffer: AlignedBuf::new(),
            medium,
            area,
            key,
        }
    }

    /// A store without tables, of which nothing is written before its first commit. Memory for so many pages,
    /// [`Store::LEAST_FRAMES`] at least.
    ///
    /// # Errors
    /// The roots of an earlier store cannot be overwritten.
    pub fn create(
        medium: Arc<dyn Medium>,
        area: Area,
        key: VolumeKey,
        frames: usize,
    ) -> Result<Store, MetadataError> {
        let zeros = AlignedBuf::zeroed(area.root_bytes());
        for parity in 0..2 {
            medium.write(area.root(parity), &zeros)?;
        }
        Ok(Store::new(
            medium,
            area,
            key,
            frames,
            Space::new(area.slots),
        ))
    }

    /// Opens the store at its last durable root; answers what the user put into that.
    ///
    /// # Errors
    /// Neither root holds, counts of slots do not, or the medium failed.
    pub fn open(
        medium: Arc<dyn Medium>,
        area: Area,
        key: VolumeKey,
        frames: usize,
    ) -> Result<(Store, Vec<u8>), MetadataError> {
        let mut bytes = AlignedBuf::zeroed(area.root_bytes());
        let mut last: Option<Root> = None;
        for parity in 0..2 {
            medium.read(area.root(parity), &mut bytes)?;
            let root = Root::decode(&area, &key, parity, &bytes);
            if root.as_ref().map(|root| root.commit) > last.as_ref().map(|root| root.commit) {
                last = root;
            }
        }
        let Some(root) = last else {
            return Err(MetadataError::Root(
                "neither root of the tables holds".to_string(),
            ));
        };
        let mut space = Space::new(area.slots);
        let mut page = AlignedBuf::zeroed(PAGE_BYTES);
        for (number, &place) in (0..).zip(&root.counts) {
            if let Some(copy) = place.copy() {
                let at = area.counts(number, copy);
                medium.read(at, &mut page)?;
                let restored = space.restore(number, place, at, &key, &page);
                restored.map_err(MetadataError::Root)?;
            }
        }
        let mut store = Store::new(medium, area, key, frames, space);
        store.tables = root.tables;
        store.commit = root.commit;
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
}
