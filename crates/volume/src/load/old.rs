//! Loading root and tables of a checkpoint of versions 3 and 4.

use flashlore_content::history::{PinnedInstant, VersionEntry};
use flashlore_flash::{PackId, QueueAt};
use flashlore_medium::{AlignedBuf, Medium};

use super::{Tables, old_kept, old_version, pin, refuse_disorder, stamped};
use crate::error::VolumeError;
use crate::format::cursor::Reader;
use crate::format::old::OldAreas;
use crate::format::old::root::OldRoot;
use crate::format::old::tables::{
    OldTable, SLOTS_PER_DIRECTORY, TABLE_PAGE_BYTES, TablePage, TableSlot, check_of, decode_page,
    object_row, sum,
};
use crate::format::{
    Areas, BlockRow, HistoryRoot, Identity, MapRow, Note, ObjectRow, PageInTable, Root, RowId,
    Table, pack_of,
};

fn old_roots(
    medium: &dyn Medium,
    id: &Identity,
    areas: &OldAreas,
) -> Result<[Option<OldRoot>; 2], VolumeError> {
    let mut bytes = AlignedBuf::zeroed(areas.root_bytes as usize);
    let mut read = |parity| -> Result<Option<OldRoot>, VolumeError> {
        let at = areas.root(parity);
        medium.read(at, &mut bytes)?;
        Ok(OldRoot::decode(&bytes, &id.key, at, areas.directories))
    };
    Ok([read(0)?, read(1)?])
}

/// Either root, if it holds.
pub(super) fn roots(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
) -> Result<[Option<Root>; 2], VolumeError> {
    let roots = old_roots(medium, id, &OldAreas::at(id, areas.metadata))?;
    Ok(roots.map(|root| root.map(|old| old.root)))
}

/// Reads the tables of a checkpoint.
pub(super) fn tables(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<Tables, VolumeError> {
    let areas = OldAreas::at(id, areas.metadata);
    let roots = old_roots(medium, id, &areas)?.into_iter().flatten();
    let mut roots = roots.filter(|old| old.root == *root);
    let old = roots
        .next()
        .ok_or_else(|| VolumeError::Damaged("no root of a checkpoint is intact".to_string()))?;
    OldTables::load(medium, id, &areas, &old)
}

/// The tables of a checkpoint, and where their pages lie.
struct OldTables {
    rows: Tables,
    /// Slot of every table page.
    slots: Vec<TableSlot>,
    /// By table page, then by directory: the check of those that were read.
    checks: Vec<u32>,
}

impl OldTables {
    fn load(
        medium: &dyn Medium,
        id: &Identity,
        areas: &OldAreas,
        old: &OldRoot,
    ) -> Result<Tables, VolumeError> {
        let mut checks = vec![0; (areas.table_pages + areas.directories) as usize];
        let slots = slots(medium, id, areas, old, &mut checks)?;
        let mut loaded = OldTables {
            rows: Tables::default(),
            slots,
            checks,
        };
        let mut buffer = AlignedBuf::zeroed(TABLE_PAGE_BYTES);
        for table in [Table::Map, Table::Objects, Table::Packs, Table::Blocks] {
            let end = match table {
                // What was never in use takes no memory.
                Table::Objects => loaded.end_of(id, table),
                _ => PageInTable(OldTable(table).pages(id)),
            };
            for within in (0..end.0).map(PageInTable) {
                let number = OldTable(table).page(id, within);
                let slot = loaded.slots[number.index()];
                let rows = page(medium, id, areas, number, slot, &mut buffer)?;
                loaded.take(table, id, within, rows);
                loaded.checks[number.index()] = check_of(&buffer);
            }
        }
        let OldTables {
            mut rows,
            slots,
            mut checks,
        } = loaded;
        let mut reader = RowReader {
            medium,
            id,
            areas,
            slots: &slots,
            checks: &mut checks,
            buffer,
        };
        rows.versions = reader.versions(&old.root)?;
        (rows.pins, rows.kept) = reader.pins(&old.root)?;
        rows.notes = reader.notes(&old.root)?;
        let loaded = OldTables {
            rows,
            slots,
            checks,
        };
        loaded.refuse_older_pages(id, old)?;
        Ok(loaded.rows)
    }

    /// Of the pages of a table the one behind the last that was ever written.
    fn end_of(&self, id: &Identity, table: Table) -> PageInTable {
        let first = OldTable(table).page(id, PageInTable(0)).index();
        let slots = &self.slots[first..first + OldTable(table).pages(id) as usize];
        let last = slots.iter().rposition(|slot| slot.is_some());
        PageInTable(last.map_or(0, |last| last as u32 + 1))
    }

    /// Each page holds by itself; the root says whether they are those of its checkpoint.
    fn refuse_older_pages(&self, id: &Identity, old: &OldRoot) -> Result<(), VolumeError> {
        let kept = self.rows.kept.len();
        let (slots, directories) = (&self.slots, &old.directories);
        let found = |history: &HistoryRoot| {
            let kept = kept as u32;
            sum(id, history, kept, slots, directories, &self.checks)
        };
        // Roots of older programs leave the notes out.
        let without_notes = HistoryRoot {
            notes: 0,
            ..old.root.history
        };
        let is_known = old.sum != 0;
        let holds = old.sum == found(&old.root.history) || old.sum == found(&without_notes);
        match !is_known || holds {
            true => Ok(()),
            false => Err(VolumeError::Damaged(format!(
                "the tables are not those of checkpoint {}: a page of them was replaced by an earlier one",
                old.root.checkpoint
            ))),
        }
    }

    /// Takes rows of a page, all of them empty if it was never written: no page is mapped, there are no objects, packed
    /// pages have no slots and blocks are free.
    fn take(&mut self, table: Table, id: &Identity, within: PageInTable, page: Option<&[u8]>) {
        let size = OldTable(table).row_bytes(id);
        let per_page = OldTable(table).rows_per_page(id);
        let rows = per_page.min(OldTable(table).rows(id) - within.0 * per_page);
        for n in 0..rows as usize {
            let bytes = page.map_or(&[][..], |page| &page[n * size..]);
            let mut row = Reader::new(bytes);
            match table {
                Table::Map if page.is_none() => self.rows.map.push(MapRow::NONE),
                Table::Map => self.rows.map.push(MapRow::decode(&mut row)),
                Table::Objects if page.is_none() => self.rows.objects.push(ObjectRow::NONE),
                Table::Objects => self.rows.objects.push(object_row(id, &mut row)),
                Table::Packs => {
                    let number = PackId(self.rows.packs.len() as u32);
                    self.rows.packs.push(pack_of(id, number, bytes));
                }
                _ => self.rows.blocks.push(BlockRow::decode(&mut row)),
            }
        }
    }
}

/// Reads the slots of all table pages.
fn slots(
    medium: &dyn Medium,
    id: &Identity,
    areas: &OldAreas,
    root: &OldRoot,
    checks: &mut [u32],
) -> Result<Vec<TableSlot>, VolumeError> {
    let mut buffer = AlignedBuf::zeroed(TABLE_PAGE_BYTES);
    let mut slots = Vec::with_capacity(areas.table_pages as usize);
    let directories = (areas.table_pages..).map(TablePage);
    for (directory, &slot) in directories.zip(&root.directories) {
        let count = SLOTS_PER_DIRECTORY.min(areas.table_pages - slots.len() as u32);
        let rows = page(medium, id, areas, directory, slot, &mut buffer)?;
        match rows {
            None => slots.extend((0..count).map(|_| TableSlot::NONE)),
            Some(rows) => {
                let mut fields = Reader::new(rows);
                slots.extend((0..count).map(|_| TableSlot(fields.u32())));
                checks[directory.index()] = check_of(&buffer);
            }
        }
    }
    Ok(slots)
}

/// Reads the rows of the history's tables that are in use.
struct RowReader<'a> {
    medium: &'a dyn Medium,
    id: &'a Identity,
    areas: &'a OldAreas,
    slots: &'a [TableSlot],
    /// By table page.
    checks: &'a mut [u32],
    buffer: AlignedBuf,
}

impl RowReader<'_> {
    /// So many rows of a table from one on; after the last comes the first.
    fn read(
        &mut self,
        table: Table,
        first: RowId,
        count: u32,
        mut take: impl FnMut(&mut Reader<'_>),
    ) -> Result<(), VolumeError> {
        let what = table;
        let table = OldTable(table);
        let rows = table.rows(self.id);
        if count > rows || (count > 0 && first.0 >= rows) {
            return Err(VolumeError::Damaged(format!(
                "the root names {count} rows of {what:?} from {first} on, there are {rows}"
            )));
        }
        let per_page = table.rows_per_page(self.id);
        let (mut row, mut left) = (first.0, count);
        while left > 0 {
            let in_page = row % per_page;
            let here = left.min(per_page - in_page).min(rows - row);
            let number = table.page(self.id, PageInTable(row / per_page));
            let slot = self.slots[number.index()];
            let bytes = page(
                self.medium,
                self.id,
                self.areas,
                number,
                slot,
                &mut self.buffer,
            )?;
            let Some(bytes) = bytes else {
                return Err(VolumeError::Damaged(format!(
                    "row {row} of {what:?} is in use and was never written"
                )));
            };
            let mut fields = Reader::new(&bytes[in_page as usize * table.row_bytes(self.id)..]);
            (0..here).for_each(|_| take(&mut fields));
            self.checks[number.index()] = check_of(&self.buffer);
            left -= here;
            row = (row + here) % rows;
        }
        Ok(())
    }

    fn versions(&mut self, root: &Root) -> Result<Vec<VersionEntry>, VolumeError> {
        let QueueAt { row, len, .. } = root.history.window.queue;
        let mut versions = Vec::with_capacity(len.min(self.id.exported) as usize);
        self.read(Table::Versions, RowId(row), len, |row| {
            versions.push(old_version(row));
        })?;
        refuse_disorder(&versions, &[])?;
        Ok(versions)
    }

    fn notes(&mut self, root: &Root) -> Result<Vec<Note>, VolumeError> {
        let mut notes = Vec::new();
        self.read(Table::Notes, RowId(0), root.history.notes, |row| {
            notes.push(Note::decode(row));
        })?;
        let notes: Option<Vec<Note>> = notes.into_iter().collect();
        notes.ok_or_else(|| VolumeError::Damaged("a row of the notes is none".to_string()))
    }

    /// The pinned instants, and what they keep.
    fn pins(
        &mut self,
        root: &Root,
    ) -> Result<(Vec<PinnedInstant>, Vec<VersionEntry>), VolumeError> {
        let mut pins = Vec::new();
        self.read(Table::Pins, RowId(0), root.history.pins, |row| {
            pins.push(pin(row));
        })?;
        let (pins, counts): (Vec<PinnedInstant>, Vec<u32>) = pins.into_iter().unzip();
        refuse_disorder(&[], &pins)?;
        let mut first = RowId(0);
        let mut kept = Vec::new();
        for &count in &counts {
            self.read(Table::Kept, first, count, |row| kept.push(old_kept(row)))?;
            first.0 += count;
        }
        let kept = stamped(&pins, &counts, kept);
        Ok((pins, kept))
    }
}

/// The rows of a table page, `None` if it was never written.
fn page<'a>(
    medium: &dyn Medium,
    id: &Identity,
    areas: &OldAreas,
    number: TablePage,
    slot: TableSlot,
    buffer: &'a mut AlignedBuf,
) -> Result<Option<&'a [u8]>, VolumeError> {
    if !slot.is_some() {
        return Ok(None);
    }
    let broken = || {
        VolumeError::Damaged(format!(
            "page {number} of the checkpoint tables, in slot {slot}, does not hold"
        ))
    };
    if slot.0 >= areas.slots {
        return Err(broken());
    }
    medium.read(areas.slot(slot), buffer)?;
    decode_page(&id.key, slot, number, buffer)
        .map(Some)
        .ok_or_else(broken)
}
