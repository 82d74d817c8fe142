//! CA-SSD: a device that stores one page per distinct value (FAST 2011, sections 4.1-4.3).
//!
//! A write whose fingerprint is indexed shares the object it finds; only a new value is programmed.
//! The index names objects, the map names objects, and an object has one location: relocation patches
//! that and nothing else.
//!
//! Life of a write: the fingerprint is looked up; found and (if asked) verified, the entry moves to
//! the head and the address refers to the object; not found, the content is appended, its object
//! indexed at the head, the entry at the tail discarded to make room. The address' old object loses a
//! reference either way and dies, with its entry, when that was the last.
//!
//! Invariants: an object has a place in the index iff the index has an entry that names it, and the
//! entry has the object's fingerprint.

pub mod bytes;
pub mod out_of_line;

use flashlore_content::dedup::DedupCounters;
use flashlore_content::{Content, Dedup, DedupOptions, Ledger};
use flashlore_flash::{Cause, Completion, Flash, Ready, Tag, Time, When};

use self::out_of_line::Scan;
use crate::core::{Core, PageRead};
use crate::error::{FtlError, OptionsError};
use crate::map_cache::{MapKeeper, Resident};
use crate::mapping::Mapping;
use crate::mapping::objects::{NO_OBJECT, Objects};
use crate::options::FtlOptions;

/// How a write was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The address held this value already: nothing changes.
    Silent,
    /// The value is stored elsewhere and shared now.
    Shared,
    /// The value was programmed.
    Programmed,
}

/// Why a write is not hashed when it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unhashed {
    /// Hashing is off: switched off for a while, or not wanted while the device is prepared.
    Off,
    /// The page that was hashed as a sample for this one was not found.
    Unsampled,
    /// The content equals nothing that is ever written: it is not looked at later either.
    Foreign,
}

/// A stored page that was read to be compared: which object it was, and what it held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<C> {
    object: u32,
    content: C,
}

/// A candidate, and when it has been read.
pub type CandidateRead<C> = (Candidate<C>, Completion);

/// The deduplicating device. `L` names programs (unique, duplicate, reborn) or nobody does.
/// `K` keeps the map from logical to physical pages.
pub struct DedupFtl<C, F: Flash, L, K = Resident> {
    core: Core<F, K>,
    objects: Objects<C>,
    dedup: Dedup,
    /// Where pages are hashed in idle time.
    scan: Option<Scan<C>>,
    ledger: L,
}

impl<C, F, L> DedupFtl<C, F, L>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    L: Ledger<C>,
{
    /// An empty device with its map in RAM.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn new(
        flash: F,
        options: FtlOptions,
        dedup: DedupOptions,
        ledger: L,
    ) -> Result<Self, OptionsError> {
        DedupFtl::with_keeper(flash, options, dedup, ledger, Resident)
    }
}

impl<C, F, L, K> DedupFtl<C, F, L, K>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    L: Ledger<C>,
    K: MapKeeper<F::Page>,
{
    /// An empty device.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn with_keeper(
        flash: F,
        options: FtlOptions,
        dedup: DedupOptions,
        ledger: L,
        keeper: K,
    ) -> Result<Self, OptionsError> {
        if dedup.out_of_line && dedup.verify {
            return Err(OptionsError::OutOfLineVerify);
        }
        let exported = options.exported;
        let most_objects = Self::most_objects(&flash, &options);
        Ok(DedupFtl {
            core: Core::with_keeper(flash, options, keeper)?,
            objects: Objects::new(exported, most_objects, dedup.fingerprint_bits),
            dedup: Dedup::new(Self::bounded(dedup, most_objects)),
            scan: dedup.out_of_line.then(|| Scan::new(most_objects)),
            ledger,
        })
    }

    /// A write has its new object before it releases the old one.
    fn most_objects(flash: &F, options: &FtlOptions) -> u32 {
        let units = flash.geometry().units();
        options.exported.saturating_add(1).min(units)
    }

    /// An entry names a living object: a larger index is never full, and must not be allocated.
    fn bounded(dedup: DedupOptions, most_objects: u32) -> DedupOptions {
        DedupOptions {
            index_entries: dedup.index_entries.map(|n| n.min(most_objects)),
            ..dedup
        }
    }

    /// What lies below the map.
    pub fn core(&self) -> &Core<F, K> {
        &self.core
    }

    /// What lies below the map.
    pub fn core_mut(&mut self) -> &mut Core<F, K> {
        &mut self.core
    }

    /// The map and the objects.
    pub fn objects(&self) -> &Objects<C> {
        &self.objects
    }

    /// The pages to be hashed in idle time, where that is done.
    pub fn pages_to_scan(&self) -> Option<&Scan<C>> {
        self.scan.as_ref()
    }

    /// The fingerprint index and its controller.
    pub fn dedup(&self) -> &Dedup {
        &self.dedup
    }

    /// What happened to host page writes.
    pub fn dedup_counters(&self) -> DedupCounters {
        self.dedup.counters
    }

    /// The oracle that names programs.
    pub fn ledger(&self) -> &L {
        &self.ledger
    }

    /// Sets the counts of policy and oracle to 0.
    pub fn restart_counters(&mut self) {
        self.core.restart_counters();
        self.dedup.counters = DedupCounters::default();
        self.ledger.restart();
    }

    /// Lets time pass to `until`.
    ///
    /// # Errors
    /// A failure of the device.
    #[inline(always)]
    pub fn advance(&mut self, until: Time) -> Result<(), FtlError<F::Error>> {
        self.core.advance(&mut self.objects, until)
    }

    /// Ends all background work at once.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn settle(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        self.core.settle(&mut self.objects, at)
    }

    /// Whether the next write is to be hashed; ask once a write.
    #[inline(always)]
    pub fn wants_hash(&mut self) -> bool {
        self.dedup.wants_hash()
    }

    /// When duplicates are verified: reads the stored page that may hold the content, so that the
    /// write can be committed when the read is done. `None` if there is nothing to read, or nothing
    /// but what was `read` already: the write may be committed now.
    ///
    /// While a page is read the map goes on changing, so ask again, with what was read, before the
    /// commit.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn fetch_candidate(
        &mut self,
        at: Time,
        content: C,
        read: Option<Candidate<C>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<C>>, FtlError<F::Error>> {
        if !self.dedup.verify {
            return Ok(None);
        }
        let Some(object) = self.candidate(content) else {
            return Ok(None);
        };
        let candidate = Candidate {
            object,
            content: self.objects.content(object),
        };
        let ppn = self.objects.at(object);
        if read == Some(candidate) || self.core.buffered(ppn).is_some() {
            return Ok(None);
        }
        let (_, done) = self.core.read(Ready::At(at), ppn, Cause::Verify, tag)?;
        Ok(Some((candidate, done)))
    }

    /// The object that may hold this content.
    #[inline(always)]
    pub fn candidate(&self, content: C) -> Option<u32> {
        let objects = &self.objects;
        let fingerprint = objects.fingerprint(content);
        let has = |object| objects.fingerprint(objects.content(object)) == fingerprint;
        self.dedup.index.find(fingerprint, has)
    }

    /// Writes a logical page that was hashed. When duplicates are verified,
    /// [`DedupFtl::fetch_candidate`] has just said that there is nothing left to read.
    ///
    /// # Errors
    /// An address out of range, a full device, or a failure of the device.
    #[inline(always)]
    pub fn write(
        &mut self,
        when: When,
        lpn: u32,
        content: C,
        tag: Tag,
    ) -> Result<(Outcome, Completion), FtlError<F::Error>>
    where
        C: Into<F::Page>,
    {
        self.core.check_range(lpn)?;
        let found = self.candidate(content);
        let same = found.is_none_or(|object| self.objects.content(object) == content);
        if let Some(object) = found
            && (same || !self.dedup.verify)
        {
            let entry = self.core.access_map(&mut self.objects, when.at, lpn, tag)?;
            self.dedup.counters.corrupted += u64::from(!same);
            let done = entry.unwrap_or(Completion::instant(when.at));
            return Ok((self.hit(lpn, object), done));
        }
        let when = self.core.after_map(&mut self.objects, when, lpn)?;
        let (_, done) = self.miss(when, lpn, content, content.into(), found, tag)?;
        Ok((Outcome::Programmed, done))
    }

    /// A hashed write shares what is stored.
    #[inline(always)]
    fn hit(&mut self, lpn: u32, object: u32) -> Outcome {
        self.core.counters.host_writes += 1;
        self.dedup.counters.hits += 1;
        self.dedup.hashed(true);
        self.dedup.index.touch(&mut self.objects, object);
        self.share(lpn, object)
    }

    /// A hashed write is stored, its object enters the index; `taken` is another one with its
    /// fingerprint, whose entry it takes over.
    #[inline(always)]
    fn miss(
        &mut self,
        when: When,
        lpn: u32,
        content: C,
        page: F::Page,
        taken: Option<u32>,
        tag: Tag,
    ) -> Result<(u32, Completion), FtlError<F::Error>> {
        let (object, done) = self.store(when, lpn, content, page, tag)?;
        self.dedup.counters.misses += 1;
        self.dedup.hashed(false);
        match taken {
            Some(before) => {
                self.dedup.counters.collisions += 1;
                let index = &mut self.dedup.index;
                index.take_over(&mut self.objects, before, object);
            }
            None => self.index(object),
        }
        self.refer(lpn, object);
        Ok((object, done))
    }

    /// Writes a logical page without hashing it: its object stays unknown to the index, at least until
    /// it is hashed in idle time.
    ///
    /// # Errors
    /// As [`DedupFtl::write`].
    pub fn write_unhashed(
        &mut self,
        when: When,
        lpn: u32,
        content: C,
        why: Unhashed,
        tag: Tag,
    ) -> Result<Completion, FtlError<F::Error>>
    where
        C: Into<F::Page>,
    {
        self.core.check_range(lpn)?;
        let when = self.core.after_map(&mut self.objects, when, lpn)?;
        let (object, done) = self.store(when, lpn, content, content.into(), tag)?;
        let count = match why {
            Unhashed::Off | Unhashed::Foreign => &mut self.dedup.counters.unhashed,
            Unhashed::Unsampled => &mut self.dedup.counters.unsampled,
        };
        *count += 1;
        self.refer(lpn, object);
        if let Some(scan) = &mut self.scan
            && why != Unhashed::Foreign
        {
            self.objects.leave_unhashed(object, lpn);
            scan.push(object);
        }
        Ok(done)
    }

    /// Programs new content under a new object.
    #[inline(always)]
    fn store(
        &mut self,
        when: When,
        lpn: u32,
        content: C,
        page: F::Page,
        tag: Tag,
    ) -> Result<(u32, Completion), FtlError<F::Error>> {
        let object = self.objects.allocate(content);
        let appended = self
            .core
            .append_host(&mut self.objects, when, lpn, object, page, tag);
        match appended {
            Ok((ppn, done)) => {
                self.core.counters.host_writes += 1;
                self.objects.place(object, ppn);
                self.ledger.born(content);
                Ok((object, done))
            }
            Err(error) => {
                self.objects.free(object);
                Err(error)
            }
        }
    }

    #[inline(always)]
    fn index(&mut self, object: u32) {
        if let Some(evicted) = self.dedup.index.insert(&mut self.objects, object) {
            // An index without entries refuses the new one: nothing had to make room.
            self.dedup.counters.evictions += u64::from(evicted != object);
        }
    }

    /// An address refers to an object that is stored already.
    #[inline(always)]
    fn share(&mut self, lpn: u32, object: u32) -> Outcome {
        if self.objects.get(lpn) == object {
            self.dedup.counters.silent += 1;
            return Outcome::Silent;
        }
        self.refer(lpn, object);
        Outcome::Shared
    }

    /// The new reference is added before the old one is removed, so that an object cannot die between.
    #[inline(always)]
    fn refer(&mut self, lpn: u32, object: u32) {
        let old = self.objects.replace(lpn, object);
        self.core.keeper.refers(lpn, Some(object));
        self.core.keeper.changed(lpn);
        if old != NO_OBJECT {
            self.release(old);
        }
    }

    /// Takes a reference away; with the last one the object dies, and its index entry.
    #[inline(always)]
    fn release(&mut self, object: u32) {
        if !self.objects.release(object) {
            return;
        }
        let content = self.objects.content(object);
        if self.objects.is_indexed(object) {
            self.dedup.index.remove(&mut self.objects, object);
        }
        self.ledger.died(content);
        self.core.invalidate(self.objects.at(object));
        self.objects.free(object);
    }

    /// Reads a logical page; one that was never written costs nothing.
    ///
    /// # Errors
    /// An address out of range or a failure of the device.
    #[inline(always)]
    pub fn read(
        &mut self,
        at: Time,
        lpn: u32,
        cause: Cause,
        tag: Tag,
    ) -> Result<PageRead<F::Page>, FtlError<F::Error>> {
        self.core.read_page(&mut self.objects, at, lpn, cause, tag)
    }

    /// Forgets a logical page, at the present and at once; what it shared survives as long as another
    /// refers to it.
    ///
    /// # Errors
    /// An address out of range, or what its map entry meets.
    pub fn trim(&mut self, lpn: u32) -> Result<(), FtlError<F::Error>> {
        self.core.check_range(lpn)?;
        let now = self.core.present;
        self.core
            .access_map(&mut self.objects, now, lpn, Tag::NONE)?;
        let old = self.objects.replace(lpn, NO_OBJECT);
        if old != NO_OBJECT {
            self.core.keeper.refers(lpn, None);
            self.core.keeper.changed(lpn);
            self.core.counters.host_trims += 1;
            self.release(old);
        }
        Ok(())
    }

    /// Asks for the index slot and the map entry of a write that will come soon.
    #[inline(always)]
    pub fn prefetch_slot(&self, lpn: u32, content: C) {
        self.objects.prefetch_map(lpn);
        self.dedup
            .index
            .prefetch_slot(self.objects.fingerprint(content));
    }

    /// Asks for the object found and the old one, once slot and map entry are near.
    #[inline(always)]
    pub fn prefetch_objects(&self, lpn: u32, content: C) {
        self.prefetch_object(lpn);
        let fingerprint = self.objects.fingerprint(content);
        if let Some(object) = self.dedup.index.likely(fingerprint) {
            self.objects.prefetch_object(object);
        }
    }

    /// The object that dies when a page is written, unless it is written or shared meanwhile.
    #[inline(always)]
    fn dying(&self, lpn: u32) -> Option<u32> {
        let old = self.objects.object_of(lpn);
        old.filter(|&object| self.objects.is_last(object))
    }

    /// Asks for the neighbours of its block in the bucket, once the block is near.
    #[inline(always)]
    pub fn prefetch_neighbours(&self, lpn: u32) {
        if let Some(old) = self.dying(lpn) {
            let blocks = self.core.blocks();
            blocks.prefetch_neighbours(self.objects.at(old));
        }
    }

    /// Asks for the block and the index slot of the old object, once that is near and if it dies.
    #[inline(always)]
    pub fn prefetch_death(&self, lpn: u32) {
        let Some(old) = self.dying(lpn) else {
            return;
        };
        self.core.prefetch(self.objects.at(old));
        if self.objects.is_indexed(old) {
            let fingerprint = self.objects.fingerprint(self.objects.content(old));
            self.dedup.index.prefetch_slot(fingerprint);
        }
    }

    /// Asks for the map entry of a page that will be read soon.
    #[inline(always)]
    pub fn prefetch_map(&self, lpn: u32) {
        self.objects.prefetch_map(lpn);
    }

    /// Asks for the object of a page, once its map entry is near.
    #[inline(always)]
    pub fn prefetch_object(&self, lpn: u32) {
        if let Some(object) = self.objects.object_of(lpn) {
            self.objects.prefetch_object(object);
        }
    }

    /// Bytes held by map, objects, index and blocks.
    pub fn heap_bytes(&self) -> usize {
        let scan = self.scan.as_ref().map_or(0, Scan::heap_bytes);
        self.core.heap_bytes() + self.objects.heap_bytes() + self.dedup.index.heap_bytes() + scan
    }

    /// Recounts every invariant from scratch (`spec/ca-ssd.md` section 6).
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let alive = self.objects.check()?;
        self.core.check(&self.objects, alive.iter().copied())?;
        let agrees = |&lpn: &u32| self.core.keeper.agrees(lpn, self.objects.object_of(lpn));
        if let Some(lpn) = (0..self.objects.len()).find(|lpn| !agrees(lpn)) {
            return Err(format!(
                "the keeper of the map names another object for page {lpn}"
            ));
        }
        self.dedup.index.check(&self.objects)?;
        let mut named = 0;
        for object in self.dedup.index.objects(&self.objects) {
            named += 1;
            if self.objects.location(object).is_none() || !self.objects.is_indexed(object) {
                return Err(format!(
                    "the index names object {object}, which is dead or unmarked"
                ));
            }
            match self.candidate(self.objects.content(object)) {
                Some(found) if found == object => {}
                other => {
                    return Err(format!(
                        "object {object} is indexed but looked up as {other:?}"
                    ));
                }
            }
        }
        let marked = alive
            .iter()
            .filter(|&&o| self.objects.is_indexed(o))
            .count();
        if marked != named {
            return Err(format!(
                "{marked} objects are marked as indexed, {named} entries name one"
            ));
        }
        match &self.scan {
            Some(scan) => scan.check(&self.objects, &alive)?,
            None => {
                if let Some(object) = alive.iter().find(|&&o| self.objects.unhashed(o).is_some()) {
                    return Err(format!(
                        "object {object} is to be hashed, which nobody does"
                    ));
                }
            }
        }
        let counters = self.dedup.counters;
        let writes = counters.hits + counters.misses + counters.unhashed + counters.unsampled;
        if writes != self.core.counters.host_writes {
            return Err(format!(
                "hits + misses + unhashed + unsampled are {writes}, host writes {}",
                self.core.counters.host_writes
            ));
        }
        Ok(())
    }
}
