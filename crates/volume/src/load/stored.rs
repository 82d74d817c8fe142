//! Loading root and tables of a checkpoint from their store.

use std::ops::Range;

use flashlore_content::history::{ChainsAt, PinnedInstant, VersionEntry};
use flashlore_flash::{ObjectId, PackId, QueueAt, Row as _};
use flashlore_medium::Medium;
use flashlore_metadata::{MetadataError, Row, Stored, StoredPage, UnreadPage};

use super::missing::MissingPages;
use super::spilled::{SpilledCounts, spilled};
use super::{Tables, of_store, old_kept, old_version, pin, refuse_disorder, stamped};
use crate::error::VolumeError;
use crate::format::cursor::Reader;
use crate::format::superblock::{
    FIRST_WITH_LIVE_HISTORY, FIRST_WITH_LIVE_PACKS, FIRST_WITH_TALLIES,
};
use crate::format::{
    Areas, BlockRow, HistoryRoot, Identity, MapRow, Note, ObjectRow, Root, RowId, Table, pack_of,
};

/// Either root, if it holds.
pub(super) fn roots(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
) -> Result<[Option<Root>; 2], VolumeError> {
    let roots = Stored::roots(medium, areas.store, id.key).map_err(of_store)?;
    Ok(roots.map(|stored| stored.and_then(|stored| Root::decode(stored.commit(), stored.user()))))
}

/// The rows of a checkpoint. Its counts of slots are not looked at.
///
/// # Errors
/// The store has other tables, or the medium failed.
pub(crate) fn of_checkpoint<'a>(
    medium: &'a dyn Medium,
    id: &'a Identity,
    areas: &Areas,
    root: &Root,
) -> Result<Rows<'a>, VolumeError> {
    let roots = Stored::roots(medium, areas.store, id.key).map_err(of_store)?;
    let mut stored = roots.into_iter().flatten();
    let stored = stored.find(|stored| stored.commit() == root.checkpoint);
    let stored = stored.filter(|stored| stored.tables().eq(Table::shapes(id)));
    let stored = stored.ok_or_else(|| {
        VolumeError::Damaged("its store has other tables than the volume".to_string())
    })?;
    Ok(Rows {
        stored,
        id,
        missing: None,
    })
}

/// Reads the tables of a checkpoint.
pub(super) fn tables(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<Tables, VolumeError> {
    let rows = of_checkpoint(medium, id, areas, root)?;
    rows.stored.check_counts().map_err(of_store)?;
    let mut loaded = beside(&rows, root)?;
    rows.history(root, &mut loaded)?;
    loaded.map = vec![MapRow::NONE; id.exported as usize];
    rows.each(Table::Map, |row, fields| {
        loaded.map[row.index()] = MapRow::decode(&mut Reader::new(fields));
    })?;
    // What was never in use takes no memory.
    rows.each(Table::Objects, |row, fields| {
        loaded.objects.resize(row.index(), ObjectRow::NONE);
        loaded.objects.push(ObjectRow::decode(id, fields));
    })?;
    loaded.packs = vec![None; Table::Packs.rows(id) as usize];
    let used = root.tallies.packs.numbers;
    let has_used = id.version >= FIRST_WITH_LIVE_PACKS;
    rows.each(Table::Packs, |row, fields| {
        if !has_used || row.0 < used {
            loaded.packs[row.index()] = pack_of(id, PackId(row.0), fields);
        }
    })?;
    for &table in Table::all(id).iter().filter(|table| table.is_found_anew()) {
        rows.each(table, |_, _| {})?;
    }
    Ok(loaded)
}

/// Reads the tables of a checkpoint but for those of the translation layer, of which there are the spilled counts.
pub(super) fn beside_rows(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<(Tables, SpilledCounts), VolumeError> {
    let rows = of_checkpoint(medium, id, areas, root)?;
    let all = ObjectId(0)..ObjectId::NONE;
    let spilled = spilled(&rows, root.tallies.spilled, all)?;
    Ok((beside(&rows, root)?, spilled))
}

fn beside(rows: &Rows<'_>, root: &Root) -> Result<Tables, VolumeError> {
    let id = rows.id;
    let mut loaded = Tables {
        blocks: vec![BlockRow::decode(&mut Reader::new(&[])); id.blocks as usize],
        ..Tables::default()
    };
    rows.each(Table::Blocks, |row, fields| {
        loaded.blocks[row.index()] = BlockRow::decode(&mut Reader::new(fields));
    })?;
    if id.version >= FIRST_WITH_TALLIES {
        loaded.valid = vec![0; Table::Valid.rows(id) as usize];
        rows.each(Table::Valid, |row, bytes| {
            loaded.valid[row.index()] = u64::decode(bytes);
        })?;
    }
    loaded.pins = rows.pins(root)?.0;
    rows.refuse_unwritten(root)?;
    let notes = rows.in_use(Table::Notes, RowId(0), root.history.notes, Note::decode)?;
    let notes: Option<Vec<Note>> = notes.into_iter().collect();
    let none = || VolumeError::Damaged("a row of the notes is none".to_string());
    loaded.notes = notes.ok_or_else(none)?;
    // Of pins and notes the rows in use were read. A page above others that has rotted would end the next checkpoint.
    for &table in Table::all(id).iter().filter(|table| !table.is_live()) {
        rows.stored.check_above(table.id()).map_err(of_store)?;
    }
    Ok(loaded)
}

/// A row, or rows that were never written, and what each of them holds; or rows of which nothing can be read.
pub(crate) enum Stretch<'a> {
    Row(RowId, &'a [u8]),
    Unwritten(Range<u32>, &'a [u8]),
    Missing(Range<u32>),
}

impl Stretch<'_> {
    /// Which of these rows it is, from one to another.
    fn rows_in(&self, wanted: &Range<u32>) -> (u32, u32) {
        let (start, end) = match self {
            Stretch::Row(row, _) => (row.0, row.0 + 1),
            Stretch::Unwritten(rows, _) | Stretch::Missing(rows) => (rows.start, rows.end),
        };
        (start.max(wanted.start), end.min(wanted.end))
    }
}

/// The rows of a store.
pub(crate) struct Rows<'a> {
    pub stored: Stored<'a>,
    pub id: &'a Identity,
    /// Where pages are noted that cannot be read, and passed over; otherwise one ends whatever needs it.
    pub missing: Option<&'a MissingPages<'a>>,
}

impl<'a> Rows<'a> {
    /// The same, which passes over pages that cannot be read.
    pub fn passing_over(self, missing: &'a MissingPages<'a>) -> Self {
        Rows {
            missing: Some(missing),
            ..self
        }
    }

    /// Whether a page of one of these tables was passed over.
    pub fn lacks(&self, tables: &[Table]) -> bool {
        self.missing.is_some_and(|missing| missing.lacks(tables))
    }

    /// Those rows of a table that lie in pages that were ever written, in order.
    pub fn each(&self, table: Table, take: impl FnMut(RowId, &[u8])) -> Result<(), VolumeError> {
        self.each_of(table, 0..table.rows(self.id), take)
    }

    /// All of these rows of a table that are not missing, in order; those of pages that were never written as they begin.
    pub fn each_row(
        &self,
        table: Table,
        wanted: Range<u32>,
        mut take: impl FnMut(RowId, &[u8]),
    ) -> Result<(), VolumeError> {
        self.each_row_or_gap(table, wanted, |stretch| match stretch {
            Stretch::Row(row, bytes) => take(row, bytes),
            Stretch::Unwritten(rows, begins) => {
                rows.for_each(|row| take(RowId(row), begins));
            }
            Stretch::Missing(_) => {}
        })
    }

    /// The same, where all rows from one to another that were never written come at once, as those do that are missing.
    pub fn each_row_or_gap(
        &self,
        table: Table,
        wanted: Range<u32>,
        mut take: impl FnMut(Stretch<'_>),
    ) -> Result<(), VolumeError> {
        let shape = table.shape(self.id);
        let begins = vec![shape.empty.byte(); shape.row_bytes.into()];
        let mut next = wanted.start;
        self.each_stretch(table, wanted.clone(), |stretch| {
            let (start, end) = stretch.rows_in(&wanted);
            if start < end {
                if next < start {
                    take(Stretch::Unwritten(next..start, &begins));
                }
                take(match stretch {
                    Stretch::Missing(_) => Stretch::Missing(start..end),
                    other => other,
                });
                next = end;
            }
        })?;
        if next < wanted.end {
            take(Stretch::Unwritten(next..wanted.end, &begins));
        }
        Ok(())
    }

    /// The same of pages that have any of these rows.
    pub fn each_of(
        &self,
        table: Table,
        wanted: Range<u32>,
        mut take: impl FnMut(RowId, &[u8]),
    ) -> Result<(), VolumeError> {
        self.each_stretch(table, wanted, |stretch| {
            if let Stretch::Row(row, bytes) = stretch {
                take(row, bytes);
            }
        })
    }

    /// The rows of pages that have any of these, and pages that are missing, each whole.
    fn each_stretch(
        &self,
        table: Table,
        wanted: Range<u32>,
        mut take: impl FnMut(Stretch<'_>),
    ) -> Result<(), VolumeError> {
        let shape = table.shape(self.id);
        let mut take_page = |page: Result<&StoredPage<'_>, UnreadPage>| {
            let page = match self.missing {
                None => page?,
                Some(missing) => match missing.usable(page) {
                    Ok(page) => page,
                    Err(rows) => {
                        take(Stretch::Missing(rows));
                        return Ok(());
                    }
                },
            };
            if page.node.level == 0 {
                let rows = page.rows().chunks_exact(shape.row_bytes.into());
                for (row, bytes) in (page.first_row(&shape).0..shape.rows).zip(rows) {
                    take(Stretch::Row(RowId(row), bytes));
                }
            }
            Ok::<_, MetadataError>(())
        };
        let rows = Row(wanted.start)..Row(wanted.end);
        let read = self.stored.each_page(table.id(), rows, &mut take_page);
        read.map_err(of_store)
    }

    /// So many rows of a table from one on; after the last comes the first.
    fn in_use<T>(
        &self,
        table: Table,
        first: RowId,
        count: u32,
        mut decode: impl FnMut(&mut Reader<'_>) -> T,
    ) -> Result<Vec<T>, VolumeError> {
        let rows = table.rows(self.id);
        refuse_more_rows(table, rows, first, count)?;
        let mut found: Vec<Option<T>> = (0..count).map(|_| None).collect();
        let mut take = |row: RowId, fields: &[u8]| {
            let after_first =
                (u64::from(row) + u64::from(rows) - u64::from(first)) % u64::from(rows);
            if let Some(place) = found.get_mut(after_first as usize) {
                *place = Some(decode(&mut Reader::new(fields)));
            }
        };
        // The others may be what nobody needs any more.
        let end = first.0.saturating_add(count);
        self.each_of(table, first.0..end.min(rows), &mut take)?;
        if end > rows {
            self.each_of(table, 0..end - rows, &mut take)?;
        }
        let found: Option<Vec<T>> = found.into_iter().collect();
        found.ok_or_else(|| unwritten(table))
    }

    /// The pinned instants, each with the rows that it had among those kept up to version 8.
    pub fn pins(&self, root: &Root) -> Result<(Vec<PinnedInstant>, Vec<u32>), VolumeError> {
        let pins = self.in_use(Table::Pins, RowId(0), root.history.pins, pin)?;
        let (pins, counts): (Vec<PinnedInstant>, Vec<u32>) = pins.into_iter().unzip();
        refuse_disorder(&[], &pins)?;
        Ok((pins, counts))
    }

    /// The entries of the history, in the window and kept behind it.
    fn history(&self, root: &Root, loaded: &mut Tables) -> Result<(), VolumeError> {
        if self.id.version >= FIRST_WITH_LIVE_HISTORY {
            loaded.versions = self.chain(Table::Versions, &root.history.window)?;
            loaded.kept = self.chain(Table::Kept, &root.history.kept)?;
            for entries in [&mut loaded.versions, &mut loaded.kept] {
                refuse_disorder(entries, &[])?;
                entries.retain(|entry| !entry.is_gap());
            }
            return Ok(());
        }
        let QueueAt { row, len, .. } = root.history.window.queue;
        loaded.versions = self.in_use(Table::Versions, RowId(row), len, old_version)?;
        refuse_disorder(&loaded.versions, &[])?;
        let (pins, counts) = self.pins(root)?;
        let all = counts.iter().map(|&count| u64::from(count)).sum::<u64>();
        let all = u32::try_from(all).unwrap_or(u32::MAX);
        let kept = self.in_use(Table::Kept, RowId(0), all, old_kept)?;
        loaded.kept = stamped(&pins, &counts, kept);
        Ok(())
    }

    /// Refuses a history whose newest entries were never written, or ended after the checkpoint. Of the others nothing is read
    /// yet.
    fn refuse_unwritten(&self, root: &Root) -> Result<(), VolumeError> {
        if self.id.version < FIRST_WITH_LIVE_HISTORY {
            return Ok(());
        }
        let HistoryRoot { window, kept, .. } = root.history;
        for (table, at) in [(Table::Versions, window), (Table::Kept, kept)] {
            let (QueueAt { row, len, .. }, rows) = (at.queue, table.rows(self.id));
            if len > 0 {
                let last = (u64::from(row) + u64::from(len - 1)) % u64::from(rows.max(1));
                let stamps = self.in_use(table, RowId(last as u32), 1, |row| row.u64())?;
                if stamps.iter().any(|&stamp| stamp > root.stamp) {
                    return Err(VolumeError::Damaged(
                        "the history goes on after its checkpoint".to_string(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// The entries in a queue, gaps included.
    pub fn chain(&self, table: Table, at: &ChainsAt) -> Result<Vec<VersionEntry>, VolumeError> {
        let mut entries = Vec::new();
        self.each_entry(table, at, |entry| entries.push(entry))?;
        Ok(entries)
    }

    /// The same, one after the other.
    pub fn each_entry(
        &self,
        table: Table,
        at: &ChainsAt,
        mut take: impl FnMut(VersionEntry),
    ) -> Result<(), VolumeError> {
        let QueueAt { row, len, .. } = at.queue;
        let rows = table.rows(self.id);
        refuse_more_rows(table, rows, RowId(row), len)?;
        let end = u64::from(row) + u64::from(len);
        let around = end.saturating_sub(rows.into()) as u32;
        let mut found = 0;
        for part in [row..end.min(rows.into()) as u32, 0..around] {
            self.each_of(table, part.clone(), |row, bytes| {
                if part.contains(&row.0) {
                    found += 1;
                    take(VersionEntry::decode(bytes));
                }
            })?;
        }
        match found == len || self.lacks(&[table]) {
            true => Ok(()),
            false => Err(unwritten(table)),
        }
    }
}

/// Refuses more rows of a table in use than it has.
fn refuse_more_rows(table: Table, rows: u32, first: RowId, count: u32) -> Result<(), VolumeError> {
    match count > rows || (count > 0 && first.0 >= rows) {
        false => Ok(()),
        true => Err(VolumeError::Damaged(format!(
            "the root names {count} rows of {table} from {first} on, there are {rows}"
        ))),
    }
}

fn unwritten(table: Table) -> VolumeError {
    VolumeError::Damaged(format!("a row of {table} is in use and was never written"))
}
