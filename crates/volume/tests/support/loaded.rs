//! What lies on a medium, found by reading the format, not by opening the volume.

use std::ops::Range;

use flashlore_medium::{Medium, SECTOR};
use flashlore_metadata::{MetadataError, PAGE_BYTES, Row, Stored, StoredPage, UnreadPage};
use flashlore_volume::format::mark::{DurableMark, MARK_BYTES};
use flashlore_volume::format::{Areas, Batch, Identity, Root, Superblock, Table};
use flashlore_volume::{DumpParts, VolumeError, dump, load};

/// Everything of a volume but its pages.
pub struct Loaded {
    pub superblock: Superblock,
    pub areas: Areas,
    pub root: Root,
    pub tables: load::Tables,
    /// Where the pages of the tables lie, and those of the counts of their slots.
    pub table_pages: Vec<u64>,
    pub count_pages: Vec<u64>,
    pub tail: load::JournalTail,
    /// Where the mark lies, and what it says of this journal.
    pub mark_at: u64,
    pub mark: Option<DurableMark>,
}

/// The rows of a table that are in use.
fn in_use(id: &Identity, root: &Root, table: Table) -> Vec<Range<u32>> {
    let history = &root.history;
    let (first, count) = match table {
        Table::Versions => (history.window.queue.row, history.window.queue.len),
        Table::Kept => (history.kept.queue.row, history.kept.queue.len),
        Table::Pins => (0, history.pins),
        Table::Notes => (0, history.notes),
        _ => (0, table.rows(id)),
    };
    let (end, rows) = (first + count, table.rows(id));
    vec![first..end.min(rows), 0..end.saturating_sub(rows)]
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
        let root = load::root(medium, id, &areas)?;
        let tables = load::tables(medium, id, &areas, &root)?;
        let stored = Stored::open(medium, areas.store, id.key).expect("it has been read");
        let mut table_pages = Vec::new();
        for &table in Table::all(id) {
            for rows in in_use(id, &root, table) {
                let note = &mut |page: Result<&StoredPage<'_>, UnreadPage>| {
                    let page = page?;
                    let at = areas.store.slot(page.slot);
                    if !table_pages.contains(&at) {
                        table_pages.push(at);
                    }
                    Ok::<_, MetadataError>(())
                };
                let rows = Row(rows.start)..Row(rows.end);
                stored
                    .each_page(table.id(), rows, note)
                    .expect("so have they");
            }
        }
        let within = id.journal_bytes - MARK_BYTES;
        let mark_at = areas.journal(root.checkpoint + 1) + within;
        let mut sector = [0; SECTOR];
        medium.read(mark_at, &mut sector)?;
        let mark = DurableMark::decode(&sector, &id.key, within);
        Ok(Loaded {
            mark_at,
            mark: mark.filter(|mark| mark.checkpoint == root.checkpoint),
            tables,
            table_pages,
            count_pages: stored.counts_at().collect(),
            tail: load::journal(medium, id, &areas, &root)?,
            superblock,
            areas,
            root,
        })
    }

    /// The last event of which the medium tells that it was durable, if `struck` is not what tells it: batches of the
    /// journal and the mark that lie in these bytes tell nothing.
    pub fn durable_without(&self, struck: &Range<usize>) -> u64 {
        let is_struck =
            |at: u64, len: usize| at < struck.end as u64 && at + len as u64 > struck.start as u64;
        let alignment = self.superblock.identity.alignment as usize;
        let mut at = self.areas.journal(self.root.checkpoint);
        let batches = self.tail.batches.iter().filter_map(|batch| {
            let len = Batch::bytes(batch.entries.len(), batch.value_bytes(), alignment);
            let begin = at;
            at += len as u64;
            (!is_struck(begin, len)).then_some(batch.durable)
        });
        let mark = self.mark.filter(|_| !is_struck(self.mark_at, SECTOR));
        let opened = self.superblock.epochs.iter().map(|epoch| epoch.after);
        let all = batches.chain(mark.map(|mark| mark.durable)).chain(opened);
        all.fold(self.root.sequence, u64::max)
    }

    /// Where pages of the checkpoint's tables lie in `image`, whose tables these are, that hold the same part of the
    /// same table in `before`, of an earlier checkpoint: each of those holds by itself.
    pub fn older_tables(&self, image: &[u8], before: &[u8]) -> Vec<usize> {
        let key = &self.superblock.identity.key;
        let is_older = |&at: &usize| {
            let (now, then) = (&image[at..at + PAGE_BYTES], &before[at..at + PAGE_BYTES]);
            let slot = (at as u64 - self.areas.store.slot(flashlore_metadata::Slot(0)))
                / PAGE_BYTES as u64;
            let sum = key.checksum(slot, &[&then[..24], &then[32..]]);
            // Mark, kind, level and index.
            now != then && now[..12] == then[..12] && then[24..32] == sum.to_le_bytes()
        };
        let pages = self.table_pages.iter().map(|&at| at as usize);
        pages.filter(is_older).collect()
    }
}

/// The newest epoch in which something on the medium says that it was written, the superblocks apart: wherever it
/// lies, whether it counts or not.
///
/// # Errors
/// There is no volume.
pub fn newest_epoch(medium: &dyn Medium) -> Result<u32, VolumeError> {
    let parts = DumpParts {
        heads: true,
        tables: false,
        journal: true,
        records: true,
    };
    let mut shown = Vec::new();
    dump(medium, parts, &mut shown).expect("memory takes it, and there is a volume");
    let shown = String::from_utf8(shown).expect("a dump is text");
    let lines = shown.lines().filter(|line| !line.starts_with("superblock"));
    let epochs = lines.filter_map(|line| {
        let (_, after) = line.split_once(" epoch ")?;
        let digits = after.split(' ').next()?;
        Some(digits.parse().expect("an epoch is a number"))
    });
    let mark = Loaded::of(medium)?.mark.map(|mark| mark.epoch);
    Ok(epochs.chain(mark).max().unwrap_or(0))
}
