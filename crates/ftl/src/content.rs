//! A device that looks at content: CA-SSD, a page per distinct value (FAST 2011, sections 4.1-4.3), and the
//! policies that can stand beside that.
//!
//! * `store` — map, objects and policies; references
//! * [`delta`] — values in fewer bytes than a page
//! * [`history`] — old versions, and the way back to them
//! * [`tier`] — entries of old versions that lie on flash
//! * [`out_of_line`] — pages that are hashed in idle time
//! * [`prefetch`] — index entries restored from flash
//! * [`parts`] — what it is made of, as types
//! * [`decision`] — how a write is served
//! * [`bytes`] — what a device over bytes needs besides
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
pub mod decision;
pub mod delta;
pub mod history;
pub mod out_of_line;
pub mod parts;
pub mod prefetch;
mod store;
pub mod tier;

use flashlore_content::dedup::DedupCounters;
use flashlore_content::delta::Value;
use flashlore_content::history::{TooOld, Version};
use flashlore_content::{Content, Dedup, DedupOptions, Ledger, NoEncoder};
use flashlore_flash::{Cause, Completion, Flash, Ready, Tag, Time, When};

use self::decision::Write;
use self::delta::packs::Filler;
use self::delta::similar::{SimilarCounters, SimilarOptions};
use self::delta::{Delta, DeltaCounters, DeltaOptions, Why};
use self::history::{ReturnCost, VersionCounters, Versions, VersionsOptions};
use self::out_of_line::Scan;
use self::parts::{CoreOf, EncodedOf, Failure, Of, PageOf, Parts, Present};
use self::prefetch::PrefetchCounters;
use self::store::Store;
use crate::core::{Core, PageRead};
use crate::error::OptionsError;
use crate::gc::erase_stale::Erased;
use crate::map_cache::{MapCache, Resident};
use crate::mapping::objects::Objects;
use crate::options::FtlOptions;

/// How a write was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The address held this value already: nothing changes.
    Silent,
    /// The value is stored elsewhere and shared now.
    Shared,
    /// The value was programmed, in a page of its own.
    Programmed,
    /// The value was encoded and shares a page with others.
    Packed,
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

impl<C> Candidate<C> {
    /// What was read of an object.
    pub(crate) fn new(object: u32, content: C) -> Self {
        Candidate { object, content }
    }
}

/// The flash pages read for a logical page.
#[derive(Debug, Clone, Copy, Default)]
pub struct PartsRead {
    /// Its object, if it was ever written.
    object: Option<u32>,
    /// When each is there; `None` for one that is in RAM or does not exist.
    pub done: [Option<Completion>; 2],
    /// Whether they have to be decoded.
    pub encoded: bool,
}

impl PartsRead {
    /// A page that lies whole in one unit.
    pub(crate) fn whole(object: u32, done: Completion) -> Self {
        PartsRead {
            object: Some(object),
            done: [Some(done), None],
            encoded: false,
        }
    }

    /// Whether the page holds anything.
    pub fn is_mapped(&self) -> bool {
        self.object.is_some()
    }
}

/// Of two completions the one that is later, as far as is known.
fn later(a: Completion, b: Completion) -> Completion {
    match (a, b) {
        (Completion::At { start, end }, Completion::At { start: s, end: e }) => Completion::At {
            start: start.min(s),
            end: end.max(e),
        },
        (Completion::At { .. }, _) => b,
        _ => a,
    }
}

/// A candidate, and when it has been read.
pub type CandidateRead<C> = (Candidate<C>, Completion);

/// The policies of a device.
#[derive(Debug, Clone)]
pub struct Policies<E> {
    /// How duplicates are looked for.
    pub dedup: DedupOptions,
    /// What is encoded.
    pub delta: Option<DeltaOptions>,
    /// How old versions are kept.
    pub versions: Option<VersionsOptions>,
    /// Who encodes it.
    pub encoder: E,
}

/// A device that looks at content, made of these [`Parts`].
pub struct ContentDevice<T: Parts> {
    core: CoreOf<T>,
    store: Store<T>,
}

/// The device by its parts one by one: `L` names programs (unique, duplicate, reborn) or nobody does, `K` caches the map
/// from logical to physical pages, `E` encodes values in fewer bytes than a page, `M` says whether old versions may be
/// kept.
pub type ContentFtl<C, F, L, K = Resident, E = NoEncoder, M = Present> =
    ContentDevice<Of<C, F, L, K, E, M>>;

impl<C, F, L> ContentFtl<C, F, L>
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
        ContentFtl::with_map_cache(flash, options, dedup, ledger, Resident)
    }
}

impl<C, F, L, K> ContentFtl<C, F, L, K>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    L: Ledger<C>,
    K: MapCache<F::Page>,
{
    /// An empty device that deduplicates and nothing else.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn with_map_cache(
        flash: F,
        options: FtlOptions,
        dedup: DedupOptions,
        ledger: L,
        map_cache: K,
    ) -> Result<Self, OptionsError> {
        let policies = Policies {
            dedup,
            delta: None,
            versions: None,
            encoder: NoEncoder,
        };
        ContentFtl::with_policies(flash, options, policies, ledger, map_cache)
    }
}

impl<T: Parts> ContentDevice<T> {
    /// An empty device.
    ///
    /// # Errors
    /// Settings that cannot work together.
    ///
    /// # Panics
    /// A policy that its parts have no room for.
    pub fn with_policies(
        flash: T::Flash,
        options: FtlOptions,
        policies: Policies<T::Encoder>,
        ledger: T::Ledger,
        map_cache: T::Cache,
    ) -> Result<Self, OptionsError> {
        let Policies {
            dedup,
            delta,
            versions,
            encoder,
        } = policies;
        assert!(T::ENCODES || delta.is_none(), "nobody encodes");
        assert!(T::REMEMBERS || versions.is_none(), "nothing is remembered");
        if dedup.out_of_line && dedup.verify {
            return Err(OptionsError::OutOfLineVerify);
        }
        let exported = options.exported;
        let most_objects = Self::most_objects(&flash, &options);
        let in_ram = versions.as_ref().and_then(|v| v.entries_in_ram);
        let log = delta.is_some() || in_ram.is_some();
        let core = Core::with_map_cache(flash, FtlOptions { log, ..options }, map_cache)?;
        let objects = Objects::new(exported, most_objects, dedup.fingerprint_bits);
        let most_packs = Self::most_packs(&core);
        let store = Store {
            objects,
            dedup: Dedup::new(Self::bounded(dedup, most_objects)),
            scan: dedup.out_of_line.then(|| Scan::new(most_objects)),
            prefetch: None,
            ledger,
            encoder,
            delta: delta.map(|options| Delta::new(options, exported, most_packs, most_objects)),
            versions: versions.map(|options| Versions::new(exported, options)),
            referenced: 0,
            located: Vec::new(),
        };
        Ok(ContentDevice { core, store })
    }

    /// A write has its new object before it releases the old one; what is encoded, or old, comes on top.
    fn most_objects(flash: &T::Flash, options: &FtlOptions) -> u32 {
        let units = flash.geometry().units();
        if T::HOLDS_MORE {
            return units;
        }
        options.exported.saturating_add(1).min(units)
    }

    /// Packed pages with live differences that there may be. Where fewer units can be stored than pages are
    /// exported, it depends on how many are.
    fn most_packs(core: &CoreOf<T>) -> u32 {
        let exported = match core.options().thin {
            true => 0,
            false => u64::from(core.options().exported),
        };
        let most = core.most_live().saturating_sub(exported);
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// An entry names a living object: a larger index is never full, and must not be allocated.
    fn bounded(dedup: DedupOptions, most_objects: u32) -> DedupOptions {
        DedupOptions {
            index_entries: dedup.index_entries.map(|n| n.min(most_objects)),
            ..dedup
        }
    }

    /// What lies below the map.
    pub fn core(&self) -> &CoreOf<T> {
        &self.core
    }

    /// What lies below the map.
    pub fn core_mut(&mut self) -> &mut CoreOf<T> {
        &mut self.core
    }

    /// The map and the objects.
    pub fn objects(&self) -> &Objects<T::Content> {
        &self.store.objects
    }

    /// The pages to be hashed in idle time, where that is done.
    pub fn pages_to_scan(&self) -> Option<&Scan<T::Content>> {
        self.store.scan.as_ref()
    }

    /// The fingerprint index and its controller.
    pub fn dedup(&self) -> &Dedup {
        &self.store.dedup
    }

    /// What happened to host page writes.
    pub fn dedup_counters(&self) -> DedupCounters {
        self.store.dedup.counters
    }

    /// The oracle that names programs.
    pub fn ledger(&self) -> &T::Ledger {
        &self.store.ledger
    }

    /// Sets the counts of policy and oracle to 0.
    pub fn restart_counters(&mut self) {
        self.core.restart_counters();
        self.store.dedup.counters = DedupCounters::default();
        if let Some(versions) = &mut self.store.versions {
            versions.counters = VersionCounters::default();
            if let Some(tier) = &mut versions.tier {
                tier.programs = 0;
            }
        }
        if let Some(prefetch) = &mut self.store.prefetch {
            prefetch.counters = PrefetchCounters::default();
        }
        if let Some(delta) = &mut self.store.delta {
            delta.counters = DeltaCounters::default();
            delta.viability.bypassed = 0;
            if let Some(similar) = &mut delta.similar {
                similar.counters = SimilarCounters::default();
            }
        }
        self.store.ledger.restart();
    }

    /// Lets time pass to `until`.
    ///
    /// # Errors
    /// A failure of the device.
    #[inline(always)]
    pub fn advance(&mut self, until: Time) -> Result<(), Failure<T>> {
        self.core.advance(&mut self.store, until)
    }

    /// Ends all background work at once.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn settle(&mut self, at: Time) -> Result<(), Failure<T>> {
        self.core.settle(&mut self.store, at)
    }

    /// Whether the next write is to be hashed; ask once a write.
    #[inline(always)]
    pub fn wants_hash(&mut self) -> bool {
        self.store.dedup.wants_hash()
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
        content: T::Content,
        read: Option<Candidate<T::Content>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<T::Content>>, Failure<T>> {
        if !self.store.dedup.verify {
            return Ok(None);
        }
        let Some(object) = self.candidate(content) else {
            return Ok(None);
        };
        let candidate = Candidate {
            object,
            content: self.store.objects.content(object),
        };
        let ppn = self.store.objects.at(object);
        if read == Some(candidate) || self.core.buffered(ppn).is_some() {
            return Ok(None);
        }
        let done = self.core.read(Ready::At(at), ppn, Cause::Verify, tag)?;
        Ok(Some((candidate, done)))
    }

    /// The object that may hold this content.
    #[inline(always)]
    pub fn candidate(&self, content: T::Content) -> Option<u32> {
        self.store.candidate(content)
    }

    /// A page is about to be written: whether that is to be encoded unless it is a duplicate. Ask once a
    /// write.
    #[inline(always)]
    pub fn begin_write(&mut self, lpn: u32) -> bool {
        T::ENCODES && self.store.begin_write(lpn)
    }

    /// How a write of a page would be encoded if it came now, unless it is a duplicate: the object it would be a
    /// difference from, other than by similarity, and whether it would be compressed by itself. Nothing is counted.
    pub fn encoding_of(&self, lpn: u32) -> (Option<u32>, bool) {
        match T::ENCODES {
            true => self.store.encoding_of(lpn),
            false => (None, false),
        }
    }

    /// From now on a page that has nothing to differ from becomes a difference from whatever page resembles it,
    /// if that was written since; nothing changes where there are no differences.
    pub fn find_similar_bases(&mut self, options: SimilarOptions) {
        let most_objects = self.core.geometry.units();
        if let Some(delta) = self.store.delta.as_mut().filter(|_| T::ENCODES) {
            delta.find_similar_bases(options, most_objects);
        }
    }

    /// Whether a write of a page that is to be encoded has to be sketched first.
    pub fn needs_sketch(&self, lpn: u32) -> bool {
        self.store.needs_sketch(lpn)
    }

    /// The page that a write of `new`, to be encoded, is compared with: reads it, unless it is what was `read`
    /// already. `None` if nothing is to be read: the write may be committed.
    ///
    /// While a page is read the map goes on changing, so ask again, with what was read, before the commit.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn fetch_base(
        &mut self,
        at: Time,
        lpn: u32,
        new: T::Content,
        read: Option<Candidate<T::Content>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<T::Content>>, Failure<T>>
    where
        T::Content: Into<PageOf<T>>,
    {
        let mut ready = Ready::At(at);
        let located = self.store.located.contains(&lpn);
        if T::CACHED && read.is_none() && !located && self.store.base_of(lpn).is_some() {
            // Its entry says where it lies, and is counted as used once by a write, however often that asks.
            let entry = self.core.access_map(&mut self.store, at, lpn, Tag::NONE)?;
            ready = entry.map_or(ready, |read| Ready::from(read).and(ready));
            self.store.located.push(lpn);
        }
        let new = Value {
            content: new,
            page: &new.into(),
        };
        let core = &mut self.core;
        self.store.fetch_base(core, ready, lpn, new, read, tag)
    }

    /// Accesses the map entry of a page that is changed, unless the read of its base did so and it is
    /// in RAM still; answers its read, reported under `tag`, if it takes one.
    #[inline(always)]
    fn entry_to_change(
        &mut self,
        at: Time,
        lpn: u32,
        tag: Tag,
    ) -> Result<Option<Completion>, Failure<T>> {
        if T::CACHED && T::ENCODES && self.store.take_located(lpn) && self.core.map_cache.holds(lpn)
        {
            return Ok(None);
        }
        self.core.access_map(&mut self.store, at, lpn, tag)
    }

    /// Writes a logical page that was hashed, and says of each value that it is what it says it is. When duplicates are
    /// verified, [`ContentFtl::fetch_candidate`] has just said that there is nothing left to read.
    ///
    /// # Errors
    /// As [`ContentFtl::commit`].
    pub fn write(
        &mut self,
        when: When,
        lpn: u32,
        content: T::Content,
        tag: Tag,
    ) -> Result<(Outcome, Completion), Failure<T>>
    where
        T::Content: Into<PageOf<T>>,
    {
        self.core.check_range(lpn)?;
        let write = Write {
            encode: self.begin_write(lpn),
            ..Write::new(lpn, content)
        };
        let done = self.commit(when, write, Self::is_same, tag)?;
        Ok((done.outcome, done.done))
    }

    /// Writes a logical page without hashing it: its object stays unknown to the index, at least until
    /// it is hashed in idle time.
    ///
    /// # Errors
    /// As [`ContentFtl::commit`].
    pub fn write_unhashed(
        &mut self,
        when: When,
        lpn: u32,
        content: T::Content,
        why: Unhashed,
        tag: Tag,
    ) -> Result<Completion, Failure<T>>
    where
        T::Content: Into<PageOf<T>>,
    {
        self.core.check_range(lpn)?;
        let write = Write {
            encode: why != Unhashed::Foreign && self.begin_write(lpn),
            unhashed: Some(why),
            ..Write::new(lpn, content)
        };
        Ok(self.commit(when, write, Self::is_same, tag)?.done)
    }

    /// Judges a candidate by its content. Where duplicates are not verified it passes whatever it is.
    ///
    /// # Errors
    /// None.
    #[inline(always)]
    pub fn is_same(
        &mut self,
        object: u32,
        write: &Write<T::Content, PageOf<T>>,
    ) -> Result<bool, Failure<T>> {
        let same = self.store.objects.content(object) == write.content;
        if !same && !self.store.dedup.verify {
            self.store.dedup.counters.corrupted += 1;
            return Ok(true);
        }
        Ok(same)
    }

    /// Reads a logical page; one that was never written costs nothing. Of an encoded one the completion is
    /// that of the page that is read last, where it is known.
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
    ) -> Result<PageRead<PageOf<T>>, Failure<T>> {
        if !T::ENCODES {
            return self.core.read_page(&mut self.store, at, lpn, cause, tag);
        }
        let read = self.read_parts(at, lpn, cause, tag)?;
        let done = read.done.iter().flatten().copied().reduce(later);
        let done = done.unwrap_or(Completion::instant(at));
        let page = match read.object {
            None => None,
            Some(object) => Some(self.store.decode(&mut self.core, object)?),
        };
        Ok((page, done))
    }

    /// Reads what a logical page is held in: up to two flash pages, each reported under `tag` where its
    /// end is not known.
    ///
    /// # Errors
    /// An address out of range or a failure of the device.
    pub fn read_parts(
        &mut self,
        at: Time,
        lpn: u32,
        cause: Cause,
        tag: Tag,
    ) -> Result<PartsRead, Failure<T>> {
        let ready = self.core.begin_read(&mut self.store, at, lpn, cause)?;
        for place in 0..2 {
            let object = self.store.objects.object_of(lpn);
            let place = object.and_then(|object| self.store.places(object)[place]);
            if let Some(ppn) = place {
                self.core.collect_before_read(&mut self.store, at, ppn)?;
            }
        }
        let object = self.store.objects.object_of(lpn);
        let mut read = PartsRead {
            object,
            done: [None, None],
            encoded: false,
        };
        let Some(object) = object else {
            return Ok(read);
        };
        if let Some(delta) = &mut self.store.delta
            && cause == Cause::Host
        {
            delta.heat.read(lpn);
        }
        read.encoded = self.store.objects.is_packed(object);
        read.done = self
            .store
            .read_places(&mut self.core, ready, object, cause, tag)?;
        if let Some(delta) = &mut self.store.delta
            && read.encoded
            && cause == Cause::Host
        {
            delta.counters.reads += 1;
            delta.counters.double_reads += u64::from(read.done.iter().all(Option::is_some));
        }
        Ok(read)
    }

    /// A page that was read has become read-hot while it is stored as a difference: makes it whole, once
    /// what was read is there. Whether it did.
    ///
    /// # Errors
    /// A full device or a failure of it.
    pub fn merge_if_read_hot(&mut self, when: When, lpn: u32) -> Result<bool, Failure<T>> {
        let Some(object) = self.difference_of(lpn) else {
            return Ok(false);
        };
        if !self
            .store
            .delta
            .as_ref()
            .is_some_and(|d| d.is_read_hot(lpn))
        {
            return Ok(false);
        }
        let core = &mut self.core;
        self.store.merge(core, when, object, lpn, Why::ReadHot)?;
        Ok(true)
    }

    /// The object of a logical page that is stored as a difference.
    fn difference_of(&self, lpn: u32) -> Option<u32> {
        let object = self.store.objects.object_of(lpn)?;
        self.store.objects.is_difference(object).then_some(object)
    }

    /// The periodic scan: notes the pages stored as differences that are not written often any more, and
    /// lets all counts begin anew. They are merged one by one by [`ContentFtl::merge_cold`]. Whether anything had been
    /// counted: if not, and as long as nothing happens, another scan notes the same.
    pub fn begin_cold_scan(&mut self) -> bool {
        self.store.note_cold_pages()
    }

    /// When the next page that the scan found cold could be read, its dies being idle; `None` if there is
    /// none, or as long as the device has not decided what they do.
    pub fn cold_start(&mut self) -> Option<Time> {
        let (object, _) = self.store.next_cold()?;
        let mut start = self.core.present;
        for ppn in self.store.places(object).into_iter().flatten() {
            let plane = self.core.geometry.plane_of_unit(ppn);
            start = start.max(self.core.flash.idle_since(plane)?);
        }
        Some(start)
    }

    /// Makes the next page whole that the scan found cold, its reads beginning now. Whether there was one.
    ///
    /// # Errors
    /// A full device or a failure of it.
    pub fn merge_cold(&mut self, at: Time) -> Result<bool, Failure<T>> {
        let Some((object, lpn)) = self.store.next_cold() else {
            return Ok(false);
        };
        let core = &mut self.core;
        let read = self
            .store
            .read_places(core, Ready::At(at), object, Cause::Merge, Tag::NONE)?;
        let ready = read.into_iter().flatten().map(Ready::from);
        let ready = ready.fold(Ready::At(at), Ready::and);
        let when = When { ready, at };
        self.store.merge(core, when, object, lpn, Why::WriteCold)?;
        Ok(true)
    }

    /// Old versions are kept from now on.
    pub fn begin_history(&mut self) {
        if let Some(versions) = &mut self.store.versions {
            versions.begin();
        }
    }

    /// What happens next happens at this instant: the stamp of the versions that end. Of one page they
    /// never fall.
    #[inline(always)]
    pub fn set_instant(&mut self, stamp: u64) {
        if let Some(versions) = &mut self.store.versions {
            versions.set_now(stamp);
        }
    }

    /// Until it is called with `None`: no pressure takes away this instant of the window. What would need room
    /// then is refused, or waits.
    pub fn guard_instant(&mut self, instant: Option<u64>) {
        if let Some(versions) = &mut self.store.versions {
            versions.guard(instant);
        }
    }

    /// Gives up the oldest entries of the history while there are as many as may be, as far as they may go.
    pub fn limit_history(&mut self) {
        self.store.limit_history(&mut self.core);
    }

    /// The old versions, if they are kept.
    pub fn versions(&self) -> Option<&Versions> {
        self.store.versions.as_ref()
    }

    /// What a logical page referred to at an instant, with the present resolved; an object is alive until the window,
    /// or what the page refers to, changes.
    ///
    /// # Errors
    /// An instant that is not remembered.
    pub fn version_at(&self, lpn: u32, instant: u64) -> Result<Version, TooOld> {
        self.store.version_at(lpn, instant)
    }

    /// What an object holds; nothing is counted.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn read_version(&mut self, object: u32) -> Result<PageOf<T>, Failure<T>> {
        self.store.decode(&mut self.core, object)
    }

    /// The content that a logical page had at an instant; none also if it was purged.
    ///
    /// # Errors
    /// An instant that is not remembered.
    pub fn content_at_instant(&self, lpn: u32, instant: u64) -> Result<Option<T::Content>, TooOld> {
        Ok(match self.store.version_at(lpn, instant)? {
            Version::Object(object) => Some(self.store.objects.content(object)),
            _ => None,
        })
    }

    /// Every logical page holds again what it held at an instant; answers how many have changed. It can be
    /// undone by a return to an instant before it.
    ///
    /// # Errors
    /// If the instant is not remembered; then nothing has changed.
    pub fn return_to(&mut self, instant: u64) -> Result<u64, TooOld> {
        self.store.return_to(&mut self.core, instant)
    }

    /// Reads the entries on flash that a return to an instant needs, to be called before it; answers how many
    /// units they take.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn read_entries_since(&mut self, instant: u64) -> Result<u64, Failure<T>> {
        self.store.read_tables(&mut self.core, instant)
    }

    /// Units on flash that hold anything of the present or of old versions, without translation pages.
    pub fn units_in_use(&self) -> u64 {
        self.store.units(&self.core)
    }

    /// Units that old versions may take beside what the present needs now. Packed units count as the present's.
    pub fn room_of_history(&self) -> u64 {
        self.store.room_of_history(&self.core)
    }

    /// What a return to the start of the window would take: changes of the map, and the entries on flash.
    pub fn cost_of_longest_return(&self) -> ReturnCost {
        let mut cost = ReturnCost::default();
        if let Some(versions) = &self.store.versions {
            let history = &versions.history;
            // The start of the window is always remembered.
            let _ = history.changed_since(history.oldest(), |_, _| cost.pages += 1);
            cost.reads = u64::from(self.store.tables());
        }
        cost
    }

    /// Moves the start of the window on.
    pub fn advance_window(&mut self, to: u64) {
        self.store.advance_window(&mut self.core, to);
    }

    /// Times that do not count towards the least window: their last stamps, and how long they were; oldest first.
    pub fn set_unproven(&mut self, unproven: Vec<(u64, u64)>) {
        if let Some(versions) = &mut self.store.versions {
            versions.set_unproven(unproven);
        }
    }

    /// Keeps an instant, wherever the window begins, until the snapshot is deleted.
    ///
    /// # Errors
    /// If the instant is not remembered.
    pub fn snapshot(&mut self, instant: u64) -> Result<(), TooOld> {
        if let Some(versions) = &mut self.store.versions {
            versions.history.snapshot(instant)?;
        }
        Ok(())
    }

    /// Deletes a snapshot; whether there was one.
    pub fn delete_snapshot(&mut self, instant: u64) -> bool {
        let core = &mut self.core;
        let deleted = self.store.on_history(core, |history, mut drop| {
            history.delete_snapshot(instant, &mut drop)
        });
        deleted.unwrap_or(false)
    }

    /// Forgets every instant before this one, and the snapshots among them after which anything changed; answers
    /// those.
    pub fn forget_before(&mut self, to: u64) -> Vec<u64> {
        self.store.forget_before(&mut self.core, to)
    }

    /// Forgets every version of these pages but the present one: at instants before that they are
    /// [`Version::Purged`].
    pub fn purge(&mut self, pages: std::ops::Range<u32>) {
        self.store.purge(&mut self.core, pages);
    }

    /// The same, and erases at once what nobody refers to any more: no version that is forgotten, of whatever
    /// page, can be read from the medium afterwards, unless another page or its old versions need it too. The
    /// present versions of these pages are made whole, so that they do not.
    ///
    /// # Errors
    /// No room for what must be copied, or a failure of the device: the versions are forgotten, and some of
    /// them not erased yet.
    pub fn purge_and_erase(
        &mut self,
        at: Time,
        pages: std::ops::Range<u32>,
    ) -> Result<Erased, Failure<T>> {
        self.purge(pages.clone());
        self.make_whole(at, pages)?;
        self.erase_stale(at)
    }

    /// Makes what logical pages hold whole, where it is a difference: they need no older value any more.
    ///
    /// # Errors
    /// No room, or a failure of the device.
    pub fn make_whole(&mut self, at: Time, pages: std::ops::Range<u32>) -> Result<(), Failure<T>> {
        for lpn in pages.start..pages.end.min(self.store.objects.len()) {
            if let Some(object) = self.difference_of(lpn) {
                let core = &mut self.core;
                self.store
                    .merge(core, When::now(at), object, lpn, Why::Room)?;
            }
        }
        Ok(())
    }

    /// Erases at once every block that holds something to which nobody refers.
    ///
    /// # Errors
    /// No room for what must be copied, or a failure of the device.
    pub fn erase_stale(&mut self, at: Time) -> Result<Erased, Failure<T>> {
        self.core.erase_stale(&mut self.store, at)
    }

    /// Objects that logical pages refer to, where there are packed objects or old versions.
    pub fn referenced_objects(&self) -> u32 {
        self.store.referenced
    }

    /// Gets the history ready to be stored: its entries in order, without gaps.
    pub fn tidy_history(&mut self) {
        if let Some(versions) = &mut self.store.versions {
            versions.history.tidy();
        }
    }

    /// The history has been stored as it is.
    pub fn note_history_stored(&mut self) {
        if let Some(versions) = &mut self.store.versions {
            versions.history.note_stored();
        }
    }

    /// Objects that old versions alone keep alive. It looks at every object.
    pub fn historical_objects(&self) -> u64 {
        self.store.historical_objects()
    }

    /// What encoding did, if anything is encoded.
    pub fn delta_counters(&self) -> Option<DeltaCounters> {
        let delta = self.store.delta.as_ref()?;
        Some(DeltaCounters {
            bypassed: delta.viability.bypassed,
            similar: delta
                .similar
                .as_ref()
                .map_or_else(Default::default, |s| s.counters),
            ..delta.counters
        })
    }

    /// Who encodes.
    pub fn encoder_mut(&mut self) -> &mut T::Encoder {
        &mut self.store.encoder
    }

    /// The policy that encodes, if there is one.
    pub fn delta(&self) -> Option<&Delta<EncodedOf<T>>> {
        self.store.delta.as_ref()
    }

    /// Programs what waits to be packed, as a loss of power would make the device do.
    ///
    /// # Errors
    /// A full device or a failure of it.
    pub fn flush_packs(&mut self, at: Time) -> Result<(), Failure<T>> {
        let when = When::now(at);
        for filler in [Filler::Host, Filler::Gc] {
            let core = &mut self.core;
            self.store
                .program_pack(core, filler, when, 0, |_| Tag::NONE)?;
        }
        Ok(())
    }

    /// Forgets a logical page, at the present and at once; what it shared survives as long as another
    /// refers to it.
    ///
    /// # Errors
    /// An address out of range, or what its map entry meets.
    pub fn trim(&mut self, lpn: u32) -> Result<(), Failure<T>> {
        self.core.check_range(lpn)?;
        let now = self.core.present;
        self.core.access_map(&mut self.store, now, lpn, Tag::NONE)?;
        if self.store.forget(&mut self.core, lpn) {
            self.core.counters.host_trims += 1;
        }
        if let Some(delta) = &mut self.store.delta {
            delta.heat.forget(lpn);
        }
        Ok(())
    }

    /// Asks for the index slot and the map entry of a write that will come soon.
    #[inline(always)]
    pub fn prefetch_slot(&self, lpn: u32, content: T::Content) {
        self.store.objects.prefetch_map(lpn);
        self.store
            .dedup
            .index
            .prefetch_slot(self.store.objects.fingerprint(content));
        if let Some(delta) = self.store.delta.as_ref().filter(|_| T::ENCODES) {
            delta.heat.prefetch(lpn);
        }
        if let Some(versions) = self.store.versions.as_ref().filter(|_| T::REMEMBERS) {
            versions.history.prefetch(lpn);
        }
    }

    /// Asks for the object found and the old one, once slot and map entry are near.
    #[inline(always)]
    pub fn prefetch_objects(&self, lpn: u32, content: T::Content) {
        self.prefetch_object(lpn);
        let fingerprint = self.store.objects.fingerprint(content);
        if let Some(object) = self.store.dedup.index.likely(fingerprint) {
            self.store.objects.prefetch_object(object);
        }
    }

    /// The object that dies when a page is written, unless it is written or shared meanwhile.
    #[inline(always)]
    fn dying(&self, lpn: u32) -> Option<u32> {
        if T::REMEMBERS && self.store.records() {
            return None;
        }
        let old = self.store.objects.object_of(lpn);
        old.filter(|&object| self.store.objects.is_last(object))
    }

    /// Asks for the neighbours of its block in the bucket, once the block is near.
    #[inline(always)]
    pub fn prefetch_neighbours(&self, lpn: u32) {
        if let Some(old) = self.dying(lpn) {
            self.store.prefetch_neighbours(&self.core, old);
        }
    }

    /// Asks for the block and the index slot of the old object, once that is near and if it dies.
    #[inline(always)]
    pub fn prefetch_death(&self, lpn: u32) {
        if let Some(old) = self.dying(lpn) {
            self.store.prefetch_death(&self.core, old);
        }
    }

    /// Asks for the map entry of a page that will be read soon.
    #[inline(always)]
    pub fn prefetch_map(&self, lpn: u32) {
        self.store.objects.prefetch_map(lpn);
    }

    /// Asks for the object of a page, once its map entry is near.
    #[inline(always)]
    pub fn prefetch_object(&self, lpn: u32) {
        if let Some(object) = self.store.objects.object_of(lpn) {
            self.store.objects.prefetch_object(object);
        }
    }

    /// Bytes held by map, objects, index and blocks.
    pub fn heap_bytes(&self) -> usize {
        self.core.heap_bytes() + self.store.heap_bytes()
    }

    /// Recounts every invariant from scratch (`spec/ca-ssd.md` section 6).
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let alive = self.store.check(&self.core)?;
        let agrees = |&lpn: &u32| {
            let entry = self.store.entry_of(self.store.objects.object_of(lpn));
            self.core.map_cache.agrees(lpn, entry)
        };
        if let Some(lpn) = (0..self.store.objects.len()).find(|lpn| !agrees(lpn)) {
            return Err(format!("the map cache names another object for page {lpn}"));
        }
        self.store.dedup.index.check(&self.store.objects)?;
        let mut named = 0;
        for object in self.store.dedup.index.objects(&self.store.objects) {
            named += 1;
            if self.store.objects.location(object).is_none()
                || !self.store.objects.is_indexed(object)
            {
                return Err(format!(
                    "the index names object {object}, which is dead or unmarked"
                ));
            }
            match self.candidate(self.store.objects.content(object)) {
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
            .filter(|&&o| self.store.objects.is_indexed(o))
            .count();
        if marked != named {
            return Err(format!(
                "{marked} objects are marked as indexed, {named} entries name one"
            ));
        }
        match &self.store.scan {
            Some(scan) => scan.check(&self.store.objects, &alive)?,
            None => {
                if let Some(object) = alive.iter().find(|&&o| self.store.objects.is_unhashed(o)) {
                    return Err(format!(
                        "object {object} is to be hashed, which nobody does"
                    ));
                }
            }
        }
        let counters = self.store.dedup.counters;
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
