//! The system that keeps old versions as parities, as the host model sees it.
//!
//! Every change of a page that holds something is encoded, a trim too: its old version is read, the parity
//! encoded, and then the change is made.

use std::convert::Infallible;

use flashlore_content::{Encoder, PageTag};
use flashlore_flash::sim::NandSim;
use flashlore_flash::{Cause, Completion, Lpn, Tag, Time, When};
use flashlore_ftl::core::Core;
use flashlore_ftl::error::OptionsError;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::policies::history::{RewindCost, VersionCounters, VersionsOptions};
use flashlore_ftl::{Candidate, CandidateRead, FtlError, FtlOptions, PartsRead, TrapFtl, Unhashed};

use super::system::{Distance, HistoryTotals, LogTotals, System};

type Result<T> = std::result::Result<T, FtlError<Infallible>>;

/// The device that keeps parities.
pub struct Trap<E: Encoder<PageTag, ()>>(TrapFtl<PageTag, NandSim, E>);

impl<E: Encoder<PageTag, ()>> Trap<E> {
    /// An empty device.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn new(
        flash: NandSim,
        options: FtlOptions,
        versions: VersionsOptions,
        encoder: E,
    ) -> std::result::Result<Self, OptionsError> {
        Ok(Trap(TrapFtl::new(flash, options, versions, encoder)?))
    }
}

impl<E: Encoder<PageTag, ()>> System for Trap<E> {
    /// Nothing is hashed, but a change passes several stages, and the hash unit is the first.
    const HASHES: bool = true;
    const ENCODES: bool = true;
    type Cache = Resident;

    fn core(&self) -> &Core<NandSim> {
        self.0.core()
    }
    fn core_mut(&mut self) -> &mut Core<NandSim> {
        self.0.core_mut()
    }
    fn advance(&mut self, until: Time) -> Result<()> {
        self.0.advance(until)
    }
    fn settle(&mut self, at: Time) -> Result<()> {
        self.0.settle(at)
    }
    fn write(
        &mut self,
        when: When,
        lpn: Lpn,
        value: PageTag,
        _unhashed: Option<Unhashed>,
        _encode: bool,
        tag: Tag,
    ) -> Result<Completion> {
        self.0.write(when, lpn, value, tag)
    }
    fn set_instant(&mut self, stamp: Time) {
        self.0.set_instant(stamp);
    }
    fn begin_history(&mut self) {
        self.0.begin_history();
    }
    fn oldest_instant(&self) -> Time {
        self.0.oldest()
    }
    fn units_in_use(&self) -> Option<u64> {
        Some(self.0.units())
    }
    fn history_entries(&self) -> Option<u64> {
        Some(self.0.entries())
    }
    fn content(&self, lpn: Lpn) -> Option<PageTag> {
        self.0.content(lpn)
    }
    fn content_at(&self, lpn: Lpn, instant: Time) -> Option<PageTag> {
        self.0.content_at_instant(lpn, instant).ok().flatten()
    }
    fn rewind_to(&mut self, instant: Time) -> Option<RewindCost> {
        self.0.rewind_to(instant).ok()
    }
    fn history(&self) -> Option<HistoryTotals> {
        let c = self.0.trap_counters();
        Some(HistoryTotals {
            counters: VersionCounters {
                recorded: c.recorded,
                dropped: c.dropped,
                copied_historical: c.copied_log,
                copied_live: c.copied_live,
            },
            entries: self.0.entries(),
            oldest: self.0.oldest(),
            historical: u64::from(self.0.log_pages()),
            room: self.0.room_of_history(),
            kept: Vec::new(),
            tables: (0, 0),
            longest_rewind: self.0.cost_of_longest_rewind(),
            log: Some(LogTotals {
                encoded: c.encoded,
                encoded_bytes: c.encoded_bytes,
                raw: c.raw,
            }),
        })
    }
    fn begin_write(&mut self, lpn: Lpn) -> bool {
        self.0.needs_old(lpn)
    }
    fn begin_trim(&mut self, lpn: Lpn) -> bool {
        self.0.needs_old(lpn)
    }
    fn tell_ratio(&mut self, ratio: u16) {
        self.0.encoder_mut().tell_ratio(ratio);
    }
    fn fetch_base(
        &mut self,
        at: Time,
        lpn: Lpn,
        _value: PageTag,
        read: Option<Candidate<PageTag>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<PageTag>>> {
        self.0.fetch_old(at, lpn, read, tag)
    }
    fn read_parts(&mut self, at: Time, lpn: Lpn, cause: Cause, tag: Tag) -> Result<PartsRead> {
        self.0.read_parts(at, lpn, cause, tag)
    }
    fn fill(&mut self, lpn: Lpn) -> Result<()> {
        self.0
            .write(When::now(0), lpn, PageTag::FOREIGN, Tag::NONE)
            .map(drop)
    }
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
    fn prefetch_write(&self, _: Distance, _: Lpn, _: PageTag) {}
    fn prefetch_read(&self, _: Distance, _: Lpn) {}
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}
