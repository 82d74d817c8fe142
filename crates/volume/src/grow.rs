//! A volume that grows, or gets the present format: more pages shown, more blocks, more entries of index and history, a longer journal.
//!
//! The flash pages stay where they are, the metadata do not: a checkpoint is taken, and its tables are written anew
//! with the new sizes to a part of the medium where neither flash pages nor the present metadata lie
//! ([`Areas::grown`]). Once all of it is durable the superblock says where it is, and how large the volume is. Nothing
//! of the volume has been changed until then, and everything is there then: a power loss leaves the old size or the
//! new one. The space of the old metadata goes to the flash pages, or to metadata again.
//!
//! Invariants: no byte of the old volume is written before both superblocks name the new one; a root or a batch of a
//! journal that an earlier growth left in the new place is gone before the superblock names it.

use std::sync::Arc;

use flashlore_medium::{AlignedBuf, Medium};

use crate::error::VolumeError;
use crate::format::cursor::Writer;
use crate::format::superblock::{SUPERBLOCK_BYTES, VERSION};
use crate::format::tables::{
    PAYLOAD, SLOTS_PER_DIRECTORY, TABLE_PAGE_BYTES, check_of, encode_page, sum,
};
use crate::format::{
    Areas, HistoryRoot, Identity, PageInTable, Root, RowId, Superblock, Table, TablePage, TableSlot,
};
use crate::image::Recovery;
use crate::load;
use crate::superblocks::write_superblock;
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

    /// Opens the volume, takes a checkpoint, and moves it over. Answers what the opening found.
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
        let (mut volume, recovery) = Volume::open_any(Arc::clone(&medium))?;
        // What collection has freed goes back now.
        volume.flush()?;
        volume.checkpoint()?;
        drop(volume);
        let superblock = load::superblock(&medium)?;
        let from = OldCheckpoint::load(&medium, &superblock)?;
        Target::new(&medium, &self, from.root.checkpoint + 1).write(&from)?;
        medium.sync()?;
        let old = from.areas;
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

/// The checkpoint that moves. Nothing has happened since.
struct OldCheckpoint<'a> {
    medium: &'a dyn Medium,
    id: &'a Identity,
    areas: Areas,
    root: Root,
    slots: Vec<TableSlot>,
}

impl<'a> OldCheckpoint<'a> {
    fn load(medium: &'a dyn Medium, superblock: &'a Superblock) -> Result<Self, VolumeError> {
        let id = &superblock.identity;
        let areas = Areas::at(id, superblock.metadata)?;
        let root = load::root(medium, &areas, &id.key)?;
        let tail = load::journal(medium, id, &areas, &root)?;
        if load::entries(&tail).next().is_some() {
            return Err(VolumeError::Damaged(
                "something happened to it after the checkpoint it was to grow from".to_string(),
            ));
        }
        let mut checks = vec![0; (areas.table_pages + areas.directories) as usize];
        let slots = load::slots(medium, id, &areas, &root, &mut checks)?;
        Ok(OldCheckpoint {
            medium,
            id,
            areas,
            root,
            slots,
        })
    }

    /// Space for the checks of what is read.
    fn no_checks(&self) -> Vec<u32> {
        vec![0; (self.areas.table_pages + self.areas.directories) as usize]
    }

    fn rows<'b>(&'b self, checks: &'b mut [u32]) -> load::RowReader<'b> {
        load::RowReader {
            medium: self.medium,
            id: self.id,
            areas: &self.areas,
            slots: &self.slots,
            checks,
            buffer: AlignedBuf::zeroed(TABLE_PAGE_BYTES),
        }
    }

    /// Rows that pinned instants keep.
    fn kept_rows(&self) -> Result<u32, VolumeError> {
        let mut checks = self.no_checks();
        let pins = self.rows(&mut checks).pins(&self.root)?;
        Ok(pins.iter().map(|pin| pin.kept.len() as u32).sum())
    }

    /// The rows of a table page, if it was ever written.
    fn page<'b>(
        &self,
        table: Table,
        page: PageInTable,
        buffer: &'b mut AlignedBuf,
    ) -> Result<Option<&'b [u8]>, VolumeError> {
        let number = table.page(self.id, page);
        let slot = self.slots[number.index()];
        load::page(self.medium, self.id, &self.areas, number, slot, buffer)
    }
}

/// Metadata that are written from their start on.
struct Target<'a> {
    medium: &'a dyn Medium,
    id: &'a Identity,
    areas: &'a Areas,
    checkpoint: u64,
    slots: Vec<TableSlot>,
    /// By table page, then by directory.
    checks: Vec<u32>,
    /// The first slot that is free.
    free: TableSlot,
    buffer: AlignedBuf,
}

impl<'a> Target<'a> {
    fn new(medium: &'a dyn Medium, growth: &'a Growth, checkpoint: u64) -> Self {
        Target {
            medium,
            id: &growth.identity,
            areas: &growth.areas,
            checkpoint,
            slots: vec![TableSlot::NONE; growth.areas.table_pages as usize],
            checks: vec![0; (growth.areas.table_pages + growth.areas.directories) as usize],
            free: TableSlot(0),
            buffer: AlignedBuf::zeroed(TABLE_PAGE_BYTES),
        }
    }

    fn write(mut self, from: &OldCheckpoint<'_>) -> Result<(), VolumeError> {
        self.forget_leftovers()?;
        let mut buffer = AlignedBuf::zeroed(TABLE_PAGE_BYTES);
        for table in Table::ALL {
            if table == Table::Versions {
                self.versions(from)?;
                continue;
            }
            for page in table.each_page(from.id) {
                if let Some(rows) = from.page(table, page, &mut buffer)? {
                    self.copy(table, page, from.id, rows)?;
                }
            }
        }
        let directories = self.directories()?;
        let history = HistoryRoot {
            first: RowId(0),
            ..from.root.history
        };
        let root = Root {
            checkpoint: self.checkpoint,
            history,
            sum: sum(
                self.id,
                &history,
                from.kept_rows()?,
                &self.slots,
                &directories,
                &self.checks,
            ),
            directories,
            ..from.root.clone()
        };
        let at = self.areas.root(self.checkpoint);
        let mut bytes = AlignedBuf::zeroed(self.areas.root_bytes as usize);
        root.encode(&self.id.key, at, &mut bytes);
        Ok(self.medium.write(at, &bytes)?)
    }

    /// Neither a root nor the start of a journal stays of metadata that lay here before.
    fn forget_leftovers(&self) -> Result<(), VolumeError> {
        let root = AlignedBuf::zeroed(self.areas.root_bytes as usize);
        let start = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
        for either in 0..2 {
            self.medium.write(self.areas.root(either), &root)?;
            self.medium.write(self.areas.journal(either), &start)?;
        }
        Ok(())
    }

    /// A page with the same rows, and no more of them in use.
    fn copy(
        &mut self,
        table: Table,
        page: PageInTable,
        before: &Identity,
        rows: &[u8],
    ) -> Result<(), VolumeError> {
        let mut payload = [0; PAYLOAD];
        payload.copy_from_slice(rows);
        if table == Table::Map {
            // In a page that is written an unused row would name the first unit or object.
            let used = table.rows(before) - page.0 * table.rows_per_page(before);
            let used = used as usize * table.row_bytes(before);
            payload[used.min(PAYLOAD)..].fill(0xFF);
        }
        self.put(table.page(self.id, page), &payload)
    }

    /// The rows of the history from the first row on: its ring has become longer.
    fn versions(&mut self, from: &OldCheckpoint<'_>) -> Result<(), VolumeError> {
        let mut checks = from.no_checks();
        let versions = from.rows(&mut checks).versions(&from.root)?;
        let per_page = Table::Versions.rows_per_page(self.id) as usize;
        let pages = Table::Versions.each_page(self.id);
        for (page, rows) in pages.zip(versions.chunks(per_page)) {
            let mut payload = [0; PAYLOAD];
            let mut out = Writer::new(&mut payload);
            for &(lpn, object, stamp) in rows {
                out.u32(lpn.0).u32(object.0).u64(stamp);
            }
            self.put(Table::Versions.page(self.id, page), &payload)?;
        }
        Ok(())
    }

    /// Writes the directories; answers their slots.
    fn directories(&mut self) -> Result<Vec<TableSlot>, VolumeError> {
        let mut directories = Vec::new();
        for directory in 0..self.areas.directories {
            let first = (directory * SLOTS_PER_DIRECTORY) as usize;
            let last = (first + SLOTS_PER_DIRECTORY as usize).min(self.slots.len());
            let listed = &self.slots[first..last];
            if listed.iter().all(|slot| !slot.is_some()) {
                directories.push(TableSlot::NONE);
                continue;
            }
            let mut payload = [0; PAYLOAD];
            let mut out = Writer::new(&mut payload);
            for &slot in listed {
                out.u32(slot.0);
            }
            let number = TablePage(self.areas.table_pages + directory);
            directories.push(self.next(number, &payload)?);
        }
        Ok(directories)
    }

    /// Writes a table page.
    fn put(&mut self, number: TablePage, payload: &[u8; PAYLOAD]) -> Result<(), VolumeError> {
        self.slots[number.index()] = self.next(number, payload)?;
        Ok(())
    }

    /// Writes a page to the next slot; answers which.
    fn next(
        &mut self,
        number: TablePage,
        payload: &[u8; PAYLOAD],
    ) -> Result<TableSlot, VolumeError> {
        let slot = self.free;
        self.free.0 += 1;
        let rows = |out: &mut [u8]| out.copy_from_slice(payload);
        let (key, checkpoint) = (&self.id.key, self.checkpoint);
        encode_page(key, slot, number, checkpoint, rows, &mut self.buffer);
        self.checks[number.index()] = check_of(&self.buffer);
        self.medium.write(self.areas.slot(slot), &self.buffer)?;
        Ok(slot)
    }
}
