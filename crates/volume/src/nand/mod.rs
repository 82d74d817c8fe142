//! Flash pages on a medium, with their records, and the journal beside them: one barrier orders both.
//!
//! | module | what it is |
//! |---|---|
//! | `programs` | a flash page and its records leave for the medium |
//! | `copies` | flash pages that are read to be copied |
//! | `events` | numbers of events, and the journal that tells of them |
//! | `barriers` | what was written becomes durable, and what was erased before goes |
//! | `checkpoints` | the root of a checkpoint, from its tables to the journal that follows it |
//!
//! It implements [`Flash`] for the translation layer. What the layer erases is erased on the medium
//! only after the next barrier: until then its copies, and the events that made its content
//! unreferenced, may exist in memory alone. The layer in turn never programs a block again before
//! that barrier (`FtlOptions::barriers`).
//!
//! Invariants: a page and its records leave in one write; a record's generation is that of its block; the
//! journal names every generation; once a write or a barrier has failed nothing is written any more.

use std::cell::Cell;
use std::sync::Arc;

use flashlore_flash::{
    BlockId, Cause, Completion, Finished, Flash, Geometry, Lpn, ObjectId, Owned, Owner, PageId,
    PlaneId, Ppn, Ready, Route, Stream, TableName, Tag, Time, Unit,
};
use flashlore_ftl::mapping::objects::note_of;
use flashlore_medium::{AlignedBuf, Medium};
use flashlore_metadata::StoredTables;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dirty::DirtyPages;
use crate::error::NandError;
use crate::format::superblock::EPOCH_SHIFT;
use crate::format::tables::UNITS_PER_WORD;
use crate::format::{Areas, Identity, JournalEntry, ObjectNote, Record, RowId, Slot};
use crate::journal::{Journal, Position};
use crate::unit::{ELSEWHERE, Proof, StoredUnit, UnitPlace, Units};
use crate::values::SharedWaiting;
use crate::young::{Young, YoungWrites};

mod barriers;
mod checkpoints;
mod copies;
mod events;
mod programs;

pub(crate) use barriers::OpenBarrier;

use checkpoints::PendingCheckpoint;
use copies::{CopyFound, SensedPage};

/// What is kept of a block besides the translation layer's record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlockLife {
    /// The generation it was last programmed in.
    pub generation: u64,
    /// Times it was erased.
    pub erases: u32,
    /// Flash pages programmed or given up since.
    pub taken: u32,
}

/// Flash on a medium.
pub struct Nand {
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) areas: Areas,
    pub(crate) id: Identity,
    geometry: Geometry,
    pub(crate) epoch: u32,
    /// The last event.
    pub(crate) sequence: u64,
    /// Everything up to this event is durable.
    pub(crate) durable: u64,
    /// The last event the checkpoint holds.
    pub(crate) since: u64,
    generations: u64,
    pub(crate) journal: Journal,
    pub(crate) lives: Vec<BlockLife>,
    /// Erased by the layer, and no barrier since.
    pending: Vec<BlockId>,
    /// Barriers so far.
    barriers: u64,
    /// Erased and not given back.
    kept: Vec<BlockId>,
    /// Writes newer than the checkpoint, by block.
    young: YoungWrites,
    /// Flash pages programmed since the volume was opened, with those that a recovery found; and when the last checkpoint
    /// that ended had begun.
    programs: u64,
    programs_before: u64,
    /// Flash pages read for copying.
    sensed: FxHashMap<PageId, SensedPage>,
    /// Map, objects and owners of units.
    tables: StoredTables<ObjectNote>,
    /// Failures of the tables that have been heeded, or concerned only who looked.
    heeded: Cell<u64>,
    /// Encoded values in RAM.
    pub(crate) waiting: SharedWaiting,
    /// Block table rows that changed.
    pub(crate) programmed: DirtyPages<BlockId>,
    /// Rows of valid units that changed.
    pub(crate) valid: DirtyPages<RowId>,
    buffer: AlignedBuf,
    /// Owners of units that were given up when they were copied.
    pub(crate) lost: Vec<ObjectId>,
    /// Units that could not be read for copying and were left where they are.
    pub(crate) unreadable: Vec<Ppn>,
    /// Units that are known to be unreadable.
    bad: FxHashSet<UnitPlace>,
    /// Those of them of which the tables do not know yet.
    newly_bad: Vec<Ppn>,
    /// Old versions that ended at this instant or before are given up; and the same as far as the journal,
    /// or the checkpoint, says it.
    window: u64,
    window_noted: u64,
    open_checkpoint: Option<PendingCheckpoint>,
    failed: Option<String>,
}

/// What a mount found.
pub(crate) struct Found {
    pub epoch: u32,
    pub sequence: u64,
    pub since: u64,
    pub position: Position,
    pub lives: Vec<BlockLife>,
    pub tables: StoredTables<ObjectNote>,
    pub young: FxHashMap<BlockId, Vec<Young>>,
    /// Flash pages programmed since the checkpoint.
    pub programs: u64,
    /// The oldest instant that can be rewound to, and the same as far as it is durable.
    pub window: u64,
    pub window_noted: u64,
    pub waiting: SharedWaiting,
    pub programmed: DirtyPages<BlockId>,
    pub valid: DirtyPages<RowId>,
}

impl Nand {
    pub(crate) fn new(
        medium: Arc<dyn Medium>,
        id: Identity,
        areas: Areas,
        geometry: Geometry,
        found: Found,
    ) -> Self {
        Nand {
            journal: Journal::new(&id, found.position, found.sequence),
            medium,
            areas,
            id,
            geometry,
            epoch: found.epoch,
            sequence: found.sequence,
            durable: found.sequence,
            since: found.since,
            generations: u64::from(found.epoch) << EPOCH_SHIFT,
            lives: found.lives,
            pending: Vec::new(),
            barriers: 0,
            kept: Vec::new(),
            young: YoungWrites::new(found.young),
            programs: found.programs,
            programs_before: 0,
            sensed: FxHashMap::default(),
            heeded: Cell::new(found.tables.failures()),
            tables: found.tables,
            waiting: found.waiting,
            programmed: found.programmed,
            valid: found.valid,
            buffer: AlignedBuf::new(),
            lost: Vec::new(),
            unreadable: Vec::new(),
            bad: FxHashSet::default(),
            newly_bad: Vec::new(),
            window: found.window,
            window_noted: found.window_noted,
            open_checkpoint: None,
            failed: None,
        }
    }

    /// What a unit holds: a value, or a packed page where values are encoded.
    pub(crate) fn owned(&self, owner: Owner) -> Owned {
        match self.id.encoding.is_on() {
            true => owner.owned(),
            false => Owned::Value(owner.as_object()),
        }
    }

    /// What the record of a unit of `owner` must say; nothing of an object that there is not.
    fn proof_of(&self, owner: Owner) -> Option<Proof> {
        if let Owned::Pack(_) = self.owned(owner) {
            return Some(Proof::Packed);
        }
        match self.id.has_objects() {
            true => self.write_seq(owner.as_object()).map(Proof::WriteSeq),
            false => Some(Proof::Lpn(owner.as_page())),
        }
    }

    /// The write sequence number of an object, where there are objects: 0 of a free handle.
    pub(crate) fn write_seq(&self, object: ObjectId) -> Option<u64> {
        write_seq_in(&self.tables, object)
    }

    /// Looks at which of the versions of an address is the newest.
    pub(crate) fn touch_head(&self, lpn: Lpn) {
        self.tables.read(TableName::Heads, lpn.index(), |_| ());
    }

    /// Whether a record is that of a unit of `owner`.
    fn proves(&self, owner: Owner, record: &Record) -> bool {
        self.proof_of(owner)
            .is_some_and(|proof| proof.holds(record))
    }

    /// Reads a unit and compares it with its record.
    ///
    /// # Errors
    /// The medium failed, or the unit has rotted.
    pub fn read_unit(&self, ppn: Ppn) -> Result<StoredUnit, NandError> {
        self.units().read(ppn, self.generation_of(ppn))
    }

    /// Reads the record of a unit; one of another generation counts as missing.
    ///
    /// # Errors
    /// The medium failed.
    pub fn read_record(&self, ppn: Ppn) -> Result<Slot, NandError> {
        self.units().record(ppn, self.generation_of(ppn))
    }

    fn units(&self) -> Units<'_> {
        Units {
            medium: &self.medium,
            areas: &self.areas,
            id: &self.id,
        }
    }

    /// Notes that a unit cannot be read.
    pub(crate) fn note_bad(&mut self, ppn: Ppn) {
        if self.bad.insert(self.place_of(ppn)) {
            self.newly_bad.push(ppn);
        }
    }

    /// Units that have become known to be unreadable since the last call.
    pub(crate) fn take_newly_bad(&mut self) -> Vec<Ppn> {
        std::mem::take(&mut self.newly_bad)
    }

    /// Whether it is known that a unit cannot be read.
    pub(crate) fn is_bad(&self, ppn: Ppn) -> bool {
        self.bad.contains(&self.place_of(ppn))
    }

    pub(crate) fn place_of(&self, ppn: Ppn) -> UnitPlace {
        UnitPlace {
            generation: self.generation_of(ppn),
            ppn,
        }
    }

    /// The generation of the block of a unit; 0, which no block has, where a row that is forged names a unit that there is
    /// not.
    fn generation_of(&self, ppn: Ppn) -> u64 {
        let life = self.lives.get(self.geometry.block_of(ppn).index());
        life.map_or(0, |life| life.generation)
    }
}

/// The write sequence number of an object in the tables.
pub(crate) fn write_seq_in(tables: &StoredTables<ObjectNote>, object: ObjectId) -> Option<u64> {
    let noted = tables.read(TableName::Objects, object.index(), note_of::<ObjectNote>);
    noted.map(|noted| noted.write_seq)
}

impl Flash for Nand {
    type Page = StoredUnit;
    type Error = NandError;
    type Tables = StoredTables<ObjectNote>;
    const PROVES: bool = true;

    fn is_loss(error: &NandError) -> bool {
        matches!(error, NandError::Rot { .. } | NandError::Medium(_))
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn tables(&self) -> StoredTables<ObjectNote> {
        self.tables.clone()
    }

    fn read(
        &mut self,
        ready: Ready,
        ppn: Ppn,
        _units: u32,
        cause: Cause,
        _route: Route,
        _tag: Tag,
    ) -> Result<Completion, NandError> {
        if matches!(cause, Cause::Gc | Cause::Wear) {
            // Once for all units of the page that are copied. Anything else is read when it is asked for.
            self.sense(self.geometry.page_of(ppn));
        }
        let (Ready::At(at) | Ready::After(_, at)) = ready;
        Ok(Completion::instant(at))
    }

    fn content(&mut self, ppn: Ppn) -> Result<StoredUnit, NandError> {
        match self.sensed_unit(ppn) {
            Some(unit) => Ok(unit),
            None => self.read_unit(ppn),
        }
    }

    fn prove(&self, ppn: Ppn, owner: Owner, page: &StoredUnit) -> Result<(), NandError> {
        // What waits to be programmed has its identity when it is.
        if page.values.is_some() || self.proves(owner, &page.record) {
            return Ok(());
        }
        let why = ELSEWHERE;
        Err(NandError::Rot { ppn, why })
    }

    fn prove_copy(&mut self, from: Ppn, owner: Owner) -> Result<(), NandError> {
        let found = self.find_copy(from, owner);
        self.heed_tables()?;
        match found {
            // What was lost before stays so, and what is known to be something else does not come back.
            CopyFound::Good(_) | CopyFound::Lost(_) | CopyFound::Elsewhere => Ok(()),
            CopyFound::Unreadable(_, why) => {
                self.unreadable.push(from);
                self.forget_sensed(self.geometry.block_of(from));
                Err(NandError::Rot { ppn: from, why })
            }
        }
    }

    fn program(
        &mut self,
        ready: Ready,
        page: PageId,
        units: &[Unit<StoredUnit>],
        stream: Stream,
        _route: Route,
        _tags: &[Tag],
    ) -> Result<Completion, NandError> {
        self.heed_tables()?;
        self.program_page(page, units, stream)?;
        let (Ready::At(at) | Ready::After(_, at)) = ready;
        Ok(Completion::instant(at))
    }

    fn erase(
        &mut self,
        at: Time,
        block: BlockId,
        _background: bool,
        _tag: Tag,
    ) -> Result<Completion, NandError> {
        self.heed_tables()?;
        for Young {
            write_seq,
            lpn,
            stamp,
            object,
        } in self.young.take_block(block)
        {
            if self.young.is_first_death(write_seq) {
                self.note(JournalEntry::Dead {
                    lpn,
                    write_seq,
                    stamp,
                    object,
                })?;
            }
        }
        self.forget_sensed(block);
        self.lives[block.index()].erases += 1;
        self.programmed.mark(block);
        self.pending.push(block);
        Ok(Completion::instant(at))
    }

    fn barrier(&mut self) -> Result<(), NandError> {
        let open = self.begin_barrier()?;
        self.sync()?;
        self.end_barrier(open)
    }

    fn validity_changed(&mut self, ppn: Ppn) {
        self.valid.mark(RowId(ppn.0 / UNITS_PER_WORD));
    }

    fn window_begins(&mut self, instant: u64) {
        self.window = self.window.max(instant);
    }

    fn advance(&mut self, _until: Time, _done: &mut Vec<Finished>) {}

    fn idle_since(&self, _plane: PlaneId) -> Option<Time> {
        Some(0)
    }

    fn next_event(&self) -> Option<Time> {
        None
    }
}
