//! What the host model asks of a device, and which devices answer: the plain one (`plain`), and the one that
//! deduplicates (`deduplicating`), with or without the oracle that names programs.
//!
//! A replay is compiled once for each of them: which policies are on is not asked again for every
//! request.

mod deduplicating;
mod plain;

use std::convert::Infallible;

use flashlore_content::dedup::DedupCounters;
use flashlore_content::{Census, PageTag};
use flashlore_flash::sim::NandSim;
use flashlore_flash::{Cause, Completion, Lpn, PackId, Tag, Time, When};
use flashlore_ftl::content::encoding::EncodingCounters;
use flashlore_ftl::core::Core;
use flashlore_ftl::map_cache::MapCache;
use flashlore_ftl::policies::history::{RewindCost, VersionCounters};
use flashlore_ftl::policies::prefetch::PrefetchCounters;
use flashlore_ftl::{Candidate, CandidateRead, FtlError, PartsRead, Unhashed};

pub use self::deduplicating::{Deduplicating, Simulated};
pub use self::plain::Plain;

type Result<T> = std::result::Result<T, FtlError<Infallible>>;

/// A device under replay.
pub trait System {
    /// Whether the system looks at content: writes pass the hash unit.
    const HASHES: bool;
    /// Whether values may be stored in fewer bytes than a page.
    const ENCODES: bool = false;
    type Cache: MapCache<()>;

    /// What lies below the mapping.
    fn core(&self) -> &Core<NandSim, Self::Cache>;
    /// What lies below the mapping.
    fn core_mut(&mut self) -> &mut Core<NandSim, Self::Cache>;
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
        lpn: Lpn,
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
    /// The instants behind the window that can be rewound to as well.
    fn kept_instants(&self) -> Vec<Time> {
        Vec::new()
    }
    /// What a unit holds, if it was ever written.
    fn content(&self, _lpn: Lpn) -> Option<PageTag> {
        None
    }
    /// What it held at an instant of the window.
    fn content_at(&self, _lpn: Lpn, _instant: Time) -> Option<PageTag> {
        None
    }
    /// All units hold again what they held at an instant of the window; answers what that took, or nothing
    /// if the device refuses.
    fn rewind_to(&mut self, _instant: Time) -> Option<RewindCost> {
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
    fn begin_write(&mut self, _lpn: Lpn) -> bool {
        false
    }
    /// A unit is about to be forgotten: whether what it holds is to be encoded.
    fn begin_trim(&mut self, _lpn: Lpn) -> bool {
        false
    }
    /// Whether the write of a unit that is to be encoded has to be sketched first.
    fn needs_sketch(&self, _lpn: Lpn) -> bool {
        false
    }
    /// What the trace says of the write that comes next: R_c, in 1/65535, or 0 if it says nothing.
    fn tell_ratio(&mut self, _ratio: u16) {}
    /// The read of the page that a write of a value is to be a delta from, unless it is what was `read` already.
    fn fetch_base(
        &mut self,
        _at: Time,
        _lpn: Lpn,
        _value: PageTag,
        _read: Option<Candidate<PageTag>>,
        _tag: Tag,
    ) -> Result<Option<CandidateRead<PageTag>>> {
        Ok(None)
    }
    /// Reads what a unit is held in.
    fn read_parts(&mut self, _at: Time, _lpn: Lpn, _cause: Cause, _tag: Tag) -> Result<PartsRead> {
        Ok(PartsRead::default())
    }
    /// Materializes a unit that was read and has become read-hot.
    fn merge_if_read_hot(&mut self, _when: When, _lpn: Lpn) -> Result<()> {
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
    /// Materializes the next of them.
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
    fn fill(&mut self, lpn: Lpn) -> Result<()>;
    /// Reads a unit; `None` when the page was never written.
    fn read(&mut self, at: Time, lpn: Lpn, cause: Cause, tag: Tag) -> Result<Option<Completion>>;
    /// Forgets a unit.
    fn trim(&mut self, lpn: Lpn) -> Result<()>;
    /// Sets all counters to 0.
    fn restart_counters(&mut self);
    /// Hints, from far to near, that a unit will be written.
    fn prefetch_write(&self, distance: Distance, lpn: Lpn, value: PageTag);
    /// The same for a unit that will be read.
    fn prefetch_read(&self, distance: Distance, lpn: Lpn);
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
    pub counters: EncodingCounters,
    /// Encoded values.
    pub packed: u32,
    /// Pages that are kept only because deltas from them are.
    pub pinned: u32,
    /// Packed flash pages in use.
    pub packs: PackId,
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
    /// What a rewind to the start of the window would take.
    pub longest_rewind: RewindCost,
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
    Third,
    /// Last before the use.
    Fourth,
}
