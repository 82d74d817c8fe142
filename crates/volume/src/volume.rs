//! A persistent volume: pages of 4 KiB that survive.
//!
//! The promise: after any crash the volume holds its state at one instant, not earlier than the last
//! flush that was acknowledged. docs/durability.md says it in plain words and names the tests.
//!
//! A write, a share or a trim is one event with one sequence number. A flush programs what waits in
//! page buffers, writes the journal and is one barrier. Collection goes on a page at a time with each write.
//! Once so much has been written since the last checkpoint that a recovery would take long, or the journal
//! is half full, the next operation takes a checkpoint first.

use std::sync::Arc;

use flashlore_content::dedup::DedupCounters;
use flashlore_content::dedup::bounded::pages::AsOf;
use flashlore_content::{PAGE_BYTES, PageBytes};
use flashlore_flash::{Lpn, ObjectId, Ppn};
use flashlore_ftl::content::encoding::EncodingCounters;
use flashlore_ftl::core::OpenBarrier;
use flashlore_ftl::policies::options::SimilarOptions;
use flashlore_ftl::{Counters, FtlError};
use flashlore_medium::{Medium, MediumError};
use flashlore_metadata::StoredTables;
use rustc_hash::FxHashSet;

use crate::bounds::RecoveryBounds;
use crate::error::{NandError, VolumeError};
use crate::fetch::{PageReader, Prepared, Preparer, ReadPlan, WritePlan};
use crate::findings::Finding;
use crate::format::{Areas, Change, ClockNote, Identity, ObjectNote, Record, Superblock, UnitKind};
use crate::layer::{Layer, Written};
use crate::nand::{self, Nand};
use crate::notes::Notes;
use crate::scrub::Hidden;
use crate::stored_index::{PagesToRead, ReadPages, StoredIndex};
use crate::superblocks::write_superblock;
use crate::survey::{IndexState, StoredAs, Survey, TableState};
use crate::tables::TableStore;
use crate::unit::{StoredUnit, UnitPlace};

/// With so few blocks that can be written before a flush, it is waited for.
const WAITING_BLOCKS: usize = 2;

/// The state of a volume in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Pages the host sees.
    pub exported: u32,
    /// Pages stored.
    pub stored: u64,
    /// The most pages that can be stored.
    pub most: u64,
    /// Current epoch: how often the volume was opened.
    pub epoch: u32,
    /// The last event.
    pub sequence: u64,
    /// Everything up to this event is durable.
    pub durable: u64,
    /// Number of the last checkpoint.
    pub checkpoint: u64,
    /// Events that are not durable yet.
    pub waiting: u64,
}

/// A flush of which the first half is done.
#[derive(Debug)]
#[must_use = "nothing is acknowledged before it ends"]
pub struct OpenFlush {
    settling: OpenBarrier,
    barrier: nand::OpenBarrier,
}

/// A checkpoint of which the first part is done.
#[derive(Debug)]
#[must_use = "it counts only once it ends"]
pub struct OpenCheckpoint(u64);

/// What is to be done soon, and can be done in small steps while the volume is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chores {
    /// [`Volume::collect_step`].
    pub collection: bool,
    /// A flush: then blocks that have become free may be written.
    pub flush: bool,
    /// [`Volume::clean_tables`], then [`Volume::begin_checkpoint`].
    pub checkpoint: bool,
    /// [`Volume::discard_step`].
    pub discard: bool,
    /// [`Volume::look_at_rest`].
    pub rest: bool,
}

impl Chores {
    /// Whether there is anything to do.
    pub fn any(self) -> bool {
        self.collection || self.flush || self.checkpoint || self.discard || self.rest
    }
}

/// An open volume.
pub struct Volume {
    pub(crate) layer: Box<dyn Layer>,
    pub(crate) tables: TableStore,
    /// As it was written when the volume was opened.
    pub(crate) superblock: Superblock,
    /// What is said about the past.
    pub(crate) notes: Notes,
    /// What the clocks showed when it was opened, until the next change notes it.
    pub(crate) clock: Option<ClockNote>,
    /// The latest stamp given out, nanoseconds since 1970.
    pub(crate) stamp: u64,
    /// When the next checkpoint is due.
    pub(crate) bounds: RecoveryBounds,
    /// Rows that events of the history may have changed since the last one.
    pub(crate) bulk_rows: u64,
    pub(crate) findings: Vec<Finding>,
    /// Units that are among the findings, or were.
    pub(crate) reported: FxHashSet<UnitPlace>,
    /// Where the fingerprint index is kept while the volume is closed.
    pub(crate) stored_index: Option<StoredIndex>,
    /// From which handle on what was stored when the volume was opened is not in the fingerprint index yet, once all pages
    /// of that were read.
    pub(crate) unindexed: Option<ObjectId>,
    /// Whether there are packed pages that nobody has looked at since then.
    pub(crate) has_unseen_packs: bool,
    /// Objects that a scrub could not look up, as far as it has come.
    pub(crate) hidden: Vec<Hidden>,
}

impl Volume {
    /// Pages of 4 KiB the volume exports.
    pub fn exported(&self) -> u32 {
        self.identity().exported
    }

    /// What the volume is.
    pub fn identity(&self) -> &Identity {
        &self.layer.core().flash().id
    }

    /// Makes pages ready to be written.
    pub fn preparer(&self) -> Preparer {
        Preparer(self.identity().key)
    }

    /// Carries out what [`Volume::plan_read`] plans, on any thread.
    pub fn reader(&self) -> PageReader {
        let nand = self.layer.core().flash();
        PageReader::new(nand.medium.clone(), nand.areas.clone(), nand.id.clone())
    }

    /// The medium beneath.
    pub fn medium(&self) -> &Arc<dyn Medium> {
        &self.layer.core().flash().medium
    }

    /// Its state in numbers.
    pub fn status(&self) -> Status {
        let nand = self.layer.core().flash();
        Status {
            exported: self.exported(),
            stored: self.layer.stored(),
            most: self.layer.core().most_live(),
            epoch: nand.epoch,
            sequence: nand.sequence,
            durable: nand.durable,
            checkpoint: nand.checkpoint(),
            waiting: nand.waiting(),
        }
    }

    /// What the translation layer counted since the volume was opened.
    pub fn counters(&self) -> &Counters {
        self.layer.core().counters()
    }

    /// What is in memory of its tables.
    pub fn table_state(&self) -> TableState {
        self.tables.state()
    }

    /// Its tables, to read pages of them without the volume.
    pub(crate) fn stored_tables(&self) -> StoredTables<ObjectNote> {
        self.tables.stored()
    }

    /// What deduplication counted since the volume was opened.
    pub fn dedup_counters(&self) -> Option<DedupCounters> {
        self.layer.dedup_counters()
    }

    /// What the fingerprint index knows, if equal pages are stored once.
    pub fn index_state(&self) -> Option<IndexState> {
        let index = self.layer.index()?;
        let counters = index.counters();
        Some(IndexState {
            entries: index.len(),
            capacity: index.capacity(),
            memory: index.heap_bytes() as u64,
            misses: counters.misses,
            doubtful_misses: counters.doubtful_misses,
        })
    }

    /// What encoding counted since the volume was opened, if values are encoded.
    pub fn encoding_counters(&self) -> Option<EncodingCounters> {
        self.layer.encoding_counters()
    }

    /// From now on, until the volume is closed, a page that has nothing to differ from becomes a delta from
    /// whatever page resembles it. Only pages written since are found: the index of sketches is in RAM and begins
    /// empty. Nothing about it is stored; a volume without deltas stays as it is.
    pub fn find_similar_bases(&mut self, options: SimilarOptions) {
        self.layer.find_similar_bases(options);
    }

    /// From now on a checkpoint is due after so much. What a recovery takes is said of a volume with the default
    /// ([`crate::memory`]): tests alone have others.
    pub fn set_bounds(&mut self, bounds: RecoveryBounds) {
        self.bounds = bounds;
    }

    /// Why the volume is read-only, if it is.
    pub fn failure(&self) -> Option<&str> {
        self.layer.core().flash().failure()
    }

    pub(crate) fn check_range(&self, lpn: Lpn) -> Result<(), VolumeError> {
        let exported = self.exported();
        if lpn < Lpn(exported) {
            Ok(())
        } else {
            Err(VolumeError::OutOfRange { lpn, exported })
        }
    }

    /// Writes a page at the time `now`, in nanoseconds since 1970. It is durable after the next flush.
    ///
    /// # Errors
    /// Out of range, no space, or the store failed. Nothing has changed then.
    pub fn write(&mut self, now: u64, lpn: Lpn, page: &PageBytes) -> Result<(), VolumeError> {
        self.write_prepared(now, lpn, self.preparer().prepare(page))
    }

    /// The same for a page whose digest is known: [`Preparer::prepare`] needs no volume.
    ///
    /// # Errors
    /// As [`Volume::write`].
    pub fn write_prepared(
        &mut self,
        now: u64,
        lpn: Lpn,
        page: Prepared,
    ) -> Result<(), VolumeError> {
        self.check_range(lpn)?;
        self.look(lpn, |volume| volume.touch(lpn))?;
        self.begin_change(now)?;
        let paid = self.layer.keep_pace();
        paid.map_err(|error| VolumeError::of(error, lpn))?;
        let unit = self.unit(lpn, page);
        let stored = self.layer.stored();
        let most = self.layer.core().most_live();
        let change = match self.layer.write(lpn, unit, stored < most) {
            Ok(change) => change,
            Err(FtlError::Full { .. }) => return Err(VolumeError::NoSpace { stored, most }),
            Err(error) => return Err(VolumeError::of(error, lpn)),
        };
        // That there was nothing to do may have been seen in a row that could not be had.
        self.layer.core_mut().flash_mut().heed_tables()?;
        Ok(self.note(lpn, change)?)
    }

    /// What a page would be compared with if it were written now, or how it would be encoded. A [`PageReader`] of this
    /// volume can do that while the volume goes on ([`PageReader::work_ahead`]); without it the write does.
    ///
    /// # Errors
    /// Out of range, or what waits to be programmed cannot be read any more.
    pub fn plan_write(&mut self, lpn: Lpn, page: &Prepared) -> Result<WritePlan, VolumeError> {
        self.check_range(lpn)?;
        let planned = self.look(lpn, |volume| volume.layer.plan_write(lpn, page.digest))?;
        let planned = planned.map_err(|error| VolumeError::of(error, lpn))?;
        let nand = self.layer.core().flash();
        Ok(WritePlan::new(planned, |ppn| nand.place_of(ppn)))
    }

    /// Whether something stored may hold the same as a page that is to be written here.
    pub(crate) fn may_hold(&mut self, lpn: Lpn, page: &Prepared) -> bool {
        let found = self.look(lpn, |volume| volume.layer.may_hold(page.digest));
        // The write tells what cannot be read.
        found.unwrap_or(false)
    }

    /// Looks at the rows that a change of an address needs: where one cannot be had that is found before anything changes.
    fn touch(&self, lpn: Lpn) {
        self.layer.places(lpn);
        if self.identity().history.is_some() {
            self.layer.core().flash().touch_head(lpn);
        }
    }

    /// Does something that changes nothing: a page of the tables that cannot be read for it concerns this address alone.
    pub(crate) fn look<A>(
        &mut self,
        lpn: Lpn,
        look: impl FnOnce(&mut Self) -> A,
    ) -> Result<A, VolumeError> {
        match self.forgiving(look) {
            (_, Some(source)) => Err(VolumeError::Unreadable { lpn, source }),
            (found, None) => Ok(found),
        }
    }

    /// Does something that changes no table and answers as well as it can, and why a page of the tables could not be had, if
    /// one could not.
    pub(crate) fn forgiving<A>(
        &mut self,
        act: impl FnOnce(&mut Self) -> A,
    ) -> (A, Option<NandError>) {
        let before = self.table_failures();
        let done = act(self);
        (done, self.layer.core().flash().forgive_tables(before))
    }

    /// The same of what concerns no address alone.
    pub(crate) fn look_over<A>(&self, look: impl FnOnce(&Self) -> A) -> Result<A, VolumeError> {
        let before = self.layer.core().flash().failures_of_tables();
        let found = look(self);
        match self.layer.core().flash().forgive_tables(before) {
            Some(source) => Err(source.into()),
            None => Ok(found),
        }
    }

    /// Does something that changes nothing and answers as well as it can.
    fn glance<A>(&self, glance: impl FnOnce(&dyn Layer) -> A) -> A {
        let nand = self.layer.core().flash();
        let before = nand.failures_of_tables();
        let found = glance(self.layer.as_ref());
        nand.forgive_tables(before);
        found
    }

    fn unit(&self, lpn: Lpn, page: Prepared) -> StoredUnit {
        let record = Record {
            kind: UnitKind::Data,
            lpn,
            write_seq: self.layer.core().flash().next_sequence(),
            stamp: self.stamp,
            digest: page.digest,
        };
        StoredUnit {
            ahead: page.ahead,
            ..StoredUnit::new(record, page.bytes)
        }
    }

    fn note(&mut self, lpn: Lpn, written: Written) -> Result<(), NandError> {
        let change = match written {
            Written::Nothing => return Ok(()),
            Written::Stored => None,
            Written::Shared { object } => Some(Change::Share { lpn, object }),
        };
        self.take_event(change)
    }

    pub(crate) fn take_event(&mut self, change: Option<Change>) -> Result<(), NandError> {
        let nand = self.layer.core_mut().flash_mut();
        nand.take_event(self.stamp, change)
    }

    /// Reads a page; zeros if nothing was written there.
    ///
    /// # Errors
    /// Out of range, or the stored page cannot be read any more.
    pub fn read(&mut self, lpn: Lpn, page: &mut PageBytes) -> Result<(), VolumeError> {
        self.check_range(lpn)?;
        match self.look(lpn, |volume| volume.layer.read(lpn))? {
            Ok(Some(unit)) => *page = *unit.bytes,
            Ok(None) => *page = [0; PAGE_BYTES],
            Err(FtlError::Device(source @ (NandError::Rot { .. } | NandError::Medium(_)))) => {
                match source {
                    NandError::Rot { .. } => self.note_unreadable(&source),
                    _ => {
                        let (places, _) = self.forgiving(|volume| volume.layer.places(lpn));
                        let places = places.into_iter().flatten();
                        places.for_each(|unit| self.note_finding(unit, &source));
                    }
                }
                return Err(VolumeError::Unreadable { lpn, source });
            }
            Err(error) => return Err(VolumeError::of(error, lpn)),
        }
        Ok(())
    }

    /// Where a page is to be read by a [`PageReader`] of this volume. If that finds that it is not there any more,
    /// [`Volume::read`] tells what is the case.
    ///
    /// # Errors
    /// Out of range, or a page that waits to be programmed cannot be read any more.
    pub fn plan_read(&mut self, lpn: Lpn) -> Result<ReadPlan, VolumeError> {
        self.check_range(lpn)?;
        let held = self.look(lpn, |volume| volume.layer.plan(lpn))?;
        let held = held.map_err(|error| VolumeError::of(error, lpn))?;
        let nand = self.layer.core().flash();
        Ok(ReadPlan::new(held, |ppn| nand.place_of(ppn)))
    }

    /// Forgets a page at the time `now`, in nanoseconds since 1970.
    ///
    /// # Errors
    /// Out of range, no space for the old version, or the store failed.
    pub fn trim(&mut self, now: u64, lpn: Lpn) -> Result<(), VolumeError> {
        self.check_range(lpn)?;
        self.look(lpn, |volume| volume.touch(lpn))?;
        self.begin_change(now)?;
        let held = self.layer.trim(lpn);
        let held = held.map_err(|error| VolumeError::of(error, lpn))?;
        self.layer.core_mut().flash_mut().heed_tables()?;
        if held {
            self.take_event(Some(Change::Trim { lpn }))?;
        }
        Ok(())
    }

    /// Everything acknowledged so far becomes durable.
    ///
    /// # Errors
    /// The store failed: how much is durable is not known, and the volume is read-only from now on.
    pub fn flush(&mut self) -> Result<(), VolumeError> {
        self.layer.core().flash().writable()?;
        let reclaimed = self.layer.reclaim_empty();
        reclaimed.map_err(|error| VolumeError::of(error, Lpn(0)))?;
        let core = self.layer.core_mut();
        core.barrier(0)
            .map_err(|error| VolumeError::of(error, Lpn(0)))
    }

    /// The first half of [`Volume::flush`]. The caller then syncs the medium, during which the volume may be used,
    /// and ends with [`Volume::end_flush`].
    ///
    /// # Errors
    /// As [`Volume::flush`].
    pub fn begin_flush(&mut self) -> Result<OpenFlush, VolumeError> {
        self.layer.core().flash().writable()?;
        let reclaimed = self.layer.reclaim_empty();
        reclaimed.map_err(|error| VolumeError::of(error, Lpn(0)))?;
        let core = self.layer.core_mut();
        let settling = core.begin_barrier(0);
        let settling = settling.map_err(|error| VolumeError::of(error, Lpn(0)))?;
        let barrier = core.flash_mut().begin_barrier()?;
        Ok(OpenFlush { settling, barrier })
    }

    /// The second half: the medium was synced, or could not be.
    ///
    /// # Errors
    /// As [`Volume::flush`].
    pub fn end_flush(
        &mut self,
        open: OpenFlush,
        synced: Result<(), MediumError>,
    ) -> Result<(), VolumeError> {
        self.after_sync(synced)?.end_barrier(open.barrier)?;
        self.layer.core_mut().end_barrier(open.settling);
        Ok(())
    }

    /// Takes a checkpoint: the next opening has nothing to replay.
    ///
    /// # Errors
    /// As [`Volume::flush`].
    pub fn checkpoint(&mut self) -> Result<(), VolumeError> {
        let _ = self.begin_checkpoint()?;
        Ok(self.layer.core_mut().flash_mut().finish_checkpoint()?)
    }

    /// The first part of [`Volume::checkpoint`]. The caller then syncs the medium, says so to
    /// [`Volume::write_root`], syncs it again, and ends with [`Volume::end_checkpoint`]. In between the volume may be
    /// used; a flush ends the checkpoint by itself.
    ///
    /// # Errors
    /// As [`Volume::flush`].
    pub fn begin_checkpoint(&mut self) -> Result<OpenCheckpoint, VolumeError> {
        self.gather()?;
        let begun = self
            .tables
            .begin(self.layer.as_mut(), self.stamp, &self.notes)?;
        self.bulk_rows = 0;
        Ok(OpenCheckpoint(begun))
    }

    /// The medium was synced since the first part, or could not be.
    ///
    /// # Errors
    /// As [`Volume::flush`].
    pub fn write_root(
        &mut self,
        open: &OpenCheckpoint,
        synced: Result<(), MediumError>,
    ) -> Result<(), VolumeError> {
        Ok(self.after_sync(synced)?.write_root(open.0)?)
    }

    /// The medium was synced once more, or could not be: everything before the first part is durable.
    ///
    /// # Errors
    /// As [`Volume::flush`].
    pub fn end_checkpoint(
        &mut self,
        open: OpenCheckpoint,
        synced: Result<(), MediumError>,
    ) -> Result<(), VolumeError> {
        Ok(self.after_sync(synced)?.end_checkpoint(open.0)?)
    }

    /// The flash pages, once a caller has synced the medium; without that the volume is read-only from now on.
    fn after_sync(&mut self, synced: Result<(), MediumError>) -> Result<&mut Nand, VolumeError> {
        let nand = self.layer.core_mut().flash_mut();
        match synced {
            Ok(()) => Ok(nand),
            Err(error) => Err(nand.failed_with(error).into()),
        }
    }

    /// Writes up to so many pages of the tables that have changed, so that a checkpoint has less to write; how many
    /// it wrote. They count with the next checkpoint.
    ///
    /// # Errors
    /// As [`Volume::flush`].
    pub fn clean_tables(&mut self, most: u32) -> Result<u32, VolumeError> {
        self.layer.core().flash().writable()?;
        Ok(self.tables.clean(self.layer.as_mut(), most)?)
    }

    /// Pages of the tables that have changed since they were written.
    pub fn dirty_table_pages(&self) -> u32 {
        self.tables.dirty_pages(self.layer.as_ref())
    }

    /// One step of collection: at most a flash page is copied, or a block erased. Whether there was anything to do.
    ///
    /// # Errors
    /// As [`Volume::flush`].
    pub fn collect_step(&mut self) -> Result<bool, VolumeError> {
        self.layer.core().flash().writable()?;
        let stepped = self.layer.collect_step();
        let stepped = stepped.map_err(|error| VolumeError::of(error, Lpn(0)))?;
        self.layer.core_mut().flash_mut().heed_tables()?;
        Ok(stepped)
    }

    /// Gives the space of up to so many free blocks back to the medium, beyond those that are kept; whether there
    /// are more.
    ///
    /// # Errors
    /// As [`Volume::flush`].
    pub fn discard_step(&mut self, most: usize) -> Result<bool, VolumeError> {
        Ok(self.layer.core_mut().flash_mut().discard_kept(most)?)
    }

    /// Looks at what was stored when the volume was opened: reads some of the fingerprint index as it was kept, and once
    /// that is done enters so many objects into it that it does not know; and counts what is dead in as many packed pages.
    /// Whether any is left. What is not entered is not found as a duplicate, and a block in which nobody knows of dead
    /// values is collected later than it might be.
    pub fn look_at_rest(&mut self, most: u32) -> bool {
        let before = self.table_failures();
        self.look_further(most);
        // A page of the tables that cannot be read hides what is in it from this, and does nothing else.
        self.layer.core().flash().forgive_tables(before);
        self.has_unseen()
    }

    /// The same, and what cannot be read is not forgiven.
    pub(crate) fn look_further(&mut self, most: u32) {
        if let Some(pages) = self.index_pages_to_read() {
            self.take_index_pages(&pages.read());
        } else if let Some(from) = self.next_unindexed() {
            self.unindexed = self.layer.fill_index(from, most);
        }
        if self.has_unseen_packs {
            self.has_unseen_packs = self.layer.look_at_packs(most);
        }
    }

    /// Whether [`Volume::look_at_rest`] has anything to look at.
    fn has_unseen(&self) -> bool {
        let index = self.stored_index.as_ref();
        let is_read = index.is_none_or(StoredIndex::is_read);
        !is_read || self.unindexed.is_some() || self.has_unseen_packs
    }

    /// Pages of the fingerprint index, as it was kept, that nobody has read yet.
    pub(crate) fn index_pages_to_read(&self) -> Option<PagesToRead> {
        self.stored_index.as_ref()?.to_read()
    }

    /// Enters what was read of the index. Answers as [`Volume::look_at_rest`].
    pub(crate) fn take_index_pages(&mut self, read: &ReadPages) -> bool {
        let index = self.layer.index_mut();
        if let (Some(stored), Some((index, handles))) = (&mut self.stored_index, index) {
            stored.take(read, index, handles);
            if stored.is_read() {
                self.unindexed = stored.unentered();
            }
            index.set_incomplete(self.unindexed.is_some());
        }
        self.has_unseen()
    }

    /// Keeps the fingerprint index for the next opening.
    fn keep_index(&mut self) {
        while let Some(pages) = self.index_pages_to_read() {
            self.take_index_pages(&pages.read());
        }
        if let (Some(stored), Some(index)) = (&self.stored_index, self.layer.index()) {
            let as_of = AsOf {
                state: self.superblock.epoch.into(),
                entered: self.unindexed.map_or(u32::MAX, |object| object.0),
            };
            // The volume is closed: without it the next opening enters all objects.
            let _ = stored.write(index, as_of);
        }
    }

    /// Nothing of the fingerprint index stays where it is kept.
    pub(crate) fn forget_stored_index(&mut self) {
        let index = self.layer.index_mut();
        if let (Some(stored), Some((index, _))) = (&mut self.stored_index, index) {
            stored.forget(index);
        }
    }

    /// What is to be done soon.
    pub fn chores(&self) -> Chores {
        let core = self.layer.core();
        let nand = core.flash();
        let unsettled = core.unsettled_blocks();
        Chores {
            collection: core.has_steps(),
            flush: unsettled > 0 && 2 * unsettled + 2 >= core.free_blocks() as usize,
            checkpoint: nand.young_count() >= self.bounds.events / 2
                || nand.units_since_checkpoint() >= self.bounds.units / 2
                || nand.journal.is_full_to(4)
                || self.tables.wants_checkpoint(),
            discard: nand.keeps_too_many(),
            rest: self.has_unseen(),
        }
    }

    /// How far the host has come in using up the blocks that can be written before the next flush, from 0 to 1: nothing
    /// as long as half of those are left that collection keeps free.
    pub fn write_pressure(&self) -> f64 {
        let core = self.layer.core();
        let unsettled = core.unsettled_blocks();
        if unsettled == 0 {
            return 0.0;
        }
        let kept = core.options().collect.watermarks.low as usize;
        let left = (core.free_blocks() as usize).saturating_sub(unsettled + WAITING_BLOCKS);
        let enough = (kept / 2).max(1);
        1.0 - left.min(enough) as f64 / enough as f64
    }

    /// Whether the next block to be written may need a flush first: whoever can do that without holding others up,
    /// should.
    pub fn needs_flush(&self) -> bool {
        let core = self.layer.core();
        let unsettled = core.unsettled_blocks();
        unsettled > 0 && unsettled + WAITING_BLOCKS >= core.free_blocks() as usize
    }

    /// What waits is programmed and everything durable, under the checkpoint that there is.
    pub(crate) fn settle(&mut self) -> Result<(), VolumeError> {
        self.gather()?;
        self.flush()
    }

    /// Takes a checkpoint of everything into tables that are new, with the journal that follows it in these areas.
    /// Nothing may wait.
    pub(crate) fn checkpoint_into(&mut self, areas: Areas) -> Result<(), VolumeError> {
        let nand = self.layer.core_mut().flash_mut();
        self.tables.mark_all(nand);
        nand.areas = areas;
        self.checkpoint()
    }

    /// Programs everything that waits.
    fn gather(&mut self) -> Result<(), VolumeError> {
        self.layer.core().flash().writable()?;
        let packed = self.layer.flush_packs();
        packed.map_err(|error| VolumeError::of(error, Lpn(0)))?;
        let core = self.layer.core_mut();
        let flushed = core.flush_all(0);
        flushed.map_err(|error| VolumeError::of(error, Lpn(0)))
    }

    /// Ends the use of a volume with a checkpoint; last of all its superblock says that nobody uses it. Then the fingerprint
    /// index is kept, where there is a place for that.
    ///
    /// # Errors
    /// As [`Volume::flush`]. The next opening finds a volume that was not closed then.
    pub fn close(mut self) -> Result<(), VolumeError> {
        self.checkpoint()?;
        self.flush()?;
        self.discard_step(usize::MAX)?;
        let nand = self.layer.core().flash();
        let closed = Superblock {
            in_use: false,
            ..self.superblock.clone()
        };
        write_superblock(&*nand.medium, &nand.areas, closed)?;
        self.keep_index();
        Ok(())
    }

    /// As [`Volume::begin_release`], and refuses changes while there is no room for one more old version.
    pub(crate) fn begin_change(&mut self, now: u64) -> Result<(), VolumeError> {
        self.begin_release(now)?;
        self.refuse_full_history()
    }

    fn is_checkpoint_due(&self) -> bool {
        let nand = self.layer.core().flash();
        nand.young_count() >= self.bounds.events
            || nand.units_since_checkpoint() >= self.bounds.units
            || nand.journal.is_full_to(2)
            || self.tables.wants_checkpoint()
    }

    /// Refuses changes once the store has failed; takes a checkpoint if one is due. What happens next happens
    /// at `now`, or a moment after what was before, whatever the clock does.
    pub(crate) fn begin_release(&mut self, now: u64) -> Result<(), VolumeError> {
        let nand = self.layer.core_mut().flash_mut();
        nand.heed_tables()?;
        for unit in nand.take_newly_bad() {
            self.layer.distrust(unit);
        }
        self.checkpoint_if_due()?;
        if let Some(clock) = self.clock.take() {
            self.begin_event(now);
            self.note_clock(clock)?;
        }
        self.begin_event(now);
        Ok(())
    }

    pub(crate) fn checkpoint_if_due(&mut self) -> Result<(), VolumeError> {
        if self.is_checkpoint_due() {
            // One that has begun may be enough.
            self.layer.core_mut().flash_mut().finish_checkpoint()?;
            if self.is_checkpoint_due() {
                self.checkpoint()?;
            }
        }
        Ok(())
    }

    /// What happens next happens at `now`, or a moment after what was before.
    fn begin_event(&mut self, now: u64) {
        self.stamp = now.max(self.stamp.saturating_add(1));
        let stamp = self.stamp;
        if let Some(versioned) = self.layer.versioned() {
            versioned.set_instant(stamp);
        }
    }

    /// How often a page of the tables could not be had since the volume was opened.
    pub fn table_failures(&self) -> u64 {
        self.layer.core().flash().failures_of_tables()
    }

    /// Recounts every invariant of the tables in memory. Where a page of them cannot be read ([`Volume::table_failures`]) that
    /// finds what does not hold.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        if let (Some(history), Some(identity)) = (self.layer.history(), self.identity().history) {
            let (held, most) = (history.len(), identity.entries);
            if held > most as usize {
                return Err(format!(
                    "the history has {held} entries, its tables {most} rows"
                ));
            }
        }
        self.glance(|layer| layer.check())
    }

    /// How a page is stored; nothing if nothing was written there, or it does not exist.
    pub fn stored_as(&self, lpn: Lpn) -> Option<StoredAs> {
        self.glance(|layer| layer.stored_as(lpn))
    }

    /// What is stored, and what for, in steps for those who share the volume: adds at most `most` values, from the
    /// owner `from` on, to a survey that begins with nothing and owner 0; where to go on, if anything is left. What
    /// changes in between may be counted twice or not at all.
    pub fn survey_step(&self, from: ObjectId, most: u32, survey: &mut Survey) -> Option<ObjectId> {
        let from = self.next_object(from);
        self.glance(|layer| layer.survey_step(from, most, survey))
    }

    /// Blocks, and those of them that are free.
    pub fn blocks(&self) -> (u32, u32) {
        (self.identity().blocks, self.layer.core().free_blocks())
    }

    /// How often each block was erased since the volume was made.
    pub fn block_erases(&self) -> impl Iterator<Item = u32> + '_ {
        let lives = &self.layer.core().flash().lives;
        lives.iter().map(|life| life.erases)
    }

    /// Where a page lies.
    pub fn location(&self, lpn: Lpn) -> Option<Ppn> {
        self.glance(|layer| layer.location(lpn))
    }
}
