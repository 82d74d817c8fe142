//! Loading what the last checkpoint holds: superblock, root, tables, and the journal that follows.

use std::ops::Range;

use flashlore_content::history::PinnedInstant;
use flashlore_content::{PURGED, VolumeKey};
use flashlore_flash::{BlockId, Lpn, ObjectId};
use flashlore_medium::{AlignedBuf, Medium};

use crate::error::VolumeError;
use crate::format::cursor::Reader;
use crate::format::journal::{ENTRY_BYTES, HEADER_BYTES};
use crate::format::mark::{DurableMark, MARK_BYTES};
use crate::format::superblock::{EPOCH_SHIFT, SUPERBLOCK_BYTES, Unusable, VERSION};
use crate::format::tables::{SLOTS_PER_DIRECTORY, TABLE_PAGE_BYTES, check_of, decode_page, sum};
use crate::format::{
    Areas, Batch, BlockRow, HistoryRoot, Identity, JournalEntry, MapRow, Note, ObjectRow, PackRow,
    PageInTable, Root, RowId, Superblock, Table, TablePage, TableSlot,
};
use crate::journal::{MOST_ENTRIES, Position};

/// Numbers beyond this are not reached by counting.
const MOST_NUMBER: u64 = 1 << 63;
/// The last epoch whose events can be numbered.
const MOST_EPOCH: u32 = (1 << (64 - EPOCH_SHIFT - 1)) - 1;

/// The tables of a checkpoint.
#[derive(Debug, Clone)]
pub struct Tables {
    /// Unit or object of every exported page.
    pub map: Vec<MapRow>,
    /// Objects by handle, up to the last page that was ever written; rows of free handles mean nothing.
    pub objects: Vec<ObjectRow>,
    /// Packed pages by number; rows of free numbers mean nothing.
    pub packs: Vec<PackRow>,
    pub blocks: Vec<BlockRow>,
    /// Old versions, oldest first: page, object and stamp.
    pub versions: Vec<(Lpn, ObjectId, u64)>,
    /// Instants that are kept behind the window.
    pub pins: Vec<PinnedInstant>,
    /// Names, marks, purges, clocks.
    pub notes: Vec<Note>,
    /// Slot of every table page.
    pub slots: Vec<TableSlot>,
    /// By table page, then by directory: the check of those that were read.
    pub checks: Vec<u32>,
}

/// The journal after a checkpoint.
#[derive(Debug, Clone)]
pub struct JournalTail {
    /// Its batches in order.
    pub batches: Vec<Batch>,
    /// Where it goes on.
    pub(crate) position: Position,
    /// Everything up to this event was durable once.
    pub durable: u64,
    /// The newest epoch that wrote any of it.
    pub epoch: u32,
}

/// Reads the superblock with the highest valid write number; where one copy is of another volume, the one that has a
/// root here.
///
/// # Errors
/// There is no volume, or not one this program can read.
pub fn superblock(medium: &dyn Medium) -> Result<Superblock, VolumeError> {
    if medium.len() < 2 * SUPERBLOCK_BYTES as u64 {
        return Err(VolumeError::NotAVolume);
    }
    let mut copies = Vec::new();
    let mut why = Vec::new();
    for copy in 0..2 {
        let mut bytes = AlignedBuf::zeroed(SUPERBLOCK_BYTES);
        medium.read(copy * SUPERBLOCK_BYTES as u64, &mut bytes)?;
        let Some(bytes) = bytes.first_chunk() else {
            continue;
        };
        match Superblock::decode(bytes) {
            Ok(found) => copies.push(found),
            Err(reason) => why.push(reason),
        }
    }
    if let [first, second] = &copies[..]
        && first.identity.uuid != second.identity.uuid
    {
        // One of them is of another volume: there are no roots for it here.
        let own: Vec<Superblock> = copies
            .iter()
            .filter(|c| has_root(medium, c))
            .cloned()
            .collect();
        if !own.is_empty() {
            copies = own;
        }
    }
    let best = copies.into_iter().max_by_key(|copy| copy.write);
    if let Some(found) = &best
        && (found.write >= MOST_NUMBER || found.epoch >= MOST_EPOCH)
    {
        return Err(VolumeError::Damaged(
            "it has been opened more often than epochs can be numbered".to_string(),
        ));
    }
    best.ok_or_else(|| match why.as_slice() {
        [.., Unusable::Version(found)] | [Unusable::Version(found), ..] => VolumeError::Version {
            found: *found,
            known: VERSION,
        },
        [.., Unusable::Features(bits)] | [Unusable::Features(bits), ..] => {
            VolumeError::Features(*bits)
        }
        [.., Unusable::Broken] | [Unusable::Broken, ..] => {
            VolumeError::Damaged("no copy of the superblock is intact".to_string())
        }
        _ => VolumeError::NotAVolume,
    })
}

/// Whether a root holds of the volume that a superblock names.
fn has_root(medium: &dyn Medium, superblock: &Superblock) -> bool {
    let id = &superblock.identity;
    let areas = Areas::at(id, superblock.metadata);
    areas.is_ok_and(|areas| root(medium, &areas, &id.key).is_ok())
}

/// Reads the newest root that holds, and refuses an older one whose journal has been given up.
///
/// # Errors
/// No root holds, or the newest one is broken.
pub fn root(medium: &dyn Medium, areas: &Areas, key: &VolumeKey) -> Result<Root, VolumeError> {
    let mut best: Option<Root> = None;
    for parity in 0..2 {
        let mut bytes = AlignedBuf::zeroed(areas.root_bytes as usize);
        let at = areas.root(parity);
        medium.read(at, &mut bytes)?;
        if let Some(found) = Root::decode(&bytes, key, at, areas.directories)
            && found.checkpoint.max(found.sequence) < MOST_NUMBER
            && best
                .as_ref()
                .is_none_or(|b| b.checkpoint < found.checkpoint)
        {
            best = Some(found);
        }
    }
    best.ok_or_else(|| VolumeError::Damaged("no root of a checkpoint is intact".to_string()))
}

/// Reads the slots of all table pages.
pub(crate) fn slots(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
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

/// Reads the tables of a checkpoint.
///
/// # Errors
/// A page of them is broken.
pub fn tables(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<Tables, VolumeError> {
    let mut checks = vec![0; (areas.table_pages + areas.directories) as usize];
    let slots = slots(medium, id, areas, root, &mut checks)?;
    let mut buffer = AlignedBuf::zeroed(TABLE_PAGE_BYTES);
    let mut loaded = Tables {
        map: Vec::with_capacity(id.exported as usize),
        objects: Vec::new(),
        packs: Vec::new(),
        blocks: Vec::new(),
        versions: Vec::new(),
        pins: Vec::new(),
        notes: Vec::new(),
        slots,
        checks: Vec::new(),
    };
    for table in [Table::Map, Table::Objects, Table::Packs, Table::Blocks] {
        let end = match table {
            // What was never in use takes no memory.
            Table::Objects => loaded.end_of(id, table),
            _ => PageInTable(table.pages(id)),
        };
        for within in table.each_page(id).take_while(|&page| page < end) {
            let number = table.page(id, within);
            let slot = loaded.slots[number.index()];
            let rows = page(medium, id, areas, number, slot, &mut buffer)?;
            loaded.take(table, id, table.rows_of(id, within), rows);
            checks[number.index()] = check_of(&buffer);
        }
    }
    let mut rows = RowReader {
        medium,
        id,
        areas,
        slots: &loaded.slots,
        checks: &mut checks,
        buffer,
    };
    let (versions, pins) = (rows.versions(root)?, rows.pins(root)?);
    let notes = rows.notes(root)?;
    (loaded.versions, loaded.pins, loaded.notes) = (versions, pins, notes);
    loaded.checks = checks;
    loaded.refuse_older_pages(id, root)?;
    loaded.refuse_impossible(id)?;
    Ok(loaded)
}

/// Reads the rows of the history's tables that are in use.
pub(crate) struct RowReader<'a> {
    pub medium: &'a dyn Medium,
    pub id: &'a Identity,
    pub areas: &'a Areas,
    pub slots: &'a [TableSlot],
    /// By table page.
    pub checks: &'a mut [u32],
    pub buffer: AlignedBuf,
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
        let rows = table.rows(self.id);
        if count > rows || (count > 0 && first.0 >= rows) {
            return Err(VolumeError::Damaged(format!(
                "the root names {count} rows of {table:?} from {first} on, there are {rows}"
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
                    "row {row} of {table:?} is in use and was never written"
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

    pub fn versions(&mut self, root: &Root) -> Result<Vec<(Lpn, ObjectId, u64)>, VolumeError> {
        let HistoryRoot { first, entries, .. } = root.history;
        let mut versions = Vec::with_capacity(entries.min(self.id.exported) as usize);
        self.read(Table::Versions, first, entries, |row| {
            versions.push((Lpn(row.u32()), ObjectId(row.u32()), row.u64()));
        })?;
        if versions.windows(2).any(|pair| pair[0].2 > pair[1].2) {
            return Err(VolumeError::Damaged(
                "the history is out of order".to_string(),
            ));
        }
        Ok(versions)
    }

    pub fn notes(&mut self, root: &Root) -> Result<Vec<Note>, VolumeError> {
        let mut notes = Vec::new();
        self.read(Table::Notes, RowId(0), root.history.notes, |row| {
            notes.push(Note::decode(row));
        })?;
        let notes: Option<Vec<Note>> = notes.into_iter().collect();
        notes.ok_or_else(|| VolumeError::Damaged("a row of the notes is none".to_string()))
    }

    pub fn pins(&mut self, root: &Root) -> Result<Vec<PinnedInstant>, VolumeError> {
        let mut pins: Vec<(u64, u32, u32)> = Vec::new();
        self.read(Table::Pins, RowId(0), root.history.pins, |row| {
            pins.push((row.u64(), row.u32(), row.u32()));
        })?;
        if pins.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err(VolumeError::Damaged(
                "the pinned instants are out of order".to_string(),
            ));
        }
        let mut first = RowId(0);
        let mut found = Vec::new();
        for (instant, flags, count) in pins {
            let mut kept = Vec::new();
            self.read(Table::Kept, first, count, |row| {
                kept.push((Lpn(row.u32()), ObjectId(row.u32())));
            })?;
            first.0 += count;
            found.push(PinnedInstant {
                instant,
                snapshot: flags & 1 != 0,
                scheduled: flags & 2 != 0,
                kept,
            });
        }
        Ok(found)
    }
}

/// The rows of a table page, `None` if it was never written.
pub(crate) fn page<'a>(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
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

/// The rows of a map as objects, where they are those.
pub(crate) fn objects_of(map: &[MapRow]) -> impl Iterator<Item = ObjectId> + '_ {
    map.iter().map(|row| row.as_object())
}

impl Tables {
    /// What old versions refer to; all ones for no object.
    pub fn kept(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let window = self.versions.iter().map(|&(_, object, _)| object);
        let pinned = self.pins.iter().flat_map(|pin| &pin.kept);
        window.chain(pinned.map(|&(_, object)| object))
    }

    /// Of the pages of a table the one behind the last that was ever written.
    fn end_of(&self, id: &Identity, table: Table) -> PageInTable {
        let first = table.first_page(id).index();
        let slots = &self.slots[first..first + table.pages(id) as usize];
        let last = slots.iter().rposition(|slot| slot.is_some());
        PageInTable(last.map_or(0, |last| last as u32 + 1))
    }

    /// Each page holds by itself; the root says whether they are those of its checkpoint.
    fn refuse_older_pages(&self, id: &Identity, root: &Root) -> Result<(), VolumeError> {
        let kept: usize = self.pins.iter().map(|pin| pin.kept.len()).sum();
        let (slots, directories) = (&self.slots, &root.directories);
        let found = |history: &HistoryRoot| {
            let kept = kept as u32;
            sum(id, history, kept, slots, directories, &self.checks)
        };
        // Roots of older programs leave the notes out.
        let without_notes = HistoryRoot {
            notes: 0,
            ..root.history
        };
        let is_known = root.sum != 0;
        let holds = root.sum == found(&root.history) || root.sum == found(&without_notes);
        match !is_known || holds {
            true => Ok(()),
            false => Err(VolumeError::Damaged(format!(
                "the tables are not those of checkpoint {}: a page of them was replaced by an earlier one",
                root.checkpoint
            ))),
        }
    }

    /// Checksums hold, so only a program that is wrong can have written such rows.
    fn refuse_impossible(&self, id: &Identity) -> Result<(), VolumeError> {
        let objects = self.objects.len();
        let nameless = |object: &ObjectId| *object < PURGED && object.index() >= objects;
        if id.has_objects()
            && let Some(object) = objects_of(&self.map).chain(self.kept()).find(nameless)
        {
            return Err(VolumeError::Damaged(format!(
                "the map or the history names object {object}, there are {objects}"
            )));
        }
        let pages = self.versions.iter().map(|&(lpn, ..)| lpn);
        let pinned = self.pins.iter().flat_map(|pin| &pin.kept);
        let mut pages = pages.chain(pinned.map(|&(lpn, _)| lpn));
        if let Some(lpn) = pages.find(|&lpn| lpn >= Lpn(id.exported)) {
            return Err(VolumeError::Damaged(format!(
                "the history names page {lpn}, the volume has {}",
                id.exported
            )));
        }
        let long = |b: &BlockRow| b.taken > id.pages_per_block;
        if let Some(number) = self.blocks.iter().position(long) {
            return Err(VolumeError::Damaged(format!(
                "block {number} has more pages taken than the {} it has",
                id.pages_per_block
            )));
        }
        Ok(())
    }

    /// Takes rows of a page, all of them empty if it was never written: no page is mapped, there are no objects, packed
    /// pages have no slots and blocks are free.
    fn take(&mut self, table: Table, id: &Identity, rows: Range<RowId>, page: Option<&[u8]>) {
        let size = table.row_bytes(id);
        for (n, _) in RowId::each(rows).enumerate() {
            let mut row = Reader::new(page.map_or(&[][..], |page| &page[n * size..]));
            match table {
                Table::Map if page.is_none() => self.map.push(MapRow::NONE),
                Table::Map => self.map.push(MapRow::decode(&mut row)),
                Table::Objects if page.is_none() => self.objects.push(ObjectRow::NONE),
                Table::Objects => self.objects.push(ObjectRow::decode(id, &mut row)),
                Table::Packs => self.packs.push(PackRow::decode(&mut row)),
                _ => self.blocks.push(BlockRow::decode(&mut row)),
            }
        }
    }
}

/// Reads the journal that follows a checkpoint, up to the first batch that does not hold.
///
/// # Errors
/// The medium failed, or a later checkpoint has been lost.
pub fn journal(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<JournalTail, VolumeError> {
    refuse_lost_root(medium, id, areas, root)?;
    let mut tail = JournalTail {
        batches: Vec::new(),
        position: Position::start(root.checkpoint),
        durable: root.sequence,
        epoch: root.epoch,
    };
    let base = areas.journal(root.checkpoint);
    let mut window = Window::new(medium, base, id);
    while let Some(bytes) = window.at(tail.position.offset)? {
        let Some((batch, check)) = Batch::decode(bytes, &id.key, tail.position.offset) else {
            break;
        };
        if batch.segment != root.checkpoint || batch.chain != tail.position.chain {
            break;
        }
        for entry in &batch.entries {
            if let JournalEntry::Open { block, .. } = *entry
                && block >= BlockId(id.blocks)
            {
                return Err(VolumeError::Damaged(format!(
                    "the journal opens block {block}, there are {}",
                    id.blocks
                )));
            }
        }
        tail.durable = tail.durable.max(batch.durable);
        tail.epoch = tail.epoch.max(batch.epoch);
        let length = Batch::bytes(
            batch.entries.len(),
            batch.value_bytes(),
            id.alignment as usize,
        );
        tail.position.offset += length as u64;
        tail.position.chain = check;
        tail.batches.push(batch);
    }
    if let Some(mark) = mark(medium, id, areas, root)? {
        tail.durable = tail.durable.max(mark.durable);
        tail.epoch = tail.epoch.max(mark.epoch);
    }
    // What follows a broken batch cannot be replayed, but may tell that the batch was durable once.
    let mut offset = tail.position.offset;
    while let Some(bytes) = window.at(offset)? {
        if let Some((batch, _)) = Batch::decode(bytes, &id.key, offset)
            && batch.segment == root.checkpoint
        {
            tail.durable = tail.durable.max(batch.durable);
            tail.epoch = tail.epoch.max(batch.epoch);
        }
        offset += u64::from(id.alignment);
    }
    Ok(tail)
}

/// How much of the journal after a checkpoint was durable, where that was written apart from it.
fn mark(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<Option<DurableMark>, VolumeError> {
    let offset = id.journal_bytes - MARK_BYTES;
    let mut sector = AlignedBuf::zeroed(id.alignment as usize);
    medium.read(areas.journal(root.checkpoint + 1) + offset, &mut sector)?;
    let mark = DurableMark::decode(&sector, &id.key, offset);
    Ok(mark.filter(|mark| mark.checkpoint == root.checkpoint))
}

/// A root that was written after `root` begins the other journal segment: if that has begun and the
/// later root does not hold, it was lost.
fn refuse_lost_root(
    medium: &dyn Medium,
    id: &Identity,
    areas: &Areas,
    root: &Root,
) -> Result<(), VolumeError> {
    let next = root.checkpoint + 1;
    let mut window = Window::new(medium, areas.journal(next), id);
    let first = window.at(0)?;
    let begun = first
        .and_then(|bytes| Batch::decode(bytes, &id.key, 0))
        .is_some_and(|(batch, _)| batch.segment == next);
    if begun {
        return Err(VolumeError::Damaged(format!(
            "checkpoint {next} was taken, but its root does not hold"
        )));
    }
    Ok(())
}

/// A journal segment, read in large pieces.
struct Window<'a> {
    medium: &'a dyn Medium,
    base: u64,
    len: u64,
    alignment: u64,
    start: u64,
    bytes: AlignedBuf,
}

/// More than the longest batch.
const PIECE: u64 = 1 << 20;
const _: () = assert!(PIECE as usize > 2 * (HEADER_BYTES + MOST_ENTRIES * ENTRY_BYTES));

impl<'a> Window<'a> {
    fn new(medium: &'a dyn Medium, base: u64, id: &Identity) -> Self {
        Window {
            medium,
            base,
            len: id.journal_bytes - MARK_BYTES,
            alignment: u64::from(id.alignment),
            start: 0,
            bytes: AlignedBuf::new(),
        }
    }

    /// The bytes from an offset on, enough for any batch that fits; `None` at the end.
    fn at(&mut self, offset: u64) -> Result<Option<&[u8]>, VolumeError> {
        if offset + self.alignment > self.len {
            return Ok(None);
        }
        let end = self.start + self.bytes.len() as u64;
        let longest = (PIECE / 2).min(self.len - offset);
        if offset < self.start || offset + longest > end {
            self.start = offset;
            self.bytes.resize(PIECE.min(self.len - offset) as usize);
            self.medium.read(self.base + offset, &mut self.bytes)?;
        }
        Ok(Some(&self.bytes[(offset - self.start) as usize..]))
    }
}

/// All entries of a tail.
pub fn entries(tail: &JournalTail) -> impl Iterator<Item = JournalEntry> + '_ {
    tail.batches.iter().flat_map(|b| b.entries.iter().copied())
}
