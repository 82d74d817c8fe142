//! What lies on a medium, found by reading the format, not by opening the volume.

use flashlore_medium::{Medium, SECTOR};
use flashlore_volume::format::mark::{MARK_BYTES, Mark};
use flashlore_volume::format::{Areas, Root, Superblock};
use flashlore_volume::{VolumeError, load};

/// Everything of a volume but its pages.
pub struct Loaded {
    pub superblock: Superblock,
    pub areas: Areas,
    pub root: Root,
    pub tables: load::Tables,
    pub tail: load::JournalTail,
    /// Where the mark lies, and what it says of this journal.
    pub mark_at: u64,
    pub mark: Option<Mark>,
}

impl Loaded {
    /// Loads it.
    ///
    /// # Errors
    /// Something of it does not hold.
    pub fn of(medium: &dyn Medium) -> Result<Loaded, VolumeError> {
        let superblock = load::superblock(medium)?;
        let id = &superblock.identity;
        let areas = Areas::at(id, superblock.metadata)?;
        let root = load::root(medium, &areas, &id.key)?;
        let within = id.journal_bytes - MARK_BYTES;
        let mark_at = areas.journal(root.checkpoint + 1) + within;
        let mut sector = [0; SECTOR];
        medium.read(mark_at, &mut sector)?;
        let mark = Mark::decode(&sector, &id.key, within);
        Ok(Loaded {
            mark_at,
            mark: mark.filter(|mark| mark.checkpoint == root.checkpoint),
            tables: load::tables(medium, id, &areas, &root)?,
            tail: load::journal(medium, id, &areas, &root)?,
            superblock,
            areas,
            root,
        })
    }

    /// The last event of which the medium tells that it was durable once.
    pub fn durable(&self) -> u64 {
        let opened = self.superblock.epochs.iter().map(|epoch| epoch.after);
        let batches = self.tail.batches.iter().map(|batch| batch.durable);
        let mark = self.mark.map(|mark| mark.durable);
        let all = opened.chain(batches).chain(mark);
        all.fold(self.root.sequence, u64::max)
    }
}
