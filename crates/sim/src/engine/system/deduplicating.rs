//! The device that looks at content: deduplication, and what is compiled in with it: encoded values, old versions, the
//! oracle of programs.

use flashlore_content::dedup::DedupCounters;
use flashlore_content::{Census, DedupOptions, Encoder, Ledger, NoEncoder, PageTag};
use flashlore_flash::sim::NandSim;
use flashlore_flash::{Cause, Completion, Lpn, PackId, Tag, Time, When};
use flashlore_ftl::content::decision::Write;
use flashlore_ftl::content::parts::{Memory, Of, Parts, Past, Present};
use flashlore_ftl::core::Core;
use flashlore_ftl::error::OptionsError;
use flashlore_ftl::map_cache::{CacheOptions, CachedMap, Resident};
use flashlore_ftl::policies::history::RewindCost;
use flashlore_ftl::policies::prefetch::PrefetchCounters;
use flashlore_ftl::{
    Candidate, CandidateRead, ContentDevice, ContentFtl, FtlOptions, PartsRead, Policies, Unhashed,
};

use super::{Distance, EncodingTotals, HistoryTotals, Result, System};

pub struct Deduplicating<T: Parts>(ContentDevice<T>);

/// Its parts: `L` names programs, `K` caches the map, `E` encodes, `M` says whether old versions may be kept.
pub type Simulated<L, K = Resident, E = NoEncoder, M = Present> = Of<PageTag, NandSim, L, K, E, M>;

impl<L: Ledger<PageTag>> Deduplicating<Simulated<L, Resident, NoEncoder, Present>> {
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

impl<L: Ledger<PageTag>, E: Encoder<PageTag, ()>, M: Memory>
    Deduplicating<Simulated<L, CachedMap<()>, E, M>>
{
    /// An empty device with a part of its map in RAM.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn with_map_cache(
        flash: NandSim,
        options: FtlOptions,
        policies: Policies<E>,
        ledger: L,
        cache: CacheOptions,
    ) -> std::result::Result<Self, OptionsError> {
        let map_cache = CachedMap::new(options.exported, cache, ());
        let ftl = ContentFtl::with_policies(flash, options, policies, ledger, map_cache)?;
        Ok(Deduplicating(ftl))
    }
}

impl<L: Ledger<PageTag>, E: Encoder<PageTag, ()>> Deduplicating<Simulated<L, Resident, E, Past>> {
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

impl<T: Parts<Content = PageTag, Flash = NandSim>> Deduplicating<T> {
    /// The same, restoring the index entries of so many pages behind each hit.
    #[must_use]
    pub fn with_prefetch(self, degree: u32) -> Self {
        Deduplicating(self.0.with_prefetch(degree))
    }

    /// The translation layer.
    pub fn ftl(&self) -> &ContentDevice<T> {
        &self.0
    }
}

impl<T: Parts<Content = PageTag, Flash = NandSim>> System for Deduplicating<T> {
    const HASHES: bool = true;
    const ENCODES: bool = T::ENCODES;
    type Cache = T::Cache;

    fn core(&self) -> &Core<NandSim, T::Cache> {
        self.0.core()
    }
    fn core_mut(&mut self) -> &mut Core<NandSim, T::Cache> {
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
        lpn: Lpn,
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
        Ok(self
            .0
            .commit(when, write, ContentDevice::is_same, tag)?
            .done)
    }
    #[inline(always)]
    fn set_instant(&mut self, stamp: Time) {
        if T::REMEMBERS {
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
    fn content(&self, lpn: Lpn) -> Option<PageTag> {
        let objects = self.0.objects();
        objects.object_of(lpn).map(|object| objects.content(object))
    }
    fn content_at(&self, lpn: Lpn, instant: Time) -> Option<PageTag> {
        self.0.content_at_instant(lpn, instant).ok().flatten()
    }
    fn rewind_to(&mut self, instant: Time) -> Option<RewindCost> {
        let reads = self.0.read_entries_since(instant).ok()?;
        let pages = self.0.rewind_to(instant).ok()?;
        Some(RewindCost {
            pages,
            reads,
            ..RewindCost::default()
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
            longest_rewind: self.0.cost_of_longest_rewind(),
            kept: self.kept_instants(),
            tables: versions
                .tier
                .as_ref()
                .map_or((0, 0), |tier| (tier.programs, tier.len())),
            log: None,
        })
    }
    fn begin_write(&mut self, lpn: Lpn) -> bool {
        self.0.begin_write(lpn)
    }
    fn needs_sketch(&self, lpn: Lpn) -> bool {
        self.0.needs_sketch(lpn)
    }
    fn tell_ratio(&mut self, ratio: u16) {
        self.0.encoder_mut().tell_ratio(ratio);
    }
    fn fetch_base(
        &mut self,
        at: Time,
        lpn: Lpn,
        value: PageTag,
        read: Option<Candidate<PageTag>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<PageTag>>> {
        self.0.fetch_base(at, lpn, value, read, tag)
    }
    fn read_parts(&mut self, at: Time, lpn: Lpn, cause: Cause, tag: Tag) -> Result<PartsRead> {
        self.0.read_parts(at, lpn, cause, tag)
    }
    fn merge_if_read_hot(&mut self, when: When, lpn: Lpn) -> Result<()> {
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
        let (counters, packing) = (self.0.encoding_counters()?, self.0.packing()?);
        Some(EncodingTotals {
            counters,
            packed: packing.packed,
            pinned: packing.pinned,
            packs: PackId(packing.packs.on_flash()),
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
    fn fill(&mut self, lpn: Lpn) -> Result<()> {
        let (now, foreign) = (When::now(0), PageTag::FOREIGN);
        self.0
            .write_unhashed(now, lpn, foreign, Unhashed::Foreign, Tag::NONE)
            .map(drop)
    }
    #[inline(always)]
    fn read(&mut self, at: Time, lpn: Lpn, cause: Cause, tag: Tag) -> Result<Option<Completion>> {
        let (page, done) = self.0.read(at, lpn, cause, tag)?;
        Ok(page.map(|()| done))
    }
    fn trim(&mut self, lpn: Lpn) -> Result<()> {
        self.0.trim(lpn)
    }
    fn restart_counters(&mut self) {
        self.0.restart_counters();
    }
    #[inline(always)]
    fn prefetch_write(&self, distance: Distance, lpn: Lpn, value: PageTag) {
        match distance {
            Distance::First => self.0.prefetch_slot(lpn, value),
            Distance::Second => self.0.prefetch_objects(lpn, value),
            Distance::Third => self.0.prefetch_death(lpn),
            Distance::Fourth => self.0.prefetch_neighbours(lpn),
        }
    }
    #[inline(always)]
    fn prefetch_read(&self, distance: Distance, lpn: Lpn) {
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
