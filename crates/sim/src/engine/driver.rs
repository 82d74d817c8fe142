//! The host model: requests arrive in time order, are cut into units, pass the hash unit, are
//! committed, and get their response when their last unit is done.
//!
//! * **Open loop**: a request arrives at its time stamp (scaled). **Closed loop**: so many requests
//!   are in flight; one arrives when another is done and the host has thought.
//! * **A front**, a write buffer or a sorting queue, may stand before everything else: `front`.
//! * **The hash unit** is a server in front of the translation layer that takes units one at a time in
//!   order of readiness; a write that is not hashed keeps its place in that order.
//! * **Sampling** of what is hashed: `sampling`. **Out of line** hashing in idle time: `idle`.
//! * **A partly written unit** costs a read of its old content first; a verified duplicate costs the
//!   read of its candidate. Such a write is *plan, fetch, commit*: the map changes at the commit, and
//!   changes to one page are committed in order of arrival ([`super::order`]).
//! * **A page buffer** that does not fill is padded and programmed `flush_after` later.
//!
//! Every instant is handled in order: events up to an arrival come before it.
//!
//! Invariants: the hash queue is in order of completion; while `ordered`, every change on its way has a
//! ticket, and with sampling that is always; memory grows with the requests in flight only.

mod encoding;
mod front;
mod idle;
mod sampling;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::convert::Infallible;
use std::num::NonZeroU32;

use flashlore_content::PageTag;
use flashlore_flash::hints::prefetch;
use flashlore_flash::{Cause, Completion, Flash, Ready, Tag, Time, When};
use flashlore_ftl::core::FIRST_RESERVED_TAG;
use flashlore_ftl::{Candidate, FtlError, Unhashed};
use flashlore_trace::{Op, Request, RequestBlock};

pub use self::encoding::CodecTimes;
use self::encoding::{Codec, Encoding};
use self::front::Leaving;
use super::front::FrontOptions;
use super::measure::Measured;
use super::order::Order;
use super::requests::{InFlight, Requests, SentBy};
use super::system::{Distance, System};
use crate::config::Load;

/// Tags from here on name a write that fetches; smaller ones a request slot.
const FIRST_FETCH_TAG: u32 = 1 << 30;
/// Stands for the read of a stored page that is hashed in idle time; as many fetches there never are.
const SCAN_FETCH: u32 = FIRST_RESERVED_TAG - FIRST_FETCH_TAG - 1;
/// Requests looked ahead for the distances of a prefetch.
const AHEAD: [(usize, Distance); 4] = [
    (20, Distance::First),
    (15, Distance::Second),
    (10, Distance::Third),
    (5, Distance::Fourth),
];
/// Requests themselves are asked for so far ahead.
const REQUESTS_AHEAD: usize = 64;
/// Units of one request that are prefetched; later ones follow the first in memory anyway.
const PREFETCHED_UNITS: u32 = 4;

/// The last instant at which a request may arrive or a response be given: 146 years. What lies above
/// is left for what one request adds.
const LATEST: Time = 1 << 62;

type Result<T> = std::result::Result<T, DriveError>;

/// Why a request cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The device cannot.
    #[error(transparent)]
    Device(#[from] FtlError<Infallible>),
    /// The system looks at content and this write has none.
    #[error(
        "this write carries no content, which the system needs; say what to assume with \
         `--content distinct`"
    )]
    NoContent,
    /// An instant is so far off that sums of durations could leave 64 bits.
    #[error(
        "simulated time has reached {seconds} s, expected at most {} s: the time stamps, \
         `host.time_scale` or the durations are too large, or the device cannot keep up",
        LATEST / 1_000_000_000
    )]
    TooLate {
        /// The instant, in seconds.
        seconds: Time,
    },
}

/// How the host and the front of the device behave.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// When requests arrive.
    pub load: Load,
    /// What the host link adds to every response.
    pub link_request: Time,
    /// What it adds for every 512-byte sector.
    pub link_sector: Time,
    /// Hashing one unit.
    pub hash: Time,
    /// Of so many whole pages of a write one is hashed as a sample; `None` for all.
    pub sampling: Option<NonZeroU32>,
    /// Whether pages that were not hashed are hashed in idle time.
    pub out_of_line: bool,
    /// A partly filled page is programmed so long after its first unit came.
    pub flush_after: Time,
    /// What stands before the translation layer.
    pub front: Option<FrontOptions>,
    /// Whether the system looks for equal content, so that a write must carry it.
    pub needs_content: bool,
    /// How encoding takes time.
    pub codec: CodecTimes,
}

impl Host {
    /// Whether something is done in idle gaps between what happens.
    fn uses_gaps(&self) -> bool {
        self.out_of_line || self.codec.scan_period > 0
    }
}

/// What happens to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// It is written in full.
    Write,
    /// It is written in part: its old content is needed.
    Modify,
    /// It is forgotten.
    Trim,
    /// It was stored without being hashed, which is made up for: no change of the host's.
    Scan,
}

/// The write or trim of one unit on its way to the map.
#[derive(Debug, Clone, Copy)]
struct Change {
    number: u64,
    lpn: u32,
    value: PageTag,
    slot: u32,
    what: What,
    /// Whether it is hashed, once that is decided.
    hashing: Hashing,
    /// How far its encoding is.
    encoding: Encoding,
}

/// What a change has to do with the hash unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hashing {
    /// It is hashed for itself.
    Alone,
    /// It is hashed, and others are held until it has been looked up.
    Sample,
    /// It is not hashed.
    Not(Unhashed),
}

impl Change {
    #[inline(always)]
    fn is_hashed(&self) -> bool {
        !matches!(self.hashing, Hashing::Not(_))
    }
}

/// Where a change goes on.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// With the read of its old content.
    FetchOld(Change),
    /// With its commit, or the read of its candidate.
    Commit(Change),
}

/// What a fetch was for.
#[derive(Debug, Clone, Copy)]
enum Fetched {
    /// The old content of a partly written unit: hashing is next.
    Old,
    /// The candidate: the commit is next, if it is the candidate still.
    Candidate(Candidate<PageTag>),
    /// What a write is to be a difference from: encoding is next.
    Base(Candidate<PageTag>),
    /// A page that the host reads, whole.
    Whole,
    /// The same, to be decoded.
    Encoded,
}

/// Reads that something waits for.
#[derive(Debug, Clone, Copy)]
struct Fetch {
    change: Change,
    what: Fetched,
    /// Reads whose end is not known.
    left: u8,
    /// When the first of those that are known began, and the last ended.
    start: Time,
    end: Time,
}

/// Replays requests on a device.
pub struct Driver<'a, S> {
    system: &'a mut S,
    host: Host,
    /// What has been recorded.
    pub measured: Measured,
    measuring: bool,
    number: u64,
    requests: Requests,
    hash_queue: VecDeque<(Time, Change)>,
    hash_free_at: Time,
    /// Fetches whose end is known.
    fetched: BinaryHeap<Reverse<(Time, u32)>>,
    fetches: Vec<Fetch>,
    free_fetches: Vec<u32>,
    /// Fetches whose end is not known.
    open_fetches: u32,
    /// The order of changes, kept from one that may fetch until none is on its way.
    order: Order<Next>,
    ordered: bool,
    /// Whether it always is.
    keeps_order: bool,
    /// How many changes are held for each sample in the hash queue, and those changes.
    samples: VecDeque<usize>,
    held: VecDeque<Change>,
    changes: u64,
    flush_due: Option<Time>,
    codec: Codec,
    /// The front with the changes that leave it.
    front: Option<Box<Leaving>>,
    /// Closed loop: when the next requests may arrive.
    turns: BinaryHeap<Reverse<Time>>,
    now: Time,
    last_end: Time,
}

impl<'a, S: System> Driver<'a, S> {
    /// A host that has not sent anything.
    pub fn new(system: &'a mut S, host: Host, measured: Measured) -> Self {
        let turns = match host.load {
            Load::Open { .. } => BinaryHeap::new(),
            Load::Closed { queue_depth, .. } => (0..queue_depth).map(|_| Reverse(0)).collect(),
        };
        let units_per_page = system.core().flash().geometry().units_per_page();
        let front = host.front.map(|front| Leaving::new(front, units_per_page));
        let keeps_order = system.verifies() || host.sampling.is_some() || S::ENCODES;
        Driver {
            system,
            host,
            measured,
            measuring: false,
            number: 0,
            requests: Requests::default(),
            hash_queue: VecDeque::new(),
            hash_free_at: 0,
            fetched: BinaryHeap::new(),
            fetches: Vec::new(),
            free_fetches: Vec::new(),
            open_fetches: 0,
            order: Order::default(),
            ordered: keeps_order,
            keeps_order,
            samples: VecDeque::new(),
            held: VecDeque::new(),
            changes: 0,
            flush_due: None,
            codec: Codec::new(host.codec),
            front: front.map(Box::new),
            turns,
            now: 0,
            last_end: 0,
        }
    }

    /// The device.
    pub fn system(&mut self) -> &mut S {
        self.system
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the last response so far was given.
    pub fn last_end(&self) -> Time {
        self.last_end
    }

    /// Requests replayed.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Requests that arrive from here on are recorded.
    pub fn begin_measuring(&mut self) {
        self.measuring = true;
        if let Some(front) = &mut self.front {
            front.restart();
        }
    }

    /// Replays the requests of a block from `first` on, before `end`.
    ///
    /// # Errors
    /// A device that cannot serve a request; [`Driver::number`] says which.
    pub fn replay(&mut self, block: &RequestBlock, first: usize, end: usize) -> Result<()> {
        for i in first..end {
            self.prefetch(block, i);
            let request = &block.requests[i];
            self.number += 1;
            let at = self.arrival(request.time_ns)?;
            let latest = at.max(self.last_end).max(self.hash_free_at);
            let latest = self
                .front
                .as_ref()
                .map_or(latest, |f| latest.max(f.last_end()));
            if latest > LATEST {
                let seconds = latest / 1_000_000_000;
                return Err(DriveError::TooLate { seconds });
            }
            self.pass(at)?;
            let values = block.content(request);
            self.arrive(at, request, values)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, block: &RequestBlock, i: usize) {
        prefetch(&block.requests, i + REQUESTS_AHEAD);
        for (ahead, distance) in AHEAD {
            let Some(request) = block.requests.get(i + ahead) else {
                continue;
            };
            match (request.op, block.content(request)) {
                (Op::Write, Some(values)) => {
                    let units = request.units.min(PREFETCHED_UNITS);
                    for (unit, &value) in (0..units).zip(values) {
                        let lpn = request.lpn + unit;
                        self.system.prefetch_write(distance, lpn, PageTag(value));
                    }
                }
                _ => {
                    for unit in 0..request.units.min(PREFETCHED_UNITS) {
                        self.system.prefetch_read(distance, request.lpn + unit);
                    }
                }
            }
        }
    }

    /// When the next request arrives.
    #[inline(always)]
    fn arrival(&mut self, stamp: Time) -> Result<Time> {
        match self.host.load {
            Load::Open { time_scale: 1.0 } => Ok(stamp),
            Load::Open { time_scale } => Ok((stamp as f64 * time_scale).round() as Time),
            Load::Closed { .. } => self.next_turn(),
        }
    }

    /// Closed loop: waits until a request may arrive.
    fn next_turn(&mut self) -> Result<Time> {
        loop {
            let turn = self.turns.peek().map(|&Reverse(at)| at);
            let instant = self.next_instant();
            if self.host.uses_gaps()
                && let Some(bound) = turn.into_iter().chain(instant).min()
                && self.scan_before(bound)?
            {
                continue;
            }
            match (turn, instant) {
                (Some(at), None) => {
                    self.turns.pop();
                    return Ok(at.max(self.now));
                }
                // What happens before may end a request earlier.
                (Some(at), Some(instant)) if at <= instant => {
                    self.turns.pop();
                    return Ok(at.max(self.now));
                }
                (_, Some(instant)) => self.handle(instant)?,
                (None, None) => {
                    // Everything in flight waits for its page to fill.
                    self.system.core_mut().flush(self.now)?;
                    self.flush_due = None;
                    self.collect_finished()?;
                }
            }
        }
    }

    /// The next instant at which something happens by itself.
    #[inline(always)]
    fn next_instant(&self) -> Option<Time> {
        let hash = self.hash_queue.front().map(|&(at, _)| at);
        let fetched = self.fetched.peek().map(|&Reverse((at, _))| at);
        // Fetches and requests in flight may end at any event of the flash device.
        let waits = self.open_fetches > 0
            || self.host.uses_gaps()
            || (matches!(self.host.load, Load::Closed { .. }) && !self.requests.is_empty())
            || (self.front.is_some() && !self.requests.is_empty());
        let flash = if waits {
            self.system.core().flash().next_event()
        } else {
            None
        };
        let codec = if S::ENCODES {
            self.codec.next_instant()
        } else {
            None
        };
        let front = self.front.as_ref().and_then(|front| front.next_instant());
        [hash, fetched, codec, front, self.flush_due, flash]
            .into_iter()
            .flatten()
            .min()
    }

    /// Lets time pass to an arrival.
    #[inline(always)]
    fn pass(&mut self, until: Time) -> Result<()> {
        let quiet = self.hash_queue.is_empty()
            && self.fetched.is_empty()
            && self.open_fetches == 0
            && self.flush_due.is_none()
            && self.front.is_none()
            && (!S::ENCODES || self.codec.is_idle())
            && !self.host.uses_gaps();
        if !quiet {
            if self.host.uses_gaps() {
                self.scan_until(until)?;
            }
            while let Some(instant) = self.next_instant()
                && instant <= until
            {
                self.handle(instant)?;
            }
        }
        self.now = until;
        self.system.advance(until)?;
        self.collect_finished()
    }

    /// Handles what happens at one instant.
    fn handle(&mut self, at: Time) -> Result<()> {
        self.happen(at)?;
        self.watch(at);
        Ok(())
    }

    fn happen(&mut self, at: Time) -> Result<()> {
        self.now = at;
        self.system.advance(at)?;
        self.collect_finished()?;
        if let Some(&Reverse((end, fetch))) = self.fetched.peek()
            && end <= at
        {
            self.fetched.pop();
            return self.after_fetch(at, fetch);
        }
        if let Some(&(end, change)) = self.hash_queue.front()
            && end <= at
        {
            self.hash_queue.pop_front();
            return match change.what {
                What::Scan => Ok(self.system.end_scan(at)?),
                _ => self.after_hash(at, change),
            };
        }
        if S::ENCODES && self.codec_happens(at)? {
            return Ok(());
        }
        if self.front_happens(at)? {
            return Ok(());
        }
        if self.flush_due.is_some_and(|due| due <= at) {
            self.flush_due = None;
            self.system.core_mut().flush(at)?;
            self.collect_finished()?;
        }
        Ok(())
    }

    /// Takes the completions the device has decided.
    #[inline(always)]
    fn collect_finished(&mut self) -> Result<()> {
        if self.system.core_mut().finished().is_empty() {
            return Ok(());
        }
        self.take_finished()
    }

    fn take_finished(&mut self) -> Result<()> {
        let mut finished = std::mem::take(self.system.core_mut().finished());
        for done in finished.drain(..) {
            if done.tag.0 < FIRST_FETCH_TAG {
                self.unit_done(done.tag.0, done.start, done.end);
            } else {
                let fetch = done.tag.0 - FIRST_FETCH_TAG;
                self.fetch_ends(fetch, done.start, done.end);
                self.open_fetches -= 1;
            }
        }
        *self.system.core_mut().finished() = finished;
        Ok(())
    }

    /// A request arrives.
    #[inline(always)]
    fn arrive(&mut self, at: Time, request: &Request, values: Option<&[u32]>) -> Result<()> {
        if self.measuring {
            self.measured.arrive(at, request.op, request.units);
        }
        let flight = InFlight {
            arrival: at,
            start: Time::MAX,
            end: at,
            left: request.units,
            units: request.units,
            number: self.number - 1,
            op: request.op,
            measured: self.measuring,
            by: SentBy::Host,
        };
        if self.front.is_some() {
            self.arrive_at_front(flight, request, values)?;
            self.collect_finished()?;
            self.watch(at);
            return Ok(());
        }
        match request.op {
            Op::Read => self.read(flight, request.lpn)?,
            Op::Write => self.write(flight, request, values)?,
            Op::Trim => self.trim(flight, request.lpn)?,
            Op::Flush => {
                self.system.core_mut().flush(at)?;
                self.finish_at_once(flight);
            }
        }
        self.collect_finished()?;
        self.watch(at);
        Ok(())
    }

    /// Books what the device has done since the last call at this instant of the time line.
    #[inline(always)]
    fn watch(&mut self, at: Time) {
        if self.measuring && self.measured.watches() {
            let core = self.system.core();
            self.measured.watch(at, core.counters(), core.free_blocks());
        }
    }

    #[inline(always)]
    fn read(&mut self, mut flight: InFlight, lpn: u32) -> Result<()> {
        let at = flight.arrival;
        let slot = self.requests.insert(flight);
        for unit in lpn..lpn + flight.units {
            if S::ENCODES {
                self.read_unit(&mut flight, unit, slot)?;
                continue;
            }
            let done = self.system.read(at, unit, Cause::Host, Tag(slot))?;
            match done.unwrap_or(Completion::instant(at)) {
                Completion::At { start, end } => flight.served(start, end),
                Completion::Later(_) => {}
            }
        }
        self.settle(slot, flight);
        Ok(())
    }

    /// Keeps a request in its slot if units are missing, else records it.
    #[inline(always)]
    fn settle(&mut self, slot: u32, flight: InFlight) {
        if flight.left == 0 {
            self.requests.remove(slot);
            self.finish(&flight);
        } else {
            *self.requests.get_mut(slot) = flight;
        }
    }

    #[inline(always)]
    fn write(
        &mut self,
        mut flight: InFlight,
        request: &Request,
        values: Option<&[u32]>,
    ) -> Result<()> {
        let at = flight.arrival;
        let slot = self.requests.insert(flight);
        let whole = !request.head_partial && !request.tail_partial;
        if !S::HASHES && whole {
            for lpn in request.lpn..request.lpn + request.units {
                let value = PageTag(u32::MAX);
                let unhashed = Some(Unhashed::Off);
                let done =
                    self.system
                        .write(When::now(at), lpn, value, unhashed, false, Tag(slot))?;
                if let Completion::At { start, end } = done {
                    flight.served(start, end);
                }
            }
            self.settle(slot, flight);
            self.expect_flush(at);
            return Ok(());
        }
        if let (Some(unit), Some(values)) = (self.host.sampling, values)
            && S::HASHES
        {
            return self.write_sampled(at, slot, request, values, unit.get() as usize);
        }
        let last = request.units - 1;
        for unit in 0..request.units {
            let partial =
                (unit == 0 && request.head_partial) || (unit == last && request.tail_partial);
            let value = match values {
                Some(values) => PageTag(values[unit as usize]),
                None if self.host.needs_content => return Err(DriveError::NoContent),
                None => self.unnamed_value(),
            };
            let what = if partial { What::Modify } else { What::Write };
            let change = self.change(request.lpn + unit, value, slot, what);
            self.begin_change(at, change)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn change(&mut self, lpn: u32, value: PageTag, slot: u32, what: What) -> Change {
        self.changes += 1;
        Change {
            number: self.changes,
            lpn,
            value,
            slot,
            what,
            hashing: Hashing::Not(Unhashed::Off),
            encoding: Encoding::Undecided,
        }
    }

    /// What a write without content is said to write: another value each time, where it matters.
    fn unnamed_value(&self) -> PageTag {
        if S::ENCODES {
            PageTag((self.changes % u64::from(u32::MAX)) as u32)
        } else {
            PageTag::FOREIGN
        }
    }

    fn trim(&mut self, flight: InFlight, lpn: u32) -> Result<()> {
        if flight.units == 0 || !S::HASHES {
            for unit in lpn..lpn + flight.units {
                self.system.trim(unit)?;
            }
            self.finish_at_once(flight);
            return Ok(());
        }
        let slot = self.requests.insert(flight);
        for unit in lpn..lpn + flight.units {
            let change = self.change(unit, PageTag(u32::MAX), slot, What::Trim);
            self.begin_change(flight.arrival, change)?;
        }
        Ok(())
    }

    /// A change begins: with the read of its old content if it is partial, else at the hash unit.
    #[inline(always)]
    fn begin_change(&mut self, at: Time, change: Change) -> Result<()> {
        if !S::HASHES {
            return self.modify_in_place(at, change);
        }
        if change.what == What::Modify && !self.ordered {
            self.keep_order();
        }
        let first = !self.ordered || self.order.arrive(change.lpn, change.number);
        if change.what != What::Modify {
            return self.enter_hash(at, change);
        }
        if first {
            return self.fetch_old(at, change);
        }
        self.order
            .park(change.lpn, change.number, Next::FetchOld(change));
        Ok(())
    }

    /// From now on changes may overtake each other: those under way take their places.
    #[cold]
    fn keep_order(&mut self) {
        self.ordered = true;
        for (_, change) in &self.hash_queue {
            if change.what != What::Scan {
                self.order.arrive(change.lpn, change.number);
            }
        }
    }

    /// Reads the old content of a partly written unit.
    fn fetch_old(&mut self, at: Time, change: Change) -> Result<()> {
        let fetch = self.open_fetch(change);
        let tag = Tag(FIRST_FETCH_TAG + fetch);
        if S::ENCODES {
            let parts = self.system.read_parts(at, change.lpn, Cause::Modify, tag)?;
            if parts.is_mapped() {
                self.await_all(at, fetch, parts.done);
                return Ok(());
            }
            self.free_fetches.push(fetch);
            return self.enter_hash(at, change);
        }
        match self.system.read(at, change.lpn, Cause::Modify, tag)? {
            Some(done) => {
                self.await_fetch(fetch, done);
                Ok(())
            }
            None => {
                self.free_fetches.push(fetch);
                self.enter_hash(at, change)
            }
        }
    }

    /// Without a hash unit the program follows the read of the old content by itself.
    fn modify_in_place(&mut self, at: Time, change: Change) -> Result<()> {
        let mut ready = Ready::At(at);
        if change.what == What::Modify
            && let Some(old) = self.system.read(at, change.lpn, Cause::Modify, Tag::NONE)?
        {
            if let Completion::At { start, .. } = old {
                let flight = self.requests.get_mut(change.slot);
                flight.start = flight.start.min(start);
            }
            ready = Ready::from(old);
        }
        self.write_unit(When { ready, at }, change)
    }

    fn open_fetch(&mut self, change: Change) -> u32 {
        let record = Fetch {
            change,
            what: Fetched::Old,
            left: 1,
            start: Time::MAX,
            end: 0,
        };
        if let Some(fetch) = self.free_fetches.pop() {
            self.fetches[fetch as usize] = record;
            return fetch;
        }
        self.fetches.push(record);
        (self.fetches.len() - 1) as u32
    }

    fn await_fetch(&mut self, fetch: u32, done: Completion) {
        match done {
            Completion::At { start, end } => self.fetch_ends(fetch, start, end),
            Completion::Later(_) => self.open_fetches += 1,
        }
    }

    fn fetch_ends(&mut self, fetch: u32, start: Time, end: Time) {
        let mut last = end;
        if fetch != SCAN_FETCH {
            let record = &mut self.fetches[fetch as usize];
            record.start = record.start.min(start);
            record.end = record.end.max(end);
            record.left -= 1;
            if record.left > 0 {
                return;
            }
            last = record.end;
            let reads = matches!(record.what, Fetched::Whole | Fetched::Encoded);
            let (slot, first) = (record.change.slot, record.start);
            // The slot of a read that has just begun is written when all its reads have.
            if !reads {
                let flight = self.requests.get_mut(slot);
                flight.start = flight.start.min(first);
            }
        }
        self.fetched.push(Reverse((last, fetch)));
    }

    fn after_fetch(&mut self, at: Time, fetch: u32) -> Result<()> {
        if fetch == SCAN_FETCH {
            return self.hash_scanned(at);
        }
        let Fetch {
            change,
            what,
            start,
            ..
        } = self.fetches[fetch as usize];
        self.free_fetches.push(fetch);
        match what {
            Fetched::Base(base) => self.after_base(at, change, base),
            Fetched::Encoded => self.after_parts(at, change, start),
            Fetched::Whole => {
                self.unit_done(change.slot, start, at);
                Ok(())
            }
            Fetched::Old => self.enter_hash(at, change),
            Fetched::Candidate(read) => self.take_turn(at, change, Some(read)),
        }
    }

    /// A change takes its place at the hash unit; one that is not hashed takes no time there.
    #[inline(always)]
    fn enter_hash(&mut self, at: Time, mut change: Change) -> Result<()> {
        if change.what != What::Trim && self.system.wants_hash() {
            change.hashing = Hashing::Alone;
        }
        self.line_up(at, change)
    }

    /// A change lines up at the hash unit.
    #[inline(always)]
    fn line_up(&mut self, at: Time, change: Change) -> Result<()> {
        let duration = if change.is_hashed() {
            self.host.hash
        } else {
            0
        };
        let start = at.max(self.hash_free_at);
        let end = start + duration;
        if end == at {
            return self.after_hash(at, change);
        }
        self.hash_free_at = end;
        let flight = self.requests.get_mut(change.slot);
        flight.start = flight.start.min(start);
        self.hash_queue.push_back((end, change));
        Ok(())
    }

    #[inline(always)]
    fn after_hash(&mut self, at: Time, change: Change) -> Result<()> {
        if change.hashing == Hashing::Sample {
            return self.after_sample(at, change);
        }
        self.await_turn(at, change)
    }

    /// A change goes on when those to its page that arrived before it are through.
    #[inline(always)]
    fn await_turn(&mut self, at: Time, change: Change) -> Result<()> {
        if self.ordered && !self.order.is_first(change.lpn, change.number) {
            self.order
                .park(change.lpn, change.number, Next::Commit(change));
            return Ok(());
        }
        self.take_turn(at, change, None)
    }

    /// It is the turn of a change: its candidate is read if it has to be compared and is not what was
    /// `read` already, or it commits.
    #[inline(always)]
    fn take_turn(
        &mut self,
        at: Time,
        change: Change,
        read: Option<Candidate<PageTag>>,
    ) -> Result<()> {
        match self.ready_to_commit(at, change, read)? {
            Some(change) => self.commit(at, change),
            None => Ok(()),
        }
    }

    /// The change, if nothing has to be read or encoded before its commit.
    #[inline(always)]
    fn ready_to_commit(
        &mut self,
        at: Time,
        change: Change,
        read: Option<Candidate<PageTag>>,
    ) -> Result<Option<Change>> {
        if change.is_hashed() && self.fetch_candidate(at, change, read)? {
            return Ok(None);
        }
        if S::ENCODES {
            return self.awaits_encoding(at, change);
        }
        Ok(Some(change))
    }

    /// Reads the candidate of a hashed write if it has to be compared; whether one is being read.
    #[inline(always)]
    fn fetch_candidate(
        &mut self,
        at: Time,
        change: Change,
        read: Option<Candidate<PageTag>>,
    ) -> Result<bool> {
        if !self.system.verifies() {
            return Ok(false);
        }
        let fetch = self.open_fetch(change);
        let tag = Tag(FIRST_FETCH_TAG + fetch);
        match self.system.fetch_candidate(at, change.value, read, tag)? {
            Some((candidate, done)) => {
                self.fetches[fetch as usize].what = Fetched::Candidate(candidate);
                self.await_fetch(fetch, done);
                Ok(true)
            }
            None => {
                self.free_fetches.push(fetch);
                Ok(false)
            }
        }
    }

    /// A change is committed, and what is parked behind it goes on.
    #[inline(always)]
    fn commit(&mut self, at: Time, change: Change) -> Result<()> {
        self.apply(at, change)?;
        if self.ordered {
            self.commit_in_order(at, change)?;
        }
        Ok(())
    }

    fn commit_in_order(&mut self, at: Time, change: Change) -> Result<()> {
        while let Some(next) = self.order.commit(change.lpn) {
            match next {
                Next::FetchOld(next) => return self.fetch_old(at, next),
                Next::Commit(next) => match self.ready_to_commit(at, next, None)? {
                    Some(next) => self.apply(at, next)?,
                    None => return Ok(()),
                },
            }
        }
        // With nothing on its way the hash unit keeps the order by itself until the next fetch.
        self.ordered = self.keeps_order || !self.order.is_empty();
        Ok(())
    }

    /// The map changes.
    #[inline(always)]
    fn apply(&mut self, at: Time, change: Change) -> Result<()> {
        if change.what == What::Trim {
            self.system.trim(change.lpn)?;
            self.unit_done(change.slot, at, at);
            return Ok(());
        }
        self.write_unit(When::now(at), change)
    }

    #[inline(always)]
    fn write_unit(&mut self, when: When, change: Change) -> Result<()> {
        let Change {
            lpn,
            value,
            hashing,
            encoding,
            slot,
            ..
        } = change;
        let unhashed = match hashing {
            Hashing::Not(why) => Some(why),
            Hashing::Alone | Hashing::Sample => None,
        };
        let encode = matches!(encoding, Encoding::Done(_));
        let done = self
            .system
            .write(when, lpn, value, unhashed, encode, Tag(slot))?;
        match done {
            Completion::At { start, end } => self.unit_done(slot, start, end),
            Completion::Later(_) => {}
        }
        self.expect_flush(when.at);
        self.collect_finished()
    }

    /// A page buffer that waits will be programmed in time.
    #[inline(always)]
    fn expect_flush(&mut self, at: Time) {
        if self.flush_due.is_none() && self.system.core().has_partial() {
            self.flush_due = Some(at.saturating_add(self.host.flush_after));
        }
    }

    #[inline(always)]
    fn unit_done(&mut self, slot: u32, start: Time, end: Time) {
        // A copy is changed: reading back what was just written in part would wait for the stores.
        let mut flight = *self.requests.get_mut(slot);
        flight.served(start, end);
        self.settle(slot, flight);
    }

    fn finish_at_once(&mut self, flight: InFlight) {
        self.finish(&InFlight {
            start: flight.arrival,
            ..flight
        });
    }

    /// The response is given.
    #[inline(always)]
    fn finish(&mut self, flight: &InFlight) {
        if flight.by == SentBy::Front {
            return self.leave_front(flight);
        }
        let sectors = match flight.op {
            Op::Read | Op::Write => u64::from(flight.units) * 8,
            Op::Trim | Op::Flush => 0,
        };
        let link = self.host.link_request + self.host.link_sector * sectors;
        if flight.measured {
            let start = flight.start.min(flight.end);
            self.measured.record(&InFlight { start, ..*flight }, link);
        }
        self.last_end = self.last_end.max(flight.end + link);
        if let Load::Closed { think_time_ns, .. } = self.host.load {
            self.turns.push(Reverse(flight.end + link + think_time_ns));
        }
    }

    /// The trace is over: everything in flight is brought to its end.
    ///
    /// # Errors
    /// A device that cannot serve what is left.
    pub fn drain(&mut self) -> Result<()> {
        while !self.requests.is_empty() || self.front.as_ref().is_some_and(|f| f.is_leaving()) {
            match self.next_event_of_anything() {
                Some(instant) => self.handle(instant.max(self.now))?,
                None => {
                    self.system.core_mut().flush(self.now)?;
                    self.flush_due = None;
                    self.collect_finished()?;
                }
            }
        }
        self.now = self.now.max(self.last_end);
        self.system.advance(self.now)?;
        self.watch(self.now);
        Ok(())
    }

    fn next_event_of_anything(&self) -> Option<Time> {
        let flash = self.system.core().flash().next_event();
        [self.next_instant(), flash].into_iter().flatten().min()
    }
}
