//! What the host model asks of a device, and which devices answer: the plain one, and the one that
//! deduplicates (with or without the oracle that names programs).
//!
//! A replay is compiled once for each of them: which policies are on is not asked again for every
//! request.

use std::convert::Infallible;

use flashlore_content::dedup::DedupCounters;
use flashlore_content::{Census, DedupOptions, Encoder, Ledger, NoEncoder, PageTag};
use flashlore_flash::sim::NandSim;
use flashlore_flash::{Cause, Completion, Tag, Time, When};
use flashlore_ftl::content::decision::Write;
use flashlore_ftl::content::delta::DeltaCounters;
use flashlore_ftl::content::history::{ReturnCost, VersionCounters};
use flashlore_ftl::content::prefetch::PrefetchCounters;
use flashlore_ftl::core::Core;
use flashlore_ftl::error::OptionsError;
use flashlore_ftl::map_cache::{CacheOptions, Demand, MapKeeper, Resident};
use flashlore_ftl::{
    Candidate, CandidateRead, ContentFtl, FtlError, FtlOptions, PartsRead, PlainFtl, Policies,
    Unhashed,
};

type Result<T> = std::result::Result<T, FtlError<Infallible>>;

/// A device under replay.
pub trait System {
    /// Whether the system looks at content: writes pass the hash unit.
    const HASHES: bool;
    /// Whether values may be stored in fewer bytes than a page.
    const ENCODES: bool = false;
    /// Who keeps the map.
    type Keeper: MapKeeper<()>;

    /// What lies below the mapping.
    fn core(&self) -> &Core<NandSim, Self::Keeper>;
    /// What lies below the mapping.
    fn core_mut(&mut self) -> &mut Core<NandSim, Self::Keeper>;
    /// Lets time pass.
    fn advance(&mut self, until: Time) -> Result<()>;
    /// Ends all background work at once.
    fn settle(&mut self, at: Time) -> Result<()>;
    /// Whether the next write is to be hashed; asked once a write.
    fn wants_hash(&mut self) -> bool {
        false
    }
    /// Whether duplicates are compared before they are shared.
    fn verifies(&self) -> bool {
        false
    }
    /// The read of a candidate that has to be compared before it is shared, unless it is what was
    /// `read` already.
    fn fetch_candidate(
        &mut self,
        _at: Time,
        _value: PageTag,
        _read: Option<Candidate<PageTag>>,
        _tag: Tag,
    ) -> Result<Option<CandidateRead<PageTag>>> {
        Ok(None)
    }
    /// Whether the index knows a value: it was hashed as a sample for others.
    fn knows(&self, _value: PageTag) -> bool {
        false
    }
    /// Commits the write of a unit; `None` if it was hashed. `encode` if it has been encoded.
    fn write(
        &mut self,
        when: When,
        lpn: u32,
        value: PageTag,
        unhashed: Option<Unhashed>,
        encode: bool,
        tag: Tag,
    ) -> Result<Completion>;
    /// What happens next happens at this instant: the stamp of old versions.
    fn set_instant(&mut self, _stamp: Time) {}
    /// Old versions are kept from now on.
    fn begin_history(&mut self) {}
    /// The start of the window of old versions.
    fn oldest_instant(&self) -> Time {
        Time::MAX
    }
    /// The instants behind the window that can be returned to as well.
    fn kept_instants(&self) -> Vec<Time> {
        Vec::new()
    }
    /// What a unit holds, if it was ever written.
    fn content(&self, _lpn: u32) -> Option<PageTag> {
        None
    }
    /// What it held at an instant of the window.
    fn content_at(&self, _lpn: u32, _instant: Time) -> Option<PageTag> {
        None
    }
    /// All units hold again what they held at an instant of the window; answers what that took, or nothing
    /// if the device refuses.
    fn return_to(&mut self, _instant: Time) -> Option<ReturnCost> {
        None
    }
    /// Units on flash that hold anything of the present or of old versions, where they are counted.
    fn units_in_use(&self) -> Option<u64> {
        None
    }
    /// Entries that the history holds, if there is one.
    fn history_entries(&self) -> Option<u64> {
        None
    }
    /// What the history holds and did, if there is one.
    fn history(&self) -> Option<HistoryTotals> {
        None
    }
    /// A unit is about to be written: whether that is to be encoded unless it is a duplicate.
    fn begin_write(&mut self, _lpn: u32) -> bool {
        false
    }
    /// A unit is about to be forgotten: whether what it holds is to be encoded.
    fn begin_trim(&mut self, _lpn: u32) -> bool {
        false
    }
    /// Whether the write of a unit that is to be encoded has to be sketched first.
    fn needs_sketch(&self, _lpn: u32) -> bool {
        false
    }
    /// What the trace says of the write that comes next: R_c, in 1/65535, or 0 if it says nothing.
    fn tell_ratio(&mut self, _ratio: u16) {}
    /// The read of the page that a write of a value is to be a difference from, unless it is what was `read` already.
    fn fetch_base(
        &mut self,
        _at: Time,
        _lpn: u32,
        _value: PageTag,
        _read: Option<Candidate<PageTag>>,
        _tag: Tag,
    ) -> Result<Option<CandidateRead<PageTag>>> {
        Ok(None)
    }
    /// Reads what a unit is held in.
    fn read_parts(&mut self, _at: Time, _lpn: u32, _cause: Cause, _tag: Tag) -> Result<PartsRead> {
        Ok(PartsRead::default())
    }
    /// Makes a unit whole that was read and has become read-hot.
    fn merge_if_read_hot(&mut self, _when: When, _lpn: u32) -> Result<()> {
        Ok(())
    }
    /// Notes the units that are not written often any more; whether anything has been written or read since it did
    /// so before.
    fn begin_cold_scan(&mut self) -> bool {
        false
    }
    /// When the next of them could be read, its dies being idle.
    fn cold_start(&mut self) -> Option<Time> {
        None
    }
    /// Makes the next of them whole.
    fn merge_cold(&mut self, _at: Time) -> Result<()> {
        Ok(())
    }
    /// When the next page to be hashed in idle time could be read, its die being idle.
    fn scan_start(&mut self) -> Option<Time> {
        None
    }
    /// Reads it, unless collection takes the die first.
    fn scan(&mut self, _at: Time, _tag: Tag) -> Result<Option<Completion>> {
        Ok(None)
    }
    /// It has been hashed.
    fn end_scan(&mut self, _at: Time) -> Result<()> {
        Ok(())
    }
    /// Writes content that equals nothing: what the device held before anybody looked.
    fn fill(&mut self, lpn: u32) -> Result<()>;
    /// Reads a unit; `None` when the page was never written.
    fn read(&mut self, at: Time, lpn: u32, cause: Cause, tag: Tag) -> Result<Option<Completion>>;
    /// Forgets a unit.
    fn trim(&mut self, lpn: u32) -> Result<()>;
    /// Sets all counters to 0.
    fn restart_counters(&mut self);
    /// Hints, from far to near, that a unit will be written.
    fn prefetch_write(&self, distance: Distance, lpn: u32, value: PageTag);
    /// The same for a unit that will be read.
    fn prefetch_read(&self, distance: Distance, lpn: u32);
    /// What deduplication did, and the entries of its index.
    fn dedup(&self) -> Option<(DedupCounters, u64)> {
        None
    }
    /// What restoring index entries did.
    fn prefetch(&self) -> PrefetchCounters {
        PrefetchCounters::default()
    }
    /// What encoding did, if anything is encoded.
    fn delta(&self) -> Option<EncodingTotals> {
        None
    }
    /// Programs by name, if somebody counts them.
    fn census(&self) -> Option<Census> {
        None
    }
    /// Bytes the device's tables hold.
    fn heap_bytes(&self) -> usize;
}

/// What encoding did, and what it holds.
#[derive(Debug, Clone, Copy)]
pub struct EncodingTotals {
    /// What happened to writes and encoded values.
    pub counters: DeltaCounters,
    /// Encoded values.
    pub packed: u32,
    /// Pages that are kept only because differences from them are.
    pub pinned: u32,
    /// Packed flash pages in use.
    pub packs: u32,
}

/// What a history holds and did.
#[derive(Debug, Clone)]
pub struct HistoryTotals {
    /// What happened to old versions.
    pub counters: VersionCounters,
    /// Entries held.
    pub entries: u64,
    /// The start of the window.
    pub oldest: Time,
    /// Units that only old versions need.
    pub historical: u64,
    /// Units that old versions may take, with those they take.
    pub room: u64,
    /// What a return to the start of the window would take.
    pub longest_return: ReturnCost,
    /// Instants that stay behind the window, oldest first.
    pub kept: Vec<Time>,
    /// Units programmed with entries, and those that hold some.
    pub tables: (u64, u32),
    /// The log of a system that keeps parities.
    pub log: Option<LogTotals>,
}

/// What was written to a log of parities.
#[derive(Debug, Clone, Copy)]
pub struct LogTotals {
    /// Versions encoded, and their bytes.
    pub encoded: u64,
    /// Their bytes, without those of their heads.
    pub encoded_bytes: u64,
    /// Versions kept as they were.
    pub raw: u64,
}

/// How far ahead of its use something is asked for. Each step finds what the one before asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    /// What the request names.
    First,
    /// What that leads to.
    Second,
    /// And so on.
    Third,
    /// Last before the use.
    Fourth,
}

/// The plain device.
pub struct Plain<K = Resident>(PlainFtl<NandSim, K>);

impl Plain {
    /// An empty device.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn new(flash: NandSim, options: FtlOptions) -> std::result::Result<Self, OptionsError> {
        Ok(Plain(PlainFtl::new(flash, options)?))
    }
}

impl Plain<Demand<()>> {
    /// An empty device with a part of its map in RAM.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn on_demand(
        flash: NandSim,
        options: FtlOptions,
        cache: CacheOptions,
    ) -> std::result::Result<Self, OptionsError> {
        let keeper = Demand::new(options.exported, cache, ());
        Ok(Plain(PlainFtl::with_keeper(flash, options, keeper)?))
    }
}

impl<K: MapKeeper<()>> System for Plain<K> {
    const HASHES: bool = false;
    type Keeper = K;

    fn core(&self) -> &Core<NandSim, K> {
        self.0.core()
    }
    fn core_mut(&mut self) -> &mut Core<NandSim, K> {
        self.0.core_mut()
    }
    #[inline(always)]
    fn advance(&mut self, until: Time) -> Result<()> {
        self.0.advance(until)
    }
    fn settle(&mut self, at: Time) -> Result<()> {
        self.0.settle(at)
    }
    #[inline(always)]
    fn write(
        &mut self,
        when: When,
        lpn: u32,
        _value: PageTag,
        _unhashed: Option<Unhashed>,
        _encode: bool,
        tag: Tag,
    ) -> Result<Completion> {
        self.0.write(when, lpn, (), tag)
    }
    fn fill(&mut self, lpn: u32) -> Result<()> {
        self.0.write(When::now(0), lpn, (), Tag::NONE).map(drop)
    }
    #[inline(always)]
    fn read(&mut self, at: Time, lpn: u32, cause: Cause, tag: Tag) -> Result<Option<Completion>> {
        let (page, done) = self.0.read(at, lpn, cause, tag)?;
        Ok(page.map(|()| done))
    }
    fn trim(&mut self, lpn: u32) -> Result<()> {
        self.0.trim(lpn)
    }
    fn restart_counters(&mut self) {
        self.0.core_mut().restart_counters();
    }
    #[inline(always)]
    fn prefetch_write(&self, distance: Distance, lpn: u32, _value: PageTag) {
        match distance {
            Distance::First => self.0.prefetch_map(lpn),
            Distance::Second => {}
            Distance::Third => self.0.prefetch_unit(lpn),
            Distance::Fourth => self.0.prefetch_neighbours(lpn),
        }
    }
    #[inline(always)]
    fn prefetch_read(&self, distance: Distance, lpn: u32) {
        match distance {
            Distance::First => self.0.prefetch_map(lpn),
            Distance::Second => self.0.prefetch_unit(lpn),
            Distance::Third | Distance::Fourth => {}
        }
    }
    fn heap_bytes(&self) -> usize {
        self.0.core().heap_bytes() + self.0.map().heap_bytes()
    }
}

/// The deduplicating device.
pub struct Deduplicating<L, K = Resident, E: Encoder<PageTag, ()> = NoEncoder>(
    ContentFtl<PageTag, NandSim, L, K, E>,
);

impl<L: Ledger<PageTag>> Deduplicating<L> {
    /// An empty device.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn new(
        flash: NandSim,
        options: FtlOptions,
        dedup: DedupOptions,
        ledger: L,
    ) -> std::result::Result<Self, OptionsError> {
        Ok(Deduplicating(ContentFtl::new(
            flash, options, dedup, ledger,
        )?))
    }
}

impl<L: Ledger<PageTag>, E: Encoder<PageTag, ()>> Deduplicating<L, Demand<()>, E> {
    /// An empty device with a part of its map in RAM.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn on_demand(
        flash: NandSim,
        options: FtlOptions,
        policies: Policies<E>,
        ledger: L,
        cache: CacheOptions,
    ) -> std::result::Result<Self, OptionsError> {
        let keeper = Demand::new(options.exported, cache, ());
        let ftl = ContentFtl::with_policies(flash, options, policies, ledger, keeper)?;
        Ok(Deduplicating(ftl))
    }
}

impl<L: Ledger<PageTag>, E: Encoder<PageTag, ()>> Deduplicating<L, Resident, E> {
    /// An empty device with several policies.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn with_policies(
        flash: NandSim,
        options: FtlOptions,
        policies: Policies<E>,
        ledger: L,
    ) -> std::result::Result<Self, OptionsError> {
        let ftl = ContentFtl::with_policies(flash, options, policies, ledger, Resident)?;
        Ok(Deduplicating(ftl))
    }
}

impl<L: Ledger<PageTag>, K: MapKeeper<()>, E: Encoder<PageTag, ()>> Deduplicating<L, K, E> {
    /// The same, restoring the index entries of so many pages behind each hit.
    #[must_use]
    pub fn with_prefetch(self, degree: u32) -> Self {
        Deduplicating(self.0.with_prefetch(degree))
    }

    /// The translation layer.
    pub fn ftl(&self) -> &ContentFtl<PageTag, NandSim, L, K, E> {
        &self.0
    }
}

impl<L: Ledger<PageTag>, K: MapKeeper<()>, E: Encoder<PageTag, ()>> System
    for Deduplicating<L, K, E>
{
    const HASHES: bool = true;
    const ENCODES: bool = E::ON;
    type Keeper = K;

    fn core(&self) -> &Core<NandSim, K> {
        self.0.core()
    }
    fn core_mut(&mut self) -> &mut Core<NandSim, K> {
        self.0.core_mut()
    }
    #[inline(always)]
    fn advance(&mut self, until: Time) -> Result<()> {
        self.0.advance(until)
    }
    fn settle(&mut self, at: Time) -> Result<()> {
        self.0.settle(at)
    }
    #[inline(always)]
    fn wants_hash(&mut self) -> bool {
        self.0.wants_hash()
    }
    #[inline(always)]
    fn verifies(&self) -> bool {
        self.0.dedup().verify
    }
    #[inline(always)]
    fn fetch_candidate(
        &mut self,
        at: Time,
        value: PageTag,
        read: Option<Candidate<PageTag>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<PageTag>>> {
        self.0.fetch_candidate(at, value, read, tag)
    }
    fn knows(&self, value: PageTag) -> bool {
        self.0.candidate(value).is_some()
    }
    #[inline(always)]
    fn write(
        &mut self,
        when: When,
        lpn: u32,
        value: PageTag,
        unhashed: Option<Unhashed>,
        encode: bool,
        tag: Tag,
    ) -> Result<Completion> {
        let write = Write {
            encode,
            unhashed,
            ..Write::new(lpn, value)
        };
        Ok(self.0.commit(when, write, ContentFtl::is_same, tag)?.done)
    }
    #[inline(always)]
    fn set_instant(&mut self, stamp: Time) {
        if E::ON {
            self.0.set_instant(stamp);
        }
    }
    fn begin_history(&mut self) {
        self.0.begin_history();
    }
    fn oldest_instant(&self) -> Time {
        let versions = self.0.versions();
        versions.map_or(Time::MAX, |versions| versions.history.oldest())
    }
    fn units_in_use(&self) -> Option<u64> {
        Some(self.0.units_in_use())
    }
    fn history_entries(&self) -> Option<u64> {
        let versions = self.0.versions()?;
        Some(versions.history.len() as u64)
    }
    fn kept_instants(&self) -> Vec<Time> {
        let history = self.0.versions().map(|versions| &versions.history);
        let pinned = history
            .into_iter()
            .flat_map(|h| h.pinned().take_while(|&t| t < h.oldest()));
        pinned.collect()
    }
    fn content(&self, lpn: u32) -> Option<PageTag> {
        let objects = self.0.objects();
        objects.object_of(lpn).map(|object| objects.content(object))
    }
    fn content_at(&self, lpn: u32, instant: Time) -> Option<PageTag> {
        self.0.content_at_instant(lpn, instant).ok().flatten()
    }
    fn return_to(&mut self, instant: Time) -> Option<ReturnCost> {
        let reads = self.0.read_entries_since(instant).ok()?;
        let pages = self.0.return_to(instant).ok()?;
        Some(ReturnCost {
            pages,
            reads,
            ..ReturnCost::default()
        })
    }
    fn history(&self) -> Option<HistoryTotals> {
        let versions = self.0.versions()?;
        Some(HistoryTotals {
            counters: versions.counters,
            entries: versions.history.len() as u64,
            oldest: versions.history.oldest(),
            historical: self.0.historical_objects(),
            room: self.0.room_of_history(),
            longest_return: self.0.cost_of_longest_return(),
            kept: self.kept_instants(),
            tables: versions
                .tier
                .as_ref()
                .map_or((0, 0), |tier| (tier.programs, tier.len())),
            log: None,
        })
    }
    fn begin_write(&mut self, lpn: u32) -> bool {
        self.0.begin_write(lpn)
    }
    fn needs_sketch(&self, lpn: u32) -> bool {
        self.0.needs_sketch(lpn)
    }
    fn tell_ratio(&mut self, ratio: u16) {
        self.0.encoder_mut().tell_ratio(ratio);
    }
    fn fetch_base(
        &mut self,
        at: Time,
        lpn: u32,
        value: PageTag,
        read: Option<Candidate<PageTag>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<PageTag>>> {
        self.0.fetch_base(at, lpn, value, read, tag)
    }
    fn read_parts(&mut self, at: Time, lpn: u32, cause: Cause, tag: Tag) -> Result<PartsRead> {
        self.0.read_parts(at, lpn, cause, tag)
    }
    fn merge_if_read_hot(&mut self, when: When, lpn: u32) -> Result<()> {
        self.0.merge_if_read_hot(when, lpn).map(drop)
    }
    fn begin_cold_scan(&mut self) -> bool {
        self.0.begin_cold_scan()
    }
    fn cold_start(&mut self) -> Option<Time> {
        self.0.cold_start()
    }
    fn merge_cold(&mut self, at: Time) -> Result<()> {
        self.0.merge_cold(at).map(drop)
    }
    fn delta(&self) -> Option<EncodingTotals> {
        let (counters, delta) = (self.0.delta_counters()?, self.0.delta()?);
        Some(EncodingTotals {
            counters,
            packed: delta.packed,
            pinned: delta.pinned,
            packs: delta.packs.on_flash(),
        })
    }
    fn scan_start(&mut self) -> Option<Time> {
        self.0.scan_start()
    }
    fn scan(&mut self, at: Time, tag: Tag) -> Result<Option<Completion>> {
        self.0.scan(at, tag)
    }
    fn end_scan(&mut self, at: Time) -> Result<()> {
        self.0.end_scan(at).map(drop)
    }
    fn fill(&mut self, lpn: u32) -> Result<()> {
        let (now, foreign) = (When::now(0), PageTag::FOREIGN);
        self.0
            .write_unhashed(now, lpn, foreign, Unhashed::Foreign, Tag::NONE)
            .map(drop)
    }
    #[inline(always)]
    fn read(&mut self, at: Time, lpn: u32, cause: Cause, tag: Tag) -> Result<Option<Completion>> {
        let (page, done) = self.0.read(at, lpn, cause, tag)?;
        Ok(page.map(|()| done))
    }
    fn trim(&mut self, lpn: u32) -> Result<()> {
        self.0.trim(lpn)
    }
    fn restart_counters(&mut self) {
        self.0.restart_counters();
    }
    #[inline(always)]
    fn prefetch_write(&self, distance: Distance, lpn: u32, value: PageTag) {
        match distance {
            Distance::First => self.0.prefetch_slot(lpn, value),
            Distance::Second => self.0.prefetch_objects(lpn, value),
            Distance::Third => self.0.prefetch_death(lpn),
            Distance::Fourth => self.0.prefetch_neighbours(lpn),
        }
    }
    #[inline(always)]
    fn prefetch_read(&self, distance: Distance, lpn: u32) {
        match distance {
            Distance::First => self.0.prefetch_map(lpn),
            Distance::Second => self.0.prefetch_object(lpn),
            Distance::Third | Distance::Fourth => {}
        }
    }
    fn dedup(&self) -> Option<(DedupCounters, u64)> {
        Some((
            self.0.dedup_counters(),
            u64::from(self.0.dedup().index.len()),
        ))
    }
    fn prefetch(&self) -> PrefetchCounters {
        self.0.prefetch_counters()
    }
    fn census(&self) -> Option<Census> {
        self.0.ledger().census()
    }
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}
