//! The host model: requests arrive in time order, are cut into units, pass the hash unit, are
//! committed, and get their response when their last unit is done.
//!
//! * **Who sends requests** is apart: a trace in an open or a closed loop (`replay`), or a caller that
//!   submits them one by one and is told of the responses (`sender`). All of them come in by
//!   [`Driver::submit`].
//! * **Time** passes from event to event in `clock`.
//! * **Reads** of the host, the changes that they wait for, and the read cache before them: `reads`.
//! * **A buffer**, a write buffer or a sorting queue, may stand before everything else: `buffering`.
//! * **A change** is the write or trim of a unit on its way through the hash unit to the map: `changes`.
//! * **Sampling** of what is hashed: `sampling`. **Out of line** hashing in idle time: `idle`.
//! * **A time line** looks at the device where its stretches end: `look`.
//! * **A page buffer** that does not fill is padded and programmed `flush_after` later.
//!
//! Every instant is handled in order: events up to an arrival come before it. Where nothing else can happen
//! before the next stage of a change, no event is made of it: time passes and the change goes on.
//!
//! Invariant: memory grows with the requests in flight only.

mod buffering;
mod caller;
mod changes;
mod clock;
mod encoding;
mod idle;
mod look;
mod reads;
mod replay;
mod sampling;
#[cfg(test)]
mod seen;
pub(super) mod sender;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::convert::Infallible;
use std::num::NonZeroU32;
use std::ops::DerefMut;

use flashlore_content::PageTag;
use flashlore_flash::{Completion, Flash, Lpn, Tag, Time, When};
use flashlore_ftl::core::FIRST_RESERVED_TAG;
use flashlore_ftl::{FtlError, Unhashed};
use flashlore_trace::{Op, Request};

use self::buffering::Leaving;
pub(super) use self::changes::What;
use self::changes::{Change, Fetch, Next};
use self::encoding::Codec;
pub use self::encoding::CodecTimes;
pub use self::sender::Response;
use self::sender::Sender;
use super::barrier::Barrier;
use super::buffering::BufferingOptions;
use super::measure::Measured;
use super::order::Order;
use super::read_cache::ReadCache;
use super::recovery::Truth;
use super::requests::{InFlight, Requests, SentBy};
use super::system::System;
use crate::config::{CacheKey, Load, ReadOrder};

/// Tags from here on name a write that fetches; smaller ones a request slot.
const FIRST_FETCH_TAG: u32 = 1 << 30;
/// Stands for the read of a stored page that is hashed in idle time; as many fetches there never are.
const SCAN_FETCH: u32 = FIRST_RESERVED_TAG - FIRST_FETCH_TAG - 1;
/// The last instant at which a request may arrive or a response be given: 146 years. What lies above
/// is left for what one request adds.
pub const LATEST: Time = 1 << 62;

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

/// How the host and the buffer of the device behave.
#[derive(Debug, Clone, Copy)]
pub struct HostOptions {
    /// When the requests of a trace arrive.
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
    pub buffering: Option<BufferingOptions>,
    /// What pages that were read are kept under, and how many.
    pub read_cache: Option<(CacheKey, u32)>,
    /// Which earlier changes a read waits for.
    pub read_order: ReadOrder,
    /// Whether the system looks for equal content, so that a write must carry it.
    pub needs_content: bool,
    /// How encoding takes time.
    pub codec: CodecTimes,
    /// Recording an old version, before a write is programmed.
    pub record: Time,
}

impl HostOptions {
    /// Whether something is done in idle gaps between what happens.
    fn uses_gaps(&self) -> bool {
        self.out_of_line || self.codec.scan_period > 0
    }
}

/// What is known of the units that a request writes, one entry a unit.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    /// The numbers of their values.
    pub values: Option<&'a [u32]>,
    /// R_c, in 1/65535; 0 where it is not known.
    pub ratios: Option<&'a [u16]>,
}

impl Payload<'_> {
    /// R_c of a unit, in 1/65535; 0 where it is not known.
    #[inline(always)]
    fn ratio(&self, unit: usize) -> u16 {
        self.ratios.map_or(0, |ratios| ratios[unit])
    }
}

/// Serves requests on a device, which it owns or borrows.
pub struct Driver<D> {
    system: D,
    host: HostOptions,
    sender: Sender,
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
    /// Changes under way and the reads that wait for all of them, where reads do.
    barrier: Barrier<(Lpn, u32)>,
    /// How many changes are held for each sample in the hash queue, and those changes.
    samples: VecDeque<usize>,
    held: VecDeque<Change>,
    changes: u64,
    flush_due: Option<Time>,
    codec: Codec,
    /// What the host has written, where old versions are compared with it.
    truth: Option<Truth>,
    /// The buffer with the changes that leave it.
    buffering: Option<Box<Leaving>>,
    /// Pages that were read.
    cache: Option<Box<ReadCache>>,
    now: Time,
    /// Up to this instant no request arrives, and what is being done is the last thing to do at the present
    /// one; 0 if neither is known.
    horizon: Time,
    last_end: Time,
    /// Which version each read found.
    #[cfg(test)]
    seen: seen::Seen,
}

impl<'a, S: System> Driver<&'a mut S> {
    /// A host that replays a trace and has not sent anything.
    pub fn new(system: &'a mut S, host: HostOptions, measured: Measured) -> Self {
        Driver::of_trace(system, host, measured)
    }
}

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    /// A host that replays a trace and has not sent anything.
    pub fn of_trace(system: D, host: HostOptions, measured: Measured) -> Self {
        Driver::with_sender(system, host, measured, Sender::of_trace(host.load))
    }

    /// A host that is told what to send, and when, by a caller that hears of the responses.
    pub fn of_caller(system: D, host: HostOptions, measured: Measured) -> Self {
        Driver::with_sender(system, host, measured, Sender::caller())
    }

    fn with_sender(system: D, host: HostOptions, measured: Measured, sender: Sender) -> Self {
        let units_per_page = system.core().flash().geometry().units_per_page();
        let buffering = host
            .buffering
            .map(|buffering| Leaving::new(buffering, units_per_page));
        let keeps_order = system.verifies() || host.sampling.is_some() || S::ENCODES;
        Driver {
            system,
            host,
            sender,
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
            barrier: Barrier::default(),
            samples: VecDeque::new(),
            held: VecDeque::new(),
            changes: 0,
            flush_due: None,
            codec: Codec::new(host.codec),
            truth: None,
            buffering: buffering.map(Box::new),
            cache: host
                .read_cache
                .map(|(key, places)| Box::new(ReadCache::new(key, places))),
            now: 0,
            horizon: 0,
            last_end: 0,
            #[cfg(test)]
            seen: seen::Seen::default(),
        }
    }

    pub fn device(&self) -> &S {
        &self.system
    }

    /// The device, to do something with it.
    pub fn system(&mut self) -> &mut S {
        &mut self.system
    }

    /// The device, and what was recorded.
    pub fn into_parts(self) -> (D, Measured) {
        (self.system, self.measured)
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

    /// Old versions are kept from here on; `truth` is what the device holds, to be compared later.
    pub fn begin_history(&mut self, truth: Option<Truth>) {
        self.system.begin_history();
        self.truth = truth;
    }

    /// What the host has written since then.
    pub fn take_truth(&mut self) -> Option<Truth> {
        self.truth.take()
    }

    /// What was recorded is forgotten, and what has arrived is not recorded any more.
    pub fn restart_measuring(&mut self) {
        self.measured = Measured::default();
        self.requests.forget_measured();
    }

    /// Requests that arrive from here on are recorded.
    pub fn begin_measuring(&mut self) {
        self.measuring = true;
        if let Some(buffering) = &mut self.buffering {
            buffering.restart();
        }
        if let Some(cache) = &mut self.cache {
            cache.restart();
        }
        self.begin_looking();
    }

    /// Serves a request that arrives at an instant, after all that happens before it. `number` names it; up to
    /// `horizon` no other arrives, if that is known, else it is 0.
    ///
    /// # Errors
    /// A device that cannot serve it, or an instant that is too late.
    #[inline(always)]
    pub fn submit(
        &mut self,
        at: Time,
        number: u64,
        request: &Request,
        payload: Payload<'_>,
        horizon: Time,
    ) -> Result<()> {
        let latest = at.max(self.last_end).max(self.hash_free_at);
        let latest = self
            .buffering
            .as_ref()
            .map_or(latest, |f| latest.max(f.last_end()));
        if latest > LATEST {
            let seconds = latest / 1_000_000_000;
            return Err(DriveError::TooLate { seconds });
        }
        self.pass(at)?;
        self.arrive(at, number, request, payload, horizon)
    }

    /// A request arrives.
    #[inline(always)]
    fn arrive(
        &mut self,
        at: Time,
        number: u64,
        request: &Request,
        payload: Payload<'_>,
        horizon: Time,
    ) -> Result<()> {
        if self.measuring {
            self.measured.arrive(at, request.op, request.units);
        }
        let flight = InFlight {
            arrival: at,
            start: Time::MAX,
            end: at,
            left: request.units,
            lpn: Lpn(request.lpn),
            units: request.units,
            number,
            op: request.op,
            measured: self.measuring,
            by: SentBy::Host,
        };
        if self.buffering.is_some() {
            self.arrive_at_buffering(flight, request, payload)?;
            self.collect_finished()?;
            self.watch(at);
            return Ok(());
        }
        match request.op {
            Op::Read => self.read(flight)?,
            Op::Write => self.write(flight, request, payload, horizon)?,
            Op::Trim => self.trim(flight)?,
            Op::Flush => {
                self.system.core_mut().flush(at)?;
                self.finish_at_once(flight);
            }
        }
        self.collect_finished()?;
        self.watch(self.now);
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
        payload: Payload<'_>,
        horizon: Time,
    ) -> Result<()> {
        let at = flight.arrival;
        let slot = self.requests.insert(flight);
        let whole = !request.head_partial && !request.tail_partial;
        if !S::HASHES && whole {
            for lpn in request.lpn..request.lpn + request.units {
                let value = PageTag(u32::MAX);
                let unhashed = Some(Unhashed::Off);
                let done = self.system.write(
                    When::now(at),
                    Lpn(lpn),
                    value,
                    unhashed,
                    false,
                    Tag(slot),
                )?;
                if let Completion::At { start, end } = done {
                    flight.served(start, end);
                }
            }
            self.settle(slot, flight);
            self.expect_flush(at);
            return Ok(());
        }
        if let (Some(unit), Some(values)) = (self.host.sampling, payload.values)
            && S::HASHES
        {
            let ratios = payload.ratios;
            return self.write_sampled(at, slot, request, (values, ratios), unit.get() as usize);
        }
        let last = request.units - 1;
        for unit in 0..request.units {
            let partial =
                (unit == 0 && request.head_partial) || (unit == last && request.tail_partial);
            let value = match payload.values {
                Some(values) => PageTag(values[unit as usize]),
                None if self.host.needs_content => return Err(DriveError::NoContent),
                None => self.unnamed_value(),
            };
            let what = if partial { What::Modify } else { What::Write };
            let change = Change {
                ratio: payload.ratio(unit as usize),
                ..self.change(Lpn(request.lpn + unit), value, slot, what)
            };
            if unit == last {
                self.horizon = horizon;
            }
            self.begin_change(at, change)?;
        }
        self.horizon = 0;
        Ok(())
    }

    fn trim(&mut self, flight: InFlight) -> Result<()> {
        if flight.units == 0 || !S::HASHES {
            for unit in Lpn::each(flight.lpn..flight.lpn + flight.units) {
                self.system.trim(unit)?;
            }
            self.finish_at_once(flight);
            return Ok(());
        }
        let slot = self.requests.insert(flight);
        for unit in Lpn::each(flight.lpn..flight.lpn + flight.units) {
            let change = self.change(unit, PageTag(u32::MAX), slot, What::Trim);
            self.begin_change(flight.arrival, change)?;
        }
        Ok(())
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
        if flight.by == SentBy::Buffer {
            return self.leave_buffering(flight);
        }
        if self.cache.is_some() && flight.op == Op::Read {
            self.keep_in_cache(flight);
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
        let at = flight.end + link;
        self.last_end = self.last_end.max(at);
        self.sender.respond(flight.number, at);
    }
}
