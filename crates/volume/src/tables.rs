//! The tables in their store, whose commits are the checkpoints.
//!
//! Map, objects, packed pages, owners of units, free handles and old versions are the translation layer's own tables
//! ([`StoredTables`]): what it changes is changed there, in pages that come and go. Of blocks and valid units it has its own
//! form; the rows of pages that have changed are handed over before a checkpoint begins, a few at a time
//! ([`TableStore::clean`]), and what is left when it begins at once, so that the tables hold the state after one event. Pinned
//! instants and notes are handed over then, too.
//!
//! Invariants: a row that differs from what the store has is in a page that is marked as changed; the commit that has begun
//! last is that of the open checkpoint, or of the last one.

use std::ops::Range;
use std::sync::Arc;

use flashlore_content::DigestTag;
use flashlore_content::PURGED;
use flashlore_content::history::{PinnedInstant, VersionEntry};
use flashlore_flash::{BlockId, Lpn, Owned, Owner, Row, Stream, TableName};
use flashlore_ftl::blocks::BlockPhase;
use flashlore_ftl::mapping::objects::Object;
use flashlore_ftl::mapping::packs::Pack;
use flashlore_medium::Medium;
use flashlore_metadata::{Access, Fetch, Judge, MetadataError, Store, StoredTables, TablePlan};
use rustc_hash::FxHashMap;

use crate::error::{NandError, VolumeError};
use crate::format::cursor::Writer;
use crate::format::{
    Areas, BlockRow, BlockState, HistoryRoot, Identity, Note, ObjectNote, PageInTable, Root, RowId,
    Table,
};
use crate::layer::Layer;
use crate::load::of_store;
use crate::nand::Nand;
use crate::notes::Notes;
use crate::survey::TableState;

/// The tables in their store, and what of them has changed.
pub(crate) struct TableStore {
    id: Identity,
    stored: StoredTables<ObjectNote>,
    /// At which of those that are handed over, and at which page of it, cleaning goes on.
    cursor: (usize, PageInTable),
    /// Checksums of the pages of pins and notes, as they were written last.
    written: FxHashMap<(u8, PageInTable), u64>,
}

/// Bytes of the row of an object that say where it lies, whatever is kept of its digest.
const SHORT_ROW: usize = 32;

/// The tables of which pages are handed over before a checkpoint begins.
const HANDED_OVER: [Table; 2] = [Table::Blocks, Table::Valid];

/// What a checkpoint writes of the history beside its entries.
struct HistoryRows {
    root: HistoryRoot,
    pins: Vec<PinnedInstant>,
    notes: Vec<Note>,
}

/// Pages of the store that have room in so many bytes of memory.
fn frames(memory: u64) -> usize {
    usize::try_from(memory).unwrap_or(usize::MAX) / flashlore_metadata::PAGE_BYTES
}

impl TableStore {
    /// The tables of a volume, whose last checkpoint has this number, with so many bytes of memory for their pages.
    ///
    /// # Errors
    /// The store cannot be opened, or has another last commit.
    pub fn open(
        medium: Arc<dyn Medium>,
        id: &Identity,
        areas: &Areas,
        checkpoint: u64,
        memory: u64,
    ) -> Result<Self, VolumeError> {
        let opened = Store::open(medium, areas.store, id.key, frames(memory));
        let (mut store, _) = opened.map_err(of_store)?;
        store.set_judge(judge(id));
        if store.commit() != checkpoint {
            return Err(VolumeError::Damaged(format!(
                "the store of its tables has commit {}, not {checkpoint}",
                store.commit()
            )));
        }
        let ids = [
            TableName::Map,
            TableName::Objects,
            TableName::FreeHandles,
            TableName::Owners,
            TableName::Spilled,
            TableName::Packs,
            TableName::Versions,
            TableName::Heads,
            TableName::Kept,
            TableName::KeptHeads,
        ];
        Ok(TableStore {
            id: id.clone(),
            stored: StoredTables::new(store, ids.map(|name| Table::named(name).id())),
            cursor: (0, PageInTable(0)),
            written: FxHashMap::default(),
        })
    }

    /// The tables of the translation layer.
    pub fn stored(&self) -> StoredTables<ObjectNote> {
        self.stored.clone()
    }

    /// From now on pages have so many bytes of memory, at least as many as before.
    pub fn grow(&self, memory: u64) {
        self.stored.with(|store| store.grow_cache(frames(memory)));
    }

    /// The pages that are missing for rows.
    pub fn plan(&self, of: impl FnOnce(&mut TablePlan<'_>)) -> Vec<Fetch> {
        self.stored.plan(of)
    }

    /// What is in memory of them.
    pub fn state(&self) -> TableState {
        let (counters, bytes) = self
            .stored
            .with(|store| (store.cache_counters(), store.cache_bytes()));
        let (memory, most_memory) = bytes;
        TableState {
            memory,
            most_memory,
            hits: counters.hits,
            misses: counters.misses,
            read_while_held: self.stored.fetched_at_once(),
            written_for_room: counters.written_for_room,
        }
    }

    /// Whether a checkpoint is due, since the pages that have changed would soon find no room.
    pub fn wants_checkpoint(&self) -> bool {
        self.stored.with(|store| store.wants_commit())
    }

    /// What there is to write of the history.
    fn history(&self, layer: &dyn Layer, notes: &Notes) -> HistoryRows {
        let Some(history) = layer.history() else {
            return HistoryRows {
                root: HistoryRoot::default(),
                pins: Vec::new(),
                notes: Vec::new(),
            };
        };
        let (at, notes) = (history.at_rest(), notes.rows());
        HistoryRows {
            root: HistoryRoot {
                oldest: at.oldest,
                window: at.window,
                kept: at.kept,
                pins: at.pins.len() as u32,
                notes: notes.len() as u32,
            },
            pins: at.pins,
            notes,
        }
    }

    /// Writes up to so many pages that have changed; how many it wrote. Where there are fewer it has been once
    /// around.
    pub fn clean(&mut self, layer: &mut dyn Layer, most: u32) -> Result<u32, NandError> {
        if layer.core().flash().open_checkpoint().is_some() {
            return Ok(0);
        }
        let mut handed_over = 0;
        let mut turns = 0;
        while handed_over < most && turns <= HANDED_OVER.len() {
            let (table, from) = self.cursor;
            let Some(page) = next_changed(layer, HANDED_OVER[table], from) else {
                self.cursor = ((table + 1) % HANDED_OVER.len(), PageInTable(0));
                turns += 1;
                continue;
            };
            self.hand_over(layer, HANDED_OVER[table], page)?;
            self.cursor = (table, page.following());
            handed_over += 1;
        }
        let cleaned = self.stored.with(|store| store.clean(most as usize));
        cleaned.map_or_else(|error| Err(failed(layer, error)), |pages| Ok(pages as u32))
    }

    /// Pages that have changed, but for those of pins and notes.
    pub fn dirty_pages(&self, layer: &dyn Layer) -> u32 {
        let nand = layer.core().flash();
        let in_store = self.stored.with(|store| store.dirty_pages());
        in_store as u32 + nand.programmed.count() + nand.valid.count()
    }

    /// The store is new, and perhaps larger than what there is of the volume: the next checkpoint writes all of that.
    pub fn mark_all(&self, nand: &mut Nand) {
        nand.programmed.mark_all(Table::Blocks, &nand.id);
        nand.valid.mark_all(Table::Valid, &nand.id);
    }

    /// Writes what has changed, and hands over a root that holds the state after the last event
    /// ([`Nand::begin_checkpoint`]). Answers the number of the checkpoint.
    pub fn begin(
        &mut self,
        layer: &mut dyn Layer,
        stamp: u64,
        notes: &Notes,
    ) -> Result<u64, NandError> {
        layer.core_mut().flash_mut().finish_checkpoint()?;
        let history = self.history(layer, notes);
        for unit in layer.core_mut().flash_mut().take_newly_bad() {
            layer.distrust(unit);
        }
        for table in HANDED_OVER {
            let mut from = PageInTable(0);
            while let Some(page) = next_changed(layer, table, from) {
                self.hand_over(layer, table, page)?;
                from = page.following();
            }
        }
        for table in [Table::Pins, Table::Notes] {
            for page in table.each_page(&self.id) {
                if history.is_dirty(&self.id, table, page) {
                    self.hand_over_history(layer, &history, table, page)?;
                }
            }
        }
        let tallies = layer.tallies();
        let nand = layer.core_mut().flash_mut();
        nand.heed_tables()?;
        let root = Root {
            checkpoint: self.stored.with(|store| store.commit()) + 1,
            epoch: nand.epoch,
            sequence: nand.sequence,
            stamp,
            history: history.root,
            tallies,
        };
        let pending = self.stored.with(|store| store.begin_commit(&root.encode()));
        let pending = pending.map_err(|error| failed(layer, error))?;
        let nand = layer.core_mut().flash_mut();
        nand.begin_checkpoint(&root, pending);
        Ok(root.checkpoint)
    }

    /// The store gets the rows of a page as they are now.
    fn hand_over(
        &mut self,
        layer: &mut dyn Layer,
        table: Table,
        page: PageInTable,
    ) -> Result<(), NandError> {
        // A new store may have more rows than there are.
        let rows = table.rows_of(&self.id, page);
        let there = table.rows(&layer.core().flash().id);
        let rows = rows.start..rows.end.min(RowId(there));
        let fill = |layer: &dyn Layer, out: &mut [u8]| fill(layer, table, rows.clone(), out);
        self.set_rows(layer, table, rows.clone(), fill)?;
        let nand = layer.core_mut().flash_mut();
        match table {
            Table::Valid => nand.valid.clear(page),
            _ => nand.programmed.clear(page),
        }
        Ok(())
    }

    /// The same of pinned instants and notes, whose pages mostly do not change for long.
    fn hand_over_history(
        &mut self,
        layer: &mut dyn Layer,
        history: &HistoryRows,
        table: Table,
        page: PageInTable,
    ) -> Result<(), NandError> {
        let mut rows = vec![0; flashlore_metadata::PAGE_BYTES];
        history.fill(&self.id, table, page, &mut rows);
        let check = self.id.key.checksum(u64::from(page), &[&rows]);
        if self.written.insert((table as u8, page), check) == Some(check) {
            return Ok(());
        }
        let in_page = table.rows_of(&self.id, page);
        self.set_rows(layer, table, in_page, |_, out| {
            let length = out.len();
            out.copy_from_slice(&rows[..length]);
        })
    }

    /// Sets all rows of a page of the store, of which these are in use.
    fn set_rows(
        &mut self,
        layer: &mut dyn Layer,
        table: Table,
        rows: Range<RowId>,
        fill: impl Fn(&dyn Layer, &mut [u8]),
    ) -> Result<(), NandError> {
        let used = (rows.end.0 - rows.start.0) as usize * usize::from(table.row_bytes(&self.id));
        let first = flashlore_metadata::Row(rows.start.0);
        let set = |store: &mut Store| loop {
            let absent = match store.rows_to_set(table.id(), first) {
                Ok(out) => {
                    let (used, unused) = out.split_at_mut(used);
                    fill(layer, used);
                    // Rows of the tables that are set so are zeros as long as nothing is in them.
                    unused.fill(0);
                    return Ok(());
                }
                Err(Access::Absent(fetch)) => fetch,
                Err(Access::Error(error)) => return Err(error),
            };
            // A page above it.
            store.fetch_at_once(&absent)?;
        };
        let set = self.stored.with(set);
        set.map_err(|error| failed(layer, error))
    }
}

/// Says of a page of the tables of the translation layer whether its rows name what there is.
pub(crate) fn judge(id: &Identity) -> Judge {
    let id = id.clone();
    let rows = |table: Table| table.rows(&id);
    let (objects, packs) = (rows(Table::Objects), rows(Table::Packs));
    let (units, pages) = (rows(Table::Owners), id.exported);
    let mapped = if id.has_objects() { objects } else { units };
    let object_bytes = usize::from(Table::Objects.row_bytes(&id));
    Box::new(move |table, bytes| {
        let is_possible = match table {
            _ if table == Table::Map.id() => {
                let mut rows = bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes);
                rows.all(|row| row < mapped || row == u32::MAX)
            }
            _ if table == Table::Owners.id() => {
                let mut rows = bytes
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|row| Owner::decode(row));
                rows.all(|owner| match (id.has_objects(), id.encoding.is_on()) {
                    (false, _) => owner.as_page().0 < pages,
                    (true, false) => owner.as_object().0 < objects,
                    (true, true) => match owner.owned() {
                        Owned::Value(object) => object.0 < objects,
                        Owned::Pack(pack) => pack.0 < packs,
                        _ => false,
                    },
                })
            }
            _ if table == Table::Objects.id() => {
                let mut rows = bytes.chunks_exact(object_bytes);
                rows.all(|row| {
                    let object = Object::<DigestTag, ObjectNote>::decode(&row[..SHORT_ROW]);
                    object.is_possible(units, packs, objects)
                })
            }
            _ if table == Table::Versions.id() || table == Table::Kept.id() => {
                let mut rows = bytes.chunks_exact(VersionEntry::BYTES);
                rows.all(|row| {
                    let VersionEntry { lpn, object, .. } = VersionEntry::decode(row);
                    let is_object = object.0 < objects || object >= PURGED;
                    is_object && (lpn.0 < pages || lpn == Lpn::NONE)
                })
            }
            _ if table == Table::Packs.id() => {
                let mut rows = bytes.chunks_exact(Pack::BYTES);
                rows.all(|row| Pack::decode(row).is_possible(units))
            }
            _ => true,
        };
        (!is_possible).then_some("it names what there is not")
    })
}

/// The first page from one on of a table that is handed over that has changed.
fn next_changed(layer: &dyn Layer, table: Table, from: PageInTable) -> Option<PageInTable> {
    let nand = layer.core().flash();
    match table {
        Table::Valid => nand.valid.next(from),
        _ => nand.programmed.next(from),
    }
}

/// What the store did not do makes the volume read-only.
fn failed(layer: &mut dyn Layer, error: MetadataError) -> NandError {
    let nand = layer.core_mut().flash_mut();
    match error {
        MetadataError::Medium(error) => nand.failed_with(error),
        other => {
            nand.fail(other.to_string());
            NandError::ReadOnly(other.to_string())
        }
    }
}

fn fill(layer: &dyn Layer, table: Table, rows: Range<RowId>, out: &mut [u8]) {
    let mut out = Writer::new(out);
    for RowId(row) in RowId::each(rows) {
        match table {
            Table::Valid => {
                out.u64(layer.core().blocks().valid_word(row as usize));
            }
            _ => block_row(layer, BlockId(row)).encode(&mut out),
        }
    }
}

impl HistoryRows {
    /// Whether a page has rows in use.
    fn is_dirty(&self, id: &Identity, table: Table, page: PageInTable) -> bool {
        let in_use = match table {
            Table::Pins => self.root.pins,
            _ => self.root.notes,
        };
        page.0 * table.shape(id).rows_per_page() < in_use
    }

    /// The rows of a page.
    fn fill(&self, id: &Identity, table: Table, page: PageInTable, rows: &mut [u8]) {
        let in_page = table.rows_of(id, page);
        let (first, count) = (
            in_page.start.index(),
            (in_page.end.0 - in_page.start.0) as usize,
        );
        let mut out = Writer::new(rows);
        if table == Table::Pins {
            for pin in self.pins.iter().skip(first).take(count) {
                let flags = u32::from(pin.snapshot) | u32::from(pin.scheduled) << 1;
                out.u64(pin.instant).u32(flags).u32(0);
            }
            return;
        }
        for note in self.notes.iter().skip(first).take(count) {
            note.encode(&mut out);
        }
    }
}

fn block_row(layer: &dyn Layer, block: BlockId) -> BlockRow {
    let core = layer.core();
    let life = core.flash().lives[block.index()];
    BlockRow {
        state: match core.blocks().record(block).state {
            BlockPhase::Free => BlockState::Free,
            BlockPhase::Open => BlockState::Open(core.stream_of(block).unwrap_or(Stream::Host)),
            BlockPhase::Sealed
            | BlockPhase::Collecting
            | BlockPhase::Erasing
            | BlockPhase::Retired => BlockState::Sealed,
        },
        erases: life.erases,
        generation: life.generation,
        taken: life.taken,
    }
}
