//! A device that keeps, of each version of a page, its delta from the next one: TRAP (Yang, Xiao, Ren,
//! ISCA 2006), BVSSD's rival, on the same flash.
//!
//! * `log` — entries, log pages, chains
//! * [`write`](mod@write) — a change of a page, and the room it takes
//! * [`recover`] — what a page held at an instant, and the way back
//!
//! The present version of a page is whole, in a unit of its own, as on a plain device. When it is overwritten,
//! what is kept of it is its *parity*: its exclusive or with the new version, compressed. Parities are packed
//! into log pages with the stamp and the page of the change, in order of time, and the old unit is invalid. So
//! an overwrite reads the old version, encodes a parity, programs the new version, and with other overwrites a
//! log page. What a page held is decoded step by step from the present: as many parities as it was overwritten
//! since.
//!
//! The window shrinks under pressure only, by whole log pages, the oldest first. Collection moves log pages as
//! they are, into blocks of their own.
//!
//! A simulated device: nothing here survives a loss of power.
//!
//! Invariants: the owner of a unit is its logical page, or its log page; a unit
//! is valid iff a logical page maps to it or an entry that is held lies in it.

mod log;
pub mod recover;
pub mod write;

use std::marker::PhantomData;

use flashlore_content::{Content, Encoder};
use flashlore_flash::{Cause, Flash, Lpn, ObjectId, Owned, Owner, Ppn, Ready, Tag, Time};

use self::log::ParityLog;
use crate::content::{Candidate, CandidateRead, PartsRead};
use crate::core::relocate::Relocate;
use crate::core::{Core, PageRead};
use crate::error::{FtlError, OptionsError};
use crate::mapping::Mapping;
use crate::options::FtlOptions;
use crate::policies::history::VersionsOptions;

/// What happened to versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrapCounters {
    /// Changes recorded.
    pub recorded: u64,
    /// Entries given up that named a value.
    pub dropped: u64,
    /// Log pages copied by collection.
    pub copied_log: u64,
    /// Other units it copied.
    pub copied_live: u64,
    /// Versions kept encoded, as parities or by themselves.
    pub encoded: u64,
    /// Their bytes, without those of their heads.
    pub encoded_bytes: u64,
    /// Versions kept as they were.
    pub raw: u64,
}

/// The device. `C` names a value, `E` encodes parities.
pub struct TrapFtl<C, F: Flash, E: Encoder<C, F::Page>> {
    core: Core<F>,
    trap: Trap<C, E, F::Page>,
}

/// What stands above the core.
struct Trap<C, E: Encoder<C, P>, P> {
    /// By logical page: where its present version lies, and what that is.
    units: Vec<Ppn>,
    contents: Vec<Option<C>>,
    mapped: u32,
    log: ParityLog<C, E::Encoded, P>,
    encoder: E,
    options: VersionsOptions,
    counters: TrapCounters,
    now: u64,
    recording: bool,
    page: PhantomData<fn() -> P>,
}

impl<C, F, E> TrapFtl<C, F, E>
where
    C: Content,
    F: Flash,
    F::Page: Clone,
    E: Encoder<C, F::Page>,
{
    /// An empty device. Of the settings of its history a schedule is not used: a version is decoded from all
    /// newer ones.
    ///
    /// # Errors
    /// Settings that cannot work together.
    pub fn new(
        flash: F,
        options: FtlOptions,
        versions: VersionsOptions,
        encoder: E,
    ) -> Result<Self, OptionsError> {
        let exported = options.exported;
        let core = Core::new(
            flash,
            FtlOptions {
                log: true,
                ..options
            },
        )?;
        let trap = Trap {
            units: vec![Ppn::NONE; exported as usize],
            contents: vec![None; exported as usize],
            mapped: 0,
            log: ParityLog::new(exported),
            encoder,
            options: versions,
            counters: TrapCounters::default(),
            now: 0,
            recording: false,
            page: PhantomData,
        };
        Ok(TrapFtl { core, trap })
    }

    /// What lies below the map.
    pub fn core(&self) -> &Core<F> {
        &self.core
    }

    /// What lies below the map.
    pub fn core_mut(&mut self) -> &mut Core<F> {
        &mut self.core
    }

    /// Who encodes.
    pub fn encoder_mut(&mut self) -> &mut E {
        &mut self.trap.encoder
    }

    /// What happened to versions.
    pub fn trap_counters(&self) -> TrapCounters {
        self.trap.counters
    }

    /// Sets all counts to 0.
    pub fn restart_counters(&mut self) {
        self.core.restart_counters();
        self.trap.counters = TrapCounters::default();
    }

    /// Old versions are kept from now on.
    pub fn begin_history(&mut self) {
        self.trap.recording = true;
    }

    /// What happens next happens at this instant: the stamp of the versions that end. Of one page they never
    /// fall.
    #[inline(always)]
    pub fn set_instant(&mut self, stamp: u64) {
        self.trap.now = stamp;
    }

    /// Changes that are remembered.
    pub fn entries(&self) -> u64 {
        self.trap.log.len() as u64
    }

    /// Log pages on flash.
    pub fn log_pages(&self) -> u32 {
        self.trap.log.pages()
    }

    /// The instant from which on everything can be told.
    pub fn oldest(&self) -> u64 {
        self.trap.log.oldest()
    }

    /// What a logical page holds, if it was ever written.
    pub fn content(&self, lpn: Lpn) -> Option<C> {
        self.trap.contents.get(lpn.index()).copied().flatten()
    }

    /// Lets time pass to `until`.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn advance(&mut self, until: Time) -> Result<(), FtlError<F::Error>> {
        self.core.advance(&mut self.trap, until)
    }

    /// Ends all background work at once.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn settle(&mut self, at: Time) -> Result<(), FtlError<F::Error>> {
        self.core.settle(&mut self.trap, at)
    }

    /// Whether the next change of a page needs what the page holds, to encode that.
    pub fn needs_old(&self, lpn: Lpn) -> bool {
        self.trap.recording && self.content(lpn).is_some()
    }

    /// Reads what a page holds, so that its next change can be encoded, unless that was `read` already or is in
    /// RAM.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn fetch_old(
        &mut self,
        at: Time,
        lpn: Lpn,
        read: Option<Candidate<C>>,
        tag: Tag,
    ) -> Result<Option<CandidateRead<C>>, FtlError<F::Error>> {
        let Some(content) = self.content(lpn).filter(|_| read.is_none()) else {
            return Ok(None);
        };
        let ppn = self.trap.unit_of(lpn);
        if self.core.buffered(ppn).is_some() {
            return Ok(None);
        }
        let done = self.core.read(Ready::At(at), ppn, Cause::Delta, tag)?;
        Ok(Some((
            Candidate::new(ObjectId::of_page(lpn), content),
            done,
        )))
    }

    /// Reads a logical page; one that was never written costs nothing.
    ///
    /// # Errors
    /// An address out of range or a failure of the device.
    pub fn read(
        &mut self,
        at: Time,
        lpn: Lpn,
        cause: Cause,
        tag: Tag,
    ) -> Result<PageRead<F::Page>, FtlError<F::Error>> {
        self.core.read_page(&mut self.trap, at, lpn, cause, tag)
    }

    /// The same, as the flash pages read for it.
    ///
    /// # Errors
    /// As [`TrapFtl::read`].
    pub fn read_parts(
        &mut self,
        at: Time,
        lpn: Lpn,
        cause: Cause,
        tag: Tag,
    ) -> Result<PartsRead, FtlError<F::Error>> {
        let (page, done) = self.read(at, lpn, cause, tag)?;
        Ok(page.map_or(PartsRead::default(), |_| {
            PartsRead::whole(ObjectId::of_page(lpn), done)
        }))
    }

    /// Bytes held by map, log and blocks.
    pub fn heap_bytes(&self) -> usize {
        let trap = &self.trap;
        self.core.heap_bytes()
            + trap.units.capacity() * size_of::<Ppn>()
            + trap.contents.capacity() * size_of::<Option<C>>()
            + trap.log.heap_bytes()
    }

    /// Recounts every invariant from scratch.
    ///
    /// # Errors
    /// A sentence that says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let trap = &self.trap;
        trap.log.check()?;
        let lpns = (0..trap.units.len() as u32).map(Lpn);
        let mapped = lpns.clone().filter(|&lpn| trap.unit_of(lpn).is_some());
        if mapped.clone().count() != trap.mapped as usize {
            return Err(format!("{} pages are said to be mapped", trap.mapped));
        }
        let differs = |&lpn: &Lpn| trap.unit_of(lpn).is_some() != self.content(lpn).is_some();
        if let Some(lpn) = lpns.clone().find(differs) {
            return Err(format!("page {lpn} has a unit or a content and not both"));
        }
        let (units, most) = (self.units(), self.core.most_live());
        if units > most {
            return Err(format!("{units} units are in use, at most {most} may be"));
        }
        let log = trap.log.page_numbers().map(Owner::pack);
        self.core.check(trap, mapped.map(Owner::page).chain(log))
    }
}

impl<C: Content, E: Encoder<C, P>, P: Clone> Mapping for Trap<C, E, P> {
    fn unit_of(&self, lpn: Lpn) -> Ppn {
        self.units[lpn.index()]
    }

    fn relocate(&mut self, owner: Owner, to: Ppn) {
        match owner.owned() {
            Owned::Pack(page) => {
                self.log.relocate(page, to);
                self.counters.copied_log += 1;
            }
            _ => {
                self.units[owner.as_page().index()] = to;
                self.counters.copied_live += 1;
            }
        }
    }

    fn prefetch(&self, _owner: Owner) {}

    fn location(&self, owner: Owner) -> Option<Ppn> {
        if let Owned::Pack(page) = owner.owned() {
            return self.log.location(page);
        }
        let unit = self.units.get(owner.as_page().index()).copied();
        unit.filter(|unit| unit.is_some())
    }
}

impl<C, E, F, K> Relocate<F, K> for Trap<C, E, F::Page>
where
    C: Content,
    E: Encoder<C, F::Page>,
    F: Flash,
    F::Page: Clone,
{
}
