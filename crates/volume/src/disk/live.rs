//! The present of a volume as a block device for many threads.
//!
//! The volume itself is one state machine behind one lock. What takes long happens outside of it: pages are hashed
//! before it is asked, compared or encoded once it has said what with, read once it has said where they lie,
//! and the medium is synced between the two halves of a flush. Under the lock it changes its tables, appends, and
//! moves what collection must to keep pace. What else a volume does by itself, [`super::maintenance`] does in steps.
//!
//! Invariants: a page of 4 KiB changes as a whole, also if only a part of it is written; a read answers what each page
//! held at one moment between its call and its end; a flush covers what had returned before its call.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use flashlore_content::history::ChangedPages;
use flashlore_content::{PAGE_BYTES, PageBytes};
use flashlore_flash::Lpn;
use flashlore_medium::Medium;
use parking_lot::Mutex;

use super::ahead::TablesAhead;
use super::commit::Commit;
use super::device::{
    About, BlockDevice, CHANGED, COMPRESSED, DELTA, DiskError, HOLE, SHARED, UNIQUE,
};
use super::lock::{HeldStore, Locked};
use super::range::{
    Pages, Part, batches, check_range, in_batches, read_by_pages, tell, write_by_pages,
};
use super::wake::Wake;
use crate::error::VolumeError;
use crate::fetch::{Codec, PageReader, Prepared, Preparer, ReadPlan, WritePlan};
use crate::format::Policy;
use crate::volume::Volume;

/// Pages that are read or written under one hold of the lock.
const BATCH: u32 = 64;

/// How long a write is delayed while the medium is synced, at most.
const LONGEST_DELAY: Duration = Duration::from_millis(2);

/// What tells the time, in nanoseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The pages that changed since an instant, as of an event.
struct Changes {
    instant: u64,
    sequence: u64,
    pages: Arc<ChangedPages>,
}

/// A volume that many threads use.
pub struct Disk {
    volume: Locked<Volume>,
    pub(super) medium: Arc<dyn Medium>,
    reader: PageReader,
    preparer: Preparer,
    codecs: Codecs,
    /// Whether pages are encoded, and whether duplicates are compared.
    encodes: bool,
    compares: bool,
    clock: Clock,
    pub(super) commit: Commit,
    pub(super) wake: Wake,
    ahead: TablesAhead,
    /// What was last told about changes: questions come in pieces.
    changes: Mutex<Option<Changes>>,
    pages: u32,
}

/// Codecs that no thread uses at the moment.
#[derive(Default)]
struct Codecs(Mutex<Vec<Codec>>);

impl Codecs {
    fn take(&self) -> Codec {
        let mut codecs = self.0.lock();
        codecs.pop().unwrap_or_default()
    }

    fn give(&self, codec: Codec) {
        let mut codecs = self.0.lock();
        codecs.push(codec);
    }
}

/// What is read: the present of a volume, or an instant of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    Now,
    At(u64),
}

impl When {
    fn plan(self, volume: &mut Volume, lpn: Lpn) -> Result<ReadPlan, VolumeError> {
        match self {
            When::Now => volume.plan_read(lpn),
            When::At(instant) => volume.plan_read_at(instant, lpn),
        }
    }

    fn read(self, volume: &mut Volume, lpn: Lpn, page: &mut PageBytes) -> Result<(), VolumeError> {
        match self {
            When::Now => volume.read(lpn, page),
            When::At(instant) => volume.read_at(instant, lpn, page),
        }
    }
}

impl Disk {
    /// A volume for many threads. `clock` tells the time of changes.
    pub fn new(volume: Volume, clock: Clock) -> Self {
        Disk {
            medium: Arc::clone(volume.medium()),
            reader: volume.reader(),
            preparer: volume.preparer(),
            codecs: Codecs::default(),
            encodes: volume.identity().encoding.is_on(),
            compares: volume.identity().policy == Policy::Dedup,
            pages: volume.exported(),
            ahead: TablesAhead::new(&volume),
            volume: Locked::new(volume),
            clock,
            commit: Commit::default(),
            wake: Wake::default(),
            changes: Mutex::new(None),
        }
    }

    /// The present, in nanoseconds since 1970.
    pub fn now(&self) -> u64 {
        (self.clock)()
    }

    /// The volume, while nobody else changes it or looks at it.
    pub(crate) fn hold(&self) -> Result<HeldStore<'_, Volume>, DiskError> {
        self.volume.hold()
    }

    /// The volume, to look something up: waits for no change but the one under way.
    pub(crate) fn look(&self) -> Result<HeldStore<'_, Volume>, DiskError> {
        self.volume.look()
    }

    /// The volume, to write to it. Where the next block can be written only after a flush, that comes first, while
    /// others may use the volume. Before it comes to that all writes take a little longer, instead of a few as long
    /// as the flush.
    fn hold_to_write(&self) -> Result<HeldStore<'_, Volume>, DiskError> {
        let mut held = self.hold()?;
        let pressure = held.get()?.write_pressure();
        if pressure > 0.0 && self.wake.is_heard() {
            drop(held);
            std::thread::sleep(LONGEST_DELAY.mul_f64(pressure));
            held = self.hold()?;
        }
        if held.get()?.needs_flush() {
            drop(held);
            // The flush that runs may be enough.
            self.commit.join();
            held = self.hold()?;
            if held.get()?.needs_flush() {
                drop(held);
                self.flush()?;
                held = self.hold()?;
            }
        }
        Ok(held)
    }

    /// One step of collection, with what it needs of the tables read before. Whether there was anything to do.
    pub(super) fn collect_step(&self) -> Result<bool, DiskError> {
        self.ahead
            .fetch(&self.volume, Volume::missing_for_collection)?;
        Ok(self.with(Volume::collect_step)??)
    }

    /// A step of [`Volume::look_at_rest`], whose pages push no others out of memory. Whether any is left.
    pub(super) fn look_at_rest(&self, most: u32) -> Result<bool, DiskError> {
        let of_index = self.look()?.get()?.index_pages_to_read();
        if let Some(pages) = of_index {
            let read = pages.read();
            return self.with(|volume| volume.take_index_pages(&read));
        }
        let missing = |volume: &Volume| volume.missing_for_rest(most);
        let pages = self.ahead.read(&self.volume, missing)?;
        self.with(|volume| volume.look_at_rest_in(&pages, most))
    }

    /// Does something with the volume while nobody else does.
    ///
    /// # Errors
    /// It was closed, or what it holds in memory cannot be trusted any more.
    pub fn with<R>(&self, act: impl FnOnce(&mut Volume) -> R) -> Result<R, DiskError> {
        Ok(act(self.hold()?.get()?))
    }

    /// Ends the use of the volume with a checkpoint. Later calls fail.
    ///
    /// # Errors
    /// It was closed before, or the store failed.
    pub fn close(&self) -> Result<(), DiskError> {
        Ok(self.volume.close()?.close()?)
    }

    /// Fetches planned pages; what is not where it was planned the volume reads itself.
    fn fetch(
        &self,
        when: When,
        first: Lpn,
        plans: &[ReadPlan],
        bytes: &mut [u8],
    ) -> Result<(), DiskError> {
        let mut from = 0;
        while from < plans.len() {
            let Some(missed) = self
                .reader
                .fetch(&plans[from..], &mut bytes[from * PAGE_BYTES..])
            else {
                return Ok(());
            };
            from += missed;
            let page = &mut bytes[from * PAGE_BYTES..(from + 1) * PAGE_BYTES];
            if let Some(page) = page.first_chunk_mut() {
                when.read(self.look()?.get()?, first + from as u32, page)?;
            }
            from += 1;
        }
        Ok(())
    }

    fn read_pages(&self, when: When, pages: Range<Lpn>, bytes: &mut [u8]) -> Result<(), DiskError> {
        let batches = bytes.chunks_mut(BATCH as usize * PAGE_BYTES);
        for (batch, bytes) in in_batches(pages, BATCH).zip(batches) {
            let first = batch.start;
            if matches!(when, When::Now) {
                let missing = |volume: &Volume| volume.missing_for_reads(batch.clone());
                self.ahead.fetch(&self.volume, missing)?;
            }
            let mut held = self.look()?;
            let volume = held.get()?;
            let plans: Result<Vec<_>, _> =
                Lpn::each(batch).map(|lpn| when.plan(volume, lpn)).collect();
            drop(held);
            self.fetch(when, first, &plans?, bytes)?;
        }
        Ok(())
    }

    /// Reads bytes as they are, or were.
    pub(crate) fn read_bytes(
        &self,
        when: When,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<(), DiskError> {
        self.wake.note_use();
        check_range(self.size(), offset, buffer.len() as u64)?;
        read_by_pages(offset, buffer, |pages, bytes| {
            self.read_pages(when, pages, bytes)
        })
    }

    /// Compares and encodes pages that are about to be written, as far as can be said now what with.
    fn work_ahead(&self, first: Lpn, pages: &mut [Prepared]) -> Result<(), DiskError> {
        let mut held = self.look()?;
        let volume = held.get()?;
        let plan = |(lpn, page): (Lpn, &Prepared)| volume.plan_write(lpn, page).ok();
        let plans: Vec<Option<WritePlan>> = (first.0..).map(Lpn).zip(&*pages).map(plan).collect();
        drop(held);
        let mut codec = None;
        for (plan, page) in plans.iter().zip(pages) {
            // The write tells why there is no plan.
            if let Some(plan) = plan
                .as_ref()
                .filter(|plan| plan.compares() || plan.encodes())
            {
                let codec = codec.get_or_insert_with(|| self.codecs.take());
                self.reader.work_ahead(codec, plan, page);
            }
        }
        codec.into_iter().for_each(|codec| self.codecs.give(codec));
        Ok(())
    }

    fn write_pages(&self, pages: Range<Lpn>, bytes: &[u8]) -> Result<(), DiskError> {
        let batches = bytes.chunks(BATCH as usize * PAGE_BYTES);
        for (batch, bytes) in in_batches(pages, BATCH).zip(batches) {
            let (units, _) = bytes.as_chunks::<PAGE_BYTES>();
            let prepare = |unit| self.preparer.prepare(unit);
            let prepared: Vec<Prepared> = units.iter().map(prepare).collect();
            self.write_batch(batch.start, prepared)?;
        }
        Ok(())
    }

    /// Writes pages from an address on under one hold of the lock, with what that needs read before.
    fn write_batch(&self, first: Lpn, mut pages: Vec<Prepared>) -> Result<(), DiskError> {
        self.wake.note_use();
        let missing = |volume: &Volume| volume.missing_for_writes(first, &pages);
        self.ahead.fetch(&self.volume, missing)?;
        if self.encodes {
            self.work_ahead(first, &mut pages)?;
        }
        // Where nothing is encoded most writes need nothing ahead: the volume is asked twice for those that do.
        let mut is_ahead = self.encodes || !self.compares;
        let mut held = self.hold_to_write()?;
        for at in 0..pages.len() {
            let lpn = first + at as u32;
            if !is_ahead && held.get()?.may_hold(lpn, &pages[at]) {
                drop(held);
                self.work_ahead(lpn, &mut pages[at..])?;
                is_ahead = true;
                held = self.hold_to_write()?;
            }
            let page = pages[at].clone();
            held.get()?.write_prepared(self.now(), lpn, page)?;
            held.let_look()?;
        }
        self.wake.after_change(held.get()?.chores());
        Ok(())
    }

    /// Reads what changes of pages need of the tables, whatever is written to them.
    fn fetch_for_changes(&self, pages: Range<Lpn>) -> Result<(), DiskError> {
        self.wake.note_use();
        let missing = |volume: &Volume| volume.missing_for_changes(pages.clone());
        self.ahead.fetch(&self.volume, missing)
    }

    /// Writes a part of a page, which stays as it is around it.
    fn write_part(&self, part: &Part, fill: impl FnOnce(&mut [u8])) -> Result<(), DiskError> {
        let mut page = [0; PAGE_BYTES];
        self.fetch_for_changes(part.lpn..part.lpn + 1)?;
        let mut held = self.hold_to_write()?;
        let volume = held.get()?;
        volume.read(part.lpn, &mut page)?;
        fill(&mut page[part.within.clone()]);
        let page = self.preparer.prepare(&page);
        volume.write_prepared(self.now(), part.lpn, page)?;
        self.wake.after_change(volume.chores());
        Ok(())
    }

    fn trim_pages(&self, pages: Range<Lpn>) -> Result<(), DiskError> {
        for batch in batches(pages) {
            self.fetch_for_changes(batch.clone())?;
            let mut held = self.hold()?;
            let volume = held.get()?;
            for lpn in Lpn::each(batch) {
                volume.trim(self.now(), lpn)?;
            }
            self.wake.after_change(volume.chores());
        }
        Ok(())
    }

    fn zero_pages(&self, pages: Range<Lpn>) -> Result<(), DiskError> {
        let zeros = self.preparer.prepare(&[0; PAGE_BYTES]);
        for batch in in_batches(pages, BATCH) {
            let pages = vec![zeros.clone(); (batch.end.0 - batch.start.0) as usize];
            self.write_batch(batch.start, pages)?;
        }
        Ok(())
    }

    /// The pages changed since an instant. The answer holds as long as nothing changes.
    fn changed_since(&self, instant: u64) -> Result<Arc<ChangedPages>, DiskError> {
        let mut held = self.hold()?;
        let volume = held.get()?;
        let sequence = volume.status().sequence;
        let mut known = self.changes.lock();
        if let Some(known) = &*known
            && known.instant == instant
            && known.sequence == sequence
        {
            return Ok(Arc::clone(&known.pages));
        }
        let pages = Arc::new(volume.changed_since(instant)?);
        *known = Some(Changes {
            instant,
            sequence,
            pages: Arc::clone(&pages),
        });
        Ok(pages)
    }

    fn flags(&self, about: About, pages: Range<Lpn>) -> Result<Vec<u32>, DiskError> {
        let mut held = self.look()?;
        let volume = held.get()?;
        let flags = Lpn::each(pages).map(|lpn| {
            let Some(stored) = volume.stored_as(lpn) else {
                return if about == About::Allocation { HOLE } else { 0 };
            };
            match about {
                About::Stored => {
                    let flag = |is: bool, flag: u32| if is { flag } else { 0 };
                    flag(!stored.shared, UNIQUE)
                        | flag(stored.shared, SHARED)
                        | flag(stored.is_delta, DELTA)
                        | flag(stored.is_compressed, COMPRESSED)
                }
                _ => 0,
            }
        });
        Ok(flags.collect())
    }
}

impl BlockDevice for Disk {
    fn size(&self) -> u64 {
        u64::from(self.pages) * PAGE_BYTES as u64
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        self.read_bytes(When::Now, offset, buffer)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        check_range(self.size(), offset, data.len() as u64)?;
        let part =
            |part: &Part, bytes: &[u8]| self.write_part(part, |space| space.copy_from_slice(bytes));
        write_by_pages(offset, data, part, |pages, bytes| {
            self.write_pages(pages, bytes)
        })
    }

    fn write_zeroes(&self, offset: u64, length: u64, allocate: bool) -> Result<(), DiskError> {
        check_range(self.size(), offset, length)?;
        let pages = Pages::of(offset, length);
        for part in pages.front.iter().chain(&pages.back) {
            self.write_part(part, |space| space.fill(0))?;
        }
        match allocate {
            true => self.zero_pages(pages.whole),
            false => self.trim_pages(pages.whole),
        }
    }

    fn trim(&self, offset: u64, length: u64) -> Result<(), DiskError> {
        check_range(self.size(), offset, length)?;
        self.trim_pages(Pages::of(offset, length).whole)
    }

    fn flush(&self) -> Result<(), DiskError> {
        self.commit.run(|| {
            let open = self.hold()?.get()?.begin_flush()?;
            let synced = self.medium.sync();
            let mut held = self.hold()?;
            let volume = held.get()?;
            volume.end_flush(open, synced)?;
            self.wake.after_change(volume.chores());
            Ok(())
        })
    }

    fn ask(
        &self,
        about: About,
        offset: u64,
        length: u64,
        piece: &mut dyn FnMut(u64, u32) -> bool,
    ) -> Result<(), DiskError> {
        check_range(self.size(), offset, length)?;
        if let About::ChangedSince(instant) = about {
            let changed = self.changed_since(instant)?;
            let has = |lpn: Lpn| u32::from(changed.contains(lpn)) * CHANGED;
            return tell(
                offset,
                length,
                |pages| Ok(Lpn::each(pages).map(has).collect()),
                piece,
            );
        }
        tell(offset, length, |pages| self.flags(about, pages), piece)
    }
}
