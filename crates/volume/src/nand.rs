//! Flash pages on a medium, with their records, and the journal beside them: one barrier orders both.
//!
//! It implements [`Flash`] for the translation layer. What the layer erases is erased on the medium
//! only after the next barrier: until then its copies, and the events that made its content
//! unreferenced, may exist in memory alone. The layer in turn never programs a block again before
//! that barrier (`FtlOptions::barriers`).
//!
//! Invariants: a page and its records leave in one write; a record's generation is that of its block; the
//! journal names every generation; once a write or a barrier has failed nothing is written any more.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes};
use flashlore_flash::{
    BlockId, Cause, Completion, Finished, Flash, Geometry, Lpn, ObjectId, Owned, Owner, PackId,
    PageId, PageInBlock, PlaneId, Ppn, Ready, Route, Stream, Tag, Time, Unit,
};
use flashlore_medium::{AlignedBuf, Medium, MediumError};

use crate::dirty::DirtyPages;
use crate::encoder::{Ahead, PackedValue, SharedWaiting};
use crate::fetch::Proof;
use crate::format::mark::MARK_BYTES;
use crate::format::notes::PART_BYTES;
use crate::format::packed::{self, Head};
use crate::format::{
    Areas, Change, Identity, JournalEntry, PlacedRecord, Record, Root, Slot, UnitKind,
};
use crate::journal::{Journal, JournalError, Position};
use crate::policies::watermarks;
use crate::unit::{BROKEN_DATA, BROKEN_RECORD, ELSEWHERE, NO_RECORD, Units, read_slot};

/// Numbers of an epoch: its events and block generations begin at `epoch << EPOCH_SHIFT`, so none is used twice.
pub(crate) const EPOCH_SHIFT: u32 = 40;

/// The number of an epoch's first event.
pub(crate) fn first_event(epoch: u32) -> u64 {
    (u64::from(epoch) << EPOCH_SHIFT) + 1
}

/// A unit with its record.
#[derive(Debug, Clone)]
pub struct StoredUnit {
    /// What is known of it.
    pub record: Record,
    /// Its content.
    pub bytes: Arc<PageBytes>,
    /// The encoded values of a packed unit that is not programmed yet, in place of its content.
    pub(crate) values: Option<Arc<[Arc<PackedValue>]>>,
    /// What the content is in fewer bytes, if that was found before it is written.
    pub(crate) ahead: Option<Arc<Ahead>>,
}

impl StoredUnit {
    pub(crate) fn new(record: Record, bytes: Arc<PageBytes>) -> Self {
        StoredUnit {
            record,
            bytes,
            values: None,
            ahead: None,
        }
    }

    /// In place of one that cannot be read any more.
    pub(crate) fn lost(write_seq: u64, lpn: Lpn) -> Self {
        let record = Record {
            kind: UnitKind::Lost,
            lpn,
            write_seq,
            stamp: 0,
            digest: Default::default(),
        };
        StoredUnit::new(record, Arc::new([0; PAGE_BYTES]))
    }
}

/// Why the store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum NandError {
    /// The medium failed.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A write or a barrier failed before.
    #[error("the volume is read-only until it is opened again: {0}")]
    ReadOnly(String),
    /// The content of a unit cannot be read any more.
    #[error("unit {ppn}: {why}")]
    Rot {
        /// The unit.
        ppn: Ppn,
        /// What does not hold.
        why: &'static str,
    },
    /// The journal segment is full: events are journalled faster than checkpoints are taken.
    #[error("the journal segment is full")]
    JournalFull,
}

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

/// Erased blocks whose space is kept for the blocks opened next, beyond those that collection keeps free: a write to
/// space that comes anew from the file system waits for its journal.
const KEPT_BLOCKS: usize = 8;
/// Of those beyond, as many are given back by one barrier.
const MOST_DISCARDS: usize = 8;

/// A write since the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Young {
    pub write_seq: u64,
    pub lpn: Lpn,
    pub stamp: u64,
}

/// A unit in one generation of its block: never the same again once the block is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct UnitPlace {
    pub generation: u64,
    pub ppn: Ppn,
}

/// A barrier of which the first half is done.
#[derive(Debug)]
pub(crate) struct OpenBarrier {
    /// Whole barriers before it.
    barriers: u64,
    /// The last event it makes durable.
    sequence: u64,
    /// Blocks that may be erased after it.
    erased: usize,
}

/// A checkpoint whose tables are written and whose root is not durable yet.
struct OpenCheckpoint {
    /// Its number.
    checkpoint: u64,
    root: AlignedBuf,
    /// Whether the root is written; before that the tables must be durable.
    is_written: bool,
    /// The last event it holds, and how many were young then.
    sequence: u64,
    young_count: u64,
    /// The start of the window in its root.
    window: u64,
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
    young: HashMap<BlockId, Vec<Young>>,
    young_count: u64,
    dead: HashSet<u64>,
    /// Pages read for copying; they hold until their block is erased.
    copying: HashMap<PageId, CopySource>,
    /// Write sequence numbers of objects; empty while addresses own units.
    pub(crate) write_seqs: Vec<u64>,
    /// Table rows whose location changed.
    pub(crate) located: DirtyPages<ObjectId>,
    /// Rows of packed pages that changed.
    pub(crate) packed: DirtyPages<PackId>,
    /// Encoded values in RAM.
    pub(crate) waiting: SharedWaiting,
    /// Block table rows that changed.
    pub(crate) programmed: DirtyPages<BlockId>,
    buffer: AlignedBuf,
    /// Owners of units that were given up when they were copied.
    pub(crate) lost: Vec<ObjectId>,
    /// Units that could not be read for copying and were left where they are.
    pub(crate) unreadable: Vec<Ppn>,
    /// Units that are known to be unreadable.
    bad: HashSet<UnitPlace>,
    /// Old versions that ended at this instant or before are given up; and the same as far as the journal,
    /// or the checkpoint, says it.
    window: u64,
    window_noted: u64,
    open_checkpoint: Option<OpenCheckpoint>,
    failed: Option<String>,
}

/// A flash page that was read for copying.
struct CopySource {
    bytes: AlignedBuf,
    /// By slot, once it has been asked for.
    judged: Vec<Option<Judged>>,
}

/// What of a unit is to be copied.
#[derive(Debug, Clone, Copy)]
enum Judged {
    /// Record and data hold, and are what the map means.
    Good(Record),
    /// It was lost before it was copied here.
    Lost(Record),
    /// It holds, and is something else: what the map means is nowhere.
    Elsewhere,
    /// It cannot be read, now at least; its record, if that can be, and what does not hold.
    Unreadable(Option<Record>, &'static str),
}

/// What a mount found.
pub(crate) struct Found {
    pub epoch: u32,
    pub sequence: u64,
    pub since: u64,
    pub position: Position,
    pub lives: Vec<BlockLife>,
    pub write_seqs: Vec<u64>,
    pub young: HashMap<BlockId, Vec<Young>>,
    /// The oldest instant that can be rewound to, and the same as far as it is durable.
    pub window: u64,
    pub window_noted: u64,
    pub located: DirtyPages<ObjectId>,
    pub packed: DirtyPages<PackId>,
    pub waiting: SharedWaiting,
    pub programmed: DirtyPages<BlockId>,
}

impl Nand {
    pub(crate) fn new(
        medium: Arc<dyn Medium>,
        id: Identity,
        areas: Areas,
        geometry: Geometry,
        found: Found,
    ) -> Self {
        let young_count = found.young.values().map(|v| v.len() as u64).sum();
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
            young: found.young,
            young_count,
            dead: HashSet::new(),
            copying: HashMap::new(),
            write_seqs: found.write_seqs,
            located: found.located,
            packed: found.packed,
            waiting: found.waiting,
            programmed: found.programmed,
            buffer: AlignedBuf::new(),
            lost: Vec::new(),
            unreadable: Vec::new(),
            bad: HashSet::new(),
            window: found.window,
            window_noted: found.window_noted,
            open_checkpoint: None,
            failed: None,
        }
    }

    /// The number the next event will have.
    pub(crate) fn next_sequence(&self) -> u64 {
        if self.sequence >> EPOCH_SHIFT == u64::from(self.epoch) {
            self.sequence + 1
        } else {
            first_event(self.epoch)
        }
    }

    /// Events that are not durable yet. Those of earlier epochs all are.
    pub(crate) fn waiting(&self) -> u64 {
        let before = first_event(self.epoch) - 1;
        self.sequence.saturating_sub(self.durable.max(before))
    }

    /// The next event has happened; a change that programs no page goes into the journal.
    pub(crate) fn take_event(
        &mut self,
        stamp: u64,
        change: Option<Change>,
    ) -> Result<(), NandError> {
        self.sequence = self.next_sequence();
        let sequence = self.sequence;
        match change {
            None => Ok(()),
            Some(change) => self.note(JournalEntry::Event {
                sequence,
                stamp,
                change,
            }),
        }
    }

    /// An event with a payload, which is in the same batch of the journal.
    pub(crate) fn take_event_with(
        &mut self,
        stamp: u64,
        change: Change,
        payload: &[u8],
    ) -> Result<(), NandError> {
        let sequence = self.next_sequence();
        for (number, part) in (0..).zip(payload.chunks(PART_BYTES)) {
            let mut bytes = [0; PART_BYTES];
            bytes[..part.len()].copy_from_slice(part);
            self.journal.push(JournalEntry::Part {
                sequence,
                number,
                bytes,
            });
        }
        self.take_event(stamp, Some(change))
    }

    /// Events that programmed a page since the checkpoint.
    pub(crate) fn young_count(&self) -> u64 {
        self.young_count
    }

    /// Why nothing is written any more, if so.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// From now on nothing is written.
    pub(crate) fn fail(&mut self, why: String) {
        self.failed.get_or_insert(why);
    }

    pub(crate) fn writable(&self) -> Result<(), NandError> {
        match &self.failed {
            Some(why) => Err(NandError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }

    /// Notes an event or a fact for the journal.
    pub(crate) fn note(&mut self, entry: JournalEntry) -> Result<(), NandError> {
        self.journal.push(entry);
        if self.journal.is_due() {
            self.write_journal()?;
        }
        Ok(())
    }

    pub(crate) fn write_journal(&mut self) -> Result<(), NandError> {
        self.writable()?;
        self.finish_checkpoint()?;
        if self.window > self.window_noted {
            self.window_noted = self.window;
            self.journal.push(JournalEntry::Window {
                oldest: self.window,
            });
        }
        let durable = self.durable;
        let written = self
            .journal
            .write(&self.medium, &self.areas, self.epoch, durable);
        match written {
            Ok(()) => Ok(()),
            Err(JournalError::Full) => {
                self.fail(NandError::JournalFull.to_string());
                Err(NandError::JournalFull)
            }
            Err(JournalError::Medium(error)) => Err(self.failed_with(error)),
        }
    }

    fn write_mark(&mut self) -> Result<(), NandError> {
        self.writable()?;
        let (epoch, durable) = (self.epoch, self.durable);
        let medium = &self.medium;
        let written = self.journal.write_mark(medium, &self.areas, epoch, durable);
        written.map_err(|error| self.failed_with(error))
    }

    pub(crate) fn failed_with(&mut self, error: MediumError) -> NandError {
        self.fail(error.to_string());
        NandError::Medium(error)
    }

    /// Writes to the medium; a failure makes the volume read-only.
    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), NandError> {
        self.writable()?;
        let written = self.medium.write(offset, bytes);
        written.map_err(|error| self.failed_with(error))
    }

    /// Everything written so far becomes durable; a failure makes the volume read-only.
    pub(crate) fn sync(&mut self) -> Result<(), NandError> {
        self.writable()?;
        let synced = self.medium.sync();
        synced.map_err(|error| self.failed_with(error))
    }

    /// The first half of a barrier: everything up to the last event leaves for the medium. Once the medium has
    /// been synced, [`Nand::end_barrier`] takes what this answers.
    pub(crate) fn begin_barrier(&mut self) -> Result<OpenBarrier, NandError> {
        // What its tables hold is not in the journal.
        self.finish_checkpoint()?;
        self.note_waiting();
        if !self.journal.is_empty() || self.window > self.window_noted {
            self.write_journal()?;
        }
        Ok(OpenBarrier {
            barriers: self.barriers,
            sequence: self.sequence,
            erased: self.pending.len(),
        })
    }

    /// Everything before the first half is durable.
    pub(crate) fn end_barrier(&mut self, open: OpenBarrier) -> Result<(), NandError> {
        let news = self.durable < open.sequence;
        self.durable = self.durable.max(open.sequence);
        if news {
            // Says so, in time for the next one: a hole before this point is damage, not a cut.
            self.write_mark()?;
        }
        // A whole barrier in between has erased what was pending then.
        if self.barriers == open.barriers {
            self.barriers += 1;
            self.erase_pending(open.erased)?;
        }
        Ok(())
    }

    /// What was erased before a barrier goes back to the medium, but for a few blocks.
    fn erase_pending(&mut self, count: usize) -> Result<(), NandError> {
        self.kept.extend(self.pending.drain(..count));
        self.discard_kept(MOST_DISCARDS)?;
        Ok(())
    }

    fn most_kept(&self) -> usize {
        watermarks(self.id.blocks).high as usize + KEPT_BLOCKS
    }

    /// Whether more blocks keep their space than should.
    pub(crate) fn keeps_too_many(&self) -> bool {
        self.kept.len() > self.most_kept()
    }

    /// Discards up to so many of the blocks that are kept beyond a few; whether there are more.
    pub(crate) fn discard_kept(&mut self, most: usize) -> Result<bool, NandError> {
        let beyond = self.kept.len().saturating_sub(self.most_kept());
        // The oldest ones are opened next.
        for _ in 0..most.min(beyond) {
            if let Some(&block) = self.kept.last() {
                self.discard(block)?;
            }
        }
        Ok(self.keeps_too_many())
    }

    /// What a free block held before goes back to the medium; after a barrier.
    pub(crate) fn discard(&mut self, block: BlockId) -> Result<(), NandError> {
        let bytes = self.areas.page_stride * u64::from(self.geometry.pages_per_block());
        let at = self.areas.page(self.geometry.first_page(block));
        self.kept.retain(|&b| b != block);
        self.discard_range(at, bytes)
    }

    /// The journal segment that is not in use goes back to the medium.
    pub(crate) fn discard_old_journal(&mut self) -> Result<(), NandError> {
        let at = self.areas.journal(self.journal.segment() + 1);
        self.discard_range(at, self.id.journal_bytes - MARK_BYTES)
    }

    fn discard_range(&mut self, at: u64, bytes: u64) -> Result<(), NandError> {
        self.writable()?;
        let discarded = self.medium.discard(at, bytes);
        discarded.map_err(|error| self.failed_with(error))
    }

    /// The number of the last checkpoint.
    pub(crate) fn checkpoint(&self) -> u64 {
        self.journal.segment()
    }

    /// The checkpoint that has begun and not ended.
    pub(crate) fn open_checkpoint(&self) -> Option<u64> {
        self.open_checkpoint.as_ref().map(|open| open.checkpoint)
    }

    /// All tables of a checkpoint are written: they hold everything up to the last event. The medium is to be
    /// synced, then the root is written ([`Nand::write_root`]), the medium synced again, and the checkpoint ended
    /// ([`Nand::end_checkpoint`]). In between the volume may be used. Until the end nothing is written to the journal:
    /// whoever has to finishes the checkpoint first.
    pub(crate) fn begin_checkpoint(&mut self, root: &Root) {
        let mut bytes = AlignedBuf::zeroed(self.areas.root_bytes as usize);
        root.encode(&self.id.key, self.areas.root(root.checkpoint), &mut bytes);
        // The tables hold what has gathered.
        self.journal.forget();
        self.open_checkpoint = Some(OpenCheckpoint {
            checkpoint: root.checkpoint,
            root: bytes,
            is_written: false,
            sequence: root.sequence,
            young_count: self.young_count,
            window: self.window,
        });
    }

    /// The tables of a checkpoint are durable: its root is written, unless the checkpoint has been finished
    /// since, or its root has.
    pub(crate) fn write_root(&mut self, checkpoint: u64) -> Result<(), NandError> {
        let at = self.areas.root(checkpoint);
        let Some(open) = &mut self.open_checkpoint else {
            return Ok(());
        };
        if open.checkpoint != checkpoint || open.is_written {
            return Ok(());
        }
        open.is_written = true;
        let root = std::mem::take(&mut open.root);
        self.put(at, &root)
    }

    /// The root of a checkpoint is durable, unless it has been finished since: nothing up to its last event is young
    /// any more, and the journal starts anew.
    pub(crate) fn end_checkpoint(&mut self, checkpoint: u64) -> Result<(), NandError> {
        let ended = |open: &mut OpenCheckpoint| open.checkpoint == checkpoint && open.is_written;
        let Some(open) = self.open_checkpoint.take_if(ended) else {
            return Ok(());
        };
        self.since = open.sequence;
        self.durable = self.durable.max(open.sequence);
        self.young.retain(|_, write_seqs| {
            write_seqs.retain(|young| young.write_seq > open.sequence);
            !write_seqs.is_empty()
        });
        self.young_count -= open.young_count;
        self.dead.retain(|&write_seq| write_seq > open.sequence);
        self.window_noted = open.window;
        self.journal.restart(checkpoint);
        self.write_journal()
    }

    /// Ends the open checkpoint, if there is one, at once.
    pub(crate) fn finish_checkpoint(&mut self) -> Result<(), NandError> {
        let Some(open) = &self.open_checkpoint else {
            return Ok(());
        };
        let checkpoint = open.checkpoint;
        if !open.is_written {
            self.sync()?;
            self.write_root(checkpoint)?;
        }
        self.sync()?;
        self.end_checkpoint(checkpoint)
    }

    fn open(&mut self, block: BlockId, stream: Stream) -> Result<(), NandError> {
        debug_assert!(
            !self.pending.contains(&block),
            "block {block} is programmed before the barrier that lets it be erased"
        );
        // What an earlier life left in it names another generation.
        self.kept.retain(|&b| b != block);
        self.generations += 1;
        let life = &mut self.lives[block.index()];
        life.generation = self.generations;
        life.taken = 0;
        let entry = JournalEntry::Open {
            block,
            stream,
            generation: life.generation,
            erases: life.erases,
        };
        self.note(entry)
    }

    /// Lays a unit and its record out in the page buffer.
    fn lay_out(
        &mut self,
        ppn: Ppn,
        generation: u64,
        unit: &Unit<StoredUnit>,
    ) -> Result<(), NandError> {
        let data = self.areas.data_in_page(ppn);
        let (owner, record) = match unit {
            Unit::Pad => return Ok(()),
            Unit::New { owner, page } => (*owner, self.lay_out_new(data.clone(), *owner, page)),
            Unit::Copy { owner, from } => (*owner, self.copy_in(data.clone(), *owner, *from)),
        };
        let placed = PlacedRecord {
            record,
            generation,
            epoch: self.epoch,
        };
        let bytes = placed.encode(&self.id.key, ppn);
        self.buffer[self.areas.record_in_page(ppn)].copy_from_slice(&bytes);
        if record.kind == UnitKind::Lost {
            self.bad.insert(UnitPlace { generation, ppn });
        }
        let is_new = matches!(unit, Unit::New { .. });
        match self.owned(owner) {
            Owned::Pack(pack) => {
                self.packed.mark(pack);
                let heads = packed::read(&self.buffer[data]).unwrap_or_default();
                let whole = record.kind == UnitKind::Packed;
                for head in heads.into_iter().filter(|_| whole) {
                    self.note_young(ppn, head.write_seq, head.lpn, head.stamp, is_new);
                }
            }
            _ => {
                self.located.mark(owner.as_object());
                self.note_young(ppn, record.write_seq, record.lpn, record.stamp, is_new);
            }
        }
        Ok(())
    }

    /// A unit holds a write, which is noted if the checkpoint does not know it.
    fn note_young(&mut self, ppn: Ppn, write_seq: u64, lpn: Lpn, stamp: u64, is_new: bool) {
        if write_seq > self.since {
            let block = self.geometry.block_of(ppn);
            let young = self.young.entry(block).or_default();
            young.push(Young {
                write_seq,
                lpn,
                stamp,
            });
            self.young_count += u64::from(is_new);
        }
    }

    /// Puts new data into the page buffer.
    fn lay_out_new(
        &mut self,
        data: std::ops::Range<usize>,
        owner: Owner,
        page: &StoredUnit,
    ) -> Record {
        let mut record = page.record;
        match &page.values {
            Some(values) => {
                let zeros = [0; PAGE_BYTES];
                let parts = values.iter().map(|v| v.parts(&self.write_seqs, &zeros));
                let parts = parts.map(|(head, bytes)| (with_write(&self.young, head), bytes));
                let space = &mut self.buffer[data];
                record.write_seq = packed::encode(&self.id.key, parts, space);
                if let Some(space) = space.first_chunk() {
                    record.digest = self.id.key.digest(space);
                }
                values.iter().for_each(|value| value.note_safe());
            }
            None if record.kind == UnitKind::Lost => {
                self.lost.push(owner.as_object());
                record.write_seq = self
                    .write_seqs
                    .get(owner.as_object().index())
                    .copied()
                    .unwrap_or(0);
                if let Some(write) = write_of(&self.young, record.write_seq) {
                    (record.lpn, record.stamp) = (write.lpn, write.stamp);
                }
            }
            None => self.buffer[data].copy_from_slice(&*page.bytes),
        }
        record
    }

    /// What waits in RAM goes into the journal: values, and that writes happened whose values are needed no
    /// more.
    fn note_waiting(&mut self) {
        let waiting = Arc::clone(&self.waiting);
        let mut waiting = waiting.lock();
        let due = waiting.due(self.sequence);
        let zeros = [0; PAGE_BYTES];
        for value in due.values {
            let (head, bytes) = value.parts(&self.write_seqs, &zeros);
            let head = with_write(&self.young, head);
            self.journal.push_value(head, bytes);
            value.note_safe();
        }
        for Young {
            write_seq,
            lpn,
            stamp,
        } in due.forgotten
        {
            if write_seq > self.since && write_seq <= self.sequence && self.dead.insert(write_seq) {
                self.journal.push(JournalEntry::Dead {
                    lpn,
                    write_seq,
                    stamp,
                });
            }
        }
        for object in waiting.take_touched() {
            self.located.mark(object);
        }
    }

    /// Marks the rows of objects that have come to lie elsewhere.
    pub(crate) fn mark_touched(&mut self) {
        let waiting = Arc::clone(&self.waiting);
        let mut waiting = waiting.lock();
        for object in waiting.take_touched() {
            self.located.mark(object);
        }
    }

    /// Puts the data of another unit into the page buffer; what cannot be read is given up and marked as lost.
    fn copy_in(&mut self, data: std::ops::Range<usize>, owner: Owner, from: Ppn) -> Record {
        let judged = self.judge_copy(from, owner);
        let record = match judged {
            Judged::Good(record) => {
                let source = &self.copying[&self.geometry.page_of(from)];
                let unit = &source.bytes[self.areas.data_in_page(from)];
                self.buffer[data].copy_from_slice(unit);
                return record;
            }
            Judged::Lost(record) | Judged::Unreadable(Some(record), _) => record,
            Judged::Elsewhere | Judged::Unreadable(None, _) => self.lost_record(owner, from),
        };
        self.lost.push(owner.as_object());
        Record {
            kind: UnitKind::Lost,
            ..record
        }
    }

    fn slot_of(&self, ppn: Ppn) -> usize {
        (ppn.0 % self.geometry.units_per_page()) as usize
    }

    /// What of a unit is to be copied, as its flash page was read.
    fn judge_copy(&mut self, from: Ppn, owner: Owner) -> Judged {
        let page = self.geometry.page_of(from);
        if !self.copying.contains_key(&page) {
            self.load_for_copying(page);
        }
        let (slot, source) = (self.slot_of(from), &self.copying[&page]);
        if let Some(judged) = source.judged[slot] {
            return judged;
        }
        let judged = match read_slot(&source.bytes, &self.areas, &self.id, from) {
            // Of an earlier generation: what was to be programmed here never was.
            Slot::Record(placed) if placed.generation == self.generation_of(from) => {
                let unit = &source.bytes[self.areas.data_in_page(from)];
                self.judge_record(owner, placed.record, unit)
            }
            Slot::Record(_) | Slot::Empty => Judged::Unreadable(None, NO_RECORD),
            Slot::Broken => Judged::Unreadable(None, BROKEN_RECORD),
        };
        if let Some(source) = self.copying.get_mut(&page) {
            source.judged[slot] = Some(judged);
        }
        judged
    }

    /// The same for a unit whose record holds.
    fn judge_record(&self, owner: Owner, record: Record, unit: &[u8]) -> Judged {
        if !self
            .proof_of(owner)
            .is_some_and(|proof| proof.holds(&record))
        {
            return Judged::Elsewhere;
        }
        if record.kind == UnitKind::Lost {
            return Judged::Lost(record);
        }
        let unit = unit.first_chunk();
        match unit.is_some_and(|unit| self.id.key.digest(unit) == record.digest) {
            true => Judged::Good(record),
            false => Judged::Unreadable(Some(record), BROKEN_DATA),
        }
    }

    /// What a unit holds: a value, or a packed page where values are encoded.
    fn owned(&self, owner: Owner) -> Owned {
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
            true => self
                .write_seqs
                .get(owner.as_object().index())
                .copied()
                .map(Proof::WriteSeq),
            false => Some(Proof::Lpn(owner.as_page())),
        }
    }

    /// The record of a unit whose own cannot be read.
    fn lost_record(&self, owner: Owner, from: Ppn) -> Record {
        let block = self.geometry.block_of(from);
        let young = self.young.get(&block).map_or(&[][..], Vec::as_slice);
        let (write_seq, lpn) = match self.write_seqs.get(owner.as_object().index()) {
            Some(&write_seq) => (write_seq, Lpn(0)),
            None => {
                let last = young.iter().rev().find(|y| y.lpn == owner.as_page());
                (last.map_or(0, |y| y.write_seq), owner.as_page())
            }
        };
        let born = young.iter().find(|y| y.write_seq == write_seq);
        Record {
            lpn: born.map_or(lpn, |y| y.lpn),
            write_seq,
            stamp: born.map_or(0, |y| y.stamp),
            kind: UnitKind::Lost,
            digest: Default::default(),
        }
    }

    fn load_for_copying(&mut self, page: PageId) {
        let mut bytes = AlignedBuf::zeroed(self.areas.page_stride as usize);
        self.units().read_page(page, &mut bytes);
        let judged = vec![None; self.geometry.units_per_page() as usize];
        self.copying.insert(page, CopySource { bytes, judged });
    }

    /// Nothing of a block is to be copied any more, or not as it was read.
    fn forget_copies(&mut self, block: BlockId) {
        let geometry = &self.geometry;
        self.copying
            .retain(|&page, _| geometry.block_of_page(page) != block);
    }

    /// A unit that was read for copying and is good: it is not read again.
    fn copied(&self, ppn: Ppn) -> Option<StoredUnit> {
        let (slot, source) = (
            self.slot_of(ppn),
            self.copying.get(&self.geometry.page_of(ppn))?,
        );
        match source.judged[slot] {
            Some(Judged::Good(record)) => {
                let bytes = source.bytes[self.areas.data_in_page(ppn)].first_chunk()?;
                Some(StoredUnit::new(record, Arc::new(*bytes)))
            }
            _ => None,
        }
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
        self.bad.insert(self.place_of(ppn));
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

    fn generation_of(&self, ppn: Ppn) -> u64 {
        self.lives[self.geometry.block_of(ppn).index()].generation
    }
}

impl Flash for Nand {
    type Page = StoredUnit;
    type Error = NandError;
    const PROVES: bool = true;

    fn is_loss(error: &NandError) -> bool {
        matches!(error, NandError::Rot { .. } | NandError::Medium(_))
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
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
            let page = self.geometry.page_of(ppn);
            if !self.copying.contains_key(&page) {
                self.load_for_copying(page);
            }
        }
        let (Ready::At(at) | Ready::After(_, at)) = ready;
        Ok(Completion::instant(at))
    }

    fn content(&mut self, ppn: Ppn) -> Result<StoredUnit, NandError> {
        match self.copied(ppn) {
            Some(unit) => Ok(unit),
            None => self.read_unit(ppn),
        }
    }

    fn prove(&self, ppn: Ppn, owner: Owner, page: &StoredUnit) -> Result<(), NandError> {
        // What waits to be programmed has its identity when it is.
        if page.values.is_some() || self.proof_of(owner).is_some_and(|p| p.holds(&page.record)) {
            return Ok(());
        }
        let why = ELSEWHERE;
        Err(NandError::Rot { ppn, why })
    }

    fn prove_copy(&mut self, from: Ppn, owner: Owner) -> Result<(), NandError> {
        match self.judge_copy(from, owner) {
            // What was lost before stays so, and what is known to be something else does not come back.
            Judged::Good(_) | Judged::Lost(_) | Judged::Elsewhere => Ok(()),
            Judged::Unreadable(_, why) => {
                self.unreadable.push(from);
                // It is read anew when it is tried again.
                self.forget_copies(self.geometry.block_of(from));
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
        self.writable()?;
        let block = self.geometry.block_of_page(page);
        let within = self.geometry.page_in_block(page);
        if within == PageInBlock(0) {
            self.open(block, stream)?;
        }
        let generation = self.lives[block.index()].generation;
        let first = self.geometry.first_unit_of_page(page).0;
        self.buffer.clear();
        self.buffer.resize(self.areas.page_stride as usize);
        for (slot, unit) in units.iter().enumerate() {
            self.lay_out(Ppn(first + slot as u32), generation, unit)?;
        }
        let bytes = std::mem::take(&mut self.buffer);
        let written = self.put(self.areas.page(page), &bytes);
        self.buffer = bytes;
        written?;
        self.lives[block.index()].taken = within.0 + 1;
        self.programmed.mark(block);
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
        self.writable()?;
        for Young {
            write_seq,
            lpn,
            stamp,
        } in self.young.remove(&block).unwrap_or_default()
        {
            if self.dead.insert(write_seq) {
                self.note(JournalEntry::Dead {
                    lpn,
                    write_seq,
                    stamp,
                })?;
            }
        }
        self.forget_copies(block);
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

/// A write that the checkpoint does not know.
fn write_of(young: &HashMap<BlockId, Vec<Young>>, write_seq: u64) -> Option<Young> {
    let mut all = young.values().flatten();
    all.find(|young| young.write_seq == write_seq).copied()
}

/// The head of a value that was lost says which write it was: a recovery may have nothing else to tell it.
fn with_write(young: &HashMap<BlockId, Vec<Young>>, head: Head) -> Head {
    let write = head.lost.then(|| write_of(young, head.write_seq)).flatten();
    match write {
        Some(Young { lpn, stamp, .. }) => Head { lpn, stamp, ..head },
        None => head,
    }
}
